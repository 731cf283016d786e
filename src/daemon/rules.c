/*
 * SPDX-License-Identifier: Apache-2.0
 * rules: the rules of a running daemon, read with the configuration, or added and removed by `sluice
 * ctl rules`; the correlator uses new ones at once, the kernel as soon as they are loaded. Also the
 * requests of `sluice ctl tag`.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/state.h"
#include "rules/rules.h"

#define EXTRA_MAX 1000

int
daemon_read_rules(struct daemon *d, const struct config *c, struct ruleset **ret, struct config_errors *errors)
{
	struct rules_options o = { .dir = c->rules, .extra = d->extra, .n_extra = d->n_extra };

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

bool
daemon_get_pid(const json_t *args, uint32_t *ret)
{
	const char *text = json_string_value(json_object_get(args, "pid"));
	uint64_t value;

	if (text == NULL)
		text = word(args, 0);
	if (text == NULL || !text_number(text, INT32_MAX, &value) || value == 0)
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* A request that waits for the event of its process, which was forked a moment ago. */
struct waiting_tag {
	struct waiting_tag *prev, *next;
	struct daemon *daemon;
	struct control_request *request;
	json_t *args;			/* a reference; owns the tag's strings */
	struct event *again;
	unsigned tries;
	uint32_t pid;
};

#define TAG_RETRY_MS 50
#define TAG_TRIES 40

static void
answer_tag(struct waiting_tag *w, const struct tag *tag, int n)
{
	struct control_peer peer = control_request_peer(w->request);
	char message[256];

	if (n < 0) {
		control_answer_error(w->request, n == -ESRCH ? "no process with the pid %u is followed" : n == -EINVAL ?
		    "the run id for %u is too long" : n == -ENOSPC ? "there are too many runs to add one for %u" :
		    "no memory to tag %u", w->pid);
		return;
	}
	log_fields(LOG_LEVEL_INFO, "run.tagged", LOG_FIELDS(LOG_U64("pid", w->pid), LOG_TEXT("run", tag->run_id),
	    LOG_U64("by_uid", peer.uid)), "%d process%s", n, n == 1 ? "" : "es");
	snprintf(message, sizeof(message), "%d process%s in run %s from now on", n, n == 1 ? " is" : "es are", tag->run_id);
	control_answer(w->request, json_pack("{ss si}", "message", message, "processes", n));
}

static void
forget_tag(struct waiting_tag *w)
{
	DL_DELETE(w->daemon->tags, w);
	event_free(w->again);
	json_decref(w->args);
	free(w);
}

static void
on_tag(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval later = { 0, TAG_RETRY_MS * 1000 };
	struct waiting_tag *w = arg;
	struct daemon *d = w->daemon;
	struct tag tag = {
		.run_id = json_string_value(json_object_get(w->args, "run")),
		.pipeline = json_string_value(json_object_get(w->args, "pipeline")),
		.task = json_string_value(json_object_get(w->args, "task")),
		.sample = json_string_value(json_object_get(w->args, "sample")),
		.source = json_is_true(json_object_get(w->args, "is_run")) ? "sluice run" : "sluice ctl tag",
	};
	int n;

	(void)fd;
	(void)what;
	agent_drain_all(d->agent);
	n = correlator_tag(agent_correlator(d->agent), w->pid, &tag, clock_ns(CLOCK_BOOTTIME));
	if (n == -ESRCH && w->tries == 0) {
		agent_meet_all(d->agent);	/* a child that has not called exec has no event */
		n = correlator_tag(agent_correlator(d->agent), w->pid, &tag, clock_ns(CLOCK_BOOTTIME));
	}
	if (n == -ESRCH && ++w->tries < TAG_TRIES && evtimer_add(w->again, &later) == 0)
		return;
	answer_tag(w, &tag, n);
	forget_tag(w);
}

void
daemon_on_tag_request(struct control_request *req, const json_t *args, void *arg)
{
	const char *run = json_string_value(json_object_get(args, "run"));
	struct daemon *d = arg;
	struct waiting_tag *w;
	uint32_t pid;

	if (!daemon_get_pid(args, &pid) || run == NULL || run[0] == '\0') {
		control_answer_error(req,
		    "tag takes --pid PID and --run RUN, and optionally --pipeline P, --task T, --sample S");
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w != NULL) {
		w->again = evtimer_new(d->base, on_tag, w);
		w->args = json_deep_copy(args);
	}
	if (w == NULL || w->again == NULL || w->args == NULL) {
		if (w != NULL && w->again != NULL)
			event_free(w->again);
		if (w != NULL)
			json_decref(w->args);
		free(w);
		control_answer_error(req, "out of memory");
		return;
	}
	w->daemon = d;
	w->request = req;
	w->pid = pid;
	DL_APPEND(d->tags, w);
	on_tag(-1, 0, w);
}

void
daemon_free_tags(struct daemon *d)
{
	while (d->tags != NULL) {
		control_answer_error(d->tags->request, "the agent stops");
		forget_tag(d->tags);
	}
}

void
daemon_free_rules(struct daemon *d)
{
	for (size_t i = 0; i < d->n_extra; i++)
		free_extra(&d->extra[i]);
	free(d->extra);
	ruleset_unref(d->rules);
}
