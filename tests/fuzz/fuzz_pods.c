/* SPDX-License-Identifier: Apache-2.0 */
/* Any answer of a kubelet, in parts of any length, yields names of one line, or none, and the same ones. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/pods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char uid[] = "6a4ce4a0-ba47-11ea-b2a7-0cc47ac5979e";
static const char id[] = "7c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51";

static void
check(const char *text)
{
	size_t len = text != NULL ? strnlen(text, PODS_NAME_SIZE) : 1;

	if (text == NULL)
		return;
	if (len == 0 || len == PODS_NAME_SIZE || !text_is_plain(text, len))
		abort();
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			abort();
}

/* Reads the text in parts: the first of some bytes, each next one twice as long. NULL: it is no list. */
static struct pods *
reads(const uint8_t *data, size_t size, size_t part)
{
	struct pods_reader *r = pods_reader_new();
	struct pods *ret = NULL;
	int e = 0;

	for (size_t at = 0; at < size && e == 0; at += part, part *= 2) {
		size_t len = size - at < part ? size - at : part;
		char *text = malloc(len);	/* an allocation of its own, so that ASan detects reads past its end */

		memcpy(text, data + at, len);
		e = pods_reader_add(r, text, len);
		free(text);
	}
	if (e == 0)
		e = pods_reader_end(r, &ret);
	if (e != 0 && ret != NULL)
		abort();
	pods_reader_free(r);
	return ret;
}

static int
find(const struct pods *p, const char *container, struct pod_names *ret)
{
	int known = pods_find(p, uid, container, ret);

	check(ret->pod);
	check(ret->name_space);
	check(ret->container);
	check(ret->image);
	if (known == 0 && (ret->pod != NULL || ret->container != NULL))
		abort();
	return known;
}

static void
compare(const char *a, const char *b)
{
	if ((a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pods *whole = reads(data, size, size > 0 ? size : 1), *cut = reads(data, size, 1);
	struct pod_names a, b;

	if ((whole == NULL) != (cut == NULL) || pods_count(whole) != pods_count(cut) ||
	    pods_left_out(whole) != pods_left_out(cut))
		abort();
	if (find(whole, id, &a) != find(cut, id, &b))
		abort();
	compare(a.pod, b.pod);
	compare(a.name_space, b.name_space);
	compare(a.container, b.container);
	compare(a.image, b.image);
	find(whole, "", &a);
	pods_free(whole);
	pods_free(cut);
	return 0;
}
