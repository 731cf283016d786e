/*
 * SPDX-License-Identifier: Apache-2.0
 * tag: gives a process and its descendants to a run, for `sluice ctl tag` and `sluice run`; and passes the events of
 * that run on to `sluice run`, if it subscribes to them.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utlist.h>

#include "agent/subscription.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/state.h"

bool
daemon_get_pid(const json_t *args, uint32_t *ret)
{
	const char *text = json_string_value(json_object_get(args, "pid"));
	uint64_t value;

	if (text == NULL)
		text = json_string_value(json_array_get(json_object_get(args, "words"), 0));
	if (text == NULL || !text_number(text, INT32_MAX, &value) || value == 0)
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* Reads what the host did until now, which is not at the cost of the one who asks. */
static void
catch_up(struct daemon *d, struct control_request *req)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	agent_drain_all(d->agent);
	control_discount(req, clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
}

/* A request that waits for the event of its process, which was forked a moment ago. */
struct waiting_tag {
	struct waiting_tag *prev, *next;
	struct daemon *daemon;
	struct control_request *request;
	json_t *args;			/* a reference; owns the tag's strings, but the run's id */
	char *run_id;			/* owned */
	struct event *again;
	unsigned tries;
	uint32_t pid;
	uint32_t user;			/* behind the client, once check_process() has found it */
	bool is_subscription;
};

#define TAG_RETRY_MS 50
#define TAG_TRIES 40
#define RUN_SUFFIX_SIZE 16
#define IN_OTHERS "the process %u is in a run that root or another user began"

/* Answers, and passes on the events of the run after the answer. */
static void
subscribe(struct waiting_tag *w, const char *run_id, json_t *answer)
{
	struct control_peer peer = control_request_peer(w->request);
	struct bufferevent *to = control_hand_over(w->request, answer);
	int r;

	if (to == NULL)
		return;		/* it has disconnected */
	r = agent_subscribe(w->daemon->agent, run_id, w->pid, peer.uid, w->user, to);
	if (r < 0)
		log_fields(LOG_LEVEL_WARNING, "run.subscribe", LOG_FIELDS(LOG_TEXT("run", run_id)),
		    "its events are not passed on: %s", strerror(-r));
}

/*
 * What the ids of runs end with that this client names: its uid, so that it can name no run of another user, an engine
 * or a scheduler; "" for those who may attribute any process.
 */
static void
run_suffix(const struct control_peer *peer, char ret[RUN_SUFFIX_SIZE])
{
	ret[0] = '\0';
	if (peer->access < CONTROL_ADMIN)
		snprintf(ret, RUN_SUFFIX_SIZE, ".u%u", peer->uid);
}

static bool
has_suffix(const char *run_id, const char *suffix)
{
	size_t len = strlen(run_id), n = strlen(suffix);

	return len >= n && strcmp(run_id + len - n, suffix) == 0;
}

/* Returns whether a process is in a run that others made: root by hand, or an engine or job of another user. */
static bool
is_of_others(const struct belongings *of, const void *arg)
{
	const struct control_peer *peer = arg;
	char suffix[RUN_SUFFIX_SIZE];

	run_suffix(peer, suffix);
	if (of->run_id == NULL || suffix[0] == '\0')
		return false;
	if (of->is_by_hand)
		return !has_suffix(of->run_id, suffix);
	return !of->run_uid.known || of->run_uid.value != peer->uid;
}

/* Returns the user behind a client, of whom the kernel reported this process: in a user namespace it is its owner. */
static uint32_t
user_of(const struct control_peer *peer, const struct belongings *of)
{
	return of->uid.known && of->uid.value == peer->uid ? of->user : peer->uid;
}

/*
 * A client without all rights has processes of its own user attributed alone, which run as no other and can become
 * none; and it has the events of its own child passed on, below which nothing runs yet. The kernel reported all of that
 * of one process: no other one can have taken its pid meanwhile.
 */
static int
check_process(struct waiting_tag *w)
{
	struct control_peer peer = control_request_peer(w->request);
	struct surroundings s;

	if (!correlator_surroundings(agent_correlator(w->daemon->agent), w->pid, &s))
		return -ESRCH;
	if (peer.access < CONTROL_ADMIN && (!s.of.uid.known || s.of.uid.value != peer.uid))
		return -EACCES;
	if (is_of_others(&s.of, &peer))
		return -EBUSY;
	if (!w->is_subscription)
		return 0;
	if (s.ppid != (uint32_t)peer.pid)
		return -EPERM;
	if (!s.is_forked && peer.access < CONTROL_ADMIN)
		return -EALREADY;
	if (peer.access < CONTROL_ADMIN && correlator_has_descendants(agent_correlator(w->daemon->agent), w->pid))
		return -ECHILD;
	w->user = user_of(&peer, &s.of);
	return agent_may_subscribe(w->daemon->agent, w->user) ? 0 : -EAGAIN;
}

static int
try_tag(struct waiting_tag *w, const struct tag *tag)
{
	int r = check_process(w);

	return r < 0 ? r : correlator_tag(agent_correlator(w->daemon->agent), w->pid, tag, clock_ns(CLOCK_BOOTTIME));
}

/* Returns why a process was not tagged, as a format for its pid. */
static const char *
reason(int error)
{
	switch (error) {
	case -ESRCH:
		return "no process with the pid %u is followed";
	case -EPERM:
		return "the process %u is no child of the one that asks for its events";
	case -EACCES:
		return "the process %u runs, or may run, as another user than the one who asks";
	case -EALREADY:
		return "the process %u has called exec already";
	case -ECHILD:
		return "the process %u has children already";
	case -EBUSY:
		return IN_OTHERS;
	case -EINVAL:
		return "the run id for %u is too long";
	case -EAGAIN:
		return "too many runs of this user, or of all, have their events passed on: those of %u are not";
	case -ENOSPC:
		return "there are too many runs to add one for %u";
	default:
		return "no memory to tag %u";
	}
}

static void
answer_tag(struct waiting_tag *w, const struct tag *tag, int n)
{
	struct control_peer peer = control_request_peer(w->request);
	char message[256];
	json_t *answer;

	if (n < 0) {
		control_answer_error(w->request, reason(n), w->pid);
		return;
	}
	log_fields(LOG_LEVEL_INFO, "run.tagged", LOG_FIELDS(LOG_U64("pid", w->pid), LOG_TEXT("run", tag->run_id),
	    LOG_U64("by_uid", peer.uid)), "%d process%s", n, n == 1 ? "" : "es");
	snprintf(message, sizeof(message), "%d process%s in run %s from now on", n, n == 1 ? " is" : "es are", tag->run_id);
	answer = json_pack("{ss si}", "message", message, "processes", n);
	if (w->is_subscription)
		subscribe(w, tag->run_id, answer);
	else
		control_answer(w->request, answer);
}

static void
forget_tag(struct waiting_tag *w)
{
	DL_DELETE(w->daemon->tags, w);
	event_free(w->again);
	json_decref(w->args);
	free(w->run_id);
	free(w);
}

static void
on_tag(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval later = { 0, TAG_RETRY_MS * 1000 };
	struct waiting_tag *w = arg;
	struct daemon *d = w->daemon;
	const struct control_peer peer = control_request_peer(w->request);
	struct tag tag = {
		.run_id = w->run_id,
		.pipeline = json_string_value(json_object_get(w->args, "pipeline")),
		.task = json_string_value(json_object_get(w->args, "task")),
		.sample = json_string_value(json_object_get(w->args, "sample")),
		.source = w->is_subscription || json_is_true(json_object_get(w->args, "is_run")) ? "sluice run" : "sluice ctl tag",
		.leaves_out = is_of_others,
		.arg = &peer,
	};
	int n;

	(void)fd;
	(void)what;
	catch_up(d, w->request);
	n = try_tag(w, &tag);
	if ((n == -ESRCH || n == -EACCES) && w->tries == 0) {
		/* A child that has not called exec has no event, and may be another user's now. */
		agent_meet_all(d->agent);
		n = try_tag(w, &tag);
	}
	if (n == -ESRCH && ++w->tries < TAG_TRIES && evtimer_add(w->again, &later) == 0)
		return;
	answer_tag(w, &tag, n);
	forget_tag(w);
}

/* Returns the id of the run that the client names, which the caller frees; NULL: no memory. */
static char *
own_run_id(const struct control_peer *peer, const char *named)
{
	char suffix[RUN_SUFFIX_SIZE], *id;

	run_suffix(peer, suffix);
	return asprintf(&id, "%s%s", named, has_suffix(named, suffix) ? "" : suffix) >= 0 ? id : NULL;
}

static void
begin(struct daemon *d, struct control_request *req, const json_t *args, uint32_t pid, bool is_subscription)
{
	struct waiting_tag *w = calloc(1, sizeof(*w));
	struct control_peer peer = control_request_peer(req);

	if (w != NULL) {
		w->again = evtimer_new(d->base, on_tag, w);
		w->args = json_deep_copy(args);
		w->run_id = own_run_id(&peer, json_string_value(json_object_get(args, "run")));
	}
	if (w == NULL || w->again == NULL || w->args == NULL || w->run_id == NULL) {
		if (w != NULL && w->again != NULL)
			event_free(w->again);
		if (w != NULL)
			json_decref(w->args);
		if (w != NULL)
			free(w->run_id);
		free(w);
		control_answer_error(req, "out of memory");
		return;
	}
	w->daemon = d;
	w->request = req;
	w->pid = pid;
	w->is_subscription = is_subscription;
	DL_APPEND(d->tags, w);
	on_tag(-1, 0, w);
}

static bool
has_run(const json_t *args)
{
	const char *run = json_string_value(json_object_get(args, "run"));

	return run != NULL && run[0] != '\0';
}

/* Returns whether a process is one of the client's user. One that the user may not inspect belongs to root in /proc. */
static bool
is_own(const struct control_request *req, uint32_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return stat(path, &st) == 0 && st.st_uid == control_request_peer(req).uid;
}

void
daemon_on_tag_request(struct control_request *req, const json_t *args, void *arg)
{
	uint32_t pid;

	if (!daemon_get_pid(args, &pid) || !has_run(args))
		control_answer_error(req,
		    "tag takes --pid PID and --run RUN, and optionally --pipeline P, --task T, --sample S");
	else if (is_own(req, pid) || control_permits(req, CONTROL_ADMIN, "tag a process of another user"))
		begin(arg, req, args, pid, false);
}

/*
 * Without a run the client asks, before it starts COMMAND, whether its events could be passed on. Its own pid differs
 * from the one that the kernel reports if it is in another pid namespace: then the pids of its children do, too.
 */
static void
answer_offer(struct daemon *d, struct control_request *req, uint32_t pid)
{
	struct control_peer peer = control_request_peer(req);
	char suffix[RUN_SUFFIX_SIZE];
	struct surroundings s;

	run_suffix(&peer, suffix);
	catch_up(d, req);
	if (pid != (uint32_t)peer.pid)
		control_answer_error(req, "the process %d is in another pid namespace than the agent", (int)peer.pid);
	else if (d->is_stopping || !correlator_surroundings(agent_correlator(d->agent), pid, &s))
		control_answer_error(req, "the agent does not follow the process %u", pid);
	else if (is_of_others(&s.of, &peer))
		control_answer_error(req, IN_OTHERS, pid);
	else if (!agent_may_subscribe(d->agent, user_of(&peer, &s.of)))
		control_answer_error(req, "too many runs of this user, or of all, have their events passed on");
	else
		control_answer(req, json_pack("{ss ss}", "version", SLUICE_VERSION, "run_suffix", suffix));
}

void
daemon_on_subscribe_request(struct control_request *req, const json_t *args, void *arg)
{
	const char *version = json_string_value(json_object_get(args, "version"));
	uint32_t pid;

	if (version == NULL || strcmp(version, SLUICE_VERSION) != 0)
		control_answer_error(req, "the agent is of version " SLUICE_VERSION ", and passes events on to the same only");
	else if (!daemon_get_pid(args, &pid))
		control_answer_error(req, "subscribe takes the pid of a process, and the run that begins with it");
	else if (has_run(args))
		begin(arg, req, args, pid, true);
	else
		answer_offer(arg, req, pid);
}

void
daemon_free_tags(struct daemon *d)
{
	while (d->tags != NULL) {
		control_answer_error(d->tags->request, "the agent stops");
		forget_tag(d->tags);
	}
}
