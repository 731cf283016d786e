/*
 * SPDX-License-Identifier: Apache-2.0
 * headers: reads the head of a file in which an engine names its task.
 */
#include <fcntl.h>

#include "agent/state.h"
#include "base/disk.h"
#include "identify/engine.h"

#define HEADER_BYTES 1024
#define PATIENCE_MS 100			/* a task's folder may be on a file system that hangs */

void
agent_start_headers(struct agent *a)
{
	if (a->reads_headers && a->headers == NULL)
		(void)disk_start(PATIENCE_MS, &a->headers);
}

bool
agent_read_header(const char *engine, const char *path, char *task, char *sample, void *arg)
{
	struct agent *a = arg;
	char text[HEADER_BYTES];
	/* Never a fifo or a device that would block. */
	int fd = disk_open(a->headers, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0);
	ssize_t n;

	if (fd < 0)
		return false;
	n = disk_read(a->headers, fd, text, sizeof(text), 0);
	disk_close(a->headers, fd);
	return n > 0 && engine_read_header(a->rules, engine, text, (size_t)n, task, sample);
}
