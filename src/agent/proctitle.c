/*
 * SPDX-License-Identifier: Apache-2.0
 * proctitle: titles that programs write over their arguments, from /proc to the correlator: once a second, and only
 * for programs whose engine's rules ask for it.
 */
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"

enum {
	TITLES_EACH = 256,	/* in one pass; the rest follow in the next */
	TITLE_BYTES = 4096,
};

void
agent_read_titles(struct agent *a)
{
	struct titled titled[TITLES_EACH];
	char title[TITLE_BYTES];
	size_t n = correlator_titled(a->correlator, titled, TITLES_EACH);

	if (n > 0 && a->titles == NULL && proc_reader_new("/proc", &a->titles) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		const struct program_key *key = &titled[i].key;
		size_t len = proc_reader_title(a->titles, key->pid, title, sizeof(title));

		/* Last: an unchanged start means that all that was read was of this process. */
		if (len > 0 && correlator_title_hash(title, len) != titled[i].hash &&
		    proc_reader_start_ticks(a->titles, key->pid) == proc_reader_ticks(key->start_ns))
			correlator_title(a->correlator, key, title, len, clock_ns(CLOCK_BOOTTIME));
	}
	explicit_bzero(title, sizeof(title));	/* not yet redacted */
}
