/*
 * SPDX-License-Identifier: Apache-2.0
 * pins: names in the BPF file system that keep maps and attached programs alive while no agent runs.
 *
 *	<root>/<layout>/maps/<map>              state of the processes, the ring, the counters
 *	<root>/<layout>/links/<epoch>/<program>   each attached program of one load
 *
 * layout is the name of the maps' layout (layout.h): an agent with another layout does not find them. Two loads
 * exist side by side while one takes over; `lease` in the maps is the epoch of the one that reports events. All
 * paths belong to the user that started the agent, root or its account, mode 0700. Names have no dots, which that file
 * system refuses.
 */
#ifndef SLUICE_ATTACH_PINS_H
#define SLUICE_ATTACH_PINS_H

#include <stddef.h>
#include <stdint.h>

#define PINS_PATH_MAX 256

/*
 * Makes the folders, and mounts the BPF file system if it is missing in its usual place. Returns 0 or -errno
 * with error.
 */
int pins_prepare(const char *root, const char *layout, char *error, size_t error_size);
/*
 * Locks root against other agents for as long as the returned descriptor, which is the caller's, is open. Returns
 * -EWOULDBLOCK if another has it, or another negative errno.
 */
int pins_lock(const char *root);
/* Writes "<root>/<layout>/maps/<name>" to out. */
void pins_map_path(const char *root, const char *layout, const char *name, char out[PINS_PATH_MAX]);
/* Writes "<root>/<layout>/links/<epoch>/<name>" to out and makes the folder. Returns 0 or -errno. */
int pins_link_path(const char *root, const char *layout, uint64_t epoch, const char *name,
    char out[PINS_PATH_MAX]);
/* Detaches the programs of all loads but one. Returns 0, or the first -errno. */
int pins_remove_links(const char *root, const char *layout, uint64_t but_epoch);
/* Removes the names of the maps; they are freed once no link uses them. */
int pins_remove_maps(const char *root, const char *layout);
/*
 * Detaches the programs and removes the maps of all layouts but these; the second may be NULL. Returns how many there
 * were.
 */
int pins_remove_other_layouts(const char *root, const char *layout, const char *second);
/*
 * Removes all layouts under root, and root. Returns 0 (also if there is nothing), -EMEDIUMTYPE if root is in no
 * BPF file system, -EWOULDBLOCK if an agent that runs uses them, or the first -errno.
 */
int pins_uninstall(const char *root);

#endif
