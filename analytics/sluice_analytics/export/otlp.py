# SPDX-License-Identifier: Apache-2.0
"""A run as an OpenTelemetry trace, run -> task -> program, sent by OTLP over HTTP to any collector.

Attribute names are OpenTelemetry's where it has them (semantic conventions: host.*, process.*, container.*),
else begin with sluice. A program that carried a W3C trace context of its own (`trace_env: [TRACEPARENT]`) links
to it. Spans of what still runs are not sent: OTLP has none without an end.
"""

from __future__ import annotations

import dataclasses
import gzip
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from .. import __version__
from ..errors import UserError
from ..lake.session import Session
from ..model import records
from ..tune.run import NO_TASK
from ..tune.run_report import ProgramRow, RunReport, TaskRow
from . import ids

Value = str | bool | int | float | list[str]

_BATCH = 1000
_RETRIED = (429, 502, 503, 504)
_TRIES = 5


@dataclasses.dataclass
class Sent:
    """What became of an export."""

    spans: int = 0
    rejected: int = 0
    still_running: int = 0
    message: str = ""


def links(session: Session, run_id: str) -> dict[str, tuple[str, str]]:
    """program_id -> the trace context that it was given, where it is a whole one."""
    programs = records.programs(session, records.run_scope(session, run_id))
    some = programs.filter(programs.trace_id.notnull() & programs.span_id.notnull())
    found = session.rows(some.select("program_id", "trace_id", "span_id"))
    return {
        r["program_id"]: (r["trace_id"], r["span_id"])
        for r in found
        if _is_hex(r["trace_id"], 32) and _is_hex(r["span_id"], 16)
    }


def _is_hex(text: str, digits: int) -> bool:
    return len(text) == digits and all(c in "0123456789abcdef" for c in text.lower())


def _value(value: Value) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[_value(v) for v in value]))
    return AnyValue(string_value=value)


def _attributes(**values: Value | None) -> list[KeyValue]:
    return [KeyValue(key=k.replace("__", "."), value=_value(v)) for k, v in values.items() if v is not None]


def _status(exit_code: int | None, exit_signal: int | None, oom_killed: bool = False) -> Status:
    if oom_killed:
        return Status(code=Status.STATUS_CODE_ERROR, message="killed because memory ran out")
    if exit_signal:
        return Status(code=Status.STATUS_CODE_ERROR, message=f"signal {exit_signal}")
    if exit_code:
        return Status(code=Status.STATUS_CODE_ERROR, message=f"exit code {exit_code}")
    return Status(code=Status.STATUS_CODE_UNSET if exit_code is None else Status.STATUS_CODE_OK)


def _task_span_id(report: RunReport, task_id: str) -> bytes:
    return ids.span_id(report.run_id, "task", task_id)


def _verdict(of: RunReport | TaskRow) -> dict[str, Value | None]:
    return {
        "sluice__bound": of.bound,
        "sluice__demand": of.demand,
        "sluice__waiting_for": of.waiting_for,
        "sluice__denied": of.denied,
        "sluice__denied_share": of.denied_share,
    }


def _run_span(report: RunReport) -> Span:
    return Span(
        trace_id=ids.trace_id(report.run_id),
        span_id=ids.span_id(report.run_id, "run"),
        name=report.pipeline or report.command or report.run_id,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=report.start_time * 1000,
        end_time_unix_nano=(report.end_time or report.last_time) * 1000,
        status=_status(report.exit_code, report.exit_signal),
        attributes=_attributes(
            sluice__run_id=report.run_id,
            sluice__run_name=report.run_name,
            sluice__pipeline=report.pipeline,
            sluice__engine=report.engine,
            **_verdict(report),
            sluice__programs=report.programs_total,
            sluice__programs_failed=report.failed_programs,
            sluice__cpu_user_ns=report.usage.cpu_user_ns,
            sluice__cpu_system_ns=report.usage.cpu_system_ns,
            sluice__peak_memory_bytes=report.peak_memory_bytes,
            sluice__peak_rss_bytes=report.usage.peak_rss_bytes,
            process__command_line=report.command,
            process__working_directory=report.work_dir,
        ),
    )


def _task_span(report: RunReport, task: TaskRow, end_time: int) -> Span:
    return Span(
        trace_id=ids.trace_id(report.run_id),
        span_id=_task_span_id(report, task.task_id),
        parent_span_id=ids.span_id(report.run_id, "run"),
        name=task.name,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=task.start_time * 1000,
        end_time_unix_nano=end_time * 1000,
        status=_status(task.exit_code, task.exit_signal),
        attributes=_attributes(
            sluice__task_id=task.task_id,
            sluice__sample=task.sample,
            sluice__attempt=task.attempt,
            **_verdict(task),
            sluice__parallelism=task.parallelism,
            sluice__cpu_user_ns=task.usage.cpu_user_ns,
            sluice__cpu_system_ns=task.usage.cpu_system_ns,
            sluice__peak_memory_bytes=task.peak_memory_bytes,
            sluice__peak_rss_bytes=task.usage.peak_rss_bytes,
            sluice__read_bytes=task.usage.read_bytes,
            sluice__write_bytes=task.usage.write_bytes,
            process__working_directory=task.work_dir,
            process__exit__code=task.exit_code,
        ),
    )


def _program_span(
    report: RunReport, program: ProgramRow, end_time: int, has_task: bool, link: tuple[str, str] | None
) -> Span:
    parent = (
        _task_span_id(report, program.task_id)
        if has_task and program.task_id is not None
        else ids.span_id(report.run_id, "run")
    )
    span = Span(
        trace_id=ids.trace_id(report.run_id),
        span_id=ids.span_id(report.run_id, "program", program.program_id),
        parent_span_id=parent,
        name=program.tool or program.exe or program.command or "?",
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=program.start_time * 1000,
        end_time_unix_nano=end_time * 1000,
        status=_status(program.exit_code, program.exit_signal, program.oom_killed),
        attributes=_attributes(
            process__pid=program.pid,
            process__executable__path=program.exe,
            process__command_line=program.command,
            process__exit__code=program.exit_code,
            sluice__program_id=program.program_id,
            sluice__parent_program_id=program.parent_program_id,
            sluice__tool=program.tool,
            sluice__overhead=program.overhead,
            sluice__cpu_ns=program.cpu_ns,
            sluice__peak_rss_bytes=program.peak_rss_bytes,
            sluice__read_bytes=program.read_bytes,
            sluice__write_bytes=program.write_bytes,
            sluice__net_bytes=program.net_bytes,
            sluice__exit_signal=program.exit_signal,
        ),
    )
    if link is not None:
        span.links.append(Span.Link(trace_id=bytes.fromhex(link[0]), span_id=bytes.fromhex(link[1])))
    return span


def spans(report: RunReport, links: dict[str, tuple[str, str]]) -> tuple[list[tuple[str, Span]], int]:
    """([(host_name, span)] of all that has ended, how much still runs).

    links: program_id -> (trace id, span id), in hex, of the trace context that a program was given.
    """
    first_host = report.hosts[0]["host_name"] if report.hosts else ""
    found: list[tuple[str, Span]] = []
    running = 0
    if report.end_time is None:
        running += 1
    else:
        found.append((first_host, _run_span(report)))
    tasks = [task for task in report.tasks if task.task_id != NO_TASK]
    for task in tasks:
        if task.end_time is None:
            running += 1
        else:
            found.append((task.host_name, _task_span(report, task, task.end_time)))
    task_ids = {task.task_id for task in tasks}
    for program in report.programs:
        if program.end_time is None:
            running += 1
            continue
        has_task = program.task_id in task_ids
        link = links.get(program.program_id)
        found.append((program.host_name, _program_span(report, program, program.end_time, has_task, link)))
    return found, running


def requests(report: RunReport, found: list[tuple[str, Span]]) -> Iterator[ExportTraceServiceRequest]:
    """Messages of at most a thousand spans, each host with its resource."""
    hosts = {h["host_name"]: h for h in report.hosts}
    for at in range(0, len(found), _BATCH):
        by_host: dict[str, list[Span]] = {}
        for host_name, span in found[at : at + _BATCH]:
            by_host.setdefault(host_name, []).append(span)
        yield ExportTraceServiceRequest(
            resource_spans=[
                ResourceSpans(
                    resource=Resource(
                        attributes=_attributes(
                            service__name="sluice",
                            service__version=__version__,
                            host__name=host_name,
                            host__id=hosts.get(host_name, {}).get("host_id"),
                            host__type=hosts.get(host_name, {}).get("instance_type"),
                        )
                    ),
                    scope_spans=[
                        ScopeSpans(scope=InstrumentationScope(name="sluice", version=__version__), spans=some)
                    ],
                )
                for host_name, some in by_host.items()
            ]
        )


def _post(url: str, headers: dict[str, str], message: ExportTraceServiceRequest) -> ExportTraceServiceResponse:
    """One message. Waits and tries again where the OTLP specification demands it (429, 502, 503, 504)."""
    body = gzip.compress(message.SerializeToString())
    all_headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", **headers}
    answer = ExportTraceServiceResponse()
    for attempt in range(1, _TRIES + 1):
        request = urllib.request.Request(url, data=body, headers=all_headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                answer.ParseFromString(response.read())
                return answer
        except urllib.error.HTTPError as e:
            if e.code not in _RETRIED or attempt == _TRIES:
                raise UserError(
                    f"{url}: answered {e.code} {e.reason}", "is it an OTLP/HTTP receiver's /v1/traces?"
                ) from e
            wait = e.headers.get("Retry-After", "")
            time.sleep(min(float(wait) if wait.isdigit() else 2.0 ** (attempt - 1), 30.0))
        except (urllib.error.URLError, OSError) as e:
            reason = getattr(e, "reason", e)
            raise UserError(
                f"{url}: {reason}", "name a collector's OTLP/HTTP endpoint, such as http://HOST:4318"
            ) from e
        except DecodeError as e:
            raise UserError(f"{url}: the answer is not OTLP") from e
    raise AssertionError


def send(report: RunReport, endpoint: str, headers: dict[str, str], links: dict[str, tuple[str, str]]) -> Sent:
    """Sends a run to endpoint (http://HOST:4318, or with a path of its own). What a collector rejects is counted."""
    if not endpoint.startswith(("http://", "https://")):
        raise UserError(f"{endpoint}: is not an http or https URL", "write http://HOST:4318")
    rest = endpoint.split("://", 1)[1].rstrip("/")
    url = endpoint.rstrip("/") + ("" if "/" in rest else "/v1/traces")
    found, running = spans(report, links)
    result = Sent(still_running=running)
    for message in requests(report, found):
        count = sum(len(s.spans) for r in message.resource_spans for s in r.scope_spans)
        answer = _post(url, headers, message)
        result.rejected += answer.partial_success.rejected_spans
        result.spans += count - answer.partial_success.rejected_spans
        result.message = answer.partial_success.error_message or result.message
    return result
