# SPDX-License-Identifier: Apache-2.0
"""When an observation becomes a finding: every limit of sweep, with its meaning. Ours, not a standard's.

A finding reports what was seen and for how long; these limits only keep out what is small. The
first five and spinning are options of the command.
"""

from __future__ import annotations

import dataclasses

from ..model.activity import CALLED_BYTES_PER_S, are_work
from .period import HOUR_US

MINUTE_US = 60_000_000


@dataclasses.dataclass(frozen=True)
class Thresholds:
    """Times in microseconds, cores as mean CPUs in use, shares of 1."""

    idle_cores: float = 0.05
    """A run, task or worker that uses fewer cores than this, its programs together, does nothing (--idle-cores)"""

    least_us: int = 30 * MINUTE_US
    """Shorter waits, silences and polls are not reported (--least)"""

    after_run_us: int = 15 * MINUTE_US
    """A host may stay up for this long after its last run; a container after its last task (--after-run)"""

    busy_share: float = 0.10
    """A host with this part of its CPUs busy while it has no run is busy with something else (--busy-share)"""

    oversized_share: float = 0.50
    """A host whose peaks of CPU and memory both stay under this part of it is over-sized (--oversized-share)"""

    host_bytes_per_s: int = CALLED_BYTES_PER_S
    """A host that moves so many bytes of disks and network works, whatever its CPUs do: a data mover uses few. Logs,
    monitoring and the agent, which every host has, stay below"""

    forgotten_us: int = HOUR_US
    """A host is forgotten when it was watched for this long without a run"""

    oversized_us: int = 6 * HOUR_US
    """Peaks over less watched time are no evidence on a host"""

    quiet_cores: float = 0.01
    """A program that uses fewer cores than this in an interval makes no progress by CPU: engines and shells
    that poll stay below, a program that computes does not"""

    quiet_bytes_per_s: int = 1024
    """A program that moves fewer storage and network bytes makes no progress by I/O: an engine's log does that"""

    spike_share: float = 0.25
    """A spike takes a host to this part of its CPUs or more"""

    spike_us: int = 5 * MINUTE_US
    """What is busy for longer is sustained work, no spike"""

    spike_least: int = 4
    """Fewer spikes show no period"""

    spike_jitter: float = 0.20
    """Spikes are periodic when half of the distances between them are no further than this part from their median"""

    spinning: bool = False
    """Report programs that spin (--spinning): a simulation between two checkpoints looks the same"""

    spin_cores: float = 0.50
    """A program that spins keeps this much of a CPU busy"""

    spin_us: int = 5 * MINUTE_US
    """For at least this long"""

    spin_bytes: int = 1 << 20
    """and moves no more bytes in that time than this, by any read, write or socket: what it takes to start"""

    storm_per_s: float = 1000.0
    """A program with so many read and write calls or context switches a second, with next to no bytes to show, spins"""

    storm_bytes_per_call: float = 1.0
    """Next to no bytes: fewer than this for each read or write call"""

    poll_per_s: float = 1.0
    """A program that wakes at least this often while it uses under idle_cores and moves nothing polls"""

    poll_sleeps: int = 20
    """A program that starts `sleep` at least this often polls"""

    failures: int = 3
    """A task that failed this often, in attempts or in runs, failed again and again"""

    residue_share: float = 0.01
    """Parts that miss a host's capacity by more than this are reported as a warning"""

    def moves(self, moved: float, called: float, us: float) -> bool:
        """Did what moved so many bytes in that time (called: by read and write calls) make progress by I/O?"""
        return moved >= self.quiet_bytes_per_s * us / 1e6 or are_work(called, us)

    def host_moves(self, moved: float | None, us: float) -> bool:
        """Did a host that moved so many bytes in that time work? None: unknown, so that its CPUs alone decide."""
        return moved is not None and us > 0 and moved >= self.host_bytes_per_s * us / 1e6


WORKERS = (
    "dask-worker", "dask worker", "distributed.cli.dask_worker", "celery", "rq worker", "raylet", "ray::IDLE",
    "slurmstepd", "condor_starter", "pbs_mom", "airflow worker", "prefect worker", "luigid", "cromwell", "ipengine",
    "jupyter-kernel", "ipykernel_launcher", "spark-worker", "CoarseGrainedExecutorBackend",
)  # fmt: skip
"""Names of programs that wait for work: what begins with one of them as tool, comm, exe's base name, or has it
among its arguments, is a worker. Programs of other names are found by the run or task that does nothing."""
