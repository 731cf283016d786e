// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Judges a program, whose facts are in a scratch, by the rules of one generation. */
#include "judge.h"

#define COMPONENTS_MAX 72	/* as many as path_of() and path_append() write */
#define NAME_WORDS_MAX 32	/* words of eight bytes */

struct filter_map {		/* one for each generation; declared by size: inner maps lose their types */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, sizeof(struct filter_key));
	__uint(value_size, sizeof(struct filter_value));
} filter_none SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, FILTER_SLOTS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__array(values, struct filter_map);
} filter_rules SEC(".maps");

/* Returns true if the slot has no such key, so that no lookup is needed. */
static __always_inline bool
is_no_key(u32 slot_index, const struct filter_slot *slot, u64 hash)
{
	u32 bit = (u32)hash & slot->bits_mask;
	u64 bits;

	if (slot->bits_mask < FILTER_BITS_MIN)
		bits = slot->few_bits[bit / 64 & (FILTER_BITS_MIN / 64 - 1)];
	else
		bits = filter_tables[slot_index & (FILTER_SLOTS - 1)].bits[bit / 64 & (FILTER_BITS_MAX / 64 - 1)];
	return !(bits >> (bit & 63) & 1);
}

static __always_inline struct filter_value *
look_up(u32 slot_index, const struct filter_key *key)
{
	void *rules;

	slot_index &= FILTER_SLOTS - 1;
	rules = bpf_map_lookup_elem(&filter_rules, &slot_index);
	return rules ? bpf_map_lookup_elem(rules, key) : NULL;
}

static __always_inline struct filter_value *
look_up_path(u32 slot_index, u64 hash, u32 depth)
{
	struct filter_key key = { .space = FILTER_PATH };
	struct filter_path path = { .hash = hash, .depth = depth };

	__builtin_memcpy(key.name, &path.hash, sizeof(path.hash));
	__builtin_memcpy(key.name + sizeof(path.hash), &path.depth, sizeof(path.depth));
	return look_up(slot_index, &key);
}

/* Adds that the program is excluded, if a rule holds that trusts it. */
static __always_inline u32
believe(const struct filter_facts *f, u32 act)
{
	return act & f->trusted ? act | FILTER_EXCLUDE : act;
}

/* Combines the verdicts of all dimensions by the compound conditions. */
static __always_inline u32
conclude(const struct filter_slot *slot, const struct filter_facts *f, u32 act, u64 ids, u32 unknown)
{
	if (ids & slot->exclude_ids)
		act |= FILTER_EXCLUDE;
	if (ids & slot->exclude_exe_ids)
		act |= FILTER_EXCLUDE_EXE;
	if (ids & slot->exclude_user_ids)
		act |= FILTER_EXCLUDE_USER;
	if (ids & slot->include_ids)
		act |= FILTER_INCLUDE;
	if (unknown & slot->include_dims)
		act |= FILTER_MAYBE;
	return believe(f, act);
}

__noinline u32
filter_exe(u32 at, u32 slot_index)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &at);
	struct filter_value *v = NULL;
	struct filter_slot *slot;
	struct filter_facts *f;

	slot_index &= FILTER_SLOTS - 1;
	slot = &filter_slots[slot_index];
	if (!s)
		return FILTER_MAYBE;
	f = &s->facts;
	f->act = 0;
	f->ids = ~0ULL;
	f->unknown = 0;
	if (!(slot->dims & 1 << FILTER_DIM_EXE))
		return 0;
	if (f->exe_size == 0) {
		f->unknown = 1 << FILTER_DIM_EXE;
		f->ids = filter_tables[slot_index].unknown_ids[FILTER_DIM_EXE];
		return 0;
	}
	if (f->exe_size < FILTER_NAME_SIZE &&
	    !is_no_key(slot_index, slot, filter_hash_key(slot->seed, &f->exe, f->exe_size)))
		v = look_up(slot_index, &f->exe);
	f->ids = v ? v->ids : slot->exe_ids;
	f->act = v ? v->act : 0;
	return believe(f, f->act);
}

static __always_inline bool
look_at_cgroup(u32 slot_index, u32 space, u64 id, struct filter_facts *f, u64 *any, u64 *all)
{
	u64 none = filter_tables[slot_index & (FILTER_SLOTS - 1)].unknown_ids[FILTER_DIM_CGROUP];
	struct filter_key key = { .space = space };
	struct filter_value *v;

	if (!id)
		return true;
	__builtin_memcpy(key.name, &id, sizeof(id));
	v = look_up(slot_index, &key);
	if (!v) {	/* user space has not added it yet */
		*any |= none;
		*all &= none;
		return false;
	}
	f->cgroup_act |= v->act;
	*any |= v->ids;
	*all &= v->ids;
	return true;
}

__noinline u32
filter_cgroup(u32 at, u32 slot_index)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &at);
	u64 any = 0, all = ~0ULL, not_ids;
	struct filter_facts *f;
	bool is_known;

	slot_index &= FILTER_SLOTS - 1;
	if (!s)
		return 0;
	f = &s->facts;
	f->cgroup_act = 0;
	is_known = look_at_cgroup(slot_index, FILTER_CGROUP_V2, f->cgroup_v2, f, &any, &all);
	is_known &= look_at_cgroup(slot_index, FILTER_CGROUP_V1, f->cgroup_v1, f, &any, &all);
	if (!f->cgroup_v2 && !f->cgroup_v1) {
		is_known = false;
		any = all = filter_tables[slot_index].unknown_ids[FILTER_DIM_CGROUP];
	}
	not_ids = filter_tables[slot_index].cgroup_not_ids;
	f->cgroup_ids = (any & ~not_ids) | (all & not_ids);
	f->is_cgroup_known = is_known;
	return is_known;
}

static __always_inline void
look_at_uid(u32 slot_index, const struct filter_slot *slot, struct filter_facts *f)
{
	const struct filter_table *table = &filter_tables[slot_index & (FILTER_SLOTS - 1)];
	u32 low = 0, high = slot->n_uids, uid = f->uid;
	struct filter_value *v;

	if (!is_no_key(slot_index, slot, filter_hash_uid(slot->seed, uid))) {
		struct filter_key key = { .space = FILTER_UID };

		__builtin_memcpy(key.name, &uid, sizeof(uid));
		v = look_up(slot_index, &key);
		if (v) {
			f->act |= v->act;
			f->ids &= v->ids;
			return;
		}
	}
	if (high <= 1) {
		f->act |= slot->uid_act;
		f->ids &= slot->uid_ids;
		return;
	}
	for (u32 i = 0; i < 6; i++) {	/* finds the last range that begins at uid or below */
		u32 middle = (low + high) / 2 & (FILTER_UID_RANGES - 1);

		if (high - low <= 1)
			break;
		if (table->uids[middle].from <= uid)
			low = middle;
		else
			high = middle;
	}
	low &= FILTER_UID_RANGES - 1;
	f->act |= table->uids[low].act;
	f->ids &= table->uids[low].ids;
}

__noinline u32
filter_near(u32 at, u32 slot_index)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &at);
	struct filter_slot *slot;
	struct filter_facts *f;

	slot_index &= FILTER_SLOTS - 1;
	slot = &filter_slots[slot_index];
	if (!s)
		return FILTER_MAYBE;
	f = &s->facts;
	if (slot->dims & 1 << FILTER_DIM_UID)
		look_at_uid(slot_index, slot, f);
	if (slot->dims & 1 << FILTER_DIM_CGROUP) {
		if (!f->is_cgroup_known)
			f->unknown |= 1 << FILTER_DIM_CGROUP;
		f->act |= f->cgroup_act;
		f->ids &= f->cgroup_ids;
	}
	if (slot->dims & 1 << FILTER_DIM_PATH)
		return believe(f, f->act);
	return conclude(slot, f, f->act, f->ids, f->unknown);
}

/* Adds one name of a path, text[off, off + len), to a hash. Words are read where they are, aligned or not. */
__noinline u64
filter_hash_name(u32 at, u32 off, u32 len, u64 hash)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &at);
	u64 word;

	if (!s)
		return hash;
	hash = filter_hash_word(hash, len);
	for (u32 i = 0; i < NAME_WORDS_MAX; i++) {
		u32 from = off + 8 * i;

		if (8 * i >= len)
			break;
		from &= 0x3fff;
		word = *(u64 *)&s->text[from];
		if (len - 8 * i < 8)	/* bytes after the end belong to another name */
			word &= (1ULL << (8 * (len & 7))) - 1;
		hash = filter_hash_word(hash, word);
	}
	return hash;
}

/* A walk from the root of a path to its leaf. */
struct descent {
	u64 hash;		/* of the names so far */
	u64 depths;		/* bits: rules have paths that end at the next name, the one after, and so on */
	u64 ids;		/* result so far */
	u32 act;
	u32 n;			/* names of the path */
	u32 end;		/* in the text: where the next name, whose parent's is behind it, ends */
	u32 at;			/* index of the scratch */
	u32 slot_index;
};

/* Looks at the name of depth i + 1. Returns 1 at the end, and where no rule has a path that is as deep. */
static __always_inline long
descend(u32 i, struct descent *d, struct scratch *s)
{
	u32 slot_index = d->slot_index & (FILTER_SLOTS - 1), off;
	u64 depths = d->depths;
	struct filter_value *v;

	if (i >= d->n || !depths)
		return 1;
	off = s->name_at[(d->n - 1 - i) & (NAMES_MAX - 1)];	/* text begins with the leaf */
	d->hash = filter_hash_name(d->at, off, d->end - off - 1, d->hash);
	d->end = off;
	d->depths = depths >> 1;
	if (!(depths & 1) || is_no_key(slot_index, &filter_slots[slot_index], d->hash))
		return 0;
	v = look_up_path(slot_index, d->hash, i + 1);
	if (!v)
		return 0;
	d->act = i + 1 == d->n ? v->act : v->act_below;
	d->ids = i + 1 == d->n ? v->ids : v->ids_below;
	return 0;
}

static long
on_name(u32 i, void *arg)
{
	struct descent *d = arg;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &d->at);

	return s ? descend(i, d, s) : 1;
}

static __always_inline u32
look_at_path(u32 at, u32 slot_index, bool has_loop)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &at);
	struct filter_slot *slot;
	struct filter_facts *f;
	struct descent d;
	u32 unknown;

	slot_index &= FILTER_SLOTS - 1;
	slot = &filter_slots[slot_index];
	if (!s)
		return FILTER_MAYBE;
	f = &s->facts;
	unknown = f->unknown;
	d = (struct descent){ .hash = slot->seed, .depths = slot->path_depths >> 1, .ids = slot->path_ids,
		.act = slot->path_act, .n = s->n_names, .end = s->exe_len, .at = at, .slot_index = slot_index };
	if (d.n == 0) {
		unknown |= 1 << FILTER_DIM_PATH;
		d.act = 0;
		d.ids = filter_tables[slot_index].unknown_ids[FILTER_DIM_PATH];
	}
	if (has_loop) {
		bpf_loop(FILTER_DEPTH_MAX, on_name, &d, 0);
	} else {
		for (u32 i = 0; i < FILTER_DEPTH_MAX; i++)
			if (descend(i, &d, s))
				break;
	}
	return conclude(slot, f, f->act | d.act, f->ids & d.ids, unknown);
}

__noinline u32
filter_far(u32 at, u32 slot_index)
{
	return look_at_path(at, slot_index, true);
}

__noinline u32
filter_far_until_5_16(u32 at, u32 slot_index)
{
	return look_at_path(at, slot_index, false);
}
