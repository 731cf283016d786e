# SPDX-License-Identifier: Apache-2.0
"""What all commands share: options of output, exit codes, errors as one sentence."""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import NotFound, UserError
from ..spell import spell, spell_lines

if TYPE_CHECKING:
    from ..report.document import Document

FORMATS = ("table", "json", "csv")

TYPED = "SLUICE_COMMAND"
"""Environment: `sluice tune`, `sluice sweep` or `sluice lake`, where sluice started the command."""


def typed(name: str) -> str:
    """A command as its user typed it: `sluice tune`, or `sluice-tune` where it was not started by way of sluice."""
    by_sluice = f"sluice {name}"
    return by_sluice if os.environ.get(TYPED) == by_sluice else f"sluice-{name}"


def add_output(parser: argparse.ArgumentParser, formats: tuple[str, ...] = FORMATS) -> None:
    """--format and -o."""
    parser.add_argument("--format", choices=formats, default="table", help="format of the output (default: table)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file (default: standard output)")


def emit(document: Document, args: argparse.Namespace) -> None:
    """Writes an answer by --format and -o; for CSV, --section (where a command has it) names the table."""
    from ..report import machine, terminal

    if args.format == "json":
        text = machine.json_text(document)
    elif args.format == "csv":
        text = machine.csv_text(document, getattr(args, "section", None))
    else:
        is_file = args.output is not None and args.output != "-"
        text = terminal.render(document, color=False if is_file else None)
    write(args.output, text)


def run(command: str, main: Callable[[list[str]], int], argv: list[str] | None) -> int:
    """Runs a command's body: its exit status, 1 where what it names is not there, 2 for a user's error.

    command: the name in front of errors.
    """
    gc.set_threshold(100_000, 20, 100)  # expressions are many small objects and few cycles: a tenth of a command's time
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale without µ gets a question mark
    try:
        try:
            return main(sys.argv[1:] if argv is None else argv)
        except SystemExit:  # --help, which may have been written in part
            sys.stdout.flush()
            raise
    except NotFound as e:
        print(f"{command}: {spell_lines(str(e))}", file=sys.stderr)
        return 1
    except UserError as e:
        print(f"{command}: {spell_lines(str(e))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        _give_up_output()
        return 0
    except OSError as e:
        _give_up_output()
        print(spell(f"{command}: {e.filename or 'standard output'}: {e.strerror}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _give_up_output() -> None:
    """What is still to be written would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write(path: str | None, text: str) -> None:
    """Text to a file, whole or not at all, or to standard output. UserError where the file cannot be written.

    What is there and is no file, such as a pipe or a device, is written to.
    """
    if path is None or path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        else:
            _replace(os.path.realpath(path), text)
    except BrokenPipeError:
        raise
    except OSError as e:
        raise UserError(f"{path}: {e.strerror}") from e


def _replace(path: str, text: str) -> None:
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
