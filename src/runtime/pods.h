/*
 * SPDX-License-Identifier: Apache-2.0
 * pods: the names in a list of pods, as a kubelet sends it.
 *
 * The list of a large node has megabytes, of which a few hundred bytes a pod are names. It is read as it arrives: only
 * one pod's text is kept at a time, and what surrounds the pods is followed by its brackets and strings alone.
 */
#ifndef SLUICE_RUNTIME_PODS_H
#define SLUICE_RUNTIME_PODS_H

#include <stddef.h>

struct pods;
struct pods_reader;

enum {
	PODS_MAX = 2048,			/* further ones are left out, and counted */
	PODS_CONTAINERS_MAX = 512,		/* ids of containers in one pod, of those that ended, too */
	PODS_TEXT_MAX = 256 * 1024,		/* bytes of one pod */
	PODS_DEPTH_MAX = 64,			/* of brackets */
	PODS_NAME_SIZE = 256,			/* a name is no longer than 253 bytes; an image may be */
};

/* NULL: unknown. */
struct pod_names {
	const char *pod;
	const char *name_space;
	const char *container;		/* as the pod's specification names it */
	const char *image;
};

/* Begins to read a list. Returns NULL without memory. */
struct pods_reader *pods_reader_new(void);
void pods_reader_free(struct pods_reader *r);	/* NULL is fine */
/* Reads the next part of the text. 0; -EBADMSG: it is no list of pods; or -ENOMEM. After an error only free r. */
int pods_reader_add(struct pods_reader *r, const char *data, size_t len);
/* Ends the list, and passes its names on to the caller. 0; or -EBADMSG: it is incomplete. Free r in both cases. */
int pods_reader_end(struct pods_reader *r, struct pods **ret);

void pods_free(struct pods *p);			/* NULL is fine */
/*
 * Finds the names of a pod and of a container in it; "": of the pod alone. Returns 2; 1: the pod has no container of
 * this id; 0: the pod is not in the list. Strings are p's.
 */
int pods_find(const struct pods *p, const char *uid, const char *container, struct pod_names *ret);
size_t pods_count(const struct pods *p);
size_t pods_left_out(const struct pods *p);	/* beyond a limit, not valid, or without a valid uid */

#endif
