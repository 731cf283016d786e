# SPDX-License-Identifier: Apache-2.0
"""What `truth` itself said of each child that it started: its lines of JSON (truth.h), read."""
import collections
import json

START_SLEW_US = 1000  # besides the tick in which /proc reports a start: the wall clock is slewed

IO = {  # of /proc/PID/io
    "rchar": "rchar",
    "wchar": "wchar",
    "syscr": "syscr",
    "syscw": "syscw",
    "read_bytes": "read_bytes",
    "write_bytes": "write_bytes",
}
FAULTS = ("minor_faults", "major_faults")
SWITCHES = ("voluntary_switches", "involuntary_switches")
CPU = ("cpu_user_ns", "cpu_system_ns")
TOTALS = ("user_us", "system_us", *FAULTS, *SWITCHES, *IO.values())


class Process:
    """One process as truth saw it. `told`: its "process" line, None if no process waited for it."""

    def __init__(self, case, pid, start_ticks):
        self.case, self.pid, self.start_ticks = case, pid, start_ticks
        self.told = None
        self.start, self.end, self.rest = {}, {}, {}  # "image" lines by index
        self.programs = {}  # index: {"START": [record], "END": [record]}

    def name(self, index=None):
        """With the tick of its start: pid_reused has several of one pid."""
        return f"{self.case} pid {self.pid}@{self.start_ticks}" + ("" if index is None else f" program {index}")

    @property
    def n_programs(self):
        return self.told["programs"] if self.told else 1 + max(self.start, default=0)

    @property
    def forked(self):
        if self.told:
            return self.told["forked"]
        return "argv" not in self.start.get(0, {})

    def ends(self):
        return [self.programs[i]["END"][0] for i in sorted(self.programs) if self.programs[i]["END"]]


class Truth:
    def __init__(self, path):
        self.processes, self.notes, self.skips, self.clock = {}, [], [], None
        with open(path) as f:
            lines = [json.loads(line) for line in f]
        for line in lines:
            kind = line["kind"]
            if kind == "clock":
                self.clock = line
            elif kind == "note":
                self.notes.append(line)
            elif kind == "skip":
                self.skips.append(line)
            else:
                key = line["pid"], line["start_ticks"]
                p = self.processes.setdefault(key, Process(line["case"], *key))
                if kind == "process":
                    p.told = line
                else:
                    getattr(p, line["at"])[line["index"]] = line
        self.by_pid = collections.defaultdict(list)
        for p in self.processes.values():
            self.by_pid[p.pid].append(p)
        self.boot_us = (self.clock["real_ns"] - self.clock["boot_ns"]) // 1000

    def start_us(self, ticks):
        return self.boot_us + ticks * 1000000 // self.clock["ticks_per_second"]

    def find(self, pid, start_us):
        """The process that a record is of; None: not one of ours."""
        half = 500000 // self.clock["ticks_per_second"]  # it started within a tick
        near = [(abs(self.start_us(p.start_ticks) + half - start_us), p) for p in self.by_pid[pid]]
        near = [(d, p) for d, p in near if d <= half + START_SLEW_US]
        return min(near, key=lambda x: x[0])[1] if near else None

    def own(self, p):
        """p's totals without those of the children that it reaped, which the kernel adds to it."""
        own = {k: p.told[k] for k in TOTALS}
        for child in self.processes.values():
            if child.told and child.told["reaper"] == p.pid and self.reaper_of(child) is p:
                for k in TOTALS:
                    own[k] -= child.told[k]
        return own

    def reaper_of(self, child):
        """pids come back: of several with that number, the last that started before the child."""
        older = [p for p in self.by_pid[child.told["reaper"]] if p.start_ticks <= child.start_ticks]
        return max(older, key=lambda p: p.start_ticks, default=None)
