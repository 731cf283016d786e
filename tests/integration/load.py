# SPDX-License-Identifier: Apache-2.0
"""A steady load of numbered programs, and the question whether a lake knows each of them once.

Each program is `true sluice-load <name> <number>`, a copy of /bin/true that only this process's loads run, so that
what ran is known without asking a program under test, and an agent can be configured to follow nothing else.
"""
import atexit
import collections
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import harness

MARK = "sluice-load"

# Of the ends seen: from 7.0 the kernel skips a probe that is under way on that CPU, and at times no later one of the
# same process can make up for it (bpf/lifecycle.bpf.c).
SKIPPED_MAX = 0.01


@functools.cache
def own_folder():
    """Of copies of programs that only this process starts; it is removed when that ends. With a slash, as a rule's path."""
    folder = tempfile.mkdtemp(prefix="sluice-load-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    return folder + "/"


@functools.cache
def own(program):
    """The path of a copy of a program of /bin."""
    return shutil.copy(os.path.realpath("/bin/" + program), own_folder() + program)


class Load:
    """Starts programs at a rate until stopped; .started says how many."""

    def __init__(self, name, rate=int(os.environ.get("LOAD_RATE", "200")), padding=0, program=None):
        """padding: bytes of one more argument, for records of that size."""
        self.name = f"{name}-{os.getpid()}"  # others may put load on this host, too
        self.rate = rate
        self._more = ["x" * padding] if padding else []
        self._program = program or own("true")
        self.started = 0
        self.failed = 0
        self.times = []  # when each began and had ended, in seconds of the wall clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        """All of its programs have ended; Agent.settle() is what waits for their records."""
        self.stop()

    def wait_more(self, n):
        """Until it has started so many more."""
        goal, end = self.started + n, time.monotonic() + 60 * harness.PATIENCE
        while self.started < goal:
            if time.monotonic() > end:
                raise AssertionError(f"the load does not go on: {self.started} programs, not {goal}")
            time.sleep(0.01)

    def stop(self):
        self._stop.set()
        self._thread.join(30 * harness.PATIENCE)

    def _run(self):
        begin = time.monotonic()
        while not self._stop.is_set():
            number = self.started
            started = time.time()
            status = os.spawnv(os.P_WAIT, self._program, ["true", MARK, self.name, str(number), *self._more])
            self.times.append((started, time.time()))
            self.failed += status != 0
            self.started += 1
            ahead = begin + self.started / self.rate - time.monotonic()
            if ahead > 0:
                self._stop.wait(ahead)

    def is_mine(self, r):
        """Whether a Program record is of a program of this load."""
        argv = r["argv"] or []
        return argv[1:3] == [MARK, self.name] and len(argv) == 4 + len(self._more)

    def check(self, programs, all_start=False):
        """
        What is wrong with the Program records of this load: [sentence]; duplicates are those of a delivery.

        Each program has an END. Few have a START before it: one that an overloaded host lets live for a second, or one
        that an agent sees at the moment of its Usage records. all_start: each has, as START is written at exec. A child
        that waits a second for its first exec has its START as what it was then: forked, with its parent's arguments.
        """
        phases = self._phases(programs)
        wrong = ["program %d: %s" % (n, dict(phases[n]) or "not there") for n in range(self.started)
                 if not is_whole(phases[n]) or all_start and not phases[n]["START"]]
        extra = [n for n in phases if n >= self.started]
        if extra:
            wrong.append("programs that no test started: %s" % extra[:5])
        return wrong

    def missing(self, programs):
        """[(when it began, when it had ended)] of each program of this load that is not whole."""
        phases = self._phases(programs)
        return [self.times[n] for n in range(self.started) if not is_whole(phases[n])]

    def _phases(self, programs):
        """{number of a program: {phase: how many records}}"""
        seen = {}
        for r in programs:
            seen.setdefault((r["agent_id"], r["seq"]), r)
        phases = collections.defaultdict(collections.Counter)
        late = {r["program_id"] for r in seen.values() if r["phase"] == "START" and r["forked"]}
        for r in seen.values():
            if self.is_mine(r):
                phases[int(r["argv"][3])][r["phase"]] += 1
                if r["phase"] == "END" and r["program_id"] in late:
                    phases[int(r["argv"][3])]["START"] += 1
        return phases


def is_whole(phases):
    """Whether a program that ended has the records that it must have: {phase: how many}."""
    return phases in ({"END": 1}, {"START": 1, "END": 1})


def cuts(programs):
    """How many paths the programs of these records lack, as where one is longer than we read; such a one is counted as "cut"."""
    return sum((r["exe"] is None) + (r["cwd"] is None) for r in {r["program_id"]: r for r in programs}.values())


def unforgiven(lost, ends, cut=0, reasons=()):
    """
    What no test forgives of an agent's losses [(place, reason, count)], beside those of these reasons. ends: how many
    it has seen, of which a few may be "skipped"; cut: as of cuts(). Findings beyond a thousand are those of another
    test's run, which an agent that serves the whole host sees, too.
    """
    skipped = sum(n for _, reason, n in lost if reason == "skipped")
    if skipped:
        print(f"skipped by the kernel: {skipped}, at {ends} ends", file=sys.stderr)
    forgiven = {"too_many_findings", *reasons}
    if skipped <= SKIPPED_MAX * ends:
        forgiven.add("skipped")
    if sum(n for _, reason, n in lost if reason == "cut") <= cut:
        forgiven.add("cut")
    return [x for x in lost if x[1] not in forgiven]


def once(records):
    """Without what was delivered again after a crash."""
    return list({(r["agent_id"], r["seq"]): r for r in records}.values())


def duplicates(records):
    """How many records are there again, and whether each is the same: (count, [sentence])."""
    first = {}
    count, wrong = 0, []
    for r in records:
        key = (r["agent_id"], r["seq"])
        if key in first:
            count += 1
            if first[key] != r:
                wrong.append("agent %s seq %d stands for two records" % key)
        else:
            first[key] = r
    return count, wrong


def holes(records):
    """Gaps in seq, by agent: [sentence]."""
    wrong = []
    by_agent = collections.defaultdict(set)
    for r in records:
        by_agent[r["agent_id"]].add(r["seq"])
    for agent, seqs in by_agent.items():
        missing = sorted(set(range(max(seqs) + 1)) - seqs)
        if missing:
            wrong.append("agent %s lacks %d of %d seqs, the first %d" % (agent, len(missing), max(seqs) + 1, missing[0]))
    return wrong
