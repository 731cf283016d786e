#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""exact_rss.py SLUICE LOAD: the peak memory of LOAD (exact_rss.c) under `sluice run` is that which the kernel counts by
a walk over all pages, though each CPU holds back a part of the kernel's counters."""
import json
import os
import subprocess
import sys
import tempfile

PAGE = os.sysconf("SC_PAGESIZE")
NEAR = 16  # pages that the load may touch after it has printed what it has


def counted(sluice, load, pages):
    """Returns on how many CPUs LOAD ran, what it has resident, and what its record has, in bytes."""
    with tempfile.TemporaryDirectory() as lake:
        done = subprocess.run([sluice, "run", "--quiet", "--lake", lake, "--", load, str(pages)], stdout=subprocess.PIPE,
                              text=True, check=True)
        cat = subprocess.run([sluice, "cat", "--raw", "--topic", "program", lake], stdout=subprocess.PIPE, text=True,
                             check=True)
    cpus, kib = map(int, done.stdout.split())
    ends = [r for r in map(json.loads, cat.stdout.splitlines()) if r["phase"] == "END" and not r["forked"]]
    return cpus, kib << 10, [r["usage"]["peak_rss_bytes"] for r in ends]


def main(sluice, load):
    with open("/sys/devices/system/cpu/possible") as f:
        possible = int(f.read().strip().split("-")[-1]) + 1
    wrong = []
    for pages in (1, 10, 30, 100):  # a CPU adds its part to the kernel's counter at 32 pages, or twice the CPUs
        cpus, resident, found = counted(sluice, load, pages)
        is_exact = len(found) == 1 and found[0] is not None and abs(found[0] - resident) <= NEAR * PAGE
        print(f"{pages} pages on each of {cpus} CPUs, {possible} possible: {resident} bytes, recorded {found}",
              "" if is_exact else ": wrong")
        wrong.append(not is_exact)
    return any(wrong)


if __name__ == "__main__":
    sys.exit(main(*map(os.path.abspath, sys.argv[1:3])))
