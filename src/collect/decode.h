/*
 * SPDX-License-Identifier: Apache-2.0
 * decode: turns bytes from the ring or the iterator into checked events (model/event.h).
 *
 * Nothing is trusted: version, kind, sizes and terminators are checked, and a malformed record is refused as a
 * whole.
 */
#ifndef SLUICE_COLLECT_DECODE_H
#define SLUICE_COLLECT_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "model/event.h"

struct decoder;			/* opaque: buffers for the text of one event */

/* Makes a decoder. ops (model/event.h) is copied; arg is passed to each call. 0 or -ENOMEM. */
int decoder_new(const struct decode_ops *ops, void *arg, struct decoder **ret);
void decoder_free(struct decoder *d);	/* d may be NULL */

/*
 * Limits the argument bytes of each program: the rest is cut, and argv_truncated set. The default is no limit but
 * that of the kernel side.
 */
void decoder_set_argv_max(struct decoder *d, size_t bytes);

/* Decodes one record. 0 after exactly one call of ops, or -EBADMSG after none. */
int decode(struct decoder *d, const void *data, size_t len);

/* Returns the bytes of the record whose event is being reported; valid during a call of ops. */
const void *decoder_record(const struct decoder *d, size_t *ret_len);

/*
 * Decodes a sequence of records, as the iterator writes them. Returns the number of bytes used; the rest is an
 * incomplete record. *ret_malformed is incremented for each refused record; a head that cannot be trusted uses up
 * all bytes.
 */
size_t decode_stream(struct decoder *d, const void *data, size_t len, uint64_t *ret_malformed);

#endif
