# SPDX-License-Identifier: Apache-2.0
"""Nextflow 23.10.1: its driver as the stock launcher starts it, and trace.txt, its own account of what ran."""
import csv
import os
import shutil

from systems.driver import PIPELINES, STEP, Driver, engine, environment, owner

# What the launcher opens to it; 16 arguments before the first that names the run.
OPENED = ("java.lang", "java.util", "java.io", "java.nio", "java.nio.file", "java.nio.file.spi", "java.net",
          "sun.nio.ch", "sun.nio.fs", "sun.net.www.protocol.http", "sun.net.www.protocol.https",
          "sun.net.www.protocol.ftp", "sun.net.www.protocol.file", "jdk.internal.misc", "jdk.internal.vm",
          "java.util.regex")

FIELDS = ("task_id", "hash", "native_id", "process", "tag", "name", "status", "exit", "attempt", "submit", "start",
          "complete", "duration", "realtime", "%cpu", "peak_rss", "rchar", "wchar", "workdir")

# The local executor's defaults suit long tasks; a trace in raw numbers is one that can be compared.
CONFIG = """process.executor = 'local'
executor { cpus = 2; queueSize = 2; pollInterval = '200ms' }
%(more)s
trace { enabled = true; raw = true; overwrite = true; file = '%(trace)s'; fields = '%(fields)s' }
"""


class Nextflow:
    """Runs in one folder, as a person starts them: each has a name, and they share work/ and the cache."""

    def __init__(self, folder, config="", env=None):
        """config: lines that change what CONFIG says, such as the executor's."""
        self.folder = folder
        self.config = config
        self.lib = os.path.join(engine("nextflow"), "lib")
        self.env = environment(folder, **{"NXF_HOME": os.path.join(folder, ".nxf"), "NXF_OFFLINE": "true",
                                          "NXF_ANSI_LOG": "false", "NXF_DISABLE_CHECK_LATEST": "true", **(env or {})})
        os.makedirs(folder, exist_ok=True)
        shutil.copytree(os.path.join(PIPELINES, "nextflow"), folder, dirs_exist_ok=True)

    def trace_path(self, name):
        return os.path.join(self.folder, f"trace-{name}.txt")

    def start(self, script, name, *options, user=None, **params):
        """The driver of a run of that name."""
        config = f"{name}.config"
        with open(os.path.join(self.folder, config), "w") as f:
            f.write(CONFIG % {"trace": self.trace_path(name), "fields": ",".join(FIELDS), "more": self.config})
        params = {"step": STEP, **params, "run": owner(params.get("run", name))}
        return Driver(["java", "-Xms64m", "-Xmx512m", "-XX:TieredStopAtLevel=1",
                       *(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in OPENED), "-cp", f"{self.lib}/*",
                       "nextflow.cli.Launcher", "-C", config, "run", script, "-name", name, *options,
                       *(x for key, value in params.items() for x in (f"--{key}", str(value)))],
                      self.folder, env=self.env, user=user, name=f"nextflow-{name}")

    def trace(self, name):
        """[row] of a run's trace.txt: every field a string, None where Nextflow knows nothing; numbers as numbers."""
        rows = []
        if not os.path.exists(self.trace_path(name)):
            return rows
        with open(self.trace_path(name), newline="") as f:
            for row in csv.DictReader(f, delimiter="\t"):
                row = {k: None if v in ("-", "", None) else v for k, v in row.items()}
                for field in ("exit", "attempt", "realtime", "peak_rss", "rchar", "wchar"):
                    row[field] = None if row[field] is None else int(row[field])
                row["%cpu"] = None if row["%cpu"] is None else float(row["%cpu"])
                rows.append(row)
        return rows

    def ran(self, name):
        """Those rows that were executed in this run: a CACHED one is an old one's."""
        return [row for row in self.trace(name) if row["status"] != "CACHED"]

    def history(self):
        """{run name: {"status", "session"}} of .nextflow/history."""
        runs = {}
        with open(os.path.join(self.folder, ".nextflow", "history")) as f:
            for line in f:
                _, _, name, status, _, session, _ = line.rstrip("\n").split("\t")[:7]
                runs[name] = {"status": status, "session": session}
        return runs
