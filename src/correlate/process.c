/*
 * SPDX-License-Identifier: Apache-2.0
 * The table of processes: who is known, whose child each is, and what is kept of the dead.
 */
#include <stdlib.h>
#include <string.h>

#include "correlate/findings.h"

/* value in lower-case hex at out; returns the end. */
static char *
put_hex(char *out, uint64_t value)
{
	int shift = value != 0 ? (63 - __builtin_clzll(value)) & ~3 : 0;

	for (; shift >= 0; shift -= 4)
		*out++ = "0123456789abcdef"[value >> shift & 15];
	return out;
}

/*
 * Unique among all programs of all boots of a host: the first part of the boot id, pid, start and
 * index, in hex. By hand: there are four in the records of each program.
 */
void
program_id_format(const struct correlator *c, const struct program_key *key, char out[PROGRAM_ID_SIZE])
{
	size_t n = strnlen(c->options.boot_id, 8);

	memcpy(out, c->options.boot_id, n);
	out += n;
	*out++ = '-';
	out = put_hex(out, key->pid);
	*out++ = '-';
	out = put_hex(out, key->start_ns);
	*out++ = '-';
	out = put_hex(out, key->index);
	*out = '\0';
}

struct process *
process_find(struct correlator *c, uint64_t start_ns, uint64_t pid)
{
	struct process_id id = { start_ns, pid };
	struct process *p;

	if (pid == 0)
		return NULL;
	HASH_FIND(hh, c->processes, &id, sizeof(id), p);
	return p;
}

struct process *
process_of(struct correlator *c, const struct program_key *key)
{
	return process_find(c, key->start_ns, key->pid);
}

struct process *
process_new(struct correlator *c, const struct process_id *id)
{
	struct process *p = HASH_COUNT(c->processes) < PROCESSES_MAX ? calloc(1, sizeof(*p)) : NULL;

	if (p == NULL) {
		c->refused++;
		return NULL;
	}
	p->id = *id;
	p->pass = c->pass;
	HASH_ADD(hh, c->processes, id, sizeof(p->id), p);
	return p;
}

void
process_set_text(struct correlator *c, struct process *p, struct text *t)
{
	program_text_unref(c, p->text);
	title_forget(p);
	p->text = t;
	p->is_text_noted = false;
}

void
process_gone(struct correlator *c, struct process *p)
{
	DL_APPEND2(c->gone, p, prev_gone, next_gone);
	c->gone_count++;
}

void
process_remove(struct correlator *c, struct process *p)
{
	HASH_DEL(c->processes, p);
	if (p->prev_gone != NULL) {
		DL_DELETE2(c->gone, p, prev_gone, next_gone);
		c->gone_count--;
	}
	program_text_unref(c, p->text);
	title_forget(p);
	failures_forget(c, p);
	task_assign(c, p, NULL);
	run_assign(c, p, NULL);
	location_unref(c, p->location);
	free(p);
}

/* It is of no more use to anybody. */
void
process_forget(struct correlator *c, struct process *p)
{
	journal_forget(c, p);
	process_remove(c, p);
}

struct program_key
process_above(struct correlator *c, const struct program_key *parent)
{
	const struct process *p = process_of(c, parent);

	return p != NULL && p->is_excluded && p->self.index == parent->index ? p->above : *parent;
}

struct process *
process_add(struct correlator *c, const struct program_key *self, const struct program_key *parent,
    const struct program_key *anchor)
{
	struct process *p = process_new(c, &(struct process_id){ self->start_ns, self->pid });

	if (p == NULL)
		return NULL;
	p->self = *self;
	p->parent = *parent;
	p->above = process_above(c, parent);
	p->anchor = *anchor;
	p->is_forked = true;
	p->is_base_known = self->index == 0;
	p->start_us = state_wall_us(c, self->start_ns);
	p->program_start_us = p->start_us;
	p->program_start_ns = self->start_ns;
	if (c->whole != NULL && parent->pid == 0 && c->whole->root.pid == 0) {
		c->whole->root = p->id;	/* we forked it ourselves: COMMAND */
		journal_run(c, c->whole);
	}
	journal_process(c, p, NEWS_ALL);
	return p;
}

/*
 * Who p descends from, for its task: its parent, or where that was never seen (it forked and has
 * not exec'd) a place kept for it, a child of p's nearest ancestor that exec'd.
 */
struct process *
process_parent(struct correlator *c, const struct process *p)
{
	struct process *parent = process_of(c, &p->parent), *anchor;

	if (parent != NULL || p->parent.pid == 0)
		return parent;
	anchor = process_of(c, &p->anchor);
	if (anchor == NULL ||
	    (p->anchor.pid == p->parent.pid && p->anchor.start_ns == p->parent.start_ns))
		return anchor;
	parent = process_add(c, &p->parent, &p->anchor, &p->anchor);
	if (parent == NULL)
		return anchor;
	process_set_text(c, parent, program_text_ref(anchor->text));
	parent->context = anchor->context;
	parent->has_context = anchor->has_context;
	attribute_fork(c, parent, anchor);
	return parent;
}
