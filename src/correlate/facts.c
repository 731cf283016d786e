/*
 * SPDX-License-Identifier: Apache-2.0
 * Facts: a table from keys to the run that published them. A task in a container or in a scheduler's job does not
 * descend from its engine; these facts tie it to its run.
 *
 * Any program may name any folder in its arguments. A key therefore contains the user whose program showed it: what
 * others claim about the same folder is another fact. Only programs of system users, who are in the containers of
 * everybody, find the run of another user. For them each run that claims a folder has a second fact, and those of one
 * folder are in a list: a claim counts while its run lives, whatever other claims came before or after it.
 */
#include "correlate/facts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/text_budget.h"
#include "correlate/wal.h"
#include "model/user.h"

#define KEY_SIZE (ENGINE_PATH_SIZE + 2 * ENGINE_NAME_SIZE + RUN_ID_SIZE + 80)

enum fact_kind {		/* the first byte of a key */
	FACT_ROOT = 'R',	/* uid, engine, root */
	FACT_CLAIM = 'C',	/* uid, engine, root, task_id */
	FACT_SHARED = 'P',	/* engine, root, run: of whichever user */
	FACT_FAILED = 'f',	/* run, task, sample; n: how often */
	/* As logged by releases that knew one run of a folder, and whether it had a rival: */
	FACT_SHARED_BY_ONE = 'S',
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

/* Returns the first of those facts for programs of system users whose keys begin alike, with one folder. */
static struct fact *
first_claim(struct correlator *c, const char *key, size_t folder_len)
{
	struct fact *first;

	HASH_FIND(by_folder, c->claims, key, folder_len, first);
	return first;
}

/* Puts f at the end of the list of its folder, as it is last in c->facts, whose order the log keeps. */
static void
claim_enter(struct correlator *c, struct fact *f)
{
	struct fact *first = first_claim(c, f->key, f->folder_len);

	if (first == NULL)
		HASH_ADD_KEYPTR(by_folder, c->claims, f->key, f->folder_len, f);
	DL_APPEND(first, f);
}

static void
claim_leave(struct correlator *c, struct fact *f)
{
	struct fact *first = first_claim(c, f->key, f->folder_len);
	bool was_first = first == f;

	if (was_first)
		HASH_DELETE(by_folder, c->claims, f);
	DL_DELETE(first, f);
	if (was_first && first != NULL)
		HASH_ADD_KEYPTR(by_folder, c->claims, first->key, first->folder_len, first);
}

/*
 * Finds or makes the fact that r claims a folder, for programs of system users. is_latest: puts it behind the others.
 * folder: engine and root, as a key contains them. NULL: no room, or it is no folder.
 */
static struct fact *
claim_folder(struct correlator *c, struct run *r, const char *folder, size_t folder_len, bool is_latest)
{
	char key[KEY_SIZE];
	size_t id_len = strlen(r->id) + 1, len = 1 + folder_len + id_len;
	struct fact *f;

	if (len > KEY_SIZE || folder_len == 0 || folder[folder_len - 1] != '\0')
		return NULL;
	key[0] = FACT_SHARED;
	memcpy(key + 1, folder, folder_len);
	memcpy(key + 1 + folder_len, r->id, id_len);
	f = find(c, key, len);
	if (f != NULL && (!is_latest || f->next == NULL))
		return f;
	if (f != NULL) {
		claim_leave(c, f);
		HASH_DEL(c->facts, f);
		HASH_ADD(hh, c->facts, key, f->len, f);
	} else {
		f = fact_get(c, r, key, len);
		if (f == NULL)
			return NULL;
		f->folder_len = 1 + folder_len;
	}
	claim_enter(c, f);
	wal_fact(c, f);
	return f;
}

/* Returns whether both are known to be of one user. */
static bool
is_of_same_user(const struct run *a, const struct run *b)
{
	return a == b || (a->uid.known && b->uid.known && user_witness((uint32_t)a->uid.value, a->user_uid) ==
	    user_witness((uint32_t)b->uid.value, b->user_uid));
}

/* Returns true until the run's END: between two of its programs it lives, too. */
static bool
is_live(const struct run *r)
{
	return !run_is_idle(r) || (r->has_started && !r->has_ended);
}

/*
 * Returns the run that claims a folder for programs of system users: of live ones the latest, and if none is, the one
 * that was last. NULL: none, or several users have live ones, and *is_contested is true.
 */
static struct run *
run_of_folder(struct correlator *c, const char *engine, const char *root, bool *is_contested)
{
	char key[KEY_SIZE];
	size_t len = make_key(key, FACT_SHARED, engine, root, NULL);
	struct run *found = NULL;

	*is_contested = false;
	for (const struct fact *f = len > 0 ? first_claim(c, key, len) : NULL; f != NULL; f = f->next) {
		if (found == NULL) {
			found = f->run;
		} else if (is_live(f->run)) {
			if (is_live(found) && !is_of_same_user(f->run, found)) {
				*is_contested = true;
				return NULL;
			}
			found = f->run;
		} else if (!is_live(found) && f->run->work.end_ns >= found->work.end_ns) {
			found = f->run;
		}
	}
	return found;
}

void
fact_add_root(struct correlator *c, struct run *r, uint32_t uid, const char *engine, const char *root)
{
	char key[KEY_SIZE], user[USER_SIZE];
	size_t len;

	if (root[0] == '\0')
		return;
	publish(c, r, key, make_key(key, FACT_ROOT, user_text(uid, user), engine, root, NULL));
	len = make_key(key, FACT_SHARED, engine, root, NULL);
	if (len > 0)
		claim_folder(c, r, key + 1, len - 1, true);
}

struct run *
fact_find_root(struct correlator *c, uint32_t uid, const char *engine, const char *root, bool *is_contested)
{
	char key[KEY_SIZE], user[USER_SIZE];
	const struct fact *f;

	*is_contested = false;
	if (root[0] == '\0')
		return NULL;
	f = find(c, key, make_key(key, FACT_ROOT, user_text(uid, user), engine, root, NULL));
	return f == NULL && uid <= SYSTEM_UID_MAX ? run_of_folder(c, engine, root, is_contested) : run_of(f);
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

/* Restores one that is in the list of its folder. NULL: no room, or it is not the run's. */
static struct fact *
restore_claim(struct correlator *c, struct run *r, const char *key, size_t len)
{
	size_t id_len = strlen(r->id) + 1;

	if (len < 1 + id_len || memcmp(key + len - id_len, r->id, id_len) != 0)
		return NULL;
	return claim_folder(c, r, key + 1, len - 1 - id_len, true);
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
	if (key[0] == FACT_SHARED)
		return restore_claim(c, r, key, len);
	if (key[0] == FACT_SHARED_BY_ONE)
		return claim_folder(c, r, key + 1, len - 1, false);
	f = fact_get(c, r, key, len);
	if (f != NULL)
		f->n = n;
	return f;
}

void
facts_replayed(struct correlator *c)
{
	struct fact *f, *next;

	HASH_ITER(hh, c->facts, f, next) {
		const char *user_end = f->key[0] == FACT_ROOT ? memchr(f->key, '\0', f->len) : NULL;

		if (user_end != NULL)
			claim_folder(c, f->run, user_end + 1, (size_t)(f->key + f->len - user_end - 1), false);
	}
}

void
facts_forget(struct correlator *c, const struct run *r)
{
	struct fact *f, *next;

	HASH_ITER(hh, c->facts, f, next) {
		if (r != NULL && f->run != r)
			continue;
		HASH_DEL(c->facts, f);
		if (f->folder_len > 0)
			claim_leave(c, f);
		share_give_back(c, SHARE_FACTS, f->owner);
		text_budget_give_back(c, f->len);
		free(f);
	}
}
