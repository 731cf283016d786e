/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any paths and arguments get a placement whose texts are bounded, of one line and in UTF-8. Lines: paths of v2
 * and v1, cwd, script, exe, argv.
 */
#include "args.h"
#include "base/text.h"
#include "rules/rules.h"
#include "identify/placement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == size)
		abort();
	for (size_t i = 0, width; i < len; i += width) {
		width = text_char(text + i, len - i);
		if (width == 0 || (unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			abort();
	}
}

static void
check_placement(const struct placement *p)
{
	check(p->job, sizeof(p->job));
	check(p->step, sizeof(p->step));
	check(p->task, sizeof(p->task));
	check(p->user, sizeof(p->user));
	check(p->cluster, sizeof(p->cluster));
	check(p->node, sizeof(p->node));
	check(p->container, sizeof(p->container));
	check(p->pod, sizeof(p->pod));
	check(p->name, sizeof(p->name));
	check(p->image, sizeof(p->image));
	if (p->scheduler != NULL && p->scheduler_source == NULL)
		abort();
	if (p->scheduler == NULL && (p->is_batch || p->job[0] != '\0'))
		abort();
	if (p->has_container ? p->container_source == NULL : p->runtime != NULL || p->container[0] != '\0')
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ruleset *rules;
	struct args args;
	struct placement placement, child;
	uint32_t cluster;
	int64_t ms;

	if (rules == NULL)
		rules = rules_shipped();
	/* All text that reaches the rules is UTF-8 (see program_text.c). */
	for (size_t i = 0, width; i < size; i += width) {
		width = data[i] == '\0' ? 1 : text_char((const char *)data + i, size - i);
		if (width == 0)
			return -1;
	}
	args_init(&args, data, size);
	memset(&placement, 'x', sizeof(placement));
	if (placement_of_cgroup(rules, args.n > 0 ? args.v[0] : NULL, args.n > 1 ? args.v[1] : NULL, &placement) !=
	    (placement.scheduler != NULL || placement.has_container || placement.is_outside ||
	    placement.pod[0] != '\0'))
		abort();
	check_placement(&placement);
	if (slurm_sluid_decode(args.n > 0 ? args.v[0] : "", &cluster, &ms) && (cluster > 4095 || ms < 0))
		abort();
	for (int with = 0; with < 2; with++) {
		struct candidate s = {
			.cwd = args.n > 2 ? args.v[2] : NULL,
			.words.script = args.n > 3 ? args.v[3] : NULL,
			.exe = args.n > 4 ? args.v[4] : NULL,
			.comm = args.n > 4 ? args.v[4] : NULL,
			.argv = args.n > 5 ? (const char *const *)args.v + 5 : NULL,
			.argc = args.n > 5 ? args.n - 5 : 0,
		};

		if (with)
			memset(&placement, 0, sizeof(placement));
		placement_of_program(rules, &s, &placement);
		check_placement(&placement);
		memset(&child, 0, sizeof(child));
		placement_of_cgroup(rules, args.n > 1 ? args.v[1] : NULL, NULL, &child);
		placement_inherit(&placement, &child, with);
		check_placement(&child);
		if (child.is_outside && child.has_container && !(with && placement.is_outside && placement.has_group))
			abort();
	}
	args_done(&args);
	return 0;
}
