# SPDX-License-Identifier: Apache-2.0
"""How a file of tests ends: every case is reported, and a skip that tests/skips.tsv does not list is a failure.

tests/skips.tsv lists what may be skipped, why, and whether only where no root runs the tests. $SLUICE_TEST_CASE names one case (Class.test) to run alone.
$SLUICE_TEST_REPORT names a file that gets one JSON line a case: {"file", "case", "outcome", "seconds", "reason"}.
"""
import fnmatch
import json
import os
import sys
import time
import traceback
import unittest

TESTS = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
REASON_MAX = 1500   # characters of it that are kept
WITHOUT_ROOT = "without root"


def allowed_skips(path=os.path.join(TESTS, "skips.tsv")):
    """[(pattern of FILE::Class.test, reason)] of the rows that hold for who runs this."""
    with open(path) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
    wrong = [row for row in rows if not all(row) or (len(row) != 2 and row[2:] != [WITHOUT_ROOT])]
    if wrong:
        raise ValueError(f'{path}: a row is a test, a reason and perhaps "{WITHOUT_ROOT}", with tabs between them: {wrong[0]}')
    return [(row[0], row[1]) for row in rows if len(row) == 2 or os.geteuid() != 0]


def may_skip(name, allowed=None):
    """Whether FILE::Class.test may be skipped."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern, _ in (allowed_skips() if allowed is None else allowed))


def tell(file, case, outcome, seconds, reason=""):
    """One line for the closing report; nothing where no report is asked for."""
    path = os.environ.get("SLUICE_TEST_REPORT")
    if not path:
        return
    line = {"file": file, "case": case, "outcome": outcome, "seconds": round(seconds, 3), "reason": reason}
    with open(path, "a") as f:  # one write(2) below PIPE_BUF, so that files that run side by side do not mix
        f.write(json.dumps(line) + "\n")


class Result(unittest.TextTestResult):
    """unittest's own, which also writes to the closing report."""

    file = ""

    def startTest(self, test):
        self._began = time.monotonic()
        super().startTest(test)

    def _tell(self, test, outcome, reason=""):
        case = test.id().removeprefix("__main__.")
        tell(self.file, case, outcome, time.monotonic() - getattr(self, "_began", time.monotonic()), reason)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._tell(test, "passed")

    def _tell_failed(self, test, err):
        """With the lines of the test's own file that led there, since one statement is often reached by several ways."""
        frames = [f.lineno for f in traceback.extract_tb(err[2]) if os.path.splitext(os.path.basename(f.filename))[0] == self.file]
        at = "".join(f"line {n}: " for n in frames[:3])
        self._tell(test, "failed", f"{at}{err[0].__name__}: {err[1]}"[:REASON_MAX])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._tell_failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._tell_failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._tell_failed(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._tell(test, "skipped", reason)


def main():
    """unittest.main() of the file that was started, with the case in $SLUICE_TEST_CASE or those in its arguments."""
    Result.file = os.path.splitext(os.path.basename(sys.argv[0]))[0]
    case = os.environ.get("SLUICE_TEST_CASE")
    argv = sys.argv[:1] + [case] if case else sys.argv
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    result = unittest.main(module="__main__", argv=argv, exit=False, testRunner=runner).result
    names = [f"{Result.file}::{test.id().removeprefix('__main__.')}" for test, _ in result.skipped]
    allowed = allowed_skips()
    refused = [name for name in names if not may_skip(name, allowed)]
    if refused:
        print(f"skipped, and not listed in {os.path.join('tests', 'skips.tsv')}: {', '.join(refused)}", file=sys.stderr)
    if not result.wasSuccessful() or refused:
        sys.exit(1)
    if result.testsRun == 0:
        sys.exit("no test was run")
    sys.exit(SKIPPED if len(names) == result.testsRun else 0)
