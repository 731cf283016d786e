/*
 * SPDX-License-Identifier: Apache-2.0
 * layout_plan: walks two types side by side.
 */
#include "attach/layout_plan.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/layout.h"

#define DEPTH_MAX 16

/* Both types, and where their values begin. */
struct pair {
	const struct btf *from, *to;
	uint32_t from_id, to_id;
	uint32_t from_at, to_at;
};

/* Adds a move, or lengthens the last one. */
static int
move_add(struct layout_plan *p, uint32_t from, uint32_t to, uint32_t size)
{
	struct layout_move *last = p->n > 0 ? &p->moves[p->n - 1] : NULL, *more;

	if (last != NULL && last->from + last->size == from && last->to + last->size == to) {
		last->size += size;
		return 0;
	}
	more = realloc(p->moves, (p->n + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	p->moves = more;
	p->moves[p->n++] = (struct layout_move){ from, to, size };
	return 0;
}

static int plan(struct layout_plan *p, struct pair at, int depth);

static int
plan_array(struct layout_plan *p, struct pair at, const struct btf_array *from, const struct btf_array *to, int depth)
{
	int64_t from_size = btf__resolve_size(at.from, from->type), to_size = btf__resolve_size(at.to, to->type);
	uint32_t n = from->nelems < to->nelems ? from->nelems : to->nelems;
	int r = 0;

	if (from_size < 0 || to_size < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < n && r == 0; i++) {
		r = plan(p, (struct pair){ at.from, at.to, from->type, to->type, at.from_at + i * (uint32_t)from_size,
		    at.to_at + i * (uint32_t)to_size }, depth + 1);
	}
	return r;
}

static int
plan_members(struct layout_plan *p, struct pair at, const struct btf_type *from, const struct btf_type *to, int depth)
{
	int r = 0;

	for (unsigned i = 0; i < btf_vlen(to) && r == 0; i++) {
		const char *name = btf__name_by_offset(at.to, btf_members(to)[i].name_off);

		if (name[0] == '\0')	/* not found by its name */
			return -ENOTSUP;
		for (unsigned j = 0; j < btf_vlen(from) && r == 0; j++) {
			if (strcmp(btf__name_by_offset(at.from, btf_members(from)[j].name_off), name) != 0)
				continue;
			if (btf_member_bitfield_size(from, j) > 0 || btf_member_bitfield_size(to, i) > 0)
				return -ENOTSUP;
			r = plan(p, (struct pair){ at.from, at.to, btf_members(from)[j].type, btf_members(to)[i].type,
			    at.from_at + btf_member_bit_offset(from, j) / 8,
			    at.to_at + btf_member_bit_offset(to, i) / 8 }, depth + 1);
		}
	}
	return r;
}

static int
plan(struct layout_plan *p, struct pair at, int depth)
{
	const struct btf_type *from = layout_type(at.from, at.from_id), *to = layout_type(at.to, at.to_id);

	if (from == NULL || to == NULL || depth == DEPTH_MAX)
		return -EINVAL;
	if (btf_kind(from) != btf_kind(to))
		return -ENOTSUP;
	switch (btf_kind(from)) {
	case BTF_KIND_ARRAY:
		return plan_array(p, at, btf_array(from), btf_array(to), depth);
	case BTF_KIND_STRUCT:
		return plan_members(p, at, from, to, depth);
	case BTF_KIND_INT:
		if (btf_int_encoding(from) != btf_int_encoding(to))
			return -ENOTSUP;
		break;
	case BTF_KIND_ENUM:
		break;
	default:
		return -ENOTSUP;
	}
	return from->size == to->size ? move_add(p, at.from_at, at.to_at, from->size) : -ENOTSUP;
}

/* Makes the plan of two types. */
static int
plan_types(struct pair at, struct layout_plan *ret)
{
	int64_t from_size = btf__resolve_size(at.from, at.from_id), to_size = btf__resolve_size(at.to, at.to_id);
	struct layout_plan p = { .from_size = (uint32_t)from_size, .to_size = (uint32_t)to_size };
	int r = from_size < 0 || to_size < 0 ? -EINVAL : plan(&p, at, 0);

	if (r < 0)
		layout_plan_done(&p);
	else
		*ret = p;
	return r;
}

int
layout_plan_map(const struct btf *from, const struct btf *to, const char *map, const char *part,
    struct layout_plan *ret)
{
	const struct btf_type *old = layout_map(from, map), *new = layout_map(to, map);
	struct pair at = { .from = from, .to = to };

	if (old == NULL || new == NULL)
		return -ENOENT;
	at.from_id = layout_map_part(from, old, part);
	at.to_id = layout_map_part(to, new, part);
	return at.from_id != 0 && at.to_id != 0 ? plan_types(at, ret) : -ENOENT;
}

int
layout_plan_struct(const struct btf *from, const struct btf *to, const char *name, struct layout_plan *ret)
{
	int32_t from_id = btf__find_by_name_kind(from, name, BTF_KIND_STRUCT);
	int32_t to_id = btf__find_by_name_kind(to, name, BTF_KIND_STRUCT);

	if (from_id <= 0 || to_id <= 0)
		return -ENOENT;
	return plan_types((struct pair){ from, to, (uint32_t)from_id, (uint32_t)to_id, 0, 0 }, ret);
}

/* Finds a variable in a section. */
static const struct btf_var_secinfo *
variable_find(const struct btf *btf, const struct btf_type *section, const char *name)
{
	for (unsigned i = 0; i < btf_vlen(section); i++) {
		const struct btf_type *var = btf__type_by_id(btf, btf_var_secinfos(section)[i].type);

		if (strcmp(layout_type_name(btf, var), name) == 0)
			return &btf_var_secinfos(section)[i];
	}
	return NULL;
}

static const struct btf_type *
section_find(const struct btf *btf, const char *name)
{
	int32_t id = btf__find_by_name_kind(btf, name, BTF_KIND_DATASEC);

	return id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
}

int
layout_plan_section(const struct btf *from, const struct btf *to, const char *name, const char *const variables[],
    size_t n, struct layout_plan *ret)
{
	const struct btf_type *old = section_find(from, name), *new = section_find(to, name);
	struct layout_plan p = { 0 };
	int r = 0;

	if (old == NULL || new == NULL)
		return -ENOENT;
	p.from_size = old->size;
	p.to_size = new->size;
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct btf_var_secinfo *at = variable_find(to, new, variables[i]);
		const struct btf_var_secinfo *was = variable_find(from, old, variables[i]);

		if (at != NULL && was != NULL)
			r = plan(&p, (struct pair){ from, to, btf__type_by_id(from, was->type)->type,
			    btf__type_by_id(to, at->type)->type, was->offset, at->offset }, 0);
	}
	if (r < 0)
		layout_plan_done(&p);
	else
		*ret = p;
	return r;
}

void
layout_plan_done(struct layout_plan *p)
{
	free(p->moves);
	*p = (struct layout_plan){ 0 };
}

bool
layout_plan_is_same(const struct layout_plan *p)
{
	return p->n == 1 && p->moves[0].from == 0 && p->moves[0].to == 0 && p->moves[0].size == p->from_size &&
	    p->from_size == p->to_size;
}

void
layout_plan_apply(const struct layout_plan *p, const void *from, void *to)
{
	for (size_t i = 0; i < p->n; i++)
		memcpy((char *)to + p->moves[i].to, (const char *)from + p->moves[i].from, p->moves[i].size);
}

int64_t
layout_offset(const struct btf *btf, const char *section, const char *variable)
{
	const struct btf_type *in = section_find(btf, section);
	const struct btf_var_secinfo *at = in != NULL ? variable_find(btf, in, variable) : NULL;

	return at != NULL ? (int64_t)at->offset : -1;
}
