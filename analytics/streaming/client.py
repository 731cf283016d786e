# SPDX-License-Identifier: Apache-2.0
"""The jobs' configuration of Kafka and the registry: the options of both, and the file that keeps secrets."""

from __future__ import annotations

import argparse

from sluice_analytics.errors import UserError
from sluice_analytics.lake.registry import Registry
from sluice_analytics.options import pairs

AUTH = "registry.basic.auth"
"""The property that is the registry's and not Kafka's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--brokers, --registry, --properties and --kafka-property."""
    parser.add_argument("--brokers", required=True, metavar="HOST:PORT,…", help="Kafka's bootstrap servers")
    parser.add_argument(
        "--registry", required=True, metavar="URL", help="URL of the schema registry, as for the agents"
    )
    parser.add_argument(
        "--properties", metavar="FILE", help=f"file of lines KEY=VALUE for Kafka's clients, also {AUTH}=USER:PASSWORD"
    )
    parser.add_argument(
        "--kafka-property",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a property of Kafka's Java clients; put secrets into --properties",
    )


def read(args: argparse.Namespace, patience_s: float = 0.0) -> tuple[dict[str, str], Registry]:
    """The properties of Kafka's clients, those of the command line first, and the registry.

    patience_s: how long the registry may be away.
    """
    properties = _of_file(args.properties) | pairs("--kafka-property", args.kafka_property)
    return properties, Registry(args.registry, properties.pop(AUTH, None), patience_s)


def _of_file(path: str | None) -> dict[str, str]:
    """KEY=VALUE lines; # begins a comment."""
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError) as e:
        raise UserError(f"--properties {path}: {getattr(e, 'strerror', None) or e}") from e
    return pairs(f"--properties {path}:", [line for line in lines if line and not line.startswith("#")])
