# SPDX-License-Identifier: Apache-2.0
"""Identifiers for other systems, made from ours alone: a second export of a run makes the same ones.

A run_id is a UUID where sluice made it; a name that a person gave (`sluice run --run ID`) is made into one
by UUIDv5 (RFC 9562) under a namespace of our own. The W3C trace id of a run is that UUID's 128 bits, a span
id the first 64 bits of a UUIDv5 under it (W3C Trace Context: neither may be all zeros).
"""

from __future__ import annotations

import uuid

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://sluice.invalid/run")


def run_uuid(run_id: str) -> uuid.UUID:
    """The UUID of a run."""
    try:
        return uuid.UUID(run_id)
    except ValueError:
        return uuid.uuid5(_NAMESPACE, run_id)


def task_uuid(run_id: str, task_id: str, attempt: int | None, host_name: str) -> uuid.UUID:
    """The UUID of one execution of a task."""
    return uuid.uuid5(run_uuid(run_id), f"task/{task_id}/{attempt or 1}/{host_name}")


def trace_id(run_id: str) -> bytes:
    """16 bytes."""
    return run_uuid(run_id).bytes


def span_id(run_id: str, *what: str) -> bytes:
    """8 bytes; what: the kind of span and its own id."""
    return uuid.uuid5(run_uuid(run_id), "/".join(what)).bytes[:8]
