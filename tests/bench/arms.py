# SPDX-License-Identifier: Apache-2.0
"""One workload without a tracer and under sluice, measured as under the other tracers (peers.py).

Each arm runs `timed OUT COMMAND`, so that the workload's CPU time is wait4(2)'s for COMMAND and its
descendants in every arm. The tracer's own CPU time is measured apart, and so are its start and its end;
the whole is from before its start until after its end.
"""
import collections
import json
import os
import shutil
import subprocess
import tempfile
import time

# All in seconds. wall, cpu: of the workload. tracer: CPU of the tracer, None without one; start: CPU of its start
# and end, where these can be measured apart, else in tracer. whole: wall time from its start to its end.
Sample = collections.namedtuple("Sample", "wall cpu tracer start lost programs whole")


class Bench:
    """The programs of the benchmark, and a folder for their output."""

    def __init__(self, sluice, programs, room):
        self.sluice = sluice
        self.room = room
        for name in ("tiny", "storm", "timed", "stream", "snapshot", "floor", "cpus", "tools", "rules", "delivery"):
            setattr(self, name, os.path.join(programs, "bench-" + name))
        # a path as deep as /usr/bin/tool, wherever the build is: its depth costs time in the kernel
        self.tiny = shutil.copy(self.tiny, os.path.join(room, "tiny"))
        # with sudo's variables sluice would run the workload as another user
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}

    def spawn_command(self, n, workers):
        return [self.storm, "spawn", str(n), str(workers), self.tiny]

    def parts(self, program, *args):
        """Returns {name: values} of a bench_* program."""
        out = subprocess.run([program, *map(str, args)], check=True, stdout=subprocess.PIPE, text=True).stdout
        return {x["name"]: x["values"] for x in map(json.loads, out.splitlines())}

    def new_folder(self):
        return tempfile.mkdtemp(dir=self.room)


class Failed(Exception):
    """A workload or a tracer failed, so that there are no figures."""


class Unavailable(Failed):
    """This host cannot run the tracer; the text is the reason."""


def reap(p):
    """Waits for a child; returns the CPU seconds of it and of the descendants that it reaped."""
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def wait(argv, **kw):
    """Runs argv; returns its CPU and wall seconds."""
    begin = time.monotonic()
    p = subprocess.Popen(argv, **kw)
    cpu = reap(p)
    if p.returncode != 0:
        raise Failed(f"{' '.join(map(str, argv))}: exit {p.returncode}")
    return cpu, time.monotonic() - begin


def quiet(bench, cwd):
    return {"env": bench.env, "cwd": cwd or bench.room, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}


def read_timed(path):
    with open(path) as f:
        t = json.load(f)
    return t["wall_ns"] / 1e9, (t["user_ns"] + t["system_ns"]) / 1e9


def run_none(bench, command, cwd):
    out = os.path.join(bench.new_folder(), "timed")
    _, whole = wait([bench.timed, out, *command], **quiet(bench, cwd))
    wall, cpu = read_timed(out)
    return Sample(wall, cpu, None, None, None, None, whole)


def agent_records(bench, lake):
    out = subprocess.run([bench.sluice, "cat", "--raw", "--topic", "agent", lake], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return sorted(map(json.loads, out.splitlines()), key=lambda r: r["seq"])


def program_ends(bench, lake):
    """Returns the number of END records in the lake, and of holes in seq of its program records."""
    cat = subprocess.Popen([bench.sluice, "cat", "--raw", "--topic", "program", lake], stdout=subprocess.PIPE, text=True)
    seqs = []
    ends = 0
    for line in cat.stdout:
        r = json.loads(line)
        seqs.append(r["seq"])
        ends += r["phase"] == "END"
    if cat.wait() != 0:
        raise Failed(f"sluice cat {lake}: exit {cat.returncode}")
    return ends, max(seqs) + 1 - len(seqs)


def run_sluice(bench, command, cwd, details=None):
    """details, a dict, receives the STOP record's probes and the number of END records."""
    room = bench.new_folder()
    out, summary, lake = (os.path.join(room, x) for x in ("timed", "summary", "lake"))
    cpu_all, whole = wait([bench.sluice, "run", "--quiet", "--json", summary, "--lake", lake, "--", bench.timed, out, *command],
                          **quiet(bench, cwd))
    wall, cpu = read_timed(out)
    records = agent_records(bench, lake)
    start, stop = records[0], records[-1]
    if (start["event"], stop["event"]) != ("START", "STOP"):
        raise Failed(f"the lake has no START and STOP of the agent: {lake}")
    tracer = (stop["cpu_ns"] - start["cpu_ns"]) / 1e9
    with open(summary) as f:
        told = json.load(f)
    lost = max(told["lost"], sum(x["count"] for x in told["losses"]))     # two counts of the same losses
    if details is not None:
        details["probes"] = stop["probes"]
        details["ends"], details["holes"] = program_ends(bench, lake)
        details["losses"] = told["losses"]
    shutil.rmtree(room)
    return Sample(wall, cpu, tracer, max(0.0, cpu_all - cpu - tracer), lost, told["programs"], whole)
