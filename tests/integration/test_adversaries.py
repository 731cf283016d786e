# SPDX-License-Identifier: Apache-2.0
"""Two users attack an agent, each by the same means and at the usual priority, beside a third user's pipeline: that
one's records are all there and right, the agent answers, and burdens the host no more than a share of a CPU."""
import json
import os
import shutil
import socket
import statistics
import subprocess
import threading
import time
import unittest

import harness
from agent import AgentTest
from systems import machine
from test_titles import PAD, WORKER

ATTACKERS = (64001, 64002)  # users that own nothing
VICTIM = 64003
SECONDS = 6
STEPS = 200  # programs of the pipeline
CPU_SHARE_MAX = 0.20
RSS_MAX_MIB = 64
ANSWER_MAX_S = 1.0


def as_user(uid):
    """Keyword arguments of Popen."""
    return {"user": uid, "group": uid, "extra_groups": [], "stdin": subprocess.DEVNULL,
            "env": {"PATH": "/usr/bin:/bin"}}


def cpu_seconds(pid):
    """Of a process and its children, which the agent's readers are: of those that live, and of those that it has reaped."""
    ticks = 0
    for process in (pid, *machine.children(pid)):
        try:
            with open(f"/proc/{process}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # in one moment of both
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def rss_mib(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024


class Asker(threading.Thread):
    """Asks for the status, as an administrator would, and keeps how long the slowest answer took."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.slowest, self.answers, self.failures, self.is_over = path, 0.0, 0, [], threading.Event()

    def ask(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(self.path)
            s.sendall(b'{"command":"status"}\n')
            answer = b""
            while not answer.endswith(b"\n"):
                piece = s.recv(65536)
                if not piece:
                    raise OSError("closed without an answer")
                answer += piece
        return json.loads(answer)

    def run(self):
        while not self.is_over.wait(0.2):
            began = time.monotonic()
            try:
                self.ask()
                self.answers += 1
            except (OSError, ValueError) as e:
                self.failures.append(str(e))
            self.slowest = max(self.slowest, time.monotonic() - began)

    def end(self):
        self.is_over.set()
        self.join(60)


class Adversaries(AgentTest):
    def setUp(self):
        super().setUp()
        # An administrator's answer is measured, not how long this test waits for a CPU.
        os.setpriority(os.PRIO_PROCESS, 0, -15)
        self.addCleanup(os.setpriority, os.PRIO_PROCESS, 0, 0)
        self.work = os.path.join(self.room, "pipeline")
        os.mkdir(self.work)
        steps = [f"step-{i}" for i in range(STEPS)]
        with open(os.path.join(self.work, "Makefile"), "w") as f:
            f.write("all: " + " ".join(steps) + "\n.PHONY: all " + " ".join(steps) + "\n")
            f.writelines(f"{step}:\n\t@/bin/true victim {step}\n" for step in steps)
        for uid in (*ATTACKERS, VICTIM):
            os.mkdir(os.path.join(self.room, str(uid)))
            os.chown(os.path.join(self.room, str(uid)), uid, uid)

    def started(self, kind, *args):
        """The attackers, which end by themselves."""
        started = [subprocess.Popen([harness.built("adversary"), kind, str(SECONDS), *map(str, args)],
                                    cwd=os.path.join(self.room, str(uid)), stdout=subprocess.PIPE, text=True,
                                    preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 0), **as_user(uid))
                   for uid in ATTACKERS]
        for p in started:
            self.addCleanup(p.kill)
        return started

    def run_pipeline(self):
        """How many seconds it took."""
        began = time.monotonic()
        subprocess.run(["make", "-s", "all"], cwd=self.work, check=True, timeout=120,
                       preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 0), **as_user(VICTIM))
        return time.monotonic() - began

    def attacked(self, kind, *args):
        """How long the pipeline took, at the median, how often it ran, and how many times the attackers did it."""
        attackers = self.started(kind, *args)
        end, took = time.monotonic() + SECONDS - 1, []
        while time.monotonic() + 1 < end:
            time.sleep(1)  # a pipeline a second at most: this user is below its shares
            took.append(self.run_pipeline())
        done = [p.communicate(timeout=SECONDS + 30)[0] for p in attackers]
        for p in attackers:
            self.assertEqual(0, p.returncode)
        return statistics.median(took), len(took), sum(int(text) for text in done)

    def check(self, kind, *args, keys=None):
        bare, _, _ = self.attacked(kind, *args)
        a = self.agent("agent", **(keys or {})).start()
        asker = Asker(a.control)
        asker.start()
        cpu, began = cpu_seconds(a.pid), time.monotonic()
        took, pipelines, times = self.attacked(kind, *args)
        share = (cpu_seconds(a.pid) - cpu) / (time.monotonic() - began)
        asker.end()
        lost = {(x["place"], x["reason"]): x["count"] for x in a.status()["lost"] if x["count"]}
        rss = rss_mib(a.pid)
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        print(f"{kind:10} {times:7} times  agent {100 * share:5.1f} % CPU {rss:5.1f} MiB  slowest answer {asker.slowest:6.3f} s "
              f"of {asker.answers}  pipeline {bare:5.2f} s, seen {took:5.2f} s  lost {lost}", flush=True)
        self.assert_pipelines_are_whole(a.lake, pipelines)
        self.assertEqual([], asker.failures)
        self.assertLess(asker.slowest, ANSWER_MAX_S)
        self.assertLess(rss, RSS_MAX_MIB)
        self.assertLess(share, CPU_SHARE_MAX)
        # Beside four processes and two CPUs the same takes up to twice as long by chance, some milliseconds in any case.
        self.assertLess(took, 2 * bare + 0.1)

    def assert_pipelines_are_whole(self, lake, n):
        topics = harness.read_lake(lake)
        own = [r for r in topics["sluice.program"] if r["uid"] == VICTIM]
        ends = [r for r in own if r["phase"] == "END"]
        runs = [r["run_id"] for r in ends if r["exe"].endswith("/make")]
        self.assertEqual(n, len(set(runs) - {None}), runs)
        for run_id in runs:
            steps = [(r["argv"] or ["", "", "?"])[2] for r in ends if r["run_id"] == run_id and r["exe"].endswith("/true")]
            self.assertEqual(sorted(f"step-{i}" for i in range(STEPS)), sorted(steps))
            self.assertEqual({VICTIM}, {r["uid"] for r in topics["sluice.run"] if r["run_id"] == run_id})
            self.assertEqual({VICTIM}, {r["uid"] for r in topics["sluice.program"] if r["run_id"] == run_id})
        self.assertEqual(n * (STEPS + 1), len(ends))
        self.assertEqual({0}, {r["exit_code"] for r in ends})

    def test_rules(self):
        self.check("rules")

    def test_ring(self):
        self.check("ring")

    def test_forks(self):
        self.check("forks")

    def test_storm(self):
        self.check("storm")

    def test_processes(self):
        self.check("processes", 1100, keys={"probes": {"max_processes": 1024}})

    def test_titles(self):
        """A worker of the third user is looked at in each second, too."""
        raylet, worker = os.path.join(self.work, "raylet"), os.path.join(self.work, "default_worker.py")
        shutil.copy(os.path.realpath("/bin/sh"), raylet)
        with open(worker, "w") as f:
            f.write(WORKER)
        tasks = [f"mine_{i}" for i in range(3)]
        steps = " ".join(f"ray::{task}=1.5" for task in tasks)
        a = self.agent("agent").start()
        attackers = self.started("titles", 1000)
        time.sleep(1)
        subprocess.run([raylet, "-c", f"/usr/bin/python3 {worker} no {steps} {PAD}=0; :",
                        "/tmp/ray/session_2026-01-02_03-04-05_000006_77"], check=True, timeout=120,
                       preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 0), **as_user(VICTIM))
        made = [int(p.communicate(timeout=SECONDS + 30)[0]) for p in attackers]
        lost = {(x["place"], x["reason"]) for x in a.status()["lost"] if x["count"]}
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual([1000, 1000], made)
        self.assertIn(("correlate", "too_many_titles"), lost)
        self.assertEqual(set(tasks), {r["task"] for r in harness.read_lake(a.lake)["sluice.task"] if r["engine"] == "ray"})

    def test_runs(self):
        make = os.path.join(self.room, "make")
        shutil.copy(os.path.realpath("/bin/true"), make)
        self.check("runs", make)

    def test_paths(self):
        self.check("paths")

    def test_connections(self):
        self.check("connect", os.path.join(self.room, "agent", "control.sock"))

    def test_metrics(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.check("ask", port, keys={"metrics": f"127.0.0.1:{port}"})


if __name__ == "__main__":
    unittest.main()
