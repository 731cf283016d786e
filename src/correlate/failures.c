/*
 * SPDX-License-Identifier: Apache-2.0
 * Programs that failed, and which of their failures were passed on; see findings.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "correlate/findings.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"

#define LINKS_MAX 64			/* links followed of a chain, which may have grown after it was made */

/* Returns the status as a shell's $? has it. */
static int
shell_status(const struct failure *f)
{
	return WIFSIGNALED(f->status) ? 128 + WTERMSIG(f->status) : WEXITSTATUS(f->status);
}

struct failure *
failure_find(struct correlator *c, const struct program_key *program)
{
	struct failure *f;

	HASH_FIND(hh, c->failures, program, sizeof(*program), f);
	return f;
}

struct failure *
failure_ref(struct failure *f)
{
	if (f != NULL)
		f->refs++;
	return f;
}

static void
failure_free(struct correlator *c, struct failure *f)
{
	wal_forget_failure(c, &f->mark);
	HASH_DEL(c->failures, f);
	share_give_back(c, SHARE_FAILURES, f->owner);
	free(f);
}

void
failure_unref(struct correlator *c, struct failure *f)
{
	while (f != NULL && --f->refs == 0 && !c->wal.is_replaying) {
		struct failure *of = f->of;

		failure_free(c, f);
		f = of;
	}
}

/* Frees failures without references. */
static void
sweep(struct correlator *c)
{
	struct failure *f, *next;
	bool is_done;

	do {
		is_done = true;
		HASH_ITER(hh, c->failures, f, next) {
			if (f->refs > 0)
				continue;
			if (f->of != NULL && --f->of->refs == 0)
				is_done = false;	/* it may be before this one in the list */
			failure_free(c, f);
		}
	} while (!is_done);
}

void
failures_free(struct correlator *c)
{
	struct failure *f, *next;

	HASH_ITER(hh, c->failures, f, next)
		failure_free(c, f);
}

struct failure *
failure_get(struct correlator *c, const struct program_key *program, owner_t owner, const char *const text[4])
{
	struct failure *f = failure_find(c, program);
	size_t size[4], all = 0;
	char *at;

	if (f != NULL && f->refs > 0)
		return f;
	if (f != NULL) {		/* from a replay: it was released, and its process seen again */
		failure_unref(c, f->of);
		failure_free(c, f);
	}
	if (HASH_COUNT(c->failures) >= FAILURES_MAX && c->wal.is_replaying)
		sweep(c);
	for (int i = 0; i < 4; i++)
		all += size[i] = strlen(text[i]) + 1;
	if (!share_take(c, SHARE_FAILURES, owner, HASH_COUNT(c->failures), FAILURES_MAX))
		return NULL;
	f = calloc(1, sizeof(*f) + all);
	if (f == NULL) {
		share_give_back(c, SHARE_FAILURES, owner);
		return NULL;
	}
	f->owner = owner;
	f->program = *program;
	at = f->text;
	for (int i = 0; i < 4; i++) {
		memcpy(at, text[i], size[i]);
		*(const char **[]){ &f->tool, &f->task_id, &f->task, &f->sample }[i] = at;
		at += size[i];
	}
	HASH_ADD(hh, c->failures, program, sizeof(f->program), f);
	return f;
}

const struct failure *
failure_leaf(const struct failure *f)
{
	for (int i = 0; i < LINKS_MAX && f->of != NULL; i++)
		f = f->of;
	return f;
}

int
failure_set_of(struct correlator *c, struct failure *f, struct failure *of)
{
	struct failure *old = f->of;

	for (const struct failure *g = of; g != NULL; g = g->of) {
		if (g == f)
			return -EBADMSG;
	}
	f->of = failure_ref(of);
	failure_unref(c, old);
	return 0;
}

/* Links f to the failure that it passed on. In a full chain the outermost link below f is left out. */
static void
pass_on(struct correlator *c, struct failure *f, struct failure *of)
{
	uint32_t skipped = 0;
	unsigned n = 0;

	for (const struct failure *g = of; g != NULL; g = g->of)
		n++;
	if (n > FAILURE_CHAIN_MAX) {
		skipped = of->skipped + 1;
		of = of->of;
	}
	if (of == f->of && skipped == f->skipped)
		return;
	if (failure_set_of(c, f, of) < 0)
		return;
	f->skipped = skipped;
	wal_mark(c, MARKED_FAILURES, &f->mark, NEWS_ALL);
}

struct failure *
failure_of(const struct process *p)
{
	return p->failures != NULL ? p->failures->own : NULL;
}

/*
 * Returns the process that may pass p's failure on: the program with a record that started p, if it still runs that
 * program.
 */
static struct process *
starter(struct correlator *c, const struct process *p)
{
	struct process *parent = process_of(c, &p->parent);
	const struct program_key *above;

	if (parent == NULL || parent == p || parent->self.index != p->parent.index)
		return NULL;
	if (!parent->is_excluded)
		return parent;
	above = &parent->above;
	parent = process_of(c, above);
	return parent != NULL && parent != p && parent->self.index == above->index ? parent : NULL;
}

/* A process without failures needs no struct for them. */
static void
drop_empty(struct process *p)
{
	if (p->failures == NULL || p->failures->own != NULL || p->failures->n_below > 0)
		return;
	free(p->failures);
	p->failures = NULL;
}

/* Likewise, except during a replay, when more may follow. */
static void
shrink(const struct correlator *c, struct process *p)
{
	if (!c->wal.is_replaying)
		drop_empty(p);
}

static void
drop(struct correlator *c, struct failures *x, unsigned i)
{
	struct failure *f = x->below[i];

	x->below[i] = x->below[--x->n_below];
	f->parent = (struct program_key){ 0 };
	failure_unref(c, f);
}

static void
drop_all(struct correlator *c, struct process *p)
{
	struct failures *x = p->failures;

	if (x == NULL)
		return;
	while (x->n_below > 0)
		drop(c, x, x->n_below - 1);
	x->last_end_ns = 0;
	x->has_left_out = false;
}

/* Orders failures by their end; program keys break ties, so that the order is total. */
static bool
is_earlier(const struct failure *a, const struct failure *b)
{
	return b == NULL || a->end_ns < b->end_ns ||
	    (a->end_ns == b->end_ns && memcmp(&a->program, &b->program, sizeof(a->program)) < 0);
}

/* Returns true if p started another child after this one ended. */
static bool
is_passed(const struct process *p, const struct failure *f)
{
	return p->child_begin_ns >= f->end_ns;
}

/* Returns the first failure below p that goes back to the OOM killer; NULL: none does. */
static struct failure *
first_oom(const struct failures *x, uint64_t until_ns)
{
	struct failure *first = NULL;

	for (unsigned i = 0; i < x->n_below; i++) {
		if (x->below[i]->end_ns <= until_ns && failure_leaf(x->below[i])->is_oom &&
		    is_earlier(x->below[i], first))
			first = x->below[i];
	}
	return first;
}

/* Returns true if p cannot pass f on, however p ends. */
static bool
is_hopeless(const struct process *p, const struct failure *f)
{
	const struct failures *x = p->failures;
	int status = shell_status(f);

	if (!is_passed(p, f) || f == first_oom(x, UINT64_MAX))
		return false;
	if (status <= 1)
		return true;
	for (unsigned i = 0; i < x->n_below; i++) {
		if (shell_status(x->below[i]) == status && is_earlier(f, x->below[i]) && f != x->below[i])
			return true;
	}
	return false;
}

static void
prune(struct correlator *c, struct process *p)
{
	struct failures *x = p->failures;

	for (unsigned i = x->n_below; i-- > 0;) {
		if (is_hopeless(p, x->below[i]))
			drop(c, x, i);
	}
}

/* Drops one failure to make room: one that another child followed, else the last to end. */
static void
make_room(struct correlator *c, struct process *p)
{
	struct failures *x = p->failures;
	const struct failure *oom = first_oom(x, UINT64_MAX);
	unsigned victim = 0;
	int best = -1;

	for (unsigned i = 0; i < x->n_below; i++) {
		const struct failure *f = x->below[i];
		int worth = f == oom ? 0 : is_passed(p, f) ? 2 : 1;

		if (worth > best || (worth == best && is_earlier(x->below[victim], f) == (worth == 1))) {
			best = worth;
			victim = i;
		}
	}
	drop(c, x, victim);
	x->has_left_out = true;
}

static struct failure *
passed_on(const struct process *p)
{
	const struct failures *x = p->failures;
	const struct failure *own = x->own;
	struct failure *first = NULL, *same = first_oom(x, own->end_ns);
	int status = shell_status(own);
	bool is_same = false;
	uint64_t last_ns = 0;

	if (same != NULL)
		return same;
	for (unsigned i = 0; i < x->n_below; i++) {
		struct failure *f = x->below[i];

		if (f->end_ns > own->end_ns)
			continue;
		if (f->end_ns > last_ns)
			last_ns = f->end_ns;
		if (!is_passed(p, f)) {
			is_same = is_same || shell_status(f) == status;
			if (is_earlier(f, first))
				first = f;
		}
		if (shell_status(f) == status && status > 1 && (same == NULL || is_earlier(same, f)))
			same = f;
	}
	if (x->last_end_ns <= own->end_ns && x->last_end_ns > last_ns)
		last_ns = x->last_end_ns;
	if (first != NULL && (is_same || own->end_ns - last_ns <= FAILURE_PROMPT_NS))
		return first;
	return same;
}

static void
judge(struct correlator *c, struct process *p)
{
	if (failure_of(p) != NULL)
		pass_on(c, p->failures->own, passed_on(p));
}

static bool
failures_make(struct process *p)
{
	if (p->failures == NULL)
		p->failures = calloc(1, sizeof(*p->failures));
	return p->failures != NULL;
}

/* Adds f to its parent p, unless p cannot have failed of it. */
static void
offer(struct correlator *c, struct process *p, struct failure *f)
{
	const struct failure *own = failure_of(p);
	struct failures *x;

	/* During a replay, has_failed is known before own. */
	if (p->is_over && (own == NULL ? !p->has_failed : f->end_ns > own->end_ns))
		return;
	if (!failures_make(p))
		return;
	x = p->failures;
	for (unsigned i = 0; i < x->n_below; i++) {
		if (x->below[i] == f)
			return;
	}
	prune(c, p);
	if (x->n_below == FAILURES_BELOW_MAX)
		make_room(c, p);
	f->parent = p->self;
	x->below[x->n_below++] = failure_ref(f);
	if (f->end_ns > x->last_end_ns)
		x->last_end_ns = f->end_ns;
	prune(c, p);
	shrink(c, p);
}

void
failures_begin(struct correlator *c, const struct process *p)
{
	struct process *parent;

	if (c->ops.finding == NULL || (p->above.pid == p->id.pid && p->above.start_ns == p->id.start_ns))
		return;
	parent = starter(c, p);
	if (parent == NULL || p->program_start_ns <= parent->child_begin_ns)
		return;
	parent->child_begin_ns = p->program_start_ns;
	if (parent->failures == NULL)
		return;
	prune(c, parent);
	if (!c->wal.is_replaying)
		judge(c, parent);
	shrink(c, parent);
}

void
failures_known_begin(struct correlator *c, const struct process *p)
{
	if ((p->is_announced || p->is_over) && !p->is_excluded)
		failures_begin(c, p);
}

/*
 * Records that a child ended well while p may yet fail of another: the time between p's end and its last child's
 * counts.
 */
static void
ended_well(struct correlator *c, struct process *p, uint64_t end_ns)
{
	struct failures *x = p->failures;
	bool is_any = false;

	if (x == NULL || end_ns <= x->last_end_ns || (p->is_over && (x->own == NULL || end_ns > x->own->end_ns)))
		return;
	for (unsigned i = 0; i < x->n_below; i++)
		is_any = is_any || !is_passed(p, x->below[i]);
	if (!is_any)
		return;
	x->last_end_ns = end_ns;
	wal_process(c, p, NEWS_ALL);
	judge(c, p);
}

struct opt_u64
failure_memory_limit(const struct process *p)
{
	static const struct opt_u64 none;

	if (p->location != NULL && p->location->memory_bytes.known)
		return p->location->memory_bytes;
	return p->run != NULL ? p->run->memory_bytes : none;
}

static struct failure *
failure_new(struct correlator *c, struct process *p, const char *comm)
{
	const struct text *x = p->text;
	const struct task *t = p->is_overhead ? NULL : p->task;
	const char *text[] = { x != NULL && x->tool != NULL ? x->tool : comm, t != NULL ? t->task_id : "",
		t != NULL ? t->name : "", t != NULL ? t->sample : p->run->sample != NULL ? p->run->sample : "" };
	struct failure *f = failures_make(p) ? failure_get(c, &p->self, p->run->owner, text) : NULL;

	if (f == NULL) {
		c->failures_left_out++;
		shrink(c, p);
	}
	return f;
}

void
failures_end(struct correlator *c, struct process *p, const struct program_end *end)
{
	struct process *parent;
	struct failure *f;

	if (c->ops.finding == NULL || p->run == NULL)
		return;
	if (end->status == 0) {
		drop_all(c, p);
		shrink(c, p);
		if (HASH_COUNT(c->failures) == 0)
			return;
		parent = starter(c, p);
		if (parent != NULL)
			ended_well(c, parent, end->end_ns);
		return;
	}
	f = failure_new(c, p, end->comm);
	if (f == NULL)
		return;
	p->has_failed = true;
	wal_process(c, p, NEWS_ALL);
	if (p->failures->own == NULL)
		p->failures->own = failure_ref(f);
	f->status = end->status;
	f->is_oom = end->is_oom;
	f->is_engine = p->is_engine;
	f->begin_ns = p->program_start_ns;
	f->end_ns = end->end_ns > f->begin_ns ? end->end_ns : f->begin_ns;
	f->peak_bytes = end->peak_bytes;
	f->limit_bytes = failure_memory_limit(p);
	wal_mark(c, MARKED_FAILURES, &f->mark, NEWS_ALL);
	judge(c, p);
	if (f->of == NULL && p->failures->has_left_out)
		c->failures_left_out++;	/* it may have failed of one that was dropped */
	parent = starter(c, p);
	if (parent == NULL || parent->run != p->run)
		return;
	offer(c, parent, f);
	judge(c, parent);
}

void
failures_exec(struct correlator *c, struct process *p)
{
	p->child_begin_ns = 0;
	drop_all(c, p);
	shrink(c, p);
}

void
failures_child_ended(struct process *p, uint64_t end_ns)
{
	if (end_ns > 0 && failures_make(p) && end_ns > p->failures->last_end_ns)
		p->failures->last_end_ns = end_ns;
}

/* Gives p its own failure, if its last program is the one that failed. */
static void
take_own(struct correlator *c, struct process *p, struct failure *f)
{
	if (!p->is_over || !p->has_failed || p->self.index != f->program.index || !failures_make(p))
		return;
	if (p->failures->own == NULL)
		p->failures->own = failure_ref(f);
	for (unsigned i = p->failures->n_below; i-- > 0;) {
		if (p->failures->below[i]->end_ns > f->end_ns)
			drop(c, p->failures, i);
	}
}

/* Takes f from the program that might have passed it on. */
static void
withdraw(struct correlator *c, struct failure *f)
{
	struct process *p = f->parent.pid != 0 ? process_of(c, &f->parent) : NULL;

	for (unsigned i = p != NULL && p->failures != NULL ? p->failures->n_below : 0; i-- > 0;) {
		if (p->failures->below[i] == f)
			drop(c, p->failures, i);
	}
}

void
failure_attach(struct correlator *c, struct failure *f, const struct program_key *by)
{
	struct process *p = process_of(c, &f->program), *parent = process_of(c, by);

	if (p != NULL)
		take_own(c, p, f);
	withdraw(c, f);		/* an earlier entry may have had another end, or parent */
	if (parent != NULL && parent != p && parent->self.index == by->index)
		offer(c, parent, f);
}

void
failures_disown(struct correlator *c, struct process *p)
{
	if (p->failures == NULL)
		return;
	failure_unref(c, p->failures->own);
	p->failures->own = NULL;
}

void
failures_forget(struct correlator *c, struct process *p)
{
	struct failures *x = p->failures;

	if (x == NULL)
		return;
	drop_all(c, p);
	failure_unref(c, x->own);
	free(x);
	p->failures = NULL;
}

/* Counts a failure and those that it passed on as an owner's. All of a chain are of one run. */
static void
own(struct correlator *c, struct failure *f, owner_t owner)
{
	for (; f != NULL && f->owner == 0; f = f->of) {
		f->owner = owner;
		share_add(c, SHARE_FAILURES, owner);
	}
}

/* The log has no owners: they are those of the runs of what holds the failures. */
static void
own_all(struct correlator *c)
{
	struct process *p;
	struct task *t;
	struct run *r;

	for (p = c->processes; p != NULL; p = p->next) {
		if (p->failures == NULL || p->run == NULL)
			continue;
		own(c, p->failures->own, p->run->owner);
		for (unsigned i = 0; i < p->failures->n_below; i++)
			own(c, p->failures->below[i], p->run->owner);
	}
	for (t = c->tasks; t != NULL; t = t->hh.next)
		own(c, t->failure, t->run->owner);
	for (r = c->runs; r != NULL; r = r->hh.next)
		own(c, r->failure, r->owner);
}

void
failures_replayed(struct correlator *c)
{
	struct failure *f;
	struct process *p;

	for (p = c->processes; p != NULL; p = p->next) {
		failures_known_begin(c, p);
		f = failure_find(c, &p->self);
		if (f != NULL && f->refs > 0)
			take_own(c, p, f);	/* its entry was before that of p */
	}
	for (p = c->processes; p != NULL; p = p->next) {
		if (p->failures != NULL)
			prune(c, p);
	}
	sweep(c);
	own_all(c);
	for (p = c->processes; p != NULL; p = p->next)
		drop_empty(p);
}
