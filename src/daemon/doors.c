/*
 * SPDX-License-Identifier: Apache-2.0
 * doors: the control socket with its commands, and the metrics: bound as root, served as the agent's account.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "attach/privileges.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/state.h"

#define METRICS_RETRY_NS UINT64_C(10000000000)
#define RUN_IDLE_MS 5000	/* `sluice run` asks at once */

static const struct {
	const char *name;
	const char *summary;
	enum control_access access;
	control_cb cb;
} commands[] = {
	{ "reload", "read the configuration again", CONTROL_ADMIN, daemon_on_reload_request },
	{ "rules", "list, add NAME RULES, remove NAME: rules until the agent stops", CONTROL_READ, daemon_on_rules_request },
	{ "tag", "--pid PID --run RUN ...: assign a process and its descendants to a run", CONTROL_OWN, daemon_on_tag_request },
	{ "attach", "NAME: attach an optional signal, whose fields are known from now on", CONTROL_ADMIN,
	    daemon_on_attach_request },
	{ "detach", "NAME: detach an optional signal, whose fields are null from now on", CONTROL_ADMIN,
	    daemon_on_detach_request },
	{ "dead-letters", "put a file's dead letters back into the spool, for `sluice dead-letters`", CONTROL_ADMIN,
	    daemon_on_dead_letters_request },
	{ "explain", "PID: the attribution of a process, and its evidence", CONTROL_READ, daemon_on_explain_request },
};

/* Both sockets have this command. */
static int
handle_subscribe(struct daemon *d, struct control *c)
{
	return control_handle(c, "subscribe", "pass the events of a run on to the `sluice run` that begins it", CONTROL_OWN,
	    daemon_on_subscribe_request, d);
}

static int
open_control(struct daemon *d)
{
	struct control_options o = { .path = d->config->control, .group = d->config->control_group,
		.read_group = d->config->control_read_group };
	char error[512] = "";
	gid_t gid;
	int r;

	if (privileges_user_ids(d->config->user, &o.account, &gid, error, sizeof(error)) < 0)
		o.account = 0;		/* daemon_open_spool() reports it */
	r = control_open(d->base, &o, &d->control, error, sizeof(error));
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "control.open", "%s", error);
		return -1;
	}
	if (error[0] != '\0')
		log_event(LOG_LEVEL_WARNING, "control.open", "%s", error);
	if (daemon_open_settle(d) < 0 || control_handle_status(d->control, daemon_fill_status, d) < 0 ||
	    control_handle(d->control, "settle",
	    "wait until everything before this request is recorded; --delivered: and delivered", CONTROL_ADMIN,
	    settle_on_request, d->settle) < 0 || handle_subscribe(d, d->control) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (control_handle(d->control, commands[i].name, commands[i].summary, commands[i].access,
		    commands[i].cb, d) < 0)
			return -1;
	}
	return 0;
}

/*
 * Opens the socket by which any user has own runs followed. Without it, because another agent has it or its folder is
 * missing, root and the members of the control socket's groups still have theirs.
 */
static int
open_runs(struct daemon *d)
{
	struct control_options o = { .path = d->config->run_socket, .is_public = true, .idle_ms = RUN_IDLE_MS };
	char error[512] = "";

	if (strcmp(o.path, "off") == 0)
		return 0;
	if (control_open(d->base, &o, &d->runs, error, sizeof(error)) < 0) {
		log_event(LOG_LEVEL_WARNING, "runs.open", "%s; only root, and who may use %s, can `sluice run` without "
		    "probes", error, d->config->control);
		return 0;
	}
	return handle_subscribe(d, d->runs);
}

/*
 * Listens at one address of the metrics. A port in use does not stop the agent, because any program may have taken it
 * before: it is logged, is a problem of the status, and is tried again.
 */
static int
open_metrics(struct daemon *d, struct metrics_listener *m)
{
	struct http_options o = { .listen = { .address = m->address, .allow_remote = d->config->metrics_public,
		.group = d->config->metrics_group } };
	char error[sizeof(m->error)] = "";
	int r = http_open(d->base, &o, daemon_fill_status, d, &m->http, error, sizeof(error));

	if (r == -EADDRINUSE && !listen_is_unix(m->address)) {
		if (m->retry_ns == 0)
			log_event(LOG_LEVEL_ERROR, "metrics.open", "%s; no metrics until it is free", error);
		snprintf(m->error, sizeof(m->error), "%s", error);
		m->retry_ns = clock_ns(CLOCK_BOOTTIME) + METRICS_RETRY_NS;
		return 0;
	}
	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "metrics.open", "%s", error);
	else if (m->retry_ns != 0)
		log_event(LOG_LEVEL_INFO, "metrics.open", "%s is free now: metrics are served", m->address);
	snprintf(m->error, sizeof(m->error), "%s", error);
	m->retry_ns = 0;
	return r;
}

void
daemon_retry_metrics(struct daemon *d)
{
	for (size_t i = 0; i < d->n_metrics; i++) {
		struct metrics_listener *m = &d->metrics[i];

		if (m->retry_ns != 0 && clock_ns(CLOCK_BOOTTIME) >= m->retry_ns)
			(void)open_metrics(d, m);
	}
}

int
daemon_open_doors(struct daemon *d)
{
	if (open_control(d) < 0 || open_runs(d) < 0)
		return -1;
	for (size_t i = 0; i < d->config->metrics.n; i++) {
		if (strcmp(d->config->metrics.list[i], "off") == 0)
			continue;
		d->metrics[d->n_metrics].address = d->config->metrics.list[i];
		if (open_metrics(d, &d->metrics[d->n_metrics++]) < 0)
			return -1;
	}
	return 0;
}

void
daemon_close_metrics(struct daemon *d)
{
	for (size_t i = 0; i < d->n_metrics; i++)
		http_close(d->metrics[i].http);
	d->n_metrics = 0;
}
