/*
 * SPDX-License-Identifier: Apache-2.0
 * events: the events of processes that fork, exec and end, as the kernel side sends them, and the records
 * that the correlator makes of them.
 */
#ifndef SLUICE_TESTS_UNIT_EVENTS_H
#define SLUICE_TESTS_UNIT_EVENTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/namespaces.h"
#include "rules/rules.h"
#include "correlate/correlator.h"

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define CLOCK_US INT64_C(1700000000000000)	/* wall minus boot */
#define BOOT_ID "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11"

/* A copy of one record. Strings are owned; NULL stays NULL. */
struct kept_record {
	enum topic topic;
	enum record_phase phase;
	int64_t time_us;
	char *run_id, *pipeline, *task_id, *task, *sample;
	struct program_identity id;		/* its strings are program_id and parent_program_id below */
	char *program_id, *parent_program_id;
	char *exe, *comm, *cwd, *tool, *cgroup, *cgroup_v1, *engine, *work_dir, *source;
	char **argv;
	struct program_record program;		/* its pointers are invalid */
	struct work_record work;		/* its pointers are invalid */
	uint64_t interval_ns;
	bool has_usage, has_bill;
	struct usage usage;
	struct bill bill;			/* a program's */
	bool has_group;
	struct group_use group;
	struct finding_record finding;		/* kind, message and the arrays' contents are owned */
};

/* The entries of the write-ahead log, each after its length. */
struct kept_entries {
	char *data;
	size_t len, cap;
	size_t n;
};

struct world {
	struct correlator *c;
	struct kept_record *records;
	size_t n, cap;
	struct kept_entries kept;		/* with a write-ahead log */
	uint64_t now;
	uint32_t next_pid;
};

/* The state of a process in the kernel. */
struct being {
	struct program_key key, parent, anchor;
	uint64_t program_start;
	bool execed;
	struct counters c;
	struct program_context context;
};

static inline char *
record_copy(const char *s)
{
	return s != NULL ? strdup(s) : NULL;
}

static inline struct kept_record *
record_add(struct world *w, enum topic topic, const struct record_head *head)
{
	struct kept_record *n;

	if (w->n == w->cap) {
		w->cap = w->cap > 0 ? 2 * w->cap : 64;
		w->records = realloc(w->records, w->cap * sizeof(*w->records));
	}
	n = &w->records[w->n++];
	memset(n, 0, sizeof(*n));
	n->topic = topic;
	n->time_us = head->time_us;
	n->run_id = record_copy(head->run_id);
	n->pipeline = record_copy(head->pipeline);
	n->task_id = record_copy(head->task_id);
	n->task = record_copy(head->task);
	n->sample = record_copy(head->sample);
	return n;
}

static inline void
record_identity(struct kept_record *n, const struct program_identity *id)
{
	n->id = *id;
	n->program_id = record_copy(id->program_id);
	n->parent_program_id = record_copy(id->parent_program_id);
}

static inline void
record_usage(struct kept_record *n, const struct usage *usage)
{
	n->has_usage = usage != NULL;
	if (usage != NULL)
		n->usage = *usage;
}

static inline void
record_program(const struct program_record *r, void *arg)
{
	struct kept_record *n = record_add(arg, TOPIC_PROGRAM, &r->head);

	n->phase = r->phase;
	n->program = *r;
	record_identity(n, &r->id);
	n->exe = record_copy(r->exe);
	n->comm = record_copy(r->comm);
	n->cwd = record_copy(r->cwd);
	n->tool = record_copy(r->tool);
	n->cgroup = record_copy(r->cgroup);
	n->cgroup_v1 = record_copy(r->cgroup_v1);
	n->source = record_copy(r->task_source);
	if (r->argv != NULL) {
		n->argv = calloc(r->argc + 1, sizeof(*n->argv));
		for (size_t i = 0; i < r->argc; i++)
			n->argv[i] = strdup(r->argv[i]);
	}
	n->has_bill = r->bill != NULL;
	if (r->bill != NULL)
		n->bill = *r->bill;
	record_usage(n, r->usage);
}

static inline void
record_usage_record(const struct usage_record *r, void *arg)
{
	struct kept_record *n = record_add(arg, TOPIC_USAGE, &r->head);

	record_identity(n, &r->id);
	n->comm = record_copy(r->comm);
	n->tool = record_copy(r->tool);
	n->interval_ns = r->interval_ns;
	record_usage(n, r->usage);
}

static inline void
record_work(struct world *w, enum topic topic, const struct work_record *r)
{
	struct kept_record *n = record_add(w, topic, &r->head);

	n->phase = r->phase;
	n->work = *r;
	n->has_group = r->cgroup != NULL;
	if (r->cgroup != NULL)
		n->group = *r->cgroup;
	n->engine = record_copy(r->engine);
	n->work_dir = record_copy(r->work_dir);
	n->source = record_copy(r->source);
	record_usage(n, r->usage);
}

static inline void
record_task(const struct work_record *r, void *arg)
{
	record_work(arg, TOPIC_TASK, r);
}

static inline void
record_run(const struct work_record *r, void *arg)
{
	record_work(arg, TOPIC_RUN, r);
}

static inline void
record_finding(const struct finding_record *r, void *arg)
{
	struct kept_record *n = record_add(arg, TOPIC_FINDING, &r->head);
	struct finding_record *f = &n->finding;
	struct named_number *evidence = calloc(r->n_evidence + 1, sizeof(*evidence));
	const char **causes = calloc(r->n_causes + 1, sizeof(*causes));

	*f = *r;
	for (size_t i = 0; i < r->n_evidence; i++)
		evidence[i] = (struct named_number){ strdup(r->evidence[i].name), r->evidence[i].value };
	for (size_t i = 0; i < r->n_causes; i++)
		causes[i] = strdup(r->causes[i]);
	f->evidence = evidence;
	f->causes = causes;
	f->kind = strdup(r->kind);
	f->message = record_copy(r->message);
	n->program_id = record_copy(r->program_id);
	n->tool = record_copy(r->tool);
}

static inline void
record_finding_free(struct finding_record *f)
{
	for (size_t i = 0; i < f->n_evidence; i++)
		free((char *)f->evidence[i].name);
	for (size_t i = 0; i < f->n_causes; i++)
		free((char *)f->causes[i]);
	free((void *)f->evidence);
	free((void *)f->causes);
	free((char *)f->kind);
	free((char *)f->message);
}

static inline void
records_forget(struct world *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct kept_record *n = &w->records[i];
		char *strings[] = { n->run_id, n->pipeline, n->task_id, n->task, n->sample, n->program_id,
			n->parent_program_id, n->exe, n->comm, n->cwd, n->tool, n->cgroup, n->cgroup_v1,
			n->engine, n->work_dir, n->source };

		for (size_t k = 0; k < sizeof(strings) / sizeof(strings[0]); k++)
			free(strings[k]);
		for (char **arg = n->argv; arg != NULL && *arg != NULL; arg++)
			free(*arg);
		free(n->argv);
		record_finding_free(&n->finding);
	}
	w->n = 0;
}

static inline struct correlator_options
world_options(void)
{
	static struct ruleset *rules;

	if (rules == NULL)
		rules = rules_shipped();
	return (struct correlator_options){ .boot_id = BOOT_ID, .host_id = "host", .rules = rules, .run_id = "run-1", .pipeline = "demo",
		.command = "sh pipeline.sh", .work_dir = "/w",
		.host_memory_bytes = { UINT64_C(8) << 30, true } };
}

static inline void
keep_entry(const void *data, size_t len, void *arg)
{
	struct kept_entries *kept = &((struct world *)arg)->kept;

	if (kept->len + sizeof(len) + len > kept->cap) {
		kept->cap = 2 * (kept->len + sizeof(len) + len);
		kept->data = realloc(kept->data, kept->cap);
	}
	memcpy(kept->data + kept->len, &len, sizeof(len));
	memcpy(kept->data + kept->len + sizeof(len), data, len);
	kept->len += sizeof(len) + len;
	kept->n++;
}

static inline void
forget_kept(struct world *w)
{
	free(w->kept.data);
	w->kept = (struct kept_entries){ 0 };
}

/* Replaces w's correlator by a new one, whose records are appended to w; has_wal: its log is kept too. */
static inline void
world_begin(struct world *w, const struct correlator_options *options, bool has_wal)
{
	const struct correlator_ops ops = { record_program, record_usage_record, record_task, record_run,
		has_wal ? keep_entry : NULL, .finding = record_finding };

	correlator_free(w->c);
	if (correlator_new(options, &ops, w, &w->c) < 0)
		abort();
	correlator_set_clock(w->c, CLOCK_US * 1000);
}

static inline void
world_open_as(struct world *w, const struct correlator_options *options, bool has_wal)
{
	memset(w, 0, sizeof(*w));
	w->now = 1000 * SECOND;
	w->next_pid = 100;
	world_begin(w, options, has_wal);
	correlator_run_start(w->c, w->now);
}

static inline void
world_open(struct world *w, const struct correlator_options *options)
{
	world_open_as(w, options, false);
}

/* Simulates a kill -9 and a restart that replays the write-ahead log. */
static inline void
world_dies(struct world *w, const struct correlator_options *options)
{
	struct kept_entries kept = w->kept;
	struct replayed replayed;
	size_t len;

	w->kept = (struct kept_entries){ 0 };
	world_begin(w, options, true);
	for (size_t at = 0; at < kept.len; at += len) {
		memcpy(&len, kept.data + at, sizeof(len));
		at += sizeof(len);
		if (correlator_replay(w->c, kept.data + at, len) != 0)
			abort();
	}
	correlator_replay_done(w->c, &replayed);
	if (replayed.refused + replayed.incomplete != 0)
		abort();
	forget_kept(w);
	w->kept = kept;
}

static inline void
world_close(struct world *w)
{
	correlator_free(w->c);
	records_forget(w);
	free(w->records);
	forget_kept(w);
}

static inline int64_t
wall_us(uint64_t boot_ns)
{
	return CLOCK_US + (int64_t)(boot_ns / 1000);
}

/* Returns the i-th record of a topic and phase (-1: any), or NULL. */
static inline const struct kept_record *
record_at(const struct world *w, enum topic topic, int phase, size_t i)
{
	for (size_t k = 0; k < w->n; k++) {
		if (w->records[k].topic == topic && (phase < 0 || (int)w->records[k].phase == phase) && i-- == 0)
			return &w->records[k];
	}
	return NULL;
}

static inline size_t
record_count(const struct world *w, enum topic topic, int phase)
{
	size_t n = 0;

	while (record_at(w, topic, phase, n) != NULL)
		n++;
	return n;
}

/* Returns the last START or END of a process's program, by pid and index, or NULL. */
static inline const struct kept_record *
record_of(const struct world *w, const struct being *b, uint32_t index, enum record_phase phase)
{
	const struct kept_record *found = NULL;

	for (size_t i = 0; i < w->n; i++) {
		const struct kept_record *n = &w->records[i];

		if (n->topic == TOPIC_PROGRAM && n->phase == phase && n->id.pid == b->key.pid &&
		    n->id.program_index == index &&
		    n->id.start_time_us == CLOCK_US + (int64_t)(b->key.start_ns / 1000))
			found = n;
	}
	return found;
}

/* Returns whether the record has exactly ms of CPU time. */
static inline bool
record_has_cpu(const struct kept_record *n, uint64_t ms)
{
	return n != NULL && n->has_usage && usage_has(&n->usage, USAGE_CPU_USER_NS) &&
	    usage_cpu_ns(&n->usage) == ms * MS;
}

/* Forks a child; parent NULL: sluice is the parent. */
static inline struct being
forks(struct world *w, const struct being *parent)
{
	struct being b = { .key = { w->now, w->next_pid++, 0 }, .program_start = w->now };

	if (parent != NULL) {
		b.parent = parent->key;
		b.anchor = parent->execed ? parent->key : parent->anchor;
	}
	b.c.threads = b.c.threads_peak = 1;
	b.c.has_peak = b.c.is_complete = true;
	b.context = (struct program_context){ 1000, 1001, NAMESPACE_PID_OF_HOST, 12, 13, 0, 0 };
	return b;
}

/* Runs the process for ms, all in user space; it reads and writes 1 KiB per ms. */
static inline void
works(struct world *w, struct being *b, uint64_t ms)
{
	w->now += ms * MS;
	b->c.runtime_ns += ms * MS;
	b->c.thread_ns += ms * MS;
	b->c.utime += ms;
	b->c.voluntary_switches++;
	b->c.rchar += ms * 1024;
	b->c.wchar += ms * 1024;
	b->c.rss_bytes = ms << 20;
	b->c.anon_bytes = ms << 19;
	if (b->c.peak_rss_bytes < b->c.rss_bytes)
		b->c.peak_rss_bytes = b->c.rss_bytes;
}

/* Fills in the event of an exec of `words`; its text is in the caller's buffers. */
static inline void
exec_event_fill(const struct world *w, struct being *b, char *words, const char **argv, size_t *argv_len,
    char *exe, struct exec_event *s)
{
	*s = (struct exec_event){ .time_ns = w->now, .exe = exe, .cwd = "/w", .argv = argv,
		.argv_len = argv_len, .has_replaced = b->execed, .replaced = b->c, .context = b->context };
	if (b->execed)
		b->key.index++;
	b->execed = true;
	b->program_start = b->key.index > 0 ? w->now : b->key.start_ns;
	b->c.peak_rss_bytes = b->c.rss_bytes = b->c.anon_bytes = 0;
	s->self = b->key;
	s->parent = b->parent;
	s->anchor = b->anchor;
	s->ppid = b->parent.pid;
	for (char *save, *word = strtok_r(words, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
		for (char *p = word; *p != '\0'; p++)
			*p = *p == '_' ? ' ' : *p == '~' ? '_' : *p;	/* _ is a blank in a word, ~ is _ */
		argv_len[s->argc] = strlen(word);
		argv[s->argc++] = word;
	}
	snprintf(exe, 256, "/usr/bin/%s", argv[0]);
	snprintf(s->comm, sizeof(s->comm), "%.15s", argv[0]);
}

static inline void
execs(struct world *w, struct being *b, const char *command)
{
	char words[1024], exe[256];
	const char *argv[64];
	size_t argv_len[64];
	struct exec_event s;

	snprintf(words, sizeof(words), "%s", command);
	exec_event_fill(w, b, words, argv, argv_len, exe, &s);
	correlator_exec(w->c, &s);
}

/* Execs, but the event is lost. */
static inline void
execs_unheard(struct world *w, struct being *b)
{
	char words[] = "lost", exe[256];
	const char *argv[64];
	size_t argv_len[64];
	struct exec_event s;

	exec_event_fill(w, b, words, argv, argv_len, exe, &s);
}

static inline struct state_event
state_of(const struct world *w, const struct being *b, enum state_kind kind, int status)
{
	struct state_event s = { .kind = kind, .time_ns = w->now, .self = b->key, .parent = b->parent,
		.anchor = b->anchor, .program_start_ns = b->program_start, .status = status,
		.ppid = b->parent.pid, .has_execed = b->execed, .counters = b->c };

	if (kind != STATE_LIVE)
		s.end_ns = w->now;
	if (!b->execed) {
		s.has_context = true;
		s.context = b->context;
	}
	s.counters.is_reaped = kind == STATE_EXIT;
	strcpy(s.comm, "kernel-comm");
	return s;
}

static inline void
tells(struct world *w, const struct being *b, enum state_kind kind, int status)
{
	struct state_event s = state_of(w, b, kind, status);

	correlator_state(w->c, &s);
}

static inline void
exits(struct world *w, const struct being *b, int code)
{
	tells(w, b, STATE_EXIT, code << 8);
}

/* Simulates a pass over these processes; with_usage as in correlator_snapshot_begin(). */
static inline void
snapshot(struct world *w, bool with_usage, const struct being *const *beings, size_t n)
{
	correlator_snapshot_begin(w->c, with_usage);
	for (size_t i = 0; i < n; i++)
		tells(w, beings[i], STATE_LIVE, 0);
	correlator_snapshot_end(w->c, w->now);
}

static inline struct run_totals
totals(const struct world *w)
{
	return correlator_totals(w->c, w->now);
}

#endif
