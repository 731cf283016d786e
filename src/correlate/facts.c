/*
 * SPDX-License-Identifier: Apache-2.0
 * Facts: a table from keys to the run that published them. A task in a container or in a scheduler's job does not
 * descend from its engine; these facts tie it to its run.
 */
#include "correlate/facts.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/wal.h"

#define KEY_SIZE (ENGINE_PATH_SIZE + 2 * ENGINE_NAME_SIZE + 64)

enum fact_kind {		/* the first byte of a key */
	FACT_ROOT = 'r',	/* engine, root */
	FACT_CLAIM = 'c',	/* engine, root, task_id */
	FACT_FAILED = 'f',	/* run, task, sample */
};

/* Joins the parts, each with its NUL; the list ends with NULL. Returns the length; 0: too long. */
static size_t
make_key(char key[KEY_SIZE], enum fact_kind kind, ...)
{
	size_t len = 1;
	const char *part;
	va_list parts;

	key[0] = (char)kind;
	va_start(parts, kind);
	while ((part = va_arg(parts, const char *)) != NULL) {
		size_t n = strlen(part) + 1;

		if (len + n > KEY_SIZE) {
			len = 0;
			break;
		}
		memcpy(key + len, part, n);
		len += n;
	}
	va_end(parts);
	return len;
}

static struct fact *
find(struct correlator *c, const char *key, size_t len)
{
	struct fact *f = NULL;

	if (len > 0)
		HASH_FIND(hh, c->facts, key, len, f);
	return f;
}

struct fact *
fact_get(struct correlator *c, struct run *r, const char *key, size_t len)
{
	struct fact *f = find(c, key, len);

	if (f == NULL) {
		f = len > 0 && HASH_COUNT(c->facts) < FACTS_MAX ? calloc(1, sizeof(*f) + len) : NULL;
		if (f == NULL)
			return NULL;
		memcpy(f->key, key, len);
		f->len = len;
		HASH_ADD(hh, c->facts, key, len, f);
	}
	f->run = r;
	return f;
}

/* Adds a fact; one that the same run added before is not logged again. */
static void
publish(struct correlator *c, struct run *r, const char *key, size_t len)
{
	struct fact *f = find(c, key, len);

	if (f != NULL && f->run == r)
		return;
	f = fact_get(c, r, key, len);
	if (f != NULL)
		wal_fact(c, f);
}

static struct run *
run_of(const struct fact *f)
{
	return f != NULL ? f->run : NULL;
}

void
fact_add_root(struct correlator *c, struct run *r, const char *engine, const char *root)
{
	char key[KEY_SIZE];

	if (root[0] != '\0')
		publish(c, r, key, make_key(key, FACT_ROOT, engine, root, NULL));
}

struct run *
fact_find_root(struct correlator *c, const char *engine, const char *root)
{
	char key[KEY_SIZE];

	return root[0] != '\0' ? run_of(find(c, key, make_key(key, FACT_ROOT, engine, root, NULL))) : NULL;
}

void
fact_add_claim(struct correlator *c, struct run *r, const char *engine, const char *root, const char *task_id)
{
	char key[KEY_SIZE];

	if (task_id[0] != '\0')
		publish(c, r, key, make_key(key, FACT_CLAIM, engine, root, task_id, NULL));
}

struct run *
fact_find_claim(struct correlator *c, const char *engine, const char *root, const char *task_id)
{
	char key[KEY_SIZE];

	return task_id[0] != '\0' ? run_of(find(c, key, make_key(key, FACT_CLAIM, engine, root, task_id, NULL))) : NULL;
}

int32_t
fact_attempt(struct correlator *c, const struct run *r, const char *task, const char *sample)
{
	char key[KEY_SIZE];
	const struct fact *f = find(c, key, make_key(key, FACT_FAILED, r->id, task, sample, NULL));

	return f != NULL ? (int32_t)f->n + 1 : 1;
}

void
fact_add_failure(struct correlator *c, struct run *r, const char *task, const char *sample)
{
	char key[KEY_SIZE];
	struct fact *f = fact_get(c, r, key, make_key(key, FACT_FAILED, r->id, task, sample, NULL));

	if (f == NULL)
		return;
	f->n++;
	wal_fact(c, f);
}

void
facts_forget(struct correlator *c, const struct run *r)
{
	struct fact *f, *next;

	HASH_ITER(hh, c->facts, f, next) {
		if (r != NULL && f->run != r)
			continue;
		HASH_DEL(c->facts, f);
		free(f);
	}
}
