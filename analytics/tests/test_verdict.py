# SPDX-License-Identifier: Apache-2.0
"""demand and denied of a record, whichever agent wrote it, and as people read them."""

from __future__ import annotations

from typing import Any

import pytest
from lakes import LakeMaker

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.model.verdict import COLUMNS, Verdict, agreed, of_record
from sluice_analytics.report import verdict as words
from sluice_analytics.tune.run import load


def record(**fields: Any) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS) | fields


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"bound": "COMPUTE"}, Verdict("COMPUTE")),
        ({"bound": "MEMORY"}, Verdict("MEMORY")),
        ({"bound": "IO"}, Verdict("STORAGE")),
        ({"bound": "NETWORK"}, Verdict("NETWORK")),
        ({"bound": "IDLE"}, Verdict("WAITING_FOR")),
        ({"bound": "MIXED"}, Verdict("MIXED")),
        ({"bound": "STARVED", "share_run_delay": 0.7}, Verdict(denied="RUN_QUEUE", denied_share=0.7)),
        ({"bound": None, "share_run_delay": 0.7}, Verdict()),
        ({"bound": "a word of the future"}, Verdict()),
        (
            {"bound": "IO", "demand": "NETWORK_FS", "demand_confidence": 0.8, "denied": "NOTHING", "denied_share": 0.0},
            Verdict("NETWORK_FS", 0.8, None, "NOTHING", 0.0),
        ),
        # All that it took was denied: there is no demand, and bound does not replace it.
        ({"bound": "IO", "denied": "THROTTLED", "denied_share": 1.0}, Verdict(denied="THROTTLED", denied_share=1.0)),
    ],
)  # fmt: skip
def test_of_record(fields: dict[str, Any], found: Verdict) -> None:
    assert of_record(record(**fields)) == found


def test_what_several_agree_on() -> None:
    one = Verdict("WAITING_FOR", 0.9, "PIPE", "RUN_QUEUE", 0.4)
    assert agreed([one]) == one
    assert agreed([one, Verdict("WAITING_FOR", 0.7, "LOCK", "RUN_QUEUE", 0.2)]) == Verdict(
        "WAITING_FOR", 0.7, None, "RUN_QUEUE", 0.2
    )
    assert agreed([one, Verdict("COMPUTE", 0.7, None, "NOTHING", 0.0)]) == Verdict()
    assert agreed([one, Verdict("WAITING_FOR", None, "PIPE")]) == Verdict("WAITING_FOR", None, "PIPE")
    assert agreed([]) == Verdict()


@pytest.mark.parametrize(
    ("found", "demand", "denied"),
    [
        (Verdict(), None, None),
        (Verdict("NETWORK_FS", 1.0, None, "NOTHING", 0.03), "network fs", None),
        (Verdict("WAITING_FOR", 1.0, "PIPE", "RUN_QUEUE", 0.454), "waits: pipe", "run queue 45%"),
        (Verdict("WAITING_FOR", denied="RUN_QUEUE"), "waits", "run queue"),
    ],
)
def test_words(found: Verdict, demand: str | None, denied: str | None) -> None:
    assert words.texts(found.demand, found.waiting_for, found.denied, found.denied_share) == {
        "demand": demand, "denied": denied,
    }  # fmt: skip


def test_a_lake_of_both_agents(maker: LakeMaker) -> None:
    """The older one's files lack the fields; beside them, those of the agent that came after it have them."""
    maker.run(run_id="r1", end=60, bound="IO")
    maker.task(run_id="r1", task_id="old", end=30, bound="STARVED", share_run_delay=0.6, peak_rss_bytes=7)
    maker.write(
        without=("demand", "demand_confidence", "waiting_for", "denied", "denied_share", "bill", "own_bill",
                 "memory_bytes", "peak_memory_bytes", "peak_memory_source")
    )  # fmt: skip
    maker.task(
        run_id="r1", task_id="new", start=30, end=60, bound="IDLE", demand="WAITING_FOR", demand_confidence=0.9,
        waiting_for="CHILD", denied="NOTHING", denied_share=0.0, bill_cpu_ns=1, own_child_ns=2, peak_rss_bytes=7,
        peak_memory_bytes=9, peak_memory_source="PROGRAM",
    )  # fmt: skip
    maker.write()
    with DuckSession(str(maker.path)) as session:
        report = load(session, "r1")
    old, new = (next(t for t in report.tasks if t.task_id == name) for name in ("old", "new"))
    assert (old.bound, old.demand, old.denied, old.denied_share) == ("STARVED", None, "RUN_QUEUE", 0.6)
    assert (old.peak_memory_bytes, old.bill["cpu_ns"]) == (None, None)
    assert (new.bound, new.demand, new.demand_confidence, new.waiting_for) == ("IDLE", "WAITING_FOR", 0.9, "CHILD")
    assert (new.denied, new.bill["cpu_ns"], new.own_bill["child_ns"]) == ("NOTHING", 1, 2)
    assert (new.peak_memory_bytes, new.peak_memory_source) == (9, "PROGRAM")
    assert (report.bound, report.demand, report.denied) == ("IO", "STORAGE", None)
