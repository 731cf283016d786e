/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_cpus ROUNDS RUNS: what the kernel side shares between CPUs, used by 1, 2, 4 … and all CPUs at the same time, in
 * ns of CPU time for each use by each CPU, waits for each other included: an event of the size of an END's into the one
 * ring, an addition to one word, and an entry put into the hash map of processes and taken out, each CPU with a key of
 * its own. RUNS is the number for all CPUs together.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "event.h"
#include "sample.h"

#define ROUNDS_MAX 1000
#define CPUS_MAX 1024
#define RING_BYTES (16 << 20)
#define RUNS_MAX (RING_BYTES / (sizeof(struct event_state) + 8) - 1)
#define ENTRY_BYTES 640		/* as long as struct proc */
#define PROCESSES 16384

#define INSN(op, dst, src, offset, immediate) \
	{ .code = (op), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (immediate) }
#define MOVE(dst, src) INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, value) INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define ADD(dst, value) INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, value)
#define STORE(offset, value) INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, offset, value)
#define STORE_REG(offset, src) INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, src, offset, 0)
#define MAP(dst, kind, fd) INSN(BPF_LD | BPF_IMM | BPF_DW, dst, kind, 0, fd), INSN(0, 0, 0, 0, 0)
#define CALL(function) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##function)
#define RETURN() SET(BPF_REG_0, 0), INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* Sets r6 to this CPU's entry of a per-CPU array of one; goes to the end of the program, `rest` further, without it. */
#define OWN_ENTRY(fd, rest)						\
	STORE(-8, 0),							\
	MAP(BPF_REG_1, BPF_PSEUDO_MAP_FD, fd),				\
	MOVE(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, -8),		\
	CALL(map_lookup_elem),						\
	INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, rest, 0),		\
	MOVE(BPF_REG_6, BPF_REG_0)

struct maps {
	int ring;
	int own;	/* per CPU: an event or an entry under construction */
	int word;
	int processes;
};

/* One CPU's part of a measurement. */
struct part {
	pthread_t thread;
	int cpu;
	int prog;
	unsigned runs;
	atomic_uint *waiting;	/* parts that are not ready yet */
	double ns;		/* of each run; below 0: failed */
};

static int
load(const char *name, const struct bpf_insn *insns, size_t n)
{
	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, name, "GPL", insns, n, NULL);
}

#define LOAD(name, insns) load(name, insns, sizeof(insns) / sizeof((insns)[0]))

static int
load_ring(const struct maps *m)
{
	const struct bpf_insn insns[] = {
		OWN_ENTRY(m->own, 7),
		MAP(BPF_REG_1, BPF_PSEUDO_MAP_FD, m->ring),
		MOVE(BPF_REG_2, BPF_REG_6),
		SET(BPF_REG_3, sizeof(struct event_state)),
		SET(BPF_REG_4, BPF_RB_NO_WAKEUP),
		CALL(ringbuf_output),
		RETURN(),
	};

	return LOAD("ring", insns);
}

static int
load_word(const struct maps *m)
{
	const struct bpf_insn insns[] = {
		MAP(BPF_REG_1, BPF_PSEUDO_MAP_VALUE, m->word),
		SET(BPF_REG_2, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_1, BPF_REG_2, 0, BPF_ADD),
		RETURN(),
	};

	return LOAD("word", insns);
}

static int
load_hash(const struct maps *m)
{
	const struct bpf_insn insns[] = {
		OWN_ENTRY(m->own, 15),
		CALL(get_smp_processor_id),
		STORE_REG(-8, BPF_REG_0),
		MAP(BPF_REG_1, BPF_PSEUDO_MAP_FD, m->processes),
		MOVE(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, -8),
		MOVE(BPF_REG_3, BPF_REG_6),
		SET(BPF_REG_4, BPF_NOEXIST),
		CALL(map_update_elem),
		MAP(BPF_REG_1, BPF_PSEUDO_MAP_FD, m->processes),
		MOVE(BPF_REG_2, BPF_REG_10), ADD(BPF_REG_2, -8),
		CALL(map_delete_elem),
		RETURN(),
	};

	return LOAD("hash", insns);
}

static double
thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Runs the program on its CPU as soon as all parts are ready. */
static void *
run(void *arg)
{
	struct part *p = arg;
	char packet[64] = "";
	cpu_set_t set;
	double before;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet), .repeat = (int)p->runs);

	p->ns = -1;
	CPU_ZERO(&set);
	CPU_SET(p->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		p->runs = 0;
	atomic_fetch_sub(p->waiting, 1);
	while (atomic_load(p->waiting) > 0)
		sched_yield();	/* there may be fewer real CPUs than there seem to be */
	before = thread_cpu_ns();
	if (p->runs > 0 && bpf_prog_test_run_opts(p->prog, &opts) == 0)
		p->ns = (thread_cpu_ns() - before) / p->runs;
	return NULL;
}

/* Returns the mean of what a run took on n CPUs at the same time, below 0 on failure. */
static double
measure(int prog, const int *cpus, unsigned n, unsigned runs)
{
	static struct part parts[CPUS_MAX];
	atomic_uint waiting = n;
	double sum = 0;

	for (unsigned i = 0; i < n; i++) {
		parts[i] = (struct part){ .cpu = cpus[i], .prog = prog, .runs = runs / n, .waiting = &waiting };
		if (pthread_create(&parts[i].thread, NULL, run, &parts[i]) != 0) {
			perror("bench_cpus: pthread_create");
			exit(1);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(parts[i].thread, NULL);
		sum = parts[i].ns < 0 || sum < 0 ? -1 : sum + parts[i].ns;
	}
	return sum < 0 ? -1 : sum / n;
}

/* Makes the maps. Returns whether all are there. */
static bool
make_maps(struct maps *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, none);

	ret->ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, RING_BYTES, &none);
	ret->own = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "own", 4, ENTRY_BYTES, 1, &none);
	ret->word = bpf_map_create(BPF_MAP_TYPE_ARRAY, "word", 4, 8, 1, &none);
	ret->processes = bpf_map_create(BPF_MAP_TYPE_HASH, "processes", 8, ENTRY_BYTES, PROCESSES, &none);
	return ret->ring >= 0 && ret->own >= 0 && ret->word >= 0 && ret->processes >= 0;
}

int
main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned runs = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	static int cpus[CPUS_MAX];
	double values[ROUNDS_MAX];
	unsigned long *read_to, *written_to;
	unsigned n_cpus = 0;
	long page = sysconf(_SC_PAGESIZE);
	struct maps m;
	cpu_set_t set;

	if (rounds == 0 || rounds > ROUNDS_MAX || runs == 0 || runs > RUNS_MAX) {
		fprintf(stderr, "usage: bench_cpus ROUNDS RUNS, of which at most %zu\n", RUNS_MAX);
		return 2;
	}
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (CPU_ISSET(cpu, &set))
			cpus[n_cpus++] = cpu;
	}
	if (!make_maps(&m)) {
		fprintf(stderr, "bench_cpus: cannot create maps: %s\n", strerror(errno));
		return 1;
	}
	read_to = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, m.ring, 0);
	written_to = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, m.ring, page);
	const struct {
		const char *name;
		int prog;
	} measured[] = { { "ring", load_ring(&m) }, { "word", load_word(&m) }, { "hash", load_hash(&m) } };

	if (read_to == MAP_FAILED || written_to == MAP_FAILED) {
		fprintf(stderr, "bench_cpus: cannot map the ring: %s\n", strerror(errno));
		return 1;
	}
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned n = 1; n <= n_cpus; n = n < n_cpus && 2 * n > n_cpus ? n_cpus : 2 * n) {
			char name[32];

			snprintf(name, sizeof(name), "%s_%u", measured[i].name, n);
			for (unsigned round = 0; round < rounds; round++) {
				values[round] = measure(measured[i].prog, cpus, n, runs);
				if (values[round] < 0) {
					fprintf(stderr, "bench_cpus: %s: cannot load or run a program\n", name);
					return 1;
				}
				__atomic_store_n(read_to, __atomic_load_n(written_to, __ATOMIC_ACQUIRE),
				    __ATOMIC_RELEASE);
			}
			sample_print(name, values, rounds);
		}
	}
	return 0;
}
