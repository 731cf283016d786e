/*
 * SPDX-License-Identifier: Apache-2.0
 * cpus_busy: for how long the host's CPUs were busy.
 *
 * Of /proc/stat the idle time is used: the kernel measures it, while it counts the others in ticks on many hosts, in
 * which programs that run shorter than one may have nothing.
 */
#include <fcntl.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/clock.h"
#include "collect/proctext.h"

#define STAT_MAX (4u << 20)
#define KEPT_NS UINT64_C(250000000)	/* reading takes 30 us with 2 CPUs, and some ms with hundreds */

static bool
read_busy(struct agent_cpus_busy *k, uint64_t now_ns)
{
	long hz = sysconf(_SC_CLK_TCK);
	struct proc_stat stat;
	uint64_t all_ns, idle_ns;

	if (hz <= 0 || file_read(AT_FDCWD, "/proc/stat", &k->text, STAT_MAX) < 0 ||
	    proctext_stat(k->text.text, k->text.len, &stat) < 0)
		return false;
	/* CPUs do not count as idle while the host is suspended. */
	all_ns = stat.cpus * clock_ns(CLOCK_MONOTONIC);
	idle_ns = (stat.idle + stat.iowait) * (UINT64_C(1000000000) / (uint64_t)hz);
	k->last = (struct cpu_busy){ all_ns > idle_ns ? all_ns - idle_ns : 0, now_ns, stat.cpus };
	return true;
}

bool
agent_cpus_busy(struct cpu_busy *ret, void *arg)
{
	struct agent_cpus_busy *k = &((struct agent *)arg)->cpus_busy;
	uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);

	if ((k->last.cpus == 0 || now_ns - k->last.at_ns > KEPT_NS) && !read_busy(k, now_ns))
		return false;
	*ret = k->last;
	return true;
}

void
agent_forget_cpus_busy(struct agent *a)
{
	file_text_done(&a->cpus_busy.text);
}
