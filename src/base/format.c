/*
 * SPDX-License-Identifier: Apache-2.0
 * format: numbers, and signals, as people read them.
 */
#include "base/format.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

char *
format_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	/* 1023.5 would print as "1024 KiB", so such a value is printed in the next unit. */
	while (unit + 1 < sizeof(units) / sizeof(units[0]) && value >= (unit ? 1023.5 : 1024)) {
		value /= 1024;
		unit++;
	}
	if (bytes == 0)
		snprintf(buf, size, "0");
	else if (unit > 0 && value < 9.95)
		snprintf(buf, size, "%.1f %s", value, units[unit]);
	else
		snprintf(buf, size, "%.0f %s", value, units[unit]);
	return buf;
}

char *
format_duration(uint64_t ns, char *buf, size_t size)
{
	uint64_t us, ms, tenths, s;

	/* Each unit is rounded once, from ns, and the next unit begins where the rounded value would overflow. */
	us = ns / 1000 + (ns % 1000 >= 500);
	ms = ns / 1000000 + (ns % 1000000 >= 500000);
	tenths = ns / 100000000 + (ns % 100000000 >= 50000000);
	s = ns / 1000000000 + (ns % 1000000000 >= 500000000);
	if (us == 0)
		snprintf(buf, size, ns == 0 ? "0s" : "<1us");
	else if (us < 1000)
		snprintf(buf, size, "%" PRIu64 "us", us);
	else if (ms < 1000)
		snprintf(buf, size, "%" PRIu64 "ms", ms);
	else if (tenths < 600)
		snprintf(buf, size, "%" PRIu64 ".%us", tenths / 10, (unsigned)(tenths % 10));
	else if (s < 3600)
		snprintf(buf, size, "%" PRIu64 "m%02us", s / 60, (unsigned)(s % 60));
	else if (s < 86400)
		snprintf(buf, size, "%" PRIu64 "h%02um", s / 3600, (unsigned)(s / 60 % 60));
	else
		snprintf(buf, size, "%" PRIu64 "d%02uh", s / 86400, (unsigned)(s / 3600 % 24));
	return buf;
}

char *
format_count(uint64_t count, char *buf, size_t size)
{
	char digits[FORMAT_SIZE], text[FORMAT_SIZE];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	int o = 0;

	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			text[o++] = ',';
		text[o++] = digits[i];
	}
	text[o] = '\0';
	snprintf(buf, size, "%s", text);
	return buf;
}

char *
format_percent(double share, char *buf, size_t size)
{
	if (!(share > 0))	/* includes NaN */
		share = 0;
	if (share > 99.99)
		share = 99.99;
	snprintf(buf, size, "%.0f%%", share * 100);
	return buf;
}

char *
format_cores(double cores, char *buf, size_t size)
{
	if (!(cores > 0))
		cores = 0;
	if (cores > 1e6)
		cores = 1e6;
	if (cores >= 9.95)
		snprintf(buf, size, "%.0f", cores);
	else if (cores >= 0.095 || cores < 0.005)
		snprintf(buf, size, "%.1f", cores);
	else
		snprintf(buf, size, "%.2f", cores);
	return buf;
}

const char *
format_signal(int signo)
{
	static const char *const names[] = {
		[SIGHUP] = "HUP", [SIGINT] = "INT", [SIGQUIT] = "QUIT", [SIGILL] = "ILL", [SIGTRAP] = "TRAP",
		[SIGABRT] = "ABRT", [SIGBUS] = "BUS", [SIGFPE] = "FPE", [SIGKILL] = "KILL", [SIGUSR1] = "USR1",
		[SIGSEGV] = "SEGV", [SIGUSR2] = "USR2", [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
		[SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD", [SIGCONT] = "CONT", [SIGSTOP] = "STOP",
		[SIGTSTP] = "TSTP", [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU", [SIGURG] = "URG", [SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
		[SIGPOLL] = "POLL", [SIGPWR] = "PWR", [SIGSYS] = "SYS",
	};

	return signo > 0 && (size_t)signo < sizeof(names) / sizeof(names[0]) ? names[signo] : NULL;
}
