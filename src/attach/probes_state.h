/*
 * SPDX-License-Identifier: Apache-2.0
 * probes_state: the one struct behind probes.h; included by the probes*.c files, offer.c, filter.c and signals.c alone.
 */
#ifndef SLUICE_ATTACH_PROBES_STATE_H
#define SLUICE_ATTACH_PROBES_STATE_H

#include <bpf/libbpf.h>

#include "attach/layout.h"
#include "attach/pins.h"
#include "attach/probes.h"
#include "attach/probes_former.h"
#include "attach/signals.h"
#include "event.h"
#include "filter_map.h"
#include "user.h"
#include "wait.h"

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#include "sluice.skel.h"

#define SNAPSHOT_RETRIES 4096	/* threads that a pass may read again, of processes whose threads are being released */

struct probes {
	struct sluice_bpf *skel;	/* owned */
	struct bpf_link *iterator;	/* the skeleton's link of on_task */
	struct bpf_link *stale;		/* owned link of on_stale_until_5_13; NULL: on_stale is called */
	size_t ring_bytes;
	uint32_t max_processes;
	bool has_shares;
	struct user *users;		/* owned mapping of all of them; NULL: they have no shares */
	uint32_t user_at;		/* offset of an entry's user */
	uint32_t ring_id;
	pid_t own_pid;			/* as the kernel counts */
	struct former *former;		/* owned: another version's, whose ring is to be read first; NULL: none */
	bool is_former_read;
	int pin_lock;			/* owned; -1: nothing is pinned */
	uint64_t epoch;			/* epoch of this load */
	uint64_t watchdog_ns;
	enum probes_origin origin;
	char pin_dir[PINS_PATH_MAX];	/* "": no pins */
	char layout[LAYOUT_NAME_SIZE];	/* of this load's maps, with pins */
	char pin_error[256];
	const struct signal_hook *hooks[SIGNALS];	/* hooks that serve the signals; NULL: none does */
	bool is_off[SIGNALS];		/* optional signals that are switched off */
	struct signal_status signals[SIGNALS];
	bool has_clock_samples;
	int64_t clock_window_min;	/* smallest sample of the current window */
	uint64_t clock_window_start_ns;
	struct filter *filter;		/* owned; NULL: rules were never set */
};

/* probes_pins.c: maps and links that outlive the process, in the BPF file system */

/*
 * Locks the pins, and finds those of an earlier agent: sets origin, epoch and the sizes that must stay, or removes the
 * pins. Returns 0, or -EBUSY with a sentence in error if another agent that runs uses them.
 */
int probes_pins_find(struct probes *p, uint32_t spooled_ring_id, char *error, size_t error_size);
/* Uses maps that are pinned already, and makes and pins the others; before load. Returns 0 or -errno. */
int probes_pins_use(struct probes *p);
/*
 * After the load: makes skel->data_shared the variables that the kernel side has. From 1.5 on libbpf does so only where
 * it made their map, and leaves a copy of the initial values where the map was pinned. Returns 0 or a negative errno.
 */
int probes_pins_map_shared(struct probes *p);
/* Pins the programs, takes the lease, and detaches the previous load; after attach. Returns 0 or -errno. */
int probes_pins_take_over(struct probes *p);

/* Gives the lease of an optional signal to the hooks of that load (0: switches them off), and records since when. */
void probes_lease(struct sluice_bpf__data_shared *shared, const struct signal *s, uint64_t epoch);
/* Returns that variable, signals[].lease or since_ns, of the memory that is shared with the kernel side. */
uint64_t *probes_shared(struct sluice_bpf__data_shared *shared, size_t offset);

/* probes_waits.c: the next pass samples where threads wait, for the time since the last one. */
void probes_waits_begin(struct probes *p);

/* probes_stale.c: attaches on_stale_until_5_13 where it is loaded, to the map of processes. Returns 0 or -errno. */
int probes_stale_attach(struct probes *p);
/* Removes the entries of processes that the pass of a retake did not see, see stale.h. Returns 0 or -errno. */
int probes_stale_remove(struct probes *p);

/* probes_users.c: maps the users, where they have shares. Returns 0 or a negative errno. */
int probes_users_open(struct probes *p);
void probes_users_close(struct probes *p);
/* Counts an entry, a value of procs that was copied there, for its user; the other removes all counts. */
void probes_users_count(struct probes *p, const void *entry);
void probes_users_forget(struct probes *p);
/* Begins a pass that discovers: from now on those users wait of which it finds no room for a process, or others do. */
void probes_users_look(struct probes *p);

/* filter.c: the rules in the kernel */

/* Makes one pass over all processes that writes nothing. Returns 0 or -errno. */
int filter_pass(struct probes *p, enum filter_judging judging);
/* Opens a pass that judges; enter also follows processes that ran before. Returns an fd or -errno. */
int filter_judge_open(struct probes *p, bool enter);
void filter_close(struct filter *f);	/* NULL is fine */

/* probes_report.c: fills in signals from the chosen hooks */
void probes_describe(struct probes *p);

#endif
