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
import time

import harness
from systems import machine

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LAB = os.path.join(ROOT, "tests", "fixtures", "lab")
COMMANDS = os.path.join(ROOT, "build", "analytics", "dev", "bin")
SNAKEMAKE = os.path.join(ROOT, "build", "demo-venv", "bin", "snakemake")
MIB = 1 << 20
OTHERS = """until [ -e work-lab/starved.begins ]; do sleep 0.05; done
until [ -e work-lab/starved.done ]; do i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; done"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def before_all_others():
    """Of the process that calls it: nearly all CPU time. By its nice value alone that is so within its session, see sched(7)."""
    os.setsid()
    os.nice(-20)
    if os.path.exists("/proc/self/autogroup"):
        with open("/proc/self/autogroup", "w") as f:
            f.write("-20")


class Lab(harness.LakeTest):
    def setUp(self):
        super().setUp()
        for command in (os.path.join(COMMANDS, "sluice-tune"), SNAKEMAKE):
            if not os.access(command, os.X_OK):
                self.fail(f"{command} is not there; run ./dev/install test")

    def group(self, name, controller, **limits):
        """The tasks file of a new control group with the first of these limits that there is, as v1 and v2 name it."""
        mount = machine.cgroup_v1(controller) or machine.cgroup_v2()
        if mount == machine.cgroup_v2():
            with open(os.path.join(mount, "cgroup.subtree_control"), "w") as f:
                f.write("+io" if controller == "blkio" else "+" + controller)
        folder = os.path.join(mount, f"sluice-lab-{os.getpid()}-{name}")
        os.makedirs(folder)
        self.addCleanup(machine.remove_cgroups, "/" + os.path.basename(folder))
        for knob, limit in limits.items():
            path = os.path.join(folder, knob.replace("__", "."))
            if os.path.exists(path):
                with open(path, "w") as f:
                    f.write(str(limit))
                return os.path.join(folder, "cgroup.procs")
        self.fail(f"no hierarchy here limits what {controller} does")

    def limited(self, name, limit):
        """The tasks file of a new control group whose memory is limited."""
        return self.group(name, "memory", memory__limit_in_bytes=limit, memory__max=limit)

    def slow_disk(self):
        """A disk in memory, and the tasks file of a group that may write 64 MB/s to it: the kernel makes it wait."""
        image = os.path.join(self.room, "disk")
        with open(image, "wb") as f:
            f.truncate(256 * MIB)
        disk = machine.run(["losetup", "--find", "--show", image]).stdout.strip()
        self.addCleanup(machine.run, ["losetup", "--detach", disk])
        with open(os.path.join("/sys/block", os.path.basename(disk), "dev")) as f:
            number = f.read().strip()
        rate = 64_000_000
        return disk, self.group("disk", "blkio", blkio__throttle__write_bps_device=f"{number} {rate}",
                                io__max=f"{number} wbps={rate}")

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

    def others(self):
        """Starts two that are not of the run, and use the CPU of the step that is starved while it runs."""
        for _ in range(2):
            p = subprocess.Popen(["timeout", "300", "taskset", "-c", "0", "/bin/sh", "-c", OTHERS], cwd=self.room,
                                 preexec_fn=before_all_others)
            self.addCleanup(p.wait)
            self.addCleanup(p.terminate)

    def snakemake(self, pipeline, file, *options, **env):
        work = os.path.join(self.room, "work-" + pipeline)
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        path = os.path.dirname(SNAKEMAKE) + ":" + os.environ["PATH"]
        environment = harness.plain_environment(PATH=path, XDG_CACHE_HOME=os.path.join(self.room, "cache"), **env)
        return harness.run_sluice(
            ["run", "--quiet", "--pipeline", pipeline, "--lake", self.lake, "--",
             SNAKEMAKE, "--snakefile", os.path.join(LAB, file), "--cores", "2", "--quiet", "rules", *options],
            env=environment, cwd=work, timeout=300,
            preexec_fn=before_all_others)  # a busy host would starve every step

    def command(self, *args, status=0):
        """The answer of sluice-tune or sluice-sweep as JSON."""
        done = subprocess.run([os.path.join(COMMANDS, args[0]), *args[1:], "--lake", self.lake, "--format", "json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(status, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def test_every_step_is_reported_with_what_held_it_up(self):
        disk, writers = self.slow_disk()
        self.others()
        done = self.snakemake("lab", "Snakefile", "--keep-going", LAB_URL=self.web(), LAB_CGROUP=self.limited("sort", 96 * MIB),
                              LAB_DISK=disk, LAB_DISK_CGROUP=writers)
        self.assertEqual(1, done.returncode, done.stderr)
        report = self.command("sluice-tune")
        self.assertEqual("FAILED", report["state"])

        programs = [r for r in harness.read_cat(self.lake, "sluice.program") if r["phase"] == "END"]
        task_of = {}
        for r in programs:
            if r["task_id"] is not None and not r["overhead"]:
                task_of.setdefault(r["tool"], set()).add(r["task_id"])
        tasks = {t["task_id"]: t for t in report["tasks"]}

        def step(tool):
            """The task in which a program of a tool ran."""
            found, = task_of[tool]
            return tasks[found]

        bounds = {"dd": "IO", "curl": "NETWORK", "sort": "COMPUTE", "sleep": "IDLE"}
        self.assertEqual(bounds, {tool: step(tool)["bound"] for tool in bounds})
        self.assertEqual("COMPUTE", step("xz")["bound"])
        self.assertEqual("STARVED", step("gzip")["bound"])
        self.assertGreater(step("sort")["shares"]["memory"], 0.9)  # near its limit, which it does not wait for

        records = {r["task_id"]: r for r in harness.read_cat(self.lake, "sluice.task") if r["phase"] == "END"}
        demands = {"dd": ("STORAGE", None), "curl": ("NETWORK", None), "sort": ("COMPUTE", None),
                   "sleep": ("WAITING_FOR", "TIMER"), "xz": ("COMPUTE", None)}
        for tool, expected in demands.items():
            r = records[step(tool)["task_id"]]
            self.assertEqual(expected, (r["demand"], r["waiting_for"]), (tool, r["bill"]))
            names = ("demand", "demand_confidence", "waiting_for", "denied", "denied_share", "bill", "own_bill",
                     "peak_memory_bytes", "peak_memory_source")
            self.assertEqual({name: r[name] for name in names}, {name: step(tool)[name] for name in names})
            self.assertGreater(r["demand_confidence"], 0.5, (tool, r["bill"]))
        download = records[step("curl")["task_id"]]["bill"]  # curl polls, also when it is first seen
        self.assertLess(4 * download["poll_ns"], download["network_ns"], download)
        starved = records[step("gzip")["task_id"]]
        self.assertEqual(("COMPUTE", "RUN_QUEUE"), (starved["demand"], starved["denied"]), starved["bill"])
        for r in records.values():
            self.assertEqual(r["usage"]["thread_ns"], sum(r["bill"].values()))
            self.assertEqual(r["wall_ns"], sum(r["own_bill"].values()))
        self.assertEqual(96 * MIB, step("sort")["efficiency"]["requested_memory_bytes"])

        failure, = report["failures"]
        self.assertEqual(("samtools sort", "EXIT", 1), (failure["tool"], failure["kind"], failure["exit_code"]))
        self.assertTrue(failure["command"].endswith("samtools sort -o sorted.bam cut.bam"), failure)
        self.assertEqual(step("samtools sort")["task_id"], failure["task_id"])

        self.assert_sums(report, programs)
        writer = max(report["tools"], key=lambda t: t["usage"]["write_bytes"])
        self.assertEqual("dd", writer["tool"])
        idle = step("sleep")
        self.assertGreaterEqual(idle["wall_ns"], 5e9)
        self.assertAlmostEqual(self.span(r for r in programs if r["task_id"] == idle["task_id"]), idle["wall_ns"] // 1000,
                               delta=1)  # of microseconds, to which both ends of a span are cut
        gaps = [[datetime.datetime.fromisoformat(g[t]) for t in ("start_time", "end_time")] for g in report["gaps"]]
        self.assertTrue(any((end - start).total_seconds() > 4.5 for start, end in gaps), gaps)

    @staticmethod
    def span(programs):
        """From the first program's start to the last one's end, in microseconds."""
        programs = list(programs)
        return max(r["end_time"] for r in programs) - min(r["program_start_time"] for r in programs)

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

    def test_a_step_that_asks_for_too_much_is_reported_with_what_it_needs(self):
        group = self.limited("asked", 2048 * MIB)
        for _ in range(3):
            done = self.snakemake("asked", "asked.smk", LAB_CGROUP=group)
            self.assertEqual(0, done.returncode, done.stderr)
        ends = [r for r in harness.read_cat(self.lake, "sluice.program")
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

    @staticmethod
    def host():
        """Nanoseconds: of the clock; in which a CPU had nothing to do, and of all that it did, as the kernel counts them."""
        with open("/proc/stat") as f:
            fields = [int(x) * 1_000_000_000 // os.sysconf("SC_CLK_TCK") for x in f.readline().split()[1:9]]
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME), fields[3] + fields[4], sum(fields)

    def test_what_sweep_calls_idle_is_what_the_kernel_does(self):
        """Whatever else the host does: what is idle within the run is what is idle around it, less what came before and after."""
        began, idle_before, counted_before = self.host()
        done = harness.run_sluice(["run", "--quiet", "--pipeline", "waits", "--lake", self.lake, "--", "sleep", "12"])
        ended, idle_after, counted_after = self.host()
        self.assertEqual(0, done.returncode, done.stderr)
        answer = self.command("sluice-sweep", "--since", "1d")
        hosts = harness.read_cat(self.lake, "sluice.host")
        capacity = sum(h["cpu_capacity_ns"] for h in hosts[1:])
        around = (ended - began) * os.cpu_count()
        self.assertLessEqual(12e9 * os.cpu_count(), capacity)
        self.assertLessEqual(capacity, around)
        idle = answer["total"]["cpu_ns"]["idle_run"]
        # sweep takes for idle what was not busy. The kernel counts idle time by the clock and all other by ticks: by as
        # much as its sum is off the clock's, the two may differ.
        slack = 0.02 * around + abs(around - (counted_after - counted_before))
        self.assertLessEqual(idle, idle_after - idle_before + slack)
        self.assertGreaterEqual(idle, idle_after - idle_before - (around - capacity) - slack)


if __name__ == "__main__":
    harness.main()
