# SPDX-License-Identifier: Apache-2.0
"""What the ledger says of a figure, and how one is moved."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from book import Book, Refused, kernel_key, row_verdict  # noqa: E402

TEXT = """# what it is
# compilers: gcc 12; clang 14
name\tkernel\tfigure\tunit\tmore\tcommit\treason
stages.encode\tany\t1000\tinstructions\t3 %\tabc\tbecause
stages.spool\tany\t50\tinstructions\t10 %\tabc\tbecause
start.faults\t6.18-fc\t7000\tpage faults\t3 %\tabc\tbecause
start.faults\t6.1-amd64\t6000\tpage faults\t3 %\tabc\tbecause
"""


class BookTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "ledger.tsv")
        self.book = self.read(TEXT)

    def read(self, text):
        with open(self.path, "w") as f:
            f.write(text)
        return Book(self.path)

    def test_a_row_is_judged_by_its_own_allowance(self):
        rows = self.book.rows_of("stages", "any")
        for name, figure, fails, said in (
                ("stages.encode", 1000, False, "+0.0 %"), ("stages.encode", 1030, False, "+3.0 %"),
                ("stages.encode", 1030.1, True, "FAILED"), ("stages.encode", 970, False, "-3.0 %"),
                ("stages.encode", 969, False, "costs less now"), ("stages.encode", 10 ** 9, True, "because"),
                ("stages.spool", 55, False, "+10.0 %"), ("stages.spool", 56, True, "FAILED")):
            with self.subTest(name=name, figure=figure):
                failed, text = row_verdict(name, rows[name], (figure, "instructions"))
                self.assertEqual(fails, failed, text)
                self.assertIn(said, text)
                self.assertIn(name, text)

    def test_what_is_new_and_what_is_gone_fails(self):
        self.assertTrue(row_verdict("stages.new", None, (1, "bytes"))[0])
        self.assertTrue(row_verdict("stages.spool", self.book.rows_of("stages", "any")["stages.spool"], None)[0])

    def test_kernels_have_their_own_rows(self):
        self.assertEqual("7000", self.book.rows_of("start", "6.18-fc")["start.faults"]["figure"])
        self.assertEqual({}, self.book.rows_of("start", "7.2"))
        for release, key in (("6.18.44-fc-v669", "6.18-fc"), ("6.1.0-28-amd64", "6.1-amd64"), ("7.2.0", "7.2"),
                             ("6.11.0-1018-azure", "6.11-azure"), ("6.8.0-rc3+", "6.8-rc3")):
            self.assertEqual(key, kernel_key(False, release), release)
        self.assertEqual("any", kernel_key(True))

    def test_a_move_rewrites_its_row_alone(self):
        self.book.move("stages.spool", "any", (61.25, "instructions"), "def", "it checks more")
        self.book.write()
        with open(self.path) as f:
            text = f.read()
        self.assertEqual(TEXT.replace("50\tinstructions\t10 %\tabc\tbecause", "61.2\tinstructions\t10 %\tdef\tit checks more")
                         .splitlines()[:5], text.splitlines()[:5])
        self.assertEqual(sorted(TEXT.splitlines()[5:]), text.splitlines()[5:])

    def test_a_row_that_is_gone_goes(self):
        self.book.move("stages.spool", "any", None, "def", "no spool any more")
        self.assertEqual(["stages.encode"], list(self.book.rows_of("stages", "any")))

    def test_other_compilers_move_all_or_nothing(self):
        self.book.set_compilers(["gcc 12", "clang 14"], is_all=False)
        with self.assertRaises(Refused):
            self.book.set_compilers(["gcc 13", "clang 14"], is_all=False)
        self.book.set_compilers(["gcc 13", "clang 14"], is_all=True)

    def test_damage_is_reported(self):
        for row in ("stages.x\tany\t5", "stages.encode\tany\t1\tb\t3 %\tc\td", "stages.y\tany\t1\tb\t3 %\tc\t"):
            with self.subTest(row=row), self.assertRaises(Refused):
                self.read(TEXT + row + "\n")
        with self.assertRaises(Refused):
            self.book.move("stages.spool", "any", (1, "b"), "c", "two\nlines")


if __name__ == "__main__":
    unittest.main()
