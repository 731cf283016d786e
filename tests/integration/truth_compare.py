# SPDX-License-Identifier: Apache-2.0
"""The records of a lake held to what truth said: every rule, and how far a figure may be from the kernel's own."""
import collections
import dataclasses
import math
import os
import platform
import re

import harness
from load import cuts
from truth_reported import CPU, FAULTS, IO, SWITCHES, Process, Truth

# How far a figure may be from the kernel's own. Whatever is not here is exact.
TOLERANCE = {
    "cpu_us": 10,  # total, and user and system apart, where wait4 reported them
    "cpu_made_up_us": 1000,  # of an end that was made up for, where the child did not say what it had used before
    "split_us": 5000,  # about a tick of the kernel's clock: see split_ran_backwards, allow_made_up
    "stolen_us": 10000,  # a tick of the slowest clock: after one the kernel knows what was stolen before
    "unwaited_cpu_us": 5000,  # no process waited: from the child's last own figure to its end
    "switches": 1,
    "peak_part": 0.03,  # of the child's own VmHWM
    # of a small one some pages more: the kernel counts resident pages for each CPU and thread
    # apart and adds up late, and the child still writes its report after it has read VmHWM
    "peak_floor_bytes": 256 << 10,
    "argv_bytes": 32 << 10,  # longer ones are cut there, and the record has that
    "argv_cut_short": 4096,  # by how much less
}

READ_AT_EXIT = ("uid", "gid", "pid_ns", "mnt_ns", "net_ns", "cgroup", "peak of EXIT")  # all but the last: of one without exec
# Of the ends: of some the kernel may tell too late, or never. A sandbox's kernel runs no BPF program in an interrupt of
# the threads of process 1; RCU frees processes in such interrupts, too, and in batches: 53 of 266 were seen while a guest
# used the CPUs, and 18, 2 and 0 in three runs after that. What was made up for is compared like all else.
MADE_UP_MAX = 0.3
SKIPPED_MAX = 0.01  # of the exits: what a kernel that can preempt programs may pass over
ENDS_EMULATED_MAX = 0.02  # of the processes: those in whose last steps the host took the emulated CPU away
SKIPPED_EMULATED_MAX = 0.05  # where each program takes ten times as long, and the host takes the emulated CPU away in it
LATE_SWITCHES_MAX = 2  # of the ends made up for: in these last steps others went first not once but twice
LATE_TICKS_MAX = 1 / 30  # of the ends made up for: in their last steps, which no snapshot saw, the kernel's clock ticked
# Before 6.2 a thread counts its pages for itself and adds them up after 64 faults, each of which may
# map 16 pages: what a process then reads of its own peak is too low by up to that, not what it had.
RSS_IS_LATE = tuple(map(int, os.uname().release.split(".")[:2])) < (6, 2)
RSS_LATE_BYTES = 64 * 16 * 4096

LOOK_US = 5000000  # a program is looked at once a second, and later where the host is overloaded

# What is null where doctor calls a signal missing; "peak" depends on how a program ended.
NULL_WITHOUT = {
    "replaced_peak": ["peak of EXEC"],
    "peak_rss": ["peak of EXIT"],
    "network": [f"{k}_bytes" for k in ("net_rx", "net_tx", "tcp_rx", "tcp_tx", "udp_rx", "udp_tx", "unix_rx", "unix_tx")],
    "block_io_delay": ["block_io_delay_ns", "swapin_delay_ns", "reclaim_delay_ns", "thrashing_delay_ns"],
}
NET = [f"{family}_{way}" for family in ("tcp", "udp", "unix") for way in ("rx", "tx")]


class Mismatch(collections.namedtuple("Mismatch", "case field expected got")):
    def __str__(self):
        return f"{self.case}: {self.field}: expected {self.expected!s:.300}, got {self.got!s:.300}"


def value_of(text):
    return None if text is None else harness.unescape(text)


def undeleted(path):
    """/proc says of a file that is gone what no path says."""
    return re.sub(rb" \(deleted\)$", b"", path) if path is not None else None


@dataclasses.dataclass
class Check:
    """The comparison of one lake's records (topics) with what truth reported, and the conditions of the recording."""

    truth: Truth
    topics: dict
    doctor: dict  # of `sluice doctor --json`
    extra_us: float  # added to tolerances of CPU time
    _: dataclasses.KW_ONLY
    is_host_wide: bool = False  # other programs are recorded too, and no run
    is_ordinary: bool = False  # the kernel runs every BPF program
    stolen_us: int = 0  # taken by hypervisors from all CPUs of this machine meanwhile
    kills: int = 0  # of the agent: each may cost one end that it had not reported
    start_after_us: int = 1000000  # records.start_after

    def __post_init__(self):
        self.mismatches = []
        self.ends_emulated = 0
        self.skipped_max = self.most(SKIPPED_EMULATED_MAX if self.extra_us else SKIPPED_MAX)
        self.have_usage = {r["program_id"] for r in self.topics.get("sluice.usage", [])}
        self.made_up = harness.events_counted(self.topics, "end_synthesized")
        self.skipped = sum(n for _, reason, n in harness.losses(self.topics) if reason == "skipped")
        self.worst = collections.Counter()  # largest error seen, by quantity
        self.unknown = {}  # field: the missing signal for which this kernel leaves it null
        for s in self.doctor["signals"]:
            if s["state"] == "missing":
                for field in NULL_WITHOUT[s["name"]]:
                    self.unknown[field] = s["name"]

    def wrong(self, case, field, expected, got):
        self.mismatches.append(Mismatch(case, field, expected, got))

    def equal(self, case, field, expected, got):
        if expected != got:
            self.wrong(case, field, expected, got)

    def near(self, case, field, expected, got, allowed):
        error = abs(got - expected)
        self.worst[field.split(" ")[0]] = max(self.worst[field.split(" ")[0]], error)
        if error > allowed:
            self.wrong(case, f"{field} (±{allowed:g})", expected, got)

    def known(self, case, field, value):
        """True for a number to compare. Null only where doctor reports that, and then always null."""
        if field in self.unknown:
            if value is not None:
                self.wrong(case, field, f"null: doctor calls {self.unknown[field]} missing", value)
            return False
        if value is None:
            self.wrong(case, field, "a number: doctor does not call it missing", None)
            return False
        return True

    def total(self, p, field):
        """Sum over the programs of p; None if some do not tell."""
        values = [r["usage"][field] for r in p.ends() if r["usage"]]
        if len(values) != len(p.programs) or any(v is None for v in values):
            for v in values:
                self.known(p.name(), field, v)
            return None
        return sum(values) if all(self.known(p.name(), field, v) for v in values) else None

    # --- who is there ---

    def is_below(self, record, parents):
        """Does it descend from the root, or is it that?"""
        program = record["program_id"]
        for _ in range(1000):
            pid, parent = parents.get(program, (None, None))
            if pid is None or pid == self.root.pid:
                return pid is not None
            program = parent
        return False

    def assign(self):
        """Gives each record to the process that it is of."""
        root = self.truth.clock["pid"]
        parents = {r["program_id"]: (r["pid"], r["parent_program_id"]) for r in self.topics.get("sluice.program", [])}
        self.root = Process("root", root, self.truth.clock["start_ticks"])
        ids = collections.Counter()
        for r in self.topics.get("sluice.program", []):
            ids[r["program_id"], r["phase"]] += 1
            p = self.truth.find(r["pid"], r["start_time"])
            if p is None and r["pid"] == root:
                p = self.root
            if self.is_host_wide and not self.is_below(r, parents):
                continue
            if p is None:
                self.wrong("-", "a program that truth did not start", None,
                           {k: r[k] for k in ("phase", "pid", "ppid", "comm", "exe", "argv", "start_time", "program_index")})
                continue
            phases = p.programs.setdefault(r["program_index"], {"START": [], "END": []})
            if r["phase"] in phases:
                phases[r["phase"]].append(r)
            else:
                self.wrong(p.name(r["program_index"]), "phase", "START or END", r["phase"])
        for (program, phase), n in ids.items():
            if n > 1:
                self.wrong("-", f"records of {program} with phase {phase}", 1, n)

    def presence(self, p, n_programs):
        if not p.programs:
            self.wrong(p.name(), "programs in the lake", n_programs, 0)
            return
        self.equal(p.name(), "program indexes", list(range(n_programs)), sorted(p.programs))
        for index, phases in sorted(p.programs.items()):
            self.equal(p.name(index), "END records", 1, len(phases["END"]))
            # One that ended before it was looked at has none, unless a Usage record needed it.
            starts = [1] if self.must_have_started(phases["END"]) else [0, 1]
            if len(phases["START"]) not in starts:
                self.wrong(p.name(index), "START records", starts, len(phases["START"]))

    def must_have_started(self, ends):
        return any(self.start_after_us == 0 or r["program_id"] in self.have_usage or
                   r["end_time"] - r["program_start_time"] > self.start_after_us + LOOK_US for r in ends)

    def life(self, p):
        """The records of one process fit each other."""
        last = None
        for index, phases in sorted(p.programs.items()):
            name = p.name(index)
            if len(phases["START"]) > 1 or len(phases["END"]) != 1:
                continue
            end = phases["END"][0]
            start = phases["START"][0] if phases["START"] else None
            for field in ("program_id", "parent_program_id", "start_time", "program_start_time", "exe", "comm", "argv",
                          "argv_truncated", "cwd", "cgroup", "uid", "gid", "pid_ns", "mnt_ns", "net_ns", "tool", "run_id", "task",
                          "forked"):
                if start is None or field == "comm" and p.case == "renames_itself":
                    continue
                self.equal(name, f"{field} at END as at START", start[field], end[field])
            for field in ("usage", "end_time", "end_reason", "exit_code", "exit_signal", "core_dumped", "oom_killed"):
                self.equal(name, f"{field} at START", None, start and start[field])
            if (end["run_id"] is None) != self.is_host_wide:
                self.wrong(name, "run_id", "null" if self.is_host_wide else "the run's", end["run_id"])
            self.equal(name, "time at END", end["end_time"], end["time"])
            if index == 0:
                self.equal(name, "program_start_time of program 0", end["start_time"], end["program_start_time"])
            if end["end_time"] < end["program_start_time"]:
                self.wrong(name, "end_time", f"at least {end['program_start_time']}", end["end_time"])
            if last:
                self.equal(name, "program_start_time after an exec", last["end_time"], end["program_start_time"])
            last = end
            final = index == max(p.programs)
            self.equal(name, "end_reason", "EXIT" if final else "EXEC", end["end_reason"])
            if not final:
                self.equal(name, "exit_code at exec", None, end["exit_code"])
                self.equal(name, "exit_signal at exec", None, end["exit_signal"])

    # --- what they are ---

    def identity(self, p):
        for index, phases in sorted(p.programs.items()):
            if not phases["END"]:
                continue
            end, name = phases["END"][0], p.name(index)
            image = p.start.get(index, {})
            self.equal(name, "forked", p.forked and index == 0, end["forked"])
            for field in ("pid_ns", "mnt_ns", "net_ns", "uid", "gid"):
                if field in image:
                    self.equal(name, field, image[field], end[field])
            if "exe" in image:
                self.equal(name, "exe", undeleted(bytes.fromhex(image["exe"])), undeleted(value_of(end["exe"])))
            if "comm" in image and p.case != "renames_itself":
                self.equal(name, "comm", bytes.fromhex(image["comm"]), value_of(end["comm"]))
            if "cwd" in image and not end["forked"]:
                self.equal(name, "cwd", undeleted(bytes.fromhex(image["cwd"])), undeleted(value_of(end["cwd"])))
            if "argv" in image:
                self.equal(name, "argv", [bytes.fromhex(a) for a in image["argv"]], self.argv_of(end))
                self.equal(name, "argv_truncated", False, end["argv_truncated"])
            if image:
                self.cgroup(name, image, end)
        for want in (p.told or {}).get("wants", []):
            phases = p.programs.get(want["index"])
            if phases and phases["END"]:
                self.wanted(p.name(want["index"]), want, phases["END"][0])

    @staticmethod
    def argv_of(record):
        return None if record["argv"] is None else [value_of(a) for a in record["argv"]]

    def cgroup(self, name, image, end):
        v2, v1 = (bytes.fromhex(image[k]) if k in image else None for k in ("cgroup_v2", "cgroup_v1"))
        if v2 is None and v1 is None:
            return  # this kernel has none mounted, and tells the process nothing to compare with
        expected = v1 if v1 is not None and v2 in (None, b"/") else v2
        self.equal(name, "cgroup", expected, value_of(end["cgroup"]))
        if v1 is not None:
            self.equal(name, "cgroup_v1", v1, value_of(end["cgroup_v1"]))

    def wanted(self, name, want, end):
        """What a launcher knows of a program that could not say it itself."""
        for field in ("exe", "comm"):
            if field in want:
                self.equal(name, field, bytes.fromhex(want[field]), value_of(end[field]))
        if "argv" not in want:
            return
        expected = [bytes.fromhex(a) for a in want["argv"]]
        got = self.argv_of(end)
        if got is None:
            self.wrong(name, "argv", f"{len(expected)} arguments", None)
            return
        size = sum(len(a) + 1 for a in expected)
        self.equal(name, "argv_truncated", size > TOLERANCE["argv_bytes"], end["argv_truncated"])
        if size <= TOLERANCE["argv_bytes"]:
            self.equal(name, "argv", expected, got)
            return
        whole, part = b"\0".join(expected), b"\0".join(got).rstrip(b"\0")
        if not whole.startswith(part):
            self.wrong(name, "argv", "the first bytes of what it was given", got)
        at_least = TOLERANCE["argv_bytes"] - TOLERANCE["argv_cut_short"]
        if not at_least <= len(part) <= TOLERANCE["argv_bytes"]:
            self.wrong(name, "bytes of a cut argv", f"{at_least} to {TOLERANCE['argv_bytes']}", len(part))

    def ancestry(self, p):
        """Who forked it, and that its ancestors lead to the root of the run."""
        ids = {r["program_id"]: r for r in self.topics.get("sluice.program", []) if r["phase"] == "END"}
        for index, phases in sorted(p.programs.items()):
            if not phases["END"]:
                continue
            end, name, seen = phases["END"][0], p.name(index), set()
            # program 0 comes from the one that forked it, each later one from the one that it replaced
            expected = (p.pid, index - 1) if index else p.told and (p.told["parent"], p.told["parent_index"])
            if expected:
                parent = ids.get(end["parent_program_id"])
                self.equal(name, "parent", expected, parent and (parent["pid"], parent["program_index"]))
            at = end
            while at["pid"] != self.root.pid and at["program_id"] not in seen:
                seen.add(at["program_id"])
                above = ids.get(at["parent_program_id"])
                if above is None:
                    self.wrong(name, "ancestors", "up to the root of the run",
                               f"{at['parent_program_id']} of pid {at['pid']} is not in the lake")
                    break
                at = above

    # --- what they used ---

    def status(self, p):
        if not p.programs or not p.programs[max(p.programs)]["END"]:
            return
        end, name = p.programs[max(p.programs)]["END"][0], p.name(max(p.programs))
        if p.told:
            code, signal, core = p.told["exit_code"], p.told["exit_signal"], p.told["core"]
        else:
            said = p.end.get(max(p.end, default=0), {}).get("exit_code", -1)
            if said < 0:
                return
            code, signal, core = said, -1, False
        self.equal(name, "exit_code", None if code < 0 else code, end["exit_code"])
        self.equal(name, "exit_signal", None if signal < 0 else signal, end["exit_signal"])
        self.equal(name, "core_dumped", core, end["core_dumped"])
        if self.known_flag(name, "oom_killed", end):
            self.equal(name, "oom_killed", bool(p.told and p.told.get("oom_killed")), end["oom_killed"])

    def known_flag(self, name, field, end):
        return end[field] is not None or self.known(name, field, None)

    def cpu(self, p):
        allowed = TOLERANCE["cpu_us"]
        user, system = self.total(p, "cpu_user_ns"), self.total(p, "cpu_system_ns")
        if user is None or system is None:
            return
        user, system = user / 1000, system / 1000
        if p.told:
            own = self.truth.own(p)
            if self.left_its_cpu_late(user + system - own["user_us"] - own["system_us"]):
                return self.split(p, allowed)
            self.near(p.name(), "cpu_us total", own["user_us"] + own["system_us"], round(user + system), allowed)
            if self.split_ran_backwards(p, own["user_us"] - user):
                return self.split(p, allowed)
            self.near(p.name(), "cpu_user_us", own["user_us"], round(user), allowed)
            self.near(p.name(), "cpu_system_us", own["system_us"], round(system), allowed)
        elif p.end:
            last = p.end[max(p.end)]
            said = last["cpu_ns"] / 1000
            high = said + TOLERANCE["unwaited_cpu_us"] + self.extra_us
            if not said - allowed <= user + system <= high and not self.was_held_up(p, last, user + system - said):
                self.wrong(p.name(), "cpu_us", f"{said:.0f} to {high:.0f}", round(user + system))
        self.split(p, allowed)

    def left_its_cpu_late(self, more):
        """
        wait4(2) adds up what a zombie has used when it finds it; the kernel's last sum, which is the record's, is taken
        when the zombie has left its CPU. Between the two lie microseconds, but where a host takes an emulated CPU away.
        """
        if not TOLERANCE["cpu_us"] < more < self.extra_us or self.ends_emulated == self.most(ENDS_EMULATED_MAX):
            return False
        self.ends_emulated += 1
        return True

    def was_held_up(self, p, last, more):
        """
        A host that takes an emulated CPU away from a process in its last steps makes them as long as it likes: the
        guest takes that for time of the process. Most of these steps come after the time of its end, which is when its
        last thread begins to exit. There is never more of it than has passed from its last word until who had started
        it had seen it go, and once more what leaving its CPU takes after that.
        """
        started_it = [q.end[max(q.end)]["mono_ns"] for q in self.truth.processes.values()
                      if q.case == p.case and q.told and q.end]
        passed = (max(started_it, default=0) - last["mono_ns"]) / 1000
        if not 0 < self.extra_us < more <= passed + self.extra_us or self.ends_emulated == self.most(ENDS_EMULATED_MAX):
            return False
        self.ends_emulated += 1
        return True

    def split_ran_backwards(self, p, user_missing):
        """The kernel guesses the split of an exact sum from tick samples, anew each time. Its guess at
        an exec may give one part more than its guess at the end, and no program can use less than
        nothing: then the last has none of that part, and only the sum is held to wait4."""
        last = p.ends()[-1]["usage"]
        part = "cpu_user_ns" if user_missing < 0 else "cpu_system_ns"
        return (len(p.ends()) > 1 and last[part] == 0
                and abs(user_missing) < TOLERANCE["split_us"] + self.extra_us)

    def split(self, p, allowed):
        """Up to an exec the process has used what it said before, and at most what it said after."""
        used = 0
        for i, end in enumerate(p.ends()[:-1]):
            used += (end["usage"]["cpu_user_ns"] + end["usage"]["cpu_system_ns"]) / 1000
            low = p.end.get(i, {}).get("cpu_ns", 0) / 1000 - allowed
            high = p.start.get(i + 1, {}).get("cpu_ns", float("inf")) / 1000 + allowed + self.stolen_before(p, i + 1)
            if not low <= used <= high:
                self.wrong(p.name(i), "cpu_us up to its exec", f"{low:.0f} to {high:.0f}", round(used))

    def stolen_before(self, p, index):
        """
        How much too large a figure may be that was read as this program began: time that a hypervisor gave to others
        since the kernel's clock was read last is no CPU time, but not yet known there (ARCHITECTURE.md, exec). At most
        what passed between the marks of the program before and of this one, and was neither CPU time nor waiting.
        """
        before, after = p.end.get(index - 1), p.start.get(index)
        if before and after:
            passed, ran, waited = (after[k] - before[k] for k in ("mono_ns", "cpu_ns", "run_delay_ns"))
            stolen = (passed - ran - waited) / 1000
        else:
            stolen = self.stolen_us
        return min(max(stolen, 0), TOLERANCE["stolen_us"])

    def counters(self, p):
        if not p.told:
            return
        own = self.truth.own(p)
        for field in (*FAULTS, *IO):
            got = self.total(p, field)
            if got is not None:
                self.equal(p.name(), field, own[IO.get(field, field)], got)
        for field in SWITCHES:
            got = self.total(p, field)
            if got is not None:
                self.near(p.name(), field, own[field], got, TOLERANCE["switches"])

    def known_peak(self, case, field, value):
        """The same of a peak. Without a hook that sees the memory at its end signal_struct has it, and it is null only where
        that of a program before was larger."""
        if field == "peak of EXIT" and field in self.unknown:
            return value is not None
        return self.known(case, field, value)

    def peak(self, p):
        for index, phases in sorted(p.programs.items()):
            if not phases["END"]:
                continue
            usage, name = phases["END"][0]["usage"], p.name(index)
            image = p.end.get(index, {})
            # without memory of its own it has no peak of its own; what its parent has is not it
            if p.told and p.told["shared_mm"]:
                if usage["peak_rss_bytes"] is not None:
                    self.wrong(name, "peak_rss_bytes", "null: it runs in its parent's memory", usage["peak_rss_bytes"])
            elif not self.known_peak(name, f"peak of {phases['END'][0]['end_reason']}", usage["peak_rss_bytes"]):
                pass
            elif usage["peak_rss_bytes"] == 0:
                self.wrong(name, "peak_rss_bytes", "more than nothing", 0)
            elif "hwm_kb" in image:
                own = image["hwm_kb"] << 10
                allowed = max(own * TOLERANCE["peak_part"], TOLERANCE["peak_floor_bytes"])
                if RSS_IS_LATE and p.told and p.forked and "maxrss_kb" in p.told:
                    own = p.told["maxrss_kb"] << 10  # never exec'd: it inherits none
                elif RSS_IS_LATE and own < usage["peak_rss_bytes"] <= own + RSS_LATE_BYTES:
                    own = usage["peak_rss_bytes"]
                self.near(name, "peak_rss_bytes", own, usage["peak_rss_bytes"], allowed)
            for field in ("run_delay_ns", "thread_ns", "wait_samples", *NULL_WITHOUT["block_io_delay"]):
                self.known(name, field, usage[field])
            if "threads_peak" in image and self.known(name, "threads_peak", usage["threads_peak"]):
                self.equal(name, "threads_peak", image["threads_peak"], usage["threads_peak"])

    def network(self, p):
        said = dict.fromkeys(NET, 0)
        for index, phases in sorted(p.programs.items()):
            if not phases["END"]:
                continue
            usage, name = phases["END"][0]["usage"], p.name(index)
            said = {k: p.end.get(index, {}).get(k, 0) for k in NET}
            for k in NET:
                if self.known(name, f"{k}_bytes", usage[f"{k}_bytes"]):
                    self.equal(name, f"{k}_bytes", said[k], usage[f"{k}_bytes"])
            for way in ("rx", "tx"):
                if self.known(name, f"net_{way}_bytes", usage[f"net_{way}_bytes"]):
                    self.equal(name, f"net_{way}_bytes", said[f"tcp_{way}"] + said[f"udp_{way}"], usage[f"net_{way}_bytes"])

    def live(self):
        """What Usage records say of a program adds up to no more than its END, and of one that rests to all it did."""
        sums, count = collections.defaultdict(collections.Counter), collections.Counter()
        for r in self.topics.get("sluice.usage", []):
            count[r["program_id"]] += 1
            for field in (*CPU, *FAULTS, *SWITCHES, *IO):
                sums[r["program_id"]][field] += r["usage"][field] or 0
        for p in self.truth.processes.values():
            for index, phases in sorted(p.programs.items()):
                if not phases["END"]:
                    continue
                end, name = phases["END"][0], p.name(index)
                got = sums[end["program_id"]]
                cpu, whole = (sum(usage[field] or 0 for field in CPU) / 1000 for usage in (got, end["usage"]))
                lacking = TOLERANCE["cpu_made_up_us"] + self.extra_us if self.made_up else TOLERANCE["cpu_us"]
                if cpu > whole + lacking:  # of its two parts the kernel guesses anew each time
                    self.wrong(name, "cpu_us in Usage records", f"at most {whole:.0f}, as at END", round(cpu))
                for field in (*FAULTS, *SWITCHES, *IO):
                    if got[field] > (end["usage"][field] or 0):
                        self.wrong(name, f"sum of {field} in Usage records", f"at most {end['usage'][field]}, as at END", got[field])
                rest = p.rest.get(index)
                if not rest or self.kills:
                    continue
                if count[end["program_id"]] < 2:
                    self.wrong(name, "Usage records", "one an interval", count[end["program_id"]])
                if cpu < rest["cpu_ns"] / 1000 - TOLERANCE["cpu_us"]:
                    self.wrong(name, "cpu_us in Usage records", f"at least {rest['cpu_ns'] / 1000:.0f}", round(cpu))
                for field in ("minor_faults", "voluntary_switches", *IO):
                    if got[field] < rest[IO.get(field, field)]:
                        self.wrong(name, f"sum of {field} in Usage records", f"at least {rest[IO.get(field, field)]}", got[field])

    # --- the rest of the lake ---

    def stream(self):
        for topic, records in self.topics.items():
            for sentence in harness.seq_holes(records):
                self.wrong("-", f"seq of {topic}", "consecutive", sentence)
        forgiven = self.lost_by_others() if self.is_host_wide else set()
        for place, reason, count in harness.losses(self.topics):
            if reason not in forgiven:
                self.wrong("-", f"lost at {place}: {reason}", 0, count)

    def lost_by_others(self):
        """Reasons of losses that an agent counts for programs of other tests: paths too long to be read, and findings of a run beyond a thousand."""
        cut = sum(count for _, reason, count in harness.losses(self.topics) if reason == "cut")
        return {"too_many_findings", *(["cut"] if cut <= cuts(self.topics.get("sluice.program", [])) else [])}

    def run_record(self):
        runs = [r for r in self.topics.get("sluice.run", []) if r["phase"] == "END"]
        self.equal("-", "Run records with phase END", 1, len(runs))
        ends = [r for r in self.topics.get("sluice.program", []) if r["phase"] == "END"]
        for run in runs:
            self.equal("-", "Run: programs", len(ends), run["programs"])
            self.equal("-", "Run: lost_events", 0, run["lost_events"])
            self.equal("-", "Run: exit_code", 0, run["exit_code"])
            self.equal("-", "Run: live_programs", 0, run["live_programs"])
            failed = sum(1 for r in ends if r["exit_code"] or r["exit_signal"] is not None)
            self.equal("-", "Run: failed_programs", failed, run["failed_programs"])
            for field in ("cpu_user_ns", "cpu_system_ns", "minor_faults", "rchar", "write_bytes", "voluntary_switches"):
                self.equal("-", f"Run: usage.{field} is the sum of its programs", sum(r["usage"][field] or 0 for r in ends),
                           run["usage"][field])

    def all(self):
        if self.is_ordinary:
            self.ordinary()  # first, since it explains many of the others, of which not all are shown
        self.assign()
        self.presence(self.root, 1)
        self.life(self.root)
        for p in self.truth.processes.values():
            self.presence(p, p.n_programs)
            if not p.programs:
                continue
            for part in (self.life, self.identity, self.ancestry, self.status):
                part(p)
            if all(r["usage"] is not None for r in p.ends()):
                for part in (self.cpu, self.counters, self.peak, self.network):
                    part(p)
            else:
                self.wrong(p.name(), "usage at END", "a record", None)
        self.live()
        self.stream()
        if not self.is_host_wide:
            self.run_record()
        self.allow_skipped_exits()
        self.allow_made_up()
        return self.mismatches

    def most(self, part):
        """That part of the processes, rounded up."""
        return math.ceil(part * len(self.truth.processes))

    def ordinary(self):
        """What is made up for, or skipped, is the exception."""
        if self.made_up > self.most(MADE_UP_MAX) + self.kills:
            self.wrong("-", "ends that were made up for", f"at most {self.most(MADE_UP_MAX)}", self.made_up)
        if self.skipped > self.skipped_max:
            self.wrong("-", "events that were skipped", f"at most {self.skipped_max}", self.skipped)

    def is_last_steps(self, p, expected, got):
        """Can a total lack only what followed the child's own last word? Time stolen meanwhile may make it larger."""
        most = TOLERANCE["cpu_made_up_us"] + self.extra_us
        said = max((end["cpu_ns"] / 1000 for end in p.end.values()), default=expected - most)
        return said - TOLERANCE["cpu_us"] <= got <= expected + most

    def is_of_last_steps(self, m):
        """Where they take longer than here, others go first meanwhile: at most one in each millisecond."""
        part = m.field.partition(" (")[0]
        return (part in ("cpu_us total", "cpu_user_us", "cpu_system_us")
                or part in SWITCHES and 0 <= m.expected - m.got <= self.extra_us / 1000)

    def allow_made_up(self):
        """
        Where the kernel never ran the program for a process's last moment, its end is made up from what was read
        before its parent was notified (ARCHITECTURE.md, the path of an event), and the agent counts that. Of so many
        processes the last steps may be missing from the total; and of a few the tick that fell into them.
        """
        total, split, processes = {}, {}, {p.name(): p for p in self.truth.processes.values()}
        other = set()  # what is wrong of these is not that
        for m in self.mismatches:
            part = m.field.partition(" (")[0]
            if part == "cpu_us total":
                total[m.case] = abs(m.got - m.expected)
                if not self.is_last_steps(processes[m.case], m.expected, m.got):
                    other.add(m.case)
            elif part in ("cpu_user_us", "cpu_system_us"):
                split[m.case] = max(abs(m.got - m.expected), split.get(m.case, 0))
        ticks = {case for case, by in split.items() if by > total.get(case, 0) + TOLERANCE["cpu_us"] + self.extra_us}
        other |= {case for case, by in split.items() if by > TOLERANCE["split_us"] + self.extra_us}
        late = total.keys() | split.keys()
        if len(late) <= self.made_up + self.kills and len(ticks) <= max(2, self.made_up * LATE_TICKS_MAX):
            late -= other
            self.mismatches = [m for m in self.mismatches if m.case not in late or not self.is_of_last_steps(m)]
        twice = [m for m in self.mismatches if m.field.startswith("involuntary_switches")
                 and m.expected - m.got == TOLERANCE["switches"] + 1]
        if len(twice) <= min(LATE_SWITCHES_MAX, self.made_up + self.kills):
            self.mismatches = [m for m in self.mismatches if m not in twice]

    def allow_skipped_exits(self):
        """
        From 7.0 the kernel may run none of a program's copies for an exit (ARCHITECTURE.md, Kernels). That is counted,
        and costs a process that never exec'd what is read there, and one whose peak is below that of an image before
        its exec this peak: of so many at most.
        """
        if int(platform.release().split(".")[0]) < 7:
            return
        told = "lost at on_exit: skipped"
        skipped = sum(m.got for m in self.mismatches if m.field == told)
        lacking = [m for m in self.mismatches if m.got is None and m.field in READ_AT_EXIT]
        if 0 < skipped <= self.skipped_max and len({m.case.partition(" program ")[0] for m in lacking}) <= skipped:
            self.mismatches = [m for m in self.mismatches if m.field != told and m not in lacking]
