/*
 * SPDX-License-Identifier: Apache-2.0
 * wal_rows: the members of each entry of the write-ahead log, one row each. The functions that write, read and keep
 * them are generated from these rows alone.
 *
 *	ROW(kind, since, bit, how, member)
 *
 * since is the first version whose entries have the member; bit is one of the entry's flags, which are written in the
 * place of the row FLAGS. A row may be added at the end of a table, with a new bit and a new version; no row may be
 * removed, moved or changed. how depends on the kind:
 *
 *	VALUE     how: type of wal_codec.h
 *	NAME      an array of characters
 *	FLAGS     bit: number of flags
 *	BOOL      true where the bit is set
 *	FAILING   enum failing, in two bits, of which this is the first
 *	OPT       struct opt_*; how: type of its value. Present if the bit is set
 *	SOME      present unless it is 0 (several may share a bit); how: type
 *	IF        present if the writer has set the bit; how: type
 *	OWN       struct own_bill, present once it has begun
 *	AFTER, AFTER_SOME, AFTER_IF   likewise, as the difference from the member how
 *	ANCESTOR, ANCESTOR_UNLESS     struct program_key, relative to the start how of a process
 *	STRING    present unless it is NULL, as the next two
 *	KEPT      a kept_name()
 *	TEXT      a string that the struct owns
 */
#ifndef SLUICE_CORRELATE_WAL_ROWS_H
#define SLUICE_CORRELATE_WAL_ROWS_H

#include "correlate/wal_codec.h"

#define CGROUP_ROWS(ROW) \
	ROW(VALUE, 2, 0, u64, key.id) \
	ROW(FLAGS, 2, 6, , ) \
	ROW(BOOL, 2, 0, , key.is_v2) \
	ROW(OPT, 2, 1, real, cpus) \
	ROW(OPT, 2, 2, u64, memory_bytes) \
	ROW(SOME, 7, 3, u32, users_names) \
	ROW(SOME, 15, 4, u64, only_task) \
	ROW(OPT, 16, 5, u64, memory_high)

#define RUN_IS_WHOLE 7
#define RUN_ROWS(ROW) \
	ROW(NAME, 2, 0, , id) \
	ROW(FLAGS, 2, 39, , ) \
	ROW(BOOL, 2, 0, , root_ended) \
	ROW(BOOL, 2, 1, , has_status) \
	ROW(BOOL, 2, 2, , has_started) \
	ROW(BOOL, 2, 3, , has_ended) \
	ROW(VALUE, 2, 0, strength, strength) \
	ROW(VALUE, 2, 0, confidence, confidence) \
	ROW(VALUE, 2, 0, id, root) \
	ROW(VALUE, 2, 0, i32, status) \
	ROW(VALUE, 2, 0, u64, start_ns) \
	ROW(VALUE, 2, 0, u64, lost_before) \
	ROW(OPT, 2, 4, u64, uid) \
	ROW(OPT, 2, 5, real, cpus) \
	ROW(OPT, 2, 6, u64, memory_bytes) \
	ROW(VALUE, 2, 0, work, work) \
	ROW(KEPT, 2, 8, , engine) \
	ROW(KEPT, 2, 9, , source) \
	ROW(KEPT, 2, 10, , inner) \
	ROW(TEXT, 2, 11, , pipeline) \
	ROW(TEXT, 2, 12, , name) \
	ROW(TEXT, 2, 13, , command) \
	ROW(TEXT, 2, 14, , work_dir) \
	ROW(TEXT, 2, 15, , root_dir) \
	ROW(TEXT, 2, 16, , scheduler) \
	ROW(TEXT, 2, 17, , job_id) \
	ROW(TEXT, 2, 18, , parent_id) \
	ROW(TEXT, 2, 19, , task) \
	ROW(TEXT, 2, 20, , sample) \
	ROW(FAILING, 4, 21, , failing) \
	ROW(SOME, 4, 23, u32, findings) \
	ROW(SOME, 4, 23, u32, failed_tasks) \
	ROW(SOME, 8, 24, u32, user_uid) \
	ROW(OWN, 10, 25, own, work.own) \
	ROW(SOME, 10, 26, u64, work.held.peak) \
	ROW(SOME, 10, 26, source, work.held.peak_source) \
	ROW(SOME, 12, 27, u32, episodes) \
	ROW(SOME, 12, 27, u32, episode_findings) \
	ROW(SOME, 14, 28, u64, work.energy.uj) \
	ROW(SOME, 14, 28, meter, work.energy.source) \
	ROW(SOME, 15, 29, u32, work.contention.since.major) \
	ROW(SOME, 15, 30, u32, work.contention.since.minor) \
	ROW(SOME, 15, 31, u64, work.contention.since.bytes) \
	ROW(SOME, 15, 32, u64, work.contention.since.busy_ns) \
	ROW(SOME, 15, 33, u64, work.contention.bytes) \
	ROW(SOME, 15, 34, u64, work.contention.busy_ns) \
	ROW(SOME, WAL_VERSION_OWN_QUEUE, 35, u64, work.own.queue_ns) \
	ROW(OPT, 16, 36, u64, memory_high) \
	ROW(SOME, 16, 37, u64, work.contention.cpus_since_ns) \
	ROW(SOME, 16, 38, u64, work.contention.cpus_ns)

/* A task: its number and the id of its run come before these rows. */
#define TASK_HAS_ID_KEY 7
#define TASK_ROWS(ROW) \
	ROW(VALUE, 2, 0, id, root) \
	ROW(FLAGS, 2, 42, , ) \
	ROW(BOOL, 2, 0, , is_named) \
	ROW(BOOL, 2, 1, , has_started) \
	ROW(BOOL, 2, 2, , has_ended) \
	ROW(BOOL, 2, 3, , root_ended) \
	ROW(VALUE, 2, 0, i32, status) \
	ROW(VALUE, 2, 0, confidence, confidence) \
	ROW(OPT, 2, 8, i32, attempt) \
	ROW(OPT, 2, 9, real, cpus) \
	ROW(OPT, 2, 10, u64, memory_bytes) \
	ROW(VALUE, 2, 0, work, work) \
	ROW(NAME, 2, 0, , task_id) \
	ROW(NAME, 2, 0, , name) \
	ROW(NAME, 2, 0, , sample) \
	ROW(KEPT, 2, 4, , engine) \
	ROW(KEPT, 2, 5, , source) \
	ROW(TEXT, 2, 6, , work_dir) \
	ROW(TEXT, 2, 11, , scheduler) \
	ROW(TEXT, 2, 12, , job_id) \
	ROW(FAILING, 4, 13, , failing) \
	ROW(SOME, 4, 15, u32, oom_kills) \
	ROW(OWN, 10, 16, own, work.own) \
	ROW(SOME, 10, 17, u64, work.held.peak) \
	ROW(SOME, 10, 17, source, work.held.peak_source) \
	ROW(SOME, 12, 18, u32, kills) \
	ROW(SOME, 12, 19, u32, episodes) \
	ROW(SOME, 12, 19, u32, episode_findings) \
	ROW(SOME, 14, 20, u64, work.energy.uj) \
	ROW(SOME, 14, 20, meter, work.energy.source) \
	ROW(BOOL, 15, 21, , has_group) \
	ROW(OPT, 15, 22, u64, group.memory_peak_bytes) \
	ROW(OPT, 15, 23, u64, group.oom_kills) \
	ROW(OPT, 15, 24, u64, group.throttled_ns) \
	ROW(OPT, 15, 25, u64, group.cpu_some_ns) \
	ROW(OPT, 15, 26, u64, group.memory_some_ns) \
	ROW(OPT, 15, 27, u64, group.memory_full_ns) \
	ROW(OPT, 15, 28, u64, group.io_some_ns) \
	ROW(OPT, 15, 29, u64, group.io_full_ns) \
	ROW(SOME, 15, 30, u32, work.contention.since.major) \
	ROW(SOME, 15, 31, u32, work.contention.since.minor) \
	ROW(SOME, 15, 32, u64, work.contention.since.bytes) \
	ROW(SOME, 15, 33, u64, work.contention.since.busy_ns) \
	ROW(SOME, 15, 34, u64, work.contention.bytes) \
	ROW(SOME, 15, 35, u64, work.contention.busy_ns) \
	ROW(SOME, 15, 36, u64, group_of.v2) \
	ROW(SOME, 15, 37, u64, group_of.v1) \
	ROW(SOME, WAL_VERSION_OWN_QUEUE, 38, u64, work.own.queue_ns) \
	ROW(OPT, 16, 39, u64, memory_high) \
	ROW(SOME, 16, 40, u64, work.contention.cpus_since_ns) \
	ROW(SOME, 16, 41, u64, work.contention.cpus_ns)

/* A process, up to its attribution; the number of its task, or else the id of its run, follows. */
enum process_bit {
	PROCESS_HAS_BASE = 7,		/* else base is 0 */
	PROCESS_HAS_SENT = 8,
	PROCESS_HAS_RUN = 9,
	PROCESS_HAS_TASK = 10,
	PROCESS_WAS_SHOWN = 11,		/* a record was emitted: its cgroups were used */
	PROCESS_ANCHOR_IS_PARENT = 12,
	PROCESS_HAS_LATEST = 19,	/* else latest is sent */
	PROCESS_ABOVE_IS_PARENT = 20,
	PROCESS_HAS_TITLE = 21,		/* since version 3 */
	PROCESS_HAS_FAILED_CHILD = 24,	/* since version 4 */
	PROCESS_IS_KILLED = 32,		/* since version 12 */
};
#define WAL_VERSION_OWN_QUEUE 16	/* before, it is assumed, and what others had of the CPUs is unknown */
#define WAL_VERSION_ELEVATED 7		/* before, any process may be elevated for all that is known */
#define PROCESS_ROWS(ROW) \
	ROW(VALUE, 2, 0, id, id) \
	ROW(FLAGS, 2, 34, , ) \
	ROW(BOOL, 2, 0, , has_context) \
	ROW(BOOL, 2, 1, , is_forked) \
	ROW(BOOL, 2, 2, , is_announced) \
	ROW(BOOL, 2, 3, , is_driver) \
	ROW(BOOL, 2, 4, , is_over) \
	ROW(BOOL, 2, 5, , is_base_known) \
	ROW(BOOL, 2, 6, , was_usage_sent) \
	ROW(BOOL, 2, 16, , is_overhead) \
	ROW(BOOL, 2, 17, , is_excluded) \
	ROW(BOOL, 2, 18, , is_inside) \
	ROW(BOOL, 4, 22, , is_engine) \
	ROW(BOOL, 4, 23, , has_failed) \
	ROW(VALUE, 2, 0, u32, self.index) \
	ROW(ANCESTOR, 2, 0, id.start_ns, parent) \
	ROW(ANCESTOR_UNLESS, 2, PROCESS_ANCHOR_IS_PARENT, id.start_ns, anchor) \
	ROW(ANCESTOR_UNLESS, 2, PROCESS_ABOVE_IS_PARENT, id.start_ns, above) \
	ROW(VALUE, 2, 0, u32, ppid) \
	ROW(VALUE, 2, 0, i64, start_us) \
	ROW(AFTER, 2, 0, start_us, program_start_us) \
	ROW(AFTER, 2, 0, id.start_ns, program_start_ns) \
	ROW(AFTER_SOME, 2, 13, start_us, observed_us) \
	ROW(AFTER_SOME, 2, 14, id.start_ns, gone_ns) \
	ROW(AFTER_SOME, 2, 15, id.start_ns, unseen_since_ns) \
	ROW(IF, 2, 0, context, context) \
	ROW(BOOL, 6, 25, , is_start_due) \
	ROW(BOOL, 7, 26, , is_unjudged) \
	ROW(BOOL, WAL_VERSION_ELEVATED, 27, , is_elevated) \
	ROW(SOME, 8, 28, u32, context.user_uid) \
	ROW(SOME, 10, 29, u64, held.own) \
	ROW(SOME, 10, 30, u64, held.file) \
	ROW(SOME, 10, 31, u64, held.forked) \
	ROW(SOME, 13, 33, u64, held.mark)

/* The usage of a process comes after its attribution; its text, title and failures follow. */
#define PROCESS_USAGE_ROWS(ROW) \
	ROW(IF, 2, PROCESS_HAS_BASE, counters, base.counters) \
	ROW(IF, 2, PROCESS_HAS_BASE, u64, base.cpu.user_ns) \
	ROW(IF, 2, PROCESS_HAS_BASE, u64, base.cpu.system_ns) \
	ROW(IF, 2, PROCESS_HAS_SENT, usage, sent) \
	ROW(AFTER_IF, 2, PROCESS_HAS_SENT, id.start_ns, sent_ns) \
	ROW(IF, 2, PROCESS_HAS_LATEST, usage, latest)

/* Where the text of a process is. */
enum wal_text {
	WAL_TEXT_NONE,			/* unknown */
	WAL_TEXT_HERE,
	WAL_TEXT_KEPT,			/* in its last entry */
	WAL_TEXT_OF,			/* in the entry of another process */
	WAL_TEXTS,
};

/*
 * A text is: flags, the numbers of arguments and of variables, the arguments, these rows, the variables, tool_rule.
 */
enum text_bit {
	TEXT_ARGV_TRUNCATED = 1,
	TEXT_HAS_ARGV = 2,
	TEXT_HAS_RULE = 7,
};
#define TEXT_FLAGS 14
#define TEXT_ROWS(ROW) \
	ROW(BOOL, 2, 0, , is_tool) \
	ROW(STRING, 2, 3, , exe) \
	ROW(STRING, 2, 4, , comm) \
	ROW(STRING, 2, 5, , cwd) \
	ROW(STRING, 2, 6, , tool) \
	ROW(STRING, 2, 8, , words.subcommand) \
	ROW(STRING, 2, 9, , words.script) \
	ROW(STRING, 2, 10, , words.jar) \
	ROW(STRING, 2, 11, , words.class) \
	ROW(STRING, 2, 12, , trace_id) \
	ROW(STRING, 2, 13, , span_id)

/* A failure: the key of the one that it passed on and of its parent, if any, and four strings follow. */
enum failure_bit {
	FAILURE_HAS_OF = 5,
	FAILURE_HAS_PARENT = 6,
};
#define FAILURE_ROWS(ROW) \
	ROW(VALUE, 4, 0, key, program) \
	ROW(FLAGS, 4, 8, , ) \
	ROW(BOOL, 4, 0, , is_oom) \
	ROW(BOOL, 4, 1, , is_engine) \
	ROW(BOOL, 4, 2, , is_run_root) \
	ROW(VALUE, 4, 0, i32, status) \
	ROW(VALUE, 4, 0, u64, begin_ns) \
	ROW(VALUE, 4, 0, u64, end_ns) \
	ROW(VALUE, 4, 0, u64, task_root) \
	ROW(VALUE, 4, 0, u32, skipped) \
	ROW(OPT, 4, 3, u64, peak_bytes) \
	ROW(OPT, 4, 4, u64, limit_bytes) \
	ROW(BOOL, 16, 7, , is_on_full_disk) \
	ROW(SOME, 16, 7, u64, space.free_bytes) \
	ROW(SOME, 16, 7, u64, space.total_bytes) \
	ROW(SOME, 16, 7, u64, space.free_files) \
	ROW(SOME, 16, 7, u64, space.total_files)

#define WAL_BIT(bit) (UINT64_C(1) << (bit))

/*
 * Writing. WAL_WRITER(name, type, ROWS) defines:
 *	uint64_t name_flags(const type *x)	the bits that follow from x; the writer adds those of IF and UNLESS
 *	size_t name_strings(const type *x)	bytes of its strings, with their NULs
 *	uint8_t *name_write(uint8_t *at, const type *x, uint64_t flags)
 */
#define WAL_FLAG(kind, since, bit, how, member) WAL_FLAG_##kind(bit, member)
#define WAL_FLAG_VALUE(bit, member)
#define WAL_FLAG_NAME(bit, member)
#define WAL_FLAG_FLAGS(bit, member)
#define WAL_FLAG_BOOL(bit, member) flags |= (uint64_t)(x->member != 0) << (bit);
#define WAL_FLAG_FAILING(bit, member) flags |= (uint64_t)x->member << (bit);
#define WAL_FLAG_OPT(bit, member) flags |= (uint64_t)x->member.known << (bit);
#define WAL_FLAG_SOME(bit, member) WAL_FLAG_BOOL(bit, member)
#define WAL_FLAG_IF(bit, member)
#define WAL_FLAG_OWN(bit, member) flags |= (uint64_t)(x->member.until_ns != 0) << (bit);
#define WAL_FLAG_AFTER(bit, member)
#define WAL_FLAG_AFTER_SOME(bit, member) WAL_FLAG_BOOL(bit, member)
#define WAL_FLAG_AFTER_IF(bit, member)
#define WAL_FLAG_ANCESTOR(bit, member)
#define WAL_FLAG_ANCESTOR_UNLESS(bit, member)
#define WAL_FLAG_STRING(bit, member) flags |= (uint64_t)(x->member != NULL) << (bit);
#define WAL_FLAG_KEPT(bit, member) WAL_FLAG_STRING(bit, member)
#define WAL_FLAG_TEXT(bit, member) WAL_FLAG_STRING(bit, member)

#define WAL_SIZE(kind, since, bit, how, member) WAL_SIZE_##kind(member)
#define WAL_SIZE_VALUE(member)
#define WAL_SIZE_NAME(member) n += sizeof(x->member);
#define WAL_SIZE_FLAGS(member)
#define WAL_SIZE_BOOL(member)
#define WAL_SIZE_FAILING(member)
#define WAL_SIZE_OPT(member)
#define WAL_SIZE_SOME(member)
#define WAL_SIZE_IF(member)
#define WAL_SIZE_OWN(member)
#define WAL_SIZE_AFTER(member)
#define WAL_SIZE_AFTER_SOME(member)
#define WAL_SIZE_AFTER_IF(member)
#define WAL_SIZE_ANCESTOR(member)
#define WAL_SIZE_ANCESTOR_UNLESS(member)
#define WAL_SIZE_STRING(member) n += x->member != NULL ? strlen(x->member) + 1 : 0;
#define WAL_SIZE_KEPT(member) WAL_SIZE_STRING(member)
#define WAL_SIZE_TEXT(member) WAL_SIZE_STRING(member)

#define WAL_PUT(kind, since, bit, how, member) WAL_PUT_##kind(bit, how, member)
#define WAL_PUT_VALUE(bit, how, member) at = put_##how(at, &x->member);
#define WAL_PUT_NAME(bit, how, member) at = wal_put_string(at, x->member);
#define WAL_PUT_FLAGS(bit, how, member) at = wal_put(at, flags);
#define WAL_PUT_BOOL(bit, how, member)
#define WAL_PUT_FAILING(bit, how, member)
#define WAL_PUT_OPT(bit, how, member) if (flags & WAL_BIT(bit)) at = put_##how(at, &x->member.value);
#define WAL_PUT_SOME(bit, how, member) WAL_PUT_IF(bit, how, member)
#define WAL_PUT_OWN(bit, how, member) WAL_PUT_IF(bit, how, member)
#define WAL_PUT_IF(bit, how, member) if (flags & WAL_BIT(bit)) at = put_##how(at, &x->member);
#define WAL_PUT_AFTER(bit, how, member) at = wal_put(at, (uint64_t)x->member - (uint64_t)x->how);
#define WAL_PUT_AFTER_SOME(bit, how, member) if (flags & WAL_BIT(bit)) WAL_PUT_AFTER(bit, how, member)
#define WAL_PUT_AFTER_IF(bit, how, member) WAL_PUT_AFTER_SOME(bit, how, member)
#define WAL_PUT_ANCESTOR(bit, how, member) at = put_ancestor(at, &x->member, x->how);
#define WAL_PUT_ANCESTOR_UNLESS(bit, how, member) if (!(flags & WAL_BIT(bit))) WAL_PUT_ANCESTOR(bit, how, member)
#define WAL_PUT_STRING(bit, how, member) if (flags & WAL_BIT(bit)) at = wal_put_string(at, x->member);
#define WAL_PUT_KEPT(bit, how, member) WAL_PUT_STRING(bit, how, member)
#define WAL_PUT_TEXT(bit, how, member) WAL_PUT_STRING(bit, how, member)

#define WAL_WRITER(name, type, ROWS) \
	__attribute__((unused)) static inline uint64_t \
	name##_flags(const type *x) \
	{ \
		uint64_t flags = 0; \
 \
		(void)x; \
		ROWS(WAL_FLAG) \
		return flags; \
	} \
	__attribute__((unused)) static inline size_t \
	name##_strings(const type *x) \
	{ \
		size_t n = 0; \
 \
		(void)x; \
		ROWS(WAL_SIZE) \
		return n; \
	} \
	__attribute__((unused)) static inline uint8_t * \
	name##_write(uint8_t *at, const type *x, uint64_t flags) \
	{ \
		ROWS(WAL_PUT) \
		return at; \
	}

/*
 * Reading. WAL_READER(name, type, ROWS) defines:
 *	uint64_t name_read(struct wal_reader *r, type *x, uint64_t flags)
 * which returns the flags (those given, if the rows have none) and leaves strings in the entry. A flag of a version
 * later than the entry's makes it bad.
 */
#define WAL_GET(kind, since, bit, how, member) WAL_GET_##kind(since, bit, how, member)
#define WAL_GET_VALUE(since, bit, how, member) get_##how(r, &x->member);
#define WAL_GET_NAME(since, bit, how, member) strcpy(x->member, wal_get_name(r, sizeof(x->member)));
#define WAL_GET_FLAGS(since, bit, how, member) flags = wal_get_max(r, WAL_BIT(bit) - 1);
#define WAL_GET_BOOL(since, bit, how, member) x->member = WAL_HAS(since, bit);
#define WAL_GET_FAILING(since, bit, how, member) \
	x->member = WAL_HAS(since, (bit) + 1) ? FAILING_OVER : WAL_HAS(since, bit) ? FAILING_DUE : FAILING_NOT;
#define WAL_GET_OPT(since, bit, how, member) \
	if (WAL_HAS(since, bit)) { \
		x->member.known = true; \
		get_##how(r, &x->member.value); \
	}
#define WAL_GET_SOME(since, bit, how, member) WAL_GET_IF(since, bit, how, member)
#define WAL_GET_OWN(since, bit, how, member) WAL_GET_IF(since, bit, how, member)
#define WAL_GET_IF(since, bit, how, member) if (WAL_HAS(since, bit)) get_##how(r, &x->member);
#define WAL_GET_AFTER(since, bit, how, member) \
	{ \
		uint64_t after; \
 \
		get_u64(r, &after); \
		x->member = (__typeof__(x->member))((uint64_t)x->how + after); \
	}
#define WAL_GET_AFTER_SOME(since, bit, how, member) if (WAL_HAS(since, bit)) WAL_GET_AFTER(since, bit, how, member)
#define WAL_GET_AFTER_IF(since, bit, how, member) WAL_GET_AFTER_SOME(since, bit, how, member)
#define WAL_GET_ANCESTOR(since, bit, how, member) get_ancestor(r, &x->member, x->how);
#define WAL_GET_ANCESTOR_UNLESS(since, bit, how, member) \
	if (!WAL_HAS(since, bit)) WAL_GET_ANCESTOR(since, bit, how, member)
#define WAL_GET_STRING(since, bit, how, member) \
	x->member = WAL_HAS(since, bit) ? (__typeof__(x->member))(uintptr_t)wal_get_string(r) : NULL;
#define WAL_GET_KEPT(since, bit, how, member) WAL_GET_STRING(since, bit, how, member)
#define WAL_GET_TEXT(since, bit, how, member) WAL_GET_STRING(since, bit, how, member)
#define WAL_HAS(since, bit) wal_has(r, flags, since, bit)

/* Returns true if the flag is set. One that is set in an entry older than its member makes the entry bad. */
static inline bool
wal_has(struct wal_reader *r, uint64_t flags, unsigned since, unsigned bit)
{
	if ((flags & WAL_BIT(bit)) == 0)
		return false;
	r->is_bad = r->is_bad || r->version < since;
	return true;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a type in a declaration takes none. */
#define WAL_READER(name, type, ROWS) \
	__attribute__((unused)) static inline uint64_t \
	name##_read(struct wal_reader *r, type *x, uint64_t flags) \
	{ \
		ROWS(WAL_GET) \
		return flags; \
	}

/*
 * Keeping. WAL_KEEPER(name, type, ROWS) defines:
 *	int name_keep(struct correlator *c, type *to, const type *x)
 * which copies the values that were read, with their strings. 0 or -ENOMEM.
 */
#define WAL_KEEP(kind, since, bit, how, member) WAL_KEEP_##kind(member)
#define WAL_KEEP_VALUE(member) memcpy(&to->member, &x->member, sizeof(to->member));
#define WAL_KEEP_NAME(member) WAL_KEEP_VALUE(member)
#define WAL_KEEP_FLAGS(member)
#define WAL_KEEP_BOOL(member) WAL_KEEP_VALUE(member)
#define WAL_KEEP_FAILING(member) WAL_KEEP_VALUE(member)
#define WAL_KEEP_OPT(member) WAL_KEEP_VALUE(member)
#define WAL_KEEP_SOME(member) WAL_KEEP_VALUE(member)
#define WAL_KEEP_OWN(member) WAL_KEEP_VALUE(member)
#define WAL_KEEP_KEPT(member) to->member = kept_name(c, x->member);
#define WAL_KEEP_TEXT(member) r = state_set_string(c, &to->member, x->member) < 0 ? -ENOMEM : r;

#define WAL_KEEPER(name, type, ROWS) \
	__attribute__((unused)) static inline int \
	name##_keep(struct correlator *c, type *to, const type *x) \
	{ \
		int r = 0; \
 \
		(void)c; \
		ROWS(WAL_KEEP) \
		return r; \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
