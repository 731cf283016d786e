# SPDX-License-Identifier: Apache-2.0
"""Several pipelines at once on one host: each tool says in its arguments whose it is, and none is in a wrong run."""
import collections
import os
import signal
import time
import types
import unittest
from unittest import mock

import harness
from seen import Seen, SeenTest
from systems import make
from systems.driver import ended_well
from systems.gate import Gate
from systems.nextflow import Nextflow
from systems.snakemake import Snakemake

NOBODY = 65534


class AtOnceTest(SeenTest):
    """play() fills cls.drivers: {the run's name in its programs' arguments: driver}."""

    agent_keys = {"engines": {"headers": True}}

    @classmethod
    def gate(cls, name):
        gate = Gate(cls.room, f"gate-{name}")
        cls.addClassCleanup(gate.close)
        return gate

    @classmethod
    def play_at_once(cls, gates, timeout=120):
        """To the end of cls.drivers; none continues before two steps of each are at its gate."""
        for name, gate in gates.items():
            gate.wait_for(2, cls.drivers[name], timeout)
        for gate in gates.values():
            gate.open()
        for driver in cls.drivers.values():
            ended_well(driver, timeout=timeout)

    def assert_apart(self, programs):
        """{name: how many step programs}. Each run has those of its driver, all of them, and no other."""
        ids = {}
        for name, driver in self.drivers.items():
            run = self.seen.run_of(driver)
            self.assert_owned(run, name, programs[name])
            self.assertEqual("END", run["phase"])
            ids[run["run_id"]] = name
        self.assertEqual(len(self.drivers), len(ids), ids)
        return {name: self.seen.runs[i] for i, name in ids.items()}

    def assert_overlapped(self, *runs):
        """They did run at once, or nothing was shown."""
        self.assertLess(max(r["start_time"] for r in runs), min(r["end_time"] for r in runs))


class NumbersOfProcesses(unittest.TestCase):
    """What is asked of a lake in which one pid is that of several processes, one after another."""

    def seen(self, *processes):
        """processes: (start in microseconds, run, [program_index])."""
        programs = [{"agent_id": "a", "seq": 0, "phase": "END", "program_id": f"{start}-{index}", "pid": 7, "start_time": start,
                     "program_index": index, "run_id": run, "argv": ["x"]}
                    for start, run, indexes in processes for index in indexes]
        for seq, r in enumerate(programs):
            r["seq"] = seq
        runs = [{"agent_id": "a", "seq": seq, "run_id": run, "start_time": start}
                for seq, (start, run, _) in enumerate(processes) if run is not None]
        with mock.patch.object(harness, "read_lake", return_value={"sluice.program": programs, "sluice.run": runs}):
            return Seen("")

    def test_a_driver_is_the_process_that_began_with_it(self):
        driver = types.SimpleNamespace(pid=7, started_us=5000000, argv=["x"])
        seen = self.seen((4200000, None, [0]), (5000300, "its", [0, 1]), (9000000, None, [0]), (9500000, "another", [0]))
        self.assertEqual("its", seen.run_of(driver)["run_id"])

    def test_a_driver_in_two_runs_is_refused(self):
        driver = types.SimpleNamespace(pid=7, started_us=5000000, argv=["x"])
        seen = self.seen((5000300, "its", [0]), (5000300, None, [1]))
        with self.assertRaisesRegex(AssertionError, "is in runs"):
            seen.run_of(driver)


class SameName(AtOnceTest):
    """Two Snakemakes and two Nextflows of one pipeline each, in two folders; and make beside them."""

    @classmethod
    def play(cls):
        cls.snakemakes = {name: Snakemake(cls.folder(name, "pipeline")) for name in ("sm1", "sm2")}
        cls.nextflows = {name: Nextflow(cls.folder(name, "pipeline")) for name in ("nf1", "nf2")}
        gates = {name: cls.gate(name) for name in (*cls.nextflows, *cls.snakemakes, "mk")}
        cls.drivers = {name: n.start("main.nf", "same", run=name, failing="false", bytes=1000000, gate=gates[name].path)
                       for name, n in cls.nextflows.items()}
        cls.drivers |= {name: s.start(name, gate=gates[name].path) for name, s in cls.snakemakes.items()}
        cls.drivers["mk"] = make.start(cls.folder("mk"), "mk", GATE=gates["mk"].path)
        cls.play_at_once(gates, 200)

    def test_no_program_is_in_the_wrong_run(self):
        # Snakemake: 9 jobs, two of them twice. Nextflow: 5 tasks a sample, one of them twice, and one at the end.
        programs = {"sm1": 22, "sm2": 22, "nf1": 22, "nf2": 22, "mk": 8}
        runs = self.assert_apart(programs)
        self.assertEqual({"sm1": "snakemake", "sm2": "snakemake", "nf1": "nextflow", "nf2": "nextflow", "mk": "make"},
                         {name: r["engine"] for name, r in runs.items()})
        self.assert_overlapped(*runs.values())
        self.assertEqual(runs["sm1"]["pipeline"], runs["sm2"]["pipeline"])
        self.assertEqual("same", runs["nf1"]["run_name"])
        self.assertEqual("same", runs["nf2"]["run_name"])

    def test_no_task_is_of_two_runs(self):
        for name, s in self.snakemakes.items():
            folders = {t["work_dir"] for tasks in self.tasks_by_step(name).values() for t in tasks}
            self.assertEqual({s.folder}, folders)
        for name, n in self.nextflows.items():
            rows = {row["hash"]: row for row in n.ran("same")}
            tasks = self.seen.tasks_of(self.seen.run_of(self.drivers[name]))
            self.assertEqual(set(rows), {t["task_id"][:9] for t in tasks})


class TwoUsers(AtOnceTest):
    @classmethod
    def play(cls):
        cls.snakemakes = {name: Snakemake(cls.folder(name)) for name in ("root", "nobody")}
        gates = {name: cls.gate(name) for name in cls.snakemakes}
        cls.drivers = {name: s.start(name, user=NOBODY if name == "nobody" else None, gate=gates[name].path)
                       for name, s in cls.snakemakes.items()}
        cls.play_at_once(gates)

    def test_each_has_a_run_of_its_own(self):
        runs = self.assert_apart({"root": 22, "nobody": 22})
        self.assertEqual({"root": 0, "nobody": NOBODY}, {name: r["uid"] for name, r in runs.items()})
        self.assert_overlapped(*runs.values())
        for name, run in runs.items():
            self.assertEqual({run["uid"]}, {p["uid"] for p in self.seen.programs_of(run)})


class RestartedDriver(AtOnceTest):
    """A driver is killed while its tasks run, and another is started on the same folder."""

    @classmethod
    def play(cls):
        s = cls.snakemake = Snakemake(cls.folder("sm"))
        gate = cls.gate("first")
        first = s.start("first", gate=gate.path)
        gate.wait_for(2, first)  # both steps that come first
        os.kill(first.pid, signal.SIGKILL)  # alone: its tasks live on
        first.process.wait(30)
        cls.killed_us = time.time_ns() // 1000
        second = s.start("second", "--rerun-incomplete")
        ended_well(second)
        # The second run is reported as over a second after its driver's end: so would be the first, if none of it ran.
        cls.agent.settle(tasks=True)
        gate.open()
        gate.wait_over()
        cls.drivers = {"first": first, "second": second}

    def test_each_driver_is_a_run(self):
        runs = self.assert_apart({"first": 4, "second": 22})
        self.assertEqual((None, signal.SIGKILL), (runs["first"]["exit_code"], runs["first"]["exit_signal"]))
        self.assertEqual((0, None), (runs["second"]["exit_code"], runs["second"]["exit_signal"]))

    def test_tasks_that_outlive_their_driver_stay_in_its_run(self):
        run = self.seen.run_of(self.drivers["first"])
        late = [p for p in self.seen.programs_of(run) if (p["end_time"] or 0) > self.killed_us + 1000000]
        self.assertTrue(late, self.seen.describe(run))
        self.assertGreaterEqual(run["end_time"], max(p["end_time"] for p in late))


class OutlivedTask(AtOnceTest):
    """A step starts something in the background, in a session of its own, and ends; so does the driver."""

    @classmethod
    def play(cls):
        s = cls.snakemake = Snakemake(cls.folder("sm"))
        gate = cls.gate("left")
        cls.drivers = {"left": ended_well(s.start("left", "outlived", gate=gate.path))}
        cls.over_us = time.time_ns() // 1000
        gate.wait_for(1, cls.drivers["left"])
        gate.open()
        gate.wait_over()

    def test_what_is_left_belongs_to_its_task(self):
        runs = self.assert_apart({"left": 2})
        steps = self.seen.steps("left")
        self.assertTrue(all(s.program["program_start_time"] > self.over_us for s in steps))
        tasks = {t["task_id"]: t for t in map(self.seen.task_of, (s.program for s in steps))}
        self.assertEqual(1, len(tasks))
        task = tasks.popitem()[1]
        self.assertGreaterEqual(task["end_time"], max(s.program["end_time"] for s in steps))
        self.assertLess(task["start_time"], self.over_us)
        self.assertEqual(0, task["exit_code"])
        self.assertGreaterEqual(runs["left"]["end_time"], task["end_time"])
        self.assertEqual(0, runs["left"]["exit_code"])


class RestartedAgent(AtOnceTest):
    """The agent is killed in the middle of two runs, and started again: they are the same runs."""

    @classmethod
    def play(cls):
        cls.snakemakes = {name: Snakemake(cls.folder(name)) for name in ("one", "two")}
        gates = {name: cls.gate(name) for name in cls.snakemakes}
        cls.drivers = {name: s.start(name, gate=gates[name].path) for name, s in cls.snakemakes.items()}
        for name, driver in cls.drivers.items():
            gates[name].wait_for(2, driver)
        cls.agent.settle()
        cls.agent.kill9()
        cls.killed_us = time.time_ns() // 1000
        cls.agent.start()
        cls.play_at_once(gates)

    def test_runs_go_on_under_their_ids(self):
        runs = self.assert_apart({"one": 22, "two": 22})
        self.assert_overlapped(*runs.values())
        for name, run in runs.items():
            self.assertLess(run["start_time"], self.killed_us)
            self.assertEqual((0, "snakemake"), (run["exit_code"], run["engine"]))
            phases = collections.Counter(r["phase"] for r in self.seen.topics["sluice.run"] if r["run_id"] == run["run_id"])
            self.assertEqual((1, 1), (phases["START"], phases["END"]), name)
            begun = {s.program["program_start_time"] < self.killed_us for s in self.seen.steps(name)}
            self.assertEqual({True, False}, begun, "steps before and after")

    def test_tasks_go_on_under_their_ids(self):
        """A task that ran as the agent was killed is one, not two."""
        counts = collections.Counter()
        for tasks in (self.tasks_by_step(name) for name in self.drivers):
            for (task, sample), executions in tasks.items():
                counts[task, sample] += len(executions)
        each = {("prep", 2), ("sorted", 2), ("flaky", 4), ("counted", 2)}  # of both runs together
        self.assertEqual({**{(rule, sample): n for rule, n in each for sample in "AB"}, ("scripted", ""): 2}, dict(counts))
        for r in self.seen.tasks.values():
            if r["run_id"] in {self.seen.run_of(d)["run_id"] for d in self.drivers.values()}:
                self.assertEqual("END", r["phase"], r)


if __name__ == "__main__":
    harness.main()
