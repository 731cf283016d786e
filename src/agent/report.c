/*
 * SPDX-License-Identifier: Apache-2.0
 * report: writes Host and Agent records, and collects losses by component and reason.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/state.h"
#include "event.h"
#include "base/clock.h"
#include "base/own.h"
#include "model/losses.h"

static struct opt_u64
attributed(const struct usage *u, enum usage_field field)
{
	return (struct opt_u64){ u->value[field], usage_has(u, field) };
}

/* Writes a Host record; attributed usage is the difference since the last one. */
void
agent_write_host(struct agent *a)
{
	struct usage usage = correlator_attributed_usage(a->correlator);
	struct usage moved = usage;
	struct host_record r;

	if (a->usage_last_record.known != 0)
		moved = usage_since(&usage, &a->usage_last_record);
	if (host_sample(a->host, &r) < 0)
		return;
	a->usage_last_record = usage;
	a->host_last = r;
	r.head.run_id = a->run_id[0] != '\0' ? a->run_id : NULL;
	r.head.pipeline = a->pipeline;
	r.kernel = a->host_id.kernel;
	r.architecture = a->host_id.architecture;
	host_facts_record(&a->facts, &r);
	r.processes = a->other_processes + a->pass.seen;
	r.threads = a->other_threads + a->pass.seen_threads;
	r.cpu_attributed_ns = usage_cpu_ns(&moved);
	r.cpu_unattributed_ns = r.cpu_busy_ns > r.cpu_attributed_ns ? r.cpu_busy_ns - r.cpu_attributed_ns : 0;
	r.rss_attributed_bytes = correlator_attributed_rss(a->correlator);
	r.disk_read_attributed_bytes = attributed(&moved, USAGE_READ_BYTES);
	r.disk_write_attributed_bytes = attributed(&moved, USAGE_WRITE_BYTES);
	r.net_rx_attributed_bytes = attributed(&moved, USAGE_NET_RX_BYTES);
	r.net_tx_attributed_bytes = attributed(&moved, USAGE_NET_TX_BYTES);
	agent_record_energy(a, &r);
	stream_host(a->stream, &r);
}

static void
kernel_losses(const struct probes *probes, struct loss_list *to)
{
	for (unsigned program = 0; program < EVENT_PROG_COUNT; program++) {
		for (unsigned reason = 0; reason < EVENT_LOSS_COUNT; reason++)
			losses_add(to, probes_program_name(program), probes_loss_name(reason),
			    probes_lost(probes, program, reason));
	}
	for (unsigned i = 0;; i++) {
		const char *program;
		uint64_t skipped = probes_skipped(probes, &program, i);

		if (skipped == UINT64_MAX)
			break;
		losses_add(to, program, "skipped", skipped);
	}
}

void
agent_losses(const struct agent *a, struct loss_list *to)
{
	struct run_totals totals = correlator_totals(a->correlator, a->start_ns);
	const struct reader_counts read = reader_counts(a->reader);

	if (a->probes != NULL)
		kernel_losses(a->probes, to);
	else
		losses_add(to, "subscription", "lost", a->lost_records);
	losses_add(to, "decode", "malformed", a->counts.malformed);
	losses_add(to, "snapshot", "broken_off", a->counts.broken_passes);
	losses_add(to, "snapshot", "no_memory", a->counts.undiscovered);
	losses_add(to, "reader", "read_hung", read.hung);
	losses_add(to, "reader", "read_skipped", read.skipped);
	losses_add(to, "reader", "read_failed", read.failed);
	losses_add(to, "reader", "read_refused", read.refused);
	losses_add(to, "correlate", "end_unseen", totals.lost_ends);
	losses_add(to, "correlate", "note_refused", a->counts.refused_entries);
	losses_add(to, "correlate", "too_many_processes", totals.refused);
	losses_add(to, "correlate", "too_many_runs", totals.runs_refused);
	losses_add(to, "correlate", "too_many_tasks", totals.tasks_refused);
	losses_add(to, "correlate", "too_many_facts", totals.facts_refused);
	losses_add(to, "correlate", "text_over_budget", totals.texts_cut);
	losses_add(to, "correlate", "text_over_share", totals.texts_trimmed);
	losses_add(to, "correlate", "too_many_findings", totals.findings_left_out);
	losses_add(to, "correlate", "too_many_failures", totals.failures_left_out);
	losses_add(to, "correlate", "too_many_titles", totals.titles_left_out);
	losses_add(to, "correlate", "rules_gave_up", totals.rules_gave_up);
	for (int topic = 0; topic < TOPIC_COUNT; topic++)
		losses_add(to, topic_name(topic), "not_written", stream_lost(a->stream, topic));
	if (a->scope->losses != NULL)
		a->scope->losses(a, to);
}

size_t
agent_user_losses(const struct agent *a, struct user_loss ret[USER_LOSSES])
{
	size_t n = a->probes != NULL ? probes_user_losses(a->probes, ret) : 0;

	n = correlator_user_losses(a->correlator, ret, n);
	n = reader_user_losses(a->reader, ret, n);
	return a->scope->user_losses != NULL ? a->scope->user_losses(a, ret, n) : n;
}

void
agent_usage(const struct agent *a, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes)
{
	struct reader_usage readers = reader_usage(a->reader);

	*ret_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + own_reaped_cpu_ns() + readers.cpu_ns;
	*ret_rss_bytes = own_rss_bytes() + readers.rss_bytes;
}

static bool
bpf_stats_are_on(void)
{
	int c;
	FILE *f = fopen("/proc/sys/kernel/bpf_stats_enabled", "re");

	if (f == NULL)
		return false;
	c = fgetc(f);
	fclose(f);
	return c == '1';
}

void
agent_events(const struct agent *a, struct named_number ret[AGENT_EVENTS])
{
	const struct named_number all[] = {
		{ "exec", (double)a->counts.exec },
		{ "exit", (double)a->counts.exit },
		{ "cgroup", (double)a->counts.cgroup },
		{ "snapshot", (double)a->counts.snapshot },
		{ "drain", (double)a->counts.drains },
		{ "end_synthesized", (double)a->counts.synthesized },
		{ "end_made_up", (double)a->counts.synthesized },	/* its former name */
		{ "found", (double)a->counts.discovered },
		{ "lost_before_seq", (double)a->lost_records },
		{ "followed", (double)(a->probes != NULL ? probes_followed(a->probes) : a->pass.seen) },
		{ "others_alive", (double)a->other_processes },
	};

	_Static_assert(sizeof(all) == AGENT_EVENTS * sizeof(ret[0]), "AGENT_EVENTS is their number");
	memcpy(ret, all, sizeof(all));
}

void
agent_write_agent(struct agent *a, const char *event, uint64_t now_ns)
{
	struct named_number events[AGENT_EVENTS];
	struct loss_list losses = { 0 };
	struct user_loss user_losses[USER_LOSSES];
	struct probe_cost costs[PROBES_PROGRAMS];
	struct agent_probe probes[PROBES_PROGRAMS];
	struct agent_record r = { 0 };
	bool has_stats = bpf_stats_are_on();
	size_t n;

	r.head.time_us = clock_us(CLOCK_REALTIME);
	r.head.run_id = a->run_id[0] != '\0' ? a->run_id : NULL;
	r.head.pipeline = a->pipeline;
	r.event = event;
	r.version = SLUICE_VERSION;
	r.config_generation = 0;
	r.interval_ns = now_ns - a->last_record_ns;
	r.events = events;
	r.n_events = AGENT_EVENTS;
	agent_events(a, events);
	agent_losses(a, &losses);
	r.lost = losses.list;
	r.n_lost = losses.n;
	r.lost_by_user = user_losses;
	r.n_lost_by_user = agent_user_losses(a, user_losses);
	n = a->probes != NULL ? probes_costs(a->probes, costs) : 0;
	for (size_t i = 0; i < n; i++)
		probes[i] = (struct agent_probe){ costs[i].name, costs[i].runs,
			{ costs[i].run_time_ns, has_stats } };
	r.probes = probes;
	r.n_probes = n;
	agent_usage(a, &r.cpu_ns, &r.rss_bytes);
	r.message = a->message;
	a->scope->describe(a, &r);
	stream_agent(a->stream, &r);
	losses_free(&losses);
}
