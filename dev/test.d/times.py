#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long each test takes: tests/times.tsv, and what takes more than twice as long.

times.py --keep   writes the times of the last whole run, of build/test-results/whole.xml, into tests/times.tsv
"""
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEPT = os.path.join(ROOT, "tests", "times.tsv")
HEADER = "# Seconds that each test took in a whole run on two CPUs, beside others: test, seconds. `dev/test times` writes it.\n"
FACTOR = 2
# Shorter ones are as long as the machine is busy; naming them would hide the others.
FLOOR_S = 10


def read(path=KEPT):
    """{test: seconds}"""
    with open(path) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {name: float(took) for name, took in rows}


def slower(tests, kept=None):
    """[sentence] for each of [(name, seconds, status)] that takes more than twice what is kept, or that is not kept."""
    kept = read() if kept is None else kept
    found = [f"{name} took {took:.0f} s; tests/times.tsv has {kept[name]:.0f} s" for name, took, _ in tests
             if name in kept and took > max(FACTOR * kept[name], FLOOR_S)]
    return found + [f"{name} took {took:.0f} s; it is not in tests/times.tsv, which `dev/test times` writes"
                    for name, took, _ in tests if name not in kept and took > FLOOR_S]


def keep():
    import report

    tests, _ = report.read_junit(os.path.join(ROOT, "build", "test-results", "whole.xml"))
    if not tests or any(status == "fail" for _, _, status in tests):
        sys.exit("dev/test: no whole run that passed; run: ./dev/test")
    with open(KEPT, "w") as f:
        f.write(HEADER)
        f.writelines(f"{name}\t{took:.1f}\n" for name, took, _ in sorted(tests))


if __name__ == "__main__":
    if sys.argv[1:] != ["--keep"]:
        sys.exit(__doc__)
    keep()
