/*
 * SPDX-License-Identifier: Apache-2.0
 * replay: entries of single kinds back into a correlator, by replay.c. 0; -EBADMSG: the entry does not hold, and
 * has changed nothing; -ENOMEM.
 */
#ifndef SLUICE_CORRELATE_REPLAY_H
#define SLUICE_CORRELATE_REPLAY_H

#include "correlate/wal_codec.h"

int replay_process(struct correlator *c, struct wal_reader *r);
int replay_usage(struct correlator *c, struct wal_reader *r);
int replay_forget(struct correlator *c, struct wal_reader *r);
int replay_failure(struct correlator *c, struct wal_reader *r);

#endif
