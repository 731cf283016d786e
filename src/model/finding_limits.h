/*
 * SPDX-License-Identifier: Apache-2.0
 * finding_limits: when a state of a task or run that lives is a finding.
 */
#ifndef SLUICE_MODEL_FINDING_LIMITS_H
#define SLUICE_MODEL_FINDING_LIMITS_H

#include <stdint.h>

/* For how long a state holds until it is a finding, see correlate/episodes.h; 0: it is none. */
struct finding_limits {
	uint64_t stuck_ms;
	uint64_t stuck_in_io_ms;
	uint64_t idle_ms;
	uint64_t throttled_ms;
	uint64_t memory_pressure_ms;
	uint64_t disk_full_ms;
};

#endif
