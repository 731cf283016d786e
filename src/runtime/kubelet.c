/*
 * SPDX-License-Identifier: Apache-2.0
 * kubelet: the names of the last answer, what was wanted of it, and when the next one is due.
 *
 * A container is in the list some seconds after it has started: what is wanted and is not there is wanted again by the
 * caller, and unknown after KUBELET_TRIES answers. The root of a container may make control groups that look like those
 * of pods, as many as it likes: they cost what KUBELET_EACH_MS allows.
 */
#include "runtime/kubelet.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "http/client.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(e) ((e)->is_lost = true)
#include <uthash.h>

enum {
	HOST_SIZE = 256,
	URL_SIZE = 2 * HOST_SIZE,
	TOKEN_MAX = 16 * 1024,
	KEY_SIZE = 128,
	REST_FACTOR = 100,		/* of the time that an answer took on the loop */
	STATUS_OK = 200,
	STATUS_UNAUTHORIZED = 401,
	STATUS_FORBIDDEN = 403,
};

/* What was wanted and is not in the last answer. */
struct wanted {
	UT_hash_handle hh;
	bool is_lost;			/* not in the table */
	bool is_unknown;
	uint64_t since;			/* number of the last answer when it was wanted first */
	char key[KEY_SIZE];		/* "UID/ID" */
};

struct kubelet {
	struct http_client	*http;		/* owned */
	struct event		*due;		/* owned; the next request */
	kubelet_cb		 cb;
	void			*arg;		/* the caller's */
	char			 url[URL_SIZE];
	char			 connect_to[URL_SIZE + HOST_SIZE];	/* "": to the URL's host */
	char			*ca_file;	/* owned, as the next */
	char			*token_file;
	struct file_text	 token;		/* while a request is in flight */
	struct pods		*pods;		/* owned; of the last valid answer */
	struct pods_reader	*reader;	/* owned; of the answer in flight */
	int			 reader_error;
	uint64_t		 spent_ns;	/* on the loop, for the answer in flight */
	uint64_t		 not_before_ns;
	uint64_t		 answers;
	bool			 is_asking;
	bool			 is_wanted;	/* something is unknown since the last request began */
	struct wanted		*wanted;	/* owned; oldest first */
	int			 state;
	char			 error[512];
	struct kubelet_counts	 counts;
};

static void ask(struct kubelet *k);

/* Never ends the request: what is no list may be an error, whose status is known at its end. */
static bool
on_part(const char *data, size_t len, void *arg)
{
	struct kubelet *k = arg;
	uint64_t before = clock_ns(CLOCK_MONOTONIC);

	if (k->reader_error < 0)
		return true;
	if (k->reader == NULL)
		k->reader = pods_reader_new();
	k->reader_error = k->reader != NULL ? pods_reader_add(k->reader, data, len) : -ENOMEM;
	k->spent_ns += clock_ns(CLOCK_MONOTONIC) - before;
	return true;
}

/* Returns the result of an answer, with its names in *ret if it is 0; writes the error. */
static int
judge(struct kubelet *k, const struct http_client_answer *a, struct pods **ret)
{
	int r = k->reader_error;

	if (a->code == 0 && a->status != STATUS_OK) {
		bool is_refused = a->status == STATUS_UNAUTHORIZED || a->status == STATUS_FORBIDDEN;

		snprintf(k->error, sizeof(k->error), is_refused ? "it refuses the request (status %ld): its account needs "
		    "the verb get on nodes/pods, or before Kubernetes 1.33 on nodes/proxy" : "it answers with status %ld",
		    a->status);
		return is_refused ? -EACCES : -EBADMSG;
	}
	if (r == 0 && a->code == 0)
		r = k->reader != NULL ? pods_reader_end(k->reader, ret) : -EBADMSG;
	if (r == 0 && a->code == 0)
		return 0;
	if (r == 0) {
		snprintf(k->error, sizeof(k->error), "%s", a->detail);
		return a->error;
	}
	snprintf(k->error, sizeof(k->error), "%s", r == -ENOMEM ? "no memory for its answer" : "its answer is no list of pods");
	return r;
}

static void
forget_token(struct kubelet *k)
{
	if (k->token.text != NULL)
		explicit_bzero(k->token.text, k->token.cap);
	file_text_done(&k->token);
}

/* Sets when the next request may begin. */
static void
rest(struct kubelet *k, uint64_t at_least_ms)
{
	uint64_t ns = at_least_ms * 1000000;

	if (k->spent_ns * REST_FACTOR > ns)
		ns = k->spent_ns * REST_FACTOR;
	k->not_before_ns = clock_ns(CLOCK_MONOTONIC) + ns;
}

static void
fail(struct kubelet *k, int error)
{
	k->state = error;
	k->counts.failed++;
	k->is_wanted = true;
	rest(k, KUBELET_SKIP_MS);
}

static void
on_answer(const struct http_client_answer *a, void *arg)
{
	struct kubelet *k = arg;
	struct pods *pods = NULL;
	int r = judge(k, a, &pods);

	k->is_asking = false;
	forget_token(k);
	pods_reader_free(k->reader);
	k->reader = NULL;
	if (r < 0) {
		fail(k, r);
		ask(k);
		return;
	}
	pods_free(k->pods);
	k->pods = pods;
	k->state = 0;
	k->error[0] = '\0';
	k->answers++;
	k->counts.pods = pods_count(pods);
	k->counts.left_out = pods_left_out(pods);
	rest(k, KUBELET_EACH_MS);
	k->is_wanted = false;		/* what still is will be wanted again now */
	if (k->cb != NULL)
		k->cb(k->arg);
	ask(k);
}

/* Reads the token. 0 or a negative errno, with the error written. */
static int
read_token(struct kubelet *k)
{
	int fd = open(k->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), r = fd < 0 ? -errno : 0;
	struct stat st;

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0)
		r = S_ISREG(st.st_mode) ? file_read_fd(fd, &k->token, TOKEN_MAX) : -EINVAL;
	if (fd >= 0)
		close(fd);
	while (r == 0 && k->token.len > 0 && strchr("\r\n", k->token.text[k->token.len - 1]) != NULL)
		k->token.text[--k->token.len] = '\0';
	if (r < 0) {
		snprintf(k->error, sizeof(k->error), "the token file %s cannot be read: %s", k->token_file,
		    r == -EINVAL ? "it is no regular file" : r == -EFBIG ? "it is longer than a token" : strerror(-r));
		return r;
	}
	for (size_t i = 0; i < k->token.len; i++)
		if (!isgraph((unsigned char)k->token.text[i]))
			r = -EBADMSG;
	if (k->token.len > 0 && r == 0)
		return 0;
	snprintf(k->error, sizeof(k->error), "the token file %s holds no token: expected one line without blanks",
	    k->token_file);
	return -EBADMSG;
}

static void
send_request(struct kubelet *k)
{
	struct http_client_request q = { .url = k->url, .is_direct = true };
	int r = k->token_file != NULL ? read_token(k) : 0;

	k->is_wanted = false;
	k->spent_ns = 0;
	k->reader_error = 0;
	q.token = k->token_file != NULL ? k->token.text : NULL;
	q.connect_to = k->connect_to[0] != '\0' ? k->connect_to : NULL;
	if (r == 0) {
		r = http_client_send(k->http, &q);
		if (r < 0)
			snprintf(k->error, sizeof(k->error), "%s", strerror(-r));
	}
	if (r < 0) {
		forget_token(k);
		fail(k, r);
		return;
	}
	k->is_asking = true;
	k->counts.requests++;
}

static void
on_due(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	ask(arg);
}

/* Requests the list if something is wanted, now or as soon as it may. */
static void
ask(struct kubelet *k)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!k->is_asking && k->is_wanted && now >= k->not_before_ns)
		send_request(k);
	if (k->is_asking || !k->is_wanted || event_pending(k->due, EV_TIMEOUT, NULL))
		return;
	now = k->not_before_ns > now ? k->not_before_ns - now : 0;
	event_add(k->due, &(struct timeval){ .tv_sec = (time_t)(now / 1000000000),
	    .tv_usec = (suseconds_t)(now % 1000000000 / 1000) + 1 });
}

/* Takes a URL apart: its host with brackets around IPv6, and its port. False: it is none. */
static bool
split(const char *url, bool *ret_is_https, char host[HOST_SIZE], uint64_t *ret_port)
{
	const char *at = url, *end;
	size_t len;

	*ret_is_https = strncasecmp(url, "https://", 8) == 0;
	if (!*ret_is_https && strncasecmp(url, "http://", 7) != 0)
		return false;
	at += *ret_is_https ? 8 : 7;
	end = at[0] == '[' ? strchr(at, ']') : at + strcspn(at, ":/");
	if (end == NULL)
		return false;
	len = (size_t)(end - at) + (at[0] == '[');
	if (len == 0 || len >= HOST_SIZE)
		return false;
	memcpy(host, at, len);
	host[len] = '\0';
	at += len;
	return at[0] == ':' && text_number(at + 1, UINT16_MAX, ret_port) && *ret_port > 0;
}

static bool
is_local(const char *host)
{
	return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
}

/* Sets the URL, and where to connect if its host is not the name in the certificate. */
static int
set_url(struct kubelet *k, const struct kubelet_options *o)
{
	char host[HOST_SIZE], own[HOST_SIZE] = "";
	const char *name = host;
	uint64_t port;
	bool is_https;

	if (!split(o->url, &is_https, host, &port))
		return -EINVAL;
	if (is_https && o->server_name != NULL) {
		name = o->server_name;
	} else if (is_https && is_local(host) && gethostname(own, sizeof(own) - 1) == 0 && own[0] != '\0') {
		for (char *c = own; *c != '\0'; c++)
			*c = (char)tolower((unsigned char)*c);
		name = own;
	}
	if (strlen(name) >= HOST_SIZE)
		return -EINVAL;
	snprintf(k->url, sizeof(k->url), "http%s://%s:%" PRIu64 "/pods", is_https ? "s" : "", name, port);
	if (name != host)
		snprintf(k->connect_to, sizeof(k->connect_to), "%s:%" PRIu64 ":%s:%" PRIu64, name, port, host, port);
	return 0;
}

int
kubelet_open(struct event_base *base, const struct kubelet_options *options, kubelet_cb cb, void *arg,
    struct kubelet **ret)
{
	struct kubelet *k = calloc(1, sizeof(*k));
	struct http_client_options o = { .timeout_ms = KUBELET_TIMEOUT_MS, .body_max = KUBELET_ANSWER_MAX,
		.part = on_part };
	int r = -ENOMEM;

	if (k == NULL)
		return -ENOMEM;
	k->cb = cb;
	k->arg = arg;
	k->state = KUBELET_NOT_ASKED;
	if ((options->ca_file != NULL && (k->ca_file = strdup(options->ca_file)) == NULL) ||
	    (options->token_file != NULL && (k->token_file = strdup(options->token_file)) == NULL))
		goto fail;
	r = set_url(k, options);
	if (r < 0)
		goto fail;
	r = -ENOMEM;
	o.ca_file = k->ca_file;
	k->due = evtimer_new(base, on_due, k);
	if (k->due == NULL || http_client_open(base, &o, on_answer, k, &k->http) < 0)
		goto fail;
	*ret = k;
	return 0;

fail:
	kubelet_close(k);
	return r;
}

void
kubelet_close(struct kubelet *k)
{
	struct wanted *w, *next;

	if (k == NULL)
		return;
	http_client_close(k->http);
	if (k->due != NULL)
		event_free(k->due);
	HASH_ITER(hh, k->wanted, w, next) {
		HASH_DEL(k->wanted, w);
		free(w);
	}
	forget_token(k);
	pods_reader_free(k->reader);
	pods_free(k->pods);
	free(k->ca_file);
	free(k->token_file);
	free(k);
}

static void
forget(struct kubelet *k, struct wanted *w)
{
	HASH_DEL(k->wanted, w);
	free(w);
}

/* Notes that something is wanted that the last answer does not have. */
static void
want(struct kubelet *k, const char *key)
{
	struct wanted *w;

	HASH_FIND_STR(k->wanted, key, w);
	if (w == NULL) {
		if (HASH_COUNT(k->wanted) >= KUBELET_KEPT)
			forget(k, k->wanted);
		w = calloc(1, sizeof(*w));
		if (w == NULL)
			return;
		w->since = k->answers;
		snprintf(w->key, sizeof(w->key), "%s", key);
		HASH_ADD_STR(k->wanted, key, w);
		if (w->is_lost) {
			free(w);
			return;
		}
	}
	if (w->is_unknown)
		return;
	if (k->answers - w->since >= KUBELET_TRIES) {
		w->is_unknown = true;
		k->counts.unknown++;
		return;
	}
	k->is_wanted = true;
	ask(k);
}

bool
kubelet_find(struct kubelet *k, const char *uid, const char *container, struct pod_names *ret)
{
	char key[KEY_SIZE];
	struct wanted *w;
	int r = pods_find(k->pods, uid, container, ret);

	if ((size_t)snprintf(key, sizeof(key), "%s/%s", uid, container) >= sizeof(key))
		return false;
	if (r < 2) {
		want(k, key);
		return false;
	}
	HASH_FIND_STR(k->wanted, key, w);
	if (w != NULL) {
		k->counts.named++;
		forget(k, w);
	}
	return true;
}

int
kubelet_state(const struct kubelet *k)
{
	return k->state;
}

const char *
kubelet_error(const struct kubelet *k)
{
	return k->error;
}

const struct kubelet_counts *
kubelet_counts(const struct kubelet *k)
{
	return &k->counts;
}
