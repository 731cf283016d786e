/*
 * SPDX-License-Identifier: Apache-2.0
 * dump: the effective configuration as YAML that loads again to the same.
 */
#include <string.h>

#include "base/text.h"
#include "config/keys.h"
#include "config/units.h"

/* The code point of the UTF-8 character of n bytes at p. */
static uint32_t
code_point(const unsigned char *p, size_t n)
{
	uint32_t c = n == 1 ? p[0] : p[0] & (0xff >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* Writes text in double quotes, and escapes what YAML takes for a line's end or does not accept. */
static void
put_text(FILE *f, const char *text)
{
	size_t len = strlen(text), n;

	putc('"', f);
	for (size_t i = 0; i < len; i += n) {
		uint32_t c;

		n = text_char(text + i, len - i);
		if (n == 0)
			n = 1;	/* unreachable: YAML is UTF-8 */
		c = code_point((const unsigned char *)text + i, n);
		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", (int)c);
		else if (c < ' ' || (c >= 0x7f && c <= 0xa0))
			fprintf(f, "\\x%02x", c);
		else if (c == 0x2028 || c == 0x2029 || c == 0xfeff || c == 0xfffe || c == 0xffff)
			fprintf(f, "\\u%04x", c);
		else
			fwrite(text + i, 1, n, f);
	}
	putc('"', f);
}

static void
put_list(FILE *f, const struct config_strings *s)
{
	putc('[', f);
	for (size_t i = 0; i < s->n; i++) {
		fputs(i > 0 ? ", " : "", f);
		put_text(f, s->list[i]);
	}
	putc(']', f);
}

static void
put_secret(FILE *f, const struct config_secret *s)
{
	fputs(s->file != NULL ? "{file: " : "{command: ", f);
	if (s->file != NULL)
		put_text(f, s->file);
	else
		put_list(f, &s->command);
	putc('}', f);
}

static void
put_value(FILE *f, const struct key *k, const void *field)
{
	const struct config_pairs *pairs = field;
	char buf[UNITS_TEXT_SIZE];

	switch (k->type) {
	case KEY_BOOL:
		fputs(*(const bool *)field ? "true" : "false", f);
		break;
	case KEY_NUMBER:
	case KEY_DURATION:
	case KEY_SIZE:
		fputs(key_amount(k, *(const uint64_t *)field, buf), f);
		break;
	case KEY_CHOICE:
		fputs(k->choices[*(const unsigned *)field], f);
		break;
	case KEY_TEXT:
		put_text(f, *(char *const *)field);
		break;
	case KEY_LIST:
		put_list(f, field);
		break;
	case KEY_SECRET:
		put_secret(f, field);
		break;
	case KEY_MAP:
	case KEY_SECRETS:
		putc('{', f);
		for (size_t i = 0; i < pairs->n; i++) {
			fputs(i > 0 ? ", " : "", f);
			put_text(f, pairs->list[i].name);
			fputs(": ", f);
			if (pairs->list[i].value != NULL)
				put_text(f, pairs->list[i].value);
			else
				put_secret(f, &pairs->list[i].secret);
		}
		putc('}', f);
		break;
	case KEY_SECTION:
		break;
	}
}

/* Whether an optional key has a value. */
static bool
is_set(const struct key *k, const void *field)
{
	switch (k->type) {
	case KEY_TEXT:
		return *(char *const *)field != NULL;
	case KEY_SECRET:
		return config_secret_is_set(field);
	default:
		return !k->zero_is_none || *(const uint64_t *)field != 0;
	}
}

static bool
is_below(const struct key *k, const char *section)
{
	size_t len = strlen(section);

	return strncmp(k->name, section, len) == 0 && k->name[len] == '.';
}

void
config_dump(const struct config *c, FILE *f)
{
	for (size_t i = 0; i < config_keys_n; i++) {
		const struct key *k = &config_keys[i];
		const struct config_location *location = &c->locations[i];
		int indent = strchr(k->name, '.') == NULL ? 0 : strchr(k->name, '.') == key_leaf(k) - 1 ? 2 : 4;

		if ((!c->kafka.is_set && (strcmp(k->name, "kafka") == 0 || is_below(k, "kafka"))) ||
		    (!c->registry.is_set && (strcmp(k->name, "registry") == 0 || is_below(k, "registry"))) ||
		    (!c->update.is_set && (strcmp(k->name, "update") == 0 || is_below(k, "update"))))
			continue;
		if (k->type == KEY_SECTION) {
			fprintf(f, "%*s%s:\n", indent, "", key_leaf(k));
			continue;
		}
		if (!is_set(k, key_field_const(k, c)))
			continue;
		fprintf(f, "%*s%s: ", indent, "", key_leaf(k));
		put_value(f, k, key_field_const(k, c));
		if (location->line > 0)
			fprintf(f, "  # %s:%u\n", c->files.list[location->file], location->line);
		else
			fputs("  # default\n", f);
	}
}
