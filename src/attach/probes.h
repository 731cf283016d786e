/*
 * SPDX-License-Identifier: Apache-2.0
 * probes: which hooks this kernel has, loaded and attached, and what takes the place of those that
 * it lacks.
 */
#ifndef SLUICE_ATTACH_PROBES_H
#define SLUICE_ATTACH_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/health.h"

struct probes;

enum {
	PROBES_PROGRAMS = 48,	/* at least as many as bpf/ has */
};

struct probes_options {
	size_t ring_bytes;	/* a power of two times the page size; 0: 8 MiB */
	uint32_t max_processes;	/* followed at once; 0: 16,384 */
	bool follow_all;	/* every process but kernel threads, ourselves and our children */
	const char *pin_dir;	/* NULL: all ends with this process; else see pins.h */
	const char *const *variables;	/* names of those to be read at exec; see variables.h */
	size_t n_variables;
	uint64_t watchdog_ns;	/* with pin_dir: the programs go quiet after so long without probes_heartbeat() */
};

/* What became of an earlier agent's pins. */
enum probes_origin {
	PROBES_FRESH,		/* there were none */
	PROBES_RESUMED,		/* taken over: nothing was missed */
	PROBES_WERE_QUIET,	/* the watchdog had expired: all anew, what happened meanwhile was not seen */
	PROBES_WERE_OTHER,	/* of another layout: all anew, what was in its ring is lost */
};

/*
 * Loads and attaches. 0, or a negative errno with *ret untouched and a sentence in error. The
 * reader of the ring need not be there yet: without follow_all nothing is followed until
 * probes_adopt(). Where pinning fails all works but ends with this process: see probes_pin_error().
 */
int probes_open(const struct probes_options *options, struct probes **ret, char *error,
    size_t error_size);
void probes_close(struct probes *p);	/* NULL is fine; pins stay */

enum probes_origin probes_origin(const struct probes *p);
const char *probes_pin_error(const struct probes *p);	/* "" when pinned, or not asked for */
uint32_t probes_ring_id(const struct probes *p);	/* the map's, unique within a boot */
/* At least once a minute, with CLOCK_BOOTTIME's now. */
void probes_heartbeat(struct probes *p, uint64_t now_ns);

const struct signal_status *probes_signals(const struct probes *p, size_t *ret_n);
/* Does a hook of this kernel serve it, switched off or not? */
bool probes_have(const struct probes *p, const char *signal);
/*
 * Switches an optional signal (signals.h) on or off from now on. Its programs stay loaded; switched off they
 * return at once, and what happens meanwhile is not counted. 0, -ENOENT: there is no such optional signal, or
 * -ENOTSUP: no hook of this kernel serves it.
 */
int probes_switch(struct probes *p, const char *signal, bool on);
/*
 * Since when the bytes of sockets are counted without a break, CLOCK_BOOTTIME: of programs that began before, they
 * are not known. 0: of all; UINT64_MAX: of none.
 */
uint64_t probes_network_since_ns(const struct probes *p);

int probes_ring_fd(const struct probes *p);
size_t probes_ring_bytes(const struct probes *p);
/* To be called before each drain: lets the kernel side send the next wakeup. */
void probes_wake_rearm(struct probes *p);

/* Children that pid forks from now on are followed, with all their descendants; 0: none. */
void probes_adopt(struct probes *p, pid_t pid);

/*
 * Processes that the kernel side follows now: alive, zombies, and those about to be freed; without
 * those that the rules left out at the last pass.
 */
uint64_t probes_followed(const struct probes *p);

/*
 * A file to read struct event_state records from, one for each followed process, and with all
 * one for every other process too. The fd is the caller's; or a negative errno.
 */
int probes_snapshot_open(struct probes *p, bool all);
/*
 * The same for all processes that are to be followed, with the credentials of each: those that ran
 * before the probes are entered, and told as EVENT_FOUND, unless the rules (filter.h) leave them out.
 */
int probes_discovery_open(struct probes *p);

/*
 * The same for processes that have ended and are still followed: zombies, and those of whose end the
 * kernel side was not told. Those of whom it may still be told, which are all but the oldest, have the key 0.
 */
int probes_stale_open(struct probes *p);
/* Lets go of one of whose end the kernel side was not told. */
void probes_forget(struct probes *p, uint64_t key, uint64_t start_ns);

/* Takes one sample of the clocks' difference; cheap, best just after a sleep. */
void probes_calibrate(struct probes *p);

/* Losses by program and reason, since the start; names for them. */
uint64_t probes_lost(const struct probes *p, unsigned program, unsigned reason);
uint64_t probes_lost_records(const struct probes *p);
const char *probes_program_name(unsigned program);
const char *probes_loss_name(unsigned reason);

/*
 * The i-th of the programs whose skipped runs only the kernel itself counts: its name, and how many
 * events it may have missed at most. UINT64_MAX behind the last.
 */
uint64_t probes_skipped(const struct probes *p, const char **ret_program, unsigned i);

/* What each loaded program cost; run_time_ns is 0 unless kernel.bpf_stats_enabled. */
struct probe_cost {
	const char *name;
	uint64_t runs;
	uint64_t run_time_ns;
};
/* Returns how many there are. */
size_t probes_costs(const struct probes *p, struct probe_cost ret[PROBES_PROGRAMS]);

#endif
