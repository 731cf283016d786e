/*
 * SPDX-License-Identifier: Apache-2.0
 * kernel: runs the tests.
 */
#include "attach/kernel.h"

#include <bpf/btf.h>
#include <stdio.h>
#include <string.h>

#include "attach/kernel_types.h"

enum { MEMBER_DEPTH = 4 };	/* structs without a name, within one another */

/* Returns the number of arguments of a raw tracepoint, without the data pointer; -1: there is no such tracepoint. */
static int
tracepoint_arguments(const struct kernel_types *types, const char *name)
{
	char type_name[128];
	const struct btf_type *t;
	uint32_t id;

	snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
	id = kernel_types_find(types, type_name, BTF_KIND_TYPEDEF);
	if (id == 0)
		return -1;
	t = kernel_types_at(types, kernel_types_at(types, id)->type);	/* pointer */
	t = kernel_types_at(types, t->type);				/* prototype */
	return btf_vlen(t) - 1;
}

/* Returns true if a struct or union has that member, itself or in one without a name. */
static bool
type_has_member(const struct kernel_types *types, const struct btf_type *t, const char *member_name, int depth)
{
	const struct btf_member *m = btf_members(t);

	for (unsigned i = 0; i < btf_vlen(t); i++) {
		const char *name = kernel_types_name(types, m[i].name_off);
		const struct btf_type *of;

		if (strcmp(name, member_name) == 0)
			return true;
		if (name[0] != '\0' || depth == MEMBER_DEPTH || m[i].type > kernel_types_count(types) || m[i].type == 0)
			continue;
		of = kernel_types_at(types, m[i].type);
		if (btf_is_composite(of) && type_has_member(types, of, member_name, depth + 1))
			return true;
	}
	return false;
}

static bool
has_member(const struct kernel_types *types, const char *type_name, const char *member_name)
{
	uint32_t id = kernel_types_find(types, type_name, BTF_KIND_STRUCT);

	return id != 0 && type_has_member(types, kernel_types_at(types, id), member_name, 0);
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
kernel_test_holds(const struct kernel_types *types, const struct kernel_test *test)
{
	switch (test->kind) {
	case KERNEL_ANY:
		break;
	case KERNEL_TRACEPOINT:
		return tracepoint_arguments(types, test->name) >= test->arguments;
	case KERNEL_FUNCTION:
		return kernel_types_find(types, test->name, BTF_KIND_FUNC) != 0;
	case KERNEL_MEMBER:
		return has_member(types, test->name, test->member);
	case KERNEL_TYPE:
		return kernel_types_find(types, test->name, BTF_KIND_TYPEDEF) != 0;
	case KERNEL_DELAY_ACCOUNTING:
		return delay_accounting_is_on();
	}
	return true;
}
