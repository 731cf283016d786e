# SPDX-License-Identifier: Apache-2.0
"""Does truth_check.py see what is wrong? Records made up from truth pass; each with one fault fails."""
import copy
import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import harness
import truth_check
from truth_compare import MADE_UP_MAX, NET, NULL_WITHOUT, Check
from truth_reported import IO, SWITCHES, TOTALS, Truth

USAGE = ["cpu_user_ns", "cpu_system_ns", "run_delay_ns", "voluntary_switches", "involuntary_switches", "minor_faults",
         "major_faults", "peak_rss_bytes", "rss_bytes", "read_bytes", "write_bytes", "rchar", "wchar", "syscr", "syscw",
         "net_rx_bytes", "net_tx_bytes", "thread_ns", "wait_samples", *NULL_WITHOUT["block_io_delay"], "threads_peak", *(f"{k}_bytes" for k in NET)]


def escaped(data):
    """The agent's escaping, written anew."""
    data = re.sub(rb"\\(?=x[0-9a-fA-F]{2})", rb"\\x5c", data)
    text = data.decode("utf-8", "surrogateescape")
    return "".join(f"\\x{ord(c) - 0xdc00:02x}" if "\udc80" <= c <= "\udcff" else c for c in text)


def made_up(truth):
    """The lake that an agent without a fault would write."""
    root = {"pid": truth.clock["pid"], "start_ticks": truth.clock["start_ticks"]}
    records, live, seq = [], [], 0

    def program_id(pid, ticks, index):
        return f"{pid}.{ticks}.{index}"

    def emit(fields, usage, code, signal, core, oom, last):
        nonlocal seq
        base = {"agent_id": "a", "run_id": "r", "task": None, "tool": None, "argv_truncated": False, "ppid": 1} | fields
        ending = ("end_time", "end_reason", "exit_code", "exit_signal", "core_dumped", "oom_killed", "usage")
        records.append(base | dict.fromkeys(ending) | {"phase": "START", "time": base["program_start_time"], "seq": seq})
        end = base["program_start_time"] + 5
        records.append(base | {"phase": "END", "time": end, "end_time": end, "end_reason": "EXIT" if last else "EXEC",
                               "exit_code": code, "exit_signal": signal, "core_dumped": core, "oom_killed": oom, "usage": usage,
                               "seq": seq + 1})
        seq += 2

    def text(image, key):
        return escaped(bytes.fromhex(image[key])) if key in image else None

    blank = dict.fromkeys(("exe", "comm", "argv", "cwd", "cgroup", "cgroup_v1", "uid", "gid", "pid_ns", "mnt_ns", "net_ns"))
    emit(blank | {"pid": root["pid"], "start_time": truth.start_us(root["start_ticks"]), "program_index": 0, "forked": False,
                  "program_start_time": truth.start_us(root["start_ticks"]), "program_id": "root", "parent_program_id": None},
         dict.fromkeys(USAGE, 0), 0, None, False, False, True)
    for p in truth.processes.values():
        told = p.told or {}
        wants = {w["index"]: w for w in told.get("wants", [])}
        start_us = truth.start_us(p.start_ticks) + 4000
        own = truth.own(p) if p.told else {k: 0 for k in TOTALS} | {
            "user_us": p.end[max(p.end)]["cpu_ns"] // 1000}
        used = 0
        for i in range(p.n_programs):
            image, ended, last = p.start.get(i, {}), p.end.get(i, {}), i == p.n_programs - 1
            usage = dict.fromkeys(USAGE, 0)
            usage["peak_rss_bytes"] = None if told.get("shared_mm") else ended.get("hwm_kb", 4000) << 10
            usage["threads_peak"] = ended.get("threads_peak", 1)
            for k in NET:
                usage[f"{k}_bytes"] = ended.get(k, 0)
            usage["net_rx_bytes"] = ended.get("tcp_rx", 0) + ended.get("udp_rx", 0)
            usage["net_tx_bytes"] = ended.get("tcp_tx", 0) + ended.get("udp_tx", 0)
            if last:
                for k in ("minor_faults", "major_faults", *SWITCHES, *IO):
                    usage[k] = own[k]
                usage["cpu_system_ns"] = own["system_us"] * 1000
                usage["cpu_user_ns"] = own["user_us"] * 1000 - used
            else:
                upto = ended.get("cpu_ns", p.start[i + 1]["cpu_ns"])
                usage["cpu_user_ns"], used = upto - used, upto
            want = wants.get(i, {})
            argv = want.get("argv", image.get("argv"))
            argv = None if argv is None else [bytes.fromhex(a) for a in argv]
            cut = False
            if argv and sum(len(a) + 1 for a in argv) > 32768:
                argv, cut = [argv[0], argv[1][:32768 - len(argv[0]) - 2]], True
            parent = None
            if p.told:
                above = [x for x in truth.by_pid[told["parent"]] if x.start_ticks <= p.start_ticks]
                parent = "root" if told["parent"] == root["pid"] else program_id(
                    told["parent"], max(x.start_ticks for x in above), told["parent_index"])
            v2, v1 = text(image, "cgroup_v2"), text(image, "cgroup_v1")
            oom = bool(told.get("oom_killed"))
            said = ended.get("exit_code", -1)
            code = told.get("exit_code", said) if last else -1
            emit(blank | {
                "pid": p.pid, "start_time": start_us, "program_start_time": start_us + 5 * i, "program_index": i,
                "program_id": program_id(p.pid, p.start_ticks, i), "parent_program_id": program_id(p.pid, p.start_ticks, i - 1) if i else parent or "root",
                "forked": p.forked and i == 0, "exe": text(image, "exe") or text(want, "exe"),
                "comm": text(image, "comm") or text(want, "comm"), "cwd": text(image, "cwd"),
                "argv": None if argv is None else [escaped(a) for a in argv], "argv_truncated": cut,
                "cgroup": v1 if v1 is not None and v2 in (None, "/") else v2, "cgroup_v1": v1,
            } | {k: image.get(k) for k in ("uid", "gid", "pid_ns", "mnt_ns", "net_ns")},
                usage, None if code < 0 else code,
                told["exit_signal"] if p.told and last and told["exit_signal"] >= 0 else None,
                told.get("core", False) if last else False, oom if last else False, last)
            rest = p.rest.get(i)
            if rest:
                moved = dict.fromkeys(USAGE, 0) | {k: rest[IO.get(k, k)] for k in (
                    "minor_faults", "voluntary_switches", *IO)} | {"cpu_user_ns": rest["cpu_ns"]}
                live += [{"agent_id": "a", "seq": n, "program_id": program_id(p.pid, p.start_ticks, i), "usage": u}
                         for n, u in enumerate([moved, dict.fromkeys(USAGE, 0)], len(live))]
    ends = [r for r in records if r["phase"] == "END"]
    total = {k: sum(r["usage"][k] or 0 for r in ends) for k in USAGE}
    failed = sum(1 for r in ends if r["exit_code"] or r["exit_signal"] is not None)
    run = {"agent_id": "a", "seq": 0, "phase": "END", "programs": len(ends), "lost_events": 0, "exit_code": 0,
           "live_programs": 0, "failed_programs": failed, "usage": total}
    agent = {"agent_id": "a", "seq": 0, "events": [], "lost": []}
    return {"sluice.program": records, "sluice.usage": live, "sluice.run": [run], "sluice.agent": [agent]}


class Checker(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if not harness.is_root():
            raise unittest.SkipTest("truth needs root for its namespaces and cgroups")
        with tempfile.TemporaryDirectory() as room:
            path = os.path.join(room, "truth.jsonl")
            subprocess.run([harness.built("truth"), "all", path], check=True, stdout=subprocess.DEVNULL, timeout=120)
            cls.truth = Truth(path)
        cls.lake = made_up(cls.truth)

    def check(self, topics, missing=(), ordinary=False, extra_us=0, host_wide=False):
        for p in self.truth.processes.values():
            p.programs = {}
        signals = [{"name": name, "hook": "", "state": "missing", "detail": "", "fields": ""} for name in missing]
        return Check(self.truth, topics, {"signals": signals}, extra_us, is_ordinary=ordinary, is_host_wide=host_wide).all()

    def test_finds_nothing_where_nothing_is_wrong(self):
        self.assertEqual([], [str(m) for m in self.check(copy.deepcopy(self.lake))])

    def test_a_start_may_be_missing_of_a_short_program_without_usage_records(self):
        topics = copy.deepcopy(self.lake)
        ends = [r for r in topics["sluice.program"] if r["phase"] == "END"]
        topics["sluice.program"] = [r | {"seq": n} for n, r in enumerate(ends)]
        used = {r["program_id"] for r in topics["sluice.usage"]}
        found = self.check(topics)
        self.assertGreater(len(used), 0)
        self.assertEqual(["START records"] * len(used), [m.field for m in found])

    def find(self, topics, case, index=None, phase="END"):
        index = index or 0
        p = next(p for p in self.truth.processes.values() if p.case == case and p.told and not p.told["forked"])
        return next(r for r in topics["sluice.program"] if (r["pid"], r["program_index"], r["phase"]) == (p.pid, index, phase)
                    and self.truth.find(r["pid"], r["start_time"]) is p)

    def assert_found(self, field, case, index, change):
        topics = copy.deepcopy(self.lake)
        change(self.find(topics, case, index), topics)
        found = self.check(topics)
        self.assertTrue(any(field in m.field for m in found), f"{case}: a wrong {field} was not found in {list(map(str, found))}")

    def test_finds_each_wrong_figure(self):
        def usage(name, by):
            def change(r, topics):
                r["usage"][name] = by(r["usage"][name])
            return change

        more = lambda n: lambda v: v + n
        for field, case, index, change in [
            ("cpu_us", "cpu_user", 0, usage("cpu_user_ns", more(12000))),
            ("cpu_user_us", "cpu_both", 0, usage("cpu_user_ns", more(-12000))),
            ("cpu_system_us", "cpu_system", 0, usage("cpu_system_ns", more(12000))),
            ("cpu_us", "large_parent", 0, usage("cpu_user_ns", more(12000))),
            ("minor_faults", "threads_16", 0, usage("minor_faults", more(1))),
            ("major_faults", "major_faults", 0, usage("major_faults", more(-1))),
            ("voluntary_switches", "sleeper", 0, usage("voluntary_switches", more(2))),
            ("involuntary_switches", "cpu_user", 0, usage("involuntary_switches", more(2))),
            ("rchar", "files", 0, usage("rchar", more(1))),
            ("wchar", "reaps_three", 0, usage("wchar", more(100))),
            ("syscr", "exec_chain_files", 0, usage("syscr", more(1))),
            ("syscw", "files", 0, usage("syscw", more(-1))),
            ("read_bytes", "direct_io", 0, usage("read_bytes", more(4096))),
            ("write_bytes", "direct_io", 0, usage("write_bytes", more(4096))),
            ("peak_rss_bytes", "memory_96_freed", 0, usage("peak_rss_bytes", lambda v: int(v * 1.04))),
            ("peak_rss_bytes", "exec_chain", 1, usage("peak_rss_bytes", lambda v: 99 << 20)),
            ("peak_rss_bytes", "plain_spawn", 0, usage("peak_rss_bytes", lambda v: 0)),
            ("peak of EXIT", "plain_spawn", 0, usage("peak_rss_bytes", lambda v: None)),
            ("threads_peak", "threads_16", 0, usage("threads_peak", more(-16))),
            ("tcp_rx_bytes", "net_tcp", 0, usage("tcp_rx_bytes", more(1))),
            ("net_rx_bytes", "net_unix", 0, usage("net_rx_bytes", more(1))),
            ("udp_tx_bytes", "net_over_exec", 1, usage("udp_tx_bytes", more(-1))),
            ("net_tx_bytes", "net_netlink", 0, usage("net_tx_bytes", more(32))),
            ("unix_rx_bytes", "net_unix", 0, usage("unix_rx_bytes", lambda v: None)),
        ]:
            with self.subTest(field=field, case=case):
                self.assert_found(field, case, index, change)

    def test_allows_the_last_steps_of_as_many_as_were_made_up_for(self):
        def mismatches(made_up, **wrong):
            """What was found, where user and system of some cases are so many us off."""
            topics = copy.deepcopy(self.lake)
            topics["sluice.agent"][0]["events"] = [{"name": "end_synthesized", "value": made_up}]
            for case, (user, system) in wrong.items():
                usage = self.find(topics, case)["usage"]
                usage["cpu_user_ns"] += user * 1000
                usage["cpu_system_ns"] += system * 1000
                topics["sluice.run"][0]["usage"]["cpu_user_ns"] += user * 1000
                topics["sluice.run"][0]["usage"]["cpu_system_ns"] += system * 1000
            return self.check(topics)

        def found(made_up, **wrong):
            return {m.field.partition(" (")[0] for m in mismatches(made_up, **wrong)}

        def after_its_last_word(case):
            p = next(p for p in self.truth.processes.values() if p.case == case and p.told)
            own = self.truth.own(p)
            return own["user_us"] + own["system_us"] - p.end[max(p.end)]["cpu_ns"] // 1000

        self.assertEqual(set(), found(1, cpu_user=(-after_its_last_word("cpu_user"), 0)))
        self.assertEqual({"cpu_us total", "cpu_user_us"}, found(1, cpu_user=(-after_its_last_word("cpu_user") - 20, 0)))
        self.assertEqual({"cpu_us total", "cpu_user_us"}, found(0, cpu_user=(-20, 0)))
        self.assertEqual({"cpu_us total", "cpu_user_us"}, found(1, cpu_user=(-20, 0), cpu_both=(-20, 0)))
        self.assertEqual(set(), found(2, cpu_user=(-20, 0), cpu_both=(-20, 0)))
        self.assertEqual({"cpu_us total", "cpu_user_us"}, found(1, cpu_user=(2000, 0)))
        for wrong in ((2000, 0), (-6000, 6000)):  # each is judged by itself
            self.assertEqual({"cpu_both"}, {m.case.split()[0] for m in mismatches(2, cpu_user=(-20, 0), cpu_both=wrong)})
        tick = (-3000, 3000)
        self.assertEqual(set(), found(1, cpu_user=tick))
        self.assertEqual({"cpu_user_us", "cpu_system_us"}, found(1, cpu_user=(-6000, 6000)))
        many = ("cpu_user", "cpu_both", "exec_chain", "major_faults", "reaps_three", "kill_sigkill", "threads_16",
                "files", "net_tcp")
        self.assertEqual({"cpu_user_us", "cpu_system_us"}, found(100, **dict.fromkeys(many, (900, -900))))

    def test_allows_two_waits_for_others_in_the_last_steps_of_two_that_were_made_up_for(self):
        def found(made_up, *cases, by=-2, field="involuntary_switches"):
            topics = copy.deepcopy(self.lake)
            topics["sluice.agent"][0]["events"] = [{"name": "end_synthesized", "value": made_up}]
            for case in cases:
                for usage in (self.find(topics, case)["usage"], topics["sluice.run"][0]["usage"]):
                    usage[field] += by
            return {m.field.partition(" (")[0] for m in self.check(topics)} - {f"sum of {field} in Usage records"}

        told = {"involuntary_switches"}
        two = ("cpu_user", "cpu_both")
        self.assertEqual((set(), told), (found(1, "cpu_user"), found(0, "cpu_user")))
        self.assertEqual((set(), told, told), (found(9, *two), found(1, *two), found(9, *two, "major_faults")))
        self.assertEqual((told, told), (found(9, "cpu_user", by=-3), found(9, "cpu_user", by=2)))
        self.assertEqual({"voluntary_switches"}, found(9, "cpu_user", field="voluntary_switches"))

    def test_takes_few_ends_that_were_made_up_for_or_skipped_where_they_are_the_exception(self):
        def found(made_up, skipped):
            topics = copy.deepcopy(self.lake)
            agent = topics["sluice.agent"][0]
            agent["events"] = [{"name": "end_synthesized", "value": made_up}]
            agent["lost"] = [{"place": "on_exit", "reason": "skipped", "count": skipped}]
            return {m.field for m in self.check(topics, ordinary=True)} - {"lost at on_exit: skipped"}

        n = len(self.truth.processes)
        most = int(n * MADE_UP_MAX)
        self.assertLess(most, n // 3)
        self.assertEqual(set(), found(most, n // 100))
        self.assertEqual({"ends that were made up for"}, found(most + 2, 0))
        self.assertEqual({"events that were skipped"}, found(0, n // 100 + 2))

    def test_takes_an_exit_that_was_skipped_where_the_kernel_may_skip_one(self):
        """Of one that has exec'd it costs at most the peak, and that it is counted is no mismatch by itself."""
        def found(release, skipped, *without_peak):
            topics = copy.deepcopy(self.lake)
            topics["sluice.agent"][0]["lost"] = [{"place": "on_exit", "reason": "skipped", "count": skipped}]
            for case in without_peak:
                self.find(topics, case)["usage"]["peak_rss_bytes"] = None
            with unittest.mock.patch("platform.release", lambda: release):
                return {m.field for m in self.check(topics)}

        told, most, peak = {"lost at on_exit: skipped"}, len(self.truth.processes) // 100, {"peak of EXIT"}
        self.assertEqual((told, set(), told), (found("6.18.0", 1), found("7.2.13", most), found("7.2.13", most + 2)))
        self.assertEqual(set(), found("7.2.13", 1, "cpu_user"))
        self.assertEqual(told | peak, found("7.2.13", 1, "cpu_user", "cpu_both"))
        self.assertEqual((told | peak, peak), (found("6.18.0", 1, "cpu_user"), found("7.2.13", 0, "cpu_user")))

    def test_allows_before_an_exec_only_what_was_stolen_between_the_marks_of_two_programs(self):
        def found(more_us, passed_us):
            topics = copy.deepcopy(self.lake)
            p = next(p for p in self.truth.processes.values() if p.case == "cwd_moved")
            mark = p.start[1]
            old = dict(mark)
            mark["mono_ns"] = (p.end[0]["mono_ns"] + mark["cpu_ns"] - p.end[0]["cpu_ns"] +
                               mark["run_delay_ns"] - p.end[0]["run_delay_ns"] + passed_us * 1000)
            more = mark["cpu_ns"] - p.end[0]["cpu_ns"] + more_us * 1000  # from its last word to the next program's first
            try:
                for index, by in ((0, more), (1, -more)):
                    self.find(topics, "cwd_moved", index)["usage"]["cpu_user_ns"] += by
                return {m.field for m in self.check(topics)}
            finally:
                mark.update(old)

        self.assertEqual(set(), found(0, 0))
        self.assertEqual({"cpu_us up to its exec"}, found(700, 0))
        self.assertEqual(set(), found(700, 800))
        self.assertEqual({"cpu_us up to its exec"}, found(700, 400))
        self.assertIn("cpu_us up to its exec", found(11000, 20000))

    def test_takes_of_an_emulated_cpu_no_more_than_has_passed_since_the_last_word(self):
        children = [p for p in self.truth.processes.values() if p.case == "sigchld_ignored" and not p.told]
        mark = next(p for p in self.truth.processes.values() if p.case == "sigchld_ignored" and p.told).end[0]

        def found(more_ms, passed_ms, extra_us=50000, of=1):
            topics = copy.deepcopy(self.lake)
            for r in topics["sluice.program"]:
                p = self.truth.find(r["pid"], r["start_time"])
                if r["phase"] == "END" and p in children[:of]:
                    r["usage"]["cpu_user_ns"] = p.end[0]["cpu_ns"] + more_ms * 1000000
                    r["usage"]["cpu_system_ns"] = 0
            seen = max(p.end[0]["mono_ns"] for p in children[:of]) + passed_ms * 1000000
            with unittest.mock.patch.dict(mark, mono_ns=seen):
                return sum(m.field == "cpu_us" for m in self.check(topics, extra_us=extra_us))

        self.assertEqual(0, found(54, 1))
        self.assertEqual(0, found(75, 26))
        self.assertEqual(1, found(75, 24))
        self.assertEqual(1, found(75, 75, extra_us=0))
        with unittest.mock.patch("truth_compare.ENDS_EMULATED_MAX", 1 / len(self.truth.processes)):
            self.assertEqual(len(children) - 1, found(75, 75, of=len(children)))

    def test_finds_usage_records_that_do_not_add_up(self):
        def change(field, by):
            def one(r, topics):
                next(u for u in topics["sluice.usage"] if u["program_id"] == r["program_id"])["usage"][field] += by
            return one

        def none(r, topics):
            topics["sluice.usage"] = []

        self.assert_found("cpu_us in Usage records", "long_lived", 0, change("cpu_user_ns", 100000000))
        self.assert_found("cpu_us in Usage records", "long_lived", 0, change("cpu_user_ns", -20000))
        self.assert_found("sum of rchar in Usage records", "long_lived", 0, change("rchar", 1 << 20))
        self.assert_found("sum of syscw in Usage records", "long_lived", 0, change("syscw", -1))
        self.assert_found("Usage records", "long_lived", 0, none)

    def test_finds_time_given_to_the_wrong_program(self):
        def change(r, topics):
            other = self.find(topics, "exec_chain", 2)
            other["usage"]["cpu_user_ns"] += r["usage"]["cpu_user_ns"]
            r["usage"]["cpu_user_ns"] = 0

        self.assert_found("cpu_us up to its exec", "exec_chain", 1, change)

    def test_finds_each_wrong_word(self):
        def put(name, value):
            return lambda r, topics: r.update({name: value})

        for field, case, index, change in [
            ("exit_code", "exit_17", 0, put("exit_code", 0)),
            ("exit_code", "leader_gone_first", 0, put("exit_code", 0)),
            ("exit_signal", "kill_sigkill", 0, put("exit_signal", None)),
            ("core_dumped", "segv_core", 0, put("core_dumped", False)),
            ("oom_killed", "kill_sigkill", 0, put("oom_killed", True)),
            ("exe", "script_sh", 0, put("exe", "/tmp/script-sh")),
            ("comm", "long_name", 0, put("comm", "short")),
            ("argv", "argv_bytes", 0, lambda r, t: r["argv"].__setitem__(6, "bad\ufffdutf8")),
            ("argv", "argv_3000", 0, lambda r, t: r["argv"].pop()),
            ("argv_truncated", "argv_100k", 0, put("argv_truncated", False)),
            ("argv", "argv_100k", 0, put("argv", ["truth", "abc"])),
            ("cwd", "cwd_moved", 1, put("cwd", "/")),
            ("uid", "setuid_nobody", 1, put("uid", 0)),
            ("net_ns", "new_mnt_net_ns", 1, put("net_ns", 1)),
            ("forked", "plain_spawn", 0, put("forked", True)),
            ("parent", "reaps_then_execs", 0, put("parent_program_id", None)),
            ("ancestors", "files", 0, put("parent_program_id", "nobody")),
            ("end_reason", "exec_chain", 0, put("end_reason", "EXIT")),
            ("run_id", "files", 0, put("run_id", None)),
        ]:
            with self.subTest(field=field, case=case):
                self.assert_found(field, case, index, change)

    def test_finds_what_is_missing_or_twice(self):
        remove = lambda r, topics: topics["sluice.program"].remove(r)
        twice = lambda r, topics: topics["sluice.program"].append(dict(r))
        foreign = lambda r, topics: topics["sluice.program"].append(r | {"pid": 1, "program_id": "x"})
        self.assert_found("END records", "files", 0, remove)
        self.assert_found("END records", "files", 0, twice)
        self.assert_found("with phase END", "files", 0, twice)
        self.assert_found("seq of", "files", 0, remove)
        self.assert_found("truth did not start", "files", 0, foreign)

        def whole(r, topics):
            topics["sluice.program"] = [x for x in topics["sluice.program"] if x["program_id"] != r["program_id"]]

        self.assert_found("programs in the lake", "memfd", 0, whole)
        self.assert_found("program indexes", "exec_chain", 2, whole)

        def lose(r, topics):
            topics["sluice.agent"][0]["lost"] = [{"place": "exit", "reason": "ring", "count": 3}]

        self.assert_found("lost at exit", "files", 0, lose)

    def test_takes_a_path_that_was_too_long_where_a_program_of_another_test_lacks_one(self):
        def found(cut, host_wide=True, **of_other):
            topics = copy.deepcopy(self.lake)
            topics["sluice.agent"][0]["lost"] = [{"place": "on_exec", "reason": "cut", "count": cut}]
            for r in topics["sluice.program"]:
                r["run_id"] = None if host_wide else "r"
            other = self.find(topics, "files") | {"pid": 1, "program_id": "x", "parent_program_id": None} | of_other
            topics["sluice.program"].append(other | {"seq": len(topics["sluice.program"])})
            return {m.field for m in self.check(topics, host_wide=host_wide)} - {"a program that truth did not start"}

        mine = sum((r["exe"] is None) + (r["cwd"] is None) for r in self.lake["sluice.program"] if r["phase"] == "END")
        told = {"lost at on_exec: cut"}
        self.assertEqual((set(), told), (found(mine + 1, cwd=None), found(mine + 2, cwd=None)))
        self.assertIn("lost at on_exec: cut", found(1, host_wide=False, cwd=None))

    def test_takes_null_only_where_doctor_says_so(self):
        topics = copy.deepcopy(self.lake)
        for r in topics["sluice.program"]:
            if r["usage"]:
                r["usage"].update(dict.fromkeys(NULL_WITHOUT["network"]))
        self.assertEqual([], [str(m) for m in self.check(topics, missing=["network"])])
        self.assertTrue(self.check(topics))
        self.assertTrue(self.check(copy.deepcopy(self.lake), missing=["network"]), "0 for what doctor calls unknown")


class Skips(unittest.TestCase):
    def test_a_case_that_could_not_be_tried_fails_unless_it_is_listed(self):
        skips = [{"case": "pid_reused", "reason": "ns_last_pid cannot be set"}, {"case": "cgroup_v1", "reason": "not mounted"}]
        args = types.SimpleNamespace(made_up=False, kills=0, agent=False, subscribed=False)
        check = types.SimpleNamespace(made_up=0, skipped=0, skipped_max=1, most=lambda share: 1)
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("SLUICE_TEST_REPORT", None)
            wrong = truth_check.tell(args, types.SimpleNamespace(skips=skips), check, 0)
        self.assertEqual([("pid_reused", "ns_last_pid cannot be set")], [(w.case, w.got) for w in wrong])


class OrdinaryArm(unittest.TestCase):
    def test_fails_where_no_process_has_a_last_word(self):
        """With an agent that takes no last totals, and makes up each end, nothing of CPU time is exact."""
        script = os.path.join(os.path.dirname(os.path.abspath(truth_check.__file__)), "truth_check.py")
        own = {k: v for k, v in os.environ.items() if k not in ("SLUICE_TEST_CASE", "SLUICE_TEST_REPORT")}
        done = subprocess.run([sys.executable, script, "--sluice", harness.built("sluice_last_word_never")],
                              stdout=subprocess.PIPE, text=True, timeout=300, env=own)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertRegex(done.stdout, r"-: ends that were made up for: expected at most \d+, got \d\d\d")


if __name__ == "__main__":
    harness.main()
