/*
 * SPDX-License-Identifier: Apache-2.0
 * core_roots: reads the sections .BTF and .BTF.ext of the object.
 */
#include "attach/core_roots.h"

#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>

#include "attach/object.h"

/* The header of .BTF.ext. What an offset counts from is the end of the header. */
struct ext_header {
	uint16_t magic;
	uint8_t version;
	uint8_t flags;
	uint32_t hdr_len;
	uint32_t func_info_off;
	uint32_t func_info_len;
	uint32_t line_info_off;
	uint32_t line_info_len;
	uint32_t core_relo_off;
	uint32_t core_relo_len;
};

static int
relocation_read(struct core_roots *c, const struct bpf_core_relo *r)
{
	struct core_root *root;
	const struct btf_type *t;

	if (r->type_id >= c->n)
		return -EINVAL;
	root = &c->roots[r->type_id];
	t = btf__type_by_id(c->btf, r->type_id);
	switch (r->kind) {
	case BPF_CORE_TYPE_ID_LOCAL:
		return 0;
	case BPF_CORE_TYPE_MATCHES:
		return -ENOTSUP;
	case BPF_CORE_TYPE_ID_TARGET:
	case BPF_CORE_TYPE_EXISTS:
	case BPF_CORE_TYPE_SIZE:
		if (!btf_is_composite(t) && !btf_is_any_enum(t))
			return -ENOTSUP;
		break;
	default:
		break;
	}
	root->name = btf__name_by_offset(c->btf, t->name_off);
	root->kind = btf_kind(t);
	root->keeps_id |= r->kind == BPF_CORE_TYPE_ID_TARGET;
	return root->name != NULL && root->name[0] != '\0' ? 0 : -ENOTSUP;
}

/* Reads the relocations of all sections: of each section its name, their number, and they. */
static int
relocations_read(struct core_roots *c, struct slice ext)
{
	struct slice head = ext, all;
	struct ext_header h;
	uint32_t record, name, n;

	if (!slice_take(&head, &h, sizeof(h)) || h.magic != BTF_MAGIC || h.hdr_len < sizeof(h) ||
	    !slice_of(ext, (size_t)h.hdr_len + h.core_relo_off, h.core_relo_len, &all) ||
	    !slice_take(&all, &record, sizeof(record)) || record < sizeof(struct bpf_core_relo))
		return -EINVAL;
	while (slice_take(&all, &name, sizeof(name)) && slice_take(&all, &n, sizeof(n))) {
		for (; n > 0; n--) {
			struct bpf_core_relo relocation;
			int r;

			if (!slice_take(&all, &relocation, sizeof(relocation)) ||
			    !slice_take(&all, NULL, record - sizeof(relocation)))
				return -EINVAL;
			r = relocation_read(c, &relocation);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int
core_roots_read(const void *object, size_t size, struct core_roots *ret)
{
	struct core_roots c = { 0 };
	struct slice elf = { object, size }, types, ext;
	int r = -ENOMEM;

	if (!object_section(elf, ".BTF", &types) || !object_section(elf, ".BTF.ext", &ext))
		return -EINVAL;
	c.btf = btf__new(types.data, (uint32_t)types.len);
	if (c.btf == NULL)
		return -errno;
	c.n = btf__type_cnt(c.btf);
	c.roots = calloc(c.n, sizeof(*c.roots));
	if (c.roots != NULL)
		r = relocations_read(&c, ext);
	if (r < 0) {
		core_roots_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

void
core_roots_done(struct core_roots *c)
{
	btf__free(c->btf);
	free(c->roots);
	*c = (struct core_roots){ 0 };
}
