/*
 * SPDX-License-Identifier: Apache-2.0
 * offer: tests of a kernel's types, and programs that are left out of the load.
 */
#include "attach/offer.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/core_types.h"
#include "attach/kernel_types.h"
#include "attach/probes_state.h"
#include "base/file.h"

/*
 * Suffixes of the copies of a program where tracepoints may be preempted (lifecycle.bpf.c): "on_exec_7" for
 * "on_exec".
 */
static const char *const copies_7[] = { "_7", "_7_again", "_7_once_more" };

/* Of members that all programs read, one that a kernel has nowhere: bpf/kernel.h has the other places. */
static const char *
lacking(const struct kernel_types *types)
{
	static const struct {
		const char *name, *other_struct, *other_name;
	} members[] = {
		{ "start_boottime", "task_struct", "real_start_time" },
		{ "self_exec_id", "task_struct_rh", "self_exec_id" },
		{ "parent_exec_id", "task_struct_rh", "parent_exec_id" },
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const struct kernel_test test = { KERNEL_MEMBER, "task_struct", members[i].name };
		const struct kernel_test other = { KERNEL_MEMBER, members[i].other_struct, members[i].other_name };

		if (!kernel_test_holds(types, &test) && !kernel_test_holds(types, &other))
			return members[i].name;
	}
	return NULL;
}

void
offer_of_types(struct offer *o, struct kernel_types *types)
{
	static const struct kernel_test task_btf = { KERNEL_FUNCTION, "bpf_get_current_task_btf" };
	static const struct kernel_test loop = { KERNEL_FUNCTION, "bpf_loop" };
	static const struct kernel_test syscall = { KERNEL_FUNCTION, "bpf_sys_bpf" };
	static const struct kernel_test iter_num = { KERNEL_FUNCTION, "bpf_iter_num_new" };
	static const struct kernel_test rdonly_cast = { KERNEL_FUNCTION, "bpf_rdonly_cast" };
	static const struct kernel_test preempt_disable = { KERNEL_FUNCTION, "bpf_preempt_disable" };
	static const struct kernel_test preempted = { KERNEL_TYPE, "class_srcu_fast_notrace_t" };

	*o = (struct offer){ .types = types, .core_types = -1, .lacks = lacking(types) };
	for (int i = 0; i < SIGNALS; i++) {
		for (int h = 0; h < SIGNAL_HOOKS; h++) {
			const struct signal_hook *hook = &signals[i].hooks[h];

			o->has[i][h] = hook->name != NULL;
			for (int t = 0; t < SIGNAL_TESTS; t++)
				o->has[i][h] = o->has[i][h] && kernel_test_holds(types, &hook->tests[t]);
		}
	}
	o->has_current_task_btf = kernel_test_holds(types, &task_btf);
	o->has_loop = kernel_test_holds(types, &loop);
	o->has_syscall = kernel_test_holds(types, &syscall);
	o->has_iter_num = kernel_test_holds(types, &iter_num);
	o->has_rdonly_cast = kernel_test_holds(types, &rdonly_cast);
	o->can_be_preempted = kernel_test_holds(types, &preempted);
	o->lacks_functions = !o->has_iter_num || !o->has_rdonly_cast || !kernel_test_holds(types, &preempt_disable);
}

/* Returns whether the kernel calls what is attached to its functions; one that cannot be asked has no such switch. */
static bool
runs_fentry(void)
{
	struct file_text text = { 0 };
	bool is_off = file_read(AT_FDCWD, "/proc/sys/kernel/ftrace_enabled", &text, 16) == 0 && text.text[0] == '0';

	file_text_done(&text);
	return !is_off;
}

int
offer_of_kernel(struct offer *o, char *error, size_t error_size)
{
	struct kernel_types *types;
	const void *object;
	size_t size;
	int r = kernel_types_load(&types);

	if (r < 0) {
		snprintf(error, error_size, "this kernel has no type information (/sys/kernel/btf/vmlinux: "
		    "%s); sluice needs 5.10 or newer with CONFIG_DEBUG_INFO_BTF=y", strerror(-r));
		return r;
	}
	offer_of_types(o, types);
	if (o->lacks != NULL) {
		snprintf(error, error_size, "this kernel has no task_struct.%s, which all probes read: it is older than 5.10, "
		    "which sluice needs, or made of an older one; use a newer kernel", o->lacks);
		offer_done(o);
		return -ENOTSUP;
	}
	o->runs_fentry = runs_fentry();
	object = sluice_bpf__elf_bytes(&size);
	o->core_types = core_types_open(types, object, size);
	return 0;
}

void
offer_done(struct offer *o)
{
	kernel_types_free(o->types);
	if (o->core_types >= 0)
		close(o->core_types);
}

bool
offer_choose(const struct offer *o, bool with_fentry, const struct signal_hook *hooks[SIGNALS])
{
	bool has_fentry = false;

	for (int i = 0; i < SIGNALS; i++) {
		hooks[i] = NULL;
		for (int h = SIGNAL_HOOKS - 1; h >= 0; h--) {
			if (o->has[i][h] && (with_fentry || !signals[i].hooks[h].is_fentry))
				hooks[i] = &signals[i].hooks[h];
		}
		has_fentry |= hooks[i] != NULL && hooks[i]->is_fentry;
	}
	return has_fentry;
}

/* Returns true if the kernel has the function that the program is attached to. */
static bool
has_target(const struct kernel_types *types, const struct bpf_program *prog)
{
	const char *slash = strchr(bpf_program__section_name(prog), '/');
	struct kernel_test function = { KERNEL_FUNCTION, slash != NULL ? slash + 1 : "" };

	return kernel_test_holds(types, &function);
}

/* Of a program and its copies loads those that this kernel needs. */
static void
program_switch(const struct offer *o, struct bpf_object *obj, const char *name, const struct signal_hook *hook, bool on)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(obj, name), *copy;
	bool has_copies = false;
	char copy_name[64];

	for (size_t i = 0; i < sizeof(copies_7) / sizeof(copies_7[0]); i++) {
		snprintf(copy_name, sizeof(copy_name), "%s%s", name, copies_7[i]);
		copy = bpf_object__find_program_by_name(obj, copy_name);
		if (copy == NULL)
			continue;
		has_copies = true;
		bpf_program__set_autoload(copy, on && o->can_be_preempted);
	}
	if (prog != NULL)
		bpf_program__set_autoload(prog, on && !(has_copies && o->can_be_preempted) &&
		    (!hook->is_fentry || has_target(o->types, prog)));
}

/* Loads the programs of the hooks that serve, and no other programs of the table. */
static void
signals_switch(const struct offer *o, const struct signal_hook *const hooks[SIGNALS], struct bpf_object *obj)
{
	for (int i = 0; i < SIGNALS; i++) {
		for (int h = 0; h < SIGNAL_HOOKS; h++) {
			const struct signal_hook *hook = &signals[i].hooks[h];

			for (const char *const *name = hook->programs; name != NULL && *name != NULL; name++)
				program_switch(o, obj, *name, hook, hooks[i] == hook);
		}
	}
}

void
offer_switch(const struct offer *o, const struct signal_hook *const hooks[SIGNALS], struct sluice_bpf *skel)
{
	signals_switch(o, hooks, skel->obj);
	bpf_program__set_autoload(skel->progs.on_exec_until_5_16, !o->has_loop);
	if (!o->has_loop)
		bpf_program__set_autoload(skel->progs.on_exec, false);
	bpf_program__set_autoload(skel->progs.on_signal, o->has_current_task_btf);
	bpf_program__set_autoload(skel->progs.on_stale, o->has_syscall);
	bpf_program__set_autoload(skel->progs.on_stale_until_5_13, !o->has_syscall);
	bpf_program__set_autoattach(skel->progs.on_stale_until_5_13, false);
	bpf_program__set_autoattach(skel->progs.calibrate_clock, false);
	bpf_program__set_autoload(skel->progs.calibrate_cpus, o->has_iter_num);
	bpf_program__set_autoattach(skel->progs.calibrate_cpus, false);
	bpf_program__set_autoattach(skel->progs.calibrate_pid, false);
}
