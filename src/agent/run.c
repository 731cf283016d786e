/*
 * SPDX-License-Identifier: Apache-2.0
 * What only `sluice run` needs: the command's text and limits, whom to follow, and when all is over.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/text.h"
#include "collect/cgroup.h"
#include "identify/redact.h"

#define FINISH_MS 20
#define FINISH_MS_LATER 200		/* once it has taken half a second */
#define FINISH_LIMIT_NS UINT64_C(10000000000)	/* for the kernel to let go of what has ended */
#define COMMAND_TEXT_MAX 8192

/* The command line as one string, redacted; the caller frees it. NULL: no memory. */
static char *
command_text(const char *const *command)
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
	redact_argv(argv, argc, &arena);
	text_join(argv, argc, out, COMMAND_TEXT_MAX);
	arena_done(&arena);
	return out;
}

int
agent_open_run(struct agent *a, const struct agent_options *o, const struct correlator_ops *ops)
{
	struct correlator_options c = { 0 };
	struct cgroup_limits limits = { 0 };
	char *command = command_text(o->command), *cwd = getcwd(NULL, 0), *work_dir = NULL;
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
	c.run_id = a->run_id;
	c.pipeline = o->pipeline;
	c.task = o->task;
	c.sample = o->sample;
	c.command = command;
	c.work_dir = work_dir;
	c.has_network = probes_have(a->probes, "network");
	c.host_memory_bytes = (struct opt_u64){ a->host_last.memory_bytes, a->host_last.memory_bytes > 0 };
	c.memory_limit_bytes = limits.memory_bytes;
	c.cpu_limit = limits.cpus;
	r = correlator_new(&c, ops, a, &a->correlator);
	free(command);
	free(cwd);
	free(work_dir);
	return r;
}

void
agent_adopt(struct agent *a, bool on)
{
	probes_adopt(a->probes, on ? getpid() : 0);
}

static void
finish(struct agent *a)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME);

	correlator_run_end(a->correlator, now, a->wait_status);
	agent_write_host(a);
	agent_write_agent(a, "STOP", now);
	stream_tick(a->stream, clock_us(CLOCK_REALTIME));
	event_del(a->on_finish);
	event_del(a->on_drain);
	event_del(a->on_second);
	event_del(a->on_ring);
	a->on_done(a->done_arg);
}

/*
 * Between a process's end and its record lie its parent's wait(2) and the kernel's grace period. A
 * process that is followed but that the pass did not meet is in between: wait for it, within reason.
 */
static void
on_finish_timer(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	uint64_t now;
	bool is_settled;

	(void)fd;
	(void)what;
	(void)agent_snapshot(a, false, false);
	now = clock_ns(CLOCK_BOOTTIME);
	is_settled = probes_followed(a->probes) == a->met && a->met_ending == 0;
	correlator_tick(a->correlator, now, false);
	if (is_settled && (!a->wait_for_all || a->met == a->met_ended)) {
		while (!agent_drain(a))
			continue;
		finish(a);
	} else if (!a->wait_for_all && now - a->finish_since_ns > FINISH_LIMIT_NS) {
		finish(a);
	} else if (a->wait_for_all && now - a->last_record_ns >= a->interval_ns) {
		agent_write_host(a);
		agent_write_agent(a, "LIVE", now);
		a->last_record_ns = now;
		stream_tick(a->stream, clock_us(CLOCK_REALTIME));
	} else if (!a->is_finish_slow && now - a->finish_since_ns > 500000000) {
		const struct timeval later = { 0, FINISH_MS_LATER * 1000 };

		a->is_finish_slow = true;
		event_add(a->on_finish, &later);
	}
}

void
agent_finish(struct agent *a, int wait_status, bool wait_for_all, void (*on_done)(void *arg), void *arg)
{
	const struct timeval every = { 0, FINISH_MS * 1000 };

	a->is_finishing = true;
	a->wait_status = wait_status;
	a->wait_for_all = wait_for_all;
	a->on_done = on_done;
	a->done_arg = arg;
	a->finish_since_ns = clock_ns(CLOCK_BOOTTIME);
	a->on_finish = event_new(a->base, -1, EV_PERSIST, on_finish_timer, a);
	if (a->on_finish == NULL || event_add(a->on_finish, &every) < 0)
		finish(a);
}

void
agent_finish_now(struct agent *a)
{
	a->wait_for_all = false;
	a->finish_since_ns = clock_ns(CLOCK_BOOTTIME);
}

