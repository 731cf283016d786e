// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Reads an environment string by string into a window that user space never maps, and copies a string on only if
 * the name before its first '=' equals, byte by byte, one that the user configured. No other byte leaves the
 * window. It is cleared at the end.
 *
 * State that varies is kept in the window's map, not in registers: the verifier of a kernel that has no bpf_loop()
 * then sees each iteration like the one before.
 */
#include "environ.h"
#include "path.h"

#define WINDOW 1024	/* bytes of one read: more than any string that can be wanted */
#define READS_MAX 512
#define ENVIRON_MAX 65536
#define NAME_WORDS ((EVENT_ENV_NAME_MAX + 1) / 8)
#define FITS 0x100	/* flag beside a bit of environ_match(): the value is not too long */

struct environ_walk {
	union {
		char	bytes[WINDOW];
		u64	words[WINDOW / 8];
	};
	u32	found;		/* a bit for each name: the first variable of a name counts, as in getenv(3) */
	u32	is_inside;	/* the last read ended within a string */
	u32	off;		/* offset in scratch.text of the next string */
	u32	flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct environ_walk);
} environ_walks SEC(".maps");

/*
 * Two tables, of which user space fills the one that is not in use. A name is "NAME=" in words, followed by as
 * many words that mask the bytes that count.
 */
u32 environ_table;
u32 environ_count[2];
u64 environ_names[2][EVENT_ENV_NAMES][2 * NAME_WORDS];
u32 environ_lengths[2][EVENT_ENV_NAMES];	/* length of "NAME=" */

static __always_inline struct environ_walk *
walk_get(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&environ_walks, &zero);
}

/* Returns the bit of the name that the string in the window begins with, with FITS; 0: none. */
__noinline u32
environ_match(u32 table, u32 len)
{
	struct environ_walk *w = walk_get();
	u32 count;

	if (!w)
		return 0;
	table &= 1;
	count = environ_count[table];
	for (u32 i = 0; i < EVENT_ENV_NAMES; i++) {
		u64 differs = 0;

		if (i >= count)
			break;
		for (u32 k = 0; k < NAME_WORDS; k++)
			differs |= (w->words[k] ^ environ_names[table][i][k]) &
			    environ_names[table][i][NAME_WORDS + k];
		if (!differs)
			return 1u << i | (len - environ_lengths[table][i] <= EVENT_ENV_VALUE_MAX + 1 ? FITS : 0);
	}
	return 0;
}

/* Copies the string in the window, which begins with a name, to the record, unless an earlier string had that name. */
static __always_inline void
take(struct environ_walk *w, struct scratch *s, u32 hit, u32 len)
{
	u32 at = w->off;

	if (!(hit & 0xff & ~w->found))
		return;
	w->found |= hit & 0xff;
	if (!(hit & FITS)) {
		w->flags |= ENVIRON_CUT;
		return;
	}
	asm volatile("%0 &= 0xffff" : "+r"(at));
	asm volatile("%0 &= 0x3ff" : "+r"(len));
	if (at > TEXT_MAX - WINDOW)
		return;
	if (bpf_probe_read_kernel(&s->text[at], len, w->bytes))
		return;
	w->off = at + len;
}

/* The part of an environment that is not read yet. */
struct environ_rest {
	u64	start;
	u64	end;
	u32	table;
	u32	all;		/* a bit for each name of the table */
};

/* Reads the next string. Returns 1 if it was the last one that is wanted. */
static __always_inline long
environ_step(struct environ_rest *rest, struct environ_walk *w, struct scratch *s)
{
	u32 is_cut, hit;
	long len;

	if (rest->start >= rest->end || w->found == rest->all)
		return 1;
	w->bytes[0] = '\0';
	len = bpf_probe_read_user_str(w->bytes, WINDOW, (void *)rest->start);
	if (len < 0) {
		w->flags |= ENVIRON_FAULT;
		return 1;
	}
	len += !len;	/* older kernels return 0 instead of 1 for an empty string */
	/* The window is full: more of the string may follow. */
	is_cut = len == WINDOW;
	rest->start += len - is_cut;
	if (!w->is_inside) {
		hit = environ_match(rest->table, len);
		if (hit)
			take(w, s, hit, len);
	}
	w->is_inside = is_cut;
	return 0;
}

static long
on_string(u32 i, void *arg)
{
	struct environ_walk *w = walk_get();
	struct scratch *s = scratch_get();

	return w && s ? environ_step(arg, w, s) : 1;
}

static __always_inline u32
environ_read(u64 start, u64 end, u32 off, u32 table, bool has_loop)
{
	struct environ_rest rest = { start, end, table, (1u << (environ_count[table & 1] & 15)) - 1 };
	struct environ_walk *w = walk_get();
	struct scratch *s = scratch_get();

	if (!w || !s)
		return 0;
	w->found = w->is_inside = w->flags = 0;
	w->off = off;
	if (end - start > ENVIRON_MAX)
		rest.end = start + ENVIRON_MAX;
	if (has_loop) {
		bpf_loop(READS_MAX, on_string, &rest, 0);
	} else {
		for (u32 i = 0; i < READS_MAX; i++)
			if (environ_step(&rest, w, s))
				break;
	}
	__builtin_memset(w->bytes, 0, sizeof(w->bytes));
	return ((w->off - off) & 0xffff) | w->flags;
}

__noinline u32
environ_append(u64 start, u64 end, u32 off, u32 table)
{
	return environ_read(start, end, off, table, true);
}

__noinline u32
environ_append_until_5_16(u64 start, u64 end, u32 off, u32 table)
{
	return environ_read(start, end, off, table, false);
}
