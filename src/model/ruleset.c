/*
 * SPDX-License-Identifier: Apache-2.0
 * ruleset: the rules as plain data, and their memory.
 */
#include "model/ruleset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 32 << 10 };

struct chunk {
	struct chunk *next;
	size_t size, used;
	_Alignas(max_align_t) char bytes[];	/* zeroed */
};

struct ruleset_memory {
	struct chunk *chunks;		/* owned; the first is the one with room */
	struct pattern **patterns;	/* owned, each of them too */
	size_t n_patterns, cap_patterns;
};

struct ruleset *
ruleset_new(void)
{
	struct ruleset *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->memory = calloc(1, sizeof(*r->memory));
	if (r->memory == NULL) {
		free(r);
		return NULL;
	}
	r->refs = 1;
	return r;
}

struct ruleset *
ruleset_ref(struct ruleset *r)
{
	r->refs++;
	return r;
}

void
ruleset_unref(struct ruleset *r)
{
	if (r == NULL || --r->refs > 0)
		return;
	for (size_t i = 0; i < r->memory->n_patterns; i++)
		pattern_free(r->memory->patterns[i]);
	free(r->memory->patterns);
	for (struct chunk *c = r->memory->chunks, *next; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	free(r->memory);
	free(r);
}

static struct chunk *
new_chunk(size_t size)
{
	struct chunk *c = size <= SIZE_MAX - sizeof(*c) ? calloc(1, sizeof(*c) + size) : NULL;

	if (c != NULL)
		c->size = size;
	return c;
}

static void *
allocate(struct ruleset *r, size_t size, size_t align)
{
	struct chunk *c = r->memory->chunks;
	size_t start = c != NULL ? (c->used + align - 1) / align * align : 0;

	if (c != NULL && start <= c->size && size <= c->size - start) {
		c->used = start + size;
		return c->bytes + start;
	}
	if (size > CHUNK_BYTES / 4) {
		/* One of its own, behind the one that still has room. */
		struct chunk *own = new_chunk(size);

		if (own == NULL)
			return NULL;
		own->used = size;
		own->next = c != NULL ? c->next : NULL;
		*(c != NULL ? &c->next : &r->memory->chunks) = own;
		return own->bytes;
	}
	c = new_chunk(CHUNK_BYTES);
	if (c == NULL)
		return NULL;
	c->next = r->memory->chunks;
	r->memory->chunks = c;
	c->used = size;
	return c->bytes;
}

void *
ruleset_alloc(struct ruleset *r, size_t size)
{
	return allocate(r, size, _Alignof(max_align_t));
}

const char *
ruleset_string(struct ruleset *r, const char *text, size_t len)
{
	char *copy = len < SIZE_MAX ? allocate(r, len + 1, 1) : NULL;

	if (copy != NULL && len > 0)
		memcpy(copy, text, len);	/* the NUL is there: memory is zeroed */
	return copy;
}

int
ruleset_keep_pattern(struct ruleset *r, struct pattern *p)
{
	struct ruleset_memory *m = r->memory;

	if (m->n_patterns == m->cap_patterns) {
		size_t cap = m->cap_patterns > 0 ? 2 * m->cap_patterns : 16;
		struct pattern **more = realloc(m->patterns, cap * sizeof(*more));

		if (more == NULL) {
			pattern_free(p);
			return -ENOMEM;
		}
		m->patterns = more;
		m->cap_patterns = cap;
	}
	m->patterns[m->n_patterns++] = p;
	return 0;
}

const char *
condition_kind_name(enum condition_kind kind)
{
	static const char *const names[CONDITION_KINDS] = {
		[CONDITION_ALL] = "all",
		[CONDITION_ANY] = "any",
		[CONDITION_NOT] = "not",
		[CONDITION_PARENT] = "parent",
		[CONDITION_EXE] = "exe",
		[CONDITION_PATH] = "path",
		[CONDITION_COMM] = "comm",
		[CONDITION_TOOL] = "tool",
		[CONDITION_ARGV] = "argv",
		[CONDITION_ARGV_CONTAINS] = "argv_contains",
		[CONDITION_ARGV_MATCHES] = "argv_matches",
		[CONDITION_COMMAND_MATCHES] = "command_matches",
		[CONDITION_FIRST_ARG] = "first_arg",
		[CONDITION_SUBCOMMAND] = "subcommand",
		[CONDITION_SCRIPT] = "script",
		[CONDITION_JAR] = "jar",
		[CONDITION_CLASS] = "class",
		[CONDITION_CWD] = "cwd",
		[CONDITION_CWD_MATCHES] = "cwd_matches",
		[CONDITION_CGROUP] = "cgroup",
		[CONDITION_CGROUP_MATCHES] = "cgroup_matches",
		[CONDITION_UID] = "uid",
		[CONDITION_IMAGE] = "image",
	};

	return (unsigned)kind < CONDITION_KINDS ? names[kind] : NULL;
}

const char *
rule_section_name(enum rule_section section)
{
	static const char *const names[RULE_SECTIONS] = {
		[RULE_INCLUDE] = "include",
		[RULE_EXCLUDE] = "exclude",
		[RULE_TOOLS] = "tools",
		[RULE_ENGINES] = "engines",
		[RULE_SCHEDULERS] = "schedulers",
		[RULE_CONTAINERS] = "containers",
		[RULE_WRAPPERS] = "wrappers",
	};

	return (unsigned)section < RULE_SECTIONS ? names[section] : NULL;
}
