# SPDX-License-Identifier: Apache-2.0
"""smoke.py RUN SLUICE PROGRAMS: the harness yields every row and leaves the machine as it was."""
import os
import re
import subprocess
import sys

ROWS = [
    r"fork\+exec\+exit of one process, in-kernel", r"the same, in the agent", r"CPU time of the demo pipeline",
    r"the same for a fork/exec storm", r"lost in a saturating storm of 500", r"agent RSS, idle",
    r"agent RSS, 100 processes alive", r"live snapshot by iterator, 100 processes",
    r"`on_fork`", r"`on_exec`", r"`on_exit`", r"`on_free`",
    r"encode a program record", r"the same through the stream", r"the same into the file lake",
    r"iterator, a followed process", r"the same from /proc", r"agent, idle",
    r"agent in the saturating storm", r"the saturating storm's pace", r"start and end of `sluice run`",
    r"memory, idle", r"memory, 100 alive",
] + [r"`" + arm + r"`" for arm in ("none again", "sluice run", "strace -f -c", "bpftrace") for _ in range(2)]


def stats():
    with open("/proc/sys/kernel/bpf_stats_enabled") as f:
        return f.read()


def main(run, sluice, programs):
    if os.geteuid() != 0:
        print("loading BPF needs root")
        return 77
    before = stats()
    done = subprocess.run([run, "--quick", "--rounds", "1", "--sluice", sluice, "--programs", programs],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    print(done.stdout, done.stderr)
    if done.returncode != 0:
        print(f"exit {done.returncode}")
        return 1
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    wrong = []
    for pattern in ROWS:
        found = next((r for r in rows if re.match(r"\| " + pattern, r)), None)
        if found is None:
            wrong.append(f"no row {pattern}")
        else:
            rows.remove(found)
            if not re.search(r"\d", found.split("|", 2)[2]):
                wrong.append(f"no figure in {found}")
    lost = next(line for line in done.stdout.splitlines() if line.startswith("| lost in "))
    if "| 0 | met |" not in lost:
        wrong.append(lost)      # the one budget that holds on a busy machine, too
    if stats() != before:
        wrong.append("kernel.bpf_stats_enabled was not restored")
    print("\n".join(wrong) or "every row is there")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
