# SPDX-License-Identifier: Apache-2.0
"""--kafka: a real broker and registry, records as the agent frames them; the numbers are those of the file lake."""

from __future__ import annotations

import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from typing import Any

import engines
import fastavro
import pytest
from confluent_kafka import Producer
from lakes import TOPICS, LakeMaker, schema_of

from sluice_analytics.errors import UserError
from sluice_analytics.lake import avro
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.kafka import KafkaSession
from sluice_analytics.lake.session import Scope

INTEGRATION = pathlib.Path(__file__).resolve().parents[2] / "tests" / "integration"
sys.path.insert(0, str(INTEGRATION))

from stack import Stack, StackError  # noqa: E402


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    try:
        found = Stack(tls=True)
    except StackError as e:
        pytest.skip(str(e))
    with found:
        yield found


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


def deliver(stack: Stack, lake: LakeMaker) -> None:
    """Every record of a lake's files with its file's own schema, as a message that is as old as the record."""
    producer = Producer({"bootstrap.servers": stack.brokers})
    for path in lake.files:
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


@pytest.fixture(scope="module")
def delivered(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> tuple[LakeMaker, engines.Case]:
    """A lake of files, and the same records in Kafka."""
    lake, case = engines.make_lake(tmp_path_factory.mktemp("made") / "lake")
    for topic in TOPICS:
        # Messages are as old as made records say: the broker's own retention would delete them within a minute.
        stack.create_topic(f"sluice.{topic}", 3, {"message.timestamp.type": "CreateTime", "retention.ms": "-1"})
    deliver(stack, lake)
    return lake, case


def session_over(stack: Stack, *properties: str) -> KafkaSession:
    return KafkaSession(stack.brokers, stack.registry_url, properties, DuckSession)


def landed(session: KafkaSession) -> int:
    return sum(len(list(avro.records(str(p)))) for p in pathlib.Path(session._lake).rglob("*.avro"))


@pytest.mark.parametrize("name", [n for n in engines.ANALYSES if n != "tune"])
def test_equals_the_lake_of_files(stack: Stack, delivered: tuple[LakeMaker, engines.Case], name: str) -> None:
    lake, case = delivered
    with session_over(stack) as there, DuckSession(str(lake.path)) as here:
        got, wanted = (engines.answer(s, name, case) for s in (there, here))
    if name in engines.REPORTS:
        for report in (got, wanted):
            report["warnings"] = []  # they name files
    else:
        got, wanted = engines.in_order(got), engines.in_order(wanted)
    assert engines.difference(wanted, got) is None


def test_a_scope_reads_no_more_than_it_needs(stack: Stack, delivered: tuple[LakeMaker, engines.Case]) -> None:
    lake, _ = delivered
    late = Scope(since_us=lake.us(80000))
    with session_over(stack) as there, DuckSession(str(lake.path)) as here:
        few = there.rows(there.table("program", late))
        assert engines.in_order(few) == engines.in_order(here.rows(here.table("program", late)))
        part, all_records = landed(there), len(lake.written["program"])
        assert len(few) <= part < all_records
        # What is asked for later, and was not read: only that is.
        everything = there.rows(there.table("program"))
        assert landed(there) == all_records
        assert engines.in_order(everything) == engines.in_order(here.rows(here.table("program")))


def test_what_came_after_the_start_is_not_read(
    stack: Stack, delivered: tuple[LakeMaker, engines.Case], tmp_path: pathlib.Path
) -> None:
    with session_over(stack) as there:
        before = len(there.rows(there.table("finding")))
    with session_over(stack) as there:
        with LakeMaker(tmp_path, host_id="0" * 32) as more:
            more.finding("KILLED")
        deliver(stack, more)
        assert len(there.rows(there.table("finding"))) == before
    with session_over(stack) as there:
        assert len(there.rows(there.table("finding"))) == before + 1


def test_messages_that_are_no_records_are_counted(stack: Stack, delivered: tuple[LakeMaker, engines.Case]) -> None:
    number = register(stack, "agent", schema_of("agent"))
    frame = b"\0" + number.to_bytes(4, "big")
    with session_over(stack) as there:
        before = len(there.rows(there.table("agent")))
        good = next(avro.records(str(next(pathlib.Path(there._lake).rglob("*.avro")))))
        good |= {"seq": 10_000, "host_id": "../../etc"}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema_of("agent"), good)
    producer = Producer({"bootstrap.servers": stack.brokers})
    for value in (
        None,  # a tombstone
        b"",
        b"plain text",
        frame,
        frame + b"\x02\x02\x02",
        frame + out.getvalue(),  # a path for a host
        frame + out.getvalue() + b"x",
        b"\0\x7f\xff\xff\xff" + out.getvalue(),
    ):
        producer.produce("sluice.agent", value, key="k")
    producer.flush()
    with session_over(stack) as there:
        assert len(there.rows(there.table("agent"))) == before
        said = {w for w in there.warnings if w.startswith("kafka: ")}
        assert not list(pathlib.Path(there._lake).parent.glob("etc"))
    assert said == {
        "kafka: sluice.agent: 1 tombstones were passed over",
        "kafka: sluice.agent: 2 messages without a schema's id were passed over",
        f"kafka: sluice.agent: 4 messages that are no records of schema {number} were passed over",
        "kafka: sluice.agent: 1 messages whose schema 2147483647 the registry does not have were passed over",
    }


def test_properties_reach_librdkafka(stack: Stack, delivered: tuple[LakeMaker, engines.Case]) -> None:
    tls = (
        "security.protocol=SSL",
        f"ssl.ca.location={stack.cert('ca.crt')}",
        f"ssl.certificate.location={stack.cert('client.crt')}",
        f"ssl.key.location={stack.cert('client.key')}",
    )
    with KafkaSession(stack.listener("mtls"), stack.registry_url, tls, DuckSession) as there:
        assert there.rows(there.table("run"))
    with pytest.raises(UserError, match="certificate"):
        KafkaSession(stack.listener("mtls"), stack.registry_url, tls[:2], DuckSession)


def test_errors_say_what_to_mend(stack: Stack, delivered: tuple[LakeMaker, engines.Case]) -> None:
    with pytest.raises(UserError, match=r"No such configuration property.*colour"):
        session_over(stack, "colour=green")
    with pytest.raises(UserError, match="is no KEY=VALUE"):
        session_over(stack, "colour")
    with pytest.raises(UserError, match=r"127\.0\.0\.1:1.*--kafka"):
        KafkaSession("127.0.0.1:1", stack.registry_url, [], DuckSession)
    with pytest.raises(UserError, match=r"registry http://127\.0\.0\.1:1 does not answer"):
        KafkaSession(stack.brokers, "http://user:secret@127.0.0.1:1", [], DuckSession)
    with pytest.raises(UserError, match="is no http or https URL"):
        KafkaSession(stack.brokers, "registry:8081", [], DuckSession)


def test_as_the_agent_delivers(stack: Stack) -> None:
    """What an agent sent to the topics, against a plain reading of them: a program that ended among it."""
    if os.geteuid() != 0:
        pytest.skip("only root records")
    import sluice_binary
    from agent import Agent
    from test_kafka_delivery import messages

    room = tempfile.mkdtemp(prefix="sluice-agent-")  # the agent becomes nobody, who cannot enter pytest's
    agent = Agent(
        room, sluice=sluice_binary.path(),
        kafka={"brokers": [stack.brokers], "topics": {"create": True, "partitions": 3, "replication": 1}},
        registry={"urls": [stack.registry_url], "auto_register": True},
    )  # fmt: skip
    try:
        agent.start()
        subprocess.run(["/bin/sh", "-c", "exec sleep 0.317"], check=True)
        agent.wait_empty()
        assert agent.stop() == 0
    finally:
        agent.remove()
        shutil.rmtree(room)
    told = [r for _, m in messages(stack.brokers, "sluice.agent") if (r := plain(stack, m))]
    mine = next(r["agent_id"] for r in told if r["event"] == "STOP")
    with session_over(stack) as there:
        got = [r for r in there.rows(there.table("program")) if r["agent_id"] == mine]
    all_records = [r for _, m in messages(stack.brokers, "sluice.program") if (r := plain(stack, m))]
    wanted = [r for r in all_records if r["agent_id"] == mine]
    assert sorted(r["seq"] for r in got) == sorted({r["seq"] for r in wanted})
    (sleep,) = [r for r in got if r["phase"] == "END" and r["argv"] == ["sleep", "0.317"]]
    (plainly,) = [r for r in wanted if r["phase"] == "END" and r["seq"] == sleep["seq"]]
    assert sleep["end_time"] - sleep["program_start_time"] >= 317_000
    assert sleep["end_time"] == round(plainly["end_time"].timestamp() * 1e6)
    assert {n: sleep[n] for n in ("cpu_user_ns", "peak_rss_bytes", "minor_faults")} == {
        n: plainly["usage"][n] for n in ("cpu_user_ns", "peak_rss_bytes", "minor_faults")
    }


def plain(stack: Stack, message: Any) -> dict[str, Any] | None:
    """A message as fastavro reads it; None where it is no record."""
    value = message.value()
    if not value or value[0] != 0:
        return None
    number = int.from_bytes(value[1:5], "big")
    try:
        with urllib.request.urlopen(f"{stack.registry_url}/schemas/ids/{number}") as response:
            schema = json.loads(json.load(response)["schema"])
        record = fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(schema), None)
    except (urllib.error.HTTPError, EOFError, IndexError, ValueError):
        return None
    return record if isinstance(record, dict) else None
