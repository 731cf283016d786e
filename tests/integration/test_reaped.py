# SPDX-License-Identifier: Apache-2.0
"""A process that is read on one CPU while its threads are released on another."""
import subprocess
import unittest

import harness


class Reaped(unittest.TestCase):
    def test_nothing_is_counted_twice(self):
        """The kernel adds the counters of a thread to those of its process before it removes the thread."""
        done = subprocess.run([harness.built("reaped"), "5"], capture_output=True, text=True, timeout=60)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        reaped, read, wrong = map(int, done.stdout.split())
        self.assertGreater(reaped, 1000)
        self.assertGreater(read, 50)
        self.assertEqual(0, wrong)


if __name__ == "__main__":
    harness.main()
