/*
 * SPDX-License-Identifier: Apache-2.0
 * files: finds the Avro files below given paths, in the order in which to read them.
 */
#include "lake/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "lake/folders.h"

enum {
	DEPTH_MAX = 8,		/* a lake has four levels; a folder of lakes a few more */
};

enum topic
lake_topic_find(const char *name)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (strcmp(name, topic_name(t)) == 0 ||
		    strcmp(name, strchr(topic_name(t), '.') + 1) == 0)
			return t;
	}
	return TOPIC_COUNT;
}

static bool
is_avro_name(const char *base)
{
	return lake_is_part(base) || (base[0] != '.' && text_ends_with(base, ".avro"));
}

/* Reads topic, date and first seq from the path. */
static void
describe(struct lake_file *f)
{
	const char *base = text_base_name(f->name), *dash = strrchr(base, '-');

	f->seq = dash != NULL ? strtoull(dash + 1, NULL, 10) : 0;
	f->topic = TOPIC_COUNT;
	for (const char *part = f->name; part < base; part = strchr(part, '/') + 1) {
		size_t len = strcspn(part, "/");

		if (len == 15 && strncmp(part, "date=", 5) == 0)
			snprintf(f->date, sizeof(f->date), "%.10s", part + 5);
		for (int t = 0; t < TOPIC_COUNT; t++) {
			if (len == strlen(topic_name(t)) && strncmp(part, topic_name(t), len) == 0)
				f->topic = t;
		}
	}
}

/* Returns a file's final name, owned by the caller: "a/b.avro" for the open file "a/.b.avro.part". */
static char *
settled_name(const char *path)
{
	const char *base = text_base_name(path);
	char *name;

	if (!lake_is_part(base))
		return strdup(path);
	return asprintf(&name, "%.*s%.*s", (int)(base - path), path,
	    (int)(strlen(base) - 1 - strlen(".part")), base + 1) < 0 ? NULL : name;
}

static int
add_file(struct lake_files *l, const char *path, bool is_named)
{
	struct lake_file *f;

	if (l->n == l->cap) {
		size_t cap = l->cap > 0 ? l->cap * 2 : 64;
		struct lake_file *files = realloc(l->files, cap * sizeof(*files));

		if (files == NULL)
			return -ENOMEM;
		l->files = files;
		l->cap = cap;
	}
	f = &l->files[l->n];
	*f = (struct lake_file){ .path = strdup(path), .name = settled_name(path),
	    .is_named = is_named };
	if (f->path == NULL || f->name == NULL) {
		free(f->path);
		free(f->name);
		return -ENOMEM;
	}
	describe(f);
	l->n++;
	return 0;
}

static int
add_folder(struct lake_files *l, const char *path, int depth, lake_files_error_cb on_error,
    void *arg)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (dir == NULL) {
		if (errno != ENOENT)	/* not an error: removed meanwhile */
			on_error(path, errno, arg);
		return 0;
	}
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		bool is_avro = is_avro_name(entry->d_name);
		struct stat st;
		char *inner;

		if (entry->d_name[0] == '.' && !is_avro)
			continue;
		if (asprintf(&inner, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/",
		    entry->d_name) < 0) {
			r = -ENOMEM;
			break;
		}
		if (entry->d_type == DT_DIR) {
			if (depth < DEPTH_MAX)
				r = add_folder(l, inner, depth + 1, on_error, arg);
		} else if (is_avro && (entry->d_type == DT_REG || (stat(inner, &st) == 0 &&
		    S_ISREG(st.st_mode)))) {
			r = add_file(l, inner, false);
		} else if (entry->d_type == DT_UNKNOWN && depth < DEPTH_MAX &&
		    lstat(inner, &st) == 0 && S_ISDIR(st.st_mode)) {
			r = add_folder(l, inner, depth + 1, on_error, arg);
		}
		free(inner);
	}
	closedir(dir);
	return r;
}

int
lake_files_add(struct lake_files *l, const char *path, lake_files_error_cb on_error, void *arg)
{
	struct stat st;

	if (stat(path, &st) < 0) {
		on_error(path, errno, arg);
		return 0;
	}
	return S_ISDIR(st.st_mode) ? add_folder(l, path, 0, on_error, arg) : add_file(l, path, true);
}

static int
compare_agents(const char *a, const char *b)
{
	const char *base_a = text_base_name(a), *base_b = text_base_name(b);
	const char *dash_a = strrchr(base_a, '-'), *dash_b = strrchr(base_b, '-');
	size_t len_a, len_b;
	int r;

	len_a = dash_a != NULL ? (size_t)(dash_a - base_a) : strlen(base_a);
	len_b = dash_b != NULL ? (size_t)(dash_b - base_b) : strlen(base_b);
	r = strncmp(base_a, base_b, len_a < len_b ? len_a : len_b);
	return r != 0 ? r : (len_a > len_b) - (len_a < len_b);
}

static int
compare(const void *left, const void *right)
{
	const struct lake_file *a = left, *b = right;
	int r;

	if (a->topic != b->topic)
		return a->topic < b->topic ? -1 : 1;
	r = strcmp(a->date, b->date);
	if (r == 0)
		r = compare_agents(a->name, b->name);
	if (r == 0)
		r = (a->seq > b->seq) - (a->seq < b->seq);
	if (r == 0)
		r = strcmp(a->name, b->name);
	return r;
}

static void
free_file(struct lake_file *f)
{
	free(f->path);
	free(f->name);
}

void
lake_files_sort(struct lake_files *l)
{
	size_t kept = 0;

	if (l->n == 0)
		return;
	qsort(l->files, l->n, sizeof(*l->files), compare);
	for (size_t i = 1; i < l->n; i++) {
		struct lake_file *last = &l->files[kept];

		if (strcmp(last->name, l->files[i].name) != 0) {
			l->files[++kept] = l->files[i];
		} else if (strcmp(last->path, last->name) != 0) {
			free_file(last);	/* the open name of a file closed since */
			*last = l->files[i];
		} else {
			free_file(&l->files[i]);
		}
	}
	l->n = kept + 1;
}

void
lake_files_done(struct lake_files *l)
{
	for (size_t i = 0; i < l->n; i++)
		free_file(&l->files[i]);
	free(l->files);
	*l = (struct lake_files){ 0 };
}
