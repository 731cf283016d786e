/*
 * SPDX-License-Identifier: Apache-2.0
 * Where threads wait: the passes that sample it, and the classes of the stacks that they find.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "attach/probes_state.h"
#include "base/clock.h"

void
probes_waits_begin(struct probes *p)
{
	struct sluice_bpf__bss *bss = p->skel->bss;

	bss->waits_before_ns = bss->waits_pass_ns;
	bss->waits_pass_ns = clock_ns(CLOCK_BOOTTIME);
}

int
probes_waits_open(struct probes *p)
{
	int fd;

	if (__atomic_load_n(&p->skel->bss->waits_unnamed_n, __ATOMIC_SEQ_CST) == 0)
		return -ENODATA;
	fd = bpf_iter_create(bpf_link__fd(p->skel->links.on_wait_places));
	return fd < 0 ? -errno : fd;
}

int
probes_waits_class(struct probes *p, uint64_t hash, uint32_t class)
{
	int map = bpf_map__fd(p->skel->maps.wait_classes);

	return bpf_map_update_elem(map, &hash, &class, BPF_ANY) < 0 ? -errno : 0;
}

void
probes_waits_end(struct probes *p)
{
	struct sluice_bpf__bss *bss = p->skel->bss;
	int map = bpf_map__fd(p->skel->maps.wait_classes);

	for (size_t i = 0; i < bss->waits_unnamed_n && i < WAIT_UNNAMED_MAX; i++) {
		uint64_t hash = bss->waits_unnamed[i].hash;
		uint32_t class;

		if (bpf_map_lookup_elem(map, &hash, &class) == 0 && class == WAIT_UNNAMED)
			bpf_map_delete_elem(map, &hash);
	}
	__atomic_store_n(&bss->waits_unnamed_n, 0, __ATOMIC_SEQ_CST);
}
