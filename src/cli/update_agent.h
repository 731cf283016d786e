/*
 * SPDX-License-Identifier: Apache-2.0
 * update_agent: the running agent, as `sluice update` sees it: how it is, how it is restarted, and whether the new one
 * does as well as the old one did.
 */
#ifndef SLUICE_CLI_UPDATE_AGENT_H
#define SLUICE_CLI_UPDATE_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config;

enum update_restart {
	UPDATE_RESTART_NONE,		/* no agent runs from this program */
	UPDATE_RESTART_BY_HAND,		/* one runs that only its user can restart */
	UPDATE_RESTART_BY_COMMAND,
};

struct update_agent {
	const struct config *config;	/* the caller's */
	enum update_restart restart;
	char *const *command;		/* NULL-terminated; of UPDATE_RESTART_BY_COMMAND */
	char **words;			/* owned, or NULL */
	/* As it was before the update. */
	bool was_ready;			/* it saw, and its records were delivered */
	unsigned missing;		/* signals */
};

/*
 * Asks the agent at the configuration's socket, and finds out how it is restarted. target: the path of the program; an
 * agent of one that was there before counts. 0; or a negative errno with a sentence in error: -EBUSY: an agent runs
 * that does not answer.
 */
int update_agent_look(struct update_agent *a, const struct config *config, const char *target, char *error,
    size_t error_size);
void update_agent_done(struct update_agent *a);

/* Writes what must outlive a kill, as a line for update_agent_recall(), into size bytes. */
void update_agent_note(const struct update_agent *a, char *note, size_t size);
/* Sets how the agent was before an update that was killed, and how it is restarted; as update_agent_look(). */
int update_agent_recall(struct update_agent *a, const struct config *config, const char *note, char *error,
    size_t error_size);

/* Runs the command that restarts the agent. 0; or a negative errno with a sentence in error. */
int update_agent_restart(const struct update_agent *a, char *error, size_t error_size);

/*
 * Waits until the agent of this version (NULL: of any) is as well as before, for as long as wait_ms, and then watches
 * it for watch_ms. on_second is called once a second with the time that is left of the latter, in seconds; 0: it is not
 * well yet. 0; or -EIO with a sentence in error.
 */
int update_agent_watch(const struct update_agent *a, const char *version, uint64_t wait_ms, uint64_t watch_ms,
    void (*on_second)(unsigned left_s, void *arg), void *arg, char *error, size_t error_size);

#endif
