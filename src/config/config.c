/*
 * SPDX-License-Identifier: Apache-2.0
 * config: files to one checked configuration.
 */
#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/apply.h"
#include "config/checks.h"
#include "config/errors.h"
#include "config/files.h"
#include "config/keys.h"
#include "config/values.h"
#include "config/yaml.h"

static const struct files_policy policy = {
	.bytes_max = CONFIG_FILE_BYTES_MAX,
	.too_large = "larger than 1 MiB: that is no configuration",
	.harm = "become root",	/* the configuration names commands that are run as root */
	.files_max = 256,
	.too_many = "more than 256 drop-ins: merge some",
};

void
config_free(struct config *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < config_keys_n; i++) {
		if (config_keys[i].field != NO_FIELD)
			value_done(&config_keys[i], key_field(&config_keys[i], c));
	}
	strings_done(&c->files);
	free(c);
}

int
config_defaults(struct config **ret)
{
	struct config *c = calloc(1, sizeof(*c));
	int r = c == NULL ? -ENOMEM : 0;

	for (size_t i = 0; i < config_keys_n && r == 0; i++) {
		if (config_keys[i].field != NO_FIELD)
			r = value_set_default(&config_keys[i], key_field(&config_keys[i], c));
	}
	if (r < 0) {
		config_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

/* Writes the values of one file's text over those of c. 0, with errors added for faults, or -ENOMEM. */
static int
add_text(struct config *c, const char *name, const char *text, size_t len,
    struct config_errors *errors)
{
	struct yaml_node *root = NULL;
	int r = strings_add(&c->files, name);

	if (r < 0)
		return r;
	if (len > CONFIG_FILE_BYTES_MAX) {
		config_error_add(errors, name, 0, 0, "%s", policy.too_large);
		return 0;
	}
	r = yaml_read(&yaml_config, name, text, len, &root, errors);
	if (r == 0)
		r = config_apply(c, (unsigned)c->files.n - 1, root, errors);
	yaml_node_free(root);
	return r == -ENOMEM ? r : 0;
}

/* Adds one file. ret_missing NULL: a missing file is an error. 0 or -ENOMEM. */
static int
add_file(struct config *c, const char *path, bool *ret_missing, struct config_errors *errors)
{
	struct file_text text = { 0 };
	int r = files_read(&policy, path, &text, ret_missing, errors);

	if (r == 0)
		r = add_text(c, path, text.text, text.len, errors);
	file_text_done(&text);
	return r == -ENOMEM ? r : 0;
}

static int
add_drop_ins(struct config *c, const char *path, struct config_errors *errors)
{
	const char *slash = strrchr(path, '/');
	struct config_strings names = { 0 };
	char *dir = NULL, *file;
	int r;

	if (asprintf(&dir, "%.*s" CONFIG_DROP_INS, slash != NULL ? (int)(slash - path + 1) : 0, path) < 0)
		return -ENOMEM;
	r = files_list(&policy, dir, &names, errors);
	for (size_t i = 0; i < names.n && r == 0; i++) {
		if (asprintf(&file, "%s/%s", dir, names.list[i]) < 0) {
			r = -ENOMEM;
			break;
		}
		r = add_file(c, file, NULL, errors);
		free(file);
	}
	strings_done(&names);
	free(dir);
	return r;
}

/* Checks c as a whole and hands it to the caller, or frees it. r: the result so far. */
static int
finish(struct config *c, int r, size_t errors_before, struct config **ret,
    struct config_errors *errors)
{
	if (r == 0) {
		config_check_whole(c, errors);
		config_errors_sort(errors, &c->files);
		if (errors->n > errors_before || errors->not_shown > 0)
			r = -EINVAL;
	}
	if (r < 0) {
		config_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

int
config_load(const char *path, struct config **ret, struct config_errors *errors)
{
	size_t before = errors->n;
	struct config *c = NULL;
	bool is_missing = false;
	int r = config_defaults(&c);

	if (r < 0)
		return r;
	r = add_file(c, path != NULL ? path : CONFIG_PATH, &is_missing, errors);
	if (is_missing && path != NULL)
		config_error_add(errors, path, 0, 0, "there is no such file: name the configuration with -c, or leave -c "
		    "out for " CONFIG_PATH);
	c->has_main = r == 0 && c->files.n == 1;
	if (r == 0)
		r = add_drop_ins(c, path != NULL ? path : CONFIG_PATH, errors);
	return finish(c, r, before, ret, errors);
}

int
config_parse(const char *name, const char *text, size_t len, struct config **ret,
    struct config_errors *errors)
{
	size_t before = errors->n;
	struct config *c = NULL;
	int r = config_defaults(&c);

	if (r < 0)
		return r;
	c->has_main = true;
	r = add_text(c, name, text, len, errors);
	return finish(c, r, before, ret, errors);
}

void
config_differs(const struct config *old, const struct config *new, struct config_changes *ret)
{
	ret->n = ret->n_restart = 0;
	for (size_t i = 0; i < config_keys_n; i++) {
		const struct key *k = &config_keys[i];

		if (k->field == NO_FIELD ||
		    value_equal(k, key_field_const(k, old), key_field_const(k, new)))
			continue;
		ret->list[ret->n].key = k->name;
		ret->list[ret->n++].needs_restart = !k->is_reloaded;
		ret->n_restart += !k->is_reloaded;
	}
}
