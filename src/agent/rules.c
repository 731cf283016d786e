/*
 * SPDX-License-Identifier: Apache-2.0
 * What the rules ask of the agent while it runs: new ones, and the heads of files that name tasks.
 */
#include <fcntl.h>
#include <unistd.h>

#include "agent/state.h"
#include "attach/filter.h"
#include "identify/engine.h"

#define HEADER_BYTES 1024

bool
agent_read_header(const char *engine, const char *path, char *task, char *sample, void *arg)
{
	struct agent *a = arg;
	char text[HEADER_BYTES];
	/* Never a fifo or a device that would hold us up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 && engine_read_header(a->rules, engine, text, (size_t)n, task, sample);
}

static void
on_rules_in_kernel(int error, uint64_t generation, void *arg)
{
	struct agent *a = arg;

	if (error == 0)
		error = agent_find_told(a);
	if (a->on_rules != NULL)
		a->on_rules(error, generation, a->on_rules_arg);
}

int
agent_set_rules(struct agent *a, struct ruleset *rules, void (*done)(int error, uint64_t generation, void *arg),
    void *arg)
{
	struct ruleset *old = a->rules;

	agent_drain_all(a);	/* what happened under the rules of before is judged by them */
	a->rules = ruleset_ref(rules);
	ruleset_unref(old);
	a->on_rules = done;
	a->on_rules_arg = arg;
	/* First: what the kernel leaves out, the correlator would have left out too. */
	correlator_set_rules(a->correlator, rules);
	return probes_set_rules(a->probes, a->base, rules, on_rules_in_kernel, a);
}

void
agent_drain_all(struct agent *a)
{
	while (!agent_drain(a))
		continue;
}

void
agent_meet_all(struct agent *a)
{
	(void)agent_snapshot(a, false, false);
}
