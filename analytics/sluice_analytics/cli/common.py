# SPDX-License-Identifier: Apache-2.0
"""What all commands share: options of output, exit codes, errors as one sentence."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from ..errors import NotFound, UserError

FORMATS = ("table", "json", "csv")


def add_output(parser: argparse.ArgumentParser, formats: tuple[str, ...] = FORMATS) -> None:
    """--format and -o."""
    parser.add_argument("--format", choices=formats, default="table", help="how the answer is written (default: table)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to (default: standard output)")


def run(command: str, main: Callable[[list[str]], int], argv: list[str] | None) -> int:
    """Runs a command's body: its exit status, 1 where what was asked for is not there, 2 for a user's error."""
    try:
        return main(sys.argv[1:] if argv is None else argv)
    except NotFound as e:
        print(f"{command}: {e}", file=sys.stderr)
        return 1
    except UserError as e:
        print(f"{command}: {e}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def write(path: str | None, text: str) -> None:
    """Text to a file, whole or not at all, or to standard output. UserError where the file cannot be written."""
    if path is None or path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(part, path)
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}") from e
