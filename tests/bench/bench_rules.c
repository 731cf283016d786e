/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_rules ROUNDS SPAWNS TINY: the time of the BPF programs for a process that execs once, with 0, 10,
 * 500 and 10,000 rules in the kernel, and for one that the rules exclude. Needs kernel.bpf_stats_enabled.
 *
 * Prints for each arm the time of the program on exec, and of all programs together.
 */
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/filter.h"
#include "attach/probes.h"
#include "collect/ring.h"
#include "sample.h"

#define ROUNDS_MAX 1000
#define SPAWNS_MAX 10000
#define SETTLE_US 100000
#define FREE_US 2000	/* the kernel frees a process shortly after its end */

extern char **environ;

struct arm {
	const char *name;
	unsigned rules;		/* rules of each of four kinds, none of which holds */
	bool is_excluded;
};

struct figures {
	double exec[ROUNDS_MAX], all[ROUNDS_MAX], build_ms;
};

/* Runs and time of the BPF programs that run once per process. */
struct sum {
	uint64_t exec_runs, exec_ns, all_ns, most_runs;
};

static struct sum
costs_read(const struct probes *p, const struct probe_cost *before, struct probe_cost *costs)
{
	size_t n = probes_costs(p, costs);
	struct sum s = { 0 };

	for (size_t i = 0; i < n; i++) {
		uint64_t runs = costs[i].runs - before[i].runs, ns = costs[i].run_time_ns - before[i].run_time_ns;

		if (strncmp(costs[i].name, "on_", 3) != 0 || strstr(costs[i].name, "_length") != NULL ||
		    strstr(costs[i].name, "msg") != NULL)
			continue;
		if (strncmp(costs[i].name, "on_exec", 7) == 0) {
			s.exec_runs = runs > s.exec_runs ? runs : s.exec_runs;	/* maximum of the copies */
			s.exec_ns += ns;
		}
		s.all_ns += ns;
		if (runs > s.most_runs)
			s.most_runs = runs;
	}
	return s;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n > 0 ? values[n / 2] : 0;
}

static struct condition *
condition_new(struct ruleset *r, enum condition_kind kind, const char *text)
{
	struct condition *c = ruleset_alloc(r, sizeof(*c));

	c->kind = kind;
	c->text = text != NULL ? ruleset_string(r, text, strlen(text)) : NULL;
	return c;
}

static struct ruleset *
rules_make(const struct arm *arm, const char *tiny)
{
	struct ruleset *r = ruleset_new();
	struct follow_rule *rules = ruleset_alloc(r, (arm->rules + 1) * sizeof(*rules));
	size_t n = 0;
	char text[80];

	for (unsigned i = 0; i < arm->rules; i++) {
		struct condition *c;

		switch (i % 4) {
		case 0:
			snprintf(text, sizeof(text), "no-such-tool-%u", i);
			c = condition_new(r, CONDITION_EXE, text);
			break;
		case 1:		/* a file beside tiny: the walk reaches tiny's folder */
			snprintf(text, sizeof(text), "%.*s/no-such-%u/", (int)(strrchr(tiny, '/') - tiny), tiny, i);
			c = condition_new(r, CONDITION_PATH, text);
			break;
		case 2:
			snprintf(text, sizeof(text), "/no-such.slice/%u", i);
			c = condition_new(r, CONDITION_CGROUP, text);
			break;
		default:
			c = condition_new(r, CONDITION_UID, NULL);
			c->low = c->high = 1000000 + i;
		}
		rules[n++].when = c;
	}
	if (arm->is_excluded)
		rules[n++].when = condition_new(r, CONDITION_EXE, strrchr(tiny, '/') + 1);
	r->follow.exclude = rules;
	r->follow.n_exclude = n;
	return r;
}

static void
ignore(const void *data, size_t len, void *arg)
{
	(void)data;
	(void)len;
	(void)arg;
}

/* Runs a followed process, as every parent is on a followed host: it answers each byte with one. */
static int worker[2] = { -1, -1 };

static void
work(int fd, char *tiny)
{
	char *argv[] = { tiny, NULL }, byte;
	pid_t pid;

	while (read(fd, &byte, 1) == 1) {
		if (posix_spawn(&pid, tiny, NULL, NULL, argv, environ) != 0 || waitpid(pid, NULL, 0) != pid ||
		    write(fd, &byte, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static int
worker_start(struct probes *p, char *tiny)
{
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, worker) < 0)
		return -1;
	probes_adopt(p, getpid());
	pid = fork();
	if (pid == 0) {
		close(worker[1]);
		work(worker[0], tiny);
	}
	close(worker[0]);
	probes_adopt(p, 0);
	return pid > 0 ? 0 : -1;
}

static int
spawn(void)
{
	char byte = 0;

	return write(worker[1], &byte, 1) == 1 && read(worker[1], &byte, 1) == 1 ? 0 : -1;
}

/* Spawns one process after the other, and measures each alone, so that other processes do not count. */
static int
measure(struct probes *p, struct ring *ring, unsigned n, double *ret_exec, double *ret_all)
{
	static struct probe_cost costs[2][PROBES_PROGRAMS];
	static double exec[SPAWNS_MAX], all[SPAWNS_MAX];
	size_t n_exec = 0, n_all = 0;

	for (unsigned i = 0; i < n; i++) {
		struct sum s;

		costs_read(p, costs[0], costs[0]);
		if (spawn() < 0)
			return -1;
		usleep(FREE_US);
		s = costs_read(p, costs[0], costs[1]);
		if (s.exec_runs == 1)
			exec[n_exec++] = (double)s.exec_ns;
		if (s.exec_runs == 1 && s.most_runs == 1)
			all[n_all++] = (double)s.all_ns;
		probes_wake_rearm(p);
		while (ring_drain(ring, ignore, NULL, 512) == 512)
			continue;
		ring_release(ring);
	}
	*ret_exec = median(exec, n_exec);
	*ret_all = median(all, n_all);
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct arm arms[] = { { "0", 0, false }, { "10", 10, false }, { "500", 500, false },
		{ "10000", 10000, false }, { "excluded", 10, true }, { "excluded_of_10000", 10000, true } };
	static struct figures figures[sizeof(arms) / sizeof(arms[0])];
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0, spawns = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	struct probes_options options = { 0 };
	struct probes *p = NULL;
	struct ring *ring = NULL;
	struct filter_stats stats;
	char error[512];
	int result = 1;

	if (rounds == 0 || rounds > ROUNDS_MAX || spawns == 0 || spawns > SPAWNS_MAX || argc != 4 ||
	    argv[3][0] != '/') {
		fputs("usage: bench_rules ROUNDS SPAWNS /TINY\n", stderr);
		return 2;
	}
	if (probes_open(&options, &p, error, sizeof(error)) < 0) {
		fprintf(stderr, "bench_rules: %s\n", error);
		return 1;
	}
	if (ring_open(probes_ring_fd(p), probes_ring_bytes(p), 0, &ring) < 0)
		goto out;
	if (worker_start(p, argv[3]) < 0)
		goto out;
	for (unsigned round = 0; round < rounds; round++) {
		for (size_t i = 0; i < sizeof(arms) / sizeof(arms[0]); i++) {
			struct ruleset *rules = rules_make(&arms[i], argv[3]);
			int r = probes_set_rules_now(p, rules);

			ruleset_unref(rules);
			usleep(SETTLE_US);	/* lets the kernel free the previous rules */
			if (r < 0 || spawn() < 0 ||
			    measure(p, ring, spawns, &figures[i].exec[round], &figures[i].all[round]) < 0)
				goto out;
			probes_filter_stats(p, &stats);
			figures[i].build_ms = (double)stats.build_ns / 1e6;
		}
	}
	for (size_t i = 0; i < sizeof(arms) / sizeof(arms[0]); i++) {
		char name[64];

		snprintf(name, sizeof(name), "exec_%s", arms[i].name);
		sample_print(name, figures[i].exec, rounds);
		snprintf(name, sizeof(name), "all_%s", arms[i].name);
		sample_print(name, figures[i].all, rounds);
		snprintf(name, sizeof(name), "build_ms_%s", arms[i].name);
		sample_print(name, &figures[i].build_ms, 1);
	}
	result = 0;
out:
	probes_close(p);
	ring_close(ring);
	return result;
}
