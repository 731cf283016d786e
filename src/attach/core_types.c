/*
 * SPDX-License-Identifier: Apache-2.0
 * core_types: copies the types in the order in which they are found, from the roots on. A type keeps its id if a
 * relocation needs that; ids that remain free below it are those of a type that has no name.
 */
#include "attach/core_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

struct copy {
	const struct kernel_types *from;
	uint32_t *old_ids;	/* owned: by new id, the kernel's; 0: free */
	uint32_t *new_ids;	/* owned: by the kernel's id; 0: not copied */
	uint32_t next;		/* no id below it is free */
	uint32_t last;		/* the highest that is used */
	struct bytes types;	/* owned */
	struct bytes names;	/* owned */
};

static void
id_give(struct copy *c, uint32_t old_id, uint32_t new_id)
{
	c->new_ids[old_id] = new_id;
	c->old_ids[new_id] = old_id;
	if (new_id > c->last)
		c->last = new_id;
}

/* Returns the new id of a type of the kernel, which is copied once its turn comes. */
static uint32_t
id_of(struct copy *c, uint32_t old_id)
{
	if (old_id == 0 || c->new_ids[old_id] != 0)
		return c->new_ids[old_id];
	while (c->old_ids[c->next] != 0)
		c->next++;
	id_give(c, old_id, c->next);
	return c->new_ids[old_id];
}

/*
 * Members that had another name in older kernels: in the copy they have the one that the programs ask for. CO-RE could
 * tell them apart as well, and would search for both names wherever one is read.
 */
static const struct {
	const char *type, *before, *now;
} renamed[] = {
	{ "task_struct", "real_start_time", "start_boottime" },	/* in 5.5; both are CLOCK_BOOTTIME */
};

/* Gives ids to the types of the roots; in the first pass to those alone that keep theirs. */
static void
roots_find(struct copy *c, const struct core_root *roots, size_t n, bool keep)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t id = 0;

		while (roots[i].name != NULL && (id = kernel_types_next(c->from, roots[i].name, id)) != 0) {
			struct btf_type asked = { .info = roots[i].kind << 24 };

			if (!btf_kind_core_compat(&asked, kernel_types_at(c->from, id)))
				continue;
			if (!keep)
				id_of(c, id);
			else if (roots[i].keeps_id)
				id_give(c, id, id);
		}
	}
}

static int
name_append(struct copy *c, const char *name, uint32_t *ret_offset)
{
	*ret_offset = name[0] != '\0' ? (uint32_t)c->names.len : 0;
	return name[0] != '\0' ? bytes_append(&c->names, name, strlen(name) + 1) : 0;
}

/* Copies a name and makes *offset that of the copy. */
static int
name_copy(struct copy *c, uint32_t *offset)
{
	return name_append(c, kernel_types_name(c->from, *offset), offset);
}

/* Does the same with the name of a member of a type. */
static int
member_name_copy(struct copy *c, const char *type, uint32_t *offset)
{
	const char *name = kernel_types_name(c->from, *offset);

	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
		if (strcmp(renamed[i].before, name) == 0 && strcmp(renamed[i].type, type) == 0)
			name = renamed[i].now;
	}
	return name_append(c, name, offset);
}

/* Changes the names and ids in a copied type to those of the copy. */
static int
type_convert(struct copy *c, struct btf_type *t)
{
	const char *name = kernel_types_name(c->from, t->name_off);
	int r = name_copy(c, &t->name_off);

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
	case BTF_KIND_FWD:
		break;
	case BTF_KIND_PTR:
		t->type = 0;
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		t->type = id_of(c, t->type);
		break;
	case BTF_KIND_ARRAY:
		btf_array(t)->type = id_of(c, btf_array(t)->type);
		btf_array(t)->index_type = id_of(c, btf_array(t)->index_type);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (unsigned i = 0; i < btf_vlen(t) && r == 0; i++) {
			btf_members(t)[i].type = id_of(c, btf_members(t)[i].type);
			r = member_name_copy(c, name, &btf_members(t)[i].name_off);
		}
		break;
	case BTF_KIND_ENUM:
		for (unsigned i = 0; i < btf_vlen(t) && r == 0; i++)
			r = name_copy(c, &btf_enum(t)[i].name_off);
		break;
	case BTF_KIND_ENUM64:
		for (unsigned i = 0; i < btf_vlen(t) && r == 0; i++)
			r = name_copy(c, &btf_enum64(t)[i].name_off);
		break;
	default:
		return -ENOTSUP;
	}
	return r;
}

/* Appends a type and gives ids to those that it contains. */
static int
type_copy(struct copy *c, uint32_t old_id)
{
	static const struct btf_type filler = { .info = BTF_KIND_CONST << 24 };
	const struct btf_type *t = old_id != 0 ? kernel_types_at(c->from, old_id) : &filler;
	size_t at = c->types.len;
	int r = bytes_append(&c->types, t, kernel_types_size(t));

	return r == 0 ? type_convert(c, (struct btf_type *)(void *)(c->types.data + at)) : r;
}

static int
types_copy(struct copy *c, const struct core_root *roots, size_t n)
{
	int r = bytes_append(&c->names, "", 1);

	roots_find(c, roots, n, true);
	roots_find(c, roots, n, false);
	for (uint32_t id = 1; id <= c->last && r == 0; id++) {
		r = type_copy(c, c->old_ids[id]);
		if (c->next <= id)
			c->next = id + 1;	/* what was free below has been filled */
	}
	return r;
}

int
core_types_of(const struct kernel_types *k, const struct core_root *roots, size_t n, struct bytes *ret)
{
	size_t ids = (size_t)kernel_types_count(k) + 1;
	/* one more, where the search for a free id ends */
	struct copy c = { .from = k, .old_ids = calloc(ids + 1, sizeof(*c.old_ids)),
		.new_ids = calloc(ids, sizeof(*c.new_ids)), .next = 1 };
	struct btf_header h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = KERNEL_TYPES_HEADER };
	int r = -ENOMEM;

	if (c.old_ids != NULL && c.new_ids != NULL)
		r = types_copy(&c, roots, n);
	h.type_len = h.str_off = (uint32_t)c.types.len;
	h.str_len = (uint32_t)c.names.len;
	if (r == 0)
		r = bytes_reserve(ret, KERNEL_TYPES_HEADER + c.types.len + c.names.len);
	if (r == 0) {
		bytes_append(ret, &h, KERNEL_TYPES_HEADER);
		bytes_append(ret, c.types.data, c.types.len);
		bytes_append(ret, c.names.data, c.names.len);
	}
	free(c.old_ids);
	free(c.new_ids);
	bytes_done(&c.types);
	bytes_done(&c.names);
	return r;
}

int
core_types_open(const struct kernel_types *k, const void *object, size_t size)
{
	struct core_roots roots = { 0 };
	struct bytes btf = { 0 };
	int fd = -1, r;

	r = core_roots_read(object, size, &roots);
	if (r == 0)
		r = core_types_of(k, roots.roots, roots.n, &btf);
	if (r == 0) {
		fd = file_in_memory("sluice-types");
		r = fd < 0 ? fd : file_write(fd, btf.data, btf.len, 0);
	}
	if (r < 0 && fd >= 0)
		close(fd);
	core_roots_done(&roots);
	bytes_done(&btf);
	return r < 0 ? r : fd;
}
