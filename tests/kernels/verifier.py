#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the kernel's verifier counts of each BPF program, on each kernel of versions.tsv for x86-64: verifier.tsv.

tests/kernels/verifier.py --keep [VERSION…]   as root: counts in a guest of each (dev/kernels), and rewrites verifier.tsv

A figure is the number of instructions that the verifier processed until it accepted the program, all paths together;
beyond 1,000,000 it refuses one. The programs are made for two CPUs, on whatever machine they are loaded.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("SLUICE_BUILD") or os.path.join(ROOT, "build", "release"))
TABLE = os.path.join(HERE, "verifier.tsv")
VERSIONS = os.path.join(HERE, "versions.tsv")
NOT_LOADED = "-"
COUNTED_ON = "x86_64"
CPUS = 2
LIMIT = 1_000_000       # the kernel's BPF_COMPLEXITY_LIMIT_INSNS
MOST = LIMIT // 3       # a program may have: what another compiler or kernel makes of it still fits
MORE = 0.25             # of its kept figure, that a program may have beyond it
HEAD = """\
# Instructions that the verifier of each kernel processed, of the programs for two CPUs; -: not loaded on that kernel.
# The kernel refuses a program beyond 1,000,000. Written by tests/kernels/verifier.py --keep; held by test_verifier.py.
"""


def command():
    path = os.path.join(BUILD, "tests", "ledger", "ledger-programs")
    if not os.access(path, os.X_OK):
        raise AssertionError(f"{path} is not built; run: cmake --preset release && cmake --build --preset release")
    return [path, str(CPUS)]


def read_count(text):
    """{program: instructions} of what ledger-programs prints."""
    return {name: int(verified) for name, verified, _ in (line.split("\t") for line in text.splitlines())}


def series_of(release):
    """6.1.0-50-amd64: 6.1"""
    return re.match(r"\d+\.\d+", release)[0]


def read_table(path=TABLE):
    """{version: {program: instructions}}"""
    with open(path) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return {version: {row[0]: int(row[column]) for row in rows[1:] if row[column] != NOT_LOADED}
            for column, version in enumerate(rows[0]) if column > 0}


def kept_of(machine, release):
    """The column of a kernel; None: it has none. Another architecture's kernel has other hooks and other types."""
    return read_table().get(series_of(release)) if machine == COUNTED_ON else None


def write_table(table, path=TABLE):
    with open(path, "w") as f:
        f.write(HEAD + "\t".join(["program", *table]) + "\n")
        for program in sorted(set().union(*table.values())):
            f.write("\t".join([program, *(str(figures.get(program, NOT_LOADED)) for figures in table.values())]) + "\n")


def faults(counted, kept):
    """Sentences on what must not be. kept: the kernel's column; None: this kernel has none."""
    found = [f"{name}: {n} instructions, and a program may have {MOST}" for name, n in counted.items() if n > MOST]
    if kept is None:
        return found
    found += [f"{name}: was loaded on this kernel, and is not any more" for name in kept.keys() - counted.keys()]
    for name, n in counted.items():
        if name not in kept:
            found.append(f"{name}: {n} instructions, and no figure is kept")
        elif n > kept[name] * (1 + MORE):
            found.append(f"{name}: {n} instructions, and {kept[name]} are kept: more than {MORE:.0%} beyond")
    return sorted(found)


def count_in_guest(version):
    with tempfile.NamedTemporaryFile("w", prefix="sluice-verifier-", suffix=".sh") as script:
        script.write("exec " + " ".join(command()) + "\n")
        script.flush()
        done = subprocess.run([os.path.join(ROOT, "dev", "kernels"), "run", version, script.name], check=False,
                              stdout=subprocess.PIPE, text=True, env={**os.environ, "SLUICE_BUILD": BUILD})
    if done.returncode != 0:
        sys.exit(f"verifier.py: the guest of {version} ended with {done.returncode}:\n{done.stdout}")
    return read_count(done.stdout)


def main(argv):
    if argv[:1] != ["--keep"]:
        sys.exit(__doc__)
    with open(VERSIONS) as f:
        versions = [line.split()[0] for line in f if not line.startswith("#")]
    before = read_table() if os.path.exists(TABLE) else {}
    chosen = argv[1:] or versions
    write_table({version: count_in_guest(version) if version in chosen else before[version]
                 for version in versions if version in chosen or version in before})


if __name__ == "__main__":
    main(sys.argv[1:])
