/*
 * SPDX-License-Identifier: Apache-2.0
 * One thread at a time builds a generation: image, map, slot, and last the number that brings it into force.
 * Every write to the map of maps waits until no program of the kernel side can still use the previous map; with
 * four slots that is long before a slot is reused.
 *
 * All fields belong to the loop, except those of the job while its thread runs.
 */
#include "attach/filter.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "attach/filter_cgroups.h"
#include "attach/filter_image.h"
#include "attach/probes_state.h"
#include "base/clock.h"

#define CGROUPS_SPARE 8192	/* room for cgroups that are created later; when it is full a new generation is built */
#define LEARNED_MAX 4096	/* cgroups that are learned while a generation is built */
#define BATCH 1024
#define PASSES_MAX 64		/* passes over descendants when rules change; deeper ones are reported */

/* Rules that are being loaded into the kernel. */
struct job {
	struct ruleset *rules;		/* owned reference; NULL: no job */
	void (*done)(int error, uint64_t generation, void *arg);
	void *arg;
};

struct generation {
	struct ruleset *rules;		/* owned, as long as image refers to them */
	struct filter_image *image;	/* owned; NULL: no image */
	int map_fd;			/* owned; -1: no map */
};

struct learned_cgroup {
	uint64_t id;
	bool is_v2;
	char *path;			/* owned */
};

struct filter {
	struct probes *probes;
	struct event *on_made;		/* owned; NULL: there is no loop yet */
	int made_fd;			/* eventfd that signals the end of the thread */
	struct job job, next;
	struct generation now, made;	/* made belongs to the thread */
	pthread_t thread;
	bool is_making;
	int error;			/* result of the thread; as are the next two */
	uint64_t build_ns;
	struct filter_entry *cgroups;	/* owned; cgroups that the walk found */
	size_t n_cgroups, cgroups_room;
	struct learned_cgroup learned[LEARNED_MAX];	/* cgroups that arrived while the thread ran */
	size_t n_learned;
	struct filter_stats stats;
};

static void job_begin(struct filter *f);

/* Returns the generation of the rules that the kernel has, as their owner counts; that includes rules it never had. */
static uint64_t
rules_generation(const struct filter *f)
{
	return f->now.rules != NULL ? f->now.rules->generation : 0;
}

static void
generation_drop(struct generation *g)
{
	if (g->map_fd >= 0)
		close(g->map_fd);
	filter_image_free(g->image);
	ruleset_unref(g->rules);
	*g = (struct generation){ .map_fd = -1 };
}

static void
on_cgroup(uint64_t id, bool is_v2, const char *path, void *arg)
{
	struct filter *f = arg;
	struct filter_entry *grown;

	if (f->n_cgroups == f->cgroups_room) {
		f->cgroups_room = f->cgroups_room == 0 ? 64 : 2 * f->cgroups_room;
		grown = realloc(f->cgroups, f->cgroups_room * sizeof(*grown));
		if (grown == NULL) {
			f->cgroups_room = f->n_cgroups;
			return;		/* not in the kernel, so its programs are reported */
		}
		f->cgroups = grown;
	}
	filter_image_cgroup(f->made.image, id, is_v2, path, &f->cgroups[f->n_cgroups++]);
}

static int
entry_add(int fd, const struct filter_entry *e)
{
	return bpf_map_update_elem(fd, &e->key, &e->value, BPF_ANY) < 0 ? -errno : 0;
}

/* Adds entries in one call, where the kernel can. */
static int
entries_add(int fd, const struct filter_entry *entries, size_t n)
{
	struct filter_key *keys = malloc(BATCH * sizeof(*keys));
	struct filter_value *values = malloc(BATCH * sizeof(*values));
	bool has_batch = keys != NULL && values != NULL;
	int r = 0;

	for (size_t done = 0; done < n && r == 0;) {
		LIBBPF_OPTS(bpf_map_batch_opts, opts, .elem_flags = BPF_ANY);
		__u32 count = n - done < BATCH ? (__u32)(n - done) : BATCH;

		if (!has_batch) {
			r = entry_add(fd, &entries[done++]);
			continue;
		}
		for (__u32 i = 0; i < count; i++) {
			keys[i] = entries[done + i].key;
			values[i] = entries[done + i].value;
		}
		if (bpf_map_update_batch(fd, keys, values, &count, &opts) < 0)
			has_batch = false;	/* adding them one by one shows the error */
		else
			done += count;
	}
	free(keys);
	free(values);
	return r;
}

static int
map_make(struct filter *f)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	const struct filter_image *image = f->made.image;
	size_t room = image->n_entries + 1;
	int fd, r;

	f->n_cgroups = 0;
	if (image->cgroups != NULL) {
		filter_cgroups_walk("/proc/self/mountinfo", on_cgroup, f);
		room += f->n_cgroups + CGROUPS_SPARE;
	}
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, "filter", sizeof(struct filter_key),
	    sizeof(struct filter_value), (__u32)room, &opts);
	if (fd < 0)
		return -errno;
	f->made.map_fd = fd;
	r = entries_add(fd, image->entries, image->n_entries);
	if (r == 0)
		r = entries_add(fd, f->cgroups, f->n_cgroups);
	return r;
}

/* Puts a generation where judgements read it; the last step brings it into force. */
static int
generation_enforce(struct filter *f)
{
	struct sluice_bpf__data_shared *shared = f->probes->skel->data_shared;
	uint32_t next = shared->generation + 1, slot = next & (FILTER_SLOTS - 1);
	int r = 0;

	memcpy(&shared->filter_slots[slot], &f->made.image->slot, sizeof(shared->filter_slots[slot]));
	memcpy(&shared->filter_tables[slot], &f->made.image->table, sizeof(shared->filter_tables[slot]));
	if (bpf_map_update_elem(bpf_map__fd(f->probes->skel->maps.filter_rules), &slot, &f->made.map_fd,
	    BPF_ANY) < 0)
		r = -errno;
	else
		__atomic_store_n(&shared->generation, next, __ATOMIC_SEQ_CST);
	return r;
}

static int
make(struct filter *f)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int r;

	f->made = (struct generation){ .map_fd = -1 };
	r = filter_image_new(&f->job.rules->follow, &f->made.image);
	if (r == 0)
		r = map_make(f);
	if (r == 0)
		r = generation_enforce(f);
	free(f->cgroups);
	f->cgroups = NULL;
	f->cgroups_room = 0;
	f->build_ns = clock_ns(CLOCK_MONOTONIC) - begin;
	return r;
}

static void *
make_thread(void *arg)
{
	struct filter *f = arg;
	uint64_t one = 1;

	f->error = make(f);
	while (write(f->made_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
	return NULL;
}

static void
learn(struct filter *f, uint64_t id, bool is_v2, const char *path)
{
	struct filter_entry e;
	int r;

	if (f->now.image == NULL || f->now.image->cgroups == NULL)
		return;
	filter_image_cgroup(f->now.image, id, is_v2, path, &e);
	r = entry_add(f->now.map_fd, &e);
	/* Full of cgroups that no longer exist: begin a generation with those that do. */
	if (r == -E2BIG && !f->is_making && f->on_made != NULL) {
		f->job = (struct job){ .rules = ruleset_ref(f->now.rules) };
		job_begin(f);
	}
}

static void
learn_the_rest(struct filter *f)
{
	for (size_t i = 0; i < f->n_learned; i++) {
		learn(f, f->learned[i].id, f->learned[i].is_v2, f->learned[i].path);
		free(f->learned[i].path);
	}
	f->n_learned = 0;
}

/* Ends the job with the result of the thread, or of the work that was done without one. */
static void
job_end(struct filter *f, int error)
{
	struct job job = f->job;

	f->job = (struct job){ 0 };
	f->stats.build_ns = f->build_ns;
	if (error < 0) {
		generation_drop(&f->made);
		ruleset_unref(job.rules);
	} else {
		generation_drop(&f->now);
		f->now = f->made;
		f->now.rules = job.rules;
		f->made = (struct generation){ .map_fd = -1 };
		f->stats.rules = f->now.image->rules;
		f->stats.rules_outside = f->now.image->rules_outside;
	}
	learn_the_rest(f);
	if (job.done != NULL)
		job.done(error, rules_generation(f), job.arg);
}

/* Begins f->job; the work is done at once if no thread can be created. */
static void
job_begin(struct filter *f)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);	/* signals are handled by the loop */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&f->thread, NULL, make_thread, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	f->is_making = r == 0;
	if (r != 0)
		job_end(f, make(f));
}

static void
on_made(evutil_socket_t fd, short what, void *arg)
{
	struct filter *f = arg;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0 || !f->is_making)
		return;
	pthread_join(f->thread, NULL);
	f->is_making = false;
	job_end(f, f->error);
	if (f->next.rules != NULL && !f->is_making) {	/* done may have begun one */
		f->job = f->next;
		f->next = (struct job){ 0 };
		job_begin(f);
	}
}

/* Returns the filter of p, made if it does not exist yet; NULL with errno. */
static struct filter *
filter_get(struct probes *p)
{
	struct filter *f = p->filter;

	if (f != NULL)
		return f;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return NULL;
	f->probes = p;
	f->now.map_fd = f->made.map_fd = -1;
	f->made_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->made_fd < 0) {
		free(f);	/* keeps errno */
		return NULL;
	}
	p->filter = f;
	return f;
}

int
probes_set_rules_now(struct probes *p, struct ruleset *rules)
{
	struct filter *f = filter_get(p);
	int r;

	if (f == NULL)
		return -errno;
	if (f->is_making)
		return -EBUSY;
	f->job = (struct job){ .rules = ruleset_ref(rules) };
	r = make(f);
	job_end(f, r);
	return r;
}

int
probes_set_rules(struct probes *p, struct event_base *base, struct ruleset *rules,
    void (*done)(int error, uint64_t generation, void *arg), void *arg)
{
	struct job job, dropped;
	struct filter *f = filter_get(p);

	if (f == NULL)
		return -errno;
	if (f->on_made == NULL) {
		f->on_made = event_new(base, f->made_fd, EV_READ | EV_PERSIST, on_made, f);
		if (f->on_made == NULL || event_add(f->on_made, NULL) < 0)
			return -ENOMEM;
	}
	job = (struct job){ ruleset_ref(rules), done, arg };
	if (!f->is_making) {
		f->job = job;
		job_begin(f);
		return 0;
	}
	dropped = f->next;
	f->next = job;
	if (dropped.rules != NULL) {
		ruleset_unref(dropped.rules);
		if (dropped.done != NULL)
			dropped.done(-ECANCELED, rules_generation(f), dropped.arg);
	}
	return 0;
}

void
probes_learn_cgroup(struct probes *p, uint64_t id, bool is_v2, const char *path)
{
	struct filter *f = p->filter;

	if (f == NULL)
		return;
	if (f->is_making && f->n_learned < LEARNED_MAX) {
		char *copy = strdup(path);

		if (copy != NULL)
			f->learned[f->n_learned++] = (struct learned_cgroup){ id, is_v2, copy };
	}
	learn(f, id, is_v2, path);
}

int
filter_pass(struct probes *p, enum filter_judging judging)
{
	char nothing[64];
	ssize_t n;
	int fd, r;

	__atomic_store_n(&p->skel->bss->snapshot_judge, judging, __ATOMIC_SEQ_CST);
	fd = bpf_iter_create(bpf_link__fd(p->iterator));
	if (fd < 0)
		return -errno;
	while ((n = read(fd, nothing, sizeof(nothing))) > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		continue;
	r = n < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* Repeats the pass until no more processes are found that descend from an included program. */
static int
judge_descent(struct probes *p)
{
	struct sluice_bpf__bss *bss = p->skel->bss;
	uint32_t generation = p->skel->data_shared->generation;

	if (!p->skel->data_shared->filter_slots[generation & (FILTER_SLOTS - 1)].is_include_on)
		return 0;
	for (int i = 0; i < PASSES_MAX; i++) {
		int r;

		__atomic_store_n(&bss->snapshot_changes, 0, __ATOMIC_SEQ_CST);
		r = filter_pass(p, FILTER_JUDGE_INSIDE);
		if (r < 0)
			return r;
		if (__atomic_load_n(&bss->snapshot_changes, __ATOMIC_SEQ_CST) == 0)
			break;
	}
	return 0;
}

int
filter_judge_open(struct probes *p, bool enter)
{
	struct sluice_bpf__bss *bss = p->skel->bss;
	int fd, r;

	__atomic_store_n(&bss->snapshot_enter, enter, __ATOMIC_SEQ_CST);
	__atomic_store_n(&bss->snapshot_all, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&bss->stale_sweep_ns, clock_ns(CLOCK_BOOTTIME), __ATOMIC_SEQ_CST);
	r = judge_descent(p);
	if (r == 0)
		r = filter_pass(p, FILTER_JUDGE_ENTERED);
	__atomic_store_n(&bss->snapshot_judge, FILTER_JUDGE_ALL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&bss->snapshot_left_out, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&bss->snapshot_retries, SNAPSHOT_RETRIES, __ATOMIC_SEQ_CST);
	if (r < 0)
		return r;
	fd = bpf_iter_create(bpf_link__fd(p->iterator));
	return fd < 0 ? -errno : fd;
}

int
probes_judge_open(struct probes *p)
{
	return filter_judge_open(p, false);
}

void
probes_filter_stats(const struct probes *p, struct filter_stats *ret)
{
	*ret = (struct filter_stats){ 0 };
	if (p->filter != NULL) {
		*ret = p->filter->stats;
		ret->generation = rules_generation(p->filter);
	}
	ret->excluded = __atomic_load_n(&p->skel->data_shared->left_out, __ATOMIC_RELAXED);
}

void
filter_close(struct filter *f)
{
	if (f == NULL)
		return;
	if (f->is_making)
		pthread_join(f->thread, NULL);
	for (size_t i = 0; i < f->n_learned; i++)
		free(f->learned[i].path);
	if (f->on_made != NULL)
		event_free(f->on_made);
	generation_drop(&f->made);
	generation_drop(&f->now);
	ruleset_unref(f->job.rules);
	ruleset_unref(f->next.rules);
	close(f->made_fd);
	free(f);
}
