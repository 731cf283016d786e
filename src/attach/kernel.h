/*
 * SPDX-License-Identifier: Apache-2.0
 * kernel: tests of the running kernel, mostly by its own type information (BTF).
 */
#ifndef SLUICE_ATTACH_KERNEL_H
#define SLUICE_ATTACH_KERNEL_H

#include <stdbool.h>

struct kernel_types;

enum kernel_test_kind {
	KERNEL_ANY,			/* always holds */
	KERNEL_TRACEPOINT,		/* there is a raw tracepoint `name` with at least that many arguments */
	KERNEL_FUNCTION,		/* there is a function `name` */
	KERNEL_MEMBER,			/* the struct `name` has a `member` */
	KERNEL_TYPE,			/* there is a typedef `name` */
	KERNEL_DELAY_ACCOUNTING,	/* kernel.task_delayacct is on now */
};

struct kernel_test {
	enum kernel_test_kind kind;
	const char *name;
	const char *member;
	int arguments;
};

/* Returns true if the kernel of these types passes the test. Nothing of them is kept. */
bool kernel_test_holds(const struct kernel_types *types, const struct kernel_test *test);

#endif
