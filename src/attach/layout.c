/*
 * SPDX-License-Identifier: Apache-2.0
 * layout: follows the types of the pinned maps. Typedefs and qualifiers are passed over, and members of members are
 * lines of their own, so that a line changes only with what the kernel side reads and writes there.
 */
#include "attach/layout.h"

#include <bpf/btf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "attach/object.h"
#include "event.h"
#include "meaning.h"

#define DEPTH_MAX 16
#define PATH_SIZE 256

struct description {
	const struct btf *btf;
	struct bytes *text;
	int error;		/* the first: 0 or a negative errno */
};

static const char *const map_names[] = {
#define MAP(member, object, pin) object,
	LAYOUT_MAPS(MAP)
#undef MAP
};

/* What the ring contains, whose map has no types. */
static const char *const records[] = { "event_exec", "event_state", "event_cgroup", "event_signal" };

static void
fail(struct description *d, int error)
{
	if (d->error == 0)
		d->error = error;
}

static void __attribute__((format(printf, 2, 3)))
put(struct description *d, const char *format, ...)
{
	char line[PATH_SIZE + 80];
	va_list ap;
	int len, r;

	va_start(ap, format);
	len = vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	r = len < (int)sizeof(line) ? bytes_append(d->text, line, (size_t)len) : -ENAMETOOLONG;
	if (r < 0)
		fail(d, r);
}

const char *
layout_type_name(const struct btf *btf, const struct btf_type *t)
{
	const char *name = btf__name_by_offset(btf, t->name_off);

	return name != NULL ? name : "";
}

const struct btf_type *
layout_type(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	for (int i = 0; i < DEPTH_MAX && t != NULL && (btf_is_mod(t) || btf_is_typedef(t)); i++)
		t = btf__type_by_id(btf, t->type);
	return t != NULL && !btf_is_void(t) ? t : NULL;
}

static const char *
kind_of(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return btf_int_encoding(t) & BTF_INT_SIGNED ? "signed" : "unsigned";
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return "enum";
	case BTF_KIND_PTR:
		return "pointer";
	case BTF_KIND_FLOAT:
		return "float";
	case BTF_KIND_STRUCT:
		return "struct";
	case BTF_KIND_UNION:
		return "union";
	default:
		return NULL;
	}
}

/* Describes what is at an offset, in bytes, and then its members, whose offsets count from its beginning. */
static void
describe(struct description *d, const char *path, uint64_t offset, unsigned bits, uint32_t id, int depth)
{
	const struct btf_type *t = layout_type(d->btf, id);
	char below[PATH_SIZE];
	const char *kind;

	if (t == NULL || depth == DEPTH_MAX)
		return fail(d, -EINVAL);
	if (btf_is_array(t)) {
		if (snprintf(below, sizeof(below), "%s[%u]", path, btf_array(t)->nelems) >= (int)sizeof(below))
			return fail(d, -ENAMETOOLONG);
		return describe(d, below, offset, 0, btf_array(t)->type, depth + 1);
	}
	kind = kind_of(t);
	if (kind == NULL)
		return fail(d, -ENOTSUP);
	put(d, "%s %" PRIu64 " %s %" PRIi64, path, offset, kind, (int64_t)btf__resolve_size(d->btf, id));
	put(d, bits > 0 ? ":%u\n" : "\n", bits);
	for (unsigned i = 0; btf_is_composite(t) && i < btf_vlen(t); i++) {
		const char *name = btf__name_by_offset(d->btf, btf_members(t)[i].name_off);
		uint32_t at = btf_member_bit_offset(t, i);
		unsigned width = btf_member_bitfield_size(t, i);

		if (snprintf(below, sizeof(below), "%s.%s", path, name) >= (int)sizeof(below))
			return fail(d, -ENAMETOOLONG);
		describe(d, below, width > 0 ? at : at / 8, width, btf_members(t)[i].type, depth + 1);
	}
}

uint32_t
layout_map_part(const struct btf *btf, const struct btf_type *def, const char *member)
{
	for (unsigned i = 0; i < btf_vlen(def); i++) {
		const char *name = btf__name_by_offset(btf, btf_members(def)[i].name_off);
		const struct btf_type *t = layout_type(btf, btf_members(def)[i].type);

		if (t != NULL && btf_is_ptr(t) && name != NULL && strcmp(name, member) == 0)
			return t->type;
	}
	return 0;
}

/* Returns a number of a map's definition, which is the length of an array; 0: there is none. */
static uint32_t
number_of(const struct description *d, const struct btf_type *def, const char *member)
{
	const struct btf_type *t = layout_type(d->btf, layout_map_part(d->btf, def, member));

	return t != NULL && btf_is_array(t) ? btf_array(t)->nelems : 0;
}

static void
describe_map(struct description *d, const char *path, const struct btf_type *def)
{
	static const char *const parts[] = { "key", "value" };
	char below[PATH_SIZE];

	put(d, "%s type %u flags %u\n", path, number_of(d, def, "type"), number_of(d, def, "map_flags"));
	for (int i = 0; i < 2; i++) {
		uint32_t id = layout_map_part(d->btf, def, parts[i]), size;

		snprintf(below, sizeof(below), "%s.%s_size", path, parts[i]);
		size = number_of(d, def, below + strlen(path) + 1);
		if (size > 0)
			put(d, "%s %u\n", below, size);
		snprintf(below, sizeof(below), "%s.%s", path, parts[i]);
		if (id != 0)
			describe(d, below, 0, 0, id, 0);
	}
	/* The maps in a map: an array without a length, of pointers to their definition. */
	for (unsigned i = 0; i < btf_vlen(def); i++) {
		const struct btf_type *t = layout_type(d->btf, btf_members(def)[i].type);

		if (t == NULL || !btf_is_array(t))
			continue;
		t = layout_type(d->btf, btf_array(t)->type);
		t = t != NULL && btf_is_ptr(t) ? layout_type(d->btf, t->type) : NULL;
		if (t == NULL || !btf_is_struct(t))
			return fail(d, -EINVAL);
		snprintf(below, sizeof(below), "%s.values", path);
		describe_map(d, below, t);
	}
}

const struct btf_type *
layout_map(const struct btf *btf, const char *name)
{
	int32_t id = btf__find_by_name_kind(btf, ".maps", BTF_KIND_DATASEC);
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (unsigned i = 0; section != NULL && i < btf_vlen(section); i++) {
		const struct btf_type *var = btf__type_by_id(btf, btf_var_secinfos(section)[i].type), *def;

		if (strcmp(layout_type_name(btf, var), name) != 0)
			continue;
		def = layout_type(btf, var->type);
		return def != NULL && btf_is_struct(def) ? def : NULL;
	}
	return NULL;
}

/* Describes the variables of a section, which are one value of its map. */
static void
describe_section(struct description *d, const char *name)
{
	int32_t id = btf__find_by_name_kind(d->btf, name, BTF_KIND_DATASEC);
	const struct btf_type *section = id > 0 ? btf__type_by_id(d->btf, (uint32_t)id) : NULL;

	if (section == NULL)
		return fail(d, -ENOENT);
	put(d, "%s size %u\n", name, section->size);
	for (unsigned i = 0; i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *at = &btf_var_secinfos(section)[i];
		const struct btf_type *var = btf__type_by_id(d->btf, at->type);
		char path[PATH_SIZE];

		if (!btf_is_var(var))
			return fail(d, -EINVAL);
		snprintf(path, sizeof(path), "%s.%s", name, layout_type_name(d->btf, var));
		describe(d, path, at->offset, 0, var->type, 0);
	}
}

int
layout_describe(const struct btf *btf, struct bytes *ret)
{
	struct description d = { .btf = btf, .text = ret };

	put(&d, "meaning %d events %d\n", STATE_MEANING, EVENT_VERSION);
	for (size_t i = 0; i < sizeof(map_names) / sizeof(map_names[0]); i++) {
		const struct btf_type *def;

		if (map_names[i][0] == '.') {
			describe_section(&d, map_names[i]);
			continue;
		}
		def = layout_map(btf, map_names[i]);
		if (def == NULL)
			fail(&d, -ENOENT);
		else
			describe_map(&d, map_names[i], def);
	}
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		int32_t id = btf__find_by_name_kind(btf, records[i], BTF_KIND_STRUCT);

		if (id <= 0)
			fail(&d, -ENOENT);
		else
			describe(&d, records[i], 0, 0, (uint32_t)id, 0);
	}
	return d.error;
}

/* FNV-1a, with 64 bits: layouts differ by chance, not by intent. */
static uint64_t
hash_of(const struct bytes *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < text->len; i++)
		hash = (hash ^ text->data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

int
layout_name(const void *object, size_t size, char ret[LAYOUT_NAME_SIZE])
{
	struct slice elf = { object, size }, types;
	struct bytes text = { 0 };
	struct btf *btf;
	int r;

	if (!object_section(elf, ".BTF", &types))
		return -EINVAL;
	btf = btf__new(types.data, (uint32_t)types.len);
	if (btf == NULL)
		return -errno;
	r = layout_describe(btf, &text);
	if (r == 0)
		snprintf(ret, LAYOUT_NAME_SIZE, "%d_%016" PRIx64, STATE_MEANING, hash_of(&text));
	btf__free(btf);
	bytes_done(&text);
	return r;
}
