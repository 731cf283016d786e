/*
 * SPDX-License-Identifier: Apache-2.0
 * rules: reads the files of rules.d into one struct ruleset.
 */
#include "rules/rules.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/files.h"
#include "config/values.h"
#include "config/yaml_pack.h"
#include "rules/reader.h"

static const struct files_policy policy = {
	.bytes_max = RULES_FILE_BYTES_MAX,
	.too_large = "larger than 4 MiB: make several files of it",
	.harm = "hide what runs here",
	.files_max = 256,
	.too_many = "more than 256 files: merge some",
};

static const struct yaml_form form = {
	.nodes_max = 1 << 18,
	.beyond = "make several files of it",
	.name = "exclude",
	.line = "exclude: [{exe: sshd}]",
};

static const struct {
	void (*read)(struct rules_reader *r, const struct yaml_node *item, enum rule_section section);
	const char *before, *after;	/* the error for a section that is no list: the text around its kind */
} sections[RULE_SECTIONS] = {
	[RULE_INCLUDE] = { rules_read_follow, "include is a list of rules, each a line such as `- exe: sshd`, not ", "" },
	[RULE_EXCLUDE] = { rules_read_follow, "exclude is a list of rules, each a line such as `- exe: sshd`, not ", "" },
	[RULE_TOOLS] = { rules_read_tool, "tools: this is ", ": expected a list of rules, such as "
	    "[{exe: samtools, subcommands: true}]" },
	[RULE_ENGINES] = { rules_read_engine, "this is ", ": expected a list of engines, each beginning with "
	    "- engine: NAME" },
	[RULE_SCHEDULERS] = { rules_read_placement, "`schedulers` is a list of mappings, not ", "" },
	[RULE_CONTAINERS] = { rules_read_placement, "`containers` is a list of mappings, not ", "" },
	[RULE_WRAPPERS] = { rules_read_wrapper, "wrappers: this is ", ": expected a list of rules, such as "
	    "[{exe: docker, after: [exec, run]}]" },
};

struct load {
	const struct rules_options *o;
	struct files_policy policy;
	struct rules_reader r;
	struct config_strings paths;	/* in the order of reading, by which errors are sorted */
	struct config_strings names;	/* of the files in the folder */
	size_t bytes;			/* that were read so far */
};

static const struct rules_shipped_file *
shipped(const struct load *l, const char *name)
{
	const struct rules_shipped_file *t = rules_shipped_files;

	while (t->name != NULL && strcmp(t->name, name) != 0)
		t++;
	return t->name != NULL && !l->o->is_without_shipped ? t : NULL;
}

static void
read_section(struct load *l, const struct yaml_node *n)
{
	const char *names[RULE_SECTIONS + 1] = { NULL };
	char show[SHOWN_SIZE], hint[SUGGEST_LIST_SIZE];
	unsigned i = 0;

	while (i < RULE_SECTIONS && strcmp(names[i] = rule_section_name(i), n->name) != 0)
		i++;
	if (i == RULE_SECTIONS) {
		rules_name_error(&l->r, n, "no section '%s': %s", shown(n->name, show),
		    suggest_hint(n->name, names, "''", hint));
		return;
	}
	if (n->kind != YAML_NODE_LIST && n->kind != YAML_NODE_NULL)
		rules_error(&l->r, n, "%s%s%s", sections[i].before, yaml_node_kind_name(n), sections[i].after);
	for (const struct yaml_node *item = n->first; n->kind == YAML_NODE_LIST && item != NULL && l->r.error == 0;
	    item = item->next) {
		l->r.set->counts[i]++;
		l->r.set->n_rules++;
		sections[i].read(&l->r, item, i);
	}
}

/* Names the file that is read next in rules and errors. 0 or -ENOMEM. */
static int
begin_file(struct load *l, const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
	size_t file_len = strlen(file);
	bool is_yaml = file_len > 5 && strcmp(file + file_len - 5, ".yaml") == 0;
	int r = strings_add(&l->paths, path);

	if (r < 0)
		return r;
	l->r.path = path;
	l->r.file = ruleset_string(l->r.set, file, file_len);
	l->r.stem = ruleset_string(l->r.set, file, is_yaml ? file_len - 5 : file_len);
	return l->r.file == NULL || l->r.stem == NULL ? -ENOMEM : 0;
}

static void
read_sections(struct load *l, const struct yaml_node *root)
{
	for (const struct yaml_node *n = root->first; n != NULL && l->r.error == 0; n = n->next)
		read_section(l, n);
}

/* Reads the text of one file. 0, with errors added for faults, or -ENOMEM. */
static int
read_text(struct load *l, const char *path, const char *text, size_t len)
{
	struct yaml_node *root = NULL;
	int r = begin_file(l, path);

	if (r < 0)
		return r;
	if (len > RULES_FILE_BYTES_MAX || l->bytes + len > RULES_BYTES_MAX) {
		config_error_add(l->r.errors, path, 0, 0, "%s", len > RULES_FILE_BYTES_MAX ? policy.too_large :
		    "with this file all rules together are larger than 16 MiB");
		return 0;
	}
	l->bytes += len;
	r = yaml_read(&form, path, text, len, &root, l->r.errors);
	if (r == 0)
		read_sections(l, root);
	yaml_node_free(root);
	return r == -ENOMEM ? r : l->r.error;
}

static int
read_shipped(struct load *l, const struct rules_shipped_file *file)
{
	struct yaml_node *root = NULL;
	int r = begin_file(l, file->name);

	if (r == 0)
		r = yaml_unpack(file->nodes, &root);
	if (r == 0)
		read_sections(l, root);
	yaml_node_free(root);
	return r < 0 ? r : l->r.error;
}

static int
read_file(struct load *l, const char *name)
{
	struct file_text text = { 0 };
	char path[PATH_MAX];
	int r;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", l->o->dir, name) >= sizeof(path))
		return 0;	/* files_list() has reported the folder: its path is too long */
	r = files_read(&l->policy, path, &text, NULL, l->r.errors);
	if (r == 0)
		r = read_text(l, path, text.text, text.len);
	file_text_done(&text);
	return r == -ENOMEM ? r : 0;
}

static bool
is_in_folder(const struct load *l, const char *name)
{
	for (size_t i = 0; i < l->names.n; i++) {
		if (strcmp(l->names.list[i], name) == 0)
			return true;
	}
	return false;
}

/* Reads all files in the order in which rules count: added ones, the user's, and the shipped or their replacements. */
static int
read_all(struct load *l)
{
	const struct rules_options *o = l->o;
	int r = 0;

	if (o->dir != NULL)
		r = files_list(&l->policy, o->dir, &l->names, l->r.errors);
	for (size_t i = 0; i < o->n_extra && r == 0; i++)
		r = read_text(l, o->extra[i].name, o->extra[i].text, o->extra[i].len);
	for (size_t i = 0; i < l->names.n && r == 0; i++) {
		if (shipped(l, l->names.list[i]) == NULL)
			r = read_file(l, l->names.list[i]);
	}
	for (const struct rules_shipped_file *t = rules_shipped_files; t->name != NULL && r == 0; t++) {
		if (o->is_without_shipped)
			break;
		r = is_in_folder(l, t->name) ? read_file(l, t->name) : read_shipped(l, t);
	}
	return r;
}

/* Prepares the empty set for the first rule of each section. 0 or -ENOMEM. */
static int
begin(struct rules_reader *r)
{
	struct engine_rules *engines = rules_alloc(r, sizeof(*engines));
	struct placement_rules *placements = rules_alloc(r, sizeof(*placements));

	if (r->error < 0)
		return r->error;
	r->set->engines = engines;
	r->set->placements = placements;
	r->next_general = &r->first_general;
	r->next_engine = &engines->first;
	r->next_scheduler = &placements->schedulers;
	r->next_container = &placements->containers;
	return 0;
}

int
rules_load(const struct rules_options *o, struct ruleset **ret, struct config_errors *errors)
{
	size_t before = errors->n + errors->not_shown;
	struct load l = { .o = o, .policy = policy, .r.errors = errors };
	int r;

	l.policy.owner = o->owner;
	l.r.set = ruleset_new();
	if (l.r.set == NULL)
		return -ENOMEM;
	r = begin(&l.r);
	if (r == 0)
		r = read_all(&l);
	rules_finish_follow(&l.r);
	rules_finish_wrappers(&l.r);	/* reads the keys of tools, which are still a list */
	rules_finish_tools(&l.r);
	if (r == 0)
		r = l.r.error;
	if (r == 0 && errors->n + errors->not_shown > before) {
		config_errors_sort(errors, &l.paths);
		r = -EINVAL;
	}
	strings_done(&l.paths);
	strings_done(&l.names);
	if (r < 0) {
		ruleset_unref(l.r.set);
		return r;
	}
	*ret = l.r.set;
	return 0;
}

struct ruleset *
rules_shipped(void)
{
	static const struct rules_options none;
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;
	int r = rules_load(&none, &set, &errors);

	if (r == -EINVAL) {
		/* The shipped rules are part of this program; a unit test reads them. */
		config_errors_print(&errors, stderr);
		abort();
	}
	config_errors_done(&errors);
	return set;
}
