/*
 * SPDX-License-Identifier: Apache-2.0
 * frames: checks frames and unpacks them.
 */
#include "collect/frames.h"

#include <errno.h>
#include <string.h>

#include "event.h"

/* COMMAND begins the run: its parent, the process that reads this, is not part of it. */
static void
cut_off_at(uint32_t pid, struct event_id *parent, struct event_id *anchor)
{
	if (parent->pid == pid)
		memset(parent, 0, sizeof(*parent));
	if (anchor->pid == pid)
		memset(anchor, 0, sizeof(*anchor));
}

static int
read_event(const struct frames *f, void *data, size_t size)
{
	struct event_head *head = data;
	struct event_state *state = data;
	struct event_exec *exec = data;

	if (size < sizeof(*head) || head->size > size || size - head->size >= 8)
		return -EBADMSG;
	if (head->kind == EVENT_EXEC && size >= sizeof(*exec))
		cut_off_at(f->own_pid, &exec->parent, &exec->anchor);
	else if (head->kind != EVENT_EXEC && size >= sizeof(*state))
		cut_off_at(f->own_pid, &state->parent, &state->anchor);
	return decode(f->decoder, data, head->size);
}

static int
read_cgroup(const struct frames *f, const void *data, size_t size)
{
	const struct subscription_cgroup *head = data;
	struct cgroup_event e = { .path = (const char *)(head + 1) };

	if (size <= sizeof(*head) || memchr(e.path, '\0', size - sizeof(*head)) == NULL)
		return -EBADMSG;
	e.id = head->id;
	e.is_v2 = head->is_v2 != 0;
	f->ops->cgroup(&e, f->arg);
	return 0;
}

static int
read_passed(const struct frames *f, const void *data, size_t size)
{
	if (size != sizeof(struct subscription_passed))
		return -EBADMSG;
	f->ops->passed(data, f->arg);
	return 0;
}

static int
read_count(const struct frames *f, void (*counted)(uint64_t n, void *arg), const void *data, size_t size)
{
	const struct subscription_count *count = data;

	if (size != sizeof(*count))
		return -EBADMSG;
	counted(count->n, f->arg);
	return 0;
}

static int
read_known(const struct frames *f, const void *data, size_t size)
{
	const struct subscription_known *known = data;

	if (size != sizeof(*known) || known->signal >= OPTIONAL_SIGNALS)
		return -EBADMSG;
	f->ops->known((enum optional_signal)known->signal, known->since_ns, f->arg);
	return 0;
}

/* Returns 0 or -EBADMSG. */
static int
read_frame(const struct frames *f, uint32_t kind, void *data, size_t size)
{
	switch (kind) {
	case SUBSCRIPTION_EVENT:
		return read_event(f, data, size);
	case SUBSCRIPTION_CGROUP:
		return read_cgroup(f, data, size);
	case SUBSCRIPTION_PASS:
		f->ops->pass(f->arg);
		return 0;
	case SUBSCRIPTION_SWEEP:
		f->ops->sweep(f->arg);
		return 0;
	case SUBSCRIPTION_PASSED:
		return read_passed(f, data, size);
	case SUBSCRIPTION_LOST:
		return read_count(f, f->ops->lost, data, size);
	case SUBSCRIPTION_WITHHELD:
		return read_count(f, f->ops->withheld, data, size);
	case SUBSCRIPTION_KNOWN:
		return read_known(f, data, size);
	case SUBSCRIPTION_SETTLED:
		return 0;
	default:
		return -EBADMSG;
	}
}

ssize_t
frames_read(const struct frames *f, void *data, size_t len, bool *ret_is_last)
{
	char *bytes = data;
	size_t at = 0;

	while (len - at >= sizeof(struct subscription_head)) {
		const struct subscription_head *head = (const void *)(bytes + at);

		if (head->size > SUBSCRIPTION_FRAME_MAX || head->size % 8 != 0)
			return -EBADMSG;
		if (head->size > len - at - sizeof(*head))
			break;
		at += sizeof(*head);
		if (read_frame(f, head->kind, bytes + at, head->size) < 0)
			return -EBADMSG;
		at += head->size;
		if (head->kind == SUBSCRIPTION_SETTLED) {
			*ret_is_last = true;
			break;
		}
	}
	return (ssize_t)at;
}
