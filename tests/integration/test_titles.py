# SPDX-License-Identifier: Apache-2.0
"""Titles that programs write over their arguments while they run, as setproctitle does, and what the lake says."""
import os
import shutil
import signal
import subprocess
import time

import harness
from systems.driver import environment
from systems.recorded import SystemTest

WORKER = r"""
import ctypes, os, sys, time

with open("/proc/self/stat") as f:
    fields = f.read().rpartition(")")[2].split()
start, end = int(fields[45]), int(fields[46])   # arg_start and arg_end


def title(text):
    # Over the arguments and no further; what is left of them is zeroed, as by setproctitle.
    room = end - start - 1
    assert len(text) < room, (text, room)
    ctypes.memmove(start, text.encode().ljust(room, b"\0"), room)
    ctypes.CDLL(None).prctl(15, text.encode()[:15], 0, 0, 0)


def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def steps(words):
    for word in words:
        what, _, seconds = word.rpartition("=")
        title(what)
        burn(float(seconds) / 2)
        time.sleep(float(seconds) / 2)


if sys.argv[1] == "fork":       # the child never execs
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        sys.exit()
steps(sys.argv[2:])
"""
PAD = "x" * 200         # as long as titles may become


class TitlesTest(SystemTest):
    def work(self, *path):
        folder = os.path.join(self.room, "work", *path[:-1])
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, path[-1])

    def script(self, *path):
        name = self.work(*path)
        with open(name, "w") as f:
            f.write(WORKER)
        return name

    def run_all(self, argv, **kw):
        p = subprocess.Popen(list(map(str, argv)), stdin=subprocess.DEVNULL, cwd=self.work("."),
                             env=environment(self.work(".")), **kw)
        self.addCleanup(lambda: p.poll() is None and p.send_signal(signal.SIGKILL))
        self.assertEqual(0, p.wait(300))  # it burns seconds of CPU, of which a busy host has few
        return p

    def python(self, records, p):
        """END record of the Python below (or at) a process."""
        top = next(r for r in records.ends.values() if r["pid"] == p.pid)
        return next(r for r in records.family(top) if "python" in (r["exe"] or ""))

    def cpu(self, r):
        return (r["usage"]["cpu_user_ns"] + r["usage"]["cpu_system_ns"]) / 1e9

    def test_a_ray_worker_is_named_by_what_it_runs(self):
        raylet = self.work("raylet")
        shutil.copy(os.path.realpath("/bin/sh"), raylet)
        worker = self.script("default_worker.py")
        self.start()
        p = self.run_all([raylet, "-c", f"/usr/bin/python3 {worker} no ray::IDLE=3 'ray::train_step'=4 ray::IDLE=3 "
                          f"'ray::Model.evaluate()'=4 {PAD}=0; :",
                          "/tmp/ray/session_2026-01-02_03-04-05_000006_77"])
        records = self.stop()
        mine = self.python(records, p)
        run, = records.works("run", engine="ray")
        tasks = {r["task"]: r for r in records.works("task", run_id=run["run_id"])}
        self.assertEqual({"train_step", "Model.evaluate"}, set(tasks))
        for r in tasks.values():
            self.assertEqual(("ray", "title of the worker", 1), (r["engine"], r["source"], r["programs"]))
            # Titles are looked at each second: of its two seconds of CPU it may miss one, and have one of the next.
            self.assertTrue(0.8 < self.cpu(r) < 3.2, f"{r['task']}: {self.cpu(r)} s of CPU")
        self.assertLess(sum(self.cpu(r) for r in tasks.values()), self.cpu(mine) - 1)
        self.assertEqual(run["run_id"], mine["run_id"])
        self.assertEqual(PAD[:15], mine["comm"])        # as it was at the end
        self.assertEqual("python3", records.starts[mine["program_id"]]["comm"])
        self.assertEqual(["/usr/bin/python3", worker, "no"], mine["argv"][:3])
        usage = [r for r in records.topics["sluice.usage"] if r["program_id"] == mine["program_id"]]
        self.assertIn("train_step", [r["task"] for r in usage])
        self.assertIn(None, [r["task"] for r in usage])

    def test_an_airflow_task_that_only_forked_is_a_task_of_its_dag(self):
        airflow = self.script("airflow")
        self.start()
        p = self.run_all(["/usr/bin/python3", airflow, "fork", "airflow task runner: rna align manual__2026=4", f"{PAD}=0"])
        records = self.stop()
        run, = records.works("run", engine="airflow")
        self.assertEqual(("rna", "manual__2026"), (run["pipeline"], run["run_name"]))
        task, = records.works("task", run_id=run["run_id"])
        self.assertEqual(("align", 1, 0), (task["task_id"], task["programs"], task["exit_code"]))
        forked, = [r for r in records.ends.values() if r["ppid"] == p.pid and r["forked"]]
        self.assertEqual(("align", run["run_id"], PAD[:15]), (forked["task_id"], forked["run_id"], forked["comm"]))
        top = next(r for r in records.ends.values() if r["pid"] == p.pid)
        self.assertEqual((None, None), (top["task_id"], top["run_id"]))

    def test_a_dask_worker_is_a_task_of_its_scheduler(self):
        worker, scheduler = self.script("multiprocessing.spawn"), self.work("dask-scheduler")
        with open(scheduler, "w") as f:
            f.write(f"import subprocess\nsubprocess.run(['/usr/bin/python3', {worker!r}, 'no', "
                    f"'dask worker [tcp://127.0.0.1:41029]=3', {PAD + '=0'!r}], check=True)\n")
        self.start()
        self.run_all(["/usr/bin/python3", scheduler])
        records = self.stop()
        mine, = [r for r in records.ends.values() if worker in (r["argv"] or [])]
        run, = records.works("run", engine="dask", run_id=mine["run_id"])  # another test may run Dask meanwhile
        task, = records.works("task", run_id=run["run_id"])
        self.assertEqual(("dask worker", "tcp://127.0.0.1:41029", "title dask worker"),
                         (task["task"], task["task_id"], task["source"]))
        self.assertEqual(("dask worker", run["run_id"]), (mine["task"], mine["run_id"]))


if __name__ == "__main__":
    harness.main()
