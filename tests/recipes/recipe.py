# SPDX-License-Identifier: Apache-2.0
"""What the tests of CONTRIBUTING.md's recipes share: the recipe's text, and a tree to apply it to. As root."""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))


def section(heading):
    """The text below a heading of CONTRIBUTING.md."""
    with open(os.path.join(ROOT, "CONTRIBUTING.md"), encoding="utf-8") as f:
        text = re.split(rf"^## {re.escape(heading)}\n", f.read(), flags=re.MULTILINE)
    if len(text) != 2:
        raise AssertionError(f"CONTRIBUTING.md has {len(text) - 1} sections ## {heading}")
    return re.split(r"^## ", text[1], maxsplit=1, flags=re.MULTILINE)[0]


def changes(heading):
    """{path: [hunk]} of the section's blocks of diff; a hunk is a list of lines, each with its mark."""
    files = {}
    for block in re.findall(r"^```diff\n(.*?)^```$", section(heading), flags=re.MULTILINE | re.DOTALL):
        head, *hunks = re.split(r"^@@.*\n", block, flags=re.MULTILINE)
        files[re.search(r"^\+\+\+ b/(.*)$", head, flags=re.MULTILINE)[1]] = [hunk.splitlines() for hunk in hunks]
    return files


class Tree:
    """A copy of this tree and its builds: an overlay at the tree's own path, mounted in a namespace of its own, so that
    ninja compiles no more than what a change asks for. Commands run in it by run(); close() ends it."""

    def __init__(self, room):
        for name in ("upper", "work"):
            os.makedirs(os.path.join(room, name))
        script = ('mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" recipe "$1" && echo mounted && '
                  'read -r end')
        self.holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", script, "sh", ROOT, room], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != "mounted\n":
            raise AssertionError("no overlay could be mounted; it takes root")

    def close(self):
        self.holder.communicate()

    def path(self, name):
        """The path by which a process outside of the overlay opens a file of the tree."""
        return f"/proc/{self.holder.pid}/root{ROOT}/{name}"

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def edit(self, name, pattern, new):
        """Replaces the one match of pattern; new: a text, or a function of the match."""
        text, n = re.subn(pattern, new if callable(new) else lambda m: new, self.read(name), flags=re.MULTILINE)
        if n != 1:
            raise AssertionError(f"{name}: {n} matches of {pattern}: the recipe, or this test of it, is out of date")
        self.write(name, text)

    def apply(self, files):
        """Applies changes(): the lines that a hunk expects occur once. A hunk that expects none is a new file."""
        for name, hunks in files.items():
            text = self.read(name) if os.path.exists(self.path(name)) else ""
            for hunk in hunks:
                old, new = ("".join(line[1:] + "\n" for line in hunk if not line.startswith(mark)) for mark in "+-")
                if (text.count(old) if old else len(text) + 1) != 1:
                    raise AssertionError(f"{name}: occurs {text.count(old)} times:\n{old}")
                text = text.replace(old, new)
            self.write(name, text)

    def run(self, *command, **kw):
        enter = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", f"--wdns={ROOT}", "--"]
        return subprocess.run([*enter, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)

    def must(self, *command, **kw):
        done = self.run(*command, **kw)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-6000:]}")
        return done.stdout

    def build(self, preset, *targets):
        self.must("cmake", "--build", f"build/{preset}", "--target", *targets, timeout=600)
