/*
 * SPDX-License-Identifier: Apache-2.0
 * files: what may be read as configuration or rules, and which of them a folder has. Private to
 * config/.
 */
#ifndef SLUICE_CONFIG_FILES_H
#define SLUICE_CONFIG_FILES_H

#include "base/file.h"
#include "config/config.h"

/* Bounds, and how errors put it. */
struct files_policy {
	size_t bytes_max;
	const char *too_large;
	const char *harm;	/* what somebody could do who may write it: "become root" */
	size_t files_max;
	const char *too_many;
};

/*
 * 0; or -EINVAL with an error added, or -ENOMEM. ret_missing may be NULL: then a file that is not
 * there is an error; else it is none, and -EINVAL too.
 */
int files_read(const struct files_policy *policy, const char *path, struct file_text *text,
    bool *ret_missing, struct config_errors *errors);

/* The names of dir's *.yaml, in their order; none if there is no dir. 0 with errors added, or -ENOMEM. */
int files_list(const struct files_policy *policy, const char *dir, struct config_strings *ret,
    struct config_errors *errors);

#endif
