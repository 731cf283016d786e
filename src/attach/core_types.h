/*
 * SPDX-License-Identifier: Apache-2.0
 * core_types: a few of the kernel's types, in which libbpf finds all that the relocations of an object ask for. libbpf
 * compares each type at which a relocation begins with every type that it is given: with those of the whole kernel
 * that is more than half of the instructions of a start.
 */
#ifndef SLUICE_ATTACH_CORE_TYPES_H
#define SLUICE_ATTACH_CORE_TYPES_H

#include <stddef.h>

#include "attach/core_roots.h"
#include "attach/kernel_types.h"
#include "base/bytes.h"

/*
 * Appends to ret the BTF of all types of the roots' names and kinds, and of those that they contain; what a pointer
 * points to is void. Returns 0 or a negative errno; -ENOTSUP: a type that is none of values.
 */
int core_types_of(const struct kernel_types *k, const struct core_root *roots, size_t n, struct bytes *ret);

/*
 * Writes them for the relocations of an object, an ELF file in memory, to a file in memory. Returns its file
 * descriptor, which is the caller's, or a negative errno.
 */
int core_types_open(const struct kernel_types *k, const void *object, size_t size);

#endif
