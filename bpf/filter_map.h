/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * The include and exclude rules as the kernel side sees them. Written by src/attach/filter*.c, read by
 * filter.bpf.c.
 *
 * All keys of a generation are in one hash map: base names, users, cgroup ids, and paths at any depth at which a
 * rule's text ends. A value combines all rules about its key: a bit each for simple rules of any number (act),
 * and for up to 64 compound conditions (ids) whether they hold as far as this dimension is concerned. A compound
 * condition holds if its bit is set in all dimensions. Most programs match no rule: a table with a bit for each
 * key's hash, which fits into a few cache lines, avoids nearly all lookups, each of which costs a tenth of a
 * microsecond.
 *
 * A name is its own key. A path is identified by 64 bits of hash and its depth, under a seed that is random in
 * each generation: ten thousand rules confuse two programs once in 10^15 execs.
 *
 * A generation's map and its slot never change once judgements can see them, except for cgroups that are added.
 */
#ifndef SLUICE_FILTER_MAP_H
#define SLUICE_FILTER_MAP_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define FILTER_SLOTS 4		/* a reader of a generation is finished long before its slot is reused */
#define FILTER_IDS 64
#define FILTER_UID_RANGES 64
#define FILTER_NAME_SIZE 60
#define FILTER_NAME_MAX (FILTER_NAME_SIZE - 2)	/* longer names are in no key: they are cut when read */
#define FILTER_DEPTH_MAX 63	/* names in the path of a rule */
#define FILTER_BITS_MAX 65536	/* size of the table of hashes, a power of two */
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
	FILTER_MAYBE = 1 << 2,		/* an include rule depends on a value that is unknown: it may hold */
	/* An exclude rule holds, which trusts only some programs: it excludes one that has the bit in facts.trusted. */
	FILTER_EXCLUDE_EXE = 1 << 3,	/* root owns the executable, or a user of the system runs it */
	FILTER_EXCLUDE_USER = 1 << 4,	/* a user of the system runs it */
};

#define FILTER_SYSTEM_UID_MAX 999	/* SYSTEM_UID_MAX of src/model/user.h */

/*
 * Returns the bits of a program. uid: its own or-ed with that of the user behind its user namespace, which is above
 * FILTER_SYSTEM_UID_MAX if one of them is; it may also be where two users of the system differ, and then the agent
 * judges. is_exe_of_root: the host's root owns the executable.
 */
static inline __attribute__((always_inline)) __u32
filter_trusted(__u32 uid, __u32 is_exe_of_root)
{
	return uid <= FILTER_SYSTEM_UID_MAX ? FILTER_EXCLUDE_EXE | FILTER_EXCLUDE_USER :
	    is_exe_of_root ? FILTER_EXCLUDE_EXE : 0;
}

/* What a pass over all processes does besides writing them. */
enum filter_judging {
	FILTER_JUDGE_NOT,
	FILTER_JUDGE_INSIDE,		/* finds descendants of included programs; writes nothing */
	FILTER_JUDGE_ENTERED,		/* marks those that the next pass reports; writes nothing */
	FILTER_JUDGE_ALL,		/* judges all, including those that the rules leave out now */
	FILTER_JUDGE_RETAKE,		/* judges none: see entry_retake() in discovery.h; writes nothing */
	FILTER_JUDGE_RETAKEN,		/* the same again, with the lease: see sweep_entry() */
};

/* The first word of a key: the type of the rest. */
enum filter_space {
	FILTER_EXE = 1,			/* base name */
	FILTER_UID,			/* u32 */
	FILTER_CGROUP_V1,		/* u64; V1 + is_v2 */
	FILTER_CGROUP_V2,
	FILTER_PATH,			/* struct filter_path */
};

struct filter_key {
	__u32	space;
	char	name[FILTER_NAME_SIZE];		/* zero after its end */
};

struct filter_path {			/* packed into name */
	__u64	hash;
	__u32	depth;		/* "/a/b": 2 */
};

struct filter_value {
	__u64	ids;
	__u64	ids_below;	/* of a path: holds for paths below that have no value of their own */
	__u32	act;
	__u32	act_below;
};

/* A range of users that ends where the next begins. */
struct filter_uids {
	__u32	from;
	__u32	act;
	__u64	ids;
};

/*
 * A generation without its map. It is next to the other variables that the programs read anyway, on one page:
 * reading another page costs more than all computation here.
 */
struct filter_slot {
	__u32	is_on;		/* there are rules */
	__u32	is_include_on;	/* only programs that are included or inside are reported */
	__u32	dims;		/* bits by enum filter_dim: dimensions that any rule looks at */
	__u32	include_dims;	/* dimensions that an include rule looks at */
	__u64	exclude_ids;
	__u64	exclude_exe_ids;	/* those that exclude as FILTER_EXCLUDE_EXE, and so on */
	__u64	exclude_user_ids;
	__u64	include_ids;
	__u64	seed;
	__u64	exe_ids;	/* for a base name without a value */
	__u64	path_ids;	/* for a path none of whose folders has a value */
	__u64	path_depths;	/* bits: depths at which the paths of rules end */
	__u32	path_act;
	__u32	bits_mask;	/* number of bits in use, minus 1 */
	__u32	n_uids;		/* above 1: uids of the table applies */
	__u32	uid_act;	/* else this applies to all users */
	__u64	uid_ids;
	__u64	few_bits[FILTER_BITS_MIN / 64];		/* used if no more bits are in use; else those of the table */
};

struct filter_table {
	__u64	bits[FILTER_BITS_MAX / 64];	/* a bit that is set: a key may have this hash; not for cgroups */
	struct filter_uids	uids[FILTER_UID_RANGES];	/* ascending, the first from 0 */
	__u64	unknown_ids[FILTER_DIMS];	/* conditions that do not look at the dimension */
	__u64	cgroup_not_ids;	/* conditions that must hold for both hierarchies; the others for one */
};

_Static_assert(sizeof(struct filter_key) == 64, "filter_key changed size");
_Static_assert(sizeof(struct filter_value) == 24, "filter_value changed size");

/* Adds one word to a hash; both sides compute the same. */
static inline __attribute__((always_inline)) __u64
filter_hash_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

typedef __u64 __attribute__((may_alias)) filter_word;

/* Hashes a key. size is that of the name, with its NUL if it has one; zeros after it do not count. */
static inline __attribute__((always_inline)) __u64
filter_hash_key(__u64 seed, const struct filter_key *key, __u32 size)
{
	const filter_word *words = (const void *)key;	/* the caller aligns it */
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
