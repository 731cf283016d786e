/*
 * SPDX-License-Identifier: Apache-2.0
 * layout_plan: how a value of one version becomes that of another: members of the same name are copied, new ones are
 * zero, and those that the other version does not know are left out. Of an array those elements are copied that both
 * have. The meaning of both versions must be the same (bpf/meaning.h).
 */
#ifndef SLUICE_ATTACH_LAYOUT_PLAN_H
#define SLUICE_ATTACH_LAYOUT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct btf;

struct layout_move {
	uint32_t from, to, size;
};

/* A zeroed plan is empty. */
struct layout_plan {
	struct layout_move *moves;	/* owned */
	size_t n;
	uint32_t from_size, to_size;
};

/*
 * Each makes a plan: of the key or value (part) of a map, of n variables of a section, and of a struct. Returns 0, or
 * a negative errno with *ret unchanged; -ENOTSUP: a member of the same name has another type.
 */
int layout_plan_map(const struct btf *from, const struct btf *to, const char *map, const char *part,
    struct layout_plan *ret);
int layout_plan_section(const struct btf *from, const struct btf *to, const char *name, const char *const variables[],
    size_t n, struct layout_plan *ret);
int layout_plan_struct(const struct btf *from, const struct btf *to, const char *name, struct layout_plan *ret);
void layout_plan_done(struct layout_plan *p);

/* Returns true if the values of both versions are the same bytes. */
bool layout_plan_is_same(const struct layout_plan *p);
/* Copies what both have from a value of from_size bytes to one of to_size; all else of that stays. */
void layout_plan_apply(const struct layout_plan *p, const void *from, void *to);
/* Returns the offset of a variable in a section; -1: there is none. */
int64_t layout_offset(const struct btf *btf, const char *section, const char *variable);

#endif
