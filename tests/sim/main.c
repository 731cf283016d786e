/*
 * SPDX-License-Identifier: Apache-2.0
 * main: histories of COUNT seeds, from SEED on. One that breaks is printed with the command that repeats it, and ends
 * the others.
 *
 *	simulation [-v [-v]] [-k] [-2] [-j WORKERS] [SEED [COUNT]]
 *
 *	-v	prints what happens; -v -v: to each record, too
 *	-k	continues after a history that breaks
 *	-2	simulates each history twice, and checks that they are the same
 *	-j	histories at the same time
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim.h"

struct sim_world *world;
int sim_verbose;

static void
print_line(const char *format, va_list args)
{
	fprintf(stderr, "%6llu %u %10.6f ", (llu)world->seed, world->life, (double)world->now_us / SIM_S);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void
sim_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (sim_verbose > 0)
		print_line(format, args);
	va_end(args);
}

void
sim_say_record(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (sim_verbose > 1)
		print_line(format, args);
	va_end(args);
}

void
sim_broken(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "seed %llu, life %u, %.6f s: ", (llu)world->seed, world->life,
	    (double)world->now_us / SIM_S);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(SIM_END_BROKEN);
}

static void
boot(void)
{
	struct sim_kernel *k = &world->kernel;

	snprintf(k->boot_id, sizeof(k->boot_id), "b3f1f8a1-0c5e-4f5e-8f7e-%012u", world->life);
	k->ring_id++;
	k->written = k->released = 0;
	sim_disk_put(&world->disk, "/proc/sys/kernel/random/boot_id", k->boot_id);
	sim_disk_put(&world->disk, "/proc/sys/kernel/hostname", "node7");
	sim_disk_put(&world->disk, "/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
	for (unsigned p = 0; p < world->n_programs; p++)
		world->programs[p].is_alive = false;
}

/* Runs one life in a child. */
static enum sim_end
live(void)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(sim_life());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	if (WIFEXITED(status) && WEXITSTATUS(status) <= SIM_END_KILLED)
		return (enum sim_end)WEXITSTATUS(status);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != SIM_END_BROKEN)
		fprintf(stderr, "seed %llu, life %u: the process crashed\n", (llu)world->seed, world->life);
	return SIM_END_BROKEN;
}

static void
plan_life(void)
{
	world->life++;
	world->ends_us = world->now_us + (int64_t)sim_below((uint64_t)(sim_dice(200) ? 300 : 50) * SIM_S);
	world->closes = sim_dice(300);
	world->is_newer = world->has_versions && sim_dice(500);
	world->kill_in = sim_dice(600) ? 1 + sim_below(sim_dice(300) ? 100 : 20000) : 0;
	world->kills_at_changes = sim_dice(500);
	/* One life in which a topic's fault lasts long enough to show that others do not wait for it. */
	if (world->is_lasting) {
		world->ends_us = world->now_us + 400 * SIM_S;
		world->kill_in = 0;
	}
	if (world->kills_at_changes && world->kill_in > 0)
		world->kill_in = 1 + sim_below(300);
}

static bool
history(uint64_t seed)
{
	unsigned lives;
	enum sim_end end;

	world->seed = seed;
	world->random = seed * UINT64_C(0x9e3779b97f4a7c15);
	world->now_us = 1000 * SIM_S;
	world->wall_us = INT64_C(1795257300) * SIM_S;
	sim_disk_init(&world->disk);
	sim_cluster_init(&world->cluster);
	sim_registry_init(&world->registry);
	sim_weather_init();
	boot();
	lives = world->is_lasting ? 1 : 2 + (unsigned)sim_below(6);
	for (unsigned i = 0; i < lives; i++) {
		bool is_power_cut = sim_dice(300);
		int64_t answers_us;

		plan_life();
		end = live();
		if (end == SIM_END_BROKEN)
			return false;
		sim_check_ended(end, is_power_cut);
		sim_cluster_forget(&world->cluster);
		for (int s = 0; s < SIM_FILES; s++)
			world->disk.inodes[s].opens = 0;
		if (is_power_cut) {
			sim_say("the power is cut");
			sim_disk_cut(&world->disk);
			world->disk.has_lost = false;
			boot();
		}
		for (int s = 0; s < SIM_FILES; s++)
			if (world->disk.inodes[s].is_used)
				sim_disk_free_unused(&world->disk, s);
		sim_weather_pause();
		answers_us = world->registry.answers_us;
		sim_pass((int64_t)sim_below((sim_dice(200) ? 600 : 30) * SIM_S));
		world->registry.answers_us = answers_us;
	}
	sim_weather_calm();
	world->is_last = true;
	world->is_lasting = false;
	/* Each version delivers what the other has left. */
	for (unsigned i = 0; i < (world->has_versions ? 2 : 1); i++) {
		plan_life();
		world->closes = true;
		world->kill_in = 0;
		world->is_newer = world->has_versions && i == 0;
		world->ends_us = world->now_us + SIM_HOUR;
		if (live() != SIM_END_CLOSED)
			return false;
	}
	return true;
}

/* What is asked for. */
struct plan {
	const char *program;
	uint64_t first, end;
	unsigned workers;
	bool keeps_on;
	bool is_twice;
};

/* What the histories had, together; workers share it. */
struct totals {
	uint64_t histories, lives, kills, cuts, delivered, again, dead, steps, trace;
	uint64_t broken;		/* histories that break */
};

static void
add(struct totals *t)
{
	const struct sim_checks *c = &world->checks;

	t->histories++;
	t->lives += c->lives;
	t->kills += c->kills;
	t->cuts += c->power_cuts;
	t->delivered += c->delivered;
	t->again += c->redelivered;
	t->dead += c->dead;
	t->steps += world->steps;
	t->trace += world->trace;
}

static void *
shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("simulation");
		exit(2);
	}
	return memory;
}

/* Checks end the process. */
static bool
is_well(uint64_t seed)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (!history(seed))
			_exit(SIM_END_BROKEN);
		sim_check_all();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	return status == 0;
}

/* Simulates a history, or the same one twice. False: it breaks. */
static bool
simulate(const struct plan *plan, uint64_t seed)
{
	uint64_t trace = 0;

	for (int i = 0; i < (plan->is_twice ? 2 : 1); i++) {
		if (i > 0)
			munmap(world, sizeof(*world));
		world = shared(sizeof(*world));
		if (!is_well(seed))
			return false;
		if (i > 0 && world->trace != trace) {
			fprintf(stderr, "seed %llu: two histories of it differ\n", (llu)seed);
			return false;
		}
		trace = world->trace;
	}
	return true;
}

/* Every n-th seed, from first on, until one breaks. */
static void
work(const struct plan *plan, unsigned n, struct totals *mine, struct totals *all)
{
	for (uint64_t seed = plan->first + n; seed < plan->end; seed += plan->workers) {
		if (all->broken != 0 && !plan->keeps_on)
			return;
		if (simulate(plan, seed)) {
			add(mine);
		} else {
			fprintf(stderr, "seed %llu breaks; run: %s -v %llu\n", (llu)seed, plan->program,
			    (llu)seed);
			mine->broken++;
			all->broken = 1;
		}
		munmap(world, sizeof(*world));
	}
}

static void
print(const struct totals *t)
{
	if (t->broken > 0)
		printf("%llu histories break\n", (llu)t->broken);
	printf("%llu histories of %llu lives, with %llu kills and %llu power cuts, in %llu steps: %llu records "
	    "delivered, %llu of them marked as redeliveries, %llu dead letters (trace %016llx)\n", (llu)t->histories,
	    (llu)t->lives, (llu)t->kills, (llu)t->cuts, (llu)t->steps,
	    (llu)t->delivered, (llu)t->again, (llu)t->dead,
	    (llu)t->trace);
}

int
main(int argc, char **argv)
{
	enum { WORKERS = 16 };
	struct totals *totals = shared((1 + WORKERS) * sizeof(*totals)), sum = { 0 };
	struct plan plan = { .program = argv[0], .workers = 1 };
	const uint64_t *from;
	int at = 1;

	for (; at < argc && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "-v") == 0)
			sim_verbose++;
		else if (strcmp(argv[at], "-k") == 0)
			plan.keeps_on = true;
		else if (strcmp(argv[at], "-2") == 0)
			plan.is_twice = true;
		else if (strcmp(argv[at], "-j") == 0 && at + 1 < argc)
			plan.workers = (unsigned)strtoul(argv[++at], NULL, 10);
	}
	plan.first = at < argc ? strtoull(argv[at], NULL, 10) : 1;
	plan.end = plan.first + (at + 1 < argc ? strtoull(argv[at + 1], NULL, 10) : 1);
	plan.workers = plan.workers < 1 ? 1 : plan.workers > WORKERS ? WORKERS : plan.workers;
	for (unsigned i = 0; i < plan.workers; i++) {
		if (fork() == 0) {
			work(&plan, i, &totals[1 + i], &totals[0]);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	for (unsigned i = 0; i < plan.workers; i++) {
		from = (const uint64_t *)&totals[1 + i];
		for (size_t k = 0; k < sizeof(sum) / sizeof(uint64_t); k++)
			((uint64_t *)&sum)[k] += from[k];
	}
	print(&sum);
	return sum.histories == plan.end - plan.first ? 0 : 1;
}
