# SPDX-License-Identifier: Apache-2.0
"""Lines for sbatch (Slurm's sbatch(1); its M are 2^20 bytes)."""

from __future__ import annotations

import re

from ...tune.advice import Advice
from . import comment

_NAME = re.compile(r"[\w.+:-]+")


def render(advices: list[Advice], source: str) -> str:
    """Blocks of #SBATCH lines, one a task: each for the script of that task alone."""
    lines = comment.head("#", source, "Put the lines of a task under the first line of its own batch script.")
    for advice in advices:
        if advice.lack:
            lines += ["", comment.left_out("#", advice, advice.lack)]
            continue
        lines += ["", *comment.task("#", advice)]
        if _NAME.fullmatch(advice.task):
            lines.append(f"#SBATCH --job-name={advice.task}")
        cpus, memory = comment.cpus_of_host(advice), comment.memory(advice.of("memory_bytes"))
        seconds = comment.seconds(advice.of("time_ns"))
        if advice.hosts > 1:
            # How many tasks (ranks of MPI) a node had is not recorded: the CPUs of a node are asked for, not a task's.
            lines.append(f"#SBATCH --nodes={advice.hosts}")
        if cpus is not None:
            lines.append(f"#SBATCH --{'mincpus' if advice.hosts > 1 else 'cpus-per-task'}={cpus}")
        if memory is not None:
            lines.append(f"#SBATCH --mem={memory}M")
        if seconds is not None:
            days, rest = divmod(seconds, 86400)
            lines.append(f"#SBATCH --time={days}-{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}")
    return "\n".join(lines) + "\n"
