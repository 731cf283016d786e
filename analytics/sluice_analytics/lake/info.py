# SPDX-License-Identifier: Apache-2.0
"""What a lake holds, topic by topic."""

from __future__ import annotations

import dataclasses
import os

from . import compact, files
from .duck import DuckSession
from .session import ALL


@dataclasses.dataclass(frozen=True)
class TopicInfo:
    """A topic. records: each once. first, last: microseconds since 1970 UTC, None where there is no record.

    missing: how many seq are absent between an agent's first and last, over all agents: records that were
    lost, or deleted with their day. bytes: of all files, also Avro files that compaction replaced.
    """

    topic: str
    days: int
    compacted_days: int
    avro_files: int
    open_files: int
    parquet_files: int
    bytes: int
    records: int
    first: int | None
    last: int | None
    hosts: int
    agents: int
    missing: int


def topic_info(session: DuckSession, topic: str) -> TopicInfo:
    """Looks at all files of a topic and, for their records, at host, agent, seq and time of each."""
    lake = session.source
    avro = files.avro_files(lake, topic, ALL, headers=session.stage.headers)
    opened = files.open_files(lake, topic, ALL)
    days = compact.days_in(lake, topic, ALL)
    parquet = [path for day in days for path in day.parquet]
    size = 0
    for path in (*(f.path for f in avro), *(f.path for f in opened), *parquet):
        size += os.stat(path).st_size if os.path.exists(path) else 0
    agents = session.connection.execute(
        "SELECT agent_id, count(*), min(seq), max(seq), min(time), max(time), list(DISTINCT host_id) "
        f"FROM ({session.select(topic, ALL)}) GROUP BY host_id, agent_id"
    ).fetchall()
    return TopicInfo(
        topic=f"sluice.{topic}",
        days=len({f.day for f in avro} | {f.day for f in opened} | {d.day for d in days}),
        compacted_days=len(days),
        avro_files=len(avro),
        open_files=len(opened),
        parquet_files=len(parquet),
        bytes=size,
        records=sum(a[1] for a in agents),
        first=min((a[4] for a in agents), default=None),
        last=max((a[5] for a in agents), default=None),
        hosts=len({host for a in agents for host in a[6]}),
        agents=len(agents),
        missing=sum(a[3] - a[2] + 1 - a[1] for a in agents),
    )
