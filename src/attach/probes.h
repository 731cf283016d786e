/*
 * SPDX-License-Identifier: Apache-2.0
 * probes: the hooks of this kernel, loaded and attached, and replacements for those that it lacks.
 */
#ifndef SLUICE_ATTACH_PROBES_H
#define SLUICE_ATTACH_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/layout.h"
#include "model/health.h"
#include "model/optional_signals.h"
#include "model/record.h"

struct probes;

enum {
	PROBES_PROGRAMS = 48,	/* at least as many programs as bpf/ has */
};

struct probes_options {
	size_t ring_bytes;	/* a power of two times the page size; 0: 8 MiB, with follow_all see sizes.h */
	uint32_t max_processes;	/* processes followed at once; 0: 16,384, with follow_all see sizes.h */
	bool follow_all;	/* every process but kernel threads and own children, from probes_follow_all() on */
	const char *pin_dir;	/* folder for pins, see pins.h; NULL: all ends with this process */
	const char *const *variables;	/* names of the variables to be read at exec; see variables.h */
	size_t n_variables;
	uint32_t spooled_ring_id;	/* of the ring that was last read; 0: unknown */
	uint64_t watchdog_ns;	/* with pin_dir: the programs stop after this time without probes_heartbeat() */
};

/* The state in which an earlier agent's pins were found. */
enum probes_origin {
	PROBES_FRESH,		/* there were none */
	PROBES_RESUMED,		/* taken over */
	PROBES_WERE_QUIET,	/* taken over after the watchdog had expired: events in between were not seen */
	PROBES_MIGRATED,	/* of another layout: replaced, and their state was copied in milliseconds */
	PROBES_WERE_OTHER,	/* of another layout: started anew, the events in its ring are lost */
};

/*
 * Loads and attaches. Returns 0, or a negative errno with *ret untouched and a sentence in error. The reader of
 * the ring need not exist yet: without follow_all nothing is followed until probes_adopt(). If pinning fails,
 * all works but ends with this process: see probes_pin_error().
 */
int probes_open(const struct probes_options *options, struct probes **ret, char *error,
    size_t error_size);
void probes_close(struct probes *p);	/* NULL is fine; pins stay */

enum probes_origin probes_origin(const struct probes *p);
const char *probes_pin_error(const struct probes *p);	/* "" if pinned, or if that was not requested */
/* Writes the name of the layout of this program's own object. Returns 0 or a negative errno. */
int probes_layout(char ret[LAYOUT_NAME_SIZE]);

/* Return the id of a ring's map, unique within a boot: of the ring that is to be read, and of our own. */
uint32_t probes_ring_id(const struct probes *p);
uint32_t probes_own_ring_id(const struct probes *p);
/* Returns this process's PID as the kernel counts it, which a PID namespace hides. */
pid_t probes_own_pid(const struct probes *p);

/*
 * Another version's ring, if its probes were replaced: it is to be read to its end, and what it had to be safe, before
 * our own. Returns false if there is none, or it is read.
 */
bool probes_former_ring(const struct probes *p, int *ret_fd, size_t *ret_bytes);
/* From now on our own ring is read, and probes_ring_id() is its id. */
void probes_former_is_read(struct probes *p);
/* Returns a record of it as this version writes it, valid until the next call; *len is its length. */
const void *probes_former_record(struct probes *p, const void *record, size_t *len);
/* Removes what is left of the other version, once it is safe that our own ring is the one to be read. */
void probes_leave_former(struct probes *p);

/* Whose programs report events. */
enum probes_lease {
	PROBES_LEASE_HELD,
	PROBES_LEASE_LOST,	/* the watchdog expired: none report */
	PROBES_LEASE_TAKEN,	/* those of another agent, which took over */
};

/* Returns who has the lease. If it is held, resets the watchdog; to be called at least once a minute. */
enum probes_lease probes_heartbeat(struct probes *p);
/*
 * Takes the lease back, after a time since since_ns (CLOCK_BOOTTIME) in which events were not reported. Entries of
 * processes that ended without it are gone, and those that exec'd or began are to be discovered, see
 * probes_discovery_open(). Returns 0, or a negative errno without the lease.
 */
int probes_retake(struct probes *p, uint64_t since_ns);
/* Returns when the last canary was forked that the programs saw and had no room to report, CLOCK_BOOTTIME; 0: none. */
uint64_t probes_canary_lost_ns(const struct probes *p);
/*
 * Returns since when no load had the lease, CLOCK_BOOTTIME, also if one has it again; 0: never since the last
 * probes_quiet_recorded(). It outlives the agent.
 */
uint64_t probes_quiet_since_ns(const struct probes *p);
/* To be called once the GAP record of that time is committed. */
void probes_quiet_recorded(struct probes *p);

/* Returns the state of each signal, *ret_n of them. The array belongs to p, which updates it until probes_close(). */
const struct signal_status *probes_signals(const struct probes *p, size_t *ret_n);
/* Returns true if a hook of this kernel serves the signal, switched off or not. */
bool probes_have(const struct probes *p, const char *signal);
/*
 * Switches an optional signal on or off from now on. Its programs stay loaded; switched off they return at once, and
 * nothing is counted in the meantime. Returns 0, or -ENOTSUP if no hook of this kernel serves it.
 */
int probes_switch(struct probes *p, enum optional_signal signal, bool on);
/*
 * Returns since when the fields of an optional signal are filled without a break, CLOCK_BOOTTIME: for programs that
 * began before, they are unknown. 0: known for all; UINT64_MAX: for none.
 */
uint64_t probes_known_since_ns(const struct probes *p, enum optional_signal signal);

/* Returns the file descriptor of the ring's map, which p owns. */
int probes_ring_fd(const struct probes *p);
/* Returns the size of the ring's data; that of the pinned ring, where one was taken over. */
size_t probes_ring_bytes(const struct probes *p);
/*
 * Lets the kernel side send the next wakeup. To be called after each drain, once the space is released: one that is
 * sent before finds the ring empty afterwards, so that poll(2) does not return for it, and it would be the last.
 */
void probes_wake_rearm(struct probes *p);

/*
 * Follows every process that begins from now on, where follow_all is set: the reader is ready. What an earlier agent
 * followed is followed throughout.
 */
void probes_follow_all(struct probes *p);
/* Follows the children that pid forks from now on, with all their descendants; 0 ends that. */
void probes_adopt(struct probes *p, pid_t pid);

/*
 * With on, no rule in the kernel leaves out what this process execs next, nor any of its descendants. Without it the
 * list forgets the pid, which is to be done soon after that exec: a pid is used again. Returns 0, or -ENOSPC if 16 are
 * listed.
 */
int probes_keep(struct probes *p, uint32_t pid, bool on);

/*
 * Sets how long ago a process must have ended and been reaped for probes_stale_open() to report that the kernel side
 * has not seen its end: 5 s, and with on 1 s, for when a user waits. RCU calls sched_process_free, commonly 20 ms after
 * the reaping; on machines whose CPUs were taken away it was 2 s late. What is then missing of its usage are the last
 * steps of its exit.
 */
void probes_hurry(struct probes *p, bool on);

/*
 * Returns the number of processes that the kernel side follows now: alive, zombies, and those about to be freed;
 * without those that the rules left out at the last pass.
 */
uint64_t probes_followed(const struct probes *p);
/*
 * Returns how often the kernel side had no room for a process: at its fork, its exec, or in a pass that discovers. One
 * that has an entry later is recorded from then on; of others each is counted as lost when it is freed.
 */
uint64_t probes_refused(const struct probes *p);
/* Returns true if there is room for a process of a user for whose last one there was none. */
bool probes_have_room(const struct probes *p);
/* Returns how many processes can be followed at once; those of the pinned map, where one was taken over. */
uint32_t probes_max_processes(const struct probes *p);
/* Returns the number of processes that the kernel side has ceased to follow. */
uint64_t probes_gone(const struct probes *p);

/*
 * Returns a file that contains a struct event_state for each followed process, and with all one for every other
 * process too. The fd is the caller's; or a negative errno.
 */
int probes_snapshot_open(struct probes *p, bool all);
/*
 * Returns a file with the names of the stacks that the last pass found and that have no class (bpf/waits.h), a line for
 * each: its hash, a space, and its functions. The fd is the caller's; -ENODATA: there are none; or another negative
 * errno. What is not classed by probes_waits_end() may be found again.
 */
int probes_waits_open(struct probes *p);
/* Says of a stack, by its hash, to which enum wait_class it belongs. 0 or a negative errno. */
int probes_waits_class(struct probes *p, uint64_t hash, uint32_t class);
void probes_waits_end(struct probes *p);

/*
 * Returns a file like probes_snapshot_open() for all processes that are to be followed, with the credentials of
 * each: processes that ran before the probes are entered, and reported as EVENT_DISCOVERED, unless the rules
 * (filter.h) leave them out.
 */
int probes_discovery_open(struct probes *p);

/*
 * Returns a file like probes_snapshot_open() for processes that have ended and are still followed: zombies, and
 * those whose end the kernel side has not seen. Those whose end it may still see, which are all but the oldest,
 * have the key 0.
 */
int probes_stale_open(struct probes *p);
/* Stops following a process whose end the kernel side did not see. */
void probes_forget(struct probes *p, uint64_t key, uint64_t start_ns);

/* Takes one sample of the clocks' difference; cheap, best called just after a sleep. */
void probes_calibrate(struct probes *p);

/* Losses by program and reason, since the start, and their names. */
uint64_t probes_lost(const struct probes *p, unsigned program, unsigned reason);
/* Returns how many records of sluice.program will have no seq, because their events were lost in the kernel. */
uint64_t probes_lost_records(const struct probes *p);
/* Each returns a static string; "?" for an unknown number. */
const char *probes_program_name(unsigned program);
const char *probes_loss_name(unsigned reason);
/* Fills in the users of whom most was lost, most first. Returns their number. */
size_t probes_user_losses(const struct probes *p, struct user_loss ret[USER_LOSSES]);

/*
 * Returns how many events the i-th of the programs whose skipped runs only the kernel counts may have missed at
 * most, with its name; UINT64_MAX after the last.
 */
uint64_t probes_skipped(const struct probes *p, const char **ret_program, unsigned i);

/* The cost of a loaded program; run_time_ns is 0 unless kernel.bpf_stats_enabled. */
struct probe_cost {
	const char *name;
	uint64_t runs;
	uint64_t run_time_ns;
};
/* Writes the costs of all loaded programs to ret; returns how many there are. */
size_t probes_costs(const struct probes *p, struct probe_cost ret[PROBES_PROGRAMS]);

#endif
