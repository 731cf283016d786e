# SPDX-License-Identifier: Apache-2.0
"""The verdicts of the benchmarks on a budget."""
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import report  # noqa: E402
from arms import Sample  # noqa: E402
from judge import LESS, MET, MISSED, MORE, UNDECIDED, compare, interval, judge, judge_none  # noqa: E402

QUIET = [0.999, 1.001, 1.000, 1.002, 0.998, 1.000, 1.001]
# Seven rounds of a fork storm on two shared CPUs: median 1.005, 0.751 to 1.255; without a tracer 0.722 to 1.228.
STORM = [0.751, 0.912, 0.968, 1.005, 1.071, 1.140, 1.255]
STORM_NULL = [0.722, 0.890, 0.951, 0.984, 1.050, 1.122, 1.228]

CASES = (
    # what, values, budget, options, verdict
    ("the storm, whose own spread is twelve times the budget", STORM, 1.02, {"null": STORM_NULL}, UNDECIDED),
    ("the storm without the arm that does nothing", STORM, 1.02, {}, UNDECIDED),
    ("all within", [1.005, 1.006, 1.004, 1.007, 1.005], 1.02, {"null": QUIET}, MET),
    ("all within, but the machine moves by more than the budget", [1.005, 1.006, 1.004, 1.007, 1.005], 1.02,
     {"null": STORM_NULL}, UNDECIDED),
    ("all outside", [1.05, 1.06, 1.04, 1.05, 1.07], 1.02, {"null": QUIET}, MISSED),
    ("all outside, however the machine moves", [5.7, 5.0, 6.5, 5.5, 5.9], 1.02, {"null": STORM_NULL}, MISSED),
    ("the median within, the interval not", [1.00, 1.01, 1.01, 1.03, 1.04], 1.02, {"null": QUIET}, UNDECIDED),
    ("the median outside, the interval not", [1.00, 1.01, 1.03, 1.03, 1.04], 1.02, {"null": QUIET}, UNDECIDED),
    ("one round of many that went astray", [1.001] * 14 + [1.5], 1.02, {"null": QUIET}, MET),
    ("four rounds", [1.0] * 4, 1.02, {"null": QUIET}, UNDECIDED),
    ("four rounds, all outside", [9.0] * 4, 1.02, {"null": QUIET}, UNDECIDED),
    ("two rounds", [5102, 5794], 4000, {}, UNDECIDED),
    ("none", [], 1, {}, UNDECIDED),
    ("on the budget", [250.0] * 5, 250, {}, MET),
    ("above a floor", [0.70, 0.72, 0.71, 0.68, 0.85], 0.6, {"at_least": True}, MET),
    ("about a floor", [0.55, 0.72, 0.61, 0.58, 0.85], 0.6, {"at_least": True}, UNDECIDED),
    ("below a floor", [0.50, 0.52, 0.51, 0.48, 0.55], 0.6, {"at_least": True}, MISSED),
)


class JudgeTest(unittest.TestCase):
    def test_cases(self):
        for what, values, budget, options, word in CASES:
            with self.subTest(what):
                self.assertEqual(word, judge(values, budget, **options).word)
                self.assertEqual(word, judge(list(reversed(values)), budget, **options).word)

    def test_a_miss_says_by_how_much_and_doubt_says_why(self):
        self.assertEqual("by 5 (50 %)", judge([15.0] * 5, 10).why)
        for what, values, budget, options, word in CASES:
            with self.subTest(what):
                self.assertEqual(word == MET, judge(values, budget, **options).why == "")

    def test_none_is_none(self):
        self.assertEqual(MET, judge_none([0] * 5).word)
        self.assertEqual(UNDECIDED, judge_none([0] * 3).word)
        self.assertEqual(MISSED, judge_none([0, 0, 2]).word)

    def test_arms_are_compared(self):
        for what, values, null, word in (
            ("all below", [0.80, 0.82, 0.79, 0.81, 0.85], QUIET, LESS),
            ("all above", [1.20, 1.22, 1.19, 1.21, 1.25], QUIET, MORE),
            ("on both sides", [0.95, 1.02, 0.99, 1.01, 1.05], QUIET, UNDECIDED),
            ("all below, but two equal arms differ by more", [0.90, 0.92, 0.91, 0.93, 0.92], STORM_NULL, UNDECIDED),
            ("all above, however the machine moves", [5.7, 5.0, 6.5, 5.5, 5.9], STORM_NULL, MORE),
            ("four rounds", [0.5] * 4, QUIET, UNDECIDED),
            ("none", [], [], UNDECIDED),
        ):
            with self.subTest(what):
                verdict = compare(values, null)
                self.assertEqual(word, verdict.word)
                self.assertEqual(word != UNDECIDED, verdict.why == "")

    def test_the_interval_is_of_the_median_and_always_the_same(self):
        low, high = interval(STORM)
        self.assertLessEqual(min(STORM), low)
        self.assertLess(low, 1.005)
        self.assertLess(1.005, high)
        self.assertLessEqual(high, max(STORM))
        self.assertEqual((low, high), interval(STORM))

    def test_it_is_seldom_wrong(self):
        """With rounds of a known median, less than 5 % of the verdicts `missed` and `met` are wrong."""
        draw = random.Random(7)
        for truth, wrong_word in ((1.01, MISSED), (1.03, MET)):
            wrong = sum(judge([draw.gauss(truth, 0.02) for _ in range(9)], 1.02).word == wrong_word for _ in range(200))
            self.assertLess(wrong, 10, truth)

    def test_more_rounds_decide(self):
        draw = random.Random(7)
        values = [draw.gauss(1.0, 0.02) for _ in range(200)]
        self.assertEqual(MET, judge(values, 1.02).word)


class ReportTest(unittest.TestCase):
    def samples(self, start):
        """Six rounds of a pipeline of 14.5 s on a quiet machine."""
        none = [Sample(9.0, 14.5 + i / 1000, None, None, None, None, 9.0) for i in range(6)]
        traced = [s._replace(tracer=0.034, start=start, whole=9.1 + start) for s in none]
        return {"none": none, "none again": list(reversed(none)), "sluice run": traced}

    def test_the_start_is_counted(self):
        for start, word in ((0.05, MET), (0.738, MISSED)):
            row = report.ratio_row("the pipeline", self.samples(start), 1.01)
            self.assertEqual(word, row.verdict.word)
        self.assertAlmostEqual(1.053, row.values[0], 3)
        table = "\n".join(report.side_by_side("Demo pipeline", self.samples(0.738)))
        self.assertIn("| `sluice run` | 1.000 [1.000–1.000] | 1.053 [1.053–1.053] | 1.093 [1.093–1.093] | 34 [34–34] ms | "
                      "738 [738–738] ms | 6 |", table)

    def test_a_peer_is_compared_in_the_same_round(self):
        samples = self.samples(0.05)
        samples["peer"] = [s._replace(tracer=1.5, start=1.0, whole=9.0, lost=i) for i, s in enumerate(samples["none"])]
        rows = report.peer_table(samples, {"auditd": "process 7 is this host's audit daemon"})
        self.assertEqual("| `peer` | 0.858 [0.858–0.858], 0.858–0.858 **`less`** | 0.908 [0.908–0.908], 0.908–0.908 **`less`** | "
                         "1.017 [1.017–1.017], 1.017–1.017 **`more`** | 5 |  | 6 |", rows[-3])
        self.assertEqual("| `auditd` | not available: process 7 is this host's audit daemon |  |  |  |  | 0 |", rows[-2])

    def test_a_row_tells_its_n_and_its_interval(self):
        rows = [report.row("start", "{:.0f} ms", [738] * 7, 250), report.row("storm", "{:.3f}", STORM, 1.02, null=STORM_NULL),
                report.none_row("lost", [0] * 5), report.row("rules", "{:.1f} µs", [5.0, 5.8], 8)]
        lines = report.budget_table(rows)[2:-1]
        self.assertEqual("| start | ≤ 250 ms | 738 [738–738] ms | 738–738 | 7 | **`missed`** by 488 (195 %) |", lines[0])
        self.assertRegex(lines[1], r"≤ 1.02 \| 1.005 \[0.751–1.255\] \| \S+ \| 7 \| \*\*`undecided`\*\*: the budget lies")
        self.assertEqual("| lost | 0 | 0 [0–0] | 0–0 | 5 | **`met`** |", lines[2])
        self.assertEqual("| rules | ≤ 8 µs | 5.4 [5.0–5.8] µs |  | 2 | **`undecided`**: 2 of 5 rounds |", lines[3])

    def test_the_history_has_a_line_a_row(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "history.tsv"), encoding="utf-8") as f:
            header = [line for line in f if not line.startswith("#")][0].rstrip("\n").split("\t")
        line, = report.history("run", [report.row("start", "{:.0f} ms", [700, 738, 750, 720, 741], 250)], "abc", "6.18")
        told = dict(zip(header, line.split("\t")))
        self.assertEqual(len(header), len(line.split("\t")))
        self.assertEqual(("5", "738", "missed", "≤ 250 ms"), tuple(told[x] for x in ("n", "median", "verdict", "budget")))


if __name__ == "__main__":
    unittest.main()
