/*
 * SPDX-License-Identifier: Apache-2.0
 * headers: reads the head of a file in which an engine names its task.
 */
#include <fcntl.h>
#include <unistd.h>

#include "agent/state.h"
#include "identify/engine.h"

#define HEADER_BYTES 1024

bool
agent_read_header(const char *engine, const char *path, char *task, char *sample, void *arg)
{
	struct agent *a = arg;
	char text[HEADER_BYTES];
	/* Never a fifo or a device that would block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 && engine_read_header(a->rules, engine, text, (size_t)n, task, sample);
}
