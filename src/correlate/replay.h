/*
 * SPDX-License-Identifier: Apache-2.0
 * replay: notes of single kinds back into a correlator, by replay.c. 0; -EBADMSG: the note does not hold, and
 * has changed nothing; -ENOMEM.
 */
#ifndef SLUICE_CORRELATE_REPLAY_H
#define SLUICE_CORRELATE_REPLAY_H

#include "correlate/note_codec.h"

int replay_process(struct correlator *c, struct note_reader *r);
int replay_usage(struct correlator *c, struct note_reader *r);
int replay_forget(struct correlator *c, struct note_reader *r);
int replay_failure(struct correlator *c, struct note_reader *r);

#endif
