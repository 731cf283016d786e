/*
 * SPDX-License-Identifier: Apache-2.0
 * encode_record: which member of a record struct goes into which field, topic by topic.
 */
#include "codec/encode_record.h"

#include <errno.h>

#include "codec/fields.h"

void
encode_identity(struct put *p, const struct agent_identity *id)
{
	p->next = COMMON_host_id;
	put_string(p, COMMON_host_id, id->host_id);
	put_string(p, COMMON_host_name, id->host_name);
	put_string(p, COMMON_boot_id, id->boot_id);
	put_string(p, COMMON_agent_id, id->agent_id);
}

static void
put_head(struct put *p, const struct record_head *h, const struct encode_stamp *stamp)
{
	put_long(p, COMMON_time, h->time_us);
	put_encoded(p, COMMON_host_id, COMMON_seq, stamp->identity);
	put_u64(p, COMMON_seq, stamp->seq);
	put_string_or_null(p, COMMON_run_id, h->run_id);
	put_string_or_null(p, COMMON_pipeline, h->pipeline);
	put_string_or_null(p, COMMON_task_id, h->task_id);
	put_string_or_null(p, COMMON_task, h->task);
	put_string_or_null(p, COMMON_sample, h->sample);
	put_int(p, COMMON_schema_version, RECORD_SCHEMA_VERSION);
}

/* first: the index of pid, since the same eight fields stand at different places. */
static void
put_identity(struct put *p, size_t first, const struct program_identity *id)
{
	put_u32(p, first, id->pid);
	put_u32(p, first + 1, id->ppid);
	put_long(p, first + 2, id->start_time_us);
	put_long(p, first + 3, id->program_start_time_us);
	put_u32(p, first + 4, id->program_index);
	put_string(p, first + 5, id->program_id);
	put_string_or_null(p, first + 6, id->parent_program_id);
	put_bool(p, first + 7, id->forked);
}
_Static_assert(PROGRAM_forked == PROGRAM_pid + 7, "put_identity() and IDENTITY_FIELDS differ");

static void
put_usage(struct put *p, size_t index, bool is_nullable, const struct usage *u)
{
	struct put inner;

	if (u == NULL && p->error == 0)
		p->error = -EINVAL;
	if (p->error != 0)
		return;
	inner = put_record_begin(p, index, is_nullable);
	for (size_t i = 0; i < USAGE_FIELDS; i++)
		put_u64_or_null(&inner, i, (struct opt_u64){ u->value[i], usage_has(u, i) });
	put_record_end(p, &inner, USAGE_FIELDS);
}

static void
put_numbers(struct put *p, size_t index, const struct named_number *numbers, size_t n)
{
	put_array_begin(p, index, false, n);
	for (size_t i = 0; i < n && p->error == 0; i++) {
		struct put inner = put_item_begin(p);

		put_string(&inner, NUMBER_name, numbers[i].name);
		put_double(&inner, NUMBER_value, numbers[i].value);
		put_record_end(p, &inner, NUMBER_COUNT);
	}
	put_array_end(p);
}

static void
put_strings(struct put *p, size_t index, bool is_nullable, const char *const *texts, size_t n)
{
	put_array_begin(p, index, is_nullable, n);
	for (size_t i = 0; i < n && p->error == 0; i++)
		put_item_string(p, texts[i]);
	put_array_end(p);
}

static void
put_variables(struct put *p, size_t index, const struct named_text *variables, size_t n)
{
	put_array_begin(p, index, false, n);
	for (size_t i = 0; i < n && p->error == 0; i++) {
		struct put inner = put_item_begin(p);

		put_string(&inner, VARIABLE_name, variables[i].name);
		put_string(&inner, VARIABLE_value, variables[i].value);
		put_record_end(p, &inner, VARIABLE_COUNT);
	}
	put_array_end(p);
}

static void
encode_program(struct put *p, const struct program_record *r, const struct encode_stamp *stamp)
{
	bool has_ended = r->phase == PHASE_END;

	put_head(p, &r->head, stamp);
	put_enum(p, PROGRAM_phase, r->phase, PHASE_END + 1);
	put_identity(p, PROGRAM_pid, &r->id);
	put_string_or_null(p, PROGRAM_exe, r->exe);
	put_string_or_null(p, PROGRAM_comm, r->comm);
	if (r->argv == NULL)
		put_null(p, PROGRAM_argv);
	else
		put_strings(p, PROGRAM_argv, true, r->argv, r->argc);
	put_bool(p, PROGRAM_argv_truncated, r->argv_truncated);
	put_string_or_null(p, PROGRAM_cwd, r->cwd);
	put_string_or_null(p, PROGRAM_tool, r->tool);
	put_string_or_null(p, PROGRAM_tool_rule, r->tool_rule);
	put_u64_or_null(p, PROGRAM_uid, r->uid);
	put_u64_or_null(p, PROGRAM_gid, r->gid);
	put_string_or_null(p, PROGRAM_cgroup, r->cgroup);
	put_string_or_null(p, PROGRAM_cgroup_v1, r->cgroup_v1);
	put_string_or_null(p, PROGRAM_container_id, r->container_id);
	put_string_or_null(p, PROGRAM_container_runtime, r->container_runtime);
	put_string_or_null(p, PROGRAM_container_name, r->container_name);
	put_string_or_null(p, PROGRAM_container_image, r->container_image);
	put_string_or_null(p, PROGRAM_k8s_pod_uid, r->k8s_pod_uid);
	put_u64_or_null(p, PROGRAM_pid_ns, r->pid_ns);
	put_u64_or_null(p, PROGRAM_mnt_ns, r->mnt_ns);
	put_u64_or_null(p, PROGRAM_net_ns, r->net_ns);
	put_string_or_null(p, PROGRAM_scheduler, r->scheduler);
	put_string_or_null(p, PROGRAM_job_id, r->job_id);
	put_string_or_null(p, PROGRAM_job_step, r->job_step);
	put_string_or_null(p, PROGRAM_trace_id, r->trace_id);
	put_string_or_null(p, PROGRAM_span_id, r->span_id);
	put_variables(p, PROGRAM_variables, r->variables, r->n_variables);
	put_bool(p, PROGRAM_overhead, r->overhead);
	put_string_or_null(p, PROGRAM_run_source, r->run_source);
	put_string_or_null(p, PROGRAM_task_source, r->task_source);
	put_double_or_null(p, PROGRAM_confidence, r->confidence);
	put_u64_or_null(p, PROGRAM_observed_time, r->observed_time_us);
	put_u64_or_null(p, PROGRAM_end_time, r->end_time_us);
	put_enum_or_null(p, PROGRAM_end_reason, (int)r->end_reason - 1, END_REASON_EXEC);
	put_i32_or_null(p, PROGRAM_exit_code, r->exit_code);
	put_i32_or_null(p, PROGRAM_exit_signal, r->exit_signal);
	put_bool_or_null(p, PROGRAM_core_dumped, has_ended, r->core_dumped);
	put_bool_or_null(p, PROGRAM_oom_killed, has_ended, r->oom_killed);
	if (r->usage == NULL)
		put_null(p, PROGRAM_usage);
	else
		put_usage(p, PROGRAM_usage, true, r->usage);
}

static void
encode_usage(struct put *p, const struct usage_record *r, const struct encode_stamp *stamp)
{
	put_head(p, &r->head, stamp);
	put_identity(p, USAGEREC_pid, &r->id);
	put_string_or_null(p, USAGEREC_comm, r->comm);
	put_string_or_null(p, USAGEREC_tool, r->tool);
	put_u64(p, USAGEREC_interval_ns, r->interval_ns);
	put_usage(p, USAGEREC_usage, false, r->usage);
}

static void
put_shares(struct put *p, size_t index, const struct bound_shares *s)
{
	struct put inner = put_record_begin(p, index, false);

	put_double_or_null(&inner, SHARES_cpu, s->cpu);
	put_double_or_null(&inner, SHARES_run_delay, s->run_delay);
	put_double_or_null(&inner, SHARES_block_io, s->block_io);
	put_double_or_null(&inner, SHARES_memory, s->memory);
	put_double_or_null(&inner, SHARES_idle, s->idle);
	put_record_end(p, &inner, SHARES_COUNT);
}

static void
encode_work(struct put *p, const struct work_record *r, const char *name, const struct encode_stamp *stamp)
{
	put_head(p, &r->head, stamp);
	put_enum(p, WORK_phase, r->phase, PHASE_END + 1);
	put_string_or_null(p, WORK_name, name);
	put_string_or_null(p, WORK_engine, r->engine);
	put_string_or_null(p, WORK_command, r->command);
	put_long(p, WORK_start_time, r->start_time_us);
	put_u64_or_null(p, WORK_end_time, r->end_time_us);
	put_i32_or_null(p, WORK_attempt, r->attempt);
	put_string_or_null(p, WORK_work_dir, r->work_dir);
	put_string_or_null(p, WORK_source, r->source);
	put_double_or_null(p, WORK_confidence, r->confidence);
	put_double_or_null(p, WORK_requested_cpus, r->requested_cpus);
	put_u64_or_null(p, WORK_requested_memory_bytes, r->requested_memory_bytes);
	put_usage(p, WORK_usage, false, r->usage);
	put_u64(p, WORK_wall_ns, r->wall_ns);
	put_double(p, WORK_parallelism, r->parallelism);
	put_u64(p, WORK_programs, r->programs);
	put_u64(p, WORK_live_programs, r->live_programs);
	put_u64(p, WORK_failed_programs, r->failed_programs);
	put_u64(p, WORK_lost_events, r->lost_events);
	put_i32_or_null(p, WORK_exit_code, r->exit_code);
	put_i32_or_null(p, WORK_exit_signal, r->exit_signal);
	put_enum_or_null(p, WORK_bound, (int)r->bound - 1, BOUND_MIXED);
	put_shares(p, WORK_shares, &r->shares);
	put_string_or_null(p, WORK_run_name, r->run_name);
	put_string_or_null(p, WORK_scheduler, r->scheduler);
	put_string_or_null(p, WORK_job_id, r->job_id);
	put_string_or_null(p, WORK_parent_run_id, r->parent_run_id);
	put_u64_or_null(p, WORK_uid, r->uid);
}

static void
put_pressure(struct put *p, size_t index, const struct pressure *psi)
{
	struct put inner = put_record_begin(p, index, false);

	put_double_or_null(&inner, PRESSURE_some, psi->some);
	put_double_or_null(&inner, PRESSURE_full, psi->full);
	put_record_end(p, &inner, PRESSURE_COUNT);
}

static void
encode_host(struct put *p, const struct host_record *r, const struct encode_stamp *stamp)
{
	put_head(p, &r->head, stamp);
	put_u64(p, HOST_interval_ns, r->interval_ns);
	put_string_or_null(p, HOST_kernel, r->kernel);
	put_string_or_null(p, HOST_architecture, r->architecture);
	put_u32(p, HOST_cpus, r->cpus);
	put_u64(p, HOST_memory_bytes, r->memory_bytes);
	put_u64(p, HOST_memory_available_bytes, r->memory_available_bytes);
	put_u64(p, HOST_swap_bytes, r->swap_bytes);
	put_u64(p, HOST_swap_free_bytes, r->swap_free_bytes);
	put_u64(p, HOST_processes, r->processes);
	put_u64(p, HOST_threads, r->threads);
	put_u64(p, HOST_cpu_capacity_ns, r->cpu_capacity_ns);
	put_u64(p, HOST_cpu_busy_ns, r->cpu_busy_ns);
	put_u64(p, HOST_cpu_iowait_ns, r->cpu_iowait_ns);
	put_u64(p, HOST_cpu_steal_ns, r->cpu_steal_ns);
	put_u64(p, HOST_cpu_attributed_ns, r->cpu_attributed_ns);
	put_u64(p, HOST_cpu_unattributed_ns, r->cpu_unattributed_ns);
	put_u64(p, HOST_rss_attributed_bytes, r->rss_attributed_bytes);
	put_double(p, HOST_load1, r->load1);
	put_pressure(p, HOST_psi_cpu, &r->psi_cpu);
	put_pressure(p, HOST_psi_memory, &r->psi_memory);
	put_pressure(p, HOST_psi_io, &r->psi_io);
	put_u64_or_null(p, HOST_disk_read_bytes, r->disk_read_bytes);
	put_u64_or_null(p, HOST_disk_write_bytes, r->disk_write_bytes);
	put_u64_or_null(p, HOST_disk_read_attributed_bytes, r->disk_read_attributed_bytes);
	put_u64_or_null(p, HOST_disk_write_attributed_bytes, r->disk_write_attributed_bytes);
	put_u64_or_null(p, HOST_net_rx_bytes, r->net_rx_bytes);
	put_u64_or_null(p, HOST_net_tx_bytes, r->net_tx_bytes);
	put_u64_or_null(p, HOST_net_rx_attributed_bytes, r->net_rx_attributed_bytes);
	put_u64_or_null(p, HOST_net_tx_attributed_bytes, r->net_tx_attributed_bytes);
	put_string_or_null(p, HOST_instance_type, r->instance_type);
	put_double_or_null(p, HOST_price_per_hour, r->price_per_hour);
	put_string_or_null(p, HOST_cloud, r->cloud);
	put_string_or_null(p, HOST_region, r->region);
}

static void
encode_finding(struct put *p, const struct finding_record *r, const struct encode_stamp *stamp)
{
	put_head(p, &r->head, stamp);
	put_string(p, FINDING_kind, r->kind);
	put_enum(p, FINDING_severity, r->severity, SEVERITY_ERROR + 1);
	put_string_or_null(p, FINDING_program_id, r->program_id);
	put_string_or_null(p, FINDING_tool, r->tool);
	put_string_or_null(p, FINDING_message, r->message);
	put_numbers(p, FINDING_evidence, r->evidence, r->n_evidence);
	put_strings(p, FINDING_causes, false, r->causes, r->n_causes);
}

static void
put_losses(struct put *p, size_t index, const struct agent_loss *losses, size_t n)
{
	put_array_begin(p, index, false, n);
	for (size_t i = 0; i < n && p->error == 0; i++) {
		struct put inner = put_item_begin(p);

		put_string(&inner, LOSS_place, losses[i].place);
		put_string(&inner, LOSS_reason, losses[i].reason);
		put_u64(&inner, LOSS_count, losses[i].count);
		put_record_end(p, &inner, LOSS_COUNT);
	}
	put_array_end(p);
}

static void
put_probes(struct put *p, size_t index, const struct agent_probe *probes, size_t n)
{
	put_array_begin(p, index, false, n);
	for (size_t i = 0; i < n && p->error == 0; i++) {
		struct put inner = put_item_begin(p);

		put_string(&inner, PROBE_name, probes[i].name);
		put_u64(&inner, PROBE_runs, probes[i].runs);
		put_u64_or_null(&inner, PROBE_run_time_ns, probes[i].run_time_ns);
		put_record_end(p, &inner, PROBE_COUNT);
	}
	put_array_end(p);
}

static void
encode_agent(struct put *p, const struct agent_record *r, const struct encode_stamp *stamp)
{
	put_head(p, &r->head, stamp);
	put_string(p, AGENT_event, r->event);
	put_string(p, AGENT_version, r->version);
	put_u64(p, AGENT_config_generation, r->config_generation);
	put_u64(p, AGENT_interval_ns, r->interval_ns);
	put_numbers(p, AGENT_events, r->events, r->n_events);
	put_losses(p, AGENT_lost, r->lost, r->n_lost);
	put_probes(p, AGENT_probes, r->probes, r->n_probes);
	put_u64_or_null(p, AGENT_spool_records, r->spool_records);
	put_u64_or_null(p, AGENT_spool_bytes, r->spool_bytes);
	put_u64_or_null(p, AGENT_spool_age_ns, r->spool_age_ns);
	put_u64(p, AGENT_delivered, r->delivered);
	put_u64(p, AGENT_retried, r->retried);
	put_u64(p, AGENT_cpu_ns, r->cpu_ns);
	put_u64(p, AGENT_rss_bytes, r->rss_bytes);
	put_string_or_null(p, AGENT_message, r->message);
}

/* A run is called by its pipeline; one without is known by its id. */
static const char *
run_name(const struct work_record *r)
{
	return r->head.pipeline != NULL ? r->head.pipeline : r->head.run_id;
}

void
encode_record(struct put *p, enum topic topic, const void *r, const struct encode_stamp *stamp)
{
	static const size_t counts[TOPIC_COUNT] = {
		PROGRAM_COUNT, USAGEREC_COUNT, WORK_COUNT, WORK_COUNT, HOST_COUNT, FINDING_COUNT,
		AGENT_COUNT,
	};

	switch (topic) {
	case TOPIC_PROGRAM:
		encode_program(p, r, stamp);
		break;
	case TOPIC_USAGE:
		encode_usage(p, r, stamp);
		break;
	case TOPIC_TASK:
		encode_work(p, r, ((const struct work_record *)r)->head.task, stamp);
		break;
	case TOPIC_RUN:
		encode_work(p, r, run_name(r), stamp);
		break;
	case TOPIC_HOST:
		encode_host(p, r, stamp);
		break;
	case TOPIC_FINDING:
		encode_finding(p, r, stamp);
		break;
	case TOPIC_AGENT:
		encode_agent(p, r, stamp);
		break;
	case TOPIC_COUNT:
		break;
	}
	if (p->error == 0 && p->next != counts[topic])
		p->error = -EPROTO;
}
