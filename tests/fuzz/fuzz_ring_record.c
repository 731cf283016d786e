/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as records of the ring and of the iterator: each call of decode() yields one event or none,
 * and for any events the correlator's records contain valid strings and its totals agree with them.
 *
 * Input: records one after the other in the format of decode_stream(); the low bits of the time also
 * select the actions between two records.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "collect/decode.h"
#include "rules/rules.h"
#include "correlate/correlator.h"
#include "event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct correlator *correlator;
	uint64_t events;
	uint64_t starts;
	uint64_t ends;
	uint64_t now_ns;
};

static void
check_text(const char *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0, len = strlen(s), width; i < len; i += width) {
		width = text_char(s + i, len - i);
		if (width == 0)
			abort();	/* not UTF-8: the encoder would refuse it */
	}
}

static void
check_head(const struct record_head *head)
{
	check_text(head->run_id);
	check_text(head->pipeline);
	check_text(head->task_id);
	check_text(head->task);
	check_text(head->sample);
}

static void
on_program(const struct program_record *r, void *arg)
{
	struct world *w = arg;

	check_head(&r->head);
	check_text(r->id.program_id);
	check_text(r->id.parent_program_id);
	check_text(r->exe);
	check_text(r->comm);
	check_text(r->cwd);
	check_text(r->tool);
	check_text(r->tool_rule);
	check_text(r->cgroup);
	check_text(r->cgroup_v1);
	check_text(r->task_source);
	for (size_t i = 0; r->argv != NULL && i < r->argc; i++) {
		if (r->argv[i] == NULL)
			abort();
		check_text(r->argv[i]);
	}
	w->starts += r->phase == PHASE_START;
	w->ends += r->phase == PHASE_END;
	if ((r->usage != NULL) != (r->phase == PHASE_END) ||
	    (r->end_reason != END_REASON_NONE) != (r->phase == PHASE_END))
		abort();
}

static void
on_usage(const struct usage_record *r, void *arg)
{
	(void)arg;
	check_head(&r->head);
	check_text(r->id.program_id);
	check_text(r->comm);
	check_text(r->tool);
	if (r->interval_ns == 0)
		abort();
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
	(void)arg;
	check_head(&r->head);
	check_text(r->engine);
	check_text(r->work_dir);
	check_text(r->source);
	if (r->live_programs > r->programs)
		abort();
}

static void
on_live(uint32_t pid, const char *comm, const char *exe, void *arg)
{
	(void)pid;
	(void)arg;
	check_text(comm);
	check_text(exe);
}

/* Does what the agent's loop does between records, as selected by choice. */
static void
between(struct world *w, uint64_t choice)
{
	const struct summary_row *rows;
	struct run_totals totals;
	size_t n;

	w->now_ns += choice % 7 * 300000000;
	if (choice % 3 == 0)
		correlator_snapshot_begin(w->correlator, choice % 2);
	if (choice % 5 == 0)
		correlator_snapshot_end(w->correlator, w->now_ns);
	if (choice % 4 == 0)
		correlator_tick(w->correlator, w->now_ns, choice % 8 == 0);
	totals = correlator_totals(w->correlator, w->now_ns);
	/* Each program that started has ended, is alive, or is counted as lost. */
	if (w->starts != w->ends + totals.live + totals.lost_ends || totals.programs != w->starts)
		abort();
	if (totals.live > correlator_live(w->correlator))
		abort();
	n = correlator_summary(w->correlator, &rows);
	for (size_t i = 0; i < n; i++) {
		check_text(rows[i].task);
		check_text(rows[i].sample);
		check_text(rows[i].tool);
	}
}

static void
on_exec_event(const struct exec_event *s, void *arg)
{
	struct world *w = arg;

	w->events++;
	for (size_t i = 0; s->argv != NULL && i < s->argc; i++)
		if (strlen(s->argv[i]) != s->argv_len[i])
			abort();
	correlator_exec(w->correlator, s);
	between(w, s->time_ns);
}

static void
on_state_event(const struct state_event *s, void *arg)
{
	struct world *w = arg;

	w->events++;
	correlator_state(w->correlator, s);
	between(w, s->time_ns);
}

static void
on_cgroup_event(const struct cgroup_event *s, void *arg)
{
	struct world *w = arg;

	w->events++;
	if (s->path[0] != '/')
		abort();
	correlator_cgroup(w->correlator, s);
}

static void
on_signal_event(const struct signal_event *s, void *arg)
{
	struct world *w = arg;

	w->events++;
	if (strlen(s->comm) >= EVENT_COMM_SIZE)
		abort();
	correlator_signal(w->correlator, s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct decode_ops decode_to = { on_exec_event, on_state_event, on_cgroup_event,
		on_signal_event };
	static const struct correlator_ops ops = { on_program, on_usage, on_work, on_work, .finding = on_finding };
	struct correlator_options options = { .boot_id = "b3f1f8a1", .run_id = "r",
		.task = size % 5 == 0 ? "task" : NULL,
		.arena_bytes = 96 << 10 };	/* beyond 128 KiB the sanitizer maps memory for each */
	static struct world w;		/* static, since the decoder takes half a megabyte */
	static struct decoder *decoder;
	static struct ruleset *rules;
	uint64_t malformed = 0, before;
	size_t used;
	void *copy = malloc(size > 0 ? size : 1);	/* aligned, and ASan detects reads past its end */

	memcpy(copy, data, size);
	w = (struct world){ .now_ns = 1000000000 };
	if (rules == NULL)
		rules = rules_shipped();
	options.rules = rules;
	if ((decoder == NULL && decoder_new(&decode_to, &w, &decoder) < 0) ||
	    correlator_new(&options, &ops, &w, &w.correlator) < 0)
		abort();
	correlator_run_start(w.correlator, w.now_ns);

	if ((decode(decoder, copy, size) == 0) != (w.events == 1))
		abort();
	before = w.events;
	used = decode_stream(decoder, copy, size, &malformed);
	if (used > size || (malformed == 0 && used == 0 && w.events != before))
		abort();
	/* An incomplete record at the end is not an error: more may follow. */
	if (used < size && size - used >= sizeof(struct event_head) &&
	    ((const struct event_head *)(const void *)((const char *)copy + used))->size <= size - used)
		abort();

	correlator_each_live(w.correlator, on_live, &w);
	correlator_run_end(w.correlator, w.now_ns, 0);
	between(&w, 1);
	correlator_free(w.correlator);
	free(copy);
	return 0;
}
