/*
 * SPDX-License-Identifier: Apache-2.0
 * run: opens the agent of one command, with its text and limits, and decides when it is finished.
 */
#include "agent/run.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "agent/subscriber.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/text.h"
#include "collect/cgroup.h"
#include "lake/writer.h"
#include "model/losses.h"

#define FINISH_MS 20
#define FINISH_MS_LATER 200		/* after half a second */
#define HOST_LIMIT_NS UINT64_C(12000000000)	/* more than the agent of the host takes for the same */
#define FINISH_LIMIT_NS UINT64_C(10000000000)	/* for the kernel to free ended processes */
#define LAKE_QUEUE_BYTES (UINT64_C(16) << 20)	/* no spool keeps what the lake's disk does not take at once */
#define LAKE_WAIT_MS 1000
#define COMMAND_TEXT_MAX 8192

struct run_agent {
	struct agent agent;		/* first: it is cast to struct run_agent */
	struct lake_writer *lake;	/* owned; NULL: closed */
	const char *lake_path;		/* the caller's */
	struct subscriber *subscriber;	/* owned; NULL: own probes, or nothing is received */
	struct usage usage_last;	/* of all runs, at the last tick */
	uint64_t tick_ns;		/* of the last tick, or the start */
	double cores_now;		/* used between the last two */
	bool has_lost_host;		/* the agent of the host ended first */
	uint64_t withheld;		/* see agent_withheld(); of the closed subscriber */
	uint32_t own_pid;		/* as the kernel counts: that of COMMAND's parent */
	bool is_command_seen;
	bool is_finish_asked;		/* of the agent of the host */
	uint64_t passes_at_finish;
	struct lake_writer_stats lake_stats;	/* of the closed lake */
	int lake_result;		/* of closing it */
	char lake_error[256];
	struct event *on_finish;	/* owned; NULL until agent_finish(), as are the members below it */
	bool is_finish_slow;
	bool wait_for_all;
	int wait_status;
	uint64_t finish_since_ns;
	void (*on_done)(void *arg);
	void *done_arg;
};

static struct run_agent *
run_agent(struct agent *a)
{
	return (struct run_agent *)a;
}

/* Returns the command line as one string, redacted, which the caller frees; NULL: no memory. */
static char *
command_text(const struct ruleset *rules, const char *const *command)
{
	struct arena arena;
	const char *argv[256];
	size_t argc = 0;
	char *out = malloc(COMMAND_TEXT_MAX);

	if (out == NULL || arena_init(&arena, 1u << 20) < 0) {
		free(out);
		return NULL;
	}
	for (; argc < 256 && command[argc] != NULL; argc++) {
		size_t len = strlen(command[argc]);
		char *escaped = arena_bytes(&arena, TEXT_ESCAPE_MAX(len));

		if (escaped == NULL)
			break;
		text_escape(command[argc], len, escaped, TEXT_ESCAPE_MAX(len), NULL);
		argv[argc] = escaped;
	}
	redact_argv(rules, argv, argc, &arena);
	text_join(argv, argc, out, COMMAND_TEXT_MAX);
	arena_done(&arena);
	return out;
}

/* Opens a correlator for the run, with the command's text and limits. 0 or a negative errno. */
static int
open_correlator(struct agent *a, const struct agent_run_options *o)
{
	struct correlator_ops ops = agent_correlator_ops(&o->agent);
	struct correlator_options c = { 0 };
	struct cgroup_limits limits = { 0 };
	char *command = command_text(a->rules, o->command), *cwd = getcwd(NULL, 0), *work_dir = NULL;
	int r;

	if (cwd != NULL) {
		size_t space = TEXT_ESCAPE_MAX(strlen(cwd));

		work_dir = malloc(space);
		if (work_dir != NULL)
			text_escape(cwd, strlen(cwd), work_dir, space, NULL);
	}
	if (a->mounts != NULL)
		cgroup_limits_of_pid(a->mounts, "/proc", (uint32_t)getpid(), a->cpus, a->host_last.memory_bytes, &limits);
	c.boot_id = a->host_id.boot_id;
	c.host_id = a->host_id.id;
	c.rules = a->rules;
	c.start_after_ns = o->agent.start_after_ms * 1000000;
	c.finding_limits = o->agent.finding_limits;
	c.run_id = a->run_id;
	c.pipeline = o->pipeline;
	c.task = o->task;
	c.sample = o->sample;
	c.command = command;
	c.work_dir = work_dir;
	for (int i = 0; i < OPTIONAL_SIGNALS; i++)
		c.known_since_ns[i] = a->probes != NULL ? probes_known_since_ns(a->probes, i) : UINT64_MAX;
	c.host_cpus = (struct opt_double){ a->cpus, a->cpus > 0 };
	c.host_memory_bytes = (struct opt_u64){ a->host_last.memory_bytes, a->host_last.memory_bytes > 0 };
	c.memory_limit_bytes = limits.memory_bytes;
	c.memory_high_bytes = limits.memory_high;
	c.cpu_limit = limits.cpus;
	r = correlator_new(&c, &ops, a, &a->correlator);
	free(command);
	free(cwd);
	free(work_dir);
	return r;
}

static void
on_repaired(const struct lake_repair *repair, void *arg)
{
	const struct run_agent *run = arg;

	if (repair->files > 0 || repair->empty > 0)
		fprintf(stderr, "sluice: repaired %u file%s that a dead agent left in %s: %llu records "
		    "kept, %llu torn bytes cut off\n", repair->files + repair->empty,
		    repair->files + repair->empty == 1 ? "" : "s", run->lake_path,
		    (unsigned long long)repair->records, (unsigned long long)repair->torn_bytes);
	if (repair->failed > 0)
		fprintf(stderr, "sluice: cannot repair %s: %s\n", repair->failed_path, strerror(-repair->error));
}

static int
open_lake(struct run_agent *run, const struct agent_run_options *o, char *error, size_t error_size)
{
	const struct lake_writer_options options = {
		.appender = { .lake = o->lake, .host_id = run->agent.host_id.id, .agent_id = run->agent.agent_id },
		.queue_bytes = LAKE_QUEUE_BYTES, .put_wait_ms = LAKE_WAIT_MS,
		.final_stats = &run->lake_stats, .on_repaired = on_repaired, .arg = run };
	int r;

	run->lake_path = o->lake;
	r = lake_writer_open(&options, &run->lake);
	if (r < 0)
		snprintf(error, error_size, "cannot write the lake %s: %s; name another with --lake DIR",
		    o->lake, strerror(-r));
	return r;
}

static void
commit(struct agent *a)
{
	if (a->ring != NULL)
		ring_release(a->ring);
}

static void
tick(struct agent *a, uint64_t now_ns)
{
	struct run_agent *run = run_agent(a);
	struct usage usage = correlator_attributed_usage(a->correlator);
	uint64_t cpu_ns = usage_cpu_ns(&usage), before_ns = usage_cpu_ns(&run->usage_last);

	if (now_ns > run->tick_ns && cpu_ns >= before_ns)
		run->cores_now = (double)(cpu_ns - before_ns) / (double)(now_ns - run->tick_ns);
	run->usage_last = usage;
	run->tick_ns = now_ns;
	lake_writer_tick(run->lake, clock_us(CLOCK_REALTIME));
}

static void
describe(struct agent *a, struct agent_record *r)
{
	struct lake_writer_stats stats;

	lake_writer_stats(run_agent(a)->lake, &stats);
	r->delivered = stats.written;
}

static void
losses(const struct agent *a, struct loss_list *to)
{
	const struct run_agent *run = (const struct run_agent *)a;
	struct lake_writer_stats stats = run->lake_stats;

	if (run->lake != NULL)
		lake_writer_stats(run->lake, &stats);
	losses_add(to, "lake", "not_written", stats.dropped);
}

/* A state of COMMAND, the child of this process, is the proof that it was followed: each pass and its end have one. */
static bool
watch_command(struct agent *a, const struct state_event *s)
{
	struct run_agent *run = run_agent(a);

	run->is_command_seen |= s->kind != STATE_UNTRACKED && s->ppid == run->own_pid;
	return false;
}

static void
close_lake(struct run_agent *run)
{
	if (run->lake != NULL)
		run->lake_result = lake_writer_close(run->lake, -1);
	run->lake = NULL;
}

static int
on_close(struct agent *a)
{
	struct run_agent *run = run_agent(a);

	if (run->on_finish != NULL)
		event_free(run->on_finish);
	subscriber_close(run->subscriber);
	close_lake(run);
	return run->lake_result;
}

static const struct agent_scope scope = {
	.takes_state = watch_command,
	.commit = commit,
	.tick = tick,
	.describe = describe,
	.losses = losses,
	.close = on_close,
};

int
agent_open_run(struct event_base *base, const struct agent_run_options *o, struct agent **ret, char *error,
    size_t error_size)
{
	const struct probes_options probes = { 0 };
	struct run_agent *run = calloc(1, sizeof(*run));
	struct agent *a = &run->agent;
	char uuid[UUID_TEXT_SIZE];
	int r;

	snprintf(error, error_size, "out of memory");
	if (run == NULL)
		return -ENOMEM;
	agent_uuid_new(a->agent_id);
	agent_uuid_new(uuid);
	snprintf(a->run_id, sizeof(a->run_id), "%s%s", o->run_id != NULL ? o->run_id : uuid,
	    o->run_suffix != NULL ? o->run_suffix : "");
	if (o->pipeline != NULL)
		a->pipeline = strdup(o->pipeline);
	r = agent_init(a, base, &scope, &o->agent, o->is_subscriber ? NULL : &probes, error, error_size);
	if (r == 0)
		r = open_lake(run, o, error, error_size);
	if (r == 0)
		r = agent_open_stream(a, (struct record_writer){ lake_writer_put, run->lake }, NULL, error, error_size);
	if (r == 0 && !o->is_subscriber)
		r = agent_open_ring(a, 0, error, error_size);
	if (r < 0)
		goto fail;
	snprintf(error, error_size, "out of memory");
	r = open_correlator(a, o);
	if (r == 0)
		r = agent_begin(a, &o->agent, error, error_size);
	if (r < 0)
		goto fail;
	run->tick_ns = a->start_ns;
	run->own_pid = (uint32_t)(a->probes != NULL ? probes_own_pid(a->probes) : getpid());
	agent_announce(a);
	correlator_run_start(a->correlator, a->start_ns);
	commit(a);
	*ret = a;
	return 0;

fail:
	agent_close(a);
	return r;
}

void
agent_adopt(struct agent *a, bool on)
{
	if (a->probes != NULL)
		probes_adopt(a->probes, on ? probes_own_pid(a->probes) : 0);
}

static void
finish(struct run_agent *run)
{
	struct agent *a = &run->agent;
	uint64_t now = clock_ns(CLOCK_BOOTTIME);

	if (!run->is_command_seen && !run->has_lost_host && agent_withheld(a) == 0)
		agent_lose(a, 1);	/* at least */
	agent_charge(a);
	correlator_run_end(a->correlator, now, run->wait_status);
	agent_write_host(a);
	agent_write_agent(a, "STOP", now);
	event_del(run->on_finish);
	event_del(a->on_second);
	if (a->probes != NULL) {
		event_del(a->on_drain);
		event_del(a->on_ring);
	}
	run->on_done(run->done_arg);
}

static void
on_events_end(bool is_settled, void *arg)
{
	struct run_agent *run = arg;

	run->has_lost_host = !is_settled;
	run->withheld = subscriber_withheld(run->subscriber);
	if (run->has_lost_host)
		agent_lose(&run->agent, 1);	/* at least the end of COMMAND, if it still runs */
	subscriber_close(run->subscriber);
	run->subscriber = NULL;
	if (run->on_finish != NULL)
		event_active(run->on_finish, EV_TIMEOUT, 0);
}

int
agent_receive(struct agent *a, int fd)
{
	struct run_agent *run = run_agent(a);

	return subscriber_open(a, fd, on_events_end, run, &run->subscriber);
}

bool
agent_saw_command(const struct agent *a)
{
	return ((const struct run_agent *)a)->is_command_seen;
}

uint64_t
agent_withheld(const struct agent *a)
{
	const struct run_agent *run = (const struct run_agent *)a;

	return run->subscriber != NULL ? subscriber_withheld(run->subscriber) : run->withheld;
}

bool
agent_received_all(const struct agent *a)
{
	return !((const struct run_agent *)a)->has_lost_host;
}

/*
 * The agent of the host knows when all that has ended is reported. With --wait it is asked once a pass that began
 * after COMMAND's end has seen no process of the run alive.
 */
static void
on_finish_received(evutil_socket_t fd, short what, void *arg)
{
	struct run_agent *run = arg;
	struct agent *a = &run->agent;

	(void)fd;
	(void)what;
	if (run->subscriber == NULL || (run->is_finish_asked &&
	    clock_ns(CLOCK_BOOTTIME) - run->finish_since_ns > HOST_LIMIT_NS)) {
		run->has_lost_host |= run->subscriber != NULL;
		agent_tick(a, clock_ns(CLOCK_BOOTTIME), false);
		finish(run);
	} else if (!run->is_finish_asked && (!run->wait_for_all || (a->pass.seen == a->pass.seen_ended &&
	    subscriber_passes(run->subscriber) >= run->passes_at_finish + 2))) {
		run->is_finish_asked = true;
		run->finish_since_ns = clock_ns(CLOCK_BOOTTIME);
		subscriber_finish(run->subscriber);
	}
}

/*
 * Between a process's end and its record lie its parent's wait(2) and the kernel's grace period. Wait, up to a
 * limit, for processes that are followed but that the pass did not see: they are in between.
 */
static void
on_finish_timer(evutil_socket_t fd, short what, void *arg)
{
	struct run_agent *run = arg;
	struct agent *a = &run->agent;
	uint64_t now;
	bool is_settled;

	(void)fd;
	(void)what;
	(void)agent_snapshot(a, false, false);
	now = clock_ns(CLOCK_BOOTTIME);
	is_settled = probes_followed(a->probes) == a->pass.seen && a->pass.seen_ending == 0;
	agent_tick(a, now, false);
	if (is_settled && (!run->wait_for_all || a->pass.seen == a->pass.seen_ended)) {
		agent_drain_all(a);
		finish(run);
	} else if (!run->wait_for_all && now - run->finish_since_ns > FINISH_LIMIT_NS) {
		finish(run);
	} else if (!run->is_finish_slow && now - run->finish_since_ns > 500000000) {
		const struct timeval later = { 0, FINISH_MS_LATER * 1000 };

		run->is_finish_slow = true;
		event_add(run->on_finish, &later);
	}
}

void
agent_finish(struct agent *a, int wait_status, bool wait_for_all, void (*on_done)(void *arg), void *arg)
{
	const struct timeval every = { 0, FINISH_MS * 1000 };
	struct run_agent *run = run_agent(a);

	if (a->probes != NULL && !wait_for_all)
		event_del(a->on_second);	/* on_finish replaces it, and runs more often */
	run->wait_status = wait_status;
	run->wait_for_all = wait_for_all;
	run->on_done = on_done;
	run->done_arg = arg;
	if (a->probes != NULL)
		probes_hurry(a->probes, !wait_for_all);
	run->finish_since_ns = clock_ns(CLOCK_BOOTTIME);
	run->passes_at_finish = run->subscriber != NULL ? subscriber_passes(run->subscriber) : 0;
	run->on_finish = event_new(a->base, -1, EV_PERSIST, a->probes != NULL ? on_finish_timer : on_finish_received,
	    run);
	if (run->on_finish == NULL || event_add(run->on_finish, &every) < 0)
		finish(run);
	else if (a->probes == NULL)
		event_active(run->on_finish, EV_TIMEOUT, 0);	/* there is nothing to wait for before it asks */
}

void
agent_finish_now(struct agent *a)
{
	struct run_agent *run = run_agent(a);

	run->wait_for_all = false;
	if (a->probes != NULL)
		probes_hurry(a->probes, true);
	run->finish_since_ns = clock_ns(CLOCK_BOOTTIME);
}

double
agent_cores_now(const struct agent *a)
{
	return ((const struct run_agent *)a)->cores_now;
}

const char *
agent_close_lake(struct agent *a)
{
	struct run_agent *run = run_agent(a);
	const struct lake_writer_stats *stats = &run->lake_stats;

	close_lake(run);
	run->lake_error[0] = '\0';
	if (stats->refused > 0 || stats->dropped > 0)
		snprintf(run->lake_error, sizeof(run->lake_error), "%llu records could not be written: %s",
		    (unsigned long long)stats->refused + stats->dropped,
		    stats->last_error != 0 ? strerror(-stats->last_error) : "the disk is too slow");
	return run->lake_error;
}
