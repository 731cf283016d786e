# SPDX-License-Identifier: Apache-2.0
"""What the checks of the source share: the tree, its files as git lists them, and the tools that look at them."""
import os
import shutil
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


def git(*args):
    """What git prints; the tree may belong to another user than root, who runs the tests."""
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *args]
    # A seed of a fuzzer, which a diff shows, is no text.
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace", check=True).stdout


def files(*patterns):
    """Paths from the root, of what git tracks and of what is new and not ignored."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns)
    return sorted(f for f in set(listed.split("\0")) if f and os.path.isfile(os.path.join(ROOT, f)))


def base():
    """The commit from which this work began: where it left main, or, on main itself, the commit before the last."""
    head = git("rev-parse", "HEAD").strip()
    for main in ("main", "origin/main"):
        try:
            found = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "merge-base", main, "HEAD"],
                                   capture_output=True, text=True, check=True).stdout.strip()
        except subprocess.CalledProcessError:
            continue
        if found != head:
            return found
    if git("status", "--porcelain", "--untracked-files=no").strip():
        return head
    parents = git("rev-list", "--parents", "-n1", "HEAD").split()[1:]
    return parents[0] if parents else head


def need(tool, package):
    """A check that cannot be made has failed."""
    if shutil.which(tool) is None:
        sys.exit(f"{tool} is missing: sudo apt-get install --no-install-recommends {package}")
    return tool


def verdict(wrong, what):
    """Ends the check: each sentence of `wrong` on a line, or what was looked at."""
    for sentence in wrong:
        print(sentence)
    if wrong:
        sys.exit(1)
    print(f"{what}: nothing found")
