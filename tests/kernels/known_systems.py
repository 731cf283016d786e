#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which systems sluice runs on, and what is null there: systems.tsv, and from it the table in README.md.

tests/kernels/known_systems.py --keep            as root: checks the types of Debian's kernels (versions.tsv) of both architectures,
                                           and takes over which of them have passed the suite (dev/kernels)
tests/kernels/known_systems.py --keep SYSTEM RELEASE types|BTF FILE   adds the row of another system, whose types are in FILE
tests/kernels/known_systems.py --table           writes README.md's table from systems.tsv

A row's last columns are what btf.py says: whether the agent starts, the signals (`sluice doctor`) that are missing, whose
fields are null, and those that are missing as well where fentry is refused.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import btf  # noqa: E402

TABLE = os.path.join(HERE, "systems.tsv")
VERSIONS = os.path.join(HERE, "versions.tsv")
PASSED = os.path.join(ROOT, "build", "kernels", "passed.tsv")
README = os.path.join(ROOT, "README.md")
BEGIN, END = "<!-- made by tests/kernels/known_systems.py --table -->\n", "<!-- end -->\n"
SUITES = {"bullseye-security": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13",
          "trixie-backports": "Debian 13 backports", "sid": "Debian sid"}
DEBS = {"x86_64": "amd64", "aarch64": "arm64"}
COLUMNS = ("system", "machine", "kernel", "checked", "starts", "null", "refused")
CHECKED = ("suite", "BTF", "types")
NONE = "-"
WORDS = {"peak_rss": "peak memory of programs that replaced a larger one", "replaced_peak": "peak memory of programs that exec replaced",
         "network": "network bytes"}     # of signals, for README.md
HEAD = """\
# Systems: what is null on each. checked: suite, tests/kernels/suite.sh passed in a guest; BTF, btf.py compared the types
# that the kernel itself has; types, the same of types that were published apart from it, which do not tell its functions.
# starts: yes, or what the kernel lacks. null: signals whose fields are null; refused: those where fentry is refused.
# Written by tests/kernels/known_systems.py --keep, and from it README.md's table by --table.
"""


def read_table(path=TABLE):
    with open(path) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    wrong = [row for row in rows if len(row) != len(COLUMNS) or row[3] not in CHECKED]
    if wrong:
        raise ValueError(f"{path}: not {len(COLUMNS)} columns, or checked in another way: {wrong[0]}")
    return [dict(zip(COLUMNS, row)) for row in rows]


def write_table(rows, path=TABLE):
    with open(path, "w") as f:
        f.write(HEAD + "".join("\t".join(row[c] for c in COLUMNS) + "\n" for row in rows))


def nulls(result):
    return [s["name"] for s in result["signals"] if s["state"] == "missing"]


def row_of(system, machine, kernel, checked, types):
    """A row from a file with a kernel's types."""
    with tempfile.NamedTemporaryFile(suffix=".btf") as f:
        btf.write_types(types, f.name)
        has_fentry = btf.has_fentry(btf.Types(f.name))
        with_fentry, without = btf.check(f.name, with_fentry=has_fentry), btf.check(f.name, with_fentry=False)
    null = nulls(with_fentry)
    return {"system": system, "machine": machine, "kernel": kernel, "checked": checked,
            "starts": "; ".join(f.split(", ")[0] for f in with_fentry["faults"]) or "yes", "null": ", ".join(null) or NONE,
            "refused": ", ".join(n for n in nulls(without) if n not in null) or NONE}


def debian_rows(before):
    passed = set()
    if os.path.exists(PASSED):
        with open(PASSED) as f:
            passed = {tuple(line.split()[:2]) for line in f}
    passed |= {(row["machine"], row["kernel"]) for row in before if row["checked"] == "suite"}
    with open(VERSIONS) as f:
        versions = [line.split() for line in f if not line.startswith("#")]
    for version, suite, _ in versions:
        for machine in DEBS:
            done = subprocess.run([os.path.join(ROOT, "dev", "kernels"), "--arch", machine, "unpack", version],
                                  stdout=subprocess.PIPE, check=False, text=True,
                                  env={**os.environ, "SLUICE_BUILD": btf.BUILD})
            if done.returncode != 0:    # as where the mirror has lost the package: what was known stays
                print(f"known_systems.py: no kernel {version} of {machine}", file=sys.stderr)
                yield from (row for row in before if (row["system"], row["machine"]) == (SUITES[suite], machine))
                continue
            folder = done.stdout.strip()
            release = os.path.basename(folder)
            yield row_of(SUITES[suite], machine, release, "suite" if (machine, release) in passed else "BTF",
                         os.path.join(folder, "vmlinuz"))


def words(cell):
    return "" if cell == NONE else ", ".join(WORDS.get(signal, signal) for signal in cell.split(", "))


def markdown(rows):
    """README's table. Kernels of one system that do not differ but for their machine share a row."""
    lines = ["| system | kernel | machine | checked by | null | null too without fentry |", "|---|---|---|---|---|---|"]
    shown = []
    for row in rows:
        release = row["kernel"].removesuffix("-" + DEBS[row["machine"]])
        cells = [row["system"], release, row["checked"], words(row["null"]), words(row["refused"])]
        if row["starts"] != "yes":
            cells[3:] = ["does not start: " + row["starts"], ""]
        same = next((s for s in shown if s[0] == cells), None)
        if same:
            same[1].append(row["machine"])
        else:
            shown.append((cells, [row["machine"]]))
    for (system, release, checked, null, refused), machines in shown:
        lines.append(f"| {system} | {release} | {', '.join(machines)} | {checked} | {null} | {refused} |")
    return "\n".join(lines) + "\n"


def with_table(text, rows):
    """README's text with the table of these rows."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    if not tail:
        raise ValueError(f"README.md has not the lines {BEGIN.strip()} and {END.strip()}")
    return head + BEGIN + markdown(rows) + END + tail


def main(argv):
    before = read_table() if os.path.exists(TABLE) else []
    if argv == ["--keep"]:
        others = [row for row in before if row["system"] not in SUITES.values()]
        write_table([*debian_rows(before), *others])
    elif len(argv) == 5 and argv[0] == "--keep" and argv[3] in CHECKED[1:]:
        system, kernel, checked, path = argv[1:]
        machine = btf.machine_of(path)
        row = row_of(system, machine, kernel, checked, path)
        write_table([r for r in before if (r["system"], r["machine"], r["kernel"]) != (system, machine, kernel)] + [row])
    elif argv != ["--table"]:
        sys.exit(__doc__)
    with open(README) as f:
        text = f.read()
    made = with_table(text, read_table())
    with open(README, "w") as f:
        f.write(made)


if __name__ == "__main__":
    main(sys.argv[1:])
