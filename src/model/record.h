/*
 * SPDX-License-Identifier: Apache-2.0
 * record: the plain values that correlate/ hands to stream/, one struct a topic.
 *
 * Every string is NUL-terminated, valid UTF-8 and owned by the code that filled the struct; NULL is
 * Avro's null. Times are microseconds since 1970 UTC, durations nanoseconds, sizes bytes. An
 * optional number is a struct opt_u64; 0 never stands for "unknown".
 */
#ifndef SLUICE_MODEL_RECORD_H
#define SLUICE_MODEL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/bill.h"
#include "model/group_use.h"
#include "model/opt.h"
#include "model/usage.h"

#define RECORD_SCHEMA_VERSION 11

/* The topics, in the order of their names in topic_name(). */
enum topic {
	TOPIC_PROGRAM,
	TOPIC_USAGE,
	TOPIC_TASK,
	TOPIC_RUN,
	TOPIC_HOST,
	TOPIC_FINDING,
	TOPIC_AGENT,
	TOPIC_COUNT,
};

/* The part of the common fields that varies; host, agent, seq and version are the stream's. */
struct record_head {
	int64_t time_us;
	const char *run_id;
	const char *pipeline;
	const char *task_id;
	const char *task;
	const char *sample;
	struct opt_u64 user;		/* whose share it takes; no field of the record; unknown: no user's */
};

enum record_phase {
	PHASE_START,
	PHASE_LIVE,	/* Task, Run and Agent only */
	PHASE_END,
};

enum end_reason {
	END_REASON_NONE,	/* null: not ended */
	END_REASON_EXIT,
	END_REASON_EXEC,
};

/* What limited a task or run, in one word that follows from demand and denied: correlate/bound.h. */
enum bound {
	BOUND_NONE,		/* null: too short or too little known to say */
	BOUND_COMPUTE,
	BOUND_MEMORY,
	BOUND_IO,
	BOUND_NETWORK,
	BOUND_STARVED,
	BOUND_IDLE,
	BOUND_MIXED,
};

/* What a piece of work would be bound by on an idle host; correlate/demand.h defines each. */
enum demand {
	DEMAND_NONE,
	DEMAND_COMPUTE,
	DEMAND_MEMORY,
	DEMAND_STORAGE,
	DEMAND_NETWORK_FS,
	DEMAND_NETWORK,
	DEMAND_WAITING_FOR,
	DEMAND_MIXED,
	DEMAND_KINDS,
};

/* What neighbours or limits took from it. */
enum denied {
	DENIED_NONE,			/* unknown */
	DENIED_NOTHING,			/* too little to name */
	DENIED_RUN_QUEUE,
	DENIED_THROTTLED,
	DENIED_RECLAIM,
	DENIED_IO,
	DENIED_KINDS,
};

/* From what the most memory of several programs follows. */
enum peak_source {
	PEAK_UNKNOWN,
	PEAK_OF_PASS,			/* their sum in a pass */
	PEAK_OF_PROGRAM,		/* the high-water mark of one, beside those that lived at its end */
	PEAK_SOURCES,
};

/* By what energy was metered; collect/meter.h defines each. */
enum energy_source {
	ENERGY_UNKNOWN,			/* by nothing */
	ENERGY_POWERCAP,
	ENERGY_HWMON,
	ENERGY_HWMON_POWER,
	ENERGY_SOURCES,
};

struct verdict {
	enum demand demand;
	struct opt_double confidence;	/* 0 to 1 */
	const char *waiting_for;	/* of WAITING_FOR: the largest part of its bill that is a wait; static */
	enum denied denied;
	struct opt_double denied_share;	/* of all that it took, 0 to 1 */
};

/* The shares behind a bound: parts of wall time, 0 to 1. */
struct bound_shares {
	struct opt_double cpu;		/* on a CPU */
	struct opt_double run_delay;	/* runnable, waiting for a CPU */
	struct opt_double block_io;	/* waiting for block I/O; unknown without delay accounting */
	struct opt_double memory;	/* peak RSS as a part of the memory limit or of the host's memory */
	struct opt_double idle;		/* the rest */
};

/* Which program: shared by Program and Usage. */
struct program_identity {
	uint32_t pid;
	uint32_t ppid;
	int64_t start_time_us;		/* the process's */
	int64_t program_start_time_us;
	uint32_t program_index;
	const char *program_id;
	const char *parent_program_id;
	bool forked;			/* never exec'd: exe is the parent's */
};

/* A variable of the environment, by a name that the configuration lists. */
struct named_text {
	const char *name;
	const char *value;
};

struct program_record {
	struct record_head head;
	enum record_phase phase;	/* START or END */
	struct program_identity id;
	/* what */
	const char *exe;
	const char *comm;
	const char *const *argv;	/* NULL: unknown, which is not the same as argc 0 */
	size_t argc;
	bool argv_truncated;
	const char *cwd;
	const char *tool;
	const char *tool_rule;
	struct opt_u64 uid;
	struct opt_u64 gid;
	/* where */
	const char *cgroup;		/* the v2 path, or where that is "/" the v1 one */
	const char *cgroup_v1;		/* memory hierarchy; NULL where v1 is not mounted */
	const char *container_id;
	const char *container_runtime;
	const char *container_name;	/* from the runtime's socket or arguments */
	const char *container_image;
	const char *k8s_pod_uid;
	const char *k8s_pod_name;	/* from the kubelet, as the next two */
	const char *k8s_namespace;
	const char *k8s_container_name;
	struct opt_u64 pid_ns;
	struct opt_u64 mnt_ns;
	struct opt_u64 net_ns;
	const char *scheduler;
	const char *job_id;
	const char *job_step;
	/* trace */
	const char *trace_id;
	const char *span_id;
	const struct named_text *variables;
	size_t n_variables;
	/* evidence */
	bool overhead;			/* the engine's own doing, no work of a task */
	const char *run_source;
	const char *task_source;
	struct opt_double confidence;	/* 0 to 1 */
	/* when it was found running; known: what it used before that is not in usage */
	struct opt_u64 observed_time_us;
	/* at END */
	struct opt_u64 end_time_us;
	enum end_reason end_reason;
	struct opt_i32 exit_code;	/* null when a signal ended it or exec replaced it */
	struct opt_i32 exit_signal;
	bool core_dumped;
	bool oom_killed;
	const struct usage *usage;	/* NULL at START */
	const struct bill *bill;	/* of its threads; NULL at START, and if it is not known */
};

struct usage_record {
	struct record_head head;
	struct program_identity id;
	const char *comm;
	const char *tool;
	uint64_t interval_ns;
	const struct usage *usage;	/* differences; rss, peak and threads are levels */
};

/* Task and Run: two topics, one shape. */
struct work_record {
	struct record_head head;
	enum record_phase phase;
	const char *run_name;		/* Run: as the engine or its user calls this execution */
	const char *scheduler;		/* whose job it is, or runs in */
	const char *job_id;
	const char *parent_run_id;	/* Run: that of the job that it runs in */
	struct opt_u64 uid;		/* Run: who started it */
	const char *engine;		/* sluice, nextflow, snakemake, slurm ... */
	const char *command;		/* Run: the driver's command line; Task: null */
	int64_t start_time_us;
	struct opt_u64 end_time_us;
	struct opt_i32 attempt;
	const char *work_dir;
	const char *source;		/* the evidence for this task or run */
	struct opt_double confidence;
	struct opt_double requested_cpus;
	struct opt_u64 requested_memory_bytes;
	const struct usage *usage;	/* summed over its programs; peak_rss is the largest program's */
	uint64_t wall_ns;
	double parallelism;		/* CPU time / wall */
	uint64_t programs;
	uint64_t live_programs;
	uint64_t failed_programs;	/* ended with a code other than 0, or by a signal */
	uint64_t lost_events;		/* kernel events known to be lost while it ran */
	struct opt_i32 exit_code;
	struct opt_i32 exit_signal;
	enum bound bound;
	struct bound_shares shares;
	struct verdict verdict;
	struct bill bill;		/* of its programs' threads */
	struct bill own_bill;		/* of its wall time */
	struct opt_u64 memory_bytes;	/* of its live programs together; see correlate/memory.h */
	struct opt_u64 peak_memory_bytes;
	enum peak_source peak_memory_source;
	struct opt_u64 energy_uj;	/* its share; see correlate/energy.h */
	enum energy_source energy_source;
	const struct group_use *cgroup;	/* of a task that has one to itself; NULL: unknown */
};

/* One resource's pressure stall figures: share of time since the last record, 0 to 1. */
struct pressure {
	struct opt_double some;
	struct opt_double full;
};

struct host_record {
	struct record_head head;
	uint64_t interval_ns;		/* that the differences below cover; CLOCK_BOOTTIME, includes suspend */
	const char *kernel;
	const char *architecture;
	uint32_t cpus;			/* online */
	uint64_t memory_bytes;
	uint64_t memory_available_bytes;
	uint64_t swap_bytes;
	uint64_t swap_free_bytes;
	uint64_t processes;
	uint64_t threads;
	/* CPU time of the whole host in the interval, and the part of it that runs account for */
	uint64_t cpu_capacity_ns;	/* cpus x interval */
	uint64_t cpu_busy_ns;		/* user + nice + system + irq + softirq, guests included; resolution USER_HZ */
	uint64_t cpu_iowait_ns;
	uint64_t cpu_steal_ns;
	uint64_t cpu_attributed_ns;
	uint64_t cpu_unattributed_ns;	/* busy - attributed, not below 0 */
	uint64_t rss_attributed_bytes;	/* now, of the programs of runs that are alive */
	double load1;
	struct pressure psi_cpu;	/* unknown with psi=0; there is no full for a host's CPUs */
	struct pressure psi_memory;
	struct pressure psi_io;
	/* whole disks only: no partitions, loop, ram and zram, and no dm and md made of others */
	struct opt_u64 disk_read_bytes;
	struct opt_u64 disk_write_bytes;
	struct opt_u64 disk_read_attributed_bytes;
	struct opt_u64 disk_write_attributed_bytes;
	struct opt_u64 net_rx_bytes;	/* see host_open() in collect/host.h */
	struct opt_u64 net_tx_bytes;
	struct opt_u64 net_rx_attributed_bytes;	/* the runs' sockets, lo too */
	struct opt_u64 net_tx_attributed_bytes;
	const char *instance_type;
	struct opt_double price_per_hour;
	const char *cloud;
	const char *region;
	const char *lifecycle;		/* on-demand, spot ... */
	const char *cpu_model;
	/* energy of the interval in microjoules; the last three add up to the first */
	struct opt_u64 energy_uj;
	enum energy_source energy_source;
	struct opt_u64 energy_attributed_uj;	/* to runs */
	struct opt_u64 energy_unattributed_uj;	/* CPU time of no run */
	struct opt_u64 energy_idle_uj;
};

/* A named number: evidence, a loss, a cost. */
struct named_number {
	const char *name;
	double value;
};

enum finding_severity {
	SEVERITY_INFO,
	SEVERITY_WARNING,
	SEVERITY_ERROR,
};

struct finding_record {
	struct record_head head;
	const char *kind;		/* FAILED, OOM_KILLED, KILLED, STUCK, IDLE, THROTTLED, DISK_FULL ... */
	enum finding_severity severity;
	const char *program_id;
	const char *tool;
	const char *message;
	const struct named_number *evidence;
	size_t n_evidence;
	const char *const *causes;	/* program ids, nearest first */
	size_t n_causes;
};

struct agent_loss {
	const char *place;		/* the BPF program or the stage */
	const char *reason;
	uint64_t count;			/* since the agent started */
};

#define USER_LOSSES 16	/* users at most, of which losses are listed */

/* What was lost of a user's programs: in the kernel since its maps were made, else since the agent began. */
struct user_loss {
	uint64_t uid;
	uint64_t refused;		/* programs, runs, tasks, facts and findings for which there was no room */
	uint64_t lost;			/* events and records for which there was no room */
	uint64_t cut;			/* texts that were cut or not read, and those over which the rules gave up */
};

struct agent_probe {
	const char *name;
	uint64_t runs;
	struct opt_u64 run_time_ns;	/* null unless kernel.bpf_stats_enabled */
};

struct agent_record {
	struct record_head head;
	const char *event;		/* START, LIVE, RELOAD, RELOAD_FAILED, STOP, GAP */
	const char *version;
	uint64_t config_generation;
	uint64_t interval_ns;
	const struct named_number *events;	/* by kind, since start */
	size_t n_events;
	const struct agent_loss *lost;
	size_t n_lost;
	const struct user_loss *lost_by_user;	/* by sum, largest first */
	size_t n_lost_by_user;
	const struct agent_probe *probes;
	size_t n_probes;
	struct opt_u64 spool_records;
	struct opt_u64 spool_bytes;
	struct opt_u64 spool_age_ns;
	uint64_t delivered;		/* records that the output has for good */
	uint64_t retried;
	uint64_t cpu_ns;		/* the agent's own, since start */
	uint64_t rss_bytes;
	const char *message;
};

const char *topic_name(enum topic topic);		/* "sluice.program" ... */
/* Returns "START", "LIVE" or "END". */
const char *record_phase_name(enum record_phase phase);
const char *end_reason_name(enum end_reason reason);	/* NULL for NONE */
const char *bound_name(enum bound bound);		/* NULL for NONE */
const char *demand_name(enum demand demand);		/* NULL for NONE */
const char *denied_name(enum denied denied);		/* NULL for NONE */
const char *peak_source_name(enum peak_source source);	/* NULL for UNKNOWN */
const char *energy_source_name(enum energy_source source);	/* likewise */
/* Returns the name of a part of a bill, in capitals: "BLOCK_IO". */
const char *bill_part_name(enum bill_part part);
/* Returns "INFO", "WARNING" or "ERROR". */
const char *finding_severity_name(enum finding_severity severity);

/* The fields with which each record of a stream begins. Functions that take one copy the strings. */
struct agent_identity {
	const char *host_id;
	const char *host_name;
	const char *boot_id;
	const char *agent_id;
	uint64_t first_seq[TOPIC_COUNT];	/* the next number of an agent_id that continues; otherwise 0 */
};

/* One record as it is stored and sent. Functions that take one copy the bytes that it points to. */
struct encoded_record {
	enum topic topic;
	int64_t time_us;
	uint64_t seq;		/* the record's own */
	const char *key;	/* "<host_id>:<run_id>" */
	const void *data;	/* Avro binary, without framing */
	size_t len;
	struct opt_u64 user;	/* whose share it takes; unknown: no user's */
	bool is_end;		/* no later record has what it has */
	bool is_over;		/* of the lake: its user has its share there (lake/share.h) */
};

#endif
