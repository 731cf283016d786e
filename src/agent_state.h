/*
 * SPDX-License-Identifier: Apache-2.0
 * agent_state: the one struct that owns all others; shared by agent.c and agent_report.c alone.
 */
#ifndef SLUICE_AGENT_STATE_H
#define SLUICE_AGENT_STATE_H

#include "agent.h"
#include "attach/probes.h"
#include "base/host_id.h"
#include "collect/decode.h"
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
	struct event *on_ring;		/* woken by the kernel side when a quarter is full */
	struct event *on_drain;		/* timer */
	struct event *on_second;	/* timer: snapshot, tick */
	struct event *on_finish;	/* timer, while finishing */

	struct host_id host_id;
	char run_id[128];
	char agent_id[UUID_TEXT_SIZE];
	char *pipeline;
	uint64_t interval_ns;
	uint64_t start_ns;
	uint64_t last_record_ns;	/* of the interval's records */

	struct agent_counts counts;
	uint64_t lost_records_seen;	/* of the kernel's, already turned into holes */
	uint64_t bystanders;		/* of the pass under way */
	uint64_t bystander_threads;
	uint64_t met;			/* followed processes that the pass met */
	uint64_t met_ended;
	bool is_sweeping;		/* states come from the map, not from the kernel's last word */
	uint64_t swept;			/* ends that were made up for */
	uint64_t met_ending;		/* zombies too young to be counted final */
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

uint64_t agent_now_ns(void);		/* CLOCK_BOOTTIME */

/* agent_report.c */
void agent_write_host(struct agent *a, uint64_t now_ns);
void agent_write_agent(struct agent *a, const char *event, uint64_t now_ns);

#endif
