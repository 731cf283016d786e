# SPDX-License-Identifier: Apache-2.0
"""probes.max_processes: those beyond it are recorded once there is room, or counted as lost, once; the others are whole,
and room that is free is used again."""
import collections
import os
import subprocess
import time

import harness
from agent import AgentTest
from harness import losses, read_lake
from load import Load

MAX = 1024  # the least that may be configured
SLEEPERS = 2000
LATE = 20
SHORT = 20
CHAINS = 50  # of a round: processes that run four programs, one after the other
ROUNDS = 4


def forks_of_host():
    """All processes and threads that were ever made here."""
    with open("/proc/stat") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("processes "))


class MaxProcesses(AgentTest):
    def sleepers(self, mark, n):
        """All exist at once, until end()."""
        p = subprocess.Popen([harness.built("sleepers"), mark, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)
        self.addCleanup(p.kill)
        self.assertEqual("ready\n", p.stdout.readline())
        return p

    def end(self, sleepers):
        sleepers.communicate(timeout=60)
        self.assertEqual(0, sleepers.returncode)

    def settle_all(self, a):
        """Until what ended has its records, and the holes of what has none are before another one: that of the second program."""
        for _ in range(2):
            subprocess.run(["/bin/true"], check=True)
            a.settle()

    def recorded(self, a, mark):
        """(argv, exe, forked, phase) of the records of sleepers."""
        return [(r["argv"], r["exe"], r["forked"], r["phase"]) for r in read_lake(a.lake).get("sluice.program", [])
                if (r["argv"] or [])[:2] == ["sleeper", mark]]

    def unread(self, topics, parents):
        """
        Children that a pass found when there was room again, and that ended before it read what they are: each has its
        END, without that.
        """
        return {r["program_id"] for r in topics["sluice.program"]
                if r["parent_program_id"] in parents and r["argv"] is None and r["observed_time"] is not None}

    def test_those_beyond_are_counted_and_the_others_whole(self):
        a = self.agent(probes={"max_processes": MAX}).start()
        forked = forks_of_host()
        self.end(self.sleepers(self.room, SLEEPERS))
        a.settle()  # the room of one that has ended is free once the kernel has freed it
        forked = forks_of_host() - forked
        with Load("afterwards") as load:
            a.wait(lambda: load.started >= 50, what="load")
        self.settle_all(a)
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        # By id: one that took a second to its exec had its START before that, as what its parent is.
        sleepers = {r["program_id"] for r in topics["sluice.program"] if (r["argv"] or [])[:2] == ["sleeper", self.room]}
        phases = collections.defaultdict(list)
        for r in topics["sluice.program"]:
            if r["program_id"] in sleepers:
                phases[r["program_id"]].append((r["phase"], r["exit_signal"]))
        whole = [("END", 15)], [("START", None), ("END", 15)]  # few live for a second
        self.assertEqual([], [x for x in phases.items() if x[1] not in whole][:5])
        # Nor is one that had no room recorded as another: their parent is the only program of these arguments.
        parents = {r["program_id"] for r in topics["sluice.program"]
                   if (r["argv"] or [])[1:] == [self.room, str(SLEEPERS)] and r["program_id"] not in sleepers}
        self.assertEqual(1, len(parents))
        missing = SLEEPERS - len(phases) - len(self.unread(topics, parents))
        # What ran here before takes up a part of the room, and room that others left is used.
        self.assertTrue(0 < len(phases) <= SLEEPERS, len(phases))
        counted = {(place, reason): n for place, reason, n in losses(topics) if reason != "cut"}
        beyond = counted.pop(("on_fork", "map_full"), 0)
        counted.pop(("on_exec", "map_full"), None)  # others here, which ran one program after another
        self.assertEqual({}, counted)
        # Whatever else was started here meanwhile may have been beyond the limit, too.
        self.assertTrue(missing <= beyond <= missing + forked - SLEEPERS, (missing, beyond, forked))
        self.assertEqual([], load.check(topics["sluice.program"])[:5])

    def test_those_beyond_are_counted_where_the_kernel_frees_them_unseen(self):
        a = self.agent(sluice=harness.built("sluice_free_missed"), probes={"max_processes": MAX}).start()
        forked = forks_of_host()
        self.end(self.sleepers(self.room, SLEEPERS))
        self.settle_all(a)  # those that had room end once their ends are made up
        forked = forks_of_host() - forked
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        ends = sum(phase == "END" for *_, phase in self.recorded(a, self.room))
        self.assertTrue(0 < ends < SLEEPERS, ends)
        self.assertLessEqual(ends, harness.events_counted(topics, "end_synthesized"))
        missing = SLEEPERS - ends
        counted = {(place, reason): n for place, reason, n in losses(topics) if reason != "cut"}
        beyond = counted.pop(("on_fork", "map_full"), 0)
        counted.pop(("on_exec", "map_full"), None)
        self.assertTrue(missing <= beyond <= missing + forked - SLEEPERS, (missing, beyond, forked))
        self.assertEqual({}, counted)

    def test_those_that_outlive_the_shortage_are_recorded_by_their_own_names(self):
        a = self.agent(probes={"max_processes": MAX}, records={"start_after": 0}).start()
        forked = forks_of_host()
        others = self.sleepers("others", SLEEPERS)
        late = self.sleepers("late", LATE)
        for i in range(SHORT):
            subprocess.run(["/bin/true", "short", str(i)], check=True)
        chains = []
        for _ in range(ROUNDS):
            chains += [subprocess.Popen(["/usr/bin/env"] * 3 + ["/bin/sleep", f"9{os.getpid()}"]) for _ in range(CHAINS)]
            # Others of this host that end at once leave room for a whole round, until a pass fills it with sleepers.
            time.sleep(1.2)
        a.wait_log("probes.full")
        self.end(others)
        a.wait_log("probes.room")
        a.settle()  # writes the START of those that were found in the last second
        self.end(late)
        for p in chains:
            p.kill()
            p.wait()
        self.settle_all(a)
        forked = forks_of_host() - forked
        self.assertEqual(0, a.stop(), a.log_text())
        exe = os.path.realpath(harness.built("sleepers"))
        whole = collections.Counter((("sleeper", "late", str(i)), exe, False, phase)
                                    for i in range(LATE) for phase in ("START", "END"))
        self.assertEqual(whole, collections.Counter((tuple(argv), *rest) for argv, *rest in self.recorded(a, "late")))
        topics = read_lake(a.lake)
        programs = topics["sluice.program"]
        parents = {r["program_id"] for r in programs if (r["argv"] or [])[1:] == ["others", str(SLEEPERS)]}
        # Each of the others is lost once, with two records that leave a hole each. The host may have lost others, too.
        recorded = {r["program_id"] for r in programs if (r["argv"] or [])[1:2] in (["others"], ["short"])} - parents
        gone = SLEEPERS + SHORT - len(recorded) - len(self.unread(topics, parents))
        # The last program of a chain is recorded, those before it are lost if there was no room for them.
        steps = {r["program_id"]: r["argv"] for r in programs if (r["argv"] or [""])[-1] == f"9{os.getpid()}"}
        self.assertEqual(len(chains), sum(argv[0] == "/bin/sleep" for argv in steps.values()), steps)
        steps_gone = 4 * len(chains) - len(steps)
        self.assertGreater(steps_gone, 0)
        beyond = sum(n for _, reason, n in losses(topics) if reason == "map_full")
        self.assertTrue(0 < gone <= beyond <= gone + forked - SLEEPERS - LATE - SHORT, (gone, beyond, forked))
        holes = max(r["seq"] for r in programs) + 1 - len({r["seq"] for r in programs})
        print(f"{gone} processes and {steps_gone} programs before others were lost, {beyond} counted, {holes} holes")
        # Each has two records, and no more holes than these.
        self.assertTrue(2 * (gone + steps_gone) <= holes <= 2 * (beyond + steps_gone), (gone, steps_gone, beyond, holes))


if __name__ == "__main__":
    harness.main()
