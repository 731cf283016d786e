/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_image: the kernel's form of the rules decides like the rules themselves. The steps of
 * bpf/filter.bpf.c are repeated here on the same keys and values. No root, no kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "attach/filter_cgroups.h"
#include "attach/filter_holds.h"
#include "attach/filter_image.h"
#include "identify/match.h"

#define POOL 200000
#define RULES 32

static struct condition pool[POOL];
static size_t n_pool;

static struct condition *
make(enum condition_kind kind, const char *text)
{
	struct condition *c = &pool[n_pool++];

	assert_true(n_pool < POOL);
	*c = (struct condition){ .kind = kind, .text = text };
	return c;
}

static struct condition *
uids(uint32_t low, uint32_t high)
{
	struct condition *c = make(CONDITION_UID, NULL);

	c->low = low;
	c->high = high;
	return c;
}

/* NULL ends the list. */
static struct condition *
group(enum condition_kind kind, ...)
{
	struct condition *c = make(kind, NULL), *child;
	const struct condition **at = &c->first;
	va_list ap;

	va_start(ap, kind);
	while ((child = va_arg(ap, struct condition *)) != NULL) {
		*at = child;
		at = &child->next;
	}
	va_end(ap);
	return c;
}

struct program {
	const char *exe;		/* path; NULL unknown */
	const char *v2, *v1;		/* cgroups; NULL none */
	bool v2_is_unknown;		/* to the kernel only */
	uint32_t uid;
	bool is_exe_of_root;
};

/* bpf/filter.bpf.c */

static bool
has_bit(const struct filter_image *image, uint64_t hash)
{
	uint32_t bit = (uint32_t)hash & image->slot.bits_mask;

	const __u64 *bits = image->slot.bits_mask < FILTER_BITS_MIN ? image->slot.few_bits : image->table.bits;

	return bits[bit / 64] >> (bit & 63) & 1;
}

static const struct filter_value *
find(const struct filter_image *image, uint32_t space, const void *name, size_t len)
{
	struct filter_key key = { .space = space };

	memcpy(key.name, name, len);
	for (size_t i = 0; i < image->n_entries; i++) {
		if (memcmp(&key, &image->entries[i].key, sizeof(key)) == 0)
			return &image->entries[i].value;
	}
	return NULL;
}

static const struct filter_value *
look_up(const struct filter_image *image, uint32_t space, const void *name, size_t len)
{
	_Alignas(8) struct filter_key key = { .space = space };
	uint32_t uid;
	uint64_t hash;

	memcpy(key.name, name, len);
	memcpy(&uid, key.name, sizeof(uid));
	hash = space == FILTER_UID ? filter_hash_uid(image->slot.seed, uid) :
	    filter_hash_key(image->slot.seed, &key, (uint32_t)len + 1);
	return has_bit(image, hash) ? find(image, space, name, len) : NULL;
}

struct judged {
	uint32_t act;
	uint32_t unknown;
	uint64_t ids;
};

static void
judge_exe(const struct filter_image *image, const struct program *p, struct judged *j)
{
	const struct filter_slot *slot = &image->slot;
	const struct filter_value *v;
	const char *name;

	if (p->exe == NULL) {
		j->unknown |= 1 << FILTER_DIM_EXE;
		j->ids &= image->table.unknown_ids[FILTER_DIM_EXE];
		return;
	}
	name = strrchr(p->exe, '/') + 1;
	v = strlen(name) <= FILTER_NAME_MAX ? look_up(image, FILTER_EXE, name, strlen(name)) : NULL;
	j->act |= v != NULL ? v->act : 0;
	j->ids &= v != NULL ? v->ids : slot->exe_ids;
}

static void
judge_uid(const struct filter_image *image, const struct program *p, struct judged *j)
{
	const struct filter_slot *slot = &image->slot;
	const struct filter_value *v = look_up(image, FILTER_UID, &p->uid, sizeof(p->uid));
	uint32_t low = 0, high = slot->n_uids;

	if (v != NULL) {
		j->act |= v->act;
		j->ids &= v->ids;
		return;
	}
	for (int i = 0; i < 6 && high - low > 1; i++) {
		uint32_t middle = (low + high) / 2;

		if (image->table.uids[middle].from <= p->uid)
			low = middle;
		else
			high = middle;
	}
	j->act |= image->table.uids[low].act;
	j->ids &= image->table.uids[low].ids;
}

static void
judge_cgroups(const struct filter_image *image, const struct program *p, struct judged *j)
{
	uint64_t any = 0, all = ~UINT64_C(0), none = image->table.unknown_ids[FILTER_DIM_CGROUP];
	uint64_t not_ids = image->table.cgroup_not_ids;
	const char *paths[] = { p->v2, p->v1 };
	bool is_known = p->v2 != NULL || p->v1 != NULL;

	if (!is_known)
		any = all = none;
	for (int i = 0; i < 2; i++) {
		struct filter_entry e;

		if (paths[i] == NULL)
			continue;
		if (i == 0 && p->v2_is_unknown) {
			any |= none;
			all &= none;
			is_known = false;
			continue;
		}
		filter_image_cgroup(image, 1, i == 0, paths[i], &e);
		j->act |= e.value.act;
		any |= e.value.ids;
		all &= e.value.ids;
	}
	if (!is_known)
		j->unknown |= 1 << FILTER_DIM_CGROUP;
	j->ids &= (any & ~not_ids) | (all & not_ids);
}

static void
judge_path(const struct filter_image *image, const struct program *p, struct judged *j)
{
	const struct filter_slot *slot = &image->slot;
	uint64_t ids = slot->path_ids, hash = slot->seed, depths = slot->path_depths >> 1;
	uint32_t act = slot->path_act, depth = 0;

	if (p->exe == NULL) {
		j->unknown |= 1 << FILTER_DIM_PATH;
		j->ids &= image->table.unknown_ids[FILTER_DIM_PATH];
		return;
	}
	for (const char *at = p->exe; *at == '/' && depths != 0; depths >>= 1) {
		size_t len = strcspn(++at, "/");
		const struct filter_value *v = NULL;
		char name[12];

		hash = filter_hash_path_name(hash, at, len);
		at += len;
		depth++;
		if (depths & 1 && has_bit(image, hash)) {
			memcpy(name, &hash, sizeof(hash));
			memcpy(name + sizeof(hash), &depth, sizeof(depth));
			v = find(image, FILTER_PATH, name, sizeof(name));
		}
		if (v != NULL) {
			act = *at == '\0' ? v->act : v->act_below;
			ids = *at == '\0' ? v->ids : v->ids_below;
		}
	}
	j->act |= act;
	j->ids &= ids;
}

static uint32_t
kernel_says(const struct filter_image *image, const struct program *p)
{
	const struct filter_slot *slot = &image->slot;
	struct judged j = { .ids = ~UINT64_C(0) };

	if (slot->dims & 1 << FILTER_DIM_EXE)
		judge_exe(image, p, &j);
	if (slot->dims & 1 << FILTER_DIM_UID)
		judge_uid(image, p, &j);
	if (slot->dims & 1 << FILTER_DIM_CGROUP)
		judge_cgroups(image, p, &j);
	if (slot->dims & 1 << FILTER_DIM_PATH)
		judge_path(image, p, &j);
	if (j.ids & slot->exclude_ids)
		j.act |= FILTER_EXCLUDE;
	if (j.ids & slot->exclude_exe_ids)
		j.act |= FILTER_EXCLUDE_EXE;
	if (j.ids & slot->exclude_user_ids)
		j.act |= FILTER_EXCLUDE_USER;
	if (j.act & filter_trusted(p->uid, p->is_exe_of_root))
		j.act |= FILTER_EXCLUDE;
	if (j.ids & slot->include_ids)
		j.act |= FILTER_INCLUDE;
	if (j.unknown & slot->include_dims)
		j.act |= FILTER_MAYBE;
	return j.act;
}

static bool
kernel_excludes(const struct filter_image *image, const struct program *p)
{
	uint32_t act;

	if (!image->slot.is_on)
		return false;
	act = kernel_says(image, p);
	return (act & FILTER_EXCLUDE) != 0 ||
	    (image->slot.is_include_on && !(act & (FILTER_INCLUDE | FILTER_MAYBE)));
}

static bool
rules_exclude(const struct follow_rules *rules, const struct program *p)
{
	struct candidate s = { .exe = p->exe, .cgroup = p->v2, .cgroup_v1 = p->v1, .has_uid = true, .uid = p->uid,
		.is_exe_of_root = p->is_exe_of_root };

	return follow_excludes(rules, &s, false, NULL, NULL);
}

static struct filter_image *
image_of(const struct follow_rule *exclude, size_t n_exclude, const struct follow_rule *include, size_t n_include)
{
	const struct follow_rules rules = { .exclude = exclude, .n_exclude = n_exclude, .include = include,
		.n_include = n_include };
	struct filter_image *image;

	assert_int_equal(filter_image_new(&rules, &image), 0);
	return image;
}

static void
assert_excludes(const struct condition *when, const char *exe, uint32_t uid, const char *cgroup, bool expected)
{
	const struct follow_rule rule = { .when = when };
	const struct program p = { .exe = exe, .uid = uid, .v2 = cgroup };
	struct filter_image *image = image_of(&rule, 1, NULL, 0);

	assert_int_equal(image->rules, 1);
	if (kernel_excludes(image, &p) != expected)
		fail_msg("%s of uid %u in %s: not %d", exe, uid, cgroup, expected);
	filter_image_free(image);
}

static void
test_no_rules_are_off(void **state)
{
	struct filter_image *image = image_of(NULL, 0, NULL, 0);

	(void)state;
	assert_false(image->slot.is_on);
	assert_int_equal(image->n_entries, 0);
	filter_image_free(image);
}

static void
test_each_kind(void **state)
{
	(void)state;
	n_pool = 0;
	assert_excludes(make(CONDITION_EXE, "sh"), "/bin/sh", 0, "/", true);
	assert_excludes(make(CONDITION_EXE, "sh"), "/bin/sha", 0, "/", false);
	assert_excludes(make(CONDITION_EXE, "sh"), "/sh/x", 0, "/", false);
	assert_excludes(make(CONDITION_PATH, "/bin/"), "/bin/sh", 0, "/", true);
	assert_excludes(make(CONDITION_PATH, "/bin/"), "/bin/deep/er/sh", 0, "/", true);
	assert_excludes(make(CONDITION_PATH, "/bin/"), "/bin", 0, "/", false);
	assert_excludes(make(CONDITION_PATH, "/bin/"), "/binary/sh", 0, "/", false);
	assert_excludes(make(CONDITION_PATH, "/bin"), "/bin/sh", 0, "/", false);
	assert_excludes(make(CONDITION_PATH, "/bin/sh"), "/bin/sh", 0, "/", true);
	assert_excludes(make(CONDITION_PATH, "/bin/sh"), "/bin/sh/x", 0, "/", false);
	assert_excludes(make(CONDITION_PATH, "/"), "/bin/sh", 0, "/", true);
	assert_excludes(make(CONDITION_CGROUP, "/a"), "/x", 0, "/a/b", true);
	assert_excludes(make(CONDITION_CGROUP, "/a"), "/x", 0, "/ab", false);
	assert_excludes(make(CONDITION_CGROUP, "/a/*.scope"), "/x", 0, "/a/run-1.scope/c", true);
	assert_excludes(make(CONDITION_CGROUP, "/a/*.scope"), "/x", 0, "/a/b/run-1.scope", false);
	assert_excludes(uids(1000, 1000), "/x", 1000, "/", true);
	assert_excludes(uids(1000, 1000), "/x", 1001, "/", false);
	assert_excludes(uids(1000, 60000), "/x", 60000, "/", true);
	assert_excludes(uids(1000, 60000), "/x", 60001, "/", false);
	assert_excludes(uids(1000, 60000), "/x", 999, "/", false);
	assert_excludes(uids(0, UINT32_MAX), "/x", UINT32_MAX, "/", true);
}

static void
test_compound(void **state)
{
	struct condition *c;

	(void)state;
	n_pool = 0;
	c = group(CONDITION_ALL, group(CONDITION_ANY, make(CONDITION_EXE, "a"), make(CONDITION_EXE, "b"), NULL),
	    uids(1000, 60000), group(CONDITION_NOT, make(CONDITION_PATH, "/opt/"), NULL), NULL);
	assert_excludes(c, "/bin/a", 2000, "/", true);
	assert_excludes(c, "/bin/b", 1000, "/", true);
	assert_excludes(c, "/bin/c", 1000, "/", false);
	assert_excludes(c, "/bin/a", 0, "/", false);
	assert_excludes(c, "/opt/a", 2000, "/", false);
	/* a user named alone within a range that is cut there */
	c = group(CONDITION_ALL, make(CONDITION_EXE, "a"), group(CONDITION_ANY, uids(1000, 1000), uids(5000, 6000), NULL),
	    NULL);
	assert_excludes(c, "/a", 1000, "/", true);
	assert_excludes(c, "/a", 1001, "/", false);
	assert_excludes(c, "/a", 5500, "/", true);
}

static void
test_trust(void **state)
{
	static const struct {
		enum follow_trust trust;
		uint32_t uid;
		bool is_exe_of_root, is_excluded;
	} cases[] = {
		{ TRUST_ANY, 1000, false, true },
		{ TRUST_EXE, 1000, false, false },
		{ TRUST_EXE, 1000, true, true },
		{ TRUST_EXE, 999, false, true },
		{ TRUST_EXE, 65534, false, false },
		{ TRUST_EXE, 65534, true, true },
		{ TRUST_USER, 1000, true, false },
		{ TRUST_USER, 999, false, true },
		{ TRUST_USER, 0, false, true },
		{ TRUST_USER, 65534, true, false },
	};

	(void)state;
	n_pool = 0;
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t k = i / 2;
		struct condition *name = make(CONDITION_EXE, "sshd");
		/* by a bit of the name, and as a compound condition */
		const struct follow_rule rule = { .trust = cases[k].trust, .when = i % 2 ? name :
		    group(CONDITION_ALL, name, group(CONDITION_NOT, uids(7, 7), NULL), NULL) };
		const struct follow_rules rules = { .exclude = &rule, .n_exclude = 1 };
		const struct program p = { .exe = "/home/u/sshd", .uid = cases[k].uid, .v2 = "/",
			.is_exe_of_root = cases[k].is_exe_of_root };
		struct filter_image *image = image_of(&rule, 1, NULL, 0);

		assert_int_equal(image->rules, 1);
		if (kernel_excludes(image, &p) != cases[k].is_excluded ||
		    rules_exclude(&rules, &p) != cases[k].is_excluded)
			fail_msg("case %zu: kernel %d, rules %d", k, kernel_excludes(image, &p),
			    rules_exclude(&rules, &p));
		filter_image_free(image);
	}
}

/* What the kernel cannot see is not guessed at, in either direction. */
static void
test_outside(void **state)
{
	struct condition *argv = make(CONDITION_ARGV, "x");
	const struct follow_rule rules[] = {
		{ .when = argv },
		{ .when = group(CONDITION_ALL, make(CONDITION_EXE, "a"), make(CONDITION_ARGV, "x"), NULL) },
		{ .when = group(CONDITION_NOT, make(CONDITION_ARGV, "x"), NULL) },
		{ .when = group(CONDITION_ANY, make(CONDITION_EXE, "b"), make(CONDITION_ARGV, "x"), NULL) },
		{ .when = make(CONDITION_EXE, "c") },
	};
	const struct program a = { .exe = "/a" }, b = { .exe = "/b" }, c = { .exe = "/c" };
	struct filter_image *image = image_of(rules, 5, NULL, 0);

	(void)state;
	assert_int_equal(image->rules, 1);
	assert_int_equal(image->rules_outside, 4);
	assert_false(kernel_excludes(image, &a));
	assert_true(kernel_excludes(image, &b));	/* one of two that suffice */
	assert_true(kernel_excludes(image, &c));
	filter_image_free(image);
}

static void
test_include_is_all_or_nothing(void **state)
{
	const struct follow_rule rules[] = {
		{ .when = make(CONDITION_EXE, "a") },
		{ .when = make(CONDITION_ARGV, "x") },
	};
	const struct program a = { .exe = "/a" }, b = { .exe = "/b" };
	struct filter_image *image = image_of(NULL, 0, rules, 2);

	(void)state;
	assert_false(kernel_excludes(image, &a));
	assert_false(kernel_excludes(image, &b));
	filter_image_free(image);
	image = image_of(NULL, 0, rules, 1);
	assert_false(kernel_excludes(image, &a));
	assert_true(kernel_excludes(image, &b));
	filter_image_free(image);
	image = image_of(rules, 1, rules, 1);
	assert_true(kernel_excludes(image, &a));	/* exclude wins */
	filter_image_free(image);
}

/* random rules, random programs */

static const char *const exes[] = { "/bin/a", "/bin/b", "/bin/c", "/usr/bin/a", "/usr/bin/d", "/usr/lib/x/b",
	"/opt/a/b", "/opt/a", "/opt", "/e",
	"/opt/a-name-that-is-longer-than-what-the-kernel-side-reads-of-one-name/b", NULL };
static const char *const paths[] = { "/", "/bin/", "/bin/a", "/usr/", "/usr/bin/", "/usr/bin/d", "/opt/a",
	"/opt/a/", "/usr/lib/x/", "/nowhere/", "/opt", "relative/", "/opt//a",
	"/opt/a-name-that-is-longer-than-what-the-kernel-side-reads-of-one-name/" };
static const char *const names[] = { "a", "b", "c", "d", "e", "none", "/", "opt" };
static const char *const cgroups[] = { "/", "/a", "/a/b", "/a/x.scope", "/c", "/c/d/e", NULL };
static const char *const cgroup_texts[] = { "/a", "/a/", "/a/*", "/c/d", "/*", "/", "/none", "c", "" };
static const uint32_t some_uids[] = { 0, 1, 999, 1000, 1001, 1016, 1017, 5000, 59999, 60000, 60001, UINT32_MAX };

#define ONE_OF(list) (list)[(size_t)rand() % (sizeof(list) / sizeof((list)[0]))]

static struct condition *
random_condition(int depth)
{
	int kind = rand() % (depth > 0 ? 8 : 5);
	struct condition *c;
	const struct condition **at;

	switch (kind) {
	case 0:
		return make(CONDITION_EXE, ONE_OF(names));
	case 1:
		return make(CONDITION_PATH, ONE_OF(paths));
	case 2:
		return make(CONDITION_CGROUP, ONE_OF(cgroup_texts));
	case 3: {
		uint32_t a = ONE_OF(some_uids), b = rand() % 2 ? a : ONE_OF(some_uids);

		return uids(a < b ? a : b, a < b ? b : a);
	}
	case 4:
		return rand() % 4 == 0 ? make(CONDITION_ARGV, "x") : make(CONDITION_EXE, ONE_OF(names));
	case 5:
		return group(CONDITION_NOT, random_condition(depth - 1), NULL);
	default:
		c = make(kind == 6 ? CONDITION_ALL : CONDITION_ANY, NULL);
		at = &c->first;
		for (int n = rand() % 4; n > 0; n--) {
			struct condition *child = random_condition(depth - 1);

			*at = child;
			at = &child->next;
		}
		return c;
	}
}

static void
test_random_rules_leave_out_what_rules_leave_out(void **state)
{
	unsigned long equal = 0, excluded = 0, whole = 0;

	(void)state;
	srand(7);
	for (int round = 0; round < 3000; round++) {
		struct follow_rule exclude[RULES], include[RULES];
		size_t n_exclude = (size_t)rand() % 5, n_include = rand() % 3 == 0 ? 1 + (size_t)rand() % 3 : 0;
		const struct follow_rules rules = { .exclude = exclude, .n_exclude = n_exclude, .include = include,
			.n_include = n_include };
		struct filter_image *image;

		n_pool = 0;
		for (size_t i = 0; i < n_exclude; i++)
			exclude[i] = (struct follow_rule){ .when = random_condition(3),
				.trust = (enum follow_trust)(rand() % 3) };
		for (size_t i = 0; i < n_include; i++)
			include[i] = (struct follow_rule){ .when = random_condition(2) };
		image = image_of(exclude, n_exclude, include, n_include);
		whole += image->rules_outside == 0;
		for (int i = 0; i < 40; i++) {
			struct program p = { .exe = ONE_OF(exes), .v2 = ONE_OF(cgroups), .v1 = ONE_OF(cgroups),
				.uid = ONE_OF(some_uids), .v2_is_unknown = rand() % 8 == 0,
				.is_exe_of_root = rand() % 2 };
			bool by_rules = rules_exclude(&rules, &p), by_kernel = kernel_excludes(image, &p);

			if (by_kernel && !by_rules)
				fail_msg("round %d: %s, uid %u, v2 %s, v1 %s is left out against the rules", round, p.exe,
				    p.uid, p.v2, p.v1);
			/* and all of it, where the kernel has all rules and knows all */
			if (image->rules_outside == 0 && p.exe != NULL && !p.v2_is_unknown &&
			    (p.v2 != NULL || p.v1 != NULL) && by_kernel != by_rules)
				fail_msg("round %d: %s, uid %u, v2 %s, v1 %s is told against the rules", round, p.exe, p.uid,
				    p.v2, p.v1);
			equal += by_kernel == by_rules;
			excluded += by_kernel;
		}
		filter_image_free(image);
	}
	/* the test tests something */
	assert_true(whole > 500);
	assert_true(excluded > 20000);
	assert_true(equal > 60000);
}

static void
test_ten_thousand_rules(void **state)
{
	static struct follow_rule rules[10000];
	static char text[10000][40];
	struct filter_image *image;
	struct timespec begin, end;

	(void)state;
	n_pool = 0;
	for (int i = 0; i < 10000; i++) {
		static const enum condition_kind kinds[] = { CONDITION_EXE, CONDITION_PATH, CONDITION_CGROUP };

		if (i % 4 == 3) {
			rules[i].when = uids((uint32_t)(100 * i), (uint32_t)(100 * i));
			continue;
		}
		snprintf(text[i], sizeof(text[i]), i % 4 == 0 ? "tool-%d" : "/place-%d/%d/", i % 100, i);
		rules[i].when = make(kinds[i % 4], text[i]);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	image = image_of(rules, 10000, NULL, 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	assert_int_equal(image->rules, 10000);
	assert_true(end.tv_sec - begin.tv_sec < 2);
	filter_image_free(image);
}

/* 64 compound conditions fit, and 31 ranges: the rest is reported, and matched in user space. */
static void
test_limits(void **state)
{
	static struct follow_rule rules[200];
	static char text[200][16];
	struct filter_image *image;

	(void)state;
	n_pool = 0;
	for (int i = 0; i < 100; i++) {
		snprintf(text[i], sizeof(text[i]), "tool-%d", i);
		rules[i].when = group(CONDITION_ALL, make(CONDITION_EXE, text[i]), uids(7, 7), NULL);
		rules[100 + i].when = uids((uint32_t)(1000 * i), (uint32_t)(1000 * i + 500));
	}
	image = image_of(rules, 200, NULL, 0);
	assert_int_equal(image->rules, 64 + 31);
	assert_int_equal(image->rules_outside, 200 - 64 - 31);
	for (int i = 0; i < 100; i++) {
		char exe[32];
		struct program p = { .exe = exe, .uid = 7, .v2 = "/" }, q = { .exe = "/x", .uid = (uint32_t)(1000 * i + 250) };

		snprintf(exe, sizeof(exe), "/bin/tool-%d", i);
		assert_int_equal(kernel_says(image, &q) & FILTER_EXCLUDE, i < 31);
		p.uid = 7;
		assert_true(kernel_excludes(image, &p));	/* 7 is in 0..500 */
	}
	filter_image_free(image);
}

static void
count_cgroup(uint64_t id, bool is_v2, const char *path, void *arg)
{
	(void)is_v2;
	assert_true(id != 0);
	assert_int_equal(path[0], '/');
	++*(unsigned *)arg;
}

static void
test_cgroups_of_this_host(void **state)
{
	unsigned n = 0;

	(void)state;
	filter_cgroups_walk("/proc/self/mountinfo", count_cgroup, &n);
	filter_cgroups_walk("/nowhere", count_cgroup, &n);
	if (n == 0)
		skip();		/* a cgroup namespace of our own, or none mounted */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_rules_are_off),
		cmocka_unit_test(test_each_kind),
		cmocka_unit_test(test_compound),
		cmocka_unit_test(test_trust),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_include_is_all_or_nothing),
		cmocka_unit_test(test_random_rules_leave_out_what_rules_leave_out),
		cmocka_unit_test(test_ten_thousand_rules),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_cgroups_of_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
