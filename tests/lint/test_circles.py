# SPDX-License-Identifier: Apache-2.0
"""The check of circles: what it takes for one, and that it sees calls in object files and includes in sources."""
import os
import subprocess
import tempfile
import unittest

import circles


class Circles(unittest.TestCase):
    def test_a_road_that_ends_is_none(self):
        self.assertEqual([], circles.circles({"a": {"b": "f", "c": "g"}, "b": {"c": "g"}, "c": {}}))

    def test_two_that_need_each_other_are_one(self):
        self.assertEqual([["a", "b"]], circles.circles({"a": {"b": "f"}, "b": {"a": "g"}, "c": {"a": "g"}}))

    def test_a_way_round_over_others_is_one(self):
        self.assertEqual([["a", "b", "c"]],
                         circles.circles({"a": {"b": "f"}, "b": {"c": "g"}, "c": {"a": "h"}, "d": {"a": "h"}}))

    def test_two_circles_are_distinguished(self):
        self.assertEqual([["a", "b"], ["c", "d"]], sorted(circles.circles(
            {"a": {"b": "f"}, "b": {"a": "g", "c": "h"}, "c": {"d": "i"}, "d": {"c": "j"}})))

    def test_calls_are_read_of_object_files(self):
        with tempfile.TemporaryDirectory() as room:
            found = {}
            for name, text in {"a": "int g(void); int f(void) { return g(); }",
                               "b": "int f(void); int x; int g(void) { return x + f(); }",
                               "c": "static int f(void) { return 1; } int h(void) { return f(); }"}.items():
                found[f"src/s/{name}.c"] = os.path.join(room, f"{name}.o")
                subprocess.run(["cc", "-x", "c", "-c", "-", "-o", found[f"src/s/{name}.c"]], input=text, text=True,
                               check=True)
            edges = circles.calls(found)
            self.assertEqual({"src/s/b.c": "g"}, edges["src/s/a.c"])
            self.assertEqual({"src/s/a.c": "f"}, edges["src/s/b.c"])
            self.assertEqual([["src/s/a.c", "src/s/b.c"]], circles.circles(edges))

    def test_includes_are_read_from_sources(self):
        with tempfile.TemporaryDirectory() as root:
            files = {"bpf/a.h": '#include "b.h"\n', "bpf/b.h": '#include <stdint.h>\n#include "a.h"\n',
                     "bpf/c.bpf.c": '#include "a.h"\n', "src/s/d.h": '#include "s/e.h"\n',
                     "src/s/e.h": '#include "d.h"\n', "src/s/f.h": '#include "d.h"\n/* #include "f.h" */\n'}
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            self.assertEqual(
                ["bpf/a.h:1: includes bpf/b.h", "bpf/b.h:2: includes bpf/a.h",
                 "src/s/d.h:1: includes src/s/e.h", "src/s/e.h:1: includes src/s/d.h"],
                circles.sentences(circles.includes(root, files), "{1}: includes {0}"))


if __name__ == "__main__":
    unittest.main()
