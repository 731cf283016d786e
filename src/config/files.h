/*
 * SPDX-License-Identifier: Apache-2.0
 * files: reads files of configuration or rules, and lists those of a folder. Private to config/ and
 * rules/.
 */
#ifndef SLUICE_CONFIG_FILES_H
#define SLUICE_CONFIG_FILES_H

#include "base/file.h"
#include "config/config.h"

/* The bounds of a kind of files, and how errors describe them. */
struct files_policy {
	size_t bytes_max;
	const char *too_large;
	const char *harm;	/* what a user who may write such a file could do: "become root" */
	uid_t owner;		/* a user whose files are as good as root's; 0: none */
	size_t files_max;
	const char *too_many;
};

/*
 * Reads a file: where root started this process only one that is safe (base/safe_path.h), and never one that is
 * world-writable. 0; -EINVAL with an error added; or -ENOMEM. A missing file is an error where ret_missing
 * is NULL; otherwise it is -EINVAL without an error, and *ret_missing is set.
 */
int files_read(const struct files_policy *policy, const char *path, struct file_text *text,
    bool *ret_missing, struct config_errors *errors);

/* Lists the sorted names of dir's *.yaml files; none where dir does not exist. 0, with errors added, or -ENOMEM. */
int files_list(const struct files_policy *policy, const char *dir, struct config_strings *ret,
    struct config_errors *errors);

#endif
