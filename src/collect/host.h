/*
 * SPDX-License-Identifier: Apache-2.0
 * host: samples of what the whole host has and did, from /proc; the figures of struct host_record.
 */
#ifndef SLUICE_COLLECT_HOST_H
#define SLUICE_COLLECT_HOST_H

#include "model/record.h"

struct host;			/* opaque: open /proc files and the counters of the last sample */

/* Levels are current values; counters are differences since the last sample, at first since the open. */
struct host_sample {
	uint64_t interval_ns;		/* CLOCK_BOOTTIME, includes suspend */
	uint32_t cpus;			/* online */
	uint64_t memory_bytes;
	uint64_t memory_available_bytes;
	uint64_t swap_bytes;
	uint64_t swap_free_bytes;
	uint64_t cpu_capacity_ns;	/* cpus x interval */
	uint64_t cpu_busy_ns;		/* user + nice + system + irq + softirq, guests included; resolution USER_HZ */
	uint64_t cpu_iowait_ns;
	uint64_t cpu_steal_ns;
	double load1;
	struct pressure psi_cpu;	/* unknown with psi=0; there is no full for a host's CPUs */
	struct pressure psi_memory;
	struct pressure psi_io;
	/* whole disks only: no partitions, loop, ram and zram, and no dm and md made of others */
	struct opt_u64 disk_read_bytes;
	struct opt_u64 disk_write_bytes;
	struct opt_u64 net_rx_bytes;	/* see host_open() */
	struct opt_u64 net_tx_bytes;
};

/*
 * Opens the files (close-on-exec) and takes the first counters. 0 or a negative errno with *ret untouched. proc and
 * sys are "/proc" and "/sys", or other roots for a test.
 *
 * Network bytes are those of interfaces with a device: traffic of a bridge, bond, VLAN or veth also passes one of
 * these, where it would count twice, or never leaves the host. If none has a device (a container's namespace),
 * every interface but lo counts. The namespace is that of pid 1 if it may be read, else our own.
 */
int host_open(const char *proc, const char *sys, struct host **ret);
void host_close(struct host *h);	/* h may be NULL */

/*
 * Takes a sample. 0, or a negative errno with *ret untouched, and the next sample covers both intervals. A missing
 * or malformed file leaves its optional figures unknown; only stat and meminfo are required. Takes about 50 µs; not
 * for a tight loop.
 */
int host_sample(struct host *h, struct host_sample *ret);

#endif
