/*
 * SPDX-License-Identifier: Apache-2.0
 * incarnation: tells a machine and a folder on it from copies of both.
 *
 * A device number is no fact: it may be another after each boot. Nor is an inode number where the file system makes it
 * up when it is mounted.
 */
#include "base/incarnation.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/stat.h>		/* older musl has no statx(2) */
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/host_id.h"

#define SMB2_MAGIC 0xfe534d42
#define CIFS_MAGIC 0xff534d42

static const struct fact {
	const char *key;		/* in the text */
	const char *name;
	size_t offset;
	size_t size;
} facts[] = {
#define FACT(key, name, member) \
	{ key, name, offsetof(struct incarnation, member), sizeof(((struct incarnation *)0)->member) }
	FACT("machine-id", "the machine-id", machine_id),
	FACT("hardware", "the id of the hardware", hardware),
	FACT("host-name", "the name of the host", host_name),
	FACT("folder", "the folder, which is a copy", folder),
#undef FACT
};

#define FACTS (sizeof(facts) / sizeof(facts[0]))

static const char *
value(const struct incarnation *i, const struct fact *f)
{
	return (const char *)i + f->offset;
}

void
incarnation_read_machine(const char *root, struct incarnation *ret)
{
	struct host_id host;

	ret->machine_id[0] = ret->host_name[0] = ret->hardware[0] = '\0';
	if (host_id_read(root, &host) < 0)
		return;
	if (host.source == HOST_ID_MACHINE_ID)
		snprintf(ret->machine_id, sizeof(ret->machine_id), "%s", host.id);
	snprintf(ret->host_name, sizeof(ret->host_name), "%s", host.name);
	host_id_read_hardware(root, ret->hardware, sizeof(ret->hardware));
}

/* Returns whether inode numbers stay those of their files when the file system is mounted again. */
static bool
keeps_inodes(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type & 0xffffffff) {
	case FUSE_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case V9FS_MAGIC:
	case SMB2_MAGIC:
	case CIFS_MAGIC:
		return false;
	default:
		return true;
	}
}

void
incarnation_read_folder(const char *path, struct incarnation *ret)
{
	struct statx st;

	ret->folder[0] = '\0';
	if (syscall(SYS_statx, AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) < 0)
		return;
	if ((st.stx_mask & STATX_BTIME) != 0 && st.stx_btime.tv_sec > 0)
		snprintf(ret->folder, sizeof(ret->folder), "made %lld.%09u", (long long)st.stx_btime.tv_sec,
		    st.stx_btime.tv_nsec);
	else if ((st.stx_mask & STATX_INO) != 0 && keeps_inodes(path))
		snprintf(ret->folder, sizeof(ret->folder), "inode %llu", (unsigned long long)st.stx_ino);
}

/* Returns whether two values are of the same kind, so that they can be compared: "made TIME" and "inode N" are not. */
static bool
is_comparable(const char *a, const char *b)
{
	size_t len = strcspn(a, " ");

	return a[0] != '\0' && b[0] != '\0' && (a[len] == ' ') == (strchr(b, ' ') != NULL) &&
	    (a[len] != ' ' || strncmp(a, b, len + 1) == 0);
}

bool
incarnation_differs(const struct incarnation *before, const struct incarnation *now, char *why, size_t size)
{
	bool has_hardware = before->hardware[0] != '\0' || now->hardware[0] != '\0';

	for (size_t i = 0; i < FACTS; i++) {
		const char *a = value(before, &facts[i]), *b = value(now, &facts[i]);

		if (facts[i].offset == offsetof(struct incarnation, host_name) && has_hardware)
			continue;
		if (!is_comparable(a, b) || strcmp(a, b) == 0)
			continue;
		snprintf(why, size, "%s (%s, before %s)", facts[i].name, b, a);
		return true;
	}
	return false;
}

void
incarnation_keep(struct incarnation *now, const struct incarnation *before)
{
	for (size_t i = 0; i < FACTS; i++) {
		if (value(now, &facts[i])[0] == '\0')
			memcpy((char *)now + facts[i].offset, value(before, &facts[i]), facts[i].size);
	}
}

char *
incarnation_pack(const struct incarnation *i, char text[INCARNATION_TEXT_MAX])
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t f = 0; f < FACTS; f++) {
		if (value(i, &facts[f])[0] != '\0')
			used += (size_t)snprintf(text + used, INCARNATION_TEXT_MAX - used, "%s %s\n", facts[f].key,
			    value(i, &facts[f]));
	}
	return text;
}

void
incarnation_unpack(const char *text, struct incarnation *ret)
{
	*ret = (struct incarnation){ 0 };
	for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n') {
		size_t len = strcspn(text, "\n");

		for (size_t f = 0; f < FACTS; f++) {
			size_t key = strlen(facts[f].key);

			if (len > key + 1 && strncmp(text, facts[f].key, key) == 0 && text[key] == ' ' &&
			    len - key - 1 < facts[f].size)
				snprintf((char *)ret + facts[f].offset, facts[f].size, "%.*s", (int)(len - key - 1),
				    text + key + 1);
		}
	}
}
