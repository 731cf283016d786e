# SPDX-License-Identifier: Apache-2.0
"""check_types.py FOLDER: mypy, as pyproject.toml configures it, with the types of Ibis' tables; FOLDER is its cache.

Ibis' relations.py imports Table, for annotations alone, from the package that imports it from there. mypy does not
resolve that circle: Table, and all that its methods return, is Any. Therefore mypy reads a copy without that import, in
which joins return tables. A column that is taken from a table by its name is Any, since its type is known only at run
time. Where a version of Ibis has other lines, the check fails.
"""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys

EDITS = (
    ("    from ibis.expr.types import Table\n", ""),
    ("\n):\n    def f(\n        self: ir.Table,", "\n) -> Callable[..., Table]:\n    def f(\n        self: ir.Table,"),
    ("def __getitem__(self, what: str | int, /) -> ir.Column:", "def __getitem__(self, what: str | int, /) -> Any:"),
    ("def __getattr__(self, key: str, /) -> ir.Column:", "def __getattr__(self, key: str, /) -> Any:"),
)


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    spec = importlib.util.find_spec("ibis")
    assert spec is not None and spec.submodule_search_locations is not None
    relations = pathlib.Path(spec.submodule_search_locations[0], "expr", "types", "relations.py")
    text = relations.read_text(encoding="utf-8")
    for old, new in EDITS:
        if text.count(old) != 1:
            sys.exit(f"{relations}: {old!r} is there {text.count(old)} times; adapt {__file__}")
        text = text.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / "ibis_relations.py"
    copy.write_text(text, encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", f"--cache-dir={folder}", "--shadow-file", str(relations), str(copy)]
    return subprocess.run(mypy).returncode


if __name__ == "__main__":
    sys.exit(main())
