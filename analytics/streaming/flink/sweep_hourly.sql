-- SPDX-License-Identifier: Apache-2.0
-- The continuous sweep: where each host's hour went, an hour at a time, topic sluice.sweep_hourly. Rows by `part`:
--   host   capacity = attributed + unattributed + idle + residue, CPU nanoseconds, of the host's records of that hour;
--          covered_ns is the time that these cover: less than an hour is an hour with gaps
--   run    what the programs of one run used (null: programs outside any run), from their records of that hour: the
--          intervals of those alive, and at the end of each what its intervals had not told
--   late   a host's record that came after its hour was closed, as above: added to the hour's row it makes it right
-- Rows of one host (or run) and hour add up; rows that are equal are one, told again after a restart, at which also an
-- hour that was closed may get a second row of `host` for what came late meanwhile.
-- An hour is a record's time's, whole: a record of ten seconds that began in the hour before is not cut. The lake's
-- own sweep cuts; the difference is one interval at most. Records of programs that come late are in no row of their
-- hour; of those only what an END tells later of a late interval is made up for.

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

-- A program's intervals, and its END's totals less what the intervals told until then.
CREATE TEMPORARY VIEW told AS
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
  CASE WHEN is_end THEN cpu_ns - COALESCE(told_cpu_ns, 0) ELSE cpu_ns END AS cpu_ns,
  CASE WHEN is_end THEN run_delay_ns - COALESCE(told_run_delay_ns, 0) ELSE run_delay_ns END AS run_delay_ns,
  CASE WHEN is_end THEN read_bytes - COALESCE(told_read_bytes, 0) ELSE read_bytes END AS read_bytes,
  CASE WHEN is_end THEN write_bytes - COALESCE(told_write_bytes, 0) ELSE write_bytes END AS write_bytes,
  CASE WHEN is_end THEN net_rx_bytes - COALESCE(told_net_rx_bytes, 0) ELSE net_rx_bytes END AS net_rx_bytes,
  CASE WHEN is_end THEN net_tx_bytes - COALESCE(told_net_tx_bytes, 0) ELSE net_tx_bytes END AS net_tx_bytes
FROM (
  SELECT *,
    SUM(CASE WHEN NOT is_end THEN cpu_ns END) OVER w AS told_cpu_ns,
    SUM(CASE WHEN NOT is_end THEN run_delay_ns END) OVER w AS told_run_delay_ns,
    SUM(CASE WHEN NOT is_end THEN read_bytes END) OVER w AS told_read_bytes,
    SUM(CASE WHEN NOT is_end THEN write_bytes END) OVER w AS told_write_bytes,
    SUM(CASE WHEN NOT is_end THEN net_rx_bytes END) OVER w AS told_net_rx_bytes,
    SUM(CASE WHEN NOT is_end THEN net_tx_bytes END) OVER w AS told_net_tx_bytes
  FROM told
  WINDOW w AS (PARTITION BY program_id ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
);

INSERT INTO sweep_hourly
SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd''T''HH:mm:ss''Z'''), MAX(hour_us), 'host', host_id, MAX(host_name),
  CAST(NULL AS STRING), CAST(NULL AS STRING), COUNT(*), SUM(interval_ns),
  SUM(cpu_capacity_ns), SUM(cpu_busy_ns), SUM(cpu_attributed_ns), SUM(cpu_unattributed_ns),
  SUM(GREATEST(cpu_capacity_ns - cpu_busy_ns, 0)),
  SUM(cpu_capacity_ns - cpu_attributed_ns - cpu_unattributed_ns - GREATEST(cpu_capacity_ns - cpu_busy_ns, 0)),
  SUM(cpu_iowait_ns), SUM(cpu_steal_ns),
  CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT),
  CAST(NULL AS BIGINT)
FROM TABLE(TUMBLE(TABLE hosts_in_time, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, host_id;

INSERT INTO sweep_hourly
SELECT DATE_FORMAT(TO_TIMESTAMP_LTZ(hour_us / 1000, 3), 'yyyy-MM-dd''T''HH:mm:ss''Z'''), hour_us, 'late', host_id, host_name,
  CAST(NULL AS STRING), CAST(NULL AS STRING), CAST(1 AS BIGINT), interval_ns,
  cpu_capacity_ns, cpu_busy_ns, cpu_attributed_ns, cpu_unattributed_ns, GREATEST(cpu_capacity_ns - cpu_busy_ns, 0),
  cpu_capacity_ns - cpu_attributed_ns - cpu_unattributed_ns - GREATEST(cpu_capacity_ns - cpu_busy_ns, 0),
  cpu_iowait_ns, cpu_steal_ns,
  CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT),
  CAST(NULL AS BIGINT)
FROM hosts WHERE is_late;

INSERT INTO sweep_hourly
SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd''T''HH:mm:ss''Z'''),
  CAST(UNIX_TIMESTAMP(DATE_FORMAT(window_start, 'yyyy-MM-dd HH:mm:ss')) AS BIGINT) * 1000000, 'run', host_id, MAX(host_name),
  run_id, MAX(pipeline), COUNT(*), CAST(NULL AS BIGINT),
  CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT),
  CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT),
  SUM(cpu_ns), SUM(run_delay_ns), SUM(read_bytes), SUM(write_bytes), SUM(net_rx_bytes), SUM(net_tx_bytes)
FROM TABLE(TUMBLE(TABLE pieces, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, host_id, run_id;
