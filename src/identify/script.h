/*
 * SPDX-License-Identifier: Apache-2.0
 * script: a name for the text of a shell's -c option, from the tools that it runs.
 */
#ifndef SLUICE_IDENTIFY_SCRIPT_H
#define SLUICE_IDENTIFY_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/ruleset.h"

/*
 * Names script after its first pipeline that runs a tool, by the pipeline's first three tools:
 * "bwa mem | samtools sort". Only the first 4 KiB are read. Returns false, with name "", where no
 * pipeline runs a tool. name consists of whole tool names only; call redact_argv() before.
 */
bool script_name(const struct ruleset *rules, const char *script, char *name, size_t name_size);

#endif
