# SPDX-License-Identifier: Apache-2.0
"""The agent is killed, stopped, replaced and removed: no program is missing, none is there twice."""
import glob
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import harness
from agent import AgentTest
from harness import read_lake
from load import Load, cuts, duplicates, holes, once, own_folder, unforgiven

# Children that end one by one, a millisecond apart, from the moment on when an agent has attached its programs, which is
# just before it looks for what runs already. The last one lives until the standard input ends.
ENDING_IN_TURN = """
import glob, os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # each is reaped at once
turn, ends = os.pipe()
for _ in range(600):
    if os.fork() == 0:
        os.read(turn, 1)
        os._exit(0)
print(flush=True)
while not glob.glob(sys.argv[1]):
    time.sleep(0.001)
for _ in range(599):
    os.write(ends, b"x")
    time.sleep(0.001)
sys.stdin.read()
os.write(ends, b"x")
try:
    os.wait()  # for all of them, as none is a zombie
except ChildProcessError:
    pass
"""
KILLS = int(os.environ.get("KILLS", "20"))


class Restart(AgentTest):
    def assert_whole(self, agent, *loads):
        topics = read_lake(agent.lake)
        for topic, records in topics.items():
            _, differ = duplicates(records)
            self.assertEqual([], differ[:5], topic)
            self.assertEqual([], holes(records), topic)
        for load in loads:
            self.assertEqual(0, load.failed)
            self.assertEqual([], load.check(topics["sluice.program"])[:5])
        lost = [(x["place"], x["reason"], x["count"]) for x in topics["sluice.agent"][-1]["lost"]]
        programs = topics["sluice.program"]
        self.assertEqual([], unforgiven(lost, sum(r["phase"] == "END" for r in programs), cuts(programs)))
        return topics

    def test_kill_9_under_load_loses_and_repeats_nothing(self):
        a = self.agent()
        a.follow_only(own_folder())
        a.start()
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        with Load("kill") as load:
            for _ in range(KILLS):
                time.sleep(rng.uniform(0.05, 0.7))
                a.kill9()
                time.sleep(rng.choice([0, 0.05, 0.3]))
                a.start()
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        topics = self.assert_whole(a, load)
        self.assertGreater(load.started, KILLS * 20, "seed %d" % seed)
        events = {r["seq"]: r["event"] for r in topics["sluice.agent"]}.values()
        self.assertNotIn("GAP", events)
        self.assertEqual(KILLS + 1, list(events).count("START"))

    def test_programs_that_live_over_restarts_are_accounted_whole(self):
        """Their END knows what they were, and all that they used, before, between and after."""
        a = self.agent().start()
        burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 1; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
        before = subprocess.Popen(["/bin/sh", "-c", burn, "sluice-lives"])
        time.sleep(0.6)
        a.kill9()
        _, status, usage = os.wait4(before.pid, 0)
        before.returncode = status
        a.start()
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        all_ends = {r["seq"]: r for r in read_lake(a.lake)["sluice.program"] if r["phase"] == "END"}.values()
        ends = [r for r in all_ends if r["argv"] and r["argv"][-1] == "sluice-lives"]
        self.assertEqual(1, len(ends))
        # wait4 counts the children that it reaped itself: its sleep
        family = ends + [r for r in all_ends if r["ppid"] == before.pid]
        self.assertEqual(2, len(family))
        cpu = sum(r["usage"]["cpu_user_ns"] + r["usage"]["cpu_system_ns"] for r in family) / 1e9
        # The last steps of an exit, after wait4() was answered, are in it: they take milliseconds where they are emulated.
        self.assertAlmostEqual(usage.ru_utime + usage.ru_stime, cpu, delta=0.05 if harness.IS_EMULATED else 0.0002)
        self.assertEqual(0, ends[0]["exit_code"])
        self.assertIsNone(ends[0]["observed_time"])

    def test_clean_stop_and_start(self):
        a = self.agent()
        a.follow_only(own_folder())
        a.start()
        with Load("stop", rate=200) as load:
            for _ in range(4):
                load.wait_more(60)
                self.assertEqual(0, a.stop(), a.log_text())
                load.wait_more(20)  # that no agent reads
                a.start()
            load.wait_more(60)
        a.settle()
        self.assertEqual(0, a.stop())
        topics = self.assert_whole(a, load)
        for topic, records in topics.items():
            self.assertEqual(0, duplicates(records)[0], topic)

    def test_uninstall_leaves_nothing_and_the_next_start_tells_of_the_gap(self):
        a = self.agent().start()
        self.assertTrue(os.path.isdir(a.pins))
        self.assertEqual(0, a.stop())
        self.assertTrue(os.path.isdir(a.pins), "the probes stay for the next agent")
        done = a.uninstall()
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertFalse(os.path.exists(a.pins))
        self.assertEqual(0, a.uninstall().returncode, "nothing to remove is no error")
        time.sleep(1)  # is the gap
        a.start()
        self.assertEqual(0, a.stop())
        gaps = [r for r in once(read_lake(a.lake)["sluice.agent"]) if r["event"] == "GAP"]
        self.assertEqual(1, len(gaps))
        self.assertGreater(gaps[0]["interval_ns"], 0.9e9)

    def test_what_ran_already_is_found_once(self):
        sleeper = subprocess.Popen(["/bin/sleep", "3600.125"])
        self.addCleanup(sleeper.kill)
        a = self.agent().start()
        a.settle()
        a.kill9()
        a.start()
        sleeper.terminate()
        sleeper.wait()
        a.settle()
        self.assertEqual(0, a.stop())
        mine = [r for r in once(read_lake(a.lake)["sluice.program"]) if r["pid"] == sleeper.pid]
        self.assertEqual(["START", "END"], [r["phase"] for r in mine])
        for r in mine:
            self.assertGreater(r["observed_time"], r["start_time"])
            self.assertIsNone(r["run_id"])
        self.assertEqual(15, mine[1]["exit_signal"])

    def test_what_ends_while_it_is_found_ran_before(self):
        """Before its /proc was read, in the milliseconds of the agent's start: its record has observed_time."""
        a = self.agent()
        forker = subprocess.Popen([sys.executable, "-c", ENDING_IN_TURN, a.pins + "/*/links/*"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(forker.kill)
        self.assertEqual("\n", forker.stdout.readline())
        a.start()
        forker.communicate(timeout=60 * harness.PATIENCE)
        self.assertEqual(0, forker.returncode)
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        mine = [r for r in read_lake(a.lake)["sluice.program"] if r["ppid"] == forker.pid]
        self.assertTrue(mine)
        self.assertEqual([], [r for r in mine if r["observed_time"] is None])

    def gap_of(self, a):
        gaps = [r for r in once(read_lake(a.lake)["sluice.agent"]) if r["event"] == "GAP"]
        self.assertEqual(1, len(gaps))
        return gaps[0]["interval_ns"] / 1e9

    def test_a_gap_is_as_long_as_it_was_whatever_the_wall_clock_says(self):
        """It was set ahead, or back, while no agent ran."""
        for ahead in (7200, -7200):
            with self.subTest(ahead):
                a = self.agent(str(ahead)).start()
                a.settle()
                before = time.monotonic()
                a.kill9()
                killed = time.monotonic()
                self.assertEqual(0, a.uninstall().returncode)
                clock = os.path.join(a.room, "clock")
                with open(clock, "wb") as f:
                    f.write(struct.pack("<q", ahead * 10**9))
                starts = time.monotonic()
                a.start(env=harness.plain_environment(LD_PRELOAD=harness.built("libstepped_clock.so"), STEPPED_CLOCK=clock))
                a.settle()
                after = time.monotonic()
                self.assertEqual(0, a.stop(), a.log_text())
                gap = self.gap_of(a)
                self.assertGreater(gap, starts - killed)
                self.assertLess(gap, after - before + 60 * harness.PATIENCE)  # and the age of the last sign of life

    def pairs(self, programs):
        """Programs with two STARTs or two ENDs, or a START after the END; one that is found again starts again."""
        phases = {}
        for r in {r["seq"]: r for r in programs}.values():
            found = r["phase"] == "START" and r["observed_time"] is not None and r["program_id"] in phases
            phases.setdefault(r["program_id"], []).extend([] if found else [r["phase"]])
        return [(i, p) for i, p in phases.items() if p not in (["START"], ["END"], ["START", "END"])]

    def test_nobody_reads_for_long_and_the_probes_go_quiet(self):
        a = self.agent(probes={"watchdog": "10s"}).start()
        a.settle()
        a.kill9()
        killed = time.monotonic()
        time.sleep(11)  # longer than the watchdog has 10 s
        for _ in range(3):
            subprocess.run(["/bin/true", "unseen"])
        a.start()
        self.assertIn("the watchdog had stopped", a.wait_log("probes.open")["message"])
        subprocess.run(["/bin/true", "seen-again"])
        a.settle()
        self.assertEqual(0, a.stop())
        programs = read_lake(a.lake)["sluice.program"]
        argvs = [tuple(r["argv"] or []) for r in programs]
        self.assertIn(argvs.count(("/bin/true", "seen-again")), (1, 2))  # the END, and a START if it lives for a second
        self.assertLessEqual(argvs.count(("/bin/true", "unseen")), 1)  # the first fork is what tells
        self.assertEqual([], self.pairs(programs)[:3])
        # It begins with the first fork on this host 10 s after the last heartbeat, and not with the agent's end.
        self.assertLess(self.gap_of(a), time.monotonic() - killed - 5)

    def test_an_agent_that_was_killed_before_it_had_the_lease(self):
        """Its programs are pinned already: the next agent still pins its own, and those alone remain."""
        a = self.agent().start()
        a.settle()
        a.kill9()
        (epoch,) = glob.glob(a.pins + "/*/links/*")
        after = os.path.join(os.path.dirname(epoch), "%016x" % (int(os.path.basename(epoch), 16) + 1))
        os.mkdir(after, 0o700)
        for name in os.listdir(epoch):
            subprocess.run(["bpftool", "link", "pin", "pinned", os.path.join(epoch, name), os.path.join(after, name)], check=True)
        a.start()
        self.assertEqual([after], glob.glob(a.pins + "/*/links/*"), a.log_text())
        self.assertNotIn("cannot pin", a.log_text())
        self.assertEqual(0, a.stop(), a.log_text())

    def test_an_agent_that_was_killed_before_its_first_batch(self):
        """The maps are its own, the spool is that of the agent before: what was between them is a gap."""
        a = self.agent().start()
        self.assertEqual(0, a.stop())
        before = os.path.join(a.room, "spool.before")
        subprocess.run(["cp", "-a", a.spool, before], check=True)
        self.assertEqual(0, a.uninstall().returncode)
        a.start()
        a.kill9()
        subprocess.run(["find", a.spool, "-mindepth", "1", "-delete"], check=True)  # another folder would be another agent's
        subprocess.run(["cp", "-a", before + "/.", a.spool], check=True)
        a.start()
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertGreater(self.gap_of(a), 0)

    def test_an_agent_that_was_killed_before_it_recorded_its_gap(self):
        """It had the lease again: the next agent finds since when it had not."""
        a = self.agent().start()
        a.settle()
        a.kill9()
        (variables,) = glob.glob(a.pins + "/*/maps/shared")
        subprocess.run([harness.built("probes_switch"), variables, "quiet"], check=True)
        time.sleep(1)  # is the gap
        a.start()
        a.settle()
        a.kill9()
        a.start()  # it is recorded once
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertGreater(self.gap_of(a), 0.9)

    def layout(self, a):
        layouts = os.listdir(a.pins)
        self.assertEqual(1, len(layouts), layouts)
        return layouts[0]

    def unseen_between(self, first, second, end=None):
        """How many of five programs, that run between the agents of two builds, the second one does not have; the agent."""
        a = self.agent(sluice=first, records={"start_after": 0})
        a.command_prefix = ["setpriv", "--bounding-set=-sys_admin"]  # which the service does not have either
        a.start()
        a.settle()
        before = self.layout(a)
        self.assertEqual(0, a.stop())
        for i in range(5):
            subprocess.run(["/bin/true", "between-%d" % i], check=True)
        a.sluice = second
        a.start()
        if end is not None:
            end.terminate()
            end.wait()
        a.settle()
        self.assertEqual(0, a.stop())
        a.had_layout = before
        seen = {tuple(r["argv"] or []) for r in read_lake(a.lake)["sluice.program"] if r["phase"] == "END"}
        return sum(("/bin/true", "between-%d" % i) not in seen for i in range(5)), a

    def test_a_version_whose_comments_differ_takes_over_and_misses_nothing(self):
        for first, second in ((harness.SLUICE, harness.built("sluice_other_comment")),
                              (harness.built("sluice_other_comment"), harness.SLUICE)):
            with self.subTest(os.path.basename(second)):
                unseen, a = self.unseen_between(first, second)
                self.assertEqual(a.had_layout, self.layout(a))
                self.assertEqual(0, unseen)
                self.assertEqual("the previous agent's probes are taken over", a.wait_log("probes.open")["message"])
                self.assertNotIn("GAP", [r["event"] for r in read_lake(a.lake)["sluice.agent"]])
                self.assertEqual(0, a.uninstall().returncode)
                shutil.rmtree(a.room)

    def test_a_version_with_more_state_copies_it_in_a_gap_of_milliseconds_in_both_directions(self):
        for first, second in ((harness.SLUICE, harness.built("sluice_more_state")),
                              (harness.built("sluice_more_state"), harness.SLUICE)):
            with self.subTest(os.path.basename(second)):
                sleeper = subprocess.Popen(["/bin/sleep", "3600.625"])
                self.addCleanup(sleeper.kill)
                unseen, a = self.unseen_between(first, second, end=sleeper)
                self.assertNotEqual(a.had_layout, self.layout(a))
                self.assertEqual(0, unseen)
                self.assertIn("their state was copied", a.wait_log("probes.open")["message"])
                self.assertLess(self.gap_of(a), 0.5 * harness.PATIENCE)
                topics = read_lake(a.lake)
                for topic, records in topics.items():
                    self.assertEqual([], holes(records), topic)
                mine = [r for r in once(topics["sluice.program"]) if r["pid"] == sleeper.pid]
                self.assertEqual(["START", "END"], [r["phase"] for r in mine])
                self.assertEqual(mine[0]["observed_time"], mine[1]["observed_time"])
                self.assertEqual(0, a.uninstall().returncode)
                shutil.rmtree(a.room)

    def kill_in_take_over(self, a, step, *between):
        """The agent stops, the program `between` runs, if there is one, and another version is killed at a step."""
        a.settle()
        self.assertEqual(0, a.stop())
        if between:
            subprocess.run(between, check=True)
        a.sluice = harness.built("sluice_more_state")
        a.start(wait=False, env=harness.plain_environment(SLUICE_TEST_STEP=step))
        self.assertEqual(-signal.SIGKILL, a.process.wait(30 * harness.PATIENCE), a.log_text())

    def end_with_one_layout(self, a):
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        self.layout(a)
        return read_lake(a.lake)

    def after_a_kill(self, step):
        """An agent of another version is killed in the middle of its take-over, and another one continues."""
        a = self.agent(step, records={"start_after": 0}).start()
        sleeper = subprocess.Popen(["/bin/sleep", "3600.875"])
        self.addCleanup(sleeper.kill)
        self.kill_in_take_over(a, step, "/bin/true", "before-it")
        subprocess.run(["/bin/true", "after-it"], check=True)
        after = time.time()
        a.start()
        sleeper.terminate()
        sleeper.wait()
        topics = self.end_with_one_layout(a)
        for topic, records in topics.items():
            self.assertEqual([], duplicates(records)[1][:5], topic)
            self.assertEqual([], holes(records), topic)
        programs = once(topics["sluice.program"])
        mine = [r for r in programs if r["pid"] == sleeper.pid]
        self.assertEqual(["START", "END"], [r["phase"] for r in mine])
        self.assertEqual(mine[0]["observed_time"], mine[1]["observed_time"])
        # Others of this host run it as well, and without an argument.
        seen = {a for r in programs if r["argv"] and r["argv"][0] == "/bin/true" and r["phase"] == "END" for a in r["argv"]}
        (gap,) = [r for r in once(topics["sluice.agent"]) if r["event"] == "GAP"]
        return seen & {"before-it", "after-it"}, gap, after

    def test_a_take_over_of_another_version_that_is_killed_continues(self):
        both = {"before-it", "after-it"}
        for step, expected in (("attached", both), ("copied", {"before-it"}), ("read", both), ("committed", both), ("left", both)):
            with self.subTest(step):
                seen, gap, after = self.after_a_kill(step)
                self.assertEqual(expected, seen)
                if seen != both:  # it ran in the gap
                    end = gap["time"] / 1e6
                    self.assertLess(end - gap["interval_ns"] / 1e9, after)
                    self.assertLess(after, end)

    def test_the_older_version_takes_over_from_a_take_over_that_was_killed(self):
        program = ("import os, sys\nif sys.argv[1:]:\n"
                   "    os.execv(sys.executable, [sys.executable, '-c', os.environ['P'], *sys.argv[2:]])\n"
                   "print(flush=True)\nsys.stdin.read()")
        a = self.agent(records={"start_after": 0}).start()
        self.kill_in_take_over(a, "committed")
        # Only the later version sees its first programs.
        p = subprocess.Popen([sys.executable, "-c", program, "x", "x", "x"], env=dict(os.environ, P=program),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        p.stdout.readline()
        a.sluice = harness.SLUICE
        a.start()
        p.communicate()
        topics = self.end_with_one_layout(a)
        self.assertEqual([], holes(topics["sluice.program"]))
        mine = [(r["program_index"], r["phase"]) for r in once(topics["sluice.program"]) if r["pid"] == p.pid]
        self.assertEqual([(i, phase) for i in range(4) for phase in ("START", "END")], mine)

    def test_a_process_that_had_threads_in_the_gap_is_marked(self):
        program = ("import sys, threading\n"
                   "def read():\n    for _ in range(1000): open('/proc/self/stat').read()\n"
                   "sys.stdin.readline()\nt = threading.Thread(target=read)\nt.start()\nt.join()\n"
                   "print(flush=True)\nsys.stdin.read()")
        a = self.agent(records={"start_after": 0}).start()
        p = subprocess.Popen([sys.executable, "-c", program, "threads"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.kill_in_take_over(a, "copied")
        p.stdin.write(b"\n")
        p.stdin.flush()
        p.stdout.readline()
        a.start()
        p.communicate()
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        (end,) = [r for r in once(read_lake(a.lake)["sluice.program"]) if r["pid"] == p.pid and r["phase"] == "END"]
        self.assertIsNone(end["usage"]["syscr"])

    def test_another_version_that_cannot_copy_begins_anew_and_says_so(self):
        a = self.agent(records={"start_after": 0}).start()
        sleeper = subprocess.Popen(["/bin/sleep", "3600.125"])
        self.addCleanup(sleeper.kill)
        a.settle()
        self.assertEqual(0, a.stop())
        stopped = time.monotonic()
        a.sluice = harness.built("sluice_more_state")
        a.start(env=harness.plain_environment(SLUICE_TEST_STEP="full"))
        self.assertIn("another version", a.wait_log("probes.open")["message"])
        gap_most = time.monotonic() - stopped + 1
        self.layout(a)
        sleeper.terminate()
        sleeper.wait()
        a.settle()
        self.assertEqual(0, a.stop())
        mine = [r for r in once(read_lake(a.lake)["sluice.program"]) if r["pid"] == sleeper.pid]
        self.assertEqual(["START", "START", "END"], [r["phase"] for r in mine])
        self.assertIsNotNone(mine[2]["observed_time"])
        self.assertLess(0, self.gap_of(a))
        self.assertLess(self.gap_of(a), gap_most)

    def test_a_version_with_more_state_takes_over_under_load(self):
        """What is not whole then ran in the gap, of which there is a record."""
        a = self.agent()
        a.follow_only(own_folder())
        a.start()
        with Load("more-state") as load:
            load.wait_more(100)
            a.kill9()
            load.wait_more(20)  # that no agent reads
            a.sluice = harness.built("sluice_more_state")
            a.start()
            load.wait_more(100)
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        for topic, records in topics.items():
            self.assertEqual([], duplicates(records)[1][:5], topic)
            self.assertEqual([], holes(records), topic)
        gap = self.gap_of(a)
        wrong = load.check(topics["sluice.program"])
        # Programs that start or end in the gap have lost one event or both.
        self.assertLess(len(wrong), 10 + 2 * load.rate * gap, (gap, wrong))

    def test_an_agent_of_another_meaning_begins_anew_and_says_so(self):
        a = self.agent(records={"start_after": 0}).start()  # both agents see it within a second
        sleeper = subprocess.Popen(["/bin/sleep", "3600.375"])
        self.addCleanup(sleeper.kill)
        a.settle()
        self.assertEqual(0, a.stop())
        a.sluice = harness.built("sluice_other_meaning")
        a.start()
        self.assertIn("another version", a.wait_log("probes.open")["message"])
        self.assertEqual("999", self.layout(a).split("_")[0])
        sleeper.terminate()
        sleeper.wait()
        a.settle()
        self.assertEqual(0, a.stop())
        mine = [r for r in once(read_lake(a.lake)["sluice.program"]) if r["argv"] == ["/bin/sleep", "3600.375"]]
        # known to the first; its end was seen by the second, which found it running
        self.assertEqual(["START", "START", "END"], [r["phase"] for r in mine])
        self.assertIsNotNone(mine[2]["observed_time"])
        self.gap_of(a)


if __name__ == "__main__":
    harness.main()
