# SPDX-License-Identifier: Apache-2.0
"""What an agent saw of pipelines: its lake as runs, tasks and programs, and the steps that say whose they are.

A step is a program with an argument `step:RUN/TASK/SAMPLE` (or `owner=step:...`): what a pipeline of
tests/fixtures/pipelines ran, reported by itself and not by what is under test. Steps of tests that run beside this
one have another RUN, whatever they call it (systems/driver.py).
"""
import collections
import os
import re
import shutil
import tempfile
import unittest

import harness
from agent import Agent
from load import cuts, holes, once, unforgiven
from systems.driver import OURS

OWNER = re.compile(rf"(?:owner=)?step:([^/]*){re.escape(OURS)}/([^/]*)/([^/]*)$")
Step = collections.namedtuple("Step", "run task sample program")


class Seen:
    def __init__(self, lake):
        topics = {topic: once(records) for topic, records in harness.read_lake(lake).items()}
        self.topics = topics
        self.programs = {}  # by program_id: the END, else the START
        for r in topics.get("sluice.program", []):
            if r["phase"] == "END" or r["program_id"] not in self.programs:
                self.programs[r["program_id"]] = r
        self.runs = self._last(topics.get("sluice.run", []), lambda r: r["run_id"])
        self.tasks = self._last(topics.get("sluice.task", []), lambda r: (r["run_id"], r["task_id"]))

    @staticmethod
    def _last(records, key):
        """{key: the latest record}, in the order in which they began."""
        last = {}
        for r in records:
            last[key(r)] = r
        return dict(sorted(last.items(), key=lambda x: x[1]["start_time"]))

    def of_pid(self, pid, since_us=0):
        """Programs of a process that began after since_us, in their order."""
        found = [p for p in self.programs.values() if p["pid"] == pid and p["start_time"] >= since_us - 1000000]
        return sorted(found, key=lambda p: p["program_index"])

    def of_driver(self, driver):
        """Its process's programs. Once it has ended, another may have its number: pids come round in seconds beside a storm."""
        found = self.of_pid(driver.pid, driver.started_us)
        began = min((p["start_time"] for p in found), key=lambda us: abs(us - driver.started_us), default=None)
        return [p for p in found if p["start_time"] == began]

    def run_of(self, driver):
        """The Run record of a driver; its programs must all be in that one."""
        programs = self.of_driver(driver)
        if not programs:
            raise AssertionError(f"no program of the driver {driver.argv[:3]} (pid {driver.pid}) in the lake")
        ids = {p["run_id"] for p in programs}
        if len(ids) != 1 or None in ids:
            raise AssertionError(f"the driver {driver.argv[:3]} is in runs {ids}: {[(p['argv'], p['run_id']) for p in programs]}")
        return self.runs[ids.pop()]

    def tasks_of(self, run):
        return [t for (run_id, _), t in self.tasks.items() if run_id == run["run_id"]]

    def task_of(self, program):
        """The Task record that a program belongs to; None where it is in none."""
        return self.tasks.get((program["run_id"], program["task_id"])) if program["task_id"] is not None else None

    def programs_of(self, run):
        return [p for p in self.programs.values() if p["run_id"] == run["run_id"]]

    def steps(self, run_name=None):
        """Programs that say whose they are; of a run with that name in their arguments."""
        found = []
        for p in self.programs.values():
            if p["forked"]:
                continue  # its arguments are its parent's
            for a in p["argv"] or []:
                m = OWNER.match(a)
                if m and (run_name is None or m[1] == run_name):
                    found.append(Step(m[1], m[2], m[3], p))
                    break
        return found

    def parent(self, program):
        return self.programs.get(program["parent_program_id"])

    def ancestors(self, program):
        p = self.parent(program)
        while p is not None:
            yield p
            p = self.parent(p)

    def programs_of_task(self, task):
        return [p for p in self.programs.values() if (p["run_id"], p["task_id"]) == (task["run_id"], task["task_id"])]

    def helpers_of(self, task):
        """Overhead that descends from a task: no part of it, but started in its course."""
        def is_below(program):
            return any(p["task_id"] == task["task_id"] for p in self.ancestors(program))
        return [p for p in self.programs.values() if p["overhead"] and p["run_id"] == task["run_id"] and is_below(p)]

    def describe(self, run):
        """For a failure's message: what is known of a run."""
        lines = [f"run {run['run_id']} {run['engine']} {run['pipeline']} {run['run_name']} {run['source']}"]
        for t in self.tasks_of(run):
            lines.append(f"  task {t['task_id']} {t['task']} {t['sample']} attempt {t['attempt']} exit {t['exit_code']} "
                         f"{t['phase']} {t['programs']} programs, {t['source']}")
        for p in sorted(self.programs_of(run), key=lambda p: p["program_start_time"]):
            lines.append(f"    {p['pid']}.{p['program_index']} {'overhead ' if p['overhead'] else ''}{p['task_id']} {p['tool']} "
                         f"{' '.join(p['argv'] or [])[:150]}")
        return "\n".join(lines)


class SeenTest(unittest.TestCase):
    """One agent watches what play() does; the tests ask what it saw. `cls.seen`, `cls.room`."""

    agent_keys = {}
    refused = frozenset()  # losses that are what is tested, as (component, reason)

    @classmethod
    def play(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        if not os.access(harness.SLUICE, os.X_OK):
            raise AssertionError(f"{harness.SLUICE} is not built; run: cmake --preset release && cmake --build --preset release")
        if not harness.is_root():
            raise unittest.SkipTest("loading BPF needs root")
        cls.room = tempfile.mkdtemp(prefix="sluice-test-")
        os.chmod(cls.room, 0o755)
        cls.addClassCleanup(shutil.rmtree, cls.room, ignore_errors=True)
        room = os.path.join(cls.room, "agent")
        os.mkdir(room)
        cls.agent = Agent(room, **cls.agent_keys)
        cls.addClassCleanup(cls.agent.remove)
        cls.agent.start()
        cls.play()
        cls.look()

    @classmethod
    def look(cls):
        """Ends the agent and reads its lake."""
        cls.agent.settle(tasks=True)
        if cls.agent.stop() != 0:
            raise AssertionError(cls.agent.log_text())
        cls.seen = Seen(cls.agent.lake)
        programs = cls.seen.topics["sluice.program"]
        lost = unforgiven(harness.losses(cls.seen.topics), sum(r["phase"] == "END" for r in programs),
                          cuts(programs))
        lost = [loss for loss in lost if loss[:2] not in cls.refused]
        wrong = [f"{topic}: {text}" for topic, records in cls.seen.topics.items() for text in holes(records)]
        if lost or wrong:
            raise AssertionError(f"the agent lost {lost}; {wrong}")

    @classmethod
    def folder(cls, *names):
        """A new folder of the room, where any user may work."""
        at = os.path.join(cls.room, *names)
        os.makedirs(at)
        return at

    # --- claims about any engine ---

    def assert_ended(self, run, status, engine):
        """The Run record is whole: it ended as its driver did."""
        self.assertEqual(("END", engine, status), (run["phase"], run["engine"], run["exit_code"]), run)
        self.assertIsNotNone(run["end_time"])
        self.assertEqual(0, run["live_programs"])
        self.assertGreater(run["confidence"], 0)
        self.assertTrue(run["source"])

    def assert_sums(self, run):
        """What its records add up to is what its programs used, each counted once."""
        programs = self.seen.programs_of(run)
        self.assertEqual(len(programs), run["programs"], self.seen.describe(run))
        for field in ("rchar", "wchar", "cpu_user_ns", "cpu_system_ns", "minor_faults"):
            self.assertEqual(sum(p["usage"][field] for p in programs), run["usage"][field], field)
        by_task = collections.defaultdict(list)
        for p in programs:
            by_task[p["task_id"]].append(p)
        for task in self.seen.tasks_of(run):
            mine = by_task.pop(task["task_id"], [])
            self.assertEqual(len(mine), task["programs"], self.seen.describe(run))
            self.assertEqual(sum(p["usage"]["rchar"] for p in mine), task["usage"]["rchar"])
            self.assertFalse([p for p in mine if p["overhead"]], "overhead is no task's")
        by_task.pop(None, None)
        self.assertEqual([], list(by_task), "programs of tasks that have no record")

    def assert_owned(self, run, name, programs):
        """Every step program of that name is in the run, each in a task of it, and there are that many."""
        steps = self.seen.steps(name)
        for s in steps:
            self.assertEqual(run["run_id"], s.program["run_id"], f"{s.program['argv']}\n{self.seen.describe(run)}")
            self.assertFalse(s.program["overhead"], s.program["argv"])
            self.assertIsNotNone(self.seen.task_of(s.program), f"{s.program['argv']}\n{self.seen.describe(run)}")
        self.assertEqual(programs, len(steps), [s.program["argv"] for s in steps])
        others = [s for s in self.seen.steps() if s.run != name and s.program["run_id"] == run["run_id"]]
        self.assertEqual([], [s.program["argv"] for s in others], "programs of another run")
        return steps

    def tasks_by_step(self, name):
        """{(task, sample) as the programs say: [the Task records that they are in]}, each once, in order of start."""
        found = collections.defaultdict(dict)
        for s in self.seen.steps(name):
            task = self.seen.task_of(s.program)
            if task is not None:
                found[s.task, s.sample][task["task_id"]] = task
        return {key: sorted(tasks.values(), key=lambda t: t["start_time"]) for key, tasks in found.items()}
