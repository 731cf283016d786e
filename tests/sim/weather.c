/*
 * SPDX-License-Identifier: Apache-2.0
 * weather: what breaks, when and for how long. Each history has its own climate: which kinds of faults it has, and how
 * often.
 */
#include "sim.h"

enum kind {
	/* Of one topic: the others are to be delivered meanwhile. */
	TOPIC_DELETED,
	NO_RIGHTS,
	NO_LEADER,
	SCHEMA_REFUSED,
	TOPIC_KINDS,
	/* Of all topics. */
	CLUSTER_DOWN = TOPIC_KINDS,
	CLUSTER_LOSES,
	CLUSTER_SLOW,
	PRODUCER_FATAL,
	BROKER_FORGETS,
	BATCHES_LARGE,
	REGISTRY_DOWN,
	REGISTRY_SLOW,
	DISK_FULL,
	DISK_WRITES_FAIL,
	DISK_SYNCS_FAIL,
	DISK_SLOW,
	DISK_HANGS,
	LASTING_KINDS,
	/* Of a moment. */
	REGISTRY_REPLACED = LASTING_KINDS,
	SCHEMA_RENUMBERED,
	CLOCK_SET,
	SUSPENDED,
	STALLED,
	KINDS,
};

static const char *const names[KINDS] = {
	[TOPIC_DELETED] = "topic deleted",
	[NO_RIGHTS] = "no right to write",
	[NO_LEADER] = "partition without a leader",
	[SCHEMA_REFUSED] = "schema refused",
	[CLUSTER_DOWN] = "cluster down",
	[CLUSTER_LOSES] = "cluster loses requests and answers",
	[CLUSTER_SLOW] = "cluster slow",
	[PRODUCER_FATAL] = "producers fail for good",
	[BROKER_FORGETS] = "broker forgets batches",
	[BATCHES_LARGE] = "batches too large",
	[REGISTRY_DOWN] = "registry down",
	[REGISTRY_SLOW] = "registry slow",
	[DISK_FULL] = "disk full",
	[DISK_WRITES_FAIL] = "writes fail",
	[DISK_SYNCS_FAIL] = "syncs fail",
	[DISK_SLOW] = "disk slow",
	[DISK_HANGS] = "disk hangs",
	[REGISTRY_REPLACED] = "registry replaced",
	[SCHEMA_RENUMBERED] = "schema has another id",
	[CLOCK_SET] = "clock set",
	[SUSPENDED] = "suspended",
	[STALLED] = "stalled",
};

static void
apply(enum kind kind, unsigned arg, bool is_broken)
{
	static const int refusals[] = { 409, 409, 429, 503 };
	struct sim_cluster *c = &world->cluster;
	struct sim_disk *d = &world->disk;
	struct sim_topic *topic = &c->topics[arg % SIM_TOPICS];

	/* A fault may begin and end between two looks at the progress of topics. */
	if (kind < TOPIC_KINDS)
		world->checks.topics[arg % SIM_TOPICS].healthy_since_us = INT64_MAX;
	switch (kind) {
	case TOPIC_DELETED:
		topic->is_there = !is_broken;
		break;
	case NO_RIGHTS:
		topic->may_write = !is_broken;
		topic->may_describe = !is_broken || arg / SIM_TOPICS % 2;
		break;
	case NO_LEADER:
		topic->has_leader[arg / SIM_TOPICS % SIM_PARTITIONS] = !is_broken;
		break;
	case SCHEMA_REFUSED:
		world->registry.refuses[arg % SIM_TOPICS] = is_broken ? refusals[arg / SIM_TOPICS] : 0;
		break;
	case CLUSTER_DOWN:
		c->is_up = !is_broken;
		break;
	case CLUSTER_LOSES:
		c->lost_requests = c->lost_answers = is_broken ? 300 : 0;
		break;
	case CLUSTER_SLOW:
		c->rtt_us = is_broken ? 4 * SIM_S : 5 * SIM_MS;
		break;
	case PRODUCER_FATAL:
		c->fatal = is_broken ? 100 : 0;
		break;
	case BROKER_FORGETS:
		c->forgets = is_broken ? 100 : 0;
		break;
	case BATCHES_LARGE:
		c->batch_max = is_broken ? 5500 : 0;
		break;
	case REGISTRY_DOWN:
		world->registry.is_up = !is_broken;
		break;
	case REGISTRY_SLOW:
		world->registry.delay_us = is_broken ? 8 * SIM_S : 20 * SIM_MS;
		break;
	case DISK_FULL:
		d->had_faults = true;
		d->is_full = is_broken;
		break;
	case DISK_WRITES_FAIL:
		d->had_faults = true;
		d->write_errors = is_broken ? 300 : 0;
		d->healed_us = world->now_us;
		break;
	case DISK_SYNCS_FAIL:
		d->had_faults = true;
		d->sync_errors = is_broken ? 300 : 0;
		break;
	case DISK_SLOW:
		d->sync_us = is_broken ? 8 * SIM_S : 20 * SIM_MS;
		d->call_us = is_broken && arg % 2 == 1 ? 3 * SIM_S / 2 : 0;
		d->healed_us = world->now_us;
		break;
	case DISK_HANGS:
		d->hangs_until_us = is_broken ? world->weather.until_us[DISK_HANGS] : 0;
		d->healed_us = world->now_us;
		break;
	default:
		break;
	}
}

static void
happen(enum kind kind)
{
	switch (kind) {
	case REGISTRY_REPLACED:
		sim_registry_replace(&world->registry);
		break;
	case SCHEMA_RENUMBERED:
		sim_registry_renumber(&world->registry, (unsigned)sim_below(SIM_TOPICS),
		    (unsigned)sim_below(SIM_SCHEMAS));
		break;
	case CLOCK_SET:
		world->wall_us += ((int64_t)sim_below(5) - 2) * SIM_HOUR;
		break;
	case SUSPENDED: {
		int64_t us = (int64_t)sim_below(3 * SIM_HOUR);

		world->wall_us += us;
		world->boot_us += us;
		world->cluster.clock_us += us;
		break;
	}
	case STALLED: {
		int64_t answers_us = world->registry.answers_us;

		sim_pass((int64_t)sim_below(40 * SIM_S));
		world->registry.answers_us = answers_us;	/* the agent could not ask */
		break;
	}
	default:
		break;
	}
}

/* Restarts the time for which topics could be delivered. */
static void
disturb(void)
{
	for (unsigned t = 0; t < SIM_TOPICS; t++)
		world->checks.topics[t].healthy_since_us = INT64_MAX;
}

static void
end_due(void)
{
	bool is_calm = true;

	for (unsigned i = 0; i < LASTING_KINDS; i++) {
		int64_t *until_us = &world->weather.until_us[i];

		if (*until_us != 0 && *until_us <= world->now_us) {
			sim_say("no longer: %s (%u)", names[i], world->weather.arg[i]);
			apply((enum kind)i, world->weather.arg[i], false);
			*until_us = 0;
		}
		is_calm = is_calm && (i < TOPIC_KINDS || *until_us == 0);
	}
	if (!is_calm)
		world->calm_since_us = INT64_MAX;
	else if (world->calm_since_us == INT64_MAX)
		world->calm_since_us = world->now_us;
}

static void
begin_one(void)
{
	enum kind kind = (enum kind)sim_below(KINDS);
	int64_t lasts_us = 1 + (int64_t)sim_below((uint64_t)(sim_dice(200) ? 300 : 30) * SIM_S);

	if (world->is_lasting) {
		kind = (enum kind)sim_below(TOPIC_KINDS);
		lasts_us = (200 + (int64_t)sim_below(200)) * SIM_S;
	}
	if (!(world->weather.climate & 1u << kind))
		return;
	if (kind >= LASTING_KINDS) {
		sim_say("%s", names[kind]);
		happen(kind);
		/* Another time of day, and a suspend, in which the monotonic clock does not run, delay no record. */
		if (kind != CLOCK_SET && kind != SUSPENDED)
			disturb();
		return;
	}
	if (world->weather.until_us[kind] != 0)
		return;
	world->weather.arg[kind] = (unsigned)sim_below(4 * SIM_TOPICS);
	world->weather.until_us[kind] = world->now_us + lasts_us;
	sim_say("from now on: %s (%u), for %.3f s", names[kind], world->weather.arg[kind], (double)lasts_us / SIM_S);
	apply(kind, world->weather.arg[kind], true);
	if (kind >= TOPIC_KINDS)
		world->calm_since_us = INT64_MAX;
}

void
sim_weather_pause(void)
{
	if ((world->weather.climate & 1u << REGISTRY_REPLACED) && sim_dice(400))
		sim_registry_replace(&world->registry);
}

void
sim_weather_work(void)
{
	end_due();
	if (world->is_last || world->now_us < world->weather.next_us)
		return;
	world->weather.next_us = world->now_us + 1 + (int64_t)sim_below((uint64_t)world->weather.each_us);
	begin_one();
}

int64_t
sim_weather_next_us(void)
{
	int64_t next_us = world->is_last ? INT64_MAX : world->weather.next_us;

	for (unsigned i = 0; i < LASTING_KINDS; i++)
		if (world->weather.until_us[i] != 0 && world->weather.until_us[i] < next_us)
			next_us = world->weather.until_us[i];
	return next_us;
}

void
sim_weather_calm(void)
{
	for (unsigned i = 0; i < LASTING_KINDS; i++)
		if (world->weather.until_us[i] != 0)
			world->weather.until_us[i] = world->now_us;
	end_due();
	for (unsigned t = 0; t < SIM_TOPICS; t++)
		world->cluster.topics[t].is_there = true;
}

void
sim_weather_init(void)
{
	uint64_t which = sim_below(4);
	uint32_t some = (uint32_t)sim_below(UINT32_MAX);

	/* All kinds, a few of them, those of one topic, or some. */
	world->weather.climate = which == 0 ? UINT32_MAX : which == 1 ? some & (uint32_t)sim_below(UINT32_MAX) :
	    which == 2 ? (1u << TOPIC_KINDS) - 1 : some;
	world->weather.each_us = (1 + (int64_t)sim_below(40)) * SIM_S;
	world->weather.next_us = world->now_us;
	world->calm_since_us = world->now_us;
	world->cluster.clock_us = world->wall_us;
	if (sim_dice(500))
		world->cluster.ahead_max_us = SIM_HOUR;
	world->has_versions = sim_dice(250);
	world->is_lasting = which == 2 && sim_dice(250);
	if (world->is_lasting)
		world->weather.each_us = 20 * SIM_S;
}
