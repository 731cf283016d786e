/*
 * SPDX-License-Identifier: Apache-2.0
 * tree: a directory of simulated kernel files for a test, which tree_done() removes.
 */
#ifndef SLUICE_TESTS_UNIT_TREE_H
#define SLUICE_TESTS_UNIT_TREE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct tree {
	char root[64];
};

static inline const char *
tree_path(const struct tree *t, const char *path)
{
	static char full[4][4096];
	static unsigned next;
	char *buf = full[next++ % 4];

	snprintf(buf, sizeof(full[0]), "%s/%s", t->root, path);
	return buf;
}

static inline void
tree_init(struct tree *t)
{
	strcpy(t->root, "/tmp/sluice-test-XXXXXX");
	if (mkdtemp(t->root) == NULL)
		abort();
}

static inline void
tree_mkdir(const struct tree *t, const char *path)
{
	char full[4096];

	snprintf(full, sizeof(full), "%s/%s", t->root, path);
	for (char *at = full + strlen(t->root) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		mkdir(full, 0755);
		*at = '/';
	}
	mkdir(full, 0755);
}

/* Writes a file and creates its directories; an existing file is overwritten in place. */
static inline void
tree_write(const struct tree *t, const char *path, const char *text)
{
	char dir[4096];
	char *slash;
	FILE *f;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash != NULL) {
		*slash = '\0';
		tree_mkdir(t, dir);
	}
	f = fopen(tree_path(t, path), "we");
	if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

static inline int
tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void
tree_done(struct tree *t)
{
	nftw(t->root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
