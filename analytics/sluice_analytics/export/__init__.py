# SPDX-License-Identifier: Apache-2.0
"""Runs for other systems: OpenLineage, OpenTelemetry traces, Parquet."""
