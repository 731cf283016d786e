/*
 * SPDX-License-Identifier: Apache-2.0
 * The entries of followed processes: how many there are, whose they are (bpf/share.h), and what was lost of each user.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "attach/probes_state.h"
#include "model/losses.h"

#define USERS_BYTES (USERS * sizeof(struct user))

/* Finds where an entry has the number of its user. Returns 0 or -ENOENT. */
static int
find_user(const struct probes *p, uint32_t *ret_at)
{
	const struct btf *btf = bpf_object__btf(p->skel->obj);
	const struct btf_type *entry = btf__type_by_id(btf, bpf_map__btf_value_type_id(p->skel->maps.procs));

	for (unsigned i = 0; entry != NULL && i < btf_vlen(entry); i++) {
		if (strcmp(btf__name_by_offset(btf, btf_members(entry)[i].name_off), "user") != 0)
			continue;
		*ret_at = btf_member_bit_offset(entry, i) / 8;
		return 0;
	}
	return -ENOENT;
}

int
probes_users_open(struct probes *p)
{
	void *users;
	int r = find_user(p, &p->user_at);

	if (r < 0 || bpf_map__max_entries(p->skel->maps.users) != USERS)
		return r;
	users = mmap(NULL, USERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(p->skel->maps.users), 0);
	if (users == MAP_FAILED)
		return -errno;
	p->users = users;
	return 0;
}

void
probes_users_close(struct probes *p)
{
	if (p->users != NULL)
		munmap(p->users, USERS_BYTES);
	p->users = NULL;
}

/* Returns the user for whom an entry counts; NULL: for none. */
static struct user *
user_of(const struct probes *p, const void *entry)
{
	uint32_t number;

	memcpy(&number, (const char *)entry + p->user_at, sizeof(number));
	return p->users != NULL && number > 0 && number <= USERS ? &p->users[number - 1] : NULL;
}

void
probes_users_count(struct probes *p, const void *entry)
{
	struct user *u = user_of(p, entry);

	if (u != NULL)
		__atomic_fetch_add(&u->entries, 1, __ATOMIC_RELAXED);
}

void
probes_users_forget(struct probes *p)
{
	if (p->users != NULL)
		memset(p->users, 0, USERS_BYTES);
}

void
probes_forget(struct probes *p, uint64_t key, uint64_t start_ns)
{
	const uint64_t whole[] = { key, start_ns };	/* struct proc_key */
	int procs = bpf_map__fd(p->skel->maps.procs);
	void *entry = malloc(bpf_map__value_size(p->skel->maps.procs));
	struct user *u = NULL;

	if (entry != NULL && bpf_map_lookup_elem(procs, whole, entry) == 0)
		u = user_of(p, entry);
	free(entry);
	if (bpf_map_delete_elem(procs, whole) < 0)
		return;
	__atomic_fetch_add(&p->skel->data_shared->removed, 1, __ATOMIC_SEQ_CST);
	if (u != NULL)
		__atomic_fetch_sub(&u->entries, 1, __ATOMIC_RELAXED);
}

uint64_t
probes_gone(const struct probes *p)
{
	return __atomic_load_n(&p->skel->data_shared->removed, __ATOMIC_SEQ_CST);
}

uint64_t
probes_followed(const struct probes *p)
{
	uint64_t gone = probes_gone(p);
	uint64_t entered = __atomic_load_n(&p->skel->data_shared->followed, __ATOMIC_SEQ_CST);

	gone += __atomic_load_n(&p->skel->bss->snapshot_left_out, __ATOMIC_SEQ_CST);
	return entered > gone ? entered - gone : 0;
}

uint64_t
probes_refused(const struct probes *p)
{
	return __atomic_load_n(&p->skel->data_shared->refused, __ATOMIC_SEQ_CST);
}

/* Returns how many entries are free. */
static uint64_t
entries_free(const struct probes *p)
{
	uint64_t gone = probes_gone(p);
	uint64_t used = __atomic_load_n(&p->skel->data_shared->followed, __ATOMIC_SEQ_CST) - gone;

	return used < p->max_processes ? p->max_processes - used : 0;
}

bool
probes_have_room(const struct probes *p)
{
	uint64_t n = entries_free(p);

	for (size_t i = 0; i < USERS && p->users != NULL; i++) {
		if (p->users[i].is_waiting && p->users[i].entries < n)
			return true;
	}
	return false;
}

void
probes_users_look(struct probes *p)
{
	for (size_t i = 0; i < USERS && p->users != NULL; i++) {
		if (p->users[i].is_waiting)
			__atomic_store_n(&p->users[i].is_waiting, 0, __ATOMIC_RELAXED);
	}
}

size_t
probes_user_losses(const struct probes *p, struct user_loss ret[USER_LOSSES])
{
	size_t n = 0;

	for (size_t i = 0; i < USERS && p->users != NULL; i++) {
		const struct user *u = &p->users[i];

		n = user_losses_add(ret, n, &(struct user_loss){ .uid = u->uid, .refused = u->refused, .lost = u->lost,
		    .cut = u->cut });
	}
	return n;
}
