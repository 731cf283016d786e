/*
 * SPDX-License-Identifier: Apache-2.0
 * killed_at: linked into an agent of another version that SLUICE_TEST_STEP ends as it takes over from the one before:
 * "attached", "copied", "read" (the ring of the other), "committed",
 * "left" (without its pins); "full" lets the copying fail.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "attach/probes_former.h"

int __real_former_copy(struct former *f, struct probes *p, uint64_t *ret_since_ns);
int __wrap_former_copy(struct former *f, struct probes *p, uint64_t *ret_since_ns);
void __real_probes_former_is_read(struct probes *p);
void __wrap_probes_former_is_read(struct probes *p);
void __real_probes_leave_former(struct probes *p);
void __wrap_probes_leave_former(struct probes *p);
int __real_bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
    const struct bpf_map_batch_opts *opts);
int __wrap_bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
    const struct bpf_map_batch_opts *opts);

static int
is_step(const char *step)
{
	const char *asked = getenv("SLUICE_TEST_STEP");

	return asked != NULL && strcmp(asked, step) == 0;
}

static void
kill_at(const char *step)
{
	if (is_step(step))
		raise(SIGKILL);
}

int
__wrap_former_copy(struct former *f, struct probes *p, uint64_t *ret_since_ns)
{
	int r;

	kill_at("attached");
	r = __real_former_copy(f, p, ret_since_ns);
	kill_at("copied");
	return r;
}

void
__wrap_probes_former_is_read(struct probes *p)
{
	kill_at("read");
	__real_probes_former_is_read(p);
}

void
__wrap_probes_leave_former(struct probes *p)
{
	kill_at("committed");
	__real_probes_leave_former(p);
	kill_at("left");
}

int
__wrap_bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
    const struct bpf_map_batch_opts *opts)
{
	int r;

	if (!is_step("full"))
		return __real_bpf_map_update_batch(fd, keys, values, count, opts);
	*count /= 2;
	r = __real_bpf_map_update_batch(fd, keys, values, count, opts);
	errno = ENOMEM;
	return r < 0 ? r : -1;
}
