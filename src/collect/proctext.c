/*
 * SPDX-License-Identifier: Apache-2.0
 * proctext: parsers of the kernel's text files under /proc and /sys/fs/cgroup.
 */
#include "collect/proctext.h"

#include <errno.h>
#include <string.h>

#define SECTOR_BYTES UINT64_C(512)	/* the unit of diskstats, whatever the disk's own sectors are */
#define NO_LIMIT_BYTES (UINT64_C(1) << 62)	/* in v1 "none" is LONG_MAX rounded to pages */

/* The part of a text that is not read yet. */
struct rest {
	const char *at;
	const char *end;
};

static struct rest
rest_of(const char *text, size_t len)
{
	return (struct rest){ text, text + len };
}

/* Takes the next line off r; false at the end. The last line may lack its newline. */
static bool
next_line(struct rest *r, struct rest *ret)
{
	const char *newline;

	if (r->at == r->end)
		return false;
	newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
	*ret = (struct rest){ r->at, newline != NULL ? newline : r->end };
	r->at = newline != NULL ? newline + 1 : r->end;
	return true;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void
skip_blanks(struct rest *r)
{
	while (r->at < r->end && is_blank(*r->at))
		r->at++;
}

/* Returns the next blank-separated word; empty at the end. */
static struct proc_word
take_word(struct rest *r)
{
	struct proc_word word;

	skip_blanks(r);
	word.at = r->at;
	while (r->at < r->end && !is_blank(*r->at))
		r->at++;
	word.len = (size_t)(r->at - word.at);
	return word;
}

/* Parses a word that must be a decimal number as a whole. */
static int
word_u64(struct proc_word word, uint64_t *ret)
{
	uint64_t value = 0;

	if (word.len == 0)
		return -EINVAL;
	for (size_t i = 0; i < word.len; i++) {
		unsigned digit = (unsigned char)word.at[i] - (unsigned)'0';

		if (digit > 9)
			return -EINVAL;
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return -ERANGE;
	}
	*ret = value;
	return 0;
}

static int
take_u64(struct rest *r, uint64_t *ret)
{
	return word_u64(take_word(r), ret);
}

/* Skips count words, which must be numbers. */
static int
skip_numbers(struct rest *r, unsigned count)
{
	uint64_t ignored;
	int error;

	for (; count > 0; count--) {
		error = take_u64(r, &ignored);
		if (error < 0)
			return error;
	}
	return 0;
}

/* Returns the one word of a file with one value and a newline; -EINVAL if there are more. */
static int
only_word(const char *text, size_t len, struct proc_word *ret)
{
	struct rest r = rest_of(text, len), line;

	if (!next_line(&r, &line) || r.at != r.end)
		return -EINVAL;
	*ret = take_word(&line);
	skip_blanks(&line);
	return line.at == line.end ? 0 : -EINVAL;
}

bool
proc_word_is(struct proc_word word, const char *name)
{
	return strlen(name) == word.len && memcmp(word.at, name, word.len) == 0;
}

static bool
starts_with(struct proc_word word, const char *prefix)
{
	size_t len = strlen(prefix);

	return word.len >= len && memcmp(word.at, prefix, len) == 0;
}

int
proctext_stat(const char *text, size_t len, struct proc_stat *ret)
{
	struct proc_stat stat = { 0 };
	uint64_t *const fields[] = { &stat.user, &stat.nice, &stat.system, &stat.idle, &stat.iowait,
		&stat.irq, &stat.softirq, &stat.steal };
	struct rest r = rest_of(text, len), line;
	bool has_total = false;
	uint64_t cpu;
	int error;

	while (next_line(&r, &line)) {
		struct proc_word key = take_word(&line);

		if (!starts_with(key, "cpu"))
			continue;
		if (key.len > 3) {	/* cpu12: only counted */
			error = word_u64((struct proc_word){ key.at + 3, key.len - 3 }, &cpu);
			if (error < 0)
				return error;
			stat.cpus++;
			continue;
		}
		if (has_total)
			return -EINVAL;
		has_total = true;
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
			error = take_u64(&line, fields[i]);
			if (error < 0)
				return error;
		}
	}
	if (!has_total || stat.cpus == 0)
		return -EINVAL;
	*ret = stat;
	return 0;
}

int
proctext_meminfo(const char *text, size_t len, struct proc_meminfo *ret)
{
	struct proc_meminfo mem = { 0 };
	const struct {
		const char *key;
		uint64_t *value;
	} wanted[] = {
		{ "MemTotal:", &mem.total },
		{ "MemAvailable:", &mem.available },
		{ "SwapTotal:", &mem.swap_total },
		{ "SwapFree:", &mem.swap_free },
	};
	struct rest r = rest_of(text, len), line;
	unsigned seen = 0;

	while (next_line(&r, &line)) {
		struct proc_word key = take_word(&line);
		uint64_t kib;
		int error;

		for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			if (!proc_word_is(key, wanted[i].key))
				continue;
			error = take_u64(&line, &kib);
			if (error < 0)
				return error;
			if (!proc_word_is(take_word(&line), "kB"))
				return -EINVAL;
			if (__builtin_mul_overflow(kib, UINT64_C(1024), wanted[i].value))
				return -ERANGE;
			seen |= 1u << i;
		}
	}
	if ((seen & 3) != 3)	/* total and available are required */
		return -EINVAL;
	*ret = mem;
	return 0;
}

/* Reads total= of a line of pressure, which follows a varying number of averages. */
static int
take_total(struct rest *line, uint64_t *ret)
{
	struct proc_word word;

	while ((word = take_word(line)).len > 0)
		if (starts_with(word, "total="))
			return word_u64((struct proc_word){ word.at + 6, word.len - 6 }, ret);
	return -EINVAL;
}

int
proctext_pressure(const char *text, size_t len, struct proc_pressure *ret)
{
	struct proc_pressure pressure = { 0 };
	struct rest r = rest_of(text, len), line;
	bool has_some = false;
	int error;

	while (next_line(&r, &line)) {
		struct proc_word key = take_word(&line);

		if (proc_word_is(key, "some")) {
			error = take_total(&line, &pressure.some_us);
			has_some = true;
		} else if (proc_word_is(key, "full")) {
			error = take_total(&line, &pressure.full_us.value);
			pressure.full_us.known = true;
		} else {
			continue;
		}
		if (error < 0)
			return error;
	}
	if (!has_some)
		return -EINVAL;
	*ret = pressure;
	return 0;
}

/* A load is "12.34", with at most nine digits after the point. */
int
proctext_load1(const char *text, size_t len, double *ret)
{
	struct rest r = rest_of(text, len), line;
	struct proc_word word, whole, part;
	uint64_t integer, fraction;
	double scale = 1;
	const char *point;
	int error;

	if (!next_line(&r, &line))
		return -EINVAL;
	word = take_word(&line);
	point = word.len > 0 ? memchr(word.at, '.', word.len) : NULL;
	if (point == NULL)
		return -EINVAL;
	whole = (struct proc_word){ word.at, (size_t)(point - word.at) };
	part = (struct proc_word){ point + 1, word.len - whole.len - 1 };
	if (part.len > 9)
		return -EINVAL;
	error = word_u64(whole, &integer);
	if (error == 0)
		error = word_u64(part, &fraction);
	if (error < 0)
		return error;
	for (size_t i = 0; i < part.len; i++)
		scale *= 10;
	*ret = (double)integer + (double)fraction / scale;
	return 0;
}

/* Takes the next line off *text and *len, for a proctext_next function; false at the end. */
static bool
step(const char **text, size_t *len, struct rest *ret)
{
	struct rest r = rest_of(*text, *len);
	bool has_line = next_line(&r, ret);

	*text = r.at;
	*len = (size_t)(r.end - r.at);
	return has_line;
}

/* "254 0 vda reads merged sectors ms writes merged sectors ms ..." */
int
proctext_next_disk(const char **text, size_t *len, struct proc_disk *ret)
{
	struct proc_disk disk;
	struct rest line;
	int error;

	do {
		if (!step(text, len, &line))
			return 0;
		skip_blanks(&line);
	} while (line.at == line.end);

	if ((error = take_u64(&line, &disk.major)) < 0 || (error = take_u64(&line, &disk.minor)) < 0)
		return error;
	disk.name = take_word(&line);
	if (disk.name.len == 0)
		return -EINVAL;
	if ((error = skip_numbers(&line, 2)) < 0 ||
	    (error = take_u64(&line, &disk.read_bytes)) < 0 ||
	    (error = skip_numbers(&line, 3)) < 0 ||
	    (error = take_u64(&line, &disk.write_bytes)) < 0)
		return error;
	if (__builtin_mul_overflow(disk.read_bytes, SECTOR_BYTES, &disk.read_bytes) ||
	    __builtin_mul_overflow(disk.write_bytes, SECTOR_BYTES, &disk.write_bytes))
		return -ERANGE;
	if (skip_numbers(&line, 2) < 0 || take_u64(&line, &disk.busy_ms) < 0)
		disk.busy_ms = 0;
	*ret = disk;
	return 1;
}

/* "  eth0: rx_bytes 7 others tx_bytes ..."; the two lines of headings have a '|'. */
int
proctext_next_interface(const char **text, size_t *len, struct proc_interface *ret)
{
	struct proc_interface interface;
	const char *colon = NULL;
	struct rest line;
	int error;

	do {
		if (!step(text, len, &line))
			return 0;
		skip_blanks(&line);
	} while (line.at == line.end || memchr(line.at, '|', (size_t)(line.end - line.at)) != NULL);

	/* The last colon: the name may contain one ("eth0:1"), numbers do not. */
	colon = memrchr(line.at, ':', (size_t)(line.end - line.at));
	if (colon == NULL || colon == line.at)
		return -EINVAL;
	interface.name = (struct proc_word){ line.at, (size_t)(colon - line.at) };
	line.at = colon + 1;	/* older kernels have no blank after it */
	if ((error = take_u64(&line, &interface.rx_bytes)) < 0 ||
	    (error = skip_numbers(&line, 7)) < 0 ||
	    (error = take_u64(&line, &interface.tx_bytes)) < 0)
		return error;
	*ret = interface;
	return 1;
}

int
proctext_next_cgroup(const char **text, size_t *len, struct proc_cgroup *ret)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_len = sizeof(deleted) - 1;
	struct proc_cgroup cgroup = { 0 };
	const char *first, *second;
	struct rest line;
	uint64_t hierarchy;
	int error;

	do {
		if (!step(text, len, &line))
			return 0;
	} while (line.at == line.end);

	first = memchr(line.at, ':', (size_t)(line.end - line.at));
	if (first == NULL)
		return -EINVAL;
	error = word_u64((struct proc_word){ line.at, (size_t)(first - line.at) }, &hierarchy);
	if (error < 0)
		return error;
	if (hierarchy > UINT32_MAX)
		return -ERANGE;
	second = memchr(first + 1, ':', (size_t)(line.end - first - 1));
	if (second == NULL || second + 1 == line.end || second[1] != '/')
		return -EINVAL;
	cgroup.hierarchy = (uint32_t)hierarchy;
	cgroup.controllers = (struct proc_word){ first + 1, (size_t)(second - first - 1) };
	cgroup.path = (struct proc_word){ second + 1, (size_t)(line.end - second - 1) };
	/* A live cgroup may have such a name; it looks the same as a removed one, which is likelier. */
	if (cgroup.path.len > deleted_len &&
	    memcmp(line.end - deleted_len, deleted, deleted_len) == 0) {
		cgroup.path.len -= deleted_len;
		cgroup.is_deleted = true;
	}
	*ret = cgroup;
	return 1;
}

/* "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG]... - TYPE SOURCE SUPEROPTIONS" */
int
proctext_next_cgroup_mount(const char **text, size_t *len, struct proc_cgroup_mount *ret)
{
	struct proc_cgroup_mount mount;
	struct proc_word word, type;
	struct rest line;
	int error;

	while (step(text, len, &line)) {
		skip_blanks(&line);
		if (line.at == line.end)
			continue;
		error = skip_numbers(&line, 2);
		if (error < 0)
			return error;
		take_word(&line);
		mount.root = take_word(&line);
		mount.point = take_word(&line);
		do {		/* any number of options and tags */
			word = take_word(&line);
		} while (word.len > 0 && !proc_word_is(word, "-"));
		type = take_word(&line);
		if (type.len == 0)
			return -EINVAL;
		mount.is_v2 = proc_word_is(type, "cgroup2");
		if (!mount.is_v2 && !proc_word_is(type, "cgroup"))
			continue;
		take_word(&line);
		mount.controllers = take_word(&line);
		if (mount.controllers.len == 0 || mount.root.at[0] != '/' || mount.point.at[0] != '/')
			return -EINVAL;
		*ret = mount;
		return 1;
	}
	return 0;
}

int
proctext_unescape(struct proc_word word, char *buf, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < word.len; i++) {
		unsigned c = (unsigned char)word.at[i];

		if (c == '\\') {
			if (word.len - i < 4)
				return -EINVAL;
			c = 0;
			for (size_t k = 1; k <= 3; k++) {
				unsigned digit = (unsigned char)word.at[i + k] - (unsigned)'0';

				if (digit > 7)
					return -EINVAL;
				c = c * 8 + digit;
			}
			i += 3;
		}
		if (c == 0 || c > 255)
			return -EINVAL;
		if (n + 1 >= cap)
			return -ENAMETOOLONG;
		buf[n++] = (char)c;
	}
	if (cap == 0 || n > INT32_MAX)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return (int)n;
}

bool
proctext_list_has(struct proc_word list, const char *name)
{
	const char *end = list.at + list.len;

	for (const char *at = list.at; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t len = (size_t)((comma != NULL ? comma : end) - at);

		if (proc_word_is((struct proc_word){ at, len }, name))
			return true;
		at += len + (comma != NULL);
	}
	return false;
}

int
proctext_cpu_max(const char *text, size_t len, struct opt_double *ret)
{
	struct rest r = rest_of(text, len), line;
	struct proc_word quota;
	uint64_t quota_us = 0, period_us;
	bool is_max;
	int error;

	if (!next_line(&r, &line) || r.at != r.end)
		return -EINVAL;
	quota = take_word(&line);
	is_max = proc_word_is(quota, "max");
	if (!is_max) {
		error = word_u64(quota, &quota_us);
		if (error < 0)
			return error;
	}
	error = take_u64(&line, &period_us);
	if (error < 0)
		return error;
	if (period_us == 0 || (!is_max && quota_us == 0))
		return -EINVAL;
	*ret = (struct opt_double){ .known = !is_max,
		.value = is_max ? 0 : (double)quota_us / (double)period_us };
	return 0;
}

int
proctext_cfs(const char *quota, size_t quota_len, const char *period, size_t period_len,
    struct opt_double *ret)
{
	struct proc_word word;
	uint64_t quota_us = 0, period_us = 0;
	bool is_negative;
	int error;

	error = only_word(period, period_len, &word);
	if (error == 0)
		error = word_u64(word, &period_us);
	if (error == 0)
		error = only_word(quota, quota_len, &word);
	if (error < 0)
		return error;
	is_negative = word.len > 0 && word.at[0] == '-';
	if (is_negative) {
		word.at++;
		word.len--;
	}
	error = word_u64(word, &quota_us);
	if (error < 0)
		return error;
	if (period_us == 0 || quota_us == 0)
		return -EINVAL;
	*ret = (struct opt_double){ .known = !is_negative,
		.value = is_negative ? 0 : (double)quota_us / (double)period_us };
	return 0;
}

int
proctext_cpu_list(const char *text, size_t len, uint32_t *ret)
{
	struct proc_word list;
	const char *end;
	uint64_t count = 0, next = 0;	/* least number allowed next */
	int error;

	error = only_word(text, len, &list);
	if (error < 0)
		return error;
	end = list.at + list.len;
	for (const char *at = list.at; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at)), *stop, *dash;
		uint64_t first, last;

		stop = comma != NULL ? comma : end;
		dash = memchr(at, '-', (size_t)(stop - at));
		error = word_u64((struct proc_word){ at, (size_t)((dash != NULL ? dash : stop) - at) }, &first);
		if (error < 0)
			return error;
		last = first;
		if (dash != NULL)
			error = word_u64((struct proc_word){ dash + 1, (size_t)(stop - dash - 1) }, &last);
		if (error < 0)
			return error;
		if (first < next || last < first || comma == end - 1)
			return -EINVAL;
		if (last >= UINT32_MAX)
			return -ERANGE;
		count += last - first + 1;
		next = last + 1;
		at = comma != NULL ? comma + 1 : end;
	}
	*ret = (uint32_t)count;
	return 0;
}

int
proctext_key(const char *text, size_t len, const char *key, uint64_t *ret)
{
	struct rest r = rest_of(text, len), line;

	while (next_line(&r, &line)) {
		if (proc_word_is(take_word(&line), key))
			return take_u64(&line, ret);
	}
	return -ENOENT;
}

int
proctext_memory_limit(const char *text, size_t len, struct opt_u64 *ret)
{
	struct opt_u64 limit = { 0 };
	struct proc_word word;
	int error;

	error = only_word(text, len, &word);
	if (error < 0)
		return error;
	if (!proc_word_is(word, "max")) {
		error = word_u64(word, &limit.value);
		if (error < 0)
			return error;
		limit.known = limit.value < NO_LIMIT_BYTES;
		if (!limit.known)
			limit.value = 0;
	}
	*ret = limit;
	return 0;
}
