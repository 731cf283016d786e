/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as minisign's key, signature and trusted comment, and as SHA256SUMS: the first byte says which. What is
 * accepted is what an encoder writes, and a signature is accepted only of the data that it was made for.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "update/manifest.h"
#include "update/minisign.h"
#include "update/program.h"

#define KEY "untrusted comment: minisign public key 5CC683D2DA9F7FB2\nRWSyf5/a0oPGXHGtSNbrf5z/J75n2AR5m3KImXtKo0O6kM175taIzunz\n"
#define SUMS                                                                                           \
	"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  sluice-1.2.3-linux-x86_64\n"  \
	"a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa  sluice-1.2.3-linux-aarch64\n"
#define NAME "sluice-1.2.3-linux-x86_64"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int holds)
{
	if (!holds)
		abort();
}

static void
try_key(const char *text, size_t len)
{
	struct minisign_key key;
	char why[256] = "";

	memset(&key, 'x', sizeof(key));
	if (minisign_key_parse(text, len, &key, why, sizeof(why)) == 0)
		must(len >= strlen("untrusted comment:\n") + 56 && strncmp(text, "untrusted comment:", 18) == 0);
	else
		must(key.id[0] == 'x' && key.key[31] == 'x' && why[0] != '\0');
}

/* A signature that is accepted of the text that was signed has its comment. */
static void
try_signature(const char *text, size_t len)
{
	struct minisign_signature s;
	struct minisign_key key;
	char why[256] = "";

	memset(&s, 'x', sizeof(s));
	if (minisign_signature_parse(text, len, &s, why, sizeof(why)) < 0) {
		must(s.id[0] == 'x' && s.comment[0] == 'x' && why[0] != '\0');
		return;
	}
	must(strlen(s.comment) <= MINISIGN_COMMENT_MAX);
	must(minisign_key_parse(KEY, strlen(KEY), &key, why, sizeof(why)) == 0);
	if (minisign_verify(&key, &s, SUMS, strlen(SUMS), why, sizeof(why)) == 0)
		must(strcmp(s.comment, "sluice 1.2.3") == 0);
	must(minisign_verify(&key, &s, SUMS, strlen(SUMS) - 1, why, sizeof(why)) < 0);
}

static void
try_version(const char *text, size_t len)
{
	char *copy = malloc(len + 1), again[64], why[256];
	struct version v;

	memcpy(copy, text, len);
	copy[len] = '\0';
	if (manifest_version(copy, &v, why, sizeof(why)) == 0) {
		snprintf(again, sizeof(again), "sluice %u.%u.%u", v.numbers[0], v.numbers[1], v.numbers[2]);
		must(strcmp(again, copy) == 0 && strcmp(v.text, again + 7) == 0);
		must(version_compare(&v, &v) == 0);
	}
	free(copy);
}

static void
try_list(const char *text, size_t len)
{
	uint8_t sha256[MANIFEST_SHA256_SIZE];
	char why[256] = "", line[MANIFEST_SHA256_SIZE * 2 + 1];

	if (manifest_find(text, len, NAME, sha256, why, sizeof(why)) < 0) {
		must(why[0] != '\0');
		return;
	}
	for (size_t i = 0; i < sizeof(sha256); i++)
		snprintf(line + 2 * i, 3, "%02x", sha256[i]);
	must(memmem(text, len, line, 64) != NULL && memmem(text, len, NAME, strlen(NAME)) != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	text = malloc(size - 1 > 0 ? size - 1 : 1);	/* so that ASan detects reads past its end */
	memcpy(text, data + 1, size - 1);
	switch (data[0]) {
	case 'k':
		try_key(text, size - 1);
		break;
	case 's':
		try_signature(text, size - 1);
		break;
	case 'v':
		try_version(text, size - 1);
		break;
	case 'l':
		try_list(text, size - 1);
		break;
	default:
		program_is_ours(text, size - 1);
	}
	free(text);
	return 0;
}
