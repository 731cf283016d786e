/*
 * SPDX-License-Identifier: Apache-2.0
 * object: reads an ELF file in memory. Nothing in it need be aligned.
 */
#include "attach/object.h"

#include <elf.h>
#include <string.h>

bool
slice_take(struct slice *s, void *to, size_t len)
{
	if (s->len < len)
		return false;
	if (to != NULL)
		memcpy(to, s->data, len);
	s->data += len;
	s->len -= len;
	return true;
}

bool
slice_of(struct slice whole, size_t offset, size_t len, struct slice *ret)
{
	if (!slice_take(&whole, NULL, offset) || whole.len < len)
		return false;
	*ret = (struct slice){ whole.data, len };
	return true;
}

static bool
section_header(struct slice elf, const Elf64_Ehdr *e, unsigned i, Elf64_Shdr *ret)
{
	struct slice s;

	return slice_of(elf, e->e_shoff + (size_t)i * e->e_shentsize, sizeof(*ret), &s) &&
	    slice_take(&s, ret, sizeof(*ret));
}

bool
object_section(struct slice elf, const char *name, struct slice *ret)
{
	struct slice start = elf, names, found;
	Elf64_Ehdr e;
	Elf64_Shdr h;

	if (!slice_take(&start, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
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
