# SPDX-License-Identifier: Apache-2.0
"""The comments of all forms beside the settings: evidence, and why a task is left out."""

from __future__ import annotations

import math
from typing import Any

from ... import units
from ...spell import spell
from ...tune.advice import Advice
from ...tune.run_report import Recommendation

MIB = 1 << 20


def head(mark: str, source: str, how: str) -> list[str]:
    """The first lines. mark: how a comment begins; how: what to do with the configuration."""
    return [f"{mark} What tasks used, by sluice tune recommend, from {source}.", f"{mark} {how}"]


def value(r: Recommendation, number: float | None) -> str:
    """A number of a recommendation as people read it."""
    if number is None:
        return "not known"
    if r.what == "memory_bytes":
        return units.size(number)
    if r.what == "time_ns":
        return units.duration(number)
    return f"{number:g}"


_TITLES = {"cpus": "CPUs", "memory_bytes": "memory", "time_ns": "time"}


def task(mark: str, advice: Advice) -> list[str]:
    """The lines over a task's settings."""
    lines = [f"{mark} {spell(advice.task)}"]
    for r in advice.recommendations:
        if r.what in _TITLES:
            was = "" if r.what == "time_ns" else f" (requested: {value(r, r.current)})"
            text = f"{_TITLES[r.what]} {value(r, r.recommended)}{was}: {r.sentence}. Confidence {r.confidence}."
        else:
            text = f"{r.sentence}."
        lines.append(f"{mark}   {spell(text)}")
    return [*lines, *(f"{mark}   {spell(note)}." for note in advice.notes)]


def left_out(mark: str, advice: Advice, why: str) -> str:
    """The line of a task that has no settings."""
    return f"{mark} {spell(advice.task)}: left out: {why}"


def fit_of(r: Recommendation | None) -> dict[str, Any] | None:
    """The fields of sizes.Fit, the line of memory over bytes read, where it is good."""
    found = r.evidence.get("fit") if r else None
    return found if isinstance(found, dict) else None


def memory(r: Recommendation | None, unit: int = MIB) -> int | None:
    """Recommended memory in whole units of so many bytes; no more of them than the host has."""
    if r is None or r.recommended is None:
        return None
    most = r.evidence.get("host_memory_bytes")
    wanted = math.ceil(r.recommended / unit)
    return wanted if most is None else min(wanted, most // unit)


def seconds(r: Recommendation | None) -> int | None:
    """Recommended time in whole seconds."""
    return None if r is None or r.recommended is None else math.ceil(r.recommended / 1e9)


def cpus_of_host(advice: Advice) -> int | None:
    """Recommended CPUs on each of the hosts on which it runs at once."""
    r = advice.of("cpus")
    return None if r is None or r.recommended is None else math.ceil(r.recommended / advice.hosts)
