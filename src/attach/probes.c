/*
 * SPDX-License-Identifier: Apache-2.0
 * probes: chooses for each signal the hook that serves it on this kernel, loads, attaches.
 *
 * Every optional hook is a BPF program of its own, so that a missing one is left out of the load instead of
 * failing the rest. Tracepoints by BTF (tp_btf) come first; fentry, which a locked-down kernel refuses, is only
 * used if an older kernel has no such tracepoint.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/offer.h"
#include "attach/probes_state.h"
#include "attach/sizes.h"
#include "attach/variables.h"
#include "base/clock.h"
#include "base/libc.h"

#define RING_BYTES_DEFAULT (8u << 20)
#define EXITS_UNTIL_6_15 1024	/* whose last two threads may both be taken for the last */
#define STALE_NS UINT64_C(5000000000)
#define STALE_HURRY_NS UINT64_C(1000000000)
#define CALIBRATION_SAMPLES 50
#define CALIBRATION_WINDOW_NS UINT64_C(10000000000)

/* libbpf's first warning has the reason why a load failed; the rest repeats it. */
static char libbpf_first_warning[512];

static int
on_libbpf_print(enum libbpf_print_level level, const char *format, va_list ap)
{
	const char *debug = getenv("SLUICE_DEBUG_LIBBPF");

	if (debug != NULL)
		return vfprintf(stderr, format, ap);
	if (level == LIBBPF_WARN && libbpf_first_warning[0] == '\0') {
		vsnprintf(libbpf_first_warning, sizeof(libbpf_first_warning), format, ap);
		libbpf_first_warning[strcspn(libbpf_first_warning, "\n")] = '\0';
	}
	return 0;
}

/*
 * A function that this kernel lacks is searched in its modules, whose types only CAP_SYS_ADMIN may list: not the
 * service, which has no such capability. libbpf 1.1 then ends the load, but tries once alone. So that
 * comes here, by an attach point that no kernel has, and changes nothing else.
 */
static void
search_modules(struct probes *p, const struct offer *o)
{
	if (o->lacks_functions)
		(void)bpf_program__set_attach_target(p->skel->progs.on_exec, 0, "sluice_has_no_such_target");
}

/* Opens and loads with the hooks that were chosen. Returns 0 or a negative errno. */
static int
skel_load(struct probes *p, const struct offer *o)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	char types_path[32];
	uint32_t exits = 1;
	int cpus = libbpf_num_possible_cpus();
	int r;

	libbpf_first_warning[0] = '\0';
	snprintf(types_path, sizeof(types_path), "/proc/self/fd/%d", o->core_types);
	if (o->core_types >= 0 && access(types_path, R_OK) == 0)
		opts.btf_custom_path = types_path;
	p->skel = sluice_bpf__open_opts(&opts);
	if (p->skel == NULL)
		return -errno;
	search_modules(p, o);
	p->skel->rodata->my_epoch = p->epoch;
	p->skel->rodata->watchdog_ns = p->watchdog_ns;
	p->skel->data_shared->lease = 0;	/* no load reports events until all are attached */
	p->skel->rodata->ncpu = cpus > 0 ? cpus : 1;
	p->skel->rodata->wake_at = p->ring_bytes / 4;
	p->skel->rodata->procs_max = p->max_processes;
	p->skel->rodata->exit_has_group_dead = o->has[SIGNAL_PEAK_RSS][0];
	p->skel->rodata->has_iter_num = o->has_iter_num;
	p->skel->rodata->has_rdonly_cast = o->has_rdonly_cast;
	p->skel->rodata->can_be_preempted = o->can_be_preempted;
	/* each CPU may hold back a batch of each of three counters; see percpu_counter_batch */
	p->skel->rodata->rss_slack = 3 * cpus * (cpus > 16 ? 2 * cpus : 32);

	offer_switch(o, p->hooks, p->skel);
	p->skel->rodata->has_on_signal = o->has_current_task_btf;
	r = bpf_map__set_max_entries(p->skel->maps.ring, p->ring_bytes);
	if (r == 0 && !p->has_shares)
		r = bpf_map__set_max_entries(p->skel->maps.users, 1);
	if (r == 0)
		r = bpf_map__set_max_entries(p->skel->maps.procs, p->max_processes);
	if (r == 0 && p->pin_dir[0] != '\0')
		r = probes_pins_use(p);
	if (r == 0)
		r = bpf_map__set_max_entries(p->skel->maps.scratches, (cpus > 0 ? cpus : 1) + 1);
	if (r == 0)
		r = bpf_map__set_max_entries(p->skel->maps.cpu_offsets, cpus > 0 ? cpus : 1);
	if (o->can_be_preempted)
		exits = p->max_processes;
	else if (!p->skel->rodata->exit_has_group_dead)
		exits = EXITS_UNTIL_6_15;
	if (r == 0)
		r = bpf_map__set_max_entries(p->skel->maps.threads_exited, exits);
	if (r == 0)
		r = sluice_bpf__load(p->skel);
	if (r == 0 && p->pin_dir[0] != '\0')
		r = probes_pins_map_shared(p);
	if (r < 0) {
		sluice_bpf__destroy(p->skel);
		p->skel = NULL;
	}
	return r;
}

void
probes_calibrate(struct probes *p)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int64_t sample;

	if (bpf_prog_test_run_opts(bpf_program__fd(p->skel->progs.calibrate_clock), &opts) < 0)
		return;
	sample = p->skel->bss->clock_sample;
	/* The clocks drift by microseconds a second: each window starts again with its own smallest sample. */
	if (!p->has_clock_samples || now - p->clock_window_start_ns > CALIBRATION_WINDOW_NS) {
		if (p->has_clock_samples)
			p->skel->data_shared->clock_offset = p->clock_window_min;
		p->clock_window_min = sample;
		p->clock_window_start_ns = now;
		p->has_clock_samples = true;
	}
	if (sample < p->clock_window_min)
		p->clock_window_min = sample;
	if (p->skel->data_shared->clock_offset == 0 || sample < p->skel->data_shared->clock_offset)
		p->skel->data_shared->clock_offset = sample;
}

/* Measures where each CPU's memory is, and the clocks' difference, before the first program is followed. */
static void
calibrate_first(struct probes *p)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (bpf_program__autoload(p->skel->progs.calibrate_cpus))
		bpf_prog_test_run_opts(bpf_program__fd(p->skel->progs.calibrate_cpus), &opts);
	for (int i = 0; i < CALIBRATION_SAMPLES; i++) {
		usleep(200);
		probes_calibrate(p);
	}
}

static int
own_pid_read(struct probes *p)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (bpf_prog_test_run_opts(bpf_program__fd(p->skel->progs.calibrate_pid), &opts) < 0)
		return -errno;
	p->own_pid = (pid_t)p->skel->bss->caller_tgid;
	return 0;
}

static int
ring_id_read(struct probes *p)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_map__fd(p->skel->maps.ring), &info, &len) < 0)
		return -errno;
	p->ring_id = info.id;
	return 0;
}

/* Sets the sizes to those of the options, or else of this host; those of a run do not depend on the host. */
static void
sizes_choose(struct probes *p, const struct probes_options *options)
{
	struct sizes sizes = { .max_processes = SIZES_PROCESSES, .ring_bytes = RING_BYTES_DEFAULT };

	if (options->follow_all)
		sizes = sizes_of_host();
	p->ring_bytes = options->ring_bytes > 0 ? options->ring_bytes : sizes.ring_bytes;
	p->max_processes = options->max_processes > 0 ? options->max_processes : sizes.max_processes;
}

/*
 * Loads and attaches with the hooks that were chosen. Returns 0, or a negative errno with a sentence in error and
 * nothing loaded. fentry may be refused at either step: by a kernel that is locked down as it is loaded, and on arm64
 * before 6.4 as it is attached.
 */
static int
programs_start(struct probes *p, const struct offer *o, const struct probes_options *options, char *error,
    size_t error_size)
{
	int r = skel_load(p, o);

	if (r < 0) {
		snprintf(error, error_size, "cannot load the BPF programs: %s%s%s", strerror(-r),
		    libbpf_first_warning[0] != '\0' ? ": " : "", libbpf_first_warning);
		return r;
	}
	calibrate_first(p);
	r = own_pid_read(p);
	if (r < 0) {
		snprintf(error, error_size, "cannot run a BPF program: %s", strerror(-r));
		goto fail;
	}
	r = probes_users_open(p);
	if (r < 0) {
		snprintf(error, error_size, "cannot map the users of the BPF programs: %s", strerror(-r));
		goto fail;
	}
	r = probes_set_variables(p, options->variables, options->n_variables);
	if (r < 0) {
		snprintf(error, error_size, "not the names of up to 8 environment variables");
		goto fail;
	}
	r = sluice_bpf__attach(p->skel);
	if (r < 0) {
		snprintf(error, error_size, "cannot attach the BPF programs: %s: %s", strerror(-r),
		    libbpf_first_warning);
		goto fail;
	}
	return 0;

fail:
	probes_users_close(p);
	sluice_bpf__destroy(p->skel);
	p->skel = NULL;
	return r;
}

int
probes_open(const struct probes_options *options, struct probes **ret, char *error,
    size_t error_size)
{
	struct offer offer = { .core_types = -1 };
	struct probes *p;
	bool has_fentry;
	int r;

	libbpf_set_print(on_libbpf_print);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	r = offer_of_kernel(&offer, error, error_size);
	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (p == NULL) {
		snprintf(error, error_size, "out of memory");
		offer_done(&offer);
		return -ENOMEM;
	}
	sizes_choose(p, options);
	p->has_shares = options->follow_all;
	p->watchdog_ns = options->watchdog_ns > 0 ? options->watchdog_ns : UINT64_MAX / 2;
	p->epoch = 1;
	p->pin_lock = -1;
	if (options->pin_dir != NULL) {
		snprintf(p->pin_dir, sizeof(p->pin_dir), "%s", options->pin_dir);
		r = probes_pins_find(p, options->spooled_ring_id, error, error_size);
		if (r < 0)
			goto fail;
	}

	has_fentry = offer_choose(&offer, offer.runs_fentry, p->hooks);
	r = programs_start(p, &offer, options, error, error_size);
	if (r < 0 && has_fentry) {
		offer_choose(&offer, false, p->hooks);
		r = programs_start(p, &offer, options, error, error_size);
	}
	if (r < 0)
		goto fail;
	r = probes_stale_attach(p);
	if (r < 0) {
		snprintf(error, error_size, "cannot iterate over the map of processes: %s", strerror(-r));
		goto fail;
	}
	r = ring_id_read(p);
	if (r < 0)
		goto fail;
	p->skel->data_shared->own_tgid = (uint32_t)p->own_pid;
	p->skel->data_shared->adopt_tgid = 0;
	/* those of an agent before */
	memset(p->skel->data_shared->kept_tgids, 0, sizeof(p->skel->data_shared->kept_tgids));
	/* Otherwise probes_follow_all() begins, so that no event waits for a reader that is not ready. */
	p->skel->data_shared->follow_all = options->follow_all &&
	    (p->origin == PROBES_RESUMED || p->origin == PROBES_WERE_QUIET || p->origin == PROBES_MIGRATED);
	probes_hurry(p, false);
	p->iterator = offer.has[SIGNAL_SNAPSHOT][0] ? p->skel->links.on_task : p->skel->links.on_task_until_5_16;
	r = probes_pins_take_over(p);
	if (r < 0) {
		snprintf(error, error_size, "cannot take over from the agent before: %s", strerror(-r));
		goto fail;
	}
	probes_describe(p);
	offer_done(&offer);
	malloc_trim(0);		/* frees the megabytes that parsing the kernel's type information took once */
	*ret = p;
	return 0;

fail:
	offer_done(&offer);
	probes_close(p);
	return r;
}

int
probes_switch(struct probes *p, enum optional_signal signal, bool on)
{
	enum signal_id id = optional_ids[signal];

	if (p->hooks[id] == NULL)
		return -ENOTSUP;
	if (on != p->is_off[id])
		return 0;
	p->is_off[id] = !on;
	probes_describe(p);
	probes_lease(p->skel->data_shared, &signals[id], on ? p->epoch : 0);
	return 0;
}

uint64_t
probes_known_since_ns(const struct probes *p, enum optional_signal signal)
{
	enum signal_id id = optional_ids[signal];

	return p->hooks[id] != NULL ? *probes_shared(p->skel->data_shared, signals[id].since_ns) : UINT64_MAX;
}

void
probes_close(struct probes *p)
{
	if (p == NULL)
		return;
	filter_close(p->filter);
	bpf_link__destroy(p->stale);
	probes_users_close(p);
	sluice_bpf__destroy(p->skel);
	former_free(p->former);
	if (p->pin_lock >= 0)
		close(p->pin_lock);
	free(p);
}

enum probes_origin
probes_origin(const struct probes *p)
{
	return p->origin;
}

const char *
probes_pin_error(const struct probes *p)
{
	return p->pin_error;
}

uint32_t
probes_ring_id(const struct probes *p)
{
	return p->former != NULL && !p->is_former_read ? former_ring_id(p->former) : p->ring_id;
}

uint32_t
probes_own_ring_id(const struct probes *p)
{
	return p->ring_id;
}

pid_t
probes_own_pid(const struct probes *p)
{
	return p->own_pid;
}

int
probes_ring_fd(const struct probes *p)
{
	return bpf_map__fd(p->skel->maps.ring);
}

size_t
probes_ring_bytes(const struct probes *p)
{
	return p->ring_bytes;
}

void
probes_wake_rearm(struct probes *p)
{
	__atomic_store_n(&p->skel->data_shared->wake_latch, 0, __ATOMIC_SEQ_CST);
}

void
probes_adopt(struct probes *p, pid_t pid)
{
	__atomic_store_n(&p->skel->data_shared->adopt_tgid, (uint32_t)pid, __ATOMIC_SEQ_CST);
}

void
probes_follow_all(struct probes *p)
{
	struct sluice_bpf__data_shared *shared = p->skel->data_shared;

	if (shared->follow_all)
		return;
	shared->since_ns = clock_ns(CLOCK_BOOTTIME);
	__atomic_store_n(&shared->follow_all, 1, __ATOMIC_SEQ_CST);
}

int
probes_keep(struct probes *p, uint32_t pid, bool on)
{
	uint32_t *list = p->skel->data_shared->kept_tgids;

	for (size_t i = 0; i < sizeof(p->skel->data_shared->kept_tgids) / sizeof(list[0]); i++) {
		if (list[i] != (on ? 0 : pid))
			continue;
		__atomic_store_n(&list[i], on ? pid : 0, __ATOMIC_SEQ_CST);
		return 0;
	}
	return on ? -ENOSPC : 0;
}

void
probes_hurry(struct probes *p, bool on)
{
	__atomic_store_n(&p->skel->data_shared->stale_ns, on ? STALE_HURRY_NS : STALE_NS, __ATOMIC_RELAXED);
}

uint32_t
probes_max_processes(const struct probes *p)
{
	return p->max_processes;
}

int
probes_snapshot_open(struct probes *p, bool all)
{
	int fd;

	__atomic_store_n(&p->skel->bss->snapshot_enter, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->skel->bss->snapshot_all, all, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->skel->bss->snapshot_judge, FILTER_JUDGE_NOT, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->skel->bss->snapshot_left_out, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->skel->bss->snapshot_retries, SNAPSHOT_RETRIES, __ATOMIC_SEQ_CST);
	probes_waits_begin(p);
	fd = bpf_iter_create(bpf_link__fd(p->iterator));
	return fd < 0 ? -errno : fd;
}

int
probes_discovery_open(struct probes *p)
{
	probes_users_look(p);
	return filter_judge_open(p, true);
}
