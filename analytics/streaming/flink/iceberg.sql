-- SPDX-License-Identifier: Apache-2.0
-- Topics into Iceberg tables, each record once: columns as lake/columns.py names them, and event_time, by whose day
-- they are partitioned. Each statement with ${topic} is executed once for each topic (run_sql.py). A commit at each
-- checkpoint, so that --checkpoint is needed; what a killed job had not committed is read again. Tables that
-- spark_iceberg.py has made are taken as they are, but one job writes a table.

CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = '${warehouse}');

CREATE DATABASE IF NOT EXISTS lake.sluice;

CREATE TABLE IF NOT EXISTS lake.sluice.`${topic}` (${ddl.${topic}}, event_time TIMESTAMP_LTZ(6))
WITH ('format-version' = '2', 'write.parquet.compression-codec' = 'zstd',
  'write.metadata.delete-after-commit.enabled' = 'true');

PARTITION lake.sluice.${topic} BY DAY(event_time);

INSERT INTO lake.sluice.`${topic}` (${columns.${topic}}, event_time)
SELECT ${columns.${topic}}, CAST(ts AS TIMESTAMP_LTZ(6)) FROM `${topic}`;
