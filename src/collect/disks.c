/*
 * SPDX-License-Identifier: Apache-2.0
 * disks: reads the mounts, and asks local file systems for their room.
 */
#include "collect/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/stat.h>		/* musl's statx(2) has no mount */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/proctext.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

#define MOUNTINFO_MAX (4u << 20)
#define MOUNTS_FIRST 32
#define MOUNTS_MAX 4096
#define DEVICE_SIZE 24

enum answer { NOT_ASKED, KNOWN, UNKNOWN };

struct mount {
	char *point;			/* owned */
	size_t len;
	uint64_t id;
	char device[DEVICE_SIZE];	/* MAJOR:MINOR of its file system */
	bool is_local;
	enum answer answer;
	unsigned n_asked;
	struct disk_space space;
};

struct disks {
	struct mount *mounts;		/* in the order in which they were mounted */
	size_t n;
	size_t room;
	size_t bytes;
};

static bool
is_local(struct proc_word type)
{
	static const char *const types[] = { "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs",
		"tmpfs" };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (proc_word_is(type, types[i]))
			return true;
	}
	return false;
}

/* Returns the next word of a line, and moves *at behind it; an empty one at the end. */
static struct proc_word
next_word(const char **at, const char *end)
{
	const char *from = *at, *to;

	while (from < end && *from == ' ')
		from++;
	to = from;
	while (to < end && *to != ' ')
		to++;
	*at = to;
	return (struct proc_word){ from, (size_t)(to - from) };
}

/* Adds the mount of a line: ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [OPTIONAL ...] - TYPE ... 0 or -ENOMEM. */
static int
add_line(struct disks *d, const char *at, const char *end)
{
	char point[PATH_MAX];
	struct mount *m = &d->mounts[d->n];
	struct proc_word word = next_word(&at, end), device, type;

	*m = (struct mount){ .id = strtoull(word.at, NULL, 10) };	/* the line has an end, before which it stops */
	(void)next_word(&at, end);
	device = next_word(&at, end);
	(void)next_word(&at, end);
	word = next_word(&at, end);
	if (device.len >= DEVICE_SIZE || proctext_unescape(word, point, sizeof(point)) < 0)
		return 0;		/* a malformed mount must not hide the others */
	memcpy(m->device, device.at, device.len);
	do {
		word = next_word(&at, end);
	} while (word.len > 0 && !proc_word_is(word, "-"));
	type = next_word(&at, end);
	m->is_local = is_local(type);
	m->len = strlen(point);
	m->point = strdup(point);
	if (m->point == NULL)
		return -ENOMEM;
	d->n++;
	d->bytes += m->len + 1;
	return 0;
}

/* Makes room for one mount more. 0 or -ENOMEM. */
static int
reserve(struct disks *d)
{
	size_t room = d->room > 0 ? 2 * d->room : MOUNTS_FIRST;
	struct mount *mounts;

	if (d->n < d->room)
		return 0;
	mounts = realloc(d->mounts, room * sizeof(*mounts));
	if (mounts == NULL)
		return -ENOMEM;
	d->mounts = mounts;
	d->room = room;
	return 0;
}

int
disks_read(const char *mountinfo, struct disks **ret)
{
	struct disks *d = calloc(1, sizeof(*d));
	struct file_text t = { 0 };
	const char *end;
	int r;

	if (d == NULL)
		return -ENOMEM;
	r = file_read(AT_FDCWD, mountinfo, &t, MOUNTINFO_MAX);
	if (r < 0)
		goto out;
	end = t.text + t.len;
	for (const char *at = t.text, *eol; r >= 0 && at < end && d->n < MOUNTS_MAX; at = eol + 1) {
		eol = memchr(at, '\n', (size_t)(end - at));
		if (eol == NULL)
			break;
		r = reserve(d);
		if (r == 0)
			r = add_line(d, at, eol);
	}
	if (r >= 0) {
		d->bytes += sizeof(*d) + d->room * sizeof(*d->mounts);
		*ret = d;
		d = NULL;
		r = 0;
	}
out:
	file_text_done(&t);
	disks_free(d);
	return r;
}

void
disks_free(struct disks *d)
{
	if (d == NULL)
		return;
	for (size_t i = 0; i < d->n; i++)
		free(d->mounts[i].point);
	free(d->mounts);
	free(d);
}

/* Returns true if a folder is the mount point or below it. */
static bool
is_below(const char *folder, const struct mount *m)
{
	if (m->len == 1)
		return folder[0] == '/';
	return strncmp(folder, m->point, m->len) == 0 && (folder[m->len] == '\0' || folder[m->len] == '/');
}

/* Returns true if what is open is that mount. */
static bool
is_mount(int fd, const struct mount *m)
{
	struct statx st;

	return syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) == 0 &&
	    (st.stx_mask & STATX_MNT_ID) != 0 && st.stx_mnt_id == m->id;
}

static bool
ask(const struct mount *m, struct disk_space *ret)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_CACHED | RESOLVE_NO_SYMLINKS };
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, m->point, &how, sizeof(how));
	struct statvfs st;
	bool is_known;

	if (fd < 0)
		return false;
	is_known = is_mount(fd, m) && fstatvfs(fd, &st) == 0 && st.f_blocks > 0;
	close(fd);
	if (is_known)
		*ret = (struct disk_space){ (uint64_t)st.f_bavail * st.f_frsize, (uint64_t)st.f_blocks * st.f_frsize,
			st.f_favail, st.f_files };
	return is_known;
}

size_t
disks_bytes(const struct disks *d)
{
	return d->bytes;
}

/* Returns the mount that a folder is in; NULL: none. */
static const struct mount *
mount_of(const struct disks *d, const char *folder)
{
	const struct mount *of = NULL;

	for (size_t i = 0; i < d->n; i++) {
		if (is_below(folder, &d->mounts[i]) && (of == NULL || d->mounts[i].len >= of->len))
			of = &d->mounts[i];	/* of two at one point the later one is on top */
	}
	return of;
}

bool
disks_space(struct disks *own, const struct disks *mounts, const char *folder, bool is_anew, struct disk_space *ret)
{
	const struct mount *of = mount_of(mounts, folder);

	if (of == NULL || !of->is_local)
		return false;
	for (size_t i = 0; i < own->n; i++) {
		struct mount *m = &own->mounts[i];

		/* Of several mounts of a device each may have a quota: in this namespace it is the folder's own. */
		if (strcmp(m->device, of->device) != 0 || !m->is_local || (own == mounts && m != of))
			continue;
		if (m->answer == NOT_ASKED || (is_anew && m->answer == KNOWN && m->n_asked < DISKS_ASKED_MAX)) {
			m->answer = ask(m, &m->space) ? KNOWN : UNKNOWN;
			m->n_asked++;
		}
		if (m->answer == KNOWN) {
			*ret = m->space;
			return true;
		}
	}
	return false;
}

bool
disks_device(const struct disks *mounts, const char *folder, struct disk_counts *ret)
{
	const struct mount *of = mount_of(mounts, folder);

	return of != NULL && of->is_local && sscanf(of->device, "%" SCNu32 ":%" SCNu32, &ret->major, &ret->minor) == 2 &&
	    ret->major != 0;		/* tmpfs, and btrfs over several disks */
}

bool
disks_counts(const char *text, size_t len, struct disk_counts *ret)
{
	struct proc_disk disk;
	int r;

	while ((r = proctext_next_disk(&text, &len, &disk)) != 0) {
		if (r < 0 || disk.major != ret->major || disk.minor != ret->minor)
			continue;
		ret->bytes = disk.read_bytes + disk.write_bytes;
		ret->busy_ns = disk.busy_ms * UINT64_C(1000000);
		return true;
	}
	return false;
}
