/*
 * SPDX-License-Identifier: Apache-2.0
 * variables: fills the table of names that the kernel side does not use, then switches to it
 * (bpf/environ.bpf.c).
 */
#include "attach/variables.h"

#include <errno.h>
#include <string.h>

#include "attach/probes_state.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME_BYTES (EVENT_ENV_NAME_MAX + 1)	/* includes the '=' */

bool
variable_is_name(const char *name)
{
	size_t len = strnlen(name, EVENT_ENV_NAME_MAX + 1);

	return len > 0 && len <= EVENT_ENV_NAME_MAX && strspn(name, LETTERS) > 0 &&
	    strspn(name, LETTERS "0123456789") == len;
}

int
probes_set_variables(struct probes *p, const char *const *names, size_t n)
{
	struct sluice_bpf__bss *b = p->skel->bss;
	uint32_t table = b->environ_table == 1;

	_Static_assert(sizeof(b->environ_names[0][0]) == 2 * NAME_BYTES, "a name is not as long on both sides");
	if (n > EVENT_ENV_NAMES)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		if (!variable_is_name(names[i]))
			return -EINVAL;
	}
	for (size_t i = 0; i < n; i++) {
		char *bytes = (char *)b->environ_names[table][i], *mask = bytes + NAME_BYTES;
		size_t len = strlen(names[i]);

		memset(bytes, 0, 2 * NAME_BYTES);
		memcpy(bytes, names[i], len);
		bytes[len] = '=';
		memset(mask, 0xff, len + 1);
		b->environ_lengths[table][i] = (uint32_t)len + 1;
	}
	b->environ_count[table] = (uint32_t)n;
	__atomic_store_n(&b->environ_table, n > 0 ? table + 1 : 0, __ATOMIC_SEQ_CST);
	return 0;
}
