/*
 * SPDX-License-Identifier: Apache-2.0
 * Finds processes that have ended and still have an entry on the kernel side.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

#include "attach/probes_state.h"
#include "base/clock.h"
#include "base/file.h"

int
probes_stale_attach(struct probes *p)
{
	union bpf_iter_link_info info = { .map.map_fd = (__u32)bpf_map__fd(p->skel->maps.procs) };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	if (!bpf_program__autoload(p->skel->progs.on_stale_until_5_13))
		return 0;
	p->stale = bpf_program__attach_iter(p->skel->progs.on_stale_until_5_13, &opts);
	return p->stale != NULL ? 0 : -errno;
}

/* Writes what on_stale finds to an empty file. Returns 0 or a negative errno. */
static int
stale_write(struct probes *p, int fd)
{
	const struct sluice_bpf__bss *found = p->skel->bss;
	int on_stale = bpf_program__fd(p->skel->progs.on_stale);
	uint64_t at = 0;
	size_t size;
	int r;

	p->skel->bss->stale_sweep_ns = clock_ns(CLOCK_BOOTTIME);
	do {
		LIBBPF_OPTS(bpf_test_run_opts, opts);

		if (bpf_prog_test_run_opts(on_stale, &opts) < 0)
			return -errno;
		size = found->stale_n * sizeof(found->stale_found[0]);
		r = file_write(fd, found->stale_found, size, at);
		if (r < 0)
			return r;
		at += size;
	} while (size == sizeof(found->stale_found));
	return 0;
}

int
probes_stale_open(struct probes *p)
{
	int fd, r;

	if (p->stale != NULL) {
		fd = bpf_iter_create(bpf_link__fd(p->stale));
		return fd < 0 ? -errno : fd;
	}
	fd = file_in_memory("sluice-stale");
	if (fd < 0)
		return fd;
	r = stale_write(p, fd);
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

int
probes_stale_remove(struct probes *p)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	char nothing[64];
	ssize_t n;
	int fd;

	if (p->stale == NULL)
		return bpf_prog_test_run_opts(bpf_program__fd(p->skel->progs.on_stale), &opts) < 0 ? -errno : 0;
	fd = bpf_iter_create(bpf_link__fd(p->stale));
	if (fd < 0)
		return -errno;
	while ((n = read(fd, nothing, sizeof(nothing))) > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		continue;
	close(fd);
	return n < 0 ? -errno : 0;
}
