/*
 * SPDX-License-Identifier: Apache-2.0
 * control: parses a request.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "control/control.h"

static bool
is_name(const char *s, size_t len)
{
	if (len == 0 || len >= CONTROL_COMMAND_SIZE)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') || s[i] == '-' || s[i] == '_'))
			return false;
	}
	return true;
}

int
control_parse(const char *line, size_t len, char command[CONTROL_COMMAND_SIZE], struct json_t **ret_args,
    char *error, size_t error_size)
{
	json_error_t e;
	json_t *root, *name, *args, *member;
	const char *key;
	int r = -EINVAL;

	root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &e);
	if (root == NULL) {
		/* Not e.text, which quotes the invalid bytes. */
		snprintf(error, error_size, "not a line of JSON: invalid at byte %d", e.position);
		return r;
	}
	if (!json_is_object(root)) {
		snprintf(error, error_size, "not an object; a request is {\"command\":\"…\",\"args\":{…}}");
		goto out;
	}
	json_object_foreach(root, key, member) {
		if (strcmp(key, "command") != 0 && strcmp(key, "args") != 0) {
			snprintf(error, error_size, "a request has \"command\" and \"args\", and nothing else");
			goto out;
		}
	}
	name = json_object_get(root, "command");
	args = json_object_get(root, "args");
	if (!json_is_string(name) || !is_name(json_string_value(name), json_string_length(name))) {
		snprintf(error, error_size, "\"command\" is missing or not a command's name");
		goto out;
	}
	if (args != NULL && !json_is_object(args)) {
		snprintf(error, error_size, "\"args\" is not an object");
		goto out;
	}
	memcpy(command, json_string_value(name), json_string_length(name) + 1);
	*ret_args = args != NULL ? json_incref(args) : json_object();
	r = *ret_args != NULL ? 0 : -ENOMEM;
out:
	json_decref(root);
	return r;
}
