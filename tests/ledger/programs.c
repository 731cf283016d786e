/*
 * SPDX-License-Identifier: Apache-2.0
 * ledger-programs CPUS: loads what sluice loads on this kernel, and prints of each BPF program its name,
 * how many instructions the verifier walked until it believed it, and how many bytes it has become.
 * The first figure is read from the verifier's log, since bpf_prog_info has it from 5.16 only.
 * The programs are those for so many CPUs, however many there are: the verifier walks what is done for
 * each of them one by one.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/probes_state.h"

enum {
	PROGRAMS_MAX = 64,
	LOG_MAX = 1 << 20,	/* a load whose log does not fit fails; also what the verifier drops again counts */
	LOG_STATS = 4,		/* BPF_LOG_STATS: the log is the figures and no step */
};

int __real_bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton);
int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton);
int __wrap_libbpf_num_possible_cpus(void);

static int cpus;
static char logs[PROGRAMS_MAX][LOG_MAX];	/* of each program, in the object's order; memory where written */

int
__wrap_libbpf_num_possible_cpus(void)
{
	return cpus;
}

int
__wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton)
{
	struct bpf_program *program;
	size_t i = 0;
	int r;

	bpf_object__for_each_program(program, *skeleton->obj) {
		r = i < PROGRAMS_MAX ? bpf_program__set_log_level(program, LOG_STATS) : -E2BIG;
		if (r == 0)
			r = bpf_program__set_log_buf(program, logs[i], LOG_MAX);
		if (r < 0)
			return r;
		logs[i++][0] = '\0';	/* from a load with other hooks that was refused */
	}
	return __real_bpf_object__load_skeleton(skeleton);
}

/* Returns the number of instructions that the log reports; 0: none. */
static unsigned
log_verified(const char *log)
{
	const char *at = strstr(log, "processed ");
	unsigned verified;

	return at != NULL && sscanf(at, "processed %u insns", &verified) == 1 ? verified : 0;
}

int
main(int argc, char **argv)
{
	struct probes_options options = { .follow_all = false };
	struct bpf_program *program;
	struct probes *p;
	char error[512];
	size_t i = 0;
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
		unsigned verified = log_verified(logs[i++]);

		if (!bpf_program__autoload(program))
			continue;
		if (verified == 0 || bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) < 0) {
			fprintf(stderr, "ledger-programs: nothing is known of %s\n", bpf_program__name(program));
			r = 1;
			continue;
		}
		printf("%s\t%u\t%u\n", bpf_program__name(program), verified, info.xlated_prog_len);
	}
	probes_close(p);
	return r;
}
