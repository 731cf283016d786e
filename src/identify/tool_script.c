/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_script: the script, module, jar or class that an interpreter or java(1) runs.
 */
#include "identify/tool_script.h"

#include <string.h>

#include "base/text.h"

/* Returns whether the first len bytes of word are an entry of list, which may be NULL. */
static bool
is_listed(const char *word, size_t len, const char *const *list)
{
	for (; list != NULL && *list != NULL; list++) {
		if (strncmp(*list, word, len) == 0 && (*list)[len] == '\0')
			return true;
	}
	return false;
}

/* The state of reading the options. */
struct options {
	const struct tool_interpreter *in;
	const char *const *args;
	size_t n, i;
};

/* Reads the option at o->i, which starts with "--" or "+", and skips its value. True: *ret is set. */
static bool
read_long_option(struct options *o, struct tool_script *ret)
{
	const char *arg = o->args[o->i];
	const char *eq = strchrnul(arg, '=');
	size_t len = (size_t)(eq - arg);

	if (is_listed(arg, len, o->in->inline_.words)) {
		*ret = (struct tool_script){ .kind = SCRIPT_INLINE, .letter = arg[2] };
		return true;
	}
	if (*eq == '=' && is_listed(arg, len, o->in->file.words)) {
		*ret = (struct tool_script){ SCRIPT_FILE, eq + 1, o->i + 1 };
		return true;
	}
	if (*eq == '\0' && is_listed(arg, len, o->in->value.words))
		o->i++;
	else if (arg[0] == '+' && strpbrk(arg, o->in->next.letters) != NULL)
		o->i++;
	return false;
}

/* Reads a bundle of single-letter options at o->i. True: the search is over, and *ret is set if it found one. */
static bool
read_bundle(struct options *o, struct tool_script *ret)
{
	const struct tool_interpreter *in = o->in;
	size_t skip = 0;

	for (const char *p = o->args[o->i] + 1; *p != '\0'; p++) {
		bool is_last = p[1] == '\0', has_next = o->i + 1 < o->n;

		if (strchr(in->inline_.letters, *p) != NULL) {
			*ret = (struct tool_script){ .kind = SCRIPT_INLINE, .letter = *p };
			return true;
		}
		if (strchr(in->module.letters, *p) != NULL) {
			if (!is_last)
				*ret = (struct tool_script){ SCRIPT_MODULE, p + 1, o->i + 1 };
			else if (has_next)
				*ret = (struct tool_script){ SCRIPT_MODULE, o->args[o->i + 1], o->i + 2 };
			return true;
		}
		if (strchr(in->file.letters, *p) != NULL) {
			if (has_next)
				*ret = (struct tool_script){ SCRIPT_FILE, o->args[o->i + 1], o->i + 2 };
			return true;
		}
		if (strchr(in->value.letters, *p) != NULL) {
			skip = is_last;
			break;
		}
		if (strchr(in->attached.letters, *p) != NULL)
			break;
		if (strchr(in->next.letters, *p) != NULL)
			skip++;
	}
	o->i += skip;
	return false;
}

static struct tool_script
find_file(const struct tool_interpreter *in, const char *const *args, size_t n)
{
	struct tool_script script = { .kind = SCRIPT_NONE };
	struct options o = { in, args, n };

	for (; o.i < n; o.i++) {
		const char *arg = args[o.i];

		if (strcmp(arg, "-") == 0)	/* from stdin */
			return script;
		if (strcmp(arg, "--") == 0) {
			o.i++;
			break;
		}
		if (arg[0] == '+' && in->next.letters[0] != '\0') {	/* shells: +o name */
			if (read_long_option(&o, &script))
				return script;
		} else if (arg[0] != '-') {
			break;
		} else if (arg[1] == '-' ? read_long_option(&o, &script) : read_bundle(&o, &script)) {
			return script;
		}
	}
	if (o.i < n && in->has_script)
		script = (struct tool_script){ SCRIPT_FILE, args[o.i], o.i + 1 };
	return script;
}

static struct tool_script
find_java(const struct tool_interpreter *in, const char *const *args, size_t n)
{
	struct tool_script none = { .kind = SCRIPT_NONE };

	for (size_t i = 0; i < n; i++) {
		const char *arg = args[i];
		size_t len = strlen(arg);

		if (is_listed(arg, len, in->jar.words))
			return i + 1 < n ? (struct tool_script){ SCRIPT_JAR, args[i + 1], i + 2 } : none;
		if (is_listed(arg, len, in->module.words)) {
			if (i + 1 >= n)
				return none;
			/* module/class */
			return (struct tool_script){ SCRIPT_CLASS, text_base_name(args[i + 1]), i + 2 };
		}
		if (arg[0] == '-')
			i += is_listed(arg, len, in->value.words);
		else if (arg[0] != '@' && arg[0] != '\0')	/* @file contains more options */
			return (struct tool_script){ SCRIPT_CLASS, arg, i + 1 };
	}
	return none;
}

bool
tool_script_is_fd(const char *path)
{
	return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0;
}

struct tool_script
tool_script_find(const struct tool_interpreter *in, const char *const *args, size_t n)
{
	struct tool_script script = in->jar.words != NULL ? find_java(in, args, n) : find_file(in, args, n);
	size_t len = 0;

	if (script.kind == SCRIPT_FILE) {
		tool_base_of(script.name, &len);
		if (len == 0 || tool_script_is_fd(script.name))
			script.kind = SCRIPT_UNNAMED;
	} else if (script.kind == SCRIPT_MODULE && script.name[0] == '\0') {
		script.kind = SCRIPT_UNNAMED;
	}
	return script;
}

static void
base_from_file(const char *path, char base[TOOL_BASE_SIZE])
{
	static const char scripts[] = "/.snakemake/scripts/tmp";
	const char *found;
	size_t len;

	tool_base_set_path(base, path);
	/* python3 pkg/__main__.py runs the package. */
	if (strcmp(base, "__main__.py") == 0 && strlen(path) > strlen(base) + 1) {
		const char *end = tool_base_of(path, &len) - 1, *start;

		for (start = end; start > path && start[-1] != '/'; start--)
			;
		if (end > start)
			tool_base_set(base, start, (size_t)(end - start));
	}
	/* Snakemake runs a copy under a random name: tmp3ubz2xzn.plot.py is plot.py. */
	found = strstr(path, scripts);
	if (found != NULL && strncmp(base, "tmp", 3) == 0) {
		const char *dot = strchr(base, '.');

		if (dot != NULL && strchr(dot + 1, '.') != NULL)
			tool_base_set(base, dot + 1, strlen(dot + 1));
	}
}

/* Writes a jar's name without the suffixes of its build. */
static void
base_from_jar(const char *path, char base[TOOL_BASE_SIZE])
{
	static const char *const added[] = {
		".jar", ".war", "-jar-with-dependencies", "-standalone", "-all", "-local",
	};

	tool_base_set_path(base, path);
	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++)
		tool_base_cut(base, added[i]);
	tool_base_cut_version(base, true);
}

/* Writes a class's name without its package; java(1) also accepts a .java file. */
static void
base_from_class(const char *class, char base[TOOL_BASE_SIZE])
{
	size_t len = strlen(class);
	const char *dot = strrchr(class, '.');

	if (strchr(class, '/') != NULL || (len > 5 && strcmp(class + len - 5, ".java") == 0))
		tool_base_set_path(base, class);
	else if (dot != NULL && dot[1] != '\0')
		tool_base_set(base, dot + 1, len - (size_t)(dot + 1 - class));
	else
		tool_base_set(base, class, len);
}

void
tool_script_base(const struct tool_script *script, char base[TOOL_BASE_SIZE])
{
	switch (script->kind) {
	case SCRIPT_FILE:
		base_from_file(script->name, base);
		break;
	case SCRIPT_JAR:
		base_from_jar(script->name, base);
		break;
	case SCRIPT_CLASS:
		base_from_class(script->name, base);
		break;
	default:
		tool_base_set(base, script->name, strlen(script->name));
	}
}
