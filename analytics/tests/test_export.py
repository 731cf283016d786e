# SPDX-License-Identifier: Apache-2.0
"""Exports: traces to a real OTLP collector, OpenLineage events over HTTP and Kafka's client, Parquet files."""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from lakes import LakeMaker, S

from sluice_analytics.cli import tune as cli

RUN = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
FOUND = {
    "bound": "IDLE", "demand": "WAITING_FOR", "waiting_for": "PIPE", "denied": "RUN_QUEUE", "denied_share": 0.25,
    "peak_memory_bytes": 1 << 20,
}  # fmt: skip


@pytest.fixture
def lake(maker: LakeMaker) -> str:
    """A failed run of two tasks and four programs, one of which carried a trace context, and one still runs."""
    maker.run(run_id=RUN, pipeline="lab", start=0, end=60, exit_code=1, programs=4, failed_programs=1)
    maker.task(
        run_id=RUN, pipeline="lab", task_id="t1", task="align", name="align", start=1, end=20, exit_code=0, **FOUND
    )
    maker.task(run_id=RUN, pipeline="lab", task_id="t2", task="call", name="call", start=21, end=40, exit_code=1)
    given = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}
    maker.program(run_id=RUN, task_id="t1", task="align", tool="bwa mem", start=1, end=20, cpu_user_ns=30 * S, **given)
    maker.program(run_id=RUN, task_id="t2", task="call", tool="bcftools call", start=21, end=40, exit_code=1)
    maker.program(run_id=RUN, tool="snakemake", start=0, end=60, exit_code=1)
    maker.program(run_id=RUN, tool="sleep", start=50, end=None)
    maker.write()
    return str(maker.path)


def free_port() -> int:
    """A port on which no server listens now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


class Collector:
    """Rotel, an OpenTelemetry collector, which prints what it receives."""

    def __init__(self, room: pathlib.Path) -> None:
        import rotel

        assert rotel.__file__ is not None
        self.port = free_port()
        self.log = room / "collector.log"
        binary = pathlib.Path(rotel.__file__).parent / "rotel-agent"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [str(binary), "start", "--exporter", "blackhole", "--debug-log", "traces",
                 "--debug-log-verbosity", "detailed", "--otlp-http-endpoint", f"127.0.0.1:{self.port}",
                 "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}"],
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self.wait(lambda: self.accepts())

    def accepts(self) -> bool:
        """Whether it listens."""
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def wait(self, condition: Any, seconds: float = 20) -> None:
        """Until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.1)

    def spans(self) -> list[dict[str, str]]:
        """What it printed of each span."""
        found = []
        for block in re.split(r"Span #\d+\n", self.log.read_text())[1:]:
            pairs = re.findall(r"^ *(?:-> )?([A-Za-z. _]+?) *: (.*)$", block, re.MULTILINE)
            found.append({k.strip(): v for k, v in pairs})
        return found

    def close(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture
def collector(tmp_path: pathlib.Path) -> Iterator[Collector]:
    """A collector on loopback."""
    c = Collector(tmp_path)
    try:
        yield c
    finally:
        c.close()


def export(*args: str) -> int:
    """`sluice tune export …`."""
    return cli.main(["export", *args])


def test_a_collector_takes_the_run_as_a_trace(lake: str, collector: Collector, capsys: Any) -> None:
    url = f"http://127.0.0.1:{collector.port}"
    assert export("--lake", lake, "--otlp", url) == 0
    assert "6 spans accepted, 0 rejected; 1 that are still running" in capsys.readouterr().out
    collector.wait(lambda: len(collector.spans()) >= 6)
    spans = {s["Name"]: s for s in collector.spans()}
    assert set(spans) == {"lab", "align", "call", "bwa mem", "bcftools call", "snakemake"}
    assert {s["Trace ID"] for s in spans.values()} >= {uuid.UUID(RUN).hex}
    ids = {name: s["ID"] for name, s in spans.items()}
    assert len(set(ids.values())) == 6
    parents = {name: next((n for n, i in ids.items() if i == s["Parent ID"]), "") for name, s in spans.items()}
    assert parents == {
        "lab": "", "align": "lab", "call": "lab", "bwa mem": "align", "bcftools call": "call", "snakemake": "lab",
    }  # fmt: skip
    assert spans["call"]["Status code"] == "STATUS_CODE_ERROR"
    assert spans["call"]["Status message"] == "exit code 1"
    assert spans["align"]["Status code"] == "STATUS_CODE_OK"
    for name, value in FOUND.items():
        assert str(value) in spans["align"][f"sluice.{name}"]
    assert "4bf92f3577b34da6a3ce929d0e0e4736" in collector.log.read_text(), "the link to the given trace"


def test_the_same_run_again_has_the_same_ids(lake: str, collector: Collector) -> None:
    url = f"http://127.0.0.1:{collector.port}"
    assert export("--lake", lake, "--otlp", url) == 0
    assert export("--lake", lake, "--otlp", url) == 0
    collector.wait(lambda: len(collector.spans()) >= 12)
    assert len({s["ID"] for s in collector.spans()}) == 6


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps the bodies that are posted, answers as configured."""

    bodies: list[bytes] = []
    answers: list[int] = []

    def do_POST(self) -> None:
        """One request."""
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.answers.pop(0) if self.answers else 200)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def receiver() -> Iterator[tuple[str, type[Receiver]]]:
    """An HTTP server: its URL, and where its requests are."""
    kept = type("Kept", (Receiver,), {"bodies": [], "answers": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kept)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", kept
    finally:
        server.shutdown()
        server.server_close()


def test_a_busy_collector_is_asked_again(lake: str, receiver: tuple[str, type[Receiver]], capsys: Any) -> None:
    url, kept = receiver
    kept.answers[:] = [503, 429, 200]
    assert export("--lake", lake, "--otlp", url) == 0
    assert len(kept.bodies) == 3 and len(set(kept.bodies)) == 1
    kept.answers[:] = [400]
    assert export("--lake", lake, "--otlp", url) == 2
    assert "answered 400" in capsys.readouterr().err


def check_events(events: list[dict[str, Any]]) -> None:
    """The run and its two tasks, START and END each, in the order of their times."""
    assert [(e["job"]["name"], e["eventType"]) for e in events] == [
        ("lab", "START"), ("lab.align", "START"), ("lab.align", "COMPLETE"), ("lab.call", "START"),
        ("lab.call", "FAIL"), ("lab", "FAIL"),
    ]  # fmt: skip
    assert {e["run"]["runId"] for e in events if e["job"]["name"] == "lab"} == {RUN}
    for e in events:
        uuid.UUID(e["run"]["runId"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", e["eventTime"])
        assert e["schemaURL"].endswith("#/$defs/RunEvent")
        if e["job"]["name"] != "lab":
            assert e["run"]["facets"]["parent"]["run"]["runId"] == RUN
    done = events[2]["run"]["facets"]["sluice_resources"]
    assert {name: done[name] for name in FOUND} == FOUND
    failed = events[4]["run"]["facets"]
    assert failed["sluice_resources"]["wall_ns"] == 19 * S
    assert "bcftools call" in failed["errorMessage"]["message"]


def test_openlineage_events_over_http_and_to_a_file(
    lake: str, receiver: tuple[str, type[Receiver]], tmp_path: pathlib.Path
) -> None:
    url, kept = receiver
    to = str(tmp_path / "events.jsonl")
    assert export("--lake", lake, "--openlineage", url, "--openlineage-file", to) == 0
    check_events([json.loads(b) for b in kept.bodies])
    check_events([json.loads(line) for line in pathlib.Path(to).read_text().splitlines()])


def test_openlineage_events_to_a_real_broker(lake: str, stack: Any) -> None:
    from confluent_kafka import Consumer, TopicPartition

    stack.create_topic("lineage", partitions=1)
    assert export("--lake", lake, "--openlineage", f"kafka://{stack.brokers}/lineage") == 0
    consumer = Consumer({"bootstrap.servers": stack.brokers, "group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition("lineage", 0, 0)])
    events: list[dict[str, Any]] = []
    end = time.monotonic() + 30
    while len(events) < 6 and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            events.append(json.loads(message.value()))
    consumer.close()
    check_events(events)


def test_parquet_has_all_rows(lake: str, tmp_path: pathlib.Path) -> None:
    folder = str(tmp_path / "tables")
    assert export("--lake", lake, "--parquet", folder) == 0
    programs = pq.read_table(os.path.join(folder, "programs.parquet")).to_pylist()
    assert sorted(p["tool"] for p in programs) == ["bcftools call", "bwa mem", "sleep", "snakemake"]
    assert next(p for p in programs if p["tool"] == "bwa mem")["cpu_ns"] == 30 * S
    tasks = pq.read_table(os.path.join(folder, "tasks.parquet")).to_pylist()
    assert {t["task_id"] for t in tasks} >= {"t1", "t2"}
    align = next(t for t in tasks if t["task_id"] == "t1")
    assert {name: align[name] for name in FOUND} == FOUND
    assert all(t["start_time"].tzinfo is not None for t in tasks)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "no destination"),
        (["--otlp", "collector:4318"], "not an http or https URL"),
        (["--otlp", "http://127.0.0.1:9"], "Connection refused"),
        (["--openlineage", "ftp://x"], "not an OpenLineage receiver"),
        (["--openlineage", "http://127.0.0.1:9"], "event 1 was not accepted: Connection refused\n"),
        (["--otlp", "http://127.0.0.1:9", "--header", "x"], "--header x: is not KEY=VALUE"),
        (["--parquet", "/proc/nowhere"], "/proc/nowhere"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(lake: str, args: list[str], says: str, capsys: Any) -> None:
    assert export("--lake", lake, *args) == 2
    error = capsys.readouterr().err
    assert says in error and "Traceback" not in error and len(error.splitlines()) == 1
