/*
 * SPDX-License-Identifier: Apache-2.0
 * core_types_alike: relocates the BPF programs that this kernel loads with a copy of the types that they need, and with
 * all types of the kernel, and compares their instructions. Prints the number of programs; fails if any differs.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/core_types.h"
#include "attach/probes_state.h"

int __real_core_types_open(const struct kernel_types *k, const void *object, size_t size);
int __wrap_core_types_open(const struct kernel_types *k, const void *object, size_t size);

static bool is_copy_used;

int
__wrap_core_types_open(const struct kernel_types *k, const void *object, size_t size)
{
	int fd;

	if (!is_copy_used)
		return -ENOTSUP;
	fd = __real_core_types_open(k, object, size);
	if (fd < 0) {
		fprintf(stderr, "core_types_alike: no types are copied: %s\n", strerror(-fd));
		exit(1);
	}
	return fd;
}

static struct probes *
open_with(bool copy)
{
	struct probes_options options = { .follow_all = false };
	struct probes *p;
	char error[512];

	is_copy_used = copy;
	if (probes_open(&options, &p, error, sizeof(error)) < 0) {
		fprintf(stderr, "core_types_alike: %s\n", error);
		exit(1);
	}
	return p;
}

/* Returns true if both are the same instruction; the descriptors of maps may differ. */
static bool
is_alike(const struct bpf_insn *a, const struct bpf_insn *b)
{
	struct bpf_insn x = *a, y = *b;

	if (x.code == (BPF_LD | BPF_IMM | BPF_DW) &&
	    (x.src_reg == BPF_PSEUDO_MAP_FD || x.src_reg == BPF_PSEUDO_MAP_VALUE))
		x.imm = y.imm = 0;
	return memcmp(&x, &y, sizeof(x)) == 0;
}

/* Returns how many programs differ, and counts those that are loaded. */
static int
compare(const struct probes *copy, const struct probes *all, unsigned *ret_loaded)
{
	struct bpf_program *a = NULL, *b = NULL;
	int different = 0;

	while ((a = bpf_object__next_program(copy->skel->obj, a)) != NULL) {
		size_t n = bpf_program__insn_cnt(a), i = 0;

		b = bpf_object__next_program(all->skel->obj, b);
		if (!bpf_program__autoload(a) && !bpf_program__autoload(b))
			continue;
		++*ret_loaded;
		while (i < n && is_alike(&bpf_program__insns(a)[i], &bpf_program__insns(b)[i]))
			i++;
		if (n == bpf_program__insn_cnt(b) && i == n && bpf_program__autoload(a) == bpf_program__autoload(b))
			continue;
		fprintf(stderr, "core_types_alike: %s differs at instruction %zu of %zu\n", bpf_program__name(a), i, n);
		different++;
	}
	return different;
}

int
main(void)
{
	struct probes *copy = open_with(true), *all = open_with(false);
	unsigned loaded = 0;
	int different = compare(copy, all, &loaded);

	printf("%u programs\n", loaded);
	probes_close(copy);
	probes_close(all);
	return different > 0 || loaded == 0;
}
