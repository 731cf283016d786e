/*
 * SPDX-License-Identifier: Apache-2.0
 * values: one field of struct config, whatever its key's type.
 */
#include "config/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "config/errors.h"
#include "config/suggest.h"
#include "config/units.h"

int
strings_add(struct config_strings *s, const char *text)
{
	char **more = realloc(s->list, (s->n + 1) * sizeof(*more));
	char *copy = strdup(text);

	if (more != NULL)
		s->list = more;
	if (more == NULL || copy == NULL) {
		free(copy);
		return -ENOMEM;
	}
	s->list[s->n++] = copy;
	return 0;
}

void
strings_done(struct config_strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i]);
	free(s->list);
	*s = (struct config_strings){ 0 };
}

void
secret_done(struct config_secret *s)
{
	free(s->file);
	s->file = NULL;
	strings_done(&s->command);
}

void
pair_done(struct config_pair *pair)
{
	free(pair->name);
	free(pair->value);
	secret_done(&pair->secret);
}

static struct config_pair *
pairs_find(const struct config_pairs *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->list[i].name, name) == 0)
			return &p->list[i];
	}
	return NULL;
}

int
pairs_set(struct config_pairs *p, struct config_pair *pair)
{
	struct config_pair *old = pairs_find(p, pair->name), *more;

	if (old != NULL) {
		pair_done(old);
		*old = *pair;
		return 0;
	}
	more = realloc(p->list, (p->n + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	p->list = more;
	p->list[p->n++] = *pair;
	return 0;
}

static int
refuse_choice(const struct key *k, const char *text, char *why, size_t why_size)
{
	const char *near = suggest_nearest(text, k->choices);
	char show[SHOWN_SIZE], all[SUGGEST_LIST_SIZE];

	shown(text, show);
	suggest_list(k->choices, all);
	if (near != NULL)
		snprintf(why, why_size, "'%s' is not one of %s: did you mean '%s'?", show, all, near);
	else
		snprintf(why, why_size, "'%s' is not one of %s", show, all);
	return -EINVAL;
}

static int
choice_index(const struct key *k, const char *text)
{
	for (int i = 0; k->choices[i] != NULL; i++) {
		if (strcmp(k->choices[i], text) == 0)
			return i;
	}
	return -1;
}

bool
value_check_text(const struct key *k, const char *text, char *why, size_t why_size)
{
	for (const char *p = text; *p != '\0'; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f) {
			snprintf(why, why_size, "it holds a control character, such as a line's end: "
			    "write it on one line");
			return false;
		}
	}
	if (text[0] == '\0' && (k->initial == NULL || k->initial[0] != '\0' || k->type == KEY_LIST)) {
		snprintf(why, why_size, "it is empty: give a value, or remove it");
		return false;
	}
	if (k->choices != NULL && choice_index(k, text) < 0) {
		refuse_choice(k, text, why, why_size);
		return false;
	}
	return k->check == NULL || k->check(text, why, why_size);
}

static int
set_amount(const struct key *k, uint64_t *field, const char *text, char *why, size_t why_size)
{
	char show[SHOWN_SIZE], low[UNITS_TEXT_SIZE], high[UNITS_TEXT_SIZE];
	uint64_t value = 0;

	if (k->type == KEY_NUMBER && !text_number(text, UINT64_MAX, &value)) {
		snprintf(why, why_size, "'%s' is not a whole number", shown(text, show));
		return -EINVAL;
	}
	if ((k->type == KEY_DURATION && !duration_parse(text, &value, why, why_size)) ||
	    (k->type == KEY_SIZE && !size_parse(text, &value, why, why_size)))
		return -EINVAL;
	if (value < k->min || value > k->max) {
		snprintf(why, why_size, "'%s' is out of range: give %s to %s", shown(text, show),
		    key_amount(k, k->min, low), key_amount(k, k->max, high));
		return -EINVAL;
	}
	if (k->is_power_of_two && (value & (value - 1)) != 0) {
		uint64_t near = k->min;

		while (near * 2 <= value && near * 2 <= k->max)
			near *= 2;
		snprintf(why, why_size, "'%s' is not a power of two: give %s or %s", shown(text, show),
		    size_text(near, low), size_text(near * 2, high));
		return -EINVAL;
	}
	*field = value;
	return 0;
}

static int
set_bool(bool *field, const char *text, char *why, size_t why_size)
{
	static const char *const yes[] = { "yes", "on", "y", "1", "true", NULL };
	static const char *const no[] = { "no", "off", "n", "0", "false", NULL };
	char show[SHOWN_SIZE];

	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
		*field = text[0] == 't';
		return 0;
	}
	for (int i = 0; yes[i] != NULL; i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			snprintf(why, why_size, "'%s' is neither true nor false: write %s",
			    shown(text, show), strcasecmp(text, yes[i]) == 0 ? "true" : "false");
			return -EINVAL;
		}
	}
	snprintf(why, why_size, "'%s' is neither true nor false", shown(text, show));
	return -EINVAL;
}

int
value_set(const struct key *k, void *field, const char *text, char *why, size_t why_size)
{
	char *copy;
	int i;

	switch (k->type) {
	case KEY_BOOL:
		return set_bool(field, text, why, why_size);
	case KEY_NUMBER:
	case KEY_DURATION:
	case KEY_SIZE:
		return set_amount(k, field, text, why, why_size);
	case KEY_CHOICE:
		i = choice_index(k, text);
		if (i < 0)
			return refuse_choice(k, text, why, why_size);
		*(unsigned *)field = (unsigned)i;
		return 0;
	case KEY_TEXT:
		if (!value_check_text(k, text, why, why_size))
			return -EINVAL;
		copy = strdup(text);
		if (copy == NULL)
			return -ENOMEM;
		free(*(char **)field);
		*(char **)field = copy;
		return 0;
	default:
		return -EINVAL;
	}
}

/* Sets a list to a default, whose items are separated by commas. */
static int
set_default_list(struct config_strings *s, const char *items)
{
	char *copy = strdup(items), *save = NULL;
	int r = copy == NULL ? -ENOMEM : 0;

	for (char *item = copy != NULL ? strtok_r(copy, ",", &save) : NULL; item != NULL && r == 0;
	    item = strtok_r(NULL, ",", &save))
		r = strings_add(s, item);
	free(copy);
	return r;
}

int
value_set_default(const struct key *k, void *field)
{
	char why[256];

	value_done(k, field);
	if (k->initial == NULL || k->type == KEY_MAP || k->type == KEY_SECRETS)
		return 0;
	if (k->type == KEY_LIST)
		return set_default_list(field, k->initial);
	return value_set(k, field, k->initial, why, sizeof(why));
}

void
value_done(const struct key *k, void *field)
{
	struct config_pairs *pairs = field;

	switch (k->type) {
	case KEY_SECTION:
	case KEY_BOOL:
		*(bool *)field = false;
		break;
	case KEY_CHOICE:
		*(unsigned *)field = 0;
		break;
	case KEY_NUMBER:
	case KEY_DURATION:
	case KEY_SIZE:
		*(uint64_t *)field = 0;
		break;
	case KEY_TEXT:
		free(*(char **)field);
		*(char **)field = NULL;
		break;
	case KEY_LIST:
		strings_done(field);
		break;
	case KEY_SECRET:
		secret_done(field);
		break;
	case KEY_MAP:
	case KEY_SECRETS:
		for (size_t i = 0; i < pairs->n; i++)
			pair_done(&pairs->list[i]);
		free(pairs->list);
		*pairs = (struct config_pairs){ 0 };
		break;
	}
}

static bool
text_equal(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
strings_equal(const struct config_strings *a, const struct config_strings *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(a->list[i], b->list[i]) != 0)
			return false;
	}
	return true;
}

static bool
secret_equal(const struct config_secret *a, const struct config_secret *b)
{
	return text_equal(a->file, b->file) && strings_equal(&a->command, &b->command);
}

/* Names are unique in each, so lists of the same length in which each name is found are equal, in any order. */
static bool
pairs_equal(const struct config_pairs *a, const struct config_pairs *b)
{
	for (size_t i = 0; a->n == b->n && i < a->n; i++) {
		const struct config_pair *one = &a->list[i], *other = pairs_find(b, one->name);

		if (other == NULL || !text_equal(one->value, other->value) ||
		    !secret_equal(&one->secret, &other->secret))
			return false;
	}
	return a->n == b->n;
}

bool
value_equal(const struct key *k, const void *a, const void *b)
{
	switch (k->type) {
	case KEY_SECTION:
	case KEY_BOOL:
		return *(const bool *)a == *(const bool *)b;
	case KEY_CHOICE:
		return *(const unsigned *)a == *(const unsigned *)b;
	case KEY_NUMBER:
	case KEY_DURATION:
	case KEY_SIZE:
		return *(const uint64_t *)a == *(const uint64_t *)b;
	case KEY_TEXT:
		return text_equal(*(char *const *)a, *(char *const *)b);
	case KEY_LIST:
		return strings_equal(a, b);
	case KEY_SECRET:
		return secret_equal(a, b);
	case KEY_MAP:
	case KEY_SECRETS:
		return pairs_equal(a, b);
	}
	return false;
}
