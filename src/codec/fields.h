/*
 * SPDX-License-Identifier: Apache-2.0
 * fields: which index of a schema is which field, so that encoding never looks up a name.
 *
 * Each list is in the order of the .avsc; fields_check() holds the two against each other once,
 * at open, so that an edit of one alone is refused instead of shifting values into wrong fields.
 */
#ifndef SLUICE_CODEC_FIELDS_H
#define SLUICE_CODEC_FIELDS_H

#include <avro.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/record.h"

/* F(prefix, name, Avro type, may be null) */
#define COMMON_FIELDS(F, P)				\
	F(P, time, AVRO_INT64, false)			\
	F(P, host_id, AVRO_STRING, false)		\
	F(P, host_name, AVRO_STRING, false)		\
	F(P, boot_id, AVRO_STRING, false)		\
	F(P, agent_id, AVRO_STRING, false)		\
	F(P, seq, AVRO_INT64, false)			\
	F(P, run_id, AVRO_STRING, true)			\
	F(P, pipeline, AVRO_STRING, true)		\
	F(P, task_id, AVRO_STRING, true)		\
	F(P, task, AVRO_STRING, true)			\
	F(P, sample, AVRO_STRING, true)			\
	F(P, schema_version, AVRO_INT32, false)

#define IDENTITY_FIELDS(F, P)				\
	F(P, pid, AVRO_INT32, false)			\
	F(P, ppid, AVRO_INT32, false)			\
	F(P, start_time, AVRO_INT64, false)		\
	F(P, program_start_time, AVRO_INT64, false)	\
	F(P, program_index, AVRO_INT32, false)		\
	F(P, program_id, AVRO_STRING, false)		\
	F(P, parent_program_id, AVRO_STRING, true)	\
	F(P, forked, AVRO_BOOLEAN, false)

#define PROGRAM_FIELDS(F, P)				\
	COMMON_FIELDS(F, P)				\
	F(P, phase, AVRO_ENUM, false)			\
	IDENTITY_FIELDS(F, P)				\
	F(P, exe, AVRO_STRING, true)			\
	F(P, comm, AVRO_STRING, true)			\
	F(P, argv, AVRO_ARRAY, true)			\
	F(P, argv_truncated, AVRO_BOOLEAN, false)	\
	F(P, cwd, AVRO_STRING, true)			\
	F(P, tool, AVRO_STRING, true)			\
	F(P, tool_rule, AVRO_STRING, true)		\
	F(P, uid, AVRO_INT64, true)			\
	F(P, gid, AVRO_INT64, true)			\
	F(P, cgroup, AVRO_STRING, true)			\
	F(P, cgroup_v1, AVRO_STRING, true)		\
	F(P, container_id, AVRO_STRING, true)		\
	F(P, container_runtime, AVRO_STRING, true)	\
	F(P, container_name, AVRO_STRING, true)		\
	F(P, container_image, AVRO_STRING, true)	\
	F(P, k8s_pod_uid, AVRO_STRING, true)		\
	F(P, pid_ns, AVRO_INT64, true)			\
	F(P, mnt_ns, AVRO_INT64, true)			\
	F(P, net_ns, AVRO_INT64, true)			\
	F(P, scheduler, AVRO_STRING, true)		\
	F(P, job_id, AVRO_STRING, true)			\
	F(P, job_step, AVRO_STRING, true)		\
	F(P, trace_id, AVRO_STRING, true)		\
	F(P, span_id, AVRO_STRING, true)		\
	F(P, variables, AVRO_ARRAY, false)		\
	F(P, overhead, AVRO_BOOLEAN, false)		\
	F(P, run_source, AVRO_STRING, true)		\
	F(P, task_source, AVRO_STRING, true)		\
	F(P, confidence, AVRO_DOUBLE, true)		\
	F(P, observed_time, AVRO_INT64, true)		\
	F(P, end_time, AVRO_INT64, true)		\
	F(P, end_reason, AVRO_ENUM, true)		\
	F(P, exit_code, AVRO_INT32, true)		\
	F(P, exit_signal, AVRO_INT32, true)		\
	F(P, core_dumped, AVRO_BOOLEAN, true)		\
	F(P, oom_killed, AVRO_BOOLEAN, true)		\
	F(P, usage, AVRO_RECORD, true)

#define USAGE_RECORD_FIELDS(F, P)			\
	COMMON_FIELDS(F, P)				\
	IDENTITY_FIELDS(F, P)				\
	F(P, comm, AVRO_STRING, true)			\
	F(P, tool, AVRO_STRING, true)			\
	F(P, interval_ns, AVRO_INT64, false)		\
	F(P, usage, AVRO_RECORD, false)

/* Task and Run */
#define WORK_FIELDS(F, P)				\
	COMMON_FIELDS(F, P)				\
	F(P, phase, AVRO_ENUM, false)			\
	F(P, name, AVRO_STRING, true)			\
	F(P, engine, AVRO_STRING, true)			\
	F(P, command, AVRO_STRING, true)		\
	F(P, start_time, AVRO_INT64, false)		\
	F(P, end_time, AVRO_INT64, true)		\
	F(P, attempt, AVRO_INT32, true)			\
	F(P, work_dir, AVRO_STRING, true)		\
	F(P, source, AVRO_STRING, true)			\
	F(P, confidence, AVRO_DOUBLE, true)		\
	F(P, requested_cpus, AVRO_DOUBLE, true)		\
	F(P, requested_memory_bytes, AVRO_INT64, true)	\
	F(P, usage, AVRO_RECORD, false)			\
	F(P, wall_ns, AVRO_INT64, false)		\
	F(P, parallelism, AVRO_DOUBLE, false)		\
	F(P, programs, AVRO_INT64, false)		\
	F(P, live_programs, AVRO_INT64, false)		\
	F(P, failed_programs, AVRO_INT64, false)	\
	F(P, lost_events, AVRO_INT64, false)		\
	F(P, exit_code, AVRO_INT32, true)		\
	F(P, exit_signal, AVRO_INT32, true)		\
	F(P, bound, AVRO_ENUM, true)			\
	F(P, shares, AVRO_RECORD, false)		\
	F(P, run_name, AVRO_STRING, true)		\
	F(P, scheduler, AVRO_STRING, true)		\
	F(P, job_id, AVRO_STRING, true)			\
	F(P, parent_run_id, AVRO_STRING, true)		\
	F(P, uid, AVRO_INT64, true)

#define HOST_FIELDS(F, P)				\
	COMMON_FIELDS(F, P)				\
	F(P, interval_ns, AVRO_INT64, false)		\
	F(P, kernel, AVRO_STRING, true)			\
	F(P, architecture, AVRO_STRING, true)		\
	F(P, cpus, AVRO_INT32, false)			\
	F(P, memory_bytes, AVRO_INT64, false)		\
	F(P, memory_available_bytes, AVRO_INT64, false)	\
	F(P, swap_bytes, AVRO_INT64, false)		\
	F(P, swap_free_bytes, AVRO_INT64, false)	\
	F(P, processes, AVRO_INT64, false)		\
	F(P, threads, AVRO_INT64, false)		\
	F(P, cpu_capacity_ns, AVRO_INT64, false)	\
	F(P, cpu_busy_ns, AVRO_INT64, false)		\
	F(P, cpu_iowait_ns, AVRO_INT64, false)		\
	F(P, cpu_steal_ns, AVRO_INT64, false)		\
	F(P, cpu_attributed_ns, AVRO_INT64, false)	\
	F(P, cpu_unattributed_ns, AVRO_INT64, false)	\
	F(P, rss_attributed_bytes, AVRO_INT64, false)	\
	F(P, load1, AVRO_DOUBLE, false)			\
	F(P, psi_cpu, AVRO_RECORD, false)		\
	F(P, psi_memory, AVRO_RECORD, false)		\
	F(P, psi_io, AVRO_RECORD, false)		\
	F(P, disk_read_bytes, AVRO_INT64, true)		\
	F(P, disk_write_bytes, AVRO_INT64, true)	\
	F(P, disk_read_attributed_bytes, AVRO_INT64, true) \
	F(P, disk_write_attributed_bytes, AVRO_INT64, true) \
	F(P, net_rx_bytes, AVRO_INT64, true)		\
	F(P, net_tx_bytes, AVRO_INT64, true)		\
	F(P, net_rx_attributed_bytes, AVRO_INT64, true)	\
	F(P, net_tx_attributed_bytes, AVRO_INT64, true)	\
	F(P, instance_type, AVRO_STRING, true)		\
	F(P, price_per_hour, AVRO_DOUBLE, true)		\
	F(P, cloud, AVRO_STRING, true)			\
	F(P, region, AVRO_STRING, true)

#define FINDING_FIELDS(F, P)				\
	COMMON_FIELDS(F, P)				\
	F(P, kind, AVRO_STRING, false)			\
	F(P, severity, AVRO_ENUM, false)		\
	F(P, program_id, AVRO_STRING, true)		\
	F(P, tool, AVRO_STRING, true)			\
	F(P, message, AVRO_STRING, true)		\
	F(P, evidence, AVRO_ARRAY, false)		\
	F(P, causes, AVRO_ARRAY, false)

#define AGENT_FIELDS(F, P)				\
	COMMON_FIELDS(F, P)				\
	F(P, event, AVRO_STRING, false)			\
	F(P, version, AVRO_STRING, false)		\
	F(P, config_generation, AVRO_INT64, false)	\
	F(P, interval_ns, AVRO_INT64, false)		\
	F(P, events, AVRO_ARRAY, false)			\
	F(P, lost, AVRO_ARRAY, false)			\
	F(P, probes, AVRO_ARRAY, false)			\
	F(P, spool_records, AVRO_INT64, true)		\
	F(P, spool_bytes, AVRO_INT64, true)		\
	F(P, spool_age_ns, AVRO_INT64, true)		\
	F(P, delivered, AVRO_INT64, false)		\
	F(P, retried, AVRO_INT64, false)		\
	F(P, cpu_ns, AVRO_INT64, false)			\
	F(P, rss_bytes, AVRO_INT64, false)		\
	F(P, message, AVRO_STRING, true)

/* Records inside records. Resources has no list: its order is enum usage_field. */
#define SHARES_FIELDS(F, P)				\
	F(P, cpu, AVRO_DOUBLE, true)			\
	F(P, run_delay, AVRO_DOUBLE, true)		\
	F(P, block_io, AVRO_DOUBLE, true)		\
	F(P, memory, AVRO_DOUBLE, true)			\
	F(P, idle, AVRO_DOUBLE, true)

#define PRESSURE_FIELDS(F, P)				\
	F(P, some, AVRO_DOUBLE, true)			\
	F(P, full, AVRO_DOUBLE, true)

#define NUMBER_FIELDS(F, P)				\
	F(P, name, AVRO_STRING, false)			\
	F(P, value, AVRO_DOUBLE, false)

#define VARIABLE_FIELDS(F, P)				\
	F(P, name, AVRO_STRING, false)			\
	F(P, value, AVRO_STRING, false)

#define LOSS_FIELDS(F, P)				\
	F(P, place, AVRO_STRING, false)			\
	F(P, reason, AVRO_STRING, false)		\
	F(P, count, AVRO_INT64, false)

#define PROBE_FIELDS(F, P)				\
	F(P, name, AVRO_STRING, false)			\
	F(P, runs, AVRO_INT64, false)			\
	F(P, run_time_ns, AVRO_INT64, true)

#define FIELD_INDEX(P, name, type, is_nullable) P##_##name,

enum common_index { COMMON_FIELDS(FIELD_INDEX, COMMON) COMMON_COUNT };
enum program_index { PROGRAM_FIELDS(FIELD_INDEX, PROGRAM) PROGRAM_COUNT };
enum usage_index { USAGE_RECORD_FIELDS(FIELD_INDEX, USAGEREC) USAGEREC_COUNT };
enum work_index { WORK_FIELDS(FIELD_INDEX, WORK) WORK_COUNT };
enum host_index { HOST_FIELDS(FIELD_INDEX, HOST) HOST_COUNT };
enum finding_index { FINDING_FIELDS(FIELD_INDEX, FINDING) FINDING_COUNT };
enum agent_index { AGENT_FIELDS(FIELD_INDEX, AGENT) AGENT_COUNT };
enum shares_index { SHARES_FIELDS(FIELD_INDEX, SHARES) SHARES_COUNT };
enum pressure_index { PRESSURE_FIELDS(FIELD_INDEX, PRESSURE) PRESSURE_COUNT };
enum number_index { NUMBER_FIELDS(FIELD_INDEX, NUMBER) NUMBER_COUNT };
enum variable_index { VARIABLE_FIELDS(FIELD_INDEX, VARIABLE) VARIABLE_COUNT };
enum loss_index { LOSS_FIELDS(FIELD_INDEX, LOSS) LOSS_COUNT };
enum probe_index { PROBE_FIELDS(FIELD_INDEX, PROBE) PROBE_COUNT };

/*
 * 0 when the parsed schema of a topic is the one that this file describes: the same fields in the
 * same order with the same types, symbols and nested records. Else -EPROTO, and err says where.
 */
int fields_check(enum topic topic, avro_schema_t schema, char *err, size_t err_size);

#endif
