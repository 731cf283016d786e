/*
 * SPDX-License-Identifier: Apache-2.0
 * notify: tells the service manager how the agent is, in the protocol of sd_notify(3): datagrams of
 * NAME=VALUE lines to the socket that NOTIFY_SOCKET names. Without that variable all of it does nothing.
 */
#ifndef SLUICE_CONTROL_NOTIFY_H
#define SLUICE_CONTROL_NOTIFY_H

#include <stddef.h>
#include <stdint.h>

struct notify;

/*
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them, so that no child speaks for
 * us. Always gives an object, unless memory fails (-ENOMEM); an address that cannot be used is told by
 * a negative errno with a sentence in error, and *ret is valid and silent.
 */
int notify_open(struct notify **ret, char *error, size_t error_size);
void notify_close(struct notify *n);	/* NULL is fine, as for all below */

/* Each 0, or a negative errno: the manager was not told. None of them waits. */
int notify_ready(struct notify *n);		/* READY=1: also when a reload is done */
int notify_reloading(struct notify *n);		/* RELOADING=1, with the time that Type=notify-reload wants */
int notify_stopping(struct notify *n);
int notify_watchdog(struct notify *n);

/* How often notify_watchdog() is due at the latest; the manager's limit, to be halved. 0: it does not watch. */
uint64_t notify_watchdog_us(const struct notify *n);

#endif
