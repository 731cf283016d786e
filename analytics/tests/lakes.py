# SPDX-License-Identifier: Apache-2.0
"""Lakes of made-up records for tests, written as the agent writes them: schemas/avro, folders, names.

    with LakeMaker(tmp_path / "lake") as lake:
        lake.run(run_id="r1", start=0, end=60)
        p = lake.program(run_id="r1", task_id="t1", start=1, end=31, cpu_user_ns=30 * S)
        lake.usage(p, start=1, end=11, cpu_user_ns=10 * S)

start, end and at are seconds after maker.t0 (a whole UTC hour); the schemas' own fields (time, start_time,
end_time, program_start_time: microseconds since 1970) win over them. Every other keyword is a field of the
schema, or of its nested usage, shares (share_cpu ...), bill and own_bill (bill_cpu_ns, own_cpu_ns ...) and
psi_* (psi_cpu_some ...), by the names that columns.py has. What is not given gets a plain default; unknown
keywords are an error.
"""

from __future__ import annotations

import copy
import datetime
import json
import os
import pathlib
import uuid
from typing import Any

import fastavro

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "schemas" / "avro"
TOPICS = ("program", "usage", "task", "run", "host", "agent", "finding")
NESTED = {
    "usage": "", "shares": "share_", "bill": "bill_", "own_bill": "own_", "psi_cpu": "psi_cpu_",
    "psi_memory": "psi_memory_", "psi_io": "psi_io_",
}  # fmt: skip

MS = 1_000_000
"""Nanoseconds in a millisecond."""

S = 1_000_000_000
"""Nanoseconds in a second."""

MIB = 1 << 20
GIB = 1 << 30

T0 = 1_793_534_400_000_000
"""2026-11-01T12:00:00Z in microseconds: where the clocks of lakes start by default."""

DAY_US = 86_400_000_000

START_AFTER_US = 1_000_000
"""How long a program lives until an agent writes its START."""

Record = dict[str, Any]


def schema_text(topic: str) -> str:
    """The schema of a topic, as its .avsc has it."""
    return (SCHEMAS / f"{topic}.avsc").read_text(encoding="utf-8")


def schema_of(topic: str) -> dict[str, Any]:
    """The schema of a topic as JSON."""
    schema: dict[str, Any] = json.loads(schema_text(topic))
    return schema


def day_of(us: int) -> str:
    """The UTC day of a time in microseconds."""
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us)).strftime("%Y-%m-%d")


def _default(kind: Any, field: dict[str, Any], named: dict[str, Any]) -> Any:
    """The value of a field that a test does not give: its default, null where that is allowed, else the least value."""
    if "default" in field:
        return copy.deepcopy(field["default"])
    if isinstance(kind, list):
        for branch in kind:  # types that later fields name are made in a union too
            if isinstance(branch, dict) and "name" in branch:
                named[branch["name"]] = branch
        return None
    if isinstance(kind, dict):
        if "name" in kind:
            named[kind["name"]] = kind
        if kind["type"] == "record":
            return {f["name"]: _default(f["type"], f, named) for f in kind["fields"]}
        if kind["type"] == "enum":
            return kind["symbols"][0]
        if kind["type"] == "array":
            return []
        kind = kind["type"]
    if kind in named:
        return _default(named[kind], {}, named)
    return {"string": "", "int": 0, "long": 0, "double": 0.0, "boolean": False, "bytes": b""}[kind]


def _resources() -> list[str]:
    """The fields of the nested record Resources."""
    usage = next(f for f in schema_of("usage")["fields"] if f["name"] == "usage")
    return [f["name"] for f in usage["type"]["fields"]]


class LakeMaker:
    """Writes a lake. Records are kept until write() (or the end of `with`) makes finished files of them."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        host_id: str = "11112222333344445555666677778888",
        host_name: str = "node1",
        t0: int = T0,
    ) -> None:
        """host_id and host_name: those of records for which a test gives none; t0: the time that 0 s means."""
        self.path = pathlib.Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.host_id = host_id
        self.host_name = host_name
        self.t0 = t0
        self.written: dict[str, list[Record]] = {topic: [] for topic in TOPICS}
        """All records that are in files, by topic, repeated ones too"""
        self.files: list[pathlib.Path] = []
        """All files, in the order in which they were made"""
        self.agent_id: str | None = None
        """Of all hosts, as if they were clones; None: each has its own"""
        self._seq: dict[tuple[str, str, str], int] = {}
        self._pid = 1000
        self._pending: list[tuple[str, Record]] = []
        self._resources = _resources()
        self._templates: dict[str, Record] = {}
        for topic in TOPICS:
            named: dict[str, Any] = {}
            self._templates[topic] = {f["name"]: _default(f["type"], f, named) for f in schema_of(topic)["fields"]}

    def __enter__(self) -> LakeMaker:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None:
            self.write()

    def us(self, seconds: float) -> int:
        """Seconds after t0 as microseconds since 1970."""
        return self.t0 + round(seconds * 1e6)

    def agent_of(self, host_id: str) -> str:
        """The agent_id of a host, unless a record has another."""
        return self.agent_id or str(uuid.uuid5(uuid.NAMESPACE_OID, host_id))

    # The topics

    def program(self, *, start: float = 0, end: float | None = None, phase: str | None = None, **fields: Any) -> Record:
        """A program as an agent records it: its END, where an end is given, and a START if it lives for a second.

        One record alone where phase is given.
        At END usage is all 0 but for what is given (None: unknown), peak_rss_bytes 1 MiB, threads_peak 1,
        exit_code 0. Returns the last of the records.
        """
        end_time = fields.pop("end_time", None if end is None else self.us(end))
        fields.setdefault("program_start_time", self.us(start))
        fields.setdefault("start_time", fields["program_start_time"])
        if "pid" not in fields:
            self._pid += 1
            fields["pid"] = self._pid
        fields.setdefault("ppid", 1)
        fields.setdefault("exe", "/usr/bin/tool")
        fields.setdefault("argv", [str(fields["exe"])])
        fields.setdefault("comm", os.path.basename(str(fields["exe"]))[:15])
        fields.setdefault("tool", fields["comm"])
        fields.setdefault("cwd", "/work")
        fields.setdefault("uid", 1000)
        host = fields.get("host_id", self.host_id)
        fields.setdefault(
            "program_id",
            f"{self._boot(host)[:8]}-{fields['pid']:04x}-{fields['start_time']:x}-{fields.get('program_index', 0)}",
        )
        if fields.get("run_id") is not None:
            fields.setdefault("confidence", 1.0)
        at_end = {"end_reason", "exit_code", "exit_signal", "core_dumped", "oom_killed", "usage", *self._resources}
        begin = {name: value for name, value in fields.items() if name not in at_end}
        record: Record | None = None
        started = fields["program_start_time"] + START_AFTER_US
        if phase == "START" or (phase is None and (end_time is None or end_time >= started)):
            begin.setdefault("time", started)
            record = self._add("program", begin, phase="START")
        if phase == "END" or (phase is None and end_time is not None):
            fields.pop("time", None) if phase is None else None
            fields.setdefault("time", end_time)
            fields["end_time"] = end_time
            fields.setdefault("end_reason", "EXIT")
            fields.setdefault("oom_killed", False)
            fields.setdefault("core_dumped", False)
            if fields.get("exit_signal") is None and fields["end_reason"] == "EXIT":
                fields.setdefault("exit_code", 0)
            if fields.get("usage", 0) == 0:
                fields["usage"] = dict.fromkeys(self._resources, 0) | {"peak_rss_bytes": MIB, "threads_peak": 1}
            record = self._add("program", fields, phase="END")
        assert record is not None, "phase is START or END"
        return record

    def usage(self, program: Record | None = None, *, start: float = 0, end: float = 10, **fields: Any) -> Record:
        """What a program used between start and end: one record, written at end. Takes identity from program."""
        if program is not None:
            for name in self._templates["usage"]:
                if name not in ("time", "seq", "usage") and name in program:
                    fields.setdefault(name, program[name])
        fields.setdefault("time", self.us(end))
        fields.setdefault("interval_ns", round((end - start) * 1e9))
        fields.setdefault("program_start_time", self.us(start))
        fields.setdefault("start_time", fields["program_start_time"])
        fields.setdefault("usage", dict.fromkeys(self._resources, 0) | {"rss_bytes": MIB, "threads_peak": 1})
        return self._add("usage", fields)

    def task(self, *, start: float = 0, end: float | None = None, phase: str | None = None, **fields: Any) -> Record:
        """A task: START and, where an end is given, END; one record alone where phase is given."""
        fields.setdefault("task_id", "t1")
        fields.setdefault("task", "step")
        fields.setdefault("name", fields["task"])
        return self._work("task", start, end, phase, fields)

    def run(self, *, start: float = 0, end: float | None = None, phase: str | None = None, **fields: Any) -> Record:
        """A run: START and, where an end is given, END; one record alone where phase is given."""
        fields.setdefault("run_id", "r1")
        fields.setdefault("pipeline", "demo")
        fields.setdefault("name", fields["pipeline"])
        fields.setdefault("command", "snakemake -c2")
        return self._work("run", start, end, phase, fields)

    def host(self, *, start: float = 0, end: float = 10, **fields: Any) -> Record:
        """A host's interval, written at end: 4 CPUs, 16 GiB, half of it available, nothing busy unless given.

        cpu_capacity_ns follows from cpus and the interval, cpu_unattributed_ns from busy and attributed.
        """
        interval = fields.setdefault("interval_ns", round((end - start) * 1e9))
        fields.setdefault("time", self.us(end))
        cpus = fields.setdefault("cpus", 4)
        fields.setdefault("memory_bytes", 16 * GIB)
        fields.setdefault("memory_available_bytes", fields["memory_bytes"] // 2)
        fields.setdefault("processes", 100)
        fields.setdefault("threads", 120)
        fields.setdefault("cpu_capacity_ns", cpus * interval)
        fields.setdefault("cpu_unattributed_ns", fields.get("cpu_busy_ns", 0) - fields.get("cpu_attributed_ns", 0))
        fields.setdefault("kernel", "6.12.0")
        fields.setdefault("architecture", "x86_64")
        for kind in ("disk_read", "disk_write", "net_rx", "net_tx"):
            fields.setdefault(f"{kind}_bytes", 0)
            fields.setdefault(f"{kind}_attributed_bytes", 0)
        for kind in ("psi_cpu", "psi_memory", "psi_io"):
            fields.setdefault(kind, {"some": 0.0, "full": 0.0})
        return self._add("host", fields)

    def agent(self, event: str = "LIVE", *, at: float = 0, **fields: Any) -> Record:
        """An agent's word of itself: event START, LIVE, STOP, RELOAD or GAP."""
        fields.setdefault("time", self.us(at))
        fields.setdefault("version", "0.1.0")
        fields.setdefault("interval_ns", 10 * S)
        return self._add("agent", fields | {"event": event})

    def finding(self, kind: str, *, at: float = 0, severity: str = "WARNING", **fields: Any) -> Record:
        """A finding; evidence as a dict of numbers or as the schema's list of name and value."""
        evidence = fields.get("evidence")
        if isinstance(evidence, dict):
            fields["evidence"] = [{"name": name, "value": float(value)} for name, value in evidence.items()]
        fields.setdefault("time", self.us(at))
        fields.setdefault("message", kind.lower())
        return self._add("finding", fields | {"kind": kind, "severity": severity})

    # Files

    def repeat(self, *records: Record) -> None:
        """Records that were made before, once more with their seq: what a second delivery looks like."""
        for record in records:
            topic = next(t for t in TOPICS for r in [*self.written[t], *self._of(t)] if r is record)
            self._pending.append((topic, copy.deepcopy(record)))

    def skip(self, topic: str, count: int = 1, host_id: str | None = None) -> None:
        """Leaves a hole of count in seq: what loss looks like."""
        host = host_id or self.host_id
        key = (host, self.agent_of(host), topic)
        self._seq[key] = self._seq.get(key, 0) + count

    def write(
        self,
        *,
        without: tuple[str, ...] = (),
        extra: dict[str, tuple[Any, Any]] | None = None,
        schema_version: int | None = None,
        codec: str = "null",
        left_open: bool = False,
    ) -> list[pathlib.Path]:
        """Makes files of what was added since the last call: one a topic, day, host and agent. Returns their paths.

        without: fields that the writer's schema lacks, 'usage.tcp_rx_bytes' for nested ones (an older agent).
        extra: more fields, name -> (Avro type, value) (an agent from the future); schema_version: what records
        then say. left_open: named as a file that is being written.
        """
        groups: dict[tuple[str, str, str, str], list[Record]] = {}
        for topic, record in self._pending:
            day = day_of(record["time"])
            groups.setdefault((topic, day, record["host_id"], record["agent_id"]), []).append(record)
            self.written[topic].append(record)
        self._pending = []
        made = []
        for (topic, day, host, agent), records in groups.items():
            schema = schema_of(topic)
            for name in without:
                _drop_field(schema, name)
            for name, (kind, _) in (extra or {}).items():
                schema["fields"].append({"name": name, "type": kind})
            for record in records:
                record.update({name: value for name, (_, value) in (extra or {}).items()})
                if schema_version is not None:
                    record["schema_version"] = schema_version
            folder = self.path / f"sluice.{topic}" / f"date={day}" / f"host={host}"
            folder.mkdir(parents=True, exist_ok=True)
            made.append(_free_name(folder, f"{agent}-{records[0]['seq']}", left_open))
            with open(made[-1], "wb") as f:
                fastavro.writer(f, schema, records, codec=codec)
        self.files += made
        return made

    # Inner parts

    def _boot(self, host_id: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, host_id))

    def _of(self, topic: str) -> list[Record]:
        return [record for t, record in self._pending if t == topic]

    def _work(self, topic: str, start: float, end: float | None, phase: str | None, fields: dict[str, Any]) -> Record:
        end_time = fields.pop("end_time", None if end is None else self.us(end))
        began = fields.setdefault("start_time", self.us(start))
        fields.setdefault("engine", "snakemake")
        fields.setdefault("work_dir", "/work")
        fields.setdefault("confidence", 1.0)
        record: Record | None = None
        if phase in (None, "START"):
            at_end = {
                "usage", "shares", "bound", "exit_code", "exit_signal", "wall_ns", "parallelism", "programs",
                "failed_programs", "live_programs", "lost_events", "demand", "demand_confidence", "waiting_for",
                "denied", "denied_share", "bill", "own_bill", "memory_bytes", "peak_memory_bytes", "peak_memory_source",
                "energy_uj", "energy_source", *self._resources,
            }  # fmt: skip
            flat = ("share_", "bill_", "own_")
            begin = {n: v for n, v in fields.items() if n not in at_end and not n.startswith(flat)}
            begin.setdefault("time", began)
            record = self._add(topic, begin, phase="START")
        if phase in ("LIVE", "END") or (phase is None and end_time is not None):
            fields.pop("time", None) if phase is None else None
            fields["end_time"] = end_time if phase != "LIVE" else None
            fields.setdefault("time", end_time)
            fields.setdefault("wall_ns", (fields["time"] - began) * 1000)
            fields.setdefault("programs", 1)
            fields.setdefault("usage", dict.fromkeys(self._resources, 0))
            if phase != "LIVE" and fields.get("exit_signal") is None:
                fields.setdefault("exit_code", 0)
            record = self._add(topic, fields, phase="LIVE" if phase == "LIVE" else "END")
        assert record is not None, "phase is START, LIVE or END"
        return record

    def _add(self, topic: str, fields: dict[str, Any], **fixed: Any) -> Record:
        fields = dict(fields) | fixed
        record = copy.deepcopy(self._templates[topic])
        host = fields.setdefault("host_id", self.host_id)
        fields.setdefault("host_name", self.host_name if host == self.host_id else f"host-{host[:8]}")
        fields.setdefault("boot_id", self._boot(host))
        fields.setdefault("agent_id", self.agent_of(host))
        fields.setdefault("schema_version", 2)
        key = (host, fields["agent_id"], topic)
        if "seq" not in fields:
            fields["seq"] = self._seq.get(key, 0)
            self._seq[key] = fields["seq"] + 1
        # Nested records first, then what is named flat.
        for name in sorted(fields, key=lambda n: n not in NESTED):
            value = fields[name]
            if name in record:
                if name in NESTED and value is not None and isinstance(record[name], dict):
                    record[name].update(value)
                elif name in NESTED and value is not None:
                    record[name] = dict.fromkeys(self._resources) | value
                else:
                    record[name] = value
                continue
            for outer, prefix in NESTED.items():
                inner = record.get(outer)
                if isinstance(inner, dict) and name.startswith(prefix) and name.removeprefix(prefix) in inner:
                    inner[name.removeprefix(prefix)] = value
                    break
            else:
                raise TypeError(f"sluice.{topic} has no field {name}")
        self._pending.append((topic, record))
        return record


def _drop_field(schema: dict[str, Any], name: str) -> None:
    outer, _, inner = name.partition(".")
    for field in schema["fields"]:
        if field["name"] != outer or not inner:
            continue
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for kind in kinds:
            if isinstance(kind, dict):
                _drop_field(kind, inner)
    if not inner:
        schema["fields"] = [f for f in schema["fields"] if f["name"] != outer]


def _free_name(folder: pathlib.Path, base: str, left_open: bool) -> pathlib.Path:
    name, n = f"{base}.avro", 1
    while (folder / name).exists():
        n += 1
        name = f"{base}.{n}.avro"
    return folder / (f".{name}.part" if left_open else name)
