# SPDX-License-Identifier: Apache-2.0
"""A run and its tasks as OpenLineage events, by OpenLineage's own client.

One job for the pipeline, one for each task name under it (<pipeline>.<task>); a START event and a COMPLETE or
FAIL event for each run; tasks name the pipeline's run as their parent. sluice never reads which files a program
opened, so that events have no datasets. What a run used is in a facet of our own, `sluice_resources`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import attr
from openlineage.client import OpenLineageClient, set_producer
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import error_message_run, job_type_job, parent_run, processing_engine_run
from openlineage.client.generated.base import RunFacet
from openlineage.client.serde import Serde
from openlineage.client.transport import Transport
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport
from openlineage.client.transport.kafka import KafkaConfig, KafkaTransport

from .. import __version__
from ..errors import UserError
from ..tune.run import NO_TASK
from ..tune.run_report import Resources, RunReport, TaskRow
from ..units import rfc3339
from . import ids

PRODUCER = f"https://sluice.invalid/sluice-analytics/{__version__}"
set_producer(PRODUCER)


@attr.define
class SluiceResources(RunFacet):
    """What a run used, from the kernel's own counters: names and units as in sluice's records."""

    usage: dict[str, Any] = attr.field(factory=dict)
    wall_ns: int | None = None
    parallelism: float | None = None
    bound: str | None = None
    demand: str | None = None
    waiting_for: str | None = None
    denied: str | None = None
    denied_share: float | None = None
    peak_memory_bytes: int | None = None

    @staticmethod
    def _get_schema() -> str:
        return "https://sluice.invalid/schemas/openlineage/sluice_resources/1-1-0"


def _resources(of: RunReport | TaskRow) -> SluiceResources:
    return SluiceResources(
        _usage(of.usage),
        of.wall_ns,
        of.parallelism,
        of.bound,
        of.demand,
        of.waiting_for,
        of.denied,
        of.denied_share,
        of.peak_memory_bytes,
    )


def _usage(usage: Resources) -> dict[str, Any]:
    return {k: v for k, v in dataclasses.asdict(usage).items() if v is not None}


def _job(namespace: str, name: str, kind: str) -> Job:
    facet = job_type_job.JobTypeJobFacet(processingType="BATCH", integration="SLUICE", jobType=kind)
    return Job(namespace=namespace, name=name, facets={"jobType": facet})


def _time(us: int) -> str:
    text = rfc3339(us)
    assert text is not None
    return text


def events(report: RunReport, namespace: str) -> list[RunEvent]:
    """All events of a run in the order of their times; of what still runs the START alone."""
    pipeline = report.pipeline or "run"
    run_id = str(ids.run_uuid(report.run_id))
    job = _job(namespace, pipeline, "PIPELINE")
    engine = processing_engine_run.ProcessingEngineRunFacet(
        version=__version__, name=report.engine or "sluice", openlineageAdapterVersion=__version__
    )
    parent = parent_run.ParentRunFacet(
        run=parent_run.Run(runId=run_id), job=parent_run.Job(namespace=namespace, name=pipeline)
    )
    found: list[tuple[int, RunEvent]] = []

    def tell(
        start: int, end: int | None, failed: bool, run: str, of: Job, facets: dict[str, Any], last: dict[str, Any]
    ) -> None:
        found.append((start, _event(start, RunState.START, run, of, facets)))
        if end is not None:
            state = RunState.FAIL if failed else RunState.COMPLETE
            found.append((end, _event(end, state, run, of, {**facets, **last})))

    last: dict[str, Any] = {"sluice_resources": _resources(report)}
    if report.failures:
        last["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=report.failures[0].sentence, programmingLanguage="unknown"
        )
    tell(report.start_time, report.end_time, report.state == "FAILED", run_id, job, {"processing_engine": engine}, last)
    for task in report.tasks:
        if task.task_id == NO_TASK:
            continue
        last = {"sluice_resources": _resources(task)}
        why = next((f for f in report.failures if f.task_id == task.task_id), None)
        if why is not None:
            last["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=why.sentence, programmingLanguage="unknown"
            )
        run = str(ids.task_uuid(report.run_id, task.task_id, task.attempt, task.host_name))
        failed = bool(task.exit_code or task.exit_signal)
        facets = {"parent": parent, "processing_engine": engine}
        tell(
            task.start_time, task.end_time, failed, run,
            _job(namespace, f"{pipeline}.{task.name}", "TASK"), facets, last,
        )  # fmt: skip
    return [event for _, event in sorted(found, key=lambda x: x[0])]


def _event(us: int, state: RunState, run: str, job: Job, facets: dict[str, Any]) -> RunEvent:
    return RunEvent(eventTime=_time(us), eventType=state, run=Run(runId=run, facets=facets), job=job, producer=PRODUCER)


def to_json(event: RunEvent) -> str:
    """An event as the specification's JSON, one line."""
    text: str = Serde.to_json(event)
    return text


def _transport(url: str, api_key: str | None) -> Transport:
    """http(s)://HOST:PORT, or kafka://BROKERS/TOPIC."""
    if url.startswith(("http://", "https://")):
        http = HttpConfig(url=url)
        if api_key:
            http.auth = ApiKeyTokenProvider({"api_key": api_key})
        return HttpTransport(http)
    brokers, _, topic = url.removeprefix("kafka://").partition("/")
    if url.startswith("kafka://") and brokers and topic:
        config = {"bootstrap.servers": brokers, "acks": "all"}
        return KafkaTransport(KafkaConfig(config=config, topic=topic, flush=True))
    raise UserError(f"{url}: is not an OpenLineage receiver", "write http://HOST:PORT or kafka://BROKERS/TOPIC")


def _reason(e: Exception) -> str:
    """The innermost informative cause: the network's error, not the number of retries."""
    inner: BaseException | None = e
    said = str(e)
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            said = inner.strerror
        inner = inner.__cause__ or inner.__context__
    return said


def send(report: RunReport, url: str, namespace: str, api_key: str | None = None) -> int:
    """Sends all events to an OpenLineage receiver and returns how many. UserError where it refuses."""
    client = OpenLineageClient(transport=_transport(url, api_key))
    count = 0
    for event in events(report, namespace):
        try:
            client.emit(event)
        except Exception as e:  # each transport raises its own library's errors
            raise UserError(f"{url}: event {count + 1} was not accepted: {_reason(e)}") from e
        count += 1
    client.close(timeout=30)
    return count
