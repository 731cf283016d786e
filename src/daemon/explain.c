/*
 * SPDX-License-Identifier: Apache-2.0
 * explain: `sluice ctl explain`: a process' attribution, or the rules that excluded an unrecorded one.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/spell.h"
#include "daemon/state.h"
#include "explain/explain.h"
#include "explain/live_process.h"
#include "identify/redact.h"
#include "identify/tool.h"

#define ARENA_BYTES (1u << 20)

/* Adds a field to the answer as it is, and to its text, which people read on a terminal, spelt out. */
static void
put(json_t *o, FILE *f, const char *name, const char *value)
{
	json_object_set_new(o, name, value != NULL ? json_string(value) : json_null());
	if (value != NULL && f != NULL)
		spell_line(f, "%-18s %s\n", name, value);
}

struct shown {
	json_t *answer;
	FILE *text;
};

static void
on_shown(const struct program_record *r, void *arg)
{
	struct shown *s = arg;
	char number[32];

	put(s->answer, s->text, "program_id", r->id.program_id);
	put(s->answer, s->text, "exe", r->exe);
	put(s->answer, s->text, "tool", r->tool);
	put(s->answer, s->text, "tool_rule", r->tool_rule);
	put(s->answer, s->text, "cgroup", r->cgroup);
	put(s->answer, s->text, "scheduler", r->scheduler);
	put(s->answer, s->text, "job_id", r->job_id);
	put(s->answer, s->text, "job_step", r->job_step);
	put(s->answer, s->text, "container_runtime", r->container_runtime);
	put(s->answer, s->text, "container_id", r->container_id);
	put(s->answer, s->text, "container_name", r->container_name);
	put(s->answer, s->text, "container_image", r->container_image);
	put(s->answer, s->text, "k8s_pod_uid", r->k8s_pod_uid);
	put(s->answer, s->text, "k8s_pod_name", r->k8s_pod_name);
	put(s->answer, s->text, "k8s_namespace", r->k8s_namespace);
	put(s->answer, s->text, "k8s_container_name", r->k8s_container_name);
	put(s->answer, s->text, "pipeline", r->head.pipeline);
	put(s->answer, s->text, "run_id", r->head.run_id);
	put(s->answer, s->text, "run_source", r->run_source);
	put(s->answer, s->text, "task", r->head.task);
	put(s->answer, s->text, "task_id", r->head.task_id);
	put(s->answer, s->text, "task_source", r->task_source);
	put(s->answer, s->text, "sample", r->head.sample);
	if (r->confidence.known) {
		snprintf(number, sizeof(number), "%.2f", r->confidence.value);
		put(s->answer, s->text, "confidence", number);
	}
	if (r->overhead)
		put(s->answer, s->text, "overhead", "the engine's own work");
}

/* Sets around from the nearest known process, starting with the process itself and then its ancestors. */
static void
look_around(struct daemon *d, const struct live_process *p, struct explain_around *around)
{
	struct surroundings s;

	for (size_t i = 0; i < p->n; i++) {
		if (!correlator_surroundings(agent_correlator(d->agent), p->pid[i], &s))
			continue;
		around->is_inside = s.is_inside;
		around->engine = s.engine;
		return;
	}
}

/* Redacts all arguments again, by the agent's own patterns; arguments that are not kept are not shown. */
static void
redact_all(struct daemon *d, struct live_process *p, struct arena *a, struct explain_around *around)
{
	const struct redaction *r = correlator_redaction(agent_correlator(d->agent));
	const char **shown;

	for (size_t i = 0; i < p->n; i++)
		redaction_apply(r, d->rules, (const char **)p->candidate[i].argv, p->candidate[i].argc, a);
	if (!redaction_drops(r))
		return;
	around->argv = shown = arena_alloc(a, (p->candidate[0].argc + 2) * sizeof(*shown));
	if (shown == NULL)
		return;
	if (p->candidate[0].argc > 0)
		memcpy(shown, p->candidate[0].argv, p->candidate[0].argc * sizeof(*shown));
	around->argc = redaction_keep(r, shown, p->candidate[0].argc, a);
}

/* Explains a process without a record from the data that sluice ctl sent. False: none, or no memory. */
static bool
explain_unrecorded(struct daemon *d, uint32_t pid, const json_t *sent, FILE *f)
{
	char tools[LIVE_PROCESS_DEPTH][TOOL_NAME_SIZE];
	struct explain_around around = { .no_exe = "only root may read it" };
	struct live_process p;
	struct arena a = { 0 };
	bool is_known = arena_init(&a, ARENA_BYTES) == 0 && live_process_parse(sent, pid, &a, &p);

	if (is_known) {
		redact_all(d, &p, &a, &around);
		look_around(d, &p, &around);
		for (size_t i = 1; i < p.n; i++) {	/* needed by conditions on a parent */
			struct candidate *s = &p.candidate[i];

			s->is_tool = tool_name(d->rules, s, tools[i], sizeof(tools[i]), NULL);
			s->tool = tools[i][0] != '\0' ? tools[i] : NULL;
		}
		fprintf(f, "%-13s/proc/%u, now: it has no record\n", "read from", (unsigned)pid);
		explain_candidate(d->rules, &p.candidate[0], &around, f);
	}
	arena_wipe(&a);
	arena_done(&a);
	return is_known;
}

void
daemon_on_explain_request(struct control_request *req, const json_t *args, void *arg)
{
	struct daemon *d = arg;
	struct shown shown = { .answer = json_object() };
	char *text = NULL;
	size_t size = 0;
	uint32_t pid;
	bool is_recorded, is_known;

	if (!daemon_get_pid(args, &pid)) {
		json_decref(shown.answer);
		control_answer_error(req, "explain takes the PID of a process");
		return;
	}
	agent_drain_all(d->agent);
	shown.text = open_memstream(&text, &size);
	is_recorded = is_known = correlator_show(agent_correlator(d->agent), pid, on_shown, &shown);
	if (!is_recorded && shown.text != NULL && pid != (uint32_t)getpid())
		is_known = explain_unrecorded(d, pid, json_object_get(args, "process"), shown.text);
	if (shown.text != NULL)
		fclose(shown.text);
	if (is_known) {
		json_object_set_new(shown.answer, "recorded", json_boolean(is_recorded));
		json_object_set_new(shown.answer, "told", json_boolean(is_recorded));	/* its former name */
		json_object_set_new(shown.answer, "text", json_string(text != NULL ? text : ""));
		control_answer(req, shown.answer);
	} else {
		json_decref(shown.answer);
		control_answer_error(req, "no program with the pid %u is recorded: there is no such process, or it is a kernel "
		    "thread or the agent", pid);
	}
	free(text);
}
