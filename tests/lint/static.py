# SPDX-License-Identifier: Apache-2.0
"""static.py BUILD [--all]: clang-tidy finds no defect in src/, of changed files or (--all) of all; and no Python
function takes more than MOST_PARAMETERS by position.

BUILD is a configured build folder, whose compile_commands.json clang-tidy reads. What it looks for is in .clang-tidy.
A finding that is none is suppressed at its line, with the reason beside it: `NOLINT(ID)` in a comment.
"""
import ast
import concurrent.futures
import json
import os
import re
import subprocess
import sys

import tree
from format import changed_lines

TIDY = ["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option"]
MOST_PARAMETERS = 7  # self among them; those behind * are named by each call, and do not count


def sources(everything):
    """The .c files to look at: all, or those that changed or include what changed."""
    found = tree.files("src/*.c")
    if everything:
        return found
    changed = set(changed_lines(tree.base()))
    headers = {os.path.basename(path) for path in changed if re.match(r"(src|bpf)/.*\.h$", path)}
    return [path for path in found if path in changed or headers & set(includes(path))]


def includes(path):
    with open(os.path.join(tree.ROOT, path), encoding="utf-8") as f:
        return [os.path.basename(name) for name in re.findall(r'(?m)^#include "([^"]+)"', f.read())]


def look(build, part):
    """What it says of some of the files; a process for each file would read the settings as often."""
    command = [*TIDY, "-p", build, *part]
    done = subprocess.run(command, cwd=tree.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.stdout.splitlines() or ([f"clang-tidy ended with {done.returncode}: {done.stderr}"] if done.returncode else [])


def python_sources():
    """Paths of the Python files: by their ending, and in dev/ by their first line."""
    for path in tree.files("*.py", "dev/*"):
        with open(os.path.join(tree.ROOT, path), "rb") as f:
            if path.endswith(".py") or re.match(rb"#!.*python", f.readline()):
                yield path


def long_signatures(path, text):
    """A sentence for each function of a Python file that takes too many parameters by position."""
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            count = len(node.args.posonlyargs) + len(node.args.args)
            if count > MOST_PARAMETERS:
                yield (f"{path}:{node.lineno}: {getattr(node, 'name', 'lambda')} takes {count} parameters by position, "
                       f"more than {MOST_PARAMETERS}")


def main():
    build, everything = os.path.realpath(sys.argv[1]), "--all" in sys.argv[2:]
    tree.need("clang-tidy", "clang-tidy")
    found = sources(everything)
    with open(os.path.join(build, "compile_commands.json")) as f:
        compiled = {os.path.relpath(entry["file"], tree.ROOT) for entry in json.load(f)}
    wrong, python = [], list(python_sources())
    for path in python:
        with open(os.path.join(tree.ROOT, path), encoding="utf-8") as f:
            wrong += long_signatures(path, f.read())
    missing = [f"{path}:1: {build} does not compile it" for path in found if path not in compiled]
    parts = [] if missing else [found[n::16] for n in range(16) if found[n::16]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = pool.map(lambda part: look(build, part), parts)
        tree.verdict(missing + wrong + sorted({line for lines in said for line in lines}),
                     f"{len(found)} files of src/, {len(python)} of Python")


if __name__ == "__main__":
    main()
