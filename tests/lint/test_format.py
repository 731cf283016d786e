# SPDX-License-Identifier: Apache-2.0
"""The check of format, on lines that are as they should be or not."""
import os
import shutil
import subprocess
import tempfile
import unittest

import format as formatting
import tree

GOOD = """static int
sum(const struct table *t, int from)\t/* not the last */
{
	struct entry e = { .name = "a", .kind = KIND_ONE,
		.size = 1 };
	int n = 0;

	for (int i = from; i < t->n; i++) {
		if (t->value[i] > 0 &&
		    t->is_counted)
			n += t->value[i];
	}
	say("a sentence of two lines, "
	    "with %d", n);
	return n + e.size;
}
"""


class Format(unittest.TestCase):
    def setUp(self):
        tree.need("clang-format", "clang-format")
        self.at = tempfile.mkdtemp(dir=os.path.join(tree.ROOT, "build") if os.path.isdir(
            os.path.join(tree.ROOT, "build")) else None)
        self.addCleanup(shutil.rmtree, self.at)

    def wrong(self, text, lines=None):
        path = os.path.join(self.at, "a.c")
        with open(path, "w") as f:
            f.write(text)
        style = os.path.join(self.at, "style")
        with open(os.path.join(tree.ROOT, ".clang-format")) as f, open(style, "w") as to:
            to.write(formatting.without_limit(f.read()))
        return [*formatting.check_c(path, lines, style), *formatting.check_text(path, True)]

    def test_lines_broken_by_hand_are_let_be(self):
        self.assertEqual([], self.wrong(GOOD))

    def test_what_is_not_is_named(self):
        for good, bad in (("for (int", "for(int"), ("sum(const", "sum (const"), ("i < t->n", "i<t->n"),
                          ("int from)\t/* not the last */\n{", "int from) {"), ("\tint n = 0;", "        int n = 0;"),
                          ("i++) {", "i++)\n\t{"), ("\treturn n", "\t\treturn n"), ("n += t", "n +=t"),
                          ("*t,", "* t,"), ("return n + e.size;", "return n + e.size; "), ("\n\tint n", "\n\tint n " * 2),
                          ("n + e.size", "n + " + "e.size + " * 20 + "0")):
            self.assertIn(good, GOOD)
            self.assertNotEqual([], self.wrong(GOOD.replace(good, bad)), bad)

    def test_only_changed_lines_count(self):
        bad = GOOD.replace("n += t", "n +=t")
        number = bad[:bad.index("+=t")].count("\n") + 1
        self.assertEqual([], self.wrong(bad, {number + 3}))
        self.assertNotEqual([], self.wrong(bad, {number}))

    def test_length_and_blanks_count_on_every_line(self):
        for bad in (GOOD.replace("n + e.size", "n + " + "e.size + " * 20 + "0"), GOOD.replace("e.size;", "e.size; ")):
            self.assertNotEqual([], self.wrong(bad, {1}))

    def test_changed_lines_are_those_of_git(self):
        def git(*args):
            subprocess.run(["git", "-C", self.at, "-c", "user.name=t", "-c", "user.email=t@example.org", *args], check=True,
                           stdout=subprocess.DEVNULL)

        git("init", "-q", "-b", "main")
        for text in ("1\n2\n3\n", "1\ntwo\n3\n"):
            with open(os.path.join(self.at, "a.c"), "w") as f:
                f.write(text)
            git("add", "a.c")
            git("commit", "-q", "-m", "x")
        self.addCleanup(setattr, tree, "ROOT", tree.ROOT)
        tree.ROOT = self.at
        # On main itself it is the last commit; beside it, what left main.
        self.assertEqual({"a.c": {2}}, formatting.changed_lines(tree.base()))
        git("checkout", "-q", "-b", "work")
        with open(os.path.join(self.at, "a.c"), "a") as f:
            f.write("4\n")
        with open(os.path.join(self.at, "new.c"), "w") as f:
            f.write("x\n")
        self.assertEqual({"a.c": {4}, "new.c": None}, formatting.changed_lines(tree.base()))
        git("add", ".")
        git("commit", "-q", "-m", "x")
        self.assertEqual({"a.c": {4}, "new.c": {1}}, formatting.changed_lines(tree.base()))


if __name__ == "__main__":
    unittest.main()
