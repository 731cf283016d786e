# SPDX-License-Identifier: Apache-2.0
"""static.py BUILD [--all]: cppcheck and clang-tidy find no defect in src/, of changed files or (--all) of all.

BUILD is a configured build folder, whose compile_commands.json clang-tidy reads. What they look for is in .clang-tidy
and below. A finding that is none is suppressed at its line, with the reason beside it: `cppcheck-suppress ID` or
`NOLINT(ID)` in a comment.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

import tree
from format import changed_lines

# Warnings and what is not portable; style and speed are matters of taste.
CPPCHECK = ["cppcheck", "--quiet", "--enable=warning,portability", "--inline-suppr", "--std=c11", "--error-exitcode=1",
            "--template={file}:{line}: {message} [{id}]"]
TIDY = ["clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option"]


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


def run(command):
    """What one of them says."""
    done = subprocess.run(command, cwd=tree.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # clang-tidy counts on stderr what it left out.
    said = done.stdout + (done.stderr if command[0] == "cppcheck" else "")
    return said.splitlines() or ([f"{command[0]} ended with {done.returncode}: {done.stderr}"] if done.returncode else [])


def look(build, part, compiled, number, room):
    """Both, at some of the files; a process for each file would read the libraries' settings as often."""
    project = os.path.join(room, f"{number}.json")
    with open(project, "w") as f:
        json.dump([compiled[path] for path in part], f)
    return run([*CPPCHECK, f"--project={project}"]) + run([*TIDY, "-p", build, *part])


def main():
    build, everything = os.path.realpath(sys.argv[1]), "--all" in sys.argv[2:]
    tree.need("cppcheck", "cppcheck")
    tree.need("clang-tidy", "clang-tidy")
    found = sources(everything)
    with open(os.path.join(build, "compile_commands.json")) as f:
        compiled = {os.path.relpath(entry["file"], tree.ROOT): entry for entry in json.load(f)}
    missing = [f"{path}:1: {build} does not compile it" for path in found if path not in compiled]
    parts = [] if missing else [found[n::16] for n in range(16) if found[n::16]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory() as room:
        said = pool.map(lambda n: look(build, parts[n], compiled, n, room), range(len(parts)))
        tree.verdict(missing + sorted({line for lines in said for line in lines}), f"{len(found)} files of src/")


if __name__ == "__main__":
    main()
