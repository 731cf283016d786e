/*
 * SPDX-License-Identifier: Apache-2.0
 * privileges: gives up, for good, the privileges that are not needed once the probes are attached.
 */
#include "attach/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	GROUPS_MAX = 65536,	/* the kernel's limit */
};

struct account {
	char *name;		/* owned */
	uid_t uid;
	gid_t gid;
	gid_t *groups;		/* owned */
	int n_groups;
	bool is_change;		/* uid differs from the current one */
};

static void
account_done(struct account *a)
{
	free(a->name);
	free(a->groups);
}

int
privileges_user_ids(const char *name, uid_t *ret_uid, gid_t *ret_gid, char *error, size_t error_size)
{
	const struct passwd *pw;
	int r;

	errno = 0;
	pw = getpwnam(name);
	if (pw != NULL) {
		*ret_uid = pw->pw_uid;
		*ret_gid = pw->pw_gid;
		return 0;
	}
	r = -errno;
	/* getpwnam(3): several errnos only mean that there is no such user. */
	if (r == 0 || r == -ESRCH || r == -EBADF || r == -EPERM)
		r = -ENOENT;
	if (r == -ENOENT)
		snprintf(error, error_size, "there is no account '%s' to run as: create it with `useradd --system "
		    "--user-group --no-create-home --shell /usr/sbin/nologin %s`, or set `user: root`", name, name);
	else
		snprintf(error, error_size, "account '%s' cannot be looked up: %s", name, strerror(-r));
	return r;
}

static int
find_groups(struct account *a)
{
	for (int room = 16; room <= GROUPS_MAX; room *= 2) {
		gid_t *more = realloc(a->groups, (size_t)room * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		a->groups = more;
		a->n_groups = room;
		if (getgrouplist(a->name, a->gid, a->groups, &a->n_groups) >= 0)
			return 0;
	}
	return -E2BIG;
}

static int
find_account(const struct privileges_options *o, struct account *a, char *error, size_t error_size)
{
	int r;

	a->uid = geteuid();
	a->gid = getegid();
	if (o->user == NULL && o->has_ids) {
		a->is_change = o->uid != geteuid() || o->uid != getuid();
		a->uid = o->uid;
		a->gid = o->gid;
		return 0;
	}
	if (o->user == NULL || strcmp(o->user, "root") == 0)
		return 0;
	r = privileges_user_ids(o->user, &a->uid, &a->gid, error, error_size);
	if (r < 0)
		return r;
	a->is_change = a->uid != geteuid() || a->uid != getuid();
	if (!a->is_change || a->uid == 0)
		return 0;
	a->name = strdup(o->user);
	r = a->name == NULL ? -ENOMEM : find_groups(a);
	if (r < 0)
		snprintf(error, error_size, "groups of account '%s' cannot be looked up: %s", o->user,
		    strerror(-r));
	return r;
}

static int
count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;
	int n = 0;

	if (d == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

char *
privileges_names(uint64_t set, char *buf, size_t size)
{
	size_t len = 0;

	snprintf(buf, size, "none");
	for (int cap = 0; cap < 64 && len < size; cap++) {
		char *name;

		if ((set & PRIVILEGE(cap)) == 0)
			continue;
		name = cap_to_name(cap);	/* "cap_bpf", or a number if it is newer than libcap */
		if (name == NULL)
			break;
		len += (size_t)snprintf(buf + len, size - len, "%s%s", len > 0 ? " " : "",
		    strncmp(name, "cap_", 4) == 0 ? name + 4 : name);
		cap_free(name);
	}
	return buf;
}

int
privileges_held(cap_flag_t flag, uint64_t *ret)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t value;

	*ret = 0;
	if (caps == NULL)
		return -errno;
	for (int cap = 0; cap < 64 && cap_get_flag(caps, cap, flag, &value) == 0; cap++) {
		if (value == CAP_SET)
			*ret |= PRIVILEGE(cap);
	}
	cap_free(caps);
	return 0;
}

/*
 * Clears the bounding set but for some, so that nothing executed later gains what the file or uid 0 would give it.
 * Needs CAP_SETPCAP.
 */
static int
drop_bounding(uint64_t keep)
{
	for (int cap = 0; cap_get_bound(cap) >= 0; cap++) {
		if ((keep & PRIVILEGE(cap)) == 0 && cap_get_bound(cap) == 1 && cap_drop_bound(cap) < 0)
			return -errno;
	}
	return 0;
}

static int
become(const struct account *a)
{
	if (setgroups((size_t)a->n_groups, a->groups) < 0 || setresgid(a->gid, a->gid, a->gid) < 0 ||
	    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(a->uid, a->uid, a->uid) < 0)
		return -errno;
	return 0;
}

static int
set_capabilities(uint64_t keep)
{
	cap_t caps = cap_init();	/* all cleared */
	int r = caps == NULL ? -ENOMEM : 0;

	for (cap_value_t cap = 0; cap < 64 && r == 0; cap++) {
		if ((keep & PRIVILEGE(cap)) != 0 &&
		    (cap_set_flag(caps, CAP_PERMITTED, 1, &cap, CAP_SET) < 0 ||
			cap_set_flag(caps, CAP_EFFECTIVE, 1, &cap, CAP_SET) < 0))
			r = -errno;
	}
	/* The kernel drops ambient capabilities with the inheritable ones. */
	if (r == 0 && cap_set_proc(caps) < 0)
		r = -errno;
	if (caps != NULL)
		cap_free(caps);
	return r;
}

/*
 * Makes the process not dumpable. The change of uid alone leaves that to fs.suid_dumpable, which crash
 * collectors set to 2.
 */
static int
close_memory(void)
{
	const struct rlimit none = { 0, 0 };

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	return 0;
}

bool
privileges_may_start(void)
{
	const uint64_t needed = PRIVILEGE(CAP_BPF) | PRIVILEGE(CAP_PERFMON);
	cap_t caps = cap_get_proc();
	uint64_t held;
	int r;

	/* The kernel drops ambient capabilities with the inheritable ones. */
	r = caps != NULL && cap_clear_flag(caps, CAP_INHERITABLE) == 0 ? cap_set_proc(caps) : -1;
	if (caps != NULL)
		cap_free(caps);
	return r == 0 && privileges_held(CAP_EFFECTIVE, &held) == 0 && (geteuid() == 0 || (held & needed) == needed);
}

/* Tries operations that must fail now. Returns NULL, or the one that succeeded. */
static const char *
still_possible(const struct privileges_options *o, const struct account *a, bool is_bound_dropped)
{
	uint64_t permitted, effective, inheritable;

	if (privileges_held(CAP_PERMITTED, &permitted) < 0 || privileges_held(CAP_EFFECTIVE, &effective) < 0 ||
	    privileges_held(CAP_INHERITABLE, &inheritable) < 0)
		return "the capabilities cannot be read back";
	if (permitted != o->keep || effective != o->keep || inheritable != 0)
		return "capabilities are held that were given up";
	for (int cap = 0; is_bound_dropped && cap_get_bound(cap) >= 0; cap++) {
		if ((o->bound & PRIVILEGE(cap)) == 0 && cap_get_bound(cap) == 1)
			return "the bounding set has capabilities that were given up";
	}
	if (o->no_new_privs && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return "executed programs can gain privileges";
	if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
		return "core files are possible";
	if (!a->is_change || a->uid == 0)
		return NULL;
	if (getuid() != a->uid || geteuid() != a->uid || getgid() != a->gid || getegid() != a->gid)
		return "the user or group is not the account's";
	/* With CAP_SETUID or CAP_SETGID kept on purpose, success is no error. */
	if ((o->keep & PRIVILEGE(CAP_SETUID)) == 0 && setuid(0) == 0)
		return "uid 0 can be regained";
	if ((o->keep & PRIVILEGE(CAP_SETGID)) == 0 && a->gid != 0 && setgid(0) == 0)
		return "gid 0 can be regained";
	return NULL;
}

int
privileges_drop(const struct privileges_options *o, char *error, size_t error_size)
{
	struct account a = { 0 };
	const char *step, *possible;
	char names[512];
	uint64_t permitted = 0;
	bool is_bound_dropped;
	int r = count_threads();

	if (r > 1) {
		snprintf(error, error_size, "%d threads run; privileges must be given up before any is started", r);
		return -EBUSY;
	}
	/* Looked up first: afterwards the account's database may be unreadable for us. */
	r = find_account(o, &a, error, error_size);
	if (r < 0)
		goto out;
	r = privileges_held(CAP_PERMITTED, &permitted);
	if (r == 0 && (o->keep & ~permitted) != 0) {
		snprintf(error, error_size, "capabilities to keep are missing: %s; grant them, or start as "
		    "root", privileges_names(o->keep & ~permitted, names, sizeof(names)));
		r = -EPERM;
		goto out;
	}

	/* While CAP_SETPCAP is held. Without it, as a service with an account, NO_NEW_PRIVS does the same. */
	step = "dropping the bounding set";
	r = drop_bounding(o->bound);
	is_bound_dropped = r == 0;
	if (r == -EPERM && o->no_new_privs)
		r = 0;
	if (r == 0 && a.is_change && a.uid != 0) {
		step = "changing to the account";
		r = become(&a);
	}
	if (r == 0) {
		step = "dropping capabilities";
		prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
		r = set_capabilities(o->keep);
	}
	if (r == 0 && o->no_new_privs) {
		step = "setting no_new_privs";
		r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	}
	if (r == 0) {
		step = "making the process not dumpable";
		r = close_memory();
	}
	if (r < 0) {
		snprintf(error, error_size, "privileges cannot be given up: %s%s%s: %s", step,
		    a.name != NULL ? " " : "", a.name != NULL ? a.name : "", strerror(-r));
		goto out;
	}
	possible = still_possible(o, &a, is_bound_dropped);
	if (possible != NULL) {
		snprintf(error, error_size, "privileges were given up, but %s", possible);
		r = -EPERM;
	}
out:
	account_done(&a);
	return r;
}

bool
privileges_may_write(const char *folder)
{
	cap_t held = cap_get_proc(), none = held != NULL ? cap_dup(held) : NULL;
	bool may = false;

	if (none != NULL && cap_clear_flag(none, CAP_EFFECTIVE) == 0 && cap_set_proc(none) == 0) {
		may = faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0;
		may = cap_set_proc(held) == 0 && may;
	}
	if (none != NULL)
		cap_free(none);
	if (held != NULL)
		cap_free(held);
	return may;
}

char *
privileges_text(char *buf, size_t size)
{
	char names[512] = "unknown", login[64] = "";
	const struct passwd *pw = getpwuid(geteuid());
	uint64_t effective;

	if (pw != NULL)
		snprintf(login, sizeof(login), " (%s)", pw->pw_name);
	if (privileges_held(CAP_EFFECTIVE, &effective) == 0)
		privileges_names(effective, names, sizeof(names));
	snprintf(buf, size, "uid %u%s, capabilities %s%s", (unsigned)geteuid(), login, names,
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? ", no new privileges" : "");
	return buf;
}
