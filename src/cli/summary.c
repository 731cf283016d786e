/*
 * SPDX-License-Identifier: Apache-2.0
 * summary: prints the end of a run, for people and as JSON.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/run.h"
#include "base/spell.h"
#include "base/text.h"
#include "cli/print_json.h"
#include "cli/summary.h"
#include "cli/table.h"
#include "model/losses.h"

#define ROWS_SHOWN 40
#define SURVIVORS_SHOWN 10
#define LABEL_SIZE 300
#define GLUE_MIN_NS UINT64_C(50000000)	/* shells below this get no row */

bool
summary_is_name(const char *s)
{
	size_t len = strlen(s);

	for (size_t at = 0; at < len;) {
		size_t n = text_char(s + at, len - at);

		if (n == 0 || (unsigned char)s[at] < 0x20 || s[at] == 0x7f)
			return false;
		at += n;
	}
	return len > 0;
}

void
summary_print_quoted(FILE *f, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

	fputc(' ', f);
	if (s[0] != '\0' && strspn(s, plain) == strlen(s)) {
		fputs(s, f);
		return;
	}
	fputc('\'', f);
	for (; *s != '\0'; s++) {
		if (*s == '\'')
			fputs("'\\''", f);
		else
			fputc(*s, f);
	}
	fputc('\'', f);
}

static struct opt_double
cores(const struct usage *u, uint64_t wall_ns)
{
	bool known = usage_has(u, USAGE_CPU_USER_NS) && wall_ns > 0;

	return (struct opt_double){ known ? (double)usage_cpu_ns(u) / (double)wall_ns : 0, known };
}

static uint64_t
weight(const struct summary_row *r)
{
	return usage_cpu_ns(&r->usage) + r->wall_ns;
}

struct survivor_list {
	FILE *f;
	size_t n;
};

static void
on_survivor(uint32_t pid, const char *comm, const char *exe, void *arg)
{
	struct survivor_list *list = arg;

	if (list->n++ < SURVIVORS_SHOWN)
		spell_line(list->f, "sluice: still running: %s (pid %u)%s%s\n", comm != NULL ? comm : "?", pid,
		    exe != NULL ? " " : "", exe != NULL ? exe : "");
}

/* Returns how much the lake lacks: events that never became a record, and records that were not written. */
static uint64_t
lost_in_all(const struct agent *a)
{
	struct loss_list losses = { 0 };
	uint64_t lost = agent_totals(a).lost_events + agent_totals(a).lost_ends;

	agent_losses(a, &losses);
	for (size_t i = 0; i < losses.n; i++)
		if (strcmp(losses.list[i].reason, "not_written") == 0)
			lost += losses.list[i].count;
	losses_free(&losses);
	return lost;
}

static void
print_rows(FILE *f, const struct summary_options *o)
{
	const struct summary_row *rows;
	size_t n = correlator_summary(agent_correlator(o->agent), &rows), shown = 0, left_out = 0;
	struct table_row *table = calloc(n + 1, sizeof(*table));
	char (*labels)[LABEL_SIZE] = calloc(n + 1, LABEL_SIZE);
	uint64_t least = 0;

	if (table == NULL || labels == NULL)
		goto out;
	/* Show the heaviest rows, in their order of start: those above the smallest weight that leaves few enough. */
	for (size_t over = n; over > ROWS_SHOWN;) {
		least = least == 0 ? GLUE_MIN_NS : least * 2;
		over = 0;
		for (size_t i = 0; i < n; i++)
			over += weight(&rows[i]) >= least;
	}
	for (size_t i = 0; i < n; i++) {
		const struct summary_row *s = &rows[i];
		struct table_row *t = &table[shown];

		if (weight(s) < least || (s->tool == NULL && usage_cpu_ns(&s->usage) < GLUE_MIN_NS && n > 1)) {
			left_out += s->programs;
			continue;
		}
		if (s->task != NULL) {
			snprintf(labels[shown], LABEL_SIZE, "%s%s%s", s->task, s->sample != NULL ? " " : "",
			    s->sample != NULL ? s->sample : "");
			t->task = labels[shown];
		}
		t->tool = s->tool != NULL ? s->tool : "(shell)";
		t->n = s->programs;
		t->failed = s->failed;
		t->wall_ns = s->wall_ns;
		t->cpu_cores = cores(&s->usage, s->wall_ns);
		t->peak_memory_bytes = s->peak_memory_bytes;
		t->usage = &s->usage;
		t->verdict = s->verdict;
		shown++;
	}
	fputc('\n', f);
	table_print(f, table, shown, o->width);
	if (left_out > 0)
		spell_line(f, "and %llu short or helper program%s: sluice cat --topic program %s\n",
		    (unsigned long long)left_out, left_out == 1 ? "" : "s", o->lake);
	fputc('\n', f);
out:
	free(table);
	free(labels);
}

void
summary_print(FILE *f, const struct summary_options *o)
{
	struct run_totals totals = agent_totals(o->agent);
	struct table_summary footer = { .pipeline = o->pipeline, .wall_ns = totals.wall_ns,
		.cpu_cores = cores(&totals.usage, totals.wall_ns), .cpus = agent_cpus(o->agent),
		.peak_memory_bytes = { totals.peak_memory_bytes, totals.peak_memory_bytes > 0 }, .usage = &totals.usage,
		.programs = totals.programs, .failed = totals.failed,
		.lost = lost_in_all(o->agent) };
	struct survivor_list survivors = { .f = f };
	struct loss_list losses = { 0 };

	print_rows(f, o);
	if (WIFSIGNALED(o->wait_status))
		footer.exit_signal = (struct opt_i32){ WTERMSIG(o->wait_status), true };
	else
		footer.exit_code = (struct opt_i32){ WEXITSTATUS(o->wait_status), true };
	table_footer(f, &footer);
	agent_losses(o->agent, &losses);
	for (size_t i = 0; i < losses.n; i++)
		fprintf(f, "sluice: %s: %s %llu\n", losses.list[i].place, losses.list[i].reason,
		    (unsigned long long)losses.list[i].count);
	losses_free(&losses);
	if (agent_withheld(o->agent) > 0)
		fprintf(f, "sluice: %llu program%s ran with other rights than this user's, as with sudo: only the agent of this host records %s\n",
		    (unsigned long long)agent_withheld(o->agent), agent_withheld(o->agent) == 1 ? "" : "s",
		    agent_withheld(o->agent) == 1 ? "it" : "them");
	correlator_each_live(agent_correlator(o->agent), on_survivor, &survivors);
	if (survivors.n > SURVIVORS_SHOWN)
		fprintf(f, "sluice: and %zu more; --wait waits for them\n", survivors.n - SURVIVORS_SHOWN);
	else if (survivors.n > 0)
		fputs("sluice: --wait waits for them\n", f);
	spell_line(f, "lake %s  run %s\n", o->lake, agent_run_id(o->agent));
}

static json_t *
usage_json(const struct usage *u)
{
	json_t *object = json_object();

	for (int i = 0; i < USAGE_FIELDS; i++)
		json_object_set_new(object, usage_name((enum usage_field)i),
		    usage_has(u, (enum usage_field)i) ? json_integer((json_int_t)u->value[i]) : json_null());
	return object;
}

static json_t *
share_json(struct opt_double share)
{
	return share.known ? json_real(share.value) : json_null();
}

/* The parts of a bill, each in nanoseconds; the caller owns the result, as that of the function below. */
static json_t *
bill_json(const struct bill *b)
{
	json_t *object = json_object();

#define BILL_JSON(ID, name)	\
	json_object_set_new(object, #name "_ns", b->part[BILL_##ID].known ?	\
	    json_integer((json_int_t)b->part[BILL_##ID].value) : json_null());
	BILL_EACH(BILL_JSON)
#undef BILL_JSON
	return object;
}

static json_t *
row_json(const struct summary_row *r)
{
	const struct verdict *v = &r->verdict;

	return json_pack("{ss? ss? ss? sI sI sI so ss? so ss? ss? so so ss? s{so so so so so}}", "task", r->task, "sample",
	    r->sample, "tool", r->tool, "programs", (json_int_t)r->programs, "failed_programs",
	    (json_int_t)r->failed, "wall_ns", (json_int_t)r->wall_ns, "usage", usage_json(&r->usage),
	    "demand", demand_name(v->demand), "demand_confidence", share_json(v->confidence), "waiting_for", v->waiting_for,
	    "denied", denied_name(v->denied), "denied_share", share_json(v->denied_share), "bill", bill_json(&r->bill),
	    "bound", bound_name(r->bound), "shares", "cpu", share_json(r->shares.cpu), "run_delay",
	    share_json(r->shares.run_delay), "block_io", share_json(r->shares.block_io), "memory",
	    share_json(r->shares.memory), "idle", share_json(r->shares.idle));
}

static void
on_survivor_json(uint32_t pid, const char *comm, const char *exe, void *arg)
{
	json_array_append_new(arg, json_pack("{si ss? ss?}", "pid", (int)pid, "comm", comm, "exe", exe));
}

int
summary_print_json(FILE *f, const struct summary_options *o)
{
	struct run_totals totals = agent_totals(o->agent);
	const struct summary_row *rows;
	size_t n = correlator_summary(agent_correlator(o->agent), &rows);
	struct loss_list losses = { 0 };
	json_t *root, *list = json_array(), *lost = json_array(), *alive = json_array();
	int r;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, row_json(&rows[i]));
	agent_losses(o->agent, &losses);
	for (size_t i = 0; i < losses.n; i++)
		json_array_append_new(lost, json_pack("{ss ss sI}", "place", losses.list[i].place, "reason",
		    losses.list[i].reason, "count", (json_int_t)losses.list[i].count));
	losses_free(&losses);
	correlator_each_live(agent_correlator(o->agent), on_survivor_json, alive);
	root = json_pack("{ss ss? ss ss so so sI si sI sI sI sI so so so so}", "run_id",
	    agent_run_id(o->agent), "pipeline", o->pipeline, "host_id", agent_host_id(o->agent), "lake",
	    o->lake, "exit_code", WIFSIGNALED(o->wait_status) ? json_null() :
	    json_integer(WEXITSTATUS(o->wait_status)), "exit_signal", WIFSIGNALED(o->wait_status) ?
	    json_integer(WTERMSIG(o->wait_status)) : json_null(), "wall_ns", (json_int_t)totals.wall_ns,
	    "cpus", (int)agent_cpus(o->agent), "programs", (json_int_t)totals.programs,
	    "failed_programs", (json_int_t)totals.failed, "lost", (json_int_t)lost_in_all(o->agent),
	    "withheld", (json_int_t)agent_withheld(o->agent), "losses", lost, "still_running", alive, "usage", usage_json(&totals.usage), "rows", list);
	if (root == NULL)
		return -1;
	r = print_json(f, root);
	if (fflush(f) != 0)
		r = -1;
	json_decref(root);
	return r;
}
