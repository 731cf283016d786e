/*
 * SPDX-License-Identifier: Apache-2.0
 * disk: files and folders twice: as processes see them, and as the disk has them.
 *
 * What is written is dirty until it is synced, or until the kernel happens to write it back. A power cut leaves, of
 * each dirty sector, what was there before or after. Beyond the size that the disk had, a sector that it does not have
 * may be zeroes or what another file had there. Changes of a folder reach the disk in their order, as ext4 keeps it,
 * or, in other histories, in any order that keeps that of each name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

static uint64_t
sectors(uint64_t size)
{
	return (size + SIM_SECTOR - 1) / SIM_SECTOR;
}

/* --- names --- */

static size_t
index_of(const struct sim_names *names, int dir, const char *name)
{
	size_t i = 0;

	while (i < names->n && (names->list[i].dir != dir || strcmp(names->list[i].name, name) != 0))
		i++;
	return i;
}

static void
set_name(struct sim_names *names, int dir, const char *name, int inode)
{
	size_t i = index_of(names, dir, name);

	if (inode < 0) {
		if (i < names->n)
			names->list[i] = names->list[--names->n];
		return;
	}
	if (i == names->n) {
		if (names->n == SIM_NAMES)
			sim_broken("more than %d names of files", SIM_NAMES);
		names->n++;
	}
	names->list[i].dir = dir;
	names->list[i].inode = inode;
	snprintf(names->list[i].name, SIM_NAME_SIZE, "%s", name);
}

static void
apply(struct sim_names *names, const struct sim_change *c)
{
	if (c->to[0] == '\0') {
		set_name(names, c->dir, c->from, c->inode);
		return;
	}
	set_name(names, c->dir, c->from, -1);
	set_name(names, c->dir, c->to, c->inode);
}

static bool
is_named(const struct sim_names *names, int inode)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->list[i].inode == inode)
			return true;
	return false;
}

/* Frees a file that has no name and is not open. The disk may still have its name. */
void
sim_disk_free_unused(struct sim_disk *d, int inode)
{
	struct sim_inode *f = &d->inodes[inode];

	if (f->names > 0 || f->opens > 0 || is_named(&d->durable, inode))
		return;
	for (size_t i = 0; i < d->n_changes; i++)
		if (d->changes[i].inode == inode)
			return;
	memset(f->contents->data, 0, f->touched);
	memset(f->contents->durable, 0, f->touched);
	memset(f->contents->is_dirty, 0, sectors(f->touched));
	f->is_used = false;
	f->size = f->durable_size = f->touched = 0;
}

/* Notes a change of a folder, which the disk gets later. */
static void
change(struct sim_disk *d, int dir, int inode, const char *from, const char *to)
{
	struct sim_change *c = &d->changes[d->n_changes];

	if (d->n_changes == SIM_CHANGES)
		sim_broken("more than %d changes of folders are not synced", SIM_CHANGES);
	d->n_changes++;
	c->dir = dir;
	c->inode = inode;
	snprintf(c->from, sizeof(c->from), "%s", from);
	snprintf(c->to, sizeof(c->to), "%s", to);
	apply(&d->seen, c);
}

int
sim_disk_find(const struct sim_disk *d, int dir, const char *name)
{
	size_t i = index_of(&d->seen, dir, name);

	return i < d->seen.n ? d->seen.list[i].inode : -ENOENT;
}

int
sim_disk_parent(const struct sim_disk *d, int dir)
{
	for (size_t i = 0; i < d->seen.n; i++)
		if (d->seen.list[i].inode == dir)
			return d->seen.list[i].dir;
	return 0;	/* the root's own */
}

int
sim_disk_make(struct sim_disk *d, int dir, const char *name, bool is_dir)
{
	int inode = 0;

	while (inode < SIM_FILES && d->inodes[inode].is_used)
		inode++;
	if (inode == SIM_FILES)
		sim_broken("more than %d files", SIM_FILES);
	d->inodes[inode].is_used = true;
	d->inodes[inode].is_dir = is_dir;
	d->inodes[inode].contents = &d->contents[inode];
	d->inodes[inode].names = 1;
	change(d, dir, inode, name, "");
	return inode;
}

void
sim_disk_remove(struct sim_disk *d, int dir, const char *name)
{
	int inode = sim_disk_find(d, dir, name);

	change(d, dir, -1, name, "");
	d->inodes[inode].names--;
	sim_disk_free_unused(d, inode);
}

void
sim_disk_rename(struct sim_disk *d, int dir, const char *from, const char *to)
{
	int inode = sim_disk_find(d, dir, from), replaced = sim_disk_find(d, dir, to);

	change(d, dir, inode, from, to);
	if (replaced < 0)
		return;
	d->inodes[replaced].names--;
	sim_disk_free_unused(d, replaced);
}

/* --- contents --- */

ssize_t
sim_disk_write(struct sim_disk *d, int inode, const void *data, size_t len, uint64_t at)
{
	struct sim_inode *f = &d->inodes[inode];

	if (at + len > SIM_FILE_MAX)
		sim_broken("a file of more than %d bytes", SIM_FILE_MAX);
	if (d->is_full && at + len > f->size) {
		if (at >= f->size)
			return -ENOSPC;
		len = f->size - at;
	}
	memcpy(f->contents->data + at, data, len);
	for (uint64_t i = at / SIM_SECTOR; i < sectors(at + len); i++)
		f->contents->is_dirty[i] = 1;
	if (at + len > f->size)
		f->size = at + len;
	if (at + len > f->touched)
		f->touched = at + len;
	return (ssize_t)len;
}

ssize_t
sim_disk_read(const struct sim_disk *d, int inode, void *data, size_t len, uint64_t at)
{
	const struct sim_inode *f = &d->inodes[inode];

	if (at >= f->size)
		return 0;
	if (len > f->size - at)
		len = f->size - at;
	memcpy(data, f->contents->data + at, len);
	return (ssize_t)len;
}

int
sim_disk_resize(struct sim_disk *d, int inode, uint64_t size)
{
	struct sim_inode *f = &d->inodes[inode];

	if (size > SIM_FILE_MAX)
		sim_broken("a file of more than %d bytes", SIM_FILE_MAX);
	if (size > f->size && d->is_full)
		return -ENOSPC;
	if (size < f->size) {
		memset(f->contents->data + size, 0, f->size - size);
		for (uint64_t i = size / SIM_SECTOR; i < sectors(f->size); i++)
			f->contents->is_dirty[i] = 1;
	}
	f->size = size;
	if (size > f->touched)
		f->touched = size;
	return 0;
}

static void
write_sector(struct sim_inode *f, uint64_t i)
{
	memcpy(f->contents->durable + i * SIM_SECTOR, f->contents->data + i * SIM_SECTOR, SIM_SECTOR);
	f->contents->is_dirty[i] = 0;
}

/* Removes changes that the disk has from the list. */
static void
forget_changes(struct sim_disk *d, const bool *is_done)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_changes; i++)
		if (!is_done[i])
			d->changes[n++] = d->changes[i];
	d->n_changes = n;
	for (int i = 0; i < SIM_FILES; i++)
		if (d->inodes[i].is_used)
			sim_disk_free_unused(d, i);
}

static void
sync_dir(struct sim_disk *d, int dir)
{
	bool is_done[SIM_CHANGES];

	for (size_t i = 0; i < d->n_changes; i++) {
		is_done[i] = d->keeps_order || d->changes[i].dir == dir;
		if (is_done[i])
			apply(&d->durable, &d->changes[i]);
	}
	forget_changes(d, is_done);
}

int
sim_disk_sync(struct sim_disk *d, int inode)
{
	struct sim_inode *f = &d->inodes[inode];

	if (f->is_dir) {
		if (sim_dice(d->sync_errors)) {
			d->has_lost = true;
			return -EIO;
		}
		sync_dir(d, inode);
		return 0;
	}
	if (sim_dice(d->sync_errors)) {
		d->has_lost = true;
		/* The kernel takes what it could not write for written: no later sync tries again. */
		for (uint64_t i = 0; i < sectors(f->size); i++)
			f->contents->is_dirty[i] = 0;
		return -EIO;
	}
	for (uint64_t i = 0; i < sectors(f->touched); i++)
		if (f->contents->is_dirty[i])
			write_sector(f, i);
	f->durable_size = f->size;
	if (d->keeps_order)
		sync_dir(d, -1);
	return 0;
}

/* Chooses changes that reach the disk: the first ones, or any as long as the order of each name is kept. */
static void
choose(const struct sim_disk *d, unsigned likely, bool *is_done)
{
	bool is_over = false;

	for (size_t i = 0; i < d->n_changes; i++) {
		const struct sim_change *c = &d->changes[i];

		is_done[i] = !is_over && sim_dice(likely);
		for (size_t k = 0; k < i && is_done[i]; k++) {
			const struct sim_change *before = &d->changes[k];

			if (!is_done[k] && before->dir == c->dir && (strcmp(before->from, c->from) == 0 ||
			    strcmp(before->to, c->from) == 0 || strcmp(before->from, c->to) == 0 ||
			    (c->to[0] != '\0' && strcmp(before->to, c->to) == 0)))
				is_done[i] = false;
		}
		is_over = d->keeps_order && !is_done[i];
	}
}

void
sim_disk_write_back(struct sim_disk *d)
{
	bool is_done[SIM_CHANGES];

	for (int inode = 0; inode < SIM_FILES; inode++) {
		struct sim_inode *f = &d->inodes[inode];

		if (!f->is_used || f->is_dir || !sim_dice(300))
			continue;
		for (uint64_t i = 0; i < sectors(f->size); i++)
			if (f->contents->is_dirty[i] && sim_dice(500))
				write_sector(f, i);
		if (sim_dice(500))
			f->durable_size = f->size;
	}
	choose(d, 500, is_done);
	for (size_t i = 0; i < d->n_changes; i++)
		if (is_done[i])
			apply(&d->durable, &d->changes[i]);
	forget_changes(d, is_done);
}

/* What a sector has that the disk was never given: zeroes, or what it was used for before. */
static void
leave_old(const struct sim_disk *d, struct sim_inode *f, uint64_t i)
{
	const struct sim_inode *other = &d->inodes[sim_below(SIM_FILES)];

	if (!sim_dice(200) || !other->is_used || other->is_dir || other->size < SIM_SECTOR)
		return;
	memcpy(f->contents->durable + i * SIM_SECTOR,
	    other->contents->data + sim_below(other->size / SIM_SECTOR) * SIM_SECTOR, SIM_SECTOR);
}

static void
cut_file(const struct sim_disk *d, struct sim_inode *f)
{
	uint64_t size = sim_dice(500) ? f->size : f->durable_size, old = f->durable_size;
	unsigned likely = (unsigned)sim_below(3) * 500;

	for (uint64_t i = 0; i < sectors(f->touched); i++) {
		if (!f->contents->is_dirty[i])
			continue;
		if (sim_dice(likely))
			write_sector(f, i);
		else if (i * SIM_SECTOR >= old && i * SIM_SECTOR < size)
			leave_old(d, f, i);
	}
	f->durable_size = size;
}

void
sim_disk_cut(struct sim_disk *d)
{
	unsigned likely = (unsigned)sim_below(5) * 250;
	bool is_done[SIM_CHANGES];

	choose(d, likely, is_done);
	for (size_t i = 0; i < d->n_changes; i++)
		if (is_done[i])
			apply(&d->durable, &d->changes[i]);
	d->n_changes = 0;
	for (int inode = 0; inode < SIM_FILES; inode++)
		if (d->inodes[inode].is_used && !d->inodes[inode].is_dir)
			cut_file(d, &d->inodes[inode]);
	d->seen = d->durable;
	for (int inode = 0; inode < SIM_FILES; inode++) {
		struct sim_inode *f = &d->inodes[inode];

		if (!f->is_used)
			continue;
		f->opens = 0;
		f->names = is_named(&d->durable, inode) || inode == 0;
		f->size = f->durable_size;
		memset(f->contents->is_dirty, 0, sectors(f->touched));
		if (f->touched > f->size)
			memset(f->contents->durable + f->size, 0, f->touched - f->size);
		memcpy(f->contents->data, f->contents->durable, f->touched);
		sim_disk_free_unused(d, inode);
	}
}

void
sim_disk_put(struct sim_disk *d, const char *path, const char *text)
{
	char part[SIM_NAME_SIZE];
	int dir = 0, inode;

	while (*path == '/') {
		size_t len = strcspn(path + 1, "/");

		snprintf(part, sizeof(part), "%.*s", (int)len, path + 1);
		path += 1 + len;
		inode = sim_disk_find(d, dir, part);
		if (inode < 0) {
			inode = sim_disk_make(d, dir, part, *path == '/');
			sync_dir(d, dir);
		}
		dir = inode;
	}
	(void)sim_disk_resize(d, dir, 0);
	(void)sim_disk_write(d, dir, text, strlen(text), 0);
	for (uint64_t i = 0; i < sectors(d->inodes[dir].touched); i++)
		write_sector(&d->inodes[dir], i);
	d->inodes[dir].durable_size = d->inodes[dir].size;
}

void
sim_disk_init(struct sim_disk *d)
{
	d->inodes[0].is_used = d->inodes[0].is_dir = true;
	d->inodes[0].names = 1;
	d->inodes[0].contents = &d->contents[0];
	d->keeps_order = sim_dice(500);
	d->sync_us = 20 * SIM_MS;
}
