# SPDX-License-Identifier: Apache-2.0
"""Slurm on one node: munged, slurmctld and slurmd of a test's own, on loopback, in a folder; gone at the end.

What ran is reported by Slurm itself: `scontrol show job` and the file of its job completion plugin.
"""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from systems import machine

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "DEADLINE", "BOOT_FAIL")

CONFIG = """\
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={at}/munge/sock
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd.pid
SlurmctldLogFile={at}/log/slurmctld.log
SlurmdLogFile={at}/log/slurmd.log
PlugStackConfig=/dev/null
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
JobAcctGatherFrequency=1
JobCompType=jobcomp/filetxt
JobCompLoc={at}/log/jobcomp.txt
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=256
MinJobAge=3600
SchedulerParameters=sched_interval=1,bf_interval=1
KillWait=5
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs={cpus} RealMemory={memory}
PartitionName=p Nodes={node} Default=YES MaxTime=10 State=UP
"""

CGROUP_CONFIG = """\
CgroupPlugin=cgroup/{version}
CgroupAutomount=no
ConstrainCores=yes
ConstrainRAMSpace=yes
{more}"""


def _fields(line):
    """{key: value} of a line `Key=value Key=value …`; a value may have spaces in it."""
    return {k: v.strip() for k, v in re.findall(r"([A-Za-z][\w/:]*)=(.*?)(?=\s[A-Za-z][\w/:]*=|$)", line.strip())}


class Slurm:
    """`with Slurm() as s: job = s.sbatch("#!/bin/sh\\n…"); s.wait(job)`. SkipTest where it cannot run."""

    cluster = "sluicetest"

    def __init__(self):
        machine.need("slurmctld", "slurmd", "munged", "munge", "sbatch", "scontrol", "sinfo", "squeue", "scancel", "srun")
        self.at = tempfile.mkdtemp(prefix="sluice-slurm-")
        os.chmod(self.at, 0o755)
        self.node = f"sl{os.getpid()}"
        self.work = os.path.join(self.at, "work")  # where jobs of any user run
        self.config = os.path.join(self.at, "etc", "slurm.conf")
        self.env = machine.environment(SLURM_CONF=self.config, TZ="UTC")
        self._daemons = []

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()

    def _start(self):
        for name, mode in (("etc", 0o755), ("log", 0o755), ("munge", 0o755), ("spool", 0o700), ("state", 0o700), ("work", 0o1777)):
            os.makedirs(os.path.join(self.at, name))
            os.chmod(os.path.join(self.at, name), mode)
        key = os.path.join(self.at, "munge", "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
            f.write(os.urandom(1024))
        has = _fields(self("slurmd", "-C").stdout.splitlines()[0])
        controller_port, node_port = machine.free_ports(2)
        with open(self.config, "w") as f:
            f.write(CONFIG.format(at=self.at, cluster=self.cluster, host=socket.gethostname().split(".")[0], node=self.node,
                                  controller_port=controller_port, node_port=node_port, cpus=has["CPUs"],
                                  memory=int(has["RealMemory"]) * 3 // 4))
        is_v1 = machine.cgroup_v1("memory") is not None
        with open(os.path.join(self.at, "etc", "cgroup.conf"), "w") as f:
            f.write(CGROUP_CONFIG.format(version="v1" if is_v1 else "v2", more="" if is_v1 else "IgnoreSystemd=yes\n"))

        m = os.path.join(self.at, "munge")
        self._daemon("munged", "-F", f"--key-file={key}", f"--socket={m}/sock", f"--pid-file={m}/pid",
                     f"--log-file={m}/log", f"--seed-file={m}/seed")
        self._wait_for("munged", ["munge", "-S", f"{m}/sock", "-n"])
        self._daemon("slurmctld", "-D", "-c")
        self._wait_for("slurmctld", ["scontrol", "ping"])
        self._daemon("slurmd", "-D", "-N", self.node)
        try:
            self._wait_for("slurmd", ["sinfo", "-h", "-o", "%T"], "idle")
        except AssertionError as e:
            if is_v1:
                raise
            raise unittest.SkipTest(f"slurmd does not run here: {e}")  # some versions want systemd for v2

    def _daemon(self, name, *args):
        with open(os.path.join(self.at, "log", name + ".out"), "wb") as out:
            self._daemons.append((name, subprocess.Popen([name, *args], env=self.env, stdin=subprocess.DEVNULL,
                                                         stdout=out, stderr=out)))

    def _wait_for(self, name, question, answer=""):
        """Until a command ends well and prints the answer."""
        _, process = self._daemons[-1]
        for _ in range(300):
            done = self(*question, check=False)
            if done.returncode == 0 and answer in done.stdout:
                return
            if process.poll() is not None:
                break
            time.sleep(0.1)
        logs = "".join(machine.tail(os.path.join(self.at, "log", name + end)) for end in (".out", ".log"))
        raise AssertionError(f"{name} did not start: {done.stdout}\n{logs}")

    def __call__(self, *args, check=True, timeout=60, **kw):
        """One of Slurm's commands; both streams as text in .stdout."""
        return machine.run(args, check=check, timeout=timeout, env=self.env, **kw)

    # --- jobs ---

    def sbatch(self, script, *options, uid=None):
        """Queues a script, as that user; its job id, of an array the array's."""
        kw = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        done = self("sbatch", "--parsable", "-D", self.work, "-o", os.path.join(self.work, "%j.out"), "-t", "2", *options,
                    stdin=None, input=script, **kw)
        return int(done.stdout.strip().split(";")[0])

    def show(self, job):
        """[{…}] as scontrol has it: one of each task of an array, else one. JobId is the raw one."""
        lines = self("scontrol", "show", "job", "-o", job).stdout.splitlines()
        return [_fields(line) for line in lines if line.startswith("JobId=")]

    def wait(self, job, timeout=90):
        """show(), once all of it has ended."""
        def ended():
            tasks = self.show(job)
            return tasks if tasks and all(t["JobState"] in ENDED for t in tasks) else None
        return machine.wait_until(ended, timeout, f"end of job {job}")

    def output(self, job):
        """What a job printed; job is the raw id."""
        with open(os.path.join(self.work, f"{job}.out"), errors="replace") as f:
            return f.read()

    def completions(self):
        """{raw job id: the line of the job completion log}"""
        with open(os.path.join(self.at, "log", "jobcomp.txt")) as f:
            return {int(x["JobId"]): x for x in map(_fields, f)}

    def close(self):
        """Jobs, daemons, what of a job still runs, its control groups and files, in this order."""
        with contextlib.suppress(subprocess.TimeoutExpired, AssertionError):
            if any(name == "slurmctld" and p.poll() is None for name, p in self._daemons):
                jobs = self("squeue", "-h", "-o", "%A", check=False, timeout=10).stdout.split()
                if jobs:
                    self("scancel", *jobs, check=False, timeout=10)
                machine.wait_until(lambda: not self("squeue", "-h", check=False, timeout=10).stdout.strip(), 20, "empty queue")
        for _, process in reversed(self._daemons):
            machine.end(process)
        self._daemons = []
        own = f"/slurm_{self.node}"  # what Debian's build calls it
        for _ in range(50):
            left = machine.cgroup_processes(own)
            if not left:
                break
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)
        machine.remove_cgroups(own, "/slurm")
        shutil.rmtree(self.at, ignore_errors=True)
