/*
 * SPDX-License-Identifier: Apache-2.0
 * layout: names what outlives an agent by what it contains: the types (BTF) of the pinned maps and of the ring's
 * records, and the number of their meaning (meaning.h). Two builds with the same name can use each other's maps.
 */
#ifndef SLUICE_ATTACH_LAYOUT_H
#define SLUICE_ATTACH_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* The maps that outlive an agent: M(member of the skeleton's maps, name in the object, name of the pin). */
#define LAYOUT_MAPS(M)							\
	M(procs, "procs", "procs")					\
	M(ring, "ring", "ring")						\
	M(cgroups_sent, "cgroups_sent", "cgroups_sent")			\
	M(threads_exited, "threads_exited", "threads_exited")		\
	M(filter_rules, "filter_rules", "filter_rules")			\
	M(users, "users", "users")					\
	M(data_shared, ".data.shared", "shared")

enum {
	LAYOUT_NAME_SIZE = 24,
};

struct btf;
struct btf_type;

/*
 * Appends the layout of an object with these types as text: a line for each map with its type and flags, and for each
 * member of its keys, its values and the ring's records, with the offset, size and kind. Names of types, comments and
 * the number of a map's entries are not in it. Returns 0, or a negative errno; -ENOENT: a map or a record is missing.
 */
int layout_describe(const struct btf *btf, struct bytes *ret);
/* Writes the name of the layout of an object, an ELF file in memory. Returns 0 or a negative errno. */
int layout_name(const void *object, size_t size, char ret[LAYOUT_NAME_SIZE]);

/* Returns the name of a type; "": it has none. */
const char *layout_type_name(const struct btf *btf, const struct btf_type *t);
/* Returns the type behind typedefs and qualifiers; NULL: void, or none. */
const struct btf_type *layout_type(const struct btf *btf, uint32_t id);
/* Returns the definition of a map of the object; NULL: there is none. */
const struct btf_type *layout_map(const struct btf *btf, const char *name);
/* Returns the id of a type in a map's definition, such as that of "value"; 0: there is none. */
uint32_t layout_map_part(const struct btf *btf, const struct btf_type *def, const char *member);

#endif
