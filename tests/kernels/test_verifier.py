# SPDX-License-Identifier: Apache-2.0
"""What the running kernel's verifier counts of each BPF program, beside verifier.tsv; and how that table is judged."""
import os
import platform
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import verdict  # noqa: E402
import verifier  # noqa: E402


class Running(unittest.TestCase):
    def test_each_program_is_within_its_figure(self):
        done = subprocess.run(verifier.command(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240,
                              check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        counted = verifier.read_count(done.stdout)
        kept = verifier.kept_of(platform.machine(), platform.release())
        if kept is None:
            print(f"{platform.release()} of {platform.machine()}: verifier.tsv has no such kernel: held to the limit alone")
        for name, n in counted.items():
            print(f"{name:28} {n:7}   kept {(kept or {}).get(name, 'none')}")
        self.assertTrue(counted)
        self.assertEqual([], verifier.faults(counted, kept), "where that is meant: tests/kernels/verifier.py --keep")


class Table(unittest.TestCase):
    def test_it_has_a_column_for_each_pinned_kernel(self):
        with open(verifier.VERSIONS) as f:
            pinned = [line.split()[0] for line in f if not line.startswith("#")]
        self.assertEqual(pinned, list(verifier.read_table()))

    def test_no_kept_figure_is_beyond_what_a_program_may_have(self):
        for version, figures in verifier.read_table().items():
            with self.subTest(version):
                self.assertEqual([], verifier.faults(figures, figures))

    def test_its_columns_are_of_one_architecture(self):
        version = next(iter(verifier.read_table()))
        self.assertIsNotNone(verifier.kept_of("x86_64", f"{version}.0-1-amd64"))
        self.assertIsNone(verifier.kept_of("aarch64", f"{version}.0-1-arm64"))

    def test_it_is_read_as_it_was_written(self):
        table = {"5.10": {"on_fork": 290, "on_task_until_5_16": 60000}, "7.2": {"on_fork_7": 300}}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "verifier.tsv")
            verifier.write_table(table, path)
            self.assertEqual(table, verifier.read_table(path))

    def test_what_fails(self):
        kept = {"on_fork": 100, "on_exec": 300000}
        for counted, said in (({"on_fork": 125, "on_exec": 310000}, []),
                              ({"on_fork": 126, "on_exec": 300000}, ["on_fork: 126 "]),
                              ({"on_fork": 100, "on_exec": 333334}, ["on_exec: 333334 "]),
                              ({"on_fork": 100}, ["on_exec: was loaded"]),
                              ({"on_fork": 1, "on_exec": 1, "on_new": 7}, ["on_new: 7 "])):
            with self.subTest(counted):
                found = verifier.faults(counted, kept)
                self.assertEqual(len(said), len(found), found)
                for text, begin in zip(found, said):
                    self.assertTrue(text.startswith(begin), text)
        self.assertEqual([], verifier.faults({"on_new": 7}, None))
        self.assertEqual(1, len(verifier.faults({"on_new": 400000}, None)))


if __name__ == "__main__":
    sys.exit(verdict.main())
