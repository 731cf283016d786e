/*
 * SPDX-License-Identifier: Apache-2.0
 * state: the one struct that owns all others; shared by the agent*.c files alone.
 */
#ifndef SLUICE_AGENT_STATE_H
#define SLUICE_AGENT_STATE_H

#include "agent/agent.h"
#include "attach/probes.h"
#include "base/host_id.h"
#include "collect/decode.h"
#include "collect/found.h"
#include "collect/host.h"
#include "collect/ring.h"
#include "stream/sink.h"
#include "stream/stream.h"

#define UUID_TEXT_SIZE 37

struct event;

/* What was seen, by kind. */
struct agent_counts {
	uint64_t exec;
	uint64_t exit;
	uint64_t cgroup;
	uint64_t snapshot;		/* states that the iterator wrote */
	uint64_t drains;
	uint64_t broken_passes;		/* of the iterator */
	uint64_t malformed;		/* refused by the decoder */
	uint64_t bad_notes;		/* of the agent before, refused */
};

struct agent {
	struct event_base *base;	/* the caller's */
	struct probes *probes;		/* owned, as all pointers below */
	struct ring *ring;
	struct decoder *decoder;
	struct correlator *correlator;
	struct stream *stream;
	struct sink *sink;		/* the stream's */
	struct host *host;
	struct spool *spool;		/* the owner's; NULL: the sink is a file sink */
	struct found *found;		/* while the processes that ran before are met */
	struct found *titles;		/* reads titles; NULL: none were to be read yet */
	struct event *on_ring;		/* woken by the kernel side when a quarter is full */
	struct event *on_drain;		/* timer */
	struct event *on_second;	/* timer: snapshot, tick */
	struct event *on_finish;	/* timer, while finishing */

	struct host_id host_id;
	char run_id[128];		/* "": none */
	char agent_id[UUID_TEXT_SIZE];
	char *pipeline;
	uint64_t interval_ns;
	uint64_t start_ns;
	uint64_t last_record_ns;	/* of the interval's records */

	struct agent_counts counts;
	uint64_t kernel_lost_seen;	/* already turned into holes, as the next two */
	uint64_t malformed_seen;
	uint64_t lost_records;		/* all holes of this agent_id, over restarts */
	bool is_host_wide;
	struct ruleset *rules;		/* a reference */
	const char *cluster;		/* the caller's, till agent_open() returns */
	struct cgroup_mounts *mounts;	/* owned; NULL: none */
	struct container_names *names;	/* owned; NULL: nobody is asked */
	void (*on_rules)(int error, uint64_t generation, void *arg);
	void *on_rules_arg;
	unsigned quiet_drains;		/* in a row, with nothing in the ring */
	bool is_slow;
	bool is_note_due;		/* what the next agent must know of us has changed */
	bool is_checkpoint_due;		/* a note was lost: all of them again */
	uint64_t lost_notes_seen;
	uint32_t own_pid;
	uint64_t own_start_ticks;
	const char *message;		/* of the Agent record under way */
	int64_t last_alive_us;		/* of the agent before; 0: there was none */
	uint64_t unspooled_bytes;	/* of the ring: taken from it, and in no batch of the spool */
	struct agent_owner owner;
	struct state_signal *unknown;	/* owned: processes that the first pass met, to be found */
	size_t n_unknown;
	uint64_t n_found;
	uint64_t bystanders;		/* of the pass under way */
	uint64_t bystander_threads;
	uint64_t met;			/* followed processes that the pass met */
	uint64_t met_ended;
	bool is_sweeping;		/* states come from the map, not from the kernel's last word */
	uint64_t swept;			/* ends that were made up for */
	struct stale_entry {
		uint64_t key;
		uint64_t start_ns;
	} forget[1024];			/* whose entries in the kernel are to go */
	size_t n_forget;
	uint64_t met_ending;		/* zombies too young to be counted final */
	struct agent_settling *settling;	/* the caller's of agent_settle(), while it runs */
	size_t n_settling;
	uint64_t met_threads;
	uint64_t other_processes;	/* of the last pass with bystanders */
	uint64_t other_threads;
	struct usage usage_last_second;
	uint64_t last_second_ns;
	double cores_now;
	struct host_sample host_last;
	struct usage usage_last_record;	/* of the run, when the last Host record was written */
	uint32_t cpus;

	/* finishing */
	bool is_finishing;
	bool is_finish_slow;
	bool wait_for_all;
	int wait_status;
	uint64_t finish_since_ns;
	void (*on_done)(void *arg);
	void *done_arg;
	char sink_error[256];
};

/* True when the ring is empty. Bounded: a flood leaves the loop time for the rest. */
bool agent_drain(struct agent *a);
/* One pass over all followed processes; false: it broke off. */
bool agent_snapshot(struct agent *a, bool with_usage, bool with_bystanders);
/* Reads what an iterator writes; false where it broke off. */
bool agent_read_states(struct agent *a, int fd);

/* A cgroup's path and limits, and what the rules in the kernel say of it. */
void agent_learn_cgroup(struct agent *a, struct cgroup_signal *s);

/* rules.c */
bool agent_read_header(const char *engine, const char *path, char *task, char *sample, void *arg);

/* titles.c: after a pass over all processes */
void agent_read_titles(struct agent *a);

/* containers.c */
void agent_on_container(const char *runtime, const char *id, void *arg);

/* run.c */
int agent_open_run(struct agent *a, const struct agent_options *o, const struct correlator_ops *ops);

/* host.c */
int agent_open_host(struct agent *a, const struct correlator_ops *ops);
/* Those that ran before the probes: each begins as a program that is found. */
int agent_find(struct agent *a);
/* Those that the rules before left out, and that these do not. */
int agent_find_told(struct agent *a);
/* A state of the first pass: true if it was dealt with. */
bool agent_find_state(struct agent *a, const struct state_signal *s);
bool agent_is_self(const struct agent *a, const struct program_key *key);
/* What was made since the last commit is safe, then the ring's room is the kernel's again. */
void agent_commit(struct agent *a);

/* report.c */
void agent_write_host(struct agent *a);
void agent_write_agent(struct agent *a, const char *event, uint64_t now_ns);

#endif
