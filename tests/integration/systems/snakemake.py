# SPDX-License-Identifier: Apache-2.0
"""Snakemake, Debian's and the newest: its driver, and .snakemake/log, its own account of what ran."""
import glob
import os
import re
import shutil

from systems.driver import PIPELINES, STEP, Driver, engine, environment, owner

DEBIAN = "/usr/bin/snakemake"


def newest():
    return os.path.join(engine("snakemake"), "bin", "snakemake")


class Job:
    """One execution of a rule."""

    def __init__(self, rule):
        self.rule = rule
        self.id = None
        self.wildcards = {}

    def __repr__(self):
        return f"{self.rule}:{','.join(f'{k}={v}' for k, v in self.wildcards.items())}"


class Log:
    """Jobs in the order in which they began, a repeated one as often as it did; ids of those that ended well or not."""

    def __init__(self, text):
        self.jobs = []
        self.finished = re.findall(r"^Finished job(?:id:)? (\d+)", text, re.M)
        self.restarted = re.findall(r"^Trying to restart job (\d+)", text, re.M)
        self.failed = []
        job, failed = None, False
        for line in text.splitlines():
            begins = re.match(r"(?:local)?(?:rule|checkpoint) (\S+):$", line)
            fails = re.match(r"Error in rule (\S+?)[:,]", line)
            key = re.match(r"    (\w+): (.*)$", line)
            if begins:
                job, failed = Job(begins[1]), False
                self.jobs.append(job)
            elif fails:
                job, failed = None, True
            elif not line.startswith(" "):
                job, failed = None, False
            elif key and key[1] == "jobid" and failed:
                self.failed.append(key[2])
            elif key and job and key[1] == "jobid":
                job.id = key[2]
            elif key and job and key[1] == "wildcards":
                job.wildcards = dict(part.split("=", 1) for part in key[2].split(", "))


class Snakemake:
    """Runs of one Snakefile in one folder."""

    def __init__(self, folder, program=DEBIAN):
        self.folder = folder
        self.program = program
        if not os.access(program, os.X_OK):
            raise AssertionError(f"{program} is not there; run ./dev/install test")
        os.makedirs(folder, exist_ok=True)
        shutil.copytree(os.path.join(PIPELINES, "snakemake"), folder, dirs_exist_ok=True)

    def start(self, run, *args, user=None, env=None, cores=2, **config):
        """The driver. run: the name that its programs have in their arguments; config: --config."""
        if user is not None:
            for at, _, names in os.walk(self.folder):
                for path in (at, *(os.path.join(at, n) for n in names)):
                    os.chown(path, user, user)
        pairs = [f"{k}={v}" for k, v in {"run": owner(run), "step": STEP, **config}.items()]
        return Driver([self.program, "--nolock", *(["--cores", cores] if cores else []), *args, "--config", *pairs],
                      self.folder, env=environment(self.folder, **(env or {})), user=user, name="snakemake")

    def logs(self):
        return sorted(glob.glob(os.path.join(self.folder, ".snakemake", "log", "*.snakemake.log")))

    def log(self, n=-1):
        """Of the n-th run in this folder."""
        with open(self.logs()[n], errors="replace") as f:
            return Log(f.read())
