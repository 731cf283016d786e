# SPDX-License-Identifier: Apache-2.0
"""words.py [--folder PATH]...: prose has none of the words that docs/glossary.md lists as not used.

Prose is a page in Markdown without its code, a manual without names and examples, and the comments of C, YAML and other
configuration. A phrase is found across the end of a line, too.
"""
import argparse
import os
import re
import sys

import tree

GLOSSARY = "docs/glossary.md"
FOLDERS = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md", "tests/README.md", "docs/", "config/", "ops/",
           "docker-compose.yml", "src/", "bpf/")
KINDS = {".md": "page", ".1": "manual", ".5": "manual", ".7": "manual", ".c": "c", ".h": "c", ".def": "c",
         ".yaml": "hash", ".yml": "hash", ".service": "hash", ".sysusers": "hash", "Dockerfile": "hash"}
NO_PROSE = {
    "page": re.compile(r"(?ms)^```.*?^```|^ {4}.*?$|<!--.*?-->|\]\([^)]*\)"),
    "manual": re.compile(r"(?ms)^\.nf$.*?^\.fi$|^\.EX$.*?^\.EE$|^[.'](?!S[HS])[^\n]*"),
}
# The groups are comments; strings and character constants are passed over.
COMMENT = {
    "c": re.compile(r"""(?s)"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|/\*(.*?)\*/|//([^\n]*)"""),
    "hash": re.compile(r"(?m)(?:^|(?<=\s))#(.*)$"),
}
QUOTED = re.compile(r"""`[^`]*`|"[^"\n]*\"""")
LINE_BEGIN = re.compile(r"(?m)^[\0 \t]*\*? ?(?=[^\0\s])")


def blank(text):
    """As many characters and lines; NUL, so that the words on both sides do not form a phrase."""
    return re.sub(r"[^\n]", "\0", text)


def prose(kind, text):
    """The text with everything that is not prose blanked."""
    if kind in COMMENT:
        out, end = [], 0
        for found in COMMENT[kind].finditer(text):
            if found.lastindex:
                out += [blank(text[end:found.start(found.lastindex)]), found[found.lastindex]]
                end = found.end(found.lastindex)
        text = "".join(out) + blank(text[end:])
        # What begins a line of a comment separates no words.
        text = LINE_BEGIN.sub(lambda found: " " * len(found[0]), text)
    else:
        text = NO_PROSE[kind].sub(lambda found: blank(found[0]), text)
    return QUOTED.sub(lambda found: blank(found[0]), text)


def read_words(root):
    """[(compiled pattern, what to write instead)]"""
    with open(os.path.join(root, GLOSSARY), encoding="utf-8") as f:
        rows = re.findall(r"(?m)^\| `(.+)` \| (.+) \|$", f.read().partition("\n## Words that are not used\n")[2])
    if not rows:
        sys.exit(f"{GLOSSARY}: no table of words that are not used")
    return [(re.compile(pattern.replace(r"\|", "|").replace(" ", r"\s+"), re.IGNORECASE), instead) for pattern, instead in rows]


def check(path, text, words):
    """Sentences on a file's words."""
    kind = next(kind for ending, kind in KINDS.items() if path.endswith(ending))
    text = prose(kind, text)
    for pattern, instead in words:
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f'{path}:{line}: "{" ".join(found[0].split())}": write {instead} ({GLOSSARY})'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", action="append", help="a file or folder to check; may be given more than once")
    words = read_words(tree.ROOT)
    paths = [path for path in tree.files(*(parser.parse_args().folder or FOLDERS)) if path.endswith(tuple(KINDS))]
    wrong = []
    for path in paths:
        with open(os.path.join(tree.ROOT, path), encoding="utf-8") as f:
            wrong += check(path, f.read(), words)
    tree.verdict(wrong, f"{len(paths)} files with prose")


if __name__ == "__main__":
    main()
