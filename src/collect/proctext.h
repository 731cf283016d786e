/*
 * SPDX-License-Identifier: Apache-2.0
 * proctext: parsers of the kernel's text files under /proc and /sys/fs/cgroup.
 *
 * Pure: bytes in, values out; the text need not be NUL-terminated. Fields and lines that newer
 * kernels add are passed over; a field that must be there and is not, is no number or overflows is
 * refused: -EINVAL or -ERANGE, and *ret untouched.
 */
#ifndef SLUICE_COLLECT_PROCTEXT_H
#define SLUICE_COLLECT_PROCTEXT_H

#include "model/record.h"

/* A piece of the text that was given: not NUL-terminated, lives as long as it. */
struct proc_word {
	const char *at;
	size_t len;
};

bool proc_word_is(struct proc_word word, const char *name);

/* /proc/stat: since boot, in ticks of USER_HZ. */
struct proc_stat {
	uint64_t user;		/* with guest in it */
	uint64_t nice;		/* with guest_nice in it */
	uint64_t system;
	uint64_t idle;
	uint64_t iowait;	/* may go down */
	uint64_t irq;
	uint64_t softirq;
	uint64_t steal;
	uint32_t cpus;		/* online: the lines cpu0, cpu1 ... */
};

int proctext_stat(const char *text, size_t len, struct proc_stat *ret);

/* /proc/meminfo, in bytes. */
struct proc_meminfo {
	uint64_t total;
	uint64_t available;
	uint64_t swap_total;	/* 0 on a kernel without swap */
	uint64_t swap_free;
};

int proctext_meminfo(const char *text, size_t len, struct proc_meminfo *ret);

/* /proc/pressure/X and X.pressure of a cgroup: stalled since boot, in microseconds. */
struct proc_pressure {
	uint64_t some_us;
	struct opt_u64 full_us;	/* cpu has no such line before 5.13 */
};

int proctext_pressure(const char *text, size_t len, struct proc_pressure *ret);

/* /proc/loadavg: the first number. */
int proctext_load1(const char *text, size_t len, double *ret);

/*
 * The files of many lines: each call takes the next line that says something from *text, *len. 1
 * with *ret filled, 0 at the end, or a negative errno for a line that is malformed; the line is
 * passed over in any case, so that the caller may go on.
 */
struct proc_disk {
	struct proc_word name;
	uint64_t read_bytes;
	uint64_t write_bytes;
};

int proctext_next_disk(const char **text, size_t *len, struct proc_disk *ret);	/* /proc/diskstats */

struct proc_interface {
	struct proc_word name;
	uint64_t rx_bytes;
	uint64_t tx_bytes;
};

int proctext_next_interface(const char **text, size_t *len, struct proc_interface *ret);	/* net/dev */

/* /proc/PID/cgroup: "4:memory:/a", "9:name=systemd:/a", "0::/a" for v2. */
struct proc_cgroup {
	uint32_t hierarchy;		/* 0 is v2 */
	struct proc_word controllers;	/* comma-separated; empty for v2 */
	struct proc_word path;		/* without the " (deleted)" of a removed cgroup */
	bool is_deleted;
};

int proctext_next_cgroup(const char **text, size_t *len, struct proc_cgroup *ret);

/* /proc/PID/mountinfo: the cgroup mounts only; other lines are passed over. */
struct proc_cgroup_mount {
	bool is_v2;
	struct proc_word controllers;	/* v1: the super options, "rw,memory" */
	struct proc_word root;		/* the cgroup that is mounted; escaped as in the file */
	struct proc_word point;		/* where; escaped as in the file */
};

int proctext_next_cgroup_mount(const char **text, size_t *len, struct proc_cgroup_mount *ret);

/*
 * Undoes mountinfo's \040 escapes into buf, NUL-terminated. Its length, or -ENAMETOOLONG, or -EINVAL
 * for a \ without three octal digits and for a NUL.
 */
int proctext_unescape(struct proc_word word, char *buf, size_t cap);

/* Is name one of the words of a comma-separated list? */
bool proctext_list_has(struct proc_word list, const char *name);

/* cpu.max of v2: "max 100000" (unknown: no limit) or "150000 100000" (1.5 CPUs). */
int proctext_cpu_max(const char *text, size_t len, struct opt_double *ret);
/* cpu.cfs_quota_us and cpu.cfs_period_us of v1; a negative quota is no limit. */
int proctext_cfs(const char *quota, size_t quota_len, const char *period, size_t period_len,
    struct opt_double *ret);
/* How many CPUs "0-3,7,9-11" names; 0 for an empty list. Ranges must rise and not overlap. */
int proctext_cpu_list(const char *text, size_t len, uint32_t *ret);
/* memory.max of v2 and memory.limit_in_bytes of v1; "max" and 2^62 or more are no limit. */
int proctext_memory_limit(const char *text, size_t len, struct opt_u64 *ret);

#endif
