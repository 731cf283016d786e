/*
 * SPDX-License-Identifier: Apache-2.0
 * wait_places: the table of functions, and the most specific class of a stack.
 */
#include "collect/wait_places.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct row {
	enum wait_class class;
	const char *name;		/* perhaps with a * at its end */
	size_t size;			/* with the NUL */
};

#define WAIT_PLACE(class, name) { WAIT_##class, name, sizeof(name) },
static const struct row rows[] = {
#include "collect/wait_places.def"
};

/* Returns how many bytes of a row's name fit this one; 0: it is another. */
static size_t
fit(const struct row *r, const char *name, size_t len)
{
	size_t want = r->size - 1;
	bool is_prefix = r->name[want - 1] == '*';

	want -= is_prefix;
	if (len < want || (!is_prefix && len != want) || memcmp(r->name, name, want) != 0)
		return 0;
	return is_prefix ? want : want + 1;	/* the name itself beats a beginning of the same length */
}

enum wait_class
wait_places_of_name(const char *name, size_t len)
{
	enum wait_class class = WAIT_OTHER;
	const char *suffix = memchr(name, '.', len);
	size_t longest = 0;

	if (suffix != NULL)		/* .isra.0, .part.0, .cold, .llvm.123 */
		len = (size_t)(suffix - name);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t fits = len > 0 && rows[i].name[0] == name[0] ? fit(&rows[i], name, len) : 0;

		if (fits > longest) {
			longest = fits;
			class = rows[i].class;
		}
	}
	return class;
}

/* Reads a number of up to 16 hexadecimal digits that ends at a space. Returns its length, or 0. */
static size_t
hash_read(const char *line, size_t len, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	size_t n;

	*ret = 0;
	for (n = 0; n < len && line[n] != ' '; n++) {
		digit = n < 16 && line[n] != '\0' ? strchr(digits, line[n]) : NULL;
		if (digit == NULL)
			return 0;
		*ret = *ret << 4 | (uint64_t)(digit - digits);
	}
	return n;
}

int
wait_places_of_line(const char *line, size_t len, uint64_t *ret_hash, enum wait_class *ret_class)
{
	enum wait_class class = WAIT_OTHER;
	uint64_t hash;
	size_t at;

	if (len > 0 && line[len - 1] == '\n')
		len--;
	at = hash_read(line, len, &hash);
	if (at == 0)
		return -EBADMSG;
	while (at < len) {
		const char *name = line + ++at;
		const char *space = memchr(name, ' ', len - at);
		size_t word = space != NULL ? (size_t)(space - name) : len - at;
		const char *plus = memchr(name, '+', word);
		enum wait_class of = WAIT_OTHER;

		if (plus != NULL)	/* neither the name of a module nor an address that has none */
			of = wait_places_of_name(name, (size_t)(plus - name));
		if (of < class)
			class = of;
		at += word;
	}
	*ret_hash = hash;
	*ret_class = class;
	return 0;
}
