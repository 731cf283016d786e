# SPDX-License-Identifier: Apache-2.0
"""The agent proves that it sees: after each time in which it did not it sees again, and says since when it had not."""
import datetime
import glob
import http.client
import os
import pwd
import re
import signal
import socket
import subprocess
import time

import harness
from agent import AgentTest
from harness import read_cat, read_lake
from load import once, own, own_folder

USER = 64020  # owns nothing


def metrics(a):
    """The agent's metrics as text."""
    c = http.client.HTTPConnection("localhost", timeout=20)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(a.metrics)
    c.request("GET", "/metrics")
    try:
        return c.getresponse().read().decode()
    finally:
        c.close()


def write_text(path, text):
    with open(path, "w") as f:
        f.write(text)


def switch(a, what):
    """Changes the variables of the agent's programs, or returns one, as probes_switch.c describes."""
    variables, = glob.glob(os.path.join(a.pins, "*", "maps", "shared"))
    return subprocess.run([harness.built("probes_switch"), variables, what], check=True, stdout=subprocess.PIPE, text=True).stdout


def limit_files(a, number):
    """Sets how many files the agent may have open from now on, as its own account, which may do so; the limit before."""
    with open(f"/proc/{a.pid}/limits") as f:
        before, = re.findall(r"(?m)^Max open files +(\d+)", f.read())
    user = pwd.getpwnam(a.config["user"])
    subprocess.run(["prlimit", f"--pid={a.pid}", f"--nofile={number}:"], user=user.pw_uid, group=user.pw_gid, extra_groups=[], check=True)
    return int(before)


class Freezer:
    """A group whose processes can be frozen, in a hierarchy of either version."""

    def __init__(self):
        v1 = "/sys/fs/cgroup/freezer"
        self.is_v1 = os.path.isdir(v1)
        self.path = os.path.join(v1 if self.is_v1 else "/sys/fs/cgroup", f"sluice-sight-{os.getpid()}")
        os.mkdir(self.path)

    def freeze(self, on):
        if self.is_v1:
            write_text(os.path.join(self.path, "freezer.state"), "FROZEN" if on else "THAWED")
        else:
            write_text(os.path.join(self.path, "cgroup.freeze"), "1" if on else "0")

    def take(self, pid):
        write_text(os.path.join(self.path, "cgroup.procs"), str(pid))

    def remove(self):
        """Once its last process is reaped."""
        os.rmdir(self.path)


class Throttle:
    """A group whose processes run for a limited time of each second, in a hierarchy of either version."""

    def __init__(self):
        v1 = "/sys/fs/cgroup/cpu"
        self.is_v1 = os.path.isdir(v1)
        self.path = os.path.join(v1 if self.is_v1 else "/sys/fs/cgroup", f"sluice-sight-{os.getpid()}")
        if not self.is_v1:
            write_text("/sys/fs/cgroup/cgroup.subtree_control", "+cpu")
        os.mkdir(self.path)
        if self.is_v1:
            write_text(os.path.join(self.path, "cpu.cfs_period_us"), "1000000")

    def limit(self, ms):
        """Milliseconds of each second; None: no limit."""
        if self.is_v1:
            write_text(os.path.join(self.path, "cpu.cfs_quota_us"), str(ms * 1000 if ms else -1))
        else:
            write_text(os.path.join(self.path, "cpu.max"), f"{ms * 1000 if ms else 'max'} 1000000")

    def take(self, pid):
        write_text(os.path.join(self.path, "cgroup.procs"), str(pid))

    def remove(self):
        """Once its last process is reaped."""
        os.rmdir(self.path)


class Sight(AgentTest):
    def programs(self, a, mark):
        """The records of programs whose last argument is the mark, each once."""
        return [r for r in once(read_cat(a.lake, "program")) if (r["argv"] or [""])[-1] == mark]

    def phases(self, a, mark):
        return [r["phase"] for r in self.programs(a, mark)]

    def gaps(self, a):
        return [r for r in once(read_cat(a.lake, "agent")) if r["event"] == "GAP"]

    def run_marked(self, mark):
        subprocess.run([own("true"), mark], check=True)

    def start_briefly_watched(self):
        """An agent whose probes stop when it has not run for 10 s, the shortest time that can be configured."""
        a = self.agent(probes={"watchdog": "10s"})
        a.follow_only(own_folder())
        return a.start()

    def assert_sees_again(self, a, what):
        """After a stall: the programs, the status, and one record of the gap."""
        a.wait(lambda: a.status()["gaps"]["count"] == 1, what="the gap")
        self.run_marked(what)
        a.settle(delivered=True)
        self.assertIn("END", self.phases(a, what))
        s = a.status()
        self.assertTrue(s["seeing"] and s["ready"], s["not_ready_reason"])
        self.assertTrue(any("1 gap" in p["text"] for p in s["problems"]), s["problems"])
        gap, = self.gaps(a)
        self.assertIn("watchdog", gap["message"])
        self.assertAlmostEqual(s["gaps"]["ns"], gap["interval_ns"], delta=1e9)
        return gap

    def test_a_stall_longer_than_the_watchdog(self):
        """Who lived before it is accounted whole; who execs, begins or ends in it is found, or counted as not seen."""
        a = self.start_briefly_watched()
        lives = subprocess.Popen([own("sh"), "-c", "read x; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read x", "lives"],
                                 stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        execs = subprocess.Popen([own("sh"), "-c", 'read x; exec "$0" 3600.5', own("sleep")], stdin=subprocess.PIPE)
        ends = subprocess.Popen([own("sleep"), "3600.25"])
        waits, _ = pipe = os.pipe()
        forks = subprocess.Popen([own("sh"), "-c", f"(read x <&{waits}) & echo $!; read x"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, pass_fds=[waits], user=USER, group=USER, extra_groups=[])
        for fd in pipe:
            self.addCleanup(os.close, fd)
        for p in (lives, execs, ends, forks):
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
        forked = int(forks.stdout.readline())
        a.settle(delivered=True)
        a.signal(signal.SIGSTOP)
        time.sleep(11)
        self.run_marked("watchdog")  # its fork is what the programs look at the time for
        begun_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        ends.kill()
        ends.wait()
        os.kill(forked, signal.SIGKILL)  # it remains a zombie
        execs.stdin.write(b"\n")
        execs.stdin.flush()
        begins = subprocess.Popen([own("sleep"), "3600.75"])
        self.addCleanup(begins.wait)
        self.addCleanup(begins.kill)
        lives.stdin.write(b"\n")
        lives.stdin.flush()
        time.sleep(2)
        a.signal(signal.SIGCONT)
        stalled_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - begun_ns
        gap = self.assert_sees_again(a, "after a stall")
        self.assertGreater(gap["interval_ns"], stalled_ns - 1e6)
        self.assertLess(gap["interval_ns"], stalled_ns + 5e9)
        self.assertEqual([], self.phases(a, "watchdog"))
        for p in (execs, begins, forks):
            p.kill()
            p.wait()
        lives.stdin.write(b"\n")
        lives.stdin.close()
        _, _, used = os.wait4(lives.pid, 0)
        lives.returncode = 0
        a.settle(delivered=True)
        # 3600.25, which no pass sees any more, and the sh that exec'd.
        a.wait(lambda: {"place": "correlate", "reason": "end_unseen", "count": 2} in a.status()["lost"], what="the lost ends")
        self.assertEqual(0, a.stop(), a.log_text())
        # Its END is as exact as that of any other: its memory, its counters and its start are of its whole life.
        start, end = self.programs(a, "lives")
        self.assertEqual(("START", "END"), (start["phase"], end["phase"]))
        self.assertIsNone(end["observed_time"])
        self.assertEqual(start["program_id"], end["program_id"])
        self.assertAlmostEqual(used.ru_utime + used.ru_stime, (end["usage"]["cpu_user_ns"] + end["usage"]["cpu_system_ns"]) / 1e9,
                               delta=0.05 if harness.IS_EMULATED else 0.0002)
        for mark in ("3600.5", "3600.75"):
            start, end = self.programs(a, mark)
            self.assertEqual(("START", "END"), (start["phase"], end["phase"]), mark)
            self.assertIsNotNone(end["observed_time"], mark)
            self.assertEqual((own("sleep"), os.getcwd()), (end["exe"], end["cwd"]), mark)  # which an agent without privileges may not read
        self.assertEqual(["START"], self.phases(a, "3600.25"))
        end, = [r for r in read_lake(a.lake)["sluice.program"] if r["pid"] == forked and r["phase"] == "END"]
        self.assertEqual((True, USER), (end["forked"], end["uid"]))

    def test_blind_probes_are_reported_within_ten_seconds(self):
        """By status, readiness and metric; the end of it has a GAP record."""
        a = self.agent().start()
        a.settle()
        self.assertTrue(a.status()["seeing"])
        switch(a, "blind")
        blinded = time.time()
        self.addCleanup(switch, a, "seeing")
        a.wait(lambda: not a.status()["seeing"], what="blindness")
        noticed = datetime.datetime.fromisoformat(a.wait_log("probes.blind")["time"]).timestamp()
        self.assertLess(noticed - blinded, 10 * harness.PATIENCE)
        s = a.status()
        self.assertFalse(s["ready"])
        self.assertIn("the probes see nothing", s["not_ready_reason"])
        self.assertIn("not seeing", a.ctl("status").stdout.splitlines()[0])
        page = metrics(a)
        self.assertIn("\nsluice_seeing 0\n", page)
        self.assertIn("\nsluice_ready 0\n", page)
        switch(a, "seeing")
        a.wait(lambda: a.status()["seeing"], what="sight")
        s = a.status()
        self.assertTrue(s["ready"], s["not_ready_reason"])
        self.assertEqual(0, a.stop(), a.log_text())
        gap, = self.gaps(a)
        self.assertGreater(gap["interval_ns"], 5e9)

    def test_probes_that_cannot_be_taken_back_are_reported_and_tried_again(self):
        a = self.agent()
        a.follow_only(own_folder())
        a.start()
        self.run_marked("before")
        a.settle(delivered=True)
        files = limit_files(a, 3)  # it cannot open what it reads the processes from
        began = time.monotonic()
        switch(a, "lost")
        blind = a.wait_log("probes.blind")
        self.assertRegex(blind["message"], "^the watchdog .*: Too many open files; this is tried again each second$")
        time.sleep(2.5)  # in which it tries, and fails, again
        self.run_marked("unseen")
        self.assertEqual([], [x for x in a.log_lines() if x["event"] == "probes.gap"])
        lasted_ns = (time.monotonic() - began) * 1e9
        limit_files(a, files)
        gap = self.assert_sees_again(a, "after it")
        self.assertGreater(gap["interval_ns"], lasted_ns - 1e9)  # it was lost within that second
        self.assertEqual(1, sum(x["event"] == "probes.blind" for x in a.log_lines()))
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertIn("END", self.phases(a, "before"))
        self.assertEqual([], self.phases(a, "unseen"))

    def test_an_agent_whose_probes_another_took_over_ends(self):
        """It delivers what it has, and leaves the host to the other."""
        a = self.agent()
        a.follow_only(own_folder())
        a.start()
        self.run_marked("before")
        a.settle()
        switch(a, "taken")
        self.assertEqual(125, a.process.wait(60 * harness.PATIENCE))
        lines = {x["event"]: x for x in a.log_lines()}
        self.assertEqual(("error", "another agent has taken the probes over"), (lines["probes.blind"]["level"], lines["probes.blind"]["message"]))
        self.assertEqual("the probes were taken over", lines["agent.stopping"]["signal"])
        self.assertTrue(lines["agent.stopped"]["drained"])
        self.assertIn("END", self.phases(a, "before"))
        self.assertEqual([], self.gaps(a))  # it knows nothing of what the other sees

    def test_canaries_have_no_record(self):
        a = self.agent().start()
        time.sleep(8)
        a.settle()
        seen = a.status()
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertTrue(seen["seeing"])
        self.assertEqual([], [r for r in read_lake(a.lake)["sluice.program"] if r["ppid"] == a.process.pid])
        self.assertEqual([], [x for x in seen["lost"] if "fork" in x["place"]])

    def test_a_frozen_agent(self):
        group = Freezer()
        self.addCleanup(group.remove)
        a = self.start_briefly_watched()
        self.addCleanup(a.remove)  # before the group
        self.addCleanup(group.freeze, False)
        group.take(a.pid)
        group.freeze(True)
        time.sleep(11)
        self.run_marked("watchdog")
        group.freeze(False)
        self.assert_sees_again(a, "after the freezer")
        self.assertEqual(0, a.stop(), a.log_text())


    def test_an_agent_that_hardly_runs(self):
        """With a thousandth of a CPU it does not keep up for longer than the watchdog waits; it sees again when it has more."""
        group = Throttle()
        self.addCleanup(group.remove)
        a = self.start_briefly_watched()
        self.addCleanup(a.remove)  # before the group
        self.addCleanup(group.limit, None)
        group.take(a.pid)
        group.limit(1)
        deadline = time.monotonic() + 60 * harness.PATIENCE
        while switch(a, "lease") != "0\n":
            self.assertLess(time.monotonic(), deadline, "the agent keeps up")
            subprocess.run([own("sh"), "-c", "i=0; while [ $i -lt 20 ]; do \"$0\" storm; i=$((i+1)); done", own("true")], check=True)
        group.limit(None)
        a.wait(lambda: a.status()["gaps"]["count"] > 0 and a.status()["seeing"], what="sight")
        self.run_marked("after it")
        a.settle(delivered=True)
        self.assertIn("END", self.phases(a, "after it"))
        gaps = a.status()["gaps"]
        recorded = [r["interval_ns"] for r in self.gaps(a)]
        self.assertEqual((gaps["count"], gaps["ns"]), (len(recorded), sum(recorded)))
        self.assertEqual(0, a.stop(), a.log_text())

    def test_events_that_come_faster_than_they_are_read(self):
        """The ring is never empty; requests are served nevertheless, and so is the timer that keeps the probes on."""
        group = Throttle()
        self.addCleanup(group.remove)
        a = self.agent(probes={"watchdog": "10m", "ring": "2MiB"})
        a.follow_only(own_folder())
        a.start()
        self.addCleanup(a.remove)  # before the group
        self.addCleanup(group.limit, None)
        group.take(a.pid)
        group.limit(8)
        for _ in range(2):
            p = subprocess.Popen([own("sh"), "-c", "while :; do (:); done"])
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
        time.sleep(5)  # in which the ring fills
        self.assertEqual(0, a.ctl("status", timeout=150).returncode)


class Lock(AgentTest):
    def test_a_second_agent_is_refused_and_the_first_goes_on(self):
        a = self.agent()
        a.follow_only(own_folder())
        a.start()
        b = self.agent("second")
        b.pins = a.pins
        b.start(wait=False)
        self.assertEqual(125, b.process.wait(60))
        error = b.log_lines()[-1]
        self.assertEqual("probes.open", error["event"])
        self.assertRegex(error["message"], r"another agent \(pid %d\) uses the probes of %s; .*--pins" % (a.pid, re.escape(a.pins)))
        removed = a.uninstall()
        self.assertEqual(125, removed.returncode)
        self.assertIn("an agent that runs uses them", removed.stderr)
        subprocess.run([own("true"), "still seen"], check=True)
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        mine = [r for r in read_lake(a.lake)["sluice.program"] if (r["argv"] or [""])[-1] == "still seen" and r["phase"] == "END"]
        self.assertEqual(1, len(mine))
        self.assertEqual(0, a.uninstall().returncode)


if __name__ == "__main__":
    harness.main()
