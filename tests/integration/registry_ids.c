/*
 * SPDX-License-Identifier: Apache-2.0
 * registry_ids: requests the ids of all schemas from a schema registry, and prints its status as JSON
 * lines on stdout: one at each change, and a last one at the end. For test_registry.py.
 *
 *	registry_ids [--OPTION VALUE]… URL…
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>
#include <jansson.h>

#include "registry/registry.h"
#include "codec/schema.h"

enum { TICK_MS = 5 };

struct asker {
	struct event_base	*base;
	struct registry		*registry;
	const char		*only;		/* name of one schema, or NULL for all */
	uint64_t		 until_requests;	/* stop after so many, with every id known; 0: later */
	bool			 until_verified;	/* stop as soon as the registry has returned every id */
	int64_t			 start_ms;
	int64_t			 tick_ms;	/* time of the last tick */
	int64_t			 stall_ms;	/* longest time that the loop did not run its timers */
};

static int64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static uint64_t
fingerprint(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return h;
}

static int
count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	if (d == NULL)
		return -1;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 3;	/* ".", ".." and d itself */
}

static json_t *
ids(struct asker *a)
{
	json_t *all = json_object();

	for (const struct schema_text *s = schema_texts; s->name != NULL; s++) {
		char subject[64];
		int32_t id;
		int r;

		if (a->only != NULL && strcmp(s->name, a->only) != 0)
			continue;
		snprintf(subject, sizeof(subject), "sluice.%s-value", s->name);
		r = registry_id(a->registry, subject, fingerprint(s->text), s->text, &id);
		json_object_set_new(all, subject, r == 0 ? json_integer(id) :
		    json_string(r == -EAGAIN ? "EAGAIN" : r == -EACCES ? "EACCES" : strerror(-r)));
	}
	return all;
}

static void
tell(struct asker *a, const char *event)
{
	struct registry_status s;
	json_t *all = ids(a), *line;

	registry_status(a->registry, &s);
	line = json_pack("{s:s, s:I, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:I, s:i, s:o}",
	    "event", event, "ms", (json_int_t)(now_ms() - a->start_ms), "state",
	    registry_state_name(s.state), "url", s.url, "error", s.error, "requests",
	    (json_int_t)s.requests, "failures", (json_int_t)s.failures, "known", (int)s.known,
	    "unverified", (int)s.unverified, "wanted", (int)s.wanted, "stall_ms",
	    (json_int_t)a->stall_ms, "fds", count_fds(), "ids", all);
	json_dumpf(line, stdout, 0);
	putchar('\n');
	fflush(stdout);
	json_decref(line);
	if (a->until_verified && s.known > 0 && s.wanted == 0 && s.unverified == 0)
		event_base_loopbreak(a->base);
}

static void
on_change(void *arg)
{
	tell(arg, "change");
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct asker *a = arg;
	struct registry_status s;
	int64_t now = now_ms(), late = now - a->tick_ms - TICK_MS;

	(void)fd;
	(void)what;
	if (late > a->stall_ms)
		a->stall_ms = late;
	a->tick_ms = now;
	registry_status(a->registry, &s);
	if (a->until_requests > 0 && s.requests >= a->until_requests && s.state == REGISTRY_OK)
		event_base_loopbreak(a->base);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "user", required_argument, NULL, 'u' }, { "password", required_argument, NULL, 'p' },
		{ "token", required_argument, NULL, 't' }, { "ca", required_argument, NULL, 'C' },
		{ "cert", required_argument, NULL, 'E' }, { "key", required_argument, NULL, 'K' },
		{ "lookup-only", no_argument, NULL, 'l' }, { "cache", required_argument, NULL, 'c' },
		{ "timeout-ms", required_argument, NULL, 'T' }, { "retry-min-ms", required_argument, NULL, 'm' },
		{ "retry-max-ms", required_argument, NULL, 'M' }, { "recheck-ms", required_argument, NULL, 'R' },
		{ "trust-ms", required_argument, NULL, 'U' },
		{ "seconds", required_argument, NULL, 's' }, { "until-verified", no_argument, NULL, 'v' },
		{ "until-requests", required_argument, NULL, 'n' },
		{ "only", required_argument, NULL, 'o' }, { NULL, 0, NULL, 0 },
	};
	struct timeval tick = { .tv_usec = TICK_MS * 1000 }, end = { .tv_sec = 10 };
	struct registry_options o = { 0 };
	struct asker a = { .start_ms = now_ms(), .tick_ms = now_ms() };
	struct event *ticker = NULL;
	char error[1024] = "";
	int c, r;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint32_t n = optarg != NULL ? (uint32_t)strtoul(optarg, NULL, 10) : 0;

		switch (c) {
		case 'u': o.user = optarg; break;
		case 'p': o.password = optarg; break;
		case 't': o.token = optarg; break;
		case 'C': o.ca_file = optarg; break;
		case 'E': o.cert_file = optarg; break;
		case 'K': o.key_file = optarg; break;
		case 'l': o.lookup_only = true; break;
		case 'c': o.cache_file = optarg; break;
		case 'T': o.timeout_ms = n; break;
		case 'm': o.retry_min_ms = n; break;
		case 'M': o.retry_max_ms = n; break;
		case 'R': o.recheck_ms = n; break;
		case 'U': o.trust_ms = n; break;
		case 's': end.tv_sec = n; break;
		case 'v': a.until_verified = true; break;
		case 'n': a.until_requests = n; break;
		case 'o': a.only = optarg; break;
		default: return 2;
		}
	}
	o.urls = (const char *const *)argv + optind;
	o.n_urls = (size_t)(argc - optind);

	a.base = event_base_new();
	ticker = event_new(a.base, -1, EV_PERSIST, on_tick, &a);
	r = registry_open(a.base, &o, on_change, &a, &a.registry, error, sizeof(error));
	if (r < 0 || error[0] != '\0')
		fprintf(stderr, "registry_ids: %s\n", error);
	if (r == 0) {
		json_decref(ids(&a));
		event_add(ticker, &tick);
		event_base_loopexit(a.base, &end);
		event_base_dispatch(a.base);
		a.until_verified = false;
		tell(&a, "end");
		registry_close(a.registry);
	}
	event_free(ticker);
	event_base_free(a.base);
	libevent_global_shutdown();
	return r == 0 ? 0 : 1;
}
