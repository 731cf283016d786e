# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them, and back. Null is a dash, never 0."""

import datetime
import signal

DASH = "-"
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


# Written here, since rich.filesize has decimal units alone, and no library of ours writes durations so short.


def size(n: float | None) -> str:
    """Bytes with a binary unit and two or three digits: 1536 -> '1.5 KiB'."""
    if n is None:
        return DASH
    value = float(n)
    for unit in _SIZES:
        if abs(value) < 1024 or unit == _SIZES[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 9.95 else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def duration(ns: float | None) -> str:
    """Nanoseconds for people: 412 ms, 14.2 s, 3m07s, 2h05m, 3d04h."""
    if ns is None:
        return DASH
    s = ns / 1e9
    if abs(s) < 0.0009995:
        return f"{ns / 1e3:.0f} µs"
    if abs(s) < 0.9995:
        return f"{s * 1e3:.0f} ms"
    if abs(s) < 59.95:
        return f"{s:.1f} s"
    whole = round(s)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    whole = round(s / 60)
    if whole < 48 * 60:
        return f"{whole // 60}h{whole % 60:02d}m"
    whole = round(s / 3600)
    return f"{whole // 24}d{whole % 24:02d}h"


def energy(joules: float | None) -> str:
    """Joules for people: 12.5 J, 480 J, 3.1 Wh, 2.40 kWh."""
    if joules is None:
        return DASH
    if joules < 999.5:
        return f"{joules:.1f} J" if joules < 99.95 else f"{joules:.0f} J"
    wh = joules / 3600
    if wh < 999.5:
        return f"{wh:.2f} Wh" if wh < 9.995 else f"{wh:.0f} Wh"
    return f"{wh / 1000:.2f} kWh"


def percent(share: float | None) -> str:
    """A share of 1 as whole percent."""
    return DASH if share is None else f"{share * 100:.0f}%"


def money(amount: float | None, currency: str = "USD") -> str:
    """An amount; unknown stays unknown."""
    if amount is None:
        return "unknown"
    return f"{amount:.2f} {currency}" if abs(amount) >= 0.095 else f"{amount:.4f} {currency}"


def counted(n: int, noun: str) -> str:
    """A number and its noun: 1 run, 3 runs."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def is_signal(number: int) -> bool:
    """Has a signal this number, and a name?"""
    return number in signal.Signals.__members__.values()


def signal_name(number: int) -> str:
    """SIGTERM for 15; 'signal 40' where it has no name."""
    return signal.Signals(number).name if is_signal(number) else f"signal {number}"


def rfc3339(us: int | None) -> str | None:
    """Microseconds since 1970 UTC as RFC 3339 with microseconds, as `sluice cat` prints them."""
    if us is None:
        return None
    t = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=us)
    return t.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def clock(us: int | None) -> str:
    """A time for people: UTC, to the second."""
    text = rfc3339(us)
    return DASH if text is None else text[:10] + " " + text[11:19] + "Z"


_SINCE = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def parse_duration_us(text: str) -> int:
    """'90s', '15m', '6h', '7d', '2w' in microseconds; ValueError names what is allowed."""
    number, unit = text[:-1], text[-1:]
    if unit not in _SINCE or not number.replace(".", "", 1).isdigit():
        raise ValueError(f'"{text}" is not a duration; write a number and s, m, h, d or w, such as 7d')
    return int(float(number) * _SINCE[unit] * 1_000_000)
