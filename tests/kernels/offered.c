/*
 * SPDX-License-Identifier: Apache-2.0
 * offered BTF [--no-fentry]: what the agent would do on the kernel whose types these are, found by the code that does
 * it there. Prints, separated by tabs, each signal (its name, hook and state; fields; difference or reason), each BPF
 * program that would be loaded (its name and section) and each map (its name and type). A state is exact, fallback,
 * missing, or setting: what that kernel is set to decides. --no-fentry: as where the kernel refuses fentry.
 * "lacks" is before them where the agent says at once that it cannot start. offered BTF --types: the types that libbpf is
 * given of these, as BTF. tests/kernels/btf.py reads both.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "attach/core_roots.h"
#include "attach/core_types.h"
#include "attach/kernel_types.h"
#include "attach/offer.h"
#include "attach/probes_state.h"
#include "base/bytes.h"
#include "base/file.h"

#define TYPES_MAX ((size_t)256 << 20)

/* Returns true if it is a setting of the running kernel, and not its types, that decides whether a hook serves. */
static bool
is_setting(const struct signal *s)
{
	return s->hooks[0].tests[0].kind == KERNEL_DELAY_ACCOUNTING;
}

static void
print_signals(const struct signal_hook *const hooks[SIGNALS])
{
	for (int i = 0; i < SIGNALS; i++) {
		const struct signal_hook *h = hooks[i];
		const char *state = h == NULL ? "missing" : h->state == SIGNAL_FALLBACK ? "fallback" : "exact";
		const char *detail = h == NULL ? signals[i].missing : h->detail;

		if (is_setting(&signals[i])) {
			state = "setting";
			detail = signals[i].missing;
		}
		printf("signal\t%s\t%s\t%s\t%s\t%s\n", signals[i].name, h != NULL ? h->name : "", state, signals[i].fields,
		    detail != NULL ? detail : "");
	}
}

static int
print_offer(struct offer *o, bool with_fentry)
{
	const struct signal_hook *hooks[SIGNALS];
	struct sluice_bpf *skel = sluice_bpf__open();
	struct bpf_program *program;
	struct bpf_map *map = NULL;

	if (skel == NULL) {
		fprintf(stderr, "offered: cannot open the BPF object: %s\n", strerror(errno));
		return 1;
	}
	if (o->lacks != NULL)
		printf("lacks\t%s\n", o->lacks);
	offer_choose(o, with_fentry, hooks);
	offer_switch(o, hooks, skel);
	print_signals(hooks);
	bpf_object__for_each_program(program, skel->obj) {
		if (bpf_program__autoload(program))
			printf("program\t%s\t%s\n", bpf_program__name(program), bpf_program__section_name(program));
	}
	while ((map = bpf_object__next_map(skel->obj, map)) != NULL)
		printf("map\t%s\t%s\n", bpf_map__name(map), libbpf_bpf_map_type_str(bpf_map__type(map)));
	sluice_bpf__destroy(skel);
	return 0;
}

static int
print_types(const struct offer *o)
{
	struct core_roots roots = { 0 };
	struct bytes btf = { 0 };
	const void *object;
	size_t size;
	int r;

	object = sluice_bpf__elf_bytes(&size);
	r = core_roots_read(object, size, &roots);
	if (r == 0)
		r = core_types_of(o->types, roots.roots, roots.n, &btf);
	if (r == 0 && fwrite(btf.data, 1, btf.len, stdout) != btf.len)
		r = -EIO;
	if (r < 0)
		fprintf(stderr, "offered: cannot copy the types: %s\n", strerror(-r));
	core_roots_done(&roots);
	bytes_done(&btf);
	return r < 0;
}

int
main(int argc, char **argv)
{
	bool with_fentry = argc != 3 || strcmp(argv[2], "--no-fentry") != 0;
	bool with_types = argc == 3 && strcmp(argv[2], "--types") == 0;
	struct file_text text = { 0 };
	struct kernel_types *types;
	struct offer offer;
	int r;

	if (argc < 2 || argc > 3 || (argc == 3 && with_fentry && !with_types)) {
		fputs("usage: offered BTF [--no-fentry | --types]\n", stderr);
		return 2;
	}
	r = file_read(AT_FDCWD, argv[1], &text, TYPES_MAX);
	if (r == 0)
		r = kernel_types_read(text.text, text.len, &types);
	if (r < 0) {
		fprintf(stderr, "offered: %s: %s: not the types (BTF) of a kernel\n", argv[1], strerror(-r));
		file_text_done(&text);
		return 1;
	}
	offer_of_types(&offer, types);
	r = with_types ? print_types(&offer) : print_offer(&offer, with_fentry);
	offer_done(&offer);
	file_text_done(&text);
	return r;
}
