# SPDX-License-Identifier: Apache-2.0
"""Sessions: records from a lake of files, Kafka topics or Iceberg tables, on DuckDB or Spark."""
