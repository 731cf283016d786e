#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches all states of tests/model/probes.pml with Spin: no property fails, and a defect makes its own fail.

model.py [small|large]       each instance of instances.tsv of that size
model.py mutants             each defect of mutants.tsv: the property that is named there must fail
model.py trail MACRO         the steps of the host and of the agent up to where that defect is found
model.py search NAME=VALUE…  one instance with these macros; those of `small` are the default

Builds in build/model. Needs spin and gcc: ./dev/install test.
"""
import concurrent.futures
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "model")
SOURCE = os.path.join(HERE, "probes.pml")
DEPTH = 1000000
MEMORY_MB = 8192
PROPERTY = re.compile(r"assertion violated .*!\s*\(?([A-Z_]+)\)?")
STORED = re.compile(r"(?m)^\s*([\d.e+]+) states, stored")
CYCLES, ENDS = "CYCLES", "ENDS"  # the macro of an instance that is searched for cycles, and the property
INCOMPLETE = ("max search depth too small", "Search not completed", "out of memory", "MEMLIM")


@dataclasses.dataclass
class Result:
    """What the search of one instance found."""
    failed: str  # the property; "": none
    states: int
    seconds: float
    output: str


class ModelError(Exception):
    """The search did not come to an end: a sentence with its output."""


def table(name):
    """The rows of a table beside this file, without its comments."""
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]


def instances(size):
    """Name and macros of each instance of a size."""
    return {name: macros.split() for name, of_size, macros, *_ in table("instances.tsv") if of_size == size}


def mutants():
    """Macro of each defect: the property that must fail, and the instance's macros."""
    return {macro: (failing, macros.split()) for macro, failing, macros, *_ in table("mutants.tsv")}


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def make(macros, room, optimize):
    """Makes the program that searches, in room."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise ModelError(f"{tool} is missing; run: sudo ./dev/install test")
    status, output = run(["spin", *(f"-D{m}" for m in macros), "-a", SOURCE], room)
    if status != 0 or "error" in output.lower():
        raise ModelError(f"spin refuses {SOURCE}:\n{output}")
    kind = "-DNP" if CYCLES in macros else "-DSAFETY"
    how = [optimize, "-w", kind, "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}"]
    status, output = run(["gcc", *how, "-o", "pan", "pan.c"], room)
    if status != 0:
        raise ModelError(f"gcc refuses what spin made:\n{output}")


def search(macros, room, optimize="-O2"):
    """Searches the states of one instance until a property fails. optimize: compiling may take longer than that."""
    make(macros, room, optimize)
    began = time.monotonic()
    _, output = run(["./pan", f"-m{DEPTH}", *["-l"] * (CYCLES in macros)], room)
    seconds = time.monotonic() - began
    states, failed = STORED.search(output), PROPERTY.search(output)
    if "errors: 0" in output and states and not any(word in output for word in INCOMPLETE):
        return Result("", int(float(states[1])), seconds, output)
    if (failed or "non-progress cycle (" in output) and states:
        return Result(failed[1] if failed else ENDS, int(float(states[1])), seconds, output)
    raise ModelError(f"the search of {' '.join(macros)} did not end:\n{output}")


def fresh_room():
    os.makedirs(BUILD, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=BUILD)


def search_all(instances_macros, optimize):
    """The result of each, as they end: two at a time. Takes and returns pairs of a name and macros, or a result."""
    def one(name, macros):
        with fresh_room() as room:
            return name, search(macros, room, optimize)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(one, name, macros) for name, macros in instances_macros]:
            yield done.result()


def search_small():
    return search_all(instances("small").items(), "-O1")


def search_mutants():
    """Each defect, with only the property checked that it must make fail."""
    of_each = [(macro, [*macros, *alone(macro, failing)]) for macro, (failing, macros) in mutants().items()]
    return search_all(of_each, "-O0")


def alone(macro, failing):
    """The macros of a defect without those of its instance."""
    return [macro] if failing == ENDS else [macro, f"ONLY={failing}"]


def trail(macros):
    """The steps to the property that fails."""
    with fresh_room() as room:
        if not search(macros, room).failed:
            return "no property fails"
        steps = ["spin", *(f"-D{m}" for m in macros), "-k", "probes.pml.trail", "-p", "-g", "-l", SOURCE]
        return run(steps, room)[1]


def main(arguments):
    what, rest = (arguments[0] if arguments else "small"), arguments[1:]
    faults = 0
    if what in ("small", "large"):
        for name, result in search_small() if what == "small" else search_all(instances("large").items(), "-O2"):
            faults += bool(result.failed)
            print(f"{name:12} {result.failed or 'all hold':16} {result.states:12,} states {result.seconds:7.1f} s",
                  flush=True)
    elif what == "mutants":
        for macro, result in search_mutants():
            failing = mutants()[macro][0]
            faults += result.failed != failing
            print(f"{macro:32} {result.failed or 'none':16} expected {failing:16} {result.states:12,} states "
                  f"{result.seconds:5.1f} s", flush=True)
    elif what == "trail" and rest:
        known = mutants()
        failing, macros = known.get(rest[0], ("", []))
        print(trail([*macros, *alone(rest[0], failing)] if macros else rest))
    elif what == "search":
        ((_, result),) = search_all([("", rest or next(iter(instances("small").values())))], "-O2")
        print(result.output)
        faults += bool(result.failed)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ModelError as e:
        sys.exit(f"model.py: {e}")
