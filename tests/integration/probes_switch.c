/*
 * SPDX-License-Identifier: Apache-2.0
 * probes_switch FILE|PID WHAT: changes the variables of a running agent's programs, found by the path of their pin or
 * by the process that loaded them.
 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/probes_state.h"
#include "base/clock.h"

/* Returns a descriptor of the map that has this file in /proc/PID/fdinfo, if it is that of the variables; or -1. */
static int
open_if_shared(const char *fdinfo)
{
	struct bpf_map_info info = { 0 };
	FILE *f = fopen(fdinfo, "r");
	__u32 len = sizeof(info);
	char line[256];
	unsigned id = 0;
	int fd;

	while (f != NULL && id == 0 && fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "map_id: %u", &id);
	if (f != NULL)
		fclose(f);
	fd = id != 0 ? bpf_map_get_fd_by_id(id) : -1;
	if (fd < 0 || (bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && strcmp(info.name, ".data.shared") == 0))
		return fd;
	close(fd);
	return -1;
}

static int
open_of_process(const char *pid)
{
	char path[PATH_MAX];
	struct dirent *e;
	int fd = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", pid);
	dir = opendir(path);
	while (dir != NULL && fd < 0 && (e = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, e->d_name);
		fd = open_if_shared(path);
	}
	if (dir != NULL)
		closedir(dir);
	return fd;
}

static void
store(void *to, uint64_t value)
{
	__atomic_store_n((uint64_t *)to, value, __ATOMIC_SEQ_CST);
}

static int
change(struct sluice_bpf__data_shared *shared, const char *what)
{
	if (strcmp(what, "blind") == 0) {		/* they follow no process whose parent they do not follow already */
		__atomic_store_n(&shared->follow_all, 0, __ATOMIC_SEQ_CST);
	} else if (strcmp(what, "seeing") == 0) {	/* undoes that */
		__atomic_store_n(&shared->follow_all, 1, __ATOMIC_SEQ_CST);
	} else if (strcmp(what, "quiet") == 0) {
		/*
		 * What an agent leaves that was killed when it had just taken the lease back, before the time without
		 * it was recorded; that begins now.
		 */
		store(&shared->quiet_since_ns, clock_ns(CLOCK_BOOTTIME));
	} else if (strcmp(what, "lost") == 0) {		/* the watchdog expires */
		store(&shared->quiet_since_ns, clock_ns(CLOCK_BOOTTIME));
		store(&shared->lease, 0);
	} else if (strcmp(what, "taken") == 0) {	/* the programs of another agent have the lease */
		store(&shared->lease, shared->lease + 1);
	} else if (strcmp(what, "lease") == 0) {	/* prints whose programs report events; 0: none do */
		printf("%llu\n", (unsigned long long)__atomic_load_n(&shared->lease, __ATOMIC_SEQ_CST));
	} else if (strcmp(what, "wakeup") == 0) {	/* prints whether one is under way, so that no other is sent */
		printf("%u\n", __atomic_load_n(&shared->wake_latch, __ATOMIC_SEQ_CST));
	} else {
		return 2;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct sluice_bpf__data_shared *shared;
	int fd;

	if (argc != 3)
		return 2;
	fd = argv[1][0] == '/' ? bpf_obj_get(argv[1]) : open_of_process(argv[1]);
	shared = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	return change(shared, argv[2]);
}
