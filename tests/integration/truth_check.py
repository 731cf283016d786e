# SPDX-License-Identifier: Apache-2.0
"""Holds the lake of `sluice run -- truth all` to what the kernel itself said of each child.

truth_check.py --sluice PATH --truth PATH [--case NAME] [--agent [--kills N]] [--subscribed] [--made-up] [--runs N]
    [--tolerance-ms N] [--keep DIR]

Runs by itself, in a guest too. Exit 0: no mismatch; 1: a list of them; 77: not possible here.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import agent
import harness
import verdict
from truth_compare import MADE_UP_MAX, Check, Mismatch
from truth_reported import Truth

INTERVAL = "500ms"  # between Usage records of `sluice run`
SHOWN = 100  # mismatches of one run
ENDS_SEEN = {"zombie_preempted"}  # cases whose zombies are there for so long that a pass sees them: no end to make up

_RFC3339 = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")


def cat_agrees(sluice, lake, topics):
    """`sluice cat` says what fastavro reads: [Mismatch]."""
    wrong = []
    for topic, records in sorted(topics.items()):
        raw = harness.read_cat(lake, topic, sluice=sluice)
        if len(raw) != len(records):
            wrong.append(Mismatch("sluice cat", f"records of {topic}", len(records), len(raw)))
        for a, b in zip(records, raw):
            if a != b:
                fields = [k for k in a.keys() | b.keys() if a.get(k) != b.get(k)]
                wrong.append(Mismatch("sluice cat", f"{topic} seq {a['seq']}", {k: a.get(k) for k in fields},
                                      {k: b.get(k) for k in fields}))
        for a, b in zip(records, harness.read_cat(lake, topic, sluice=sluice, raw=False)):
            for field in ("time", "start_time", "end_time"):
                if b.get(field) is not None and not _RFC3339.match(str(b[field])):
                    wrong.append(Mismatch("sluice cat", f"{topic} seq {a['seq']} {field}", "RFC 3339 with microseconds", b[field]))
    return wrong


def start_after_ms(args):
    """records.start_after. Without kills, START is written at exec, so that it is compared with END for each program."""
    return 0 if args.agent and not args.kills else 1000


def under_agent(args, room, what):
    """The same under `sluice agent`, which is killed and started again args.kills times: (mismatches, lake)."""
    a = agent.Agent(room, sluice=args.sluice, records={"start_after": f"{start_after_ms(args)}ms"})
    wrong = []
    try:
        a.start()
        truth = subprocess.Popen([args.truth, *what], env=harness.plain_environment())
        for _ in range(args.kills):
            time.sleep(random.uniform(0.1, 0.6))
            a.kill9()
            a.start()
        if truth.wait(600) != 0:
            wrong.append(Mismatch("-", "exit status of truth", 0, truth.returncode))
        a.settle()
        if a.stop() != 0:
            wrong.append(Mismatch("-", "exit status of sluice agent", 0, a.process.returncode))
    finally:
        a.remove()
    return wrong, a.lake


def beside_agent(args, room, command, what):
    """`sluice run` without probes of its own: an agent passes the events on."""
    os.chmod(room, 0o755)  # for the agent's user
    os.mkdir(os.path.join(room, "agent"))
    a = agent.Agent(os.path.join(room, "agent"), sluice=args.sluice)
    try:
        a.start()
        done = harness.run_sluice([*command, "--control", a.control, "--", args.truth, *what], sluice=args.sluice, timeout=600)
        if "run.tagged" not in a.log_text():
            raise AssertionError("the agent was not asked for events:\n" + a.log_text())
        a.stop()
    finally:
        a.remove()
    return done


def stolen_us():
    """What hypervisors have taken from this machine's CPUs since it was booted."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8]) * 1000000 // os.sysconf("SC_CLK_TCK")


def first_of_each(topics):
    """Without what was delivered twice; a reader drops it by (agent_id, seq)."""
    return {topic: list({(r["agent_id"], r["seq"]): r for r in reversed(records)}.values())[::-1]
            for topic, records in topics.items()}


def once(args, room):
    """One run, held to the truth: (mismatches, summary)."""
    lake, told = os.path.join(room, "lake"), os.path.join(room, "truth.jsonl")
    what = ["case", args.case, told] if args.case else ["all", told]
    doctor = json.loads(harness.run_sluice(["doctor", "--json"], sluice=args.sluice, timeout=600).stdout)
    stolen, began = stolen_us(), time.monotonic()
    if args.agent:
        wrong, lake = under_agent(args, room, what)
        truth, topics = Truth(told), first_of_each(harness.read_lake(lake))
        check = Check(truth, topics, doctor, args.tolerance_ms * 1000, is_host_wide=True, is_ordinary=True,
                      stolen_us=stolen_us() - stolen, kills=args.kills, start_after_us=start_after_ms(args) * 1000)
        wrong += check.all() + tell(args, truth, check, time.monotonic() - began)
        return wrong, summary_of(truth, check)
    command = ["run", "--lake", lake, "--quiet", "--interval", INTERVAL]
    if args.subscribed:
        done = beside_agent(args, room, command, what)
    else:
        done = harness.run_sluice([*command, "--", args.truth, *what], sluice=args.sluice, timeout=600)
    wrong = []
    if done.returncode != 0:
        wrong.append(Mismatch("-", "exit status of sluice run", 0, f"{done.returncode}: {done.stderr}"))
        if not os.path.exists(told):
            return wrong, "nothing to compare"
    elif done.stderr:
        wrong.append(Mismatch("-", "stderr of sluice run --quiet", "", done.stderr))
    for path, finished in harness.lake_files(lake):
        if not finished:
            wrong.append(Mismatch("-", "files left open in the lake", None, path))
    truth, topics = Truth(told), harness.read_lake(lake)
    check = Check(truth, topics, doctor, args.tolerance_ms * 1000, is_ordinary=not args.made_up,
                  stolen_us=stolen_us() - stolen)
    wrong += check.all() + tell(args, truth, check, time.monotonic() - began)
    if args.made_up:
        least = sum(p.case not in ENDS_SEEN for p in truth.processes.values())
        if check.made_up < least:
            wrong.append(Mismatch("-", "ends that were made up for", f"at least {least}", check.made_up))
    wrong += cat_agrees(args.sluice, lake, topics)
    return wrong, summary_of(truth, check)


def summary_of(truth, check):
    worst = ", ".join(f"{k} {v:g}" for k, v in sorted(check.worst.items()))
    missing = ", ".join(sorted(check.unknown)) or "nothing"
    summary = [f"{len(truth.processes)} processes, {sum(p.n_programs for p in truth.processes.values())} programs",
               f"ends made up for: {check.made_up} (ordinary: at most {check.most(MADE_UP_MAX)}); "
               f"events skipped: {check.skipped} (at most {check.skipped_max})",
               f"largest errors: {worst}", f"null on this kernel: {missing}"]
    summary += [f"skipped {s['case']}: {s['reason']}" for s in truth.skips]
    return "\n".join(summary)


def arm_of(args):
    """What of all arms this is, in a word or two."""
    return "made up" if args.made_up else "subscribed" if args.subscribed else f"agent, {args.kills} kills" if args.kills else "agent" if args.agent else "ordinary"


def tell(args, truth, check, took):
    """Tells the closing report what was made up for and skipped by the kernel, and each case that could not be tried: [Mismatch]
    of those that no caller has allowed."""
    verdict.tell("truth", arm_of(args), "measured", took, f"{check.made_up} ends made up for (ordinary: at most {check.most(MADE_UP_MAX)}), "
                 f"{check.skipped} events skipped (at most {check.skipped_max})")
    for skip in truth.skips:
        verdict.tell("truth", skip["case"], "skipped", 0, skip["reason"])
    return [Mismatch(skip["case"], "skipped, and not listed in tests/skips.tsv", None, skip["reason"])
            for skip in truth.skips if not verdict.may_skip(f"truth::{skip['case']}")]


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--sluice", help="default: the one of the same build")
    ap.add_argument("--truth", help="default: the one of the same build")
    ap.add_argument("--case", default=os.environ.get("SLUICE_TEST_CASE"), help="only this one; default: $SLUICE_TEST_CASE, or all")
    ap.add_argument("--agent", action="store_true", help="under a host-wide `sluice agent`, in no run")
    ap.add_argument("--kills", type=int, default=0, help="with --agent: kill -9 it so often meanwhile, and start it again")
    ap.add_argument("--subscribed", action="store_true", help="`sluice run` without probes: a `sluice agent` passes the events on")
    ap.add_argument("--made-up", action="store_true", help="with a sluice to which that happens to every end; not with --agent")
    ap.add_argument("--runs", type=int, default=1)
    ap.add_argument("--tolerance-ms", type=float, default=0, help="more where a child tells its own CPU time or a gap is timed: on an emulated machine")
    ap.add_argument("--keep", metavar="DIR", help="leave lake and truth there")
    args = ap.parse_args()
    if not harness.is_root():
        print("skipped: loading BPF needs root")
        return verdict.SKIPPED
    args.truth = args.truth or harness.built("truth")
    args.sluice = args.sluice or (harness.built("sluice_last_word_never") if args.made_up else harness.SLUICE)
    failed = 0
    for i in range(args.runs):
        if args.keep:
            room = os.path.join(args.keep, f"run-{i + 1}")
            os.makedirs(room)  # fails where one is: a lake of two runs would not be one's truth
        else:
            room = tempfile.mkdtemp(prefix="sluice-truth-")
        try:
            wrong, summary = once(args, room)
        finally:
            if not args.keep:
                shutil.rmtree(room, ignore_errors=True)
        print(f"run {i + 1}: {len(wrong)} mismatches\n{summary}")
        for w in wrong[:SHOWN]:
            print(f"  {w}")
        if len(wrong) > SHOWN:
            print(f"  and {len(wrong) - SHOWN} more")
        failed |= bool(wrong)
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
