/*
 * SPDX-License-Identifier: Apache-2.0
 * replay: the entry kinds that replay_process.c applies, for replay.c. Each function returns 0; -EBADMSG: the entry
 * is malformed and changed nothing; -ENOMEM.
 */
#ifndef SLUICE_CORRELATE_REPLAY_H
#define SLUICE_CORRELATE_REPLAY_H

#include "correlate/wal_codec.h"

/* Replays a process. A run or a text that no entry before it contains is counted as incomplete. */
int replay_process(struct correlator *c, struct wal_reader *r);
/* Replays the usage that was reported last for a process. */
int replay_usage(struct correlator *c, struct wal_reader *r);
/* Replays the removal of a process. */
int replay_forget(struct correlator *c, struct wal_reader *r);
/* Replays the failure of a program. */
int replay_failure(struct correlator *c, struct wal_reader *r);

#endif
