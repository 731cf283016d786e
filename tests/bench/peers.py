# SPDX-License-Identifier: Apache-2.0
"""The other tracers, measured like sluice: strace, bpftrace, execsnoop and exitsnoop, acct(2); auditd.py has auditd."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import arms
import machine
from arms import Sample

READY_S = 30  # time for bpftrace to compile and attach, and for a tool to load its programs
IDLE_S = 10   # time for a tool to read what is left in its buffers
READY = 'BEGIN { printf("ready\\n"); } '
COUNTS = ("tracepoint:sched:sched_process_fork { @fork = count(); } "
          "tracepoint:sched:sched_process_exec { @exec = count(); } "
          "tracepoint:sched:sched_process_exit { @exit = count(); }")
# A line for each program that starts, and one for each process that ends, with its main figures.
RECORDS = ('tracepoint:sched:sched_process_exec '
           '{ printf("exec %llu %d %s %s\\n", nsecs, pid, comm, str(args->filename)); } '
           'tracepoint:sched:sched_process_exit /pid == tid/ { $t = (struct task_struct *)curtask; '
           'printf("exit %llu %d %d %s %d %llu %llu %llu %llu %llu\\n", nsecs, pid, $t->real_parent->tgid, comm, '
           '$t->exit_code, $t->utime + $t->signal->utime, $t->stime + $t->signal->stime, $t->signal->maxrss, '
           '$t->ioac.read_bytes, $t->ioac.write_bytes); }')
SNOOPS = ("execsnoop", "exitsnoop")


def run_strace(bench, command, cwd):
    room = bench.new_folder()
    out = os.path.join(room, "timed")
    cpu_all, whole = arms.wait(["strace", "-f", "-c", "-e", "trace=process", "-o", os.path.join(room, "counts"),
                                bench.timed, out, *command], **arms.quiet(bench, cwd))
    wall, cpu = arms.read_timed(out)
    shutil.rmtree(room)
    return Sample(wall, cpu, cpu_all - cpu, None, None, None, whole)


def lost_events(text):
    """Returns how many events a tool of perf's buffers reports as lost."""
    return sum(map(int, re.findall(r"(?i)lost (\d+) events", text)))


def wait_reading(tool, errors, limit_s):
    """Waits until the process waits for events: its programs are attached, and its buffers are empty."""
    deadline = time.monotonic() + limit_s
    while tool.poll() is None and time.monotonic() < deadline:
        with open(f"/proc/{tool.pid}/wchan") as f:
            if "poll" in f.read():
                return
        time.sleep(0.01)
    with open(errors, errors="replace") as f:
        raise arms.Unavailable(f"{tool.args[0]} does not wait for events: {f.read().strip()}")


def start_bpftrace(program, told):
    """Starts bpftrace with output to the file `told`, until it is attached. Retries, since it may hang."""
    errors = told + ".errors"
    for _ in range(3):
        with open(told, "w") as out, open(errors, "w") as err:
            tracer = subprocess.Popen(["bpftrace", "-B", "line", "-e", READY + program], stdout=out, stderr=err)
        deadline = time.monotonic() + READY_S
        while tracer.poll() is None and time.monotonic() < deadline:
            with open(told) as f:
                if "ready" in f.read():
                    return tracer
            time.sleep(0.01)
        tracer.kill()
        tracer.wait()
    with open(errors) as f:
        raise arms.Unavailable(f"bpftrace did not start: {f.read().strip()}")


def run_bpftrace(bench, command, cwd, program, expected):
    room = bench.new_folder()
    out, told = os.path.join(room, "timed"), os.path.join(room, "told")
    begin = time.monotonic()
    tracer = start_bpftrace(program, told)
    try:
        before = machine.cpu_ns(tracer.pid)
        arms.wait([bench.timed, out, *command], **arms.quiet(bench, cwd))
        wait_reading(tracer, told + ".errors", IDLE_S)
        used = (machine.cpu_ns(tracer.pid) - before) / 1e9
    finally:
        tracer.send_signal(signal.SIGINT)
        cpu_all = arms.reap(tracer)
    whole = time.monotonic() - begin
    with open(told, errors="replace") as f:
        text = f.read()
    if expected not in text:
        raise arms.Failed(f"the output of bpftrace does not contain {expected!r}")
    wall, cpu = arms.read_timed(out)
    shutil.rmtree(room)
    return Sample(wall, cpu, used, max(0.0, cpu_all - used), lost_events(text), None, whole)


def run_counts(bench, command, cwd):
    return run_bpftrace(bench, command, cwd, COUNTS, "@exec: ")


def run_records(bench, command, cwd):
    return run_bpftrace(bench, command, cwd, RECORDS, "exit ")


def run_snoops(bench, command, cwd):
    """execsnoop and exitsnoop of libbpf-tools, each with its lines in a file: together they do what one tool would."""
    room = bench.new_folder()
    out = os.path.join(room, "timed")
    told, errors = ({name: os.path.join(room, name + end) for name in SNOOPS} for end in ("", ".errors"))
    tools = {}
    begin = time.monotonic()
    cpu_all = 0.0
    try:
        for name in SNOOPS:
            with open(told[name], "w") as f, open(errors[name], "w") as err:
                tools[name] = subprocess.Popen([name], stdin=subprocess.DEVNULL, stdout=f, stderr=err)
        for name, tool in tools.items():
            wait_reading(tool, errors[name], READY_S)
        before = sum(machine.cpu_ns(tool.pid) for tool in tools.values())
        arms.wait([bench.timed, out, *command], **arms.quiet(bench, cwd))
        for name, tool in tools.items():
            wait_reading(tool, errors[name], IDLE_S)
        used = (sum(machine.cpu_ns(tool.pid) for tool in tools.values()) - before) / 1e9
    finally:
        for tool in tools.values():
            with contextlib.suppress(ProcessLookupError):
                tool.send_signal(signal.SIGINT)
            cpu_all += arms.reap(tool) if tool.returncode is None else 0
    whole = time.monotonic() - begin
    lost = 0
    for name in SNOOPS:
        with open(told[name], errors="replace") as f:
            if os.path.basename(bench.timed)[:15] not in f.read():
                raise arms.Failed(f"the output of {name} has no line of the load")
        with open(errors[name], errors="replace") as f:
            lost += lost_events(f.read())
    wall, cpu = arms.read_timed(out)
    shutil.rmtree(room)
    return Sample(wall, cpu, used, max(0.0, cpu_all - used), lost, None, whole)


def run_accounting(bench, command, cwd):
    """
    acct(2): the kernel itself writes 64 bytes for each process that ends; no tracer is started. Its file is in memory:
    on a disk that has less than 4 % left it writes nothing.
    """
    room = bench.new_folder()
    out = os.path.join(room, "timed")
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="sluice-acct-") as book:
        begin = time.monotonic()
        done = subprocess.run(["accton", book.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise arms.Unavailable(done.stdout.strip())
        try:
            arms.wait([bench.timed, out, *command], **arms.quiet(bench, cwd))
        finally:
            subprocess.run(["accton", "off"], check=True, stdout=subprocess.DEVNULL)
        whole = time.monotonic() - begin
        if os.path.getsize(book.name) == 0:
            room_left = os.statvfs(book.name)
            raise arms.Failed(f"acct(2) wrote nothing, with {room_left.f_bavail} of {room_left.f_blocks} blocks free")
    wall, cpu = arms.read_timed(out)
    shutil.rmtree(room)
    return Sample(wall, cpu, 0.0, 0.0, 0, None, whole)
