/*
 * SPDX-License-Identifier: Apache-2.0
 * control_client: asks the running agent through its control socket. What fails is printed, behind the name of the
 * subcommand that asks.
 */
#ifndef SLUICE_CLI_CONTROL_CLIENT_H
#define SLUICE_CLI_CONTROL_CLIENT_H

#include <stddef.h>
#include <stdint.h>

struct config;
struct json_t;

/*
 * Writes the path of the agent's socket: the one that the user named, otherwise that of the configuration; NULL: none.
 */
void control_client_path(const char *named, const struct config *config, char *path, size_t size);
/*
 * Return a connection to the agent, the caller's. The first: or a negative errno; the second: or -1 after printing why
 * there is none.
 */
int control_client_open(const char *path);
int control_client_connect(const char *who, const char *path);
/*
 * Sends a request as one line, and reads the answer. Returns the answer, an object that the caller owns; NULL after
 * printing why there is none.
 */
struct json_t *control_client_ask(const char *who, int fd, const char *path, const struct json_t *request,
    uint64_t timeout_ms);
/*
 * The same without printing: 0 with the answer, which the caller owns; or a negative errno, -EBADMSG: no answer of an
 * agent.
 */
int control_client_exchange(int fd, const struct json_t *request, uint64_t timeout_ms, struct json_t **ret);

#endif
