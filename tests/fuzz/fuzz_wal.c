/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any entries are applied or refused; the resulting state can be written as entries again, which restore
 * the same state. Input: a byte (bit 0: of a run; bit 1: which of both lives on), then entries, each after its length
 * in two bytes, little-endian.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "rules/rules.h"
#include "correlate/correlator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct entries {
	uint8_t *data;
	size_t len, cap;
};

/* Checks that a text of a record is UTF-8. */
static void
check(const char *s)
{
	size_t len = s != NULL ? strlen(s) : 0;

	for (size_t i = 0, width; i < len; i += width) {
		width = text_char(s + i, len - i);
		if (width == 0)
			abort();
	}
}

static void
on_program(const struct program_record *r, void *arg)
{
	(void)arg;
	check(r->exe);
	check(r->comm);
	check(r->tool);
	check(r->tool_rule);
	check(r->cgroup);
	for (size_t i = 0; i < r->argc; i++)
		check(r->argv[i]);
}

static void
on_usage(const struct usage_record *r, void *arg)
{
	(void)r, (void)arg;
}

static void
on_finding(const struct finding_record *r, void *arg)
{
	(void)arg;
	if (r->kind == NULL || r->message == NULL || (r->n_causes > 0 && r->causes[r->n_causes - 1] == NULL))
		abort();
}

static void
on_work(const struct work_record *r, void *arg)
{
	(void)r, (void)arg;
}

static void
on_wal_entry(const void *data, size_t len, void *arg)
{
	struct entries *n = arg;

	if (n->len + sizeof(len) + len > n->cap) {
		n->cap = 2 * (n->len + sizeof(len) + len);
		n->data = realloc(n->data, n->cap);
	}
	memcpy(n->data + n->len, &len, sizeof(len));
	memcpy(n->data + n->len + sizeof(len), data, len);
	n->len += sizeof(len) + len;
}

static struct correlator *
correlator(bool is_run, struct entries *entries)
{
	static const struct correlator_ops ops = { on_program, on_usage, on_work, on_work, on_wal_entry,
		.finding = on_finding };
	static struct ruleset *rules;
	struct correlator_options options = { .boot_id = "b", .run_id = is_run ? "r" : NULL,
		.arena_bytes = 96 << 10 };	/* beyond 128 KiB the sanitizer maps memory for each */
	struct correlator *c;

	if (rules == NULL)
		rules = rules_shipped();
	options.rules = rules;
	if (correlator_new(&options, &ops, entries, &c) < 0)
		abort();
	return c;
}

/* Ends every process that may be known, and one that is not. */
static void
live_on(struct correlator *c)
{
	struct state_event s = { .kind = STATE_LIVE, .time_ns = 5000000000, .has_execed = true };

	correlator_snapshot_begin(c, true);
	for (uint32_t pid = 1; pid < 16; pid++) {
		s.self = (struct program_key){ 1000 + pid, pid, pid % 2 };
		s.parent = (struct program_key){ 1001, 1, 0 };
		s.has_execed = pid % 3;
		s.kind = pid % 4 ? STATE_EXIT : STATE_LIVE;
		correlator_state(c, &s);
	}
	correlator_snapshot_end(c, s.time_ns);
	correlator_tick(c, s.time_ns + 5000000000, true);
	correlator_snapshot_begin(c, false);
	correlator_snapshot_end(c, s.time_ns + 20000000000);
	correlator_snapshot_begin(c, false);
	correlator_snapshot_end(c, s.time_ns + 40000000000);
	correlator_run_end(c, s.time_ns + 50000000000, 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct entries first = { 0 }, second = { 0 };
	struct correlator *a, *b;
	size_t len;
	bool is_run;

	if (size == 0)
		return -1;
	is_run = data[0] & 1;
	a = correlator(is_run, &first);
	correlator_checkpoint(a);	/* every log begins with a checkpoint */
	memcpy(&len, first.data, sizeof(len));
	if (correlator_replay(a, first.data + sizeof(len), len) != 0)
		abort();
	for (size_t at = 1; at + 2 <= size;) {
		uint8_t *entry;

		len = (size_t)data[at] | (size_t)data[at + 1] << 8;
		at += 2;
		if (len > size - at)
			len = size - at;
		entry = malloc(len > 0 ? len : 1);	/* so that ASan detects reads past its end */
		memcpy(entry, data + at, len);
		correlator_replay(a, entry, len);
		free(entry);
		at += len;
	}
	correlator_replay_done(a, NULL);
	first.len = 0;
	correlator_checkpoint(a);

	b = correlator(is_run, &second);
	for (size_t at = 0; at < first.len; at += len) {
		memcpy(&len, first.data + at, sizeof(len));
		at += sizeof(len);
		if (correlator_replay(b, first.data + at, len) != 0)
			abort();
	}
	correlator_replay_done(b, NULL);
	second.len = 0;
	correlator_checkpoint(b);
	if (first.len != second.len || (first.len > 0 && memcmp(first.data, second.data, first.len) != 0))
		abort();
	live_on((data[0] & 2) != 0 ? b : a);
	correlator_free(a);
	correlator_free(b);
	free(first.data);
	free(second.data);
	return 0;
}
