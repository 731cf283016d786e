/*
 * SPDX-License-Identifier: Apache-2.0
 * rules: reads the files of rules.d into one struct ruleset.
 *
 * The shipped files are in the program. A file of the same name in the folder replaces a shipped one (an
 * empty one switches it off); others are added, and come first. Within a kind the first rule that holds
 * wins, so a user's rule takes precedence over a shipped one.
 */
#ifndef SLUICE_RULES_RULES_H
#define SLUICE_RULES_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/config.h"
#include "model/ruleset.h"

#define RULES_DIR "/etc/sluice/rules.d"

enum {
	RULES_FILE_BYTES_MAX = 4 << 20,
	RULES_BYTES_MAX = 16 << 20,	/* of all files together */
};

struct rules_options {
	const char *dir;		/* folder whose *.yaml are read, in the order of names; may be NULL or absent */
	uid_t owner;			/* a user whose files are as good as root's; 0: none */
	bool is_without_shipped;
	/* Rules that were added at run time, each as the text of a file; they precede all others. */
	const struct rules_extra {
		const char *name;
		const char *text;
		size_t len;
	} *extra;
	size_t n_extra;
};

/* Reads all rules. 0 with *ret the caller's reference; -EINVAL with all faults in errors; or -ENOMEM. */
int rules_load(const struct rules_options *o, struct ruleset **ret, struct config_errors *errors);

/* Reads the shipped rules alone. NULL: out of memory. */
struct ruleset *rules_shipped(void);

/* The shipped files, in the order of their names; the last has a NULL name. Made by the build, with yaml_pack(). */
struct rules_shipped_file {
	const char *name;	/* "exclude.yaml" */
	const uint8_t *nodes;
};

extern const struct rules_shipped_file rules_shipped_files[];

#endif
