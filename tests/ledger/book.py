# SPDX-License-Identifier: Apache-2.0
"""ledger.tsv: what each thing may cost, kept by hand, and what is said where it costs another."""
import platform
import re

COLUMNS = ("name", "kernel", "figure", "unit", "more", "commit", "reason")
MORE = "3 %"        # what a row may cost above its figure, unless it says another
ANY = "any"         # kernel: the figure does not depend on it


class Refused(Exception):
    """Nothing can be counted, or not like this."""


def kernel_key(is_any, release=None):
    """The series and the flavour, as "6.1-amd64": both move what its verifier walks and what libbpf reads."""
    if is_any:
        return ANY
    release = release or platform.release()
    series = re.match(r"\d+\.\d+", release)[0]
    flavour = re.search(r"[a-z]{2,}[a-z0-9]*", release[len(series):].lower())
    return series + ("-" + flavour[0] if flavour else "")


def shown(figure):
    return f"{figure:.1f}" if isinstance(figure, float) and figure < 10000 else f"{figure:.0f}"


def row_verdict(name, kept, counted):
    """(it fails, a sentence)"""
    if counted is None:
        return True, f"{name}: FAILED: kept, but no longer counted"
    figure, unit = counted
    if kept is None:
        return True, f"{name}: FAILED: {shown(figure)} {unit}, and no figure is kept"
    was = float(kept["figure"])
    percent = float(kept["more"].rstrip(" %"))
    share = 100 * (figure - was) / was if was else 100.0 * (figure > 0)
    text = f"{shown(figure)} {unit}, kept {kept['figure']} ({share:+.1f} %)"
    if share > percent:
        return True, f"{name}: FAILED: {text}, may be {percent:g} % more; last moved at {kept['commit']}: {kept['reason']}"
    if share < -percent:
        return False, f"{name}: {text}: it costs less now; move it, or it may grow back unseen"
    return False, f"{name}: {text}"


class Book:
    def __init__(self, path):
        self.path = path
        self.compilers = []
        self.rows = {}          # (name, kernel) → {column: text}
        self.head = []
        with open(path, encoding="utf-8") as f:
            for line in f.read().splitlines():
                if line.startswith("# compilers:"):
                    self.compilers = [x.strip() for x in line.split(":", 1)[1].split(";")]
                elif line.startswith("#"):
                    self.head.append(line)
                elif line and line.split("\t") != list(COLUMNS):
                    self._add(line)

    def _add(self, line):
        row = dict(zip(COLUMNS, line.split("\t")))
        if len(line.split("\t")) != len(COLUMNS) or not all(row.values()):
            raise Refused(f"{self.path}: a row has {len(COLUMNS)} columns, none of them empty: {line}")
        if (row["name"], row["kernel"]) in self.rows:
            raise Refused(f"{self.path}: {row['name']} of kernel {row['kernel']} stands there twice")
        self.rows[row["name"], row["kernel"]] = row

    def rows_of(self, group, kernel):
        return {name: row for (name, k), row in self.rows.items() if k == kernel and name.startswith(group + ".")}

    def set_compilers(self, compilers, is_all):
        if self.compilers != compilers and self.rows and not is_all:
            raise Refused(f"kept with {', '.join(self.compilers)}, built with {', '.join(compilers)}: move all rows, '*'")
        self.compilers = compilers

    def move(self, name, kernel, counted, commit, reason):
        """What changed, as a sentence. counted None: the row goes."""
        before = self.rows.pop((name, kernel), None)
        if counted is None:
            return f"{name}: gone"
        if re.search(r"[\t\n]", reason):
            raise Refused("a reason is one line without tabs")
        figure, unit = counted
        self.rows[name, kernel] = dict(zip(COLUMNS, (name, kernel, shown(figure), unit,
                                                     before["more"] if before else MORE, commit, reason)))
        return f"{name}: {before['figure'] if before else 'nothing'} → {shown(figure)} {unit}"

    def write(self):
        lines = self.head + ["# compilers: " + "; ".join(self.compilers), "\t".join(COLUMNS)]
        lines += ["\t".join(self.rows[key][c] for c in COLUMNS) for key in sorted(self.rows)]
        with open(self.path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
