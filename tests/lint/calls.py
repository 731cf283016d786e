# SPDX-License-Identifier: Apache-2.0
"""calls.py BUILD: what the files of src/ call is in their own folder, or in one that ARCHITECTURE.md's table allows.

BUILD is a built folder: calls are read from its object files, so that one is found whatever header declares the
function. layers.py holds the includes against the same table.
"""
import sys

import circles
import layers
import tree


def check(edges, rows):
    """A sentence for each call, {caller: {file called: the name}}, that the caller's row does not allow."""
    return [f"{path}:1: {row} may not call {name}() of {to} (ARCHITECTURE.md)"
            for path, row in ((path, layers.row_of(path, rows)) for path in sorted(edges))
            for to, name in sorted(edges[path].items())
            if layers.row_of(to, rows) != row and layers.allows(row, to, rows) is None]


if __name__ == "__main__":
    found = circles.objects(sys.argv[1])
    tree.verdict(check(circles.calls(found), layers.read_table(tree.ROOT)), f"{len(found)} files of src/ that call")
