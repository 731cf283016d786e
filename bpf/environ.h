/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Of a program's environment the variables that the user named, and nothing else. Defined in
 * environ.bpf.c.
 */
#ifndef SLUICE_ENVIRON_H
#define SLUICE_ENVIRON_H

#include "state.h"

/* Set in the result of environ_append(). */
#define ENVIRON_CUT 0x10000	/* a limit of ours: a variable that was named may be missing */
#define ENVIRON_FAULT 0x20000	/* the environment could not be read to its end */

/* Which table of names counts, 1 or 2; 0: no environment is read. User space switches it at any time. */
extern u32 environ_table;

/*
 * Appends NAME=value, with its NUL, of each variable between start and end whose name stands in the
 * table (0 or 1), to scratch.text at off. Returns the bytes written, with the flags above.
 */
u32 environ_append(u64 start, u64 end, u32 off, u32 table);

/* Of the program that e tells of; mm is its own. Returns the bytes that were added at off. */
static __always_inline u32
environ_of(struct event_exec *e, struct mm_struct *mm, u32 off)
{
	u32 table = environ_table, len;

	if (!table)
		return 0;
	len = environ_append(mm->env_start, mm->env_end, off, table - 1);
	if (len & ENVIRON_CUT)
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_CUT);
	if (len & ENVIRON_FAULT)
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_READ);
	e->env_len = len & 0xffff;
	return e->env_len;
}

#endif
