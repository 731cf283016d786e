/*
 * SPDX-License-Identifier: Apache-2.0
 * persona: the user that COMMAND runs as: the one who called sudo, as at a login of that user.
 */
#include "cli/persona.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* Reads a complete uid or gid from the environment; -1 is no id. */
static bool
env_id(const char *name, uint32_t *ret)
{
	const char *text = getenv(name);
	uint64_t value;

	if (text == NULL || !text_number(text, UINT32_MAX - 1, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

bool
persona_caller(uid_t *ret_uid, gid_t *ret_gid)
{
	return env_id("SUDO_UID", ret_uid) && env_id("SUDO_GID", ret_gid);
}

/* Returns true if variable ("NAME=value") has one of these names. */
static bool
is_named(const char *variable, const char *const *names)
{
	size_t len = strcspn(variable, "=");

	for (; *names != NULL; names++)
		if (strlen(*names) == len && strncmp(variable, *names, len) == 0)
			return true;
	return false;
}

void
persona_done(struct persona *p)
{
	for (size_t i = 0; i < 4; i++)
		free(p->made[i]);
	free(p->env);
	free(p->groups);
}

/* Sets the environment to that of the user's login; pw is NULL for a uid without an account. */
static int
persona_set_env(struct persona *p, const struct passwd *pw)
{
	/* The variables that sudo itself sets. SUDO_PROMPT, SUDO_ASKPASS and SUDO_EDITOR are the user's own. */
	static const char *const gone[] = { "SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_COMMAND",
		"SUDO_HOME", "SUDO_TTY", "MAIL", "HOME", "USER", "LOGNAME", "SHELL", NULL };
	const char *name = pw != NULL ? pw->pw_name : getenv("SUDO_USER");
	size_t n = 0;

	if (name == NULL)
		name = "nobody";
	while (environ[n] != NULL)
		n++;
	p->env = calloc(n + 5, sizeof(*p->env));
	if (p->env == NULL ||
	    asprintf(&p->made[0], "HOME=%s", pw != NULL ? pw->pw_dir : "/") < 0 ||
	    asprintf(&p->made[1], "USER=%s", name) < 0 ||
	    asprintf(&p->made[2], "LOGNAME=%s", name) < 0 ||
	    asprintf(&p->made[3], "SHELL=%s",
		pw != NULL && pw->pw_shell[0] != '\0' ? pw->pw_shell : "/bin/sh") < 0)
		return -ENOMEM;
	n = 0;
	for (char **v = environ; *v != NULL; v++)
		if (!is_named(*v, gone))
			p->env[n++] = *v;
	for (size_t i = 0; i < 4; i++)
		p->env[n++] = p->made[i];
	return 0;
}

int
persona_init(struct persona *p, bool as_root)
{
	const struct passwd *pw;
	gid_t *more;

	*p = (struct persona){ 0 };
	if (as_root || geteuid() != 0 || !persona_caller(&p->uid, &p->gid))
		return 0;
	p->change = true;
	pw = getpwuid(p->uid);
	p->n_groups = 1;
	p->groups = malloc(sizeof(*p->groups));
	if (p->groups == NULL)
		return -ENOMEM;
	p->groups[0] = p->gid;
	/* The first call returns the number of groups; one that is added in between needs another call. */
	for (int room = 1; pw != NULL && getgrouplist(pw->pw_name, p->gid, p->groups, &room) < 0;) {
		if (room <= p->n_groups)
			room = p->n_groups * 2;
		more = realloc(p->groups, (size_t)room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		p->groups = more;
		p->n_groups = room;
	}
	return persona_set_env(p, pw);
}
