/*
 * SPDX-License-Identifier: Apache-2.0
 * control: the unix socket by which root and the members of one group control the running agent, and the members of
 * another read its state; and a second one, by which any user has own runs followed. Apart, so that a flood of one does
 * not touch the other.
 *
 *	→ {"command":"reload","args":{…}}  one line of JSON, at most 64 KiB
 *	← {"ok":true,…}   or   {"ok":false,"error":"a sentence",…}  one line
 *
 * A client may send the next request on the same connection once it has its answer. Everything runs on the
 * loop's thread. A client that sends no whole request within 30 s, or does not read its answer, is disconnected. Users
 * other than root have a share of connections and of CPU time each: 4 connections, and 1 % of a CPU.
 */
#ifndef SLUICE_CONTROL_CONTROL_H
#define SLUICE_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/peer.h"
#include "control/status.h"

struct control;
struct bufferevent;
struct control_request;
struct event_base;
struct json_t;

#define CONTROL_PATH "/run/sluice/control.sock"
#define CONTROL_RUN_PATH "/run/sluice/run.sock"	/* of one that is public, for `sluice run` */

enum {
	CONTROL_LINE_MAX = 64 * 1024,
	CONTROL_CLIENTS = 16,
	CONTROL_CLIENTS_OF_UID = 4,	/* of them; root has no limit of its own */
	CONTROL_CLIENTS_KEPT = 2,	/* that only root can have */
	CONTROL_COMMAND_SIZE = 64,
};

struct control_options {
	const char *path;	/* copied; its directory is made 0755 if it is missing */
	const char *group;	/* group whose members may send every command, besides root; NULL: none */
	const char *read_group;	/* group whose members may send those that read; NULL: none */
	uid_t account;		/* may send every command, too; 0: no other than root */
	bool is_public;		/* every user may connect, and send those that concern own processes alone */
	uint32_t idle_ms;	/* 0: 30 s */
};

/*
 * Listens. Returns 0, or a negative errno (-EADDRINUSE: another agent listens there) with *ret untouched and a
 * sentence in error. With 0, error is "", or reports that there is no such group, whose members then may not connect.
 */
int control_open(struct event_base *base, const struct control_options *o, struct control **ret, char *error,
    size_t error_size);
/*
 * Closes all connections; open requests get no answer, but control_answer() must still be called for them and
 * frees them. NULL is fine.
 */
void control_close(struct control *c);

/*
 * Handles a request. args is an object, perhaps empty, valid during the call. req must be answered exactly once,
 * now or later, even if the client has disconnected by then.
 */
typedef void (*control_cb)(struct control_request *req, const struct json_t *args, void *arg);

/*
 * Adds a command. name: lower-case letters, digits and dashes, static; summary: a phrase for the list; access: what a
 * client must be allowed. Returns 0, -EEXIST or -ENOMEM.
 */
int control_handle(struct control *c, const char *name, const char *summary, enum control_access access, control_cb cb,
    void *arg);
/* Adds "status": with {"format":"text"} text for people ("colour": true for a terminal), else JSON. */
int control_handle_status(struct control *c, status_fill fill, void *arg);

/*
 * Both answer and free req. The first also takes ownership of answer, an object; "ok" is set to true unless it is
 * present.
 */
void control_answer(struct control_request *req, struct json_t *answer);
void control_answer_error(struct control_request *req, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Answers req and frees it as control_answer() does, and ends the client's time as one: what follows the answer on the
 * connection is the caller's. Returns the connection, which the caller owns, without callbacks and timeouts; NULL: the
 * client has disconnected.
 */
struct bufferevent *control_hand_over(struct control_request *req, struct json_t *answer);

/* Takes CPU time off what the handling of a request costs its client: it went to what would have been done anyway. */
void control_discount(struct control_request *req, uint64_t cpu_ns);

/*
 * Returns whether the client may do what needs this access: for commands of which only some uses need it. If not, it
 * answers and frees req; what: "add or remove rules".
 */
bool control_permits(struct control_request *req, enum control_access access, const char *what);

/* Returns true once the client has disconnected: it cannot receive the answer, which must still be given. */
bool control_is_gone(const struct control_request *req);

/* Returns the process that sent a request, and what it may do. */
struct control_peer control_request_peer(const struct control_request *req);

struct control_stats {
	uint64_t requests;
	uint64_t refused;	/* connections of peers without permission */
	uint64_t denied;	/* requests for which the peer's rights do not suffice */
	uint64_t crowded;	/* connections beyond the limit of all, or of one uid */
	uint64_t cut_off;	/* clients that were idle, or did not read */
	uint64_t waits;		/* times that clients had to wait, because they came or asked too fast */
	unsigned clients;	/* connected now */
};
/* Copies the counters since control_open(). */
void control_stats(const struct control *c, struct control_stats *ret);

/*
 * Parses one line without its newline: the command's name, and its arguments as a new reference (an object).
 * Returns 0, or -EINVAL with a sentence in error.
 */
int control_parse(const char *line, size_t len, char command[CONTROL_COMMAND_SIZE], struct json_t **ret_args,
    char *error, size_t error_size);

#endif
