/*
 * SPDX-License-Identifier: Apache-2.0
 * errors: the list of all faults of a configuration.
 */
#include "config/errors.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/spell.h"

enum {
	ERRORS_MAX = 100,	/* more are not fixed at once */
	CUT = SHOWN_SIZE - 10,	/* room for "...", and as much again */
};

void
config_errors_done(struct config_errors *e)
{
	for (size_t i = 0; i < e->n; i++) {
		free(e->list[i].file);
		free(e->list[i].message);
	}
	free(e->list);
	*e = (struct config_errors){ 0 };
}

/* Formats a message, of which names of the file may be parts; the caller owns it. NULL: no memory. */
static char *
spelt_message(const char *format, va_list args)
{
	char *raw, *message = NULL;
	size_t size;

	if (vasprintf(&raw, format, args) < 0)
		return NULL;
	size = SPELL_TEXT_MAX(strlen(raw));
	message = malloc(size);
	if (message != NULL)
		spell_text(raw, message, size);
	free(raw);
	return message;
}

void
config_error_add(struct config_errors *e, const char *file, unsigned line, unsigned column,
    const char *format, ...)
{
	struct config_error new = { .line = line, .column = column }, *more;
	va_list args;

	if (e->n >= ERRORS_MAX) {
		e->not_shown++;
		return;
	}
	va_start(args, format);
	new.message = spelt_message(format, args);
	va_end(args);
	new.file = strdup(file);
	more = realloc(e->list, (e->n + 1) * sizeof(*more));
	if (more != NULL)
		e->list = more;
	if (new.message == NULL || new.file == NULL || more == NULL) {
		free(new.message);
		free(new.file);
		e->not_shown++;
		return;
	}
	e->list[e->n++] = new;
}

static size_t
rank(const struct config_strings *files, const char *file)
{
	size_t i = 0;

	while (i < files->n && strcmp(files->list[i], file) != 0)
		i++;
	return i;
}

static bool
is_before(const struct config_strings *files, const struct config_error *a,
    const struct config_error *b)
{
	size_t of_a = rank(files, a->file), of_b = rank(files, b->file);

	if (of_a != of_b)
		return of_a < of_b;
	return a->line != b->line ? a->line < b->line : a->column < b->column;
}

void
config_errors_sort(struct config_errors *e, const struct config_strings *files)
{
	/* Insertion sort: there are few, they are nearly sorted, and those of one location keep their order. */
	for (size_t i = 1; i < e->n; i++) {
		struct config_error moving = e->list[i];
		size_t at = i;

		for (; at > 0 && is_before(files, &moving, &e->list[at - 1]); at--)
			e->list[at] = e->list[at - 1];
		e->list[at] = moving;
	}
}

char *
config_error_text(const struct config_error *e, char *buf, size_t size)
{
	if (e->line > 0)
		snprintf(buf, size, "%s:%u:%u: %s", e->file, e->line, e->column, e->message);
	else
		snprintf(buf, size, "%s: %s", e->file, e->message);
	return buf;
}

void
config_errors_print(const struct config_errors *e, FILE *f)
{
	for (size_t i = 0; i < e->n; i++) {
		char text[8192];

		spell_line(f, "%s\n", config_error_text(&e->list[i], text, sizeof(text)));
	}
	if (e->not_shown > 0)
		fprintf(f, "%zu more errors are not shown\n", e->not_shown);
}

char *
shown(const char *text, char *buf)
{
	if (!spell_text(text, buf, CUT))
		strcat(buf, "...");
	return buf;
}
