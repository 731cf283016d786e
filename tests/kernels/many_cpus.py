#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""many_cpus.py SLUICE LOAD BENCH ROUNDS: LOAD (many_cpus.c) under `sluice run`, on all CPUs.

Each program has its END once, with its own arguments, folder and status; nothing is lost; and the BPF programs wait for
no lock that all CPUs take, except that of the ring.

A spinlock that is not free leads into a slow path of the kernel, which a kprobe counts; the functions that were called
before tell which lock it is. BENCH (bench_cpus.c) does nothing else than use the ring on all CPUs, and shows that such
a waiter is seen. A kernel without kprobes is not asked.
"""
import collections
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile

TRACING = "/sys/kernel/tracing"
SLOW_PATHS = ("native_queued_spin_lock_slowpath", "resilient_queued_spin_lock_slowpath", "resilient_tas_spin_lock")
HISTOGRAM = "hist:keys=stacktrace:size=16384"
PAD_MAX = 3000
FORK_STATUS = 7
BENCH_ROUNDS, BENCH_RUNS = 5, 20000
PROGRAM_RUNS = r"bpf_trace_run|bpf_test_run|bpf_trampoline_\d|bpf_iter_run_prog"
# The locks by a function that takes them. The locks of a bucket and of one CPU are shared by chance only.
LOCKS = (("the ring", r"bpf_ringbuf"), ("free entries of a CPU", r"freelist"),
         ("an LRU list", r"bpf_lru|bpf_common_lru"),
         ("a bucket", r"htab"), ("memory of a CPU", r"bpf_mem|unit_alloc|unit_free"))
SHARED_BY_ALL = {"an LRU list", "another"}


def pad(at, round_):
    return chr(ord("a") + at % 26) * ((at * 37 + round_ * 101) % PAD_MAX)


def expected(cpus, rounds):
    """Returns the arguments, the folder's name and the status of each program, and how often it ends so."""
    programs = collections.Counter()
    for at in range(cpus):
        folder = f"folder-of-{at}"
        for round_ in range(rounds):
            for kind in ("stay", "move", "twice", "again"):
                status = None if kind == "twice" else 0     # another program replaced it
                programs["many_cpus", kind, str(at), str(round_), pad(at, round_), folder, status] += 1
    programs["forked", FORK_STATUS] = cpus * rounds
    programs["forked", 0] = cpus                                # the workers
    programs["many_cpus", str(rounds), 0] = 1
    return programs


def key(record, room):
    if record["forked"]:        # has what its forker's program has
        return "forked", record["exit_code"]
    argv = record["argv"] or ["no arguments"]
    folder = () if record["cwd"] == room else (os.path.basename(record["cwd"] or "no folder"),)
    return (os.path.basename(argv[0]), *argv[1:], *folder, record["exit_code"])


def write(path, text):
    at = os.open(f"{TRACING}/{path}", os.O_WRONLY)      # without O_TRUNC, which would remove what others have set
    try:
        os.write(at, text.encode() + b"\n")
    finally:
        os.close(at)


def lock_of(stack):
    """Returns the name of the lock that a waiter found taken. stack: the functions, the innermost first."""
    called, of_program, _ = re.split(f"({PROGRAM_RUNS}|$)", stack, maxsplit=1)
    if not of_program or re.search(r"interrupt|sysvec|__schedule", called):     # it never sleeps, but is interrupted
        return "not of a BPF program"
    return next((name for name, function in LOCKS if re.search(function, called)), "another")


def probe():
    """Counts waits for spinlocks from now on. Returns the names of the events, [] where the kernel has no kprobes."""
    events = []
    with open("/proc/kallsyms") as f:
        functions = {line.split()[2] for line in f}
    for name in SLOW_PATHS:
        if name in functions:
            try:
                write("kprobe_events", f"p:many_cpus/{name} {name}")
                write(f"events/many_cpus/{name}/trigger", HISTOGRAM)
            except OSError as e:
                print(f"no probe of {name}: {e}")
                continue
            events.append(name)
    return events


@contextlib.contextmanager
def contention(waits):
    """waits, a Counter, receives how often BPF programs found which lock taken; None: this kernel does not tell."""
    events = probe()
    yield
    if not events:
        waits[None] = 1
    for name in events:
        with open(f"{TRACING}/events/many_cpus/{name}/hist") as f:
            text = f.read()
        write(f"events/many_cpus/{name}/trigger", "!" + HISTOGRAM)
        write("kprobe_events", f"-:many_cpus/{name}")
        hits, dropped = (int(re.search(rf"{word}: (\d+)", text)[1]) for word in ("Hits", "Dropped"))
        if dropped > hits / 100:
            raise SystemExit(f"{dropped} of {hits} waiters are unknown")
        for stack, count in re.findall(r"(?s)\{(.*?)\} hitcount: *(\d+)", text):
            lock = lock_of(stack)
            waits[lock] += int(count)
            if lock in SHARED_BY_ALL:
                print(f"{lock}, {count} times:{stack}")


def print_waits(what, waits, per):
    if None in waits:
        print("this kernel does not tell who waits for locks")
        return
    for name, n in sorted(waits.items(), key=lambda x: -x[1]):
        print(f"{what}: found a spinlock taken, {name}: {n}, {1000 * n / per:.2f} in 1,000")


def main(sluice, load, bench, rounds):
    room = tempfile.mkdtemp()
    summary, lake = (os.path.join(room, name) for name in ("summary", "lake"))
    waits, control = collections.Counter(), collections.Counter()
    with contention(waits):
        done = subprocess.run([sluice, "run", "--quiet", "--json", summary, "--lake", lake, "--", load, str(rounds)],
                              cwd=room, stdout=subprocess.PIPE, text=True)
    with contention(control):
        subprocess.run([bench, str(BENCH_ROUNDS), str(BENCH_RUNS)], check=True)
    if done.returncode != 0:
        raise SystemExit(f"sluice run: exit {done.returncode}")
    cpus = int(done.stdout)
    cat = subprocess.run([sluice, "cat", "--raw", "--topic", "program", lake], stdout=subprocess.PIPE, text=True,
                         check=True)
    records = list(map(json.loads, cat.stdout.splitlines()))
    ends = [r for r in records if r["phase"] == "END"]
    with open(summary) as f:
        told = json.load(f)

    wrong = []
    seqs = sorted(r["seq"] for r in records)
    if seqs != list(range(len(seqs))):
        wrong.append(f"seq has gaps or repetitions: {len(seqs)} records up to {seqs[-1]}")
    if told["lost"] or told["losses"]:
        wrong.append(f"lost: {told['lost']}, {told['losses']}")
    twice = [i for i, n in collections.Counter(r["program_id"] for r in ends).items() if n > 1]
    wrong += [f"END twice: {i}" for i in twice]
    programs = expected(cpus, rounds)
    found = collections.Counter(key(r, os.path.realpath(room)) for r in ends)
    wrong += [f"{n} times too few: {str(k)[:80]}" for k, n in (programs - found).items()]
    wrong += [f"{n} times too many: {str(k)[:80]}" for k, n in (found - programs).items()]
    wrong += [f"not known whole: {json.dumps(r)}" for r in ends if r["cwd"] is None or r["argv"] is None]
    of_no_time = [r for r in ends if not r["forked"] and not r["usage"]["minor_faults"]]
    wrong += [f"no page faults: {r['argv'][:4]}" for r in of_no_time]
    print(f"{cpus} CPUs: {len(ends)} ENDs of {programs.total()} programs, lost {told['lost']}")
    print_waits("load", waits, len(ends))
    print_waits("bench", control, BENCH_ROUNDS * BENCH_RUNS)
    wrong += [f"BPF programs waited for {name}, which all CPUs take" for name in waits if name in SHARED_BY_ALL]
    if cpus > 2 and None not in control and not control["the ring"]:
        wrong.append("no waiter was seen where all CPUs do nothing but use the ring")
    print("\n".join(wrong[:20]) or "all as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:4]), int(sys.argv[4])))
