/*
 * SPDX-License-Identifier: Apache-2.0
 * daemon: `sluice agent`: a host-wide agent with its spool, delivery, control socket and metrics.
 *
 *   agent ──► spool ──► delivery ──► Kafka (schema ids: registry) or files
 *                                        control socket, metrics, service manager
 */
#ifndef SLUICE_DAEMON_DAEMON_H
#define SLUICE_DAEMON_DAEMON_H

struct daemon_options {
	const char *config;	/* NULL: CONFIG_PATH, which may be missing */
	const char *pins;	/* NULL: DAEMON_PINS */
};

#define DAEMON_PINS "/sys/fs/bpf/sluice"

/* Runs until SIGTERM or SIGINT. Returns an exit status of base/exit_codes.h; errors are in the log. */
int daemon_run(const struct daemon_options *o);

#endif
