# SPDX-License-Identifier: Apache-2.0
"""layers.py [ROOT]: what src/ and bpf/ include is what the table of ARCHITECTURE.md allows, and all of it.

The table is the one place where that is decided: its first column names folders and files, its last one what they may
include beside their own: folders of src/ (with a slash), headers of bpf/, or `all above`. What else it names are
libraries, which cmake/Layers.cmake links. A folder that may be included and is not has no business in the row. Calls are
the subject of calls.py.
"""
import os
import re
import sys

import tree

ANY = "all above"
INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')
# Written by the build; as if they lay there.
GENERATED = {"sluice.skel.h": "bpf/sluice.skel.h", "vmlinux.h": "bpf/vmlinux.h"}


def read_table(root):
    """{folder or file: what it may include, or ANY}, in the order of the rows."""
    with open(os.path.join(root, "ARCHITECTURE.md")) as f:
        lines = f.read().splitlines()
    head = next((n for n, line in enumerate(lines) if re.match(r"\|.*\| *may include[^|]*\|$", line)), None)
    if head is None:
        sys.exit("ARCHITECTURE.md: no table with a column `may include`")
    rows = {}
    for line in lines[head + 2:]:
        if not line.startswith("|"):
            break
        cells = line.strip("|").split("|")
        may = ANY if cells[-1].strip() == ANY else \
            [name if name.startswith("bpf/") else "src/" + name
             for name in re.findall(r"`([^`]+(?:/|\.h))`", cells[-1])]
        rows |= {name: may for name in re.findall(r"`([^`]+)`", cells[0])}
    return rows


def row_of(path, rows):
    """The name of the row that speaks of a file, or None."""
    return next((name for name in rows if (path.startswith(name) if name.endswith("/") else path == name)), None)


def resolve(root, path, name):
    """The file of this tree that is meant, as the compiler looks for it; None is one of the system."""
    for folder in (os.path.dirname(path), "src", "bpf"):
        at = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(os.path.join(root, at)):
            return at
    return GENERATED.get(name)


def includes(root, path):
    """(line, file) of each file of this tree that a file includes."""
    with open(os.path.join(root, path), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = INCLUDE.match(line)
            to = found and resolve(root, path, found[1])
            if to:
                yield number, to


def check(root):
    """Sentences on what is wrong, and the number of files."""
    rows, wrong, count, used = read_table(root), [], 0, set()
    for top in ("src", "bpf"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for path in sorted(os.path.relpath(os.path.join(folder, n), root) for n in names if n[-2:] in (".c", ".h")):
                count += 1
                row = row_of(path, rows)
                if row is None:
                    wrong.append(f"{path}:1: ARCHITECTURE.md's table does not say what it may include")
                    continue
                for number, to in includes(root, path):
                    if row_of(to, rows) != row:
                        allowed = allows(row, to, rows)
                        used.add((row, allowed))
                        if allowed is None:
                            wrong.append(f"{path}:{number}: {row} may not include {to} (ARCHITECTURE.md)")
    wrong += [f"ARCHITECTURE.md: {row} may include {name}, and does not" for row, may in rows.items() if may != ANY
              for name in may if (row, name) not in used and os.path.exists(os.path.join(root, row))]
    return wrong, count


def allows(row, to, rows):
    """What in the row's last column allows it to include that file of another row, or None."""
    if rows[row] == ANY:
        above = list(rows)[:list(rows).index(row)]
        return ANY if row_of(to, rows) in above else None
    return next((name for name in rows[row] if (to.startswith(name) if name.endswith("/") else to == name)), None)


if __name__ == "__main__":
    wrong, count = check(os.path.realpath(sys.argv[1]) if len(sys.argv) > 1 else tree.ROOT)
    tree.verdict(wrong, f"{count} files of src/ and bpf/")
