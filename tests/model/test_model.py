# SPDX-License-Identifier: Apache-2.0
"""The model of the lease and of the entries' keys: its properties hold, it finds each defect, its names are there."""
import os
import re
import sys
import unittest

import model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import verdict  # noqa: E402


class Properties(unittest.TestCase):
    """Of each small instance; nightly searches the large ones."""

    def test_no_property_fails(self):
        for name, result in model.search_small():
            with self.subTest(instance=name):
                print(f"{name}: {result.states:,} states in {result.seconds:.1f} s")
                self.assertEqual("", result.failed, result.output)


class Mutants(unittest.TestCase):
    """The checker is checked: each defect makes the property fail that is named beside it."""

    def test_each_defect_is_found(self):
        for macro, result in model.search_mutants():
            with self.subTest(defect=macro):
                self.assertEqual(model.mutants()[macro][0], result.failed)

    def test_each_property_has_a_defect(self):
        with open(model.SOURCE, encoding="utf-8") as f:
            properties = {line.split()[2] for line in f if line.startswith("hidden byte")}
        self.assertEqual(properties | {model.ENDS}, {failing for failing, _ in model.mutants().values()})

    def test_each_macro_of_the_model_is_in_the_table(self):
        with open(model.SOURCE, encoding="utf-8") as f:
            macros = {macro for line in f if line.startswith("#") for macro in re.findall(r"\bM_[A-Z_]+", line)}
        self.assertEqual(macros, set(model.mutants()))


class Correspondence(unittest.TestCase):
    """README.md's table of what stands for what names what is there, and all of the model."""

    NAME = re.compile(r"`(?:struct )?(\w+)(\(\))?`")

    def setUp(self):
        with open(model.SOURCE, encoding="utf-8") as f:
            self.model = f.read()
        with open(os.path.join(model.HERE, "README.md"), encoding="utf-8") as f:
            table = f.read().split("## What stands for what", 1)[1].split("\n## ", 1)[0]
        self.rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]

    def test_each_name_of_the_model_is_in_it(self):
        for left, _ in self.rows:
            for name, is_called in self.NAME.findall(left):
                form = r"(?m)^(inline|proctype) %s\(" if is_called else r"\b%s\b"
                self.assertRegex(self.model, form % name)

    def test_each_part_of_the_model_has_a_row(self):
        named = {name for left, _ in self.rows for name, is_called in self.NAME.findall(left) if is_called}
        self.assertEqual(set(re.findall(r"(?m)^(?:inline|proctype) (\w+)\(", self.model)), named)

    def test_each_name_of_the_sources_is_in_them(self):
        for left, right in self.rows:
            texts = []
            for path in re.findall(r"(?:bpf|src)/[\w/.]+\.[ch]", right):
                with open(os.path.join(model.ROOT, path), encoding="utf-8") as f:
                    texts.append(f.read())
            for name, is_function in self.NAME.findall(right):
                form = r"(?m)^(\w[\w *]*[ *])?%s\(|\bBPF_PROG\(%s," % (name, name) if is_function else r"\b%s\b" % name
                with self.subTest(row=left, name=name):
                    self.assertTrue(any(re.search(form, text) for text in texts), "not in the sources of its row")


if __name__ == "__main__":
    verdict.main()
