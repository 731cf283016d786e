/*
 * SPDX-License-Identifier: Apache-2.0
 * The agent's id, which is kept in the spool's folder together with what tells this machine and folder from a copy:
 *
 *	<uuid>			an older version reads and writes this line alone
 *	<fact> <value>		see base/incarnation.h
 *
 * In a copy, of a machine or of the folder, the agent gets a new id: under the old one it would give out numbers that
 * the original gives out too, for other records. The numbers continue where the spool is. Records that are in the spool
 * keep the old id, and are delivered: the original may be gone, and where it is not, both deliver the same records, of
 * which readers keep one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/file.h"
#include "base/incarnation.h"
#include "base/log.h"
#include "daemon/state.h"

#define AGENT_ID_FILE "agent-id"
#define AGENT_ID_PART ".agent-id.part"
#define FILE_MAX 4096

/* Replaces the file with the id and the facts. 0 or a negative errno. */
static int
write_file(const struct daemon *d, int dir_fd)
{
	char text[DAEMON_UUID_SIZE + INCARNATION_TEXT_MAX], facts[INCARNATION_TEXT_MAX];
	int fd = openat(dir_fd, AGENT_ID_PART, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644), r;

	if (fd < 0)
		return -errno;
	snprintf(text, sizeof(text), "%s\n%s", d->agent_id, incarnation_pack(&d->incarnation, facts));
	r = file_write(fd, text, strlen(text), 0);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	close(fd);
	if (r == 0 && renameat(dir_fd, AGENT_ID_PART, dir_fd, AGENT_ID_FILE) < 0)
		r = -errno;
	if (r == 0)
		(void)fsync(dir_fd);
	else
		unlinkat(dir_fd, AGENT_ID_PART, 0);
	return r;
}

/* Reads the file. 0; -ENOENT; -EBADMSG: it has no id; or another negative errno. */
static int
read_file(struct daemon *d, int dir_fd, struct incarnation *ret)
{
	struct file_text file = { 0 };
	uuid_t id;
	int r = file_read(dir_fd, AGENT_ID_FILE, &file, FILE_MAX);

	if (r == 0 && file.len < DAEMON_UUID_SIZE - 1)
		r = -EBADMSG;
	if (r == 0 && file.len > DAEMON_UUID_SIZE - 1) {
		incarnation_unpack(file.text + DAEMON_UUID_SIZE - 1, ret);
		file.text[DAEMON_UUID_SIZE - 1] = '\0';
	}
	if (r == 0 && uuid_parse(file.text, id) != 0)
		r = -EBADMSG;
	if (r == 0)
		uuid_unparse_lower(id, d->agent_id);
	file_text_done(&file);
	return r == -EFBIG ? -EBADMSG : r;
}

static void
make_id(struct daemon *d)
{
	uuid_t id;

	uuid_generate_random(id);
	uuid_unparse_lower(id, d->agent_id);
}

/* Gives this copy an id of its own. */
static void
renew(struct daemon *d, int dir_fd, const char *why)
{
	char before[DAEMON_UUID_SIZE];
	int r;

	memcpy(before, d->agent_id, sizeof(before));
	make_id(d);
	snprintf(d->renewed, sizeof(d->renewed), "the spool is of another machine, or a copy, by %s: agent_id was %s", why,
	    before);
	log_fields(LOG_LEVEL_WARNING, "agent.renewed", LOG_FIELDS(LOG_TEXT("agent_id", d->agent_id),
	    LOG_TEXT("before", before), LOG_TEXT("differs", why)),
	    "the spool in %s was written on another machine, or is a copy of another folder: the agent gets a new id, and "
	    "waiting records keep the old one", d->config->spool.dir);
	r = write_file(d, dir_fd);
	if (r < 0)
		log_event(LOG_LEVEL_WARNING, "agent.id", "cannot keep the new id in %s: %s; the next start makes another one",
		    d->config->spool.dir, strerror(-r));
}

void
daemon_read_machine(struct daemon *d)
{
	incarnation_read_machine("", &d->incarnation);
}

/* As daemon_read_agent_id(), with the spool's folder open. */
static int
read_id(struct daemon *d, int dir_fd)
{
	struct incarnation before = { 0 };
	char why[256], then[INCARNATION_TEXT_MAX], now[INCARNATION_TEXT_MAX];
	int r = read_file(d, dir_fd, &before);

	if (r == -ENOENT || r == -EBADMSG) {
		if (r == -EBADMSG)
			log_event(LOG_LEVEL_WARNING, "agent.id", "%s/" AGENT_ID_FILE " contains no UUID: the agent gets a new id",
			    d->config->spool.dir);
		make_id(d);
		return write_file(d, dir_fd);
	}
	if (r < 0)
		return r;
	if (incarnation_differs(&before, &d->incarnation, why, sizeof(why))) {
		renew(d, dir_fd, why);
		return 0;
	}
	incarnation_keep(&d->incarnation, &before);
	if (strcmp(incarnation_pack(&before, then), incarnation_pack(&d->incarnation, now)) != 0)
		(void)write_file(d, dir_fd);	/* on a full disk the next start does it */
	return 0;
}

int
daemon_read_agent_id(struct daemon *d)
{
	int fd = open(d->config->spool.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	incarnation_read_folder(d->config->spool.dir, &d->incarnation);
	r = read_id(d, fd);
	close(fd);
	return r;
}
