# SPDX-License-Identifier: Apache-2.0
"""Opens the lake that a command line names: --lake, --kafka or --table, on --engine."""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Sequence

from ..errors import UserError
from .session import Session

DEFAULT_LAKES = ("./sluice-lake", "/var/lib/sluice/lake")
ENGINES = ("duckdb", "spark")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that name the source of records; the same for every command."""
    group = parser.add_argument_group("where the records are")
    one = group.add_mutually_exclusive_group()
    one.add_argument(
        "--lake", metavar="DIR", help="a lake of files (default: ./sluice-lake, otherwise /var/lib/sluice/lake)"
    )
    one.add_argument("--kafka", metavar="BROKERS", help="topics of a Kafka cluster, from their beginning up to now")
    one.add_argument(
        "--table",
        metavar="CATALOG.NAME",
        help="Iceberg tables, which the streaming jobs write: CATALOG.NAMESPACE, a catalog of ~/.pyiceberg.yaml "
        "(--engine spark: of --spark-conf), or the folder of a namespace in a Hadoop catalog, as in "
        "file:///warehouse/sluice",
    )
    group.add_argument(
        "--registry", metavar="URL", help="the schema registry of --kafka: http://[USER:PASSWORD@]HOST:PORT"
    )
    group.add_argument(
        "--kafka-property",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a property of librdkafka, such as security.protocol=SSL",
    )
    group.add_argument(
        "--engine", choices=ENGINES, default="duckdb", help="the engine that runs the queries (default: duckdb)"
    )
    group.add_argument("--memory-limit", metavar="SIZE", help="memory limit of DuckDB, such as 1GiB")
    group.add_argument(
        "--spark-master", metavar="URL", help="the cluster of Spark (default: the cores of this machine)"
    )
    group.add_argument(
        "--spark-conf",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a property of Spark, as for spark-submit",
    )


def open_session(args: argparse.Namespace) -> Session:
    """The Session that the options of add_arguments name; the caller closes it. UserError names what is missing."""
    if args.kafka:
        if not args.registry:
            raise UserError("--kafka needs --registry URL", "the registry has the schemas of the records")
        from .kafka import KafkaSession

        if args.engine == "spark":
            _check_local(args)
        return KafkaSession(args.kafka, args.registry, args.kafka_property, functools.partial(_on_files, args))
    if args.registry or args.kafka_property:
        raise UserError("--registry and --kafka-property need --kafka", "name the brokers with --kafka BROKERS")
    if args.table:
        from .iceberg import open_table

        return open_table(args.table, args.engine, args.memory_limit, args.spark_master, args.spark_conf)
    return _on_files(args, folder_of(args.lake, DEFAULT_LAKES))


def folder_of(named: str | None, usual: Sequence[str]) -> str:
    """The lake that --lake names, else the first usual one that is there."""
    lake = named or next((d for d in usual if os.path.isdir(d)), None)
    if lake is None:
        raise UserError(
            "there is no lake in ./sluice-lake or /var/lib/sluice/lake",
            "name one with --lake DIR, or record one: sluice run -- COMMAND",
        )
    return lake


def _check_local(args: argparse.Namespace) -> None:
    from .spark import settings

    master = args.spark_master or settings(args.spark_conf).get("spark.master", "local")
    if not master.startswith("local"):
        raise UserError(
            f"--kafka with Spark at {master}: topics are copied to files of this machine, which it cannot read",
            "omit --spark-master; or let analytics/streaming write the topics to tables, and read these with --table",
        )


def _on_files(args: argparse.Namespace, lake: str) -> Session:
    if args.engine == "spark":
        from .spark import SparkSession

        return SparkSession(lake, args.spark_master, args.spark_conf)
    from .duck import DuckSession

    return DuckSession(lake, args.memory_limit)
