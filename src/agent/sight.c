/*
 * SPDX-License-Identifier: Apache-2.0
 * sight: looks at the lease and at the canaries, restores sight, and records gaps.
 */
#include "agent/sight.h"

#include <stdio.h>
#include <string.h>

#include "agent/host_state.h"
#include "agent/subscription.h"
#include "base/clock.h"

void
sight_begin(struct sight *s, uint64_t now_ns)
{
	*s = (struct sight){ 0 };
	canary_begin(&s->canary, now_ns);
}

void
sight_write_gap(struct host_agent *h, uint64_t since_ns, uint64_t now_ns, const char *message)
{
	struct agent *a = &h->agent;
	uint64_t last_record_ns = a->last_record_ns;

	a->last_record_ns = since_ns;
	a->message = message;
	agent_write_agent(a, "GAP", now_ns);
	a->message = NULL;
	a->last_record_ns = last_record_ns;
	h->is_gap_written = true;
}

static void
report(struct host_agent *h, const char *sentence)
{
	const struct sight *s = &h->agent.sight;

	if (h->owner.sight != NULL)
		h->owner.sight(s, sentence, h->owner.arg);
}

void
agent_set_known_since(struct agent *a, enum optional_signal signal, uint64_t since_ns)
{
	correlator_set_known_since(a->correlator, signal, since_ns);
	subscriptions_known(a, signal, since_ns);
}

/* Takes the lease back, discovers what began meanwhile, and records the gap. */
static void
see_again(struct host_agent *h, uint64_t since_ns, const char *why)
{
	struct agent *a = &h->agent;
	uint64_t now;
	char sentence[256];
	int r;

	agent_drain_all(a);	/* what was seen before */
	r = probes_retake(a->probes, since_ns);
	if (r == 0)
		r = host_discover_missed(h);
	if (r < 0) {
		snprintf(sentence, sizeof(sentence), "%s; they cannot be taken back: %s; this is tried again each second", why, strerror(-r));
		if (a->sight.blind_since_ns == 0) {
			a->sight.blind_since_ns = since_ns;
			report(h, sentence);
		}
		return;
	}
	for (int i = 0; i < OPTIONAL_SIGNALS; i++)	/* they have a break too */
		agent_set_known_since(a, i, probes_known_since_ns(a->probes, i));
	subscriptions_lost(a, 1);	/* at least, if any */
	now = clock_ns(CLOCK_BOOTTIME);
	sight_write_gap(h, since_ns, now, why);
	a->sight.gaps++;
	a->sight.gaps_ns += now - since_ns;
	a->sight.blind_since_ns = 0;
	canary_begin(&a->sight.canary, now);
	snprintf(sentence, sizeof(sentence), "%s: what began and ended in %.1f s was not seen", why,
	    (double)(now - since_ns) / 1e9);
	report(h, sentence);
}

void
sight_look(struct host_agent *h, uint64_t now_ns)
{
	struct agent *a = &h->agent;
	struct sight *s = &a->sight;
	uint64_t since_ns;

	switch (probes_heartbeat(a->probes)) {
	case PROBES_LEASE_HELD:
		break;
	case PROBES_LEASE_LOST:
		since_ns = probes_quiet_since_ns(a->probes);
		if (since_ns == 0 || since_ns > now_ns)
			since_ns = s->canary.seen_ns;
		see_again(h, since_ns, "the watchdog had stopped the probes, because the agent had not run for longer than "
		    "probes.watchdog");
		return;
	case PROBES_LEASE_TAKEN:
		if (!s->is_taken) {
			s->is_taken = true;
			s->blind_since_ns = s->canary.seen_ns;
			report(h, "another agent has taken the probes over");
		}
		return;
	}
	if (!canary_look(&s->canary, a->probes, now_ns)) {
		if (s->blind_since_ns == 0) {
			s->blind_since_ns = s->canary.seen_ns;
			report(h, "a child that the agent forked is not reported: the probes see nothing");
		}
	} else if (s->blind_since_ns != 0 && s->canary.seen_ns > s->blind_since_ns) {
		see_again(h, s->blind_since_ns, "the probes had reported nothing");
	}
}
