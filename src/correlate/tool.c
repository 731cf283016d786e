/*
 * SPDX-License-Identifier: Apache-2.0
 * tool: what a person calls a program, from its exe, arguments and comm.
 *
 * Layers come off one by one: an interpreter gives its place to the script that it runs, a script
 * to the subcommand's tool. What belongs to which layer is in tool_rules.c.
 */
#include "correlate/tool.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "correlate/tool_rules.h"

#define BASE_SIZE	256	/* of a name while we work on it: NAME_MAX and a NUL */
#define SUBCOMMAND_MAX	40	/* longer "subcommands" are data */
#define NESTING_MAX	4	/* python3 -> /usr/bin/R -> ...: interpreters of interpreters */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Options of java(1) that take the next argument. */
static const char java_values[] = "-cp -classpath --class-path -p --module-path "
    "--upgrade-module-path --add-modules --add-opens --add-exports --add-reads --limit-modules "
    "--enable-native-access --source";

/* Suffixes that a launcher adds for the CPU it found: bwa-mem2.avx2. */
static const char *const cpu_suffixes[] = {
	".avx512bw", ".avx512", ".avx2", ".avx", ".sse42", ".sse41", ".sse4", ".sse3", ".sse2",
};

/* What is being named: a name and the arguments that belong to it. Changes as layers come off. */
struct subject {
	char base[BASE_SIZE];
	const char *const *args;	/* after the name itself */
	size_t n;
	const char *rule;		/* how base was found */
};

/* Is word, up to len bytes, one of the space-separated words of list (may be NULL)? */
static bool
is_listed(const char *word, size_t len, const char *list)
{
	if (list == NULL || len == 0)
		return false;
	while (*list != '\0') {
		size_t n = strcspn(list, " ");

		if (n == len && memcmp(list, word, n) == 0)
			return true;
		list += n;
		list += strspn(list, " ");
	}
	return false;
}

/* Copies len bytes, cut to what fits. */
static void
set_base(struct subject *s, const char *name, size_t len)
{
	if (len >= sizeof(s->base))
		len = sizeof(s->base) - 1;
	memmove(s->base, name, len);
	s->base[len] = '\0';
}

/* Cuts suffix off base, unless base is nothing else. */
static bool
cut_suffix(char *base, const char *suffix)
{
	size_t len = strlen(base), n = strlen(suffix);

	if (len <= n || strcmp(base + len - n, suffix) != 0)
		return false;
	base[len - n] = '\0';
	return true;
}

/* The last component of path, trailing slashes aside; *ret_len may be 0. */
static const char *
last_component(const char *path, size_t *ret_len)
{
	size_t end = strlen(path), start;

	while (end > 1 && path[end - 1] == '/')
		end--;
	start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	*ret_len = end - start;
	return path + start;
}

static void
set_base_from_path(struct subject *s, const char *path)
{
	size_t len;
	const char *name = last_component(path, &len);

	set_base(s, name, len);
}

/* Cuts a version off: samtools-1.19, x_v2.0. Without a dot (foo-2) only if any_version says so. */
static void
cut_version(char *base, bool any_version)
{
	size_t len = strlen(base), i = len;

	while (i > 0 && (isdigit((unsigned char)base[i - 1]) || base[i - 1] == '.'))
		i--;
	if (i == len || !isdigit((unsigned char)base[i]) ||
	    (!any_version && strchr(base + i, '.') == NULL))
		return;
	if (i > 0 && base[i - 1] == 'v')
		i--;
	if (i > 1 && (base[i - 1] == '-' || base[i - 1] == '_'))
		base[i - 1] = '\0';
}

/* A plain word, as subcommands are: not a path, an assignment or a file name's worth of text. */
static bool
is_subcommand(const char *arg)
{
	size_t len = strnlen(arg, SUBCOMMAND_MAX + 1);

	if (len == 0 || len > SUBCOMMAND_MAX || !(isalnum((unsigned char)arg[0]) || arg[0] == '+'))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)arg[i]) && strchr("_-+:.", arg[i]) == NULL)
			return false;
	}
	return true;
}

/* The first of s->args that is a subcommand of c, or NULL. */
static const char *
find_subcommand(const struct subject *s, const struct tool_command *c)
{
	for (size_t i = 0; i < s->n; i++) {
		const char *arg = s->args[i];

		if (arg[0] == '-') {
			if (is_listed(arg, strnlen(arg, SUBCOMMAND_MAX), c->values))
				i++;
			continue;
		}
		if (arg[0] == '+' && strcmp(c->name, "cargo") == 0)	/* +toolchain */
			continue;
		return is_subcommand(arg) ? arg : NULL;
	}
	return NULL;
}

enum script_kind {
	SCRIPT_NONE,		/* interactive, from stdin, or only options */
	SCRIPT_FILE,		/* what names the script */
	SCRIPT_MODULE,
	SCRIPT_INLINE,
};

/* What an interpreter was asked to run. */
struct script {
	enum script_kind kind;
	const char *name;	/* FILE, MODULE */
	size_t next;		/* FILE, MODULE: the arguments after it start here */
	char letter;		/* INLINE: the option */
};

/* One option that starts with "--" or "+", at s->args[*i], which moves over the option's value. */
static bool
read_long_option(const struct subject *s, const struct tool_interpreter *in, size_t *i,
    struct script *ret_script)
{
	const char *arg = s->args[*i];
	const char *eq = strchrnul(arg, '=');
	size_t len = (size_t)(eq - arg);

	if (is_listed(arg, len, in->long_inline)) {
		*ret_script = (struct script){ .kind = SCRIPT_INLINE, .letter = arg[2] };
		return true;
	}
	if (*eq == '=' && is_listed(arg, len, in->long_file)) {
		*ret_script = (struct script){ SCRIPT_FILE, eq + 1, *i + 1 };
		return true;
	}
	if (*eq == '\0' && is_listed(arg, len, in->long_value))
		++*i;
	else if (arg[0] == '+' && strpbrk(arg, in->next) != NULL)
		++*i;
	return false;
}

/* One bundle of single-letter options, likewise. */
static bool
read_bundle(const struct subject *s, const struct tool_interpreter *in, size_t *i,
    struct script *ret_script)
{
	size_t skip = 0;

	for (const char *p = s->args[*i] + 1; *p != '\0'; p++) {
		bool is_last = p[1] == '\0', has_next = *i + 1 < s->n;

		if (strchr(in->inline_, *p) != NULL) {
			*ret_script = (struct script){ .kind = SCRIPT_INLINE, .letter = *p };
			return true;
		}
		if (strchr(in->module, *p) != NULL) {
			if (!is_last)
				*ret_script = (struct script){ SCRIPT_MODULE, p + 1, *i + 1 };
			else if (has_next)
				*ret_script = (struct script){ SCRIPT_MODULE, s->args[*i + 1], *i + 2 };
			return true;
		}
		if (in->file != NULL && strchr(in->file, *p) != NULL) {
			if (has_next)
				*ret_script = (struct script){ SCRIPT_FILE, s->args[*i + 1], *i + 2 };
			return true;
		}
		if (strchr(in->value, *p) != NULL) {
			skip = is_last;
			break;
		}
		if (in->attached != NULL && strchr(in->attached, *p) != NULL)
			break;
		if (in->next != NULL && strchr(in->next, *p) != NULL)
			skip++;
	}
	*i += skip;
	return false;
}

static struct script
find_script(const struct subject *s, const struct tool_interpreter *in)
{
	struct script script = { .kind = SCRIPT_NONE };
	size_t i;

	for (i = 0; i < s->n; i++) {
		const char *arg = s->args[i];

		if (strcmp(arg, "-") == 0)	/* from stdin */
			return script;
		if (strcmp(arg, "--") == 0) {
			i++;
			break;
		}
		if (arg[0] == '+' && in->next != NULL) {	/* shells: +o name */
			if (read_long_option(s, in, &i, &script))
				return script;
		} else if (arg[0] != '-') {
			break;
		} else if (arg[1] == '-' ? read_long_option(s, in, &i, &script) :
		    read_bundle(s, in, &i, &script)) {
			return script;
		}
	}
	if (i < s->n && !in->options_only)
		script = (struct script){ SCRIPT_FILE, s->args[i], i + 1 };
	return script;
}

/* A path that names an open file of the process and nothing that outlives it. */
static bool
is_fd_path(const char *path)
{
	return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0;
}

/* Is there a script, and anything in its path that would name it? */
static bool
has_name(const struct script *script)
{
	size_t len;

	if (script->kind == SCRIPT_FILE) {
		last_component(script->name, &len);
		return len > 0 && !is_fd_path(script->name);
	}
	return script->kind == SCRIPT_MODULE && script->name[0] != '\0';
}

/* The name of the script at path, which becomes s->base. */
static void
set_base_from_script(struct subject *s, const char *path)
{
	static const char scripts[] = "/.snakemake/scripts/tmp";
	const char *found;
	size_t len;

	set_base_from_path(s, path);
	/* python3 pkg/__main__.py is the package. */
	if (strcmp(s->base, "__main__.py") == 0 && strlen(path) > strlen(s->base) + 1) {
		const char *end = last_component(path, &len) - 1, *start;

		for (start = end; start > path && start[-1] != '/'; start--)
			;
		if (end > start)
			set_base(s, start, (size_t)(end - start));
	}
	/* Snakemake runs a copy under a random name: tmp3ubz2xzn.plot.py is plot.py. */
	found = strstr(path, scripts);
	if (found != NULL && strncmp(s->base, "tmp", 3) == 0) {
		const char *dot = strchr(s->base, '.');

		if (dot != NULL && strchr(dot + 1, '.') != NULL)
			set_base(s, dot + 1, strlen(dot + 1));
	}
}

static void
drop_args(struct subject *s, size_t n)
{
	s->args += n;
	s->n -= n;
}

/* The file or module that an interpreter runs takes the interpreter's place in s. */
static void
enter_script(struct subject *s, const struct script *script)
{
	if (script->kind == SCRIPT_MODULE)
		set_base(s, script->name, strlen(script->name));
	else
		set_base_from_script(s, script->name);
	drop_args(s, script->next);
	s->rule = "interpreter";
}

/* A jar's name, without what its build added. */
static void
set_base_from_jar(struct subject *s, const char *path)
{
	static const char *const added[] = {
		".jar", ".war", "-jar-with-dependencies", "-standalone", "-all", "-local",
	};

	set_base_from_path(s, path);
	for (size_t i = 0; i < COUNT(added); i++)
		cut_suffix(s->base, added[i]);
	cut_version(s->base, true);
	s->rule = "java-jar";
}

/* A class's name without its package; java(1) also takes a .java file. */
static void
set_base_from_class(struct subject *s, const char *class)
{
	size_t len = strlen(class);
	const char *dot = strrchr(class, '.');

	if (strchr(class, '/') != NULL || (len > 5 && strcmp(class + len - 5, ".java") == 0))
		set_base_from_path(s, class);
	else if (dot != NULL && dot[1] != '\0')
		set_base(s, dot + 1, len - (size_t)(dot + 1 - class));
	else
		set_base(s, class, len);
	s->rule = "java-class";
}

/* What java(1) runs takes its place in s. */
static void
enter_java(struct subject *s)
{
	const char *name = NULL, *known;
	size_t i;

	for (i = 0; i < s->n && name == NULL; i++) {
		const char *arg = s->args[i];

		if (strcmp(arg, "-jar") == 0) {
			if (i + 1 >= s->n)
				return;
			name = s->args[++i];
			set_base_from_jar(s, name);
		} else if (strcmp(arg, "-m") == 0 || strcmp(arg, "--module") == 0) {
			const char *slash;

			if (i + 1 >= s->n)
				return;
			name = s->args[++i];
			slash = strrchr(name, '/');	/* module/class */
			if (slash != NULL)
				name = slash + 1;
			set_base_from_class(s, name);
		} else if (arg[0] == '-') {
			if (is_listed(arg, strnlen(arg, SUBCOMMAND_MAX), java_values))
				i++;
		} else if (arg[0] != '@' && arg[0] != '\0') {	/* @file holds more options */
			name = arg;
			set_base_from_class(s, name);
		}
	}
	if (name == NULL)
		return;		/* java -version */
	drop_args(s, i);
	if (s->base[0] == '\0')
		set_base(s, "java", 4);
	known = tool_java_name(name);
	if (known == NULL)
		known = tool_java_name(s->base);
	if (known != NULL)
		set_base(s, known, strlen(known));
}

/* Takes the name that the file, the arguments or the kernel give. False: there is none. */
static bool
start(struct subject *s, const struct tool_input *in)
{
	const char *argv0 = in->argv != NULL && in->argc > 0 ? in->argv[0] : NULL;
	const char *memfd;

	*s = (struct subject){ .rule = "exe" };
	if (argv0 != NULL) {
		s->args = in->argv + 1;
		s->n = in->argc - 1;
	}
	if (in->exe != NULL && !is_fd_path(in->exe)) {
		memfd = strncmp(in->exe, "/memfd:", 7) == 0 ? in->exe + 7 :
		    strncmp(in->exe, "memfd:", 6) == 0 ? in->exe + 6 : NULL;
		set_base_from_path(s, memfd != NULL ? memfd : in->exe);
		if (strcmp(s->base, " (deleted)") == 0)		/* a memfd without a name */
			s->base[0] = '\0';
		cut_suffix(s->base, " (deleted)");
	}
	if (s->base[0] == '\0' && argv0 != NULL) {
		s->rule = "argv0";
		set_base_from_path(s, argv0 + (argv0[0] == '-'));	/* a login shell */
	}
	if (s->base[0] == '\0' && in->comm != NULL) {
		s->rule = "comm";
		set_base(s, in->comm, strlen(in->comm));
	}
	if (tool_class(s->base) == TOOL_MULTI_CALL) {
		struct subject applet = *s;

		if (argv0 != NULL)
			set_base_from_path(&applet, argv0 + (argv0[0] == '-'));
		if (strcmp(applet.base, s->base) == 0 && s->n > 0 && is_subcommand(s->args[0])) {
			set_base_from_path(&applet, s->args[0]);
			drop_args(&applet, 1);
		}
		if (applet.base[0] != '\0')
			*s = applet;
	}
	return s->base[0] != '\0';
}

/* Writes name, a space and detail (may be NULL) as one line of text. */
static void
write_name(const char *name, const char *detail, char *tool, size_t tool_size)
{
	char line[BASE_SIZE + 1 + SUBCOMMAND_MAX + 1];
	size_t len = strlen(name);

	memcpy(line, name, len);
	if (detail != NULL) {
		size_t n = strnlen(detail, SUBCOMMAND_MAX);

		line[len++] = ' ';
		memcpy(line + len, detail, n);
		len += n;
	}
	for (size_t i = 0; i < len; i++) {
		if (iscntrl((unsigned char)line[i]))
			line[i] = '?';
	}
	text_escape(line, len, tool, tool_size, NULL);
}

bool
tool_name(const struct tool_input *in, char *tool, size_t tool_size, const char **ret_rule)
{
	struct subject s;
	const char *detail = NULL, *rule = NULL;
	char option[3] = "-";
	bool is_tool = true;

	if (!start(&s, in)) {
		s.rule = "comm";
		is_tool = false;
	}
	for (int depth = 0; is_tool && rule == NULL && depth < NESTING_MAX; depth++) {
		bool is_shell = tool_class(s.base) == TOOL_SHELL;
		const struct tool_interpreter *i;
		struct script script;

		if (strncmp(s.base, "ld-linux", 8) == 0 || strncmp(s.base, "ld-musl", 7) == 0)
			set_base(&s, "ld.so", 5);
		if (strcmp(s.base, "java") == 0) {
			enter_java(&s);
			break;
		}
		i = tool_interpreter(s.base);
		if (i == NULL)
			break;
		script = find_script(&s, i);
		if (has_name(&script)) {
			enter_script(&s, &script);
		} else if (is_shell) {
			rule = "shell";
			is_tool = false;
		} else {
			set_base(&s, i->name, strlen(i->name));
			rule = s.rule;
			if (script.kind == SCRIPT_INLINE) {
				option[1] = script.letter;
				detail = option;
				rule = "inline";
			}
		}
	}
	if (is_tool && rule == NULL) {
		const struct tool_command *c;

		for (size_t i = 0; i < COUNT(cpu_suffixes); i++) {
			if (cut_suffix(s.base, cpu_suffixes[i]))
				break;
		}
		cut_version(s.base, false);
		rule = s.rule;
		c = tool_command(s.base);
		if (c != NULL) {
			detail = find_subcommand(&s, c);
			if (detail != NULL && strncmp(rule, "java", 4) != 0)
				rule = "subcommand";
		} else if (tool_class(s.base) == TOOL_WRAPPER) {
			rule = "wrapper";
			is_tool = false;
		} else if (tool_class(s.base) == TOOL_GLUE) {
			rule = "glue";
			is_tool = false;
		}
	}
	write_name(s.base, detail, tool, tool_size);
	if (ret_rule != NULL)
		*ret_rule = rule != NULL ? rule : s.rule;
	return is_tool;
}
