/*
 * SPDX-License-Identifier: Apache-2.0
 * whole: whether the keys of a configuration are consistent with each other.
 */
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "config/checks.h"
#include "config/errors.h"
#include "config/keys.h"

struct whole {
	const struct config *c;
	struct config_errors *errors;
};

#define WRONG_AT(w, location, ...)                                                                    \
	config_error_add((w)->errors, (w)->c->files.list[(location)->file], (location)->line,            \
	    (location)->column, __VA_ARGS__)
#define WRONG_KEY(w, name, ...) WRONG_AT(w, key_location((w)->c, name), __VA_ARGS__)

/* Whether a file has the key. A wrong value has an error of its own, and causes no further ones here. */
static bool
is_written(const struct whole *w, const char *name)
{
	return key_location(w->c, name)->line > 0;
}

static void
need(const struct whole *w, const char *name, const char *other, const char *hint)
{
	if (is_written(w, name) && !is_written(w, other))
		WRONG_KEY(w, name, "%s has no effect without %s: %s", name, other, hint);
}

static void
check_delivery(const struct whole *w)
{
	if (w->c->kafka.is_set && !is_written(w, "kafka.brokers"))
		WRONG_KEY(w, "kafka", "kafka needs brokers: add `brokers: [HOST:PORT]`");
	if (w->c->kafka.is_set && !w->c->registry.is_set)
		WRONG_KEY(w, "kafka", "kafka needs a schema registry: add "
		    "`registry: {urls: [\"http://HOST:PORT\"]}`");
	if (w->c->registry.is_set && !is_written(w, "registry.urls"))
		WRONG_KEY(w, "registry", "registry needs urls: add `urls: [\"http://HOST:PORT\"]`");
	if (w->c->registry.is_set && !w->c->kafka.is_set)
		WRONG_KEY(w, "registry", "registry has no effect without kafka: add a kafka section, or "
		    "remove this one");
}

static void
check_registry(const struct whole *w)
{
	static const char *const tls[] = { "registry.ca_file", "registry.cert_file", NULL };
	const struct config *c = w->c;
	bool has_https = false;

	need(w, "registry.user", "registry.password", "add `password: {file: /PATH}`");
	need(w, "registry.password", "registry.user", "add `user: NAME`");
	need(w, "registry.cert_file", "registry.key_file", "add the certificate's private key");
	need(w, "registry.key_file", "registry.cert_file", "add the key's certificate");
	if (is_written(w, "registry.token") && is_written(w, "registry.user"))
		WRONG_KEY(w, "registry.token", "registry.token and registry.user exclude each other: "
		    "keep the one that the registry asks for");
	for (size_t i = 0; i < c->registry.urls.n; i++)
		has_https |= strncasecmp(c->registry.urls.list[i], "https:", 6) == 0;
	for (int i = 0; tls[i] != NULL && c->registry.urls.n > 0 && !has_https; i++) {
		if (is_written(w, tls[i]))
			WRONG_KEY(w, tls[i], "%s has no effect without https:// URLs: change registry.urls, "
			    "or remove it", tls[i]);
	}
}

static void
check_kubelet(const struct whole *w)
{
	static const char *const others[] = { "containers.kubelet.server_name", "containers.kubelet.ca_file",
		"containers.kubelet.token_file", NULL };
	const char *url = w->c->containers.kubelet.url;
	bool is_plain = strncasecmp(url, "http:", 5) == 0;

	for (int i = 0; others[i] != NULL; i++) {
		if (is_written(w, others[i]) && !is_written(w, "containers.kubelet.url"))
			WRONG_KEY(w, others[i], "%s has no effect without containers.kubelet.url: add "
			    "`url: \"https://127.0.0.1:10250\"`", others[i]);
		else if (is_written(w, others[i]) && is_plain)
			WRONG_KEY(w, others[i], "%s has no effect without TLS: change containers.kubelet.url to https://, or "
			    "remove it", others[i]);
	}
}

static void
check_update(const struct whole *w)
{
	const struct config_strings *restart = &w->c->update.restart;

	if (w->c->update.is_set && !is_written(w, "update.mirror"))
		WRONG_KEY(w, "update", "update needs a mirror: add `mirror: https://HOST/FOLDER`, or its absolute path");
	if (restart->n > 0 && restart->list[0][0] != '/')
		WRONG_KEY(w, "update.restart", "'%.100s' is no absolute path: the command is run without a shell and PATH, "
		    "begin it with /", restart->list[0]);
}

static void
check_properties(const struct whole *w)
{
	const struct config_pairs *p = &w->c->kafka.properties, *s = &w->c->kafka.secrets;
	char show[SHOWN_SIZE];

	for (size_t i = 0; i < s->n; i++) {
		for (size_t j = 0; j < p->n; j++) {
			if (strcmp(s->list[i].name, p->list[j].name) == 0)
				WRONG_AT(w, &s->list[i].location, "kafka.secrets: '%s' is set in "
				    "kafka.properties too (line %u of %s): keep one",
				    shown(s->list[i].name, show), p->list[j].location.line,
				    w->c->files.list[p->list[j].location.file]);
		}
	}
}

static void
check_metrics(const struct whole *w)
{
	const struct config_strings *metrics = &w->c->metrics;

	for (size_t i = 0; i < metrics->n; i++) {
		if (strcmp(metrics->list[i], "off") == 0 && metrics->n > 1)
			WRONG_KEY(w, "metrics", "metrics are off, or served at an address: remove 'off', or all others");
		if (!w->c->metrics_public && !listener_is_local(metrics->list[i]))
			WRONG_KEY(w, "metrics", "'%s' is reached from other hosts, and metrics name what runs here: "
			    "listen on 127.0.0.1, or allow it by `metrics_public: true`", metrics->list[i]);
	}
}

/* Removes redundant slashes: "/a//b/" becomes "/a/b". */
static void
tidy(const char *path, char buf[PATH_MAX])
{
	size_t o = 0;

	for (const char *p = path; *p != '\0' && o + 1 < PATH_MAX; p++) {
		if (*p != '/' || (p[1] != '/' && p[1] != '\0'))
			buf[o++] = *p;
	}
	buf[o] = '\0';
}

static void
check_folders(const struct whole *w)
{
	const struct config *c = w->c;
	const struct { const char *name, *path; } folders[] = {
		{ "lake", c->lake }, { "rules", c->rules }, { "spool.dir", c->spool.dir },
		{ "dead_letters", c->dead_letters },
	};
	enum { N = sizeof(folders) / sizeof(folders[0]) };

	for (int i = 0; i < N; i++) {
		for (int j = 0; j < i; j++) {
			char a[PATH_MAX], b[PATH_MAX];

			tidy(folders[i].path, a);
			tidy(folders[j].path, b);
			if (strcmp(a, b) == 0)
				WRONG_KEY(w, is_written(w, folders[i].name) ? folders[i].name :
				    folders[j].name, "%s and %s are the same folder: give each its own",
				    folders[j].name, folders[i].name);
		}
	}
}

void
config_check_whole(const struct config *c, struct config_errors *errors)
{
	const struct whole w = { c, errors };

	check_delivery(&w);
	check_registry(&w);
	check_kubelet(&w);
	check_update(&w);
	check_properties(&w);
	check_metrics(&w);
	check_folders(&w);
}
