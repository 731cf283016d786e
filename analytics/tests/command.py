# SPDX-License-Identifier: Apache-2.0
"""Command lines, run in this process: what loading their libraries takes is paid once for all tests.

    done = command.run("tune", "--lake", lake, COLUMNS="100")
    assert done.returncode == 0 and "run r1" in done.stdout

Both streams are files, as a shell's redirection makes them. What only a process of its own shows (its start, what
Python says at its end, signals) is run as one: command.line() is its command line.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, TextIO
from unittest import mock

_CODE = "import sys; from sluice_analytics.cli import {0}; sys.exit({0}.main())"


def line(name: str, *args: str) -> list[str]:
    """A command (tune, sweep, lake) as a process."""
    return [sys.executable, "-c", _CODE.format(name), *args]


@contextlib.contextmanager
def _stream(number: int, name: str, to: Any) -> Iterator[None]:
    """Makes a file the standard stream of this number, for Python and for all else in the process."""
    getattr(sys, name).flush()
    kept = os.dup(number)
    os.dup2(to.fileno(), number)
    stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    try:
        with mock.patch.object(sys, name, stream):
            yield
            stream.flush()
    finally:
        with contextlib.suppress(OSError):
            stream.close()
        os.dup2(kept, number)
        os.close(kept)


def _status(main: Callable[[list[str]], int], args: tuple[str, ...]) -> int:
    """What the process would end with."""
    try:
        return main(list(args))
    except SystemExit as e:
        assert e.code is None or isinstance(e.code, int)
        return e.code or 0


def run(
    name: str, *args: str, cwd: str | os.PathLike[str] | None = None, stdout: TextIO | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command; env is added to this process's. It leaves no file of its own behind.

    stdout: a file that takes the place of the one that is read and returned.
    """
    main = importlib.import_module(f"sluice_analytics.cli.{name}").main
    plain = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "SLUICE_COMMAND")}
    with (
        contextlib.chdir(cwd or os.curdir),
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryDirectory() as room,
        mock.patch.dict(os.environ, plain | env, clear=True),
        mock.patch.object(sys, "argv", [f"sluice-{name}", *args]),
        mock.patch.object(tempfile, "tempdir", room),
    ):
        with _stream(1, "stdout", stdout or out), _stream(2, "stderr", err):
            status = _status(main, args)
        left = os.listdir(room)
        out.seek(0)
        err.seek(0)
        said = out.read().decode(), err.read().decode()
    assert left == [], left
    assert "Traceback" not in said[1], said[1]
    return subprocess.CompletedProcess([name, *args], status, *said)
