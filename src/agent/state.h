/*
 * SPDX-License-Identifier: Apache-2.0
 * state: the agent's state, shared by the files of agent/ and included by no other folder.
 *
 *	agent.c       opens the stages that every agent has, and closes them; timers
 *	events.c      events from the kernel to the correlator, records to the stream
 *	subscription.c  events of a run, passed on to `sluice run`
 *	subscriber.c  the other end of that
 *	headers.c     files that name an engine's tasks
 *	space.c       the room where tasks work
 *	jobs.c        files in which an engine keeps its local jobs
 *	proctitle.c   titles that programs write over their arguments
 *	report.c      Host and Agent records, losses
 *	run.c         the agent of one command
 *	host.c        the agent of a host: its restored state, and its commits
 *	discover.c    processes that ran before it
 *	canary.c      children of its own, whose ends must come back
 *	sight.c       the proof that it sees
 *	containers.c  names of containers
 */
#ifndef SLUICE_AGENT_STATE_H
#define SLUICE_AGENT_STATE_H

#include "agent/agent.h"
#include "agent/sight.h"
#include "agent/subscription.h"
#include "attach/probes.h"
#include "base/file.h"
#include "base/host_id.h"
#include "collect/decode.h"
#include "collect/host.h"
#include "collect/host_facts.h"
#include "collect/ring.h"
#include "model/cpu_busy.h"
#include "reader/reader.h"
#include "stream/stream.h"

#define UUID_TEXT_SIZE 37

struct agent_folder;
struct agent_settling;
struct asked_title;
struct event;
struct subscription;

/* Numbers of events and failures since the start. */
struct agent_counts {
	uint64_t exec;
	uint64_t exit;
	uint64_t cgroup;
	uint64_t snapshot;		/* states that the iterator wrote */
	uint64_t drains;
	uint64_t discovered;		/* processes that ran before the probes */
	uint64_t synthesized;		/* ends that the kernel did not report in time */
	uint64_t undiscovered;		/* processes of a pass that were not begun, for lack of memory */
	uint64_t broken_passes;		/* passes over the processes, and sweeps, that broke off */
	uint64_t malformed;		/* refused by the decoder */
	uint64_t refused_entries;	/* entries of the previous agent */
};

/* Counts of one pass over all processes. */
struct agent_pass {
	uint64_t untracked;
	uint64_t untracked_threads;
	uint64_t seen;			/* followed processes */
	uint64_t seen_threads;
	uint64_t seen_ended;
	uint64_t seen_ending;		/* zombies too young for final counters */
};

/* Of cpus_busy.c; zeroed: nothing was read. */
struct agent_cpus_busy {
	struct file_text text;
	struct cpu_busy last;
	bool is_known;
	uint64_t asked_ns;		/* CLOCK_BOOTTIME; 0: never */
	uint64_t took_ns;
};

/* What one kind of agent does in its own way: an agent of a run, or of the host. */
struct agent_scope {
	/* Returns true if this process is never recorded. NULL: all are. */
	bool (*leaves_out)(const struct agent *a, const struct program_key *key);
	/* Returns true if it took the state, which the correlator then does not get. NULL: none. */
	bool (*takes_state)(struct agent *a, const struct state_event *s);
	/* Makes records since the last commit safe, then releases the ring's space to the kernel. */
	void (*commit)(struct agent *a);
	void (*tick)(struct agent *a, uint64_t now_ns);	/* once a second; now_ns: CLOCK_BOOTTIME */
	/* Adds the numbers of delivered and waiting records to an Agent record. */
	void (*describe)(struct agent *a, struct agent_record *r);
	/* See agent_settle(). NULL: there are no subscriptions. */
	bool (*settle)(struct agent *a, struct agent_settling *settling, size_t n);
	/* Appends losses of this kind of agent. NULL: it has none. */
	void (*losses)(const struct agent *a, struct loss_list *to);
	/* Adds users' losses of this kind of agent to a list of n; returns how many there are. NULL: it has none. */
	size_t (*user_losses)(const struct agent *a, struct user_loss list[USER_LOSSES], size_t n);
	/* Closes what this kind of agent opened in addition. 0 or a negative errno. */
	int (*close)(struct agent *a);
};

struct agent {
	const struct agent_scope *scope;
	struct event_base *base;	/* the caller's */
	struct probes *probes;		/* owned, as all pointers below; NULL, as ring: it subscribes to events */
	struct ring *ring;
	struct decoder *decoder;
	struct correlator *correlator;
	struct stream *stream;
	struct host *host;
	struct reader *reader;		/* of what may hang */
	struct asked_title *titles;	/* of proctitle.c; NULL until the first pass */
	struct agent_folders *folders;	/* of jobs.c; NULL: none was read */
	size_t next_title;
	size_t n_titles;		/* that were asked for and are not read yet */
	struct cgroup_mounts *mounts;	/* NULL: none */
	struct agent_spaces *spaces;	/* of space.c; NULL: none was asked for */
	struct agent_cpus_busy cpus_busy;
	struct ruleset *rules;		/* a reference */
	struct event *on_ring;		/* readable when a quarter of the ring is full */
	struct event *on_drain;		/* timer; not pending on a host where nothing happens */
	struct event *on_second;	/* timer: snapshot, tick */

	struct host_id host_id;
	char run_id[128];		/* "": none */
	char agent_id[UUID_TEXT_SIZE];
	char *pipeline;			/* owned; NULL unknown */
	uint32_t cpus;
	uint64_t interval_ns;
	uint64_t start_ns;
	uint64_t last_record_ns;	/* of Usage, Host and LIVE records */

	struct agent_counts counts;
	uint64_t kernel_lost_seen;	/* already turned into holes in seq, as the next two */
	uint64_t malformed_seen;
	uint64_t lost_records;		/* holes of this agent_id, over restarts */
	bool is_entry_due;		/* the state for the next agent has changed */
	const char *message;		/* of the Agent record that is being written; NULL: none */

	struct agent_pass pass;
	uint64_t other_processes;	/* untracked ones, in the last pass that counted them */
	uint64_t other_threads;
	bool is_sweeping;		/* states are from the map of followed processes, not from the iterator */
	struct stale_entry {
		uint64_t key;
		uint64_t start_ns;
	} forget[1024];			/* entries in the kernel that are to be removed */
	size_t n_forget;
	struct agent_settling *settling;	/* of agent_settle()'s caller, during that call */
	size_t n_settling;
	struct subscription *subscriptions;	/* owned; of a host's agent */
	size_t n_subscriptions;
	struct event *on_settle;		/* owned; timer: their ends are awaited. NULL: none ever was */
	uint64_t settle_from_ns;		/* so that this leaves time to the rest, CLOCK_BOOTTIME */
	struct subscription_stats subscription_stats;

	uint64_t second_ns;		/* when on_second ran last */
	int64_t wall_ahead_ns;		/* as of clock_wall_ahead_ns() then */
	uint64_t second_position;	/* of the ring, after the pass of that second */
	struct sight sight;		/* of a host's agent */
	bool is_quiet;			/* no event arrived in the second before it, and there are no subscriptions */
	struct host_record host_last;	/* as it was sampled last */
	struct host_facts facts;
	struct host_facts configured;	/* facts that nothing overrides */
	struct usage usage_last_record;	/* of the runs, when the last Host record was written */
	struct meter *meter;		/* owned */
	struct {			/* since the last Host record */
		uint64_t uj;
		uint64_t attributed_uj;
		enum energy_source source;
	} energy;
};

/*
 * Returns true if records of each interval are due in the pass of now_ns: it is the one nearest to the interval's end,
 * since passes come once a second and a busy host delays each by another time. last_ns: when they were written last.
 */
static inline bool
agent_is_due(const struct agent *a, uint64_t last_ns, uint64_t now_ns)
{
	return now_ns - last_ns + UINT64_C(500000000) >= a->interval_ns;
}

/*
 * agent.c: the steps of opening an agent, in this order. Each returns 0, or a negative errno with a sentence in
 * error. `a` is at the start of what the kind of agent allocated, zeroed; agent_close() frees it after any of them.
 */

/*
 * Opens the probes, reads the host's identity, and sets the owner of files from now on. probes: options beyond
 * those in options; NULL: there are no probes, and events come from a subscription.
 */
int agent_init(struct agent *a, struct event_base *base, const struct agent_scope *scope,
    const struct agent_options *options, const struct probes_options *probes, char *error, size_t error_size);
/* Opens the stream; a->agent_id must be set. first_seq: the next seq of each topic; NULL: all 0. */
int agent_open_stream(struct agent *a, struct record_writer output, const uint64_t *first_seq, char *error,
    size_t error_size);
/* Opens the ring. position: up to which an earlier agent has read; 0: unknown. */
int agent_open_ring(struct agent *a, uint64_t position, char *error, size_t error_size);
/* Handles all events in the ring of another version, if there is one, and continues with the own ring. 0 or -errno. */
int agent_leave_former(struct agent *a, char *error, size_t error_size);
/* Returns the callbacks that both kinds of agent give to a correlator. */
struct correlator_ops agent_correlator_ops(const struct agent_options *options);
/* Opens the decoder, sets redaction and starts the timers; a->correlator must be set. */
int agent_begin(struct agent *a, const struct agent_options *options, char *error, size_t error_size);
/* Divides energy, and has tasks and runs end that are over; see correlator_tick(). */
void agent_tick(struct agent *a, uint64_t now_ns, bool live);
/* Makes the first pass and writes the first records. */
void agent_announce(struct agent *a);

/* Writes a random UUID in lower case with its NUL. */
void agent_uuid_new(char out[UUID_TEXT_SIZE]);

/* events.c */

/* Callbacks of the decoder; arg is the agent. */
extern const struct decode_ops agent_decode_ops;
/*
 * Handles events from the ring; returns true if it is empty. Bounded, so that a flood leaves time to the rest of
 * the loop.
 */
bool agent_drain(struct agent *a);
/* Leaves a hole of n in the seq of programs, for events that were lost, and counts them. */
void agent_lose(struct agent *a, uint64_t n);
/* Makes one pass over all followed processes; returns false if it broke off. */
bool agent_snapshot(struct agent *a, bool with_usage, bool with_untracked);
/* Classes the stacks that the last pass has found for the first time (waits.c). */
void agent_class_waits(struct agent *a);
/* Reads what an iterator writes, and closes fd; returns false if it broke off. */
bool agent_read_states(struct agent *a, int fd);
/* Adds limits to a cgroup's path and passes it to the correlator and to the rules in the kernel. */
void agent_learn_cgroup(struct agent *a, struct cgroup_event *s);
/* Sets the callbacks for records to those that write to the stream, which counts failures. */
void agent_record_ops(struct correlator_ops *ops);

/* space.c: the space callback of struct correlator_ops. */
bool agent_space(const char *folder, uint32_t pid, uint64_t start_ns, uint32_t mnt_ns, bool is_anew,
    struct disk_space *ret, void *arg);
/* The disk callback. */
bool agent_disk(const char *folder, uint32_t pid, uint64_t start_ns, uint32_t mnt_ns,
    struct disk_counts *ret, void *arg);
void agent_forget_spaces(struct agent *a);
/* cpus_busy.c: the cpus callback. */
bool agent_cpus_busy(struct cpu_busy *ret, void *arg);
void agent_forget_cpus_busy(struct agent *a);
/* groups.c: the group callback, of a host's agent: a run's own does not see all programs of a group. */
bool agent_group(const char *v2_path, const char *v1_path, struct group_use *ret, void *arg);
/* jobs.c: the job callback of struct correlator_ops. */
bool agent_find_job(const struct job_sought *s, struct job_found *ret, void *arg);
void agent_forget_jobs(struct agent *a);
/* headers.c: the header callback of struct correlator_ops. */
bool agent_read_header(const struct header_place *at, char *task, char *sample, void *arg);

/* proctitle.c */
/* Asks for due titles; called after a pass over all processes. */
void agent_read_titles(struct agent *a);

/* energy.c */
/* Reads the host's meter and divides what it counted; called right before tasks and runs end. */
void agent_charge(struct agent *a);
/* Sets the energy of r, whose CPU time is set, and begins the next interval. */
void agent_record_energy(struct agent *a, struct host_record *r);

/* report.c */
/* Samples the host and writes a Host record. If /proc cannot be read, no record is written. */
void agent_write_host(struct agent *a);
/* Writes an Agent record. event: its cause, such as "START"; now_ns: CLOCK_BOOTTIME. */
void agent_write_agent(struct agent *a, const char *event, uint64_t now_ns);

#endif
