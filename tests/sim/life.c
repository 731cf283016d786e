/*
 * SPDX-License-Identifier: Apache-2.0
 * life: one process of the agent. It opens the stages as the daemon does (daemon/daemon.c, daemon/deliver.c), and then
 * does one step after the other: an event of the loop, a part of a thread, or what a model does.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "deliver/dead_letter.h"
#include "deliver/dead_letter_files.h"
#include "deliver/dead_letter_read.h"
#include "deliver/delivery.h"
#include "kafka/kafka.h"
#include "registry/registry.h"
#include "sim.h"
#include "spool/spool.h"

#define SPOOL_DIR "/spool"
#define DEAD_DIR "/dead"

enum {
	DRAIN_MS = 333,
	STOP_MS = 8000,
};

struct stages {
	struct spool *spool;
	struct registry *registry;
	struct dead_letters *dead;
	struct delivery *delivery;
	struct output *output;
	struct sim_agent *agent;
	int synced_fd;
	struct event *on_synced, *on_drain, *on_second, *on_tick;
	unsigned seconds;
	bool is_stopping;
	bool has_stopped;
	bool has_mark;
	struct spool_mark mark;
};

static void
committed(struct stages *d)
{
	spool_sync(d->spool, clock_ns(CLOCK_MONOTONIC));
	if (d->delivery != NULL)
		delivery_wake(d->delivery);
}

static void
tick(struct stages *d)
{
	spool_tick(d->spool, clock_ns(CLOCK_MONOTONIC));
	sim_check_committed(0, d->spool);
	delivery_tick(d->delivery, clock_us(CLOCK_REALTIME));
	if (d->has_mark && spool_sync_up_to(d->spool, &d->mark) == 0) {
		sim_check_synced(d->mark.next_seq);
		d->has_mark = false;
	} else if (!d->has_mark && sim_dice(300)) {
		spool_mark(d->spool, &d->mark);
		d->has_mark = true;
	}
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tick(arg);
}

/* Runs on the spool's thread. */
static void
on_disk_synced(void *arg)
{
	(void)!eventfd_write(((struct stages *)arg)->synced_fd, 1);
}

static void
on_synced(evutil_socket_t fd, short what, void *arg)
{
	struct stages *d = arg;
	eventfd_t n;

	(void)what;
	(void)eventfd_read(fd, &n);
	committed(d);
}

static void
on_drain(evutil_socket_t fd, short what, void *arg)
{
	struct stages *d = arg;

	(void)fd;
	(void)what;
	sim_agent_drain(d->agent);
	committed(d);
}

/* Prints what waits, and why. */
static void
say_state(const struct stages *d)
{
	struct spool_stats spool;
	struct delivery_stats delivery;
	struct output_status output;
	struct registry_status registry;

	if (sim_verbose == 0)
		return;
	spool_stats(d->spool, &spool);
	delivery_stats(d->delivery, &delivery);
	d->output->ops->status(d->output, &output);
	registry_status(d->registry, &registry);
	sim_say("%llu records, %llu bytes in memory, error %d; %llu in flight, %llu rewinds (%s); output %d (%s); "
	    "registry %d, %u ids, %u unverified", (llu)spool.records, (llu)spool.memory_bytes, spool.last_error,
	    (llu)delivery.in_flight, (llu)delivery.rewinds, delivery.failure, output.state,
	    output.error, registry.state, registry.known, registry.unverified);
	for (int t = 0; t < TOPIC_COUNT; t++)
		if (delivery.waits[t].reason != NULL)
			sim_say("  %s: %llu records wait: %s", topic_name((enum topic)t), (llu)spool.waiting[t],
			    delivery.waits[t].reason);
}

static void
on_second(evutil_socket_t fd, short what, void *arg)
{
	struct stages *d = arg;

	(void)fd;
	(void)what;
	if (d->is_stopping)
		return;
	sim_agent_drain(d->agent);
	if (++d->seconds % 5 == 0)
		sim_agent_measure(d->agent);
	tick(d);
	committed(d);
	if (d->seconds % 10 == 0)
		say_state(d);
	sim_check_progress(d->spool);
}

/* --- the start --- */

static void
open_spool(struct stages *d, unsigned schema)
{
	struct spool_options o = { .dir = SPOOL_DIR, .max_bytes = 64 << 20, .memory_bytes = 8 << 20, .sync_ms = 100,
		.segment_bytes = (8 << 10) << world->seed % 4, .is_sync_first = true, .on_synced = on_disk_synced,
		.on_synced_arg = d, .patience_ms = 1000 };
	struct spool_recovery found;
	char error[512] = "";
	int r;

	d->synced_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	for (int t = 0; t < TOPIC_COUNT; t++)
		o.schemas[t] = sim_schema_text(sim_topic((enum topic)t), schema);
	r = spool_open(&o, &d->spool, &found, error, sizeof(error));
	if (r == -ENOSPC || r == -EIO) {
		sim_say("%s", error);
		_exit(SIM_END_KILLED);		/* the service manager starts it again, later */
	}
	sim_check(r == 0, "%s", error);
	sim_say("%s: the spool has %llu records and was %sclosed, %llu bytes are torn, %llu batches corrupt, "
	    "%u segments unreadable", world->is_newer ? "the newer version" : "the older version", (llu)found.records,
	    found.was_clean ? "" : "not ", (llu)found.torn_bytes, (llu)found.corrupt_batches, found.unreadable);
	if (!world->checks.had_power_cut)
		sim_check(found.corrupt_batches == 0 && found.unreadable == 0,
		    "the spool is damaged after a mere kill");
	sim_check_opened(d->spool);
}

static void
on_registry_change(void *arg)
{
	struct stages *d = arg;

	if (d->output != NULL)
		kafka_registry_changed(d->output, registry_epoch(d->registry));
}

static int
on_schema_id(void *arg, const char *subject, const struct spool_record *r, int32_t *ret_id)
{
	struct stages *d = arg;
	const char *text = spool_schema(d->spool, r->schema);

	if (text == NULL)
		return errno == ENOENT ? -ENOENT : -EAGAIN;
	return registry_id(d->registry, subject, r->schema, text, ret_id);
}

static void
on_log(int level, const char *facility, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	sim_say("%s: %s", facility, text);
}

static void
open_delivery(struct stages *d)
{
	static const char *const urls[] = { "http://registry:8081" }, *const brokers[] = { "broker:9092" };
	static const struct kafka_property properties[] = { { "queue.buffering.max.messages", "100" },
		{ "message.timeout.ms", "20000" }, { "batch.size", "16000" } };
	struct registry_options registry = { .urls = urls, .n_urls = 1, .cache_file = SPOOL_DIR "/registry-ids.json",
		.disk = spool_disk(d->spool), .recheck_ms = 30000 };
	struct kafka_options kafka = { .brokers = brokers, .n_brokers = 1, .properties = properties, .n_properties = 3,
		.create_topics = world->cluster.may_create, .agent_version = "0", .schema_id = on_schema_id,
		.on_log = on_log, .arg = d };
	struct delivery_options o = { .per_turn = 1 + (unsigned)sim_below(60) };
	struct output_events events;
	char error[512] = "";

	/* Until now no process could ask the registry: a slow disk makes the recovery of the spool last. */
	world->registry.was_down = false;
	world->registry.life_us = world->registry.answers_us;
	if (dead_letters_open(DEAD_DIR, 0, 0, &d->dead) < 0)
		sim_broken("the dead letters cannot be opened");
	o.dead = d->dead;
	if (delivery_open(NULL, d->spool, &o, &events, &d->delivery) < 0 ||
	    registry_open(NULL, &registry, on_registry_change, d, &d->registry, error, sizeof(error)) < 0 ||
	    kafka_open(NULL, &kafka, &events, &d->output, error, sizeof(error)) < 0)
		sim_broken("%s", error);
	delivery_set_output(d->delivery, d->output);
}

static void
open_events(struct stages *d)
{
	static const struct timeval second = { 1, 0 }, often = { 0, DRAIN_MS * 1000 };

	d->on_synced = event_new(NULL, d->synced_fd, EV_READ | EV_PERSIST, on_synced, d);
	d->on_drain = event_new(NULL, -1, EV_PERSIST, on_drain, d);
	d->on_second = event_new(NULL, -1, EV_PERSIST, on_second, d);
	d->on_tick = event_new(NULL, -1, EV_PERSIST, on_tick, d);
	event_add(d->on_synced, NULL);
	event_add(d->on_drain, &often);
	event_add(d->on_second, &second);
	event_active(d->on_tick, EV_TIMEOUT, 0);	/* the first one starts the thread that syncs */
}

/* --- dead letters --- */

/* Letters of which it is not known yet what became, the oldest first. */
static struct {
	unsigned topic;
	uint64_t seq, hash;
	char reason[64];
} letters[SIM_SEQS];
static size_t first_letter, n_letters;

SIM_WRAP(int, dead_letters_put, struct dead_letters *d, const struct spool_record *r, const char *reason,
    const char *detail)
{
	size_t at = (first_letter + n_letters) % SIM_SEQS;

	letters[at].topic = sim_topic(r->topic);
	letters[at].seq = r->seq;
	letters[at].hash = sim_hash(r->data, r->len);
	snprintf(letters[at].reason, sizeof(letters[at].reason), "%s", reason);
	n_letters++;
	return __real_dead_letters_put(d, r, reason, detail);
}

SIM_WRAP(bool, dead_letters_next, struct dead_letters *d, int *ret_error)
{
	size_t at = first_letter % SIM_SEQS;

	if (!__real_dead_letters_next(d, ret_error))
		return false;
	first_letter++;
	n_letters--;
	sim_check_dead(letters[at].topic, letters[at].seq, letters[at].hash, letters[at].reason, *ret_error);
	return true;
}

static void
read_letters(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY);
	struct dead_letter_reader *reader;
	struct dead_letter letter;
	struct ocf_error error;
	int r;

	if (dead_letter_reader_open(fd, &reader, &error) < 0) {
		sim_say("%s: %s", name, error.text);
		close(fd);
		return;
	}
	while ((r = dead_letter_reader_next(reader, &letter, &error)) == 1 || r == -EBADMSG) {
		if (r == 1)
			sim_check_letter(letter.topic, letter.seq, sim_hash(letter.data, letter.len));
	}
	dead_letter_reader_close(reader);
	close(fd);
}

/* Looks at all dead letters that are left at the end of the history. */
static void
read_all_letters(void)
{
	int fd = open(DEAD_DIR, O_RDONLY | O_DIRECTORY);
	struct dead_letter_names names;

	if (fd < 0)
		return;
	sim_check(dead_letter_names_read(fd, &names) == 0, "the dead letters cannot be listed");
	for (size_t i = 0; i < names.n; i++)
		read_letters(fd, names.list[i]);
	dead_letter_names_done(&names);
	close(fd);
}

/* --- the end --- */

static void
on_drained(bool is_empty, void *arg)
{
	struct stages *d = arg;

	sim_say("the agent stops: %s", is_empty ? "everything is delivered" : "records stay in the spool");
	d->has_stopped = true;
}

static void
begin_stop(struct stages *d)
{
	static const struct timeval often = { 0, 100000 };

	d->is_stopping = true;
	event_add(d->on_tick, &often);
	event_del(d->on_drain);
	event_del(d->on_second);
	sim_agent_drain(d->agent);
	sim_agent_measure(d->agent);
	delivery_drain(d->delivery, STOP_MS, on_drained, d);
}

static void
stop(struct stages *d)
{
	/* Then the thread of the dead letters may be left alone, with its files. */
	bool is_slow = world->disk.sync_us >= SIM_S || world->disk.call_us > 0 ||
	    world->now_us < world->disk.hangs_until_us;
	int r;

	event_free(d->on_synced);
	event_free(d->on_drain);
	event_free(d->on_second);
	event_free(d->on_tick);
	delivery_close(d->delivery);
	dead_letters_close(d->dead);
	registry_close(d->registry);
	sim_agent_close(d->agent);
	r = spool_close(d->spool);
	is_slow = is_slow || r == -ETIMEDOUT;	/* a call that began before the disk was fast again has not ended */
	if (r == 0)
		sim_check_closed();
	sim_say("the spool is closed: %s", r < 0 ? strerror(-r) : "well");
	close(d->synced_fd);
	/* A thread in a call on a disk that hangs is left alone, and closes what it has after that. */
	if (world->now_us < world->disk.hangs_until_us)
		sim_wait_until(world->disk.hangs_until_us + 10 * SIM_S);
	if (kafka_process_wait(60000) && !is_slow)
		sim_check(sim_fds_open() == 0, "%u descriptors are open at the end", sim_fds_open());
}

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Lets time pass until something is due. */
static void
wait(void)
{
	int64_t next_us = least(sim_loop_next_us(), sim_threads_next_us());

	next_us = least(next_us, sim_producers_next_us());
	next_us = least(next_us, sim_cluster_next_us(&world->cluster));
	next_us = least(next_us, sim_registry_next_us());
	next_us = least(next_us, sim_weather_next_us());
	next_us = least(next_us, world->programs_us);
	if (world->ends_us > world->now_us)
		next_us = least(next_us, world->ends_us);
	sim_pass(next_us > world->now_us ? next_us - world->now_us : 1);
}

/* Whether everything that is to be delivered is. */
static bool
is_finished(const struct stages *d)
{
	struct spool_stats s;

	spool_stats(d->spool, &s);
	return s.records == 0;
}

static void
step(void)
{
	bool has_events = sim_loop_ready(), has_threads = sim_threads_ready();

	sim_check(++world->steps < SIM_STEPS_MAX, "the history does not end");
	sim_weather_work();
	sim_programs_work();
	sim_cluster_work(&world->cluster);
	sim_producers_work();
	sim_registry_work();
	if (sim_dice(5))
		sim_disk_write_back(&world->disk);
	if (has_threads && (!has_events || sim_dice(500)))
		sim_threads_step();
	else if (has_events)
		sim_loop_step();
	else
		wait();
	sim_pass((int64_t)sim_below(200));
	sim_note((uint64_t)world->now_us);
}

enum sim_end
sim_life(void)
{
	struct stages d = { .synced_fd = -1 };
	unsigned schema = world->life > 3 && world->seed % 3 == 0;

	open_spool(&d, schema);
	d.agent = sim_agent_open(d.spool, schema);
	sim_agent_drain(d.agent);
	open_delivery(&d);
	open_events(&d);
	sim_is_looping = true;
	while (!d.has_stopped) {
		bool is_over = world->now_us >= world->ends_us;

		if (is_over && !world->closes && !world->is_last)
			sim_killed();
		if (!d.is_stopping && (world->is_last ? d.seconds > 40 && is_finished(&d) : is_over))
			begin_stop(&d);
		sim_check(!world->is_last || !is_over || d.is_stopping,
		    "records are in the spool for an hour in which nothing is broken");
		step();
	}
	sim_is_looping = false;
	stop(&d);
	if (world->is_last)
		read_all_letters();
	return SIM_END_CLOSED;
}
