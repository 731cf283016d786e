/*
 * SPDX-License-Identifier: Apache-2.0
 * usage: sums and differences of what programs used, with "unknown" kept apart from 0.
 */
#include "model/usage.h"

#include <stddef.h>

static const char *const names[USAGE_FIELDS] = {
	[USAGE_CPU_USER_NS] = "cpu_user_ns",
	[USAGE_CPU_SYSTEM_NS] = "cpu_system_ns",
	[USAGE_RUN_DELAY_NS] = "run_delay_ns",
	[USAGE_VOLUNTARY_SWITCHES] = "voluntary_switches",
	[USAGE_INVOLUNTARY_SWITCHES] = "involuntary_switches",
	[USAGE_MINOR_FAULTS] = "minor_faults",
	[USAGE_MAJOR_FAULTS] = "major_faults",
	[USAGE_PEAK_RSS_BYTES] = "peak_rss_bytes",
	[USAGE_RSS_BYTES] = "rss_bytes",
	[USAGE_READ_BYTES] = "read_bytes",
	[USAGE_WRITE_BYTES] = "write_bytes",
	[USAGE_RCHAR] = "rchar",
	[USAGE_WCHAR] = "wchar",
	[USAGE_SYSCR] = "syscr",
	[USAGE_SYSCW] = "syscw",
	[USAGE_NET_RX_BYTES] = "net_rx_bytes",
	[USAGE_NET_TX_BYTES] = "net_tx_bytes",
	[USAGE_BLOCK_IO_DELAY_NS] = "block_io_delay_ns",
	[USAGE_THREADS_PEAK] = "threads_peak",
	[USAGE_TCP_RX_BYTES] = "tcp_rx_bytes",
	[USAGE_TCP_TX_BYTES] = "tcp_tx_bytes",
	[USAGE_UDP_RX_BYTES] = "udp_rx_bytes",
	[USAGE_UDP_TX_BYTES] = "udp_tx_bytes",
	[USAGE_UNIX_RX_BYTES] = "unix_rx_bytes",
	[USAGE_UNIX_TX_BYTES] = "unix_tx_bytes",
};

_Static_assert(USAGE_FIELDS <= 32, "struct usage has 32 bits for what is known");

const char *
usage_name(enum usage_field field)
{
	return (unsigned)field < USAGE_FIELDS ? names[field] : NULL;
}

/* Of these the largest part counts: programs that ran one after the other never held the sum. */
static bool
is_peak(int field)
{
	return field == USAGE_PEAK_RSS_BYTES || field == USAGE_THREADS_PEAK;
}

void
usage_add(struct usage *sum, const struct usage *part)
{
	for (int i = 0; i < USAGE_FIELDS; i++) {
		uint64_t had, more = part->value[i];

		/* An unknown part leaves the sum as it is: what is known of the others stays told. */
		if (!usage_has(part, i))
			continue;
		had = usage_has(sum, i) ? sum->value[i] : 0;
		if (is_peak(i))
			usage_set(sum, i, more > had ? more : had);
		else
			usage_set(sum, i, more > UINT64_MAX - had ? UINT64_MAX : had + more);
	}
}

struct usage
usage_since(const struct usage *later, const struct usage *earlier)
{
	struct usage diff = { 0 };

	for (int i = 0; i < USAGE_FIELDS; i++) {
		if (!usage_has(later, i))
			continue;
		if (is_peak(i) || i == USAGE_RSS_BYTES)
			usage_set(&diff, i, later->value[i]);
		else if (usage_has(earlier, i))
			usage_set(&diff, i, later->value[i] > earlier->value[i] ?
			    later->value[i] - earlier->value[i] : 0);
	}
	/* The kernel guesses the split anew each time, and a part may run backwards; the sum does not. */
	if (usage_has(&diff, USAGE_CPU_USER_NS) && usage_has(&diff, USAGE_CPU_SYSTEM_NS)) {
		uint64_t now = usage_cpu_ns(later), then = usage_cpu_ns(earlier), total = now > then ? now - then : 0;

		if (diff.value[USAGE_CPU_USER_NS] > total)
			diff.value[USAGE_CPU_USER_NS] = total;
		diff.value[USAGE_CPU_SYSTEM_NS] = total - diff.value[USAGE_CPU_USER_NS];
	}
	return diff;
}

uint64_t
usage_cpu_ns(const struct usage *u)
{
	uint64_t sum = 0;

	if (usage_has(u, USAGE_CPU_USER_NS))
		sum += u->value[USAGE_CPU_USER_NS];
	if (usage_has(u, USAGE_CPU_SYSTEM_NS))
		sum += u->value[USAGE_CPU_SYSTEM_NS];
	return sum;
}
