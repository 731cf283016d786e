#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check with musl: what glibc alone has is found, what any has is not, and macros reach the compiler whole."""
import json
import os
import tempfile
import unittest

import musl
import tree

USES_OTHERS = '#include <linux/bpf.h>\n#include <jansson.h>\n#include <sys/queue.h>\nint f(void) { return JANSSON_MAJOR_VERSION; }\n'


class Musl(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.room = folder.name
        self.headers = os.path.join(folder.name, "headers")
        os.mkdir(self.headers)
        musl.link_headers(self.headers)

    def look(self, text, *options):
        path = os.path.join(self.room, "a.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return musl.look(path, [*options], self.headers)

    def test_other_libraries_and_the_kernels_headers_are_there(self):
        self.assertEqual([], self.look(USES_OTHERS))

    def test_what_glibc_alone_has_is_found(self):
        for text in ("#include <execinfo.h>\n",
                     "#include <string.h>\nint f(int e) { return strerrorname_np(e) != NULL; }\n"):
            self.assertTrue(self.look(text), text)

    def test_a_macro_with_a_space_reaches_the_compiler(self):
        with open(f"{self.room}/compile_commands.json", "w", encoding="utf-8") as f:
            json.dump([{"file": f"{tree.ROOT}/src/a.c", "command": 'cc -O1 -DA="\\"b c\\"" -Isrc -fno-common -o a.o -c src/a.c'}], f)
        found = musl.commands(self.room)
        self.assertEqual({"src/a.c": ['-DA="b c"', "-Isrc"]}, found)
        self.assertEqual([], self.look("const char *a = A;\n", *found["src/a.c"]))


if __name__ == "__main__":
    unittest.main()
