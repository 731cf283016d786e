/*
 * SPDX-License-Identifier: Apache-2.0
 * Takes over from an earlier agent: its maps are used, our programs are attached beside its own, and `lease` in
 * the maps is the epoch of the load that may report events, so that none is missed and none is reported twice.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/probes_state.h"
#include "base/clock.h"

#define SWITCH_MARGIN_NS UINT64_C(1000000)	/* by which clocks of the kernel side may differ from ours */

/* The maps that outlive this process, by their names in the BPF file system. */
static const char *const pinned_maps[] = {
#define MAP(member, object, pin) pin,
	LAYOUT_MAPS(MAP)
#undef MAP
};

static struct bpf_map *
pinned_map(struct sluice_bpf *skel, size_t i)
{
	struct bpf_map *const maps[] = {
#define MAP(member, object, pin) skel->maps.member,
		LAYOUT_MAPS(MAP)
#undef MAP
	};

	return maps[i];
}

/* Returns the size of a pinned map in entries; 0: it does not exist. */
static uint32_t
pinned_entries(const struct probes *p, const char *name)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	char path[PINS_PATH_MAX];
	int fd, r;

	pins_map_path(p->pin_dir, p->layout, name, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return 0;
	r = bpf_obj_get_info_by_fd(fd, &info, &len);
	close(fd);
	return r == 0 ? info.max_entries : 0;
}

int
probes_pins_use(struct probes *p)
{
	for (size_t i = 0; i < sizeof(pinned_maps) / sizeof(pinned_maps[0]); i++) {
		struct bpf_map *map = pinned_map(p->skel, i);
		uint32_t entries = pinned_entries(p, pinned_maps[i]);
		char path[PINS_PATH_MAX];
		int r;

		pins_map_path(p->pin_dir, p->layout, pinned_maps[i], path);
		r = bpf_map__set_pin_path(map, path);
		/* A map cannot grow, and the layout does not have its size. */
		if (r == 0 && entries > 0 && entries != bpf_map__max_entries(map))
			r = bpf_map__set_max_entries(map, entries);
		if (r < 0)
			return r;
	}
	return 0;
}

int
probes_pins_map_shared(struct probes *p)
{
	struct bpf_map *map = p->skel->maps.data_shared;
	void *at = mmap(p->skel->data_shared, sizeof(*p->skel->data_shared), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_FIXED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? -errno : 0;
}

/* Reads the pinned variables. Returns false if there are none. */
static bool
pinned_shared(const struct probes *p, struct sluice_bpf__data_shared *ret)
{
	char path[PINS_PATH_MAX];
	uint32_t zero = 0;
	bool is_read;
	int fd;

	pins_map_path(p->pin_dir, p->layout, "shared", path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return false;
	is_read = bpf_map_lookup_elem(fd, &zero, ret) == 0;
	close(fd);
	return is_read;
}

int
probes_layout(char ret[LAYOUT_NAME_SIZE])
{
	size_t size;
	const void *object = sluice_bpf__elf_bytes(&size);

	return layout_name(object, size, ret);
}

/*
 * Takes over if all maps of an earlier agent are there, and removes anything else. Sizes stay unchanged, since a map
 * cannot grow.
 */
int
probes_pins_find(struct probes *p, uint32_t spooled_ring_id, char *error, size_t error_size)
{
	struct sluice_bpf__data_shared shared = { 0 };
	bool has_any = false, has_all = true, was_left;
	const void *object;
	size_t size;
	int r;

	object = sluice_bpf__elf_bytes(&size);
	r = layout_name(object, size, p->layout);
	if (r < 0) {
		snprintf(error, error_size, "cannot read the types of the BPF programs: %s", strerror(-r));
		return r;
	}
	if (pins_prepare(p->pin_dir, p->layout, p->pin_error, sizeof(p->pin_error)) < 0) {
		p->pin_dir[0] = '\0';
		return 0;
	}
	r = pins_lock(p->pin_dir);
	if (r == -EWOULDBLOCK) {
		(void)pinned_shared(p, &shared);
		snprintf(error, error_size, "another agent (pid %u) uses the probes of %s; stop it first, or give this one "
		    "its own with --pins", shared.own_tgid, p->pin_dir);
		return -EBUSY;
	}
	if (r < 0) {
		snprintf(error, error_size, "cannot lock %s: %s", p->pin_dir, strerror(-r));
		return r;
	}
	p->pin_lock = r;
	r = former_find(p, object, size, &p->former);
	if (r < 0) {
		snprintf(error, error_size, "cannot read %s: %s", p->pin_dir, strerror(-r));
		return r;
	}
	if (pins_remove_other_layouts(p->pin_dir, p->layout, p->former != NULL ? former_layout(p->former) : NULL) > 0)
		p->origin = PROBES_WERE_OTHER;
	for (size_t i = 0; i < sizeof(pinned_maps) / sizeof(pinned_maps[0]); i++) {
		bool is_there = pinned_entries(p, pinned_maps[i]) > 0;

		has_any |= is_there;
		has_all &= is_there;
	}
	has_all = has_all && pinned_shared(p, &shared);
	p->epoch = shared.lease + 1;
	/* The other version had taken over from ours, had read its ring to the end, and was killed. */
	was_left = p->former != NULL && shared.lease == 0 && former_has_lease(p->former) &&
	    former_ring_id(p->former) == spooled_ring_id;
	if (p->former != NULL && (!has_all || was_left || (shared.lease == 0 && shared.quiet_since_ns == 0))) {
		p->origin = PROBES_MIGRATED;
		p->ring_bytes = former_ring_bytes(p->former);
		p->max_processes = former_processes(p->former);
		pins_remove_maps(p->pin_dir, p->layout);	/* that never had the lease, or no more */
	} else if (has_all) {
		p->origin = shared.lease != 0 ? PROBES_RESUMED : PROBES_WERE_QUIET;
		p->ring_bytes = pinned_entries(p, "ring");
		p->max_processes = pinned_entries(p, "procs");
	} else if (has_any) {
		p->origin = PROBES_WERE_OTHER;
		pins_remove_maps(p->pin_dir, p->layout);
	}
	if (p->origin == PROBES_WERE_QUIET || p->origin == PROBES_WERE_OTHER || p->origin == PROBES_MIGRATED) {
		p->epoch = (uint64_t)getpid() << 32 | 1;	/* an epoch that no forgotten link has */
		pins_remove_links(p->pin_dir, p->layout, 0);
	} else if (p->origin == PROBES_RESUMED) {
		/* An agent that was killed before it had the lease has left links of the epoch that is now ours. */
		pins_remove_links(p->pin_dir, p->layout, shared.lease);
	}
	return 0;
}

uint64_t *
probes_shared(struct sluice_bpf__data_shared *shared, size_t offset)
{
	return (uint64_t *)((char *)shared + offset);
}

void
probes_lease(struct sluice_bpf__data_shared *shared, const struct signal *s, uint64_t epoch)
{
	uint64_t before = __atomic_exchange_n(probes_shared(shared, s->lease), epoch, __ATOMIC_SEQ_CST);

	if (epoch == 0)
		*probes_shared(shared, s->since_ns) = UINT64_MAX;
	else if (before == 0)
		*probes_shared(shared, s->since_ns) = clock_ns(CLOCK_BOOTTIME) + SWITCH_MARGIN_NS;
}

/*
 * Brings the entries up to date after a time in which no load had the lease: a pass over all processes marks those that
 * live, and finds those that exec'd; the entries of others are removed. A second pass (FILTER_JUDGE_RETAKEN), with the
 * lease, does so for what happened since the first one. Returns 0 or a negative errno.
 */
static int
entries_retake(struct probes *p, enum filter_judging judging)
{
	int r;

	p->skel->bss->stale_sweep_ns = clock_ns(CLOCK_BOOTTIME);
	if (judging == FILTER_JUDGE_RETAKE)
		p->skel->bss->retake_ns = p->skel->bss->stale_sweep_ns;
	r = filter_pass(p, judging);
	if (r == 0)
		r = probes_stale_remove(p);
	__atomic_store_n(&p->skel->bss->snapshot_judge, FILTER_JUDGE_NOT, __ATOMIC_SEQ_CST);
	return r;
}

/*
 * Gives the lease, and those of the optional signals that are on, to this load if the load of epoch from still has it.
 * Returns false if it does not: the watchdog has taken it away.
 */
static bool
lease_take(struct probes *p, uint64_t from)
{
	struct sluice_bpf__data_shared *shared = p->skel->data_shared;

	__atomic_store_n(&shared->heartbeat_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	if (!__atomic_compare_exchange_n(&shared->lease, &from, p->epoch, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return false;
	for (int i = 0; i < OPTIONAL_SIGNALS; i++) {
		if (!p->is_off[optional_ids[i]])
			probes_lease(shared, &signals[optional_ids[i]], p->epoch);
	}
	return true;
}

/* Takes the lease, and those of the optional signals, from whatever load has it. */
static void
lease_drop(struct probes *p)
{
	__atomic_store_n(&p->skel->data_shared->lease, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; i < OPTIONAL_SIGNALS; i++)
		probes_lease(p->skel->data_shared, &signals[optional_ids[i]], 0);
}

enum probes_lease
probes_heartbeat(struct probes *p)
{
	uint64_t lease = __atomic_load_n(&p->skel->data_shared->lease, __ATOMIC_SEQ_CST);

	if (lease != p->epoch)
		return lease == 0 ? PROBES_LEASE_LOST : PROBES_LEASE_TAKEN;
	__atomic_store_n(&p->skel->data_shared->heartbeat_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	return PROBES_LEASE_HELD;
}

int
probes_retake(struct probes *p, uint64_t since_ns)
{
	uint64_t never = 0;
	int r;

	__atomic_compare_exchange_n(&p->skel->data_shared->quiet_since_ns, &never, since_ns, false, __ATOMIC_SEQ_CST,
	    __ATOMIC_SEQ_CST);
	lease_drop(p);
	r = entries_retake(p, FILTER_JUDGE_RETAKE);
	if (r == 0) {
		(void)lease_take(p, 0);
		r = entries_retake(p, FILTER_JUDGE_RETAKEN);
	}
	if (r < 0)
		lease_drop(p);
	return r;
}

uint64_t
probes_canary_lost_ns(const struct probes *p)
{
	return __atomic_load_n(&p->skel->data_shared->canary_lost_ns, __ATOMIC_SEQ_CST);
}

uint64_t
probes_quiet_since_ns(const struct probes *p)
{
	return __atomic_load_n(&p->skel->data_shared->quiet_since_ns, __ATOMIC_SEQ_CST);
}

void
probes_quiet_recorded(struct probes *p)
{
	__atomic_store_n(&p->skel->data_shared->quiet_since_ns, 0, __ATOMIC_SEQ_CST);
}

bool
probes_former_ring(const struct probes *p, int *ret_fd, size_t *ret_bytes)
{
	if (p->former == NULL || p->is_former_read)
		return false;
	*ret_fd = former_ring_fd(p->former);
	*ret_bytes = former_ring_bytes(p->former);
	return true;
}

void
probes_former_is_read(struct probes *p)
{
	p->is_former_read = true;
}

const void *
probes_former_record(struct probes *p, const void *record, size_t *len)
{
	return p->former != NULL ? former_record(p->former, record, len) : record;
}

void
probes_leave_former(struct probes *p)
{
	int fsuid;

	if (p->former == NULL)
		return;
	fsuid = setfsuid(0);	/* the pins are root's, and files may be another's already */

	former_free(p->former);
	p->former = NULL;
	if (p->pin_dir[0] != '\0')
		pins_remove_other_layouts(p->pin_dir, p->layout, NULL);
	setfsuid((uid_t)fsuid);
}

/*
 * Pins the attached programs, takes the lease, and detaches the previous load. It is a retake not only after a quiet
 * time, but also if the lease was lost since probes_pins_find(), or if an agent took it back and was killed before it
 * had recorded that. Nothing is reported before the entries are those of the processes that live.
 */
int
probes_pins_take_over(struct probes *p)
{
	const struct bpf_object_skeleton *s = p->skel->skeleton;
	struct sluice_bpf__data_shared *shared = p->skel->data_shared;
	uint64_t alive_ns = shared->heartbeat_ns;	/* CLOCK_MONOTONIC: not after the same time of CLOCK_BOOTTIME */
	uint64_t from = __atomic_load_n(&shared->lease, __ATOMIC_SEQ_CST);
	bool is_new = p->origin == PROBES_FRESH || p->origin == PROBES_WERE_OTHER;
	int r = 0, error = 0;

	for (int i = 0; i < s->prog_cnt && r == 0 && p->pin_dir[0] != '\0'; i++) {
		struct bpf_link *link = *s->progs[i].link;
		char path[PINS_PATH_MAX];

		if (link == NULL || strncmp(bpf_program__section_name(*s->progs[i].prog), "iter/", 5) == 0)
			continue;
		r = pins_link_path(p->pin_dir, p->layout, p->epoch, s->progs[i].name, path);
		if (r == 0)
			r = bpf_link__pin(link, path);
		if (r < 0)
			snprintf(p->pin_error, sizeof(p->pin_error), "this kernel cannot pin %s: %s",
			    s->progs[i].name, strerror(-r));
	}
	if (p->pin_dir[0] != '\0') {
		size_t size;
		const void *object = sluice_bpf__elf_bytes(&size);

		(void)former_keep_types(p, object, size);	/* without them the next version begins anew */
	}
	if (p->origin == PROBES_MIGRATED) {
		uint64_t since_ns = 0;

		if (former_copy(p->former, p, &since_ns) < 0) {
			probes_leave_former(p);
			p->origin = PROBES_WERE_OTHER;
			shared->follow_all = 0;		/* probes_follow_all() begins */
			is_new = true;
			since_ns = 0;
		}
		shared->quiet_since_ns = since_ns;
	}
	if (shared->since_ns == 0)
		shared->since_ns = clock_ns(CLOCK_BOOTTIME);
	if ((from == 0 && !is_new) || probes_quiet_since_ns(p) != 0 || !lease_take(p, from)) {
		if (p->origin != PROBES_MIGRATED)
			p->origin = PROBES_WERE_QUIET;
		error = probes_retake(p, alive_ns);
	}
	if (error < 0)
		return error;
	if (p->pin_dir[0] == '\0')
		return 0;
	pins_remove_links(p->pin_dir, p->layout, r == 0 ? p->epoch : 0);
	if (r < 0) {		/* all or nothing: half the programs would report half of the events */
		pins_remove_maps(p->pin_dir, p->layout);
		p->pin_dir[0] = '\0';
	}
	return 0;
}
