/*
 * SPDX-License-Identifier: Apache-2.0
 * jobs: what Snakemake keeps of its local jobs, read by the reader of files: its logs, the names of outputs that are
 * being made, and the records of outputs. A file counts only where it belongs to the user of the program that is to be
 * named by it: no user learns from a name what is in another user's file.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/job_share.h"
#include "agent/state.h"
#include "base/clock.h"
#include "base/text.h"
#include "identify/jobs.h"

enum {
	FOLDERS = 16,			/* see job_place_for() */
	LOGS = 4,			/* of a folder, the newest ones */
	BLOCK = 4096,
	TAIL = 16 * BLOCK,		/* of a log that is read at once; what is before it at first is left out */
	RECORDS = 16,			/* that are read at once */
};

/* After which a folder's logs are read again. Events are drained less often: what they are of is logged by then. */
#define READ_NS UINT64_C(100000000)
#define LOOK_NS UINT64_C(1000000000)	/* after which new ones are looked for */

struct log {
	char name[NAME_MAX + 1];
	uint64_t offset;		/* up to which it was read */
	struct job_log *read;		/* owned; NULL: free */
};

/* A folder, as one Snakemake uses it for jobs of one user. */
struct agent_folder {
	char path[PATH_MAX];		/* of .snakemake; "": free */
	uint32_t uid, user;
	uint64_t driver_start_ns, driver_pid;
	uint64_t used_ns, read_ns, looked_ns;
	struct jobs *jobs;		/* owned */
	struct log logs[LOGS];
};

/* The folders of all users. */
struct agent_folders {
	struct agent_folder folder[FOLDERS];
	struct job_shares shares;
};

static void
folder_forget(struct agent_folder *f)
{
	for (int i = 0; i < LOGS; i++)
		job_log_free(f->logs[i].read);
	jobs_free(f->jobs);
	memset(f, 0, sizeof(*f));
}

void
agent_forget_jobs(struct agent *a)
{
	for (int i = 0; a->folders != NULL && i < FOLDERS; i++)
		folder_forget(&a->folders->folder[i]);
	free(a->folders);
	a->folders = NULL;
}

/* Returns the folder's entry, or a new one; NULL: no memory, or its path is too long. */
static struct agent_folder *
folder_of(struct agent *a, const struct job_sought *s)
{
	struct job_place places[FOLDERS];
	struct agent_folder *f;
	char path[PATH_MAX];

	if (a->folders == NULL)
		a->folders = calloc(1, sizeof(*a->folders));
	if (a->folders == NULL || snprintf(path, sizeof(path), "%s/.snakemake", s->folder) >= (int)sizeof(path))
		return NULL;
	for (int i = 0; i < FOLDERS; i++) {
		f = &a->folders->folder[i];
		if (f->uid == s->uid && f->driver_start_ns == s->driver_start_ns && f->driver_pid == s->driver_pid &&
		    strcmp(f->path, path) == 0)
			return f;
		places[i] = (struct job_place){ f->user, f->used_ns };
	}
	f = &a->folders->folder[job_place_for(places, FOLDERS, s->user)];
	folder_forget(f);
	f->jobs = jobs_new();
	if (f->jobs == NULL)
		return NULL;
	memcpy(f->path, path, sizeof(path));
	f->uid = s->uid;
	f->user = s->user;
	f->driver_start_ns = s->driver_start_ns;
	f->driver_pid = s->driver_pid;
	return f;
}

/* Writes the path of name in a folder of f, or of that folder if name is "". Returns false if it is too long. */
static bool
path_in(const struct agent_folder *f, const char *folder, const char *name, char text[PATH_MAX],
    struct reader_path *ret)
{
	*ret = (struct reader_path){ .text = text, .owner = f->uid, .is_resolved = true };
	return snprintf(text, PATH_MAX, "%s/%s%s%s", f->path, folder, name[0] != '\0' ? "/" : "", name) < PATH_MAX;
}

/* Reads what was appended to a log. */
static void
read_log(struct agent *a, struct agent_folder *f, struct log *log)
{
	char text[PATH_MAX], block[BLOCK];
	struct reader_path path;
	struct reader_file_facts facts;
	ssize_t n = BLOCK;

	if (!path_in(f, "log", log->name, text, &path))
		return;
	for (int i = 0; i < TAIL / BLOCK && n == BLOCK; i++) {
		n = reader_file(a->reader, &path, log->offset, block, sizeof(block), &facts);
		if (n <= 0)
			return;
		job_log_read(log->read, block, (size_t)n);
		log->offset += (uint64_t)n;
	}
}

/* Takes a log that Snakemake has written since the driver began, if there is room. */
static void
take_log(struct agent *a, struct agent_folder *f, const char *name)
{
	uint64_t since_boot_ns = clock_ns(CLOCK_BOOTTIME) - f->driver_start_ns;
	int64_t begun_s = (int64_t)((clock_ns(CLOCK_REALTIME) - since_boot_ns) / 1000000000);
	char text[PATH_MAX], byte[1];
	struct reader_path path;
	struct reader_file_facts facts;
	struct log *log = NULL;

	for (int i = 0; i < LOGS; i++) {
		if (f->logs[i].read == NULL)
			log = &f->logs[i];
		else if (strcmp(f->logs[i].name, name) == 0)
			return;
	}
	if (log == NULL || !path_in(f, "log", name, text, &path) ||
	    reader_file(a->reader, &path, 0, byte, sizeof(byte), &facts) < 0 || facts.changed_s < begun_s - 1)
		return;
	log->read = job_log_new(f->jobs);
	if (log->read == NULL)
		return;
	snprintf(log->name, sizeof(log->name), "%s", name);
	log->offset = facts.size > TAIL ? facts.size - TAIL : 0;
}

/* Looks for logs that are new. */
static void
look(struct agent *a, struct agent_folder *f)
{
	char text[PATH_MAX], names[BLOCK];
	struct reader_path path;
	int n_logs = 0;
	ssize_t n = -1;

	if (path_in(f, "log", "", text, &path))
		n = reader_folder(a->reader, &path, names, sizeof(names));
	for (const char *name = names; n > 0 && name < names + n && n_logs < LOGS; name += strlen(name) + 1) {
		if (!text_ends_with(name, ".snakemake.log"))
			continue;
		take_log(a, f, name);
		n_logs++;
	}
}

/* Takes the outputs that are being made. */
static void
look_for_outputs(struct agent *a, struct agent_folder *f)
{
	char text[PATH_MAX], names[BLOCK];
	struct reader_path path;
	ssize_t n = -1;

	if (path_in(f, "incomplete", "", text, &path))
		n = reader_folder(a->reader, &path, names, sizeof(names));
	for (const char *name = names; n > 0 && name < names + n; name += strlen(name) + 1)
		jobs_begun(f->jobs, name);
}

static bool
may_read(struct agent *a, const struct agent_folder *f)
{
	return job_shares_may(&a->folders->shares, f->user, reader_patience(a->reader), clock_ns(CLOCK_MONOTONIC));
}

/* Reads what is new in the folder, at most ten times a second. */
static void
update(struct agent *a, struct agent_folder *f, uint64_t now_ns)
{
	if ((f->read_ns != 0 && now_ns < f->read_ns + READ_NS) || !may_read(a, f))
		return;
	f->read_ns = now_ns;
	if (f->looked_ns == 0 || now_ns >= f->looked_ns + LOOK_NS) {
		f->looked_ns = now_ns;
		look(a, f);
	}
	for (int i = 0; i < LOGS; i++) {
		if (f->logs[i].read != NULL)
			read_log(a, f, &f->logs[i]);
	}
	if (!jobs_are_logged(f->jobs))
		look_for_outputs(a, f);
}

/* Reads a whole file of at most JOB_RECORD_MAX bytes into text. Returns its length, 0 if there is none. */
static size_t
read_record(struct agent *a, const struct agent_folder *f, const char *key, char *text)
{
	char path_text[PATH_MAX];
	struct reader_path path;
	struct reader_file_facts facts;
	size_t len = 0;
	ssize_t n;

	if (!path_in(f, "metadata", key, path_text, &path))
		return 0;
	do {
		n = reader_file(a->reader, &path, len, text + len, BLOCK, &facts);
		if (n < 0 || facts.size > JOB_RECORD_MAX)
			return 0;
		len += (size_t)n;
	} while (n == BLOCK && len < JOB_RECORD_MAX);
	return len == facts.size ? len : 0;
}

static void
read_records(struct agent *a, struct agent_folder *f)
{
	char key[JOB_KEY_SIZE], *text = malloc(JOB_RECORD_MAX);
	size_t at = 0, len;

	for (int i = 0; text != NULL && i < RECORDS && jobs_next_record(f->jobs, &at, key); i++) {
		len = read_record(a, f, key, text);
		if (len > 0)
			jobs_read_record(f->jobs, at, text, len);
	}
	free(text);
}

/* Finds the job by what is new in the folder, and at the task's end by records. */
static bool
find(struct agent *a, struct agent_folder *f, const struct job_sought *s, struct job_found *ret)
{
	update(a, f, f->used_ns);
	if (jobs_find(f->jobs, s, ret))
		return true;
	if (!s->is_over || !may_read(a, f))
		return false;
	read_records(a, f);
	return jobs_find(f->jobs, s, ret);
}

bool
agent_find_job(const struct job_sought *s, struct job_found *ret, void *arg)
{
	struct agent *a = arg;
	struct agent_folder *f = folder_of(a, s);
	uint64_t now_ns;
	bool is_found;

	if (f == NULL)
		return false;
	f->used_ns = clock_ns(CLOCK_MONOTONIC);
	is_found = find(a, f, s, ret);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	job_shares_use(&a->folders->shares, f->user, now_ns - f->used_ns, now_ns);
	return is_found;
}
