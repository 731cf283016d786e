/*
 * SPDX-License-Identifier: Apache-2.0
 * kernel: tests of this kernel, mostly by its own type information (BTF).
 */
#ifndef SLUICE_ATTACH_KERNEL_H
#define SLUICE_ATTACH_KERNEL_H

#include <stdbool.h>

struct btf;

enum kernel_test_kind {
	KERNEL_ANY,			/* holds everywhere */
	KERNEL_TRACEPOINT,		/* the raw tracepoint `name`, with that many arguments at least */
	KERNEL_FUNCTION,		/* the function `name` */
	KERNEL_MEMBER,			/* `member` of the struct `name` */
	KERNEL_TYPE,			/* the typedef `name` */
	KERNEL_DELAY_ACCOUNTING,	/* kernel.task_delayacct is on now */
};

struct kernel_test {
	enum kernel_test_kind kind;
	const char *name;
	const char *member;
	int arguments;
};

bool kernel_test_holds(const struct btf *btf, const struct kernel_test *test);

#endif
