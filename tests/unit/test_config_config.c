/* SPDX-License-Identifier: Apache-2.0 */
/* config: files and drop-ins combined into a configuration, the differences of two, and the dump. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "config/errors.h"
#include "configs.h"
#include "hostile.h"
#include "tree.h"

static int
setup(void **state)
{
	static struct tree tree;

	tree_init(&tree);
	*state = &tree;
	return 0;
}

static int
teardown(void **state)
{
	tree_done(*state);
	return 0;
}

static struct config *
load(const struct tree *t)
{
	struct config_errors errors = { 0 };
	struct config *c = NULL;
	int r = config_load(tree_path(t, "s.yaml"), &c, &errors);
	char *text = errors_text(&errors);

	if (r != 0)
		fail_msg("%s", text);
	free(text);
	return c;
}

/* Returns the errors of loading, without the path of the tree. The caller frees the text. */
static char *
load_errors(const struct tree *t)
{
	struct config_errors errors = { 0 };
	struct config *c = NULL;
	char *text;
	size_t cut = strlen(t->root) + 1;

	assert_int_equal(config_load(tree_path(t, "s.yaml"), &c, &errors), -EINVAL);
	assert_null(c);
	text = errors_text(&errors);
	for (size_t i = 0; text[i] != '\0';) {
		if (strncmp(text + i, t->root, cut - 1) == 0)
			memmove(text + i, text + i + cut, strlen(text + i + cut) + 1);
		else
			i++;
	}
	return text;
}

static void
load_is(const struct tree *t, const char *want)
{
	char *got = load_errors(t);

	assert_string_equal(got, want);
	free(got);
}

static void
defaults_are_those_of_the_contract(void **state)
{
	struct config *c = NULL;

	(void)state;
	assert_int_equal(config_defaults(&c), 0);
	assert_int_equal(c->interval_ms, 10000);
	assert_string_equal(c->lake, "/var/lib/sluice/lake");
	assert_string_equal(c->rules, "/etc/sluice/rules.d");
	assert_string_equal(c->control, "/run/sluice/control.sock");
	assert_string_equal(c->control_group, "sluice-admin");
	assert_string_equal(c->control_read_group, "sluice");
	assert_string_equal(c->run_socket, "/run/sluice/run.sock");
	assert_int_equal(c->metrics.n, 1);
	assert_string_equal(c->metrics.list[0], "127.0.0.1:9465");
	assert_string_equal(c->metrics_group, "sluice");
	assert_false(c->metrics_public);
	assert_string_equal(c->user, "sluice");
	assert_int_equal(c->drain_ms, 10000);
	assert_int_equal(c->log.level, CONFIG_LOG_INFO);
	assert_int_equal(c->log.format, CONFIG_LOG_AUTO);
	assert_int_equal(c->argv.max_bytes, 32768);
	assert_int_equal(c->argv.redact.n, 1);
	assert_string_equal(c->argv.redact.list[0], "builtin");
	assert_int_equal(c->argv.keep, CONFIG_ARGV_ALL);
	assert_int_equal(c->trace_env.n, 0);
	assert_int_equal(c->probes.detail.n, 0);
	assert_int_equal(c->records.start_after_ms, 1000);
	assert_int_equal(c->findings.stuck_ms, 300000);
	assert_int_equal(c->findings.stuck_in_io_ms, 60000);
	assert_int_equal(c->findings.idle_ms, 600000);
	assert_int_equal(c->findings.throttled_ms, 60000);
	assert_int_equal(c->findings.memory_pressure_ms, 60000);
	assert_int_equal(c->findings.disk_full_ms, 10000);
	assert_int_equal(c->probes.max_processes, 0);
	assert_int_equal(c->probes.ring_bytes, 0);
	assert_int_equal(c->probes.watchdog_ms, 600000);
	assert_string_equal(c->spool.dir, "/var/lib/sluice/spool");
	assert_int_equal(c->spool.max_bytes, 1 << 30);
	assert_int_equal(c->spool.memory_bytes, 16 << 20);
	assert_int_equal(c->spool.sync_ms, 100);
	assert_string_equal(c->dead_letters, "/var/lib/sluice/dead-letters");
	assert_int_equal(c->dead_letters_max_bytes, 100 << 20);
	assert_int_equal(c->lake_max_bytes, UINT64_C(20) << 30);
	assert_int_equal(c->lake_keep_ms, 0);
	assert_int_equal(c->disk_free_min_bytes, 1 << 30);
	assert_false(c->kafka.is_set);
	assert_true(c->kafka.topics.create);
	assert_int_equal(c->kafka.topics.partitions, 12);
	assert_int_equal(c->kafka.topics.replication, 3);
	assert_int_equal(c->kafka.topics.retention_ms, 0);
	assert_string_equal(c->kafka.topics.prefix, "");
	assert_false(c->registry.is_set);
	assert_true(c->registry.auto_register);
	assert_null(c->registry.user);
	assert_null(c->registry.token.file);
	assert_int_equal(c->registry.timeout_ms, 10000);
	assert_int_equal(c->registry.recheck_ms, 60000);
	config_free(c);
	config_free(NULL);
}

static const char everything[] =
    "interval: 5s\nlake: /l\nlake_max: 1GiB\nlake_keep: 30d\ndisk_free_min: 0\nrules: /r\ncontrol: /c\ncontrol_group: g\ncontrol_read_group: h\nrun_socket: off\nmetrics: [0.0.0.0:1, \"unix:/m\"]\nmetrics_group: i\n"
    "metrics_public: true\nuser: root\ndrain: 1.5s\nlog: {level: debug, format: json}\n"
    "argv: {max_bytes: 1KiB, redact: [builtin, 'a\\b'], keep: hash}\ntrace_env: [A, B]\nrecords: {start_after: 0}\n"
    "findings: {stuck: 1h, stuck_in_io: 2m, idle: 0, throttled: 3s, memory_pressure: 4s, disk_full: 5s}\nprobes: {max_processes: 5000, ring: 1MiB, watchdog: 1m}\n"
    "spool: {dir: /s, max: 2GiB, sync: 0, memory: 2MiB}\ndead_letters: /d\ndead_letters_max: 1GB\n"
    "kafka:\n  brokers: [\"a:1\", \"b:2\"]\n  properties:\n    linger.ms: 5\n"
    "    ssl.certificate.pem: \"a\\n\\\"b\\\\\"\n"
    "  secrets:\n    sasl.password: {file: /p}\n    ssl.key.password: {command: [/get, \"it all\", '']}\n"
    "  topics: {create: false, partitions: 3, replication: 1, retention: 7d, prefix: dev.}\n"
    "registry:\n  urls: [\"https://h\"]\n  auto_register: false\n  timeout: 1s\n  recheck: 2s\n  user: me\n"
    "  password: {command: [/pw]}\n  ca_file: /ca\n  cert_file: /ce\n  key_file: /ke\n";

static void
every_key_reaches_its_field(void **state)
{
	struct config *c = config_of(everything);

	(void)state;
	assert_int_equal(c->interval_ms, 5000);
	assert_string_equal(c->lake, "/l");
	assert_string_equal(c->rules, "/r");
	assert_string_equal(c->control, "/c");
	assert_string_equal(c->control_group, "g");
	assert_string_equal(c->control_read_group, "h");
	assert_string_equal(c->run_socket, "off");
	assert_int_equal(c->metrics.n, 2);
	assert_string_equal(c->metrics.list[0], "0.0.0.0:1");
	assert_string_equal(c->metrics.list[1], "unix:/m");
	assert_string_equal(c->metrics_group, "i");
	assert_true(c->metrics_public);
	assert_string_equal(c->user, "root");
	assert_int_equal(c->drain_ms, 1500);
	assert_int_equal(c->log.level, CONFIG_LOG_DEBUG);
	assert_int_equal(c->log.format, CONFIG_LOG_JSON);
	assert_int_equal(c->argv.max_bytes, 1024);
	assert_int_equal(c->argv.redact.n, 2);
	assert_string_equal(c->argv.redact.list[1], "a\\b");
	assert_int_equal(c->argv.keep, CONFIG_ARGV_HASH);
	assert_int_equal(c->trace_env.n, 2);
	assert_string_equal(c->trace_env.list[1], "B");
	assert_int_equal(c->records.start_after_ms, 0);
	assert_int_equal(c->findings.stuck_ms, 3600000);
	assert_int_equal(c->findings.stuck_in_io_ms, 120000);
	assert_int_equal(c->findings.idle_ms, 0);
	assert_int_equal(c->findings.throttled_ms, 3000);
	assert_int_equal(c->findings.memory_pressure_ms, 4000);
	assert_int_equal(c->findings.disk_full_ms, 5000);
	assert_int_equal(c->probes.max_processes, 5000);
	assert_int_equal(c->probes.ring_bytes, 1 << 20);
	assert_int_equal(c->probes.watchdog_ms, 60000);
	assert_string_equal(c->spool.dir, "/s");
	assert_int_equal(c->spool.max_bytes, UINT64_C(2) << 30);
	assert_int_equal(c->spool.sync_ms, 0);
	assert_int_equal(c->spool.memory_bytes, 2 << 20);
	assert_string_equal(c->dead_letters, "/d");
	assert_int_equal(c->dead_letters_max_bytes, 1000000000);
	assert_true(c->kafka.is_set);
	assert_int_equal(c->kafka.brokers.n, 2);
	assert_string_equal(c->kafka.brokers.list[0], "a:1");
	assert_int_equal(c->kafka.properties.n, 2);
	assert_string_equal(c->kafka.properties.list[0].name, "linger.ms");
	assert_string_equal(c->kafka.properties.list[0].value, "5");
	assert_int_equal(c->kafka.properties.list[0].location.line, 28);
	assert_string_equal(c->kafka.properties.list[1].value, "a\n\"b\\");
	assert_int_equal(c->kafka.secrets.n, 2);
	assert_string_equal(c->kafka.secrets.list[0].name, "sasl.password");
	assert_string_equal(c->kafka.secrets.list[0].secret.file, "/p");
	assert_int_equal(c->kafka.secrets.list[1].secret.command.n, 3);
	assert_string_equal(c->kafka.secrets.list[1].secret.command.list[1], "it all");
	assert_string_equal(c->kafka.secrets.list[1].secret.command.list[2], "");
	assert_false(c->kafka.topics.create);
	assert_int_equal(c->kafka.topics.partitions, 3);
	assert_int_equal(c->kafka.topics.replication, 1);
	assert_int_equal(c->kafka.topics.retention_ms, 604800000);
	assert_string_equal(c->kafka.topics.prefix, "dev.");
	assert_true(c->registry.is_set);
	assert_string_equal(c->registry.urls.list[0], "https://h");
	assert_false(c->registry.auto_register);
	assert_int_equal(c->registry.timeout_ms, 1000);
	assert_int_equal(c->registry.recheck_ms, 2000);
	assert_string_equal(c->registry.user, "me");
	assert_string_equal(c->registry.password.command.list[0], "/pw");
	assert_null(c->registry.password.file);
	assert_string_equal(c->registry.ca_file, "/ca");
	assert_string_equal(c->registry.cert_file, "/ce");
	assert_string_equal(c->registry.key_file, "/ke");
	config_free(c);
}

static void
later_files_win_key_by_key(void **state)
{
	const struct tree *t = *state;
	struct config *c;

	tree_write(t, "s.yaml", "interval: 1s\nlake: /main\nlog: {level: error, format: json}\n"
	    "trace_env: [A, B]\nkafka:\n  brokers: [\"a:1\", \"b:1\"]\n  properties: {linger.ms: 1, acks: all}\n"
	    "  secrets:\n    sasl.password: {file: /one}\n    ssl.key.password: {file: /two}\n"
	    "registry: {urls: [\"http://h:1\"], token: {file: /t}}\n");
	/* In the order of names; written in another. */
	tree_write(t, "conf.d/20-b.yaml", "interval: 3s\ntrace_env: [C]\n");
	tree_write(t, "conf.d/10-a.yaml", "interval: 2s\nlog: {level: debug}\nkafka:\n  brokers: [\"c:1\"]\n"
	    "  properties: {linger.ms: 2, client.id: x}\n  secrets:\n    sasl.password: {command: [/get]}\n");
	tree_write(t, "conf.d/30-empty.yaml", "# nothing\n");
	tree_write(t, "conf.d/.hidden.yaml", "nonsense: true\n");
	tree_write(t, "conf.d/10-a.yaml.orig", "nonsense: true\n");
	tree_write(t, "conf.d/README", "nonsense\n");
	c = load(t);
	assert_int_equal(c->files.n, 4);
	assert_true(c->has_main);
	assert_int_equal(c->interval_ms, 3000);
	assert_string_equal(c->lake, "/main");
	assert_int_equal(c->log.level, CONFIG_LOG_DEBUG);
	assert_int_equal(c->log.format, CONFIG_LOG_JSON);
	assert_int_equal(c->trace_env.n, 1);
	assert_string_equal(c->trace_env.list[0], "C");
	assert_int_equal(c->kafka.brokers.n, 1);
	assert_string_equal(c->kafka.brokers.list[0], "c:1");
	assert_int_equal(c->kafka.properties.n, 3);
	assert_string_equal(c->kafka.properties.list[0].name, "linger.ms");
	assert_string_equal(c->kafka.properties.list[0].value, "2");
	assert_string_equal(c->kafka.properties.list[1].value, "all");
	assert_string_equal(c->kafka.properties.list[2].name, "client.id");
	/* A secret is replaced as a whole. */
	assert_int_equal(c->kafka.secrets.n, 2);
	assert_null(c->kafka.secrets.list[0].secret.file);
	assert_string_equal(c->kafka.secrets.list[0].secret.command.list[0], "/get");
	assert_string_equal(c->kafka.secrets.list[1].secret.file, "/two");
	assert_string_equal(c->registry.token.file, "/t");
	config_free(c);
}

static void
errors_of_all_files_are_reported_in_their_order(void **state)
{
	const struct tree *t = *state;

	tree_write(t, "s.yaml", "interval: 1\nkafka: {brokers: [\"a:1\"]}\n");
	tree_write(t, "conf.d/a.yaml", "log: {level: info}}\n");
	tree_write(t, "conf.d/b.yaml", "interval: 5s\nlakee: /x\nregistry: {user: me}\n");
	tree_write(t, "conf.d/c.yml", "");
	load_is(t, "s.yaml:1:11: interval: '1' has no unit: add one of ms, s, m, h, d\n"
	    "conf.d/a.yaml:1:19: not YAML: did not find expected key, while parsing a block mapping (line 1)\n"
	    "conf.d/b.yaml:2:1: no key 'lakee': did you mean 'lake'?\n"
	    "conf.d/b.yaml:3:1: registry needs urls: add `urls: [\"http://HOST:PORT\"]`\n"
	    "conf.d/b.yaml:3:12: registry.user has no effect without registry.password: add `password: {file: "
	    "/PATH}`\n"
	    "conf.d: c.yml is ignored: its name must end in .yaml\n");
}

static void
a_file_that_cannot_be_read_is_reported(void **state)
{
	const struct tree *t = *state;
	char *got;

	load_is(t, "s.yaml: there is no such file: name the configuration with -c, or leave -c out for "
	    CONFIG_PATH "\n");
	tree_mkdir(t, "s.yaml");
	load_is(t, "s.yaml: not a regular file: replace it by one, or name another\n");
	assert_int_equal(rmdir(tree_path(t, "s.yaml")), 0);
	assert_int_equal(mkfifo(tree_path(t, "s.yaml"), 0600), 0);
	load_is(t, "s.yaml: not a regular file: replace it by one, or name another\n");	/* and does not wait for a writer */
	assert_int_equal(unlink(tree_path(t, "s.yaml")), 0);
	tree_write(t, "s.yaml", "");
	assert_int_equal(chmod(tree_path(t, "s.yaml"), 0666), 0);
	load_is(t, "s.yaml: is world-writable, so any user could become root: run `chmod go-w s.yaml`\n");
	assert_int_equal(chmod(tree_path(t, "s.yaml"), 0644), 0);
	tree_mkdir(t, "conf.d/x.yaml");
	load_is(t, "conf.d/x.yaml: not a regular file: replace it by one, or name another\n");
	assert_int_equal(rmdir(tree_path(t, "conf.d/x.yaml")), 0);
	assert_int_equal(symlink("nowhere", tree_path(t, "conf.d/x.yaml")), 0);
	load_is(t, "conf.d/x.yaml: cannot be read: No such file or directory: check the path, and where a symbolic link "
	    "leads\n");
	assert_int_equal(unlink(tree_path(t, "conf.d/x.yaml")), 0);
	assert_int_equal(truncate(tree_path(t, "s.yaml"), CONFIG_FILE_BYTES_MAX + 1), 0);
	load_is(t, "s.yaml: larger than 1 MiB: that is no configuration\n");
	assert_int_equal(truncate(tree_path(t, "s.yaml"), 0), 0);
	assert_int_equal(rmdir(tree_path(t, "conf.d")), 0);
	tree_write(t, "conf.d", "");
	got = load_errors(t);
	assert_string_equal(got, "conf.d: cannot be read: Not a directory: check the path, and where a symbolic link leads\n");
	free(got);
}

static void
a_relative_path_finds_its_drop_ins(void **state)
{
	const struct tree *t = *state;
	struct config_errors errors = { 0 };
	struct config *c = NULL;
	char here[4096];

	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(t->root), 0);
	tree_write(t, "s.yaml", "");
	tree_write(t, "conf.d/a.yaml", "interval: 7s\n");
	assert_int_equal(config_load("s.yaml", &c, &errors), 0);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(c->interval_ms, 7000);
	assert_string_equal(c->files.list[1], "conf.d/a.yaml");
	config_free(c);
}

static void
differs_by(const char *old, const char *new, const char *want)
{
	struct config *a = config_of(old), *b = config_of(new);
	struct config_changes changes;
	char got[1024] = "";
	size_t restart = 0;

	config_differs(a, b, &changes);
	for (size_t i = 0; i < changes.n; i++) {
		sprintf(got + strlen(got), "%s%s%s", i > 0 ? " " : "", changes.list[i].key,
		    changes.list[i].needs_restart ? "!" : "");
		restart += changes.list[i].needs_restart;
	}
	assert_string_equal(got, want);
	assert_int_equal(changes.n_restart, restart);
	config_free(a);
	config_free(b);
}

#define REGISTRY "registry: {urls: [\"https://h\"]}\n"

static void
what_differs_is_named_with_what_it_takes(void **state)
{
	(void)state;
	differs_by("", "", "");
	differs_by(everything, everything, "");
	differs_by("", "interval: 10000ms\nargv: {redact: [builtin]}\n", "");	/* the same in other words */
	differs_by("interval: 5s\n", "# a line more\ninterval: 5s\n", "");
	differs_by("", "interval: 5s\n", "interval");
	differs_by("", "log: {level: debug}\nspool: {max: 2GiB}\nmetrics: off\n",
	    "metrics! log.level spool.max!");
	differs_by("trace_env: [A, B]\n", "trace_env: [B, A]\n", "trace_env");
	differs_by("kafka: {brokers: [a], properties: {acks: all, linger.ms: 1}}\n" REGISTRY,
	    "kafka: {brokers: [a], properties: {linger.ms: 1, acks: all}}\n" REGISTRY, "");
	differs_by("kafka: {brokers: [a], properties: {acks: all}}\n" REGISTRY,
	    "kafka: {brokers: [a], properties: {acks: 1}}\n" REGISTRY, "kafka.properties!");
	differs_by("kafka: {brokers: [a], secrets: {sasl.password: {file: /a}}}\n" REGISTRY,
	    "kafka: {brokers: [a], secrets: {sasl.password: {command: [/a]}}}\n" REGISTRY, "kafka.secrets!");
	differs_by("", "kafka: {brokers: [a]}\n" REGISTRY,
	    "kafka! kafka.brokers! registry! registry.urls!");
	differs_by(everything, "", "interval lake! lake_max! lake_keep! disk_free_min! rules control! control_group! control_read_group! run_socket! metrics! metrics_group! metrics_public! user! "
	    "drain log.level log.format argv.max_bytes argv.redact argv.keep trace_env records.start_after findings.stuck findings.stuck_in_io findings.idle "
	    "findings.throttled findings.memory_pressure findings.disk_full "
	    "probes.max_processes! probes.ring! "
	    "probes.watchdog! spool.dir! spool.max! spool.sync! spool.memory! dead_letters! dead_letters_max! "
	    "kafka! kafka.brokers! kafka.properties! kafka.secrets! kafka.topics.create! "
	    "kafka.topics.partitions! kafka.topics.replication! kafka.topics.retention! kafka.topics.prefix! "
	    "registry! registry.urls! registry.auto_register! registry.timeout! registry.recheck! registry.user! "
	    "registry.password! registry.ca_file! registry.cert_file! registry.key_file!");
}

static char *
dump_of(const struct config *c)
{
	size_t size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	config_dump(c, f);
	fclose(f);
	return text;
}

static void
a_dump_loads_to_the_same(void **state)
{
	static const char *const texts[] = { "", everything,
		"kafka: {brokers: [a]}\nregistry: {urls: [\"https://h\"], token: {file: \"/a \\\" # b\"}}\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct config *c = config_of(texts[i]), *again;
		struct config_changes changes;
		char *text = dump_of(c);

		again = config_of(text);
		config_differs(c, again, &changes);
		assert_int_equal(changes.n, 0);
		config_free(again);
		config_free(c);
		free(text);
	}
}

static void
a_key_is_accepted_by_its_former_name(void **state)
{
	const struct tree *t = *state;
	struct config *c;

	tree_write(t, "s.yaml", "probes: {deadman: 1m}\n");
	c = load(t);
	assert_int_equal(c->probes.watchdog_ms, 60000);
	config_free(c);
	tree_write(t, "s.yaml", "probes: {watchdog: 20s,\n  deadman: 5m}\n");
	load_is(t, "s.yaml:2:3: 'deadman' is the same key as the one in line 1: remove one\n");
}

static void
a_dump_tells_where_each_value_is_from(void **state)
{
	struct config *c = config_of("\nlog:\n  level: debug\n");
	char *text = dump_of(c);

	(void)state;
	assert_non_null(strstr(text, "interval: 10s  # default\n"));
	assert_non_null(strstr(text, "log:\n  level: debug  # f:3\n  format: auto  # default\n"));
	assert_null(strstr(text, "kafka"));
	config_free(c);
	free(text);
}

static void
an_error_is_safe(const struct hostile_name *h, void *arg)
{
	struct config_errors errors = { 0 };
	char buf[SHOWN_SIZE], *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	(void)arg;
	config_error_add(&errors, h->name, 1, 2, "no key '%s'", h->name);
	config_errors_print(&errors, f);
	fclose(f);
	hostile_is_safe(h, out, true);
	assert_ptr_equal(strchr(out, '\n'), out + strlen(out) - 1);
	hostile_is_safe(h, shown(h->name, buf), false);
	assert_true(strlen(buf) < SHOWN_SIZE);
	config_errors_done(&errors);
	free(out);
}

static void
no_hostile_name_acts_on_the_terminal(void **state)
{
	(void)state;
	hostile_each(an_error_is_safe, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_those_of_the_contract),
		cmocka_unit_test(every_key_reaches_its_field),
		cmocka_unit_test_setup_teardown(later_files_win_key_by_key, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_of_all_files_are_reported_in_their_order, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_read_is_reported, setup, teardown),
		cmocka_unit_test_setup_teardown(a_relative_path_finds_its_drop_ins, setup, teardown),
		cmocka_unit_test(what_differs_is_named_with_what_it_takes),
		cmocka_unit_test(a_dump_loads_to_the_same),
		cmocka_unit_test_setup_teardown(a_key_is_accepted_by_its_former_name, setup, teardown),
		cmocka_unit_test(a_dump_tells_where_each_value_is_from),
		cmocka_unit_test(no_hostile_name_acts_on_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
