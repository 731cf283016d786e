# SPDX-License-Identifier: Apache-2.0
"""Nextflow's tasks are in the lake as trace.txt has them, with figures at least as large."""
import os
import shlex

import harness
import side_by_side
from seen import SeenTest
from systems import machine, rootfs
from systems.docker import Dockerd
from systems.driver import ended_well
from systems.gate import Gate
from systems.nextflow import Nextflow
from systems.podman import Podman
from systems.slurm import Slurm

DELAYS = ("block_io", "swapin", "reclaim", "thrashing", "compact")
HEADERS = {"engines": {"headers": True}}  # a task's name is in the first lines of its .command.run


class NextflowTest(SeenTest):
    """names: of the runs that play() made with cls.nextflow; cls.drivers has their drivers by name."""

    agent_keys = HEADERS
    names = ()

    @classmethod
    def run_of(cls, name):
        return cls.seen.run_of(cls.drivers[name])

    @classmethod
    def tasks_by_hash(cls, name):
        """{hash as trace.txt cuts it: Task}."""
        return {t["task_id"][:9]: t for t in cls.seen.tasks_of(cls.run_of(name)) if t["task_id"]}

    @classmethod
    def pairs(cls, name):
        """[(row of trace.txt, Task record)] of what ran."""
        tasks = cls.tasks_by_hash(name)
        return [(row, tasks[row["hash"]]) for row in cls.nextflow.ran(name)]

    def check_names(self, has_exit=lambda row: row["exit"] is not None):
        for name in self.names:
            rows = self.nextflow.ran(name)
            run = self.run_of(name)
            tasks = self.tasks_by_hash(name)
            self.assertTrue(rows)
            self.assertEqual({row["hash"] for row in rows}, set(tasks), self.seen.describe(run))
            self.assertEqual(len(rows), len(self.seen.tasks_of(run)), self.seen.describe(run))
            for row in rows:
                task = tasks[row["hash"]]
                self.assertEqual("END", task["phase"], row)
                self.assertEqual((row["process"], row["tag"], row["attempt"], row["workdir"]),
                                 (task["task"], task["sample"], task["attempt"], task["work_dir"]), row)
                self.assertTrue(row["workdir"].endswith("/work/" + task["task_id"]), (row["workdir"], task["task_id"]))
                self.assertEqual("nextflow", task["engine"])
                if has_exit(row):
                    self.assertEqual((row["exit"], None), (task["exit_code"], task["exit_signal"]), row)

    def check_runs(self, statuses):
        """{name: exit status}."""
        for name, status in statuses.items():
            run = self.run_of(name)
            self.assert_ended(run, status, "nextflow")
            self.assertEqual(name, run["run_name"])
            self.assertIn("nextflow.cli.Launcher", run["command"])
            self.assert_sums(run)
        self.assertEqual(len(statuses), len({self.run_of(name)["run_id"] for name in statuses}))

    def check_steps(self, name, owner):
        """Each step program of the run is in the task and of the sample that it says; owner: the run in its arguments."""
        run = self.run_of(name)
        steps = [s for s in self.seen.steps(owner) if s.program["run_id"] == run["run_id"]]
        self.assertTrue(steps, self.seen.describe(run))
        for s in steps:
            p = s.program
            self.assertEqual((s.task, s.sample or None), (p["task"], p["sample"]), p["argv"])
            self.assertFalse(p["overhead"], p["argv"])
            self.assertEqual(run["pipeline"], p["pipeline"])
        self.assertEqual([], [p["argv"] for p in self.seen.programs_of(run)
                              if p["task_id"] is None and not p["overhead"] and not self.is_driver(p, name)])
        return steps

    def is_driver(self, program, name):
        """Nextflow's own process, or something that it started and that is no task's."""
        return ".command.run" not in " ".join(program["argv"] or [])

    def check_chatter(self):
        """What the wrapper polls with is Nextflow's, not the task's."""
        for name in self.names:
            run = self.run_of(name)
            for p in self.seen.programs_of(run):
                argv = p["argv"] or [""]
                is_poll = argv[:4] == ["ps", "-e", "-o", "pid="] or (argv[0] == "tee" and argv[1][:8] == ".command")
                if is_poll and not p["forked"]:
                    self.assertTrue(p["overhead"], argv)
                if p["overhead"]:
                    self.assertIsNone(p["task_id"], argv)
            self.assertTrue(any(p["overhead"] for p in self.seen.programs_of(run)), self.seen.describe(run))


class Local(NextflowTest):
    """A run with failures and a retry, the same again with -resume, and one that fails."""

    names = ("one", "two", "three")

    @classmethod
    def play(cls):
        n = cls.nextflow = Nextflow(cls.folder("nf"))
        cls.drivers = {"one": ended_well(n.start("main.nf", "one"))}
        cls.drivers["two"] = ended_well(n.start("main.nf", "two", "-resume", run="one", failing="false", samples="S1,S2,S3"))
        gate = Gate(cls.room)
        cls.addClassCleanup(gate.close)
        failing = cls.drivers["three"] = n.start("fail.nf", "three", gate=gate.path)
        # What still runs as FATAL fails is ended with it: KILLED is to be in trace.txt by then.
        failing.wait_for(lambda: any(row["process"] == "KILLED" for row in n.trace("three")), 120, "row of KILLED in trace.txt")
        gate.open()
        ended_well(failing, 1)

    def test_the_pipeline_ran_as_written(self):
        """Or all that follows would say little."""
        one, two, three = (self.nextflow.trace(name) for name in self.names)
        self.assertEqual(2 * 5 + 2, len(one), one)
        self.assertEqual([3, 3], [r["exit"] for r in one if r["process"] == "FLAKY" and r["attempt"] == 1])
        self.assertEqual([0, 0], [r["exit"] for r in one if r["process"] == "FLAKY" and r["attempt"] == 2])
        self.assertEqual([42], [r["exit"] for r in one if r["process"] == "IGNORED"])
        self.assertEqual(8, len([r for r in two if r["status"] == "CACHED"]), two)
        self.assertEqual({"S3", None}, {r["tag"] for r in self.nextflow.ran("two")})
        self.assertEqual({"FINE": 0, "KILLED": 137, "FATAL": 42}, {r["process"]: r["exit"] for r in three})
        self.assertEqual(["OK", "OK", "ERR"], [self.nextflow.history()[name]["status"] for name in self.names])

    def test_tasks_are_those_of_trace_txt(self):
        self.check_names()

    def test_cached_tasks_never_ran(self):
        cached = {r["hash"] for r in self.nextflow.trace("two") if r["status"] == "CACHED"}
        self.assertTrue(cached)
        self.assertEqual(set(), cached & set(self.tasks_by_hash("two")))
        self.assertEqual(cached, cached & set(self.tasks_by_hash("one")))

    def test_runs_are_three(self):
        self.check_runs({"one": 0, "two": 0, "three": 1})

    def test_native_id_is_the_wrapper(self):
        for name in self.names:
            for row, task in self.pairs(name):
                programs = [p for p in self.seen.of_pid(int(row["native_id"]), self.drivers[name].started_us)
                            if p["task_id"] == task["task_id"]]
                self.assertTrue(programs, row)
                self.assertEqual([row["workdir"]], sorted({p["cwd"] for p in programs}), row)
                self.assertTrue(any(".command.run" in a for a in programs[0]["argv"]), programs[0]["argv"])

    def test_figures_are_at_least_those_of_trace_txt(self):
        wrong = []
        for name in self.names:
            for row, task in self.pairs(name):
                if row["status"] != "ABORTED":
                    wrong += side_by_side.shortfalls(row, task, self.seen.programs_of_task(task), self.seen.helpers_of(task))
        self.assertEqual([], wrong)
        # What this test knows by itself: bytes that ALIGN moved, and that Nextflow's figures were there to compare.
        for row, task in self.pairs("one"):
            if row["process"] == "PREP:ALIGN":
                self.assertGreaterEqual(task["usage"]["rchar"], 2 * 24000000)
                self.assertGreaterEqual(task["usage"]["wchar"], 2 * 24000000)
                self.assertGreater(side_by_side.cpu_ms_of_trace(row), 100)
                self.assertGreater(row["rchar"], 2 * 24000000)

    def test_short_tasks_have_all_figures(self):
        quick = [(row, task) for row, task in self.pairs("one") if row["process"] == "PREP:QUICK"]
        self.assertEqual(2, len(quick))
        for _, task in quick:
            missing = {field for field, value in task["usage"].items() if value is None}
            # What is resident after the end is nothing; without delay accounting no kernel has delays.
            self.assertEqual(set(), missing - {"rss_bytes", *(f"{kind}_delay_ns" for kind in DELAYS)})
            self.assertGreater(task["usage"]["cpu_user_ns"] + task["usage"]["cpu_system_ns"], 0)
            self.assertGreater(task["usage"]["peak_rss_bytes"], 1000000)
            self.assertGreater(task["wall_ns"], 0)

    def test_programs_are_where_they_say(self):
        self.check_steps("three", "three")
        for name in ("one", "two"):  # the programs of both say "one", or nothing would have been cached
            self.check_steps(name, "one")
        self.assertEqual({"S3", ""}, {s.sample for s in self.seen.steps("one")
                                      if s.program["run_id"] == self.run_of("two")["run_id"]})
        runs = {self.run_of(name)["run_id"] for name in self.names}
        self.assertEqual(runs, {s.program["run_id"] for s in self.seen.steps() if s.run in self.names})

    def test_polling_is_overhead(self):
        self.check_chatter()

    def test_the_page_in_docs_can_be_made(self):
        text = side_by_side.table(self.pairs("one"))
        self.assertEqual(2 + 12, len(text.splitlines()), text)
        print("\n" + text)


class OnSlurm(NextflowTest):
    """Each task is a job that slurmd starts: none descends from Nextflow, and all are in its run."""

    names = ("queued",)

    @classmethod
    def play(cls):
        with Slurm() as slurm:
            n = cls.nextflow = Nextflow(
                cls.folder("nf"), env={"SLURM_CONF": slurm.config}, config="process.executor = 'slurm'\n"
                "executor { queueSize = 4; pollInterval = '500ms'; queueStatInterval = '1s'; exitReadTimeout = '30s'; "
                "submitRateLimit = '20/1s' }")
            cls.drivers = {"queued": ended_well(n.start("main.nf", "queued", failing="false", bytes="1000000"))}
            cls.jobs = {row["native_id"]: slurm.show(row["native_id"])[0] for row in n.trace("queued")}

    def test_tasks_are_those_of_trace_txt(self):
        self.check_names()

    def test_native_id_is_the_job(self):
        for row, task in self.pairs("queued"):
            programs = [p for p in self.seen.programs_of(self.run_of("queued")) if p["task_id"] == task["task_id"]]
            wrong = [(p["argv"], p["scheduler"], p["job_id"], p["cgroup"], p["cgroup_v1"]) for p in programs
                     if (p["scheduler"], p["job_id"]) != ("slurm", row["native_id"])]
            self.assertEqual([], wrong, row)
            self.assertTrue(programs)
            self.assertEqual(("slurm", row["native_id"]), (task["scheduler"], task["job_id"]))
            job = self.jobs[row["native_id"]]
            self.assertEqual((row["workdir"], f"{row['exit']}:0"), (job["WorkDir"], job["ExitCode"]))

    def test_no_task_is_in_another_run(self):
        run = self.run_of("queued")
        self.assertEqual({run["run_id"]}, {s.program["run_id"] for s in self.seen.steps("queued")})
        self.check_steps("queued", "queued")
        self.assert_ended(run, 0, "nextflow")
        work = os.path.join(self.nextflow.folder, "work") + "/"
        self.assertEqual([], [(p["argv"], p["run_id"]) for p in self.seen.programs.values()
                              if (p["cwd"] or "").startswith(work) and p["run_id"] != run["run_id"]])
        self.assertEqual([], [t for t in self.seen.tasks.values()
                              if (t["work_dir"] or "").startswith(work) and t["run_id"] != run["run_id"]])


class InContainers(NextflowTest):
    """Tasks that a container runtime's daemon starts."""

    names = ("docked", "podded")
    runtimes = {"docked": "docker", "podded": "podman"}

    @classmethod
    def play(cls):
        cls.drivers, cls.nextflows = {}, {}
        image = rootfs.make_root(cls.folder("root"), (
            "bash", "sh", "ps", "awk", "grep", "sed", "cat", "ls", "date", "sleep", "tee", "mkdir", "rm", "cp", "mv", "ln",
            "touch", "mkfifo", "chmod", "tail", "head", "tr", "env", "id", "stat", "true", "mktemp", "uname"))
        tar = rootfs.make_tar(image, os.path.join(cls.room, "root.tar"))
        with Dockerd("/docker") as docker:
            docker("import", tar, "tools:1")
            cls.play_in("docked", "docker { enabled = true; runOptions = '--network none' }\nprocess.container = 'tools:1'",
                        {"DOCKER_HOST": docker.env["DOCKER_HOST"], "DOCKER_CONFIG": docker.env["DOCKER_CONFIG"]})
        with Podman() as podman:
            # Nextflow starts podman by name: the one that it finds is given the path of its store.
            at = cls.folder("bin")
            with open(os.path.join(at, "podman"), "w") as f:
                f.write(f"#!/bin/sh\nexec {shlex.join(podman.command())} \"$@\"\n")
            os.chmod(f.name, 0o755)
            name = podman.import_image(tar, "tools:1")
            cls.play_in("podded", f"podman {{ enabled = true; runOptions = '{' '.join(podman.run_options)}' }}\n"
                        f"process.container = '{name}'", {"PATH": f"{at}:{machine.PATH}", "TMPDIR": podman.at})

    @classmethod
    def play_in(cls, name, config, env):
        n = cls.nextflows[name] = Nextflow(cls.folder(name), config=config, env=env)
        cls.drivers[name] = ended_well(n.start("plain.nf", name))

    def test_tasks_are_those_of_trace_txt(self):
        names = self.names
        for name in names:
            self.nextflow, self.names = self.nextflows[name], (name,)
            self.check_names()
            self.check_steps(name, name)
            self.assert_ended(self.run_of(name), 0, "nextflow")

    def test_their_programs_ran_in_the_container(self):
        for name in self.names:
            steps = self.seen.steps(name)
            self.assertEqual(2, len(steps), self.seen.describe(self.run_of(name)))
            ids = {s.program["container_id"] for s in steps}
            self.assertEqual(2, len(ids - {None}), ids)
            self.assertEqual({self.runtimes[name]}, {s.program["container_runtime"] for s in steps})
            self.assertEqual({self.run_of(name)["run_id"]}, {s.program["run_id"] for s in steps})


if __name__ == "__main__":
    harness.main()
