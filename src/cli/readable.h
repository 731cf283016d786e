/*
 * SPDX-License-Identifier: Apache-2.0
 * readable: warns of files of the configuration that root can read, and the account that the agent runs as cannot.
 */
#ifndef SLUICE_CLI_READABLE_H
#define SLUICE_CLI_READABLE_H

struct config;

/*
 * Prints a warning on standard error for each file of the configuration and the rules, and for each of their folders,
 * that `user` cannot open; only root can find out. path: of the configuration. To be called while this thread is the
 * only one.
 */
void readable_warn(const struct config *c, const char *path);

#endif
