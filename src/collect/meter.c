/*
 * SPDX-License-Identifier: Apache-2.0
 * meter: finds the counters of energy in sysfs, and reads them.
 */
#include "collect/meter.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define COUNTERS_MAX 64			/* eight sockets of eight dies */
#define LEAST_NS UINT64_C(10000000)	/* counters move about once a millisecond */
#define LONGEST_NS UINT64_C(60000000000)	/* after which a counter may have wrapped twice, at kilowatts */
#define RETRY_NS UINT64_C(60000000000)
#define SLOW_NS UINT64_C(20000000)	/* a firmware that takes longer would hold up the agent each second */
#define MOST_UW UINT64_C(20000000000)	/* that one counter can be of; more is a counter that began anew */

struct counter {
	int fd;				/* owned */
	uint64_t range_uj;		/* at which it wraps; 0: never */
	uint64_t value;			/* as it was read last */
	char name[32];			/* of its zone */
	char path[METER_PATH_SIZE];
};

struct meter {
	char *sys;			/* owned */
	enum energy_source source;
	size_t n;
	struct counter counters[COUNTERS_MAX];
	uint64_t then_ns;		/* when they were read last, or looked for */
	int error;
	char failed[METER_PATH_SIZE];
};

/* A driver whose counters are of the whole host. */
struct driver {
	const char *name;		/* in the file "name" */
	const char *input;		/* begins the file names of its counters, which end with "_input" or "_average" */
	const char *label;		/* begins the labels of those that count; NULL: the first counter alone does */
	bool is_power;
};

static const struct driver drivers[] = {
	{ "amd_energy", "energy", "Esocket", false },
	{ "aem1", "energy1_input", NULL, false },
	{ "aem2", "energy1_input", NULL, false },
	{ "power_meter", "power1_average", NULL, true },
};

/* Reads the first line of a file below a folder; returns its length or a negative errno. */
static int
read_line(const char *folder, const char *file, char *line, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", folder, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, line, size - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return (int)strlen(line);
}

/* Reads a number from the beginning of an open file. 0 or a negative errno. */
static int
read_number(int fd, uint64_t *ret)
{
	char text[32], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (!isdigit((unsigned char)text[0]))
		return -EBADMSG;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno != 0 ? -errno : *end != '\n' && *end != '\0' ? -EBADMSG : 0;
}

static void
forget(struct meter *m)
{
	for (size_t i = 0; i < m->n; i++)
		close(m->counters[i].fd);
	m->n = 0;
	m->source = ENERGY_UNKNOWN;
}

/* Keeps why there is no reading, and looks for the meter again later. Returns the error. */
static int
fail(struct meter *m, int error, const char *path)
{
	m->error = error;
	snprintf(m->failed, sizeof(m->failed), "%s", path);
	forget(m);
	return error;
}

/* Adds a counter and takes its first value. 0 or a negative errno. */
static int
add(struct meter *m, const char *folder, const char *file, const char *name, uint64_t range_uj)
{
	struct counter *c = &m->counters[m->n];
	uint64_t began_ns;
	int r;

	*c = (struct counter){ .range_uj = range_uj };
	snprintf(c->name, sizeof(c->name), "%s", name);
	if (snprintf(c->path, sizeof(c->path), "%s/%s", folder, file) >= (int)sizeof(c->path))
		return fail(m, -ENAMETOOLONG, folder);
	if (m->n == COUNTERS_MAX)
		return fail(m, -E2BIG, c->path);
	c->fd = open(c->path, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0)
		return fail(m, -errno, c->path);
	began_ns = clock_ns(CLOCK_MONOTONIC);
	r = read_number(c->fd, &c->value);
	if (r == 0 && m->source == ENERGY_HWMON_POWER && clock_ns(CLOCK_MONOTONIC) - began_ns > SLOW_NS)
		r = -ETIME;
	m->n++;
	return r < 0 ? fail(m, r, c->path) : 0;
}

static bool
has_name(const struct meter *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++) {
		if (strcmp(m->counters[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Adds the counter of a zone, if it is that of a package. 0 or a negative errno. */
static int
add_zone(struct meter *m, const char *class, const char *entry)
{
	static const char prefix[] = "intel-rapl:";
	char folder[PATH_MAX], name[32], range[32];
	const char *number = entry + sizeof(prefix) - 1;

	if (strncmp(entry, prefix, sizeof(prefix) - 1) != 0 || strchr(number, ':') != NULL)
		return 0;	/* another control type, or a part of a zone */
	if (snprintf(folder, sizeof(folder), "%s/%s", class, entry) >= (int)sizeof(folder) ||
	    read_line(folder, "name", name, sizeof(name)) < 0 || strncmp(name, "package", 7) != 0 || has_name(m, name))
		return 0;
	if (read_line(folder, "max_energy_range_uj", range, sizeof(range)) < 0)
		range[0] = '\0';
	return add(m, folder, "energy_uj", name, strtoull(range, NULL, 10));
}

/* Returns true if this file of a driver's folder is a counter that counts. */
static bool
is_counter(const char *folder, const char *file, const struct driver *d)
{
	char label_file[64], label[32];
	size_t len = strlen(file), end = strlen("_input");

	if (d->label == NULL)
		return strcmp(file, d->input) == 0;
	if (strncmp(file, d->input, strlen(d->input)) != 0 || len < end || strcmp(file + len - end, "_input") != 0 ||
	    snprintf(label_file, sizeof(label_file), "%.*s_label", (int)(len - end), file) >= (int)sizeof(label_file))
		return false;
	return read_line(folder, label_file, label, sizeof(label)) > 0 &&
	    strncmp(label, d->label, strlen(d->label)) == 0;
}

/* Adds the counters of a folder of hwmon, if it is of this driver. 0 or a negative errno. */
static int
add_sensors(struct meter *m, const char *class, const char *entry, const struct driver *d)
{
	char folder[PATH_MAX], name[32];
	const struct dirent *e;
	DIR *dir;
	int r = 0;

	if (snprintf(folder, sizeof(folder), "%s/%s", class, entry) >= (int)sizeof(folder) ||
	    read_line(folder, "name", name, sizeof(name)) < 0 || strcmp(name, d->name) != 0)
		return 0;
	dir = opendir(folder);
	if (dir == NULL)
		return 0;
	while (r == 0 && (e = readdir(dir)) != NULL) {
		if (is_counter(folder, e->d_name, d))
			r = add(m, folder, e->d_name, "", 0);
	}
	closedir(dir);
	return r;
}

/* Adds what counts in one class: zones, or, with d, sensors of that driver. 0 or a negative errno. */
static int
look_in(struct meter *m, const char *name, const struct driver *d)
{
	char class[PATH_MAX];
	const struct dirent *e;
	DIR *dir;
	int r = 0;

	if (snprintf(class, sizeof(class), "%s/class/%s", m->sys, name) >= (int)sizeof(class))
		return -ENAMETOOLONG;
	dir = opendir(class);
	if (dir == NULL)
		return 0;
	while (r == 0 && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] != '.')
			r = d != NULL ? add_sensors(m, class, e->d_name, d) : add_zone(m, class, e->d_name);
	}
	closedir(dir);
	return r;
}

/* Looks for the meter. 0 or a negative errno. An unreadable one is not replaced by one that counts something else. */
static int
look(struct meter *m)
{
	int r = look_in(m, "powercap", NULL);

	m->source = ENERGY_POWERCAP;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]) && r == 0 && m->n == 0; i++) {
		m->source = drivers[i].is_power ? ENERGY_HWMON_POWER : ENERGY_HWMON;
		r = look_in(m, "hwmon", &drivers[i]);
	}
	if (r < 0 || m->n == 0) {
		m->source = ENERGY_UNKNOWN;
		return r < 0 ? r : fail(m, -ENODEV, "");
	}
	m->error = 0;
	return 0;
}

int
meter_open(const char *sys, uint64_t now_ns, struct meter **ret)
{
	struct meter *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->sys = strdup(sys);
	if (m->sys == NULL) {
		free(m);
		return -ENOMEM;
	}
	m->then_ns = now_ns;
	(void)look(m);
	*ret = m;
	return 0;
}

void
meter_close(struct meter *m)
{
	if (m == NULL)
		return;
	forget(m);
	free(m->sys);
	free(m);
}

/* Returns microjoules between two values of a counter; UINT64_MAX: unknown. */
static uint64_t
moved(const struct counter *c, uint64_t now, uint64_t interval_ns)
{
	uint64_t uj;

	if (now >= c->value)
		uj = now - c->value;
	else if (c->range_uj > c->value)
		uj = now + (c->range_uj - c->value);
	else
		return UINT64_MAX;	/* it began anew */
	return uj / 1000 > MOST_UW / 1000000 * (interval_ns / 1000000) ? UINT64_MAX : uj;
}

int
meter_read(struct meter *m, uint64_t now_ns, struct meter_reading *ret)
{
	uint64_t values[COUNTERS_MAX], sum = 0, interval_ns = now_ns - m->then_ns, began_ns;
	bool is_known = interval_ns <= LONGEST_NS;

	if (m->n == 0) {
		if (interval_ns < RETRY_NS)
			return m->error;
		m->then_ns = now_ns;
		return look(m) < 0 ? m->error : -ENODATA;
	}
	if (interval_ns < LEAST_NS)
		return -EAGAIN;
	began_ns = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < m->n; i++) {
		const struct counter *c = &m->counters[i];
		int r = read_number(c->fd, &values[i]);
		uint64_t uj;

		if (r == 0 && m->source == ENERGY_HWMON_POWER && clock_ns(CLOCK_MONOTONIC) - began_ns > SLOW_NS)
			r = -ETIME;
		if (r < 0) {
			m->then_ns = now_ns;
			return fail(m, r, c->path);
		}
		if (m->source == ENERGY_HWMON_POWER)	/* microwatts times milliseconds */
			uj = values[i] > MOST_UW ? UINT64_MAX : values[i] * (interval_ns / 1000000) / 1000;
		else
			uj = moved(c, values[i], interval_ns);
		is_known &= uj != UINT64_MAX;
		sum += is_known ? uj : 0;
	}
	if (is_known && sum == 0)
		return -EAGAIN;
	for (size_t i = 0; i < m->n; i++)
		m->counters[i].value = values[i];
	m->then_ns = now_ns;
	if (!is_known)
		return -ENODATA;
	*ret = (struct meter_reading){ sum, interval_ns, m->source };
	return 0;
}

void
meter_state(const struct meter *m, struct meter_state *ret)
{
	*ret = (struct meter_state){ .source = m->source, .counters = m->n, .error = m->error };
	snprintf(ret->path, sizeof(ret->path), "%s", m->error != 0 ? m->failed : "");
}
