/*
 * SPDX-License-Identifier: Apache-2.0
 * kernel: runs the tests.
 */
#include "attach/kernel.h"

#include <bpf/btf.h>
#include <stdio.h>
#include <string.h>

/* Returns the number of arguments of a raw tracepoint, without the data pointer; -1: there is no such tracepoint. */
static int
tracepoint_arguments(const struct btf *btf, const char *name)
{
	char type_name[128];
	const struct btf_type *t;
	int id;

	snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
	if (id < 0)
		return -1;
	t = btf__type_by_id(btf, btf__type_by_id(btf, id)->type);	/* pointer */
	t = btf__type_by_id(btf, t->type);				/* prototype */
	return btf_vlen(t) - 1;
}

static bool
has_member(const struct btf *btf, const char *type_name, const char *member_name)
{
	const struct btf_type *t;
	const struct btf_member *m;
	int id = btf__find_by_name_kind(btf, type_name, BTF_KIND_STRUCT);

	if (id < 0)
		return false;
	t = btf__type_by_id(btf, id);
	m = btf_members(t);
	for (unsigned i = 0; i < btf_vlen(t); i++) {
		if (strcmp(btf__name_by_offset(btf, m[i].name_off), member_name) == 0)
			return true;
	}
	return false;
}

static bool
delay_accounting_is_on(void)
{
	char c = '0';
	FILE *f = fopen("/proc/sys/kernel/task_delayacct", "re");

	if (f == NULL)
		return true;	/* before 5.14 it is on unless booted with nodelayacct */
	if (fread(&c, 1, 1, f) != 1)
		c = '0';
	fclose(f);
	return c == '1';
}

bool
kernel_test_holds(const struct btf *btf, const struct kernel_test *test)
{
	switch (test->kind) {
	case KERNEL_ANY:
		break;
	case KERNEL_TRACEPOINT:
		return tracepoint_arguments(btf, test->name) >= test->arguments;
	case KERNEL_FUNCTION:
		return btf__find_by_name_kind(btf, test->name, BTF_KIND_FUNC) > 0;
	case KERNEL_MEMBER:
		return has_member(btf, test->name, test->member);
	case KERNEL_TYPE:
		return btf__find_by_name_kind(btf, test->name, BTF_KIND_TYPEDEF) > 0;
	case KERNEL_DELAY_ACCOUNTING:
		return delay_accounting_is_on();
	}
	return true;
}
