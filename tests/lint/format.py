# SPDX-License-Identifier: Apache-2.0
"""format.py [--all]: changed lines of C (--all: every line) are as .clang-format says; no line is too long or ends in blanks.

Where a statement is broken into lines, and which columns are lined up by hand, is its author's: clang-format would undo
both. So a difference counts only where something else than that differs: spaces around what C knows, the indentation
of a statement, where a brace is.
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

import tree

C_FILES = ("src/*.[ch]", "bpf/*.[ch]", "tests/*.[ch]")
TEXT_FILES = ("*.c", "*.h", "*.py", "*.sh", "*.md", "*.yaml", "*.yml", "*.txt", "*.cmake", "dev/*", ":!dev/*.tsv")
LONGEST = 120  # columns of a line of C, a tab being 8


def changed_lines(base):
    """{path: set of line numbers, or None where the whole file is new}"""
    out = {}
    path = None
    for line in tree.git("diff", "--unified=0", "--no-color", "--no-ext-diff", base, "--").splitlines():
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else None
        elif line.startswith("@@ ") and path:
            first, _, count = re.match(r"@@ -\S+ \+(\d+)(,(\d+))? @@", line).groups()
            out.setdefault(path, set()).update(range(int(first), int(first) + int(count or 1)))
    for path in tree.git("ls-files", "--others", "--exclude-standard").splitlines():
        out[path] = None
    return out


# Where it takes C for C++, or a macro's text for code, and where both ways are at home.
EITHER_WAY = re.compile(r"(?<=[\[({]) | (?=[\])},;])|\\ | ?(?=\(\*)|(?<=[})]) (?=[\"*])| ?\* (?=\w+;)")


def squeezed(lines):
    """A statement without its line breaks and columns."""
    return re.sub(r"\s+", " ", " ".join(lines)).strip()


def indentation(line):
    return re.match(r"[\t ]*", line)[0]


def is_continued(line):
    """Whether it continues the statement of the line above: four blanks more, or a word that begins none."""
    return re.fullmatch(r"\t* {4}", indentation(line)) is not None or line.lstrip()[:1] in ('"', ":", "?", ".", "|", "&", "*", "{")


def differs(old, new):
    """Whether clang-format's lines differ in more than where a statement is broken and what is lined up."""
    if old and old[0].lstrip().startswith("#"):
        return False
    texts = [EITHER_WAY.sub("", squeezed(lines)) for lines in (old, new)]
    if texts[0] != texts[1]:
        return True
    if len([x for x in old if x.strip() == "{"]) != len([x for x in new if x.strip() == "{"]):
        return True
    wanted = {squeezed([line]): indentation(line) for line in new}
    return any(wanted.get(squeezed([line]), indentation(line)) != indentation(line) and not is_continued(line) for line in old)


def without_limit(style):
    """Without a limit it leaves line breaks alone; the limit is looked at here."""
    return re.sub(r"(?m)^ColumnLimit:.*", "ColumnLimit: 0", style)


def check_c(path, lines, style):
    """Sentences on a file's changed lines."""
    with open(os.path.join(tree.ROOT, path), encoding="utf-8") as f:
        old = f.read().splitlines()
    ranges = [] if lines is None else [f"--lines={n}:{n}" for n in sorted(lines)]
    done = subprocess.run(["clang-format", f"--style=file:{style}", *ranges, os.path.join(tree.ROOT, path)],
                          stdout=subprocess.PIPE, text=True, check=True)
    new = done.stdout.splitlines()
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal" and (lines is None or lines & set(range(a + 1, max(b, a + 1) + 1))) and differs(old[a:b], new[c:d]):
            yield f"{path}:{a + 1}: clang-format would have:\n" + "\n".join("-" + x for x in old[a:b]) + "\n" + \
                "\n".join("+" + x for x in new[c:d])


def check_text(path, is_c):
    """Lines that are too long in C, what git calls whitespace errors, and a last line without an end.

    Every line of the tree, changed or not: what is wrong in a commit is found in each that follows.
    """
    with open(os.path.join(tree.ROOT, path), "rb") as f:
        text = f.read()
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(rb"[ \t\r]$", line):
            yield f"{path}:{number}: blanks at the end"
        columns = len(line.decode(errors="replace").expandtabs())
        if is_c and columns > LONGEST and b'"' not in line:
            yield f"{path}:{number}: {columns} columns, more than {LONGEST}"
    if text and not text.endswith(b"\n"):
        yield f"{path}: the last line has no end"


def main():
    tree.need("clang-format", "clang-format")
    base = tree.base()
    changed = dict.fromkeys(tree.files()) if "--all" in sys.argv[1:] else changed_lines(base)
    wrong, c_files, text_files = [], set(tree.files(*C_FILES)), set(tree.files(*TEXT_FILES))
    with tempfile.NamedTemporaryFile("w", suffix=".clang-format") as style, \
            open(os.path.join(tree.ROOT, ".clang-format")) as f:
        style.write(without_limit(f.read()))
        style.flush()
        for path in sorted(c_files | text_files):
            if path.startswith(("tests/fuzz/corpus/", "tests/fixtures/")):
                continue
            if path in c_files and path in changed:
                wrong += check_c(path, changed[path], style.name)
            wrong += check_text(path, path in c_files)
    tree.verdict(wrong, f"{len(changed)} files changed since {base[:10]}")


if __name__ == "__main__":
    main()
