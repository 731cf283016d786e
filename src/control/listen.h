/*
 * SPDX-License-Identifier: Apache-2.0
 * listen: listens at an address of the configuration: a TCP port, or a unix socket.
 */
#ifndef SLUICE_CONTROL_LISTEN_H
#define SLUICE_CONTROL_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct listen_options {
	const char *address;	/* "127.0.0.1:9465", "[::1]:9465", "localhost:9465" or "unix:/run/sluice/metrics.sock" */
	bool allow_remote;	/* permit an address that other hosts can reach: there is no password */
	const char *group;	/* of a unix socket, mode 0660; NULL, or missing on this host: mode 0600 */
	int backlog;
};

/* Returns whether the address is of a unix socket. */
bool listen_is_unix(const char *address);
/* Returns the path in the address of a unix socket. */
const char *listen_unix_path(const char *address);
/*
 * Returns the fd, which is non-blocking and the caller's, with *ret_port the TCP port that was assigned, or 0; or a
 * negative errno (-EADDRINUSE, -EINVAL: invalid address) with a sentence in error.
 */
int listen_at(const struct listen_options *o, uint16_t *ret_port, char *error, size_t error_size);

#endif
