/*
 * SPDX-License-Identifier: Apache-2.0
 * state: what the files of agent/ share, and nobody else includes.
 *
 *	agent.c       opens the stages that every agent has, and closes them; timers
 *	events.c      events from the kernel to the correlator, records to the stream
 *	headers.c     files that name an engine's tasks
 *	titles.c      titles that programs write over their arguments
 *	report.c      Host and Agent records, losses
 *	run.c         the agent of one command
 *	host.c        the agent of a host: what it remembers, and its commits
 *	discover.c    processes that ran before it
 *	containers.c  names of containers
 */
#ifndef SLUICE_AGENT_STATE_H
#define SLUICE_AGENT_STATE_H

#include "agent/agent.h"
#include "attach/probes.h"
#include "base/host_id.h"
#include "collect/decode.h"
#include "collect/proc_reader.h"
#include "collect/host.h"
#include "collect/ring.h"
#include "stream/stream.h"

#define UUID_TEXT_SIZE 37

struct agent_settling;
struct event;

/* Events by kind. */
struct agent_counts {
	uint64_t exec;
	uint64_t exit;
	uint64_t cgroup;
	uint64_t snapshot;		/* states that the iterator wrote */
	uint64_t drains;
	uint64_t found;			/* processes that ran before */
	uint64_t synthesized;		/* ends that the kernel did not report in time */
	uint64_t broken_passes;		/* of the iterator */
	uint64_t malformed;		/* refused by the decoder */
	uint64_t refused_entries;		/* of the agent before, refused */
};

/* One pass over all processes. */
struct agent_pass {
	uint64_t untracked;
	uint64_t untracked_threads;
	uint64_t seen;			/* followed processes */
	uint64_t seen_threads;
	uint64_t seen_ended;
	uint64_t seen_ending;		/* zombies too young to be counted final */
};

/* What one kind of agent does in its own way: all that it follows is a run, or the host. */
struct agent_scope {
	unsigned calibrate_each;	/* drains */
	bool rests;			/* the ring of an idle host is drained less often */
	/* Is this process left out of all records? NULL: none is. */
	bool (*leaves_out)(const struct agent *a, const struct program_key *key);
	/* Takes a state that the correlator is not to have now. NULL: none. */
	bool (*takes_state)(struct agent *a, const struct state_event *s);
	/* What was made since the last commit is safe, then the ring's room is the kernel's again. */
	void (*commit)(struct agent *a);
	void (*tick)(struct agent *a, int64_t now_us);	/* each second; NULL: nothing is due */
	/* Adds to an Agent record what became of records. */
	void (*describe)(struct agent *a, struct agent_record *r);
	/* Appends losses of its own. NULL: it has none. */
	void (*losses)(const struct agent *a, struct loss_list *to);
	/* Closes what it opened beside the stages. 0 or a negative errno. */
	int (*close)(struct agent *a);
};

struct agent {
	const struct agent_scope *scope;
	struct event_base *base;	/* the caller's */
	struct probes *probes;		/* owned, as all pointers below */
	struct ring *ring;
	struct decoder *decoder;
	struct correlator *correlator;
	struct stream *stream;
	struct host *host;
	struct proc_reader *titles;		/* reads titles; NULL: none were to be read yet */
	struct cgroup_mounts *mounts;	/* NULL: none */
	struct ruleset *rules;		/* a reference */
	struct event *on_ring;		/* woken by the kernel side when a quarter is full */
	struct event *on_drain;		/* timer */
	struct event *on_second;	/* timer: snapshot, tick */

	struct host_id host_id;
	char run_id[128];		/* "": none */
	char agent_id[UUID_TEXT_SIZE];
	char *pipeline;			/* owned; NULL unknown */
	uint32_t cpus;
	uint64_t interval_ns;
	uint64_t start_ns;
	uint64_t last_record_ns;	/* of the interval's records */

	struct agent_counts counts;
	uint64_t kernel_lost_seen;	/* already turned into holes, as the next two */
	uint64_t malformed_seen;
	uint64_t lost_records;		/* all holes of this agent_id, over restarts */
	bool is_entry_due;		/* what the next agent of this agent_id must know has changed */
	unsigned quiet_drains;		/* in a row, with nothing in the ring */
	bool is_slow;
	const char *message;		/* of the Agent record under way */

	struct agent_pass pass;
	uint64_t other_processes;	/* of the last pass with untracked processes */
	uint64_t other_threads;
	bool is_sweeping;		/* states come from the map, not from the kernel's last word */
	struct stale_entry {
		uint64_t key;
		uint64_t start_ns;
	} forget[1024];			/* whose entries in the kernel are to go */
	size_t n_forget;
	struct agent_settling *settling;	/* the caller's of agent_settle(), while it runs */
	size_t n_settling;

	struct usage usage_last_second;
	uint64_t last_second_ns;
	double cores_now;
	struct host_sample host_last;
	struct usage usage_last_record;	/* of the runs, when the last Host record was written */
};

/*
 * agent.c: the steps in which an agent is opened, in this order; each 0, or a negative errno with a sentence in
 * error. `a` is the beginning of what the scope allocated, zeroed; agent_close() frees it after any of them.
 */

/* The probes, this host, and who owns the files from here on. probes: without what is in options. */
int agent_init(struct agent *a, struct event_base *base, const struct agent_scope *scope,
    const struct agent_options *options, const struct probes_options *probes, char *error, size_t error_size);
/* agent_id is set. first_seq: where numbering goes on, by topic; NULL: at 0. */
int agent_open_stream(struct agent *a, struct stream_output output, const uint64_t *first_seq, char *error,
    size_t error_size);
/* position: where an agent before had read up to; 0 unknown. */
int agent_open_ring(struct agent *a, uint64_t position, char *error, size_t error_size);
/* What a correlator is made with, to which the scope adds. */
struct correlator_ops agent_correlator_ops(const struct agent_options *options);
/* The correlator is there: the decoder, redaction, timers. */
int agent_begin(struct agent *a, const struct agent_options *options, char *error, size_t error_size);
/* The first pass and the first records. */
void agent_announce(struct agent *a);

void agent_uuid_new(char out[UUID_TEXT_SIZE]);
/* How arguments are redacted from here on. 0, or a negative errno with all as it was and a sentence in error. */
int agent_redact(struct agent *a, const struct redaction_options *options, char *error, size_t error_size);

/* events.c */

/* Where the decoder's events go. */
extern const struct decode_ops agent_decode_ops;
/* True when the ring is empty. Bounded: a flood leaves the loop time for the rest. */
bool agent_drain(struct agent *a);
/* One pass over all followed processes; false: it broke off. */
bool agent_snapshot(struct agent *a, bool with_usage, bool with_untracked);
/* Reads what an iterator writes, and closes fd; false where it broke off. */
bool agent_read_states(struct agent *a, int fd);
/* A cgroup's path and limits, and what the rules in the kernel make of it. */
void agent_learn_cgroup(struct agent *a, struct cgroup_event *s);
/* Records to the stream; what fails is counted there. */
void agent_record_ops(struct correlator_ops *ops);

/* headers.c: as of correlator_ops. */
bool agent_read_header(const char *engine, const char *path, char *task, char *sample, void *arg);

/* titles.c: after a pass over all processes. */
void agent_read_titles(struct agent *a);

/* report.c */
void agent_write_host(struct agent *a);
void agent_write_agent(struct agent *a, const char *event, uint64_t now_ns);

#endif
