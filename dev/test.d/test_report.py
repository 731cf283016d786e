#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report of `dev/test` on a run, and what it lets pass."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import find
import report
import times

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INTEGRATION = os.path.join(ROOT, "tests", "integration")

JUNIT = """<testsuite>
<testcase name="unit.test_a" time="0.5" status="run"/>
<testcase name="integration.test_b" time="75" status="run"/>
<testcase name="integration.test_c" time="12" status="fail"/>
</testsuite>"""
LOG = """1/3 Testing: unit.test_a
[  SKIPPED ] as_nobody
[==========] tests: 7 test(s) run.
"""
CASES = [
    {"file": "test_b", "case": "B.test_one", "outcome": "passed", "seconds": 1, "reason": ""},
    {"file": "test_b", "case": "B.test_two", "outcome": "skipped", "seconds": 0, "reason": "no moon"},
]


class Closing(unittest.TestCase):
    def setUp(self):
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.room, self.junit, self.cases = room.name, JUNIT, CASES

    def file(self, name, text):
        path = os.path.join(self.room, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def closing(self, allowed):
        return report.closing(self.file("junit.xml", self.junit),
                              self.file("cases", "".join(json.dumps(c) + "\n" for c in self.cases)),
                              self.file("log", LOG), allowed)

    def test_a_skip_that_is_not_listed_is_refused(self):
        lines, refused = self.closing([("test_b::B.*", "there is no moon")])
        self.assertEqual(["test_a::as_nobody"], refused)
        self.assertIn("skipped  test_b::B.test_two: there is no moon", lines)
        self.assertIn("skipped  test_a::as_nobody: says so itself  NOT LISTED in tests/skips.tsv", lines)

    def test_what_ctest_itself_skips_has_a_case_that_says_why(self):
        self.junit = JUNIT.replace('"75" status="run"', '"75" status="notrun"').replace('status="fail"', 'status="disabled"')
        lines, refused = self.closing([("test_b::*", "x"), ("test_a::as_nobody", "y")])
        self.assertEqual(["integration.test_c"], refused)
        self.assertIn("skipped  integration.test_c: disabled, without a case that says why  NOT LISTED in tests/skips.tsv", lines)

    def test_what_was_measured_is_reported_and_is_no_case(self):
        self.cases = CASES + [{"file": "truth", "case": "agent", "outcome": "measured", "seconds": 1, "reason": "0 made up"},
                              {"file": "test_m", "case": "test_m", "outcome": "measured", "seconds": 1, "reason": "passed at try 1 of 3"}]
        lines, _ = self.closing([])
        self.assertIn("of 9 cases", lines[0])
        self.assertIn("measured truth, agent: 0 made up", lines)
        self.assertIn("measured test_m: passed at try 1 of 3", lines)

    def test_listed_skips_pass_and_all_cases_are_counted(self):
        lines, refused = self.closing([("test_b::*", "x"), ("test_a::as_nobody", "y")])
        self.assertEqual([], refused)
        self.assertTrue(lines[0].startswith("ran      3 tests of 9 cases in 1:27.5 of work, 2 skipped"), lines[0])
        self.assertEqual("slowest    1:15.0  integration.test_b", next(x for x in lines if x.startswith("slowest")))

    def test_what_failed_is_said_once_more(self):
        self.junit = JUNIT.replace('"75" status="run"', '"75" status="fail"').replace(
            'status="fail"/>\n</', 'status="fail"><system-out>one\n\nsegmentation fault\n</system-out></testcase>\n</')
        self.cases = CASES + [{"file": "test_b", "case": "B.test_three", "outcome": "failed", "seconds": 1,
                               "reason": "line 7: AssertionError:\n1 != 2"}]
        lines, _ = self.closing([])
        self.assertEqual(["failed   integration.test_b, B.test_three: line 7: AssertionError: 1 != 2",
                          "failed   integration.test_c: one", "failed   integration.test_c: segmentation fault"],
                         [x for x in lines if x.startswith("failed")])

    def test_no_results_are_reported(self):
        self.assertEqual((["ctest wrote no results"], []), report.closing(os.path.join(self.room, "none"), "", ""))

    def test_slower_than_twice_its_time(self):
        tests = [("a", 25.0, "run"), ("b", 19.9, "run"), ("c", 5.0, "run"), ("d", 11.0, "run"), ("e", 9.0, "run")]
        said = times.slower(tests, {"a": 12.0, "b": 10.0, "c": 1.0})
        self.assertEqual(["a took 25 s", "d took 11 s"], [s.split(";")[0] for s in said])


class Names(unittest.TestCase):
    NAMES = ["unit.test_cli_cat", "unit.test_cli_table", "integration.test_control", "unit.test_control_control", "analytics.html",
             "analytics.html_page"]

    def test_what_a_word_means(self):
        for word, names in {
            "unit.test_cli_cat": ["unit.test_cli_cat"], "test_control": ["integration.test_control"],
            "control": ["integration.test_control"], "html": ["analytics.html"], "test_html": ["analytics.html"],
            "tests/integration/test_control.py": ["integration.test_control"], "tests/unit/test_cli_cat.c": ["unit.test_cli_cat"],
            "cli": ["unit.test_cli_cat", "unit.test_cli_table"], "moon": [],
        }.items():
            self.assertEqual(names, find.meant(word, self.NAMES), word)


class Calls(unittest.TestCase):
    def test_a_second_name_is_not_passed_over(self):
        done = subprocess.run([os.path.join(ROOT, "dev", "test"), "unit.test_a", "unit.test_b"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((2, ""), (done.returncode, done.stdout))
        self.assertIn("one NAME a call", done.stderr)


class Forge(unittest.TestCase):
    def test_its_nights_have_every_part_that_needs_no_quiet_machine(self):
        with open(os.path.join(ROOT, ".github", "workflows", "ci.yml")) as f:
            named = re.search(r"\n +part:\n((?: +- \S+\n)+)", f.read())[1].split()[1::2]
        done = subprocess.run([os.path.join(ROOT, "dev", "test"), "nightly", "--list"], stdout=subprocess.PIPE, text=True,
                              check=True)
        parts = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual([part for part in parts if part not in ("soak", "bench", "bench-delivery")], named)


class Ends(unittest.TestCase):
    """A file of tests as its own process, with a list of skips of its own."""

    FILE = """import sys, unittest
sys.path.insert(0, {path!r})
import verdict
class T(unittest.TestCase):
    def test_good(self):
        pass
    def test_skipped(self):
        self.skipTest("no moon")
    @unittest.expectedFailure
    def test_expected(self):
        self.fail()
verdict.TESTS = {tests!r}
verdict.allowed_skips.__defaults__ = ({skips!r},)
verdict.main()
"""

    def run_file(self, listed, case="", more=""):
        with tempfile.TemporaryDirectory() as room:
            path, skips, told = (os.path.join(room, name) for name in ("test_x.py", "skips.tsv", "told"))
            with open(skips, "w") as f:
                f.write("# what\twhy\n" + listed)
            with open(path, "w") as f:
                f.write(self.FILE.format(path=INTEGRATION, tests=room, skips=skips).replace("verdict.TESTS", more + "verdict.TESTS"))
            done = subprocess.run([sys.executable, "-B", path], capture_output=True, text=True,
                                  env=os.environ | {"SLUICE_TEST_REPORT": told, "SLUICE_TEST_CASE": case})
            lines = []
            if os.path.exists(told):
                with open(told) as f:
                    lines = [json.loads(line) for line in f]
            self.reasons = {x["case"]: x["reason"] for x in lines}
            return done, {x["case"]: x["outcome"] for x in lines}

    def test_a_skip_fails_unless_it_is_listed(self):
        done, told = self.run_file("")
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn("skipped, and not listed in tests/skips.tsv: test_x::T.test_skipped", done.stderr)
        self.assertEqual("passed", told["T.test_good"])
        self.assertEqual("skipped", told["T.test_skipped"])
        done, _ = self.run_file("test_x::T.test_skipped\tno moon here\n")
        self.assertEqual(0, done.returncode, done.stderr)

    def test_a_failure_says_which_line_led_there(self):
        more = ("    def check(self, n):\n        self.assertEqual(1, n)\n"
                "    def test_bad(self):\n        self.check(2)\n"
                "    def test_bad_part(self):\n        with self.subTest(n=3):\n            self.check(3)\n")
        done, told = self.run_file("test_x::*\tno moon\n", more=more)
        self.assertEqual((1, "failed", "failed"), (done.returncode, told["T.test_bad"], told["T.test_bad_part"]), done.stderr)
        self.assertRegex(self.reasons["T.test_bad"], r"^line 15: line 13: AssertionError: 1 != 2")
        self.assertRegex(self.reasons["T.test_bad_part"], r"^line 18: line 13: AssertionError: 1 != 3")

    def test_a_row_that_holds_only_without_root(self):
        row = "test_x::T.test_skipped\tno moon here\twithout root\n"
        self.assertEqual(1 if os.geteuid() == 0 else 0, self.run_file(row)[0].returncode)
        done, _ = self.run_file(row.replace("without root", "now and then"))
        self.assertNotEqual(0, done.returncode)
        self.assertIn("a row is a test, a reason and perhaps", done.stderr)

    def test_one_case_alone(self):
        done, told = self.run_file("", "T.test_good")
        self.assertEqual((0, {"T.test_good": "passed"}), (done.returncode, told), done.stderr)
        self.assertNotEqual(0, self.run_file("", "T.test_none")[0].returncode)

    def test_only_skips_are_reported_to_ctest(self):
        self.assertEqual(77, self.run_file("test_x::*\tno moon\n", "T.test_skipped")[0].returncode)

    def test_what_measures_has_three_tries(self):
        with tempfile.TemporaryDirectory() as room:
            script, told = os.path.join(room, "test_m.py"), os.path.join(room, "told")
            with open(script, "w") as f:
                f.write(f"import os\nopen({room!r} + '/n', 'a').write('x')\n"
                        f"raise SystemExit(int(os.path.getsize({room!r} + '/n') < int(os.environ['WANT'])))\n")
            command = [sys.executable, "-B", os.path.join(ROOT, "tests", "measured.py"), sys.executable, script]
            for want, status in (("3", 0), ("7", 1)):
                env = os.environ | {"SLUICE_TEST_REPORT": told, "WANT": want}
                done = subprocess.run(command, capture_output=True, text=True, env=env)
                self.assertEqual(status, done.returncode, done.stdout)
            with open(told) as f:
                self.assertEqual(["passed at try 3 of 3"], [json.loads(line)["reason"] for line in f])


if __name__ == "__main__":
    unittest.main()
