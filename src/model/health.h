/*
 * SPDX-License-Identifier: Apache-2.0
 * health: states of the agent's parts, as the part itself reports them and as a status shows them.
 */
#ifndef SLUICE_MODEL_HEALTH_H
#define SLUICE_MODEL_HEALTH_H

enum output_state {
	OUTPUT_STARTING,	/* nothing has been delivered yet */
	OUTPUT_UP,
	OUTPUT_DOWN,		/* the output's last error says why */
};

enum registry_state {
	REGISTRY_UNUSED,	/* the output needs no schema ids */
	REGISTRY_IDLE,		/* nothing was asked yet */
	REGISTRY_OK,		/* every id that was asked for is known */
	REGISTRY_ASKING,
	REGISTRY_AWAY,		/* no answer, or a failure of the server (5xx): asked again */
	REGISTRY_REFUSED,	/* it answered no; asked again after the longest pause */
};

/* A group of kernel hooks that fill some fields of the records. */
enum signal_state {
	SIGNAL_OK,
	SIGNAL_FALLBACK,	/* another hook serves it, as well or nearly */
	SIGNAL_MISSING,		/* its fields are null */
	SIGNAL_DETACHED,	/* its fields are null because it is switched off */
};

struct signal_status {
	const char *name;	/* "lifecycle", "peak_rss" ... */
	const char *hook;	/* the hook that serves it; "" when missing */
	enum signal_state state;
	const char *detail;	/* what is lost, and what can be done about it; "" when nothing is lost */
	const char *fields;	/* the record fields that it fills */
};

/* The words of a status and of the log; static. */
const char *output_state_name(enum output_state state);
const char *registry_state_name(enum registry_state state);
const char *signal_state_name(enum signal_state state);

#endif
