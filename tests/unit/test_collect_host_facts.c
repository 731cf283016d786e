/*
 * SPDX-License-Identifier: Apache-2.0
 * host_facts: simulated firmware tables of clouds and of a machine of one's own, and which source wins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/host_facts.h"
#include "tree.h"

static struct tree tree;
static struct host_facts facts;

static int
set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	tree_done(&tree);
	return 0;
}

static void
dmi(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/class/dmi/id/%s", name);
	tree_write(&tree, path, text);
}

static void
read_tree(void)
{
	host_facts_read(tree_path(&tree, "proc"), tree_path(&tree, "sys"), &facts);
}

static void
test_instance_type_of_ec2(void **state)
{
	(void)state;
	dmi("sys_vendor", "Amazon EC2\n");
	dmi("product_name", "m5.4xlarge\n");
	tree_write(&tree, "proc/cpuinfo",
	    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz\n"
	    "stepping\t: 7\n");
	read_tree();
	assert_string_equal(facts.cloud, "aws");
	assert_string_equal(facts.instance_type, "m5.4xlarge");
	assert_string_equal(facts.cpu_model, "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz");
	assert_string_equal(facts.region, "");
	assert_false(facts.price_per_hour.known);
}

static void
test_clouds_whose_firmware_has_no_type(void **state)
{
	(void)state;
	dmi("sys_vendor", "Google\n");
	dmi("product_name", "Google Compute Engine\n");
	read_tree();
	assert_string_equal(facts.cloud, "gcp");
	assert_string_equal(facts.instance_type, "");
	dmi("sys_vendor", "Microsoft Corporation\n");
	dmi("product_name", "Virtual Machine\n");
	read_tree();
	assert_string_equal(facts.cloud, "");	/* Hyper-V of one's own */
	dmi("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n");
	read_tree();
	assert_string_equal(facts.cloud, "azure");
}

static void
test_nothing_is_known_of_another_machine(void **state)
{
	struct host_record r = { 0 };

	(void)state;
	dmi("sys_vendor", "Dell Inc.\n");
	dmi("product_name", "PowerEdge R740\n");
	/* As arm64 has it. */
	tree_write(&tree, "proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n");
	read_tree();
	assert_string_equal(facts.cloud, "");
	assert_string_equal(facts.instance_type, "");
	assert_string_equal(facts.cpu_model, "");
	host_facts_record(&facts, &r);
	assert_null(r.cloud);
	assert_null(r.instance_type);
	assert_null(r.cpu_model);
	assert_null(r.lifecycle);
	assert_false(r.price_per_hour.known);
}

static void
test_no_firmware_tables(void **state)
{
	(void)state;
	read_tree();
	assert_string_equal(facts.cloud, "");
	assert_string_equal(facts.cpu_model, "");
}

static void
test_known_facts_override(void **state)
{
	struct host_facts configured = { .instance_type = "own", .price_per_hour = { 0.5, true } };
	struct host_record r = { 0 };

	(void)state;
	facts = (struct host_facts){ .cloud = "aws", .instance_type = "m5.large", .lifecycle = "spot" };
	host_facts_override(&facts, &configured);
	host_facts_record(&facts, &r);
	assert_string_equal(r.cloud, "aws");
	assert_string_equal(r.instance_type, "own");
	assert_string_equal(r.lifecycle, "spot");
	assert_true(r.price_per_hour.known && r.price_per_hour.value == 0.5);
}

static void
test_a_model_of_any_bytes_is_cut_and_escaped(void **state)
{
	char text[4096] = "model name : \xff";

	(void)state;
	memset(text + strlen(text), 'x', 3000);
	tree_write(&tree, "proc/cpuinfo", text);
	read_tree();
	assert_int_equal(strlen(facts.cpu_model), sizeof(facts.cpu_model) - 1);
	assert_int_equal(strncmp(facts.cpu_model, "\\xffxxx", 7), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_instance_type_of_ec2, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_clouds_whose_firmware_has_no_type, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_known_of_another_machine, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_firmware_tables, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_known_facts_override, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_model_of_any_bytes_is_cut_and_escaped, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
