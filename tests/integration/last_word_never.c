/*
 * SPDX-License-Identifier: Apache-2.0
 * last_word_never: linked into an agent whose kernel never runs the program at sched_process_free,
 * as one that is too late with it: each end is made up from what was kept at exit.
 */
#include <bpf/libbpf.h>

int __real_bpf_object__load_skeleton(struct bpf_object_skeleton *s);
int __wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *s);

int
__wrap_bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	struct bpf_program *program = bpf_object__find_program_by_name(*s->obj, "on_free");

	if (program == NULL || bpf_program__set_autoload(program, false) < 0)
		return -1;
	return __real_bpf_object__load_skeleton(s);
}
