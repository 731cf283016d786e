/*
 * SPDX-License-Identifier: Apache-2.0
 * How the daemon is, gathered from all its parts.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/probes.h"
#include "base/clock.h"
#include "base/own.h"
#include "daemon/state.h"
#include "kafka/kafka.h"
#include "runtime/container_names.h"
#include "stream/stream.h"

static void
fill_probes(struct agent_status *s, struct daemon *d)
{
	static const enum status_signal_state states[] = { [SIGNAL_OK] = STATUS_SIGNAL_OK,
		[SIGNAL_FALLBACK] = STATUS_SIGNAL_FALLBACK, [SIGNAL_MISSING] = STATUS_SIGNAL_MISSING };
	struct probes *probes = agent_probes(d->agent);
	struct probe_cost costs[STATUS_PROBES];
	const struct signal_status *signals;
	size_t n;

	signals = probes_signals(probes, &n);
	for (size_t i = 0; i < n && i < STATUS_SIGNALS; i++)
		s->signals[s->n_signals++] = (struct status_signal){ signals[i].name, signals[i].hook,
			states[signals[i].state], signals[i].detail };
	n = probes_costs(probes, costs, STATUS_PROBES);
	for (size_t i = 0; i < n && i < STATUS_PROBES; i++)
		s->probes[s->n_probes++] = (struct status_probe){ costs[i].name, costs[i].runs,
			{ costs[i].run_time_ns, costs[i].run_time_ns > 0 } };
	s->followed = probes_followed(probes);
}

static void
fill_records(struct agent_status *s, struct daemon *d)
{
	struct stream *stream = agent_stream(d->agent);
	struct named_number events[STATUS_EVENTS];
	struct agent_loss_line losses[STATUS_LOSSES];
	const struct delivery_stats *delivery = &d->stats;
	size_t n;

	delivery_stats(d->delivery, &d->stats);
	for (int t = 0; t < TOPIC_COUNT; t++)
		s->topics[t] = (struct status_topic){ stream_written(stream, (enum topic)t), delivery->delivered[t],
			delivery->redelivered[t] };
	for (size_t i = 0; i < delivery->n_dead; i++) {
		for (int t = 0; t < TOPIC_COUNT; t++) {
			if (delivery->dead[i].count[t] == 0 || s->n_dead == STATUS_COUNTS)
				continue;
			s->dead[s->n_dead++] = (struct status_count){ (enum topic)t,
				delivery->dead[i].reason, delivery->dead[i].count[t] };
		}
	}
	n = agent_events(d->agent, events, STATUS_EVENTS);
	for (size_t i = 0; i < n && i < STATUS_EVENTS; i++)
		s->events[s->n_events++] = (struct status_event){ events[i].name, (uint64_t)events[i].value };
	n = agent_losses(d->agent, losses, STATUS_LOSSES);
	for (size_t i = 0; i < n && i < STATUS_LOSSES; i++)
		s->lost[s->n_lost++] = (struct status_loss){ losses[i].place, losses[i].reason, losses[i].count };
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
	for (int t = 0; t < TOPIC_COUNT; t++) {
		for (int reason = 0; reason < SPOOL_DROPS; reason++) {
			if (spool.dropped[t][reason] > 0 && s->spool.n_dropped < STATUS_COUNTS)
				s->spool.dropped[s->spool.n_dropped++] = (struct status_count){ (enum topic)t,
					spool_drop_name((enum spool_drop)reason), spool.dropped[t][reason] };
		}
	}
}

static void
fill_outlet(struct agent_status *s, struct daemon *d)
{
	static const enum status_outlet_state states[] = { [OUTLET_STARTING] = STATUS_OUTLET_STARTING,
		[OUTLET_UP] = STATUS_OUTLET_UP, [OUTLET_DOWN] = STATUS_OUTLET_DOWN };
	static const enum status_registry_state registry_states[] = { [REGISTRY_IDLE] = STATUS_REGISTRY_IDLE,
		[REGISTRY_OK] = STATUS_REGISTRY_OK, [REGISTRY_ASKING] = STATUS_REGISTRY_ASKING,
		[REGISTRY_AWAY] = STATUS_REGISTRY_AWAY, [REGISTRY_REFUSED] = STATUS_REGISTRY_REFUSED };
	struct outlet_status outlet;
	struct registry_status registry;

	d->outlet->ops->status(d->outlet, &outlet);
	s->outlet.kind = outlet.kind;
	s->outlet.state = states[outlet.state];
	snprintf(s->outlet.error, sizeof(s->outlet.error), "%s", outlet.error);
	s->outlet.error_us = outlet.error_us;
	s->outlet.in_flight = outlet.in_flight;
	s->outlet.queued_bytes = outlet.queued_bytes;
	s->outlet.retried = outlet.retried;
	if (d->registry == NULL)
		return;		/* STATUS_REGISTRY_NONE */
	registry_status(d->registry, &registry);
	s->registry.state = registry_states[registry.state];
	snprintf(s->registry.url, sizeof(s->registry.url), "%s", registry.url);
	snprintf(s->registry.error, sizeof(s->registry.error), "%s", registry.error);
	s->registry.error_us = registry.error_us;
	s->registry.known = registry.known;
	s->registry.wanted = registry.wanted;
}

static void
fill_containers(struct agent_status *s, struct daemon *d)
{
	const struct container_names_counts *c = agent_container_counts(d->agent);

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
fill_own(struct agent_status *s)
{
	struct dirent *e;
	DIR *fds;

	s->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->rss_bytes = own_rss_bytes();
	fds = opendir("/proc/self/fd");
	if (fds != NULL) {
		while ((e = readdir(fds)) != NULL)
			s->open_fds += e->d_name[0] != '.';
		s->open_fds--;		/* the folder's own */
		closedir(fds);
	}
}

void
daemon_fill_status(struct agent_status *s, void *arg)
{
	struct daemon *d = arg;

	s->version = SLUICE_VERSION;
	s->pid = getpid();
	s->agent_id = d->agent_id;
	s->host_id = agent_host_id(d->agent);
	s->host_name = agent_host_name(d->agent);
	s->time_us = clock_us(CLOCK_REALTIME);
	s->start_us = d->start_us;
	s->uptime_ns = clock_ns(CLOCK_BOOTTIME) - d->start_ns;
	s->is_stopping = d->is_stopping;
	s->config_file = d->config->has_main ? d->config->files.list[0] : NULL;
	s->generation = d->generation;
	s->reload_us = d->reload_us;
	s->reload_failed = d->reload_failed;
	s->reload_error = d->reload_failed ? d->reload_error : NULL;
	s->restart_wanted = d->restart_wanted[0] != '\0' ? d->restart_wanted : NULL;
	s->privileges = d->privileges;
	fill_probes(s, d);
	fill_records(s, d);
	fill_spool(s, d);
	fill_outlet(s, d);
	fill_containers(s, d);
	fill_own(s);
}

void
daemon_describe(struct agent_record *r, void *arg)
{
	struct daemon *d = arg;
	const struct delivery_stats *delivery = &d->stats;
	struct outlet_status outlet;

	r->config_generation = d->generation;
	r->delivered = 0;
	if (d->delivery == NULL || d->outlet == NULL)
		return;		/* the START record */
	delivery_stats(d->delivery, &d->stats);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		r->delivered += delivery->delivered[t];
		r->retried += delivery->redelivered[t];
	}
	d->outlet->ops->status(d->outlet, &outlet);
	r->retried += outlet.retried;
}

size_t
daemon_losses(struct agent_loss_line *lines, size_t found, size_t max, void *arg)
{
	struct daemon *d = arg;
	const struct delivery_stats *delivery = &d->stats;

	if (d->delivery == NULL)
		return found;
	delivery_stats(d->delivery, &d->stats);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		for (size_t i = 0; i < delivery->n_dead; i++) {
			if (delivery->dead[i].count[t] > 0 && found < max)
				lines[found++] = (struct agent_loss_line){ topic_name((enum topic)t),
					delivery->dead[i].reason, delivery->dead[i].count[t] };
		}
		if (delivery->lost_full[t] > 0 && found < max)
			lines[found++] = (struct agent_loss_line){ topic_name((enum topic)t), "dead_letters_full",
				delivery->lost_full[t] };
		if (delivery->lost_unwritable[t] > 0 && found < max)
			lines[found++] = (struct agent_loss_line){ topic_name((enum topic)t), "dead_letters_unwritable",
				delivery->lost_unwritable[t] };
	}
	return found;
}
