# SPDX-License-Identifier: Apache-2.0
"""The completions of bash, zsh and fish: a table of the commands, put into what each shell's file does with it."""
import os

HERE = os.path.dirname(os.path.realpath(__file__))
MADE = "# Made by dev/completions, from sluice's help and dev/completions.d."


def files(nodes):
    """Name and text of each file."""
    return {"sluice.bash": fill("bash", bash(nodes)), "_sluice": fill("zsh", zsh(nodes)),
            "sluice.fish": fill("fish", fish(nodes))}


def fill(shell, table):
    with open(os.path.join(HERE, f"template.{shell}")) as f:
        return f.read().replace("# MADE\n", MADE + "\n").replace("# TABLE\n", table)


def names(option):
    return [n for n in (option.short, option.long) if n]


def bash(nodes):
    """A case for each command: its words, its options as NAME or NAME:WHAT, and what its arguments are."""
    out = []
    for node in nodes:
        out.append(f"\t'{' '.join(node.path)}')")
        options = []
        for option in node.options:
            value = ":" + (",".join(option.choices) or option.kind) if option.value else ""
            options += [n + value for n in names(option)]
        for name, text in (("words", " ".join(w for w, _ in node.words)), ("options", " ".join(options)),
                           ("rest", node.rest)):
            out.append(f"\t\t{name}='{text}'")
        out.append("\t\t;;")
    return "\n".join(out) + "\n"


ZSH = {"file": "_files", "folder": "_files -/", "process": "_pids", "user": "_users"}


def zsh_function(path):
    return "_".join(["_sluice", *path]).replace("-", "_")


def zsh_option(option):
    """Specs of _arguments: of the long name, which takes a value after = too, and of the short one."""
    value = ""
    if option.value:
        how = f"({' '.join(option.choices)})" if option.choices else ZSH.get(option.kind, " ")
        label = "name" if option.choices else option.value
        value = f":{label}:{how}"
    about = f"[{option.about}]" if option.about else ""
    for name in names(option):
        equals = "=" if option.value and name.startswith("--") else ""
        yield f"'*{name}{equals}{about}{value}'"


def zsh(nodes):
    """A function for each command."""
    out = []
    parents = {node.path for node in nodes if node.words}
    for node in nodes:
        if not node.path or node.path in parents or node.path[:-1] not in parents or node.rest or node.options:
            out += zsh_node(node)
    return "\n".join(out) + "\n"


def zsh_node(node):
    out = [f"{zsh_function(node.path)}() {{"]
    specs = [spec for option in node.options for spec in zsh_option(option)]
    arguments = "_arguments -S"
    if node.words:
        arguments = "_arguments -C -S -A '-*'"
        specs += ["'1: :->word'", "'*:: :->rest'"]
        out.append("\tlocal context state state_descr line\n\ttypeset -A opt_args\n\tlocal -a names")
        out.append("\tnames=(")
        out += [f"\t\t'{word}{':' + about if about else ''}'" for word, about in node.words]
        out.append("\t)")
    elif node.rest == "command":
        arguments = "_arguments -S -A '-*'"
        specs += ["'(-):command:_command_names -e'", "'*::argument:_normal'"]
    elif node.rest:
        specs.append(f"'*:{node.rest}:{ZSH[node.rest]}'")
    out.append(" \\\n\t\t".join([f"\t{arguments}", *specs]))
    if node.words:
        out.append("\tcase $state in\n\tword) _describe command names ;;\n\trest)\n\t\tcase $line[1] in")
        out += [f"\t\t{word}) {zsh_function((*node.path, word))} ;;" for word, _ in node.words]
        out.append("\t\tesac\n\t\t;;\n\tesac")
    return [*out, "}", ""]


FISH = {"file": "-r -F", "folder": "-x -a '(__fish_complete_directories)'", "process": "-x -a '(__fish_complete_pids)'",
        "user": "-x -a '(__fish_complete_users)'"}


def fish(nodes):
    """Lists of the commands and of options that take a value; then one `complete` for each word and option."""
    out = ["set -g __sluice_commands \\"]
    out.append(" \\\n".join(f"    '{' '.join(node.path)}'" for node in nodes if node.path))
    out.append("set -g __sluice_runs " + " ".join(f"'{' '.join(n.path)}'" for n in nodes if n.rest == "command"))
    out.append("set -g __sluice_takes \\")
    out.append(" \\\n".join("    " + " ".join(f"'{' '.join(node.path)}:{n}'" for o in node.options if o.value
                                             for n in names(o))
                           for node in nodes if any(o.value for o in node.options)))
    for node in nodes:
        at = f"complete -c sluice -n '__sluice_at {' '.join(node.path)}'"
        out.append("")
        for word, about in node.words:
            out.append(f"{at} -a {word}" + (f" -d '{about}'" if about else ""))
        for option in node.options:
            line = at + (f" -s {option.short[1:]}" if option.short else "") + f" -l {option.long[2:]}"
            if option.value:
                how = f"-x -a '{' '.join(option.choices)}'" if option.choices else FISH.get(option.kind, "-x")
                line += " " + how
            out.append(line + (f" -d '{option.about}'" if option.about else ""))
        if node.rest == "command":
            takes = " ".join(n for o in node.options if o.value for n in names(o))
            # The dash: its own options end there.
            run = f"'(__fish_complete_subcommand --fcs-skip=2 - {takes})'"
            out += [f"{at} -x -a {run}", f"{at[:-1]} command' -x -a {run}"]
        elif node.rest:
            out.append(f"{at} {FISH[node.rest].replace('-r ', '')}")
    return "\n".join(out) + "\n"
