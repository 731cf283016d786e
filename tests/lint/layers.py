# SPDX-License-Identifier: Apache-2.0
"""layers.py [ROOT]: what src/ and bpf/ include is what the table of ARCHITECTURE.md says that they may.

The table is the one place where that is decided: its first column names folders and files (`src/agent.c` stands for
agent.c and agent_*.c), its last one what they may include beside their own: folders of src/, files, `all`.
"""
import os
import re
import sys

import tree

ANY = "all"
INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')
# Written by the build; as if they lay there.
GENERATED = {"sluice.skel.h": "bpf/sluice.skel.h", "vmlinux.h": "bpf/vmlinux.h"}


def read_table(root):
    """[(folder or stem of a file, [what it may include])], the most exact first."""
    with open(os.path.join(root, "ARCHITECTURE.md")) as f:
        lines = f.read().splitlines()
    head = next((n for n, line in enumerate(lines) if re.match(r"\|.*\| *may include *\|$", line)), None)
    if head is None:
        sys.exit("ARCHITECTURE.md: no table with a column `may include`")
    rows = []
    for line in lines[head + 2:]:
        if not line.startswith("|"):
            break
        cells = line.strip("|").split("|")
        may = [ANY] if cells[-1].strip() == ANY else \
            [name if name.startswith("bpf/") else "src/" + name for name in re.findall(r"`([^`]+)`", cells[-1])]
        rows += [(name.removesuffix(".c"), may) for name in re.findall(r"`([^`]+)`", cells[0])]
    return sorted(rows, key=lambda row: -len(row[0]))


def row_of(path, rows):
    """The row that speaks of a file, or None."""
    for name, may in rows:
        if path.startswith(name) if name.endswith("/") else re.fullmatch(re.escape(name) + r"(_\w+)?\.[ch]", path):
            return name, may
    return None


def resolve(root, path, name):
    """The file of this tree that is meant, as the compiler looks for it; None is one of the system."""
    for folder in (os.path.dirname(path), "src", "bpf"):
        at = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(os.path.join(root, at)):
            return at
    return GENERATED.get(name)


def check(root):
    """Sentences on what is wrong, and the number of files."""
    rows, wrong, count = read_table(root), [], 0
    for top in ("src", "bpf"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for path in sorted(os.path.relpath(os.path.join(folder, n), root) for n in names if n[-2:] in (".c", ".h")):
                count += 1
                row = row_of(path, rows)
                if row is None:
                    wrong.append(f"{path}:1: ARCHITECTURE.md's table does not say what it may include")
                    continue
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    for number, line in enumerate(f, 1):
                        found = INCLUDE.match(line)
                        to = found and resolve(root, path, found[1])
                        if to and not may_include(row, to, rows):
                            wrong.append(f"{path}:{number}: {row[0]} may not include {to} (ARCHITECTURE.md)")
    return wrong, count


def may_include(row, to, rows):
    """Whether the row's files may include that one."""
    name, may = row
    theirs = row_of(to, rows)
    if may == [ANY] or theirs and theirs[0] == name:
        return True
    return any(to.startswith(m) if m.endswith("/") else to == m for m in may)


if __name__ == "__main__":
    wrong, count = check(os.path.realpath(sys.argv[1]) if len(sys.argv) > 1 else tree.ROOT)
    tree.verdict(wrong, f"{count} files of src/ and bpf/")
