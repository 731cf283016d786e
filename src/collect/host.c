/*
 * SPDX-License-Identifier: Apache-2.0
 * host: samples of what the whole host has and did, from /proc; the figures of struct host_record.
 */
#include "collect/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/file.h"
#include "collect/proctext.h"

#define TEXT_MAX (4u << 20)	/* enough for /proc/stat of thousands of CPUs and interrupts */
#define DEVICES_MAX 4096	/* further ones are not counted: veths of a broken host */
#define NAME_MAX_LEN 64

enum source {
	SOURCE_STAT,
	SOURCE_MEMINFO,
	SOURCE_LOADAVG,
	SOURCE_PSI_CPU,
	SOURCE_PSI_MEMORY,
	SOURCE_PSI_IO,
	SOURCE_DISKSTATS,
	SOURCE_NET_DEV,
	SOURCES,
};

static const char *const source_path[SOURCES] = {
	[SOURCE_STAT] = "stat",
	[SOURCE_MEMINFO] = "meminfo",
	[SOURCE_LOADAVG] = "loadavg",
	[SOURCE_PSI_CPU] = "pressure/cpu",
	[SOURCE_PSI_MEMORY] = "pressure/memory",
	[SOURCE_PSI_IO] = "pressure/io",
	[SOURCE_DISKSTATS] = "diskstats",
	[SOURCE_NET_DEV] = "1/net/dev",
};

/*
 * A disk or an interface. Each has its own counters, so that unplugging one subtracts nothing and plugging one in
 * adds only its own bytes.
 */
struct device {
	char name[NAME_MAX_LEN];
	uint64_t in;
	uint64_t out;
	bool is_real;		/* a whole disk; an interface with a device */
	uint32_t round;		/* in which it was last seen */
	UT_hash_handle hh;
};

struct devices {
	struct device *by_name;	/* owned */
	uint32_t round;
	bool has_base;		/* counters of the last sample are complete */
};

/* Bytes in and out since the last sample. */
struct traffic {
	uint64_t in;
	uint64_t out;
};

struct host {
	int fd[SOURCES];	/* -1: missing */
	char *sys;		/* owned */
	long hz;		/* ticks per second in /proc/stat */
	struct file_text text;
	uint64_t then_ns;	/* CLOCK_BOOTTIME of the last sample */
	struct proc_stat stat;	/* of the last sample */
	struct proc_pressure psi[3];
	bool has_psi[3];
	struct devices disks;
	struct devices interfaces;
};

/* Reads one source into h->text. */
static int
read_source(struct host *h, enum source source)
{
	return h->fd[source] < 0 ? -ENOENT : file_read_fd(h->fd[source], &h->text, TEXT_MAX);
}

static bool
exists(const char *dir, const char *class, const char *name, const char *what)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s/%s/%s", dir, class, name, what) <
	    (int)sizeof(path) && access(path, F_OK) == 0;
}

/* A disk made of others would count the same bytes twice. */
static bool
is_whole_disk(const struct host *h, const char *name)
{
	static const char *const virtual[] = { "loop", "ram", "zram", "zd", "drbd", NULL };
	char sysname[NAME_MAX_LEN], path[PATH_MAX];
	const struct dirent *entry;
	bool has_slave = false;
	DIR *dir;

	for (size_t i = 0; virtual[i] != NULL; i++)
		if (strncmp(name, virtual[i], strlen(virtual[i])) == 0)
			return false;
	/* sysfs has '!' for the '/' of "cciss/c0d0". */
	for (size_t i = 0; i == 0 || name[i - 1] != '\0'; i++)
		sysname[i] = name[i] == '/' ? '!' : name[i];
	if (!exists(h->sys, "block", sysname, ""))
		return false;		/* a partition */
	if (snprintf(path, sizeof(path), "%s/block/%s/slaves", h->sys, sysname) >= (int)sizeof(path))
		return false;
	dir = opendir(path);
	if (dir == NULL)
		return true;
	while ((entry = readdir(dir)) != NULL)
		has_slave |= entry->d_name[0] != '.';
	closedir(dir);
	return !has_slave;
}

/* A virtual function below a synthetic card (Azure) has a device, and so does its master. */
static bool
is_real_interface(const struct host *h, const char *name)
{
	return exists(h->sys, "class/net", name, "device") &&
	    !exists(h->sys, "class/net", name, "master/device");
}

static void
devices_done(struct devices *d)
{
	struct device *device, *next;

	HASH_ITER(hh, d->by_name, device, next) {
		HASH_DEL(d->by_name, device);
		free(device);
	}
}

/* Drops devices that this round has not seen. */
static void
devices_sweep(struct devices *d)
{
	struct device *device, *next;

	HASH_ITER(hh, d->by_name, device, next) {
		if (device->round == d->round)
			continue;
		HASH_DEL(d->by_name, device);
		free(device);
	}
}

/*
 * Finds or makes a device, stores its new counters, and sets *moved to the bytes since the last sample; of a new
 * device, to all bytes. Returns NULL if there is no room, or the name is too long.
 */
static struct device *
devices_note(struct devices *d, struct proc_word name, uint64_t in, uint64_t out,
    struct traffic *moved, bool *is_new)
{
	struct device *device;

	if (name.len >= NAME_MAX_LEN)
		return NULL;
	HASH_FIND(hh, d->by_name, name.at, name.len, device);
	*is_new = device == NULL;
	if (device == NULL) {
		if (HASH_COUNT(d->by_name) >= DEVICES_MAX)
			return NULL;
		device = calloc(1, sizeof(*device));
		if (device == NULL)
			return NULL;
		memcpy(device->name, name.at, name.len);
		HASH_ADD(hh, d->by_name, name, name.len, device);
	}
	/* A counter that decreased is of a new device with the same name. */
	moved->in = in >= device->in ? in - device->in : in;
	moved->out = out >= device->out ? out - device->out : out;
	device->in = in;
	device->out = out;
	device->round = d->round;
	return device;
}

/* Ends a round; returns whether the difference to the last sample is valid. */
static bool
devices_end(struct devices *d, int error)
{
	bool had_base = d->has_base;

	if (error == 0)
		devices_sweep(d);
	d->has_base = error == 0;
	return error == 0 && had_base;
}

static bool
sample_disks(struct host *h, struct traffic *ret)
{
	struct traffic sum = { 0 }, moved;
	struct proc_disk disk;
	struct device *device;
	const char *text;
	bool is_new;
	size_t len;
	int r;

	r = read_source(h, SOURCE_DISKSTATS);
	if (r < 0)
		return devices_end(&h->disks, r);
	h->disks.round++;
	text = h->text.text;
	len = h->text.len;
	while ((r = proctext_next_disk(&text, &len, &disk)) > 0) {
		device = devices_note(&h->disks, disk.name, disk.read_bytes, disk.write_bytes,
		    &moved, &is_new);
		if (device == NULL)
			continue;
		if (is_new)
			device->is_real = is_whole_disk(h, device->name);
		if (device->is_real) {
			sum.in += moved.in;
			sum.out += moved.out;
		}
	}
	*ret = sum;
	return devices_end(&h->disks, r);
}

static bool
sample_interfaces(struct host *h, struct traffic *ret)
{
	struct traffic real = { 0 }, all = { 0 }, moved;
	struct proc_interface interface;
	struct device *device;
	bool is_new, has_real = false;
	const char *text;
	size_t len;
	int r;

	r = read_source(h, SOURCE_NET_DEV);
	if (r < 0)
		return devices_end(&h->interfaces, r);
	h->interfaces.round++;
	text = h->text.text;
	len = h->text.len;
	while ((r = proctext_next_interface(&text, &len, &interface)) > 0) {
		if (proc_word_is(interface.name, "lo"))
			continue;
		device = devices_note(&h->interfaces, interface.name, interface.rx_bytes,
		    interface.tx_bytes, &moved, &is_new);
		if (device == NULL)
			continue;
		if (is_new)
			device->is_real = is_real_interface(h, device->name);
		all.in += moved.in;
		all.out += moved.out;
		if (device->is_real) {
			has_real = true;
			real.in += moved.in;
			real.out += moved.out;
		}
	}
	*ret = has_real ? real : all;
	return devices_end(&h->interfaces, r);
}

/* Returns the part of the interval that was stalled. */
static struct opt_double
share(uint64_t now_us, uint64_t then_us, uint64_t interval_ns)
{
	double part;

	if (interval_ns == 0 || now_us < then_us)
		return (struct opt_double){ 0 };
	part = (double)(now_us - then_us) * 1000 / (double)interval_ns;
	return (struct opt_double){ .value = part < 1 ? part : 1, .known = true };
}

static struct pressure
sample_pressure(struct host *h, enum source source, uint64_t interval_ns)
{
	struct pressure pressure = { 0 };
	const int i = source - SOURCE_PSI_CPU;
	struct proc_pressure now, then = h->psi[i];
	bool had = h->has_psi[i];

	h->has_psi[i] = read_source(h, source) == 0 &&
	    proctext_pressure(h->text.text, h->text.len, &now) == 0;
	if (!h->has_psi[i])
		return pressure;
	h->psi[i] = now;
	if (!had)
		return pressure;
	pressure.some = share(now.some_us, then.some_us, interval_ns);
	/* For a host's CPUs the kernel writes a full line of zeros, for compatibility with old readers. */
	if (source != SOURCE_PSI_CPU && now.full_us.known && then.full_us.known)
		pressure.full = share(now.full_us.value, then.full_us.value, interval_ns);
	return pressure;
}

/* Returns the ticks between two readings in nanoseconds; iowait may decrease. */
static uint64_t
ticks_ns(const struct host *h, uint64_t now, uint64_t then)
{
	return now > then ? (now - then) * (UINT64_C(1000000000) / (uint64_t)h->hz) : 0;
}

int
host_sample(struct host *h, struct host_record *ret)
{
	struct host_record s = { 0 };
	struct proc_stat stat;
	struct proc_meminfo mem;
	struct traffic moved;
	uint64_t now_ns;
	int r;

	/* Side by side, so that the intervals of all samples follow one another without a gap, as their times say. */
	now_ns = clock_ns(CLOCK_BOOTTIME);
	s.head.time_us = clock_us(CLOCK_REALTIME);
	r = read_source(h, SOURCE_STAT);
	if (r == 0)
		r = proctext_stat(h->text.text, h->text.len, &stat);
	if (r == 0)
		r = read_source(h, SOURCE_MEMINFO);
	if (r == 0)
		r = proctext_meminfo(h->text.text, h->text.len, &mem);
	if (r < 0)
		return r;	/* nothing in h has changed yet */

	s.interval_ns = now_ns - h->then_ns;
	s.cpus = stat.cpus;
	s.memory_bytes = mem.total;
	s.memory_available_bytes = mem.available;
	s.swap_bytes = mem.swap_total;
	s.swap_free_bytes = mem.swap_free;
	s.cpu_capacity_ns = s.cpus * s.interval_ns;
	s.cpu_busy_ns = ticks_ns(h, stat.user, h->stat.user) + ticks_ns(h, stat.nice, h->stat.nice) +
	    ticks_ns(h, stat.system, h->stat.system) + ticks_ns(h, stat.irq, h->stat.irq) +
	    ticks_ns(h, stat.softirq, h->stat.softirq);
	s.cpu_iowait_ns = ticks_ns(h, stat.iowait, h->stat.iowait);
	s.cpu_steal_ns = ticks_ns(h, stat.steal, h->stat.steal);
	h->stat = stat;
	h->then_ns = now_ns;

	if (read_source(h, SOURCE_LOADAVG) < 0 ||
	    proctext_load1(h->text.text, h->text.len, &s.load1) < 0)
		s.load1 = 0;
	s.psi_cpu = sample_pressure(h, SOURCE_PSI_CPU, s.interval_ns);
	s.psi_memory = sample_pressure(h, SOURCE_PSI_MEMORY, s.interval_ns);
	s.psi_io = sample_pressure(h, SOURCE_PSI_IO, s.interval_ns);
	if (sample_disks(h, &moved)) {
		s.disk_read_bytes = (struct opt_u64){ moved.in, true };
		s.disk_write_bytes = (struct opt_u64){ moved.out, true };
	}
	if (sample_interfaces(h, &moved)) {
		s.net_rx_bytes = (struct opt_u64){ moved.in, true };
		s.net_tx_bytes = (struct opt_u64){ moved.out, true };
	}
	*ret = s;
	return 0;
}

int
host_open(const char *proc, const char *sys, struct host **ret)
{
	struct host_record first;
	char path[PATH_MAX];
	struct host *h;
	int r;

	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -ENOMEM;
	for (int i = 0; i < SOURCES; i++)
		h->fd[i] = -1;
	h->hz = sysconf(_SC_CLK_TCK);
	h->sys = strdup(sys);
	r = -ENOMEM;
	if (h->hz <= 0 || h->sys == NULL)
		goto fail;
	for (int i = 0; i < SOURCES; i++) {
		r = -ENAMETOOLONG;
		if (snprintf(path, sizeof(path), "%s/%s", proc, source_path[i]) >= (int)sizeof(path))
			goto fail;
		h->fd[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (h->fd[i] < 0 && i == SOURCE_NET_DEV) {
			snprintf(path, sizeof(path), "%s/net/dev", proc);
			h->fd[i] = open(path, O_RDONLY | O_CLOEXEC);
		}
	}
	r = host_sample(h, &first);
	if (r < 0)
		goto fail;
	*ret = h;
	return 0;

fail:
	host_close(h);
	return r;
}

void
host_close(struct host *h)
{
	if (h == NULL)
		return;
	for (int i = 0; i < SOURCES; i++)
		if (h->fd[i] >= 0)
			close(h->fd[i]);
	devices_done(&h->disks);
	devices_done(&h->interfaces);
	file_text_done(&h->text);
	free(h->sys);
	free(h);
}
