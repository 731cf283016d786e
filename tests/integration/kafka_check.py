#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The consumer that shares no code with the agent: reads all that agents put into Kafka and says whether it is whole.

    kafka_check.py --brokers 127.0.0.1:19090 --registry http://127.0.0.1:19095/apis/ccompat/v7
    kafka_check.py ... --print --follow       the records as JSON lines, for people

confluent-kafka reads, plain urllib asks the registry, fastavro decodes; kafka_rules.py has the rules. From the
beginning of every topic to what was its end when the check began. Exit status: 0 all is well, 1 it is not, 2 usage.
"""
import argparse
import glob
import json
import os
import sys
import time
import urllib.error
import urllib.request

import fastavro
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kafka_rules import TOPICS, Message, Options, Rules

SCHEMAS = os.environ.get("SLUICE_SCHEMAS") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "schemas", "avro")


def read_schemas(folder=SCHEMAS):
    """{topic: text of its .avsc}"""
    found = {}
    for topic in TOPICS:
        with open(os.path.join(folder, topic.partition(".")[2] + ".avsc"), encoding="utf-8") as f:
            found[topic] = f.read()
    return found


def read_dead_letters(folder):
    """{(topic, seq)} of the agent's dead-letter files."""
    found = set()
    for path in glob.glob(os.path.join(folder, "**", "*.avro"), recursive=True):
        with open(path, "rb") as f:
            found.update((r["topic"], r["seq"]) for r in fastavro.reader(f))
    return frozenset(found)


class Registry:
    """ids → texts and subjects, each asked for once."""

    def __init__(self, url):
        self.url = url.rstrip("/")
        self._known = {}

    def _get(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            raise LookupError(f"GET {path}: {e.code} {e.read(200).decode(errors='replace')}") from e

    def schema_of(self, schema_id):
        if schema_id not in self._known:
            text = self._get(f"/schemas/ids/{schema_id}")["schema"]
            subjects = [v["subject"] for v in self._get(f"/schemas/ids/{schema_id}/versions")]
            self._known[schema_id] = (text, subjects)
        return self._known[schema_id]


NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError._UNKNOWN_PARTITION)


def watermarks(consumer, topic, partition, wait_s=30.0):
    """
    (first offset, the one after the last) of a partition. It has no leader for a moment after it was made, and where its
    only broker's heartbeat was late.
    """
    until = time.monotonic() + wait_s
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20, cached=False)
        except KafkaException as e:
            if e.args[0].code() not in NO_LEADER or time.monotonic() > until:
                raise
        time.sleep(0.05)
        consumer.list_topics(topic, timeout=20)  # or the client keeps what it knew


def read_messages(brokers, prefix="", properties=None, follow=False, wait_s=60.0):
    """
    Every Message of prefix + "sluice.*", each partition in its order; follow: never ends. TimeoutError when nothing
    more comes though the end is not reached: a partition without a leader must not look like a short topic.
    """
    config = {"bootstrap.servers": brokers, "group.id": "kafka-check", "enable.auto.commit": False,
              "auto.offset.reset": "error", "enable.partition.eof": False, "log_level": 2, **(properties or {})}
    consumer = Consumer(config)
    try:
        counts = {}
        while True:
            found = consumer.list_topics(timeout=20).topics
            counts = {name: len(t.partitions) for name, t in found.items() if name.startswith(prefix + "sluice.")}
            if counts or not follow:
                break
            time.sleep(1)
        begin, end = {}, {}
        for name, n in counts.items():
            for p in range(n):
                low, high = watermarks(consumer, name, p)
                begin[name, p] = low
                if high > low or follow:
                    end[name, p] = high
        consumer.assign([TopicPartition(name, p, begin[name, p]) for name, p in end])
        waiting = set(end)
        heard = time.monotonic()
        while waiting:
            for m in consumer.consume(1000, 0.5):
                heard = time.monotonic()
                if m.error():
                    if m.error().code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
                        continue
                    raise RuntimeError(str(m.error()))
                partition = (m.topic(), m.partition())
                if follow or m.offset() < end[partition]:
                    yield Message(m.topic(), m.partition(), counts[m.topic()], m.offset(), m.key(), m.value(),
                                  m.headers())
                if not follow and m.offset() >= end[partition] - 1:
                    waiting.discard(partition)
            # The last offsets may hold no message: a marker, or what compaction took.
            if waiting and not follow and time.monotonic() - heard > 1.0:
                for at in consumer.position([TopicPartition(*partition) for partition in waiting]):
                    if at.offset >= end[at.topic, at.partition]:
                        waiting.discard((at.topic, at.partition))
            if waiting and not follow and time.monotonic() - heard > wait_s:
                raise TimeoutError(f"nothing came for {wait_s:.0f} s, yet the end is not reached in {sorted(waiting)}")
    finally:
        consumer.close()


def check(brokers, registry, properties=None, schemas=None, **options):
    """A kafka_rules.Result. options: the fields of kafka_rules.Options."""
    o = Options(schemas=schemas or read_schemas(), **options)
    rules = Rules(Registry(registry).schema_of, o)
    for m in read_messages(brokers, o.prefix, properties):
        rules.feed(m)
    return rules.finish()


def print_records(brokers, registry, prefix, properties, follow):
    rules = Rules(Registry(registry).schema_of, Options(schemas=read_schemas(), prefix=prefix))
    for m in read_messages(brokers, prefix, properties, follow):
        topic = m.topic[len(prefix):]
        record = rules.decode(m, topic, f"{m.topic}[{m.partition}]@{m.offset}")
        print(json.dumps({"topic": m.topic, "partition": m.partition, "offset": m.offset, **(record or {})},
                         default=lambda b: b.decode(errors="backslashreplace")), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brokers", required=True, metavar="HOST:PORT,…")
    parser.add_argument("--registry", required=True, metavar="URL")
    parser.add_argument("--prefix", default="", help="before each topic's name")
    parser.add_argument("--property", action="append", default=[], metavar="NAME=VALUE", help="of librdkafka")
    parser.add_argument("--print", action="store_true", help="print records instead of checking them")
    parser.add_argument("--follow", action="store_true", help="with --print: go on for ever")
    parser.add_argument("--allow-duplicates", type=int, default=0, metavar="N")
    parser.add_argument("--any-first-seq", action="store_true", help="the topics may begin anywhere, as after expiry")
    parser.add_argument("--clock-stepped", action="store_true", help="times may run backwards")
    parser.add_argument("--start-after", type=float, default=1.0, metavar="S", help="records.start_after of the agents (1 s)")
    parser.add_argument("--dead-letters", metavar="DIR", help="records that the agent put aside explain their holes")
    args = parser.parse_args()
    if args.follow and not args.print:
        parser.error("--follow goes with --print")
    if any("=" not in p for p in args.property):
        parser.error("--property takes NAME=VALUE")
    properties = dict(p.split("=", 1) for p in args.property)
    try:
        if args.print:
            print_records(args.brokers, args.registry, args.prefix, properties, args.follow)
            return 0
        result = check(args.brokers, args.registry, properties, prefix=args.prefix, duplicates=args.allow_duplicates,
                       start_after=args.start_after, first_seq=None if args.any_first_seq else 0, ordered_times=not args.clock_stepped,
                       dead_letters=read_dead_letters(args.dead_letters) if args.dead_letters else frozenset())
    except KeyboardInterrupt:
        return 130
    print(result.summary())
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
