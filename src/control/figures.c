/*
 * SPDX-License-Identifier: Apache-2.0
 * figures: the table, and the figures that are computed from others.
 */
#include "control/figures.h"

#include <stdio.h>
#include <string.h>

#include "base/disk.h"
#include "base/format.h"

static void
set_text(struct figure_value *v, const char *text)
{
	v->text = text;
	v->is_known = text != NULL && text[0] != '\0';
}

static void
set_time(struct figure_value *v, int64_t us)
{
	v->is_known = us > 0;
	v->number = us > 0 ? (uint64_t)us : 0;
}

static const char *
ago(const struct agent_status *s, int64_t then_us, char *buf, size_t size)
{
	return format_duration(then_us < s->agent.time_us ? (uint64_t)(s->agent.time_us - then_us) * 1000 : 0, buf,
	    size);
}

static void
get_build_info(const struct agent_status *s, struct figure_value *v)
{
	v->number = 1;
	v->label[0] = s->agent.version;
}

static void
get_agent_info(const struct agent_status *s, struct figure_value *v)
{
	v->number = 1;
	v->label[0] = s->agent.agent_id;
	v->label[1] = s->agent.host_id;
}

static void
get_ready(const struct agent_status *s, struct figure_value *v)
{
	v->number = status_is_ready(s, v->buf, sizeof(v->buf));
}

static void
get_sees(const struct agent_status *s, struct figure_value *v)
{
	v->number = s->seeing.blind_reason == NULL;
}

static void
get_not_ready_reason(const struct agent_status *s, struct figure_value *v)
{
	status_is_ready(s, v->buf, sizeof(v->buf));
	set_text(v, v->buf);
}

static void
get_reload_worked(const struct agent_status *s, struct figure_value *v)
{
	v->number = !s->config.reload_failed;
}

static void
get_reload_result(const struct agent_status *s, struct figure_value *v)
{
	set_text(v, s->config.reload_us == 0 ? NULL : s->config.reload_failed ? "failed" : "ok");
}

static void
get_reload_error(const struct agent_status *s, struct figure_value *v)
{
	set_text(v, s->config.reload_failed ? s->config.reload_error : NULL);
}

static void
get_last_reload(const struct agent_status *s, struct figure_value *v)
{
	char since[FORMAT_SIZE];

	if (s->config.reload_us > 0)
		snprintf(v->buf, sizeof(v->buf), "%s %s ago",
		    s->config.reload_failed ? "a reload was refused" : "reloaded",
		    ago(s, s->config.reload_us, since, sizeof(since)));
	set_text(v, v->buf);
}

static void
get_oldest(const struct agent_status *s, struct figure_value *v)
{
	set_time(v, s->spool.records > 0 ? s->spool.oldest_us : 0);
}

static void
get_oldest_age(const struct agent_status *s, struct figure_value *v)
{
	v->number = status_oldest_age_ns(s);
}

static bool
is_anything_spooled(const struct agent_status *s)
{
	return s->spool.records > 0;
}

static void
get_in_memory(const struct agent_status *s, struct figure_value *v)
{
	v->number = s->spool.memory_bytes;
	v->is_known = v->number > 0;
}

static void
get_disk_error(const struct agent_status *s, struct figure_value *v)
{
	set_text(v, s->spool.disk_error != 0 ? disk_error_text(s->spool.disk_error) : NULL);
}

static void
get_writable(const struct agent_status *s, struct figure_value *v)
{
	v->number = s->spool.disk_error == 0;
}

static void
get_output_state(const struct agent_status *s, struct figure_value *v)
{
	set_text(v, output_state_name(s->output.state));
}

static void
get_output_up(const struct agent_status *s, struct figure_value *v)
{
	v->number = s->output.state == OUTPUT_UP;
	v->label[0] = s->output.kind != NULL ? s->output.kind : "";
}

/* Sets the text of an error and its age: "3s ago: connection refused". */
static void
set_trouble(const struct agent_status *s, const char *error, int64_t error_us, struct figure_value *v)
{
	char since[FORMAT_SIZE];

	if (error[0] != '\0')
		snprintf(v->buf, sizeof(v->buf), "%s ago: %s", ago(s, error_us, since, sizeof(since)), error);
	set_text(v, v->buf);
}

static void
get_output_trouble(const struct agent_status *s, struct figure_value *v)
{
	set_trouble(s, s->output.error, s->output.error_us, v);
}

static void
get_registry_state(const struct agent_status *s, struct figure_value *v)
{
	set_text(v, registry_state_name(s->registry.state));
}

static void
get_registry_up(const struct agent_status *s, struct figure_value *v)
{
	v->number = s->registry.state != REGISTRY_AWAY && s->registry.state != REGISTRY_REFUSED;
}

static void
get_schemas(const struct agent_status *s, struct figure_value *v)
{
	v->number = s->registry.known + s->registry.wanted;
}

static void
get_registry_trouble(const struct agent_status *s, struct figure_value *v)
{
	set_trouble(s, s->registry.error, s->registry.error_us, v);
}

static void
get_requests(const struct agent_status *s, struct figure_value *v)
{
	v->number = s->containers.requests;
}

static void
get_metrics_error(const struct agent_status *s, struct figure_value *v)
{
	set_text(v, s->doors.metrics_error);
}

static void
get_metrics_up(const struct agent_status *s, struct figure_value *v)
{
	v->number = s->doors.metrics_error == NULL;
}

static void
get_cpu_share(const struct agent_status *s, struct figure_value *v)
{
	double share = s->agent.uptime_ns > 0 ? (double)s->process.cpu_ns / (double)s->agent.uptime_ns : 0;

	snprintf(v->buf, sizeof(v->buf), "%.2f%%", share * 100);
	set_text(v, v->buf);
}

static void
get_start(const struct agent_status *s, struct figure_value *v)
{
	set_time(v, s->agent.start_us);
}

const struct figure figures[] = {
#define PART(part)
#define END(part)
#define MEMBER(part, declaration)
#define FIGURE(the_part, member, the_type, ...) \
	{ .part = FIGURE_PART_##the_part, .type = FIGURE_##the_type, \
	    .offset = offsetof(struct agent_status, the_part.member), __VA_ARGS__ },
#define DERIVED(the_part, name, the_type, ...) \
	{ .part = FIGURE_PART_##the_part, .type = FIGURE_##the_type, .get = get_##name, __VA_ARGS__ },
#define LIST(the_part, name) { .part = FIGURE_PART_##the_part, .list = FIGURE_LIST_##name },
#define KEY(path) .key = (path)
#define LINE(title) .line = (title)
#define PHRASE(one) .phrase = (one)
#define PHRASES(one, many) .phrase = (one), .phrase_many = (many)
#define OTHERWISE(text) .otherwise = (text)
#define IF(name) .is_shown = is_##name
#define GAUGE(name, sentence) .metric = (name), .help = (sentence)
#define COUNTER(name, sentence) .metric = (name), .help = (sentence), .is_counter = true
#define FORMERLY(name) .former_metric = (name)
#define LABELS(...) .label = { __VA_ARGS__ }
#define LABELLED(name, value) .label = { (name) }, .label_value = (value)
#include "control/figures.def"
};
const size_t n_figures = sizeof(figures) / sizeof(figures[0]);

void
figure_get(const struct figure *f, const struct agent_status *s, struct figure_value *ret)
{
	const void *member = (const char *)s + f->offset;
	const struct opt_u64 *maybe;

	memset(ret, 0, offsetof(struct figure_value, buf) + 1);
	ret->is_known = true;
	ret->label[0] = f->label_value;
	if (f->get != NULL) {
		f->get(s, ret);
		return;
	}
	switch (f->type) {
	case FIGURE_TEXT:
		ret->text = *(const char *const *)member;
		ret->is_known = ret->text != NULL;
		break;
	case FIGURE_SENTENCE:
		set_text(ret, member);
		break;
	case FIGURE_COUNT:
	case FIGURE_NUMBER:
	case FIGURE_BYTES:
	case FIGURE_NS:
		ret->number = *(const uint64_t *)member;
		break;
	case FIGURE_MAYBE:
		maybe = member;
		ret->number = maybe->value;
		ret->is_known = maybe->known;
		break;
	case FIGURE_TIME:
		set_time(ret, *(const int64_t *)member);
		break;
	case FIGURE_FLAG:
		ret->number = *(const bool *)member;
		break;
	}
}

bool
figure_part_exists(enum figure_part part, const struct agent_status *s)
{
	if (part == FIGURE_PART_registry)
		return s->registry.state != REGISTRY_UNUSED;
	if (part == FIGURE_PART_lake)
		return s->lake.is_there;
	if (part == FIGURE_PART_kubelet)
		return s->kubelet.is_asked;
	return part != FIGURE_PART_containers || s->containers.is_asked;
}
