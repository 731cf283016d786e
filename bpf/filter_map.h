/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * The include and exclude rules as the kernel side sees them. Written by src/attach/filter*.c, read
 * by filter.bpf.c.
 *
 * Everything that is looked up stands in one hash map of a generation: base names, users, cgroup ids,
 * and paths at whatever depth a rule's text ends. A value has what all rules say of its key: a bit
 * each for simple rules of any number (act), and for up to 64 compound conditions (ids) whether they
 * hold as far as this one of their dimensions goes. A compound condition holds where its bit is set in
 * all dimensions. Most programs are in no rule: a bit for each key's hash, in a table that fits into a
 * few lines of the cache, spares them nearly all lookups, each of which costs a tenth of a microsecond.
 *
 * A name is its own key. A path is known by 64 bits of hash and its depth, under a seed that is drawn
 * anew for each generation: ten thousand rules take one program for another once in 10^15 execs.
 *
 * A generation's map and its slot are never changed once judgements can see them, but for cgroups
 * that are added.
 */
#ifndef SLUICE_FILTER_MAP_H
#define SLUICE_FILTER_MAP_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define FILTER_SLOTS 4		/* a reader of a generation is gone long before its slot is used again */
#define FILTER_IDS 64
#define FILTER_UID_RANGES 64
#define FILTER_NAME_SIZE 60
#define FILTER_NAME_MAX (FILTER_NAME_SIZE - 2)	/* longer names stand in no key: they are cut when read */
#define FILTER_DEPTH_MAX 63	/* names of a path in a rule */
#define FILTER_BITS_MAX 65536	/* of the table of hashes, a power of two */
#define FILTER_BITS_MIN 512

enum filter_dim {
	FILTER_DIM_EXE,
	FILTER_DIM_PATH,
	FILTER_DIM_CGROUP,
	FILTER_DIM_UID,
	FILTER_DIMS,
};

enum filter_act {
	FILTER_EXCLUDE = 1 << 0,
	FILTER_INCLUDE = 1 << 1,
	FILTER_MAYBE = 1 << 2,		/* an include rule looks at what is not known: it may hold */
};

/* What a pass over all processes does beside. */
enum filter_judging {
	FILTER_JUDGE_NOT,
	FILTER_JUDGE_INSIDE,		/* finds who descends from an included program; writes nothing */
	FILTER_JUDGE_ENTERED,		/* marks whom the next tells, some before their parents; writes nothing */
	FILTER_JUDGE_ALL,		/* and whom the rules leave out now */
};

/* The first word of a key: what the rest is. */
enum filter_space {
	FILTER_EXE = 1,			/* base name */
	FILTER_UID,			/* u32 */
	FILTER_CGROUP_V1,		/* u64; V1 + is_v2 */
	FILTER_CGROUP_V2,
	FILTER_PATH,			/* struct filter_path */
};

struct filter_key {
	__u32	space;
	char	name[FILTER_NAME_SIZE];		/* zeros behind its end */
};

struct filter_path {			/* in name, packed */
	__u64	hash;
	__u32	depth;		/* "/a/b": 2 */
};

struct filter_value {
	__u64	ids;
	__u64	ids_below;	/* of a path: of what lies below and has no value of its own */
	__u32	act;
	__u32	act_below;
};

/* Users from here to the next one's first. */
struct filter_uids {
	__u32	from;
	__u32	act;
	__u64	ids;
};

/*
 * What a generation has but for its map: what each judgement reads stands beside the other variables
 * that the programs read anyway, on one page: a page more costs more than all that is computed here.
 */
struct filter_slot {
	__u32	is_on;		/* there are rules */
	__u32	is_include_on;	/* only what is included or inside is told */
	__u32	dims;		/* bits by enum filter_dim: that any rule looks at */
	__u32	include_dims;	/* that an include rule looks at */
	__u64	exclude_ids;
	__u64	include_ids;
	__u64	seed;
	__u64	exe_ids;	/* of a base name without a value */
	__u64	path_ids;	/* of a path none of whose folders has one */
	__u64	path_depths;	/* bits: where the paths of rules end */
	__u32	path_act;
	__u32	bits_mask;	/* how many bits count, less 1 */
	__u32	n_uids;		/* above 1: the table has them */
	__u32	uid_act;	/* else this holds for all users */
	__u64	uid_ids;
	__u64	few_bits[FILTER_BITS_MIN / 64];		/* where no more count; else the table has them */
};

struct filter_table {
	__u64	bits[FILTER_BITS_MAX / 64];	/* one set: a key may have this hash; not of cgroups */
	struct filter_uids	uids[FILTER_UID_RANGES];	/* rising, the first from 0 */
	__u64	unknown_ids[FILTER_DIMS];	/* conditions that do not look at it */
	__u64	cgroup_not_ids;	/* must hold of both hierarchies; the others of one */
};

_Static_assert(sizeof(struct filter_key) == 64, "filter_key changed size");
_Static_assert(sizeof(struct filter_value) == 24, "filter_value changed size");

/* One more word; both sides do the same. */
static inline __attribute__((always_inline)) __u64
filter_hash_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

typedef __u64 __attribute__((may_alias)) filter_word;

/* size: of the name, with its NUL if it has one. Zeros behind it do not count. */
static inline __attribute__((always_inline)) __u64
filter_hash_key(__u64 seed, const struct filter_key *key, __u32 size)
{
	const filter_word *words = (const void *)key;	/* aligned by whoever asks */
	__u64 hash = seed;

	for (__u32 i = 0; i < sizeof(*key) / 8; i++) {
		if (8 * i >= sizeof(key->space) + size)
			break;
		hash = filter_hash_word(hash, words[i]);
	}
	return hash;
}

static inline __attribute__((always_inline)) __u64
filter_hash_uid(__u64 seed, __u32 uid)
{
	return filter_hash_word(seed, (__u64)FILTER_UID << 32 | uid);
}

#endif
