/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_floor ROUNDS RUNS: the time that kernel.bpf_stats_enabled shows for an empty program, in ns per
 * run. These statistics read the clock before and after each run, which is part of every figure.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sample.h"

#define ROUNDS_MAX 1000

static int
read_stats(int fd, struct bpf_prog_info *ret)
{
	__u32 len = sizeof(*ret);

	memset(ret, 0, sizeof(*ret));
	return bpf_obj_get_info_by_fd(fd, ret, &len);
}

int
main(int argc, char **argv)
{
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned long runs = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	double values[ROUNDS_MAX];
	int prog, link;

	if (rounds == 0 || rounds > ROUNDS_MAX || runs == 0) {
		fputs("usage: bench_floor ROUNDS RUNS\n", stderr);
		return 2;
	}
	prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "nothing", "GPL", nothing, 2, NULL);
	link = prog < 0 ? -1 : bpf_raw_tracepoint_open("sys_enter", prog);
	if (link < 0) {
		fprintf(stderr, "bench_floor: cannot load an empty program: %s\n", strerror(errno));
		return 1;
	}
	for (unsigned i = 0; i < rounds; i++) {
		struct bpf_prog_info before, after;

		if (read_stats(prog, &before) < 0)
			return 1;
		for (unsigned long n = 0; n < runs; n++)
			syscall(SYS_getppid);
		if (read_stats(prog, &after) < 0)
			return 1;
		if (after.run_cnt < before.run_cnt + runs) {
			fputs("bench_floor: nothing was counted; sysctl kernel.bpf_stats_enabled=1 first\n", stderr);
			return 1;
		}
		values[i] = (double)(after.run_time_ns - before.run_time_ns) /
		    (double)(after.run_cnt - before.run_cnt);
	}
	sample_print("floor", values, rounds);
	close(link);
	close(prog);
	return 0;
}
