# SPDX-License-Identifier: Apache-2.0
"""circles.py BUILD: no files of src/ call each other in a circle, not even over others.

BUILD is a built folder: what a file defines and what it needs is read of its object files.
"""
import collections
import os
import re
import subprocess
import sys

import tree


def objects(build):
    """{src/folder/file.c: its object file}"""
    found = {}
    for folder, _, names in os.walk(os.path.join(build, "CMakeFiles")):
        at = re.search(r"/sluice_(\w+)\.dir/(src/\w+)$", folder)
        if at and at[2] == "src/" + at[1]:
            found |= {f"{at[2]}/{name[:-2]}": os.path.join(folder, name) for name in names if name.endswith(".c.o")}
    return {path: at for path, at in found.items() if os.path.exists(os.path.join(tree.ROOT, path))}


def calls(found):
    """{file: {file that it needs: a name}}"""
    defined, needed = {}, collections.defaultdict(list)
    for path, at in found.items():
        listed = subprocess.run(["nm", "--format=posix", at], stdout=subprocess.PIPE, text=True, check=True).stdout
        for name, kind in (line.split()[:2] for line in listed.splitlines()):
            if kind == "U":
                needed[path].append(name)
            elif kind.isupper():
                defined.setdefault(name, path)
    return {path: {defined[name]: name for name in sorted(names, reverse=True) if defined.get(name, path) != path}
            for path, names in needed.items()}


def circles(edges):
    """The strongly connected parts of more than one file, after Tarjan (1972)."""
    index, low, stack, out = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for to in edges.get(node, ()):
            if to not in index:
                visit(to)
            if to in stack:
                low[node] = min(low[node], low[to])
        if low[node] == index[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                out.append(sorted(part))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return out


def main():
    build = os.path.realpath(sys.argv[1])
    found = objects(build)
    missing = [path for path in tree.files("src/*/*.c") if path not in found]
    if missing:
        sys.exit(f"{build} has no object of {', '.join(missing)}; build it first")
    edges = calls(found)
    wrong = [f"{a}:1: needs {edges[a][b]} of {b}, which needs it in turn" for part in circles(edges)
             for a in part for b in part if b in edges.get(a, ())]
    tree.verdict(wrong, f"{len(found)} files of src/")


if __name__ == "__main__":
    main()
