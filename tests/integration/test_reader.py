# SPDX-License-Identifier: Apache-2.0
"""Processes that read for the agent: what they may do, and what it does when one of them hangs.

Class Blocked has another user's process whose arguments cannot be read (blocked_read.c: READ ITS SAFETY NOTE), at which ps and
pgrep -f of all users hang for seconds. It runs where no other user is: in the guests of dev/kernels.
"""
import contextlib
import os
import select
import signal
import subprocess
import time

import harness
from agent import AgentTest

ATTACKER, VICTIM = 64001, 64002  # users that own nothing
CAP_DAC_READ_SEARCH = 1 << 2
NONE = "%016x" % 0
CAPABLE_OF_FILES = "%016x" % CAP_DAC_READ_SEARCH
TITLED = ["-c", "import time; time.sleep(600)", "multiprocessing.spawn"]  # the shipped rules have its title read each second


def proc_status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def children(pid):
    """{pid: comm}"""
    found = {}
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        for child in f.read().split():
            with contextlib.suppress(OSError), open(f"/proc/{child}/comm") as comm:
                found[int(child)] = comm.read().strip()
    return found


def is_there(pid):
    try:
        return proc_status(pid)["State"][0] not in "ZX"
    except OSError:
        return False


class ReaderTest(AgentTest):
    def titled(self, uid=0):
        p = subprocess.Popen(["/usr/bin/python3", *TITLED], stdin=subprocess.DEVNULL, user=uid, group=uid, extra_groups=[])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def readers(self, a, capabilities=NONE):
        """The pids of those that read titles; with CAPABLE_OF_FILES of those that read files."""
        return [pid for pid in a.readers() if proc_status(pid)["CapEff"] == capabilities]

    def lost(self, a):
        return {x["reason"]: x["count"] for x in a.status()["lost"] if x["place"] == "reader"}

    def assert_answers_within(self, seconds, a):
        begin = time.monotonic()
        a.status()
        self.assertLess(time.monotonic() - begin, seconds * harness.PATIENCE)


class Readers(ReaderTest):
    def assert_may_do_nothing(self, pid, capabilities=NONE):
        status = proc_status(pid)
        self.assertEqual([capabilities, capabilities, NONE, NONE, NONE],
                         [status[x] for x in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb")], status["Name"])
        self.assertEqual("1", status["NoNewPrivs"])
        self.assertNotIn("0", status["Uid"].split())
        with open(f"/proc/{pid}/limits") as f:
            self.assertIn(["Max", "core", "file", "size", "0", "0", "bytes"], [line.split() for line in f])
        names = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd"))
        self.assertEqual(["/dev/null"] * 3 + ["socket"], names)

    def test_they_may_do_nothing_else(self):
        self.titled()
        a = self.agent().start()
        reader, = a.wait(lambda: self.readers(a), 30, "a reader of titles")
        nursery, = [pid for pid, comm in children(a.pid).items() if comm == "sluice-nursery"]
        self.assert_may_do_nothing(nursery)
        self.assert_may_do_nothing(reader)
        self.assertEqual("2", proc_status(reader)["Seccomp"])
        self.assertEqual({}, self.lost(a))
        self.assertEqual(0, a.stop())
        self.assertEqual([False, False], [is_there(nursery), is_there(reader)])

    def test_one_of_files_may_read_them_and_the_agent_may_not(self):
        a = self.agent(engines={"headers": True}).start()
        reader, = a.wait(lambda: self.readers(a, CAPABLE_OF_FILES), 30, "a reader of files")
        self.assert_may_do_nothing(reader, CAPABLE_OF_FILES)
        self.assertEqual("2", proc_status(reader)["Seccomp"])
        self.assertEqual(0, int(proc_status(a.pid)["CapPrm"], 16) & CAP_DAC_READ_SEARCH)

    def test_none_is_recorded(self):
        """They are the agent's own, as it is itself."""
        self.titled()
        a = self.agent().start()
        first, = a.wait(lambda: self.readers(a), 30, "a reader of titles")
        own = set(children(a.pid))
        os.kill(first, signal.SIGKILL)
        a.wait(lambda: self.readers(a) not in ([], [first]), 30, "another reader")
        own |= set(children(a.pid))
        time.sleep(2)  # what lives for a second has a START
        a.settle()
        self.assertEqual(0, a.stop())
        programs = harness.read_lake(a.lake)["sluice.program"]
        self.assertEqual([], [(r["pid"], r["comm"]) for r in programs
                              if r["comm"] in ("sluice-reader", "sluice-nursery") and r["pid"] in own])  # not another agent's

    def test_one_that_does_not_answer_is_replaced_and_the_agent_continues(self):
        self.titled(ATTACKER)
        a = self.agent().start()
        first, = a.wait(lambda: self.readers(a), 30, "a reader of titles")
        os.kill(first, signal.SIGSTOP)
        a.wait(lambda: self.lost(a).get("read_hung"), 30, "a title that was not read")
        self.assert_answers_within(1, a)
        a.wait(lambda: not is_there(first), 30, "the end of the reader")
        # Of the same user nothing is read for a second, then it is.
        a.wait(lambda: self.lost(a).get("read_skipped"), 30, "a title that was skipped")
        a.wait(lambda: self.readers(a), 30, "another reader")
        self.assertEqual(1, self.lost(a)["read_hung"])

    def test_they_end_with_the_agent(self):
        self.titled()
        a = self.agent().start()
        a.wait(lambda: self.readers(a), 30, "a reader of titles")
        all_of_them = list(children(a.pid))
        a.kill9()
        end = time.monotonic() + 10 * harness.PATIENCE
        while any(map(is_there, all_of_them)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual([], list(filter(is_there, all_of_them)))

    def test_without_a_nursery_the_agent_continues(self):
        self.titled()
        a = self.agent().start()
        a.wait(lambda: self.readers(a), 30, "a reader of titles")
        for pid in children(a.pid):
            os.kill(pid, signal.SIGKILL)
        a.wait(lambda: self.lost(a).get("read_failed"), 30, "a title that was not read")
        self.assert_answers_within(1, a)
        self.assertEqual(0, a.stop())


class Blocked(ReaderTest):
    def setUp(self):
        if os.environ.get("OWN_HOST") != "1":  # as tests/kernels/suite.sh sets it
            self.skipTest("ps and pgrep -f of every user hang meanwhile: for a guest")
        super().setUp()

    @contextlib.contextmanager
    def blocked(self, meanwhile=lambda: None):
        """
        A process of ATTACKER whose arguments block, from 4 to 15 s after the begin; a function that says whether they still do.
        meanwhile: is called at the begin.
        """
        with subprocess.Popen([harness.built("blocked_read"), str(ATTACKER)], stdout=subprocess.PIPE) as guard:
            try:
                meanwhile()
                self.assertTrue(select.select([guard.stdout], [], [], 14)[0], "it did not come to a block")
                self.assertEqual(b"blocked", guard.stdout.readline().split()[0])
                yield lambda: guard.poll() is None
            finally:
                guard.terminate()  # it aborts the connection
                guard.wait(20)

    def while_blocked(self, use):
        """What use(agent) returns, all of which has to come before the end of the block: where other load makes it slow, again."""
        for n in range(3):
            a = self.agent(f"blocked-{n}").start()
            with self.blocked() as holds:
                result = use(a)
                if holds():
                    return result
            a.kill9()
        self.fail("each block ended before the test did")

    def programs_of_another_user(self, n):
        argv = ["/bin/true", "of-the-victim"]
        for _ in range(n):
            subprocess.run(argv, check=True, user=VICTIM, group=VICTIM, extra_groups=[])
        return n

    def assert_whole(self, a, n):
        topics = harness.read_lake(a.lake)
        ends = [r for r in self.ends(topics) if r["uid"] == VICTIM and r["argv"] == ["/bin/true", "of-the-victim"]]
        self.assertEqual(n, len(ends))
        self.assert_nothing_lost(topics, [x for x in harness.losses(topics) if x[0] == "reader"])

    def test_the_agent_continues_and_counts_it(self):
        def use(a):
            a.wait(lambda: self.lost(a).get("read_hung"), 5, "a title that was not read")
            self.assert_answers_within(1, a)
            return a, self.programs_of_another_user(3)  # an emulated guest has little time until the end of the block
        self.titled(VICTIM)
        a, n = self.while_blocked(use)
        a.settle()
        self.assertEqual(0, a.stop())
        self.assert_whole(a, n)

    def test_the_agent_starts(self):
        a, begin = self.agent("before"), time.monotonic()
        a.start()
        usual = time.monotonic() - begin  # most of it is the kernel's verifier, before processes are read
        self.assertEqual(0, a.stop())
        for n in range(3):  # where other load makes a start take another time than usual, it reads before the block, or after
            a = self.agent(f"start-{n}")

            def start():
                time.sleep(max(0, 7 - usual))
                a.start(wait=False)
            with self.blocked(start):
                a.wait_log("agent.started", 14)
            if "read_hung" in self.lost(a):
                break
            self.assertEqual(0, a.stop())
        # A second of patience each, after pauses of 1, 2 and 4 s: those that fit into a block.
        self.assertIn(self.lost(a).get("read_hung"), (1, 2, 3))
        n = self.programs_of_another_user(5)
        a.settle()
        self.assertEqual(0, a.stop())
        self.assert_whole(a, n)

    def test_the_agent_can_be_killed(self):
        def use(a):
            a.wait(lambda: self.lost(a).get("read_hung"), 5, "a title that was not read")
            begin = time.monotonic()
            a.kill9()
            self.assertLess(time.monotonic() - begin, 1 * harness.PATIENCE)
        self.while_blocked(use)


if __name__ == "__main__":
    harness.main()
