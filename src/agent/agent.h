/*
 * SPDX-License-Identifier: Apache-2.0
 * agent: owns all the stages, and moves signals from one to the next on one libevent loop.
 *
 *   probes ──ring──► decoder ──► correlator ──► stream ──► sink
 *      └──iterator────┘              ▲
 *                host ───────────────┴─► Host records
 */
#ifndef SLUICE_AGENT_AGENT_H
#define SLUICE_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "correlate/correlator.h"
#include "identify/redact.h"

struct agent;
struct agent_record;
struct ruleset;
struct event_base;
struct spool;

/* Lost, by place and reason. */
struct agent_loss_line {
	const char *place;
	const char *reason;
	uint64_t count;
};

/* What the owner of a host-wide agent is told, and adds. */
struct agent_owner {
	/* A batch is in the spool: there may be something to deliver. */
	void (*committed)(void *arg);
	/* Adds what the owner knows to an Agent record: generation, delivered, retried. */
	void (*describe)(struct agent_record *r, void *arg);
	/* Adds the owner's losses to lines; returns how many there are now. */
	size_t (*losses)(struct agent_loss_line *lines, size_t found, size_t max, void *arg);
	void *arg;
};

struct agent_options {
	const char *lake;
	/*
	 * Host-wide, as `sluice agent`: every process, in no run; records go to the spool (the caller's,
	 * which must outlive the agent), and what is known of the processes with them, so that the next
	 * agent goes on where this one stopped. Then lake and all of a run's names are NULL.
	 */
	bool is_host_wide;
	struct spool *spool;
	const char *agent_id;		/* NULL: a fresh UUID */
	const char *pin_dir;		/* see attach/pins.h; NULL: probes end with this process */
	uint64_t deadman_ns;
	uint32_t max_processes;
	struct agent_owner owner;
	const char *run_id;		/* NULL: a fresh UUID */
	const char *pipeline;
	const char *task;
	const char *sample;
	const char *const *command;	/* NULL-terminated, for the Run record */
	struct ruleset *rules;		/* a reference is taken */
	const char *cluster;		/* NULL or "": none */
	bool reads_headers;		/* of the files in which an engine names its tasks */
	uint64_t interval_ms;		/* of Usage, Host and LIVE records; 0: 10 s */
	size_t ring_bytes;		/* 0: 8 MiB */
	const char *const *variables;	/* names of those that are read at exec, 8 at most */
	size_t n_variables;
	const struct redaction_options *redaction;	/* its salt is set here; NULL: what is shipped, all kept */
	/* Once the probes are in: files are made and opened as this user, who owns the lake then. */
	bool has_file_owner;
	uid_t file_uid;
	gid_t file_gid;
};

/*
 * Loads the probes, opens the lake, starts the timers. Nothing is followed yet. base must outlive
 * it. 0, or a negative errno with *ret untouched and a sentence in error.
 */
int agent_open(struct event_base *base, const struct agent_options *options, struct agent **ret,
    char *error, size_t error_size);
/* Closes the lake. 0, or the sink's error. NULL is fine. */
int agent_close(struct agent *a);

/* Children forked by this process from now on (until false) begin the run. */
void agent_adopt(struct agent *a, bool on);

/*
 * The command has ended with this wait status: collects what is under way, and with wait_for_all
 * whatever still runs, then writes the END records and calls on_done, on the loop.
 */
void agent_finish(struct agent *a, int wait_status, bool wait_for_all,
    void (*on_done)(void *arg), void *arg);
/* While finishing: wait for the rest no longer. */
void agent_finish_now(struct agent *a);

const char *agent_run_id(const struct agent *a);
const char *agent_host_id(const struct agent *a);
const char *agent_host_name(const struct agent *a);
struct correlator *agent_correlator(struct agent *a);
struct run_totals agent_totals(const struct agent *a);
uint32_t agent_cpus(const struct agent *a);
/* CPUs that the run has used over the last second. */
double agent_cores_now(const struct agent *a);


/* Host-wide: collects what is under way, writes STOP, commits. Then agent_close(). */
void agent_stop(struct agent *a);
/* Host-wide: what an agent before took from the ring and the spool does not have: a gap, told by a record. */
uint64_t agent_unspooled_bytes(const struct agent *a);
/* Host-wide: an Agent record of an event, e.g. RELOAD. message: NULL is fine. */
void agent_tell(struct agent *a, const char *event, const char *message);
/* Of Usage, Host and Agent records from now on. */
void agent_set_interval(struct agent *a, uint64_t interval_ms);
/* Bytes of arguments that a record holds at most, of programs from now on. */
void agent_set_argv_max(struct agent *a, uint64_t bytes);
/* The variables of the environment that are read, of programs that start from now on. */
int agent_set_variables(struct agent *a, const char *const *names, size_t n);
/* How arguments are redacted, likewise. 0, or a negative errno with all as it was and a sentence in error. */
int agent_set_redaction(struct agent *a, const struct redaction_options *options, char *error,
    size_t error_size);
/*
 * Host-wide: rules from now on, for programs that start; done as of probes_set_rules(), when the
 * kernel has them too. 0 or a negative errno.
 */
int agent_set_rules(struct agent *a, struct ruleset *rules, void (*done)(int error, uint64_t generation, void *arg),
    void *arg);
/*
 * From now on, and as whoever this process is by now, runtimes are asked for the names and images of
 * containers: see runtime/container_names.h. 0 or a negative errno.
 */
int agent_ask_sockets(struct agent *a, const char *const *sockets, size_t n);
/* For those that are still without: after a socket did not answer. */
void agent_ask_again(struct agent *a);
/* How that went; NULL: nobody is asked. */
struct container_names_counts;
const struct container_names_counts *agent_container_counts(const struct agent *a);
/* As of container_names_state(), of one of these sockets. */
int agent_socket_state(const struct agent *a, size_t i);
/* All that the ring holds now is taken in. */
void agent_drain_all(struct agent *a);
/* And all processes are met, so that children which have not exec'd are known. */
void agent_meet_all(struct agent *a);
/*
 * Host-wide: has all been told that happened before a moment? Of a process that ended (its last thread has
 * begun to exit) the record is due when the kernel has let go of it, which is tens of milliseconds after its
 * parent has waited for it; or when the kernel has not said so for 5 s; or, while nobody waits for it, when
 * it has been a zombie for 200 ms. Of one that still gives back what it has, nobody was told that it ended.
 */
struct agent_settling {
	uint64_t since_ns;	/* the moment, CLOCK_BOOTTIME */
	uint64_t ring_end;	/* agent_ring_end() of then */
	bool is_read;		/* the ring, up to there */
	uint64_t ends;		/* processes that ended before it, and of which the last is still to come */
	struct correlator_held held;	/* of what ended before it */
};
uint64_t agent_ring_end(const struct agent *a);
/*
 * One pass over all processes for all of these; what is due by now is told and spooled. Fills in all but the
 * first two of each. False: the pass broke off, and says nothing.
 */
bool agent_settle(struct agent *a, struct agent_settling *settling, size_t n);
/* Takes CPUs before others do; COMMAND must have been forked before. */
void agent_hurry(void);

struct probes;
struct probes *agent_probes(struct agent *a);
struct stream *agent_stream(struct agent *a);
struct agent_counts;
/* What was seen, by kind: names and numbers for a status. Returns how many; fills up to max. */
struct named_number;
size_t agent_events(const struct agent *a, struct named_number *events, size_t max);

/* Those that are not 0. */
size_t agent_losses(const struct agent *a, struct agent_loss_line *lines, size_t n);

/* One line on the sink's last failure; "" when it works. */
const char *agent_sink_error(struct agent *a);

#endif
