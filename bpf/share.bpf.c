// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* The parts of share.h that the verifier checks once. */
#include "share.h"

#define NAMESPACES_MAX 33	/* of the kernel, one within the other */

__noinline u32
user_behind(u64 ns, u32 uid)
{
	struct user_namespace *inner = (void *)ns, *outer;
	u32 owner = 0;

	for (int i = 0; i < NAMESPACES_MAX; i++) {
		outer = BPF_CORE_READ(inner, parent);
		if (!outer)
			break;
		owner = BPF_CORE_READ(inner, owner.val);
		inner = outer;
	}
	return owner ? owner : uid;
}

/*
 * What the reader has passed is no longer a user's: once that is at the position where counting began, counting begins
 * anew, and what was counted so far counts as long as any of it may still be in the ring. So a user seems to have up to
 * twice as much as it has, and never less; but for what it wrote before the ring was scarce.
 */
static __always_inline void
ring_pass(struct user *u, u64 read, u64 written)
{
	if (read < u->ring_from && written >= u->ring_from)	/* the second is false in another ring */
		return;
	u->ring_before = read < u->ring_last && written >= u->ring_last ? u->ring_now : 0;
	u->ring_now = 0;
	u->ring_from = written;
}

__noinline u32
ring_room_of(u32 user)
{
	u64 read = bpf_ringbuf_query(&ring, BPF_RB_CONS_POS), written = bpf_ringbuf_query(&ring, BPF_RB_PROD_POS);
	u64 size = bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE), left = size - (written - read), held;
	struct user *u = user_get(user);

	if (!u)
		return RING_ALL;
	ring_pass(u, read, written);
	held = (u64)u->ring_now + u->ring_before;
	if (held <= left)
		return RING_ALL;
	if (left < size / 8)
		return RING_NONE;
	return held > 2 * left || left < 3 * size / 16 ? RING_ENDS : RING_SHORT;
}

__noinline int
ring_charge(u32 user, u32 bytes)
{
	struct user *u = user_get(user);

	if (u) {
		__sync_fetch_and_add(&u->ring_now, bytes);
		u->ring_last = bpf_ringbuf_query(&ring, BPF_RB_PROD_POS);
	}
	return 0;
}
