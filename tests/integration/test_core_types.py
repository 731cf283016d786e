# SPDX-License-Identifier: Apache-2.0
"""libbpf relocates the BPF programs with a copy of a few of the kernel's types as with all of them."""
import os
import subprocess
import unittest

import harness


class CoreTypes(unittest.TestCase):
    def setUp(self):
        if not harness.is_root():
            self.skipTest("loading BPF needs root")

    def test_programs_are_relocated_alike(self):
        tool = os.path.join(harness.BUILD, "tests", "integration", "core_types_alike")
        done = subprocess.run([tool], capture_output=True, text=True, timeout=60)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertRegex(done.stdout, r"^[1-9][0-9]* programs\n$")


if __name__ == "__main__":
    harness.main()
