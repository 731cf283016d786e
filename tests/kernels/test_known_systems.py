# SPDX-License-Identifier: Apache-2.0
"""systems.tsv has each pinned kernel, and README.md's table is what is made of it."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import known_systems as systems  # noqa: E402
import verdict  # noqa: E402

ROW = dict(zip(systems.COLUMNS, ("Debian 12", "x86_64", "6.1.0-50-amd64", "suite", "yes", "-", "network, a")))
ARM = {**ROW, "machine": "aarch64", "kernel": "6.1.0-50-arm64"}


class Table(unittest.TestCase):
    def test_readme_has_it(self):
        with open(systems.README) as f:
            text = f.read()
        self.assertEqual(systems.with_table(text, systems.read_table()), text,
                         "run tests/kernels/known_systems.py --table; or --keep, where the kernels have changed")

    def test_each_pinned_kernel_has_a_row(self):
        with open(systems.VERSIONS) as f:
            pinned = {line.split()[2] for line in f if not line.startswith("#")}
        kept = {row["kernel"] for row in systems.read_table() if row["machine"] == "x86_64"}
        self.assertEqual(set(), pinned - kept, "tests/kernels/known_systems.py --keep")

    def test_it_is_read_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "systems.tsv")
            systems.write_table([ROW, ARM], path)
            self.assertEqual([ROW, ARM], systems.read_table(path))

    def test_a_table_that_is_none(self):
        for line in ("Debian 12\tx86_64\t6.1\tsuite\tyes\t-\n", "Debian 12\tx86_64\t6.1\tseen\tyes\t-\t-\n"):
            with self.subTest(line), tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
                f.write(line)
                f.flush()
                with self.assertRaises(ValueError):
                    systems.read_table(f.name)


class Readme(unittest.TestCase):
    def test_machines_that_do_not_differ_share_a_row(self):
        self.assertEqual(["| Debian 12 | 6.1.0-50 | x86_64, aarch64 | suite |  | network bytes, a |"],
                         systems.markdown([ROW, ARM]).splitlines()[2:])
        self.assertEqual(2, len(systems.markdown([ROW, {**ARM, "checked": "BTF"}]).splitlines()[2:]))

    def test_a_kernel_on_which_it_does_not_start(self):
        self.assertIn("| does not start: no x |", systems.markdown([{**ROW, "starts": "no x"}]))

    def test_only_the_table_is_replaced(self):
        text = "head\n" + systems.BEGIN + "old\n" + systems.END + "tail\n"
        self.assertEqual("head\n" + systems.BEGIN + systems.markdown([ROW]) + systems.END + "tail\n",
                         systems.with_table(text, [ROW]))
        for damaged in ("head\ntail\n", "head\n" + systems.BEGIN + "old\n"):
            with self.assertRaises(ValueError):
                systems.with_table(damaged, [ROW])


if __name__ == "__main__":
    sys.exit(verdict.main())
