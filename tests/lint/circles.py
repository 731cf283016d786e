# SPDX-License-Identifier: Apache-2.0
"""circles.py BUILD: no files of src/ call each other in a circle, and no files of src/ and bpf/ include each other in one.

BUILD is a built folder: which functions a file defines and which it calls is read from its object files. Circles of
imports in analytics/ are the subject of analytics/tests/test_stages.py.
"""
import collections
import os
import re
import subprocess
import sys

import layers
import tree


def objects(build):
    """{src/folder/file.c: its object file}, of all that there are."""
    build, found = os.path.realpath(build), {}
    for folder, _, names in os.walk(os.path.join(build, "CMakeFiles")):
        at = re.search(r"/sluice_(\w+)\.dir/(src/\w+)$", folder)
        if at and at[2] == "src/" + at[1]:
            found |= {f"{at[2]}/{name[:-2]}": os.path.join(folder, name) for name in names if name.endswith(".c.o")}
    sources = tree.files("src/*/*.c")
    missing = [path for path in sources if path not in found]
    if missing:
        sys.exit(f"{build} has no object of {', '.join(missing)}; build it first")
    return {path: found[path] for path in sources}


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


def includes(root, paths):
    """{file: {file of the tree that it includes: the line}}"""
    return {path: {to: number for number, to in layers.includes(root, path)} for path in paths}


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


def sentences(edges, text):
    """One for each edge within a circle; `text` has places for the target and for what the edge is labelled with."""
    return [f"{a}:" + text.format(b, edges[a][b]) for part in circles(edges)
            for a in part for b in part if b in edges.get(a, ())]


def main():
    found = objects(sys.argv[1])
    texts = tree.files("src/*.[ch]", "src/*.def", "bpf/*.[ch]")
    tree.verdict(sentences(calls(found), "1: needs {1} of {0}, which needs it in turn") +
                 sentences(includes(tree.ROOT, texts), "{1}: includes {0}, which includes it in turn"),
                 f"{len(found)} files of src/ that call, {len(texts)} of src/ and bpf/ that include")


if __name__ == "__main__":
    main()
