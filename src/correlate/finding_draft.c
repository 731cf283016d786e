/*
 * SPDX-License-Identifier: Apache-2.0
 * finding_draft: puts a finding together.
 */
#include "correlate/finding_draft.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/format.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/tasks.h"

#define NAME_SHOWN_MAX 200		/* bytes of a name in a message */

void
draft_number(struct finding_draft *d, const char *name, double value)
{
	if (d->r.n_evidence < DRAFT_EVIDENCE_MAX)
		d->evidence[d->r.n_evidence++] = (struct named_number){ name, value };
}

void
draft_bytes(struct finding_draft *d, const char *name, struct opt_u64 bytes)
{
	if (bytes.known)
		draft_number(d, name, (double)bytes.value);
}

void
draft_status(struct finding_draft *d, const char *code, const char *signal, int32_t status)
{
	if (WIFSIGNALED(status))
		draft_number(d, signal, WTERMSIG(status));
	else
		draft_number(d, code, WEXITSTATUS(status));
}

__attribute__((format(printf, 2, 3))) void
draft_append(struct finding_draft *d, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(d->message + d->len, sizeof(d->message) - d->len, format, args);
	va_end(args);
	if (n > 0)
		d->len += (size_t)n;
	if (d->len >= sizeof(d->message))
		d->len = sizeof(d->message) - 1;
}

/* Returns the length of a name that is shown; it is cut between characters. */
static int
shown(const char *name)
{
	size_t len = strlen(name);

	if (len > NAME_SHOWN_MAX) {
		len = NAME_SHOWN_MAX;
		while (len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80)
			len--;
	}
	return (int)len;
}

void
draft_append_name(struct finding_draft *d, const char *name)
{
	draft_append(d, "%.*s", shown(name), name);
}

void
draft_append_program(struct finding_draft *d, const char *tool, uint32_t pid)
{
	draft_append_name(d, tool);
	draft_append(d, " (pid %u)", pid);
}

void
draft_append_memory(struct finding_draft *d, struct opt_u64 peak, struct opt_u64 limit)
{
	char bytes[FORMAT_SIZE];

	if (peak.known)
		draft_append(d, ", peak %s", format_bytes(peak.value, bytes, sizeof(bytes)));
	if (limit.known)
		draft_append(d, ", limit %s", format_bytes(limit.value, bytes, sizeof(bytes)));
}

void
draft_append_status(struct finding_draft *d, int32_t status)
{
	const char *name = WIFSIGNALED(status) ? format_signal(WTERMSIG(status)) : NULL;

	if (name != NULL)
		draft_append(d, " was ended by SIG%s", name);
	else if (WIFSIGNALED(status))
		draft_append(d, " was ended by signal %d", WTERMSIG(status));
	else
		draft_append(d, " ended with exit code %d", WEXITSTATUS(status));
}

void
draft_append_task(struct finding_draft *d, const struct task *t)
{
	draft_append_name(d, t->name[0] != '\0' ? t->name : t->task_id);
	if (t->sample[0] != '\0') {
		draft_append(d, " (");
		draft_append_name(d, t->sample);
		draft_append(d, ")");
	}
}

void
draft_cause(const struct correlator *c, struct finding_draft *d, const struct program_key *program)
{
	size_t n = d->r.n_causes;

	if (n == FAILURE_CHAIN_MAX)
		return;
	program_id_format(c, program, d->cause_id[n]);
	d->causes[n] = d->cause_id[n];
	d->r.n_causes++;
}

void
draft_program(const struct correlator *c, struct finding_draft *d, const struct program_key *program, const char *tool)
{
	program_id_format(c, program, d->program_id);
	d->r.program_id = d->program_id;
	d->r.tool = name_or_null(tool);
	draft_append_program(d, tool, program->pid);
}

void
draft_begin(struct correlator *c, struct finding_draft *d, const struct process *p, const struct program_end *end)
{
	program_head_fill(c, p, &d->r.head);
	d->r.head.time_us = state_wall_us(c, end->end_ns);
	draft_program(c, d, &p->self, p->text != NULL && p->text->tool != NULL ? p->text->tool : end->comm);
}

void
draft_head(const struct correlator *c, struct finding_draft *d, const struct run *r, const struct task *t,
    uint64_t at_ns)
{
	d->r.head = (struct record_head){ .user = run_share(r), .time_us = state_wall_us(c, at_ns), .run_id = r->id,
		.pipeline = r->pipeline, .sample = r->sample };
	if (t == NULL)
		return;
	d->r.head.task_id = name_or_null(t->task_id);
	d->r.head.task = name_or_null(t->name);
	d->r.head.sample = name_or_null(t->sample);
}

void
draft_emit(struct correlator *c, struct finding_draft *d)
{
	d->r.message = d->message;
	d->r.evidence = d->evidence;
	d->r.causes = d->causes;
	c->ops.finding(&d->r, c->arg);
}
