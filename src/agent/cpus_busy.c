/*
 * SPDX-License-Identifier: Apache-2.0
 * cpus_busy: for how long the host's CPUs were busy.
 *
 * Of /proc/stat the idle time is used: the kernel measures it, while it counts the others in ticks on many hosts, in
 * which programs that run shorter than one may have nothing.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/clock.h"
#include "collect/proctext.h"

#define STAT_MAX (4u << 20)
#define KEPT_NS UINT64_C(250000000)
#define KEPT_READS 100			/* as long as this many take: 30 us with 2 CPUs, some ms with hundreds */

static bool
read_busy(struct agent_cpus_busy *k, uint64_t now_ns)
{
	/* CPUs do not count as idle while the host is suspended. */
	uint64_t before_ns = clock_ns(CLOCK_MONOTONIC), idle_ns, tick_ns;
	long hz = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;
	struct statfs fs;
	int r;

	/* That of lxcfs, in a container, has what other containers use as idle. */
	if (hz <= 0 || statfs("/proc/stat", &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return false;
	r = file_read(AT_FDCWD, "/proc/stat", &k->text, STAT_MAX);
	k->took_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;
	if (r < 0 || proctext_stat(k->text.text, k->text.len, &stat) < 0)
		return false;
	tick_ns = UINT64_C(1000000000) / (uint64_t)hz;
	idle_ns = (stat.idle + stat.iowait) * tick_ns;
	if (idle_ns + 2 * tick_ns >= stat.cpus * before_ns)
		return false;		/* CPUs that idled for long are offline now */
	k->last = (struct cpu_busy){ now_ns, stat.cpus * before_ns - idle_ns - 2 * tick_ns,
		stat.cpus * (before_ns + k->took_ns) - idle_ns, stat.cpus };
	return true;
}

bool
agent_cpus_busy(struct cpu_busy *ret, void *arg)
{
	struct agent_cpus_busy *k = &((struct agent *)arg)->cpus_busy;
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
	uint64_t kept_ns = k->took_ns * KEPT_READS > KEPT_NS ? k->took_ns * KEPT_READS : KEPT_NS;

	if (k->asked_ns == 0 || now_ns - k->asked_ns > kept_ns) {
		k->asked_ns = now_ns;
		k->is_known = read_busy(k, now_ns);
	}
	*ret = k->last;
	return k->is_known;
}

void
agent_forget_cpus_busy(struct agent *a)
{
	file_text_done(&a->cpus_busy.text);
}
