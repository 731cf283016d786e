/*
 * SPDX-License-Identifier: Apache-2.0
 * signals: the optional signals, which are attached and detached by the configuration at the start and
 * on a reload, and by `sluice ctl attach` and `detach` in between.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "attach/probes.h"
#include "base/log.h"
#include "daemon/state.h"
#include "model/optional_signals.h"

/*
 * Attaches or detaches a signal. The fields become unknown before the hook is detached, so that no
 * record uses incomplete counters. 0 or a negative errno.
 */
static int
switch_signal(struct daemon *d, enum optional_signal signal, bool on)
{
	struct probes *probes = agent_probes(d->agent);
	int r;

	agent_drain_all(d->agent);
	if (!on)
		agent_set_known_since(d->agent, signal, UINT64_MAX);
	r = probes_switch(probes, signal, on);
	agent_set_known_since(d->agent, signal, probes_known_since_ns(probes, signal));
	if (r == 0)
		log_fields(LOG_LEVEL_INFO, on ? "signal.attached" : "signal.detached",
		    LOG_FIELDS(LOG_TEXT("signal", optional_signals[signal])),
		    on ? "its fields are known for programs that begin from now on" :
		    "its fields are null from now on");
	return r;
}

void
daemon_switch_signals(struct daemon *d, const struct config *before, const struct config *after)
{
	for (int i = 0; i < OPTIONAL_SIGNALS; i++) {
		const char *name = optional_signals[i];
		bool was = before == NULL ||
		    signal_is_wanted(name, before->probes.detail.list, before->probes.detail.n);
		bool is = signal_is_wanted(name, after->probes.detail.list, after->probes.detail.n);

		if (was != is)
			switch_signal(d, i, is);
	}
}

static void
answer(struct control_request *req, const json_t *args, struct daemon *d, bool on)
{
	const char *word = on ? "attach" : "detach";
	const char *name = json_string_value(json_array_get(json_object_get(args, "words"), 0));
	struct control_peer peer = control_request_peer(req);
	char names[256], message[256];
	json_t *done;
	int signal;

	optional_signal_names(names, sizeof(names));
	if (name == NULL || json_array_size(json_object_get(args, "words")) > 1) {
		control_answer_error(req, "%s takes the name of one optional signal: %s", word, names);
		return;
	}
	log_fields(LOG_LEVEL_INFO, "signal.requested", LOG_FIELDS(LOG_TEXT("signal", name), LOG_TEXT("to", word),
	    LOG_I64("pid", peer.pid), LOG_U64("uid", peer.uid)), "through the control socket");
	signal = optional_signal_of(name);
	if (signal < 0) {
		control_answer_error(req, "'%s' is no optional signal; these can be attached and detached: %s", name, names);
		return;
	}
	if (switch_signal(d, signal, on) < 0) {
		control_answer_error(req, "this kernel has no hook for %s; `sluice doctor` shows why", name);
		return;
	}
	done = json_object();
	snprintf(message, sizeof(message), on ?
	    "%s is attached: its fields are known for programs that begin from now on" :
	    "%s is detached: its fields are null from now on", name);
	json_object_set_new(done, "message", json_string(message));
	json_object_set_new(done, "signal", json_string(name));
	control_answer(req, done);
}

void
daemon_on_attach_request(struct control_request *req, const json_t *args, void *arg)
{
	answer(req, args, arg, true);
}

void
daemon_on_detach_request(struct control_request *req, const json_t *args, void *arg)
{
	answer(req, args, arg, false);
}
