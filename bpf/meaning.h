/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * The meaning of what outlives an agent: the pinned maps and the records in the ring.
 *
 * An agent uses the maps of the one before if both have the same layout: the same types (src/attach/layout.h finds them
 * by itself) and the same meaning. Raise the number if a member means something else than before while its name and
 * type stay, as elements of an array do if one is not added at its end, or if struct filter_value changes, whose type
 * is in no map's description. Comments, and members whose zero means what an older version does, need no other number.
 */
#ifndef SLUICE_MEANING_H
#define SLUICE_MEANING_H

#ifndef STATE_MEANING
#define STATE_MEANING 1
#endif

#endif
