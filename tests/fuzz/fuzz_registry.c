/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any answer of a registry yields an id in range, or an error of one line of UTF-8 without the secret. Any
 * cache file yields a cache within its limits that can be written and read again. The first line selects
 * the case: "cache", "url", or "<status> <l for lookup only> …".
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "registry/answer.h"
#include "registry/cache.h"
#include "room.h"

#define SECRET "hunter2"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char room[ROOM_SIZE];

static void
remove_room(void)
{
	rmdir(room);
}

static void
check_cache(const char *text, size_t len)
{
	static char path[ROOM_SIZE + 4];
	struct registry_cache *c, *again;
	char error[512];
	size_t n;

	if (room[0] == '\0') {
		room_new(room);
		atexit(remove_room);
		snprintf(path, sizeof(path), "%s/ids", room);
	}
	if (registry_cache_open(path, &c, error, sizeof(error)) < 0 || error[0] != '\0')
		abort();
	(void)registry_cache_parse(c, text, len);
	n = registry_cache_count(c);
	if (n > REGISTRY_CACHE_MAX)
		abort();
	if (n > 0) {
		/* A hostile file may contain too much to write back; the written file is never damaged. */
		if (registry_cache_save(c) < 0 ||
		    registry_cache_open(path, &again, error, sizeof(error)) < 0)
			abort();
		if (strstr(error, "damaged") != NULL ||
		    (error[0] == '\0' && registry_cache_count(again) != n))
			abort();
		registry_cache_close(again);
		unlink(path);
	}
	registry_cache_close(c);
}

static void
check_url(const char *text)
{
	struct registry_url u;
	char error[512] = "";

	if (registry_url_parse(text, &u, error, sizeof(error)) < 0) {
		if (error[0] == '\0')
			abort();
		return;
	}
	if (strncmp(u.base, u.is_https ? "https://" : "http://", u.is_https ? 8 : 7) != 0 ||
	    u.base[strlen(u.base) - 1] == '/')
		abort();
	registry_url_done(&u);
}

static bool
is_one_line_of_utf8(const char *text)
{
	size_t left = strlen(text), n;

	for (; left > 0; text += n, left -= n) {
		n = text_char(text, left);
		if (n == 0 || (unsigned char)*text < 0x20)
			return false;
	}
	return true;
}

static void
check_answer(const char *line, const char *body, size_t len)
{
	struct registry_request q = { .base = "http://registry", .subject = "sluice.program-value",
		.lookup_only = strchr(line, 'l') != NULL, .secrets = { SECRET } };
	struct registry_answer a;

	registry_answer_read(&q, strtol(line, NULL, 10), body, len, &a);
	if (a.verdict == REGISTRY_ID ? a.id < 0 || a.sentence[0] != '\0' : a.sentence[0] == '\0')
		abort();
	if (strstr(a.sentence, SECRET) != NULL || !is_one_line_of_utf8(a.sentence))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	char line[16] = "", *body;
	size_t len, head = end != NULL ? (size_t)(end - data) : 0;

	if (end == NULL || head >= sizeof(line))
		return 0;
	memcpy(line, data, head);
	len = size - head - 1;
	body = malloc(len + 1);		/* an allocation of its own, so that ASan detects reads past its end */
	memcpy(body, end + 1, len);
	body[len] = '\0';
	if (strcmp(line, "cache") == 0) {
		check_cache(body, len);
	} else if (strcmp(line, "url") == 0) {
		check_url(body);
	} else {
		body = realloc(body, len > 0 ? len : 1);	/* an answer is not terminated */
		check_answer(line, body, len);
	}
	free(body);
	return 0;
}
