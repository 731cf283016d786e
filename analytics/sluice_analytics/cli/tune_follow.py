# SPDX-License-Identifier: Apache-2.0
"""`sluice tune --follow`: looks at a run again and again until it ends."""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .. import units
from ..errors import UserError
from ..report import terminal
from ..report.follow import events, screen, status
from ..report.run import ended_by
from ..spell import spell
from ..tune import find, run
from ..tune.follow import Looks, Watch, choose, look

GRACE_S = 5.0
"""How long a run may take to appear (seconds)"""


def main(args: argparse.Namespace) -> int:
    """Follows until the run ends: 0 where it succeeded, 1 where it failed or its records stopped."""
    if args.format != "table" or args.output:
        raise UserError(
            "--follow prints to the terminal", "omit --format and -o; sluice tune RUN writes a report afterwards"
        )
    looks = Looks(args)
    try:
        chosen = _wait(looks, args.run)
        watch = Watch(chosen.run_id)
        out = terminal.console(sys.stdout)
        name = chosen.first("pipeline")
        of = f" of {name}" if name else ""
        _say(out, f"run {chosen.run_id}{of}, begun {units.clock(chosen.start_time)}")
        is_screen = sys.stdout.isatty()
        state = (_on_screen if is_screen else _as_lines)(out, looks, watch, chosen, args.interval)
        return _finish(out, looks, watch, state)
    finally:
        looks.close()


def _wait(looks: Looks, wanted: str | None) -> find.Run:
    """choose(), which gives a run that was started just now some time to appear."""
    until = time.monotonic() + GRACE_S
    while True:
        try:
            return choose(looks.session(), wanted)
        except UserError:
            if time.monotonic() >= until:
                raise
            looks.close()
        time.sleep(0.5)


def _say(out: Console, line: str, style: str = "") -> None:
    """Prints a line that only the terminal wraps."""
    out.print(Text(spell(line), style=style), soft_wrap=True)


def _state(watch: Watch) -> str:
    """The run's state by what is known; it runs as long as records come."""
    return watch.run.state(find.now(), bool(watch.count("failed")) if watch.steps else None)


def _as_lines(out: Console, looks: Looks, watch: Watch, chosen: find.Run, interval: float) -> str:
    said: dict[int, str] = {}
    while True:
        new = look(looks.session(), watch, chosen.start_time)
        for line in events(new, said):
            _say(out, line)
        state = _state(watch)
        if new:
            _say(out, "  " + status(watch, find.now()))
        if state != "RUNNING":
            return state
        out.file.flush()
        time.sleep(interval)


def _on_screen(out: Console, looks: Looks, watch: Watch, chosen: find.Run, interval: float) -> str:
    said: dict[int, str] = {}
    with Live(console=out, auto_refresh=False, transient=True) as live:
        while True:
            for line in events(look(looks.session(), watch, chosen.start_time), said):
                if " failed after " in line or " stalled: " in line:
                    _say(live.console, line, "red" if " failed after " in line else "yellow")
            state = _state(watch)
            live.update(screen(watch, find.now()), refresh=True)
            if state != "RUNNING":
                return state
            time.sleep(interval)


def _finish(out: Console, looks: Looks, watch: Watch, state: str) -> int:
    """Says how it ended, and why where it failed."""
    r = watch.run
    if state == "UNKNOWN" and r.end_time is None:
        since = units.clock(r.last_time)
        _say(out, f"UNKNOWN: no records since {since}: the agent or the host has stopped")
        return 1
    how = ended_by(r.exit_code, r.exit_signal)
    counts = f"{watch.count('finished')} finished, {watch.count('failed')} failed"
    _say(out, f"{state}{f', {how}' if how else ''} after {units.duration(r.wall_ns)}: {counts}")
    if state != "FAILED":
        return 0 if state == "SUCCEEDED" else 1
    report = run.load(looks.session(), r.run_id, programs_limit=0, with_recommendations=False)
    for failure in report.failures:
        where = f"{failure.task}: " if failure.task else ""
        again = "; a later attempt succeeded" if failure.recovered else ""
        _say(out, f"  {where}{failure.sentence}{again}")
    _say(out, f"more: sluice tune {r.run_id}")
    return 1
