# SPDX-License-Identifier: Apache-2.0
"""What `sluice tune RUN` knows of a run: the data behind the table, the JSON and the HTML page.

Plain values only: times are microseconds since 1970 UTC, durations nanoseconds (`_ns`), sizes bytes; None
is unknown. `asdict` of a RunReport is what --format json prints (times as RFC 3339).
"""

from __future__ import annotations

import dataclasses
from typing import Any

RUNS = 50
"""How many of the latest runs of a pipeline a recommendation counts by default"""


def ended_badly(exit_code: int | None, exit_signal: int | None) -> bool:
    """Whether a program, task or run ended by a signal or with a code other than 0."""
    return exit_signal is not None or bool(exit_code)


@dataclasses.dataclass
class Resources:
    """Totals over programs: sums, but for the two of memory."""

    cpu_user_ns: int | None = None
    cpu_system_ns: int | None = None
    run_delay_ns: int | None = None
    block_io_delay_ns: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    peak_rss_bytes: int | None = None
    """Largest peak of one program: the agent's own figure for a task or run"""
    mean_rss_bytes: float | None = None
    """Resident bytes of all programs together, mean over wall time"""
    read_bytes: int | None = None
    write_bytes: int | None = None
    rchar: int | None = None
    wchar: int | None = None
    net_rx_bytes: int | None = None
    net_tx_bytes: int | None = None


@dataclasses.dataclass
class Efficiency:
    """Used against requested. Source: Slurm's seff and Princeton's jobstats.

    cpu = CPU time / (wall * requested CPUs); memory = peak bytes / requested bytes. None where nothing was
    requested or measured. over_host: the request is unknown and the host's size replaces it.
    """

    requested_cpus: float | None = None
    requested_memory_bytes: int | None = None
    cpu: float | None = None
    memory: float | None = None
    over_host: bool = False


@dataclasses.dataclass
class Cost:
    """Money by the user's price table; None: the price of a host is unknown (never 0).

    used: host price * the larger share of CPU time and of memory time that was used; reserved: the same of
    what was requested.
    """

    used: float | None = None
    reserved: float | None = None
    currency: str = "USD"


MODELLED = "MODELLED"
"""The source of energy that no meter counted"""


@dataclasses.dataclass
class Energy:
    """What CPU time cost in joules; None: unknown.

    source: POWERCAP, HWMON or HWMON_POWER, the meter that its share is of, or MODELLED: CPU time times watts, as asked
    for. Several meters are joined by +.
    """

    joules: float | None = None
    source: str | None = None


@dataclasses.dataclass
class HostEnergy:
    """What the meter of a host counted during the run. The last three add up to joules."""

    source: str
    joules: float = 0.0
    attributed_joules: float = 0.0
    """Shares of all runs there"""
    unattributed_joules: float = 0.0
    """Share of programs of no run, and of the kernel"""
    idle_joules: float = 0.0
    """Share of idle CPUs"""


@dataclasses.dataclass(kw_only=True)
class TaskRow:
    """One execution of a task. attempt counts from 1; on_critical_path: the run could not end sooner than it."""

    task_id: str
    name: str
    sample: str | None
    engine: str | None
    host_name: str
    attempt: int | None
    start_time: int
    end_time: int | None
    wall_ns: int | None
    parallelism: float | None
    programs: int
    failed_programs: int
    exit_code: int | None
    exit_signal: int | None
    bound: str | None
    """demand and denied in one word, for readers of earlier versions"""
    demand: str | None = None
    demand_confidence: float | None = None
    waiting_for: str | None = None
    denied: str | None = None
    denied_share: float | None = None
    shares: dict[str, float | None]
    bill: dict[str, int | None] = dataclasses.field(default_factory=dict)
    """What became of its threads' time; see the Task schema"""
    own_bill: dict[str, int | None] = dataclasses.field(default_factory=dict)
    """What became of its own time, wall_ns"""
    peak_memory_bytes: int | None = None
    """The most that its programs held at once; usage.peak_rss_bytes is that of the largest"""
    peak_memory_source: str | None = None
    usage: Resources
    efficiency: Efficiency
    cost: Cost
    energy: Energy = dataclasses.field(default_factory=Energy)
    retried: bool = False
    on_critical_path: bool = False
    work_dir: str | None = None
    source: str | None = None
    """How the agent knew of it; see the Task schema"""


@dataclasses.dataclass(kw_only=True)
class ToolRow:
    """All programs of one tool in the run; share_of_io: of the run's storage bytes."""

    tool: str
    tasks: list[str]
    programs: int
    failed: int
    wall_ns: int
    """Sum over its programs"""
    usage: Resources
    bound: str | None
    demand: str | None = None
    demand_confidence: float | None = None
    waiting_for: str | None = None
    denied: str | None = None
    denied_share: float | None = None
    share_of_cpu: float | None
    share_of_io: float | None
    cost: Cost = dataclasses.field(default_factory=Cost)


@dataclasses.dataclass(kw_only=True)
class ProgramRow:
    """One program, for the Gantt and the search."""

    program_id: str
    parent_program_id: str | None
    tool: str | None
    exe: str | None
    command: str
    """argv joined, cut at 300 characters"""
    task_id: str | None
    task: str | None
    host_name: str
    pid: int
    start_time: int
    end_time: int | None
    exit_code: int | None
    exit_signal: int | None
    oom_killed: bool
    cpu_ns: int | None
    peak_rss_bytes: int | None
    read_bytes: int | None
    write_bytes: int | None
    net_bytes: int | None
    overhead: bool


@dataclasses.dataclass(kw_only=True)
class Failure:
    """Why it failed: the first program that did, and what followed from it.

    kind: OOM_KILLED, SIGNAL, EXIT, NOT_FOUND, NOT_EXECUTABLE, DISK_FULL, KILLED_BY_ENGINE. evidence: numbers
    and names as records have them. victims: programs that were ended because of it, by program_id.
    """

    kind: str
    task_id: str | None
    task: str | None
    program_id: str
    tool: str | None
    command: str
    exit_code: int | None
    exit_signal: int | None
    time: int | None
    sentence: str
    evidence: dict[str, Any]
    chain: list[str]
    """From the program's parent up: the programs that failed because it did, each as people read it"""
    victims: list[str]
    recovered: bool = False
    """A later attempt of the task succeeded"""


@dataclasses.dataclass
class Observation:
    """Something worth knowing: STRAGGLER, CONTENTION, THROTTLED, STUCK, QUIET, IDLE, GAP, RETRIES, UNUSED_CPUS…"""

    kind: str
    severity: str
    """INFO, WARNING, ERROR"""
    task_id: str | None
    sentence: str
    evidence: dict[str, Any]


@dataclasses.dataclass(kw_only=True)
class Recommendation:
    """What would be right, with its evidence; see tune/recommend.py for the rules."""

    pipeline: str | None
    task: str
    what: str
    """cpus, memory_bytes, time_ns, storage, node_shape, investigate"""
    current: float | None
    recommended: float | None
    sentence: str
    runs: int
    """Successful executions that it rests on"""
    confidence: str
    """low, medium, high"""
    evidence: dict[str, Any]
    saving: float | None = None
    """Money a run, by the price table; None unknown"""


@dataclasses.dataclass
class Lack:
    """Why nothing is recommended for a task; task None: for the whole run."""

    task: str | None
    why: str


UNNAMED = (
    "runs without a pipeline belong together if command and folder are the same; sluice run --pipeline P names one"
)
"""The sentence beside the lacks of a run without a pipeline"""

_NAMED = 20


def by_reason(lacks: list[Lack]) -> list[tuple[str, str]]:
    """For people: (tasks, why), those of one reason together; tasks is empty for the whole run."""
    names: dict[str, list[str]] = {}
    for x in lacks:
        names.setdefault(x.why, []).extend([x.task] if x.task is not None else [])
    more = {why: f" and {len(tasks) - _NAMED} more" for why, tasks in names.items() if len(tasks) > _NAMED}
    return [(", ".join(tasks[:_NAMED]) + more.get(why, ""), why) for why, tasks in names.items()]


@dataclasses.dataclass
class Timeline:
    """Means over bins of bin_us from start_us on, one number a bin.

    series: cpu_cores, rss_bytes, read_bytes_per_s, write_bytes_per_s, net_rx_bytes_per_s,
    net_tx_bytes_per_s, running_programs, running_tasks. A program's use is spread evenly over each interval
    of the agent (10 s by default), so that shorter bursts of long programs are flattened.
    """

    start_us: int
    bin_us: int
    series: dict[str, list[float]]


@dataclasses.dataclass
class Loss:
    """What the lake does not know of this time: from Agent records and holes in seq."""

    host_name: str
    place: str
    reason: str
    count: int


@dataclasses.dataclass(kw_only=True)
class RunReport:
    """Everything. state: RUNNING, SUCCEEDED, FAILED, UNKNOWN (the lake ends before the run does)."""

    run_id: str
    run_name: str | None
    pipeline: str | None
    engine: str | None
    command: str | None
    work_dir: str | None
    hosts: list[dict[str, Any]]
    """host_id, host_name, cpus, memory_bytes, instance_type, price_per_hour, energy (a HostEnergy)"""
    state: str
    start_time: int
    end_time: int | None
    last_time: int
    """The time of its last record"""
    wall_ns: int
    exit_code: int | None
    exit_signal: int | None
    programs_total: int
    failed_programs: int
    lost_events: int
    parallelism: float | None
    bound: str | None
    demand: str | None = None
    demand_confidence: float | None = None
    waiting_for: str | None = None
    denied: str | None = None
    denied_share: float | None = None
    peak_memory_bytes: int | None = None
    """On the host with most; as a task's"""
    peak_memory_source: str | None = None
    usage: Resources
    efficiency: Efficiency
    cost: Cost
    energy: Energy = dataclasses.field(default_factory=Energy)
    tasks: list[TaskRow]
    tools: list[ToolRow]
    programs: list[ProgramRow]
    programs_left_out: int
    """Programs that are not listed, since there are more than were requested; totals have them"""
    failures: list[Failure]
    observations: list[Observation]
    recommendations: list[Recommendation]
    timeline: Timeline
    gaps: list[tuple[int, int]]
    """Times in which no program of the run used a CPU or moved bytes, start and end"""
    critical_path: list[str]
    """task_ids in order"""
    losses: list[Loss]
    warnings: list[str]
    lacks: list[Lack] = dataclasses.field(default_factory=list)
    """For which of its tasks nothing is recommended, in the order of their names"""
