# SPDX-License-Identifier: Apache-2.0
"""A finding: something that was paid for and did nothing, and the records that prove it."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..lake.session import Row, Session
from ..prices import cost_of_share, larger_share
from .attribution import Host, HostHour
from .losses import Loss
from .period import HOUR_US, Period
from .thresholds import Thresholds

KINDS = {
    "FORGOTTEN_HOST": "up without any run",
    "IDLE_AFTER_RUN": "up after its last run ended",
    "BUSY_WITHOUT_RUNS": "busy, but not with a run",
    "PERIODIC_SPIKES": "short bursts at a steady distance, no sustained work",
    "OVERSIZED_HOST": "never used more than a part of its CPUs and memory",
    "GPU_NOT_OBSERVED": "has GPUs, whose use no record has",
    "WAITING_WORKER": "a worker that waits for work",
    "IDLE_RUN": "a run alive with next to no use",
    "IDLE_TASK": "a task alive with next to no use",
    "ZOMBIE_RUN": "a run alive without progress until its last record",
    "STALLED_RUN": "a run that made no progress for a time, then continued",
    "CONTAINER_OUTLIVES_TASK": "a container that stays after its task",
    "SPINNING": "a program that uses CPU and moves nothing",
    "POLLING": "a program that wakes again and again for nothing",
    "REPEATED_FAILURE": "fails again and again",
}
"""What each kind means, in the words of the table."""


@dataclasses.dataclass(kw_only=True)
class Finding:
    """One observation. hours: wall time of it in the period; money: the part of the host's price that it held.

    money None: the host's price is unknown. Findings overlap (an idle run on a forgotten host): they do not
    add up to anything. evidence: numbers, names and times (`_time`) as records have them.
    """

    kind: str
    subject: str
    host_id: str | None
    host_name: str | None
    start_us: int
    end_us: int
    hours: float | None
    money: float | None
    sentence: str
    evidence: dict[str, Any]
    run_id: str | None = None
    pipeline: str | None = None
    task: str | None = None


@dataclasses.dataclass
class Scene:
    """What all finders look at."""

    session: Session
    period: Period
    limits: Thresholds
    hosts: dict[str, Host]
    hours: list[HostHour]
    losses: list[Loss]

    def name(self, host_id: str) -> str:
        """A host's name."""
        host = self.hosts.get(host_id)
        return host.host_name if host else host_id[:8]

    def money(self, host_id: str, us: float, share: float = 1.0) -> float | None:
        """What a share of a host cost for a time; None: its price is unknown."""
        host = self.hosts.get(host_id)
        return cost_of_share(host.price_per_hour, us * 1000, share) if host else None

    def finding(
        self,
        kind: str,
        host_id: str,
        reported_us: int,
        *,
        subject: str,
        start_us: int,
        end_us: int,
        sentence: str,
        evidence: dict[str, Any],
        share: float = 1.0,
        of: Row | None = None,
    ) -> Finding:
        """A finding of one host: reported_us of it, at a share of the host's price. of: a row with run and task."""
        of = of or dict.fromkeys(("run_id", "pipeline", "task"))
        return Finding(
            kind=kind, subject=subject, host_id=host_id, host_name=self.name(host_id), start_us=start_us,
            end_us=end_us, hours=reported_us / HOUR_US, money=self.money(host_id, reported_us, share),
            sentence=sentence, evidence=evidence, run_id=of["run_id"], pipeline=of["pipeline"], task=of["task"],
        )  # fmt: skip

    def share(self, host_id: str, cores: float | None, memory_bytes: float | None) -> float:
        """The part of a host that so many cores and so much memory are: the larger of the two."""
        host = self.hosts.get(host_id)
        if host is None:
            return 0.0
        return larger_share((cores, host.cpus), (memory_bytes, host.memory_bytes)) or 0.0

    def away(self, host_id: str) -> list[Loss]:
        """The times in which no agent watched a host."""
        return [x for x in self.losses if x.host_id == host_id and x.kind in ("AWAY", "NOT_RECORDED")]

    def alive_until(self, host_id: str, heard_us: int) -> int:
        """Until when a program without an end is known to live: while its host was watched without a break.

        An agent that comes back after it was away records again each program that it finds.
        """
        host = self.hosts.get(host_id)
        if host is None:
            return heard_us
        breaks = [x.start_us for x in self.away(host_id) if x.end_us > heard_us]
        return max(heard_us, min([*breaks, host.last_us]))

    def watched(self, start_us: int, end_us: int, host_ids: list[str]) -> tuple[int, int]:
        """The longest part of a time in which all of some hosts were watched."""
        breaks = sorted(
            (x.start_us, x.end_us)
            for host_id in host_ids
            for x in self.away(host_id)
            if x.end_us > start_us and x.start_us < end_us
        )
        best, at = (start_us, start_us), start_us
        for begin, end in [*breaks, (end_us, end_us)]:
            if begin - at > best[1] - best[0]:
                best = (at, begin)
            at = max(at, end)
        return best
