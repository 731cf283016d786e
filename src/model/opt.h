/*
 * SPDX-License-Identifier: Apache-2.0
 * opt: numbers that may be unknown. 0 never stands for "unknown".
 */
#ifndef SLUICE_MODEL_OPT_H
#define SLUICE_MODEL_OPT_H

#include <stdbool.h>
#include <stdint.h>

struct opt_u64 {
	uint64_t value;
	bool known;
};

struct opt_double {
	double value;
	bool known;
};

struct opt_i32 {
	int32_t value;
	bool known;
};

#endif
