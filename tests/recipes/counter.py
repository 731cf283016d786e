# SPDX-License-Identifier: Apache-2.0
"""The recipe for a counter, applied to a copy of the tree, built and run.

The copy must refuse each half of the recipe, pass its unit tests with the whole, and count in `sluice run` what
/proc/PID/schedstat says.
"""
import os
import re

import recipe

import harness

UNITS = ("test_codec_encode", "test_collect_decode", "test_correlate_cputime", "test_correlate_wal", "test_model_usage")


def one_more(match):
    return re.sub(r"\d+", lambda number: str(int(number[0]) + 1), match[0])


def next_line(upper, name):
    """Of the line before, with the last counter: the same with this one and the next number."""
    def of(match):
        line = one_more(match)
        return match[0] + re.sub(r"USAGE_\w+", f"USAGE_{upper}", line) if "USAGE_" in line else \
            match[0] + re.sub(r"(c->|\.)\w+", lambda m: m[1] + name, line, count=1)
    return of


class Counter(harness.LakeTest):
    def test_a_counter(self):
        blocks = re.findall(r"^   ```c\n(.*?)   ```\n", recipe.section("A counter"), re.DOTALL | re.MULTILINE)
        row, member = (re.sub("^   ", "", block, flags=re.MULTILINE) for block in blocks)
        name = re.match(r"\w+\(\w+, (\w+), ", row)[1]
        upper = name.upper()
        tree = recipe.Tree(self.room)
        self.addCleanup(tree.close)
        tree.must("dev/records", "--check")
        # 1 and 2
        before = re.findall(r"^SUM_OF_\w+\(\w+, (\w+), ", tree.read("bpf/resources.h"), re.MULTILINE)[-1]
        tree.edit("bpf/resources.h", r"^#undef COUNTER$", lambda m: row + m[0])
        tree.edit("bpf/kernel.h", r"^struct sched_info \{\n", lambda m: m[0] + member)
        self.assertNotEqual(0, tree.run("dev/records", "--check").returncode, "a row that is in no schema")
        # 4, then 5
        found = re.search(r"^#define RECORD_SCHEMA_VERSION (\d+)$", tree.read("src/model/record.h"), re.MULTILINE)
        tree.edit("bpf/resources.h", rf"(^\w+\({upper}, .*, )\d+,$", lambda m: f"{m[1]}{int(found[1]) + 1},")
        self.assertNotEqual(0, tree.run("dev/records").returncode, "a row of a later schema_version")
        tree.edit("src/model/record.h", r"^#define RECORD_SCHEMA_VERSION \d+$", one_more)
        tree.must("dev/records")
        tree.must("dev/records", "--check")
        # 6
        last = max(map(int, re.findall(r"\(?from \+ (\d+)", tree.read("tests/unit/decode_kit.h"))))
        tree.edit("tests/unit/decode_kit.h", rf"^\tassert_int_equal\(c->{before}, from \+ \d+\);\n",
                  lambda m: f"{m[0]}\tassert_int_equal(c->{name}, from + {last + 1});\n")
        for path, line in (("test_correlate_cputime.c", rf"\.{before} = from \+ \d+, "),
                           ("test_correlate_cputime.c", rf"^\tassert_field\(&u, USAGE_{before.upper()}, \d+\);\n")):
            tree.edit(f"tests/unit/{path}", line, next_line(upper, name))
        self.assertIn("entries hold other numbers",
                      tree.run("cmake", "--build", "build/dev", "--target", "sluice_correlate").stdout)
        # 3
        tree.edit("src/correlate/wal.h", r"^#define WAL_VERSION \d+$", one_more)
        tree.edit("src/correlate/wal.h", r"^#define WAL_COUNTERS \d+", one_more)
        tree.edit("src/correlate/wal.h", r"^#define WAL_USAGE_FIELDS \d+", one_more)
        tree.build("dev", "sluice", *UNITS)
        for unit in UNITS:
            tree.must(f"build/dev/tests/{unit}")
        printed = tree.must("build/dev/sluice", "run", "--quiet", "--lake", self.lake, "--", "/bin/sh", "-c",
                            "sleep 0.01; read a b c </proc/$$/schedstat; echo $c")
        records = harness.read_cat(self.lake, "program", sluice=tree.path("build/dev/sluice"))
        ends = [r for r in records if r["phase"] == "END" and r["comm"] == "sh"]
        self.assertEqual(1, len(ends))
        least = int(printed.split()[-1])
        counted = ends[0]["usage"][name]
        # The shell runs on after it has read the kernel's figure.
        self.assertTrue(least <= counted <= least + 20, f"{name} is {counted}, and {least} by the kernel")


if __name__ == "__main__":
    harness.main()
