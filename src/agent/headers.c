/*
 * SPDX-License-Identifier: Apache-2.0
 * headers: reads the head of a file in which an engine names its task, if it belongs to the user of the task's program.
 */
#include "agent/state.h"
#include "identify/engine.h"

#define HEADER_BYTES 1024

bool
agent_read_header(const struct header_place *at, char *task, char *sample, void *arg)
{
	/* Its folder is what the user calls it, who could as well name the target of a link. */
	const struct reader_path path = { .text = at->path, .owner = at->uid };
	struct agent *a = arg;
	char text[HEADER_BYTES];
	ssize_t n = reader_file(a->reader, &path, 0, text, sizeof(text), NULL);

	return n > 0 && engine_read_header(a->rules, at->engine, text, (size_t)n, task, sample);
}
