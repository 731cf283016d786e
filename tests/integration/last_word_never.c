/*
 * SPDX-License-Identifier: Apache-2.0
 * last_word_never: linked into an agent so that the program at sched_process_free never runs, as on a
 * kernel that runs it too late: each end is synthesized from the counters saved at exit.
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
