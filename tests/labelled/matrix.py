# SPDX-License-Identifier: Apache-2.0
"""matrix.py: labelled workloads under `sluice run`, and the verdict on each beside its label.

Each workload runs with delay accounting (kernel.task_delayacct) and without; the setting is put back at the end. An
execution counts if the kernel bears the label out (oracle.py), else it is repeated, and a label that is not borne out
three times makes the result invalid. Whether something was denied is asked only where the host leaves no doubt about it.

Exit status: 0 where 95 % are right or more; 1 where fewer are, where one whose demand must be right is wrong, or where a
label was not borne out.
"""
import argparse
import contextlib
import dataclasses
import fcntl
import fnmatch
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import harness
import judge
import oracle
import surroundings
import tables
import undo
from workloads import WORKLOADS

PROGRAM = os.path.join(harness.BUILD, "tests", "labelled", "labelled")
ACCOUNTING = "/proc/sys/kernel/task_delayacct"
ATTEMPTS = 3
SECONDS = 6
TIMED_OUT = 124  # timeout(1)
TASK = "labelled"
STACKS = 4  # the most frequent ones


@contextlib.contextmanager
def alone():
    """The setting of delay accounting is the host's: another matrix is waited for."""
    with open(ACCOUNTING) as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def accounting(is_on, undoing):
    """The kernel's delay accounting, for tasks that begin meanwhile."""
    with open(ACCOUNTING) as f:
        before = f.read().strip()
    with undoing.step("sh", "-c", f"echo {before} > {ACCOUNTING}"):
        with open(ACCOUNTING, "w") as f:
            f.write("1" if is_on else "0")
        yield


def execute(workload, place, has_delays, outcome):
    """One execution under sluice run, which completes the outcome."""
    lake = os.path.join(place.folder, "lake")
    with contextlib.ExitStack() as stack:
        names = {"program": place.program, "seconds": f"{place.seconds:g}", "file": place.file, "folder": place.folder}
        if workload.peer:
            peer = stack.enter_context(surroundings.others(place, *(part.format(**names) for part in workload.peer)))
            names["port"] = peer.stdout.readline().strip()
        command = [*place.where, *place.before, *(part.format(**names) for part in workload.command)]
        run = [*surroundings.DIES_WITH_PARENT, harness.SLUICE, "run", "--own-probes", "--quiet", "--task", TASK,
               "--lake", lake, "--", *surroundings.DIES_WITH_PARENT, *command]
        with oracle.Oracle(place) as watched:
            # Where its file is: the folder of a task is the disk of which sluice asks what others do with it.
            sluice = subprocess.Popen(run, env=harness.plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, cwd=os.path.dirname(place.file or "") or None)
            try:
                watched.watch(sluice.pid, harness.SLUICE)
                _, complaint = sluice.communicate(timeout=place.seconds * 5 + 60)
            finally:
                sluice.kill()
                sluice.wait()
    ends = [r for r in harness.read_lake(lake).get("sluice.task", []) if r["phase"] == "END"]
    if sluice.returncode not in (0, TIMED_OUT) or len(ends) != 1:
        raise RuntimeError(f"exit {sluice.returncode}, {len(ends)} ends of its task; {complaint.strip()}")
    outcome.stacks = watched.stacks(STACKS)
    judge.judge(workload, judge.verdict_of(ends[0]), watched.figures(has_delays), outcome)


def outcome_of(workload, is_on, seconds, undoing):
    outcome = judge.new_outcome(workload, is_on)
    while outcome.attempts < ATTEMPTS:
        outcome.attempts += 1
        folder = tempfile.mkdtemp(prefix="sluice-labelled-")
        place = surroundings.Place(folder, PROGRAM, undoing, seconds)
        try:
            with undoing.step("rm", "-r", "--one-file-system", folder), surroundings.around(place, workload):
                execute(workload, place, is_on, outcome)
        except surroundings.Absent as e:
            outcome.absent = str(e)
            break
        except (RuntimeError, OSError, subprocess.SubprocessError) as e:
            outcome.untrue = [f"{type(e).__name__}: {e}"]
        if not outcome.untrue:
            break
    return outcome


def chosen(patterns):
    found = [w for w in WORKLOADS if not patterns or any(fnmatch.fnmatchcase(w.name, p) for p in patterns)]
    if not found:
        sys.exit("matrix.py: no workload has such a name; --list prints them")
    return found


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", help="patterns of names of workloads; all where none is given")
    p.add_argument("--delays", choices=("on", "off", "both"), default="both")
    p.add_argument("--seconds", type=float, default=SECONDS, help="of work")
    p.add_argument("--json", metavar="FILE", help="also write each outcome there")
    p.add_argument("--list", action="store_true", help="print the labels and end")
    return p.parse_args()


def main():
    options = arguments()
    workloads = chosen(options.names)
    if options.list:
        for w in workloads:
            label = judge.new_outcome(w, None).label
            print(f"{w.name:41} {label['demand']:20} {label['waiting_for'] or '-':14} {w.denied:10} {', '.join(w.around)}")
        return 0
    if not os.path.exists(PROGRAM):
        sys.exit(f"matrix.py: {PROGRAM} is not built; run: cmake --preset release && cmake --build --preset release")
    if not harness.is_root():
        sys.exit("matrix.py: loading BPF and limits of control groups need root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    settings = {"on": (True,), "off": (False,), "both": (True, False)}[options.delays]
    outcomes, is_well = {is_on: [] for is_on in settings}, True
    with alone(), undo.Undo() as undoing:
        for is_on in settings:
            print(tables.heading(is_on))
            with accounting(is_on, undoing):
                for workload in workloads:
                    outcomes[is_on].append(outcome_of(workload, is_on, options.seconds, undoing))
                    print(tables.row(outcomes[is_on][-1]), flush=True)
    for is_on in settings:
        lines, is_each_well = tables.totals(outcomes[is_on])
        print("\n".join([f"\ndelay accounting {'on' if is_on else 'off'}: labels of demand by verdicts", *lines]))
        is_well &= is_each_well
    if options.json:
        with open(options.json, "w") as f:
            json.dump([dataclasses.asdict(o) for is_on in settings for o in outcomes[is_on]], f, indent=1)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
