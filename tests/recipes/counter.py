# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md's recipe "A counter", applied to a copy of the tree, built and run.

The copy must refuse each half of the recipe, pass its unit tests with the whole, and, as root, count in `sluice run`
what /proc/PID/schedstat says.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNITS = ("test_codec_encode", "test_collect_decode", "test_correlate_cputime", "test_correlate_wal", "test_model_usage")


def recipe():
    """The row and the member that the recipe shows, and the row's name."""
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as f:
        section = re.search(r"^## A counter\n(.*?)(?=^## |\Z)", f.read(), re.DOTALL | re.MULTILINE)[1]
    row, member = re.findall(r"^   ```c\n(.*?)   ```\n", section, re.DOTALL | re.MULTILINE)
    row, member = (re.sub("^   ", "", block, flags=re.MULTILINE) for block in (row, member))
    return row, member, re.match(r"\w+\(\w+, (\w+), ", row)[1]


class Copy:
    """A copy of the files that git knows or would take."""

    def __init__(self, room):
        self.root = os.path.join(room, "tree")
        git = ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "ls-files", "-z", "-c", "-o", "--exclude-standard"]
        listed = subprocess.run(git, check=True, stdout=subprocess.PIPE).stdout.decode().rstrip("\0").split("\0")
        for name in filter(lambda name: os.path.exists(os.path.join(ROOT, name)), listed):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), self.path(name), follow_symlinks=False)
        os.makedirs(self.path("build"))
        if os.path.exists(os.path.join(ROOT, "build/librdkafka")):
            os.symlink(os.path.realpath(os.path.join(ROOT, "build/librdkafka")), self.path("build/librdkafka"))

    def path(self, name):
        return os.path.join(self.root, name)

    def edit(self, name, pattern, new):
        """Replaces the one place where pattern is; new: a text, or a function of the match."""
        with open(self.path(name), encoding="utf-8") as f:
            text, n = re.subn(pattern, new if callable(new) else lambda m: new, f.read(), flags=re.MULTILINE)
        if n != 1:
            sys.exit(f"{name}: {n} places like {pattern}: the recipe, or this test of it, is out of date")
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def run(self, *command, **kw):
        return subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)

    def must(self, *command, **kw):
        done = self.run(*command, **kw)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-6000:]}")
        return done.stdout


def one_more(match):
    return re.sub(r"\d+", lambda number: str(int(number[0]) + 1), match[0])


def next_line(upper, name):
    """Of the line before, with the last counter: the same with this one and the next number."""
    def of(match):
        line = one_more(match)
        return match[0] + re.sub(r"USAGE_\w+", f"USAGE_{upper}", line) if "USAGE_" in line else \
            match[0] + re.sub(r"(c->|\.)\w+", lambda m: m[1] + name, line, count=1)
    return of


def main():
    row, member, name = recipe()
    upper = name.upper()
    with tempfile.TemporaryDirectory(prefix="sluice-recipe-") as room:
        copy = Copy(room)
        copy.must("dev/records", "--check")
        # 1 and 2
        with open(copy.path("bpf/resources.h"), encoding="utf-8") as f:
            before = re.findall(r"^SUM_OF_\w+\(\w+, (\w+), ", f.read(), re.MULTILINE)[-1]
        copy.edit("bpf/resources.h", r"^#undef COUNTER$", lambda m: row + m[0])
        copy.edit("bpf/kernel.h", r"^struct sched_info \{\n", lambda m: m[0] + member)
        if copy.run("dev/records", "--check").returncode == 0:
            sys.exit("dev/records --check does not see a row that is in no schema")
        # 4, then 5
        with open(copy.path("src/model/record.h"), encoding="utf-8") as f:
            version = int(re.search(r"^#define RECORD_SCHEMA_VERSION (\d+)$", f.read(), re.MULTILINE)[1]) + 1
        copy.edit("bpf/resources.h", rf"(^\w+\({upper}, .*, )\d+,$", lambda m: f"{m[1]}{version},")
        if copy.run("dev/records").returncode == 0:
            sys.exit("dev/records takes a row of a later schema_version than the records'")
        copy.edit("src/model/record.h", r"^#define RECORD_SCHEMA_VERSION \d+$", one_more)
        copy.must("dev/records")
        copy.must("dev/records", "--check")
        # 6
        for test, line in (("collect_decode", rf"^\tassert_int_equal\(c->{before}, from \+ \d+\);\n"),
                           ("correlate_cputime", rf"\.{before} = from \+ \d+, "),
                           ("correlate_cputime", rf"^\tassert_field\(&u, USAGE_{before.upper()}, \d+\);\n")):
            copy.edit(f"tests/unit/test_{test}.c", line, next_line(upper, name))
        copy.must("cmake", "--preset", "dev")
        if "notes hold other numbers" not in copy.run("cmake", "--build", "--preset", "dev", "--target", "sluice_correlate").stdout:
            sys.exit("the write-ahead log takes other numbers than its version has")
        # 3
        copy.edit("src/correlate/wal.h", r"^#define WAL_VERSION \d+$", one_more)
        copy.edit("src/correlate/wal.h", r"^#define WAL_COUNTERS \d+", one_more)
        copy.edit("src/correlate/wal.h", r"^#define WAL_USAGE_FIELDS \d+", one_more)
        copy.must("cmake", "--build", "--preset", "dev", "--target", "sluice", *UNITS)
        for unit in UNITS:
            copy.must(copy.path(f"build/dev/tests/{unit}"))
        if os.geteuid() != 0:
            print("not root: the copy was built and its unit tests passed, but nothing was counted")
            return
        lake = os.path.join(room, "lake")
        told = copy.must(copy.path("build/dev/sluice"), "run", "--quiet", "--lake", lake, "--", "/bin/sh", "-c",
                         "sleep 0.01; read a b c </proc/$$/schedstat; echo $c")
        records = copy.must(copy.path("build/dev/sluice"), "cat", "--topic", "program", lake).splitlines()
        (counted,) = [r["usage"][name] for r in map(json.loads, records) if r["phase"] == "END" and r["comm"] == "sh"]
        least = int(told.split()[-1])
        if not least <= counted <= least + 20:  # it goes on after it has looked
            sys.exit(f"{name} is {counted}, and the kernel said {least} shortly before the end")
        print(f"{name}: {counted}, {least} by the kernel shortly before the end")


main()
