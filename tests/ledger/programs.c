/*
 * SPDX-License-Identifier: Apache-2.0
 * ledger-programs CPUS: loads what sluice loads on this kernel, and prints of each BPF program its name,
 * how many instructions the verifier walked until it believed it, and how many bytes it has become.
 * The programs are those for so many CPUs, however many there are: the verifier walks what is done for
 * each of them one by one.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/probes_state.h"

int __wrap_libbpf_num_possible_cpus(void);

static int cpus;

int
__wrap_libbpf_num_possible_cpus(void)
{
	return cpus;
}

int
main(int argc, char **argv)
{
	struct probes_options options = { .follow_all = false };
	struct bpf_program *program;
	struct probes *p;
	char error[512];
	int r = 0;

	cpus = argc == 2 ? atoi(argv[1]) : 0;
	if (cpus <= 0) {
		fputs("usage: ledger-programs CPUS\n", stderr);
		return 2;
	}
	if (probes_open(&options, &p, error, sizeof(error)) < 0) {
		fprintf(stderr, "ledger-programs: %s\n", error);
		return 1;
	}
	bpf_object__for_each_program(program, p->skel->obj) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);

		if (!bpf_program__autoload(program))
			continue;
		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) < 0) {
			fprintf(stderr, "ledger-programs: nothing is known of %s\n", bpf_program__name(program));
			r = 1;
			continue;
		}
		printf("%s\t%u\t%u\n", bpf_program__name(program), info.verified_insns, info.xlated_prog_len);
	}
	probes_close(p);
	return r;
}
