/*
 * SPDX-License-Identifier: Apache-2.0
 * kernel_types: the types of a kernel (BTF), by id and by name. One pass over all of them makes an index by name, where
 * libbpf compares a name with that of each type.
 */
#ifndef SLUICE_ATTACH_KERNEL_TYPES_H
#define SLUICE_ATTACH_KERNEL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The header of BTF up to its strings, as all kernels have it: <linux/btf.h> of later ones has more. */
#define KERNEL_TYPES_HEADER 24

struct btf_type;
struct kernel_types;

/* Reads the types of the running kernel. Returns 0, or a negative errno with *ret untouched; *ret is the caller's. */
int kernel_types_load(struct kernel_types **ret);
/* The same of BTF in memory, aligned to 4 bytes, which must outlive *ret. -EINVAL: it is not BTF that is known here. */
int kernel_types_read(const void *btf, size_t size, struct kernel_types **ret);
void kernel_types_free(struct kernel_types *k);		/* NULL is fine */

/* Returns the number of types; ids are 1 to that number. */
uint32_t kernel_types_count(const struct kernel_types *k);
/* Returns a type by its id, which must exist; it belongs to k. */
const struct btf_type *kernel_types_at(const struct kernel_types *k, uint32_t id);
/* Returns the bytes that a type takes with what follows it, such as its members; 0: a kind that is not known here. */
size_t kernel_types_size(const struct btf_type *t);
/* Returns the string at an offset into the names; "" if there is none. It belongs to k. */
const char *kernel_types_name(const struct kernel_types *k, uint32_t offset);

/* Returns the smallest id of a type of that name and kind (BTF_KIND_STRUCT); 0: there is none. */
uint32_t kernel_types_find(const struct kernel_types *k, const char *name, unsigned kind);
/*
 * Returns the smallest id above `after` of a type of that name, of any kind; 0: there is none. Both names are taken
 * without a flavour: "task_struct" is found as "task_struct___old", too.
 */
uint32_t kernel_types_next(const struct kernel_types *k, const char *name, uint32_t after);

#endif
