/*
 * SPDX-License-Identifier: Apache-2.0
 * core_roots: the types that the relocations (CO-RE) of a BPF object begin at.
 */
#ifndef SLUICE_ATTACH_CORE_ROOTS_H
#define SLUICE_ATTACH_CORE_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct btf;

struct core_root {
	const char *name;	/* with its flavour, if any; NULL: no relocation begins at this type */
	unsigned kind;		/* BTF_KIND_STRUCT and so on */
	bool keeps_id;		/* a relocation is the id that the type has in the kernel */
};

struct core_roots {
	struct core_root *roots;	/* owned: by id in the object's types */
	size_t n;
	struct btf *btf;		/* owned: the object's types, which have the names */
};

/*
 * Reads them of an object, an ELF file in memory. Returns 0, or a negative errno with *ret untouched. -ENOTSUP: a
 * relocation depends on more than the values that a type contains, as one that compares what pointers point to.
 */
int core_roots_read(const void *object, size_t size, struct core_roots *ret);
void core_roots_done(struct core_roots *c);	/* zeroed is fine */

#endif
