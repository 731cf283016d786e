/*
 * SPDX-License-Identifier: Apache-2.0
 * Classes the kernel stacks that a pass has found for the first time, by the names of their functions.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "collect/wait_places.h"

#define LINES_BYTES 16384	/* a name of the kernel has up to 511 bytes, and a stack 12 of them */

/* Classes the stacks of all complete lines. Returns the bytes of these. */
static size_t
class_lines(struct agent *a, const char *text, size_t len)
{
	size_t used = 0;

	while (used < len) {
		const char *line = text + used, *end = memchr(line, '\n', len - used);
		enum wait_class class;
		uint64_t hash;

		if (end == NULL)
			break;
		if (wait_places_of_line(line, (size_t)(end - line), &hash, &class) == 0)
			(void)probes_waits_class(a->probes, hash, class);
		used += (size_t)(end - line) + 1;
	}
	return used;
}

void
agent_class_waits(struct agent *a)
{
	char text[LINES_BYTES];
	size_t have = 0, used;
	ssize_t n;
	int fd = probes_waits_open(a->probes);

	if (fd < 0)
		return;
	while (have < sizeof(text)) {
		n = read(fd, text + have, sizeof(text) - have);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		used = class_lines(a, text, have);
		memmove(text, text + used, have - used);
		have -= used;
	}
	close(fd);
	probes_waits_end(a->probes);
}
