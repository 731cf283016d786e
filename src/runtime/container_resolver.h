/*
 * SPDX-License-Identifier: Apache-2.0
 * container_resolver: names and images of containers, requested from the container runtime's sockets that the
 * configuration lists; without any, nothing is requested.
 *
 * Docker's HTTP API is used, which Podman supports too; containerd and CRI-O have only gRPC and are not
 * supported. One request is in flight at a time, on the caller's loop; each id is requested once, and found or
 * unknown is remembered. The list of containers is requested instead of the single container, because it has
 * what `docker ps` shows, and nothing of a container's environment. Only id, name and image are read.
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
	CONTAINER_RESOLVER_KEPT = 4096,	/* the oldest is then forgotten */
	CONTAINER_RESOLVER_WAITING = 1024,	/* further ids are refused, and counted */
	CONTAINER_NAME_SIZE = 256,
	CONTAINER_RESOLVER_NOT_ASKED = 1,
};

/* Called on the loop when a container was found. Strings are valid during the call. */
typedef void (*container_resolver_cb)(const char *id, const char *name, const char *image, void *arg);

struct container_resolver_counts {
	uint64_t asked;
	uint64_t named;
	uint64_t unknown;	/* no runtime has it */
	uint64_t failed;	/* no server at a socket, or an invalid answer */
	uint64_t refused;	/* too many were waiting */
};

/*
 * Creates a resolver for n paths of sockets, which are copied; no server need be there yet. cb may be NULL. 0
 * or a negative errno.
 */
int container_resolver_open(struct event_base *base, const char *const *sockets, size_t n,
    container_resolver_cb cb, void *arg, struct container_resolver **ret);
void container_resolver_close(struct container_resolver *c);	/* NULL is fine */

/*
 * Finds a container's name and image; either may be NULL. False, with both NULL: not known; the first call for
 * an id requests them, and cb is called. Only ids of 64 hexadecimal digits are requested. Strings are valid
 * until the next turn of the loop.
 */
bool container_resolver_find(struct container_resolver *c, const char *id, const char **ret_name,
    const char **ret_image);

/* Returns the result of the last request to socket i: 0, CONTAINER_RESOLVER_NOT_ASKED, or a negative errno. */
int container_resolver_state(const struct container_resolver *c, size_t i);

/* Returns the counters, which are the resolver's. */
const struct container_resolver_counts *container_resolver_counts(const struct container_resolver *c);

/*
 * Reads a container's name and image from the body of an answer; a missing one is "". 1; 0: it does not contain
 * the container; -EBADMSG: not a list of containers.
 */
int container_resolver_parse(const char *body, size_t len, const char *id, char name[CONTAINER_NAME_SIZE],
    char image[CONTAINER_NAME_SIZE]);

#endif
