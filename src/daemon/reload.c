/*
 * SPDX-License-Identifier: Apache-2.0
 * reload: reads the configuration again, and applies all of it or nothing.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/state.h"

void
daemon_config_errors(const struct config_errors *errors)
{
	char text[1024];

	for (size_t i = 0; i < errors->n; i++)
		log_event(LOG_LEVEL_ERROR, "config.error", "%s", config_error_text(&errors->list[i], text, sizeof(text)));
	if (errors->not_shown > 0)
		log_event(LOG_LEVEL_ERROR, "config.error", "and %zu more", errors->not_shown);
}

void
daemon_apply_log(const struct config *c)
{
	static const enum log_level levels[] = { [CONFIG_LOG_ERROR] = LOG_LEVEL_ERROR,
		[CONFIG_LOG_WARNING] = LOG_LEVEL_WARNING, [CONFIG_LOG_INFO] = LOG_LEVEL_INFO,
		[CONFIG_LOG_DEBUG] = LOG_LEVEL_DEBUG };
	static const enum log_format formats[] = { [CONFIG_LOG_AUTO] = LOG_FORMAT_AUTO,
		[CONFIG_LOG_TEXT] = LOG_FORMAT_TEXT, [CONFIG_LOG_JSON] = LOG_FORMAT_JSON };
	struct log_options o = { .level = levels[c->log.level], .format = formats[c->log.format], .fd = 2 };

	log_open(&o);
}

struct redaction_options
daemon_redaction(const struct config *c)
{
	static const enum redact_keep keeps[] = { [CONFIG_ARGV_ALL] = REDACT_KEEP_ALL,
		[CONFIG_ARGV_FIRST] = REDACT_KEEP_FIRST, [CONFIG_ARGV_HASH] = REDACT_KEEP_HASH };

	return (struct redaction_options){ .patterns = (const char *const *)c->argv.redact.list,
		.n_patterns = c->argv.redact.n, .keep = keeps[c->argv.keep] };
}

/* Applies the settings for arguments and variables. They were validated, so only memory can fail. */
static void
apply_privacy(struct daemon *d)
{
	struct redaction_options redaction = daemon_redaction(d->config);
	char error[256] = "";
	int r;

	r = agent_set_redaction(d->agent, &redaction, error, sizeof(error));
	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "config.redact", "arguments are redacted as before: %s", error);
	r = agent_set_variables(d->agent, (const char *const *)d->config->trace_env.list, d->config->trace_env.n);
	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "config.trace_env", "variables are read as before: %s", strerror(-r));
}

/* Writes the names of the changed keys that need a restart to d->restart_wanted. */
static void
list_waiting(struct daemon *d, const struct config_changes *changes)
{
	size_t used = 0;

	d->restart_wanted[0] = '\0';
	for (size_t i = 0; i < changes->n; i++) {
		int n;

		if (!changes->list[i].needs_restart)
			continue;
		n = snprintf(d->restart_wanted + used, sizeof(d->restart_wanted) - used, "%s%s",
		    used > 0 ? ", " : "", changes->list[i].key);
		if (n < 0 || (size_t)n >= sizeof(d->restart_wanted) - used)
			break;
		used += (size_t)n;
	}
}

/* Swaps two lists, so that the old one is freed with the discarded configuration. */
static void
swap_strings(struct config_strings *a, struct config_strings *b)
{
	struct config_strings t = *a;

	*a = *b;
	*b = t;
}

/* Takes over the settings that a reload can change; the rest of the running configuration stays. */
static void
take_over(struct daemon *d, struct config *next)
{
	d->config->interval_ms = next->interval_ms;
	d->config->drain_ms = next->drain_ms;
	d->config->records = next->records;
	d->config->log = next->log;
	d->config->argv.max_bytes = next->argv.max_bytes;
	d->config->argv.keep = next->argv.keep;
	swap_strings(&d->config->argv.redact, &next->argv.redact);
	swap_strings(&d->config->trace_env, &next->trace_env);
	daemon_switch_signals(d, d->config, next);
	swap_strings(&d->config->probes.detail, &next->probes.detail);
	agent_set_interval(d->agent, next->interval_ms);
	agent_set_start_after(d->agent, next->records.start_after_ms);
	agent_set_finding_limits(d->agent, &next->findings);
	agent_set_argv_max(d->agent, next->argv.max_bytes);
	apply_privacy(d);
	daemon_apply_log(next);
}

bool
daemon_reload(struct daemon *d)
{
	struct config_errors errors = { 0 };
	struct config_changes changes;
	struct config *next = NULL;
	struct ruleset *rules = NULL;
	char message[768] = "";
	int r;

	notify_reloading(d->notify);
	d->reload_us = clock_us(CLOCK_REALTIME);
	r = config_load(d->options->config, &next, &errors);
	if (r == 0)
		r = daemon_read_rules(d, next, &rules, &errors);
	if (r < 0) {
		config_free(next);
		d->reload_failed = true;
		if (errors.n > 0)
			config_error_text(&errors.list[0], d->reload_error, sizeof(d->reload_error));
		else
			snprintf(d->reload_error, sizeof(d->reload_error), "%s", strerror(-r));
		daemon_config_errors(&errors);
		log_fields(LOG_LEVEL_ERROR, "config.reload_failed", LOG_FIELDS(LOG_U64("generation", d->generation)),
		    "the configuration in force is kept: %s", d->reload_error);
		agent_tell(d->agent, "RELOAD_FAILED", d->reload_error);
		config_errors_done(&errors);
		notify_ready(d->notify);
		return false;
	}
	config_errors_done(&errors);
	config_differs(d->config, next, &changes);
	list_waiting(d, &changes);
	take_over(d, next);
	config_free(next);
	d->generation++;
	daemon_use_rules(d, rules);
	d->reload_failed = false;
	d->reload_error[0] = '\0';
	if (d->restart_wanted[0] != '\0')
		snprintf(message, sizeof(message), "waits for a restart: %s", d->restart_wanted);
	log_fields(d->restart_wanted[0] != '\0' ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "config.reloaded",
	    LOG_FIELDS(LOG_U64("generation", d->generation), LOG_U64("changed", changes.n)),
	    "%s", message[0] != '\0' ? message : "in force");
	agent_tell(d->agent, "RELOAD", message[0] != '\0' ? message : NULL);
	notify_ready(d->notify);
	return true;
}

void
daemon_on_reload_request(struct control_request *req, const struct json_t *args, void *arg)
{
	struct daemon *d = arg;
	struct control_peer peer = control_request_peer(req);
	char message[640];

	(void)args;
	log_fields(LOG_LEVEL_INFO, "config.reload_requested", LOG_FIELDS(LOG_I64("pid", peer.pid),
	    LOG_U64("uid", peer.uid), LOG_TEXT("former_event", "config.reload_asked")), "through the control socket");
	if (!daemon_reload(d)) {
		control_answer_error(req, "%s; the configuration in force is kept (generation %llu)", d->reload_error,
		    (unsigned long long)d->generation);
		return;
	}
	snprintf(message, sizeof(message), "generation %llu is in force%s%s", (unsigned long long)d->generation,
	    d->restart_wanted[0] != '\0' ? "; waits for a restart: " : "", d->restart_wanted);
	control_answer(req, json_pack("{ss sI ss*}", "message", message, "generation", (json_int_t)d->generation,
	    "waits_for_restart", d->restart_wanted[0] != '\0' ? d->restart_wanted : NULL));
}
