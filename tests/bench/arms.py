# SPDX-License-Identifier: Apache-2.0
"""One workload under nothing, under sluice, under strace, under bpftrace: measured alike.

Each arm runs `timed OUT COMMAND`, so that the workload's CPU time is what wait4(2) says of COMMAND
and its descendants, whatever stands around it. The tracer's own CPU time is apart.
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading

import machine

READY_S = 30  # what bpftrace may take to compile and attach
BPFTRACE = ('BEGIN { printf("ready\\n"); } '
            "tracepoint:sched:sched_process_fork { @fork = count(); } "
            "tracepoint:sched:sched_process_exec { @exec = count(); } "
            "tracepoint:sched:sched_process_exit { @exit = count(); }")

# All in seconds. tracer is None where there is none; start: what its start and end cost besides.
Sample = collections.namedtuple("Sample", "wall cpu tracer start lost programs")


class Bench:
    """The programs that we measure with, and a room for what they write."""

    def __init__(self, sluice, programs, room):
        self.sluice = sluice
        self.room = room
        for name in ("tiny", "storm", "timed", "stream", "snapshot", "floor", "tools", "rules", "delivery"):
            setattr(self, name, os.path.join(programs, "bench-" + name))
        # a path as deep as /usr/bin/tool, wherever the build is: the kernel side walks it
        self.tiny = shutil.copy(self.tiny, os.path.join(room, "tiny"))
        # what sudo put there would make sluice run the workload as another user
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}

    def spawn_command(self, n, workers):
        return [self.storm, "spawn", str(n), str(workers), self.tiny]

    def parts(self, program, *args):
        """{name: values} of a bench_* program."""
        out = subprocess.run([program, *map(str, args)], check=True, stdout=subprocess.PIPE, text=True).stdout
        return {x["name"]: x["values"] for x in map(json.loads, out.splitlines())}

    def place(self):
        return tempfile.mkdtemp(dir=self.room)


class Failed(Exception):
    """A workload or a tracer did not work: there is nothing to report."""


def wait(argv, **kw):
    """Runs argv; its own CPU seconds and those of its reaped descendants."""
    p = subprocess.Popen(argv, **kw)
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        raise Failed(f"{' '.join(map(str, argv))}: exit {p.returncode}")
    return used.ru_utime + used.ru_stime


def quiet(bench, cwd):
    return {"env": bench.env, "cwd": cwd or bench.room, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}


def read_timed(path):
    with open(path) as f:
        t = json.load(f)
    return t["wall_ns"] / 1e9, (t["user_ns"] + t["system_ns"]) / 1e9


def run_none(bench, command, cwd):
    out = os.path.join(bench.place(), "timed")
    wait([bench.timed, out, *command], **quiet(bench, cwd))
    wall, cpu = read_timed(out)
    return Sample(wall, cpu, None, None, None, None)


def agent_records(bench, lake):
    out = subprocess.run([bench.sluice, "cat", "--raw", "--topic", "agent", lake], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return sorted(map(json.loads, out.splitlines()), key=lambda r: r["seq"])


def program_ends(bench, lake):
    """END records in the lake, and the holes in the numbering of its program records."""
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
    """details, a dict: gets the STOP record's probes and the number of END records."""
    room = bench.place()
    out, summary, lake = (os.path.join(room, x) for x in ("timed", "summary", "lake"))
    cpu_all = wait([bench.sluice, "run", "--quiet", "--json", summary, "--lake", lake, "--", bench.timed, out, *command],
                   **quiet(bench, cwd))
    wall, cpu = read_timed(out)
    records = agent_records(bench, lake)
    start, stop = records[0], records[-1]
    if (start["event"], stop["event"]) != ("START", "STOP"):
        raise Failed(f"the lake has no START and STOP of the agent: {lake}")
    tracer = (stop["cpu_ns"] - start["cpu_ns"]) / 1e9
    with open(summary) as f:
        told = json.load(f)
    lost = max(told["lost"], sum(x["count"] for x in told["losses"]))     # two views of the same
    if details is not None:
        details["probes"] = stop["probes"]
        details["start"] = start["cpu_ns"] / 1e9
        details["ends"], details["holes"] = program_ends(bench, lake)
        details["losses"] = told["losses"]
    shutil.rmtree(room)
    return Sample(wall, cpu, tracer, max(0.0, cpu_all - cpu - tracer), lost, told["programs"])


def run_strace(bench, command, cwd):
    room = bench.place()
    out = os.path.join(room, "timed")
    cpu_all = wait(["strace", "-f", "-c", "-e", "trace=process", "-o", os.path.join(room, "counts"),
                    bench.timed, out, *command], **quiet(bench, cwd))
    wall, cpu = read_timed(out)
    return Sample(wall, cpu, cpu_all - cpu, None, None, None)


def start_bpftrace(errors):
    """One that has attached its probes. Once in a while it never says so, nor ends: then another."""
    for _ in range(3):
        tracer = subprocess.Popen(["bpftrace", "-B", "line", "-e", BPFTRACE], stdout=subprocess.PIPE, stderr=errors, text=True)
        patience = threading.Timer(READY_S, tracer.kill)
        patience.start()
        is_ready = any(line.strip() == "ready" for line in tracer.stdout)
        patience.cancel()
        if is_ready:
            return tracer
        tracer.stdout.close()
        tracer.wait()
    with open(errors.name) as f:
        raise Failed(f"bpftrace did not start: {f.read().strip()}")


def run_bpftrace(bench, command, cwd):
    room = bench.place()
    out = os.path.join(room, "timed")
    with open(os.path.join(room, "errors"), "w") as errors:
        tracer = start_bpftrace(errors)
    try:
        before = machine.cpu_ns(tracer.pid)
        wait([bench.timed, out, *command], **quiet(bench, cwd))
        used = machine.cpu_ns(tracer.pid) - before
    finally:
        tracer.send_signal(signal.SIGINT)
        counts = tracer.stdout.read()
        tracer.wait()
    if "@exec: " not in counts:
        raise Failed(f"bpftrace counted nothing: {counts!r}")
    wall, cpu = read_timed(out)
    return Sample(wall, cpu, used / 1e9, None, None, None)


ARMS = {
    "none": run_none,
    "none again": run_none,
    "sluice run": run_sluice,
    "strace -f -c": run_strace,
    "bpftrace": run_bpftrace,
}


def rounds(bench, n, command, cwd=None, prepare=None, say=print):
    """{arm: [Sample]}: each round runs every arm once; the order turns, so that none is always first."""
    names = list(ARMS)
    samples = {name: [] for name in names}
    at = prepare() if prepare else cwd
    run_none(bench, command, at)        # not counted: reads all files for the first time
    if prepare:
        shutil.rmtree(at)
    for i in range(n):
        order = names[i % len(names):] + names[:i % len(names)]
        if i % 2:
            order.reverse()
        for name in order:
            at = prepare() if prepare else cwd
            samples[name].append(ARMS[name](bench, command, at))
            if prepare:
                shutil.rmtree(at)
        say(f"  round {i + 1} of {n}")
    return samples
