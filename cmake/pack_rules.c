/*
 * SPDX-License-Identifier: Apache-2.0
 * pack_rules OUT FILE…: a program of the build, which writes the table of shipped rules to the C file OUT.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "config/yaml.h"
#include "config/yaml_pack.h"

static const struct yaml_form form = {
	.nodes_max = 1 << 18,
	.beyond = "make several files of it",
	.name = "exclude",
	.line = "exclude: [{exe: sshd}]",
};

static int
read_file(const char *path, struct bytes *ret)
{
	FILE *f = fopen(path, "re");
	char block[4096];
	size_t n;
	int r = 0;

	if (f == NULL)
		return -errno;
	while (r == 0 && (n = fread(block, 1, sizeof(block), f)) > 0)
		r = bytes_append(ret, block, n);
	if (r == 0 && ferror(f))
		r = -EIO;
	fclose(f);
	return r;
}

/* Writes the file's tree as the array `nodes_<number>`. 0 or a negative errno, with a message printed. */
static int
pack(const char *path, int number, FILE *out)
{
	struct bytes text = { 0 }, packed = { 0 };
	struct config_errors errors = { 0 };
	struct yaml_node *root = NULL;
	int r = read_file(path, &text);

	if (r == 0)
		r = yaml_read(&form, path, (const char *)text.data, text.len, &root, &errors);
	if (r == 0)
		r = yaml_pack(root, &packed);
	if (r == -EINVAL)
		config_errors_print(&errors, stderr);
	else if (r < 0)
		fprintf(stderr, "pack_rules: %s: %s\n", path, strerror(-r));
	if (r == 0)
		fprintf(out, "static const uint8_t nodes_%d[] = {", number);
	for (size_t i = 0; r == 0 && i < packed.len; i++)
		fprintf(out, "%s%u,", i % 24 == 0 ? "\n" : "", packed.data[i]);
	if (r == 0)
		fprintf(out, "\n};\n");
	yaml_node_free(root);
	config_errors_done(&errors);
	bytes_done(&packed);
	bytes_done(&text);
	return r;
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

int
main(int argc, char **argv)
{
	FILE *out = argc > 1 ? fopen(argv[1], "we") : NULL;

	if (out == NULL) {
		fputs("usage: pack_rules OUT FILE…\n", stderr);
		return 2;
	}
	fputs("/* Generated from config/rules.d. */\n#include \"rules/rules.h\"\n\n", out);
	for (int i = 2; i < argc; i++) {
		if (pack(argv[i], i, out) < 0) {
			fclose(out);
			remove(argv[1]);
			return 1;
		}
	}
	fputs("\nconst struct rules_shipped_file rules_shipped_files[] = {\n", out);
	for (int i = 2; i < argc; i++)
		fprintf(out, "\t{ \"%s\", nodes_%d },\n", base_name(argv[i]), i);
	fputs("\t{ 0 },\n};\n", out);
	return fclose(out) == 0 ? 0 : 1;
}
