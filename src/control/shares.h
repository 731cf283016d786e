/*
 * SPDX-License-Identifier: Apache-2.0
 * shares: what each uid has of a door that several users share: connections at once, and CPU time of the agent.
 */
#ifndef SLUICE_CONTROL_SHARES_H
#define SLUICE_CONTROL_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "control/pace.h"

enum {
	SHARES = 64,
};

struct share {
	uint32_t uid;
	bool is_used;
	unsigned connections;
	struct pace pace;
};

/* Zeroed: no uid has anything. */
struct shares {
	struct share list[SHARES];
	struct pace all;	/* what the uids owe together */
};

/*
 * Returns the share of a uid, a new one if it has none; NULL: so many uids are connected or owe time that there is no
 * room for another. Valid while the uid is connected.
 */
struct share *shares_of(struct shares *s, uint32_t uid, uint64_t now_ns);
/* Charges a uid for CPU time that it took. */
void shares_charge(struct shares *s, struct share *of, uint64_t cpu_ns, uint64_t now_ns);
/* Returns for how long the uid has to wait, because it, or all of them together, took too much; 0: it does not. */
uint64_t shares_wait_ns(const struct shares *s, const struct share *of, uint64_t now_ns);

#endif
