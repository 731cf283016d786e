/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Reads the variables that the user named from a program's environment, and nothing else. Defined in
 * environ.bpf.c.
 */
#ifndef SLUICE_ENVIRON_H
#define SLUICE_ENVIRON_H

#include "state.h"

/* Flags in the result of environ_append(). */
#define ENVIRON_CUT 0x10000	/* a limit of ours was reached: a named variable may be missing */
#define ENVIRON_FAULT 0x20000	/* the environment could not be read to its end */

/* The table of names in use, 1 or 2; 0: no environment is read. User space may switch it at any time. */
extern u32 environ_table;

/*
 * Appends NAME=value, with its NUL, of each variable between start and end whose name is in the table (0 or 1)
 * to scratch.text at off. Returns the number of bytes written, with the flags above.
 */
u32 environ_append(u64 start, u64 end, u32 off, u32 table);
u32 environ_append_until_5_16(u64 start, u64 end, u32 off, u32 table);

/*
 * Appends the named variables of the program that e describes; mm is its own, table what environ_table was. Returns
 * the number of bytes added at off.
 */
static __always_inline u32
environ_of(struct event_exec *e, struct mm_struct *mm, u32 table, u32 off, bool has_loop)
{
	u32 len;

	if (!table)
		return 0;
	if (has_loop)
		len = environ_append(mm->env_start, mm->env_end, off, table - 1);
	else
		len = environ_append_until_5_16(mm->env_start, mm->env_end, off, table - 1);
	if (len & ENVIRON_CUT)
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_CUT);
	if (len & ENVIRON_FAULT)
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_READ);
	e->env_len = len & 0xffff;
	return e->env_len;
}

#endif
