/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what an agent passes on, in two parts as read(2) may return them: no more is used than there is, the
 * rest waits, and text ends within its frame.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collect/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t sum;

static void
on_exec(const struct exec_event *e, void *arg)
{
	(void)arg;
	sum += e->exe != NULL ? strlen(e->exe) : 0;
}

static void
on_state(const struct state_event *e, void *arg)
{
	(void)arg;
	sum += strlen(e->comm);
}

static void
on_cgroup(const struct cgroup_event *e, void *arg)
{
	(void)arg;
	sum += strlen(e->path);
}

static void
on_signal(const struct signal_event *e, void *arg)
{
	(void)arg;
	sum += e->signal + strlen(e->comm);
}

static void
on_mark(void *arg)
{
	(void)arg;
}

static void
on_passed(const struct subscription_passed *p, void *arg)
{
	(void)arg;
	sum += p->processes + p->threads;
}

static void
on_count(uint64_t n, void *arg)
{
	(void)arg;
	sum += n;
}

static void
on_known(enum optional_signal signal, uint64_t since_ns, void *arg)
{
	(void)arg;
	if (signal >= OPTIONAL_SIGNALS)
		abort();
	sum += since_ns;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct decode_ops decode_ops = { on_exec, on_state, on_cgroup, on_signal };
	static const struct frames_ops ops = { on_cgroup, on_mark, on_mark, on_passed, on_count, on_count, on_known };
	static struct frames frames;
	static struct decoder *decoder;		/* kept, since it takes half a megabyte */
	size_t parts[2] = { size / 2, size - size / 2 }, have = 0, at = 0;
	bool is_last = false;
	char *buffer = malloc(size > 0 ? size : 1);	/* exactly: a read beyond it is detected */

	if (buffer == NULL || (decoder == NULL && decoder_new(&decode_ops, NULL, &decoder) < 0))
		abort();
	frames = (struct frames){ .ops = &ops, .own_pid = 7, .decoder = decoder };
	for (int i = 0; i < 2 && !is_last; i++) {
		ssize_t n;

		memcpy(buffer + have, data + at, parts[i]);
		have += parts[i];
		at += parts[i];
		n = frames_read(&frames, buffer, have, &is_last);
		if (n < 0)
			break;
		if ((size_t)n > have || n % 8 != 0)
			abort();
		memmove(buffer, buffer + n, have - (size_t)n);
		have -= (size_t)n;
	}
	free(buffer);
	return 0;
}
