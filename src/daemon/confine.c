/*
 * SPDX-License-Identifier: Apache-2.0
 * confine: the files that the configuration names, which are what a running agent may still use.
 *
 * They are allowed by the folder around them, so that one that is replaced, as by an editor, a certificate's renewal or
 * `rm -r` of the spool, is the agent's again when it is back.
 */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/confine.h"
#include "base/log.h"
#include "control/listen.h"
#include "daemon/state.h"

/* The folder of rules, and where links in it lead. */
static void
allow_rules(struct confinement *c, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;
	char path[PATH_MAX];

	confine_allow_reading(c, folder);
	(void)confine_allow(c, folder, SANDBOX_READ);
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (e->d_type == DT_LNK && snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < (int)sizeof(path))
			confine_allow_reading(c, path);
	}
	if (dir != NULL)
		closedir(dir);
}

static void
allow_configured(struct confinement *to, const struct daemon *d)
{
	const struct config *c = d->config;

	confine_allow_reading(to, d->options->config != NULL ? d->options->config : CONFIG_PATH);
	for (size_t i = 0; i < c->files.n; i++)
		confine_allow_reading(to, c->files.list[i]);
	allow_rules(to, c->rules);
	confine_allow_reading(to, c->registry.ca_file);
	confine_allow_reading(to, c->registry.cert_file);
	confine_allow_reading(to, c->registry.key_file);
	confine_allow_reading(to, c->containers.kubelet.ca_file);
	confine_allow_reading(to, c->containers.kubelet.token_file);
	for (size_t i = 0; i < c->kafka.properties.n; i++)
		confine_allow_reading(to, c->kafka.properties.list[i].value);
}

/* Where it writes. 0 or a negative errno. */
static int
allow_writing(struct confinement *to, const struct config *c)
{
	const char *const folders[] = { c->spool.dir, c->dead_letters, c->kafka.is_set ? NULL : c->lake };
	int r = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && r == 0; i++) {
		if (folders[i] != NULL)
			r = confine_allow_around(to, folders[i], SANDBOX_WRITE);
	}
	return r;
}

/* Its sockets are there: they are removed at the end, and a port that was taken is tried again. */
static void
allow_sockets(struct confinement *to, const struct config *c)
{
	(void)confine_allow_beside(to, c->control, SANDBOX_REMOVE);
	(void)confine_allow_beside(to, c->run_socket, SANDBOX_REMOVE);	/* "off" is no file */
	for (size_t i = 0; i < c->metrics.n; i++) {
		const char *address = c->metrics.list[i], *colon = strrchr(address, ':');

		if (listen_is_unix(address))
			(void)confine_allow_beside(to, listen_unix_path(address), SANDBOX_REMOVE);
		else if (colon != NULL && to->files >= 0)
			(void)sandbox_files_allow_listening(to->files, (uint16_t)strtoul(colon + 1, NULL, 10));
	}
}

/* 0 or a negative errno, with what failed in ret. */
static int
confine(const struct daemon *d, struct confinement *ret)
{
	int r = 0;

	/* Even to look the folder up would wait for its disk. */
	if (d->lake_maker != 0) {
		confine_begin_without_files(ret, "the lake's disk hangs");
	} else {
		r = confine_begin(ret);
		allow_configured(ret, d);
		allow_sockets(ret, d->config);
		r = r == 0 ? allow_writing(ret, d->config) : r;
	}
	if (r == 0)
		return confine_enforce(ret, true);
	confine_abandon(ret);
	return r;
}

int
daemon_confine(struct daemon *d)
{
	size_t used = strlen(d->privileges);
	struct confinement c;

	if (confine(d, &c) < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.confine", "cannot confine the agent to its own system calls and files: %s",
		    c.error);
		return -1;
	}
	snprintf(d->privileges + used, sizeof(d->privileges) - used, ", own system calls%s%s%s",
	    c.lacks == NULL ? " and files" : " but not files (", c.lacks != NULL ? c.lacks : "",
	    c.lacks != NULL ? ")" : "");
	return 0;
}
