/*
 * SPDX-License-Identifier: Apache-2.0
 * host: samples of what the whole host has and did, from /proc; the figures of struct host_record.
 */
#ifndef SLUICE_COLLECT_HOST_H
#define SLUICE_COLLECT_HOST_H

#include "model/record.h"

struct host;			/* opaque: open /proc files and the counters of the last sample */

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
 * Takes a sample: sets the figures of *ret that these files have, head.time_us to when it was taken, which is where its
 * interval ends, and all other members (the rest of head, names, processes, threads, attributed figures, prices) to 0.
 * Levels are current values; counters are differences since the last sample, at first since the open. 0, or a negative
 * errno with *ret untouched, and the next sample covers both intervals. A missing or malformed file leaves its optional
 * figures unknown; only stat and meminfo are required. Takes about 50 µs; not for a tight loop.
 */
int host_sample(struct host *h, struct host_record *ret);

#endif
