# SPDX-License-Identifier: Apache-2.0
"""All arms of a comparison, and their rounds."""
import shutil

import arms
import auditd
import peers

ARMS = {
    "none": arms.run_none,
    "none again": arms.run_none,
    "sluice run": arms.run_sluice,
    "strace -f -c": peers.run_strace,
    "bpftrace, three counters": peers.run_counts,
    "bpftrace, exit records": peers.run_records,
    "execsnoop and exitsnoop": peers.run_snoops,
    "auditd": auditd.run_auditd,
    "acct": peers.run_accounting,
}


def unavailable(bench):
    """Returns {arm: reason} of the arms that this host cannot run."""
    reasons = {}
    for name, run in ARMS.items():
        try:
            run(bench, ["true"], None)
        except arms.Unavailable as e:
            reasons[name] = " ".join(str(e).split())
    return reasons


def measure(bench, n, command, names, prepare=None, say=print):
    """Returns {arm: [Sample]}. Each round runs every arm once; the order rotates, so that none is always first."""
    names = list(names)
    samples = {name: [] for name in names}
    at = prepare() if prepare else None
    arms.run_none(bench, command, at)        # not counted: reads all files for the first time
    if prepare:
        shutil.rmtree(at)
    for i in range(n):
        order = names[i % len(names):] + names[:i % len(names)]
        if i % 2:
            order.reverse()
        for name in order:
            at = prepare() if prepare else None
            samples[name].append(ARMS[name](bench, command, at))
            if prepare:
                shutil.rmtree(at)
        say(f"  round {i + 1} of {n}")
    return samples
