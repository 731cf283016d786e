/*
 * SPDX-License-Identifier: Apache-2.0
 * state: look-ups in the correlator's tables, and names that outlive the rules.
 */
#include "correlate/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/correlator.h"
#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/tasks.h"
#include "correlate/text_budget.h"

enum {
	SHORT_STRING = 128,	/* bytes: of a name, not of a path */
};

const char *
kept_name(struct correlator *c, const char *name)
{
	size_t len = name != NULL ? strlen(name) : 0;
	struct kept_name *k;

	if (name == NULL)
		return NULL;
	HASH_FIND(hh, c->names, name, len, k);
	if (k == NULL && HASH_COUNT(c->names) < NAMES_MAX && len < ENGINE_NAME_SIZE) {
		k = calloc(1, sizeof(*k) + len + 1);
		if (k == NULL)
			return NULL;
		memcpy(k->text, name, len);
		HASH_ADD(hh, c->names, text, len, k);
	}
	return k != NULL ? k->text : NULL;
}

void
kept_names_free(struct correlator *c)
{
	struct kept_name *k, *next;

	HASH_ITER(hh, c->names, k, next) {
		HASH_DEL(c->names, k);
		free(k);
	}
}

/* Returns whether the budget has room for a text. A short one always has it: how many there are has a limit, too. */
static bool
has_room(struct correlator *c, const char *text)
{
	size_t size = strlen(text) + 1;

	if (size <= SHORT_STRING || text_budget_has(c, size, TEXT_BUDGET_BYTES))
		return true;
	text_budget_count_cut(c, 0);
	return false;
}

int
state_set_string(struct correlator *c, char **to, const char *text)
{
	char *copy = NULL;

	if (text != NULL && has_room(c, text)) {
		copy = strdup(text);
		if (copy == NULL)
			return -ENOMEM;
		text_budget_take(c, strlen(copy) + 1);
	}
	state_free_string(c, *to);
	*to = copy;
	return 0;
}

void
state_learn_string(struct correlator *c, char **to, const char *text)
{
	if (*to == NULL && text != NULL && text[0] != '\0')
		(void)state_set_string(c, to, text);
}

void
state_free_string(struct correlator *c, char *s)
{
	if (s == NULL)
		return;
	text_budget_give_back(c, strlen(s) + 1);
	free(s);
}

int64_t
state_wall_us(const struct correlator *c, uint64_t boot_ns)
{
	return (int64_t)(boot_ns + (uint64_t)c->clock_ns) / 1000;
}

/* Writes value in lower-case hex at out; returns the end. */
static char *
put_hex(char *out, uint64_t value)
{
	int shift = value != 0 ? (63 - __builtin_clzll(value)) & ~3 : 0;

	for (; shift >= 0; shift -= 4)
		*out++ = "0123456789abcdef"[value >> shift & 15];
	return out;
}

/*
 * Makes an id that is unique among all programs of all boots of a host: the first part of the boot id, pid, start
 * and index, in hex. Written without printf, since the records of each program contain four.
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
	for (p = c->by_pid[process_slot(pid)]; p != NULL && !process_is(p, &id); p = p->same_slot)
		continue;
	return p;
}

struct process *
process_of(struct correlator *c, const struct program_key *key)
{
	return process_find(c, key->start_ns, key->pid);
}

struct run *
run_find(struct correlator *c, const char *id)
{
	struct run *r;

	HASH_FIND_STR(c->runs, id, r);
	return r;
}

struct task *
task_find(struct correlator *c, uint64_t number)
{
	struct task *t;

	HASH_FIND(hh, c->tasks, &number, sizeof(number), t);
	return t;
}
