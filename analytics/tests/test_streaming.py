# SPDX-License-Identifier: Apache-2.0
"""What the streaming jobs decide without an engine: columns of schemas, schemas of readers, SQL's statements."""

import argparse
import io
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import duckdb
import fastavro
import lakes
import pytest

from sluice_analytics.errors import UserError
from sluice_analytics.lake.columns import COLUMNS
from sluice_analytics.lake.registry import Registry, without_logical_types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "streaming"))

import client
import layout
import run_sql
import sources

STREAMING = pathlib.Path(layout.__file__).parent
ROOT = STREAMING.parents[1]


def paths(record: dict[str, Any], named: dict[str, Any], at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for field in record["fields"]:
        kind = layout.resolve(field["type"], named)
        if isinstance(kind, dict) and kind["type"] == "record":
            found += paths(kind, named, (*at, field["name"]))
        else:
            found.append((*at, field["name"]))
    return found


@pytest.mark.parametrize("topic", COLUMNS)
def test_columns_of_a_schema_are_those_of_columns_py_and_more(topic: str) -> None:
    schema = lakes.schema_of(topic)
    found = [layout.column_name(topic, path) for path in paths(schema, layout.named_types(schema))]
    assert len(found) == len(set(found))
    assert {c.name for c in COLUMNS[topic]} <= set(found)


def test_a_field_that_nobody_knows_yet_is_named_by_the_same_rule() -> None:
    assert layout.column_name("program", ("energy_nj",)) == "energy_nj"
    assert layout.column_name("program", ("usage", "gpu_ns")) == "gpu_ns"
    assert layout.column_name("task", ("shares", "gpu")) == "share_gpu"
    assert layout.column_name("host", ("psi_irq", "full")) == "psi_irq_full"


def test_names_of_topics() -> None:
    assert layout.topic_of("sluice.program") == layout.topic_of("lab.sluice.program") == "program"
    for wrong in ("sluice.programs", "program", "other"):
        with pytest.raises(UserError, match="is not a topic of sluice"):
            layout.topic_of(wrong)


@pytest.mark.parametrize("topic", COLUMNS)
def test_flinks_schema_reads_what_agents_write(topic: str, tmp_path: pathlib.Path) -> None:
    """A record written by the topic's schema is read by the pruned one, enum and nested records too."""
    maker = lakes.LakeMaker(tmp_path)
    program = maker.program(start=1, end=2, cpu_user_ns=7)
    maker.usage(program, cpu_user_ns=7)
    maker.task(end=3, share_cpu=0.5)
    maker.run(end=3)
    maker.host(psi_cpu_some=0.25)
    maker.agent(lost=[{"place": "ring", "reason": "full", "count": 4}])
    maker.finding("FAILED", severity="ERROR", evidence={"exit_code": 3, "wall_ns": 5e9}, causes=["b", "a"])
    maker.write()
    schema = lakes.schema_of(topic)
    pruned = sources.reader_schema(topic, schema)
    assert "logicalType" not in json.dumps(pruned)
    wanted = {c.source for c in sources.columns_of(topic)}
    got = {".".join(path) for path in paths(pruned, layout.named_types(pruned))}
    assert got == wanted
    record = maker.written[topic][-1]
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    out.seek(0)
    plain = fastavro.parse_schema(without_logical_types(schema))
    read = fastavro.schemaless_reader(out, plain, fastavro.parse_schema(pruned))
    for column in sources.columns_of(topic):
        value, expected = read, record
        for name in column.source.split("."):
            value, expected = value and value[name], expected and expected[name]
        assert value == expected, column.source


def test_findings_are_read_whole() -> None:
    fields = {f["name"] for f in lakes.schema_of("finding")["fields"]}
    assert {c.name for c in sources.columns_of("finding")} == fields - {"schema_version"}


def test_types_of_flink() -> None:
    assert (
        sources.sql_type("array<struct<place: string, count: int64>>") == "ARRAY<ROW<`place` STRING, `count` BIGINT>>"
    )
    assert sources.sql_type("array<string>") == "ARRAY<STRING>"


def test_statements_of_a_file() -> None:
    text = "-- a; comment\nSET 'a' = 'b;c';\nSELECT 'it''s -- none', `x;y` FROM t /* ; */ WHERE a / 2 - 1 > 0;\n\n"
    assert list(run_sql.split(text)) == ["SET 'a' = 'b;c'", "SELECT 'it''s -- none', `x;y` FROM t  WHERE a / 2 - 1 > 0"]


def test_variables() -> None:
    assert run_sql.fill("a ${x.y} ${z}", {"x.y": "1", "z": "2"}, "f.sql") == "a 1 2"
    with pytest.raises(UserError, match=r"f\.sql: \$\{warehouse\} has no value"):
        run_sql.fill("${warehouse}", {}, "f.sql")


def test_a_statement_with_topic_is_one_of_each() -> None:
    assert run_sql.of_each_topic("SELECT 1") == ["SELECT 1"]
    made = run_sql.of_each_topic("INSERT INTO x.`${topic}` SELECT ${columns.${topic}} FROM `${topic}`")
    assert len(made) == len(COLUMNS)
    columns = {f"columns.{t}": f"`{t}_id`" for t in COLUMNS}
    assert run_sql.fill(made[0], columns, "f.sql") == "INSERT INTO x.`program` SELECT `program_id` FROM `program`"


def test_alerts_are_of_all_findings_but_those_of_information() -> None:
    """The kinds and severities that the agent has are those that the documentation has, and the SQL selects by them."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "correlate").glob("*.c")]
    kind = re.compile(r'(?:\] = \{ |\.r\.kind = )"([A-Z_]+)", (?:\.r\.severity = )?SEVERITY_([A-Z]+)')
    made = {name: severity for text in texts for name, severity in kind.findall(text)}
    assert {"FAILED": "ERROR", "STUCK": "WARNING", "IDLE": "INFO"}.items() <= made.items()
    documented = re.findall(
        r"^ +\| ([A-Z_]+) \| ([A-Z]+)(: no alert)? \|", (STREAMING / "README.md").read_text(encoding="utf-8"), re.M
    )
    assert {name: severity for name, severity, _ in documented} == made
    statements = run_sql.split((STREAMING / "flink" / "alerts.sql").read_text(encoding="utf-8"))
    (statement,) = [s for s in statements if "FROM finding" in s]
    rows = ", ".join(f"('{name}', '{severity}')" for name, severity in made.items())
    selected = duckdb.sql(
        f"WITH finding (kind, severity) AS (VALUES {rows}) SELECT kind {statement[statement.index('FROM finding') :]}"
    ).fetchall()
    assert {name for (name,) in selected} == {name for name, _, none in documented if not none}


def test_newest_checkpoint_is_the_last_whole_one(tmp_path: pathlib.Path) -> None:
    url = run_sql.absolute(str(tmp_path))
    assert run_sql.newest_checkpoint(url) is None
    for age, name in enumerate(("job2/chk-1", "job1/chk-9", "job1/chk-8")):
        (tmp_path / name).mkdir(parents=True)
        meta = tmp_path / name / "_metadata"
        meta.touch()
        os.utime(meta, (1000 - age, 1000 - age))
    (tmp_path / "job3" / "chk-2").mkdir(parents=True)  # killed before it was whole
    assert run_sql.newest_checkpoint(url) == f"{url}/job2/chk-1"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["no-such.sql"], "no-such.sql: No such file"),
        (["--start", "yesterday", "FILE"], "--start yesterday: is neither earliest, latest nor a time"),
        (["--kafka-property", "x", "FILE"], "--kafka-property x: is not KEY=VALUE"),
        (["--registry", "registry:8081", "FILE"], "registry:8081: is not an http or https URL"),
    ],
)
def test_errors_are_sentences(
    wrong: list[str], says: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.sql"
    file.write_text("SELECT 1;")
    argv = [str(file) if w == "FILE" else w for w in wrong]
    given = ["--brokers", "localhost:1", "--registry", "http://127.0.0.1:1", *argv]
    assert run_sql.common.run("run_sql.py", run_sql.main, given) == 2
    assert says in capsys.readouterr().err


def connection(*argv: str) -> tuple[dict[str, str], Registry]:
    parser = argparse.ArgumentParser()
    client.add_arguments(parser)
    return client.read(parser.parse_args(["--brokers", "kafka:9092", "--registry", "http://registry:8081", *argv]), 9.0)


def test_properties_of_both_jobs(tmp_path: pathlib.Path) -> None:
    """The command line wins over the file; the registry's secret goes to the registry and not to Kafka."""
    file = tmp_path / "client.properties"
    file.write_text("# ours\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b\nregistry.basic.auth=me:x\n")
    properties, registry = connection("--properties", str(file), "--kafka-property", "security.protocol=SSL")
    assert properties == {"security.protocol": "SSL", "sasl.password": "a=b"}
    assert registry.auth == "me:x"
    assert connection()[0] == {} and connection()[1].auth is None
    with pytest.raises(UserError, match=r"--properties /nowhere: No such file"):
        connection("--properties", "/nowhere")
    file.write_text("colour\n")
    with pytest.raises(UserError, match=r"--properties .*client.properties: colour: is not KEY=VALUE"):
        connection("--properties", str(file))
    file.write_bytes(b"\xff=1\n")
    with pytest.raises(UserError, match=r"--properties .*client.properties: 'utf-8'"):
        connection("--properties", str(file))


@pytest.mark.parametrize("script", ["spark_iceberg.py", "maintain.py"])
def test_without_spark_the_jobs_say_so(script: str, tmp_path: pathlib.Path) -> None:
    without_spark = tmp_path  # also where it is installed
    (tmp_path / "pyspark.py").write_text("raise ModuleNotFoundError(name='pyspark')\n")
    done = subprocess.run(
        [sys.executable, str(STREAMING / script)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(without_spark)},
    )
    assert done.returncode == 2
    assert f"{script}: no Spark installed; dev/analytics spark makes an environment" in done.stderr
