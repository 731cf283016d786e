# SPDX-License-Identifier: Apache-2.0
"""A run as Parquet files, for any notebook: tasks, tools, programs, one file each."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import UserError
from ..tune.run_report import RunReport


def _flat(row: Any) -> dict[str, Any]:
    """Nested dataclasses as columns: usage.cpu_user_ns -> cpu_user_ns, all others with their name in front."""
    flat: dict[str, Any] = {}
    for key, value in dataclasses.asdict(row).items():
        if isinstance(value, dict):
            flat.update({k if key == "usage" else f"{key}_{k}": v for k, v in value.items()})
        else:
            flat[key] = value
    return flat


def write(report: RunReport, folder: str) -> dict[str, int]:
    """Writes tasks.parquet, tools.parquet and programs.parquet; {file: rows}. Times are timestamps in UTC."""
    written = {}
    try:
        os.makedirs(folder, exist_ok=True)
        for name in ("tasks", "tools", "programs"):
            rows = [_flat(r) for r in getattr(report, name)]
            table = pa.Table.from_pylist(rows)
            for column in ("start_time", "end_time"):
                if column in table.column_names:
                    at = table.column_names.index(column)
                    table = table.set_column(at, column, table.column(column).cast(pa.timestamp("us", tz="UTC")))
            table = table.append_column("run_id", pa.array([report.run_id] * len(rows), pa.string()))
            path = os.path.join(folder, name + ".parquet")
            pq.write_table(table, path + ".part", compression="zstd")
            os.replace(path + ".part", path)
            written[path] = len(rows)
    except OSError as e:
        raise UserError(f"{folder}: {e.strerror or e}") from e
    return written
