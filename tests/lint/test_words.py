# SPDX-License-Identifier: Apache-2.0
"""The check of words, on texts that have one or not."""
import unittest

import tree
import words

WORDS = words.read_words(tree.ROOT)


class Words(unittest.TestCase):
    def found(self, path, text):
        """Line and word of each sentence."""
        return sorted(tuple(sentence.split(": write ")[0].split(":", 1)[1].split(": "))
                      for sentence in words.check(path, text, WORDS))

    def test_a_page_is_searched_without_its_code(self):
        self.assertEqual([("3", '"told"')], self.found("a.md", "`told` [x](told.md)\n\nIt is told.\n\n    told\n\n```\ntold\n```\n"))

    def test_a_manual_is_searched_without_names_and_examples(self):
        self.assertEqual([("1", '"MEND"'), ("6", '"told"')],
                         self.found("a.1", ".SH MEND\n.B told\n.nf\ntold\n.fi\nwhich is told\n"))

    def test_of_sources_the_comments_are_searched(self):
        c = 'int told; /* a row\n\t * met */\nchar *s = "/* told */"; // nobody\nchar c = \'"\'; /* whoever */\n'
        self.assertEqual([("2", '"met"'), ("3", '"nobody"'), ("4", '"whoever"')], self.found("a.c", c))
        for path in ("dev/a", "a.csv", "a.sh", "tests/CMakeLists.txt"):
            self.assertEqual([("1", '"told"')], self.found(path, "# is told\ntold\n"))
        self.assertIsNone(words.kind_of("a"))
        self.assertEqual([("2", '"stands"')], self.found("a.yaml", "told: '#x'\na: 1  # it stands\nb: \"told\"\n"))

    def test_of_src_the_strings_that_have_a_blank_are_searched(self):
        c = 'f("told", "it is told \\"met\\" `met`\\nmet",\n    "for want "\n    "of it", \'"\', "%s" /* met */);\n'
        self.assertEqual([("1", '"met"'), ("1", '"told"'), ("2", '"for want of"'), ("3", '"met"')], self.found("src/a/b.c", c))
        self.assertEqual([("3", '"met"')], self.found("bpf/b.c", c))

    def test_of_python_the_comments_and_docstrings_are_searched(self):
        python = ('"""Is told.\n\nIs met."""\ntold = "is told"\n\n\ndef stands(told):\n    """It stands, and "told"."""\n'
                  '    f("""is\n    told""")  # nobody `told`\n    # and the\n    # like\n\n\nX = 1\n\'It is told\'\n'
                  "told(\n    'told'\n)\n")
        expected = [("1", '"told"'), ("10", '"nobody"'), ("11", '"the like"'), ("16", '"told"'), ("3", '"met"'),
                    ("8", '"stands"')]
        self.assertEqual(expected, self.found("a.py", python))
        self.assertEqual([("2", '"told"')], self.found("dev/a", '#!/usr/bin/env python3\n"""It is told."""\n'))
        self.assertEqual([], self.found("dev/a", '#!/bin/sh\n"""It is told."""\n'))

    def test_a_phrase_is_found_across_lines_and_not_across_code(self):
        self.assertEqual([("1", '"the like"')], self.found("a.h", "/* and the\n * like of it */\n"))
        self.assertEqual([], self.found("a.md", "the `x` like\n"))

    def test_what_is_meant_otherwise_is_let_through(self):
        self.assertEqual([], self.found("a.md", 'It stands for a shell, perl -lane, systemd\'s journal, and "told". Command.\n'))

    def test_a_sentence_begins_with_its_subject(self):
        self.assertEqual([("1", '"And"'), ("2", '"Those that"')], self.found("a.md", "One. And two.\nThose that are. That ring is.\n"))


if __name__ == "__main__":
    unittest.main()
