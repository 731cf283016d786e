# SPDX-License-Identifier: Apache-2.0
"""What sluice answers of one execution, and whether that is what the label has."""
import dataclasses

from workloads import DENIED, WITH_DELAYS

ALONE, CROWDED = 0.1, 0.3  # of wall time, a workload's threads waited for a CPU, or others had one where it is its own
                           # crowd: less is nothing, more is a denial
UNKNOWN = "?"


@dataclasses.dataclass(frozen=True)
class Verdict:
    demand: str
    waiting_for: str | None
    denied: str
    confidence: float | None
    denied_share: float | None
    bill: dict[str, float]  # shares of its threads' time


def verdict_of(record):
    """What the record of a task's end answers."""
    parts = {part.removesuffix("_ns"): ns for part, ns in record["bill"].items() if ns is not None}
    whole = sum(parts.values()) or 1
    return Verdict(record["demand"] or UNKNOWN, record["waiting_for"], record["denied"] or UNKNOWN, record["demand_confidence"],
                   record["denied_share"], {part: round(ns / whole, 3) for part, ns in parts.items()})


@dataclasses.dataclass
class Outcome:
    """One workload under one setting. Marks are None where nothing is asked."""

    workload: str
    delays: bool
    label: dict[str, str]  # demand, waiting_for, denied
    verdict: Verdict | None = None  # None: it did not run, or not to its end
    figures: dict[str, float] = dataclasses.field(default_factory=dict)  # of the oracle
    stacks: dict[str, float] = dataclasses.field(default_factory=dict)  # where its threads slept, the most frequent
    untrue: list[str] = dataclasses.field(default_factory=list)
    absent: str = ""  # why it does not run on this host
    attempts: int = 0
    marks: dict[str, bool | None] = dataclasses.field(default_factory=dict)  # as label
    must: bool = False  # its demand is never to be wrong

    def first_demand(self):
        """The demand of the label, without others that are right, too."""
        return self.label["demand"].split("|")[0]


def demands(workload, has_delays):
    """The demands that are right."""
    return (workload.demand, *(() if workload.is_denied_by_delays and has_delays else workload.also))


def new_outcome(workload, delays):
    label = {"demand": "|".join(demands(workload, delays)), "waiting_for": "|".join(workload.waits),
             "denied": workload.denied}
    return Outcome(workload.name, delays, label, must=workload.must)


def untrue(workload, figures, has_delays):
    """What of the label the figures do not bear out: [sentence]."""
    return [f"{name} {figures[name]:.2f}, not {least} or more" for name, least in workload.truth.items()
            if (has_delays or not name.startswith(WITH_DELAYS)) and figures[name] < least]


def denied_is_right(workload, verdict, figures, has_delays):
    """None where it is not asked: others of this host took so much of its CPU that the label does not hold."""
    queued = figures["others" if workload.is_its_own_crowd else "queued"]
    if workload.is_denied_by_delays and not has_delays:
        return None
    if workload.denied not in DENIED or (workload.denied != "RUN_QUEUE" and queued >= CROWDED):
        return None
    return verdict.denied == workload.denied or (queued >= ALONE and verdict.denied == "RUN_QUEUE")


def judge(workload, verdict, figures, outcome):
    """Completes the outcome of an execution."""
    outcome.figures, outcome.verdict = figures, verdict
    outcome.untrue = untrue(workload, figures, outcome.delays)
    is_wait = workload.demand == verdict.demand == "WAITING_FOR"
    outcome.marks = {"demand": verdict.demand in demands(workload, outcome.delays),
                     "waiting_for": verdict.waiting_for in workload.waits if is_wait else None,
                     "denied": denied_is_right(workload, verdict, figures, outcome.delays)}
