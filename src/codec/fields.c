/*
 * SPDX-License-Identifier: Apache-2.0
 * fields: the tables.
 */
#include "codec/fields.h"

#define LIST(list) { list, sizeof(list) / sizeof((list)[0]) }
#define AT(type, member) .offset = offsetof(struct type, member)
#define MEMBER(type, member) ((struct type *)NULL)->member

/*
 * A member, by its own name or another. The kind follows from its C type: a text and a usage may be null here. The rows
 * below say it themselves, and compile for that C type alone.
 */
#define FIELD(type, member) NAMED(type, member, member)
#define NAMED(type, name, member)				\
	{ #name, _Generic(MEMBER(type, member),			\
	    const char *: FIELD_TEXT_OR_NULL,			\
	    int64_t: FIELD_I64,					\
	    uint64_t: FIELD_U64,				\
	    struct opt_u64: FIELD_U64_OR_NULL,			\
	    uint32_t: FIELD_U32,				\
	    struct opt_i32: FIELD_I32_OR_NULL,			\
	    double: FIELD_DOUBLE,				\
	    struct opt_double: FIELD_DOUBLE_OR_NULL,		\
	    bool: FIELD_BOOL,					\
	    const struct usage *: FIELD_USAGE_OR_NULL), AT(type, member) }
/* Never NULL. */
#define TEXT(type, member) { #member, _Generic(MEMBER(type, member), const char *: FIELD_TEXT), AT(type, member) }
#define USAGE(type, member)					\
	{ #member, _Generic(MEMBER(type, member), const struct usage *: FIELD_USAGE), AT(type, member) }
#define BOOL_OF_END(type, member)				\
	{ #member, _Generic(MEMBER(type, member), bool: FIELD_BOOL_OF_END), AT(type, member) }
#define ENUM(type, member, kind, symbols) { #member, kind, AT(type, member), .symbol = (symbols) }
#define RECORD(type, member, list) { #member, FIELD_RECORD, AT(type, member), .inner = LIST(list) }
#define RECORD_OR_NULL(type, member, list) { #member, FIELD_RECORD_OR_NULL, AT(type, member), .inner = LIST(list) }
/* An array whose number of items is the member n. */
#define TEXTS(type, member, n, kind)				\
	{ #member, _Generic(MEMBER(type, member), const char *const *: (kind)), AT(type, member),	\
	    offsetof(struct type, n) }
#define RECORDS(type, member, n, list)				\
	{ #member, FIELD_RECORDS, AT(type, member), offsetof(struct type, n),	\
	    sizeof(*MEMBER(type, member)), LIST(list) }
#define PART(type, member, list) { NULL, FIELD_PART, AT(type, member), .inner = LIST(list) }

static const char *
phase(unsigned value)
{
	return record_phase_name(value);
}

static const char *
end_reason(unsigned value)
{
	return end_reason_name(value);
}

static const char *
bound(unsigned value)
{
	return bound_name(value);
}

static const char *
demand(unsigned value)
{
	return demand_name(value);
}

static const char *
denied(unsigned value)
{
	return denied_name(value);
}

static const char *
peak_source(unsigned value)
{
	return peak_source_name(value);
}

static const char *
energy_source(unsigned value)
{
	return energy_source_name(value);
}

static const char *
severity(unsigned value)
{
	return finding_severity_name(value);
}

static const struct field identity_fields[] = {
	TEXT(agent_identity, host_id),
	TEXT(agent_identity, host_name),
	TEXT(agent_identity, boot_id),
	TEXT(agent_identity, agent_id),
};
const struct field_list fields_of_identity = LIST(identity_fields);

static const struct field head_fields[] = {
	NAMED(record_head, time, time_us),
	{ NULL, FIELD_IDENTITY, .inner = LIST(identity_fields) },
	{ "seq", FIELD_SEQ },
	FIELD(record_head, run_id),
	FIELD(record_head, pipeline),
	FIELD(record_head, task_id),
	FIELD(record_head, task),
	FIELD(record_head, sample),
	{ "schema_version", FIELD_SCHEMA_VERSION },
};
const struct field_list fields_of_head = LIST(head_fields);

static const struct field program_identity_fields[] = {
	FIELD(program_identity, pid),
	FIELD(program_identity, ppid),
	NAMED(program_identity, start_time, start_time_us),
	NAMED(program_identity, program_start_time, program_start_time_us),
	FIELD(program_identity, program_index),
	TEXT(program_identity, program_id),
	FIELD(program_identity, parent_program_id),
	FIELD(program_identity, forked),
};

static const struct field variable_fields[] = {
	TEXT(named_text, name),
	TEXT(named_text, value),
};

static const struct field bill_fields[] = {
#define BILL_FIELD(ID, name)	\
	{ #name "_ns", FIELD_U64_OR_NULL, .offset = offsetof(struct bill, part) + BILL_##ID * sizeof(struct opt_u64) },
	BILL_EACH(BILL_FIELD)
#undef BILL_FIELD
};

static const struct field program_fields[] = {
	PART(program_record, head, head_fields),
	ENUM(program_record, phase, FIELD_ENUM, phase),
	PART(program_record, id, program_identity_fields),
	FIELD(program_record, exe),
	FIELD(program_record, comm),
	TEXTS(program_record, argv, argc, FIELD_TEXTS_OR_NULL),
	FIELD(program_record, argv_truncated),
	FIELD(program_record, cwd),
	FIELD(program_record, tool),
	FIELD(program_record, tool_rule),
	FIELD(program_record, uid),
	FIELD(program_record, gid),
	FIELD(program_record, cgroup),
	FIELD(program_record, cgroup_v1),
	FIELD(program_record, container_id),
	FIELD(program_record, container_runtime),
	FIELD(program_record, container_name),
	FIELD(program_record, container_image),
	FIELD(program_record, k8s_pod_uid),
	FIELD(program_record, k8s_pod_name),
	FIELD(program_record, k8s_namespace),
	FIELD(program_record, k8s_container_name),
	FIELD(program_record, pid_ns),
	FIELD(program_record, mnt_ns),
	FIELD(program_record, net_ns),
	FIELD(program_record, scheduler),
	FIELD(program_record, job_id),
	FIELD(program_record, job_step),
	FIELD(program_record, trace_id),
	FIELD(program_record, span_id),
	RECORDS(program_record, variables, n_variables, variable_fields),
	FIELD(program_record, overhead),
	FIELD(program_record, run_source),
	FIELD(program_record, task_source),
	FIELD(program_record, confidence),
	NAMED(program_record, observed_time, observed_time_us),
	NAMED(program_record, end_time, end_time_us),
	ENUM(program_record, end_reason, FIELD_ENUM_OR_NULL, end_reason),
	FIELD(program_record, exit_code),
	FIELD(program_record, exit_signal),
	BOOL_OF_END(program_record, core_dumped),
	BOOL_OF_END(program_record, oom_killed),
	FIELD(program_record, usage),
	RECORD_OR_NULL(program_record, bill, bill_fields),
};

static const struct field usage_fields[] = {
	PART(usage_record, head, head_fields),
	PART(usage_record, id, program_identity_fields),
	FIELD(usage_record, comm),
	FIELD(usage_record, tool),
	FIELD(usage_record, interval_ns),
	USAGE(usage_record, usage),
};

static const struct field shares_fields[] = {
	FIELD(bound_shares, cpu),
	FIELD(bound_shares, run_delay),
	FIELD(bound_shares, block_io),
	FIELD(bound_shares, memory),
	FIELD(bound_shares, idle),
};

static const struct field verdict_fields[] = {
	ENUM(verdict, demand, FIELD_ENUM_OR_NULL, demand),
	NAMED(verdict, demand_confidence, confidence),
	FIELD(verdict, waiting_for),
	ENUM(verdict, denied, FIELD_ENUM_OR_NULL, denied),
	FIELD(verdict, denied_share),
};

/* Of Task and Run, behind the name. */
static const struct field work_fields[] = {
	FIELD(work_record, engine),
	FIELD(work_record, command),
	NAMED(work_record, start_time, start_time_us),
	NAMED(work_record, end_time, end_time_us),
	FIELD(work_record, attempt),
	FIELD(work_record, work_dir),
	FIELD(work_record, source),
	FIELD(work_record, confidence),
	FIELD(work_record, requested_cpus),
	FIELD(work_record, requested_memory_bytes),
	USAGE(work_record, usage),
	FIELD(work_record, wall_ns),
	FIELD(work_record, parallelism),
	FIELD(work_record, programs),
	FIELD(work_record, live_programs),
	FIELD(work_record, failed_programs),
	FIELD(work_record, lost_events),
	FIELD(work_record, exit_code),
	FIELD(work_record, exit_signal),
	ENUM(work_record, bound, FIELD_ENUM_OR_NULL, bound),
	RECORD(work_record, shares, shares_fields),
	FIELD(work_record, run_name),
	FIELD(work_record, scheduler),
	FIELD(work_record, job_id),
	FIELD(work_record, parent_run_id),
	FIELD(work_record, uid),
	PART(work_record, verdict, verdict_fields),
	RECORD(work_record, bill, bill_fields),
	RECORD(work_record, own_bill, bill_fields),
	FIELD(work_record, memory_bytes),
	FIELD(work_record, peak_memory_bytes),
	ENUM(work_record, peak_memory_source, FIELD_ENUM_OR_NULL, peak_source),
	FIELD(work_record, energy_uj),
	ENUM(work_record, energy_source, FIELD_ENUM_OR_NULL, energy_source),
};

static const struct field cgroup_fields[] = {
#define GROUP_USE_FIELD(name) FIELD(group_use, name),
	GROUP_USE_EACH(GROUP_USE_FIELD)
#undef GROUP_USE_FIELD
};

static const struct field task_fields[] = {
	PART(work_record, head, head_fields),
	ENUM(work_record, phase, FIELD_ENUM, phase),
	NAMED(work_record, name, head.task),
	{ NULL, FIELD_PART, .inner = LIST(work_fields) },
	RECORD_OR_NULL(work_record, cgroup, cgroup_fields),
};

static const struct field run_fields[] = {
	PART(work_record, head, head_fields),
	ENUM(work_record, phase, FIELD_ENUM, phase),
	{ "name", FIELD_RUN_NAME },
	{ NULL, FIELD_PART, .inner = LIST(work_fields) },
};

static const struct field pressure_fields[] = {
	FIELD(pressure, some),
	FIELD(pressure, full),
};

static const struct field host_fields[] = {
	PART(host_record, head, head_fields),
	FIELD(host_record, interval_ns),
	FIELD(host_record, kernel),
	FIELD(host_record, architecture),
	FIELD(host_record, cpus),
	FIELD(host_record, memory_bytes),
	FIELD(host_record, memory_available_bytes),
	FIELD(host_record, swap_bytes),
	FIELD(host_record, swap_free_bytes),
	FIELD(host_record, processes),
	FIELD(host_record, threads),
	FIELD(host_record, cpu_capacity_ns),
	FIELD(host_record, cpu_busy_ns),
	FIELD(host_record, cpu_iowait_ns),
	FIELD(host_record, cpu_steal_ns),
	FIELD(host_record, cpu_attributed_ns),
	FIELD(host_record, cpu_unattributed_ns),
	FIELD(host_record, rss_attributed_bytes),
	FIELD(host_record, load1),
	RECORD(host_record, psi_cpu, pressure_fields),
	RECORD(host_record, psi_memory, pressure_fields),
	RECORD(host_record, psi_io, pressure_fields),
	FIELD(host_record, disk_read_bytes),
	FIELD(host_record, disk_write_bytes),
	FIELD(host_record, disk_read_attributed_bytes),
	FIELD(host_record, disk_write_attributed_bytes),
	FIELD(host_record, net_rx_bytes),
	FIELD(host_record, net_tx_bytes),
	FIELD(host_record, net_rx_attributed_bytes),
	FIELD(host_record, net_tx_attributed_bytes),
	FIELD(host_record, instance_type),
	FIELD(host_record, price_per_hour),
	FIELD(host_record, cloud),
	FIELD(host_record, region),
	FIELD(host_record, lifecycle),
	FIELD(host_record, cpu_model),
	FIELD(host_record, energy_uj),
	ENUM(host_record, energy_source, FIELD_ENUM_OR_NULL, energy_source),
	FIELD(host_record, energy_attributed_uj),
	FIELD(host_record, energy_unattributed_uj),
	FIELD(host_record, energy_idle_uj),
};

static const struct field number_fields[] = {
	TEXT(named_number, name),
	FIELD(named_number, value),
};

static const struct field finding_fields[] = {
	PART(finding_record, head, head_fields),
	TEXT(finding_record, kind),
	ENUM(finding_record, severity, FIELD_ENUM, severity),
	FIELD(finding_record, program_id),
	FIELD(finding_record, tool),
	FIELD(finding_record, message),
	RECORDS(finding_record, evidence, n_evidence, number_fields),
	TEXTS(finding_record, causes, n_causes, FIELD_TEXTS),
};

static const struct field loss_fields[] = {
	TEXT(agent_loss, place),
	TEXT(agent_loss, reason),
	FIELD(agent_loss, count),
};

static const struct field user_loss_fields[] = {
	FIELD(user_loss, uid),
	FIELD(user_loss, refused),
	FIELD(user_loss, lost),
	FIELD(user_loss, cut),
};

static const struct field probe_fields[] = {
	TEXT(agent_probe, name),
	FIELD(agent_probe, runs),
	FIELD(agent_probe, run_time_ns),
};

static const struct field agent_fields[] = {
	PART(agent_record, head, head_fields),
	TEXT(agent_record, event),
	TEXT(agent_record, version),
	FIELD(agent_record, config_generation),
	FIELD(agent_record, interval_ns),
	RECORDS(agent_record, events, n_events, number_fields),
	RECORDS(agent_record, lost, n_lost, loss_fields),
	RECORDS(agent_record, probes, n_probes, probe_fields),
	FIELD(agent_record, spool_records),
	FIELD(agent_record, spool_bytes),
	FIELD(agent_record, spool_age_ns),
	FIELD(agent_record, delivered),
	FIELD(agent_record, retried),
	FIELD(agent_record, cpu_ns),
	FIELD(agent_record, rss_bytes),
	FIELD(agent_record, message),
	RECORDS(agent_record, lost_by_user, n_lost_by_user, user_loss_fields),
};

struct field_list
fields_of(enum topic topic)
{
	static const struct field_list lists[TOPIC_COUNT] = {
		[TOPIC_PROGRAM] = LIST(program_fields),
		[TOPIC_USAGE] = LIST(usage_fields),
		[TOPIC_TASK] = LIST(task_fields),
		[TOPIC_RUN] = LIST(run_fields),
		[TOPIC_HOST] = LIST(host_fields),
		[TOPIC_FINDING] = LIST(finding_fields),
		[TOPIC_AGENT] = LIST(agent_fields),
	};

	return (unsigned)topic < TOPIC_COUNT ? lists[topic] : (struct field_list){ 0 };
}
