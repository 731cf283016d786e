# SPDX-License-Identifier: Apache-2.0
"""Patches of Kubernetes Jobs, one a task: requests and limits (Kubernetes, "Resource Management for Pods").

Memory is requested and limited alike. CPUs are requested and not limited: a limit throttles a task that could
use a CPU that is idle. The deadline is the pod's: it counts from the time at which the kubelet accepts the pod, before
images are pulled. That of the Job would count the wait for a node and all retries against the time of one execution.
"""

from __future__ import annotations

import re

from ...tune.advice import Advice
from . import comment


def name_of(task: str) -> str:
    """A task's name as a label of RFC 1123: lower case letters, digits and dashes, at most 63."""
    return re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")[:63].strip("-")


def render(advices: list[Advice], source: str) -> str:
    """A stream of YAML documents, for kubectl patch or the patches of a kustomization."""
    lines = comment.head("#", source, "Patches of Jobs: metadata.name and the container's name are the task's.")
    taken: set[str] = set()
    for advice in advices:
        name = name_of(advice.task)
        if advice.lack:
            lines.append(comment.left_out("#", advice, advice.lack))
        elif not name or name in taken:
            lines.append(comment.left_out("#", advice, "no valid name for Kubernetes, or that of another task"))
        else:
            taken.add(name)
            lines += ["---", *comment.task("#", advice), *_patch(name, advice)]
    return "\n".join(lines) + "\n"


def _patch(name: str, advice: Advice) -> list[str]:
    cpus, memory = comment.cpus_of_host(advice), comment.memory(advice.of("memory_bytes"))
    seconds = comment.seconds(advice.of("time_ns"))
    lines = ["apiVersion: batch/v1", "kind: Job", f'metadata: {{name: "{name}"}}', "spec:", "  template:", "    spec:"]
    if seconds is not None:
        lines.append(f"      activeDeadlineSeconds: {seconds}")
    if cpus is None and memory is None:
        return lines
    lines += ["      containers:", f'      - name: "{name}"', "        resources:", "          requests:"]
    if cpus is not None:
        lines.append(f'            cpu: "{cpus}"')
    if memory is not None:
        lines += [f"            memory: {memory}Mi", "          limits:", f"            memory: {memory}Mi"]
    return lines
