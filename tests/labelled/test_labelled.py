# SPDX-License-Identifier: Apache-2.0
"""The labels fit together, and what judges verdicts by them does so: neither root nor a workload."""
import collections
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import judge
import oracle
import surroundings
import tables
from workloads import DEMANDS, DENIED, OF_A_LIMIT, WORKLOADS

WITHIN_STEPS = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import undo
with undo.Undo() as undoing, undoing.step("sh", "-c", 'echo outer >> "$0"', sys.argv[2]):
    with undoing.step("sh", "-c", 'echo done >> "$0"', sys.argv[2]):
        pass
    with undoing.if_killed("sh", "-c", 'echo late >> "$0"', sys.argv[2]):
        with undoing.step("sh", "-c", 'echo inner >> "$0"', sys.argv[2]):
            if sys.argv[3] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
"""
WORKLOAD = {w.name: w for w in WORKLOADS}
QUIET, BUSY, CROWDED = ({"queued": queued, "others": 0.05} for queued in (0.05, 0.2, 0.6))


def verdict(demand, denied="NOTHING", waiting_for=None):
    return judge.Verdict(demand, waiting_for, denied, 1.0, 0.0, {"cpu": 0.7, "pipe": 0.3})


def outcome(name, answer, figures=QUIET):
    """Of a workload whose label is borne out."""
    found = judge.new_outcome(WORKLOAD[name], False)
    judge.judge(WORKLOAD[name], answer, collections.defaultdict(lambda: 1.0, figures), found)
    return found


class LabelsTest(unittest.TestCase):
    def test_each_name_is_there_once(self):
        self.assertEqual([], [name for name, n in collections.Counter(w.name for w in WORKLOADS).items() if n > 1])
        self.assertGreaterEqual(len(WORKLOADS), 40)

    def test_all_words_are_known(self):
        for w in WORKLOADS:
            with self.subTest(w.name):
                self.assertLessEqual({w.demand, *w.also}, set(DEMANDS))
                self.assertIn(w.denied, (*DENIED, OF_A_LIMIT))
                self.assertEqual(w.demand == "WAITING_FOR", bool(w.waits))
                self.assertLessEqual(set(w.around), set(surroundings.SURROUNDINGS))
                self.assertTrue(w.truth)
                self.assertLessEqual(set(w.truth), set(oracle.FIGURES))

    def test_each_answer_is_right_somewhere(self):
        self.assertEqual(set(DEMANDS), {w.demand for w in WORKLOADS})
        self.assertEqual({*DENIED, OF_A_LIMIT}, {w.denied for w in WORKLOADS})

    def test_whose_demand_is_never_to_be_wrong(self):
        named = {w.name for w in WORKLOADS if "FUSE" in w.name or ", beside " in w.name} | {"download to a file"}
        self.assertGreaterEqual(len(named), 5 + 11 + 1)
        self.assertEqual(named, {w.name for w in WORKLOADS if w.must})


class JudgeTest(unittest.TestCase):
    def test_a_record(self):
        record = {"demand": "NETWORK", "demand_confidence": 0.9, "waiting_for": None, "denied": "NOTHING", "denied_share": 0.05,
                  "bill": {"cpu_ns": 10, "network_ns": 30, "swap_ns": None}, "bound": "IO"}
        self.assertEqual(judge.Verdict("NETWORK", None, "NOTHING", 0.9, 0.05, {"cpu": 0.25, "network": 0.75}),
                         judge.verdict_of(record))

    def test_a_record_without_an_answer(self):
        record = dict.fromkeys(("demand", "demand_confidence", "waiting_for", "denied", "denied_share"), None)
        found = judge.verdict_of(record | {"bill": {"cpu_ns": None}})
        self.assertEqual((judge.UNKNOWN, judge.UNKNOWN, {}), (found.demand, found.denied, found.bill))

    def test_what_is_denied(self):
        alone, burnt, disk = (WORKLOAD[name] for name in ("cpu", "cpu, beside 8", "O_DIRECT read"))
        for workload, answer, figures, right in (
                (alone, "NOTHING", QUIET, True), (alone, "RUN_QUEUE", QUIET, False), (alone, "RUN_QUEUE", BUSY, True),
                (alone, "NOTHING", BUSY, True), (alone, "RECLAIM", BUSY, False), (alone, "NOTHING", CROWDED, None),
                (alone, judge.UNKNOWN, QUIET, False), (burnt, "RUN_QUEUE", CROWDED, True), (burnt, "NOTHING", CROWDED, False),
                (disk, "NOTHING", QUIET, None)):
            self.assertIs(right, judge.denied_is_right(workload, verdict("COMPUTE", answer), figures, False), (answer, figures))
        own = WORKLOAD["more threads than CPUs, then one"]
        for denied, others, right in (("NOTHING", 0.05, True), ("RUN_QUEUE", 0.05, False), ("RUN_QUEUE", 0.2, True),
                                      ("RUN_QUEUE", 0.6, None)):
            figures = CROWDED | {"others": others}
            self.assertIs(right, judge.denied_is_right(own, verdict("COMPUTE", denied), figures, False), (denied, others))
        files = WORKLOAD["mapped file of more than its limit"]
        for has_delays, right in ((True, False), (False, None)):
            self.assertIs(right, judge.denied_is_right(files, verdict("STORAGE", "NOTHING"), QUIET, has_delays))

    def test_what_is_waited_for_is_asked_where_the_demand_is_right(self):
        for answer, right in ((verdict("WAITING_FOR", waiting_for="PIPE"), True), (verdict("STORAGE"), None),
                              (verdict("WAITING_FOR", waiting_for="LOCK"), False)):
            self.assertIs(right, outcome("pipe of a slow reader", answer).marks["waiting_for"], answer)
        self.assertIsNone(outcome("cpu", verdict("COMPUTE")).marks["waiting_for"])

    def test_a_label_that_is_not_borne_out(self):
        workload = WORKLOAD["more than its limit, swapped to a disk"]
        figures = {"major_faults": 5000, "delay_memory": 0.1}
        self.assertEqual(["delay_memory 0.10, not 0.2 or more"], judge.untrue(workload, figures, has_delays=True))
        self.assertEqual([], judge.untrue(workload, figures, has_delays=False))
        self.assertEqual(["major_faults 2.00, not 1000 or more"],
                         judge.untrue(workload, {"major_faults": 2}, has_delays=False))


class TablesTest(unittest.TestCase):
    def test_totals(self):
        absent = judge.new_outcome(WORKLOAD["NFS, reads"], False)
        absent.absent = "no server"
        right = [outcome("cpu", verdict("COMPUTE")), outcome("sleep", verdict("WAITING_FOR", waiting_for="TIMER")), absent]
        wrong = outcome("download", verdict("STORAGE"))
        wrong.stacks = {"S tcp_recvmsg": 0.9}
        lines, is_well = tables.totals([*right, wrong])
        self.assertFalse(is_well)
        self.assertIn("  demand: 2 of 3 right, 67%; 2 of them as first labelled", lines)
        self.assertIn("  waiting_for: 1 of 1 right, 100%", lines)
        self.assertIn("  denied: 3 of 3 right, 100%", lines)
        self.assertIn("  not run here: NFS, reads (no server)", lines)
        self.assertEqual(["NETWORK", ".", "1", "."], next(line.split() for line in lines if line.startswith("  NETWORK ")))
        self.assertEqual(["    bill:   cpu 0.70, pipe 0.30", "    0.90 S tcp_recvmsg"], [lines[-3], lines[-1]])
        self.assertTrue(tables.totals(right)[1])

    def test_an_answer_that_is_right_too_is_no_confusion(self):
        lines, _ = tables.totals([outcome("requests to a late server", verdict("NETWORK"))])
        self.assertEqual(["WAITING_FOR", "1"], lines[1].split())

    def test_an_answer_that_is_right_too_is_not_as_first_labelled(self):
        answers = verdict("NETWORK"), verdict("WAITING_FOR", waiting_for="POLL"), verdict("COMPUTE")
        lines, _ = tables.totals([outcome("requests to a late server", answer) for answer in answers])
        self.assertIn("  demand: 2 of 3 right, 67%; 1 of them as first labelled", lines)

    def test_one_that_must_be_right_is_not_outvoted(self):
        right = [outcome("cpu", verdict("COMPUTE"))] * 50
        for name, demand, is_well in (("FUSE, names", "WAITING_FOR", False), ("FUSE, names", "NETWORK_FS", True),
                                      ("download to a file", "STORAGE", False), ("page cache, beside 8", "MIXED", False),
                                      ("upload", "COMPUTE", True)):
            answer = verdict(demand, "RUN_QUEUE" if ", beside " in name else "NOTHING")
            lines, found = tables.totals([*right, outcome(name, answer)])
            self.assertIs(is_well, found, name)
            self.assertIn(f"  wrong, and never to be: {'none' if is_well else name}", lines)

    def test_nothing_is_well_where_a_label_is_not_borne_out(self):
        found = outcome("cpu", verdict("COMPUTE"))
        found.untrue = ["wants_cpu 0.10, not 0.85 or more"]
        lines, is_well = tables.totals([found])
        self.assertFalse(is_well)
        self.assertIn("  not borne out: cpu", lines)
        self.assertTrue(tables.row(found).endswith("not borne out: wants_cpu 0.10, not 0.85 or more"))


class OracleTest(unittest.TestCase):
    def test_the_most_specific_function_of_a_stack_counts(self):
        for place, *functions in (("remote_fs", "folio_wait_bit_common", "filemap_read", "fuse_file_read_iter"),
                                  ("remote_fs", "rpc_wait_bit_killable", "nfs4_proc_getattr"),
                                  ("block", "folio_wait_bit_common", "filemap_fault", "do_fault"), ("pipe", "anon_pipe_read"),
                                  ("swap", "folio_wait_bit_common", "do_swap_page"), ("lock", "flock_lock_inode_wait"),
                                  ("timer", "hrtimer_nanosleep"), ("child", "do_wait"), ("other", "kernfs_fop_write_iter")):
            stack = "".join(f"[<0>] {function}+0x74/0xf0\n" for function in functions)
            self.assertEqual(place, oracle.place_of("S", stack), functions)
        self.assertEqual("stopped", oracle.place_of("T", ""))


class UndoTest(unittest.TestCase):
    def undone(self, how, count):
        """The exit status, and what was undone, in its order."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "undone")
            here = os.path.dirname(os.path.abspath(__file__))
            status = subprocess.run([sys.executable, "-c", WITHIN_STEPS, here, path, how]).returncode
            until = time.monotonic() + 60
            while True:
                with open(path) as f:
                    lines = f.read().split()
                if len(lines) >= count or time.monotonic() > until:
                    return status, lines
                time.sleep(0.05)

    def test_a_process_that_is_killed_leaves_nothing(self):
        self.assertEqual((-9, ["done", "inner", "late", "outer"]), self.undone("killed", 4))

    def test_a_process_that_ends_undoes_each_step_once(self):
        self.assertEqual((0, ["done", "inner", "outer"]), self.undone("", 3))


if __name__ == "__main__":
    unittest.main()
