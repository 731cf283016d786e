/*
 * SPDX-License-Identifier: Apache-2.0
 * notify: reports the agent's state to the service manager, in the protocol of sd_notify(3): datagrams of
 * NAME=VALUE lines to the socket that NOTIFY_SOCKET names. Without that variable all functions do nothing.
 */
#ifndef SLUICE_CONTROL_NOTIFY_H
#define SLUICE_CONTROL_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct notify;

/*
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them, so that no child sends in our name.
 * Always returns an object unless memory fails (-ENOMEM); for an address that cannot be used it returns a
 * negative errno with a sentence in error, and *ret is valid and sends nothing.
 */
int notify_open(struct notify **ret, char *error, size_t error_size);
void notify_close(struct notify *n);	/* NULL is fine, as for all below */

/* Each returns 0, or a negative errno if the manager was not notified. None of them waits. */
int notify_ready(struct notify *n);		/* READY=1: also when a reload is done */
int notify_reloading(struct notify *n);		/* RELOADING=1, with the time that Type=notify-reload requires */
int notify_stopping(struct notify *n);
int notify_watchdog(struct notify *n);
/* STATUS=text, unless that is what was sent last; of a longer text the beginning, of more than one line the first. */
int notify_status(struct notify *n, const char *text);

/* Returns true if there is a manager, which wants to know. */
bool notify_has_manager(const struct notify *n);
/* Returns the manager's time limit between two calls of notify_watchdog(), to be halved; 0: it has none. */
uint64_t notify_watchdog_us(const struct notify *n);

#endif
