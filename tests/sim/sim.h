/*
 * SPDX-License-Identifier: Apache-2.0
 * sim: a simulation of what is below the agent's loop: the real spool, delivery, dead letters, registry client and
 * Kafka output, on a disk, a clock, threads, a cluster and a registry that are models. One seed is one history.
 *
 * A life is one process of the agent: a child of the test, which a kill ends at any call. All that outlives it (the
 * disk, the cluster, the registry, the kernel's ring, what the checks know) is in memory that lives share, in `world`.
 *
 *	main.c		seeds, histories and lives
 *	life.c		one life: opens the stages as the daemon does, and does a step after the other
 *	agent.c		a small model of the agent above the spool: programs, their records and the write-ahead log
 *	weather.c	what breaks, when and for how long
 *	check.c		what must be so
 *	disk.c		files and folders, as they are for processes and as they are on the disk
 *	calls.c		calls of the C library on files
 *	folders.c	the same on folders and names
 *	threads.c	threads, of which one runs at a time; the clocks; random numbers
 *	loop.c		the event loop
 *	producer.c	librdkafka's producer, as far as src/kafka calls it; producer_calls.c: the calls
 *	topics.c	librdkafka's calls on topics
 *	cluster.c	brokers: topics, rights, partitions, refusals
 *	versions.c	topics of two versions of the agent
 *	schemas.c	the registry's server, and src/http in front of it
 */
#ifndef SLUICE_TESTS_SIM_SIM_H
#define SLUICE_TESTS_SIM_SIM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "model/record.h"

struct output_events;
struct output;
struct spool_record;

/* Declares a call that the linker redirects here (CMakeLists.txt), and the one that it replaces. */
#define SIM_WRAP(type, name, ...)		\
	type __real_##name(__VA_ARGS__);	\
	type __wrap_##name(__VA_ARGS__);	\
	type __wrap_##name(__VA_ARGS__)

typedef unsigned long long llu;	/* what %llu prints */

#define SIM_MS INT64_C(1000)
#define SIM_S INT64_C(1000000)
#define SIM_MINUTE (60 * SIM_S)
#define SIM_HOUR (60 * SIM_MINUTE)

enum {
	SIM_SECTOR = 512,
	SIM_FILE_MAX = 512 << 10,
	SIM_FILES = 1024,
	SIM_NAMES = 1024,
	SIM_NAME_SIZE = 112,
	SIM_CHANGES = 1024,
	SIM_SEQS = 6000,		/* records of a topic in one history */
	SIM_PROGRAMS = 512,
	SIM_RING = 4096,		/* events of one boot */
	SIM_TOPICS = TOPIC_COUNT + 1,	/* those of two versions of the agent, which differ in one */
	SIM_PARTITIONS = 2,
	SIM_SCHEMAS = 2,		/* versions of each topic's schema */
	SIM_FORMER = 8,
	SIM_BATCH = 32,			/* messages of one request */
	SIM_REQUESTS = 64,
	SIM_PRODUCERS = 4096,
	SIM_STEPS_MAX = 2000000,	/* of one history */
};

/* --- the disk --- */

struct sim_inode {
	bool is_used;
	bool is_dir;
	unsigned names;			/* in the folders as processes see them */
	unsigned opens;
	uint64_t size, durable_size;
	uint64_t touched;		/* no byte from here on was ever written */
	struct sim_contents *contents;
};

struct sim_contents {
	uint8_t is_dirty[SIM_FILE_MAX / SIM_SECTOR];
	uint8_t data[SIM_FILE_MAX];	/* as processes see it */
	uint8_t durable[SIM_FILE_MAX];	/* as the disk has it */
};

struct sim_name {
	int dir;
	int inode;
	char name[SIM_NAME_SIZE];
};

/* A change of a folder that the disk does not have yet. */
struct sim_change {
	int dir;
	int inode;			/* of from; -1: from is removed */
	char from[SIM_NAME_SIZE];	/* a name that is added, or removed */
	char to[SIM_NAME_SIZE];		/* not "": from is renamed to it */
};

struct sim_names {
	struct sim_name list[SIM_NAMES];
	size_t n;
};

struct sim_disk {
	struct sim_inode inodes[SIM_FILES];
	struct sim_names seen, durable;
	struct sim_change changes[SIM_CHANGES];
	size_t n_changes;
	bool keeps_order;		/* changes of folders reach the disk in their order, as with ext4 */
	bool is_full;
	bool had_faults;		/* in this history */
	bool has_lost;			/* a sync failed since the last power cut */
	unsigned write_errors;		/* of 1,000 writes */
	unsigned sync_errors;
	int64_t sync_us;		/* how long a sync takes at most */
	int64_t call_us;		/* how long any other call takes at most */
	int64_t hangs_until_us;		/* no call returns before */
	int64_t healed_us;		/* when writes last began to succeed again, or it hung no longer; 0: never */
	struct sim_contents contents[SIM_FILES];
};

/* --- the cluster --- */

/* What a broker is sent of a message. */
struct sim_message {
	unsigned topic;
	unsigned partition;
	uint64_t seq;
	uint64_t hash;			/* of the record's bytes */
	int32_t schema_id;
	int64_t time_ms;		/* -1: none */
	size_t bytes;
	bool is_again;
	bool is_poison;			/* no broker takes it */
};

enum sim_request_state {
	SIM_REQUEST_FREE,
	SIM_REQUEST_SENT,		/* on its way to a broker */
	SIM_REQUEST_ANSWERED,		/* the answer is on its way to the producer */
};

/* A batch on its way: it may arrive although its producer is gone. */
struct sim_request {
	enum sim_request_state state;
	bool is_forgotten;		/* the producer waits for no answer */
	bool is_lost;			/* the answer will not arrive */
	uint64_t id;
	unsigned client;		/* a producer, and its epoch */
	unsigned epoch;
	unsigned partition;
	unsigned topic;
	uint64_t sequence;		/* of its first message */
	int64_t at_us;			/* when it arrives */
	int64_t sent_us;
	int error;			/* of the answer: librdkafka's */
	bool names_record;		/* the answer names the records at fault */
	int64_t offset;			/* of the answer; -1: none */
	size_t n, bytes;
	struct sim_message messages[SIM_BATCH];
};

struct sim_topic {
	bool is_there;
	bool may_write;
	bool may_describe;
	bool has_leader[SIM_PARTITIONS];
	int64_t log[SIM_PARTITIONS];	/* messages so far */
	unsigned client[SIM_PARTITIONS];	/* the one that wrote last, its epoch and its next sequence */
	unsigned epoch[SIM_PARTITIONS];
	uint64_t sequence[SIM_PARTITIONS];
};

struct sim_cluster {
	bool is_up;
	bool may_create;
	unsigned lost_requests;		/* of 1,000 */
	unsigned lost_answers;
	unsigned fatal;			/* requests of 1,000 after which their producer is of no use */
	unsigned forgets;		/* requests of 1,000 that a restarted broker forgets */
	int64_t rtt_us;
	int64_t ahead_max_us;		/* of a message's time, before it is refused; 0: no limit */
	int64_t clock_us;		/* the brokers' own wall clock minus the true one */
	size_t batch_max;		/* bytes; 0: no limit */
	struct sim_topic topics[SIM_TOPICS];
	struct sim_request requests[SIM_REQUESTS];
	uint64_t next_request;
	unsigned next_client;
};

/* --- the registry --- */

/* An id that a schema had before. */
struct sim_former {
	int32_t id;			/* 0: none */
	unsigned life;			/* in which it was replaced, or before which */
	int64_t since_us;		/* of answers_us: it is no longer valid */
	int64_t most_us;		/* for how long the agent may not know that, while the registry answers */
};

struct sim_schema {
	int32_t id;			/* 0: not registered */
	struct sim_former former[SIM_FORMER];	/* the last one first */
};

struct sim_registry {
	bool is_up;
	int64_t answers_us;		/* for how long it was up while an agent lived */
	int64_t life_us;		/* answers_us as this life began to ask */
	bool was_down;			/* since then */
	int64_t slow_us;		/* until when it was slow */
	int64_t delay_us;
	int refuses[SIM_TOPICS];	/* status of the answers; 0: it has an id */
	int32_t next_id;
	struct sim_schema schemas[SIM_TOPICS][SIM_SCHEMAS];
};

/* --- programs, in the kernel --- */

enum sim_event_kind {
	SIM_EVENT_START,
	SIM_EVENT_END,
};

struct sim_event {
	enum sim_event_kind kind;
	unsigned program;
	uint64_t total;			/* with END */
};

struct sim_program {
	bool is_alive;
	bool is_excused;
	uint64_t used;			/* so far */
	bool has_ended;			/* its END was delivered */
	uint64_t total, rest;		/* as its END has it */
	uint64_t sum;			/* of the Usage that was delivered */
};

struct sim_kernel {
	char boot_id[37];
	uint32_t ring_id;
	struct sim_event ring[SIM_RING];
	uint64_t written;
	uint64_t released;
};

/* --- what the checks know --- */

enum sim_durable {
	SIM_NOT_PUT,
	SIM_PUT,		/* may be gone after any end of a life */
	SIM_COMMITTED,		/* survives a kill */
	SIM_SYNCED,		/* survives a power cut */
	SIM_PERHAPS,		/* a life ended before it was known to survive that */
};

struct sim_record {
	uint8_t durable;	/* enum sim_durable */
	uint8_t schema;
	bool is_poison;
	bool was_cut;		/* it was committed and not known to be synced in a power cut */
	bool was_out;		/* an output or a dead letter had it */
	bool is_excused, was_excused;	/* it was handed over while it was in memory only */
	bool is_unmarked;	/* it was handed over while writes failed */
	bool is_dead;
	bool is_letter;		/* the dead letter is there at the end */
	bool is_lost;		/* it was to be a dead letter, and the disk did not take it */
	uint16_t arrived;	/* how often brokers have taken it */
	uint64_t hash;
	int64_t put_us;
	unsigned life;		/* in which it was put */
	unsigned program;	/* of Usage and END */
	uint64_t used;		/* Usage: the difference; END: the rest */
	uint64_t total;		/* END: the total */
};

struct sim_topic_check {
	uint64_t next;			/* seq */
	uint64_t first[SIM_PERHAPS + 1];	/* no record below is in that state */
	uint64_t delivered_below;
	uint64_t newest[SIM_PARTITIONS];	/* the highest seq + 1 that came without a mark */
	int64_t healthy_since_us;	/* INT64_MAX: the topic cannot be delivered now */
	struct sim_record records[SIM_SEQS];
};

struct sim_checks {
	struct sim_topic_check topics[SIM_TOPICS];
	bool is_memory_only;		/* something committed is in memory only, since the disk refused it */
	bool was_memory_only;		/* that was so when a life ended, and nothing was committed since */
	bool has_gap;			/* the next agent still has to know of one */
	bool had_power_cut;		/* in this history */
	uint64_t delivered, redelivered, dead, lives, kills, power_cuts;
};

enum sim_end {
	SIM_END_CLOSED,		/* exit statuses of a life */
	SIM_END_KILLED,
	SIM_END_BROKEN,		/* a check failed */
};

struct sim_world {
	uint64_t seed;
	uint64_t random;
	int64_t now_us;			/* CLOCK_MONOTONIC */
	int64_t wall_us;		/* CLOCK_REALTIME minus that */
	int64_t boot_us;		/* CLOCK_BOOTTIME minus that */
	unsigned life;
	bool is_newer;			/* the agent's version: it has another topic in place of one */
	bool has_versions;		/* both are used in this history */
	bool is_lasting;		/* all faults are of one topic each, and last */
	bool is_last;			/* nothing breaks any more, and all is to be delivered */
	int64_t ends_us;		/* when the life ends */
	uint64_t kill_in;		/* calls until it is killed, or those that change the disk; 0: it is not */
	bool kills_at_changes;
	bool closes;			/* it stops by itself instead */
	uint64_t steps;
	uint64_t trace;			/* a hash of all that happened, to compare two runs of a seed */
	struct sim_kernel kernel;
	struct sim_program programs[SIM_PROGRAMS];
	unsigned n_programs;
	struct sim_cluster cluster;
	struct sim_registry registry;
	struct sim_checks checks;
	int64_t calm_since_us;		/* nothing that concerns all topics is broken; INT64_MAX: something is */
	struct {
		uint32_t climate;	/* kinds that there are */
		int64_t each_us, next_us;
		int64_t until_us[32];	/* 0: it is well */
		unsigned arg[32];
	} weather;
	int64_t programs_us;		/* when programs do something again */
	struct sim_disk disk;
};

extern struct sim_world *world;
extern int sim_verbose;	/* 1: what happens; 2: to each record, too */

/* --- main.c --- */

/* Prints a line of the history, if it is to be seen: what happens, or what happens to a record. */
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_say_record(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the life as broken, because something that must be so is not. */
_Noreturn void sim_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define sim_check(is_so, ...) do { if (!(is_so)) sim_broken(__VA_ARGS__); } while (0)

/* --- threads.c --- */

/* Returns a random number below n, or true in n of 1,000 cases. */
uint64_t sim_below(uint64_t n);
bool sim_dice(unsigned n);
/* A call that may be the life's last. */
void sim_point(void);
/* The same for a call that changes the disk. Lets another thread run, if this one is not the loop's. */
void sim_point_of_change(void);
/* Advances the clock. */
void sim_pass(int64_t us);
/* Notes that something happened, for the trace. */
void sim_note(uint64_t what);
/* Whether any thread could run now, and lets one of them run up to its next call. */
bool sim_threads_ready(void);
void sim_threads_step(void);
/* Returns when the next thread can run by itself; INT64_MAX: none. */
int64_t sim_threads_next_us(void);
/* Makes the calling thread wait until a time. */
void sim_wait_until(int64_t us);
/*
 * A call on the disk waits until it no longer hangs, and longer on a slow one; one that reads may find what it reads in
 * memory. The loop may not wait while sim_is_looping.
 */
void sim_disk_wait(void);
void sim_disk_wait_to_read(void);
void sim_disk_wait_to_write(int inode, const void *data, size_t len, uint64_t at);
extern bool sim_is_looping;
/* Ends the life. A write that waits for the disk is made after all, or not. */
_Noreturn void sim_killed(void);

/* --- versions.c --- */

/* Returns which of all topics the agent has at an index of its own; and the name of one of them. */
unsigned sim_topic(enum topic topic);
const char *sim_topic_name(unsigned topic);

/* --- disk.c --- */

void sim_disk_init(struct sim_disk *d);
/* The disk as it is after a power cut. */
void sim_disk_cut(struct sim_disk *d);
/* Writes some of what is dirty, at random. */
void sim_disk_write_back(struct sim_disk *d);
int sim_disk_find(const struct sim_disk *d, int dir, const char *name);
int sim_disk_parent(const struct sim_disk *d, int dir);
int sim_disk_make(struct sim_disk *d, int dir, const char *name, bool is_dir);
void sim_disk_remove(struct sim_disk *d, int dir, const char *name);
void sim_disk_rename(struct sim_disk *d, int dir, const char *from, const char *to);
/* Each returns what the call returns, or a negative errno. */
ssize_t sim_disk_write(struct sim_disk *d, int inode, const void *data, size_t len, uint64_t at);
ssize_t sim_disk_read(const struct sim_disk *d, int inode, void *data, size_t len, uint64_t at);
int sim_disk_resize(struct sim_disk *d, int inode, uint64_t size);
int sim_disk_sync(struct sim_disk *d, int inode);
void sim_disk_free_unused(struct sim_disk *d, int inode);
/* Writes a file that is on the disk at once, such as one of /proc. */
void sim_disk_put(struct sim_disk *d, const char *path, const char *text);

/* --- calls.c --- */

/* An eventfd: whether it is readable, and a write by the models. */
bool sim_fd_is_readable(int fd);
void sim_fd_wake(int fd);
/* Checks that at most these are open, after all was closed. */
unsigned sim_fds_open(void);

/* --- loop.c --- */

/* Whether an event is ready, and runs the callback of one. */
bool sim_loop_ready(void);
void sim_loop_step(void);
int64_t sim_loop_next_us(void);

/* --- producer.c, cluster.c, schemas.c --- */

/* What is due at the present time; and when the next is. */
void sim_producers_work(void);
/* Returns a request that is to be filled and sent; NULL: too many are on their way. */
struct sim_request *sim_cluster_request(struct sim_cluster *c);
void sim_cluster_send(struct sim_cluster *c, struct sim_request *q);
/* No process waits for any answer any more. */
void sim_cluster_forget(struct sim_cluster *c);
int64_t sim_producers_next_us(void);
void sim_cluster_init(struct sim_cluster *c);
void sim_cluster_work(struct sim_cluster *c);
int64_t sim_cluster_next_us(const struct sim_cluster *c);
void sim_registry_init(struct sim_registry *r);
/* Another registry takes its place: all ids are new, or that of one schema. */
void sim_registry_replace(struct sim_registry *r);
void sim_registry_renumber(struct sim_registry *r, unsigned topic, unsigned version);
void sim_registry_work(void);
int64_t sim_registry_next_us(void);
/* The text of a schema's version; static. */
const char *sim_schema_text(unsigned topic, unsigned version);

/* --- weather.c --- */

void sim_weather_init(void);
/* Breaks and repairs what is due. */
void sim_weather_work(void);
int64_t sim_weather_next_us(void);
/* Between two lives. */
void sim_weather_pause(void);
/* Repairs everything. */
void sim_weather_calm(void);

/* --- agent.c --- */

struct sim_agent;
struct spool;
/* Restores the state of the agent before from the spool. */
struct sim_agent *sim_agent_open(struct spool *spool, unsigned schema);
void sim_agent_close(struct sim_agent *a);
/* Reads the ring, or measures what programs used; both commit. */
void sim_agent_drain(struct sim_agent *a);
void sim_agent_measure(struct sim_agent *a);
/* Programs of the host begin, work and end; whether an agent runs or not. */
void sim_programs_work(void);

/* --- life.c --- */

/* One life, from its start to its end. */
enum sim_end sim_life(void);

/* --- check.c --- */

/* What happens to records, in the agent's order of events. */
void sim_check_put(unsigned topic, uint64_t seq, const struct sim_record *r);
/* To be called before each commit. */
void sim_check_commits(void);
/* error: of the commit. The spool may have it in memory only. */
void sim_check_committed(int error, struct spool *s);
/* The ring was released further than the spool has batches of it. */
void sim_check_gap(void);
/* No agent has to know of it any more. */
void sim_check_gap_told(void);
void sim_check_synced(const uint64_t next_seq[TOPIC_COUNT]);
/* The spool is closed, without an error. */
void sim_check_closed(void);
void sim_check_handed_over(const struct spool_record *r);
void sim_check_opened(struct spool *s);
/* For the first time. Its id is the one that the registry has, or had so lately that the agent may not know. */
void sim_check_sent(const struct sim_message *m);
/* is_late: its producer had given it up, and the network brings it after all. */
void sim_check_arrived(const struct sim_message *m, bool is_late);
/* error: of the dead letter, which is not 0 where it could not be written. */
void sim_check_dead(unsigned topic, uint64_t seq, uint64_t hash, const char *reason, int error);
/* A dead letter is there at the end. */
void sim_check_letter(const char *topic, uint64_t seq, uint64_t hash);
/* After each step: that no topic waits for another. */
void sim_check_progress(struct spool *s);
/* A life has ended, and the machine lost its power or not. */
void sim_check_ended(enum sim_end end, bool is_power_cut);
/* At the end of the history: nothing is missing. */
void sim_check_all(void);
uint64_t sim_hash(const void *data, size_t len);

#endif
