# SPDX-License-Identifier: Apache-2.0
"""Makes big lakes out of recorded ones: many runs, over days, hosts and pipelines, in proportion.

    python generate.py --template LAKE [--template LAKE ...] --programs 1e7 --out DIR

Each made run is a recorded run, once or many times over (samples of one workflow), with its clock and its
amounts scaled: CPU and waiting times by one whole number, bytes and counts by another, memory by a third, so
that what added up in the recording adds up here: usage pieces of a program never exceed its END, programs
add up to their task and run. Wall times are jittered on top of it. Hosts have a record every ten seconds,
busy as their runs were, or idle. The lake is written as `sluice-lake compact` leaves it: Parquet by day.

All numbers come from a hash of the seed, so that two calls make the same lake.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import sys
import time
from typing import Any

import run_indexes

from sluice_analytics.cli import common
from sluice_analytics.errors import UserError
from sluice_analytics.lake import compact, files
from sluice_analytics.lake.columns import COLUMNS, SCHEMA_VERSION, SUMS, Column
from sluice_analytics.lake.compactor import LEVEL, ROW_GROUP, manifest_of
from sluice_analytics.lake.duck import DuckSession, connect
from sluice_analytics.lake.session import ALL
from sluice_analytics.lake.sql import literal, quoted
from sluice_analytics.lake.stage import SQL_TYPES, paths_list

OF_RUNS = ("program", "usage", "task", "run", "finding")
TIMES_NS = frozenset(("cpu_user_ns", "cpu_system_ns", "run_delay_ns", "block_io_delay_ns"))
LEVELS = frozenset(("peak_rss_bytes", "rss_bytes"))
IDS = frozenset(("task_id", "program_id", "parent_program_id"))
RUNS_A_DAY = 113
"""On each host: with the scales below a host is busy about half of its time."""

INTERVAL_S = 10
PASSES = ((70, 1), (95, 8), (100, 40))
"""How often a run repeats its template: cumulative percent of runs, times."""


@dataclasses.dataclass
class Shape:
    """How many runs, on how many hosts and days."""

    runs: int
    hosts: int
    days: int
    first_day_us: int
    pipelines: int


def read_templates(con: Any, lakes: list[str]) -> int:
    """Tables t_<topic> with the records of all finished runs of lakes; the number of runs.

    Beside the columns: _run (0, 1, ...), _row (0, 1, ... in each run), _t0 (the run's begin).
    """
    number = 0
    for topic in OF_RUNS:
        columns = ", ".join(f"{quoted(c.name)} {SQL_TYPES[c.type]}" for c in COLUMNS[topic])
        con.execute(f"CREATE TABLE t_{topic} ({columns}, _run BIGINT, _row BIGINT, _t0 BIGINT)")
    for lake in lakes:
        session = DuckSession(lake)
        ended = session.connection.execute(
            "SELECT run_id, min(start_time) FROM (" + session.select("run", ALL) + ") GROUP BY run_id "
            "HAVING bool_or(phase = 'END') AND max(programs) > 5 ORDER BY 2, 1"
        ).fetchall()
        for topic in OF_RUNS:
            path = os.path.join(session.stage.folder, f"template-{topic}.parquet")
            session.connection.execute(f"COPY ({session.select(topic, ALL)}) TO {literal(path)}")
            for n, (run_id, t0) in enumerate(ended):
                con.execute(
                    f"INSERT INTO t_{topic} SELECT *, {number + n}, "
                    f"row_number() OVER (ORDER BY time, agent_id, seq) - 1, {t0} "
                    f"FROM read_parquet({literal(path)}) WHERE run_id = {literal(run_id)}"
                )
        number += len(ended)
        session.close()
    if number == 0:
        raise UserError(f"{', '.join(lakes)}: no finished run of more than five programs", "record one: sluice run")
    return number


def _random(low: int, high: int, *salt: str) -> str:
    """SQL: a whole number from low to high, by a hash of n and a salt."""
    return f"({low} + (hash(n, {', '.join(literal(s) for s in salt)}) % {high - low + 1})::BIGINT)"


def plan(con: Any, shape: Shape, templates: int, seed: int) -> None:
    """Table copies: one row a made run, with its position, scales and the seq that its host's agent had reached."""
    s = str(seed)
    con.execute(f"""
        CREATE TABLE sizes AS SELECT _run AS template, {
        ", ".join(f"(SELECT count(*) FROM t_{t} x WHERE x._run = r._run) AS {t}_rows" for t in OF_RUNS)
    },
            max(end_time) - min(_t0) AS length
        FROM t_run r GROUP BY _run""")
    passes = " ".join(f"WHEN {_random(1, 100, s, 'passes')} <= {share} THEN {n}" for share, n in PASSES)
    con.execute(f"""
        CREATE TABLE copies AS
        WITH drawn AS (
            SELECT n, {_random(0, templates - 1, s, "template")} AS template,
                CASE {passes} END AS passes, n % {shape.hosts * shape.days} AS slot,
                {_random(1, 3, s, "time")} AS times, {_random(1, 4, s, "bytes")} AS amounts,
                {_random(1, 3, s, "memory")} AS memory, 1 + {_random(0, 250, s, "jitter")} / 1000.0 AS jitter,
                {_random(0, shape.pipelines - 1, s, "pipeline")} AS pipeline
            FROM range({shape.runs}) t(n)),
        placed AS (
            SELECT *, slot % {shape.hosts} AS host, slot // {shape.hosts} AS day,
                times * jitter AS stretch, round(length * times * jitter)::BIGINT AS pass_us,
                pass_us * passes AS length_us
            FROM drawn JOIN sizes USING (template)),
        in_day AS (
            SELECT *, coalesce(sum(length_us) OVER before, 0)::BIGINT AS before_us,
                sum(length_us) OVER whole AS all_us, count(*) OVER whole AS in_slot, row_number() OVER till AS nth
            FROM placed
            WINDOW whole AS (PARTITION BY slot), till AS (PARTITION BY slot ORDER BY n),
                before AS (PARTITION BY slot ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
        SELECT * EXCLUDE (before_us, all_us, in_slot, nth),
            {shape.first_day_us} + day * 86400000000 + before_us
                + (nth * greatest(86390000000 - all_us, 0) // (in_slot + 1))::BIGINT AS start_us,
            {
        ", ".join(
            f"(coalesce(sum({t}_rows * {'1' if t == 'run' else 'passes'}) OVER so_far, 0))::BIGINT AS {t}_seq"
            for t in OF_RUNS
        )
    },
            md5(n || '{seed}') AS h,
            h[1:8] || '-' || h[9:12] || '-4' || h[14:16] || '-a' || h[18:20] || '-' || h[21:32] AS run_id
        FROM in_day
        WHERE before_us + length_us < 86390000000
        WINDOW so_far AS (PARTITION BY host ORDER BY day, nth ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ORDER BY day""")
    con.execute(f"""
        CREATE TABLE hosts AS SELECT host, md5('host' || host || '{seed}') AS host_id,
            'node' || lpad(host::VARCHAR, 3, '0') AS host_name, md5('boot' || host || '{seed}') AS boot_id,
            md5('agent' || host || '{seed}') AS h,
            h[1:8] || '-' || h[9:12] || '-4' || h[14:16] || '-a' || h[18:20] || '-' || h[21:32] AS agent_id,
            CASE host % 3 WHEN 0 THEN 8 WHEN 1 THEN 16 ELSE 4 END AS cpus
        FROM range({shape.hosts}) t(host)""")


def _value(topic: str, column: Column) -> str:
    """A column of a made record: the template's (x), scaled and placed by its copy (c), host (o) and pass (p)."""
    name, source = column.name, f"x.{quoted(column.name)}"
    if topic == "run":  # one over all passes: later moments lie that much later
        moment = f"c.start_us + round(({source} - x._t0) * c.stretch * c.passes)::BIGINT"
        times, amounts, span = "c.times * c.passes", "c.amounts * c.passes", "c.stretch * c.passes"
    else:
        moment = f"c.start_us + p.p * c.pass_us + round(({source} - x._t0) * c.stretch)::BIGINT"
        times, amounts, span = "c.times", "c.amounts", "c.stretch"
    if column.is_time:
        return moment
    if name in ("host_id", "host_name", "boot_id", "agent_id"):
        return f"o.{name}"
    if name == "seq":
        rows = f"p.p * c.{topic}_rows" if topic != "run" else "0"
        return f"c.{topic}_seq + {rows} + x._row"
    if name == "run_id":
        return "c.run_id"
    if name == "pipeline" or (name == "name" and topic == "run"):
        return "'pipeline-' || lpad(c.pipeline::VARCHAR, 3, '0')"
    if name in IDS:
        return f"to_hex(c.n) || '.' || p.p || '-' || {source}"
    if name == "sample":
        return (
            f"coalesce({source}, CASE WHEN c.passes > 1 AND x.task_id IS NOT NULL THEN 's' || p.p END)"
            if topic != "run"
            else source
        )
    if name in ("interval_ns", "wall_ns"):
        return f"round({source} * {span})::BIGINT"
    if name in TIMES_NS:
        return f"({source} * {times})::BIGINT"
    if name in LEVELS:
        return f"({source} * c.memory)::BIGINT"
    if name in SUMS:
        return f"({source} * {amounts})::BIGINT"
    if topic == "run" and name in ("programs", "failed_programs", "lost_events"):
        return f"({source} * c.passes)::BIGINT"
    return source


def of_runs(topic: str, day: int) -> str:
    """SQL: the records of a topic that runs wrote on a day."""
    values = ", ".join(f"{_value(topic, c)} AS {quoted(c.name)}" for c in COLUMNS[topic])
    passes = "(SELECT 0 AS p)" if topic == "run" else f"range({max(n for _, n in PASSES)}) p(p)"
    alias = " p" if topic == "run" else ""
    return (
        f"SELECT {values} FROM copies c JOIN hosts o USING (host) JOIN {passes}{alias} ON p.p < c.passes "
        f"JOIN t_{topic} x ON x._run = c.template WHERE c.day = {day}"
    )


def of_hosts(topic: str, day: int, shape: Shape) -> str:
    """SQL: Host or Agent records of a day, every ten seconds. A run's CPU time is spread evenly over it."""
    ticks = 86_400 // INTERVAL_S
    begin = shape.first_day_us + day * 86_400_000_000
    step = INTERVAL_S * 1_000_000
    known = {
        "time": "time", "host_id": "host_id", "host_name": "host_name", "boot_id": "boot_id", "agent_id": "agent_id",
        "seq": f"{day * ticks} + tick",
        "interval_ns": f"{INTERVAL_S}000000000", "event": "'LIVE'", "version": "'0.1.0'",
        "delivered": "0", "retried": "0", "cpu_ns": f"({day * ticks} + tick) * 2000000", "rss_bytes": "18874368",
        "lost": "[]", "cpus": "cpus", "memory_bytes": "cpus * 4294967296",
        "memory_available_bytes": "cpus * 4294967296 - 1073741824 - rss", "processes": "180",
        "cpu_capacity_ns": f"cpus * {INTERVAL_S}000000000", "cpu_busy_ns": "cpu + 40000000", "cpu_iowait_ns": "0",
        "cpu_steal_ns": "0", "cpu_attributed_ns": "cpu", "cpu_unattributed_ns": "40000000",
        "rss_attributed_bytes": "rss", "load1": f"cpu / {INTERVAL_S}e9", "disk_read_bytes": "bytes_read",
        "disk_write_bytes": "bytes_written", "disk_read_attributed_bytes": "bytes_read",
        "disk_write_attributed_bytes": "bytes_written", "net_rx_bytes": "0", "net_tx_bytes": "0",
        "net_rx_attributed_bytes": "0", "net_tx_attributed_bytes": "0", "psi_cpu_some": "0.0",
        "instance_type": "'m6i.' || (cpus // 4) || 'xlarge'", "cloud": "'aws'", "region": "'eu-west-1'",
    }  # fmt: skip
    values = ", ".join(
        f"({known.get(c.name, 'NULL')})::{SQL_TYPES[c.type]} AS {quoted(c.name)}" for c in COLUMNS[topic]
    )
    if topic == "agent":
        return (
            f"SELECT {values} FROM (SELECT *, {begin} + (tick + 1) * {step} AS time FROM hosts, range({ticks}) t(tick))"
        )
    return f"""
        WITH used AS (
            SELECT c.host, c.start_us, c.start_us + c.length_us AS end_us, c.passes,
                (r.cpu_user_ns + r.cpu_system_ns) * c.times * c.passes AS cpu_ns,
                r.read_bytes * c.amounts * c.passes AS r,
                r.write_bytes * c.amounts * c.passes AS w, r.peak_rss_bytes * c.memory AS rss
            FROM copies c JOIN t_run r ON r._run = c.template AND r.phase = 'END' WHERE c.day = {day}),
        cut AS (
            SELECT host, unnest(range((start_us - {begin}) // {step}, (end_us - {begin}) // {step} + 1)) AS tick, *
            FROM used),
        parts AS (
            SELECT host, tick, rss, cpu_ns, r, w, greatest(0,
                least(end_us, {begin} + (tick + 1) * {step}) - greatest(start_us, {begin} + tick * {step}))
                / (end_us - start_us) AS share
            FROM cut),
        busy AS (
            SELECT host, tick, sum(cpu_ns * share)::BIGINT AS cpu, max(rss)::BIGINT AS rss,
                sum(r * share)::BIGINT AS bytes_read, sum(w * share)::BIGINT AS bytes_written
            FROM parts GROUP BY ALL),
        at_tick AS (
            SELECT h.*, t.tick, {begin} + (t.tick + 1) * {step} AS time, coalesce(b.cpu, 0) AS cpu,
                coalesce(b.rss, 0) AS rss, coalesce(b.bytes_read, 0) AS bytes_read,
                coalesce(b.bytes_written, 0) AS bytes_written
            FROM hosts h CROSS JOIN range({ticks}) t(tick)
            LEFT JOIN busy b ON b.host = h.host AND b.tick = t.tick)
        SELECT {values} FROM at_tick"""


def write_day(con: Any, out: str, topic: str, day: str, select: str) -> int:
    """A day of a topic as sluice-lake compact leaves it; the records."""
    folder = compact.day_folder(out, topic, day)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "1-0.parquet")
    (rows,) = con.execute(
        f"COPY ({select} ORDER BY run_id, host_id, time) TO {literal(path)} (FORMAT parquet, COMPRESSION zstd, "
        f"COMPRESSION_LEVEL {LEVEL}, ROW_GROUP_SIZE {ROW_GROUP})"
    ).fetchall()[0]
    if rows == 0:
        os.unlink(path)
        os.rmdir(folder)
        return 0
    manifest, origin = manifest_of(con, topic, day, 1, path, rows, [])
    for name, content in (("1.json", origin), (compact.MANIFEST, manifest)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(content, f)
    return int(rows)


def write_avro(out: str, topics: tuple[str, ...], schemas: str) -> int:
    """The lake once more as agents write it, in place of the compacted days; the files. Fields that no column
    reads get their schema's default or the least value."""
    import fastavro

    made = 0
    for topic in topics:
        with open(os.path.join(schemas, f"{topic}.avsc"), encoding="utf-8") as f:
            schema = json.load(f)
        for day in compact.days_in(out, topic, ALL):
            con = connect()
            cursor = con.execute(f"SELECT * FROM {paths_list('read_parquet', day.parquet)} ORDER BY agent_id, seq")
            names = [column[0] for column in cursor.description]
            by_agent: dict[tuple[str, str], list[dict[str, Any]]] = {}
            while rows := cursor.fetchmany(50_000):
                for row in rows:
                    values = dict(zip(names, row, strict=True))
                    by_agent.setdefault((values["host_id"], values["agent_id"]), []).append(values)
            for (host, agent), some in by_agent.items():
                folder = os.path.join(out, f"sluice.{topic}", f"date={day.day}", f"host={host}")
                os.makedirs(folder)
                path = os.path.join(folder, f"{agent}-{some[0]['seq']}.avro")
                with open(path, "wb") as f:
                    records = (_record(topic, schema, values) for values in some)
                    fastavro.writer(f, schema, records, "deflate", 64 * 1024, codec_compression_level=1)
                run_indexes.write(path)
                made += 1
            con.close()
    shutil.rmtree(os.path.join(out, "compact"))
    return made


def _record(topic: str, schema: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A record of a schema from the columns of a row."""
    flat = {c.source: values[c.name] for c in COLUMNS[topic]}
    flat["schema_version"] = SCHEMA_VERSION
    return _filled(schema, "", flat, {})


def _filled(record: dict[str, Any], prefix: str, flat: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    named[record["name"]] = record
    least = {"string": "", "int": 0, "long": 0, "double": 0.0, "boolean": False}
    found: dict[str, Any] = {}
    for field in record["fields"]:
        name, kind = prefix + field["name"], field["type"]
        optional = isinstance(kind, list)
        kind = next(k for k in kind if k != "null") if optional else kind
        inner = named.get(kind, kind) if isinstance(kind, str) else kind
        if isinstance(inner, dict) and inner["type"] == "record":
            value = _filled(inner, name + ".", flat, named)
            found[field["name"]] = None if optional and all(v is None for v in value.values()) else value
        elif flat.get(name) is not None or optional or "default" in field:
            found[field["name"]] = flat[name] if flat.get(name) is not None else field.get("default")
        elif isinstance(kind, dict):
            found[field["name"]] = [] if kind["type"] == "array" else least["long"]
        else:
            found[field["name"]] = least[kind]
    return found


def main(argv: list[str]) -> int:
    """Makes a lake; prints its records by topic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", metavar="LAKE", action="append", required=True, help="a recorded lake")
    parser.add_argument("--programs", metavar="N", type=float, required=True, help="about so many Program records")
    parser.add_argument("--out", metavar="DIR", required=True)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--pipelines", type=int, default=12)
    parser.add_argument("--last-day", metavar="DAY", help="YYYY-MM-DD (default: yesterday, UTC)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--avro", metavar="SCHEMAS", help="write Avro files instead; the folder schemas/avro")
    parser.add_argument("--memory-limit", metavar="SIZE", default="4GiB", help="for making it")
    args = parser.parse_args(argv)
    if os.path.exists(args.out):
        parser.error(f"{args.out}: exists already")

    con = connect(args.memory_limit)
    templates = read_templates(con, args.template)
    mean_passes = sum((share - before) / 100 * n for (share, n), before in zip(PASSES, (0, 70, 95), strict=True))
    (rows,) = con.execute("SELECT count(*) / count(DISTINCT _run) FROM t_program").fetchall()[0]
    runs = max(1, round(args.programs / (rows * mean_passes)))
    hosts = max(1, -(-runs // (RUNS_A_DAY * args.days)))
    last = (
        files.day_start(args.last_day)
        if args.last_day
        else int(time.time()) // 86_400 * 86_400_000_000 - 86_400_000_000
    )
    shape = Shape(runs, hosts, args.days, last - (args.days - 1) * 86_400_000_000, args.pipelines)
    plan(con, shape, templates, args.seed)
    os.makedirs(args.out)
    con.execute(f"SET temp_directory = {literal(os.path.join(args.out, '.temporary'))}")

    totals: dict[str, int] = {}
    for n in range(shape.days):
        day = files.day_of(shape.first_day_us + n * 86_400_000_000)
        for topic in (*OF_RUNS, "host", "agent"):
            select = of_runs(topic, n) if topic in OF_RUNS else of_hosts(topic, n, shape)
            totals[topic] = totals.get(topic, 0) + write_day(con, args.out, topic, day, select)
        print(f"{day}: {totals['program']:,} program records", file=sys.stderr)
    if args.avro:
        print(f"{write_avro(args.out, tuple(totals), args.avro):,} Avro files", file=sys.stderr)
    (made,) = con.execute("SELECT count(*) FROM copies").fetchall()[0]
    print(
        f"{made:,} runs on {hosts} hosts in {args.days} days; records: "
        + ", ".join(f"{t} {k:,}" for t, k in totals.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(common.run("generate.py", main, None))
