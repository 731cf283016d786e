/*
 * SPDX-License-Identifier: Apache-2.0
 * frames: reads the events of a run as the agent of the host passes them on (model/subscription.h).
 *
 * Nothing is trusted: sizes, kinds and terminators are checked, and one malformed frame ends the reading.
 */
#ifndef SLUICE_COLLECT_FRAMES_H
#define SLUICE_COLLECT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/decode.h"
#include "model/optional_signals.h"
#include "model/subscription.h"

/* What is called for each frame; events go to the ops of the decoder. arg is the caller's. */
struct frames_ops {
	void (*cgroup)(const struct cgroup_event *event, void *arg);	/* without limits */
	void (*pass)(void *arg);
	void (*sweep)(void *arg);
	void (*passed)(const struct subscription_passed *passed, void *arg);
	void (*lost)(uint64_t events, void *arg);
	void (*withheld)(uint64_t programs, void *arg);
	void (*known)(enum optional_signal signal, uint64_t since_ns, void *arg);
};

struct frames {
	struct decoder *decoder;	/* the caller's, as all here */
	const struct frames_ops *ops;
	void *arg;
	uint32_t own_pid;		/* of the process that started COMMAND: no parent within the run; 0: none */
};

/*
 * Reads all complete frames of len bytes at data, which is 8-byte aligned and may be changed. Returns the number of
 * bytes used, or -EBADMSG. *ret_is_last is set to true after SUBSCRIPTION_SETTLED, which ends the reading.
 */
ssize_t frames_read(const struct frames *f, void *data, size_t len, bool *ret_is_last);

#endif
