# SPDX-License-Identifier: Apache-2.0
"""`sluice ctl settle`: once it has returned, all that happened before it was asked is there, and no caller need sleep."""
import os
import socket
import subprocess
import threading
import time

import harness
import kafka_check
from agent import AgentTest
from faults import WAIT, FaultTest
from load import once, own

PROGRAMS = 40
OLD = 6  # seconds: longer than the kernel side waits before an end is made up for
MARK = f"settle-{os.getpid()}"  # the same file may run twice at once


def programs(mark, n=PROGRAMS):
    """Programs that have ended, and that this process has waited for."""
    for i in range(n):
        subprocess.run([own("true"), MARK, mark, str(i)], check=True)


def phases(records, mark):
    """
    [{phase: how often}] of the programs of a mark, by their number. A child that waits a second for its exec has its START
    as what it was then: forked, with its parent's arguments.
    """
    found = {}
    late = {r["program_id"] for r in records if r["phase"] == "START" and r["forked"]}
    for r in records:
        if (r["argv"] or [])[1:3] == [MARK, mark]:
            of = found.setdefault(int(r["argv"][3]), {})
            of[r["phase"]] = of.get(r["phase"], 0) + 1
            if r["phase"] == "END" and r["program_id"] in late:
                of["START"] = of.get("START", 0) + 1
    return [found[i] for i in sorted(found)]


class Lake(AgentTest):
    """An agent that delivers to files. It writes START at exec, so that each program has two records to wait for."""

    def agent(self, name="agent", **keys):
        return super().agent(name, records={"start_after": 0}, **keys)

    def assert_there(self, agent, mark, n=PROGRAMS):
        """In the lake, whose files it continues to write."""
        records = once(harness.read_cat(agent.lake, "program", sluice=agent.sluice))
        self.assertEqual([{"START": 1, "END": 1}] * n, phases(records, mark))

    def settled_in_spool(self, agent, mark):
        """Nothing but the spool is left, neither the agent's memory nor the kernel's ring: it has all."""
        agent.settle()
        agent.kill9()
        self.assertEqual(0, agent.uninstall().returncode)
        agent.start()
        agent.settle(delivered=True)
        self.assert_there(agent, mark)

    def test_all_ends_are_in_the_lake(self):
        a = self.agent().start()
        for n in range(5):
            programs(f"lake-{n}")
            a.settle(delivered=True)
            self.assert_there(a, f"lake-{n}")

    def test_all_ends_are_in_the_spool(self):
        a = self.agent().start()
        programs("spool")
        self.settled_in_spool(a, "spool")

    def test_without_the_kernels_last_word(self):
        a = self.agent()
        a.sluice = harness.built("sluice_last_word_never")
        a.start()
        programs("never")
        a.settle(delivered=True)
        self.assert_there(a, "never")
        programs("never-spool")
        self.settled_in_spool(a, "never-spool")
        self.assertGreaterEqual(self.ends(a)[0], PROGRAMS)

    def ends(self, a):
        """How many ends the agent synthesized, and how many the kernel reported; of all programs of this host."""
        self.assertEqual(0, a.stop(), a.log_text())
        topics = harness.read_lake(a.lake)
        return harness.events_counted(topics, "end_synthesized"), harness.events_counted(topics, "exit")

    def test_nothing_is_made_up_in_haste(self):
        """Of a kernel that reports every end, settle invents none, however often it asks."""
        a = self.agent().start()
        for n in range(20):
            programs(f"haste-{n}", 5)
            a.settle()
        made_up, told = self.ends(a)
        self.assertGreaterEqual(told, 20 * 5)
        self.assertLessEqual(made_up, 0.05 * told)  # as truth allows for: of some the kernel may tell seconds late

    def test_zombies_are_not_made_up_for_in_haste(self):
        """Between the reaping of one, however old, and the kernel's last word on it lie milliseconds."""
        a = self.agent().start()
        zombies = [subprocess.Popen([own("true"), MARK, "old", str(i)]) for i in range(PROGRAMS)]
        time.sleep(OLD)
        reaped = threading.Event()

        def reap():
            for p in zombies:
                p.wait()
                time.sleep(0.025)
            reaped.set()
        thread = threading.Thread(target=reap)
        thread.start()
        self.addCleanup(thread.join)
        while not reaped.is_set():
            a.settle()
        made_up, told = self.ends(a)
        self.assertGreaterEqual(told, PROGRAMS)
        self.assertLessEqual(made_up, 0.05 * told)

    def test_a_zombie_has_ended_and_a_program_that_runs_has_not(self):
        a = self.agent().start()
        zombie = subprocess.Popen(["/bin/true", MARK, "zombie", "0"])
        sleeper = subprocess.Popen(["/bin/sleep", "60.625"])
        self.addCleanup(sleeper.kill)
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        a.settle(delivered=True)
        self.assert_there(a, "zombie", 1)
        zombie.wait()
        a.settle(delivered=True)
        self.assert_there(a, "zombie", 1)

        def told():
            return [r["phase"] for r in harness.read_cat(a.lake, "program")
                    if r["pid"] == sleeper.pid and r["argv"] == sleeper.args]
        self.assertEqual(["START"], told())
        sleeper.kill()
        sleeper.wait()
        a.settle(delivered=True)
        self.assertEqual(["START", "END"], told())

    def test_while_others_end_at_every_moment(self):
        """What ended before a call is there after it; what ends meanwhile keeps no caller waiting."""
        a = self.agent().start()
        stop, done = threading.Event(), []

        def go_on():
            while not stop.is_set():
                subprocess.run(["/bin/true", MARK, "moment", str(len(done))], check=True)
                done.append(None)
        thread = threading.Thread(target=go_on)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stop.set)
        for n in range(10):
            a.wait(lambda: len(done) >= 10 * n + 5, 60, "programs")
            before = len(done)
            a.settle(delivered=True)
            self.assertEqual([{"START": 1, "END": 1}] * before,
                             phases(harness.read_cat(a.lake, "program"), "moment")[:before])

    def test_tasks_and_runs_are_reported_as_ended(self):
        a = self.agent().start()
        p = subprocess.Popen(["/bin/sh", "-c", "read _; /bin/true; false"], stdin=subprocess.PIPE)
        a.ctl("tag", "--pid", str(p.pid), "--run", "settle-run", "--task", "one", check=True)
        p.communicate(b"\n")
        a.settle(delivered=True, tasks=True)
        for topic in ("run", "task"):
            mine = [r["phase"] for r in harness.read_cat(a.lake, topic) if r["run_id"] == "settle-run"]
            self.assertEqual(("START", "END"), (mine[0], mine[-1]), topic)

    # --- what it says ---

    def test_wrong_words_are_refused(self):
        a = self.agent().start()
        for words, says in ((["x"], "no other word"), (["--bogus=1"], "no other option"),
                            (["--timeout", "20m"], "at most 600"), (["delivered=perhaps"], "true or false")):
            done = a.ctl("settle", *words)
            self.assertEqual((1, ""), (done.returncode, done.stdout), words)
            self.assertIn(says, done.stderr)
        for time_ in ("x", "0", "-1s", "3601", "1.5"):
            self.assertEqual(2, a.ctl("settle", "--timeout", time_).returncode, time_)

    def test_the_client_that_leaves(self):
        """More of them than may wait at once, each gone before its answer: the next is served."""
        a = self.agent()
        a.sluice = harness.built("sluice_last_word_never")  # whose answers take a while
        a.start()
        for _ in range(10):
            programs("leaves", 1)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(a.control)
                s.sendall(b'{"command":"settle","args":{"timeout":600}}\n')
        a.settle()

    def test_when_too_many_wait(self):
        a = self.agent()
        a.sluice = harness.built("sluice_last_word_never")
        a.start()
        programs("many", 1)
        waiting = []
        for _ in range(9):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.settimeout(60)
            s.connect(a.control)
            s.sendall(b'{"command":"settle"}\n')
            waiting.append(s.makefile())
        answers = [f.readline() for f in waiting]
        self.assertEqual(1, sum('"ok":false' in x and "clients wait" in x for x in answers), answers)
        self.assertEqual(8, sum('"ok":true' in x for x in answers), answers)


class Broker(FaultTest):
    def settle(self, agent, *words):
        return agent.ctl("settle", "--delivered", *words, timeout=2 * WAIT)

    def assert_there(self, mark):
        result = self.read()
        self.assertEqual([{"START": 1, "END": 1}] * PROGRAMS, phases(self.records(result), mark), result.summary())

    def records(self, result):
        return [r for topic, r in result.records if topic == "sluice.program"]

    def read(self, **options):
        return kafka_check.check(self.stack.brokers, self.stack.registry_url, prefix=self.prefix,
                                 keep=lambda topic, r: (r.get("argv") or ["", ""])[1:2] == [MARK], start_after=0, **options)

    def test_delivered_while_the_broker_is_away_and_back(self):
        a = self.kafka_agent().start()
        programs("there")
        a.settle(delivered=True, timeout=WAIT)
        self.assert_there("there")
        self.stack.kill_broker()
        programs("away")
        a.settle()  # the spool needs no broker
        done = self.settle(a, "--timeout", "2s")
        self.assertEqual((1, ""), (done.returncode, done.stdout), done.stderr)
        self.assertRegex(done.stderr, r"not settled within 2 s: .*[0-9]+ records? of sluice\.program.* wait for the broker")
        waiting = subprocess.Popen([a.sluice, "ctl", "--socket", a.control, "settle", "--delivered", "--timeout", "5m"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        with self.assertRaises(subprocess.TimeoutExpired):
            waiting.wait(1)
        self.stack.start_broker()
        self.assertEqual("", waiting.communicate(timeout=2 * WAIT)[1])
        self.assertEqual(0, waiting.returncode)
        self.assert_there("away")
        self.assertEqual(0, a.stop(2 * WAIT), a.log_text())


if __name__ == "__main__":
    harness.main()
