/*
 * SPDX-License-Identifier: Apache-2.0
 * kernel_types: where each type begins, and chains of the types whose names have one hash.
 */
#include "attach/kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define VMLINUX "/sys/kernel/btf/vmlinux"
#define VMLINUX_MAX ((size_t)256 << 20)

enum {
	CHAINS = 1 << 15,
	HASHED = 8,		/* characters of a name, at most */
};

struct kernel_types {
	const uint8_t *types;
	const char *names;
	uint32_t names_len;
	uint32_t count;
	uint32_t *offsets;		/* owned: by id, where in types a type begins */
	uint32_t *next;			/* owned: by id, the next of its chain; 0: none */
	uint32_t chains[CHAINS];	/* by hash of the name, the first of each chain, ascending */
	void *map;			/* owned: the file; NULL: text has its bytes, or they are the caller's */
	size_t map_len;
	struct file_text text;		/* owned */
};

/* Returns true if a flavour begins here: "___old" of "task_struct___old". */
static bool
is_flavour(const char *name, size_t at)
{
	return name[at] == '_' && at > 0 && name[at - 1] != '_' && name[at + 1] == '_' && name[at + 2] == '_' &&
	    name[at + 3] != '_' && name[at + 3] != '\0';
}

/* Returns the length of a name without its flavour. */
static size_t
plain_length(const char *name)
{
	size_t len = strlen(name);

	for (size_t at = len; at > 0; at--) {
		if (is_flavour(name, at))
			return at;
	}
	return len;
}

/* Returns the chain of a name. It depends on the first characters alone, and on nothing from a flavour on. */
static uint32_t
name_chain(const char *name)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < HASHED && name[i] != '\0' && !is_flavour(name, i); i++)
		hash = (hash << 5 | hash >> 27) ^ (unsigned char)name[i];
	return (hash ^ hash >> 15) % CHAINS;
}

size_t
kernel_types_size(const struct btf_type *t)
{
	size_t n = btf_vlen(t);

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(*t) + sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(*t) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*t) + n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return sizeof(*t) + n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return sizeof(*t) + n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*t) + n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return sizeof(*t) + n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return sizeof(*t);
	}
	return 0;
}

/* Finds out where each type begins. */
static int
types_index(struct kernel_types *k, size_t types_len)
{
	size_t size;

	k->offsets = malloc((types_len / sizeof(struct btf_type) + 1) * sizeof(*k->offsets));
	if (k->offsets == NULL)
		return -ENOMEM;
	k->offsets[0] = 0;
	for (size_t at = 0; at < types_len; at += size) {
		const struct btf_type *t = (const void *)(k->types + at);

		size = types_len - at >= sizeof(*t) ? kernel_types_size(t) : 0;
		if (size == 0 || size > types_len - at)
			return -EINVAL;
		k->offsets[++k->count] = (uint32_t)at;
	}
	return 0;
}

static int
names_index(struct kernel_types *k)
{
	k->next = malloc((k->count + 1) * sizeof(*k->next));
	if (k->next == NULL)
		return -ENOMEM;
	for (uint32_t id = k->count; id > 0; id--) {
		const char *name = kernel_types_name(k, kernel_types_at(k, id)->name_off);
		uint32_t chain;

		if (name[0] == '\0')
			continue;
		chain = name_chain(name);
		k->next[id] = k->chains[chain];
		k->chains[chain] = id;
	}
	return 0;
}

/* Reads the header of BTF, and indexes its types. */
static int
btf_index(struct kernel_types *k, const void *btf, size_t size)
{
	const struct btf_header *h = btf;
	size_t rest;
	int r;

	if (size < KERNEL_TYPES_HEADER || h->magic != BTF_MAGIC || h->hdr_len < KERNEL_TYPES_HEADER ||
	    h->hdr_len > size)
		return -EINVAL;
	rest = size - h->hdr_len;
	if (h->type_off > rest || h->type_len > rest - h->type_off || h->str_off > rest ||
	    h->str_len > rest - h->str_off || h->str_len == 0 || h->type_off % 4 != 0 || h->hdr_len % 4 != 0)
		return -EINVAL;
	k->types = (const uint8_t *)btf + h->hdr_len + h->type_off;
	k->names = (const char *)btf + h->hdr_len + h->str_off;
	k->names_len = h->str_len;
	if (k->names[k->names_len - 1] != '\0')
		return -EINVAL;
	r = types_index(k, h->type_len);
	return r < 0 ? r : names_index(k);
}

int
kernel_types_read(const void *btf, size_t size, struct kernel_types **ret)
{
	struct kernel_types *k = calloc(1, sizeof(*k));
	int r;

	if (k == NULL)
		return -ENOMEM;
	r = btf_index(k, btf, size);
	if (r < 0) {
		kernel_types_free(k);
		return r;
	}
	*ret = k;
	return 0;
}

/* Maps the file, which kernels can from 6.16, or reads it, page by page. */
static int
file_take(struct kernel_types *k, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	k->map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (k->map != MAP_FAILED) {
		k->map_len = (size_t)st.st_size;
		return 0;
	}
	k->map = NULL;
	return file_read_fd(fd, &k->text, VMLINUX_MAX);
}

int
kernel_types_load(struct kernel_types **ret)
{
	struct kernel_types *k = calloc(1, sizeof(*k));
	int fd, r;

	if (k == NULL)
		return -ENOMEM;
	fd = open(VMLINUX, O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : file_take(k, fd);
	if (fd >= 0)
		close(fd);
	if (r == 0)
		r = k->map != NULL ? btf_index(k, k->map, k->map_len) : btf_index(k, k->text.text, k->text.len);
	if (r < 0) {
		kernel_types_free(k);
		return r;
	}
	*ret = k;
	return 0;
}

void
kernel_types_free(struct kernel_types *k)
{
	if (k == NULL)
		return;
	if (k->map != NULL)
		munmap(k->map, k->map_len);
	file_text_done(&k->text);
	free(k->offsets);
	free(k->next);
	free(k);
}

uint32_t
kernel_types_count(const struct kernel_types *k)
{
	return k->count;
}

const struct btf_type *
kernel_types_at(const struct kernel_types *k, uint32_t id)
{
	return (const void *)(k->types + k->offsets[id]);
}

const char *
kernel_types_name(const struct kernel_types *k, uint32_t offset)
{
	return offset < k->names_len ? k->names + offset : "";
}

uint32_t
kernel_types_find(const struct kernel_types *k, const char *name, unsigned kind)
{
	for (uint32_t id = k->chains[name_chain(name)]; id != 0; id = k->next[id]) {
		const struct btf_type *t = kernel_types_at(k, id);

		if (btf_kind(t) == kind && strcmp(kernel_types_name(k, t->name_off), name) == 0)
			return id;
	}
	return 0;
}

uint32_t
kernel_types_next(const struct kernel_types *k, const char *name, uint32_t after)
{
	size_t len = plain_length(name);

	for (uint32_t id = after != 0 ? k->next[after] : k->chains[name_chain(name)]; id != 0; id = k->next[id]) {
		const char *there = kernel_types_name(k, kernel_types_at(k, id)->name_off);

		if (strncmp(there, name, len) == 0 && plain_length(there) == len)
			return id;
	}
	return 0;
}
