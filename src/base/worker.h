/*
 * SPDX-License-Identifier: Apache-2.0
 * worker: a thread for calls that may take long, such as those on a disk, so that the event loop does not wait for
 * them.
 */
#ifndef SLUICE_BASE_WORKER_H
#define SLUICE_BASE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/*
 * Starts a thread with all signals blocked that calls run(arg) once after each worker_wake(). arg must outlive the
 * thread. 0, or a negative errno with *ret untouched.
 */
int worker_start(void (*run)(void *arg), void *arg, struct worker **ret);
/* Has run() called once more, by the thread that called it before. Wakes during one call result in one further call. */
void worker_wake(struct worker *w);
/*
 * Ends the thread after the calls that were asked for, and frees w. NULL is fine. Waits for that at most timeout_ms,
 * negative: without limit. False: a call is still running, or hangs; the thread is left alone, ends with that call and
 * frees w, which the caller must not use any more.
 */
bool worker_stop(struct worker *w, int timeout_ms);

/* What a thread waits for; another thread may read it at any time. A zeroed one is valid: it waits for nothing. */
struct worker_call {
	const char *what;	/* atomic; static */
	uint64_t since_ns;	/* atomic; CLOCK_MONOTONIC */
};

/* Notes that a call begins which may not return for long. what: a static word for it, such as "fdatasync". */
void worker_call_begin(struct worker_call *c, const char *what);
void worker_call_end(struct worker_call *c);
/* Returns what the thread waits for, and since when; NULL: nothing. */
const char *worker_call_now(const struct worker_call *c, uint64_t *ret_since_ns);

#endif
