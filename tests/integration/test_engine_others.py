# SPDX-License-Identifier: Apache-2.0
"""cwltool, Toil, Luigi, Dask and make: what each lets be seen is in the records, what it hides is null."""
import collections
import os

import harness
from seen import SeenTest
from systems import cwltool, luigi, make, toil
from systems.dask import Dask
from systems.driver import ended_well

STEP_PROGRAMS = 2  # step.sh and its awk


class OthersTest(SeenTest):
    def by_sample(self, name):
        """{(task, sample) as the programs say: how many executions}."""
        return {key: len(tasks) for key, tasks in self.tasks_by_step(name).items()}

    def statuses(self, name):
        return {key: [t["exit_code"] for t in tasks] for key, tasks in self.tasks_by_step(name).items()}

    def assert_only_tasks_and_chatter(self, run, driver):
        """Nothing of the run is in no task but the driver and what the rules call its own doing."""
        for p in self.seen.programs_of(run):
            if p["task_id"] is None and not p["overhead"]:
                of = self.seen.parent(p)["pid"] if p["forked"] else p["pid"]  # itself may fork without a program
                self.assertEqual(driver.pid, of, f"{p['argv']}\n{self.seen.describe(run)}")

    def assert_hidden(self, name, *steps):
        """No record of that run has the name of a step, which nothing shows, nor a sample."""
        for tasks in self.tasks_by_step(name).values():
            for t in tasks:
                self.assertNotIn(t["task"], steps)
                self.assertIsNone(t["sample"], t)
                self.assertIsNone(t["attempt"], t)
                self.assertTrue(t["task"])


class Cwltool(OthersTest):
    @classmethod
    def play(cls):
        at = cls.folder("cwl")
        cls.fine = ended_well(cwltool.start(at, "fine"))
        cls.failing = ended_well(cwltool.start(at, "failing", "failing.cwl"), 1)

    def test_runs(self):
        for name, driver, status, programs in (("fine", self.fine, 0, 2 * STEP_PROGRAMS + 2),
                                               ("failing", self.failing, 1, STEP_PROGRAMS)):
            run = self.seen.run_of(driver)
            self.assert_ended(run, status, "cwltool")
            self.assert_owned(run, name, programs)
            self.assert_sums(run)
            self.assertIn({"fine": "workflow", "failing": "failing"}[name], run["pipeline"])

    def test_each_job_of_its_log_is_a_task(self):
        ended, _ = cwltool.jobs(self.fine)
        self.assertEqual({"align", "align_2", "count", "count_2"}, set(ended), self.fine.output)
        self.assertEqual({("align", "A"): 1, ("align", "B"): 1, ("count", ""): 2}, self.by_sample("fine"))
        self.assert_hidden("fine", "align", "count")

    def test_statuses_are_those_of_its_log(self):
        self.assertEqual({0}, {s for codes in self.statuses("fine").values() for s in codes})
        _, statuses = cwltool.jobs(self.failing)
        self.assertEqual([42], statuses)
        self.assertEqual([42], self.statuses("failing")["failing", ""])


class Toil(OthersTest):
    @classmethod
    def play(cls):
        cls.driver = ended_well(toil.start(cls.folder("toil"), "fine"), timeout=150)

    def test_run(self):
        run = self.seen.run_of(self.driver)
        self.assert_ended(run, 0, "toil")
        self.assert_owned(run, "fine", 2 * STEP_PROGRAMS + 2)
        self.assertIn("workflow", run["pipeline"])

    def test_tasks_are_the_jobs_that_toil_issued(self):
        """Its name for a CWL tool is the same for all of them, and no step or sample shows."""
        issued = toil.issued(self.driver)
        self.assertEqual(["CWLJob"] * 4, [name for name, _ in issued], self.driver.output)
        run = self.seen.run_of(self.driver)
        tasks = {t["task_id"]: t for t in self.seen.tasks_of(run) if t["task"] == "CWLJob"}
        self.assertEqual({job for _, job in issued}, set(tasks), self.seen.describe(run))
        self.assertEqual({("align", "A"): 1, ("align", "B"): 1, ("count", ""): 2}, self.by_sample("fine"))
        for found in self.tasks_by_step("fine").values():
            for t in found:
                self.assertIn(t["task_id"], tasks)
                self.assertEqual((None, 0, 1), (t["sample"], t["exit_code"], t["attempt"]), t)

    def test_looking_at_the_disk_is_overhead(self):
        run = self.seen.run_of(self.driver)
        looks = [p for p in self.seen.programs_of(run) if os.path.basename(p["exe"] or "") in ("du", "stat")]
        self.assertTrue(looks)
        self.assertEqual([], [p["argv"] for p in looks if not p["overhead"] or p["task_id"] is not None])
        self.assert_only_tasks_and_chatter(run, self.driver)


class Luigi(OthersTest):
    @classmethod
    def play(cls):
        at = cls.folder("luigi")
        cls.fine = ended_well(luigi.start(at, "fine"))
        cls.failing = ended_well(luigi.start(at, "failing", "bad"), luigi.FAILED)

    def test_runs(self):
        for name, driver, status, steps in (("fine", self.fine, 0, 4), ("failing", self.failing, luigi.FAILED, 2)):
            run = self.seen.run_of(driver)
            self.assert_ended(run, status, "luigi")
            executions = luigi.executions(driver)
            self.assertEqual(steps, sum(map(len, executions.values())), driver.output)
            found = self.assert_owned(run, name, STEP_PROGRAMS * steps)
            self.assertEqual({sample: STEP_PROGRAMS * len(pids) for sample, pids in executions.items()},
                             dict(collections.Counter(s.sample for s in found)))
            self.assertIn("steps", run["pipeline"] + run["command"])

    def test_workers_are_forks_of_the_driver(self):
        for driver in (self.fine, self.failing):
            run = self.seen.run_of(driver)
            for pids in luigi.executions(driver).values():
                for pid in pids:
                    self.assertTrue(any(p["run_id"] == run["run_id"] for p in self.seen.of_pid(pid, driver.started_us)))

    def test_task_names_are_hidden(self):
        self.assert_hidden("fine", "Step")


class DaskCluster(OthersTest):
    @classmethod
    def play(cls):
        with Dask(cls.folder("dask")) as d:
            cls.dask = d
            # A worker's title is read once a second; until then it is a task of another id.
            for worker in d.workers:
                worker.wait_for(lambda: "tcp://" in cls.agent.ctl("explain", worker.pid).stdout, 60, "address in what ctl explain says")
            cls.account = d.run("fine")

    def test_steps_are_below_the_workers_that_ran_them(self):
        self.assertEqual(6, len(self.account["steps"]))
        self.assertEqual(2, len(self.account["workers"]))
        for number, status, worker in self.account["steps"]:
            mine = [s.program for s in self.seen.steps("fine") if s.sample == str(number)]
            self.assertEqual(STEP_PROGRAMS, len(mine), number)
            first = min(mine, key=lambda p: p["program_start_time"])
            self.assertEqual(status, first["exit_code"])
            self.assertIn(worker, [p["pid"] for p in self.seen.ancestors(first)])

    def test_the_cluster_is_one_run(self):
        """The scheduler's: workers say whose they are."""
        run = self.seen.run_of(self.dask.scheduler)
        self.assertEqual(("END", "dask"), (run["phase"], run["engine"]))
        self.assert_owned(run, "fine", 6 * STEP_PROGRAMS)
        self.assertEqual({"dask worker"}, {s.program["task"] for s in self.seen.steps("fine")})
        self.assertEqual(2, len({s.program["task_id"] for s in self.seen.steps("fine")}))

    def test_tasks_are_threads_and_hidden(self):
        self.assert_hidden("fine", "step")


class Make(OthersTest):
    @classmethod
    def play(cls):
        at = cls.folder("make")
        cls.fine = ended_well(make.start(at, "fine"))
        cls.failing = ended_well(make.start(at, "failing", "bad"), 2)

    def test_runs(self):
        for name, driver, status, steps in (("fine", self.fine, 0, 4), ("failing", self.failing, 2, 1)):
            run = self.seen.run_of(driver)
            self.assert_ended(run, status, "make")
            self.assert_owned(run, name, STEP_PROGRAMS * steps)
            self.assert_sums(run)
            self.assert_only_tasks_and_chatter(run, driver)

    def test_each_recipe_is_a_task(self):
        self.assertEqual({("prep", "A"): 1, ("prep", "B"): 1, ("sorted", "A"): 1, ("sorted", "B"): 1}, self.by_sample("fine"))
        self.assert_hidden("fine", "prep", "sorted")

    def test_statuses_are_those_that_make_saw(self):
        self.assertEqual({0}, {s for codes in self.statuses("fine").values() for s in codes})
        self.assertEqual([42], self.statuses("failing")["bad", ""])


if __name__ == "__main__":
    harness.main()
