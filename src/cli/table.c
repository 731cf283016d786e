/*
 * SPDX-License-Identifier: Apache-2.0
 * table: the summary that `sluice run` ends with.
 */
#include "cli/table.h"

#include <ctype.h>
#include <errno.h>
#include <libsmartcols/libsmartcols.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/format.h"
#include "base/spell.h"
#include "base/text.h"

#define NAME_SIZE	4096	/* bytes of a task or tool as it is shown; longer ones are cut */
#define NAME_MIN_WIDTH	8	/* columns of the terminal; a narrower name is useless */
#define CELL_SIZE	(3 * FORMAT_SIZE)
#define UNKNOWN		"-"

enum column {
	COLUMN_TASK,
	COLUMN_TOOL,
	COLUMN_N,
	COLUMN_WALL,
	COLUMN_CPU,
	COLUMN_PEAK,
	COLUMN_READ,
	COLUMN_WRITE,
	COLUMN_NET,
	COLUMN_DEMAND,
	COLUMN_DENIED,
	COLUMN_COUNT,
};

static const struct {
	const char *title;
	int flags;
} columns[COLUMN_COUNT] = {
	[COLUMN_TASK] = { "task", 0 },
	[COLUMN_TOOL] = { "tool", 0 },
	[COLUMN_N] = { "n", SCOLS_FL_RIGHT },
	[COLUMN_WALL] = { "wall", SCOLS_FL_RIGHT },
	[COLUMN_CPU] = { "cpu", SCOLS_FL_RIGHT },
	[COLUMN_PEAK] = { "peak mem", SCOLS_FL_RIGHT },
	[COLUMN_READ] = { "read", SCOLS_FL_RIGHT },
	[COLUMN_WRITE] = { "write", SCOLS_FL_RIGHT },
	[COLUMN_NET] = { "net", SCOLS_FL_RIGHT },
	[COLUMN_DEMAND] = { "demand", 0 },
	[COLUMN_DENIED] = { "denied", 0 },
};

/* Separates columns; the narrow one is used if the wide one makes the table too wide for the terminal. */
static const char wide_separator[] = "   ";
static const char narrow_separator[] = "  ";

/* The cells of a row as text. */
struct cells {
	char task[NAME_SIZE];
	char tool[NAME_SIZE];
	char number[COLUMN_COUNT][CELL_SIZE];	/* all but the first two */
};

static bool
is_utf8_locale(void)
{
	return MB_CUR_MAX > 1;
}

/* Returns the columns that the character of n bytes at p takes on a terminal; -1: it must be escaped. */
static int
char_width(const char *p, size_t n)
{
	mbstate_t state;
	wchar_t c;

	if (spell_is_hidden(p, n))
		return -1;
	if (n == 1)
		return 1;
	memset(&state, 0, sizeof(state));
	if (!is_utf8_locale() || mbrtowc(&c, p, n, &state) != n)
		return -1;
	return wcwidth(c);
}

/* Copies name to out, spelt out where this terminal does not show it. */
static void
show_name(const char *name, char *out, size_t size)
{
	size_t len = name != NULL ? strlen(name) : 0, o = 0;

	if (len == 0) {
		snprintf(out, size, UNKNOWN);
		return;
	}
	for (size_t i = 0; i < len;) {
		size_t n = text_char(name + i, len - i);
		bool is_shown = char_width(name + i, n) >= 0;
		char spelt[SPELL_CHAR_MAX + 1];
		size_t n_shown = is_shown ? n : spell_out(name + i, n, spelt);

		if (size - o <= n_shown)
			break;
		memcpy(out + o, is_shown ? name + i : spelt, n_shown);
		o += n_shown;
		i += n > 0 ? n : 1;
	}
	out[o] = '\0';
}

/* Returns the width of a name from show_name(). */
static size_t
name_width(const char *name)
{
	size_t len = strlen(name), width = 0, n;

	for (size_t i = 0; i < len; i += n) {
		n = text_char(name + i, len - i);
		width += (size_t)char_width(name + i, n);
	}
	return width;
}

/* Cuts a name from show_name() to width columns, the last of them for a mark. */
static void
cut_name(char *name, size_t width)
{
	const char *mark = is_utf8_locale() ? "\xe2\x80\xa6" : "~";
	size_t len = strlen(name), used = 0, n;

	if (name_width(name) <= width)
		return;
	for (size_t i = 0; i < len; i += n) {
		size_t w;

		n = text_char(name + i, len - i);
		w = (size_t)char_width(name + i, n);
		if (used + w + 1 > width) {
			/* The text that is cut is at least as wide as the mark, but not always as long in bytes. */
			snprintf(name + i, NAME_SIZE - i, "%s", mark);
			return;
		}
		used += w;
	}
}

/* Formats a field of usage as bytes. */
static void
show_bytes(const struct usage *u, enum usage_field field, char *out)
{
	if (u != NULL && usage_has(u, field))
		format_bytes(u->value[field], out, CELL_SIZE);
	else
		snprintf(out, CELL_SIZE, UNKNOWN);
}

/* Formats the sum of received and sent bytes, as far as they are known. */
static void
show_net(const struct usage *u, char *out)
{
	bool has_rx = u != NULL && usage_has(u, USAGE_NET_RX_BYTES);
	bool has_tx = u != NULL && usage_has(u, USAGE_NET_TX_BYTES);

	if (has_rx || has_tx)
		format_bytes((has_rx ? u->value[USAGE_NET_RX_BYTES] : 0) +
		    (has_tx ? u->value[USAGE_NET_TX_BYTES] : 0), out, CELL_SIZE);
	else
		snprintf(out, CELL_SIZE, UNKNOWN);
}

static void
show_memory(struct opt_u64 bytes, char *out)
{
	if (bytes.known)
		format_bytes(bytes.value, out, CELL_SIZE);
	else
		snprintf(out, CELL_SIZE, UNKNOWN);
}

/* A value of a record as a word: "RUN_QUEUE" becomes "run queue". */
static void
show_word(const char *name, char *out, size_t size)
{
	size_t i;

	for (i = 0; name[i] != '\0' && i + 1 < size; i++)
		out[i] = name[i] == '_' ? ' ' : (char)tolower((unsigned char)name[i]);
	out[i] = '\0';
}

static void
show_demand(const struct verdict *v, char *out)
{
	char word[FORMAT_SIZE], wait[FORMAT_SIZE];

	if (v->demand == DEMAND_NONE) {
		snprintf(out, CELL_SIZE, UNKNOWN);
	} else if (v->waiting_for != NULL) {
		show_word(v->waiting_for, wait, sizeof(wait));
		snprintf(out, CELL_SIZE, "waits: %s", wait);
	} else {
		show_word(demand_name(v->demand), word, sizeof(word));
		snprintf(out, CELL_SIZE, "%s", word);
	}
}

static void
show_denied(const struct verdict *v, char *out)
{
	char word[FORMAT_SIZE], share[FORMAT_SIZE];

	if (v->denied == DENIED_NONE || v->denied == DENIED_NOTHING) {
		snprintf(out, CELL_SIZE, UNKNOWN);
		return;
	}
	show_word(denied_name(v->denied), word, sizeof(word));
	snprintf(out, CELL_SIZE, "%s %s", word, format_percent(v->denied_share.value, share, sizeof(share)));
}

static void
show_row(const struct table_row *row, struct cells *c)
{
	char a[FORMAT_SIZE], b[FORMAT_SIZE];

	show_name(row->task, c->task, sizeof(c->task));
	show_name(row->tool, c->tool, sizeof(c->tool));
	if (row->failed > 0)
		snprintf(c->number[COLUMN_N], CELL_SIZE, "%s (%s failed)",
		    format_count(row->n, a, sizeof(a)), format_count(row->failed, b, sizeof(b)));
	else
		format_count(row->n, c->number[COLUMN_N], CELL_SIZE);
	format_duration(row->wall_ns, c->number[COLUMN_WALL], CELL_SIZE);
	if (row->cpu_cores.known)
		snprintf(c->number[COLUMN_CPU], CELL_SIZE, "%sc",
		    format_cores(row->cpu_cores.value, a, sizeof(a)));
	else
		snprintf(c->number[COLUMN_CPU], CELL_SIZE, UNKNOWN);
	show_memory(row->peak_memory_bytes, c->number[COLUMN_PEAK]);
	show_bytes(row->usage, USAGE_READ_BYTES, c->number[COLUMN_READ]);
	show_bytes(row->usage, USAGE_WRITE_BYTES, c->number[COLUMN_WRITE]);
	show_net(row->usage, c->number[COLUMN_NET]);
	show_demand(&row->verdict, c->number[COLUMN_DEMAND]);
	show_denied(&row->verdict, c->number[COLUMN_DENIED]);
}

static const char *
cell(const struct cells *c, enum column column)
{
	return column == COLUMN_TASK ? c->task : column == COLUMN_TOOL ? c->tool : c->number[column];
}

/* Returns the width of the whole table; widest: each column's widest cell. */
static size_t
total_width(const size_t *widest, const char *separator)
{
	size_t total = (COLUMN_COUNT - 1) * strlen(separator);

	for (int i = 0; i < COLUMN_COUNT; i++)
		total += widest[i];
	return total;
}

/* Narrows the task's and the tool's name, the wider one first, until the table fits. */
static void
fit(size_t *widest, const char *separator, size_t width)
{
	while (total_width(widest, separator) > width) {
		enum column wider = widest[COLUMN_TOOL] > widest[COLUMN_TASK] ? COLUMN_TOOL : COLUMN_TASK;

		if (widest[wider] <= NAME_MIN_WIDTH)
			break;		/* the terminal wraps the lines */
		widest[wider]--;
	}
}

static int
add_row(struct libscols_table *tb, const struct cells *c)
{
	struct libscols_line *line = scols_table_new_line(tb, NULL);
	int r = 0;

	if (line == NULL)
		return -ENOMEM;
	for (int i = 0; i < COLUMN_COUNT && r == 0; i++)
		r = scols_line_set_data(line, (size_t)i, cell(c, (enum column)i));
	return r;
}

int
table_print(FILE *f, const struct table_row *rows, size_t n, unsigned width)
{
	struct libscols_table *tb = scols_new_table();
	struct cells *c = malloc(sizeof(*c));
	const char *separator = wide_separator;
	size_t widest[COLUMN_COUNT];
	int r = -ENOMEM;

	if (tb == NULL || c == NULL)
		goto out;
	for (int i = 0; i < COLUMN_COUNT; i++) {
		widest[i] = strlen(columns[i].title);
		if (scols_table_new_column(tb, columns[i].title, 0, columns[i].flags) == NULL)
			goto out;
	}
	for (size_t k = 0; k < n && width > 0; k++) {
		show_row(&rows[k], c);
		for (int i = 0; i < COLUMN_COUNT; i++) {
			size_t w = name_width(cell(c, (enum column)i));

			if (w > widest[i])
				widest[i] = w;
		}
	}
	if (width > 0) {
		if (total_width(widest, separator) > width)
			separator = narrow_separator;
		fit(widest, separator, width);
	}

	/* The cells are cut and escaped already: libsmartcols must only align them. */
	scols_table_set_stream(tb, f);
	scols_table_set_termforce(tb, SCOLS_TERMFORCE_NEVER);
	scols_table_enable_noencoding(tb, 1);
	scols_table_enable_colors(tb, 0);
	scols_table_enable_minout(tb, 1);
	r = scols_table_set_column_separator(tb, separator);
	for (size_t k = 0; k < n && r == 0; k++) {
		show_row(&rows[k], c);
		if (width > 0) {
			cut_name(c->task, widest[COLUMN_TASK]);
			cut_name(c->tool, widest[COLUMN_TOOL]);
		}
		r = add_row(tb, c);
	}
	if (r == 0)
		r = scols_print_table(tb);
out:
	free(c);
	scols_unref_table(tb);		/* NULL is fine */
	return r;
}

/* Formats the end of a run: "exit 0" or how it died. */
static void
show_end(const struct table_summary *s, char *out, size_t size)
{
	const char *name;

	if (s->exit_signal.known) {
		name = format_signal(s->exit_signal.value);
		if (name != NULL)
			snprintf(out, size, "killed by SIG%s", name);
		else
			snprintf(out, size, "killed by signal %d", s->exit_signal.value);
	} else if (s->exit_code.known) {
		snprintf(out, size, "exit %d", s->exit_code.value);
	} else {
		snprintf(out, size, "exit " UNKNOWN);
	}
}

void
table_footer(FILE *f, const struct table_summary *s)
{
	char pipeline[NAME_SIZE], wall[FORMAT_SIZE], end[CELL_SIZE], cores[FORMAT_SIZE];
	char peak[CELL_SIZE], got[CELL_SIZE], put[CELL_SIZE], programs[FORMAT_SIZE], lost[FORMAT_SIZE];
	char failed[FORMAT_SIZE];

	show_name(s->pipeline, pipeline, sizeof(pipeline));
	show_end(s, end, sizeof(end));
	show_memory(s->peak_memory_bytes, peak);
	show_bytes(s->usage, USAGE_READ_BYTES, got);
	show_bytes(s->usage, USAGE_WRITE_BYTES, put);
	fprintf(f, "run  %s  %s  %s   %s of %u cpu%s   peak %s   read %s   write %s   %s program%s",
	    pipeline, format_duration(s->wall_ns, wall, sizeof(wall)), end,
	    s->cpu_cores.known ? format_cores(s->cpu_cores.value, cores, sizeof(cores)) : UNKNOWN,
	    s->cpus, s->cpus == 1 ? "" : "s", peak, got, put, format_count(s->programs, programs, sizeof(programs)),
	    s->programs == 1 ? "" : "s");
	if (s->failed > 0)
		fprintf(f, " (%s failed)", format_count(s->failed, failed, sizeof(failed)));
	fprintf(f, "   %s lost\n", format_count(s->lost, lost, sizeof(lost)));
}
