#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""measured.py COMMAND [ARG…]: a test that measures time on CPUs that others share: up to three tries, and it says how many it took.

The try that passed is reported to $SLUICE_TEST_REPORT, so that the closing report says which one it was.
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "integration"))

import verdict  # noqa: E402

TRIES = 3


def main(command):
    name = next((os.path.splitext(os.path.basename(word))[0] for word in command if word.endswith(".py")), command[0])
    for n in range(1, TRIES + 1):
        began = time.monotonic()
        status = subprocess.run(command).returncode
        if status in (0, verdict.SKIPPED):
            print(f"measured: passed at try {n} of {TRIES}")
            verdict.tell(name, name, "measured", time.monotonic() - began, f"passed at try {n} of {TRIES}")
            return status
        print(f"measured: try {n} of {TRIES} ended with {status}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
