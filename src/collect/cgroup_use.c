/*
 * SPDX-License-Identifier: Apache-2.0
 * cgroup_use: files of numbers, in folders of cgroups.
 */
#include "collect/cgroup_use.h"

#include <unistd.h>

#include "base/file.h"
#include "collect/cgroup.h"
#include "collect/proctext.h"

#define VALUE_MAX 65536
#define NS_PER_US UINT64_C(1000)

/* The folder that is read, a buffer, and whether a number was known. */
struct reading {
	int dir;
	struct file_text t;
	bool has_any;
};

static bool
has_value(struct reading *r, const char *name)
{
	return file_read(r->dir, name, &r->t, VALUE_MAX) == 0 && r->t.len > 0;
}

static void
know(struct reading *r, struct opt_u64 *ret, uint64_t value, uint64_t unit)
{
	ret->known = !__builtin_mul_overflow(value, unit, &ret->value);
	r->has_any |= ret->known;
}

/* Reads a file that is one number. */
static void
read_bytes(struct reading *r, const char *name, struct opt_u64 *ret)
{
	struct opt_u64 bytes;

	if (has_value(r, name) && proctext_memory_limit(r->t.text, r->t.len, &bytes) == 0 && bytes.known)
		know(r, ret, bytes.value, 1);
}

static void
read_key(struct reading *r, const char *name, const char *key, uint64_t unit, struct opt_u64 *ret)
{
	uint64_t value;

	if (has_value(r, name) && proctext_key(r->t.text, r->t.len, key, &value) == 0)
		know(r, ret, value, unit);
}

/* full may be NULL. */
static void
read_pressure(struct reading *r, const char *name, struct opt_u64 *some, struct opt_u64 *full)
{
	struct proc_pressure pressure;

	if (!has_value(r, name) || proctext_pressure(r->t.text, r->t.len, &pressure) < 0)
		return;
	know(r, some, pressure.some_us, NS_PER_US);
	if (full != NULL && pressure.full_us.known)
		know(r, full, pressure.full_us.value, NS_PER_US);
}

static bool
enter(struct reading *r, const struct cgroup_mounts *m, enum cgroup_hierarchy hierarchy, const char *path)
{
	r->dir = path != NULL ? cgroup_folder_open(m, hierarchy, path) : -1;
	return r->dir >= 0;
}

bool
cgroup_use_read(const struct cgroup_mounts *m, const char *v2_path, const char *v1_path, struct group_use *ret)
{
	struct reading r = { 0 };

	*ret = (struct group_use){ 0 };
	if (enter(&r, m, CGROUP_V2, v2_path)) {
		read_bytes(&r, "memory.peak", &ret->memory_peak_bytes);
		read_key(&r, "memory.events", "oom_kill", 1, &ret->oom_kills);
		read_key(&r, "cpu.stat", "throttled_usec", NS_PER_US, &ret->throttled_ns);
		read_pressure(&r, "cpu.pressure", &ret->cpu_some_ns, NULL);
		read_pressure(&r, "memory.pressure", &ret->memory_some_ns, &ret->memory_full_ns);
		read_pressure(&r, "io.pressure", &ret->io_some_ns, &ret->io_full_ns);
		close(r.dir);
	}
	if (enter(&r, m, CGROUP_MEMORY, v1_path)) {
		read_bytes(&r, "memory.max_usage_in_bytes", &ret->memory_peak_bytes);
		read_key(&r, "memory.oom_control", "oom_kill", 1, &ret->oom_kills);
		close(r.dir);
	}
	if (enter(&r, m, CGROUP_CPU, v1_path)) {
		read_key(&r, "cpu.stat", "throttled_time", 1, &ret->throttled_ns);
		close(r.dir);
	}
	file_text_done(&r.t);
	return r.has_any;
}
