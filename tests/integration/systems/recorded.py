# SPDX-License-Identifier: Apache-2.0
"""A test of a real system: an agent beside it, and what that agent wrote, as trees of programs."""
import collections
import os
import re

import harness
from agent import AgentTest
from load import cuts, holes, once, unforgiven

_count = 0


def new_mark():
    """An argument that no other program of this host has; it is nothing that a redaction would hide."""
    global _count
    _count += 1
    return f"sluice-system-{os.getpid()}-{_count}"


class Records:
    """What agents wrote into one lake."""

    def __init__(self, topics):
        self.topics = topics
        programs = topics.get("sluice.program", [])
        self.starts = {r["program_id"]: r for r in programs if r["phase"] == "START"}
        self.ends = {r["program_id"]: r for r in programs if r["phase"] == "END"}
        self.programs = {**self.starts, **self.ends}  # by program_id: the END, else the START
        self._children = collections.defaultdict(list)
        for r in self.programs.values():
            self._children[r["parent_program_id"]].append(r["program_id"])

    def marked(self, mark, *rest):
        """END records of the programs that have these arguments, one after another."""
        wanted = [mark, *map(str, rest)]

        def has(argv):
            return any(argv[i:i + len(wanted)] == wanted for i in range(len(argv)))
        return [r for r in self.ends.values() if has(r["argv"] or [])]

    def only(self, argv):
        """The END record of the one program that was started with exactly these arguments."""
        found = [r for r in self.ends.values() if r["argv"] == list(map(str, argv)) and not r["forked"]]
        if len(found) != 1:
            raise AssertionError(f"{len(found)} programs are {argv} among {len(self.ends)}")
        return found[0]

    def below(self, record):
        """END records of the programs that came from this one, itself not included."""
        found, todo = [], [record["program_id"]]
        while todo:
            for child in self._children[todo.pop()]:
                todo.append(child)
                if child in self.ends:
                    found.append(self.ends[child])
        return found

    def both(self, records):
        """START and END of the programs of these records."""
        return [kind[r["program_id"]] for r in records for kind in (self.starts, self.ends) if r["program_id"] in kind]

    def family(self, record):
        return [record, *self.below(record)]

    def works(self, topic, phase="END", **fields):
        """Run or Task records: works("run", job_id="7")"""
        return [r for r in self.topics.get("sluice." + topic, [])
                if r["phase"] == phase and all(r[k] == v for k, v in fields.items())]


def ended(records):
    """[(name, how it ended)]: exit code, or minus the signal; None where exec replaced it."""
    return sorted((r["comm"], -r["exit_signal"] if r["exit_signal"] else r["exit_code"]) for r in records)


def called(r):
    """A record, for people: of a program, or of a run or task."""
    if "argv" not in r:
        return f"{r['engine']} run {r['run_id']}, task {r['task_id']}, {r['phase']}"
    fork = "a fork of " if r["forked"] else ""
    return f"{fork}{' '.join(r['argv'] or [r['comm']])[:200]} ({r['phase']}, pid {r['pid']}, in {r['cgroup']}, v1 {r['cgroup_v1']})"


class SystemTest(AgentTest):
    """Tests with systems; `self.start()` first, then the system, then `self.stop()` for the records."""

    def start(self, **keys):
        self.recorder = self.agent(**keys).start()
        return self.recorder

    def stop(self, reasons=()):
        """Ends the agent; what all agents of its room wrote. Nothing may have been lost, but for these reasons."""
        self.recorder.settle(tasks=True)
        self.assertEqual(0, self.recorder.stop(), self.recorder.log_text())
        topics = {}
        for topic, records in harness.read_lake(self.recorder.lake).items():
            topics[topic] = once(records)
            self.assertEqual([], holes(topics[topic]), topic)
            if self.recorder.runs == 1:  # after a crash some may come again
                self.assertEqual(len(topics[topic]), len(records), topic)
        programs = topics.get("sluice.program", [])
        self.assertEqual([], unforgiven(harness.losses(topics), sum(r["phase"] == "END" for r in programs),
                                        cuts(programs), reasons))
        return Records(topics)

    def assert_all(self, records, **fields):
        """Every one of them has these values; there is at least one."""
        self.assertTrue(records)
        wrong = [f"{called(r)}: {k} is {r[k]!r}, not {v!r}" for r in records for k, v in fields.items() if r[k] != v]
        self.assertEqual([], wrong[:3], f"{len(wrong)} wrong")

    def paths(self, record):
        """The control group paths that a record has."""
        return [p for p in (record["cgroup"], record["cgroup_v1"]) if p]

    def assert_cgroup(self, records, pattern):
        """All of them were in a control group whose path is found so."""
        self.assertTrue(records)
        self.assertEqual([], [(r["argv"], self.paths(r)) for r in records if not any(re.search(pattern, p) for p in self.paths(r))])
