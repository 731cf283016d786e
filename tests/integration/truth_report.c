/*
 * SPDX-License-Identifier: Apache-2.0
 * truth_report: reads the kernel's figures and writes the JSON lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

uint64_t net_rx[FAMILIES], net_tx[FAMILIES];
int threads_peak = 1;

static char line[1 << 20];	/* pages become resident when written; most lines need one */
static size_t used;

void
fail(const char *what)
{
	fprintf(stderr, "truth: case %s: %s: %s\n", case_name ? case_name : "-", what, strerror(errno));
	_exit(120);
}

static void __attribute__((format(printf, 1, 2)))
add(const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(line + used, sizeof(line) - used, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(line) - used) {
		errno = ENOSPC;
		fail("a line of the report");
	}
	used += (size_t)n;
}

static void
add_hex(const char *bytes, size_t len)
{
	static const char digit[] = "0123456789abcdef";

	if (len * 2 + 3 > sizeof(line) - used) {
		errno = ENOSPC;
		fail("a line of the report");
	}
	line[used++] = '"';
	for (size_t i = 0; i < len; i++) {
		line[used++] = digit[(unsigned char)bytes[i] >> 4];
		line[used++] = digit[(unsigned char)bytes[i] & 15];
	}
	line[used++] = '"';
}

static void
add_argv(char *const *argv)
{
	add("[");
	for (size_t i = 0; argv[i]; i++) {
		if (i)
			add(",");
		add_hex(argv[i], strlen(argv[i]));
	}
	add("]");
}

static void
line_open(const char *kind, const char *name)
{
	used = 0;
	add("{\"kind\":\"%s\",\"case\":\"%s\"", kind, name ? name : "-");
}

static void
line_close(void)
{
	add("}\n");
	if (write(OUT_FD, line, used) != (ssize_t)used)
		fail("write the report");
}

bool
read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t r;

	buf[0] = '\0';
	if (fd < 0)
		return false;
	while (n + 1 < size && (r = read(fd, buf + n, size - 1 - n)) > 0)
		n += (size_t)r;
	buf[n] = '\0';
	close(fd);
	return true;
}

bool
write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t
process_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Returns field 22 of /proc/PID/stat: ticks since boot. comm may contain blanks and brackets. */
static unsigned long long
start_ticks(const char *pid)
{
	char path[64], text[1024], *p;
	unsigned long long ticks = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	if (!read_text(path, text, sizeof(text)) || !(p = strrchr(text, ')')))
		fail(path);
	/* after ") ": field 3 is the state, field 22 follows 19 blanks later */
	p += 2;
	for (int i = 0; p && i < 19; i++)
		if ((p = strchr(p, ' ')))
			p++;
	if (p)
		ticks = strtoull(p, NULL, 10);
	return ticks;
}

/*
 * Returns the pid of a process in /proc, which differs from this process' view inside a pid namespace. The
 * kernel translates it in the fdinfo of a pidfd.
 */
pid_t
host_pid(pid_t pid)
{
	char path[64], text[512], *p;
	ssize_t n;
	int fd;

	if (pid == 0) {
		n = readlink("/proc/self", text, sizeof(text) - 1);
		if (n <= 0)
			fail("/proc/self");
		text[n] = '\0';
		return atoi(text);
	}
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		fail("pidfd_open");
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (!read_text(path, text, sizeof(text)) || !(p = strstr(text, "Pid:")))
		fail(path);
	close(fd);
	return atoi(p + 4);
}

void
report_to(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);

	if (fd < 0) {
		fprintf(stderr, "truth: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	if (dup2(fd, OUT_FD) < 0)
		fail("dup2");
	close(fd);
}

/* Returns the time that this thread has waited for a CPU, in ns. */
static uint64_t
run_delay_ns(void)
{
	unsigned long long ran = 0, waited = 0;
	char text[128];

	if (read_text("/proc/thread-self/schedstat", text, sizeof(text)))
		sscanf(text, "%llu %llu", &ran, &waited);
	return waited;
}

/* Writes the offset of wall time from boot time, and the root process of the run. */
void
report_clock(void)
{
	uint64_t before, real, after, boot_ns = 0, real_ns = 0, least = UINT64_MAX;

	/* the closest of several pairs of readings: this process may be preempted between others */
	for (int i = 0; i < 20; i++) {
		before = clock_ns(CLOCK_BOOTTIME);
		real = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_BOOTTIME);
		if (after - before < least) {
			least = after - before;
			boot_ns = before;
			real_ns = real;
		}
	}
	line_open("clock", NULL);
	add(",\"pid\":%d,\"start_ticks\":%llu,\"ticks_per_second\":%ld", host_pid(0), start_ticks("self"),
	    sysconf(_SC_CLK_TCK));
	add(",\"boot_ns\":%" PRIu64 ",\"real_ns\":%" PRIu64, boot_ns, real_ns);
	line_close();
}

void
report_note(const char *name, const char *key, long long value)
{
	line_open("note", name);
	add(",\"%s\":%lld", key, value);
	line_close();
}

void
report_skip(const char *name, const char *reason)
{
	line_open("skip", name);
	add(",\"reason\":\"%s\"", reason);
	line_close();
}

static void
add_link(const char *key, const char *path)
{
	char target[4096];
	ssize_t n = readlink(path, target, sizeof(target));

	if (n < 0)
		return;
	add(",\"%s\":", key);
	add_hex(target, (size_t)n);
}

static void
add_ns(const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (stat(path, &st) == 0)
		add(",\"%s_ns\":%llu", name, (unsigned long long)st.st_ino);
}

/* Writes the cgroup path of the unified hierarchy, and of the memory hierarchy if that is v1. */
static void
add_cgroups(void)
{
	char text[8192], *next;

	if (!read_text("/proc/self/cgroup", text, sizeof(text)))
		return;
	for (char *p = text; *p; p = next) {
		char *controllers, *path;

		next = strchr(p, '\n');
		if (next)
			*next++ = '\0';
		else
			next = p + strlen(p);
		controllers = strchr(p, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		if (controllers[1] == '\0')
			add(",\"cgroup_v2\":");
		else if (strstr(controllers + 1, "memory"))
			add(",\"cgroup_v1\":");
		else
			continue;
		add_hex(path, strlen(path));
	}
}

/* Writes the lines of /proc/PID/io: a name, a colon and a number. */
static void
add_pairs(const char *text)
{
	const char *colon;
	char *end;

	for (const char *p = text; *p && (colon = strchr(p, ':')) != NULL; p = end + strspn(end, "\n"))
		add(",\"%.*s\":%llu", (int)(colon - p), p, strtoull(colon + 1, &end, 10));
}

void
image_reset(void)
{
	memset(net_rx, 0, sizeof(net_rx));
	memset(net_tx, 0, sizeof(net_tx));
	threads_peak = 1;
}

void
report_start(char *const *argv)
{
	char comm[64];

	line_open("image", case_name);
	/* first, so that only the start of libc is between exec and these figures */
	add(",\"at\":\"start\",\"run_delay_ns\":%" PRIu64, run_delay_ns());
	add(",\"cpu_ns\":%" PRIu64, process_cpu_ns());
	add(",\"mono_ns\":%" PRIu64, clock_ns(CLOCK_MONOTONIC));
	add(",\"index\":%d,\"pid\":%d,\"start_ticks\":%llu", image_index, host_pid(0), start_ticks("self"));
	add(",\"uid\":%u,\"gid\":%u", getuid(), getgid());
	add_ns("pid");
	add_ns("mnt");
	add_ns("net");
	add_link("exe", "/proc/self/exe");
	add_link("cwd", "/proc/self/cwd");
	if (read_text("/proc/self/comm", comm, sizeof(comm))) {
		add(",\"comm\":");
		add_hex(comm, strlen(comm) - 1);	/* without the final newline; it may contain others */
	}
	add_cgroups();
	if (argv) {
		add(",\"argv\":");
		add_argv(argv);
	}
	line_close();
}

void
report_end(int exit_code)
{
	static char status[8192];
	const char *hwm;

	line_open("image", case_name);
	add(",\"at\":\"end\",\"index\":%d,\"pid\":%d,\"start_ticks\":%llu", image_index, host_pid(0),
	    start_ticks("self"));
	add(",\"exit_code\":%d,\"threads_peak\":%d", exit_code, threads_peak);
	add(",\"tcp_rx\":%" PRIu64 ",\"tcp_tx\":%" PRIu64 ",\"udp_rx\":%" PRIu64 ",\"udp_tx\":%" PRIu64,
	    net_rx[FAMILY_TCP], net_tx[FAMILY_TCP], net_rx[FAMILY_UDP], net_tx[FAMILY_UDP]);
	add(",\"unix_rx\":%" PRIu64 ",\"unix_tx\":%" PRIu64, net_rx[FAMILY_UNIX], net_tx[FAMILY_UNIX]);
	/* of this thread: a leader that has exited has no memory any more */
	if (read_text("/proc/thread-self/status", status, sizeof(status)) &&
	    (hwm = strstr(status, "VmHWM:")))
		add(",\"hwm_kb\":%ld", atol(hwm + 6));
	/* last, so that little happens between these figures and the exit or exec */
	add(",\"mono_ns\":%" PRIu64, clock_ns(CLOCK_MONOTONIC));
	add(",\"cpu_ns\":%" PRIu64, process_cpu_ns());
	add(",\"run_delay_ns\":%" PRIu64, run_delay_ns());
	line_close();
}

/* Writes the line of a program that has done its work and only sleeps. */
void
report_rest(void)
{
	char io[512];
	struct rusage ru;
	uint64_t cpu_ns = process_cpu_ns();

	if (!read_text("/proc/self/io", io, sizeof(io)) || getrusage(RUSAGE_SELF, &ru) < 0)
		fail("/proc/self/io");
	line_open("image", case_name);
	add(",\"at\":\"rest\",\"index\":%d,\"pid\":%d,\"start_ticks\":%llu", image_index, host_pid(0),
	    start_ticks("self"));
	add(",\"cpu_ns\":%" PRIu64 ",\"minor_faults\":%ld,\"voluntary_switches\":%ld", cpu_ns, ru.ru_minflt, ru.ru_nvcsw);
	add_pairs(io);
	line_close();
}

static void
add_wants(const struct child *c)
{
	add(",\"wants\":[");
	for (int i = 0; i < c->n_wants; i++) {
		const struct want *w = &c->wants[i];

		add("%s{\"index\":%d", i ? "," : "", w->index);
		if (w->exe) {
			add(",\"exe\":");
			add_hex(w->exe, strlen(w->exe));
		}
		if (w->comm) {
			add(",\"comm\":");
			add_hex(w->comm, strlen(w->comm));
		}
		if (w->argv) {
			add(",\"argv\":");
			add_argv(w->argv);
		}
		add("}");
	}
	add("]");
}

int
reap(const struct child *c)
{
	char pid[16], path[64], io[512];
	struct rusage ru;
	siginfo_t si;
	pid_t known;
	int status;

	/* __WALL: includes a child whose exit signal is not SIGCHLD */
	while (waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOWAIT | __WALL) < 0)
		if (errno != EINTR)
			fail("waitid");
	known = host_pid(c->pid);
	line_open("process", c->name);
	snprintf(pid, sizeof(pid), "%d", known);
	add(",\"pid\":%d,\"start_ticks\":%llu", known, start_ticks(pid));
	snprintf(path, sizeof(path), "/proc/%d/io", known);
	if (!read_text(path, io, sizeof(io)))
		fail(path);	/* as a zombie, so that the figures are final */
	while (wait4(c->pid, &status, __WALL, &ru) < 0)
		if (errno != EINTR)
			fail("wait4");

	add(",\"reaper\":%d,\"parent\":%d,\"parent_index\":%d", host_pid(0),
	    c->parent ? c->parent : host_pid(0), c->parent ? 0 : image_index);
	add(",\"status\":%d,\"exit_code\":%d,\"exit_signal\":%d,\"core\":%s", status,
	    WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : -1,
	    WIFSIGNALED(status) && WCOREDUMP(status) ? "true" : "false");
	add(",\"user_us\":%lld,\"system_us\":%lld", ru.ru_utime.tv_sec * 1000000LL + ru.ru_utime.tv_usec,
	    ru.ru_stime.tv_sec * 1000000LL + ru.ru_stime.tv_usec);
	add(",\"minor_faults\":%ld,\"major_faults\":%ld,\"voluntary_switches\":%ld,"
	    "\"involuntary_switches\":%ld,\"maxrss_kb\":%ld",
	    ru.ru_minflt, ru.ru_majflt, ru.ru_nvcsw, ru.ru_nivcsw, ru.ru_maxrss);
	add_pairs(io);
	add(",\"programs\":%d,\"forked\":%s,\"shared_mm\":%s", c->programs, c->forked ? "true" : "false",
	    c->shared_mm ? "true" : "false");
	if (c->oom_killed >= 0)
		add(",\"oom_killed\":%s", c->oom_killed ? "true" : "false");
	add_wants(c);
	line_close();
	return status;
}
