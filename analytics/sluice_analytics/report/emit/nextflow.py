# SPDX-License-Identifier: Apache-2.0
"""nextflow.config: process selectors (Nextflow documentation, "Process selectors"; its MB are 2^20 bytes)."""

from __future__ import annotations

import re

from ...tune.advice import Advice
from ...tune.sizes import MEMORY_MARGIN
from . import comment

_PROCESS = re.compile(r"[A-Za-z_]\w*(:[A-Za-z_]\w*)*")
"""A process, with the workflows that it is called in before it"""


def render(advices: list[Advice], source: str) -> str:
    """A configuration for -c, or to be put into nextflow.config."""
    lines = comment.head("//", source, "Use it with nextflow run -c FILE, or put it into nextflow.config.")
    lines.append("process {")
    for advice in advices:
        lines += [f"    {line}" if line else "" for line in _process(advice)]
    return "\n".join([*lines, "}"]) + "\n"


def _process(advice: Advice) -> list[str]:
    if advice.engine != "nextflow":
        return [comment.left_out("//", advice, f"is not a process of Nextflow, but of {advice.engine or 'no engine'}")]
    if advice.lack:
        return [comment.left_out("//", advice, advice.lack)]
    if not advice.is_named_by_engine or not _PROCESS.fullmatch(advice.task):
        return [
            comment.left_out(
                "//", advice, "this is not the name of a process; record with sluice run, or with engines.headers"
            )
        ]
    lines = [*comment.task("//", advice), f"withName: '{advice.task}' {{"]
    cpus, memory, seconds = comment.cpus_of_host(advice), advice.of("memory_bytes"), advice.of("time_ns")
    if cpus is not None:
        lines.append(f"    cpus = {cpus}")
    if memory:
        lines.append(f"    memory = '{comment.memory(memory)} MB'")
        fit = comment.fit_of(memory)
        if fit:
            base, each = fit["base_bytes"] * MEMORY_MARGIN, fit["bytes_per_byte"] * MEMORY_MARGIN
            by_size = f"Math.max({fit['least_bytes']}L, ({base:.0f} + {each:.4g} * X.size()) as long)"
            if fit["most_bytes"] is not None:
                by_size = f"Math.min({fit['most_bytes']}L, {by_size})"
            lines += [
                "    // By input, if the bytes that it reads are those of its input file X (not checked):",
                f"    // memory = {{ nextflow.util.MemoryUnit.of({by_size}) }}",
            ]
    if seconds:
        lines.append(f"    time = '{comment.seconds(seconds)}s'")
    return [*lines, "}"]
