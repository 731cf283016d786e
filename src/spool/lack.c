/*
 * SPDX-License-Identifier: Apache-2.0
 * lack: what the write-ahead log lacks, and whether the next owner knows that.
 *
 * The log is cut while entries are not taken, because users have their shares (share.c), and lost while entries that
 * were taken, or the checkpoint before them, are gone: both up to the next checkpoint. Before the log is cut, the state
 * file tells the next owner that it lacks some, as it does of batches that are in memory only. That ends once a
 * checkpoint is on the disk with all entries after it.
 */
#include <errno.h>

#include "spool/state.h"

bool
spool_lack_begin(struct spool *s)
{
	int r;

	if (s->is_log_cut)
		return true;
	if (s->failed < 0)
		return false;
	if (!s->is_lacking)
		s->is_lacking_by_cut = true;
	r = spool_set_lacking(s, true);
	if (r < 0 && r != -EAGAIN)
		spool_disk_failed(s, r);
	s->is_log_cut = r == 0;
	return s->is_log_cut;
}

bool
spool_lacks_batches(const struct spool *s)
{
	return s->is_lacking;
}

int
spool_set_lacking(struct spool *s, bool is_lacking)
{
	int r;

	if (!is_lacking && (s->is_log_cut || s->is_lacking_by_cut)) {
		s->is_lacking_by_cut = true;
		return 0;
	}
	s->is_lacking = is_lacking;
	r = spool_marks_write(s, false);
	s->is_state_moved = s->is_state_moved || r < 0;
	return r < 0 ? r : s->is_state_moved ? -EAGAIN : 0;
}

bool
spool_is_log_cut(const struct spool *s)
{
	return s->is_log_cut;
}

bool
spool_is_log_lost(const struct spool *s)
{
	return s->is_log_lost;
}

/* Returns whether what the log lacked for a while is on the disk, since a checkpoint, with all entries after it. */
static bool
is_cut_over(const struct spool *s)
{
	return !s->is_log_cut && !s->is_log_lost && s->failed == 0 && s->checkpoint.seg != NULL &&
	    s->checkpoint.seg->is_on_disk;
}

void
spool_lack_end(struct spool *s)
{
	if (s->is_lacking_by_cut && is_cut_over(s)) {
		s->is_lacking_by_cut = false;
		(void)spool_set_lacking(s, false);
	}
}
