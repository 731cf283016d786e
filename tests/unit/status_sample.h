/*
 * SPDX-License-Identifier: Apache-2.0
 * status_sample: the status of a healthy agent; each test breaks one thing.
 */
#ifndef SLUICE_TESTS_UNIT_STATUS_SAMPLE_H
#define SLUICE_TESTS_UNIT_STATUS_SAMPLE_H

#include <stdio.h>

#include "control/status.h"

static struct signal_status status_sample_signals[2];
static struct agent_loss status_sample_losses[3];

static inline void
status_sample(struct agent_status *s)
{
	status_sample_signals[0] = (struct signal_status){ "lifecycle", "tp_btf/sched_process_exec", SIGNAL_OK, "" };
	status_sample_signals[1] = (struct signal_status){ "peak_rss", "fentry/exit_mm", SIGNAL_FALLBACK,
		"no tracepoint before 6.16" };
	*s = (struct agent_status){
		.agent = {
			.version = "0.1.0",
			.pid = 4711,
			.agent_id = "d58e2e85-165f-4820-a505-fc515de9f929",
			.host_id = "3d1219c7c4c5404aaa1f6d2a48adfda4",
			.host_name = "node1",
			.time_us = 1795262400000000,
			.start_us = 1795262400000000 - 3600000000,
			.uptime_ns = UINT64_C(3600000000000),
		},
		.config = {
			.file = "/etc/sluice/sluice.yaml",
			.generation = 4,
			.reload_us = 1795262400000000 - 60000000,
		},
		.signals = status_sample_signals,
		.n_signals = 2,
		.probes = { { "on_exec", 1000, { 812000, true } }, { "on_exit", 999, { 0, false } } },
		.n_probes = 2,
		.events = { { "exec", 1000 }, { "exit", 999 } },
		.n_events = 2,
		.seeing = { .followed = 231, .other_processes = { 12, true } },
		.spool = { .records = 3, .bytes = 4096, .max_bytes = UINT64_C(1) << 30,
		    .oldest_us = 1795262400000000 - 480000, .dir = "/var/lib/sluice/spool" },
		.output = { .kind = "kafka", .state = OUTPUT_UP, .in_flight = 3, .queued_bytes = 900 },
		.registry = { .state = REGISTRY_OK, .url = "http://localhost:8081", .known = 7 },
		.process = { .cpu_ns = UINT64_C(12100000000), .rss_bytes = 19 << 20, .open_fds = 37,
		    .privileges = "CAP_BPF CAP_SYS_PTRACE, no_new_privs" },
	};
	for (int topic = 0; topic < TOPIC_COUNT; topic++)
		s->topics[topic] = (struct status_topic){ 1000 + (uint64_t)topic, 997, 1 };
}

/* A status with every kind of failure, and names that each format must escape. */
static inline void
status_sample_bad(struct agent_status *s)
{
	status_sample(s);
	s->agent.host_name = "no\"de\\1\n\xff";
	s->config.reload_failed = true;
	s->config.reload_error = "conf.d/x.yaml:3: kafka.brokerz: no such key; did you mean brokers?";
	s->config.restart_wanted = "spool.dir";
	s->output.state = OUTPUT_DOWN;
	snprintf(s->output.error, sizeof(s->output.error), "2 of 3 brokers are down");
	s->output.error_us = s->agent.time_us - 1000000;
	s->registry.state = REGISTRY_AWAY;
	s->registry.wanted = 2;
	s->registry.known = 5;
	snprintf(s->registry.error, sizeof(s->registry.error), "HTTP 500");
	s->spool.disk_error = -28;
	s->spool.memory_bytes = 2 << 20;
	s->spool.bytes = s->spool.max_bytes / 100 * 85;
	s->waiting[0] = (struct status_count){ TOPIC_HOST, "schema_refused", 3 };
	s->n_waiting = 1;
	s->dropped[0] = (struct status_count){ TOPIC_USAGE, "spool_full", 12 };
	s->n_dropped = 1;
	s->dead[0] = (struct status_count){ TOPIC_PROGRAM, "msg_too_large", 2 };
	s->n_dead = 1;
	status_sample_losses[0] = (struct agent_loss){ "on_exec", "ring_full", 7 };
	status_sample_losses[1] = (struct agent_loss){ "a\"b\\c\nd\xfe", "x y", 1 };
	status_sample_losses[2] = (struct agent_loss){ "on_exec", "ring_full", 3 };	/* 10 in total */
	s->lost = status_sample_losses;
	s->n_lost = 3;
	s->lost_by_user[0] = (struct user_loss){ 64001, 5, 7, 11 };
	s->n_lost_by_user = 1;
	status_sample_signals[1].state = SIGNAL_MISSING;
	status_sample_signals[1].hook = "";
}

#endif
