-- SPDX-License-Identifier: Apache-2.0
-- Live alerts: findings, runs that ended badly, and gaps of agents, as soon as the record is there. One JSON
-- object an alert, topic sluice.alerts, with a sentence. (host_id, agent_id, topic, seq) name the record that it is about;
-- after a restart an alert may come again.

CREATE TEMPORARY TABLE alerts (
  `time` STRING, kind STRING, severity STRING, message STRING,
  host_id STRING, host_name STRING, run_id STRING, pipeline STRING, task_id STRING, task STRING, sample STRING,
  program_id STRING, tool STRING, exit_code BIGINT, exit_signal BIGINT,
  agent_id STRING, topic STRING, seq BIGINT
) WITH (${sink.alerts});

-- The events that each agent has lost since its previous record: it counts from its start, so that fewer than before
-- are a new start. Records are compared in the order of their partition, which is lost once copies are left out by
-- (host_id, agent_id, seq) in parallel: a copy is left out here, as a record that is not newer than those before it.
CREATE TEMPORARY VIEW losses AS
SELECT *, CASE WHEN lost_so_far >= COALESCE(lost_before, 0) THEN lost_so_far - COALESCE(lost_before, 0)
  ELSE lost_so_far END AS lost_now
FROM (
  SELECT *, LAG(lost_so_far) OVER (PARTITION BY host_id, agent_id, place, reason ORDER BY proc) AS lost_before,
    LAG(newest) OVER (PARTITION BY host_id, agent_id, place, reason ORDER BY proc) AS newest_before
  FROM (
    SELECT a.`time`, a.host_id, a.host_name, a.agent_id, a.seq, a.proc, l.place, l.reason, l.`count` AS lost_so_far,
      MAX(a.seq) OVER (PARTITION BY a.host_id, a.agent_id, l.place, l.reason ORDER BY a.proc
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest
    FROM kafka_agent AS a CROSS JOIN UNNEST(a.lost) AS l (place, reason, `count`)
  )
)
WHERE newest_before IS NULL OR seq > newest_before;

-- Findings as the agent reports them, but for those that are for information alone. Flink's SQL finds no number in an array by its name, but in JSON it does.
INSERT INTO alerts
SELECT DATE_FORMAT(TO_TIMESTAMP_LTZ(`time` / 1000, 3), 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z'''), kind, severity, message,
  host_id, host_name, run_id, pipeline, task_id, task, sample, program_id, tool,
  TRY_CAST(JSON_QUERY(JSON_STRING(evidence), '$[?(@.name == "exit_code")].value'
    RETURNING ARRAY<STRING>)[1] AS BIGINT),
  TRY_CAST(JSON_QUERY(JSON_STRING(evidence), '$[?(@.name == "exit_signal")].value'
    RETURNING ARRAY<STRING>)[1] AS BIGINT),
  agent_id, '${prefix}sluice.finding', seq
FROM finding WHERE severity IN ('WARNING', 'ERROR');

-- Of each run that ended badly, with findings or without: an older agent makes none.
INSERT INTO alerts (`time`, kind, severity, message, host_id, host_name, run_id, pipeline, task_id, task, sample,
  exit_code, exit_signal, agent_id, topic, seq)
SELECT DATE_FORMAT(TO_TIMESTAMP_LTZ(`time` / 1000, 3), 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z'''),
  CASE WHEN exit_signal IS NOT NULL THEN 'RUN_KILLED' ELSE 'RUN_FAILED' END, 'ERROR',
  'Run ' || COALESCE(pipeline, name, run_id)
  || CASE WHEN sample IS NULL THEN '' ELSE ', sample ' || sample || ',' END
  || ' on ' || host_name
  || CASE WHEN exit_signal IS NOT NULL THEN ' was ended by '
      || CASE exit_signal WHEN 1 THEN 'SIGHUP' WHEN 2 THEN 'SIGINT' WHEN 3 THEN 'SIGQUIT' WHEN 4 THEN 'SIGILL'
        WHEN 6 THEN 'SIGABRT' WHEN 7 THEN 'SIGBUS' WHEN 8 THEN 'SIGFPE' WHEN 9 THEN 'SIGKILL' WHEN 11 THEN 'SIGSEGV'
        WHEN 13 THEN 'SIGPIPE' WHEN 14 THEN 'SIGALRM' WHEN 15 THEN 'SIGTERM' WHEN 24 THEN 'SIGXCPU'
        WHEN 25 THEN 'SIGXFSZ' ELSE 'signal ' || CAST(exit_signal AS STRING) END
    ELSE ' failed with exit code ' || CAST(exit_code AS STRING) END
  || '.',
  host_id, host_name, run_id, pipeline, task_id, task, sample, exit_code, exit_signal,
  agent_id, '${prefix}sluice.run', seq
FROM run
WHERE phase = 'END' AND (exit_code <> 0 OR exit_signal IS NOT NULL);

INSERT INTO alerts (`time`, kind, severity, message, host_id, host_name, run_id, pipeline, task_id, task, sample,
  agent_id, topic, seq)
SELECT DATE_FORMAT(TO_TIMESTAMP_LTZ(`time` / 1000, 3), 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z'''), 'AGENT_GAP', 'WARNING',
  'No agent watched ' || host_name || ' for ' || CAST(interval_ns / 1000000000 AS STRING) || ' s before that.',
  host_id, host_name, run_id, pipeline, task_id, task, sample, agent_id, '${prefix}sluice.agent', seq
FROM agent WHERE event = 'GAP';

INSERT INTO alerts (`time`, kind, severity, message, host_id, host_name, agent_id, topic, seq)
SELECT DATE_FORMAT(TO_TIMESTAMP_LTZ(`time` / 1000, 3), 'yyyy-MM-dd''T''HH:mm:ss.SSS''Z'''), 'AGENT_LOSS', 'WARNING',
  'The agent on ' || host_name || ' lost ' || CAST(lost_now AS STRING) || ' events at ' || place || ': ' || reason || '.',
  host_id, host_name, agent_id, '${prefix}sluice.agent', seq
FROM losses WHERE lost_now > 0;
