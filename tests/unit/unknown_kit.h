/*
 * SPDX-License-Identifier: Apache-2.0
 * unknown_kit: what a later version leaves, with a topic that this one does not know. A test also includes faults.h
 * itself, for the linker (CMakeLists.txt).
 */
#ifndef SLUICE_TESTS_UNIT_UNKNOWN_KIT_H
#define SLUICE_TESTS_UNIT_UNKNOWN_KIT_H

#include "base/crc32c.h"
#include "base/endian.h"
#include "one_spool.h"

#define LATER "sluice.later"
#define KNOWN TOPIC_FINDING	/* what the later version calls it, and this one does not */
#define SEQ 1000		/* of its first record */

/* Gives a topic another name, and at least that next seq, in the heads of all files with these names. */
static inline void
rename_topic(const char *prefix, const char *from, const char *to, uint64_t next_seq)
{
	DIR *dir = opendir(k.dir);
	struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		struct spool_segment_head h;
		struct kit_file file;
		char path[512];

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", k.dir, e->d_name);
		file = kit_load(path);
		assert_int_equal(spool_segment_head_unpack(file.data, file.len, &h), 0);
		for (unsigned i = 0; i < h.n_topics; i++) {
			if (strcmp(h.topics[i].name, from) != 0)
				continue;
			snprintf(h.topics[i].name, sizeof(h.topics[i].name), "%s", to);
			if (next_seq > h.topics[i].next_seq)
				h.topics[i].next_seq = next_seq;
		}
		spool_segment_head_pack(file.data, &h);
		kit_store(path, file.data, file.len);
		free(file.data);
	}
	closedir(dir);
}

/* Gives a topic another name in both slots of the state file. */
static inline void
rename_state(const char *from, const char *to)
{
	struct kit_file file;
	char path[512];

	snprintf(path, sizeof(path), "%s/state", k.dir);
	file = kit_load(path);
	for (size_t slot = 0; slot < file.len; slot += 4096) {
		for (size_t at = slot + 136; at < slot + 1416; at += 40)
			if (strcmp((const char *)file.data + at, from) == 0)
				snprintf((char *)file.data + at, 32, "%s", to);
		le_put32(file.data + slot + 4, crc32c(0, file.data + slot + 8, 4096 - 8));
	}
	kit_store(path, file.data, file.len);
	free(file.data);
}

/* What a later version leaves: records of its own topic among others, in both queues, and a checkpoint. */
static inline void
put_all(struct kit *at)
{
	at->seq[KNOWN] = SEQ;
	spool_checkpoint_begin(at->spool);
	kit_put_entry(at, 100);
	for (int i = 0; i < 4; i++) {
		kit_put(at, TOPIC_PROGRAM);
		kit_put(at, KNOWN);
		kit_put(at, KNOWN);
		kit_put(at, TOPIC_USAGE);
		(void)kit_commit_at(at, 100 + (uint64_t)i);
	}
}

static inline void
downgrade(void)
{
	rename_topic("main-", topic_name(KNOWN), LATER, 0);
	rename_topic("usage-", topic_name(KNOWN), LATER, 0);
}

static inline void
upgrade(void)
{
	rename_topic("unknown-", LATER, topic_name(KNOWN), 0);
	rename_topic("main-", LATER, topic_name(KNOWN), 0);
	rename_topic("usage-", LATER, topic_name(KNOWN), 0);
}

static inline uint64_t
unknown_topics(void)
{
	struct spool_stats st = kit_stats(&k);

	if (st.n_unknown == 0)
		return 0;
	assert_int_equal(st.n_unknown, 1);
	assert_string_equal(st.unknown[0].topic, LATER);
	return st.unknown[0].records;
}

static inline void
only_open(struct kit *at)
{
	(void)at;
}

#endif
