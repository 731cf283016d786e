# SPDX-License-Identifier: Apache-2.0
"""The stages of ARCHITECTURE.md: each imports what its table puts above it, and no files import each other in a circle.

An import counts everywhere: in a function and for types alone, too.
"""

from __future__ import annotations

import ast
import graphlib
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "sluice_analytics"


def stages(text: str) -> list[list[str]]:
    """The rows of the table: the folders and files of each stage, as modules, in the order of the stages."""
    table = text.partition(f"| stage | in `analytics/{PACKAGE}/` |")[2].partition("\n\n")[0]
    cells = [line.split("|")[2] for line in table.splitlines()[2:]]
    return [[name.rstrip("/").removesuffix(".py") for name in re.findall(r"`([^`]+)`", cell)] for cell in cells]


def imports(package: pathlib.Path) -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports, all without the package's name; "" is the package."""

    def name_of(path: pathlib.Path) -> str:
        return ".".join(p for p in path.relative_to(package).with_suffix("").parts if p != "__init__")

    files = {name_of(path): path for path in package.rglob("*.py")}
    found: dict[str, set[str]] = {name: set() for name in files}
    for name, path in files.items():
        home = [package.name, *(p for p in name.split(".") if p)]
        home = home if path.name == "__init__.py" else home[:-1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                above = home[: len(home) - node.level + 1] if node.level else []
                base = [*above, *(node.module or "").split(".")] if node.module else above
                named = [[*base, alias.name] for alias in node.names]
            elif isinstance(node, ast.Import):
                named, base = [alias.name.split(".") for alias in node.names], []
            else:
                continue
            for whole in named:
                to = ".".join(whole[1:])
                to = to if to in files else ".".join(base[1:])
                if whole[0] == package.name and to in files and to != name:
                    found[name].add(to)
    return found


def against_the_order(found: dict[str, set[str]], rows: list[list[str]]) -> list[str]:
    """What is wrong, a sentence each."""
    level = {name: n for n, row in enumerate(rows) for name in row}
    wrong = []
    for name, others in sorted(found.items()):
        stage = name.partition(".")[0]
        if stage and stage not in level:
            wrong.append(f"{name}: the table does not say which stage it is of")
        for other in sorted(others):
            to = other.partition(".")[0]
            is_neighbour = stage != to and level.get(stage) == level.get(to) != 0  # but for those of the ground
            if is_neighbour or level.get(to, 0) > level.get(stage, len(rows)):
                wrong.append(f"{name} imports {other}")
    return wrong


def circle(found: dict[str, set[str]]) -> list[str]:
    """The files of one circle; empty where there is none."""
    try:
        graphlib.TopologicalSorter(found).prepare()
    except graphlib.CycleError as e:
        return list(e.args[1])
    return []


def test_each_stage_imports_what_is_above_it() -> None:
    rows = stages((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    found = imports(ROOT / "analytics" / PACKAGE)
    there = {p.name for p in (ROOT / "analytics" / PACKAGE).iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert there <= {name for row in rows for name in row}
    assert found["cli.tune"] >= {"lake.open", "report.html"}  # the second in a function
    assert against_the_order(found, rows) == []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circle(imports(ROOT / "analytics" / PACKAGE)) == []


def test_streams_benchmarks_and_tests_are_no_circle() -> None:
    """They are scripts beside each other, which import by name alone."""
    for folder in ("streaming", "bench", "tests"):
        scripts = {p.stem: p for p in (ROOT / "analytics" / folder).glob("*.py")}
        found = {
            name: {n for n in re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.M)}
            & scripts.keys()
            for name, path in scripts.items()
        }
        assert circle(found) == []


def test_what_is_against_the_order_is_reported(tmp_path: pathlib.Path) -> None:
    """An import of a stage that comes later, of a neighbour, in a function; a folder of no stage; a circle."""
    files = {
        "units.py": "from .lake import a", "errors.py": "from .units import x",
        "lake/__init__.py": "from ..units import x", "lake/a.py": "def f():\n    from ..cli import main",
        "tune/b.py": "from .. import sweep, units", "sweep/__init__.py": "import sluice_analytics.tune.b",
        "cli/main.py": "from ..lake import a", "new/c.py": "",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    rows = [["units", "errors"], ["lake"], ["tune", "sweep"], ["cli"]]
    found = imports(tmp_path / PACKAGE)
    assert against_the_order(found, rows) == [
        "lake.a imports cli.main", "new.c: the table does not say which stage it is of", "sweep imports tune.b",
        "tune.b imports sweep", "units imports lake.a",
    ]  # fmt: skip
    assert set(circle(found)) in ({"lake.a", "cli.main"}, {"sweep", "tune.b"})
