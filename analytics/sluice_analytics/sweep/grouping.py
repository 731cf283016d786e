# SPDX-License-Identifier: Apache-2.0
"""The values of --by. This module imports no library, so that the command line is parsed without one."""

from __future__ import annotations

from ..errors import UserError

PLAIN = ("host", "day")
"""Values of --by that add up host time: the classes of attribution"""

OF_PIECES = {
    "run": "run_id",
    "pipeline": "pipeline",
    "task": "task",
    "tool": "tool",
    "sample": "sample",
    "comm": "comm",
}
"""Values of --by that each piece of a program has (model/activity), and their columns."""

OF_PROGRAMS = {
    "container": "container", "user": "uid", "scheduler": "scheduler", "job_id": "job_id", "job_step": "job_step",
    "k8s_pod_uid": "k8s_pod_uid", "k8s_pod_name": "k8s_pod_name", "k8s_namespace": "k8s_namespace",
    "k8s_container_name": "k8s_container_name", "container_id": "container_id", "container_name": "container_name",
    "container_image": "container_image", "container_runtime": "container_runtime", "cgroup": "cgroup", "exe": "exe",
    "cwd": "cwd", "trace_id": "trace_id",
}  # fmt: skip
"""Values of --by that only the program's own record has, and their columns. `sluice ctl tag` sets run, pipeline, task
and sample themselves."""

ALL = (*PLAIN, *OF_PIECES, *OF_PROGRAMS)


def check(by: str) -> str:
    """Returns by, if --by takes it; UserError lists what it takes."""
    if by not in ALL:
        raise UserError(f"--by {by}: records have no such field", "choose one of " + ", ".join(ALL))
    return by
