/* SPDX-License-Identifier: Apache-2.0 */
/* status: readiness, problems, and the three formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/bytes.h"
#include "control/figures.h"
#include "hostile.h"
#include "status_sample.h"

static struct agent_status s;
static char reason[STATUS_PROBLEM_SIZE];
static char *out;	/* of text() and metrics() */

static int
teardown(void **state)
{
	(void)state;
	free(out);
	out = NULL;
	return 0;
}

static const char *
terminate(struct bytes *b)
{
	assert_int_equal(bytes_append(b, "", 1), 0);
	free(out);
	out = (char *)b->data;
	return out;
}

static const char *
text(bool has_colour)
{
	struct bytes b = { 0 };

	assert_int_equal(status_text(&s, has_colour, &b), 0);
	return terminate(&b);
}

static const char *
metrics(void)
{
	struct bytes b = { 0 };

	assert_int_equal(status_metrics(&s, &b), 0);
	return terminate(&b);
}

static bool
is_ready(void)
{
	return status_is_ready(&s, reason, sizeof(reason));
}

static void
ready_means_that_records_arrive(void **state)
{
	(void)state;
	status_sample(&s);
	assert_true(is_ready());
	assert_string_equal(reason, "");

	s.output.state = OUTPUT_DOWN;
	strcpy(s.output.error, "all brokers are down");
	assert_false(is_ready());
	assert_string_equal(reason, "kafka is down: all brokers are down");

	status_sample(&s);
	s.output.state = OUTPUT_STARTING;
	assert_false(is_ready());
	assert_string_equal(reason, "kafka: nothing has been delivered yet");

	status_sample(&s);
	s.agent.is_stopping = true;
	assert_false(is_ready());

	status_sample(&s);
	s.seeing.blind_reason = "the probes see nothing";
	assert_false(is_ready());
	assert_string_equal(reason, "the probes see nothing");

	/* Files need no registry. */
	status_sample(&s);
	s.output.kind = "files";
	s.registry.state = REGISTRY_UNUSED;
	assert_true(is_ready());
}

static void
a_registry_matters_while_ids_are_missing(void **state)
{
	(void)state;
	status_sample(&s);
	s.registry.state = REGISTRY_AWAY;
	strcpy(s.registry.error, "connection refused");
	assert_true(is_ready());	/* all ids are known: the cache does it */
	s.registry.wanted = 2;
	s.registry.known = 5;
	assert_true(is_ready());	/* the topics whose ids are known are delivered */
	s.registry.known = 0;
	assert_false(is_ready());
	s.output.state = OUTPUT_STARTING;
	s.registry.known = 5;
	assert_false(is_ready());
	assert_string_equal(reason, "the schema registry at http://localhost:8081 is away, "
	    "2 of 7 schema ids are missing: connection refused");
	s.registry.state = REGISTRY_REFUSED;
	assert_false(is_ready());
	assert_non_null(strstr(reason, "refuses"));
}

static void
an_age_is_never_negative(void **state)
{
	(void)state;
	status_sample(&s);
	assert_int_equal(status_oldest_age_ns(&s), 480000000);
	s.spool.oldest_us = s.agent.time_us + 5;	/* the clock was set back */
	assert_int_equal(status_oldest_age_ns(&s), 0);
	s.spool.oldest_us = 5;
	s.spool.records = 0;
	assert_int_equal(status_oldest_age_ns(&s), 0);
}

static unsigned errors, warnings;

static void
on_problem(enum status_severity severity, const char *sentence, void *arg)
{
	(void)arg;
	assert_true(strlen(sentence) > 10);
	if (severity == STATUS_ERROR) {
		assert_int_equal(warnings, 0);	/* worst first */
		errors++;
	} else {
		warnings++;
	}
}

static void
problems_come_worst_first(void **state)
{
	(void)state;
	errors = warnings = 0;
	status_sample(&s);
	status_problems(&s, on_problem, NULL);
	assert_int_equal(errors + warnings, 0);
	status_sample_bad(&s);
	status_problems(&s, on_problem, NULL);
	assert_int_equal(errors, 6);	/* not delivering, a topic waits, disk, dropped, dead letters, reload */
	assert_int_equal(warnings, 4);	/* lost, spool 85 %, restart, peak_rss */
}

static void
one_that_has_just_started_is_no_error(void **state)
{
	(void)state;
	errors = warnings = 0;
	status_sample(&s);
	s.output.state = OUTPUT_STARTING;
	s.agent.uptime_ns = 1000000000;
	status_problems(&s, on_problem, NULL);
	assert_int_equal(errors, 0);
	assert_int_equal(warnings, 1);
}

/* The value at "config.last_reload.result"; a digit is an array's index. */
static json_t *
at(json_t *j, const char *path)
{
	char part[64];

	while (*path != '\0') {
		size_t len = strcspn(path, ".");

		snprintf(part, sizeof(part), "%.*s", (int)len, path);
		j = json_is_array(j) ? json_array_get(j, (size_t)atoi(part)) : json_object_get(j, part);
		path += len + (path[len] == '.');
	}
	if (j == NULL)
		fail_msg("nothing there");
	return j;
}

static const char *
word(json_t *j, const char *path)
{
	return json_string_value(at(j, path));
}

static json_int_t
number(json_t *j, const char *path)
{
	assert_true(json_is_integer(at(j, path)));
	return json_integer_value(at(j, path));
}

static void
json_names_are_a_contract(void **state)
{
	json_t *j;

	(void)state;
	status_sample(&s);
	j = status_json(&s);
	assert_non_null(j);
	assert_string_equal(word(j, "version"), "0.1.0");
	assert_string_equal(word(j, "time"), "2026-11-21T12:00:00.000000Z");
	assert_string_equal(word(j, "start_time"), "2026-11-21T11:00:00.000000Z");
	assert_true(json_is_true(at(j, "ready")));
	assert_true(json_is_null(at(j, "not_ready_reason")));
	assert_int_equal(json_array_size(at(j, "problems")), 0);
	assert_int_equal(number(j, "pid"), 4711);
	assert_int_equal(number(j, "uptime_ns"), INT64_C(3600000000000));
	assert_int_equal(number(j, "config.generation"), 4);
	assert_string_equal(word(j, "config.last_reload.result"), "ok");
	assert_true(json_is_null(at(j, "config.last_reload.error")));
	assert_string_equal(word(j, "records.0.topic"), "sluice.program");
	assert_int_equal(number(j, "records.0.produced"), 1000);
	assert_int_equal(number(j, "records.6.delivered"), 997);
	assert_int_equal(number(j, "spool.oldest_age_ns"), 480000000);
	assert_true(json_is_null(at(j, "spool.disk_error")));
	assert_string_equal(word(j, "output.state"), "up");
	assert_string_equal(word(j, "outlet.state"), "up");	/* as it was called before */
	assert_string_equal(word(j, "registry.url"), "http://localhost:8081");
	assert_int_equal(number(j, "events.exec"), 1000);
	assert_string_equal(word(j, "signals.1.state"), "fallback");
	assert_int_equal(number(j, "probes.0.run_time_ns"), 812000);
	assert_true(json_is_null(at(j, "probes.1.run_time_ns")));	/* unknown, which is not 0 */
	assert_int_equal(number(j, "process.open_fds"), 37);
	assert_string_equal(word(j, "process.privileges"), "CAP_BPF CAP_SYS_PTRACE, no_new_privs");
	json_decref(j);

	s.registry.state = REGISTRY_UNUSED;
	s.config.reload_us = 0;
	j = status_json(&s);
	assert_true(json_is_null(at(j, "registry")));
	assert_true(json_is_null(at(j, "config.last_reload.result")));
	json_decref(j);
}

static void
json_of_the_worst_is_json(void **state)
{
	json_t *j, *back;
	char *dump;

	(void)state;
	status_sample_bad(&s);
	j = status_json(&s);
	assert_non_null(j);
	assert_int_equal(json_array_size(json_object_get(j, "problems")), 10);
	assert_int_equal(json_array_size(json_object_get(j, "lost")), 3);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(json_object_get(j, "lost_by_user"), 0), "cut")), 11);
	dump = json_dumps(j, JSON_COMPACT);
	assert_non_null(dump);
	assert_null(strchr(dump, '\n'));
	back = json_loads(dump, JSON_REJECT_DUPLICATES, NULL);
	assert_true(json_equal(j, back));
	assert_string_equal(json_string_value(json_object_get(back, "host_name")), "no\"de\\1\n\\xff");
	free(dump);
	json_decref(j);
	json_decref(back);
}

static void
text_says_what_is_wrong_first(void **state)
{
	const char *t;

	(void)state;
	status_sample(&s);
	t = text(false);
	assert_memory_equal(t, "delivering  sluice 0.1.0 on node1", 33);
	assert_null(strchr(t, '!'));
	assert_null(strchr(t, '\033'));
	assert_non_null(strstr(t, "spool       3 records, 4.0 KiB of 1.0 GiB, oldest 480ms\n"));
	assert_non_null(strstr(t, "0.34% of one"));
	assert_non_null(strstr(t, "812 ns"));
	assert_null(strstr(t, "lost"));

	s.n_probes = 1;
	s.probes[0].runs = 0;
	s.probes[0].run_time_ns.known = false;	/* bpf_stats are off */
	t = text(false);
	assert_non_null(strstr(t, "\nprograms          1; `sysctl kernel.bpf_stats_enabled=1`"));
	assert_null(strstr(t, "on_exec"));
	assert_null(strstr(metrics(), "sluice_probe"));

	status_sample_bad(&s);
	t = text(false);
	assert_memory_equal(t, "not delivering", 14);
	assert_non_null(strstr(t, "\n!! not delivering: the schema registry"));
	assert_true(strstr(t, "!! ") < strstr(t, "settings"));
	assert_null(strchr(t, '\033'));
	assert_non_null(strchr(text(true), '\033'));
}

static void
text_obeys_no_escape_of_others(void **state)
{
	(void)state;
	status_sample(&s);
	s.output.state = OUTPUT_DOWN;
	strcpy(s.output.error, "\033[2Jgone\r\x07");
	assert_null(strpbrk(text(false), "\033\r\x07"));
}

static char sentences[2048];

static void
add_sentence(enum status_severity severity, const char *sentence, void *arg)
{
	(void)severity;
	(void)arg;
	snprintf(sentences + strlen(sentences), sizeof(sentences) - strlen(sentences), "%s\n", sentence);
}

/* While the others are delivered. */
static void
a_topic_that_waits_is_named_with_its_reason(void **state)
{
	(void)state;
	status_sample(&s);
	s.waiting[0] = (struct status_count){ TOPIC_USAGE, "schema_refused", 1234 };
	s.waiting[1] = (struct status_count){ TOPIC_HOST, "topic_missing", 1 };
	s.n_waiting = 2;
	strcpy(s.registry.error, "HTTP 409");
	strcpy(s.output.error, "topic sluice.host is missing");
	assert_true(is_ready());
	sentences[0] = '\0';
	status_problems(&s, add_sentence, NULL);
	assert_string_equal(sentences, "sluice.usage waits, with 1,234 records in the spool: schema_refused: HTTP 409\n"
	    "sluice.host waits, with 1 record in the spool: topic_missing: topic sluice.host is missing\n");
	assert_non_null(strstr(text(false), "\nwaits in the spool\n  sluice.usage           1,234  schema_refused\n"
	    "  sluice.host                1  topic_missing\n"));
	assert_non_null(strstr(metrics(), "\n# TYPE sluice_spool_waiting_records gauge\n"
	    "sluice_spool_waiting_records{topic=\"sluice.usage\",reason=\"schema_refused\"} 1234\n"
	    "sluice_spool_waiting_records{topic=\"sluice.host\",reason=\"topic_missing\"} 1\n"));
}

static void
a_disk_at_its_floor_is_named_with_its_room_and_the_fix(void **state)
{
	(void)state;
	status_sample(&s);
	s.spool.is_at_floor = true;
	s.spool.free_bytes = 812 << 20;
	s.spool.floor_bytes = 1 << 30;
	s.lake.is_there = true;
	s.lake.dir = "/var/lib/sluice/lake";
	s.lake.bytes = 3 << 20;
	s.lake.max_bytes = UINT64_C(20) << 30;
	s.lake.free_bytes = 812 << 20;
	s.removed[0] = (struct status_removed){ "lake_full", 2, 1234, 5678 };
	s.n_removed = 1;
	sentences[0] = '\0';
	status_problems(&s, add_sentence, NULL);
	assert_string_equal(sentences, "disk_floor: the disk of the spool /var/lib/sluice/spool has 812 MiB free, of which "
	    "disk_free_min keeps 1.0 GiB: the spool does not grow, and its oldest records give way if they are not "
	    "delivered; free some room there, or lower disk_free_min\n");
	/* What sluice itself does not write for that is no error of the disk. */
	s.spool.disk_error = -ENOSPC;
	s.spool.memory_bytes = 3 << 20;
	s.dropped[0] = (struct status_count){ .count = 7 };
	s.n_dropped = 1;
	sentences[0] = '\0';
	status_problems(&s, add_sentence, NULL);
	assert_null(strstr(sentences, "No space left"));
	assert_non_null(strstr(sentences, "lower disk_free_min. 3.0 MiB are held in memory and would be lost with the agent\n"));
	assert_non_null(strstr(sentences, ", and less now, because of disk_free_min\n"));
	/* Where others have filled it, it is. */
	s.spool.free_bytes = 4096;
	sentences[0] = '\0';
	status_problems(&s, add_sentence, NULL);
	assert_non_null(strstr(sentences, ": No space left on device (/var/lib/sluice/spool); 3.0 MiB are held in memory"));
	assert_null(strstr(sentences, "lower disk_free_min. 3.0 MiB"));
	s.spool.free_bytes = 812 << 20;
	s.spool.disk_error = 0;
	s.n_dropped = 0;
	assert_non_null(strstr(text(false), "/var/lib/sluice/lake, 3.0 MiB of 20 GiB, 812 MiB free\n"));
	assert_non_null(strstr(text(false), "\nold files removed from the lake\n"));
	assert_non_null(strstr(metrics(), "\nsluice_lake_removed_records_total{reason=\"lake_full\"} 1234\n"));
	assert_non_null(strstr(metrics(), "\nsluice_lake_limit_bytes 21474836480\n"));
	s.lake.is_there = false;
	assert_null(strstr(metrics(), "\nsluice_lake_limit_bytes"));
}

static void
metrics_have_the_figures(void **state)
{
	const char *m;

	(void)state;
	status_sample(&s);
	m = metrics();
	assert_non_null(strstr(m, "\nsluice_build_info{version=\"0.1.0\"} 1\n"));
	assert_non_null(strstr(m, "\n# TYPE sluice_records_produced_total counter\n"
	    "sluice_records_produced_total{topic=\"sluice.program\"} 1000\n"));
	assert_non_null(strstr(m, "\nsluice_spool_oldest_age_seconds 0.480000000\n"));
	assert_non_null(strstr(m, "\nprocess_cpu_seconds_total 12.100000000\n"));
	assert_non_null(strstr(m, "\nprocess_start_time_seconds 1795258800.000000000\n"));
	assert_non_null(strstr(m, "\nsluice_output_up{kind=\"kafka\"} 1\n"));
	assert_non_null(strstr(m, "\nsluice_outlet_up{kind=\"kafka\"} 1\n"));
	assert_non_null(strstr(m, "\nsluice_probe_run_seconds_total{probe=\"on_exec\"} 0.000812000\n"));
	assert_null(strstr(m, "sluice_probe_run_seconds_total{probe=\"on_exit\"}"));	/* unknown: no sample */
	assert_non_null(strstr(m, "\nsluice_ready 1\n"));
	assert_non_null(strstr(m, "\nsluice_config_last_reload_successful 1\n"));
	assert_int_equal(m[strlen(m) - 1], '\n');

	status_sample_bad(&s);
	m = metrics();
	assert_non_null(strstr(m, "\nsluice_lost_total{place=\"a\\\"b\\\\c\\nd\\\\xfe\",reason=\"x y\"} 1\n"));
	assert_non_null(strstr(m, "\nsluice_lost_total{place=\"on_exec\",reason=\"ring_full\"} 10\n"));
	assert_non_null(strstr(m, "\nsluice_user_lost_total{uid=\"64001\",reason=\"refused\"} 5\n"));
	assert_non_null(strstr(m, "\nsluice_spool_writable 0\n"));
	assert_non_null(strstr(m, "\nsluice_registry_up 0\n"));
	assert_non_null(strstr(m, "\nsluice_ready 0\n"));
}

static void
names_of_containers_are_reported_where_they_are_asked_for(void **state)
{
	const char *m;
	json_t *j;

	(void)state;
	status_sample(&s);
	j = status_json(&s);
	assert_true(json_is_null(at(j, "containers")));
	json_decref(j);
	assert_null(strstr(text(false), "containers"));
	assert_null(strstr(metrics(), "sluice_container"));

	s.containers.is_asked = true;
	s.containers.requests = 15;
	s.containers.named = 9;
	s.containers.unknown = 3;
	s.containers.failed = 2;
	s.containers.refused = 1;
	j = status_json(&s);
	assert_int_equal(number(j, "containers.requests"), 15);
	assert_int_equal(number(j, "containers.named"), 9);
	assert_int_equal(number(j, "containers.unknown"), 3);
	assert_int_equal(number(j, "containers.failed"), 2);
	assert_int_equal(number(j, "containers.refused"), 1);
	json_decref(j);
	assert_non_null(strstr(text(false), "\ncontainers  9 named, 3 unknown, 2 failed, 1 refused, by 15 requests\n"));
	m = metrics();
	assert_non_null(strstr(m, "\n# TYPE sluice_container_name_requests_total counter\n"
	    "sluice_container_name_requests_total 15\n"));
	assert_non_null(strstr(m, "\n# TYPE sluice_container_names_total counter\n"
	    "sluice_container_names_total{result=\"named\"} 9\n"
	    "sluice_container_names_total{result=\"unknown\"} 3\n"
	    "sluice_container_names_total{result=\"failed\"} 2\n"
	    "sluice_container_names_total{result=\"refused\"} 1\n"));
}

static void
names_of_pods_are_reported_where_the_kubelet_is_asked(void **state)
{
	const char *m;
	json_t *j;

	(void)state;
	status_sample(&s);
	j = status_json(&s);
	assert_true(json_is_null(at(j, "kubelet")));
	json_decref(j);
	assert_null(strstr(text(false), "kubelet"));
	assert_null(strstr(metrics(), "sluice_kubelet"));

	s.kubelet.is_asked = true;
	s.kubelet.pods = 12;
	s.kubelet.left_out = 1;
	s.kubelet.named = 9;
	s.kubelet.unknown = 3;
	s.kubelet.requests = 7;
	s.kubelet.failed = 2;
	j = status_json(&s);
	assert_int_equal(number(j, "kubelet.pods"), 12);
	assert_int_equal(number(j, "kubelet.left_out"), 1);
	assert_int_equal(number(j, "kubelet.failed"), 2);
	assert_true(json_is_null(at(j, "kubelet.last_error")));
	json_decref(j);
	assert_non_null(strstr(text(false), "\nkubelet     12 pods, 9 named, 3 unknown, by 7 requests, 2 failed\n"));
	snprintf(s.kubelet.error, sizeof(s.kubelet.error), "its answer is no list of pods");
	assert_non_null(strstr(text(false), "2 failed\n            last error: its answer is no list of pods\n"));
	m = metrics();
	assert_non_null(strstr(m, "\nsluice_kubelet_pods 12\n"));
	assert_non_null(strstr(m, "\nsluice_kubelet_pods_left_out 1\n"));
	assert_non_null(strstr(m, "\nsluice_kubelet_names_total{result=\"named\"} 9\n"
	    "sluice_kubelet_names_total{result=\"unknown\"} 3\n"));
	assert_non_null(strstr(m, "\nsluice_kubelet_requests_total 7\n"));
	assert_non_null(strstr(m, "\nsluice_kubelet_requests_failed_total 2\n"));
}

static void
each_row_fits_its_outputs(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_figures; i++) {
		const struct figure *f = &figures[i];

		for (size_t j = 0; j < i; j++)
			assert_true(f->key == NULL || figures[j].key == NULL || strcmp(f->key, figures[j].key) != 0);
		assert_true(f->list != FIGURE_NO_LIST || f->key != NULL || f->phrase != NULL || f->metric != NULL);
		assert_true(f->phrase == NULL || (strchr(f->phrase, '%') == strstr(f->phrase, "%s")));
		if (f->metric == NULL)
			continue;
		assert_true(f->type != FIGURE_TEXT && f->type != FIGURE_SENTENCE);
		assert_int_equal(f->is_counter, strcmp(f->metric + strlen(f->metric) - 6, "_total") == 0);
		if (i > 0 && figures[i - 1].metric != NULL && strcmp(figures[i - 1].metric, f->metric) == 0)
			continue;	/* the next sample of the same metric */
		assert_string_not_equal(f->help, "");
		for (size_t j = 0; j < i; j++)
			assert_true(figures[j].metric == NULL || strcmp(f->metric, figures[j].metric) != 0);
	}
}

/* The file of the source tree, NUL-terminated; the caller frees it. */
static char *
read_source(const char *path)
{
	char name[512];
	struct bytes b = { 0 };
	char part[4096];
	size_t n;
	FILE *f;

	snprintf(name, sizeof(name), SOURCE_TREE "/%s", path);
	f = fopen(name, "re");
	assert_non_null(f);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		assert_int_equal(bytes_append(&b, part, n), 0);
	fclose(f);
	assert_int_equal(bytes_append(&b, "", 1), 0);
	return (char *)b.data;
}

/* Is there such a metric in an agent that has every part? */
static bool
is_metric(const char *name, size_t len)
{
	char line[128];

	snprintf(line, sizeof(line), "\n# TYPE %.*s ", (int)len, name);
	return strstr(out, line) != NULL;
}

static void
manual_and_alerts_name_what_there_is(void **state)
{
	static const char *const files[] = { "docs/sluice.1", "ops/prometheus/alerts.yaml" };
	char *manual = read_source("docs/sluice.1");
	const char *list = strstr(manual, "The names of the JSON object stay:"), *end;
	unsigned named = 0;

	(void)state;
	status_sample_bad(&s);
	s.containers.is_asked = true;
	s.kubelet.is_asked = true;
	s.lake.is_there = true;
	metrics();
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *text = read_source(files[i]);

		for (const char *at = text; (at = strstr(at, "sluice_")) != NULL; named++) {
			size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz_");

			if (!is_metric(at, len))
				fail_msg("%s: there is no metric %.*s", files[i], (int)len, at);
			at += len;
		}
		free(text);
	}
	assert_true(named > 10);

	assert_non_null(list);
	end = strchr(list, '.');
	for (size_t i = 0; i < n_figures; i++) {
		char word[64];
		const char *found;

		if (figures[i].key == NULL)
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(figures[i].key, "."), figures[i].key);
		found = strstr(list, word);
		if (found == NULL || found > end)
			fail_msg("docs/sluice.1 does not name %s of the JSON object", word);
	}
	free(manual);
}

/* Returns how many lines there are; each is a comment or a sample. */
static size_t
metric_lines(const struct hostile_name *h, const char *m)
{
	size_t n = 0;

	for (; *m != '\0'; m += strcspn(m, "\n") + 1, n++) {
		if (strncmp(m, "# HELP ", 7) != 0 && strncmp(m, "# TYPE ", 7) != 0 && strncmp(m, "sluice_", 7) != 0 &&
		    strncmp(m, "process_", 8) != 0)
			fail_msg("%s: no metric: %.60s", h->what, m);
	}
	return n;
}

static void
a_status_is_safe(const struct hostile_name *h, void *arg)
{
	size_t *n_lines = arg, n;

	status_sample_bad(&s);
	s.agent.host_name = s.config.file = s.config.reload_error = s.spool.dir = h->name;
	snprintf(s.registry.url, sizeof(s.registry.url), "%s", h->name);
	snprintf(s.output.error, sizeof(s.output.error), "%s", h->name);
	status_sample_losses[0].place = h->name;
	hostile_is_safe(h, text(false), true);
	hostile_is_safe(h, metrics(), true);
	n = metric_lines(h, out);
	if (*n_lines == 0)
		*n_lines = n;
	assert_int_equal(n, *n_lines);
}

static void
no_hostile_name_acts_on_the_terminal_or_makes_a_metric(void **state)
{
	size_t n_lines = 0;

	(void)state;
	hostile_each(a_status_is_safe, &n_lines);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ready_means_that_records_arrive),
		cmocka_unit_test(a_registry_matters_while_ids_are_missing),
		cmocka_unit_test(an_age_is_never_negative),
		cmocka_unit_test(problems_come_worst_first),
		cmocka_unit_test(one_that_has_just_started_is_no_error),
		cmocka_unit_test(json_names_are_a_contract),
		cmocka_unit_test(json_of_the_worst_is_json),
		cmocka_unit_test_teardown(text_says_what_is_wrong_first, teardown),
		cmocka_unit_test_teardown(text_obeys_no_escape_of_others, teardown),
		cmocka_unit_test_teardown(a_topic_that_waits_is_named_with_its_reason, teardown),
		cmocka_unit_test_teardown(a_disk_at_its_floor_is_named_with_its_room_and_the_fix, teardown),
		cmocka_unit_test_teardown(metrics_have_the_figures, teardown),
		cmocka_unit_test(each_row_fits_its_outputs),
		cmocka_unit_test_teardown(manual_and_alerts_name_what_there_is, teardown),
		cmocka_unit_test_teardown(names_of_containers_are_reported_where_they_are_asked_for, teardown),
		cmocka_unit_test_teardown(names_of_pods_are_reported_where_the_kubelet_is_asked, teardown),
		cmocka_unit_test_teardown(no_hostile_name_acts_on_the_terminal_or_makes_a_metric, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
