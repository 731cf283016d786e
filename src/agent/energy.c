/*
 * SPDX-License-Identifier: Apache-2.0
 * energy: has what the host's meter counts divided among runs and tasks, and keeps what Host records have of it.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/state.h"
#include "base/clock.h"
#include "collect/meter.h"

void
agent_charge(struct agent *a)
{
	struct meter_reading reading = { 0 };
	int r = meter_read(a->meter, clock_ns(CLOCK_BOOTTIME), &reading);

	/* What was used without a meter costs nothing once there is one: then its first result is -ENODATA. */
	if (r < 0 && r != -ENODATA)
		return;
	a->energy.attributed_uj += correlator_charge(a->correlator, reading.energy_uj, reading.source,
	    reading.interval_ns * a->host_last.cpus);
	if (r < 0)
		return;
	a->energy.uj += reading.energy_uj;
	a->energy.source = reading.source;
}

void
agent_record_energy(struct agent *a, struct host_record *r)
{
	uint64_t rest_uj = a->energy.uj - a->energy.attributed_uj, idle_uj = rest_uj;
	double busy = r->cpu_capacity_ns > 0 ? (double)r->cpu_busy_ns / (double)r->cpu_capacity_ns : 1;

	if (a->energy.source == ENERGY_UNKNOWN)
		return;
	if ((1 - busy) * (double)a->energy.uj < (double)rest_uj)
		idle_uj = busy < 1 ? (uint64_t)((1 - busy) * (double)a->energy.uj) : 0;
	r->energy_source = a->energy.source;
	r->energy_uj = (struct opt_u64){ a->energy.uj, true };
	r->energy_attributed_uj = (struct opt_u64){ a->energy.attributed_uj, true };
	r->energy_unattributed_uj = (struct opt_u64){ rest_uj - idle_uj, true };
	r->energy_idle_uj = (struct opt_u64){ idle_uj, true };
	memset(&a->energy, 0, sizeof(a->energy));
}

void
agent_meter_state(const struct agent *a, struct meter_state *ret)
{
	meter_state(a->meter, ret);
}
