# SPDX-License-Identifier: Apache-2.0
"""A Snakemake profile's config.yaml: set-threads and set-resources (Snakemake documentation, "Profiles").

The lists are what both Snakemake 7 and later ones take. mem_mb is 10^6 bytes, runtime minutes.
"""

from __future__ import annotations

import math
import re

from ...tune.advice import Advice
from ...tune.sizes import MEMORY_MARGIN
from . import comment

_MB = 1_000_000
_RULE = re.compile(r"[A-Za-z_]\w*")


def render(advices: list[Advice], source: str) -> str:
    """config.yaml of a profile folder."""
    lines = comment.head("#", source, "Save it as FOLDER/config.yaml and use it with snakemake --profile FOLDER.")
    threads: list[str] = []
    resources: list[str] = []
    for advice in advices:
        why = _unfit(advice)
        if why:
            lines.append(comment.left_out("#", advice, why))
            continue
        lines += comment.task("#", advice)
        cpus, memory, time = comment.cpus_of_host(advice), advice.of("memory_bytes"), advice.of("time_ns")
        if cpus is not None:
            threads.append(f"- {advice.task}={cpus}")
        if memory:
            resources.append(f"- {advice.task}:mem_mb={comment.memory(memory, _MB)}")
            fit = comment.fit_of(memory)
            if fit:
                base, each = fit["base_bytes"] / 1e6 * MEMORY_MARGIN, fit["bytes_per_byte"] * MEMORY_MARGIN
                by_size = f"max({math.ceil(fit['least_bytes'] / 1e6)}, int({base:.0f} + {each:.4g} * input.size_mb))"
                if fit["most_bytes"] is not None:
                    by_size = f"min({math.floor(fit['most_bytes'] / 1e6)}, {by_size})"
                resources += [
                    "# By input, if the bytes that it reads are those of its input (not checked); from Snakemake 8 on:",
                    f'# - "{advice.task}:mem_mb={by_size}"',
                ]
        seconds = comment.seconds(time)
        if seconds is not None:
            resources.append(f"- {advice.task}:runtime={math.ceil(seconds / 60)}")
    if threads:
        lines += ["set-threads:", *threads]
    if resources:
        lines += ["set-resources:", *resources]
    return "\n".join(lines) + "\n"


def _unfit(advice: Advice) -> str:
    if advice.engine != "snakemake":
        return f"is not a rule of Snakemake, but of {advice.engine or 'no engine'}"
    if not advice.is_named_by_engine:
        return "this is the command of a rule that Snakemake ran itself: the rule's name is not known"
    if advice.lack:
        return advice.lack
    return "" if _RULE.fullmatch(advice.task) else "this is not the name of one rule"
