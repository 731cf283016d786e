/*
 * SPDX-License-Identifier: Apache-2.0
 * filter_driver [PIN_DIR]: the probes with their rules, without the rest of the agent, for
 * test_filter.py. Follows every process, reads commands, and writes a line for each event.
 *
 *	exclude|include CONDITION...	adds a rule; each kind=value must hold, each !kind=value must not
 *	set				puts these rules in force: "set ERROR GENERATION RULES OUTSIDE"
 *	judge				"found ..." for processes recorded from now on, "live ..." for others; "judged"
 *	pass				"live PID INDEX" or "muted PID INDEX" for each reported process; "passed"
 *	sweep				"stale PID INDEX PARENT START" for each unreported end; "swept"
 *	stats				"stats EXCLUDED LOST POSITION" of the ring
 *	quit
 *
 * Events of the ring: "exec PID INDEX PARENT ANCHOR HAS_REPLACED EXE ARGV1 START", "left PID INDEX
 * HAS_REPLACED", "exit PID INDEX PARENT START", "cgroup". Paths are without spaces; START is the start of
 * the process in nanoseconds.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/filter.h"
#include "attach/probes.h"
#include "base/clock.h"
#include "collect/decode.h"
#include "collect/ring.h"

#define RULES_MAX 20000

struct driver {
	struct event_base *base;
	struct probes *probes;
	struct ring *ring;
	struct decoder *decoder;
	struct ruleset *rules;		/* set under construction */
	struct follow_rule exclude[RULES_MAX], include[RULES_MAX];
	char line[65536];
	size_t line_len;
	uint64_t malformed;
};

static struct driver driver;

static void
on_exec(const struct exec_event *s, void *arg)
{
	(void)arg;
	if (s->is_excluded)
		printf("left %u %u %d\n", s->self.pid, s->self.index, s->has_replaced);
	else
		printf("exec %u %u %u %u %d %s %s %" PRIu64 "\n", s->self.pid, s->self.index, s->parent.pid, s->anchor.pid,
		    s->has_replaced, s->exe != NULL ? s->exe : "?", s->argc > 1 ? s->argv[1] : "-", s->self.start_ns);
}

static void
on_state(const struct state_event *s, void *arg)
{
	static const char *const names[] = { [STATE_EXIT] = "exit", [STATE_STALE] = "stale", [STATE_ZOMBIE] = "zombie",
		[STATE_LIVE] = "live", [STATE_DISCOVERED] = "found", [STATE_UNTRACKED] = "bystander" };

	(void)arg;
	printf("%s %u %u %u %" PRIu64 "\n", s->is_excluded && s->kind == STATE_LIVE ? "muted" : names[s->kind], s->self.pid,
	    s->self.index, s->parent.pid, s->self.start_ns);
}

static void
on_cgroup(const struct cgroup_event *s, void *arg)
{
	(void)arg;
	probes_learn_cgroup(driver.probes, s->id, s->is_v2, s->path);
	puts("cgroup");
}

static void
on_signal(const struct signal_event *s, void *arg)
{
	(void)s, (void)arg;
}

static void
on_record(const void *data, size_t len, void *arg)
{
	(void)arg;
	driver.malformed += decode(driver.decoder, data, len) < 0;
}

static void
drain(void)
{
	probes_wake_rearm(driver.probes);
	while (ring_drain(driver.ring, on_record, NULL, 512) == 512)
		ring_release(driver.ring);
	ring_release(driver.ring);
	fflush(stdout);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	drain();
}

static void
read_pass(int fd)
{
	static _Alignas(8) char buffer[256 << 10];
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, buffer + have, sizeof(buffer) - have)) > 0 ||
	    (n < 0 && (errno == EAGAIN || errno == EINTR))) {
		size_t used;

		have += n > 0 ? (size_t)n : 0;
		used = decode_stream(driver.decoder, buffer, have, &driver.malformed);
		memmove(buffer, buffer + used, have - used);
		have -= used;
	}
	close(fd);
}

static void
on_set(int error, uint64_t generation, void *arg)
{
	struct filter_stats stats;

	(void)arg;
	probes_filter_stats(driver.probes, &stats);
	printf("set %d %" PRIu64 " %u %u %" PRIu64 "\n", error, generation, stats.rules, stats.rules_outside, stats.build_ns);
	fflush(stdout);
}

static struct condition *
condition_read(char *word)
{
	static const enum condition_kind kinds[] = { CONDITION_EXE, CONDITION_PATH, CONDITION_CGROUP, CONDITION_UID,
		CONDITION_ARGV };
	struct condition *c = ruleset_alloc(driver.rules, sizeof(*c)), *not;
	char *equals = strchr(word, '=');

	if (word[0] == '!') {
		not = c;
		not->kind = CONDITION_NOT;
		not->first = condition_read(word + 1);
		return not;
	}
	if (equals == NULL)
		exit(3);
	*equals = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(condition_kind_name(kinds[i]), word) != 0)
			continue;
		c->kind = kinds[i];
		c->text = ruleset_string(driver.rules, equals + 1, strlen(equals + 1));
		if (c->kind == CONDITION_UID) {
			char *dash = NULL;

			c->low = (uint32_t)strtoul(equals + 1, &dash, 10);
			c->high = *dash == '-' ? (uint32_t)strtoul(dash + 1, NULL, 10) : c->low;
			c->text = NULL;
		}
		return c;
	}
	exit(3);
}

static void
rule_read(struct follow_rule *list, size_t *n, char *words)
{
	struct condition *all = ruleset_alloc(driver.rules, sizeof(*all));
	const struct condition **at = &all->first;

	for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
		struct condition *c = condition_read(word);

		*at = c;
		at = &c->next;
	}
	all->kind = CONDITION_ALL;
	list[(*n)++].when = all;
}

/* Allocates memory that lasts as long as the set. */
static void
rules_set(void)
{
	struct follow_rules *f = &driver.rules->follow;
	struct follow_rule *copy = ruleset_alloc(driver.rules, (f->n_exclude + f->n_include + 1) * sizeof(*copy));
	int r;

	memcpy(copy, driver.exclude, f->n_exclude * sizeof(*copy));
	memcpy(copy + f->n_exclude, driver.include, f->n_include * sizeof(*copy));
	f->exclude = copy;
	f->include = copy + f->n_exclude;
	r = probes_set_rules(driver.probes, driver.base, driver.rules, on_set, NULL);
	if (r < 0)
		on_set(r, 0, NULL);
	ruleset_unref(driver.rules);
	driver.rules = ruleset_new();
}

static void
command(char *line)
{
	struct filter_stats stats;
	uint64_t lost;

	if (strncmp(line, "exclude ", 8) == 0) {
		rule_read(driver.exclude, &driver.rules->follow.n_exclude, line + 8);
	} else if (strncmp(line, "include ", 8) == 0) {
		rule_read(driver.include, &driver.rules->follow.n_include, line + 8);
	} else if (strcmp(line, "set") == 0) {
		rules_set();
	} else if (strcmp(line, "judge") == 0) {
		drain();
		read_pass(probes_judge_open(driver.probes));
		puts("judged");
	} else if (strcmp(line, "pass") == 0) {
		drain();
		read_pass(probes_snapshot_open(driver.probes, false));
		puts("passed");
	} else if (strcmp(line, "sweep") == 0) {
		drain();
		read_pass(probes_stale_open(driver.probes));
		puts("swept");
	} else if (strcmp(line, "stats") == 0) {
		drain();
		probes_filter_stats(driver.probes, &stats);
		lost = probes_lost_records(driver.probes) + driver.malformed;
		printf("stats %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", stats.excluded, lost, ring_position(driver.ring));
	} else {
		event_base_loopbreak(driver.base);
	}
	fflush(stdout);
}

static void
on_input(evutil_socket_t fd, short what, void *arg)
{
	struct driver *d = &driver;
	ssize_t n = read(fd, d->line + d->line_len, sizeof(d->line) - 1 - d->line_len);
	char *end;

	(void)what;
	(void)arg;
	if (n <= 0) {
		event_base_loopbreak(d->base);
		return;
	}
	d->line_len += (size_t)n;
	d->line[d->line_len] = '\0';
	while ((end = strchr(d->line, '\n')) != NULL) {
		size_t used = (size_t)(end - d->line) + 1;

		*end = '\0';
		command(d->line);
		memmove(d->line, end + 1, d->line_len - used + 1);
		d->line_len -= used;
	}
}

int
main(int argc, char **argv)
{
	static const struct decode_ops ops = { on_exec, on_state, on_cgroup, on_signal };
	const struct timeval every = { 0, 10000 };
	struct probes_options options = { .follow_all = true, .pin_dir = argc > 1 ? argv[1] : NULL,
		.watchdog_ns = UINT64_C(60000000000), .ring_bytes = 32 << 20 };
	struct driver *d = &driver;
	struct event *timer, *input;
	char error[512];
	int r;

	setvbuf(stdout, NULL, _IOFBF, 1 << 20);
	d->base = event_base_new();
	d->rules = ruleset_new();
	if (probes_open(&options, &d->probes, error, sizeof(error)) < 0) {
		fprintf(stderr, "filter_driver: %s\n", error);
		return 1;
	}
	r = ring_open(probes_ring_fd(d->probes), probes_ring_bytes(d->probes), 0, &d->ring);
	if (r < 0 || decoder_new(&ops, d, &d->decoder) < 0)
		return 1;
	probes_follow_all(d->probes);
	printf("open %d\n", (int)probes_origin(d->probes));
	read_pass(probes_discovery_open(d->probes));
	puts("ready");
	fflush(stdout);
	timer = event_new(d->base, -1, EV_PERSIST, on_timer, NULL);
	input = event_new(d->base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, NULL);
	event_add(timer, &every);
	event_add(input, NULL);
	event_base_dispatch(d->base);
	drain();
	event_free(timer);
	event_free(input);
	probes_close(d->probes);
	ring_close(d->ring);
	decoder_free(d->decoder);
	ruleset_unref(d->rules);
	event_base_free(d->base);
	return 0;
}
