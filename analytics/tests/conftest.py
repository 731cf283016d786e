# SPDX-License-Identifier: Apache-2.0
"""What all tests share: lakes, servers, engines; and that no skip hides (tests/integration/verdict.py)."""

from __future__ import annotations

import gc
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from lakes import LakeMaker

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "integration"))

import verdict


def _name(item: pytest.Item) -> tuple[str, str]:
    """A case as tests/skips.tsv and the closing report name it: its file, and Class.test in it."""
    return item.path.stem, item.nodeid.partition("::")[2].replace("::", ".")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """$SLUICE_TEST_CASE names one case to run alone; without its parameters, all of that name."""
    case = os.environ.get("SLUICE_TEST_CASE")
    if case:
        others = [i for i in items if case not in (_name(i)[1], _name(i)[1].partition("[")[0])]
        config.hook.pytest_deselected(items=others)
        items[:] = [i for i in items if i not in others]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A skip that tests/skips.tsv does not list is a failure. Each case is written to the closing report once."""
    report: Any = yield
    file, case = _name(item)
    if report.skipped and not hasattr(report, "wasxfail") and not verdict.may_skip(f"{file}::{case}"):
        why = call.excinfo.value if call.excinfo is not None else ""
        report.outcome, report.longrepr = "failed", f"skipped, and not listed in tests/skips.tsv: {why}"
    if report.when == "call" or not report.passed:
        reason = "" if report.passed else str(getattr(report.longrepr, "reprcrash", report.longrepr))[:500]
        verdict.tell(file, case, report.outcome, report.duration, reason)
    return report


@pytest.fixture(scope="session", autouse=True)
def _few_collections() -> None:
    """What is loaded stays: the commands, too, let the collector of garbage look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture
def maker(tmp_path: pathlib.Path) -> Iterator[LakeMaker]:
    """A new lake in a folder of its own; call write() before reading it."""
    yield LakeMaker(tmp_path / "lake")


@pytest.fixture(scope="session")
def _servers() -> Iterator[Any]:
    """One broker, with all its listeners, and one schema registry for all modules."""
    import topics

    with topics.Stack(tls=True) as found:
        yield found


@pytest.fixture(scope="module")
def stack(_servers: Any) -> Iterator[Any]:
    """A broker and a schema registry (topics.Stack); a module's topics are gone when the next one begins."""
    yield _servers
    for topic in _servers.topics():
        _servers.delete_topic(topic)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A lake that sluice recorded, and the same with its days compacted (engines.Recorded)."""
    import engines

    return engines.Recorded(tmp_path_factory.mktemp("recorded"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Spark in a process of its own (engines.Engine), for all tests."""
    import engines

    with engines.Engine("spark") as engine:
        yield engine
