/*
 * SPDX-License-Identifier: Apache-2.0
 * headers: reads the head of a file in which an engine names its task.
 */
#include "agent/state.h"
#include "identify/engine.h"

#define HEADER_BYTES 1024

bool
agent_read_header(const char *engine, const char *path, char *task, char *sample, void *arg)
{
	struct agent *a = arg;
	char text[HEADER_BYTES];
	ssize_t n = reader_file(a->reader, path, 0, text, sizeof(text), NULL);

	return n > 0 && engine_read_header(a->rules, engine, text, (size_t)n, task, sample);
}
