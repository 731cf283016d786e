/*
 * SPDX-License-Identifier: Apache-2.0
 * program: whether bytes are the program that they should be.
 */
#include "update/program.h"

#include <elf.h>
#include <string.h>

#include <openssl/evp.h>

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#define MACHINE EM_AARCH64
#else
#error "no release has a program for this architecture: add its name"
#endif

const char *
program_architecture(void)
{
	return ARCHITECTURE;
}

bool
program_has_sha256(const void *data, size_t len, const uint8_t sha256[MANIFEST_SHA256_SIZE])
{
	uint8_t hash[EVP_MAX_MD_SIZE];
	unsigned hash_len = 0;

	return EVP_Digest(data, len, hash, &hash_len, EVP_sha256(), NULL) == 1 && hash_len == MANIFEST_SHA256_SIZE &&
	    memcmp(hash, sha256, MANIFEST_SHA256_SIZE) == 0;
}

bool
program_is_ours(const void *data, size_t len)
{
	Elf64_Ehdr head;

	if (len < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	return memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_ident[EI_CLASS] == ELFCLASS64 &&
	    head.e_ident[EI_DATA] == ELFDATA2LSB && head.e_machine == MACHINE &&
	    (head.e_type == ET_EXEC || head.e_type == ET_DYN);
}
