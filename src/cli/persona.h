/*
 * SPDX-License-Identifier: Apache-2.0
 * persona: the user that COMMAND runs as: the one who called sudo, as at a login of that user. command.h lists
 * the variables that this changes.
 */
#ifndef SLUICE_CLI_PERSONA_H
#define SLUICE_CLI_PERSONA_H

#include <stdbool.h>
#include <sys/types.h>

/* The ids and the environment, prepared before the fork, so that the child only makes system calls. */
struct persona {
	bool change;		/* false: nothing below is set, COMMAND runs as this process does */
	uid_t uid;
	gid_t gid;
	gid_t *groups;		/* owned */
	int n_groups;
	char **env;		/* owned; the strings are environ's, or those in made */
	char *made[4];		/* owned */
};

/* Sets the ids of the user who called us through sudo, from its variables. Returns false if it was not sudo. */
bool persona_caller(uid_t *ret_uid, gid_t *ret_gid);

/*
 * Looks up the user who called us through sudo, if there is one. Returns 0 or -ENOMEM; call persona_done in both
 * cases.
 */
int persona_init(struct persona *p, bool as_root);
/* Frees what persona_init() allocated. */
void persona_done(struct persona *p);

#endif
