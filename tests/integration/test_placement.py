# SPDX-License-Identifier: Apache-2.0
"""Jobs and containers, by real control groups and real programs: every path of the fixtures, limits, and arguments."""
import os
import stat
import sys
import unittest

import harness
from systems import machine
from systems.recorded import SystemTest, new_mark

FIXTURES = os.path.join(os.path.dirname(__file__), "..", "fixtures", "cgroup_paths.tsv")
FIELDS = ("scheduler", "job_id", "job_step", None, None, None, None, "container_runtime", "container_id", "k8s_pod_uid")


def fixtures():
    """(path as the kernel has it, {field: value}), those that hold below any folder."""
    with open(FIXTURES) as f:
        for line in f:
            if line.startswith("#"):
                continue
            path, *values = line.rstrip("\n").split("\t")
            if path == "/" or path.startswith(("/default", "/user.slice/user-1000.slice/user@1000.service/")) or \
                    path.endswith("/"):
                continue
            yield harness.unescape(path).decode(), {k: None if v == "-" else v for k, v in zip(FIELDS, values) if k}


class Places(SystemTest):
    def setUp(self):
        super().setUp()
        if not harness.is_root():
            self.skipTest("control groups need root")
        self.folder = f"/sluice-places-{os.getpid()}"
        self.addCleanup(machine.remove_cgroups, self.folder)

    def groups(self, path):
        """Folders of a control group of this path below ours, in v2 and in v1's memory."""
        at = [m + self.folder + path for m in (machine.cgroup_v2(), machine.cgroup_v1("memory")) if m is not None]
        if not at:
            self.skipTest("no hierarchy is mounted here")
        made = []
        for folder in at:
            try:
                os.makedirs(folder, exist_ok=True)
            except OSError:
                continue  # this hierarchy takes no groups from us
            made.append(folder)
        if not made:
            self.skipTest("no hierarchy takes a group from us")
        return made

    def run_in(self, folders, *command):
        """Runs a command that was in these control groups before it began."""
        def move():
            for folder in folders:
                with open(os.path.join(folder, "cgroup.procs"), "w") as f:
                    f.write("0")
        return machine.run(command, preexec_fn=move)

    def told(self, records, mark):
        """The one program of a mark: its END record."""
        found = [r for r in records.marked(mark) if r["comm"] == "true"]
        self.assertEqual(1, len(found), mark)
        return found[0]

    def test_every_path_of_the_fixtures(self):
        cases = [(path, wanted, new_mark()) for path, wanted in fixtures()]
        self.assertGreater(len(cases), 100)
        self.start()
        for path, _, mark in cases:
            self.run_in(self.groups(path), "/bin/true", mark)
        records = self.stop()
        wrong = []
        for path, wanted, mark in cases:
            r = self.told(records, mark)
            self.assert_cgroup([r], self.folder)
            told = {k: r[k] for k in wanted}
            if told != wanted:
                wrong.append(f"{path}: {told}, not {wanted}")
        self.assertEqual([], wrong)

    def limit(self, folder, v1, v2, value):
        for name in (v1, v2):
            path = os.path.join(folder, name)
            if os.path.exists(path):
                with open(path, "w") as f:
                    f.write(value)
                return True
        return False

    def test_a_job_has_the_limits_of_its_group_as_its_request(self):
        job = f"/slurm/uid_{os.getpid()}/job_{os.getpid()}"
        memory = self.groups(job + "/step_batch/task_0")
        if not any([self.limit(os.path.dirname(os.path.dirname(x)), "memory.limit_in_bytes", "memory.max", str(96 << 20))
                    for x in memory]):
            self.skipTest("no hierarchy here limits memory")
        has_cpus = False
        cpu = machine.cgroup_v1("cpu")
        if cpu is not None:
            at = cpu + self.folder + job
            os.makedirs(at, exist_ok=True)
            has_cpus = self.limit(at, "cpu.cfs_quota_us", "cpu.max", "50000")
        self.start()
        mark = new_mark()
        self.run_in(memory, "/bin/sh", "-c", "/bin/true $0; exit 0", mark)
        records = self.stop()
        r = self.told(records, mark)
        self.assertEqual(("slurm", str(os.getpid()), "batch"), (r["scheduler"], r["job_id"], r["job_step"]))
        runs = records.works("run", scheduler="slurm", job_id=str(os.getpid()))
        self.assertEqual(1, len(runs), records.topics.get("sluice.run"))
        self.assertEqual(r["run_id"], runs[0]["run_id"])
        self.assertEqual(96 << 20, runs[0]["requested_memory_bytes"])
        if has_cpus:
            self.assertEqual(0.5, runs[0]["requested_cpus"])

    def test_a_step_that_is_alone_in_its_group_has_what_the_kernel_counted(self):
        groups = self.groups(f"/slurm/uid_{os.getpid()}/job_{os.getpid()}/step_0/task_0")
        paths = [os.path.join(g, name) for g in groups for name in ("memory.peak", "memory.max_usage_in_bytes")]
        peaks = [path for path in paths if os.path.exists(path)]
        if not peaks:
            self.skipTest("no hierarchy here counts the peak of a group")
        self.start()
        self.run_in(groups, sys.executable, "-c", f"import time; x = bytearray({64 << 20}); time.sleep(4)")
        with open(peaks[-1]) as f:
            peak = int(f.read())
        records = self.stop()
        task, = records.works("task", scheduler="slurm", job_id=str(os.getpid()))
        self.assertEqual("0", task["task"])
        self.assertLessEqual(64 << 20, task["cgroup"]["memory_peak_bytes"])
        self.assertLessEqual(task["cgroup"]["memory_peak_bytes"], peak)
        self.assertEqual(0, task["cgroup"]["oom_kills"])

    def test_a_batch_script_tells_its_job_to_all_that_it_starts(self):
        spool = os.path.join(self.room, "spool", "job00042")
        os.makedirs(spool)
        script = os.path.join(spool, "slurm_script")
        mark = new_mark()
        with open(script, "w") as f:
            f.write(f"#!/bin/sh\n/bin/sh -c '/bin/true {mark}; exit 0'\n/bin/true end {mark}\n")
        os.chmod(script, stat.S_IRWXU)
        self.start()
        machine.run([script])
        machine.run(["/bin/true", mark, "outside"])
        records = self.stop()
        inside = [r for r in records.marked(mark) if r["argv"][-1] != "outside"]
        self.assertGreaterEqual(len([r for r in inside if r["comm"] == "true"]), 2)
        self.assert_all(records.both(inside), scheduler="slurm", job_id="42", job_step="batch")
        other, = records.marked(mark, "outside")
        self.assertNotEqual("42", other["job_id"])

    def test_what_serves_a_container_is_not_inside(self):
        """A program that calls itself as conmon does; what it starts is inside once it is in a control group of its own."""
        folder = os.path.join(self.room, "bin")
        os.makedirs(folder)
        # A copy, for what counts is the executable; a shell is content with any name.
        with open("/bin/sh", "rb") as f, open(os.path.join(folder, "conmon"), "wb") as to:
            to.write(f.read())
        os.chmod(os.path.join(folder, "conmon"), 0o755)
        group = self.groups("/anything")[0]
        mark, container = new_mark(), "ab" * 32
        self.start()
        script = f"/bin/true helper {mark}; /bin/sh -c 'echo $$ > {group}/cgroup.procs; exec /bin/true {mark}'; exit 0"
        machine.run([os.path.join(folder, "conmon"), "-c", script, "-c", container, "-n", "eager"])
        records = self.stop()
        r, = [r for r in records.marked(mark) if r["argv"] == ["/bin/true", mark]]
        self.assertEqual(("podman", container, "eager"), (r["container_runtime"], r["container_id"], r["container_name"]))
        helper, = [r for r in records.marked(mark) if r["argv"] == ["/bin/true", "helper", mark]]
        self.assert_all(records.both([helper]), container_runtime=None, container_id=None)
        r = helper
        starter = records.starts.get(r["parent_program_id"]) or records.ends[r["parent_program_id"]]
        self.assertEqual((None, None), (starter["container_runtime"], starter["container_id"]), starter["argv"])


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    harness.main()
