# SPDX-License-Identifier: Apache-2.0
"""Jobs of a real Slurm: what the records say of them against what Slurm itself says."""
import calendar
import os
import re
import secrets
import shlex
import tempfile
import time

import harness
from systems import machine, rootfs
from systems.gate import Gate
from systems.recorded import SystemTest, ended, new_mark
from systems.runc import Runc
from systems.slurm import Slurm

MIB = 1 << 20


def slurm_time(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


class SlurmTest(SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = Slurm()
        cls.addClassCleanup(cls.slurm.close)
        cls.slurm.__enter__()

    def gate(self, name):
        gate = Gate(self.room, name)
        self.addCleanup(gate.close)
        return gate

    def start(self):
        """
        With the agent self.live, a line of scripts: what a job asked for is read in the files of its control groups,
        which the job takes with it. There it waits until they were read.
        """
        agent, gate = super().start(), self.gate("live")
        self.live = f". {gate.path}"
        self.enterContext(gate.kept(agent.settle))
        return agent

    # --- what the records have of a job ---

    def batch(self, records, job):
        """END of the batch script's first program."""
        script = f"{self.slurm.at}/spool/job{int(job):05d}/slurm_script"
        found = [r for r in records.ends.values() if script in (r["argv"] or [])[:2] and not r["forked"]]
        self.assertEqual(1, len(found), script)
        return found[0]

    def programs(self, records, job):
        """ENDs of all that ran in the control groups of a job, for any other values of their records."""
        return [r for r in records.ends.values() if any(f"/job_{job}/" in p for p in self.paths(r))]

    def check_job(self, records, job, steps=("batch",), memory=None):
        """One job as scontrol shows it; its run_id."""
        name = job["JobId"]
        programs = self.programs(records, name)
        run_id = self.batch(records, name)["run_id"]
        self.assertIsNotNone(run_id)
        self.assert_all(records.both(programs), scheduler="slurm", job_id=name, run_id=run_id)
        self.assert_all(records.both(records.family(self.batch(records, name))), job_step="batch", run_id=run_id)
        self.assertEqual(set(steps), {r["job_step"] for r in programs if r["job_step"]})
        of_run = [r for r in records.ends.values() if r["run_id"] == run_id]
        self.assert_all(of_run, job_id=name)

        run = self.one_work(records, "run", run_id=run_id)
        uid = int(re.search(r"\((\d+)\)", job["UserId"])[1])
        self.assertEqual(("slurm", "slurm", name, uid), (run["engine"], run["scheduler"], run["job_id"], run["uid"]))
        self.assertEqual(len(of_run), run["programs"])
        self.assertEqual(sum(1 for r in of_run if r["exit_signal"] or r["exit_code"]), run["failed_programs"])
        self.assertEqual(0, run["live_programs"])
        self.check_asked(run, job, memory)
        # Slurm counts in seconds, and knows of an end a little later.
        self.assertGreaterEqual(run["start_time"] / 1e6, slurm_time(job["StartTime"]) - 1)
        self.assertLessEqual(run["end_time"] / 1e6, slurm_time(job["EndTime"]) + 2)

        tasks = {step: self.one_work(records, "task", run_id=run_id, task_id=f"{name}.{step}") for step in steps}
        self.assertEqual(len(steps), len(records.works("task", run_id=run_id)))
        for step, task in tasks.items():
            self.assertEqual(sum(1 for r in of_run if r["task_id"] == task["task_id"]), task["programs"], step)
            self.check_asked(task, job, memory)
        return run_id

    def one_work(self, records, topic, **fields):
        """END of a run or task that has one START, one END and nothing behind the END."""
        phases = [r["phase"] for r in records.topics.get("sluice." + topic, []) if all(r[k] == v for k, v in fields.items())]
        self.assertEqual(["START", "END"], [p for p in phases if p != "LIVE"], (topic, fields))
        self.assertEqual("END", phases[-1], (topic, fields))
        return records.works(topic, **fields)[0]

    def check_asked(self, work, job, memory):
        cpus = int(job["NumCPUs"])
        self.assertEqual(None if cpus == os.cpu_count() else cpus, work["requested_cpus"])
        if memory is not None:
            self.assertEqual(memory, work["requested_memory_bytes"])

    def check_status(self, records, run_id, job):
        """The run ended as scontrol reports, and the batch script's process, whichever program it was at its end."""
        code, signal = map(int, job["ExitCode"].split(":"))
        expected = (None, signal) if signal else (code, None)
        run = self.one_work(records, "run", run_id=run_id)
        self.assertEqual(expected, (run["exit_code"], run["exit_signal"]), job)
        script = self.batch(records, job["JobId"])
        last = max((r for r in records.ends.values() if (r["pid"], r["start_time"]) == (script["pid"], script["start_time"])),
                   key=lambda r: r["program_index"])
        self.assertEqual(expected, (last["exit_code"], last["exit_signal"]), job)


class Jobs(SlurmTest):
    def test_an_array_of_three_with_a_step_each(self):
        self.start()
        mark = new_mark()
        array = self.slurm.sbatch(f"""#!/bin/sh
{self.live}
/bin/true {mark} batch $SLURM_JOB_ID
srun -n1 /bin/sh -c '{self.live}; /bin/true {mark} step $SLURM_JOB_ID $SLURM_STEP_ID; exit 0'
exit $((SLURM_ARRAY_TASK_ID == 2 ? 3 : 0))
""", "-J", "arr", "-a", "1-3", "-n1", "--mem=100")
        jobs = self.slurm.wait(array)
        told = self.slurm.completions()
        records = self.stop()
        self.assertEqual({"1": "0:0", "2": "3:0", "3": "0:0"}, {j["ArrayTaskId"]: j["ExitCode"] for j in jobs})
        runs = set()
        for job in jobs:
            name = job["JobId"]
            self.assertEqual(told[int(name)]["ExitCode"], job["ExitCode"])
            # Slurm gave these numbers to the programs themselves.
            first, = records.marked(mark, "batch", name)
            self.assert_all(records.both([first]), job_id=name, job_step="batch", task_id=f"{name}.batch")
            step, = records.marked(mark, "step", name, "0")
            self.assert_all(records.both([step]), job_id=name, job_step="0", task_id=f"{name}.0")
            run_id = self.check_job(records, job, ("batch", "0"), 100 * MIB)
            self.check_status(records, run_id, job)
            task = self.one_work(records, "task", run_id=run_id, task_id=f"{name}.0")
            self.assertEqual(0, task["exit_code"])
            runs.add(run_id)
        self.assertEqual(3, len(runs))

    def test_known_tools_of_a_batch_job(self):
        self.start()
        job = self.slurm.sbatch(f"""#!/bin/bash
set -e
mkdir tools; cd tools
printf '>chr1\\n%s\\n' "$(printf 'ACGT%.0s' $(seq 500))" >ref.fa
{self.live}
samtools faidx ref.fa
bwa index ref.fa
printf '@r\\nACGTACGTACGTACGTACGTACGTACGTACGT\\n+\\nIIIIIIIIIIIIIIIIIIIIIIIIIIIIIIII\\n' >r.fq
bwa mem ref.fa r.fq | samtools sort -o r.bam -
""", "-n1", "--mem=200")
        shown, = self.slurm.wait(job)
        records = self.stop()
        self.assertEqual("0:0", shown["ExitCode"], self.slurm.output(job))
        run_id = self.check_job(records, shown, memory=200 * MIB)
        self.check_status(records, run_id, shown)
        tools = {r["tool"]: r["exit_code"] for r in records.ends.values() if r["run_id"] == run_id}
        for tool in ("samtools faidx", "bwa index", "bwa mem", "samtools sort"):
            self.assertEqual(0, tools.get(tool), tools)

    def test_two_users_and_the_same_one_twice(self):
        self.start()
        script = f"#!/bin/sh\n{self.live}\n/usr/bin/id -u\n"
        jobs = [self.slurm.sbatch(script, "-n1", "--mem=50", "-J", "same", uid=uid) for uid in (None, None, 65534)]
        shown = [self.slurm.wait(job)[0] for job in jobs]
        records = self.stop()
        runs = [self.check_job(records, s, memory=50 * MIB) for s in shown]
        self.assertEqual(3, len(set(runs)))
        for job, run_id, uid in zip(jobs, runs, (0, 0, 65534)):
            self.assertEqual(f"{uid}\n", self.slurm.output(job))
            self.assertEqual(uid, self.one_work(records, "run", run_id=run_id)["uid"])
            self.assert_all(records.family(self.batch(records, job)), uid=uid)

    def test_ends_of_every_kind(self):
        self.start()

        def submit(script):
            return self.slurm.sbatch(f"#!/bin/sh\n{self.live}\n{script}\n", "-n1", "--mem=50")
        failed = submit("exit 5")
        killed = submit("kill -9 $$")
        memory = submit("exec dd if=/dev/zero of=/dev/null bs=300M count=1")
        step = submit(f"srun -n1 /bin/sh -c '{self.live}; kill -SEGV $$'")
        gate = self.gate("cancelled")
        cancelled = submit(f". {gate.path}; exec /bin/sleep 600")
        pid, = machine.wait_until(gate.pids, 120, "job that is to be cancelled")
        gate.open()
        machine.wait_until(lambda: machine.comm(pid) == "sleep", 60, "program of the job that is to be cancelled")
        self.slurm("scancel", cancelled)
        shown = {job: self.slurm.wait(job)[0] for job in (failed, killed, memory, step, cancelled)}
        records = self.stop()
        self.assertEqual([("FAILED", "5:0"), ("FAILED", "0:9"), ("OUT_OF_MEMORY", "0:125"), ("FAILED", "139:0"), ("CANCELLED", "0:15")],
                         [(s["JobState"], s["ExitCode"]) for s in shown.values()])
        runs = {job: self.check_job(records, s, ("batch", "0") if job == step else ("batch",), 50 * MIB) for job, s in shown.items()}
        for job in (failed, killed, step, cancelled):
            self.check_status(records, runs[job], shown[job])
        # Slurm's 125 means "out of memory"; the kernel's signal is the truth.
        self.assert_all(records.works("run", run_id=runs[memory]), exit_signal=9, exit_code=None)
        self.assertEqual([("dd", -9, True)], [(r["comm"], -r["exit_signal"], r["oom_killed"])
                                              for r in self.programs(records, memory) if r["exit_signal"]])
        self.assert_all(records.works("task", run_id=runs[step], task_id=f"{step}.0"), exit_signal=11)

    def submit_ten(self, mark):
        """The gate at which a job waits that starts ten programs, numbered, five before it and five behind, and ends with 4; the job."""
        gate = self.gate("ten")
        job = self.slurm.sbatch(f"""#!/bin/sh
for i in 1 2 3 4 5; do /bin/true {mark} $i; done
. {gate.path}
for i in 6 7 8 9 10; do /bin/true {mark} $i; done
exit 4
""", "-n1", "--mem=50")
        machine.wait_until(gate.pids, 120, "job at the gate")
        return gate, job

    def check_ten(self, records, job, mark, first):
        """All programs are there, of the numbered ones those from a number up to first on; all are of the one job."""
        shown, = self.slurm.show(job)
        self.assertEqual("4:0", shown["ExitCode"])
        script = self.batch(records, job)
        self.assertIsNotNone(script["run_id"])
        self.assert_all(records.both(records.family(script)), scheduler="slurm", job_id=str(job), job_step="batch",
                        task_id=f"{job}.batch", run_id=script["run_id"])
        numbers = sorted(int(r["argv"][-1]) for r in records.marked(mark))
        self.assertEqual(list(range(numbers[0], 11)), numbers)
        self.assertLessEqual(numbers[0], first)
        run, = records.works("run", job_id=str(job))
        self.assertEqual((script["run_id"], 4, None), (run["run_id"], run["exit_code"], run["exit_signal"]))
        task, = records.works("task", run_id=script["run_id"])
        self.assertEqual((f"{job}.batch", 4, None), (task["task_id"], task["exit_code"], task["exit_signal"]))
        return script

    def test_a_job_that_runs_already(self):
        mark = new_mark()
        gate, job = self.submit_ten(mark)
        self.start()
        gate.open()
        self.slurm.wait(job)
        script = self.check_ten(self.stop(), job, mark, 6)
        self.assertIsNotNone(script["observed_time"])

    def test_an_agent_that_is_killed_during_a_job(self):
        mark = new_mark()
        agent = self.start()
        gate, job = self.submit_ten(mark)
        agent.kill9()
        gate.open()
        agent.start()
        self.slurm.wait(job)
        self.check_ten(self.stop(), job, mark, 1)


class Nested(SlurmTest):
    """A container in a job: the job is the scheduler's, the container the innermost."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        room = tempfile.TemporaryDirectory(prefix="sluice-root-")
        cls.addClassCleanup(room.cleanup)
        os.chmod(room.name, 0o755)
        cls.runc = Runc(rootfs.make_root(os.path.join(room.name, "root")))
        cls.addClassCleanup(cls.runc.close)

    def run_in_job(self, cgroup):
        """A job of one container that ends with 6; (records, the job, END of the container's program)."""
        self.start()
        argv = ["/bin/sh", "-c", '/bin/true "$0"; exit 6', new_mark()]
        name = "box-" + argv[-1]
        command = self.runc.command(name, self.runc.bundle(name, argv, cgroup=cgroup))
        job = self.slurm.sbatch(f"#!/bin/sh\n{shlex.join(command)}\n", "-n1", "--mem=300")
        shown, = self.slurm.wait(job)
        self.assertEqual("6:0", shown["ExitCode"], self.slurm.output(job))
        records = self.stop()
        return records, shown, records.only(argv)

    def check_inside(self, records, job, box, container):
        family = records.family(box)
        self.assertEqual([("sh", 6), ("true", 0)], ended(family))
        self.assert_all(records.both(family), container_id=container, container_runtime="docker", scheduler="slurm",
                        job_id=job["JobId"], job_step="batch", run_id=self.batch(records, job["JobId"])["run_id"])

    def test_in_a_control_group_below_the_job_s(self):
        container = secrets.token_hex(32)
        records, job, box = self.run_in_job(f"docker-{container}.scope")
        self.assert_cgroup([box], rf"/job_{job['JobId']}/.*/docker-{container}\.scope$")
        self.check_inside(records, job, box, container)

    def test_in_a_control_group_beside_the_job_s(self):
        # As a runtime does that knows nothing of the scheduler: only descent still shows the job.
        container = secrets.token_hex(32)
        records, job, box = self.run_in_job(f"/docker/{container}")
        self.assert_cgroup([box], rf"^/docker/{container}$")
        self.check_inside(records, job, box, container)


if __name__ == "__main__":
    harness.main()
