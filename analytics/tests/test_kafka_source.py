# SPDX-License-Identifier: Apache-2.0
"""--kafka: a real broker and registry, records as the agent frames them; the numbers are those of the file lake."""

from __future__ import annotations

import argparse
import functools
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import engines
import fastavro
import pytest
from confluent_kafka import Producer
from lakes import LakeMaker, schema_of
from topics import Stack, create, deliver, register

from sluice_analytics.errors import UserError
from sluice_analytics.lake import avro, kafka
from sluice_analytics.lake import open as lake_open
from sluice_analytics.lake.columns import KEY
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.lake.kafka import KafkaSession
from sluice_analytics.lake.session import Scope
from sluice_analytics.tune import follow


@pytest.fixture(scope="module")
def delivered(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> tuple[LakeMaker, engines.Case]:
    """A lake of files, and the same records in Kafka."""
    lake, case = engines.make_lake(tmp_path_factory.mktemp("made") / "lake")
    create(stack)
    deliver(stack, lake.files)
    return lake, case


def session_over(stack: Stack, *properties: str) -> KafkaSession:
    return KafkaSession(stack.brokers, stack.registry_url, properties, DuckSession)


def landed(session: KafkaSession) -> int:
    return sum(len(list(avro.records(str(p)))) for p in pathlib.Path(session._lake).rglob("*.avro"))


@pytest.fixture(scope="module")
def both(stack: Stack, delivered: tuple[LakeMaker, engines.Case]) -> Iterator[tuple[KafkaSession, DuckSession]]:
    """The topics and the files, each in one session."""
    with session_over(stack) as there, DuckSession(str(delivered[0].path)) as here:
        yield there, here


@pytest.mark.parametrize("name", engines.ANALYSES)
def test_equals_the_lake_of_files(
    both: tuple[KafkaSession, DuckSession], delivered: tuple[LakeMaker, engines.Case], name: str
) -> None:
    got, wanted = (engines.answer(session, name, delivered[1]) for session in both)
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
        deliver(stack, more.files)
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
        "kafka: sluice.agent: 1 tombstones were skipped",
        "kafka: sluice.agent: 2 messages without a schema's id were skipped",
        f"kafka: sluice.agent: 4 messages that do not match schema {number} were skipped",
        "kafka: sluice.agent: 1 messages whose schema 2147483647 the registry does not have were skipped",
    }


def test_properties_reach_librdkafka(
    stack: Stack, delivered: tuple[LakeMaker, engines.Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = (
        "security.protocol=SSL",
        f"ssl.ca.location={stack.cert('ca.crt')}",
        f"ssl.certificate.location={stack.cert('client.crt')}",
        f"ssl.key.location={stack.cert('client.key')}",
    )
    with KafkaSession(stack.listener("mtls"), stack.registry_url, tls, DuckSession) as there:
        assert there.rows(there.table("run"))
    monkeypatch.setattr(kafka, "_ANSWER_S", 4.0)
    with pytest.raises(UserError, match="certificate"):
        KafkaSession(stack.listener("mtls"), stack.registry_url, tls[:2], DuckSession)


def test_errors_say_what_to_mend(
    stack: Stack, delivered: tuple[LakeMaker, engines.Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_ANSWER_S", 4.0)
    with pytest.raises(UserError, match=r"No such configuration property.*colour"):
        session_over(stack, "colour=green")
    with pytest.raises(UserError, match="is not KEY=VALUE"):
        session_over(stack, "colour")
    with pytest.raises(UserError, match=r"127\.0\.0\.1:1.*--kafka"):
        KafkaSession("127.0.0.1:1", stack.registry_url, [], DuckSession)
    with pytest.raises(UserError, match=r"registry http://127\.0\.0\.1:1 does not answer"):
        KafkaSession(stack.brokers, "http://user:secret@127.0.0.1:1", [], DuckSession)
    with pytest.raises(UserError, match="is not an http or https URL"):
        KafkaSession(stack.brokers, "registry:8081", [], DuckSession)
    parser = argparse.ArgumentParser()
    lake_open.add_arguments(parser)
    at = ["--kafka", stack.brokers, "--registry", stack.registry_url, "--engine", "spark"]
    for cluster in (["--spark-master", "yarn"], ["--spark-conf", "spark.master=spark://host:7077"]):
        with pytest.raises(UserError, match=r"files of this machine.*--table"):
            lake_open.open_session(parser.parse_args([*at, *cluster]))


class Growing:
    """A run that runs now: step() adds records of it."""

    def __init__(self, stack: Stack, at: pathlib.Path) -> None:
        self.stack = stack
        self.began = time.time()
        self.maker = LakeMaker(at, host_id="9" * 32, t0=round(self.began * 1e6))
        self.maker.run(run_id="growing", pipeline="grows")
        self.maker.task(run_id="growing", task_id="t1", task="ALIGN")
        self.deliver()

    def deliver(self) -> None:
        done = len(self.maker.files)
        self.maker.write()
        deliver(self.stack, self.maker.files[done:])

    @property
    def now(self) -> float:
        return time.time() - self.began

    def end_task(self) -> None:
        self.maker.task(run_id="growing", task_id="t1", task="ALIGN", phase="END", start=0, end=self.now)
        self.maker.task(run_id="growing", task_id="t2", task="SORT", start=self.now)
        self.deliver()

    def end(self) -> None:
        self.maker.task(run_id="growing", task_id="t2", task="SORT", phase="END", start=0.5, end=self.now)
        self.maker.run(run_id="growing", pipeline="grows", phase="END", start=0, end=self.now)
        self.deliver()


def test_what_came_since_is_read_on_from_where_it_was(
    stack: Stack, delivered: tuple[LakeMaker, engines.Case], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After refresh() a table has what is new, of topics read whole, in part or never; nothing comes twice."""
    taken: list[str] = []
    take = KafkaSession._take

    def counted(self: KafkaSession, topic: str, *rest: Any) -> None:
        taken.append(topic)
        take(self, topic, *rest)

    monkeypatch.setattr(KafkaSession, "_take", counted)
    growing = Growing(stack, tmp_path)
    late = Scope(since_us=growing.maker.us(-1))
    with session_over(stack) as there:
        runs, tasks = len(there.rows(there.table("run"))), len(there.rows(there.table("task", late)))
        assert tasks == 1
        part = landed(there)
        growing.end_task()
        assert len(there.rows(there.table("task", late))) == 1
        there.refresh()
        before = len(taken)
        got = there.rows(there.table("task", late))
        assert sorted((r["task"], r["phase"]) for r in got) == [("ALIGN", "END"), ("ALIGN", "START"), ("SORT", "START")]
        assert taken[before:] == ["task", "task"] and landed(there) == part + 2
        growing.end()
        there.refresh()
        assert [r["phase"] for r in there.rows(there.table("task", late))].count("END") == 2
        assert len(there.rows(there.table("run"))) == runs + 1
        # Of earlier times nothing of this topic was read yet; with it, it is whole, and each record there once.
        rows = there.rows(there.table("task"))
        assert len({tuple(r[name] for name in KEY) for r in rows}) == len(rows)
        with session_over(stack) as fresh:
            assert engines.in_order(rows) == engines.in_order(fresh.rows(fresh.table("task")))
        assert len(there.rows(there.table("agent"))) > 0


def test_follows_a_run_by_one_session(
    stack: Stack, delivered: tuple[LakeMaker, engines.Case], tmp_path: pathlib.Path
) -> None:
    """--follow reads on; it prints what happened, as soon as it is in the topics."""
    growing = Growing(stack, tmp_path)
    at = ["--kafka", stack.brokers, "--registry", stack.registry_url]
    command = [sys.executable, "-m", "sluice_analytics.cli.tune", "--follow", "--interval", "0.3", *at, "growing"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as watcher:
        assert watcher.stdout is not None
        lines = []
        for line in watcher.stdout:
            lines.append(line)
            if "ALIGN began" in line:
                growing.end_task()
            elif "SORT began" in line:
                growing.end()
        assert watcher.wait() == 0, lines
    said = [line.split("Z  ")[1].strip() for line in lines if "Z  " in line]
    assert [re.sub(" in .*", "", text) for text in said] == [
        "ALIGN began", "ALIGN finished", "SORT began", "SORT finished",
    ]  # fmt: skip
    assert re.search(r"SUCCEEDED after .*: 2 finished, 0 failed", lines[-1])


def test_looks_keep_their_session(stack: Stack, delivered: tuple[LakeMaker, engines.Case]) -> None:
    parser = argparse.ArgumentParser()
    lake_open.add_arguments(parser)
    looks = follow.Looks(parser.parse_args(["--kafka", stack.brokers, "--registry", stack.registry_url]))
    try:
        first = looks.session()
        assert all(looks.session() is first for _ in range(follow.LOOKS - 1))
        assert looks.session() is not first
    finally:
        looks.close()


def test_as_the_agent_delivers(stack: Stack) -> None:
    """What an agent sent to the topics, against a plain reading of them: a program that ended among it."""
    import sluice_binary
    from agent import Agent
    from test_kafka_delivery import messages

    def all_of(topic: str) -> list[dict[str, Any]]:
        return [r for _, m in messages(stack.brokers, f"sluice.{topic}") if (r := plain(stack, m))]

    def is_sleep(record: dict[str, Any]) -> bool:
        return record["phase"] == "END" and record["argv"] == ["sleep", "0.317"]

    room = tempfile.mkdtemp(prefix="sluice-agent-")  # the agent becomes `nobody`, who cannot enter pytest's
    agent = Agent(
        room, sluice=sluice_binary.path(),
        kafka={"brokers": [stack.brokers], "topics": {"create": True, "partitions": 3, "replication": 1}},
        registry={"urls": [stack.registry_url], "auto_register": True},
    )  # fmt: skip
    try:
        agent.start()
        subprocess.run(["/bin/sh", "-c", "exec sleep 0.317"], check=True)
        agent.wait(lambda: any(is_sleep(r) for r in all_of("program")), what="the program's end in its topic")
        assert agent.stop() == 0
    finally:
        agent.remove()
        shutil.rmtree(room)
    mine = next(r["agent_id"] for r in all_of("agent") if r["event"] == "STOP")
    with session_over(stack) as there:
        got = [r for r in there.rows(there.table("program")) if r["agent_id"] == mine]
    wanted = [r for r in all_of("program") if r["agent_id"] == mine]
    assert sorted(r["seq"] for r in got) == sorted({r["seq"] for r in wanted})
    (sleep,) = [r for r in got if is_sleep(r)]
    (plainly,) = [r for r in wanted if r["phase"] == "END" and r["seq"] == sleep["seq"]]
    assert sleep["end_time"] - sleep["program_start_time"] >= 317_000
    assert sleep["end_time"] == round(plainly["end_time"].timestamp() * 1e6)
    assert {n: sleep[n] for n in ("cpu_user_ns", "peak_rss_bytes", "minor_faults")} == {
        n: plainly["usage"][n] for n in ("cpu_user_ns", "peak_rss_bytes", "minor_faults")
    }


@functools.cache
def registered(registry_url: str, number: int) -> Any:
    """The parsed schema of an id, asked for once: a host at work has thousands of messages."""
    with urllib.request.urlopen(f"{registry_url}/schemas/ids/{number}") as response:
        return fastavro.parse_schema(json.loads(json.load(response)["schema"]))


def plain(stack: Stack, message: Any) -> dict[str, Any] | None:
    """A message as fastavro reads it; None where it is no record."""
    value = message.value()
    if not value or value[0] != 0:
        return None
    number = int.from_bytes(value[1:5], "big")
    try:
        record = fastavro.schemaless_reader(io.BytesIO(value[5:]), registered(stack.registry_url, number), None)
    except (urllib.error.HTTPError, EOFError, IndexError, ValueError):
        return None
    return record if isinstance(record, dict) else None
