-- SPDX-License-Identifier: Apache-2.0
-- Topics into Iceberg tables, each record once: columns as lake/columns.py names them, and event_time, by whose day
-- they are partitioned. A commit at each checkpoint, so that --checkpoint is needed; what a killed job had not
-- committed is read again. Tables that spark_iceberg.py has made are taken as they are, but one job writes a table.

CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '${warehouse}');

CREATE DATABASE IF NOT EXISTS lake.sluice;

CREATE TABLE IF NOT EXISTS lake.sluice.`program` (${ddl.program}, event_time TIMESTAMP_LTZ(6))
WITH ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd',
  'write.metadata.delete-after-commit.enabled' = 'true');

PARTITION lake.sluice.program BY DAY(event_time);

INSERT INTO lake.sluice.`program` (${columns.program}, event_time)
SELECT ${columns.program}, CAST(ts AS TIMESTAMP_LTZ(6)) FROM `program`;

CREATE TABLE IF NOT EXISTS lake.sluice.`usage` (${ddl.usage}, event_time TIMESTAMP_LTZ(6))
WITH ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd',
  'write.metadata.delete-after-commit.enabled' = 'true');

PARTITION lake.sluice.usage BY DAY(event_time);

INSERT INTO lake.sluice.`usage` (${columns.usage}, event_time)
SELECT ${columns.usage}, CAST(ts AS TIMESTAMP_LTZ(6)) FROM `usage`;

CREATE TABLE IF NOT EXISTS lake.sluice.`task` (${ddl.task}, event_time TIMESTAMP_LTZ(6))
WITH ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd',
  'write.metadata.delete-after-commit.enabled' = 'true');

PARTITION lake.sluice.task BY DAY(event_time);

INSERT INTO lake.sluice.`task` (${columns.task}, event_time)
SELECT ${columns.task}, CAST(ts AS TIMESTAMP_LTZ(6)) FROM `task`;

CREATE TABLE IF NOT EXISTS lake.sluice.`run` (${ddl.run}, event_time TIMESTAMP_LTZ(6))
WITH ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd',
  'write.metadata.delete-after-commit.enabled' = 'true');

PARTITION lake.sluice.run BY DAY(event_time);

INSERT INTO lake.sluice.`run` (${columns.run}, event_time)
SELECT ${columns.run}, CAST(ts AS TIMESTAMP_LTZ(6)) FROM `run`;

CREATE TABLE IF NOT EXISTS lake.sluice.`host` (${ddl.host}, event_time TIMESTAMP_LTZ(6))
WITH ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd',
  'write.metadata.delete-after-commit.enabled' = 'true');

PARTITION lake.sluice.host BY DAY(event_time);

INSERT INTO lake.sluice.`host` (${columns.host}, event_time)
SELECT ${columns.host}, CAST(ts AS TIMESTAMP_LTZ(6)) FROM `host`;

CREATE TABLE IF NOT EXISTS lake.sluice.`finding` (${ddl.finding}, event_time TIMESTAMP_LTZ(6))
WITH ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd',
  'write.metadata.delete-after-commit.enabled' = 'true');

PARTITION lake.sluice.finding BY DAY(event_time);

INSERT INTO lake.sluice.`finding` (${columns.finding}, event_time)
SELECT ${columns.finding}, CAST(ts AS TIMESTAMP_LTZ(6)) FROM `finding`;

CREATE TABLE IF NOT EXISTS lake.sluice.`agent` (${ddl.agent}, event_time TIMESTAMP_LTZ(6))
WITH ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd',
  'write.metadata.delete-after-commit.enabled' = 'true');

PARTITION lake.sluice.agent BY DAY(event_time);

INSERT INTO lake.sluice.`agent` (${columns.agent}, event_time)
SELECT ${columns.agent}, CAST(ts AS TIMESTAMP_LTZ(6)) FROM `agent`;
