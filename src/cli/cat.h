/*
 * SPDX-License-Identifier: Apache-2.0
 * cat: the subcommand that prints a lake's records as lines of JSON.
 */
#ifndef SLUICE_CLI_CAT_H
#define SLUICE_CLI_CAT_H

/*
 * Runs `sluice cat`; argv[0] is "cat". Returns the exit status: 0, 1 if something could not be read, 2 for wrong
 * usage.
 */
int cli_cat(int argc, char **argv);

#endif
