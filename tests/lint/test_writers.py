# SPDX-License-Identifier: Apache-2.0
"""The check of writers: what counts as writing a member of a table."""
import os
import tempfile
import unittest

import writers

TABLE = """
struct part { int n; };
void part_grow(struct part *p);
struct row { int n; struct part part; char name[8]; char *text; const char *hint; struct row *next; int at[2]; };
"""


class Writers(unittest.TestCase):
    def written(self, body):
        """The members of struct row that a function with this body writes."""
        with tempfile.TemporaryDirectory() as room:
            path = os.path.join(room, "a.c")
            with open(path, "w", encoding="utf-8") as f:
                f.write(TABLE + "void fill(char *to); int look(const char *at); void set(char **to, int *n);\n"
                        "void show(int n, ...);\n"
                        "void f(struct row *r) {" + body + "}\n")
            return sorted(member for struct, member in writers.writes(path, {"row"}) if struct == "row")

    def test_assignments_of_all_kinds(self):
        for body in ("r->n = 1;", "r->n += 1;", "r->n++;", "--r->n;", "(r->n) = 1;", "struct row *q = r->next; q->n = 1;"):
            self.assertEqual(["n"], self.written(body), body)

    def test_a_member_within_is_of_the_table(self):
        self.assertEqual(["part"], self.written("r->part.n = 1;"))
        self.assertEqual(["at"], self.written("r->at[1] = 1;"))

    def test_of_a_path_the_last_row_is_written(self):
        self.assertEqual(["n"], self.written("r->next->n = 1;"))
        self.assertEqual(["next"], self.written("r->next = 0;"))

    def test_what_is_passed_to_be_filled(self):
        self.assertEqual(["name"], self.written("fill(r->name);"))
        self.assertEqual(["n", "text"], self.written("set(&r->text, &r->n);"))

    def test_a_pointer_by_which_it_could_be_written(self):
        for body in ("int *p = &r->n; *p = 1;", "int *p; p = &r->n; *p = 1;", "void *p = &r->n; (void)p;",
                     "struct { int *p; } s = { &r->n }; *s.p = 1;", "int x; int *p = r ? &r->n : &x; *p = 1;"):
            self.assertEqual(["n"], self.written(body), body)
        for body in ("char *p = r->name; *p = 1;", "char *p; p = r->name; *p = 1;"):
            self.assertEqual(["name"], self.written(body), body)
        self.assertEqual(["text"], self.written("char **p = &r->text; *p = 0;"))
        self.assertEqual(["hint"], self.written("const char **p = &r->hint; *p = 0;"))

    def test_a_pointer_by_which_it_is_read(self):
        for body in ("const int *p = &r->n; (void)*p;", "const char *p = r->name; (void)*p;", "show(1, r->name);",
                     "const void *p = &r->n; (void)p;", "int x; const int *p = r ? &r->n : &x; (void)*p;",
                     "const char *const *p = &r->hint; (void)*p;", "struct part *p = &r->part; (void)p;"):
            self.assertEqual([], self.written(body), body)

    def test_what_is_read(self):
        for body in ("int n = r->n; (void)n;", "look(r->name);", "look(r->text);", "fill(r->text);",
                     "if (r->n == 1) look(r->name);", "part_grow(&r->part);"):
            self.assertEqual([], self.written(body), body)

    def test_a_copy_is_no_table(self):
        self.assertEqual([], self.written("struct row copy = *r; copy.n = 1; copy.part.n = 1; fill(copy.name);"))

    def test_two_files_that_write_one_member(self):
        with tempfile.TemporaryDirectory() as room:
            paths = {name: os.path.join(room, name) for name in ("row.h", "a.c", "b.c")}
            for name, text in {"row.h": TABLE, "a.c": '#include "row.h"\nvoid f(struct row *r) { r->n = 1; }\n',
                               "b.c": '#include "row.h"\nvoid g(struct row *r) { r->n = 2; r->text = 0; }\n'}.items():
                with open(paths[name], "w", encoding="utf-8") as f:
                    f.write(text)
            self.assertEqual(([f"{paths['b.c']}:1: writes n of struct row, as {paths['a.c']} does"], 2),
                             writers.check([paths["row.h"]], [paths["a.c"], paths["b.c"]]))


if __name__ == "__main__":
    unittest.main()
