# SPDX-License-Identifier: Apache-2.0
"""The commands of sluice, with their options and what each takes, read from the help that they print."""
import dataclasses
import os
import re
import subprocess

ANALYTICS = ("tune", "sweep", "lake")
# "  -c, --config FILE  what it is"; the value is a word of capitals or a set of names.
OPTION = re.compile(r"^(?: {2,8}| {17})(?:(-\w)(?: [A-Z]\S*)?, )?(--[a-z][\w-]*)(?: ({[^}]+}|[A-Z][A-Z.=]*\b))?(?: +(.*))?$")
# "  status       print the state"
WORD = re.compile(r"^ {2,4}([a-z][a-z-]*)(?:(?: {2,}| (?=[A-Z]+ {2}))(.*))$")
# What a value is, by its name in the help. All else is for the user to know.
KINDS = {"FILE": "file", "PATH": "file", "DIR": "folder", "LAKE": "folder", "PID": "process", "USER": "user"}


@dataclasses.dataclass
class Option:
    long: str
    short: str = ""
    value: str = ""     # its name in the help; "": it takes none
    kind: str = ""      # file, folder, process, user; "": nothing to offer but choices
    choices: tuple = ()
    about: str = ""


@dataclasses.dataclass
class Node:
    """One command: `sluice`, `sluice run`, `sluice tune compare`."""
    path: tuple
    about: str = ""
    words: list = dataclasses.field(default_factory=list)      # (name, about) of the commands below it
    options: list = dataclasses.field(default_factory=list)
    rest: str = ""                                             # kind of its arguments, or "command"


def brief(text):
    """The beginning of a description, on one line that needs no quoting."""
    text = re.sub(r"^(?:list|show|replay)(?:, (?:list|show|replay))*: ", "", text)     # the actions that take it
    text = re.sub(r"^[A-Z]+ ", "", text) if re.match(r"(NAME|PID) ", text) else text
    text = re.split(r"\(default|; |: |\. ", " ".join(text.split()))[0].strip(" ,.")
    return re.sub(r"[\\'\"`$\[\]{}<>]", "", text)


def make_option(found, text):
    short, long, value, _ = found.groups()
    value = value or ""
    choices = ()
    if value.startswith("{"):
        choices = tuple(value[1:-1].split(","))
    elif topics := re.search(r"only this topic: ((?:\w+, )+\w+)", text):
        choices = tuple(topics.group(1).split(", "))
    elif named := re.match(r"((?:[a-z]+\|)+) ?[A-Z]+", text):
        choices = tuple(named.group(1).strip("|").split("|"))
    return Option(long, short or "", value, KINDS.get(value, ""), choices, brief(text))


def parse(path, help_text):
    """The node of one help text."""
    node = Node(path)
    entries = []
    for line in help_text.splitlines():
        option = OPTION.match(line)
        word = None if option else WORD.match(line)
        if option or word:
            entries.append([option, word, (option or word).groups()[-1] or ""])
        elif entries and re.match(r" {7,}\S", line):
            entries[-1][2] += " " + line.strip()
        elif line and not line.startswith(" "):
            entries.append([None, None, ""])
    for option, word, text in entries:
        if option:
            node.options.append(make_option(option, text))
        elif word:
            node.words.append((word.group(1), text))
    return node


def nodes(root):
    """Every command, the whole program first."""
    build = os.environ.get("SLUICE_BUILD") or os.path.join(root, "build", "release")
    folders = os.path.join(root, "build", "analytics", "base", "bin")
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "80", "LC_ALL": "C.UTF-8"}

    def ask(*words):
        program = os.path.join(build, "sluice")
        if words and words[0] in ANALYTICS:
            program = os.path.join(folders, f"sluice-{words[0]}")
            environment["SLUICE_COMMAND"] = f"sluice {words[0]}"
            words = words[1:]
        done = subprocess.run([program, *words, "--help"], env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    whole = ask()
    top = Node((), "records what actually ran", [(n, t) for n, t in parse((), whole).words])
    top.options = [Option("--version", about="print the version"), Option("--help", "-h", about="print this help")]
    out = [top]
    for name, about in top.words:
        if name == "help":
            out.append(Node(("help",), about, [(n, t) for n, t in top.words if n != "help"]))
            continue
        text = ask(name)
        node = parse((name,), text)
        node.about = about
        out += [node, *below(node, text, ask, root)]
    # What a word may be followed by if nothing else is known of it: the options of the command before it.
    known = {node.path for node in out}
    out += [Node((*node.path, word), options=node.options) for node in out for word, _ in node.words
            if (*node.path, word) not in known]
    for node in out:
        node.words = [(n, brief(t)) for n, t in node.words]
    rests = {("run",): "command", ("check",): "command", ("cat",): "file", ("ctl", "explain"): "process"}
    for node in out:
        node.rest = rests.get(node.path, "")
    return out


def below(node, text, ask, root):
    """The commands below one command, of which each kind says it in its own way."""
    name = node.path[0]
    if name == "tune":
        node.words = re.findall(r"(?m)^  sluice tune ([a-z]+)[^a-z\n].*? {2,}(.*)$", text)
    if name in ANALYTICS:
        out = []
        for word, about in node.words:
            out.append(parse((name, word), ask(name, word)))
            out[-1].words, out[-1].about = [], about
        return out
    if name == "ctl":
        return below_ctl(node, root)
    return [Node((name, word), about, options=node.options) for word, about in node.words]


def below_ctl(node, root):
    """Its commands have options of their own; those of `settle` are indented below it."""
    general = {"--socket", "--config", "--timeout", "--json", "--help"}
    indented = [o for o in node.options if o.long not in general]
    with open(os.path.join(root, "src", "model", "signals.def")) as f:
        signals = re.findall(r'SIGNAL\(\w+, "(\w+)", OPTIONAL', f.read())
    out = []
    for word, text in node.words:
        child = Node(("ctl", word), brief(text))
        if word == "settle":
            child.options = indented
        if word == "tag":
            child.options = [Option(o, "", v, KINDS.get(v, ""), (), "")
                             for o, v in re.findall(r"(--\w+) ([A-Z]+)", text)]
        if word == "rules":
            child.words = [(w, "") for w in re.findall(r"(?:^|\| )([a-z]+)", text.split(";")[0])]
        if word in ("attach", "detach"):
            child.words = [(w, "") for w in signals]
        out.append(child)
    node.options = [o for i, o in enumerate(node.options) if o.long in general
                    and o.long not in {p.long for p in node.options[i + 1:]}]
    for child in out:
        child.options = child.options + node.options
    return out
