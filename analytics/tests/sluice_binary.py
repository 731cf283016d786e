# SPDX-License-Identifier: Apache-2.0
"""The sluice that this tree built: tests record with it, and read lakes with `sluice cat`."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def path() -> str:
    """Where it is: $SLUICE, else the newest build. Skips the test where there is none."""
    named = os.environ.get("SLUICE")
    built = sorted(_ROOT.glob("build/*/sluice"), key=lambda p: p.stat().st_mtime)
    found = named or (str(built[-1]) if built else None)
    if found is None:
        pytest.skip("no sluice is built")
    return found


def cat(lake: str | os.PathLike[str], topic: str) -> list[dict[str, Any]]:
    """Records of a topic as `sluice cat --raw` prints them."""
    done = subprocess.run(
        [path(), "cat", "--raw", "--topic", topic, os.fspath(lake)], check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def record(lake: str | os.PathLike[str], *command: str, pipeline: str = "test", interval: str = "10s") -> int:
    """`sluice run` of a command into a lake: its exit status. Skips the test where it may not load its probes."""
    if os.geteuid() != 0:
        pytest.skip("only root records")
    done = subprocess.run(
        [
            path(), "run", "--as-root", "--quiet", "--pipeline", pipeline, "--interval", interval,
            "--lake", os.fspath(lake), "--", *command,
        ],
        capture_output=True,
        text=True,
    )  # fmt: skip
    if done.returncode == 125:
        pytest.skip(f"sluice cannot record here: {done.stderr.strip()}")
    return done.returncode
