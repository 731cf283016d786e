/*
 * SPDX-License-Identifier: Apache-2.0
 * How many findings a run, a task, and a user's programs outside of runs may have; see findings.h.
 */
#include <string.h>

#include "correlate/findings.h"
#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/wal.h"

#define MINUTE_NS UINT64_C(60000000000)

void
finding_leave_out(struct correlator *c, owner_t owner)
{
	c->findings_left_out++;
	user_refused(c, owner);
}

bool
finding_is_allowed(struct correlator *c, struct run *r)
{
	bool is_allowed = r->findings < FINDINGS_OF_RUN_MAX;

	if (is_allowed)
		r->findings++;
	else
		finding_leave_out(c, r->owner);
	wal_run(c, r);
	return is_allowed;
}

bool
finding_is_allowed_alone(struct correlator *c, const struct process *p, uint64_t now_ns)
{
	uint8_t *held = &c->findings_of[owner_at(process_owner(p))];
	bool is_allowed;

	if (now_ns / MINUTE_NS > c->minute) {
		c->minute = now_ns / MINUTE_NS;
		c->findings_in_minute = 0;
		memset(c->findings_of, 0, sizeof(c->findings_of));
	}
	is_allowed = *held < FINDINGS_OF_NONE_MAX - c->findings_in_minute;
	if (is_allowed) {
		++*held;
		c->findings_in_minute++;
	} else {
		finding_leave_out(c, process_owner(p));
	}
	return is_allowed;
}

bool
finding_is_allowed_of(struct correlator *c, struct run *r, uint32_t *count)
{
	if (*count >= FINDINGS_OF_TASK_MAX) {
		finding_leave_out(c, r->owner);
		return false;
	}
	++*count;
	return finding_is_allowed(c, r);
}
