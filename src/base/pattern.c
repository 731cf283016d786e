/*
 * SPDX-License-Identifier: Apache-2.0
 * pattern: a regular expression of a rule, on PCRE2.
 *
 * PCRE2 counts a match's steps anew from each offset where it could begin, and does not count the bytes that one
 * item (`x*`) walks over, so its limits alone bound nothing over a long text. Therefore each pattern is compiled so
 * that PCRE2 calls us before each item; the bytes that it walked are the distance between two calls. That costs a
 * search nothing before the first byte where it could begin, which is as far as most get.
 *
 * Steps (base/steps.h) are counted rather than time: the same text always gives the same answer. Patterns are not
 * compiled to machine code (JIT), because the agent may run where no memory is writable and executable.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/pattern.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/steps.h"

enum {
	PATTERN_BYTES_MAX = 4096,
	NESTED_MAX = 64,
	GROUPS_MAX = 64,		/* includes numbered groups */
	HEAP_KIB_MAX = 1024,		/* memory for PCRE2's backtracking */
	SEARCH_STEPS = 20000,		/* of one search: half a millisecond */
	PCRE2_LIMIT = 100000,		/* PCRE2's own limit, from one start offset: only a second bound */
	WALKED_PER_STEP = 16,		/* bytes that an item, or the search for one, walks over in a step */
	SEARCH_BEGINS = 2,		/* steps that it takes PCRE2 to begin a search */
};

struct pattern {
	pcre2_code *code;	/* owned, as are all members below */
	char *text;
	uint32_t item_steps;	/* steps charged for an item: {1000} walks without a call */
	size_t n_groups;
	struct group {
		const char *name;	/* the code's */
		uint32_t number;
	} groups[];		/* indexed by number */
};

/* Shared by all patterns; allocated while any pattern exists. */
static struct {
	size_t users;
	pcre2_compile_context *compile;
	pcre2_match_context *match;
	pcre2_match_data *data;
} shared;

static void
shared_unref(void)
{
	if (--shared.users > 0)
		return;
	pcre2_match_data_free(shared.data);
	pcre2_match_context_free(shared.match);
	pcre2_compile_context_free(shared.compile);
	memset(&shared, 0, sizeof(shared));
}

static bool
shared_ref(void)
{
	if (shared.users++ > 0)
		return true;
	shared.compile = pcre2_compile_context_create(NULL);
	shared.match = pcre2_match_context_create(NULL);
	shared.data = pcre2_match_data_create(GROUPS_MAX, NULL);
	if (shared.compile == NULL || shared.match == NULL || shared.data == NULL) {
		shared_unref();
		return false;
	}
	pcre2_set_max_pattern_length(shared.compile, PATTERN_BYTES_MAX);
	pcre2_set_parens_nest_limit(shared.compile, NESTED_MAX);
	pcre2_set_heap_limit(shared.match, HEAP_KIB_MAX);
	pcre2_set_match_limit(shared.match, PCRE2_LIMIT);
	return true;
}

void
pattern_free(struct pattern *p)
{
	if (p == NULL)
		return;
	pcre2_code_free(p->code);
	free(p->text);
	free(p);
	shared_unref();
}

/*
 * Returns the largest number of any {n} or {n,m} in text, also of one that is no repeat: too large only costs
 * time.
 */
static uint32_t
largest_repeat(const char *text)
{
	unsigned long largest = 0;

	for (const char *p = text; *p != '\0'; p++) {
		unsigned long n = *p == '{' || *p == ',' ? strtoul(p + 1, NULL, 10) : 0;

		if (n > largest && n <= UINT16_MAX)	/* PCRE2 accepts no larger one */
			largest = n;
	}
	return (uint32_t)largest;
}

/* Converts an offset in bytes, which PCRE2 reports for UTF-8 in a pattern, to one in characters. */
static size_t
character_at(const char *text, size_t offset)
{
	size_t n = 1;

	for (size_t i = 0; i < offset && text[i] != '\0'; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

static pcre2_code *
compile(const char *text, char *error, size_t error_size)
{
	pcre2_code *code;
	PCRE2_SIZE offset;
	int r;

	code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
	    PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_AUTO_CALLOUT, &r, &offset, shared.compile);
	if (code == NULL) {
		char what[160] = "";

		pcre2_get_error_message(r, (PCRE2_UCHAR *)what, sizeof(what));
		snprintf(error, error_size, "%s, at character %zu", what, character_at(text, offset));
	}
	return code;
}

static int
by_number(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static bool
read_groups(struct pattern *p, uint32_t n, char *error, size_t error_size)
{
	uint32_t entry_size = 0, captures = 0;
	PCRE2_SPTR table = NULL;

	pcre2_pattern_info(p->code, PCRE2_INFO_CAPTURECOUNT, &captures);
	if (captures >= GROUPS_MAX) {
		snprintf(error, error_size, "more than %d groups: write (?:...) for groups that need no value",
		    GROUPS_MAX - 1);
		return false;
	}
	pcre2_pattern_info(p->code, PCRE2_INFO_NAMEENTRYSIZE, &entry_size);
	pcre2_pattern_info(p->code, PCRE2_INFO_NAMETABLE, &table);
	/* The table is sorted by name: two bytes of number, then the name. */
	for (uint32_t i = 0; i < n; i++, table += entry_size) {
		p->groups[i].number = (uint32_t)table[0] << 8 | table[1];
		p->groups[i].name = (const char *)table + 2;
		if (i > 0 && strcmp(p->groups[i].name, p->groups[i - 1].name) == 0) {
			snprintf(error, error_size, "group '%s' is defined twice", p->groups[i].name);
			return false;
		}
	}
	p->n_groups = n;
	qsort(p->groups, n, sizeof(p->groups[0]), by_number);
	return true;
}

struct pattern *
pattern_new(const char *text, char *error, size_t error_size)
{
	struct pattern *p;
	pcre2_code *code;
	uint32_t n = 0;

	snprintf(error, error_size, "no memory");
	if (!shared_ref())
		return NULL;
	code = compile(text, error, error_size);
	if (code == NULL) {
		shared_unref();
		return NULL;
	}
	pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &n);
	p = calloc(1, sizeof(*p) + n * sizeof(p->groups[0]));
	if (p == NULL) {
		pcre2_code_free(code);
		shared_unref();
		return NULL;
	}
	p->code = code;
	p->text = strdup(text);
	p->item_steps = 1 + largest_repeat(text) / WALKED_PER_STEP;
	if (p->text == NULL || !read_groups(p, n, error, error_size)) {
		pattern_free(p);
		return NULL;
	}
	if (error_size > 0)
		error[0] = '\0';
	return p;
}

const char *
pattern_text(const struct pattern *p)
{
	return p->text;
}

const char *
pattern_group(const struct pattern *p, size_t i)
{
	return i < p->n_groups ? p->groups[i].name : NULL;
}

bool
pattern_has_group(const struct pattern *p, const char *name)
{
	for (size_t i = 0; i < p->n_groups; i++) {
		if (strcmp(p->groups[i].name, name) == 0)
			return true;
	}
	return false;
}

struct budget {
	uint64_t left;
	uint32_t item_steps;
	size_t at;		/* offset of the last call */
};

/* Runs before each item of a pattern. A result other than 0 aborts the match. */
static int
on_item(pcre2_callout_block *block, void *arg)
{
	struct budget *b = arg;
	size_t at = block->current_position;
	uint64_t steps = b->item_steps + (at > b->at ? at - b->at : b->at - at) / WALKED_PER_STEP;

	b->at = at;
	if (steps > b->left)
		return PCRE2_ERROR_MATCHLIMIT;
	b->left -= steps;
	return 0;
}

/* Returns pcre2_match()'s result for the first match that begins at from or later. */
static int
match_text(const struct pattern *p, const char *text, size_t len, size_t from)
{
	uint64_t allowed = steps_left() < SEARCH_STEPS ? steps_left() : SEARCH_STEPS;
	struct budget budget = { .left = allowed, .item_steps = p->item_steps, .at = from };
	int r = PCRE2_ERROR_MATCHLIMIT;

	if (!steps_take(SEARCH_BEGINS + (len - from) / WALKED_PER_STEP))
		return r;
	pcre2_set_callout(shared.match, on_item, &budget);
	r = pcre2_match(p->code, (PCRE2_SPTR)text, len, from, 0, shared.data, shared.match);
	pcre2_set_callout(shared.match, NULL, NULL);	/* budget goes out of scope here */
	/* One that used up its own steps has used up what was left of the account, if that was less. */
	steps_take(r == PCRE2_ERROR_MATCHLIMIT && allowed < SEARCH_STEPS ? allowed + 1 : allowed - budget.left);
	return r;
}

/* Returns what group `number` matched; 0 is the whole match. */
static struct pattern_part
part_of(const char *text, uint32_t number)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(shared.data);
	PCRE2_SIZE start = at[2 * number], end = at[2 * number + 1];

	if (start == PCRE2_UNSET || start > end)
		return (struct pattern_part){ 0 };
	return (struct pattern_part){ text + start, end - start };
}

static void
parts_of(const struct pattern *p, const char *text, struct pattern_part *parts, size_t n_parts)
{
	for (size_t i = 0; parts != NULL && i < n_parts && i < p->n_groups; i++)
		parts[i] = part_of(text, p->groups[i].number);
}

bool
pattern_find(const struct pattern *p, const char *text, size_t len, struct pattern_part *parts,
    size_t n_parts)
{
	if (match_text(p, text, len, 0) < 0)
		return false;
	parts_of(p, text, parts, n_parts);
	return true;
}

int
pattern_find_from(const struct pattern *p, const char *text, size_t len, size_t from,
    struct pattern_part *ret_whole, struct pattern_part *parts, size_t n_parts)
{
	int r = match_text(p, text, len, from);

	if (r < 0)
		return r == PCRE2_ERROR_NOMATCH ? 0 : -1;
	*ret_whole = part_of(text, 0);
	if (ret_whole->at == NULL)	/* \K in a lookahead: the match ends before it begins */
		return -1;
	parts_of(p, text, parts, n_parts);
	return 1;
}
