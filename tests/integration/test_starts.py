# SPDX-License-Identifier: Apache-2.0
"""Which programs have a START: those that live for records.start_after, a second by default."""
import subprocess
import time

import harness
from agent import AgentTest
from load import once, own


class Starts(AgentTest):
    def sleeps(self, seconds):
        """A program that sleeps for so long; no other of its test does."""
        p = subprocess.Popen([own("sleep"), seconds])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def records(self, a, seconds):
        return [r for r in once(harness.read_cat(a.lake, "program")) if (r["argv"] or [""])[-1] == seconds]

    def phases(self, a, seconds):
        return [r["phase"] for r in self.records(a, seconds)]

    def end_alone(self, a, seconds):
        """The END of a program that ended within a second, which is its one record."""
        *starts, end = self.records(a, seconds)
        lived_us = end["end_time"] - end["program_start_time"]
        self.assertEqual("END", end["phase"])
        if lived_us < 1e6:  # an overloaded host may need longer for it
            self.assertEqual([], starts)
        return end

    def test_those_that_live_for_a_second(self):
        a = self.agent(interval="60s")  # a Usage record would need a START
        a.follow_only(own("sleep"))
        a.start()
        short, long = self.sleeps("0.01"), self.sleeps("3")
        self.assertEqual((0, 0), (short.wait(), long.wait()))
        a.settle(delivered=True)
        self.assertEqual(["START", "END"], self.phases(a, "3"))
        start, end = self.records(a, "3")
        self.assertGreaterEqual(start["time"] - start["program_start_time"], 1e6)
        self.assertLess(start["time"], end["time"])
        alone = self.end_alone(a, "0.01")
        for name in ("exe", "comm", "cwd", "tool", "uid", "gid", "cgroup", "pid_ns", "mnt_ns", "net_ns", "forked"):
            self.assertEqual(start[name], alone[name], name)

    def test_settle_and_the_stop_write_those_of_the_young(self):
        a = self.agent(interval="60s", records={"start_after": "1h"})
        a.follow_only(own("sleep"))
        a.start()
        settled = self.sleeps("61")
        a.settle(delivered=True)
        self.assertEqual(["START"], self.phases(a, "61"))
        stopped = self.sleeps("62")
        a.wait(lambda: a.ctl("explain", str(stopped.pid)).returncode == 0, what="the program")
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual(["START"], self.phases(a, "62"))
        a.start()
        for p in (settled, stopped):
            p.kill()
            p.wait()
        a.settle(delivered=True)
        for mark in ("61", "62"):
            self.assertEqual(["START", "END"], self.phases(a, mark))

    def test_the_next_agent_writes_it_once(self):
        a = self.agent(interval="60s")
        a.follow_only(own("sleep"))
        a.start()
        brief, p = self.sleeps("0.4"), self.sleeps("63")
        time.sleep(0.3)
        a.kill9()
        brief.wait()
        a.start()
        a.wait(lambda: self.phases(a, "63") == ["START"], what="its START")
        a.kill9()
        a.start()
        p.kill()
        p.wait()
        a.settle(delivered=True)
        self.end_alone(a, "0.4")
        self.assertEqual(["START", "END"], self.phases(a, "63"))

    def test_a_reload_changes_it(self):
        a = self.agent(interval="60s")
        a.follow_only(own("sleep"))
        a.start()
        a.configure(records={"start_after": 0})
        self.assertNotIn("restart", a.ctl("reload", check=True).stdout)
        self.sleeps("0.01").wait()
        a.settle(delivered=True)
        self.assertEqual(["START", "END"], self.phases(a, "0.01"))


if __name__ == "__main__":
    harness.main()
