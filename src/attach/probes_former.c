/*
 * SPDX-License-Identifier: Apache-2.0
 * probes_former: reads the maps of another version by their types (BTF), which are pinned beside them: to read those
 * that the kernel has needs CAP_SYS_ADMIN.
 */
#include "attach/probes_former.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/layout_plan.h"
#include "attach/object.h"
#include "attach/probes_state.h"
#include "base/clock.h"

#define COPY_ENTRIES 1024u	/* at a time; more than any bucket of a map has */
#define RECORD_MAX (256u << 10)
#define TYPES_MAX (16u << 20)
#define TYPES_PIN "types"

enum { PROCS, RING, SHARED, MAPS };
static const char *const map_pins[MAPS] = { "procs", "ring", "shared" };

enum { EXEC, STATE, CGROUP, SIGNAL, RECORDS };
static const char *const record_names[RECORDS] = { "event_exec", "event_state", "event_cgroup", "event_signal" };

/*
 * What belongs to the processes and to what was seen of them; all other variables belong to an agent and its rules. The
 * number of the generation is that of the rules by which an entry was judged.
 */
static const char *const variables[] = { "generation", "lost", "refused", "refused_from_ns", "refused_to_ns", "followed",
	"removed", "lost_records", "left_out", "since_ns" };

struct former {
	char layout[64];
	int fds[MAPS];			/* owned; -1: not open */
	struct bpf_map_info info[MAPS];
	struct layout_plan entry, variables, records[RECORDS];
	char *shared;			/* owned mapping of the variables */
	size_t shared_bytes;
	int64_t lease, network_lease, quiet_since;	/* offsets in shared; -1: it has none */
	char *record;			/* owned: the record that was converted last */
};

/* Returns one of the variables. */
static uint64_t *
variable(const struct former *f, int64_t offset)
{
	return (uint64_t *)(void *)(f->shared + offset);
}

void
former_free(struct former *f)
{
	if (f == NULL)
		return;
	for (int i = 0; i < MAPS; i++)
		if (f->fds[i] >= 0)
			close(f->fds[i]);
	for (int i = 0; i < RECORDS; i++)
		layout_plan_done(&f->records[i]);
	layout_plan_done(&f->entry);
	layout_plan_done(&f->variables);
	if (f->shared != NULL)
		munmap(f->shared, f->shared_bytes);
	free(f->record);
	free(f);
}

static int
open_maps(struct former *f, const char *root)
{
	for (int i = 0; i < MAPS; i++) {
		__u32 len = sizeof(f->info[i]);
		char path[PINS_PATH_MAX];

		pins_map_path(root, f->layout, map_pins[i], path);
		f->fds[i] = bpf_obj_get(path);
		if (f->fds[i] < 0 || bpf_obj_get_info_by_fd(f->fds[i], &f->info[i], &len) < 0)
			return -errno;
	}
	return 0;
}

/* Returns the types of the old maps, which the caller frees; NULL: they cannot be read. */
static struct btf *
read_types(const struct former *f, const char *root)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info), zero = 0;
	struct btf *types = NULL;
	char path[PINS_PATH_MAX];
	char *data = NULL;
	int fd;

	pins_map_path(root, f->layout, TYPES_PIN, path);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return NULL;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && info.type == BPF_MAP_TYPE_ARRAY && info.max_entries == 1 &&
	    info.value_size <= TYPES_MAX)
		data = malloc(info.value_size + 8);	/* the kernel may copy up to a multiple of 8 */
	if (data != NULL && bpf_map_lookup_elem(fd, &zero, data) == 0)
		types = btf__new(data, info.value_size);
	free(data);
	close(fd);
	return types;
}

int
former_keep_types(const struct probes *p, const void *object, size_t size)
{
	struct slice elf = { object, size }, types;
	char path[PINS_PATH_MAX];
	__u32 zero = 0;
	int fd, r = 0;

	pins_map_path(p->pin_dir, p->layout, TYPES_PIN, path);
	if (access(path, F_OK) == 0)
		return 0;
	if (!object_section(elf, ".BTF", &types))
		return -ENOENT;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sluice_types", sizeof(zero), (uint32_t)types.len, 1, NULL);
	if (fd < 0)
		return -errno;
	if (bpf_map_update_elem(fd, &zero, types.data, BPF_ANY) < 0 || bpf_obj_pin(fd, path) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Makes the plans from the types of the old maps to those of this object. */
static int
make_plans(struct former *f, const char *root, const struct btf *own)
{
	struct btf *old = read_types(f, root);
	struct layout_plan key = { 0 };
	int r;

	if (old == NULL)
		return -ENODATA;
	r = layout_plan_map(old, own, "procs", "key", &key);
	if (r == 0 && !layout_plan_is_same(&key))
		r = -ENOTSUP;
	layout_plan_done(&key);
	if (r == 0)
		r = layout_plan_map(old, own, "procs", "value", &f->entry);
	if (r == 0)
		r = layout_plan_section(old, own, ".data.shared", variables, sizeof(variables) / sizeof(variables[0]),
		    &f->variables);
	for (int i = 0; i < RECORDS && r == 0; i++) {
		r = layout_plan_struct(old, own, record_names[i], &f->records[i]);
		if (r == -ENOENT && i == SIGNAL)
			r = 0;		/* there are versions that write none */
	}
	f->lease = layout_offset(old, ".data.shared", "lease");
	f->network_lease = layout_offset(old, ".data.shared", "network_lease");
	f->quiet_since = layout_offset(old, ".data.shared", "quiet_since_ns");
	btf__free(old);
	if (r == 0 && (f->lease < 0 || f->quiet_since < 0 || f->entry.from_size != f->info[PROCS].value_size ||
	    f->variables.from_size != f->info[SHARED].value_size))
		r = -ENOTSUP;
	return r;
}

static int
former_open(const char *root, const char *layout, const struct btf *own, struct former **ret)
{
	struct former *f = calloc(1, sizeof(*f));
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int r;

	if (f == NULL)
		return -ENOMEM;
	for (int i = 0; i < MAPS; i++)
		f->fds[i] = -1;
	r = snprintf(f->layout, sizeof(f->layout), "%s", layout) < (int)sizeof(f->layout) ? 0 : -ENAMETOOLONG;
	if (r == 0)
		r = open_maps(f, root);
	if (r == 0)
		r = make_plans(f, root, own);
	if (r == 0) {
		f->shared_bytes = (f->variables.from_size + page - 1) & ~(page - 1);
		f->shared = mmap(NULL, f->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->fds[SHARED], 0);
		f->record = malloc(RECORD_MAX);
		if (f->shared == MAP_FAILED) {
			f->shared = NULL;
			r = -errno;
		} else if (f->record == NULL) {
			r = -ENOMEM;
		}
	}
	if (r < 0)
		former_free(f);
	else
		*ret = f;
	return r;
}

bool
former_has_lease(const struct former *f)
{
	return __atomic_load_n(variable(f, f->lease), __ATOMIC_SEQ_CST) != 0;
}

int
former_find(const struct probes *p, const void *object, size_t size, struct former **ret)
{
	struct slice elf = { object, size }, types;
	DIR *dir = opendir(p->pin_dir);
	struct btf *own = NULL;
	struct former *f = NULL;
	const struct dirent *e;
	char prefix[16];
	int n = 0;

	*ret = NULL;
	if (dir == NULL)
		return -errno;
	snprintf(prefix, sizeof(prefix), "%.*s_", (int)strcspn(p->layout, "_"), p->layout);	/* the meaning */
	if (object_section(elf, ".BTF", &types))
		own = btf__new(types.data, (uint32_t)types.len);
	while (own != NULL && (e = readdir(dir)) != NULL) {
		struct former *found = NULL;

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || strcmp(e->d_name, p->layout) == 0 ||
		    former_open(p->pin_dir, e->d_name, own, &found) < 0)
			continue;
		/* Only one of them can have the lease: the others belong to agents that ended as they took over. */
		if (f != NULL && former_has_lease(f) && !former_has_lease(found)) {
			former_free(found);
			continue;
		}
		n = f != NULL && former_has_lease(found) && !former_has_lease(f) ? 1 : n + 1;
		former_free(f);
		f = found;
	}
	closedir(dir);
	btf__free(own);
	if (n == 1)
		*ret = f;
	else
		former_free(f);	/* which of them is the last one is unknown */
	return 0;
}

const char *
former_layout(const struct former *f)
{
	return f->layout;
}

uint32_t
former_processes(const struct former *f)
{
	return f->info[PROCS].max_entries;
}

size_t
former_ring_bytes(const struct former *f)
{
	return f->info[RING].max_entries;
}

uint32_t
former_ring_id(const struct former *f)
{
	return f->info[RING].id;
}

int
former_ring_fd(const struct former *f)
{
	return f->fds[RING];
}

/* Copies all entries to the map of p, and counts them for their users. Returns 0 or a negative errno. */
static int
copy_entries(const struct former *f, struct probes *p)
{
	int to_fd = bpf_map__fd(p->skel->maps.procs);
	uint32_t key_size = f->info[PROCS].key_size, n, batch = 0;
	char *keys = malloc((size_t)COPY_ENTRIES * key_size);
	char *from = malloc((size_t)COPY_ENTRIES * f->entry.from_size);
	char *to = calloc(COPY_ENTRIES, f->entry.to_size);
	int r = keys != NULL && from != NULL && to != NULL ? 0 : -ENOMEM;
	bool has_more = true;

	for (bool is_first = true; r == 0 && has_more; is_first = false) {
		n = COPY_ENTRIES;
		r = bpf_map_lookup_batch(f->fds[PROCS], is_first ? NULL : &batch, &batch, keys, from, &n, NULL);
		if (r < 0 && errno != ENOENT) {
			r = -errno;
			break;
		}
		has_more = r == 0;
		r = 0;
		for (uint32_t i = 0; i < n; i++) {
			layout_plan_apply(&f->entry, from + (size_t)i * f->entry.from_size,
			    to + (size_t)i * f->entry.to_size);
			probes_users_count(p, to + (size_t)i * f->entry.to_size);
		}
		if (n > 0 && bpf_map_update_batch(to_fd, keys, to, &n, NULL) < 0)
			r = -errno;
	}
	/* Some entries alone would be followed on as if nothing had happened to the others. */
	while (r < 0 && keys != NULL && bpf_map_get_next_key(to_fd, NULL, keys) == 0 &&
	    bpf_map_delete_elem(to_fd, keys) == 0)
		;
	if (r < 0)
		probes_users_forget(p);
	free(keys);
	free(from);
	free(to);
	return r;
}

int
former_copy(struct former *f, struct probes *p, uint64_t *ret_since_ns)
{
	uint64_t now = clock_ns(CLOCK_BOOTTIME);
	int r;

	if (former_has_lease(f)) {
		if (*variable(f, f->quiet_since) == 0)	/* else a gap before is not yet in a GAP record */
			*variable(f, f->quiet_since) = now;	/* first, for an agent that continues */
		__atomic_store_n(variable(f, f->lease), 0, __ATOMIC_SEQ_CST);
		if (f->network_lease >= 0)
			__atomic_store_n(variable(f, f->network_lease), 0, __ATOMIC_SEQ_CST);
	}
	*ret_since_ns = *variable(f, f->quiet_since);
	r = copy_entries(f, p);
	if (r == 0)		/* they count these entries */
		layout_plan_apply(&f->variables, f->shared, p->skel->data_shared);
	return r;
}

const void *
former_record(struct former *f, const void *record, size_t *len)
{
	static const int kinds[] = { [EVENT_EXEC] = EXEC, [EVENT_EXIT] = STATE, [EVENT_CGROUP] = CGROUP,
		[EVENT_SIGNAL] = SIGNAL };
	const struct event_head *head = record;
	const struct layout_plan *p;
	struct event_head *made = (void *)f->record;
	size_t text;

	if (*len < sizeof(*head) || head->kind == 0 || head->kind >= sizeof(kinds) / sizeof(kinds[0]) ||
	    (kinds[head->kind] == EXEC && head->kind != EVENT_EXEC))
		return record;
	p = &f->records[kinds[head->kind]];
	if (layout_plan_is_same(p) || *len < p->from_size || p->to_size + (*len - p->from_size) > RECORD_MAX)
		return record;
	text = *len - p->from_size;
	memset(f->record, 0, p->to_size);
	layout_plan_apply(p, record, f->record);
	memcpy(f->record + p->to_size, (const char *)record + p->from_size, text);
	*len = p->to_size + text;
	made->size = (uint32_t)*len;
	return f->record;
}
