/*
 * SPDX-License-Identifier: Apache-2.0
 * decode: checks and unpacks the records of bpf/ (bpf/event.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/decode.h"
#include "event.h"

#define ARGS_MAX (EVENT_ARGV_MAX + 1)	/* each argument has at least its NUL */
#define PATH_SPACE (2 * EVENT_PATH_MAX)
#define SIGNAL_MAX 64

struct decoder {
	struct decode_ops ops;
	void *arg;
	uint64_t page_bytes;
	size_t argv_max;
	const void *record;		/* the caller's, during decode() */
	size_t record_len;
	char exe[PATH_SPACE];
	char cwd[PATH_SPACE];
	char args[EVENT_ARGV_MAX + 1];
	const char *argv[ARGS_MAX];
	size_t argv_len[ARGS_MAX];
	char env[EVENT_ENV_MAX];
	struct exec_variable variables[EVENT_ENV_NAMES];
};

int
decoder_new(const struct decode_ops *ops, void *arg, struct decoder **ret)
{
	struct decoder *d = calloc(1, sizeof(*d));
	long page = sysconf(_SC_PAGESIZE);

	if (d == NULL)
		return -ENOMEM;
	d->ops = *ops;
	d->arg = arg;
	d->argv_max = EVENT_ARGV_MAX;
	d->page_bytes = page > 0 ? (uint64_t)page : 4096;
	*ret = d;
	return 0;
}

void
decoder_free(struct decoder *d)
{
	free(d);
}

void
decoder_set_argv_max(struct decoder *d, size_t bytes)
{
	d->argv_max = bytes < EVENT_ARGV_MAX ? bytes : EVENT_ARGV_MAX;
}

/*
 * Joins components, leaf first, each with its NUL, to "/a/b/leaf". The result has len + 1 bytes at most, since each
 * NUL becomes a slash. 0, or -EBADMSG if the last NUL is missing or out is too small.
 */
static int
path_join(const char *components, size_t len, char *out, size_t out_size)
{
	char *at;

	if (len + 2 > out_size)
		return -EBADMSG;
	if (len == 0) {
		memcpy(out, "/", 2);
		return 0;
	}
	if (components[len - 1] != '\0')
		return -EBADMSG;
	at = out + len;		/* filled from the end */
	*at = '\0';
	for (size_t begin = 0; begin < len;) {
		size_t n = strlen(components + begin);

		at -= n;
		memcpy(at, components + begin, n);
		*--at = '/';
		begin += n + 1;
	}
	return 0;
}

static void
counters_decode(const struct decoder *d, const struct event_counters *in, uint32_t flags,
    struct counters *out)
{
#define COUNTER(name) out->name = in->name;
#define COUNTER_PAGES(name, entry) out->name##_bytes = in->name * d->page_bytes;
#include "resources.h"
	out->threads = in->threads;
	out->threads_peak = in->threads_peak;
	out->has_peak = flags & EVENT_HAS_PEAK;
	out->has_block_io = flags & EVENT_HAS_BLOCK_IO;
	out->has_thrashing = flags & EVENT_HAS_THRASHING;
	out->has_compact = flags & EVENT_HAS_COMPACT;
	out->has_odd_block_io = flags & EVENT_ODD_BLOCK_IO;
	out->is_complete = !(flags & EVENT_THREADS_CUT);
}

static struct program_key
key_decode(const struct event_id *id)
{
	return (struct program_key){ .start_ns = id->start_ns, .pid = id->pid, .index = id->index };
}

/* Splits len bytes at their NULs, of which a truncated last argument has none. */
static size_t
argv_decode(struct decoder *d, const char *bytes, size_t len, size_t argc)
{
	size_t n = 0;

	memcpy(d->args, bytes, len);
	d->args[len] = '\0';
	for (size_t at = 0; at < len && n < argc && n < ARGS_MAX; n++) {
		d->argv[n] = d->args + at;
		d->argv_len[n] = strlen(d->args + at);
		at += d->argv_len[n] + 1;
	}
	return n;
}

/* Splits "NAME=value" strings, each with its NUL. Returns their number, or -EBADMSG. */
static int
variables_decode(struct decoder *d, const char *bytes, size_t len)
{
	int n = 0;

	if (len > sizeof(d->env))
		return -EBADMSG;
	memcpy(d->env, bytes, len);
	for (size_t at = 0; at < len; n++) {
		char *name = d->env + at, *end = memchr(name, '\0', len - at), *equals;

		equals = end != NULL ? memchr(name, '=', (size_t)(end - name)) : NULL;
		if (n == EVENT_ENV_NAMES || equals == NULL || equals == name ||
		    equals - name > EVENT_ENV_NAME_MAX || end - equals - 1 > EVENT_ENV_VALUE_MAX)
			return -EBADMSG;
		*equals = '\0';
		d->variables[n] = (struct exec_variable){ name, equals + 1 };
		at += (size_t)(end - name) + 1;
	}
	return n;
}

static int
decode_exec(struct decoder *d, const void *record, size_t len, enum state_kind kind)
{
	const struct event_exec *ev = record;
	const char *text = (const char *)(ev + 1);
	size_t text_len = len - sizeof(*ev), argv_len;
	struct exec_event s = { 0 };
	int n;

	(void)kind;
	if (ev->exe_len > EVENT_PATH_MAX || ev->cwd_len > EVENT_PATH_MAX ||
	    ev->argv_len > EVENT_ARGV_MAX || ev->env_len > EVENT_ENV_MAX ||
	    (size_t)ev->exe_len + ev->cwd_len + ev->argv_len + ev->env_len != text_len || ev->self.pid == 0)
		return -EBADMSG;
	if (memchr(ev->comm, '\0', sizeof(ev->comm)) == NULL)
		return -EBADMSG;
	if (path_join(text, ev->exe_len, d->exe, sizeof(d->exe)) < 0 ||
	    path_join(text + ev->exe_len, ev->cwd_len, d->cwd, sizeof(d->cwd)) < 0)
		return -EBADMSG;
	n = variables_decode(d, text + text_len - ev->env_len, ev->env_len);
	if (n < 0)
		return n;
	s.variables = d->variables;
	s.n_variables = (size_t)n;
	s.time_ns = ev->head.time_ns;
	s.self = key_decode(&ev->self);
	s.parent = key_decode(&ev->parent);
	s.anchor = key_decode(&ev->anchor);
	s.ppid = ev->ppid;
	s.context = (struct program_context){ ev->uid, ev->gid, ev->pid_ns, ev->mnt_ns, ev->net_ns,
		ev->cgroup_v2, ev->cgroup_v1, ev->user_uid, (ev->flags & EVENT_EXE_OF_ROOT) != 0,
		(ev->flags & EVENT_ELEVATED) != 0 };
	memcpy(s.comm, ev->comm, sizeof(ev->comm));
	/* A path without components is "/", which no executable is; a truncated path is unknown. */
	s.exe = ev->exe_len > 0 && !(ev->flags & EVENT_EXE_CUT) ? d->exe : NULL;
	s.cwd = ev->flags & EVENT_CWD_CUT ? NULL : d->cwd;
	argv_len = ev->argv_len < d->argv_max ? ev->argv_len : d->argv_max;
	s.argc = argv_decode(d, text + ev->exe_len + ev->cwd_len, argv_len, ev->argc);
	if (s.argc > 0 || ev->argc == 0) {
		s.argv = d->argv;
		s.argv_len = d->argv_len;
	}
	s.argv_truncated = ev->flags & EVENT_ARGV_CUT || s.argc < ev->argc || argv_len < ev->argv_len;
	s.has_replaced = ev->flags & EVENT_REPLACED;
	s.is_excluded = ev->flags & EVENT_EXCLUDED;
	if (s.has_replaced)
		counters_decode(d, &ev->prev, ev->flags, &s.replaced);
	d->ops.exec(&s, d->arg);
	/* The correlator has redacted what it keeps; no copy of the originals may remain. */
	explicit_bzero(d->args, argv_len);
	explicit_bzero(d->env, ev->env_len);
	return 0;
}

/* Decodes the paths of a discovered process. Returns 0 or -EBADMSG. */
static int
found_decode(struct decoder *d, const struct event_found *ev, size_t len, struct state_event *s)
{
	const char *text = (const char *)(ev + 1);

	if (ev->exe_len > EVENT_PATH_MAX || ev->cwd_len > EVENT_PATH_MAX ||
	    sizeof(*ev) + ((ev->exe_len + ev->cwd_len + 7) & ~7U) != len ||
	    path_join(text, ev->exe_len, d->exe, sizeof(d->exe)) < 0 ||
	    path_join(text + ev->exe_len, ev->cwd_len, d->cwd, sizeof(d->cwd)) < 0)
		return -EBADMSG;
	s->exe = ev->exe_len > 0 && !(ev->state.flags & EVENT_EXE_CUT) ? d->exe : NULL;
	s->cwd = ev->state.flags & EVENT_CWD_CUT ? NULL : d->cwd;
	return 0;
}

static int
decode_state(struct decoder *d, const void *record, size_t len, enum state_kind kind)
{
	const struct event_state *ev = record;
	struct state_event s = { 0 };

	if ((len != sizeof(*ev) && kind != STATE_DISCOVERED) || ev->self.pid == 0 ||
	    memchr(ev->comm, '\0', sizeof(ev->comm)) == NULL)
		return -EBADMSG;
	if (kind == STATE_DISCOVERED && found_decode(d, record, len, &s) < 0)
		return -EBADMSG;
	s.kind = kind == STATE_LIVE && ev->flags & EVENT_ENDED ? STATE_ZOMBIE : kind;
	s.time_ns = ev->head.time_ns;
	s.self = key_decode(&ev->self);
	s.parent = key_decode(&ev->parent);
	s.anchor = key_decode(&ev->anchor);
	s.program_start_ns = ev->program_start_ns;
	s.end_ns = ev->end_ns;
	s.status = ev->status;
	s.ppid = ev->ppid;
	s.entry = ev->key;
	s.has_execed = ev->flags & EVENT_EXECED;
	s.has_context = !(ev->flags & EVENT_NO_CREDENTIALS);
	s.oom_killed = ev->flags & EVENT_OOM;
	s.is_excluded = ev->flags & EVENT_EXCLUDED;
	s.is_canary = ev->flags & EVENT_CANARY;
	s.is_on_cpu = ev->flags & EVENT_ON_CPU;
	s.is_torn = ev->flags & EVENT_TORN;
	s.context = (struct program_context){ ev->uid, ev->gid, ev->pid_ns, ev->mnt_ns, ev->net_ns,
		ev->cgroup_v2, ev->cgroup_v1, ev->user_uid, (ev->flags & EVENT_EXE_OF_ROOT) != 0,
		(ev->flags & EVENT_ELEVATED) != 0 };
	memcpy(s.comm, ev->comm, sizeof(ev->comm));
	counters_decode(d, &ev->counters, ev->flags, &s.counters);
	s.counters.is_reaped = s.kind == STATE_EXIT;
	d->ops.state(&s, d->arg);
	return 0;
}

static int
decode_cgroup(struct decoder *d, const void *record, size_t len, enum state_kind kind)
{
	const struct event_cgroup *ev = record;
	struct cgroup_event s = { .id = ev->id, .is_v2 = ev->is_v2 };

	(void)kind;
	if (ev->path_len > EVENT_PATH_MAX || ev->path_len != len - sizeof(*ev) ||
	    path_join((const char *)(ev + 1), ev->path_len, d->exe, sizeof(d->exe)) < 0)
		return -EBADMSG;
	s.path = d->exe;
	d->ops.cgroup(&s, d->arg);
	return 0;
}

static int
decode_signal(struct decoder *d, const void *record, size_t len, enum state_kind kind)
{
	const struct event_signal *ev = record;
	struct signal_event s = { .time_ns = ev->head.time_ns, .self = key_decode(&ev->self), .signal = ev->signal,
		.is_of_program = ev->is_of_program != 0, .sender = key_decode(&ev->sender),
		.anchor = key_decode(&ev->anchor),
		.sender_pid = ev->sender_pid, .sender_uid = ev->sender_uid };

	(void)kind;
	if (len != sizeof(*ev) || ev->self.pid == 0 || ev->signal == 0 || ev->signal > SIGNAL_MAX ||
	    memchr(ev->comm, '\0', sizeof(ev->comm)) == NULL)
		return -EBADMSG;
	memcpy(s.comm, ev->comm, sizeof(ev->comm));
	d->ops.signal(&s, d->arg);
	return 0;
}

/* By enum event_kind: the least size of a record, its decoder, and the kind of a state. */
static const struct {
	size_t least;
	int (*decode)(struct decoder *d, const void *record, size_t len, enum state_kind kind);
	enum state_kind state;
} kinds[] = {
	[EVENT_EXEC] = { sizeof(struct event_exec), decode_exec },
	[EVENT_CGROUP] = { sizeof(struct event_cgroup), decode_cgroup },
	[EVENT_EXIT] = { sizeof(struct event_state), decode_state, STATE_EXIT },
	[EVENT_SNAPSHOT] = { sizeof(struct event_state), decode_state, STATE_LIVE },
	[EVENT_ALIVE] = { sizeof(struct event_state), decode_state, STATE_UNTRACKED },
	[EVENT_DISCOVERED] = { sizeof(struct event_found), decode_state, STATE_DISCOVERED },
	[EVENT_SIGNAL] = { sizeof(struct event_signal), decode_signal },
	[EVENT_STALE] = { sizeof(struct event_state), decode_state, STATE_STALE },
};

int
decode(struct decoder *d, const void *data, size_t len)
{
	const struct event_head *head = data;

	if (len < sizeof(*head) || (uintptr_t)data % 8 != 0 || head->version != EVENT_VERSION ||
	    head->size != len)
		return -EBADMSG;
	if (head->kind >= sizeof(kinds) / sizeof(kinds[0]) || kinds[head->kind].decode == NULL ||
	    len < kinds[head->kind].least)
		return -EBADMSG;
	d->record = data;
	d->record_len = len;
	return kinds[head->kind].decode(d, data, len, kinds[head->kind].state);
}

const void *
decoder_record(const struct decoder *d, size_t *ret_len)
{
	*ret_len = d->record_len;
	return d->record;
}

size_t
decode_stream(struct decoder *d, const void *data, size_t len, uint64_t *ret_malformed)
{
	size_t used = 0;

	if ((uintptr_t)data % 8 != 0) {
		++*ret_malformed;
		return len;
	}
	while (len - used >= sizeof(struct event_head)) {
		const struct event_head *head = (const void *)((const char *)data + used);

		if (head->version != EVENT_VERSION || head->size < sizeof(*head) || head->size % 8 != 0) {
			++*ret_malformed;
			return len;
		}
		if (head->size > len - used)
			break;
		if (decode(d, head, head->size) < 0)
			++*ret_malformed;
		used += head->size;
	}
	return used;
}
