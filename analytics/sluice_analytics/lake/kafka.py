# SPDX-License-Identifier: Apache-2.0
"""Kafka's topics as a lake: what a question needs is landed in a temporary lake of files, which an engine then reads.

A topic is read from its beginning, or from the beginning of a scope, to where it ended when the
session began, or at the last refresh(): then only what came since is read. Each message
(Confluent's framing: a byte 0, the schema's id, Avro) is checked by decoding it, and goes as it is into a
file of its schema, day and host. Memory stays bounded; the disk under TMPDIR takes
what is landed. For a cluster, or more than one look, the streaming jobs land topics in Iceberg: --table.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..options import pairs
from . import avro, files
from .columns import COLUMNS
from .registry import Registry
from .session import ALL, Row, Scope, Session

if TYPE_CHECKING:
    import ibis.expr.types as ir

_LATE_MS = 3_600_000
"""How much older than its record a message's timestamp may be (a clock that was set back)."""

_BUFFERED_BYTES = 32 << 20
_STALLED_S = 30.0
_ANSWER_S = 15.0
_NAME = re.compile(r"[A-Za-z0-9._-]+$")


def client_properties(brokers: str, given: Sequence[str]) -> dict[str, str]:
    """librdkafka's configuration, with --kafka-property KEY=VALUE."""
    result = {
        "bootstrap.servers": brokers,
        "group.id": f"sluice-analytics-{secrets.token_hex(4)}",
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "auto.offset.reset": "earliest",
        "queued.max.messages.kbytes": "16384",
        "log_level": "0",
    }
    return result | pairs("--kafka-property", given, "as in security.protocol=SSL")


@dataclasses.dataclass
class _Partition:
    """Of a partition, offsets: its first and its end when we looked, and between them what is landed already."""

    low: int
    begin: int
    until: int
    end: int


class _Files:
    """Writes records as they came into files of a lake, new ones for each landing: one a schema, day and host."""

    def __init__(self, lake: str, topic: str) -> None:
        self._root = os.path.join(lake, "sluice." + topic)
        self._sync = secrets.token_bytes(16)
        self._blocks: dict[str, list[bytes]] = {}
        self._headers: dict[str, bytes] = {}
        self._buffered = 0

    def add(self, schema_id: int, text: str, record: avro.Record, data: bytes) -> None:
        host, day = record["host_id"], files.day_of(record["time"])
        path = os.path.join(self._root, f"date={day}", f"host={host}", f"kafka-{schema_id}-{self._sync.hex()}.avro")
        if path not in self._headers:
            self._headers[path] = files.header_bytes(files.Header(text, "null", self._sync, 0))
        self._blocks.setdefault(path, []).append(data)
        self._buffered += len(data)
        if self._buffered >= _BUFFERED_BYTES:
            self.flush()

    def flush(self) -> None:
        for path, parts in self._blocks.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "ab") as f:
                if f.tell() == 0:
                    f.write(self._headers[path])
                f.write(avro.block(len(parts), b"".join(parts), self._sync))
        self._blocks.clear()
        self._buffered = 0


class KafkaSession(Session):
    """A Session over the topics of a Kafka cluster, on an engine of this machine. See session.Session.

    over: makes the session that reads the temporary lake, such as a DuckSession.
    """

    def __init__(self, brokers: str, registry: str, properties: Sequence[str], over: Callable[[str], Session]) -> None:
        self.source = f"kafka {brokers}"
        self._registry = Registry(registry, patience_s=2.0)
        self._schemas: dict[int, Any] = {}
        self._passed_over: dict[str, collections.Counter[str]] = {}
        self._errors: list[str] = []
        self._stale: set[str] = set()
        self._consumer = self._connect(client_properties(brokers, properties))
        self._lake = ""
        try:
            self._registry.check()
            self._partitions: dict[str, dict[int, _Partition]] = {}
            self._look(COLUMNS)
            if not self._partitions:
                raise UserError(f"{self.source}: has no topics sluice.*", "agents create them: key kafka.topics.create")
            self._lake = tempfile.mkdtemp(prefix="sluice-kafka-")
            for topic in COLUMNS:
                os.mkdir(os.path.join(self._lake, "sluice." + topic))
            self._session = over(self._lake)
        except BaseException:
            self._consumer.close()
            shutil.rmtree(self._lake, ignore_errors=True)
            raise
        self.engine = self._session.engine
        self.warnings = self._session.warnings

    def table(self, topic: str, scope: Scope = ALL) -> ir.Table:
        """See Session.table."""
        if topic in self._stale:
            self._look((topic,))
            self._stale.discard(topic)
        if topic in self._partitions:
            self._land(topic, scope)
        return self._session.table(topic, scope)

    def kept(self, expression: ir.Table) -> ir.Table:
        """See Session.kept."""
        return self._session.kept(expression)

    def rows(self, expression: ir.Table) -> list[Row]:
        """See Session.rows."""
        return self._session.rows(expression)

    def refresh(self) -> None:
        """See Growing.refresh."""
        self._stale = set(COLUMNS)
        self._registry.forget_unknown()

    def close(self) -> None:
        """Ends the engine and removes what was landed."""
        self._session.close()
        self._consumer.close()
        shutil.rmtree(self._lake, ignore_errors=True)

    def _connect(self, properties: dict[str, str]) -> Any:
        try:
            from confluent_kafka import Consumer, KafkaException
        except ModuleNotFoundError as e:
            raise UserError(
                f"--kafka: this Python environment has no module {e.name}", 'pip install "sluice-analytics[kafka]"'
            ) from e
        try:
            return Consumer(properties | {"error_cb": lambda e: self._errors.append(e.str())})
        except KafkaException as e:
            raise UserError(f"--kafka-property: {e.args[0].str()}", "properties are those of librdkafka") from e

    def _look(self, topics: Iterable[str]) -> None:
        """Where the partitions of these topics begin and end by now; of new ones nothing is landed."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            there = self._consumer.list_topics(timeout=_ANSWER_S).topics
            for topic in topics:
                if "sluice." + topic not in there:
                    continue
                known = self._partitions.setdefault(topic, {})
                for number in there["sluice." + topic].partitions:
                    at = TopicPartition("sluice." + topic, number)
                    low, high = self._consumer.get_watermark_offsets(at, timeout=_ANSWER_S)
                    partition = known.setdefault(number, _Partition(low, high, high, high))
                    partition.low, partition.end = low, high
        except KafkaException as e:
            raise self._unreachable(e.args[0].str()) from e

    def _unreachable(self, why: str) -> UserError:
        if not self._errors:
            self._consumer.poll(1.0)  # calls error_cb with librdkafka's errors
        said = next((e for e in self._errors if "brokers are down" not in e), why)
        return UserError(
            f"{self.source}: {said}", "check --kafka, and that --kafka-property has the settings of the agents"
        )

    def _land(self, topic: str, scope: Scope) -> None:
        """Lands what a scope can need of a topic and is not landed yet: before what is, and after it."""
        from confluent_kafka import KafkaException

        known = self._partitions[topic]
        try:
            begins = self._begins("sluice." + topic, known, scope)
            before = {n: (b, known[n].begin) for n, b in begins.items() if b < known[n].begin}
            after = {n: (p.until, p.end) for n, p in known.items() if p.until < p.end}
            if not before and not after:
                return
            out = _Files(self._lake, topic)
            for wanted in (before, after):
                self._read(topic, wanted, out)
            out.flush()
            for number, (begin, _) in before.items():
                known[number].begin = begin
            for number, (_, until) in after.items():
                known[number].until = until
        except KafkaException as e:
            raise self._unreachable(e.args[0].str()) from e
        except OSError as e:
            raise UserError(f"{self._lake}: {e.strerror}", "set TMPDIR to a folder with more room") from e
        finally:
            with contextlib.suppress(KafkaException):
                self._consumer.unassign()
        self._warn()

    def _read(self, topic: str, wanted: dict[int, tuple[int, int]], out: _Files) -> None:
        """Takes the messages of some partitions from an offset on to another, which is not taken."""
        from confluent_kafka import KafkaError, TopicPartition

        name = "sluice." + topic
        passed_over: collections.Counter[str] = self._passed_over.setdefault(topic, collections.Counter())
        self._consumer.assign([TopicPartition(name, n, begin) for n, (begin, _) in wanted.items()])
        reading = set(wanted)
        deadline = time.monotonic() + _STALLED_S
        while reading:
            messages = self._consumer.consume(5000, timeout=0.1)
            if not messages:
                if time.monotonic() > deadline:
                    raise self._unreachable(f"no answer for {_STALLED_S:.0f} s while reading {name}")
                continue
            deadline = time.monotonic() + _STALLED_S
            for message in messages:
                number, error = message.partition(), message.error()
                if number not in reading:
                    continue
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    reading.discard(number)
                elif error is not None:
                    raise self._unreachable(error.str())
                else:
                    if message.offset() < wanted[number][1]:
                        self._take(topic, message, out, passed_over)
                    if message.offset() + 1 >= wanted[number][1]:
                        reading.discard(number)

    def _begins(self, name: str, known: dict[int, _Partition], scope: Scope) -> dict[int, int]:
        """Partition -> the offset from which on there can be records of a scope; its end where there is none."""
        from confluent_kafka import TopicPartition

        lows = {n: p.low for n, p in known.items() if p.end > 0}
        if scope.since_us is None or not lows:
            return lows
        # A message is as old as its delivery, or as its record: never older than that.
        since_ms = max(0, scope.since_us // 1000 - _LATE_MS)
        found = self._consumer.offsets_for_times([TopicPartition(name, n, since_ms) for n in lows], timeout=_ANSWER_S)
        return {p.partition: p.offset if p.offset >= 0 else known[p.partition].end for p in found}

    def _take(self, topic: str, message: Any, out: _Files, passed_over: collections.Counter[str]) -> None:
        data = message.value()
        if data is None:
            passed_over["tombstones"] += 1
            return
        if len(data) < 5 or data[0] != 0:
            passed_over["without a schema's id"] += 1
            return
        number = int.from_bytes(data[1:5], "big")
        text = self._registry.text(number)
        if text is None:
            passed_over[f"whose schema {number} the registry does not have"] += 1
            return
        try:
            if number not in self._schemas:
                self._schemas[number] = avro.parsed(text)
            record = avro.decode(self._schemas[number], data[5:])
            if not _NAME.match(record["host_id"]) or files.record_name(text, "").lower() != topic:
                raise ValueError
            files.day_of(record["time"])
        except (ValueError, KeyError, TypeError, OverflowError, UserError):
            passed_over[f"that do not match schema {number}"] += 1
            return
        out.add(number, text, record, data[5:])

    def _warn(self) -> None:
        self.warnings[:] = [w for w in self.warnings if not w.startswith("kafka: ")]
        for topic, counts in self._passed_over.items():
            for what, number in sorted(counts.items()):
                messages = "tombstones" if what == "tombstones" else f"messages {what}"
                self.warnings.append(f"kafka: sluice.{topic}: {number} {messages} were skipped")
