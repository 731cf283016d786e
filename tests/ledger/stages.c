/*
 * SPDX-License-Identifier: Apache-2.0
 * ledger-stages STAGE RECORDS passes that many records through one stage, the same ones each time. Runs of two
 * lengths differ in instructions by the cost of the additional records: the input is made before the loop, and
 * making one record different from the next takes a few instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../unit/samples.h"
#include "../unit/events.h"
#include "collect/decode.h"
#include "event.h"
#include "base/arena.h"
#include "codec/encode.h"
#include "identify/redact.h"
#include "spool/spool.h"

enum {
	ALIVE = 200,		/* processes that stay, as a host has */
	BATCH = 500,		/* records that are committed at once */
	ARGS_MAX = 16,
	TEXT_MAX = 1024,
	RECORD_BYTES = 480,	/* of a Program record with its usage */
	LINE_ARGS_MAX = 256,	/* of a program of the fixture */
};

#define NAMESPACE 4026531836
#define COMMAND(text) { text, sizeof(text) }

/* What a pipeline runs, long and short, with and without a rule for its name; each argument has its NUL. */
static const struct {
	const char *argv;
	size_t len;
} commands[] = {
	COMMAND("bash\0-c\0set -euo pipefail; bwa mem -t 2 ref.fa a.fq | samtools sort -o a.bam"),
	COMMAND("bwa\0mem\0-t\0002\0-R\0@RG\\tID:a\\tSM:a\0/data/reference/genome.fa\0/data/in/a_1.fq.gz\0/data/in/a_2.fq.gz"),
	COMMAND("samtools\0sort\0-@\0004\0-T\0/scratch/tmp/sample\0-o\0/data/out/sample.bam\0/data/in/sample.bam"),
	COMMAND("python3\0/opt/pipeline/scripts/merge.py\0--threads\0002\0out/merged.vcf"),
	COMMAND("gzip\0-c\0a.vcf"),
	COMMAND("grep\0-v\0^#\0a.vcf"),
	COMMAND("rm\0-f\0a.tmp"),
	COMMAND("date"),
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static uint64_t taken;		/* so that no call is for nothing */

static void
die(const char *what)
{
	fprintf(stderr, "ledger-stages: %s\n", what);
	exit(1);
}

/* --- decode: exec and end of each program, as the kernel side writes them --- */

struct raw {
	union {
		struct event_head head;
		struct event_exec exec;
		struct event_state state;
	} event;
	char text[TEXT_MAX];
};

static void
take_exec(const struct exec_event *s, void *arg)
{
	(void)arg;
	taken += s->argc;
}

static void
take_state(const struct state_event *s, void *arg)
{
	(void)arg;
	taken += s->self.pid;
}

static void
take_cgroup(const struct cgroup_event *s, void *arg)
{
	(void)s, (void)arg;
}

static void
take_signal(const struct signal_event *s, void *arg)
{
	(void)s, (void)arg;
}

static void
raw_exec(struct raw *raw, const char *argv, size_t argv_len)
{
	static const char dir[] = "bin\0usr", cwd[] = "sample-7\0run\0project\0scratch";
	struct event_exec *e = &raw->event.exec;
	char *text = (char *)(e + 1);
	size_t name = strlen(argv) + 1;

	memcpy(text, argv, name);
	memcpy(text + name, dir, sizeof(dir));
	memcpy(text + name + sizeof(dir), cwd, sizeof(cwd));
	memcpy(text + name + sizeof(dir) + sizeof(cwd), argv, argv_len);
	e->exe_len = (uint32_t)(name + sizeof(dir));
	e->cwd_len = sizeof(cwd);
	e->argv_len = (uint32_t)argv_len;
	for (size_t i = 0; i < argv_len; i++)
		e->argc += argv[i] == '\0';
	e->head = (struct event_head){ EVENT_VERSION, EVENT_EXEC,
		(uint32_t)sizeof(*e) + e->exe_len + e->cwd_len + e->argv_len, 5 * SECOND };
	e->self = (struct event_id){ 5 * SECOND, 4711, 0 };
	e->parent = e->anchor = (struct event_id){ 4 * SECOND, 4710, 0 };
	e->flags = EVENT_EXECED;
	e->ppid = 4710;
	e->pid_ns = e->mnt_ns = e->net_ns = NAMESPACE;
	e->cgroup_v2 = 4711;
	snprintf(e->comm, sizeof(e->comm), "%s", argv);
}

static void
raw_end(struct raw *raw, const char *argv)
{
	struct event_state *e = &raw->event.state;

	e->head = (struct event_head){ EVENT_VERSION, EVENT_EXIT, sizeof(*e), 6 * SECOND };
	e->self = (struct event_id){ 5 * SECOND, 4711, 0 };
	e->parent = e->anchor = (struct event_id){ 4 * SECOND, 4710, 0 };
	e->program_start_ns = 5 * SECOND;
	e->end_ns = 6 * SECOND;
	e->flags = EVENT_EXECED | EVENT_HAS_PEAK | EVENT_NO_CREDENTIALS;
	e->ppid = 4710;
	e->counters.runtime_ns = SECOND;
	snprintf(e->comm, sizeof(e->comm), "%s", argv);
}

static void
stage_decode(unsigned long n)
{
	static const struct decode_ops ops = { take_exec, take_state, take_cgroup, take_signal };
	static struct raw raws[2 * COMMANDS];
	struct decoder *d;

	if (decoder_new(&ops, NULL, &d) < 0)
		die("no decoder");
	for (size_t i = 0; i < COMMANDS; i++) {
		raw_exec(&raws[2 * i], commands[i].argv, commands[i].len);
		raw_end(&raws[2 * i + 1], commands[i].argv);
	}
	for (unsigned long i = 0; i < n; i++) {
		const struct raw *raw = &raws[i % (2 * COMMANDS)];

		if (decode(d, raw, raw->event.head.size) < 0)
			die("a record was refused");
	}
	decoder_free(d);
}

/* --- correlate: a whole host, with a write-ahead log and findings, as the daemon has it --- */

struct life {
	const char *argv[ARGS_MAX];
	size_t argv_len[ARGS_MAX];
	char exe[64];
	struct exec_event exec;
	struct state_event end;
};

static void
take_program(const struct program_record *r, void *arg)
{
	(void)r, (void)arg;
	taken++;
}

static void
take_usage(const struct usage_record *r, void *arg)
{
	(void)r, (void)arg;
	taken++;
}

static void
take_work(const struct work_record *r, void *arg)
{
	(void)r, (void)arg;
}

static void
take_wal_entry(const void *data, size_t len, void *arg)
{
	(void)data, (void)len, (void)arg;
}

static void
take_finding(const struct finding_record *r, void *arg)
{
	(void)r, (void)arg;
}

static struct correlator *
open_correlator(void)
{
	static const struct correlator_ops ops = { take_program, take_usage, take_work, take_work, take_wal_entry,
		.finding = take_finding };
	struct correlator_options o = { .boot_id = BOOT_ID, .host_id = SAMPLE_HOST, .rules = rules_shipped() };
	struct correlator *c;

	if (correlator_new(&o, &ops, NULL, &c) < 0)
		die("no correlator");
	correlator_set_clock(c, CLOCK_US * 1000);
	return c;
}

static void
life_prepare(struct life *life, const char *argv, size_t len)
{
	struct exec_event *s = &life->exec;
	struct state_event *e = &life->end;

	*s = (struct exec_event){ .exe = life->exe, .cwd = "/scratch/project/run", .argv = life->argv,
		.argv_len = life->argv_len, .context = { 1000, 1000, NAMESPACE, NAMESPACE, NAMESPACE, 4711, 0 } };
	for (const char *at = argv; at < argv + len; at += strlen(at) + 1) {
		life->argv[s->argc] = at;
		life->argv_len[s->argc++] = strlen(at);
	}
	snprintf(life->exe, sizeof(life->exe), "/usr/bin/%s", argv);
	snprintf(s->comm, sizeof(s->comm), "%s", argv);
	*e = (struct state_event){ .kind = STATE_EXIT, .has_execed = true };
	e->counters.runtime_ns = 3 * MS;
	e->counters.minor_faults = 300;
	e->counters.threads = e->counters.threads_peak = 1;
	e->counters.has_peak = e->counters.is_complete = e->counters.is_reaped = true;
	memcpy(e->comm, s->comm, sizeof(e->comm));
}

static void
life_begins(struct correlator *c, struct life *life, struct program_key self, struct program_key parent)
{
	struct exec_event *s = &life->exec;

	s->time_ns = self.start_ns;
	s->self = self;
	s->parent = s->anchor = parent;
	s->ppid = parent.pid;
	correlator_exec(c, s);
}

/* Also what a pass says of it while it lives. */
static void
life_tells(struct correlator *c, struct life *life, enum state_kind kind, struct program_key self,
    struct program_key parent, uint64_t now_ns)
{
	struct state_event *e = &life->end;

	e->kind = kind;
	e->time_ns = now_ns;
	e->end_ns = kind == STATE_EXIT ? now_ns : 0;
	e->self = self;
	e->parent = e->anchor = parent;
	e->ppid = parent.pid;
	e->program_start_ns = self.start_ns;
	correlator_state(c, e);
}

static struct life lives[COMMANDS];
static struct program_key alive[ALIVE];

/* A tree of programs that stay. */
static struct correlator *
open_host(void)
{
	struct correlator *c = open_correlator();

	for (size_t i = 0; i < COMMANDS; i++)
		life_prepare(&lives[i], commands[i].argv, commands[i].len);
	for (uint32_t i = 0; i < ALIVE; i++) {
		alive[i] = (struct program_key){ (100 + i) * SECOND, 100 + i, 0 };
		life_begins(c, &lives[i % COMMANDS], alive[i], alive[i / 2]);
	}
	return c;
}

/* START and END of each program. */
static void
stage_correlate(unsigned long n)
{
	struct correlator *c = open_host();

	for (unsigned long i = 0; i < n / 2; i++) {
		struct life *life = &lives[i % COMMANDS];
		struct program_key self = { 1000 * SECOND + i * 5 * MS, 1000 + (uint32_t)i % 30000, 0 };

		life_begins(c, life, self, alive[i % ALIVE]);
		life_tells(c, life, STATE_EXIT, self, alive[i % ALIVE], self.start_ns + 4 * MS);
	}
	correlator_free(c);
}

/* Usage of each program that lives, pass after pass. */
static void
stage_pass(unsigned long n)
{
	struct correlator *c = open_host();

	for (unsigned long i = 0; i < n; i += ALIVE) {
		uint64_t now = (1000 + i) * SECOND;

		correlator_snapshot_begin(c, true);
		for (uint32_t k = 0; k < ALIVE; k++) {
			lives[k % COMMANDS].end.counters.runtime_ns = now;
			life_tells(c, &lives[k % COMMANDS], STATE_LIVE, alive[k], alive[k / 2], now);
		}
		correlator_snapshot_end(c, now);
		correlator_tick(c, now, true);
	}
	correlator_free(c);
}

/* --- encode: a Program record to Avro --- */

static void
stage_encode(unsigned long n)
{
	struct program_record records[2] = { sample_program_start(), sample_program_end() };
	struct agent_identity id = sample_identity();
	struct encoder *e;
	const uint8_t *data;
	char err[256];
	size_t len;

	if (encoder_open(&id, &e, err, sizeof(err)) < 0)
		die(err);
	for (unsigned long i = 0; i < n; i++) {
		struct program_record *r = &records[i % 2];

		r->head.time_us = SAMPLE_TIME + (int64_t)i * 173;
		r->id.pid = 1000 + (uint32_t)i % 30000;
		if (encode(e, TOPIC_PROGRAM, r, i, &data, &len) < 0)
			die("a record was not encoded");
		taken += len;
	}
	encoder_close(e);
}

/* --- spool: put, commit, hand out, acknowledge; the disk is not waited for --- */

static void
stage_spool(unsigned long n)
{
	static const char key[] = SAMPLE_HOST ":run-1";
	static char data[RECORD_BYTES];
	static uint64_t seq[TOPIC_COUNT];
	char folder[64], error[256];
	struct spool_options o = { .dir = sample_folder(folder), .sync_ms = 1000000000 };
	struct spool_record r;
	struct spool *s;

	if (o.dir == NULL || spool_open(&o, &s, NULL, error, sizeof(error)) < 0)
		die("no spool");
	for (int t = 0; t < TOPIC_COUNT; t++)
		seq[t] = spool_next_seq(s, t);
	for (unsigned long i = 0; i < n;) {
		struct ring_offset ring_offset = { "", 1, i };

		for (unsigned k = 0; k < BATCH; k++, i++) {
			memcpy(data + i % 200, &i, sizeof(i));
			if (spool_put(s, &(struct encoded_record){ TOPIC_PROGRAM, SAMPLE_TIME + (int64_t)i,
				seq[TOPIC_PROGRAM]++, key, data, sizeof(data) }) < 0)
				die("a record was not put");
		}
		if (spool_commit(s, &ring_offset, seq) < 0)
			die("a batch was not committed");
		while (spool_next(s, &r)) {
			spool_ack(s, r.id);
			taken++;
		}
	}
	if (taken != n)
		die("not every record came out of the spool");
	spool_close(s);
	sample_remove(folder);
}

/* --- redact: the arguments of programs of builds and pipelines, by the shipped patterns --- */

static void
stage_redact(unsigned long n)
{
	struct ruleset *rules = rules_shipped();
	const char *argv[LINE_ARGS_MAX];
	size_t n_lines = 0, argc;
	json_t *lines = json_array();
	struct arena a;
	FILE *f = fopen(SOURCE_TREE "/tests/fixtures/secrets/harmless.jsonl", "re");
	json_t *line;

	if (f == NULL || rules == NULL || arena_init(&a, 1 << 20) < 0)
		die("no lines");
	while ((line = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL)) != NULL)
		json_array_append_new(lines, line);
	fclose(f);
	n_lines = json_array_size(lines);
	if (n_lines < 500)
		die("the lines cannot be read");
	for (unsigned long i = 0; i < n; i++) {
		line = json_array_get(lines, i % n_lines);
		argc = json_array_size(line);
		if (argc > LINE_ARGS_MAX)
			argc = LINE_ARGS_MAX;
		for (size_t k = 0; k < argc; k++)
			argv[k] = json_string_value(json_array_get(line, k));
		taken += 1 + redact_argv(rules, argv, argc, &a);
		arena_reset(&a);
	}
	arena_done(&a);
	json_decref(lines);
	ruleset_unref(rules);
}

static const struct {
	const char *name;
	void (*run)(unsigned long n);
} stages[] = {
	{ "decode", stage_decode },
	{ "correlate", stage_correlate },
	{ "pass", stage_pass },
	{ "redact", stage_redact },
	{ "encode", stage_encode },
	{ "spool", stage_spool },
};

int
main(int argc, char **argv)
{
	unsigned long n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

	for (size_t i = 0; n > 0 && n % BATCH == 0 && i < sizeof(stages) / sizeof(stages[0]); i++) {
		if (strcmp(argv[1], stages[i].name) == 0) {
			stages[i].run(n);
			return taken > 0 ? 0 : 1;
		}
	}
	fputs("usage: ledger-stages decode|correlate|pass|redact|encode|spool RECORDS (a multiple of 500)\n", stderr);
	return 2;
}
