# SPDX-License-Identifier: Apache-2.0
"""tune and sweep on lakes that sluice recorded of real runs: what held up each step, why it failed, what would be right.

The expected numbers are computed here, from `sluice cat`.
"""
import datetime
import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
import unittest

import harness
from systems import machine

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LAB = os.path.join(ROOT, "tests", "fixtures", "lab")
COMMANDS = os.path.join(ROOT, "build", "analytics", "dev", "bin")
SNAKEMAKE = os.path.join(ROOT, "build", "demo-venv", "bin", "snakemake")
# With sanitizers the agent itself takes the CPU that steps are measured by.
RELEASE = os.path.join(ROOT, "build", "release", "sluice")
MIB = 1 << 20


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Lab(harness.LakeTest):
    def setUp(self):
        super().setUp()
        self.sluice = RELEASE if os.access(RELEASE, os.X_OK) else harness.SLUICE
        for command in (os.path.join(COMMANDS, "sluice-tune"), SNAKEMAKE):
            if not os.access(command, os.X_OK):
                self.fail(f"{command} is not there; run ./dev/install test")

    def limited(self, name, limit):
        """The tasks file of a new control group whose memory is limited."""
        v1, v2 = machine.cgroup_v1("memory"), machine.cgroup_v2()
        folder = os.path.join(v1 or v2, f"sluice-lab-{os.getpid()}-{name}")
        os.makedirs(folder)
        self.addCleanup(machine.remove_cgroups, "/" + os.path.basename(folder))
        for knob in ("memory.limit_in_bytes", "memory.max"):
            if os.path.exists(os.path.join(folder, knob)):
                with open(os.path.join(folder, knob), "w") as f:
                    f.write(str(limit))
                return os.path.join(folder, "cgroup.procs")
        self.skipTest("no hierarchy here limits memory")

    def web(self):
        """A file of 60 MB on a web server outside of the run: its URL."""
        folder = os.path.join(self.room, "www")
        os.makedirs(folder)
        with open(os.path.join(folder, "file"), "wb") as f:
            f.truncate(60_000_000)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/file"

    def snakemake(self, pipeline, file, *options, **env):
        work = os.path.join(self.room, "work-" + pipeline)
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        path = os.path.dirname(SNAKEMAKE) + ":" + os.environ["PATH"]
        environment = harness.plain_environment(PATH=path, XDG_CACHE_HOME=os.path.join(self.room, "cache"), **env)
        return harness.run_sluice(
            ["run", "--quiet", "--pipeline", pipeline, "--lake", self.lake, "--",
             SNAKEMAKE, "--snakefile", os.path.join(LAB, file), "--cores", "2", "--quiet", "rules", *options],
            sluice=self.sluice, env=environment, cwd=work, timeout=300,
            preexec_fn=lambda: os.nice(-15))  # a busy host would starve every step

    def command(self, *args, status=0):
        """The answer of sluice-tune or sluice-sweep as JSON."""
        done = subprocess.run([os.path.join(COMMANDS, args[0]), *args[1:], "--lake", self.lake, "--format", "json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(status, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def test_every_step_is_told_by_what_held_it_up(self):
        done = self.snakemake("lab", "Snakefile", "--keep-going", LAB_URL=self.web(), LAB_CGROUP=self.limited("sort", 96 * MIB))
        self.assertEqual(1, done.returncode, done.stderr)
        report = self.command("sluice-tune")
        self.assertEqual("FAILED", report["state"])

        programs = [r for r in harness.read_cat(self.lake, "sluice.program", sluice=self.sluice) if r["phase"] == "END"]
        task_of = {}
        for r in programs:
            if r["task_id"] is not None and not r["overhead"]:
                task_of.setdefault(r["tool"], set()).add(r["task_id"])
        tasks = {t["task_id"]: t for t in report["tasks"]}

        def step(tool, count=1):
            """The task in which so many programs of a tool ran."""
            found = [t for t in task_of[tool] if sum(r["task_id"] == t and r["tool"] == tool for r in programs) == count]
            self.assertEqual(1, len(found), (tool, task_of[tool]))
            return tasks[found[0]]

        bounds = {"dd": "IO", "curl": "NETWORK", "sort": "MEMORY", "sleep": "IDLE"}
        self.assertEqual(bounds, {tool: step(tool)["bound"] for tool in bounds})
        self.assertEqual("COMPUTE", step("xz")["bound"])
        self.assertEqual("STARVED", step("xz", 4)["bound"])
        self.assertEqual(96 * MIB, step("sort")["efficiency"]["requested_memory_bytes"])

        failure, = report["failures"]
        self.assertEqual(("samtools sort", "EXIT", 1), (failure["tool"], failure["kind"], failure["exit_code"]))
        self.assertTrue(failure["command"].endswith("samtools sort -o sorted.bam cut.bam"), failure)
        self.assertEqual(step("samtools sort")["task_id"], failure["task_id"])

        self.assert_sums(report, programs)
        writer = max(report["tools"], key=lambda t: t["usage"]["write_bytes"])
        self.assertEqual("dd", writer["tool"])
        idle = step("sleep")
        self.assertAlmostEqual(5.0, idle["wall_ns"] / 1e9, delta=0.5)
        gaps = [[datetime.datetime.fromisoformat(g[t]) for t in ("start_time", "end_time")] for g in report["gaps"]]
        self.assertTrue(any((end - start).total_seconds() > 4.5 for start, end in gaps), gaps)

    def assert_sums(self, report, programs):
        """Totals of the run, each task and each tool are the sums of the programs' END records, exactly."""
        for field in ("cpu_user_ns", "cpu_system_ns", "run_delay_ns", "read_bytes", "write_bytes", "rchar", "wchar", "net_rx_bytes"):
            self.assertEqual(sum(r["usage"][field] for r in programs), report["usage"][field], field)
            for tool in report["tools"]:
                of_tool = [r["usage"][field] for r in programs if r["tool"] == tool["tool"]]
                self.assertEqual(sum(of_tool), tool["usage"][field], (tool["tool"], field))
            for task in report["tasks"]:
                of_task = [r["usage"][field] for r in programs if r["task_id"] == task["task_id"] and not r["overhead"]]
                if of_task:
                    self.assertEqual(sum(of_task), task["usage"][field], (task["name"], field))

    def test_a_step_that_asks_for_too_much_is_told_what_it_needs(self):
        group = self.limited("asked", 2048 * MIB)
        for _ in range(3):
            done = self.snakemake("asked", "asked.smk", LAB_CGROUP=group)
            self.assertEqual(0, done.returncode, done.stderr)
        ends = [r for r in harness.read_cat(self.lake, "sluice.program", sluice=self.sluice)
                if r["phase"] == "END" and r["tool"] == "sort"]
        peaks = [r["usage"]["peak_rss_bytes"] for r in ends]
        self.assertEqual(3, len(peaks))
        answer = self.command("sluice-tune", "recommend", "--pipeline", "asked")
        said = {r["what"]: r for t in answer["tasks"] for r in t["recommendations"] if "sort" in t["task"] or t["task"] == "seq"}
        memory = said["memory_bytes"]
        self.assertEqual(2048 * MIB, memory["current"])
        self.assertGreaterEqual(memory["recommended"], 1.1 * max(peaks))
        self.assertLess(memory["recommended"], 1.6 * max(peaks))
        self.assertEqual(3, memory["runs"])

    def test_what_sweep_calls_idle_is_what_the_wall_clock_says(self):
        done = harness.run_sluice(["run", "--quiet", "--pipeline", "waits", "--lake", self.lake, "--", "sleep", "12"],
                                  sluice=self.sluice)
        self.assertEqual(0, done.returncode, done.stderr)
        answer = self.command("sluice-sweep", "--since", "1d")
        used = sum(r["usage"]["cpu_user_ns"] + r["usage"]["cpu_system_ns"]
                   for r in harness.read_cat(self.lake, "sluice.program", sluice=self.sluice) if r["phase"] == "END")
        hosts = harness.read_cat(self.lake, "sluice.host", sluice=self.sluice)
        busy = sum(h["cpu_busy_ns"] + h["cpu_steal_ns"] for h in hosts[1:])
        capacity = sum(h["cpu_capacity_ns"] for h in hosts[1:])
        self.assertAlmostEqual(12 * os.cpu_count() * 1e9, capacity, delta=0.06 * capacity)
        idle = answer["total"]["cpu_ns"]["idle_run"]
        self.assertAlmostEqual(capacity - max(busy, used), idle, delta=0.02 * capacity)


if __name__ == "__main__":
    harness.main()
