/*
 * SPDX-License-Identifier: Apache-2.0
 * Counters of a process → usage of one of its programs.
 */
#include "correlate/cputime.h"

#include "correlate/process.h"
#include "correlate/state.h"

#define EXIT_TAIL_NS UINT64_C(1000000)

struct cputime
cputime_split(const struct counters *c)
{
	uint64_t runtime = c->runtime_ns, system, user;
	unsigned __int128 ticks = (unsigned __int128)c->utime + c->stime;

	if ((unsigned __int128)c->prev_utime + c->prev_stime >= runtime)
		return (struct cputime){ c->prev_utime, c->prev_stime };
	/* wait(2) in the parent may run before the last steps of the exit: those are system time. */
	if (c->is_reaped && runtime - c->prev_utime - c->prev_stime < EXIT_TAIL_NS)
		return (struct cputime){ c->prev_utime, runtime - c->prev_utime };
	if (c->stime == 0)
		system = 0;
	else if (c->utime == 0)
		system = runtime;
	else
		system = (uint64_t)((unsigned __int128)c->stime * runtime / ticks);
	if (system < c->prev_stime)
		system = c->prev_stime;
	user = runtime - system;
	if (user < c->prev_utime) {
		user = c->prev_utime;
		system = runtime - user;
	}
	return (struct cputime){ user, system };
}

static uint64_t
since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

/* Returns the CPU time since base; the sum is exact. For one program the split never decreases. */
static struct cputime
cputime_since(const struct usage_base *base, const struct counters *now)
{
	struct cputime cpu = cputime_split(now);
	uint64_t total = since(cpu.user_ns + cpu.system_ns, base->cpu.user_ns + base->cpu.system_ns);
	uint64_t user = since(cpu.user_ns, base->cpu.user_ns);

	if (user > total)
		user = total;
	return (struct cputime){ user, total - user };
}

void
usage_base_set(struct usage_base *base, const struct counters *now)
{
	/* By the time that was reported: where the split did decrease, the next program makes up for it. */
	struct cputime used = cputime_since(base, now);

	base->counters = *now;
	base->cpu.user_ns += used.user_ns;
	base->cpu.system_ns += used.system_ns;
}

struct usage
usage_of_program(const struct usage_base *base, const struct counters *now, bool has_network)
{
	const struct counters *then = &base->counters;
	bool is_complete = now->is_complete, has_delays = is_complete && now->has_block_io;
	bool has_thrashing = has_delays && now->has_thrashing, has_compact = has_delays && now->has_compact;
	bool has_block_io = has_delays && !now->has_odd_block_io;
	bool has_peak = now->has_peak, is_always = true;
	bool has_rss = has_peak && now->rss_bytes > 0;	/* none that runs has nothing: 0 is unknown, see on_free */
	struct usage u = { 0 };

#define COUNTED_SUM(name) since(now->name, then->name)
#define COUNTED_LEVEL(name) now->name
#define COUNTED_PEAK(name) now->name
#define RESOURCE_MADE(NAME, name, unit, kind, when, first, doc)
#define RESOURCE(NAME, name, unit, kind, when, first, doc) \
	if (when) \
		usage_set(&u, USAGE_##NAME, COUNTED_##kind(name));
#include "resources.h"
	if (is_complete) {
		struct cputime cpu = cputime_since(base, now);

		usage_set(&u, USAGE_CPU_USER_NS, cpu.user_ns);
		usage_set(&u, USAGE_CPU_SYSTEM_NS, cpu.system_ns);
	}
	if (has_network) {
		usage_set(&u, USAGE_NET_RX_BYTES, since(now->tcp_rx_bytes, then->tcp_rx_bytes) +
		    since(now->udp_rx_bytes, then->udp_rx_bytes) + since(now->other_rx_bytes, then->other_rx_bytes));
		usage_set(&u, USAGE_NET_TX_BYTES, since(now->tcp_tx_bytes, then->tcp_tx_bytes) +
		    since(now->udp_tx_bytes, then->udp_tx_bytes) + since(now->other_tx_bytes, then->other_tx_bytes));
	}
	return u;
}
