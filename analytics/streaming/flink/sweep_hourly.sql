-- SPDX-License-Identifier: Apache-2.0
-- The continuous sweep: use of each host by the hour, topic sluice.sweep_hourly. Rows by `part`:
--   host   capacity = attributed + unattributed + idle + residue, CPU nanoseconds, of the host's records of that hour;
--          covered_ns is the time that these cover: less than an hour is an hour with gaps
--   run    what the programs of one run used (null: programs outside any run), from their records of that hour: the
--          intervals of those alive, and at the end of each what its intervals had not reported
--   late   a host's record that arrived after its hour was closed, with the columns of host: add it to the hour's row
-- Rows of one host (or run) and hour add up. Equal rows are one row, which a restart wrote again; after a restart an
-- hour that was closed may also get a second row of `host` for records that arrived late meanwhile.
-- A record belongs whole to the hour of its time: a record of ten seconds that began in the hour before is not cut. The
-- lake's own sweep cuts; the difference is one interval at most. Late records of programs are in no row of their hour;
-- only what an END reports later of a late interval is added.

CREATE TEMPORARY TABLE sweep_hourly (
  `hour` STRING, hour_us BIGINT, part STRING, host_id STRING, host_name STRING, run_id STRING, pipeline STRING,
  records BIGINT, covered_ns BIGINT,
  cpu_capacity_ns BIGINT, cpu_busy_ns BIGINT, cpu_attributed_ns BIGINT, cpu_unattributed_ns BIGINT,
  cpu_idle_ns BIGINT, cpu_residue_ns BIGINT, cpu_iowait_ns BIGINT, cpu_steal_ns BIGINT,
  cpu_ns BIGINT, run_delay_ns BIGINT, read_bytes BIGINT, write_bytes BIGINT, net_rx_bytes BIGINT, net_tx_bytes BIGINT
) WITH (${sink.sweep_hourly});

CREATE TEMPORARY VIEW hosts AS
SELECT *, `time` / 3600000000 * 3600000000 AS hour_us,
  -- The window's operator sees no newer watermark than this one: what is not late here is not late there.
  CURRENT_WATERMARK(ts) IS NOT NULL
    AND TO_TIMESTAMP_LTZ(`time` / 3600000000 * 3600000 + 3599999, 3) <= CURRENT_WATERMARK(ts) AS is_late
FROM host;

CREATE TEMPORARY VIEW hosts_in_time AS SELECT * FROM hosts WHERE NOT is_late;

-- A program's intervals, and its END's totals less what the intervals reported until then.
CREATE TEMPORARY VIEW reported AS
SELECT program_id, host_id, host_name, run_id, pipeline, FALSE AS is_end, cpu_user_ns + cpu_system_ns AS cpu_ns,
  run_delay_ns, read_bytes, write_bytes, net_rx_bytes, net_tx_bytes, ts
FROM `usage`
UNION ALL
SELECT program_id, host_id, host_name, run_id, pipeline, TRUE, cpu_user_ns + cpu_system_ns,
  run_delay_ns, read_bytes, write_bytes, net_rx_bytes, net_tx_bytes, ts
FROM program WHERE phase = 'END';

-- RANGE, not ROWS: an interval that ends with the program counts, whichever of the two came first.
CREATE TEMPORARY VIEW pieces AS
SELECT host_id, host_name, run_id, pipeline, ts,
  CASE WHEN is_end THEN cpu_ns - COALESCE(reported_cpu_ns, 0) ELSE cpu_ns END AS cpu_ns,
  CASE WHEN is_end THEN run_delay_ns - COALESCE(reported_run_delay_ns, 0) ELSE run_delay_ns END AS run_delay_ns,
  CASE WHEN is_end THEN read_bytes - COALESCE(reported_read_bytes, 0) ELSE read_bytes END AS read_bytes,
  CASE WHEN is_end THEN write_bytes - COALESCE(reported_write_bytes, 0) ELSE write_bytes END AS write_bytes,
  CASE WHEN is_end THEN net_rx_bytes - COALESCE(reported_net_rx_bytes, 0) ELSE net_rx_bytes END AS net_rx_bytes,
  CASE WHEN is_end THEN net_tx_bytes - COALESCE(reported_net_tx_bytes, 0) ELSE net_tx_bytes END AS net_tx_bytes
FROM (
  SELECT *,
    SUM(CASE WHEN NOT is_end THEN cpu_ns END) OVER w AS reported_cpu_ns,
    SUM(CASE WHEN NOT is_end THEN run_delay_ns END) OVER w AS reported_run_delay_ns,
    SUM(CASE WHEN NOT is_end THEN read_bytes END) OVER w AS reported_read_bytes,
    SUM(CASE WHEN NOT is_end THEN write_bytes END) OVER w AS reported_write_bytes,
    SUM(CASE WHEN NOT is_end THEN net_rx_bytes END) OVER w AS reported_net_rx_bytes,
    SUM(CASE WHEN NOT is_end THEN net_tx_bytes END) OVER w AS reported_net_tx_bytes
  FROM reported
  WINDOW w AS (PARTITION BY program_id ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
);

INSERT INTO sweep_hourly (`hour`, hour_us, part, host_id, host_name, records, covered_ns, cpu_capacity_ns, cpu_busy_ns,
  cpu_attributed_ns, cpu_unattributed_ns, cpu_idle_ns, cpu_residue_ns, cpu_iowait_ns, cpu_steal_ns)
SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd''T''HH:mm:ss''Z'''), MAX(hour_us), 'host', host_id, MAX(host_name),
  COUNT(*), SUM(interval_ns),
  SUM(cpu_capacity_ns), SUM(cpu_busy_ns), SUM(cpu_attributed_ns), SUM(cpu_unattributed_ns),
  SUM(GREATEST(cpu_capacity_ns - cpu_busy_ns, 0)),
  SUM(cpu_capacity_ns - cpu_attributed_ns - cpu_unattributed_ns - GREATEST(cpu_capacity_ns - cpu_busy_ns, 0)),
  SUM(cpu_iowait_ns), SUM(cpu_steal_ns)
FROM TABLE(TUMBLE(TABLE hosts_in_time, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, host_id;

INSERT INTO sweep_hourly (`hour`, hour_us, part, host_id, host_name, records, covered_ns, cpu_capacity_ns, cpu_busy_ns,
  cpu_attributed_ns, cpu_unattributed_ns, cpu_idle_ns, cpu_residue_ns, cpu_iowait_ns, cpu_steal_ns)
SELECT DATE_FORMAT(TO_TIMESTAMP_LTZ(hour_us / 1000, 3), 'yyyy-MM-dd''T''HH:mm:ss''Z'''), hour_us, 'late', host_id, host_name,
  CAST(1 AS BIGINT), interval_ns,
  cpu_capacity_ns, cpu_busy_ns, cpu_attributed_ns, cpu_unattributed_ns, GREATEST(cpu_capacity_ns - cpu_busy_ns, 0),
  cpu_capacity_ns - cpu_attributed_ns - cpu_unattributed_ns - GREATEST(cpu_capacity_ns - cpu_busy_ns, 0),
  cpu_iowait_ns, cpu_steal_ns
FROM hosts WHERE is_late;

INSERT INTO sweep_hourly (`hour`, hour_us, part, host_id, host_name, run_id, pipeline, records,
  cpu_ns, run_delay_ns, read_bytes, write_bytes, net_rx_bytes, net_tx_bytes)
SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd''T''HH:mm:ss''Z'''),
  CAST(UNIX_TIMESTAMP(DATE_FORMAT(window_start, 'yyyy-MM-dd HH:mm:ss')) AS BIGINT) * 1000000, 'run', host_id, MAX(host_name),
  run_id, MAX(pipeline), COUNT(*),
  SUM(cpu_ns), SUM(run_delay_ns), SUM(read_bytes), SUM(write_bytes), SUM(net_rx_bytes), SUM(net_tx_bytes)
FROM TABLE(TUMBLE(TABLE pieces, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, host_id, run_id;
