# SPDX-License-Identifier: Apache-2.0
"""words.py [--folder PATH]...: prose has none of the words that docs/glossary.md lists as not used.

Prose is a page in Markdown without its code, a manual without names and examples, the comments of C, YAML, tables,
CMake, scripts of dev/ and other configuration, comments and docstrings of Python, and those string literals of src/
that have a blank. A phrase is found across the end of a line, too.
"""
import argparse
import io
import os
import re
import sys
import tokenize

import tree

GLOSSARY = "docs/glossary.md"
FOLDERS = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CMakeLists.txt",
           "docker-compose.yml", ".ci/", ".github/", "analytics/", "bpf/", "cmake/", "config/", "dev/", "docs/", "examples/",
           "ops/", "src/", "tests/")
SCRIPTS = (".ci/", "dev/")  # a file without an ending is a script there
KINDS = {".py": "python", ".md": "page", ".1": "manual", ".5": "manual", ".7": "manual", ".c": "c", ".h": "c", ".def": "c",
         ".yaml": "hash", ".yml": "hash", ".service": "hash", ".sysusers": "hash", "Dockerfile": "hash",
         ".csv": "hash", ".tsv": "hash", ".sh": "hash", ".cmake": "hash", "CMakeLists.txt": "hash"}
NO_PROSE = {
    "page": re.compile(r"(?ms)^```.*?^```|^ {4}.*?$|<!--.*?-->|\]\([^)]*\)"),
    "manual": re.compile(r"(?ms)^\.nf$.*?^\.fi$|^\.EX$.*?^\.EE$|^[.'](?!S[HS])[^\n]*"),
}
STRING = r"""(?s:"(?:\\.|[^"\\\n])*")"""
# The groups are comments and, in "source", adjacent string literals; other strings and character constants are passed over.
COMMENT = {
    "c": re.compile(STRING + r"""|'(?:\\.|[^'\\\n])*'|(?s:/\*(.*?)\*/)|//([^\n]*)"""),
    "source": re.compile(rf"""((?:{STRING}\s*)+)""" + r"""|'(?:\\.|[^'\\\n])*'|(?s:/\*(.*?)\*/)|//([^\n]*)"""),
    "hash": re.compile(r"(?m)(?:^|(?<=\s))#(.*)$"),
}
PYTHON = re.compile(r"#!.*\bpython")  # begins a script
BETWEEN = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)  # statements
PASSED_OVER = (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING)
MARKS = re.compile(r"""^#+|^[A-Za-z]*(?:\"{3}|'{3}|["'])|(?:\"{3}|'{3}|["'])$""")  # of a comment and of a docstring
QUOTED = re.compile(r"""`[^`]*`|"[^"\n]*\"""")
HAS_BLANK = re.compile(r"""[^"\s] | [^"\s]""")
NO_WORD = re.compile(r"""\\[^"]|(?<!\\)"\s*"|^"|"\s*$""")
LINE_BEGIN = re.compile(r"(?m)^[\0 \t]*\*? ?(?=[^\0\s])")


def blank(text):
    """As many characters and lines; NUL, so that the words on both sides do not form a phrase."""
    return re.sub(r"[^\n]", "\0", text)


def literal(text):
    """Adjacent string literals as one text: without the quotes around them and without escapes, if it has a blank."""
    return NO_WORD.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text) if HAS_BLANK.search(text) else blank(text)


def python_prose(text):
    """Comments, and strings that are statements, with everything else blanked."""
    lines, out, end, before = [0], [], 0, tokenize.NEWLINE
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token, after in zip(tokens, tokens[1:]):
        is_docstring = token.type == tokenize.STRING and before in BETWEEN and after.type == tokenize.NEWLINE
        if is_docstring or token.type == tokenize.COMMENT:
            begin = lines[token.start[0] - 1] + token.start[1]
            out += [blank(text[end:begin]), MARKS.sub(lambda found: blank(found[0]), token.string)]
            end = begin + len(token.string)
        if token.type not in PASSED_OVER:
            before = token.type
    return "".join(out) + blank(text[end:])


def prose(kind, text):
    """The text with everything that is not prose blanked."""
    if kind == "python" or kind == "hash" and PYTHON.match(text):
        text = LINE_BEGIN.sub(lambda found: " " * len(found[0]), python_prose(text))
    elif kind in COMMENT:
        out, end = [], 0
        for found in COMMENT[kind].finditer(text):
            if found.lastindex:
                part = found[found.lastindex]
                is_literal = kind == "source" and found.lastindex == 1
                out += [blank(text[end:found.start(found.lastindex)]), literal(part) if is_literal else part]
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


def kind_of(path):
    """The kind of a file's prose; None: the file has no prose that is read."""
    if path.startswith(SCRIPTS) and "." not in os.path.basename(path):
        return "hash"
    kind = next((kind for ending, kind in KINDS.items() if path.endswith(ending)), None)
    return "source" if kind == "c" and path.startswith("src/") else kind


def check(path, text, words):
    """Sentences on a file's words."""
    text = prose(kind_of(path), text)
    for pattern, instead in words:
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f'{path}:{line}: "{" ".join(found[0].split())}": write {instead} ({GLOSSARY})'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", action="append", help="a file or folder to check; may be given more than once")
    words = read_words(tree.ROOT)
    paths = [path for path in tree.files(*(parser.parse_args().folder or FOLDERS)) if kind_of(path)]
    wrong = []
    for path in paths:
        with open(os.path.join(tree.ROOT, path), encoding="utf-8") as f:
            wrong += check(path, f.read(), words)
    tree.verdict(wrong, f"{len(paths)} files with prose")


if __name__ == "__main__":
    main()
