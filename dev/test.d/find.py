#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""find.py NAME: the one test of ctest that NAME means, of build/dev; find.py --list: all of them, with their labels."""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tests():
    """{name: [label]} of what CMake has configured."""
    done = subprocess.run(["ctest", "--test-dir", os.path.join(ROOT, "build", "dev"), "-C", "one",
                           "--show-only=json-v1"],
                          stdout=subprocess.PIPE, check=True)
    found = {}
    for test in json.loads(done.stdout)["tests"]:
        labels = [p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"]
        found[test["name"]] = labels[0] if labels else []
    return found


def meant(word, names):
    """The names that a word may mean: itself, else those that end in it, else those that it is a part of."""
    word = os.path.splitext(os.path.basename(word))[0] if word.endswith((".py", ".c")) else word
    if word in names:
        return [word]
    tails = {name.split(".", 1)[1]: name for name in names if "." in name}
    ends = [name for tail, name in tails.items() if word in (tail, "test_" + tail) or tail == "test_" + word]
    return ends or [name for name in names if word in name]


def main(argv):
    found = tests()
    if argv == ["--list"]:
        for name, labels in found.items():
            print(f"{name:45} {' '.join(labels)}")
        return 0
    names = meant(argv[0], list(found))
    if len(names) == 1:
        print(names[0])
        return 0
    if names:
        print(f'dev/test: "{argv[0]}" may mean: {", ".join(names[:20])}', file=sys.stderr)
    else:
        print(f'dev/test: no test "{argv[0]}"; `dev/test --list` names them all', file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
