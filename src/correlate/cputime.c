/*
 * SPDX-License-Identifier: Apache-2.0
 * Counters of a process → usage of one of its programs.
 */
#include "correlate/cputime.h"

#define EXIT_TAIL_NS UINT64_C(1000000)

struct cputime
cputime_split(const struct counters *c)
{
	uint64_t runtime = c->runtime_ns, system, user;
	unsigned __int128 ticks = (unsigned __int128)c->utime + c->stime;

	if ((unsigned __int128)c->prev_utime + c->prev_stime >= runtime)
		return (struct cputime){ c->prev_utime, c->prev_stime };
	/* The parent's wait(2) may overtake the last steps of the exit: they are the kernel's. */
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

/* What passed since base, its sum exact. The split may not run backwards for one program. */
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
	/* By what was told: where the split did run backwards, the next program makes up for it. */
	struct cputime told = cputime_since(base, now);

	base->counters = *now;
	base->cpu.user_ns += told.user_ns;
	base->cpu.system_ns += told.system_ns;
}

struct usage
usage_of_program(const struct usage_base *base, const struct counters *now, bool has_network)
{
	const struct counters *then = &base->counters;
	struct cputime cpu = cputime_since(base, now);
	struct usage u = { 0 };

	if (now->is_complete) {
		usage_set(&u, USAGE_CPU_USER_NS, cpu.user_ns);
		usage_set(&u, USAGE_CPU_SYSTEM_NS, cpu.system_ns);
		usage_set(&u, USAGE_RUN_DELAY_NS, since(now->run_delay_ns, then->run_delay_ns));
		usage_set(&u, USAGE_VOLUNTARY_SWITCHES,
		    since(now->voluntary_switches, then->voluntary_switches));
		usage_set(&u, USAGE_INVOLUNTARY_SWITCHES,
		    since(now->involuntary_switches, then->involuntary_switches));
		usage_set(&u, USAGE_MINOR_FAULTS, since(now->minor_faults, then->minor_faults));
		usage_set(&u, USAGE_MAJOR_FAULTS, since(now->major_faults, then->major_faults));
		usage_set(&u, USAGE_READ_BYTES, since(now->read_bytes, then->read_bytes));
		usage_set(&u, USAGE_WRITE_BYTES, since(now->write_bytes, then->write_bytes));
		usage_set(&u, USAGE_RCHAR, since(now->rchar, then->rchar));
		usage_set(&u, USAGE_WCHAR, since(now->wchar, then->wchar));
		usage_set(&u, USAGE_SYSCR, since(now->syscr, then->syscr));
		usage_set(&u, USAGE_SYSCW, since(now->syscw, then->syscw));
		if (now->has_block_io)
			usage_set(&u, USAGE_BLOCK_IO_DELAY_NS,
			    since(now->block_io_delay_ns, then->block_io_delay_ns));
	}
	if (now->has_peak) {
		usage_set(&u, USAGE_PEAK_RSS_BYTES, now->peak_rss_bytes);
		usage_set(&u, USAGE_RSS_BYTES, now->rss_bytes);
	}
	usage_set(&u, USAGE_THREADS_PEAK, now->threads_peak);
	if (has_network) {
		uint64_t tcp_rx = since(now->tcp_rx_bytes, then->tcp_rx_bytes);
		uint64_t tcp_tx = since(now->tcp_tx_bytes, then->tcp_tx_bytes);
		uint64_t udp_rx = since(now->udp_rx_bytes, then->udp_rx_bytes);
		uint64_t udp_tx = since(now->udp_tx_bytes, then->udp_tx_bytes);

		usage_set(&u, USAGE_NET_RX_BYTES,
		    tcp_rx + udp_rx + since(now->other_rx_bytes, then->other_rx_bytes));
		usage_set(&u, USAGE_NET_TX_BYTES,
		    tcp_tx + udp_tx + since(now->other_tx_bytes, then->other_tx_bytes));
		usage_set(&u, USAGE_TCP_RX_BYTES, tcp_rx);
		usage_set(&u, USAGE_TCP_TX_BYTES, tcp_tx);
		usage_set(&u, USAGE_UDP_RX_BYTES, udp_rx);
		usage_set(&u, USAGE_UDP_TX_BYTES, udp_tx);
		usage_set(&u, USAGE_UNIX_RX_BYTES, since(now->unix_rx_bytes, then->unix_rx_bytes));
		usage_set(&u, USAGE_UNIX_TX_BYTES, since(now->unix_tx_bytes, then->unix_tx_bytes));
	}
	return u;
}
