/*
 * SPDX-License-Identifier: Apache-2.0
 * space: the room where tasks work, for findings, and what the disks there do.
 *
 * The agent's own mounts are read once a second. Where programs have another mount namespace, as in a container, or on
 * the host of an agent that has one of its own, theirs are read and kept for a while, so many in a second, in so much
 * memory.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agent/state.h"
#include "base/file.h"
#include "collect/disks.h"

#define OTHERS_MAX 256
#define OTHERS_BYTES_MAX (8u << 20)
#define READS_MAX 4			/* in a second */
#define DISKSTATS_MAX (4u << 20)
#define KEPT_NS UINT64_C(60000000000)

/* What mounts are read for. Programs that begin, as many as a user likes, must not keep rooms from being looked at. */
enum purpose { FOR_ROOM, FOR_DISK };

struct other {
	uint32_t mnt_ns;		/* 0: the place is free */
	uint64_t read_ns;
	struct disks *mounts;
};

struct agent_spaces {
	uint32_t mnt_ns;		/* the agent's own; 0: unknown */
	uint64_t second_ns;		/* in which own was read */
	struct disks *own;		/* NULL: it could not be read */
	struct file_text diskstats;
	uint64_t diskstats_ns;		/* second_ns as it was read */
	struct disk_counts last;	/* the disk that was asked for last, which most works use, */
	uint64_t last_ns;		/* in this second */
	unsigned reads[2];		/* of others in that second: for rooms, and for disks of what begins */
	size_t bytes;			/* of others */
	struct other others[OTHERS_MAX];
};

static void
forget(struct agent_spaces *s, struct other *o)
{
	if (o->mounts != NULL)
		s->bytes -= disks_bytes(o->mounts);
	disks_free(o->mounts);
	*o = (struct other){ 0 };
}

void
agent_forget_spaces(struct agent *a)
{
	if (a->spaces == NULL)
		return;
	for (size_t i = 0; i < OTHERS_MAX; i++)
		forget(a->spaces, &a->spaces->others[i]);
	disks_free(a->spaces->own);
	file_text_done(&a->spaces->diskstats);
	free(a->spaces);
	a->spaces = NULL;
}

/* Returns the mounts that the agent has in this second; NULL without memory, or if they cannot be read. */
static struct agent_spaces *
spaces_now(struct agent *a)
{
	struct agent_spaces *s = a->spaces;
	struct stat st;

	if (s == NULL) {
		s = a->spaces = calloc(1, sizeof(*s));
		if (s == NULL)
			return NULL;
		s->mnt_ns = stat("/proc/self/ns/mnt", &st) == 0 ? (uint32_t)st.st_ino : 0;
	}
	if (s->own == NULL || s->second_ns != a->second_ns) {
		disks_free(s->own);
		s->own = NULL;
		s->reads[FOR_ROOM] = s->reads[FOR_DISK] = 0;
		s->second_ns = a->second_ns;
		if (disks_read("/proc/self/mountinfo", &s->own) < 0)
			return NULL;
	}
	return s;
}

/* Returns the place of the namespace, or else one for it: free, or of what was read longest ago. */
static struct other *
place_of(struct agent_spaces *s, uint32_t mnt_ns)
{
	struct other *oldest = &s->others[0];

	for (size_t i = 0; i < OTHERS_MAX; i++) {
		struct other *o = &s->others[i];

		if (o->mnt_ns == mnt_ns)
			return o;
		if (o->read_ns < oldest->read_ns)
			oldest = o;
	}
	return oldest;
}

/* Frees what was read longest ago, until there is room for bytes more. */
static void
make_room(struct agent_spaces *s, size_t bytes)
{
	while (s->bytes > 0 && s->bytes + bytes > OTHERS_BYTES_MAX) {
		struct other *oldest = NULL;

		for (size_t i = 0; i < OTHERS_MAX; i++) {
			if (s->others[i].mounts != NULL && (oldest == NULL || s->others[i].read_ns < oldest->read_ns))
				oldest = &s->others[i];
		}
		forget(s, oldest);
	}
}

/*
 * Returns the mounts of the namespace, in which the program with that PID is; NULL: unknown, or not in this second.
 * PID 0: what was read of it is all there is.
 */
static const struct disks *
mounts_of(struct agent_spaces *s, enum purpose purpose, uint32_t pid, uint64_t since_ns, uint32_t mnt_ns)
{
	struct other *o = place_of(s, mnt_ns);
	struct disks *mounts;
	char path[64];

	/* A younger program may be in a namespace that has the number of one that is gone. New ones are read first. */
	if (o->mnt_ns == mnt_ns && since_ns < o->read_ns &&
	    (pid == 0 || s->second_ns - o->read_ns < KEPT_NS || s->reads[purpose] >= READS_MAX / 2))
		return o->mounts;
	if (pid == 0 || s->reads[purpose] >= READS_MAX)
		return NULL;
	s->reads[purpose]++;
	snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
	if (disks_read(path, &mounts) < 0)
		return NULL;
	forget(s, o);
	make_room(s, disks_bytes(mounts));
	*o = (struct other){ mnt_ns, s->second_ns, mounts };
	s->bytes += disks_bytes(mounts);
	return mounts;
}

/* Returns the mounts that a program has; NULL: unknown. */
static const struct disks *
mounts_now(struct agent_spaces *s, enum purpose purpose, uint32_t pid, uint64_t since_ns, uint32_t mnt_ns)
{
	if (s == NULL || mnt_ns == 0)
		return NULL;
	return mnt_ns == s->mnt_ns ? s->own : mounts_of(s, purpose, pid, since_ns, mnt_ns);
}

bool
agent_space(const char *folder, uint32_t pid, uint64_t start_ns, uint32_t mnt_ns, bool is_anew,
    struct disk_space *ret, void *arg)
{
	struct agent_spaces *s = spaces_now(arg);
	const struct disks *mounts = mounts_now(s, FOR_ROOM, pid, start_ns, mnt_ns);

	return mounts != NULL && disks_space(s->own, mounts, folder, is_anew, ret);
}

bool
agent_disk(const char *folder, uint32_t pid, uint64_t start_ns, uint32_t mnt_ns, struct disk_counts *ret, void *arg)
{
	struct agent_spaces *s = spaces_now(arg);

	if (folder != NULL) {
		const struct disks *mounts = mounts_now(s, FOR_DISK, pid, start_ns, mnt_ns);

		if (mounts == NULL || !disks_device(mounts, folder, ret))
			return false;
	}
	if (s == NULL)
		return false;
	if (s->last_ns == s->second_ns && s->last.major == ret->major && s->last.minor == ret->minor) {
		*ret = s->last;
		return true;
	}
	if (s->diskstats_ns != s->second_ns) {
		if (file_read(AT_FDCWD, "/proc/diskstats", &s->diskstats, DISKSTATS_MAX) < 0)
			return false;
		s->diskstats_ns = s->second_ns;
	}
	if (!disks_counts(s->diskstats.text, s->diskstats.len, ret))
		return false;
	s->last = *ret;
	s->last_ns = s->second_ns;
	return true;
}
