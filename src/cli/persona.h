/*
 * SPDX-License-Identifier: Apache-2.0
 * persona: whom COMMAND runs as: the user who called sudo, as at a login of that user. command.h
 * says which variables that changes.
 */
#ifndef SLUICE_CLI_PERSONA_H
#define SLUICE_CLI_PERSONA_H

#include <stdbool.h>
#include <sys/types.h>

/* Made ready before the fork, so that the child only does system calls. */
struct persona {
	bool change;		/* false: nothing below is set, COMMAND is as we are */
	uid_t uid;
	gid_t gid;
	gid_t *groups;		/* owned */
	int n_groups;
	char **env;		/* owned; the strings are environ's, or those in made */
	char *made[4];		/* owned */
};

/* Who called us through sudo, if anybody. 0 or -ENOMEM; persona_done is due in both cases. */
int persona_init(struct persona *p, bool as_root);
void persona_done(struct persona *p);

#endif
