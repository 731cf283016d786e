# SPDX-License-Identifier: Apache-2.0
"""A lake's records in a real broker, framed as the agent frames them."""

from __future__ import annotations

import io
import json
import pathlib
import urllib.request
import zlib
from collections.abc import Iterable
from typing import Any

import fastavro
from confluent_kafka import Producer
from lakes import TOPICS
from stack import Stack


def register(stack: Stack, topic: str, schema: dict[str, Any]) -> int:
    """A schema's id. Each has a subject of its own: what the future brings need not fit what was before."""
    text = json.dumps(schema)
    request = urllib.request.Request(
        f"{stack.registry_url}/subjects/{topic}-{zlib.crc32(text.encode())}/versions",
        json.dumps({"schema": text}).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request) as response:
        return int(json.load(response)["id"])


def create(stack: Stack) -> None:
    """The topics, whose messages stay however old their timestamps are."""
    for topic in TOPICS:
        stack.create_topic(f"sluice.{topic}", 3, {"message.timestamp.type": "CreateTime", "retention.ms": "-1"})


def deliver(stack: Stack, files: Iterable[pathlib.Path]) -> None:
    """Every record of a lake's files with its file's own schema, as a message that is as old as the record."""
    producer = Producer({"bootstrap.servers": stack.brokers})
    for path in files:
        topic = path.parts[-4].removeprefix("sluice.")
        with open(path, "rb") as f:
            reader = fastavro.reader(f)
            schema = reader.writer_schema
            number = register(stack, topic, {k: v for k, v in schema.items() if not k.startswith("__")})
            for record in reader:
                out = io.BytesIO()
                fastavro.schemaless_writer(out, schema, record)
                producer.produce(
                    f"sluice.{topic}",
                    b"\0" + number.to_bytes(4, "big") + out.getvalue(),
                    key=f"{record['host_id']}:{record['run_id'] or ''}",
                    timestamp=int(record["time"].timestamp() * 1000),
                )
    producer.flush()


__all__ = ["Stack", "create", "deliver", "register"]
