# SPDX-License-Identifier: Apache-2.0
"""Snakemake's jobs are in the lake as its log has them, as far as the operating system sees them.

A rule with `shell:` shows its command and no more: its task is named after that, or, where what Snakemake keeps of its
jobs is read, after the rule. One with `run:`, and any that is
executed elsewhere, is a Snakemake of its own with rule, wildcards and attempt in its arguments. Of a `script:` the
file's name is seen.
"""
import collections
import os
import time

import harness
from seen import SeenTest
from systems import machine
from systems.driver import STEP, Driver, ended_well, owner
from systems.slurm import Slurm
from systems.snakemake import DEBIAN, Log, Snakemake, newest

NOBODY = 65534
STEP_PROGRAMS = 2  # step.sh and its awk


def wanted(jobs):
    """{(rule, sample): executions} of a log, but of `all`, which executes nothing."""
    return dict(collections.Counter((j.rule, j.wildcards.get("sample", "")) for j in jobs if j.rule != "all"))


class SnakemakeTest(SeenTest):
    def check_owned(self, driver, name, log):
        """Programs by rule are those of the log."""
        run = self.seen.run_of(driver)
        jobs = wanted(log.jobs)
        steps = self.assert_owned(run, name, STEP_PROGRAMS * sum(jobs.values()))
        found = collections.Counter((s.task, s.sample) for s in steps)
        self.assertEqual({key: STEP_PROGRAMS * n for key, n in jobs.items()}, dict(found))
        return run

    def check_named(self, name, rule, sample, executions, attempts):
        """Executions of a job whose rule is seen: as many tasks."""
        tasks = self.tasks_by_step(name)[rule, sample]
        self.assertEqual([(rule, sample or None)] * executions, [(t["task"], t["sample"]) for t in tasks])
        self.assertEqual(attempts, [t["attempt"] for t in tasks])


class LocalTest:
    """Once for each version; see below."""

    @classmethod
    def play(cls):
        s = cls.snakemake = Snakemake(cls.folder("sm"), cls.program())
        cls.driver = ended_well(s.start("first"))
        cls.log = s.log()
        cls.failing = ended_well(s.start("second", "bad"), 1)
        cls.failed_log = s.log()

    def test_the_pipeline_ran_as_written(self):
        self.assertEqual({("prep", "A"): 1, ("prep", "B"): 1, ("sorted", "A"): 1, ("sorted", "B"): 1, ("flaky", "A"): 2,
                          ("flaky", "B"): 2, ("counted", "A"): 1, ("counted", "B"): 1, ("scripted", ""): 1},
                         wanted(self.log.jobs))
        self.assertEqual(2, len(self.log.restarted), self.log.restarted)
        self.assertEqual([("bad", "")], list(wanted(self.failed_log.jobs)))

    def test_programs_by_rule_are_those_of_the_log(self):
        run = self.check_owned(self.driver, "first", self.log)
        self.assert_ended(run, 0, "snakemake")
        self.assert_sums(run)
        run = self.check_owned(self.failing, "second", self.failed_log)
        self.assert_ended(run, 1, "snakemake")
        self.assertEqual(2, len({self.seen.run_of(d)["run_id"] for d in (self.driver, self.failing)}))

    def test_each_execution_is_a_task_of_its_own(self):
        run = self.seen.run_of(self.driver)
        by_step = self.tasks_by_step("first")
        self.assertEqual(wanted(self.log.jobs), {key: len(tasks) for key, tasks in by_step.items()}, self.seen.describe(run))
        ids = [t["task_id"] for tasks in by_step.values() for t in tasks]
        self.assertEqual(len(ids), len(set(ids)))
        for task in (t for tasks in by_step.values() for t in tasks):
            self.assertEqual(("END", "snakemake", self.snakemake.folder), (task["phase"], task["engine"], task["work_dir"]))

    def test_statuses_are_those_of_the_log(self):
        by_step = self.tasks_by_step("first")
        for sample in "AB":
            self.assertEqual([1, 0], [t["exit_code"] for t in by_step["flaky", sample]])
        self.assertEqual({0}, {t["exit_code"] for (rule, _), tasks in by_step.items() for t in tasks if rule != "flaky"})
        self.assertEqual([42], [t["exit_code"] for t in self.tasks_by_step("second")["bad", ""]])

    def test_a_rule_that_is_seen_names_the_task(self):
        for sample in "AB":
            self.check_named("first", "counted", sample, 1, [1])

    def test_a_rule_that_is_hidden_is_null(self):
        """The task of a `shell:` rule is called by what it runs; no sample is made up."""
        rules = {"prep", "sorted", "flaky", "counted", "bad"}
        for (rule, sample), tasks in {**self.tasks_by_step("first"), **self.tasks_by_step("second")}.items():
            for task in tasks:
                if rule in ("prep", "sorted", "flaky", "bad"):
                    self.assertNotIn(task["task"], rules)
                    self.assertIsNone(task["sample"], task)
                    self.assertTrue(task["task"])
                    self.assertLess(task["confidence"], 0.9)
                if rule == "scripted":
                    self.assertIn("scripted", task["task"])

    def test_the_solver_is_overhead(self):
        run = self.seen.run_of(self.driver)
        solvers = [p for p in self.seen.programs_of(run) if os.path.basename(p["exe"] or "").startswith("cbc") and not p["forked"]]
        for p in solvers:
            self.assertTrue(p["overhead"], p["argv"])
            self.assertIsNone(p["task_id"], p["argv"])
        # Nothing but the driver, its own chatter and tasks is in the run.
        for p in self.seen.programs_of(run):
            if p["task_id"] is None and not p["overhead"]:
                self.assertEqual(self.driver.pid, p["pid"], f"{p['argv']}\n{self.seen.describe(run)}")
        if self.has_solver:
            self.assertTrue(solvers, self.seen.describe(run))


class Debian(LocalTest, SnakemakeTest):
    has_solver = True

    @classmethod
    def program(cls):
        return DEBIAN


class Newest(LocalTest, SnakemakeTest):
    has_solver = False

    @classmethod
    def program(cls):
        return newest()


class RecordedTest:
    """Once for each version: with what Snakemake keeps of its jobs, a local job is named after its rule."""

    agent_keys = {"engines": {"headers": True}}

    @classmethod
    def play(cls):
        s = cls.snakemake = Snakemake(cls.folder("sm"), cls.program())
        ended_well(s.start("first"))
        cls.log = s.log()
        ended_well(s.start("second", "bad"), 1)
        quiet = Snakemake(cls.folder("quiet"), cls.program())
        lasts = os.path.join(quiet.folder, "lasts")
        with open(lasts, "w") as f:
            f.write("sleep 3\n")
        ended_well(quiet.start("third", "--quiet", "rules", gate=lasts))
        hidden = Snakemake(cls.folder("hidden"), cls.program())
        ended_well(hidden.start("fourth", "out/A.hidden", "out/A.drunk", gate=lasts))

    def test_each_job_has_rule_and_sample(self):
        for (rule, sample), executions in wanted(self.log.jobs).items():
            tasks = self.tasks_by_step("first")[rule, sample]
            # A script's output is not in its command, nor the command in its record.
            if rule != "scripted":
                self.assertEqual([(rule, sample or None)] * executions, [(t["task"], t["sample"]) for t in tasks])

    def test_its_programs_have_them_too(self):
        """As soon as they end, most have what the log had when they began."""
        steps = [s for s in self.seen.steps("first") if s.task != "scripted"]
        named = [s for s in steps if (s.program["task"], s.program["sample"]) == (s.task, s.sample)]
        self.assertGreater(len(named), len(steps) / 2)

    def test_a_job_that_fails_has_its_rule(self):
        self.assertEqual([("bad", 42)], [(t["task"], t["exit_code"]) for t in self.tasks_by_step("second")["bad", ""]])

    def test_the_evidence_is_its_record(self):
        for sample in "AB":
            self.assertEqual(["snakemake's record of the job"], [t["source"] for t in self.tasks_by_step("first")["prep", sample]])

    def test_without_rules_in_the_log_a_job_has_its_rule_at_its_end(self):
        """By the records of outputs alone, which have no wildcards. Its output has to be seen while it is incomplete."""
        for sample in "AB":
            self.assertEqual([("prep", None)], [(t["task"], t["sample"]) for t in self.tasks_by_step("third")["prep", sample]])

    def test_a_job_with_a_message_has_its_rule_at_its_end(self):
        """Its log has the message in place of rule and wildcards."""
        self.assertEqual([("hidden", None)], [(t["task"], t["sample"]) for t in self.tasks_by_step("fourth")["hidden", "A"]])

    def test_a_job_with_a_message_never_has_the_name_of_another(self):
        steps = [s for s in self.seen.steps("fourth") if s.task == "hidden"]
        self.assertEqual(STEP_PROGRAMS, len(steps))
        for s in steps:
            self.assertNotIn(s.program["task"], {"prep", "sorted", "flaky", "counted", "poured", "drunk", "bad"})

    def test_of_jobs_that_a_pipe_connects_the_last_has_rule_and_sample(self):
        self.assertEqual([("drunk", "A")], [(t["task"], t["sample"]) for t in self.tasks_by_step("fourth")["drunk", "A"]])

    def test_of_jobs_that_a_pipe_connects_the_first_never_has_the_name_of_the_last(self):
        """The pipe is in the commands of both, and the first one's record is written when the last one ends."""
        self.assertIn([t["task"] for t in self.tasks_by_step("fourth")["poured", "A"]], (["poured"], ["step.sh"]))


class DebianRecorded(RecordedTest, SnakemakeTest):
    @classmethod
    def program(cls):
        return DEBIAN


class NewestRecorded(RecordedTest, SnakemakeTest):
    @classmethod
    def program(cls):
        return newest()


class OfAnotherUser(SnakemakeTest):
    """
    Files of another user name nothing, else a user could read in own records what that one's files have; nor do any
    files by a link, which the reader would follow with more rights than the user has.
    """

    agent_keys = {"engines": {"headers": True}}
    refused = {("reader", "read_refused")}

    @classmethod
    def play(cls):
        for name, uid in (("own", NOBODY), ("others", 0), ("linked", NOBODY)):
            folder = cls.folder(name)
            if name == "linked":
                os.symlink(cls.folder("target"), os.path.join(folder, ".snakemake"))
            log = os.path.join(folder, ".snakemake", "log", "2026-01-02T030405.678901.snakemake.log")
            os.makedirs(os.path.dirname(log))
            with open(log, "w") as f:
                f.write("[Sun Nov 29 16:54:15 2026]\nrule named:\n    output: out\n    jobid: 1\n    wildcards: sample=S\n")
            os.chown(log, uid, uid)
            later = time.time() + 60
            os.utime(log, (later, later))
            driver = os.path.join(folder, "snakemake")
            with open(driver, "w") as f:
                f.write("import subprocess, sys\nsubprocess.run(['/bin/bash', '-c', sys.argv[1]], check=True)\n")
            ended_well(Driver(["/usr/bin/python3", driver, f"set -euo pipefail;  sh {STEP} step:{owner(name)}/named/S out 10"],
                              folder, user=NOBODY))

    def test_a_file_names_programs_of_its_owner_alone(self):
        found = {name: self.tasks_by_step(name)["named", "S"] for name in ("own", "others", "linked")}
        self.assertEqual([("named", "S")], [(t["task"], t["sample"]) for t in found["own"]])
        for name in ("others", "linked"):
            self.assertEqual([None], [t["sample"] for t in found[name]])
            self.assertNotEqual("named", found[name][0]["task"])

    def test_what_is_refused_is_counted(self):
        self.assertIn(("reader", "read_refused"), [loss[:2] for loss in harness.losses(self.seen.topics)])


class OnSlurm(SnakemakeTest):
    """Each job is a Snakemake that slurmd starts: rule, wildcards and attempt are seen of all of them."""

    @classmethod
    def play(cls):
        with Slurm() as slurm:
            s = cls.snakemake = Snakemake(cls.folder("sm"), newest())
            os.mkdir(os.path.join(s.folder, "slog"))
            cls.driver = ended_well(s.start(
                "queued", "--jobs", "4", "--executor", "cluster-generic", "--cluster-generic-submit-cmd",
                "sbatch --parsable -J {rule}.{jobid} -o slog/%j.out", "--cluster-generic-status-cmd",
                f"sh {s.folder}/status.sh", "--seconds-between-status-checks", "1", "--latency-wait", "5", cores=None,
                env={"SLURM_CONF": slurm.config}), timeout=200)
            cls.log = s.log()
            cls.jobs = slurm.completions()
            # A job is a Snakemake with a log of its own, and tries again by itself what fails.
            texts = (machine.tail(os.path.join(s.folder, "slog", f"{job}.out"), 1 << 20) for job in cls.jobs)
            cls.inner = Log("\n".join(texts))

    def test_the_pipeline_ran_as_written(self):
        self.assertEqual({("prep", "A"): 1, ("prep", "B"): 1, ("sorted", "A"): 1, ("sorted", "B"): 1, ("flaky", "A"): 1,
                          ("flaky", "B"): 1, ("counted", "A"): 1, ("counted", "B"): 1, ("scripted", ""): 1},
                         wanted(self.log.jobs))
        self.assertEqual(2, wanted(self.inner.jobs)["flaky", "A"])

    def test_programs_by_rule_are_those_of_the_logs(self):
        run = self.check_owned(self.driver, "queued", self.inner)
        self.assert_ended(run, 0, "snakemake")

    def test_every_rule_names_its_task(self):
        for (rule, sample), executions in wanted(self.log.jobs).items():
            self.check_named("queued", rule, sample, executions, [1] * executions)

    def test_jobs_are_those_of_slurm(self):
        steps = self.seen.steps("queued")
        found = {s.program["job_id"]: s.task for s in steps}
        self.assertEqual({str(job): line["Name"].split(".")[0] for job, line in self.jobs.items()}, found)
        self.assertEqual({"slurm"}, {s.program["scheduler"] for s in steps})


if __name__ == "__main__":
    harness.main()
