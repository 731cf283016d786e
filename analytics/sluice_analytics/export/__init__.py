# SPDX-License-Identifier: Apache-2.0
"""Presentation to other systems: runs as OpenLineage events, OpenTelemetry traces, Parquet."""
