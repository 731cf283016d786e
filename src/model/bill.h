/*
 * SPDX-License-Identifier: Apache-2.0
 * bill: what became of a time, in parts that add up to it. The terms are those of schemas/avro, record TimeBill.
 */
#ifndef SLUICE_MODEL_BILL_H
#define SLUICE_MODEL_BILL_H

#include "model/opt.h"

/* The parts in the order of the record: P(ID, name of the field without _ns). */
#define BILL_EACH(P)			\
	P(CPU, cpu)			\
	P(RUN_QUEUE, run_queue)		\
	P(THROTTLED, throttled)		\
	P(BLOCK_IO, block_io)		\
	P(SWAP, swap)			\
	P(RECLAIM, reclaim)		\
	P(NETWORK_FS, network_fs)	\
	P(NETWORK, network)		\
	P(PIPE, pipe)			\
	P(LOCK, lock)			\
	P(CHILD, child)			\
	P(TIMER, timer)			\
	P(POLL, poll)			\
	P(STOPPED, stopped)		\
	P(OTHER, other)			\
	P(UNKNOWN, unknown)

enum bill_part {
#define BILL_ID(ID, name) BILL_##ID,
	BILL_EACH(BILL_ID)
#undef BILL_ID
	BILL_PARTS,
};

struct bill {
	struct opt_u64 part[BILL_PARTS];	/* nanoseconds; all are known, or none */
};

#endif
