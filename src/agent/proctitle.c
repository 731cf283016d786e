/*
 * SPDX-License-Identifier: Apache-2.0
 * proctitle: titles that programs write over their arguments, from /proc to the correlator: once a second, and only
 * for programs whose engine's rules ask for it. A reader reads them, and the agent continues meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/state.h"
#include "base/clock.h"

enum {
	TITLES_EACH = 256,	/* in one pass, of all users */
};

/* A title that a reader was asked for. */
struct asked_title {
	struct agent *agent;
	struct titled of;
};

static void
on_title(const struct reader_answer *answer, void *arg)
{
	const struct asked_title *asked = arg;
	const struct program_key *key = &asked->of.key;
	struct agent *a = asked->agent;

	a->n_titles--;
	/* An unchanged start means that all that was read was of this process. */
	if (answer == NULL || answer->text[READER_BYTES].at == NULL ||
	    answer->start_ticks != proc_reader_ticks(key->start_ns))
		return;
	if (correlator_title_hash(answer->text[READER_BYTES].at, answer->text[READER_BYTES].len) != asked->of.hash)
		correlator_title(a->correlator, key, answer->text[READER_BYTES].at, answer->text[READER_BYTES].len,
		    clock_ns(CLOCK_BOOTTIME));
}

void
agent_read_titles(struct agent *a)
{
	struct titled titled[TITLES_EACH];
	size_t room = TITLES_EACH - a->n_titles, n;

	if (a->titles == NULL)
		a->titles = calloc(TITLES_EACH, sizeof(*a->titles));
	if (a->titles == NULL)
		room = 0;
	else if (room > reader_room(a->reader))
		room = reader_room(a->reader);
	n = correlator_titled(a->correlator, titled, room);	/* without room they are counted */
	/* They are answered in the order in which they are asked for: the oldest of so many is free again. */
	for (size_t i = 0; i < n; i++) {
		struct asked_title *asked = &a->titles[a->next_title];

		a->next_title = (a->next_title + 1) % TITLES_EACH;
		*asked = (struct asked_title){ a, titled[i] };
		a->n_titles++;
		(void)reader_ask(a->reader, READER_TITLE, asked->of.key.pid, asked->of.user, on_title, asked);
	}
}
