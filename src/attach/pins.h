/*
 * SPDX-License-Identifier: Apache-2.0
 * pins: names in the BPF file system that keep maps and attached programs alive while no agent runs.
 *
 *	<root>/<layout>/maps/<map>              what is known of the processes, the ring, the counters
 *	<root>/<layout>/links/<epoch>/<program>   each attached program of one load
 *
 * layout names the shape of what the maps hold: an agent of another shape does not find them. Two
 * loads exist side by side while one takes over; `lease` in the maps is the epoch of the one that reports events.
 * All paths belong to root, mode 0700. Names have no dots: that file system refuses them.
 */
#ifndef SLUICE_ATTACH_PINS_H
#define SLUICE_ATTACH_PINS_H

#include <stddef.h>
#include <stdint.h>

#define PINS_PATH_MAX 256

/* Makes the folders; mounts the BPF file system where it is missing in its usual place. 0 or -errno. */
int pins_prepare(const char *root, const char *layout, char *error, size_t error_size);
/* "<root>/<layout>/maps/<name>" */
void pins_map_path(const char *root, const char *layout, const char *name, char out[PINS_PATH_MAX]);
/* "<root>/<layout>/links/<epoch>/<name>"; makes the folder. 0 or -errno. */
int pins_link_path(const char *root, const char *layout, uint64_t epoch, const char *name,
    char out[PINS_PATH_MAX]);
/* Detaches the programs of all loads but one. 0, or the first -errno. */
int pins_remove_links(const char *root, const char *layout, uint64_t but_owner);
/* Forgets the maps, once no link uses them they are freed. */
int pins_remove_maps(const char *root, const char *layout);
/* Detaches the programs and forgets the maps of other layouts. Returns how many layouts there were. */
int pins_remove_other_layouts(const char *root, const char *layout);
/*
 * Removes all layouts under root, and root. 0 (also where there is nothing), -EMEDIUMTYPE: root is in no
 * BPF file system, or the first -errno.
 */
int pins_uninstall(const char *root);

#endif
