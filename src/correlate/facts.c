/*
 * SPDX-License-Identifier: Apache-2.0
 * Facts: a table from keys to the run that published them. A task in a container or in a scheduler's job does not
 * descend from its engine; these facts tie it to its run.
 *
 * Any program may name any folder in its arguments. A key therefore contains the user whose program showed it: what
 * others claim about the same folder is another fact. Only for programs of system users, who are in the containers
 * of everybody, a second fact has the one user who claims the folder.
 */
#include "correlate/facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/text_budget.h"
#include "correlate/wal.h"
#include "model/user.h"

#define KEY_SIZE (ENGINE_PATH_SIZE + 2 * ENGINE_NAME_SIZE + 80)

enum fact_kind {		/* the first byte of a key */
	FACT_ROOT = 'R',	/* uid, engine, root */
	FACT_CLAIM = 'C',	/* uid, engine, root, task_id */
	FACT_SHARED = 'S',	/* engine, root: of whichever user; n: 1 if another one with a live run claims it too */
	FACT_FAILED = 'f',	/* run, task, sample; n: how often */
	/* As logged by releases whose facts had no user: */
	FACT_ROOT_OF_ANY = 'r',
	FACT_CLAIM_OF_ANY = 'c',
};

#define USER_SIZE 16		/* a uid as a part of a key */

static const char *
user_text(uint32_t uid, char out[USER_SIZE])
{
	snprintf(out, USER_SIZE, "%" PRIu32, uid);
	return out;
}

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

/* Finds or makes a fact, and gives it to r. NULL: no room. */
static struct fact *
fact_get(struct correlator *c, struct run *r, const char *key, size_t len)
{
	struct fact *f = find(c, key, len);

	if (f == NULL) {
		if (len == 0 || !text_budget_has(c, len, TEXT_BUDGET_BYTES) ||
		    !share_take(c, SHARE_FACTS, r->owner, HASH_COUNT(c->facts), FACTS_MAX))
			return NULL;
		f = calloc(1, sizeof(*f) + len);
		if (f == NULL) {
			share_give_back(c, SHARE_FACTS, r->owner);
			return NULL;
		}
		f->owner = r->owner;
		text_budget_take(c, len);
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

static uint32_t
witness_of(const struct run *r)
{
	return user_witness((uint32_t)r->uid.value, r->user_uid);
}

/* Adds the fact for programs of system users. It stays with its run while that lives. */
static void
publish_shared(struct correlator *c, struct run *r, const char *engine, const char *root)
{
	char key[KEY_SIZE];
	size_t len = make_key(key, FACT_SHARED, engine, root, NULL);
	struct fact *f = find(c, key, len);
	bool is_rival;

	if (f != NULL && f->run == r)
		return;
	is_rival = f != NULL && !run_is_idle(f->run) &&
	    !(f->run->uid.known && r->uid.known && witness_of(f->run) == witness_of(r));
	if (is_rival && f->n > 0)
		return;
	f = fact_get(c, is_rival ? f->run : r, key, len);
	if (f == NULL)
		return;
	f->n = is_rival;
	wal_fact(c, f);
}

void
fact_add_root(struct correlator *c, struct run *r, uint32_t uid, const char *engine, const char *root)
{
	char key[KEY_SIZE], user[USER_SIZE];

	if (root[0] == '\0')
		return;
	publish(c, r, key, make_key(key, FACT_ROOT, user_text(uid, user), engine, root, NULL));
	publish_shared(c, r, engine, root);
}

struct run *
fact_find_root(struct correlator *c, uint32_t uid, const char *engine, const char *root)
{
	char key[KEY_SIZE], user[USER_SIZE];
	const struct fact *f;

	if (root[0] == '\0')
		return NULL;
	f = find(c, key, make_key(key, FACT_ROOT, user_text(uid, user), engine, root, NULL));
	if (f == NULL && uid <= SYSTEM_UID_MAX) {
		f = find(c, key, make_key(key, FACT_SHARED, engine, root, NULL));
		if (f != NULL && f->n > 0)
			f = NULL;
	}
	return run_of(f);
}

void
fact_add_claim(struct correlator *c, struct run *r, uint32_t uid, const char *engine, const char *root,
    const char *task_id)
{
	char key[KEY_SIZE], user[USER_SIZE];

	if (task_id[0] != '\0')
		publish(c, r, key, make_key(key, FACT_CLAIM, user_text(uid, user), engine, root, task_id, NULL));
}

struct run *
fact_find_claim(struct correlator *c, uint32_t uid, const char *engine, const char *root, const char *task_id)
{
	char key[KEY_SIZE], user[USER_SIZE];

	if (task_id[0] == '\0')
		return NULL;
	return run_of(find(c, key, make_key(key, FACT_CLAIM, user_text(uid, user), engine, root, task_id, NULL)));
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

struct fact *
fact_restore(struct correlator *c, struct run *r, const char *key, size_t len, uint32_t n)
{
	char current[KEY_SIZE], user[USER_SIZE];
	struct fact *f;

	if (key[0] == FACT_ROOT_OF_ANY || key[0] == FACT_CLAIM_OF_ANY) {
		size_t at = make_key(current, key[0] == FACT_ROOT_OF_ANY ? FACT_ROOT : FACT_CLAIM,
		    user_text(r->uid.known ? (uint32_t)r->uid.value : UINT32_MAX, user), NULL);

		if (len - 1 > KEY_SIZE - at)
			return NULL;
		memcpy(current + at, key + 1, len - 1);
		key = current;
		len += at - 1;
	}
	f = fact_get(c, r, key, len);
	if (f != NULL)
		f->n = n;
	return f;
}

void
facts_forget(struct correlator *c, const struct run *r)
{
	struct fact *f, *next;

	HASH_ITER(hh, c->facts, f, next) {
		if (r != NULL && f->run != r)
			continue;
		HASH_DEL(c->facts, f);
		share_give_back(c, SHARE_FACTS, f->owner);
		text_budget_give_back(c, f->len);
		free(f);
	}
}
