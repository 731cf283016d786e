# SPDX-License-Identifier: Apache-2.0
"""Energy of a run and of its tasks: as the host's meter counted it, or modelled where there was none.

A record has the share of its CPU time in what the meter counted; idle CPUs keep theirs, which is part of the residue of
the host. Without a meter nothing is known. Only if a figure is asked for, it is CPU time * watts, and MODELLED.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..lake.session import Row
from .money import Host
from .run_report import MODELLED, Energy, HostEnergy

WATTS_PER_CPU = 12.0
"""Of a busy CPU, where none are given: the default of Green Algorithms (its table TDP_cpu.csv, the model "Any") for a
core of an unknown model, and so of nf-co2footprint (powerdrawCpuDefault). A CPU of Linux is a core only without
hyper-threading; Cloud Carbon Footprint's methodology has 3.5 to 4.3 W for a vCPU of a cloud at full load."""


def of_record(row: Row, cpu_ns: int | None, watts: float | None) -> Energy:
    """The energy of a task or of a run on one host. watts: as for modelled(), where there was no meter."""
    if row["energy_uj"] is not None:
        return Energy(row["energy_uj"] / 1e6, row["energy_source"])
    return modelled(cpu_ns, watts)


def modelled(cpu_ns: int | None, watts: float | None) -> Energy:
    """CPU time * watts, of a busy CPU; None: it is unknown."""
    return Energy() if watts is None or cpu_ns is None else Energy(cpu_ns / 1e9 * watts, MODELLED)


def total(parts: Iterable[Energy]) -> Energy:
    """The sum: MODELLED if a part is, and unknown if one is unknown."""
    known = list(parts)
    if not known or any(p.joules is None for p in known):
        return Energy()
    sources = {p.source or "" for p in known}
    source = MODELLED if MODELLED in sources else "+".join(sorted(sources))
    return Energy(sum(p.joules or 0 for p in known), source)


def without(whole: Energy, parts: list[Energy]) -> Energy:
    """What whole has beyond its parts; unknown unless all were counted or all modelled."""
    of_parts = total(parts) if parts else Energy(0, whole.source)
    if whole.joules is None or of_parts.joules is None or (whole.source == MODELLED) != (of_parts.source == MODELLED):
        return Energy()
    return Energy(max(0.0, whole.joules - of_parts.joules), whole.source)


def of_host(host: Host, start_us: int, end_us: int) -> HostEnergy | None:
    """What the meter of a host counted from start to end, by all that ran there; None: nothing.

    A record that lies in that time in part counts in part. Where several agents recorded the host, the one counts that
    counted most: all read the same meter.
    """
    by_agent: dict[str, HostEnergy] = {}
    for row in host.records:
        begin_us = row["time"] - row["interval_ns"] // 1000
        inside_us = min(end_us, row["time"]) - max(start_us, begin_us)
        if row["energy_uj"] is None or inside_us <= 0:
            continue
        part = inside_us / (row["time"] - begin_us) / 1e6
        sums = by_agent.setdefault(row["agent_id"], HostEnergy(row["energy_source"]))
        sums.joules += row["energy_uj"] * part
        sums.attributed_joules += row["energy_attributed_uj"] * part
        sums.unattributed_joules += row["energy_unattributed_uj"] * part
        sums.idle_joules += row["energy_idle_uj"] * part
    return max(by_agent.values(), key=lambda e: e.joules, default=None)
