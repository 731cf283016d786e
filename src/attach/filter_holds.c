/*
 * SPDX-License-Identifier: Apache-2.0
 * Pure functions on conditions.
 */
#include "attach/filter_holds.h"

#include <string.h>

#include "base/glob.h"

/* Returns true for a file name that the kernel side reads whole, and that is not FILTER_OTHER_NAME. */
static bool
name_fits(const char *name, size_t len)
{
	return len > 0 && len <= FILTER_NAME_MAX && memchr(name, '/', len) == NULL &&
	    memchr(name, FILTER_OTHER_NAME[0], len) == NULL;
}

/* Returns true if the kernel can have a rule's path: all its names have a length that the kernel side reads. */
static bool
path_fits(const char *text)
{
	unsigned names = 0;

	if (text[0] != '/')
		return false;
	while (*text == '/') {
		size_t len = strcspn(++text, "/");

		if (len == 0)
			return *text == '\0';		/* "/" or a folder */
		if (!name_fits(text, len) || ++names > FILTER_DEPTH_MAX || (len == 1 && text[0] == '.') ||
		    (len == 2 && strncmp(text, "..", 2) == 0))
			return false;
		text += len;
	}
	return true;
}

uint32_t
filter_dims_of(const struct condition *c)
{
	uint32_t dims = 0;

	switch (c->kind) {
	case CONDITION_ALL:
	case CONDITION_ANY:
	case CONDITION_NOT:
		for (const struct condition *child = c->first; child != NULL; child = child->next)
			dims |= filter_dims_of(child);
		return dims;
	case CONDITION_EXE:
		return name_fits(c->text, strlen(c->text)) ? 1u << FILTER_DIM_EXE : FILTER_DIM_NONE;
	case CONDITION_PATH:
		return path_fits(c->text) ? 1u << FILTER_DIM_PATH : FILTER_DIM_NONE;
	case CONDITION_CGROUP:
		return 1u << FILTER_DIM_CGROUP;
	case CONDITION_UID:
		return 1u << FILTER_DIM_UID;
	default:
		return FILTER_DIM_NONE;
	}
}

static bool
path_holds(const char *text, const char *path)
{
	size_t len = strlen(text);

	if (len > 0 && text[len - 1] == '/')
		return strncmp(path, text, len) == 0;
	return strcmp(path, text) == 0;
}

bool
filter_holds(const struct condition *c, const struct filter_view *v)
{
	switch (c->kind) {
	case CONDITION_ALL:
		for (const struct condition *child = c->first; child != NULL; child = child->next) {
			if (!filter_holds(child, v))
				return false;
		}
		return true;
	case CONDITION_ANY:
		for (const struct condition *child = c->first; child != NULL; child = child->next) {
			if (filter_holds(child, v))
				return true;
		}
		return false;
	case CONDITION_NOT:
		return !filter_holds(c->first, v);
	case CONDITION_EXE:
		return strcmp(c->text, v->exe) == 0;
	case CONDITION_PATH:
		return path_holds(c->text, v->path);
	case CONDITION_CGROUP:
		return glob_holds_path(c->text, v->cgroup);
	case CONDITION_UID:
		return v->uid >= c->low && v->uid <= c->high;
	default:
		return false;
	}
}
