# SPDX-License-Identifier: Apache-2.0
"""Compaction: the Avro files of closed days as few sorted Parquet files, each record once.

<lake>/compact/sluice.<topic>/date=YYYY-MM-DD/ holds the Parquet files of a day, with the columns of
columns.py, sorted by run_id, host_id and time, so that a query for one run reads few row groups; and
manifest.json, written last, which names the Avro files that they stand for. Avro files that came later
are read beside them until the day is compacted again.
"""

from __future__ import annotations

import json
import os

from ..errors import UserError
from . import files
from .session import Scope

MANIFEST = "manifest.json"


def day_folder(lake: str, topic: str, day: str) -> str:
    """Where a compacted day stands."""
    return os.path.join(lake, "compact", "sluice." + topic, "date=" + day)


def parts_of(lake: str, topic: str, scope: Scope) -> tuple[frozenset[str], list[str]]:
    """(Avro files, relative to the lake, that compacted days stand for; the Parquet files of days in scope)."""
    root = os.path.join(lake, "compact", "sluice." + topic)
    first, last = files.days_of(scope)
    covered: set[str] = set()
    parts: list[str] = []
    for day_dir in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        at = os.path.join(root, day_dir)
        manifest = os.path.join(at, MANIFEST)
        day = day_dir.removeprefix("date=")
        if not os.path.exists(manifest) or (first and day < first) or (last and day > last):
            continue
        try:
            with open(manifest) as f:
                content = json.load(f)
            covered.update(content["avro"])
            parts.extend(os.path.join(at, name) for name in content["parquet"])
        except (OSError, ValueError, KeyError) as e:
            raise UserError(f"{manifest}: {e}", "remove that folder and run sluice-lake compact again") from e
    return frozenset(covered), parts
