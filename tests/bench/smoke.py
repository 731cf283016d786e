# SPDX-License-Identifier: Apache-2.0
"""smoke.py RUN SLUICE PROGRAMS: the harness prints every row and restores the machine's settings."""
import os
import re
import subprocess
import sys

import auditd

ROWS = [
    r"fork\+exec\+exit of one process, in-kernel", r"the same, in the agent", r"start and end of `sluice run`, CPU",
    r"the same, wall", r"CPU time of the demo pipeline",
    r"the same for a fork/exec storm", r"lost in a saturating storm of 500", r"agent RSS, idle",
    r"agent RSS, 100 processes alive", r"live snapshot by iterator, 100 processes",
    r"exec with 10 rules in the kernel", r"exec with 10,000 rules", r"exec of a program that 10 rules leave out",
    r"`on_fork`", r"`on_exec`", r"`on_exit`", r"`on_free`",
    r"encode a program record", r"the same through the stream", r"the same into the file lake",
    r"name a program's tool, with 10 rules", r"name a program's tool, with 10,000 rules", r"the same with the shipped rules",
    r"read 10,000 rules", r"iterator, a followed process", r"the same from /proc", r"agent, idle",
    r"an event into the ring, one CPU", r"an addition to a word of all CPUs, one CPU",
    r"an entry into the map of processes and out, one CPU",
    r"agent in the saturating storm", r"the saturating storm's pace",
    *(rf"memory, {when}: {part}" for when in ("idle", "100 alive") for part in ("anonymous", "files", "peak")),
    r"records/s from the spool's put to acknowledged", r"CPU time a record, the same", r"librdkafka's own loop",
    r"spool, delivery, Kafka", r"from the kernel's event to the consumer at 1,000 records/s, p99",
    r"CPU of the agent a process, ring to acknowledged, 500 processes/s", r"the same in a saturating storm",
    r"lost in a saturating storm of 500", r"the idle daemon", r"its RSS, idle", r"its RSS, 100 processes alive",
    r"latency, p50", r"latency, the largest", r"records/s that came meanwhile", r"the saturating storm's pace",
    r"other programs that started", r"idle, thread sluice",
    *(rf"memory, idle: {part}" for part in ("anonymous", "files", "peak")),
    # of the storm and of the pipeline
    *(f"`{arm}`" for arm in ("none again", "sluice run") for _ in range(2)),
    *(f"`{arm}`" for arm in ("strace -f -c", "bpftrace, three counters", "bpftrace, exit records",
                             "execsnoop and exitsnoop", "auditd", "acct") for _ in range(2)),
]


# Limits that hold on a busy machine too: (row, column, smallest, largest).
SANE = [
    ("| records/s from the spool's put", 3, 0.001, 100), ("| CPU time a record", 3, 0.1, 20),
    ("| librdkafka's own loop", 2, 100, 1e8), ("| spool, delivery, Kafka", 2, 50, 1e8),
    ("| from the kernel's event", 3, 1, 60000), ("| its RSS, idle", 3, 4, 1000), ("| latency, p50", 2, 1, 60000), ("| records/s that came meanwhile", 2, 50, 1e5),
]


def settings():
    """Returns the kernel's settings that the harness changes; of the rules of auditing it may leave one."""
    with open("/proc/sys/kernel/bpf_stats_enabled") as f:
        found = {"bpf_stats_enabled": f.read()}
    try:
        found["audit"] = {k: v for k, v in auditd.status().items() if not re.match("lost|backlog$|backlog_wait_time_actual", k)}
        found["audit rules"] = [rule for rule in auditd.rules() if rule != auditd.NEVER_LISTED]
    except (auditd.arms.Unavailable, FileNotFoundError):
        pass        # the kernel has no auditing, or its tools are missing, which the harness reports
    return found


def main(run, sluice, programs):
    if os.geteuid() != 0:
        print("loading BPF needs root")
        return 77
    before = settings()
    done = subprocess.run([run, "--quick", "--rounds", "1", "--sluice", sluice, "--programs", programs],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    print(done.stdout, done.stderr)
    if done.returncode != 0:
        print(f"exit {done.returncode}")
        return 1
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    rows_all = list(rows)
    wrong = []
    for start, column, low, high in SANE:
        row = next((r for r in rows if r.startswith(start)), "")
        figure = re.search(r"-?\d[\d,.]*", row.split("|")[column]) if row else None
        if figure is None or not low <= float(figure[0].replace(",", "")) <= high:
            wrong.append(f"not between {low:g} and {high:g}: {row or start}")
    missing = [r for r in rows if re.match(r"\| `auditd` \| not available: \S", r)]     # a host may use auditing itself
    for pattern in ROWS:
        if missing and pattern == "`auditd`":
            continue
        found = next((r for r in rows if re.match(r"\| " + pattern, r)), None)
        if found is None:
            wrong.append(f"no row {pattern}")
        else:
            rows.remove(found)
            if not re.search(r"\d", found.split("|", 2)[2]):
                wrong.append(f"no figure in {found}")
    lost = [line for line in done.stdout.splitlines() if line.startswith("| lost in ")]
    wrong += [line for line in lost if "| 0 | 0 |" not in line]     # the one budget that holds on a busy machine, too
    words = [row for row in rows_all if "**" in row]
    wrong += [f"a verdict from one round: {row}" for row in words if "**`undecided`**: 1 of " not in row]
    if len(words) < 15:
        wrong.append(f"{len(words)} rows have a verdict")
    if settings() != before:
        wrong.append(f"not restored: {before} became {settings()}")
    print("\n".join(wrong) or "every row is there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
