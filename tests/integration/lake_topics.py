# SPDX-License-Identifier: Apache-2.0
"""Records of a made-up lake as messages of Kafka, and what a topic holds, by neither Spark nor Flink."""
import io
import json
import os
import random
import re
import struct
import subprocess
import sys

import fastavro
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka_check import watermarks

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
STREAMING = os.path.join(ROOT, "analytics", "streaming")
sys.path.insert(0, os.path.join(ROOT, "analytics", "tests"))

import lakes  # noqa: E402


def environment(name):
    """The Python of build/analytics/NAME, made if it is not there."""
    subprocess.run([os.path.join(ROOT, "dev", "analytics"), name], check=True)
    return os.path.join(ROOT, "build", "analytics", name, "bin", "python")


# Another reader than what wrote them: DuckDB, over the newest metadata of a table's folder.
_QUERY = """
import json, sys, duckdb
from sluice_analytics.lake.duck import load_extension
con = duckdb.connect()
con.execute("SET TimeZone = 'UTC'")
con.execute("SET enable_progress_bar = false")  # python -c counts as a terminal, and what is slow gets a bar
for name in ("avro", "iceberg"):
    load_extension(con, name)
print(json.dumps(con.execute("SELECT " + sys.argv[2] + " FROM iceberg_scan('" + sys.argv[1] + "')").fetchall()))
"""


def query(python, table, select):
    """Rows of a SELECT over an Iceberg table in a folder; None where there is no table yet."""
    at = os.path.join(table, "metadata")
    # One that is being written has another name yet.
    found = [n for n in os.listdir(at) if re.fullmatch(r"v\d+\.metadata\.json", n)] if os.path.isdir(at) else []
    if not found:
        return None
    newest = max(found, key=lambda n: int(n[1:].partition(".")[0]))
    done = subprocess.run([python, "-c", _QUERY, os.path.join(at, newest), select], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Topics:
    """Topics of a stack, written as the agent writes them: framing, key, the record's time as the message's."""

    def __init__(self, stack, partitions=3, prefix="sluice."):
        self.stack = stack
        self.prefix = prefix
        self._partitions = partitions
        self._made = set()
        self._schemas = {}
        self._producer = Producer({"bootstrap.servers": stack.brokers, "log_level": 2, "linger.ms": 50})

    def name(self, topic):
        """Its name in Kafka; made when it is asked for first."""
        name = self.prefix + topic
        if name not in self._made:
            if name not in self.stack.topics():
                self.stack.create_topic(name, self._partitions, {"retention.ms": "-1"})  # records of any day
            self._made.add(name)
        return name

    def schema_id(self, topic, schema=None):
        """The id of a schema of a topic, registered if it is new."""
        text = json.dumps(schema) if schema else lakes.schema_text(topic)
        body = self.stack.servers.ask_registry(f"/subjects/{self.prefix}{topic}-value/versions", {"schema": text})
        return body["id"]

    def write(self, topic, records, schema=None, schema_id=None):
        """Records as messages, in this order; schema: a newer one than schemas/avro has."""
        schema_id = schema_id or self.schema_id(topic, schema)
        parsed = fastavro.parse_schema(json.loads(json.dumps(schema)) if schema else lakes.schema_of(topic))
        for r in records:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, r)
            self.write_bytes(topic, struct.pack(">bI", 0, schema_id) + out.getvalue(),
                             f"{r['host_id']}:{r['run_id'] or ''}", r["time"] // 1000)
        self.flush()

    def write_bytes(self, topic, value, key="nobody:", timestamp_ms=0):
        self._producer.poll(0)
        while True:
            try:
                self._producer.produce(self.name(topic), value, key, timestamp=timestamp_ms)
                return
            except BufferError:
                self._producer.poll(0.1)

    def flush(self):
        if self._producer.flush(60):
            raise AssertionError("messages were not delivered within a minute")

    def messages(self, topic):
        """[(key, value)] of all that a topic holds."""
        return list(messages(self.stack.brokers, self.prefix + topic))

    def records(self, topic):
        """All records of a topic that decode, repeated ones too, times as integers."""
        found = []
        for _, value in self.messages(topic):
            if not value or value[0] != 0 or len(value) < 6:
                continue
            number = struct.unpack(">I", value[1:5])[0]
            if number not in self._schemas:
                try:
                    text = self.stack.servers.ask_registry(f"/schemas/ids/{number}")["schema"]
                except Exception:
                    self._schemas[number] = None
                    continue
                self._schemas[number] = fastavro.parse_schema(_plain(json.loads(text)))
            if self._schemas[number] is None:
                continue
            try:
                found.append(fastavro.schemaless_reader(io.BytesIO(value[5:]), self._schemas[number], None))
            except (EOFError, ValueError, IndexError, UnicodeDecodeError):
                continue
        return found


def _plain(schema):
    """Without logical types: fastavro then counts microseconds."""
    if isinstance(schema, list):
        return [_plain(s) for s in schema]
    if isinstance(schema, dict):
        return {k: _plain(v) for k, v in schema.items() if k != "logicalType"}
    return schema


def messages(brokers, topic):
    """(key, value) of all that a topic holds now; nothing where there is no such topic."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "check", "enable.auto.commit": False,
                         "isolation.level": "read_committed", "enable.partition.eof": True, "log_level": 2})
    try:
        known = consumer.list_topics(timeout=20).topics
        for p in known[topic].partitions if topic in known else ():
            low, high = watermarks(consumer, topic, p)
            consumer.assign([TopicPartition(topic, p, low)])
            while low < high:
                m = consumer.poll(20)
                if m is None:
                    raise AssertionError(f"{topic} [{p}] ended at {low}, before {high}")
                if m.error():
                    if m.error().code() != KafkaError._PARTITION_EOF:
                        raise AssertionError(str(m.error()))
                    break  # the rest are a transaction's own marks
                low = m.offset() + 1
                yield m.key(), m.value()
    finally:
        consumer.close()


def with_field(topic, name, kind, default):
    """The schema of a topic as a later version may be: with one field more."""
    schema = lakes.schema_of(topic)
    schema["fields"].append({"name": name, "type": kind, "default": default})
    return schema


def shuffled_with_repeats(records, share, seed):
    """The same, some of them twice, in a random order."""
    rng = random.Random(seed)
    mixed = records + rng.sample(records, int(len(records) * share))
    rng.shuffle(mixed)
    return mixed
