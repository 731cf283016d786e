/*
 * SPDX-License-Identifier: Apache-2.0
 * script: what a shell's -c text runs, as far as it takes to name it.
 */
#ifndef SLUICE_IDENTIFY_SCRIPT_H
#define SLUICE_IDENTIFY_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/ruleset.h"

/*
 * The first pipeline of script (its first 4 KiB are read) that runs a tool, by its first three
 * tools: "bwa mem | samtools sort". False, and name "", where there is none. name holds whole tool
 * names only; redact_argv() comes before.
 */
bool script_name(const struct ruleset *rules, const char *script, char *name, size_t name_size);

#endif
