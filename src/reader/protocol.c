/*
 * SPDX-License-Identifier: Apache-2.0
 * protocol: encodes and checks the messages between the agent and a reader.
 */
#include "reader/protocol.h"

#include <errno.h>
#include <string.h>

#define ERRNO_MAX 4095

/* Returns the most bytes that a text may have. */
static size_t
text_max(int text)
{
	return text == READER_BYTES ? EVENT_ARGV_MAX : PATH_MAX;
}

size_t
reader_answer_encode(const struct reader_answer *a, void *to)
{
	struct reader_head head = { .id = a->id, .error = a->error, .start_ticks = a->start_ticks };
	char *at = (char *)to + sizeof(head);

	if (a->is_file && a->error == 0) {
		head.is_file = 1;
		head.size = a->file.size;
		head.changed_s = a->file.changed_s;
	}
	for (int i = 0; i < READER_TEXTS && a->error == 0; i++) {
		if (a->text[i].at == NULL || a->text[i].len > text_max(i))
			continue;
		head.known |= 1u << i;
		head.len[i] = (uint32_t)a->text[i].len;
		memcpy(at, a->text[i].at, a->text[i].len);
		at += a->text[i].len;
		*at++ = '\0';
	}
	memcpy(to, &head, sizeof(head));
	return (size_t)(at - (char *)to);
}

/* Returns whether a text is as it must be, with its NUL behind it. */
static bool
is_text(int text, const char *at, size_t len)
{
	return at[len] == '\0' && (text == READER_BYTES || (at[0] == '/' && strlen(at) == len));
}

/* Returns whether the head has facts about a file, or none at all. */
static bool
is_file_head(const struct reader_head *h)
{
	return h->pad == 0 && (h->is_file == 1 || (h->is_file == 0 && h->size == 0 && h->changed_s == 0));
}

int
reader_answer_decode(const void *data, size_t len, struct reader_answer *ret)
{
	struct reader_answer a = { 0 };
	const char *at = (const char *)data + sizeof(struct reader_head);
	struct reader_head head;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	len -= sizeof(head);
	if (head.error > 0 || head.error < -ERRNO_MAX || head.known >> READER_TEXTS != 0 ||
	    (head.error != 0 && (head.known != 0 || head.is_file != 0)) || !is_file_head(&head))
		return -EBADMSG;
	a.id = head.id;
	a.error = head.error;
	a.start_ticks = head.start_ticks;
	a.is_file = head.is_file != 0;
	a.file = (struct reader_file_facts){ head.size, head.changed_s };
	for (int i = 0; i < READER_TEXTS; i++) {
		if ((head.known & 1u << i) == 0) {
			if (head.len[i] != 0)
				return -EBADMSG;
			continue;
		}
		if (head.len[i] > text_max(i) || len < head.len[i] + (size_t)1 || !is_text(i, at, head.len[i]))
			return -EBADMSG;
		a.text[i].at = at;
		a.text[i].len = head.len[i];
		at += head.len[i] + 1;
		len -= head.len[i] + 1;
	}
	if (len != 0)
		return -EBADMSG;
	*ret = a;
	return 0;
}

struct proc_texts
reader_answer_texts(const struct reader_answer *a)
{
	return (struct proc_texts){
		.start_ticks = a->start_ticks,
		.cmdline = a->text[READER_BYTES].at,
		.cmdline_len = a->text[READER_BYTES].len,
		.exe = a->text[READER_EXE].at,
		.cwd = a->text[READER_CWD].at,
		.cgroup = { a->text[READER_CGROUP_V1].at, a->text[READER_CGROUP_V2].at },
	};
}

static bool
has_path(uint32_t kind)
{
	return kind == READER_FILE || kind == READER_FOLDER;
}

size_t
reader_request_len(const struct reader_request *q)
{
	size_t len = has_path(q->kind) ? strnlen(q->path, sizeof(q->path)) + 1 : 0;

	return len <= sizeof(q->path) ? READER_REQUEST_HEAD + len : 0;
}

int
reader_request_check(const struct reader_request *q, size_t len)
{
	if (len < READER_REQUEST_HEAD || len > sizeof(*q) || q->limit > READER_FILE_MAX || q->is_resolved > 1)
		return -EBADMSG;
	switch (q->kind) {
	case READER_PROCESS:
	case READER_TITLE:
		return len == READER_REQUEST_HEAD && q->pid != 0 ? 0 : -EBADMSG;
	case READER_FILE:
	case READER_FOLDER:
		return q->offset <= INT64_MAX && len > READER_REQUEST_HEAD &&
		    q->path[len - READER_REQUEST_HEAD - 1] == '\0' && reader_request_len(q) == len ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}
