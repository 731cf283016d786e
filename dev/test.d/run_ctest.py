#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_ctest.py NAME [CTEST-OPTION…]: ctest of build/dev, with what ran, what was skipped and what was slow before its own closing lines.

Results are in build/test-results: NAME.xml (JUnit) and NAME.jsonl (the cases). Fails where ctest fails, where no test was run, and where something was skipped that tests/skips.tsv does not list.
"""
import os
import re
import signal
import subprocess
import sys

import report

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build", "dev")
RESULTS = os.path.join(ROOT, "build", "test-results")
CLOSING = re.compile(r"^\d+% tests passed|^No tests were found|^The following tests FAILED")


def main(name, options):
    os.makedirs(RESULTS, exist_ok=True)
    junit, cases = os.path.join(RESULTS, name + ".xml"), os.path.join(RESULTS, name + ".jsonl")
    for path in (junit, cases):
        if os.path.exists(path):
            os.unlink(path)
    command = ["ctest", "--test-dir", BUILD, "--output-on-failure", "--no-tests=error", "--output-junit", junit, *options]
    ctest = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                             env=os.environ | {"SLUICE_TEST_REPORT": cases})
    # An interrupt from the terminal is ctest's as well: it ends its tests, and the report has what ran until then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: ctest.terminate())
    closing = []
    for line in ctest.stdout:
        if closing or CLOSING.match(line):
            closing.append(line)
        else:
            sys.stdout.write(line)
            sys.stdout.flush()
    status = ctest.wait()
    lines, refused = report.closing(junit, cases, os.path.join(BUILD, "Testing", "Temporary", "LastTest.log"))
    print("\n" + "\n".join(lines) + "\n")
    sys.stdout.writelines(closing)
    sys.stdout.flush()
    return status if status > 0 else 1 if status < 0 or refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
