/*
 * SPDX-License-Identifier: Apache-2.0
 * http_kit: a client of the server of registry_kit.h, and the last answer. A test also includes faults.h
 * and timers.h itself, for the linker (CMakeLists.txt).
 */
#ifndef SLUICE_TESTS_UNIT_HTTP_KIT_H
#define SLUICE_TESTS_UNIT_HTTP_KIT_H

#include <errno.h>

#include "http/client.h"
#include "registry_kit.h"

static struct {
	unsigned n;
	int code, error;
	long status;
	int64_t retry_after_s;
	size_t len;
	char body[64], detail[256];
	struct http_client *again;	/* to post by once more, from within */
} answer;

#define BODY_MAX (1024 * 1024)

static struct http_client_request question = { .body = "what?" };

static inline void
on_answer(const struct http_client_answer *a, void *arg)
{
	assert_ptr_equal(arg, &answer);
	answer.n++;
	answer.code = a->code;
	answer.error = a->error;
	answer.status = a->status;
	answer.retry_after_s = a->retry_after_s;
	answer.len = a->len;
	assert_int_equal(a->body == NULL, a->code != 0);
	snprintf(answer.body, sizeof(answer.body), "%.*s", (int)a->len, a->body != NULL ? a->body : "");
	snprintf(answer.detail, sizeof(answer.detail), "%s", a->detail != NULL ? a->detail : "");
	if (answer.again != NULL && answer.n < 3)
		assert_int_equal(http_client_send(answer.again, &question), 0);
}

static inline bool
is_answered(void)
{
	return answer.n > 0;
}

static inline struct http_client *
http_opens(uint32_t timeout_ms)
{
	struct http_client_options o = { .timeout_ms = timeout_ms, .body_max = BODY_MAX };
	struct http_client *h;

	memset(&answer, 0, sizeof(answer));
	question.url = url;
	assert_int_equal(http_client_open(base, &o, on_answer, &answer, &h), 0);
	return h;
}

static inline void
posts(struct http_client *h)
{
	answer.n = 0;
	assert_int_equal(http_client_send(h, &question), 0);
	assert_int_equal(http_client_send(h, &question), -EBUSY);
	assert_int_equal(answer.n, 0);		/* never from within */
	assert_true(wait_for(is_answered));
	assert_int_equal(answer.n, 1);
}

#endif
