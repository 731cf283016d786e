# SPDX-License-Identifier: Apache-2.0
"""version.py [--folder PATH] [VERSION]: CMakeLists.txt has the version, and whatever else has to say it says the same.

With VERSION, it is that one.
"""
import argparse
import os
import re

import tree

PLACE = "CMakeLists.txt"
PATTERNS = {
    PLACE: r"(?m)^project\(sluice VERSION ([0-9]+\.[0-9]+\.[0-9]+) ",
    "analytics/pyproject.toml": r'(?m)^version = "([^"]+)"$',
    "ops/ansible/galaxy.yml": r"(?m)^version: [\"']?([^\s\"']+)[\"']?$",
}
ARE_OPTIONAL = ("ops/ansible/galaxy.yml",)


def check(folder, wanted=None):
    """What is wrong: [sentence]."""
    found = {}
    for path, pattern in PATTERNS.items():
        at = os.path.join(folder, path)
        if path in ARE_OPTIONAL and not os.path.exists(at):
            continue
        with open(at, encoding="utf-8") as f:
            match = re.search(pattern, f.read())
        if match is None:
            yield f"{path}: no version, which {pattern} would find"
        else:
            found[path] = match[1]
    version = wanted or found.get(PLACE)
    for path, has in found.items():
        if version is not None and has != version:
            yield f"{path}: version {has}, where {'the release' if wanted else PLACE} is {version}: write {version}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--folder", default=tree.ROOT)
    options.add_argument("version", nargs="?")
    options = options.parse_args()
    tree.verdict(list(check(options.folder, options.version)), "places of the version")


if __name__ == "__main__":
    main()
