/*
 * SPDX-License-Identifier: Apache-2.0
 * meter: folders of powercap and hwmon as drivers lay them out, with counters that wrap, vanish or cannot be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "collect/meter.h"
#include "tree.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define JOULE UINT64_C(1000000)

static struct tree tree;
static struct meter *meter;
static struct meter_reading reading;
static uint64_t now;

static int
set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	chmod(tree.root, 0755);
	now = 77 * SECOND;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	meter_close(meter);
	meter = NULL;
	tree_done(&tree);
	return 0;
}

/* Writes a file of a folder below class/. */
static void
put(const char *folder, const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "sys/class/%s/%s", folder, file);
	tree_write(&tree, path, text);
}

static void
put_number(const char *folder, const char *file, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)value);
	put(folder, file, text);
}

static void
zone(const char *entry, const char *name, uint64_t energy_uj)
{
	char folder[128], line[64];

	snprintf(folder, sizeof(folder), "powercap/%s", entry);
	snprintf(line, sizeof(line), "%s\n", name);
	put(folder, "name", line);
	put_number(folder, "max_energy_range_uj", 262143328850);
	put_number(folder, "energy_uj", energy_uj);
}

static void
open_meter(void)
{
	assert_int_equal(meter_open(tree_path(&tree, "sys"), now, &meter), 0);
}

static int
read_after(uint64_t ns)
{
	now += ns;
	return meter_read(meter, now, &reading);
}

static void
reads(uint64_t ns, uint64_t energy_uj, enum energy_source source)
{
	assert_int_equal(read_after(ns), 0);
	assert_int_equal(reading.energy_uj, energy_uj);
	assert_int_equal(reading.interval_ns, ns);
	assert_int_equal(reading.source, source);
}

static enum energy_source
state_of(size_t *counters, int *error)
{
	struct meter_state s;

	meter_state(meter, &s);
	*counters = s.counters;
	*error = s.error;
	return s.source;
}

static void
packages_are_added_up_and_nothing_twice(void **state)
{
	size_t counters;
	int error;

	(void)state;
	zone("intel-rapl:0", "package-0", 1000 * JOULE);
	zone("intel-rapl:0:0", "core", 500 * JOULE);
	zone("intel-rapl:0:1", "dram", 200 * JOULE);
	zone("intel-rapl:1", "package-1", 3000 * JOULE);
	zone("intel-rapl:2", "psys", 9000 * JOULE);
	zone("intel-rapl-mmio:0", "package-0", 1000 * JOULE);
	put("powercap/intel-rapl", "enabled", "1\n");
	open_meter();
	assert_int_equal(state_of(&counters, &error), ENERGY_POWERCAP);
	assert_int_equal(counters, 2);
	assert_int_equal(error, 0);
	zone("intel-rapl:0", "package-0", 1050 * JOULE);
	zone("intel-rapl:0:0", "core", 540 * JOULE);
	zone("intel-rapl:1", "package-1", 3030 * JOULE);
	zone("intel-rapl:2", "psys", 9100 * JOULE);
	reads(SECOND, 80 * JOULE, ENERGY_POWERCAP);
	zone("intel-rapl:1", "package-1", 3031 * JOULE);
	reads(SECOND / 2, JOULE, ENERGY_POWERCAP);
}

static void
dies_of_a_package_are_added_up(void **state)
{
	(void)state;
	zone("intel-rapl:0", "package-0-die-0", 10);
	zone("intel-rapl:1", "package-0-die-1", 20);
	open_meter();
	zone("intel-rapl:0", "package-0-die-0", 11);
	zone("intel-rapl:1", "package-0-die-1", 22);
	reads(SECOND, 3, ENERGY_POWERCAP);
}

static void
a_counter_that_wraps_loses_nothing(void **state)
{
	(void)state;
	zone("intel-rapl:0", "package-0", 262143328850 - 20 * JOULE);
	open_meter();
	zone("intel-rapl:0", "package-0", 30 * JOULE);
	reads(SECOND, 50 * JOULE, ENERGY_POWERCAP);
}

/* As after a suspend to memory, or for minutes without a CPU. */
static void
what_may_have_wrapped_twice_is_unknown(void **state)
{
	(void)state;
	zone("intel-rapl:0", "package-0", 1000 * JOULE);
	open_meter();
	zone("intel-rapl:0", "package-0", 3000 * JOULE);
	assert_int_equal(read_after(61 * SECOND), -ENODATA);
	zone("intel-rapl:0", "package-0", 3001 * JOULE);
	reads(SECOND, JOULE, ENERGY_POWERCAP);
}

/* A wrap would be 261 kJ in a second. */
static void
a_counter_that_began_anew_is_no_wrap(void **state)
{
	(void)state;
	zone("intel-rapl:0", "package-0", 1000 * JOULE);
	open_meter();
	zone("intel-rapl:0", "package-0", 5 * JOULE);
	assert_int_equal(read_after(SECOND), -ENODATA);
	zone("intel-rapl:0", "package-0", 6 * JOULE);
	reads(SECOND, JOULE, ENERGY_POWERCAP);
}

static void
what_does_not_move_waits_for_the_next_reading(void **state)
{
	(void)state;
	zone("intel-rapl:0", "package-0", 1000 * JOULE);
	open_meter();
	assert_int_equal(read_after(SECOND), -EAGAIN);
	assert_int_equal(read_after(5 * MS), -EAGAIN);
	zone("intel-rapl:0", "package-0", 1001 * JOULE);
	now -= SECOND + 5 * MS;
	reads(2 * SECOND, JOULE, ENERGY_POWERCAP);
}

static void
a_zone_that_vanishes_leaves_no_part_of_the_meter(void **state)
{
	size_t counters;
	int error;

	(void)state;
	zone("intel-rapl:0", "package-0", 1000 * JOULE);
	zone("intel-rapl:1", "package-1", 1000 * JOULE);
	open_meter();
	zone("intel-rapl:0", "package-0", 1001 * JOULE);
	put("powercap/intel-rapl:1", "energy_uj", "");	/* what a read of a device that is gone has, but for its errno */
	assert_int_equal(read_after(SECOND), -EBADMSG);
	assert_int_equal(state_of(&counters, &error), ENERGY_UNKNOWN);
	assert_int_equal(error, -EBADMSG);
	/* It is back, and found a minute later. */
	zone("intel-rapl:1", "package-1", 7 * JOULE);
	assert_int_equal(read_after(SECOND), -EBADMSG);
	assert_int_equal(read_after(60 * SECOND), -ENODATA);
	assert_int_equal(state_of(&counters, &error), ENERGY_POWERCAP);
	zone("intel-rapl:1", "package-1", 9 * JOULE);
	reads(SECOND, 2 * JOULE, ENERGY_POWERCAP);
}

/* Root alone may read it since Linux 5.10, for what its changes tell of other programs. */
static void
an_unreadable_meter_is_named_and_not_replaced(void **state)
{
	struct meter_state s;
	uid_t uid = geteuid();

	(void)state;
	zone("intel-rapl:0", "package-0", 1000 * JOULE);
	put("hwmon/hwmon3", "name", "power_meter\n");
	put_number("hwmon/hwmon3", "power1_average", 50 * JOULE);
	chmod(tree_path(&tree, "sys/class/powercap/intel-rapl:0/energy_uj"), 0400);
	if (uid == 0) {
		setfsuid(65534);	/* whom root's capabilities do not follow */
	} else {
		chmod(tree_path(&tree, "sys/class/powercap/intel-rapl:0/energy_uj"), 0);
	}
	open_meter();
	setfsuid(uid);
	meter_state(meter, &s);
	assert_int_equal(s.source, ENERGY_UNKNOWN);
	assert_int_equal(s.error, -EACCES);
	assert_non_null(strstr(s.path, "intel-rapl:0/energy_uj"));
	assert_int_equal(read_after(SECOND), -EACCES);
}

static void
sockets_of_a_driver_that_counts_energy(void **state)
{
	(void)state;
	put("hwmon/hwmon0", "name", "coretemp\n");
	put("hwmon/hwmon1", "name", "amd_energy\n");
	put("hwmon/hwmon1", "energy1_label", "Ecore000\n");
	put_number("hwmon/hwmon1", "energy1_input", 1);
	put("hwmon/hwmon1", "energy65_label", "Esocket0\n");
	put_number("hwmon/hwmon1", "energy65_input", 10 * JOULE);
	put("hwmon/hwmon1", "energy66_label", "Esocket1\n");
	put_number("hwmon/hwmon1", "energy66_input", 20 * JOULE);
	open_meter();
	put_number("hwmon/hwmon1", "energy1_input", 5 * JOULE);
	put_number("hwmon/hwmon1", "energy65_input", 13 * JOULE);
	put_number("hwmon/hwmon1", "energy66_input", 24 * JOULE);
	reads(SECOND, 7 * JOULE, ENERGY_HWMON);
	put_number("hwmon/hwmon1", "energy66_input", 0);	/* it has no range at which it wraps */
	assert_int_equal(read_after(SECOND), -ENODATA);
}

static void
power_times_time(void **state)
{
	(void)state;
	put("hwmon/hwmon2", "name", "power_meter\n");
	put_number("hwmon/hwmon2", "power1_average", 250 * JOULE);	/* microwatts */
	put("hwmon/hwmon4", "name", "nvme\n");
	put_number("hwmon/hwmon4", "power1_average", 8 * JOULE);
	open_meter();
	reads(2 * SECOND, 500 * JOULE, ENERGY_HWMON_POWER);
	put_number("hwmon/hwmon2", "power1_average", 100 * JOULE);
	reads(SECOND / 2, 50 * JOULE, ENERGY_HWMON_POWER);
}

static void
without_a_meter_there_is_none(void **state)
{
	size_t counters;
	int error;

	(void)state;
	open_meter();
	assert_int_equal(state_of(&counters, &error), ENERGY_UNKNOWN);
	assert_int_equal(error, -ENODEV);
	assert_int_equal(read_after(SECOND), -ENODEV);
	zone("intel-rapl:0", "package-0", 10 * JOULE);		/* its driver is loaded */
	assert_int_equal(read_after(SECOND), -ENODEV);
	assert_int_equal(read_after(60 * SECOND), -ENODATA);
	zone("intel-rapl:0", "package-0", 12 * JOULE);
	reads(SECOND, 2 * JOULE, ENERGY_POWERCAP);
}

static void
what_is_no_number_is_no_meter(void **state)
{
	static const char *const texts[] = { "", "\n", "-5\n", "1x\n", "99999999999999999999\n", "0x10\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct meter_state s;

		zone("intel-rapl:0", "package-0", 0);
		put("powercap/intel-rapl:0", "energy_uj", texts[i]);
		open_meter();
		meter_state(meter, &s);
		assert_int_equal(s.source, ENERGY_UNKNOWN);
		assert_true(s.error < 0 && s.error != -ENODEV);
		meter_close(meter);
		meter = NULL;
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(packages_are_added_up_and_nothing_twice),
		T(dies_of_a_package_are_added_up),
		T(a_counter_that_wraps_loses_nothing),
		T(what_may_have_wrapped_twice_is_unknown),
		T(a_counter_that_began_anew_is_no_wrap),
		T(what_does_not_move_waits_for_the_next_reading),
		T(a_zone_that_vanishes_leaves_no_part_of_the_meter),
		T(an_unreadable_meter_is_named_and_not_replaced),
		T(sockets_of_a_driver_that_counts_energy),
		T(power_times_time),
		T(without_a_meter_there_is_none),
		T(what_is_no_number_is_no_meter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
