/*
 * SPDX-License-Identifier: Apache-2.0
 * control: the unix socket by which root, and the members of a group, talk to the running agent.
 *
 *	→ {"command":"reload","args":{…}}	one line of JSON, at most 64 KiB
 *	← {"ok":true,…}   or   {"ok":false,"error":"a sentence",…}	one line
 *
 * A client may ask again on the same connection, once it has its answer. Everything happens on the
 * loop's thread. One that does not ask, or does not read its answer, for 30 s is cut off.
 */
#ifndef SLUICE_CONTROL_CONTROL_H
#define SLUICE_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/status.h"

struct control;
struct control_request;
struct event_base;
struct json_t;

#define CONTROL_PATH "/run/sluice/control.sock"

enum {
	CONTROL_LINE_MAX = 64 * 1024,
	CONTROL_CLIENTS = 16,
	CONTROL_COMMAND_SIZE = 64,
};

struct control_options {
	const char *path;	/* copied; its directory is made 0755 when missing */
	const char *group;	/* whose members may talk to the agent, besides root; NULL: none */
	uint32_t idle_ms;	/* 0: 30 s */
};

/*
 * Listens. 0, or a negative errno (-EADDRINUSE: an agent answers there) with *ret untouched and a
 * sentence in error. With 0, error is "" or tells that there is no such group: root only, then.
 */
int control_open(struct event_base *base, const struct control_options *o, struct control **ret, char *error,
    size_t error_size);
/* Open requests are dropped unanswered: control_answer() of them is then still to be called, and free. NULL is fine. */
void control_close(struct control *c);

/*
 * args is an object, perhaps empty, borrowed for the call. req is to be answered once, now or later,
 * also when the client is gone by then.
 */
typedef void (*control_cb)(struct control_request *req, const struct json_t *args, void *arg);

/* name: lower-case letters, digits and dashes, static; summary: half a sentence for the list. 0, -EEXIST or -ENOMEM. */
int control_handle(struct control *c, const char *name, const char *summary, control_cb cb, void *arg);
/* "status": with {"format":"text"} for people ("colour": true where the reader is a terminal), else JSON. */
int control_handle_status(struct control *c, status_fill fill, void *arg);

/* Both take req. answer, an object, is taken as well; "ok" is set to true unless it is there. */
void control_answer(struct control_request *req, struct json_t *answer);
void control_answer_error(struct control_request *req, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* True once the client has left: nobody would hear the answer, which is still to be given. */
bool control_is_gone(const struct control_request *req);

/* Who asks: for the log. */
struct control_peer {
	int32_t pid;
	uint32_t uid;
	uint32_t gid;
};
struct control_peer control_request_peer(const struct control_request *req);

struct control_stats {
	uint64_t requests;
	uint64_t refused;	/* peers that may not */
	uint64_t cut_off;	/* clients that were silent, did not read, or one too many */
	unsigned clients;	/* now */
};
void control_stats(const struct control *c, struct control_stats *ret);

/*
 * One line as it came, without its newline: the command's name, and its arguments as a new reference
 * (an object). 0, or -EINVAL with a sentence in error.
 */
int control_parse(const char *line, size_t len, char command[CONTROL_COMMAND_SIZE], struct json_t **ret_args,
    char *error, size_t error_size);

#endif
