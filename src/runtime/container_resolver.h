/*
 * SPDX-License-Identifier: Apache-2.0
 * container_resolver: what its runtime calls a container, and of which image it is. Asked of the sockets
 * that the configuration lists, and of nobody without any.
 *
 * Docker's HTTP API, which Podman speaks too; containerd and CRI-O have gRPC only and are not asked.
 * One request is under way at a time, on the caller's loop; each id is asked for once, answers and
 * refusals are kept. The list of containers is asked for, not the one container: that holds what
 * `docker ps` shows, and nothing of a container's environment. Of it the id, the name and the image
 * are read.
 */
#ifndef SLUICE_RUNTIME_CONTAINER_RESOLVER_H
#define SLUICE_RUNTIME_CONTAINER_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct container_resolver;

enum {
	CONTAINER_RESOLVER_SOCKETS = 4,
	CONTAINER_RESOLVER_KEPT = 4096,	/* the oldest is forgotten then */
	CONTAINER_RESOLVER_WAITING = 1024,	/* more are not asked for, and counted */
	CONTAINER_NAME_SIZE = 256,
	CONTAINER_RESOLVER_NOT_ASKED = 1,
};

/* On the loop, when an answer came that says something. Strings live until it returns. */
typedef void (*container_resolver_cb)(const char *id, const char *name, const char *image, void *arg);

struct container_resolver_counts {
	uint64_t asked;
	uint64_t named;
	uint64_t unknown;	/* none of the sockets knows it */
	uint64_t failed;	/* nobody there, or an answer that makes no sense */
	uint64_t refused;	/* too many waited */
};

/* sockets: paths, n of them, copied. 0 or a negative errno; nobody need be there yet. cb may be NULL. */
int container_resolver_open(struct event_base *base, const char *const *sockets, size_t n,
    container_resolver_cb cb, void *arg, struct container_resolver **ret);
void container_resolver_close(struct container_resolver *c);	/* NULL is fine */

/*
 * What is known; false, with both NULL, if nothing is: then the first call for an id asks, and cb
 * tells. Only ids of 64 hexadecimal digits are asked for. Either string may be NULL. They live until
 * the loop goes on.
 */
bool container_resolver_find(struct container_resolver *c, const char *id, const char **ret_name,
    const char **ret_image);

/* How it went with socket i the last time: 0, CONTAINER_RESOLVER_NOT_ASKED, or a negative errno. */
int container_resolver_state(const struct container_resolver *c, size_t i);

const struct container_resolver_counts *container_resolver_counts(const struct container_resolver *c);

/*
 * The name and image of a container out of an answer's body: 1; 0: it is not in it; -EBADMSG: this is
 * no such list. "" where one is not told.
 */
int container_resolver_parse(const char *body, size_t len, const char *id, char name[CONTAINER_NAME_SIZE],
    char image[CONTAINER_NAME_SIZE]);

#endif
