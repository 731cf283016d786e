/*
 * SPDX-License-Identifier: Apache-2.0
 * status: the daemon's status, gathered from all its parts.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/sight.h"
#include "agent/subscription.h"
#include "attach/probes.h"
#include "base/clock.h"
#include "daemon/state.h"
#include "runtime/container_resolver.h"
#include "runtime/kubelet.h"
#include "stream/stream.h"

_Static_assert((int)STATUS_PROBES >= (int)PROBES_PROGRAMS, "a status has room for each BPF program");
_Static_assert((int)STATUS_COUNTS >= (int)TOPIC_COUNT * (int)DELIVERY_REASONS,
    "a status has room for each reason of a dead letter");
_Static_assert((int)STATUS_COUNTS >= (int)TOPIC_COUNT * (int)SPOOL_DROPS, "a status has room for each reason of the spool");
_Static_assert((int)STATUS_REMOVED >= (int)LAKE_REMOVALS, "a status has room for each reason of the lake");
_Static_assert((int)STATUS_EVENTS >= (int)AGENT_EVENTS, "a status has room for each kind of event");

static void
fill_probes(struct agent_status *s, struct daemon *d)
{
	struct probes *probes = agent_probes(d->agent);
	const struct sight *sight = agent_sight(d->agent);
	struct probe_cost costs[PROBES_PROGRAMS];

	s->signals = probes_signals(probes, &s->n_signals);
	s->n_probes = probes_costs(probes, costs);
	for (size_t i = 0; i < s->n_probes; i++)
		s->probes[i] = (struct agent_probe){ costs[i].name, costs[i].runs,
			{ costs[i].run_time_ns, costs[i].run_time_ns > 0 } };
	s->seeing.followed = probes_followed(probes);
	s->seeing.canary_error = sight->canary.error;
	s->seeing.gaps = sight->gaps;
	s->seeing.gaps_ns = sight->gaps_ns;
	if (sight->blind_since_ns != 0) {
		s->seeing.blind_reason = d->blind_reason;
		s->seeing.blind_since_us = s->agent.time_us -
		    (int64_t)(clock_ns(CLOCK_BOOTTIME) - sight->blind_since_ns) / 1000;
	}
}

static void
fill_records(struct agent_status *s, struct daemon *d)
{
	struct stream *stream = agent_stream(d->agent);
	const struct delivery_stats *delivery = &d->stats;

	delivery_stats(d->delivery, &d->stats);
	for (int t = 0; t < TOPIC_COUNT; t++)
		s->topics[t] = (struct status_topic){ stream_written(stream, (enum topic)t), delivery->delivered[t],
			delivery->redelivered[t] };
	for (size_t i = 0; i < delivery->n_dead; i++) {
		for (int t = 0; t < TOPIC_COUNT; t++) {
			if (delivery->dead[i].count[t] == 0)
				continue;
			s->dead[s->n_dead++] = (struct status_count){ (enum topic)t,
				delivery->dead[i].reason, delivery->dead[i].count[t] };
		}
	}
	s->n_events = AGENT_EVENTS;
	agent_events(d->agent, s->events);
	d->losses.n = 0;
	agent_losses(d->agent, &d->losses);
	s->lost = d->losses.list;
	s->n_lost = d->losses.n;
	s->n_lost_by_user = agent_user_losses(d->agent, s->lost_by_user);
}

const char *
daemon_waits_for(struct daemon *d, const struct spool_stats *spool, enum topic topic)
{
	delivery_stats(d->delivery, &d->stats);
	if (spool->waiting[topic] == 0)
		return NULL;
	if (d->stats.waits[topic].reason != NULL)
		return d->stats.waits[topic].reason;
	return spool->is_full[topic] ? "unacknowledged" : NULL;
}

static void
fill_spool(struct agent_status *s, struct daemon *d)
{
	struct spool_stats spool;

	spool_stats(d->spool, &spool);
	s->spool.records = spool.records;
	s->spool.bytes = spool.bytes;
	s->spool.max_bytes = d->config->spool.max_bytes;
	s->spool.memory_bytes = spool.memory_bytes;
	s->spool.oldest_us = spool.oldest_us;
	s->spool.disk_error = spool.last_error;
	s->spool.dir = d->config->spool.dir;
	s->spool.free_bytes = spool.free_bytes;
	s->spool.floor_bytes = spool.floor_bytes;
	s->spool.is_at_floor = spool.is_at_floor;
	for (size_t i = 0; i < spool.n_unknown && i < STATUS_UNKNOWN; i++) {
		if (spool.unknown[i].records > 0)
			s->unknown_topics[s->n_unknown_topics++] = (struct status_unknown){ spool.unknown[i].topic,
				spool.unknown[i].records };
	}
	for (int t = 0; t < TOPIC_COUNT; t++) {
		const char *wait = daemon_waits_for(d, &spool, (enum topic)t);

		if (wait != NULL)
			s->waiting[s->n_waiting++] = (struct status_count){ (enum topic)t, wait, spool.waiting[t] };
		for (int reason = 0; reason < SPOOL_DROPS; reason++) {
			if (spool.dropped[t][reason] > 0)
				s->dropped[s->n_dropped++] = (struct status_count){ (enum topic)t,
					spool_drop_name((enum spool_drop)reason), spool.dropped[t][reason] };
		}
	}
}

static void
fill_lake(struct agent_status *s, const struct daemon *d, const struct lake_retention_stats *lake)
{
	s->lake.is_there = true;
	s->lake.dir = d->config->lake;
	s->lake.bytes = lake->bytes;
	s->lake.max_bytes = d->config->lake_max_bytes;
	s->lake.free_bytes = lake->free_bytes;
	s->lake.floor_bytes = lake->floor_bytes;
	s->lake.is_at_floor = lake->is_at_floor;
	for (int reason = 0; reason < LAKE_REMOVALS; reason++) {
		const struct lake_removed *removed = &lake->removed[reason];

		if (removed->files > 0)
			s->removed[s->n_removed++] = (struct status_removed){
				lake_removal_name((enum lake_removal)reason), removed->files, removed->records,
				removed->bytes };
	}
}

static void
fill_output(struct agent_status *s, struct daemon *d)
{
	struct output_status output;
	struct registry_status registry;

	d->output->ops->status(d->output, &output);
	s->output.kind = output.kind;
	s->output.state = output.state;
	snprintf(s->output.error, sizeof(s->output.error), "%s", output.error);
	s->output.error_us = output.error_us;
	snprintf(s->output.warning, sizeof(s->output.warning), "%s", output.warning);
	s->output.in_flight = output.in_flight;
	s->output.queued_bytes = output.queued_bytes;
	s->output.retried = output.retried;
	if (output.lake != NULL)
		fill_lake(s, d, output.lake);
	if (d->registry == NULL)
		return;		/* REGISTRY_UNUSED */
	registry_status(d->registry, &registry);
	s->registry.state = registry.state;
	snprintf(s->registry.url, sizeof(s->registry.url), "%s", registry.url);
	snprintf(s->registry.error, sizeof(s->registry.error), "%s", registry.error);
	s->registry.error_us = registry.error_us;
	s->registry.known = registry.known;
	s->registry.wanted = registry.wanted;
}

static void
fill_containers(struct agent_status *s, struct daemon *d)
{
	const struct container_resolver_counts *c = agent_container_counts(d->agent);

	if (c == NULL)
		return;
	s->containers.is_asked = true;
	s->containers.requests = c->asked;
	s->containers.named = c->named;
	s->containers.unknown = c->unknown;
	s->containers.failed = c->failed;
	s->containers.refused = c->refused;
}

static void
fill_kubelet(struct agent_status *s, struct daemon *d)
{
	const struct kubelet *k = agent_kubelet(d->agent);
	const struct kubelet_counts *c;

	if (k == NULL)
		return;
	c = kubelet_counts(k);
	s->kubelet.is_asked = true;
	s->kubelet.pods = c->pods;
	s->kubelet.left_out = c->left_out;
	s->kubelet.named = c->named;
	s->kubelet.unknown = c->unknown;
	s->kubelet.requests = c->requests;
	s->kubelet.failed = c->failed;
	snprintf(s->kubelet.error, sizeof(s->kubelet.error), "%s", kubelet_error(k));
}

static void
put_limit(struct agent_status *s, const char *door, const char *reason, uint64_t count)
{
	s->limits[s->n_limits++] = (struct status_limit){ door, reason, count };
}

static void
fill_doors(struct agent_status *s, struct daemon *d)
{
	struct http_stats metrics = { 0 };
	struct control_stats control, runs = { 0 };
	struct subscription_stats run;

	for (size_t i = 0; i < d->n_metrics; i++) {
		struct http_stats one = { 0 };

		if (d->metrics[i].http != NULL)
			http_stats(d->metrics[i].http, &one);
		metrics.waits += one.waits;
		metrics.displaced += one.displaced;
		metrics.slow += one.slow;
		metrics.malformed += one.malformed;
		if (d->metrics[i].error[0] != '\0')
			s->doors.metrics_error = d->metrics[i].error;
	}
	control_stats(d->control, &control);
	if (d->runs != NULL)
		control_stats(d->runs, &runs);
	agent_subscription_stats(d->agent, &run);
	put_limit(s, "control", "rate", control.waits);
	put_limit(s, "control", "crowded", control.crowded);
	put_limit(s, "control", "slow", control.cut_off);
	put_limit(s, "control", "stranger", control.refused);
	put_limit(s, "control", "rights", control.denied);
	put_limit(s, "metrics", "rate", metrics.waits);
	put_limit(s, "metrics", "crowded", metrics.displaced);
	put_limit(s, "metrics", "slow", metrics.slow);
	put_limit(s, "metrics", "malformed", metrics.malformed);
	put_limit(s, "run", "rate", runs.waits);
	put_limit(s, "run", "crowded", runs.crowded + run.crowded);
	put_limit(s, "run", "slow", runs.cut_off + run.slow);
	put_limit(s, "run", "malformed", run.malformed);
}

static void
fill_own(struct agent_status *s, const struct agent *a)
{
	struct dirent *e;
	DIR *fds;

	agent_usage(a, &s->process.cpu_ns, &s->process.rss_bytes);
	fds = opendir("/proc/self/fd");
	if (fds != NULL) {
		while ((e = readdir(fds)) != NULL)
			s->process.open_fds += e->d_name[0] != '.';
		s->process.open_fds--;		/* the descriptor of this folder */
		closedir(fds);
	}
}

void
daemon_fill_status(struct agent_status *s, void *arg)
{
	struct daemon *d = arg;

	s->agent.version = SLUICE_VERSION;
	s->agent.pid = getpid();
	s->agent.agent_id = d->agent_id;
	s->agent.host_id = agent_host_id(d->agent);
	s->agent.host_name = agent_host_name(d->agent);
	s->agent.time_us = clock_us(CLOCK_REALTIME);
	s->agent.start_us = d->start_us;
	s->agent.uptime_ns = clock_ns(CLOCK_BOOTTIME) - d->start_ns;
	s->agent.is_stopping = d->is_stopping;
	s->config.file = d->config->has_main ? d->config->files.list[0] : NULL;
	s->config.generation = d->generation;
	s->config.reload_us = d->reload_us;
	s->config.reload_failed = d->reload_failed;
	s->config.reload_error = d->reload_failed ? d->reload_error : NULL;
	s->config.restart_wanted = d->restart_wanted[0] != '\0' ? d->restart_wanted : NULL;
	s->process.privileges = d->privileges;
	fill_probes(s, d);
	fill_records(s, d);
	fill_spool(s, d);
	fill_output(s, d);
	fill_containers(s, d);
	fill_kubelet(s, d);
	fill_doors(s, d);
	fill_own(s, d->agent);
}

void
daemon_describe(struct agent_record *r, void *arg)
{
	struct daemon *d = arg;
	const struct delivery_stats *delivery = &d->stats;
	struct output_status output;

	r->config_generation = d->generation;
	r->delivered = 0;
	if (d->delivery == NULL || d->output == NULL)
		return;		/* the START record */
	delivery_stats(d->delivery, &d->stats);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		r->delivered += delivery->delivered[t];
		r->retried += delivery->redelivered[t];
	}
	d->output->ops->status(d->output, &output);
	r->retried += output.retried;
}

void
daemon_losses(struct loss_list *to, void *arg)
{
	struct daemon *d = arg;
	const struct delivery_stats *delivery = &d->stats;

	if (d->delivery == NULL)
		return;
	delivery_stats(d->delivery, &d->stats);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		for (size_t i = 0; i < delivery->n_dead; i++)
			losses_add(to, topic_name((enum topic)t), delivery->dead[i].reason,
			    delivery->dead[i].count[t]);
		losses_add(to, topic_name((enum topic)t), "dead_letters_full", delivery->lost_full[t]);
		losses_add(to, topic_name((enum topic)t), "dead_letters_unwritable", delivery->lost_unwritable[t]);
	}
}
