/*
 * SPDX-License-Identifier: Apache-2.0
 * The first byte selects the parser, the rest is its text. Checked: no access outside the text, pointers
 * in the result point into it, *ret is untouched on failure, every line is read once.
 */
#include <stdlib.h>
#include <string.h>

#include "collect/proctext.h"

#define REQUIRE(claim)			\
	do {				\
		if (!(claim))		\
			abort();	\
	} while (0)

static const char *begin;
static size_t size;

static void
require_inside(struct proc_word word)
{
	REQUIRE(word.at >= begin && word.len <= size && word.at + word.len <= begin + size);
	REQUIRE(memchr(word.at, '\n', word.len) == NULL);
}

/* Returns whether all bytes of a value are as they were filled before the call. */
static void
require_untouched(const void *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		REQUIRE(((const unsigned char *)value)[i] == 0xa5);
}

/* Tests a parser of a whole file, into a struct of its own. */
#define WHOLE(type, call)						\
	do {								\
		type value;						\
		memset(&value, 0xa5, sizeof(value));			\
		if ((call) < 0)						\
			require_untouched(&value, sizeof(value));	\
	} while (0)

/* Tests a parser of lines, which must reach the end of any text. */
#define LINES(type, next, check)					\
	do {								\
		const char *at = begin;					\
		size_t len = size, before;				\
		type value;						\
		int r;							\
									\
		do {							\
			before = len;					\
			memset(&value, 0xa5, sizeof(value));		\
			r = next(&at, &len, &value);			\
			REQUIRE(at + len == begin + size);		\
			if (r < 0)					\
				require_untouched(&value, sizeof(value)); \
			else if (r > 0)					\
				check(&value);				\
			REQUIRE(r == 0 || len < before);		\
		} while (r != 0);					\
		REQUIRE(len == 0);					\
	} while (0)

static void
check_disk(const struct proc_disk *d)
{
	require_inside(d->name);
	REQUIRE(d->name.len > 0 && d->read_bytes % 512 == 0);
}

static void
check_interface(const struct proc_interface *i)
{
	require_inside(i->name);
	REQUIRE(i->name.len > 0);
}

static void
check_cgroup(const struct proc_cgroup *c)
{
	require_inside(c->controllers);
	require_inside(c->path);
	REQUIRE(c->path.at[0] == '/');
	(void)proctext_list_has(c->controllers, "memory");
}

static void
check_mount(const struct proc_cgroup_mount *m)
{
	char buf[64];
	int n;

	require_inside(m->controllers);
	require_inside(m->root);
	require_inside(m->point);
	n = proctext_unescape(m->point, buf, sizeof(buf));
	REQUIRE(n < (int)sizeof(buf) && (n < 0 || strlen(buf) == (size_t)n));
	(void)proctext_list_has(m->controllers, "cpu");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_len)
{
	const char *half;
	char *text;
	double load;

	if (data_len == 0)
		return 0;
	size = data_len - 1;
	text = malloc(size > 0 ? size : 1);	/* so that ASan detects reads past its end */
	REQUIRE(text != NULL);
	memcpy(text, data + 1, size);
	begin = text;
	switch (data[0]) {
	case 's':
		WHOLE(struct proc_stat, proctext_stat(text, size, &value));
		break;
	case 'm':
		WHOLE(struct proc_meminfo, proctext_meminfo(text, size, &value));
		break;
	case 'p':
		WHOLE(struct proc_pressure, proctext_pressure(text, size, &value));
		break;
	case 'l':
		if (proctext_load1(text, size, &load) == 0)
			REQUIRE(load >= 0);
		break;
	case 'd':
		LINES(struct proc_disk, proctext_next_disk, check_disk);
		break;
	case 'i':
		LINES(struct proc_interface, proctext_next_interface, check_interface);
		break;
	case 'c':
		LINES(struct proc_cgroup, proctext_next_cgroup, check_cgroup);
		break;
	case 'M':
		LINES(struct proc_cgroup_mount, proctext_next_cgroup_mount, check_mount);
		break;
	case 'x':
		WHOLE(struct opt_double, proctext_cpu_max(text, size, &value));
		break;
	case 'q':
		half = memchr(text, '\n', size);
		if (half != NULL)
			WHOLE(struct opt_double, proctext_cfs(text, (size_t)(half - text), half + 1,
			    size - (size_t)(half - text) - 1, &value));
		break;
	case 'n':
		WHOLE(uint32_t, proctext_cpu_list(text, size, &value));
		break;
	case 'y':
		WHOLE(struct opt_u64, proctext_memory_limit(text, size, &value));
		break;
	default:
		break;
	}
	free(text);
	return 0;
}
