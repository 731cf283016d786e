# SPDX-License-Identifier: Apache-2.0
"""The closing report of a run of tests: what ran, what was skipped and why, what was slow, and what failed, once more.

From ctest's JUnit file, from the JSON lines of tests/integration/verdict.py, and from ctest's log, in which the
programs of cmocka say what they skipped.
"""
import json
import os
import re
import sys
import xml.etree.ElementTree as xml

import times

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import verdict  # noqa: E402

SLOWEST = 10
LAST_LINES = 8          # of a failed test that says no case


def read_junit(path):
    """
    ([(name, seconds, status)], {name: its last lines} of the failed); status is run, fail, notrun (skipped) or disabled.
    (None, {}) where ctest wrote no file.
    """
    try:
        suite = xml.parse(path).getroot()
    except (FileNotFoundError, xml.ParseError):
        return None, {}
    tests = [(t.get("name"), float(t.get("time") or 0), t.get("status")) for t in suite.iter("testcase")]
    said = {t.get("name"): [line for line in (t.findtext("system-out") or "").splitlines() if line.strip()][-LAST_LINES:]
            for t in suite.iter("testcase") if t.get("status") == "fail"}
    return tests, said


def read_cases(path):
    """The JSON lines that the tests wrote."""
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def read_cmocka(path):
    """(how many cases ran, [TEST::case that was skipped]) of the programs of cmocka in ctest's log."""
    ran, skipped, test = 0, [], ""
    if not os.path.exists(path):
        return ran, skipped
    with open(path, errors="replace") as f:
        for line in f:
            if m := re.match(r"\d+/\d+ Testing: (\S+)", line):
                test = m[1].removeprefix("unit.")
            elif m := re.match(r"\[==========\] .*?(\d+) test\(s\) run", line):
                ran += int(m[1])
            elif m := re.match(r"\[  SKIPPED \] (\S+)$", line):
                skipped.append(f"{test}::{m[1]}")
    return ran, list(dict.fromkeys(skipped))


def seconds(value):
    return f"{int(value) // 60}:{value % 60:04.1f}" if value >= 60 else f"{value:.1f} s"


def is_of(name, case):
    """Whether a reported case is one of ctest's test of this name."""
    return name.partition(".")[2] == case["file"] or name == f"{case['file']}.{case['case']}"


def failures(tests, said, reported):
    """[line]: each failed case and how it failed; of a test that says no case, how its output ends."""
    lines = []
    for name, _, status in tests:
        if status != "fail":
            continue
        failed = [c for c in reported if c["outcome"] == "failed" and is_of(name, c)]
        lines += [f"failed   {name}, {c['case']}: {' '.join(c['reason'].split())}" for c in failed]
        lines += [f"failed   {name}: {line}" for line in said[name] or ["it said nothing"] if not failed]
    return lines


def closing(junit, cases, log, allowed=None):
    """([line], [FILE::case that was skipped and may not be])"""
    tests, said_last = read_junit(junit)
    if tests is None:
        return ["ctest wrote no results"], []
    said, (in_c, skipped_in_c) = read_cases(cases), read_cmocka(log)
    reported = [c for c in said if c["outcome"] != "measured"]
    allowed = verdict.allowed_skips() if allowed is None else allowed
    skipped = [(f"{c['file']}::{c['case']}", c["reason"]) for c in reported if c["outcome"] == "skipped"]
    skipped += [(name, "says so itself") for name in skipped_in_c]
    # A test that ctest itself calls skipped or disabled: its cases have to say why.
    skipped += [(name, f"{status}, without a case that says why") for name, _, status in tests
                if status not in ("run", "fail") and not any(is_of(name, c) for c in reported if c["outcome"] == "skipped")]
    refused = [name for name, _ in skipped if not verdict.may_skip(name, allowed)]
    lines = [f"ran      {len(tests)} tests of {len(reported) + in_c} cases in {seconds(sum(s for _, s, _ in tests))} of work, "
             f"{len(skipped)} skipped"]
    for name, reason in skipped:
        listed = next((why for pattern, why in allowed if verdict.may_skip(name, [(pattern, why)])), None)
        lines.append(f"skipped  {name}: {listed or reason}" + ("" if listed else "  NOT LISTED in tests/skips.tsv"))
    lines += [f"measured {c['file']}{', ' + c['case'] if c['case'] != c['file'] else ''}: {c['reason']}"
              for c in said if c["outcome"] == "measured"]
    lines += [f"slower   {line}" for line in times.slower(tests)]
    for name, took, _ in sorted(tests, key=lambda t: -t[1])[:SLOWEST]:
        lines.append(f"slowest  {seconds(took):>8}  {name}")
    lines += failures(tests, said_last, reported)
    return lines, refused
