# SPDX-License-Identifier: Apache-2.0
"""Recommendations as configuration that an engine takes. Comments carry the evidence.

A task without enough evidence, or with a name that the engine does not accept, has a comment with the reason
and nothing else. Names reach the configuration only when they have the engine's own form; in comments they
are made printable, so that no name can end a line and begin a setting. The lines are written by hand: a library for
YAML keeps no comments, and the other forms have none.
"""

from __future__ import annotations

from collections.abc import Callable

from ...spell import spell
from ...tune.advice import Advice
from . import kubernetes, nextflow, slurm, snakemake

FORMATS: dict[str, Callable[[list[Advice], str], str]] = {
    "nextflow": nextflow.render,
    "snakemake": snakemake.render,
    "slurm": slurm.render,
    "kubernetes": kubernetes.render,
}


def render(form: str, advices: list[Advice], source: str) -> str:
    """The configuration for one of FORMATS. source: the lake as the user named it."""
    return FORMATS[form](advices, spell(source))
