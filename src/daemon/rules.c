/*
 * SPDX-License-Identifier: Apache-2.0
 * rules: the rules of a running daemon, read with the configuration, or added and removed by `sluice
 * ctl rules`; the correlator uses new ones at once, the kernel as soon as they are loaded.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/privileges.h"
#include "base/log.h"
#include "daemon/state.h"
#include "rules/rules.h"

#define EXTRA_MAX 1000

int
daemon_read_rules(struct daemon *d, const struct config *c, struct ruleset **ret, struct config_errors *errors)
{
	struct rules_options o = { .dir = c->rules, .extra = d->extra, .n_extra = d->n_extra };
	char why[512];
	gid_t gid;

	/* Once: it cannot change, and a look-up may go over the network. Without it the agent does not open. */
	if (!d->has_rules_owner)
		d->has_rules_owner = privileges_user_ids(c->user, &d->rules_owner, &gid, why, sizeof(why)) == 0;
	o.owner = d->rules_owner;
	return rules_load(&o, ret, errors);
}

static void
on_rules_in_kernel(int error, uint64_t generation, void *arg)
{
	(void)arg;
	if (error == -ECANCELED)
		return;		/* replaced by newer rules */
	if (error < 0)
		log_fields(LOG_LEVEL_ERROR, "rules.kernel", LOG_FIELDS(LOG_U64("generation", generation)),
		    "the kernel keeps its previous rules, and the agent applies the new ones: %s", strerror(-error));
	else
		log_fields(LOG_LEVEL_INFO, "rules.kernel", LOG_FIELDS(LOG_U64("generation", generation)),
		    "the kernel has these rules");
}

void
daemon_use_rules(struct daemon *d, struct ruleset *rules)
{
	int r;

	rules->generation = d->generation;
	ruleset_unref(d->rules);
	d->rules = rules;
	r = agent_set_rules(d->agent, rules, on_rules_in_kernel, d);
	if (r < 0)
		on_rules_in_kernel(r, rules->generation, d);
}

static const char *
word(const json_t *args, size_t i)
{
	return json_string_value(json_array_get(json_object_get(args, "words"), i));
}

static struct rules_extra *
find_extra(struct daemon *d, const char *name)
{
	for (size_t i = 0; i < d->n_extra; i++) {
		if (strcmp(d->extra[i].name, name) == 0)
			return &d->extra[i];
	}
	return NULL;
}

static void
free_extra(struct rules_extra *e)
{
	free((char *)e->name);
	free((char *)e->text);
}

/* Inserts an entry. There is room: one was just removed, or the list was extended. */
static void
put_extra(struct daemon *d, size_t at, struct rules_extra e)
{
	memmove(&d->extra[at + 1], &d->extra[at], (d->n_extra - at) * sizeof(e));
	d->extra[at] = e;
	d->n_extra++;
}

static struct rules_extra
take_extra(struct daemon *d, size_t at)
{
	struct rules_extra e = d->extra[at];

	d->n_extra--;
	memmove(&d->extra[at], &d->extra[at + 1], (d->n_extra - at) * sizeof(e));
	return e;
}

static int
add_extra(struct daemon *d, const char *name, const char *text)
{
	struct rules_extra *more = realloc(d->extra, (d->n_extra + 1) * sizeof(*more));
	char *own_name, *own_text;

	if (more == NULL)
		return -ENOMEM;
	d->extra = more;
	own_name = strdup(name);
	own_text = strdup(text);
	if (own_name == NULL || own_text == NULL) {
		free(own_name);
		free(own_text);
		return -ENOMEM;
	}
	/* At the front: the latest addition takes precedence. */
	put_extra(d, 0, (struct rules_extra){ own_name, own_text, strlen(own_text) });
	return 0;
}

/* Loads the rules with the present extra rules and puts them in force. False: nothing changed, see error. */
static bool
swap(struct daemon *d, char *error, size_t error_size)
{
	struct config_errors errors = { 0 };
	struct ruleset *rules = NULL;
	int r = daemon_read_rules(d, d->config, &rules, &errors);

	if (r < 0) {
		if (errors.n > 0)
			config_error_text(&errors.list[0], error, error_size);
		else
			snprintf(error, error_size, "%s", strerror(-r));
		config_errors_done(&errors);
		return false;
	}
	config_errors_done(&errors);
	d->generation++;
	daemon_use_rules(d, rules);
	agent_tell(d->agent, "RELOAD", "rules changed by sluice ctl");
	return true;
}

static void
answer_generation(struct daemon *d, struct control_request *req, const char *what, const char *name)
{
	char message[512];

	snprintf(message, sizeof(message), "%s %s; generation %llu is in force", what, name,
	    (unsigned long long)d->generation);
	control_answer(req,
	    json_pack("{ss sI}", "message", message, "generation", (json_int_t)d->generation));
}

static void
list_rules(struct daemon *d, struct control_request *req)
{
	json_t *answer, *list = json_array();
	struct filter_stats filter;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	probes_filter_stats(agent_probes(d->agent), &filter);
	for (size_t i = 0; i < d->n_extra; i++)
		json_array_append_new(list, json_pack("{ss ss}", "name", d->extra[i].name, "rules", d->extra[i].text));
	answer = json_pack("{so sI sI sI sI sI}", "added", list, "rules", (json_int_t)d->rules->n_rules,
	    "generation", (json_int_t)d->rules->generation, "kernel_generation", (json_int_t)filter.generation,
	    "kernel_rules", (json_int_t)filter.rules, "excluded", (json_int_t)filter.excluded);
	if (f != NULL) {
		fprintf(f, "%zu rules, generation %llu; "
		    "in the kernel %u, generation %llu; %llu programs excluded there\n",
		    d->rules->n_rules, (unsigned long long)d->rules->generation, filter.rules,
		    (unsigned long long)filter.generation, (unsigned long long)filter.excluded);
		for (size_t i = 0; i < d->n_extra; i++)
			fprintf(f, "%s: %s\n", d->extra[i].name, d->extra[i].text);
		fclose(f);
		json_object_set_new(answer, "text", json_string(text));
		free(text);
	}
	control_answer(req, answer);
}

void
daemon_on_rules_request(struct control_request *req, const json_t *args, void *arg)
{
	const char *verb = word(args, 0), *name = word(args, 1), *text = word(args, 2);
	struct daemon *d = arg;
	struct rules_extra *old, taken;
	char error[1024];
	size_t at;

	if (verb == NULL || strcmp(verb, "list") == 0) {
		list_rules(d, req);
		return;
	}
	if (strcmp(verb, "add") != 0 && strcmp(verb, "remove") != 0) {
		control_answer_error(req, "rules takes list, add NAME RULES or remove NAME, not '%s'", verb);
		return;
	}
	if (!control_permits(req, CONTROL_ADMIN, "add or remove rules"))
		return;
	if (name == NULL || name[0] == '\0' || strlen(name) > 63 || strchr(name, '/') != NULL) {
		control_answer_error(req, "rules %s takes a NAME of 1 to 63 characters without /", verb);
		return;
	}
	old = find_extra(d, name);
	if (strcmp(verb, "remove") == 0) {
		if (old == NULL) {
			control_answer_error(req, "no rules named %s were added; see `sluice ctl rules list`", name);
			return;
		}
		at = (size_t)(old - d->extra);
		taken = take_extra(d, at);
		if (!swap(d, error, sizeof(error))) {	/* the files are invalid by now */
			put_extra(d, at, taken);
			control_answer_error(req, "%s; the rules in force are kept", error);
			return;
		}
		answer_generation(d, req, "removed", name);
		free_extra(&taken);
		return;
	}
	if (text == NULL || old != NULL || d->n_extra >= EXTRA_MAX) {
		control_answer_error(req, text == NULL ? "rules add NAME takes the rules as one more word, as in a file: "
		    "'exclude: [{exe: stress}]'" : old != NULL ? "rules of that name exist; remove them first" :
		    "too many rules were added; put them into a file of rules.d");
		return;
	}
	if (add_extra(d, name, text) < 0) {
		control_answer_error(req, "out of memory");
		return;
	}
	if (!swap(d, error, sizeof(error))) {
		taken = take_extra(d, 0);
		free_extra(&taken);
		control_answer_error(req, "%s; the rules in force are kept", error);
		return;
	}
	answer_generation(d, req, "added", name);
}

void
daemon_free_rules(struct daemon *d)
{
	for (size_t i = 0; i < d->n_extra; i++)
		free_extra(&d->extra[i]);
	free(d->extra);
	ruleset_unref(d->rules);
}
