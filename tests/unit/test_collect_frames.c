/* SPDX-License-Identifier: Apache-2.0 */
/* frames: what an agent passes on is read frame by frame; a malformed one ends the reading. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/frames.h"
#include "decode_kit.h"

static struct {
	unsigned passes, sweeps, passed, cgroups;
	struct cgroup_event cgroup;
	char path[64];
	struct subscription_passed last;
	uint64_t lost;
	uint64_t withheld;
	enum optional_signal signal;
	uint64_t since_ns;
} got;

static void
take_cgroup(const struct cgroup_event *e, void *arg)
{
	assert_ptr_equal(arg, &got);
	got.cgroups++;
	got.cgroup = *e;
	snprintf(got.path, sizeof(got.path), "%s", e->path);
}

static void
take_pass(void *arg)
{
	(void)arg;
	got.passes++;
}

static void
take_sweep(void *arg)
{
	(void)arg;
	got.sweeps++;
}

static void
take_passed(const struct subscription_passed *p, void *arg)
{
	(void)arg;
	got.passed++;
	got.last = *p;
}

static void
take_lost(uint64_t events, void *arg)
{
	(void)arg;
	got.lost += events;
}

static void
take_withheld(uint64_t programs, void *arg)
{
	(void)arg;
	got.withheld += programs;
}

static void
take_known(enum optional_signal signal, uint64_t since_ns, void *arg)
{
	(void)arg;
	got.signal = signal;
	got.since_ns = since_ns;
}

static const struct frames_ops ops = { take_cgroup, take_pass, take_sweep, take_passed, take_lost, take_withheld,
	take_known };

static _Alignas(8) char bytes[1 << 20];
static size_t len;

static void
put(uint32_t kind, const void *data, size_t n)
{
	const struct subscription_head head = { .size = (uint32_t)((n + 7) / 8 * 8), .kind = kind };

	memcpy(bytes + len, &head, sizeof(head));
	memset(bytes + len + sizeof(head), 0, head.size);
	if (n > 0)
		memcpy(bytes + len + sizeof(head), data, n);
	len += sizeof(head) + head.size;
}

static void
put_record(void)
{
	put(SUBSCRIPTION_EVENT, &record, record.head.size);
}

static bool is_last;

static ssize_t
take(uint32_t own_pid)
{
	const struct frames frames = { decoder, &ops, &got, own_pid };

	is_last = false;
	return frames_read(&frames, bytes, len, &is_last);
}

static int
begin(void **state)
{
	memset(&got, 0, sizeof(got));
	len = 0;
	return setup(state);
}

static void
each_kind_is_read(void **state)
{
	const struct {
		struct subscription_cgroup head;
		char path[12];
	} cgroup = { { 7, 1 }, "/a/b" };

	(void)state;
	put(SUBSCRIPTION_KNOWN, &(struct subscription_known){ 0, 99 }, sizeof(struct subscription_known));
	put(SUBSCRIPTION_CGROUP, &cgroup, sizeof(cgroup));
	put(SUBSCRIPTION_PASS, NULL, 0);
	good_state(EVENT_SNAPSHOT);
	put_record();
	put(SUBSCRIPTION_SWEEP, NULL, 0);
	put(SUBSCRIPTION_PASSED, &(struct subscription_passed){ 12, 34 }, sizeof(struct subscription_passed));
	put(SUBSCRIPTION_LOST, &(struct subscription_count){ 5 }, sizeof(struct subscription_count));
	put(SUBSCRIPTION_WITHHELD, &(struct subscription_count){ 3 }, sizeof(struct subscription_count));
	good_exec();
	put_record();
	assert_int_equal(take(0), len);
	assert_false(is_last);
	assert_int_equal(got.since_ns, 99);
	assert_int_equal(got.cgroup.id, 7);
	assert_true(got.cgroup.is_v2);
	assert_string_equal(got.path, "/a/b");
	assert_int_equal(got.passes + got.sweeps + got.passed, 3);
	assert_int_equal(got.last.processes, 12);
	assert_int_equal(got.last.threads, 34);
	assert_int_equal(got.lost, 5);
	assert_int_equal(got.withheld, 3);
	assert_int_equal(seen.states, 1);
	assert_int_equal(seen.execs, 1);
	assert_string_equal(seen.exe, "/usr/bin/bwa");
}

static void
an_incomplete_frame_waits_for_its_rest(void **state)
{
	size_t whole;

	(void)state;
	put(SUBSCRIPTION_PASS, NULL, 0);
	whole = len;
	good_exec();
	put_record();
	for (len = whole; len < whole + sizeof(struct subscription_head) + record.head.size; len++)
		assert_int_equal(take(0), whole);
	assert_int_equal(seen.execs, 0);
}

static void
nothing_is_read_after_the_last_frame(void **state)
{
	(void)state;
	put(SUBSCRIPTION_SETTLED, NULL, 0);
	put(SUBSCRIPTION_PASS, NULL, 0);
	assert_int_equal(take(0), sizeof(struct subscription_head));
	assert_true(is_last);
	assert_int_equal(got.passes, 0);
}

static void
the_run_begins_below_the_reader(void **state)
{
	(void)state;
	good_exec();
	record.exec.parent.pid = record.exec.anchor.pid = 77;
	put_record();
	good_state(EVENT_EXIT);
	record.state.parent.pid = record.state.anchor.pid = 77;
	put_record();
	assert_int_equal(take(77), len);
	assert_int_equal(seen.exec.parent.pid + seen.exec.anchor.pid, 0);
	assert_int_equal(seen.exec.parent.start_ns, 0);
	assert_int_equal(seen.state.parent.pid + seen.state.anchor.pid, 0);
	good_exec();
	len = 0;
	put_record();
	assert_int_equal(take(77), len);
	assert_int_equal(seen.exec.parent.pid, record.exec.parent.pid);
	assert_int_equal(seen.exec.anchor.pid, record.exec.anchor.pid);
}

static void
refused(uint32_t kind, const void *data, size_t n)
{
	len = 0;
	put(kind, data, n);
	assert_int_equal(take(0), -EBADMSG);
}

static void
malformed_frames_are_refused(void **state)
{
	struct subscription_head head = { .size = 4, .kind = SUBSCRIPTION_PASS };
	struct subscription_known known = { OPTIONAL_SIGNALS, 1 };
	char path[32] = { 0 };

	(void)state;
	refused(0, NULL, 0);
	refused(SUBSCRIPTION_SETTLED + 1, NULL, 0);
	refused(SUBSCRIPTION_PASSED, "", 1);
	refused(SUBSCRIPTION_LOST, path, 16);
	refused(SUBSCRIPTION_KNOWN, path, 8);
	refused(SUBSCRIPTION_KNOWN, &known, sizeof(known));
	refused(SUBSCRIPTION_CGROUP, path, 16);
	memset(path, 'x', sizeof(path));
	refused(SUBSCRIPTION_CGROUP, path, 32);		/* no NUL */
	refused(SUBSCRIPTION_EVENT, path, 8);
	good_exec();
	record.head.size += 8;		/* more than the frame has */
	refused(SUBSCRIPTION_EVENT, &record, record.head.size - 8);
	good_exec();
	refused(SUBSCRIPTION_EVENT, &record, record.head.size + 8);
	good_exec();
	record.head.kind = 99;
	refused(SUBSCRIPTION_EVENT, &record, record.head.size);
	len = sizeof(head);
	memcpy(bytes, &head, sizeof(head));
	assert_int_equal(take(0), -EBADMSG);
	head.size = SUBSCRIPTION_FRAME_MAX + 8;
	memcpy(bytes, &head, sizeof(head));
	assert_int_equal(take(0), -EBADMSG);
	assert_int_equal(seen.execs + seen.states + got.cgroups + got.passed + got.lost, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_kind_is_read, begin, teardown),
		cmocka_unit_test_setup_teardown(an_incomplete_frame_waits_for_its_rest, begin, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_read_after_the_last_frame, begin, teardown),
		cmocka_unit_test_setup_teardown(the_run_begins_below_the_reader, begin, teardown),
		cmocka_unit_test_setup_teardown(malformed_frames_are_refused, begin, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
