# SPDX-License-Identifier: Apache-2.0
"""shellcheck finds nothing from a warning on in any shell script of the tree."""
import os
import re
import subprocess

import tree

CORPUS = "tests/fuzz/corpus/"  # scripts of others, as fuzzers' seeds


def scripts():
    """Every file that a shell runs, by its first line."""
    for path in tree.files():
        if path.startswith(CORPUS):
            continue
        with open(os.path.join(tree.ROOT, path), "rb") as f:
            first = f.readline(80)
        if re.match(rb"#!.*\b(ba|da)?sh\b", first):
            yield path


found = list(scripts())
done = subprocess.run([tree.need("shellcheck", "shellcheck"), "--severity=warning", "--format=gcc", *found],
                      cwd=tree.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
if not found or done.returncode and not done.stdout:
    raise SystemExit(f"shellcheck ended with {done.returncode}; scripts: {found}")
tree.verdict(done.stdout.splitlines(), f"{len(found)} shell scripts")
