# SPDX-License-Identifier: Apache-2.0
"""The sluice that this tree built: tests record with it, and read lakes with `sluice cat`."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def path() -> str:
    """Where it is: $SLUICE, else in the build that $SLUICE_BUILD names, else in build/release."""
    build = pathlib.Path(os.environ.get("SLUICE_BUILD") or _ROOT / "build" / "release")
    found = pathlib.Path(os.environ.get("SLUICE") or build / "sluice").absolute()
    assert found.exists(), f"{found} is not built; run: cmake --preset release && cmake --build --preset release"
    return str(found)


def cat(lake: str | os.PathLike[str], topic: str) -> list[dict[str, Any]]:
    """Records of a topic as `sluice cat --raw` prints them."""
    done = subprocess.run(
        [path(), "cat", "--raw", "--topic", topic, os.fspath(lake)], check=True, capture_output=True, text=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def line(lake: str | os.PathLike[str], *command: str, pipeline: str = "test", interval: str = "10s") -> list[str]:
    """The command line of `sluice run` of a command into a lake."""
    return [
        path(), "run", "--as-root", "--quiet", "--pipeline", pipeline, "--interval", interval,
        "--lake", os.fspath(lake), "--", *command,
    ]  # fmt: skip


def record(lake: str | os.PathLike[str], *command: str, pipeline: str = "test", interval: str = "10s") -> int:
    """Records a command into a lake: its exit status."""
    done = subprocess.run(
        line(lake, *command, pipeline=pipeline, interval=interval), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert done.returncode != 125, f"sluice cannot record: {done.stderr.decode(errors='replace').strip()}"
    return done.returncode
