// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Copies a program's arguments. */
#include "exec.h"

__noinline u32
argv_append(u64 from, u64 end, u32 off)
{
	struct scratch *s = scratch_get();
	u32 copied = 0;

	if (!s)
		return ARGV_FAULT;
	for (int i = 0; i < EVENT_ARGV_MAX / 4096 + 1; i++) {
		u64 len = 4096 - (from & 4095);
		u32 at = off + copied;

		if (from >= end)
			break;
		if (len > end - from)
			len = end - from;
		asm volatile("%0 &= 0xffff" : "+r"(at));
		asm volatile("%0 &= 0x1fff" : "+r"(len));
		if (at > TEXT_MAX - 8192)
			break;
		if (bpf_probe_read_user(&s->text[at], len, (void *)from))
			return copied | ARGV_FAULT;
		copied += len;
		from += len;
	}
	return copied;
}
