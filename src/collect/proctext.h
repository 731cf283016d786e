/*
 * SPDX-License-Identifier: Apache-2.0
 * proctext: parsers of the kernel's text files under /proc and /sys/fs/cgroup.
 *
 * Pure: bytes in, values out; the text need not be NUL-terminated. Fields and lines that newer kernels add are
 * skipped. A required field that is missing, is no number or overflows is an error: -EINVAL or -ERANGE, with *ret
 * untouched.
 */
#ifndef SLUICE_COLLECT_PROCTEXT_H
#define SLUICE_COLLECT_PROCTEXT_H

#include "model/record.h"

/* A part of the given text: not NUL-terminated, valid as long as the text. */
struct proc_word {
	const char *at;
	size_t len;
};

/* Returns true if the word is equal to name. */
bool proc_word_is(struct proc_word word, const char *name);

/* Values of /proc/stat: since boot, in ticks of USER_HZ. */
struct proc_stat {
	uint64_t user;		/* includes guest */
	uint64_t nice;		/* includes guest_nice */
	uint64_t system;
	uint64_t idle;
	uint64_t iowait;	/* may decrease */
	uint64_t irq;
	uint64_t softirq;
	uint64_t steal;
	uint32_t cpus;		/* online ones: lines cpu0, cpu1 ... */
};

/* Reads /proc/stat. Returns 0; -EINVAL or -ERANGE with *ret untouched, as for the next two. */
int proctext_stat(const char *text, size_t len, struct proc_stat *ret);

/* Values of /proc/meminfo, in bytes. */
struct proc_meminfo {
	uint64_t total;
	uint64_t available;
	uint64_t swap_total;	/* 0 on a kernel without swap */
	uint64_t swap_free;
};

/* Reads /proc/meminfo. Values of swap that are missing are 0. */
int proctext_meminfo(const char *text, size_t len, struct proc_meminfo *ret);

/* Stall times of /proc/pressure/X, or X.pressure of a cgroup: since boot, in microseconds. */
struct proc_pressure {
	uint64_t some_us;
	struct opt_u64 full_us;	/* missing for cpu before 5.13 */
};

/* Reads a file of pressure. The line "some" is required. */
int proctext_pressure(const char *text, size_t len, struct proc_pressure *ret);

/* Reads the first number of /proc/loadavg. */
int proctext_load1(const char *text, size_t len, double *ret);

/*
 * Files of many lines have a proctext_next function each, which takes the next line with data off *text, *len. It
 * returns 1 with *ret filled, 0 at the end, or a negative errno for a malformed line, which it skips, so that the
 * caller may continue.
 */

/* A line of /proc/diskstats. */
struct proc_disk {
	uint64_t major, minor;
	struct proc_word name;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t busy_ms;		/* in which a request was under way; 0: the line ends before */
};

/* Takes the next line of /proc/diskstats; sectors are converted to bytes. */
int proctext_next_disk(const char **text, size_t *len, struct proc_disk *ret);

/* A line of /proc/net/dev. */
struct proc_interface {
	struct proc_word name;
	uint64_t rx_bytes;
	uint64_t tx_bytes;
};

/* Takes the next interface of /proc/net/dev; the two lines of headings are skipped. */
int proctext_next_interface(const char **text, size_t *len, struct proc_interface *ret);

/* A line of /proc/PID/cgroup: "4:memory:/a", "9:name=systemd:/a", "0::/a" for v2. */
struct proc_cgroup {
	uint32_t hierarchy;		/* 0: v2 */
	struct proc_word controllers;	/* comma-separated; empty for v2 */
	struct proc_word path;		/* without the " (deleted)" of a removed cgroup */
	bool is_deleted;
};

/* Takes the next line of /proc/PID/cgroup. */
int proctext_next_cgroup(const char **text, size_t *len, struct proc_cgroup *ret);

/* A cgroup mount in /proc/PID/mountinfo; other lines are skipped. */
struct proc_cgroup_mount {
	bool is_v2;
	struct proc_word controllers;	/* v1: the super options, "rw,memory" */
	struct proc_word root;		/* the mounted cgroup; escaped as in the file */
	struct proc_word point;		/* the mount point; escaped as in the file */
};

/* Takes the next cgroup mount of /proc/PID/mountinfo. */
int proctext_next_cgroup_mount(const char **text, size_t *len, struct proc_cgroup_mount *ret);

/*
 * Undoes mountinfo's \040 escapes into buf, NUL-terminated. Returns the length; -ENAMETOOLONG; -EINVAL for a \
 * without three octal digits and for a NUL.
 */
int proctext_unescape(struct proc_word word, char *buf, size_t cap);

/* Returns true if name is a word of a comma-separated list. */
bool proctext_list_has(struct proc_word list, const char *name);

/* Parses cpu.max of v2: "max 100000" (unknown: no limit) or "150000 100000" (1.5 CPUs). */
int proctext_cpu_max(const char *text, size_t len, struct opt_double *ret);
/* Parses cpu.cfs_quota_us and cpu.cfs_period_us of v1; a negative quota is no limit. */
int proctext_cfs(const char *quota, size_t quota_len, const char *period, size_t period_len,
    struct opt_double *ret);
/* Counts the CPUs of a list such as "0-3,7,9-11"; 0 for an empty list. Ranges must rise and not overlap. */
int proctext_cpu_list(const char *text, size_t len, uint32_t *ret);
/* Finds the number behind a key in a file of "KEY NUMBER" lines, as cpu.stat. -ENOENT: no line has it. */
int proctext_key(const char *text, size_t len, const char *key, uint64_t *ret);
/* Parses memory.max of v2 and memory.limit_in_bytes of v1; "max" and 2^62 or more are no limit. */
int proctext_memory_limit(const char *text, size_t len, struct opt_u64 *ret);

#endif
