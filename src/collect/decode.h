/*
 * SPDX-License-Identifier: Apache-2.0
 * decode: bytes from the ring or the iterator → checked events (model/event.h).
 *
 * Nothing is believed: version, kind, sizes and terminators are checked, and a record that does
 * not hold is refused whole.
 */
#ifndef SLUICE_COLLECT_DECODE_H
#define SLUICE_COLLECT_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "model/event.h"

struct decoder;			/* opaque: room for the text of one event */

/* ops (model/event.h) is copied; arg goes to each call. 0 or -ENOMEM. */
int decoder_new(const struct decode_ops *ops, void *arg, struct decoder **ret);
void decoder_free(struct decoder *d);	/* NULL is fine */

/* Of each program's arguments: what is beyond is cut, and said to be. At the start all that come. */
void decoder_set_argv_max(struct decoder *d, size_t bytes);

/* One record. 0 after exactly one call of ops, or -EBADMSG after none. */
int decode(struct decoder *d, const void *data, size_t len);

/*
 * A run of records, as the iterator writes them. Returns how many bytes were used: the rest is a
 * record that is not complete yet. *ret_malformed is raised by each that was refused; a head that
 * cannot be trusted uses up all.
 */
size_t decode_stream(struct decoder *d, const void *data, size_t len, uint64_t *ret_malformed);

#endif
