/*
 * SPDX-License-Identifier: Apache-2.0
 * core_roots: reads the sections .BTF and .BTF.ext of the object. Nothing in it need be aligned.
 */
#include "attach/core_roots.h"

#include <bpf/btf.h>
#include <elf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

/* Some bytes of the object, which are read from their beginning. */
struct slice {
	const uint8_t *data;
	size_t len;
};

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

/* Copies the next bytes to `to`, or skips them if that is NULL. Returns false if there are fewer. */
static bool
take(struct slice *s, void *to, size_t len)
{
	if (s->len < len)
		return false;
	if (to != NULL)
		memcpy(to, s->data, len);
	s->data += len;
	s->len -= len;
	return true;
}

static bool
slice_of(struct slice whole, size_t offset, size_t len, struct slice *ret)
{
	if (!take(&whole, NULL, offset) || whole.len < len)
		return false;
	*ret = (struct slice){ whole.data, len };
	return true;
}

static bool
section_header(struct slice elf, const Elf64_Ehdr *e, unsigned i, Elf64_Shdr *ret)
{
	struct slice s;

	return slice_of(elf, e->e_shoff + (size_t)i * e->e_shentsize, sizeof(*ret), &s) && take(&s, ret, sizeof(*ret));
}

/* Finds a section by its name. */
static bool
section_find(struct slice elf, const char *name, struct slice *ret)
{
	struct slice start = elf, names, found;
	Elf64_Ehdr e;
	Elf64_Shdr h;

	if (!take(&start, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || !section_header(elf, &e, e.e_shstrndx, &h) ||
	    !slice_of(elf, h.sh_offset, h.sh_size, &names))
		return false;
	for (unsigned i = 0; i < e.e_shnum && section_header(elf, &e, i, &h); i++) {
		if (slice_of(names, h.sh_name, strlen(name) + 1, &found) &&
		    memcmp(found.data, name, strlen(name) + 1) == 0)
			return slice_of(elf, h.sh_offset, h.sh_size, ret);
	}
	return false;
}

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

	if (!take(&head, &h, sizeof(h)) || h.magic != BTF_MAGIC || h.hdr_len < sizeof(h) ||
	    !slice_of(ext, (size_t)h.hdr_len + h.core_relo_off, h.core_relo_len, &all) ||
	    !take(&all, &record, sizeof(record)) || record < sizeof(struct bpf_core_relo))
		return -EINVAL;
	while (take(&all, &name, sizeof(name)) && take(&all, &n, sizeof(n))) {
		for (; n > 0; n--) {
			struct bpf_core_relo relocation;
			int r;

			if (!take(&all, &relocation, sizeof(relocation)) ||
			    !take(&all, NULL, record - sizeof(relocation)))
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

	if (!section_find(elf, ".BTF", &types) || !section_find(elf, ".BTF.ext", &ext))
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
