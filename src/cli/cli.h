/*
 * SPDX-License-Identifier: Apache-2.0
 * cli: one function for each subcommand, in the file of its name.
 */
#ifndef SLUICE_CLI_CLI_H
#define SLUICE_CLI_CLI_H

#include "base/exit_codes.h"

/* Each runs one subcommand and returns the exit status of the process. argv[0] is the subcommand's name. */
int cli_run(int argc, char **argv);
int cli_agent(int argc, char **argv);
int cli_cat(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_ctl(int argc, char **argv);
int cli_dead_letters(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_update(int argc, char **argv);
int cli_tune(int argc, char **argv);
int cli_sweep(int argc, char **argv);
int cli_lake(int argc, char **argv);

/* Prints what this program is, and what it is linked with. Returns EXIT_DONE. */
int cli_version(void);

#endif
