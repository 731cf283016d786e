/*
 * SPDX-License-Identifier: Apache-2.0
 * candidate: a program as the rules see it. Strings are UTF-8, redacted, owned by the caller, and NULL where
 * unknown.
 */
#ifndef SLUICE_MODEL_CANDIDATE_H
#define SLUICE_MODEL_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parts of the arguments, by the rules of the tool; "" where there is none. */
struct candidate_words {
	const char *subcommand;		/* bwa mem: mem */
	const char *script;		/* path of the file that an interpreter runs; of a module its name */
	const char *jar;		/* path */
	const char *class;
};

struct candidate {
	const char *exe;
	const char *comm;
	const char *const *argv;
	size_t argc;
	const char *cwd;
	const char *cgroup;		/* the v2 path */
	const char *cgroup_v1;
	bool has_uid;
	bool is_exe_of_root;		/* the host's root owns the executable; false: another user, or unknown */
	uint32_t uid;
	uint32_t user_uid;		/* of the user behind it, see model/user.h */
	const char *image;		/* of its container, where the runtime or the arguments name it */
	struct candidate_words words;	/* set by tool_name() */
	const char *tool;		/* set by tool_name() */
	bool is_tool;			/* neither a shell nor glue */
	const struct candidate *parent;	/* the program that forked it, or that it replaced; NULL: unknown */
};

#endif
