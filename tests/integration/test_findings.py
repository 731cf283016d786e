# SPDX-License-Identifier: Apache-2.0
"""Findings: what failed is reported as it fails, once, with the program that it failed of.

What each record must say is reported by the shell that made the failure, or by the Program records.
"""
import os
import signal
import subprocess
import sys
import time

import harness
from agent import AgentTest
from harness import losses, read_cat, read_lake
from load import once

LIMIT = 64 << 20
MOST = 1000  # findings of a run
EATS = "x = bytearray(%d); print(len(x))" % (4 * LIMIT)

MAKEFILE = """
all: good bad
good:
\t@if grep -q nothing Makefile.none; then :; fi; true
bad:
\t@bash -c 'grep -qs x none; %s -c "import sys; sys.exit(3)" | cat; code=$${PIPESTATUS[0]}; sleep $(SECONDS); exit $$code'
""" % sys.executable


def evidence(finding):
    return {e["name"]: e["value"] for e in finding["evidence"]}


def ends_by_id(topics):
    return {r["program_id"]: r for r in topics["sluice.program"] if r["phase"] == "END"}


class Memory:
    """A control group of a test's own with a limit of memory; None where there can be none."""

    @classmethod
    def make(cls, name):
        for top, limit, tasks in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "cgroup.procs"),
                                  ("/sys/fs/cgroup", "memory.max", "cgroup.procs")):
            path = os.path.join(top, name)
            try:
                os.mkdir(path)
            except OSError:
                continue
            try:
                with open(os.path.join(path, limit), "w") as f:
                    f.write(str(LIMIT))
            except OSError:
                os.rmdir(path)
                continue
            for swap in ("memory.swap.max", "memory.memsw.limit_in_bytes"):
                if os.path.exists(os.path.join(path, swap)):
                    with open(os.path.join(path, swap), "w") as f:
                        f.write("0" if swap.endswith("max") else str(LIMIT))
            return path, os.path.join(path, tasks)
        return None

    @staticmethod
    def remove(path):
        for _ in range(50):
            try:
                return os.rmdir(path)
            except OSError:
                time.sleep(0.1)


class FindingsTest(AgentTest):
    def check_chain(self, finding, topics):
        """Each of the chain ended badly, and started the one before it."""
        ends = ends_by_id(topics)
        chain = [ends[i] for i in [finding["program_id"], *finding["causes"]]]
        for inner, outer in zip(chain, chain[1:]):
            at = inner
            while at["parent_program_id"] is not None and at["pid"] == ends[at["parent_program_id"]]["pid"]:
                at = ends[at["parent_program_id"]]  # what exec replaced
            self.assertEqual(outer["program_id"], at["parent_program_id"])
            self.assertTrue(outer["exit_code"] or outer["exit_signal"], outer)
        cause, said = chain[0], evidence(finding)
        self.assertEqual((cause["exit_code"], cause["exit_signal"]), (said.get("exit_code"), said.get("exit_signal")))
        self.assertEqual(cause["usage"]["peak_rss_bytes"], said.get("peak_rss_bytes"))
        self.assertEqual(cause["tool"] or cause["comm"], finding["tool"])
        return chain

    def one(self, topics, kind):
        found = [f for f in topics.get("sluice.finding", []) if f["kind"] == kind]
        self.assertEqual(1, len(found), [f["message"] for f in topics.get("sluice.finding", [])])
        self.assertEqual("ERROR", found[0]["severity"])
        return found[0]

    def memory(self):
        made = Memory.make("sluice_test_%d_%s" % (os.getpid(), self._testMethodName))
        if made is None:
            self.skipTest("no memory limit can be set here")
        self.addCleanup(Memory.remove, made[0])
        return made[1]


class RunTest(FindingsTest):
    def test_a_makes_recipe(self):
        with open(os.path.join(self.room, "Makefile"), "w") as f:
            f.write(MAKEFILE)
        done = self.sluice_run("make", "-k", "SECONDS=0", cwd=self.room)
        self.assertEqual(2, done.returncode, done.stderr)
        topics = read_lake(self.lake)
        finding = self.one(topics, "FAILED")
        chain = self.check_chain(finding, topics)
        self.assertEqual((3, sys.executable), (chain[0]["exit_code"], chain[0]["argv"][0]))
        self.assertEqual("bash", os.path.basename(chain[1]["exe"]))
        (task,) = [t for t in topics["sluice.task"] if t["phase"] == "END" and t["exit_code"]]
        self.assertEqual((task["task_id"], task["task"], task["run_id"]),
                         (finding["task_id"], finding["task"], finding["run_id"]))
        self.assertEqual(3, evidence(finding)["task_exit_code"])
        self.assertLessEqual(finding["time"], task["end_time"])
        self.assertEqual(topics["sluice.finding"], read_cat(self.lake, "finding"))
        self.assert_nothing_lost(topics)

    def test_a_script(self):
        """The run failed of what its script passed on, and of nothing after which it continued."""
        done = self.sluice_run("bash", "-c", "grep -q x /dev/null; false | true; sh -c 'sleep 0.1; kill -SEGV $$'")
        self.assertEqual(139, done.returncode, done.stderr)
        topics = read_lake(self.lake)
        finding = self.one(topics, "FAILED")
        chain = self.check_chain(finding, topics)
        self.assertEqual((signal.SIGSEGV, "sh"), (chain[0]["exit_signal"], chain[0]["comm"]))
        self.assertIn("SIGSEGV; the run failed because of it", finding["message"])

    def test_what_succeeds(self):
        done = self.sluice_run("bash", "-c", "grep -q x /dev/null; false | true; sh -c 'kill -SEGV $$'; exit 0")
        self.assertEqual(0, done.returncode, done.stderr)
        topics = read_lake(self.lake)
        self.assertTrue([r for r in self.ends(topics) if r["exit_code"] == 1])
        self.assertNotIn("sluice.finding", topics)

    def test_at_most_a_thousand_of_a_run(self):
        """The others are counted; the tasks themselves are all reported."""
        with open(os.path.join(self.room, "Makefile"), "w") as f:
            f.write("TARGETS := $(shell seq %d)\nall: $(TARGETS)\n$(TARGETS):\n\t@exit 3\n" % (MOST + 9))
        done = self.sluice_run("make", "-k", "-j2", cwd=self.room)
        self.assertEqual(2, done.returncode, done.stderr)
        topics = read_lake(self.lake)
        failed = [t for t in topics["sluice.task"] if t["phase"] == "END" and t["exit_code"] == 3]
        self.assertEqual(MOST + 9, len(failed))
        found = topics["sluice.finding"]
        self.assertEqual((MOST, {"FAILED"}), (len(found), {f["kind"] for f in found}))
        self.assertEqual(MOST, len({f["task_id"] for f in found}))
        counted = {(place, reason): n for place, reason, n in losses(topics) if reason != "cut"}
        self.assertEqual({("correlate", "too_many_findings"): 9}, counted)

    def test_an_oom_kill(self):
        tasks = self.memory()
        script = f"(echo $BASHPID > {tasks}; exec {sys.executable} -c '{EATS}'); code=$?; sleep 0.2; exit $code"
        done = self.sluice_run("bash", "-c", script)
        self.assertEqual(137, done.returncode, done.stderr)
        topics = read_lake(self.lake)
        killed, failed = self.one(topics, "OOM_KILLED"), self.one(topics, "FAILED")
        end = ends_by_id(topics)[killed["program_id"]]
        self.assertEqual((True, signal.SIGKILL), (end["oom_killed"], end["exit_signal"]))
        self.assertEqual(end["end_time"], killed["time"])
        self.assertEqual((LIMIT, end["usage"]["peak_rss_bytes"]),
                         (evidence(killed)["memory_limit_bytes"], evidence(killed)["peak_rss_bytes"]))
        self.check_chain(failed, topics)
        self.assertEqual(killed["program_id"], failed["program_id"])
        self.assertEqual(1, evidence(failed)["oom_killed"])


class HostTest(FindingsTest):
    def test_an_agent_that_is_killed_in_between(self):
        """The cause ends before the kill, its task after it: reported once, and of that program."""
        tasks = self.memory()
        agent = self.agent().start()
        folder = os.path.join(self.room, "work")
        os.mkdir(folder)
        with open(os.path.join(folder, "Makefile"), "w") as f:
            f.write(MAKEFILE)
        eats = subprocess.run(["bash", "-c", f"echo $BASHPID > {tasks}; exec {sys.executable} -c '{EATS}'"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertEqual(-signal.SIGKILL, eats.returncode)
        make = subprocess.Popen(["make", "SECONDS=4"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: make.poll() is None and make.kill())
        agent.wait(lambda: subprocess.run(["pgrep", "-g", str(os.getpgrp()), "-fx", "sleep 4"], stdout=subprocess.DEVNULL).returncode == 0,
                   what="the task after its cause")
        agent.settle()
        agent.kill9()
        agent.start()
        self.assertEqual(2, make.wait(60))
        agent.settle(tasks=True)
        self.assertEqual(0, agent.stop())
        topics = {topic: once(records) for topic, records in read_lake(agent.lake).items()}
        runs = {p["run_id"] for p in topics["sluice.program"]
                if p["pid"] == make.pid and p["run_id"] and p["argv"] == ["make", "SECONDS=4"]}
        topics["sluice.finding"] = [f for f in topics["sluice.finding"] if f["run_id"] in runs or (
            f["kind"] == "OOM_KILLED" and evidence(f).get("memory_limit_bytes") == LIMIT)]
        finding = self.one(topics, "FAILED")
        chain = self.check_chain(finding, topics)
        self.assertEqual((3, sys.executable), (chain[0]["exit_code"], chain[0]["argv"][0]))
        self.assertGreater(evidence(finding)["before_ns"], 3e9)
        killed = self.one(topics, "OOM_KILLED")
        self.assertTrue(ends_by_id(topics)[killed["program_id"]]["oom_killed"])


if __name__ == "__main__":
    harness.main()
