/*
 * SPDX-License-Identifier: Apache-2.0
 * samples: one record of each topic with every field set, and a folder that is removed afterwards.
 */
#ifndef SLUICE_TESTS_SAMPLES_H
#define SLUICE_TESTS_SAMPLES_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/record.h"
#include "stream/stream.h"

#define SAMPLE_TIME INT64_C(1795257300123456)	/* 2026-11-21T10:35:00.123456Z */
#define SAMPLE_HOST "0123456789abcdef0123456789abcdef"
#define SAMPLE_AGENT "6f1e0a52-7d0f-4c35-9a3d-0d6c3b1f7a10"

static inline struct agent_identity
sample_identity(void)
{
	return (struct agent_identity){ .host_id = SAMPLE_HOST, .host_name = "node7",
	    .boot_id = "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11", .agent_id = SAMPLE_AGENT };
}

static inline struct record_head
sample_head(void)
{
	return (struct record_head){ SAMPLE_TIME, "run-1", "demo", "align:sample=A", "align", "A" };
}

static inline const struct usage *
sample_usage(void)
{
	static struct usage u;

	for (int i = 0; i < USAGE_FIELDS; i++)
		usage_set(&u, i, 1000 + (uint64_t)i);
	u.known &= ~USAGE_BIT(USAGE_BLOCK_IO_DELAY_NS);
	return &u;
}

static inline const struct bill *
sample_bill(void)
{
	static struct bill b;

	for (int i = 0; i < BILL_PARTS; i++)
		b.part[i] = (struct opt_u64){ 2000 + (uint64_t)i, true };
	return &b;
}

static inline struct program_record
sample_program_start(void)
{
	static const char *const argv[] = { "bwa", "mem", "-t", "2", "ref.fa", "A \xc3\xa9.fq" };
	static const struct named_text variables[] = { { "TRACEPARENT", "00-t-s-01" }, { "SLURM_JOB_ID", "4711" } };

	return (struct program_record){
		.head = sample_head(), .phase = PHASE_START,
		.id = { 1234, 1200, SAMPLE_TIME - 5, SAMPLE_TIME - 2, 1, "p-1234-1", "p-1200-0",
		    false },
		.exe = "/usr/bin/bwa", .comm = "bwa", .argv = argv, .argc = 6,
		.argv_truncated = true, .cwd = "/work", .tool = "bwa mem", .tool_rule = "bwa",
		.uid = { 1000, true }, .gid = { 1001, true }, .cgroup = "/a/b", .cgroup_v1 = "/v1",
		.container_id = "c0ffee", .container_runtime = "docker",
		.k8s_pod_uid = "uid", .k8s_pod_name = "align-0", .k8s_namespace = "genomics",
		.k8s_container_name = "bwa",
		.pid_ns = { 4026531836, true }, .mnt_ns = { 4026531841, true },
		.net_ns = { 4026531840, true }, .scheduler = "slurm", .job_id = "4711",
		.job_step = "batch", .trace_id = "t", .span_id = "s", .variables = variables,
		.n_variables = 2, .run_source = "cgroup",
		.task_source = "argv", .confidence = { 0.75, true },
	};
}

static inline struct program_record
sample_program_end(void)
{
	struct program_record r = sample_program_start();

	r.phase = PHASE_END;
	r.observed_time_us = (struct opt_u64){ SAMPLE_TIME - 1, true };
	r.end_time_us = (struct opt_u64){ SAMPLE_TIME + 7, true };
	r.end_reason = END_REASON_EXIT;
	r.exit_code = (struct opt_i32){ 3, true };
	r.exit_signal = (struct opt_i32){ 0, false };
	r.core_dumped = true;
	r.usage = sample_usage();
	r.bill = sample_bill();
	return r;
}

static inline struct usage_record
sample_usage_record(void)
{
	return (struct usage_record){ .head = sample_head(), .id = sample_program_start().id,
	    .comm = "bwa", .tool = "bwa mem", .interval_ns = 10000000000, .usage = sample_usage() };
}

static inline const struct group_use *
sample_group(void)
{
	static struct group_use u = { .memory_peak_bytes = { 31, true }, .oom_kills = { 32, true },
		.throttled_ns = { 33, true }, .cpu_some_ns = { 34, true }, .memory_some_ns = { 35, true },
		.memory_full_ns = { 36, true }, .io_some_ns = { 37, true } };

	return &u;
}

static inline struct work_record
sample_work(void)
{
	return (struct work_record){
		.head = sample_head(), .phase = PHASE_LIVE, .engine = "snakemake",
		.command = "snakemake -c2", .start_time_us = SAMPLE_TIME - 9,
		.end_time_us = { SAMPLE_TIME, true }, .attempt = { 2, true }, .work_dir = "/work",
		.source = "argv", .confidence = { 1, true }, .requested_cpus = { 1.5, true },
		.requested_memory_bytes = { 1 << 30, true }, .usage = sample_usage(),
		.wall_ns = 12, .parallelism = 1.25, .programs = 9, .live_programs = 2,
		.failed_programs = 1, .lost_events = 4, .exit_code = { 0, true },
		.exit_signal = { 9, true }, .bound = BOUND_MIXED,
		.shares = { { 0.5, true }, { 0.125, true }, { 0, false }, { 0.25, true }, { 0.1, true } },
		.energy_uj = { 24, true }, .energy_source = ENERGY_HWMON_POWER, .cgroup = sample_group(),
	};
}

static inline struct host_record
sample_host(void)
{
	return (struct host_record){
		.head = { .time_us = SAMPLE_TIME }, .interval_ns = 1, .kernel = "6.1",
		.architecture = "x86_64", .cpus = 2, .memory_bytes = 3,
		.memory_available_bytes = 4, .swap_bytes = 5, .swap_free_bytes = 6,
		.processes = 7, .threads = 8, .cpu_capacity_ns = 9, .cpu_busy_ns = 10,
		.cpu_iowait_ns = 11, .cpu_steal_ns = 12, .cpu_attributed_ns = 13,
		.cpu_unattributed_ns = 14, .rss_attributed_bytes = 15, .load1 = 0.1,
		.psi_cpu = { { 0.5, true }, { 0, false } },
		.psi_memory = { { 0, true }, { 0.25, true } }, .psi_io = { { 1, true }, { 0.75, true } },
		.disk_read_bytes = { 16, true }, .disk_write_bytes = { 17, true },
		.disk_read_attributed_bytes = { 18, true },
		.disk_write_attributed_bytes = { 19, true }, .net_rx_bytes = { 20, true },
		.net_tx_bytes = { 21, true }, .net_rx_attributed_bytes = { 22, true },
		.net_tx_attributed_bytes = { 23, true }, .instance_type = "m5.large",
		.price_per_hour = { 0.096, true }, .cloud = "aws", .region = "eu-central-1",
		.lifecycle = "spot", .cpu_model = "AMD EPYC 9R14",
		.energy_uj = { 28, true }, .energy_source = ENERGY_POWERCAP, .energy_attributed_uj = { 25, true },
		.energy_unattributed_uj = { 1, true }, .energy_idle_uj = { 2, true },
	};
}

static inline struct finding_record
sample_finding(void)
{
	static const struct named_number evidence[] = { { "exit_code", 1 }, { "share", 0.5 } };
	static const char *const causes[] = { "p-1234-1", "p-1200-0" };

	return (struct finding_record){ .head = sample_head(), .kind = "FAILED",
	    .severity = SEVERITY_ERROR, .program_id = "p-1234-1", .tool = "bwa mem",
	    .message = "bwa mem failed", .evidence = evidence, .n_evidence = 2, .causes = causes,
	    .n_causes = 2 };
}

static inline struct agent_record
sample_agent(void)
{
	static const struct named_number events[] = { { "exec", 12 } };
	static const struct agent_loss lost[] = { { "exec", "ring full", 3 }, { "a", "b", 1 } };
	static const struct user_loss users[] = { { 1001, 2, 3, 4 }, { 0, 0, 1, 0 } };
	static const struct agent_probe probes[] = {
		{ "on_exec", 12, { 0, false } }, { "on_exit", 11, { 4000, true } },
	};

	return (struct agent_record){ .head = { .time_us = SAMPLE_TIME }, .event = "LIVE",
	    .version = "0.1.0", .config_generation = 1, .interval_ns = 2, .events = events,
	    .n_events = 1, .lost = lost, .n_lost = 2, .lost_by_user = users, .n_lost_by_user = 2,
	    .probes = probes, .n_probes = 2,
	    .spool_records = { 5, true }, .spool_bytes = { 6, true }, .spool_age_ns = { 7, true },
	    .delivered = 8, .retried = 9, .cpu_ns = 10, .rss_bytes = 11,
	    .message = "probes.ring waits for a restart" };
}

/* Creates a folder and returns its path, which is written to path (64 bytes). */
static inline char *
sample_folder(char *path)
{
	strcpy(path, "/tmp/sluice-test-XXXXXX");
	return mkdtemp(path);
}

static inline int
sample_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline void
sample_remove(const char *path)
{
	nftw(path, sample_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
