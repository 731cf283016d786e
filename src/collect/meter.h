/*
 * SPDX-License-Identifier: Apache-2.0
 * meter: the energy that this host has used, as its hardware counts it.
 *
 * The first of these that is there is the meter. No two are added, since they count the same energy:
 *
 *   POWERCAP      the zones package-* of CLASS/powercap/intel-rapl:N, by which Linux reads RAPL of Intel's and AMD's
 *                 CPUs. Their parts (core, uncore), memory beside them (dram) and the platform around them (psys) do
 *                 not count, nor does intel-rapl-mmio, which is a second way to the same counters
 *   HWMON         a driver of CLASS/hwmon that counts energy of all sockets (amd_energy) or of the machine (aem)
 *   HWMON_POWER   the power of the machine, as its firmware measures it (power_meter), times the time since the last
 *                 reading
 */
#ifndef SLUICE_COLLECT_METER_H
#define SLUICE_COLLECT_METER_H

#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

#define METER_PATH_SIZE 256

struct meter;			/* opaque: open files and what was read of them last */

struct meter_reading {
	uint64_t energy_uj;		/* microjoules since the last reading */
	uint64_t interval_ns;		/* that they cover */
	enum energy_source source;
};

/* What a meter is here. */
struct meter_state {
	enum energy_source source;	/* UNKNOWN: no meter is read */
	size_t counters;		/* that are added up */
	int error;			/* why none is read, a negative errno; -ENODEV: there is none */
	char path[METER_PATH_SIZE];		/* of the file that failed; "": none */
};

/*
 * Looks for the meter below sys, "/sys" or another root for a test, and takes the first reading. 0, also where there is
 * none, or -ENOMEM with *ret untouched. Its files are open from then on, so that they may be readable only now.
 */
int meter_open(const char *sys, uint64_t now_ns, struct meter **ret);
void meter_close(struct meter *m);	/* NULL is fine */

/*
 * Reads what was used since the last reading; now_ns: of CLOCK_BOOTTIME. 0 with *ret set, or
 *
 *   -EAGAIN       nothing was counted yet: the next reading covers this time too
 *   -ENODATA      what was used since the last reading is unknown, and the next one begins now: the counters may have
 *                 wrapped more than once, or show more than hardware can use
 *   other errors  there is no meter, or it cannot be read; it is looked for again a minute later. A host of several
 *                 counters of which one fails has none, since the others have a part only
 *
 * Each counter takes one read(2), which waits for no device. Only power_meter asks the firmware: one that takes more
 * than 20 ms to answer is no meter (-ETIME).
 */
int meter_read(struct meter *m, uint64_t now_ns, struct meter_reading *ret);

void meter_state(const struct meter *m, struct meter_state *ret);

#endif
