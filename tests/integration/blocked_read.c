/*
 * SPDX-License-Identifier: Apache-2.0
 * blocked_read: a user's process whose /proc/PID/cmdline no other process can read, for at most 15 s: a page of a FUSE
 * file that is never served is read through /proc/self/mem (its mmap_lock is held for reading), and an mmap(2) waits
 * behind it for writing.
 *
 * SAFETY. While it lasts, whatever reads that cmdline blocks: ps, top -c, pgrep -f. A thread that waits for a FUSE
 * answer does not even die of SIGKILL. So this must end by itself, and does in four ways, each enough:
 *   1. the guard (this process) serves the FUSE files and writes to /sys/fs/fuse/connections/N/abort after 15 s at most
 *      and on every signal that can be caught; alarm(2) does so too should its loop hang. N is from its own mountinfo;
 *   2. a watchdog in a session of its own writes there after 20 s, or as soon as the guard is gone;
 *   3. the guard alone holds the descriptor of /dev/fuse, so that the kernel aborts when it dies, of SIGKILL too;
 *   4. nothing is blocked before the file `abort` is open in both: where it cannot be opened, all ends at once.
 * Do not remove one of them. It is for a guest, or a host of your own: not for one where others work or tests run.
 *
 * Usage, as root: blocked_read UID     (prints "blocked PID" on stdout once it holds)
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GUARD_S = 15, WATCHDOG_S = 20 };

static int dev = -1;
static volatile int abort_fd = -1;
static volatile pid_t blocked = -1;
static char dir[] = "/tmp/sluice-fuse-XXXXXX";

/* Async-signal-safe. */
static void
abort_connection(void)
{
	if (abort_fd >= 0)
		(void)!write(abort_fd, "1", 1);
	if (blocked > 0)
		kill(blocked, SIGKILL);
}

static void
on_signal(int signo)
{
	abort_connection();
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	_exit(128 + signo);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The blocked process: a program of its own, that has neither /dev/fuse nor `abort` open. */

static void *
hold(void *page)
{
	int fd = open("/proc/self/mem", O_RDONLY);
	char c;

	(void)!pread(fd, &c, 1, (off_t)(uintptr_t)page);
	return NULL;
}

static void *
want(void *arg)
{
	usleep(300000);		/* the other holds it by now */
	(void)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return arg;
}

static int
block(const char *path)
{
	pthread_t t[2];
	struct timespec end = { .tv_sec = WATCHDOG_S };
	int fd = open(path, O_RDONLY);
	void *page = fd >= 0 ? mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (page == MAP_FAILED) {
		perror(path);
		return 1;
	}
	sleep(3);	/* an agent that drains every 50 ms knows us by now */
	pthread_create(&t[1], NULL, want, NULL);	/* first: a new thread's stack takes an mmap(2), too */
	pthread_create(&t[0], NULL, hold, page);
	usleep(600000);
	(void)!write(STDOUT_FILENO, "held\n", 5);
	nanosleep(&end, NULL);
	_exit(0);
}

/* The guard */

static void
reply(uint64_t unique, int error, const void *data, size_t len)
{
	char buf[512];
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + len), .error = error, .unique = unique };

	memcpy(buf, &h, sizeof(h));
	if (len > 0)
		memcpy(buf + sizeof(h), data, len);
	(void)!write(dev, buf, h.len);
}

static struct fuse_attr
attr_of(uint64_t ino)
{
	return (struct fuse_attr){ .ino = ino, .mode = ino == 1 ? S_IFDIR | 0755 : S_IFREG | 0644, .nlink = 1,
		.size = ino == 1 ? 0 : 4096, .blksize = 4096 };
}

/* One request, if there is one within 100 ms. */
static void
serve(void)
{
	static char buf[1 << 17];
	struct pollfd p = { .fd = dev, .events = POLLIN };
	struct fuse_in_header *h = (void *)buf;

	if (poll(&p, 1, 100) <= 0 || read(dev, buf, sizeof(buf)) < (ssize_t)sizeof(*h))
		return;
	switch (h->opcode) {
	case FUSE_INIT: {
		struct fuse_init_in *in = (void *)(h + 1);
		struct fuse_init_out o = { .major = 7, .minor = in->minor < 31 ? in->minor : 31, .max_write = 4096 };

		reply(h->unique, 0, &o, sizeof(o));
		break;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out o = { .nodeid = 2, .attr_valid = 1000, .entry_valid = 1000, .attr = attr_of(2) };

		reply(h->unique, 0, &o, sizeof(o));
		break;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out o = { .attr_valid = 1000, .attr = attr_of(h->nodeid) };

		reply(h->unique, 0, &o, sizeof(o));
		break;
	}
	case FUSE_OPEN: {
		struct fuse_open_out o = { .fh = 1 };

		reply(h->unique, 0, &o, sizeof(o));
		break;
	}
	case FUSE_READ:		/* never answered */
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(h->unique, -ENOSYS, NULL, 0);
	}
}

/* `abort` of the connection that is mounted at dir, open for writing; -1. */
static int
open_abort(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], at[1024], path[128];
	unsigned major_no, minor_no;
	int fd = -1;

	while (f != NULL && fd < 0 && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%*d %*d %u:%u %*s %1023s", &major_no, &minor_no, at) != 3 || strcmp(at, dir) != 0)
			continue;
		/* As the kernel names it: its own dev_t in decimal; without a device the minor number. */
		snprintf(path, sizeof(path), "/sys/fs/fuse/connections/%u/abort", major_no << 20 | minor_no);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			perror(path);
	}
	if (f != NULL)
		fclose(f);
	return fd;
}

static void
watch(int alive)
{
	struct pollfd p = { .fd = alive, .events = POLLIN };

	setsid();
	close(dev);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_IGN);
	(void)poll(&p, 1, WATCHDOG_S * 1000);	/* or the guard is gone */
	(void)!write(abort_fd, "1", 1);
	_exit(0);
}

int
main(int argc, char **argv)
{
	char options[128], path[64], from_blocked[16];
	int alive[2], said[2], status = 1;
	double end;
	uid_t uid;

	if (argc > 2 && strcmp(argv[1], "--block") == 0)
		return block(argv[2]);
	if (argc != 2 || geteuid() != 0) {
		fprintf(stderr, "usage, as root: %s UID\n", argv[0]);
		return 2;
	}
	uid = (uid_t)atoi(argv[1]);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mkdtemp(dir) == NULL ||
	    pipe2(alive, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC | O_NONBLOCK) < 0) {
		perror("prepare");
		return 1;
	}
	for (int s = 1; s < NSIG; s++) {
		if (s != SIGCHLD && s != SIGKILL && s != SIGSTOP)
			signal(s, on_signal);
	}
	alarm(GUARD_S);
	end = now() + GUARD_S - 1;
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", dev, uid, uid);
	if (dev < 0 || mount("sluice-hostile", dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		perror("fuse");
		rmdir(dir);
		return 1;
	}
	abort_fd = open_abort();
	if (abort_fd < 0) {
		fprintf(stderr, "no way to end it (is fusectl mounted at /sys/fs/fuse/connections?): not begun\n");
		goto done;
	}
	switch (fork()) {
	case -1:
		goto done;
	case 0:
		close(alive[1]);
		watch(alive[0]);
	}
	close(alive[0]);
	snprintf(path, sizeof(path), "%s/f", dir);
	blocked = fork();
	if (blocked == 0) {
		/* The last word of the command line makes the shipped rules read its title once a second. */
		for (int s = 1; s < NSIG; s++)
			signal(s, SIG_DFL);
		if (dup2(said[1], STDOUT_FILENO) >= 0 && setgroups(0, NULL) == 0 && setgid(uid) == 0 &&
		    setuid(uid) == 0)
			execl("/proc/self/exe", "blocked", "--block", path, "multiprocessing.spawn", (char *)NULL);
		_exit(1);
	}
	while (blocked > 0 && now() < end) {
		serve();
		if (read(said[0], from_blocked, sizeof(from_blocked)) > 0) {
			printf("blocked %d\n", (int)blocked);
			fflush(stdout);
			status = 0;
		}
		if (waitpid(blocked, NULL, WNOHANG) == blocked)
			blocked = -1;
	}
done:
	abort_connection();
	for (int i = 0; blocked > 0 && i < 20 && waitpid(blocked, NULL, WNOHANG) == 0; i++)
		usleep(100000);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
	return status;
}
