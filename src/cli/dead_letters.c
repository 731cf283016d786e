/*
 * SPDX-License-Identifier: Apache-2.0
 * sluice dead-letters: lists and prints the records that an output refused permanently, and replays them.
 *
 * Bytes that cannot be read are reported on stderr with their offset; all others are processed all the same.
 */
#include "cli/dead_letters.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "base/spell.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/print_json.h"
#include "codec/avro_json.h"
#include "codec/encode.h"
#include "config/config.h"
#include "deliver/dead_letter_files.h"
#include "lake/files.h"
#include "spool/format.h"

#define SCHEMA_MAX (1 << 20)
#define CELL_SIZE 1024

static const char help[] =
    "Usage: sluice dead-letters list|show|replay [OPTION…]\n"
    "Records that the output refused permanently are in files of the folder that key `dead_letters` of the\n"
    "configuration names, each with the reason.\n\n"
    "  list    print how many there are of each topic and reason, and from when\n"
    "  show    print them as lines of JSON: topic, reason, detail, time and the record\n"
    "  replay  hand them to the running agent for delivery once more; to be called when the cause is removed\n\n"
    "  -t, --topic TOPIC    only this topic: program, usage, task, run, host, finding, agent\n"
    "      --reason REASON  only this reason, as `list` prints it\n"
    "  -c, --config FILE    the agent's configuration (default: /etc/sluice/sluice.yaml)\n"
    "      --folder DIR     list, show: another folder, to which files were moved\n"
    "      --raw            show: print times as integers: microseconds since 1970\n"
    "      --dry-run        replay: print what would be replayed, and change nothing\n"
    "      --socket PATH    replay: the agent's control socket (default: the one that the configuration names)\n"
    "      --json           list, replay: print the result as one JSON object\n"
    "  -h, --help           print this help\n\n"
    "A replayed record keeps its host_id, agent_id, seq and time. Its letter is removed once the record is on the disk\n"
    "in the agent's spool, in batches, so that an interrupted replay can be repeated. Exit status: 0 done; 1 something\n"
    "could not be read or replayed; 2 wrong usage or configuration.\n";

/* Calls cb for each letter of a file that is wanted, until it returns false. */
static bool
walk_file(struct dead_letters_command *c, const char *name, bool (*cb)(const struct dead_letter *letter, void *arg),
    void *arg)
{
	int fd = openat(c->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), r;
	struct dead_letter_reader *reader;
	struct dead_letter letter;
	struct ocf_error error;
	bool goes_on = true;

	if (fd < 0) {
		if (errno != ENOENT)	/* a replay has removed it */
			dead_letters_report_damage(c, name, 0, strerror(errno));
		return true;
	}
	r = dead_letter_reader_open(fd, &reader, &error);
	if (r < 0) {
		dead_letters_report_damage(c, name, error.offset, error.text);
		close(fd);
		return true;
	}
	while (goes_on) {
		r = dead_letter_reader_next(reader, &letter, &error);
		if (r == 1) {
			if (dead_letter_is_wanted(&letter, &c->filter))
				goes_on = cb(&letter, arg);
			continue;
		}
		if (r < 0)
			dead_letters_report_damage(c, name, error.offset, error.text);
		if (r != -EBADMSG)
			break;
	}
	dead_letter_reader_close(reader);
	close(fd);
	return goes_on;
}

/* Calls cb for each letter that is wanted, in the order of the files, until it returns false. */
static void
walk(struct dead_letters_command *c, bool (*cb)(const struct dead_letter *letter, void *arg), void *arg)
{
	struct dead_letter_names names = { 0 };
	int r = dead_letter_names_read(c->dir_fd, &names);

	if (r < 0) {
		spell_line(stderr, DEAD_LETTERS_WHO ": %s: %s\n", c->folder, strerror(-r));
		c->status = EXIT_NO;
	}
	for (size_t i = 0; i < names.n; i++)
		if (!walk_file(c, names.list[i], cb, arg))
			break;
	dead_letter_names_done(&names);
}

/* The letters of one topic and reason. */
struct group {
	char *topic;			/* owned, as is reason */
	char *reason;
	uint64_t letters;
	uint64_t bytes;			/* of the records */
	int64_t first_us;		/* when letters were given up */
	int64_t last_us;
};

struct groups {
	struct group *list;		/* owned */
	size_t n;
	struct group all;
	bool is_full;			/* out of memory */
};

static void
add(struct group *g, const struct dead_letter *letter)
{
	if (g->letters == 0 || letter->time_us < g->first_us)
		g->first_us = letter->time_us;
	if (g->letters == 0 || letter->time_us > g->last_us)
		g->last_us = letter->time_us;
	g->letters++;
	g->bytes += letter->len;
}

static bool
on_group(const struct dead_letter *letter, void *arg)
{
	struct groups *groups = arg;
	struct group *grown, *g;

	for (size_t i = 0; i < groups->n; i++) {
		g = &groups->list[i];
		if (strcmp(g->topic, letter->topic) == 0 && strcmp(g->reason, letter->reason) == 0) {
			add(g, letter);
			add(&groups->all, letter);
			return true;
		}
	}
	grown = realloc(groups->list, (groups->n + 1) * sizeof(*grown));
	if (grown == NULL) {
		groups->is_full = true;
		return false;
	}
	groups->list = grown;
	g = &grown[groups->n];
	*g = (struct group){ .topic = strdup(letter->topic), .reason = strdup(letter->reason) };
	groups->n++;
	groups->is_full = g->topic == NULL || g->reason == NULL;
	add(g, letter);
	add(&groups->all, letter);
	return !groups->is_full;
}

static void
groups_done(struct groups *groups)
{
	for (size_t i = 0; i < groups->n; i++) {
		free(groups->list[i].topic);
		free(groups->list[i].reason);
	}
	free(groups->list);
}

/* Writes a time as RFC 3339 in UTC. */
static const char *
time_text(int64_t us, char text[40])
{
	time_t seconds = (time_t)(us / 1000000 - (us % 1000000 < 0));
	struct tm tm;

	if (gmtime_r(&seconds, &tm) == NULL || strftime(text, 40, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		snprintf(text, 40, "%" PRId64 " us", us);
	return text;
}

/* Returns a string of any bytes; those that are not UTF-8 become \xNN. */
static json_t *
string_json(const char *text)
{
	size_t len = strlen(text), size = TEXT_ESCAPE_MAX(len);
	char *escaped = malloc(size);
	json_t *string = NULL;

	if (escaped != NULL) {
		text_escape(text, len, escaped, size, NULL);
		string = json_string(escaped);
	}
	free(escaped);
	return string;
}

static json_t *
time_json(int64_t us, bool is_raw)
{
	char text[40];

	return is_raw ? json_integer(us) : json_string(time_text(us, text));
}

static void
print_row(const struct group *g, const char *topic, const char *reason)
{
	char bytes[FORMAT_SIZE], letters[FORMAT_SIZE], first[40], last[40];
	char clean_topic[CELL_SIZE], clean_reason[CELL_SIZE];

	spell_text(topic, clean_topic, sizeof(clean_topic));
	spell_text(reason, clean_reason, sizeof(clean_reason));
	printf("%-16s %-28s %10s %10s  %s  %s\n", clean_topic, clean_reason,
	    format_count(g->letters, letters, sizeof(letters)), format_bytes(g->bytes, bytes, sizeof(bytes)),
	    time_text(g->first_us, first), time_text(g->last_us, last));
}

static void
print_groups(const struct dead_letters_command *c, const struct groups *groups)
{
	if (groups->n == 0) {
		spell_line(stdout, "no dead letters%s in %s\n", c->filter.topic != NULL || c->filter.reason != NULL ? " match" : "",
		    c->folder);
		return;
	}
	printf("%-16s %-28s %10s %10s  %-20s  %s\n", "TOPIC", "REASON", "LETTERS", "SIZE", "FIRST", "LAST");
	for (size_t i = 0; i < groups->n; i++)
		print_row(&groups->list[i], groups->list[i].topic, groups->list[i].reason);
	print_row(&groups->all, "all", "");
	spell_line(stdout, "in %s%s\n", c->folder, c->is_dry ? "; with --dry-run nothing is replayed" : "");
}

static void
print_groups_json(const struct dead_letters_command *c, const struct groups *groups)
{
	json_t *list = json_array(), *root;

	for (size_t i = 0; i < groups->n; i++) {
		const struct group *g = &groups->list[i];

		json_array_append_new(list, json_pack("{so so sI sI so so}", "topic", string_json(g->topic), "reason",
		    string_json(g->reason), "letters", (json_int_t)g->letters, "bytes", (json_int_t)g->bytes, "first",
		    time_json(g->first_us, c->is_raw), "last", time_json(g->last_us, c->is_raw)));
	}
	root = json_pack("{so sI sI sI so}", "folder", string_json(c->folder), "letters", (json_int_t)groups->all.letters,
	    "bytes", (json_int_t)groups->all.bytes, "damaged", (json_int_t)c->damaged, "groups", list);
	print_json(stdout, root);
	json_decref(root);
}

static int
list(struct dead_letters_command *c)
{
	struct groups groups = { 0 };

	if (c->dir_fd >= 0)
		walk(c, on_group, &groups);
	if (groups.is_full) {
		fputs(DEAD_LETTERS_WHO ": out of memory\n", stderr);
		c->status = EXIT_NO;
	} else if (c->as_json) {
		print_groups_json(c, &groups);
	} else {
		print_groups(c, &groups);
	}
	groups_done(&groups);
	return c->status;
}

/* Schemas that letters had, by fingerprint. */
struct known_schema {
	uint64_t fingerprint;
	struct avro_json *json;		/* owned; NULL: unknown */
};

struct show {
	struct dead_letters_command *command;
	struct known_schema *schemas;	/* owned */
	size_t n_schemas;
	struct bytes record;		/* as JSON */
};

/* Parses a schema that is built in, or that the spool has in its folder. NULL: neither. */
static struct avro_json *
find_schema(const struct dead_letters_command *c, uint64_t fingerprint)
{
	struct file_text file = { 0 };
	struct avro_json *json = NULL;
	char path[4096], why[160];
	const char *text = NULL;
	size_t len = 0;

	for (int t = 0; t < TOPIC_COUNT && text == NULL; t++) {
		text = encode_schema((enum topic)t, &len);
		if (text != NULL && spool_fingerprint(text, len) != fingerprint)
			text = NULL;
	}
	if (text == NULL) {
		snprintf(path, sizeof(path), "%s/schemas/%016" PRIx64 ".avsc", c->config->spool.dir, fingerprint);
		if (file_read(AT_FDCWD, path, &file, SCHEMA_MAX) == 0 &&
		    spool_fingerprint(file.text, file.len) == fingerprint) {
			text = file.text;
			len = file.len;
		}
	}
	if (text != NULL && avro_json_open(text, len, &json, why, sizeof(why)) < 0)
		json = NULL;
	file_text_done(&file);
	return json;
}

static const struct avro_json *
schema(struct show *s, uint64_t fingerprint)
{
	struct known_schema *grown;

	for (size_t i = 0; i < s->n_schemas; i++)
		if (s->schemas[i].fingerprint == fingerprint)
			return s->schemas[i].json;
	grown = realloc(s->schemas, (s->n_schemas + 1) * sizeof(*grown));
	if (grown == NULL)
		return NULL;
	s->schemas = grown;
	grown[s->n_schemas] = (struct known_schema){ fingerprint, find_schema(s->command, fingerprint) };
	return grown[s->n_schemas++].json;
}

/* Decodes the record of a letter into s->record. NULL, or why it cannot be decoded. */
static const char *
decode(struct show *s, const struct dead_letter *letter, char error[256])
{
	const struct avro_json *json = schema(s, letter->schema);
	struct avro_json_input in = { .data = letter->data, .len = letter->len, .is_raw = s->command->is_raw };

	s->record.len = 0;
	if (json == NULL) {
		snprintf(error, 256, "its schema is neither built in nor in %.128s/schemas", s->command->config->spool.dir);
		return error;
	}
	if (avro_json_line(json, &in, &s->record) == 0 && in.at == letter->len)
		return NULL;
	snprintf(error, 256, "its record is damaged at byte %zu: %s", in.at,
	    in.error[0] != '\0' ? in.error : "bytes follow it");
	return error;
}

static bool
on_show(const struct dead_letter *letter, void *arg)
{
	struct show *s = arg;
	bool is_raw = s->command->is_raw;
	char error[256], fingerprint[17];
	const char *problem = decode(s, letter, error);
	json_t *head;
	char *text;

	snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, letter->schema);
	head = json_pack("{so so so so so sI so ss sI}", "topic", string_json(letter->topic), "reason",
	    string_json(letter->reason), "detail", string_json(letter->detail), "time", time_json(letter->time_us, is_raw),
	    "record_time", time_json(letter->record_time_us, is_raw), "seq", (json_int_t)letter->seq, "key",
	    string_json(letter->key), "schema", fingerprint, "bytes", (json_int_t)letter->len);
	if (problem != NULL) {
		json_object_set_new(head, "problem", json_string(problem));
		s->command->status = EXIT_NO;
	}
	text = json_dumps(head, JSON_COMPACT);
	json_decref(head);
	if (text == NULL) {
		fputs(DEAD_LETTERS_WHO ": out of memory\n", stderr);
		s->command->status = EXIT_NO;
		return false;
	}
	/* The record is JSON already, of one line: it becomes the last member. */
	text[strlen(text) - 1] = '\0';
	spell_json_to(stdout, text);
	printf(",\"record\":%.*s}\n", problem != NULL ? 4 : (int)s->record.len - 1,
	    problem != NULL ? "null" : (const char *)s->record.data);
	free(text);
	return !ferror(stdout);
}

static int
show(struct dead_letters_command *c)
{
	struct show s = { .command = c };

	if (c->dir_fd >= 0)
		walk(c, on_show, &s);
	for (size_t i = 0; i < s.n_schemas; i++)
		avro_json_close(s.schemas[i].json);
	free(s.schemas);
	bytes_done(&s.record);
	return c->status;
}

/* Parses the options. Returns -1 to continue, else the exit status. */
static int
parse_options(struct dead_letters_command *c, int argc, char **argv, const char **config)
{
	enum { REASON = 256, FOLDER, RAW, DRY, SOCKET, JSON };
	static const struct option options[] = {
		{ "topic", required_argument, NULL, 't' },
		{ "reason", required_argument, NULL, REASON },
		{ "config", required_argument, NULL, 'c' },
		{ "folder", required_argument, NULL, FOLDER },
		{ "raw", no_argument, NULL, RAW },
		{ "dry-run", no_argument, NULL, DRY },
		{ "socket", required_argument, NULL, SOCKET },
		{ "json", no_argument, NULL, JSON },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	enum topic topic;
	int o;

	optind = 0;
	while ((o = getopt_long(argc, argv, "t:c:h", options, NULL)) >= 0) {
		switch (o) {
		case 't':
			topic = lake_topic_find(optarg);
			if (topic == TOPIC_COUNT) {
				spell_line(stderr, DEAD_LETTERS_WHO ": no topic \"%s\"; the topics are program, usage, task, run, host, "
				    "finding and agent\n", optarg);
				return EXIT_USAGE;
			}
			c->filter.topic = topic_name(topic);
			break;
		case REASON:
			c->filter.reason = optarg;
			break;
		case 'c':
			*config = optarg;
			break;
		case FOLDER:
			c->folder = optarg;
			break;
		case RAW:
			c->is_raw = true;
			break;
		case DRY:
			c->is_dry = true;
			break;
		case SOCKET:
			c->socket = optarg;
			break;
		case JSON:
			c->as_json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		default:
			fputs(DEAD_LETTERS_WHO ": see `sluice dead-letters --help`\n", stderr);
			return EXIT_USAGE;
		}
	}
	return -1;
}

static int
run(struct dead_letters_command *c, const char *verb)
{
	if (c->folder == NULL)
		c->folder = c->config->dead_letters;
	c->dir_fd = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* The agent makes the folder; without one there are no letters. */
	if (c->dir_fd < 0 && errno != ENOENT) {
		spell_line(stderr, DEAD_LETTERS_WHO ": %s: %s%s\n", c->folder, strerror(errno), errno == EACCES ?
		    ": only root and the agent's account may read dead letters; use sudo" : "");
		return EXIT_NO;
	}
	signal(SIGPIPE, SIG_IGN);	/* a closed pipe is a normal end */
	if (strcmp(verb, "show") == 0)
		return show(c);
	if (strcmp(verb, "list") == 0 || c->is_dry)
		return list(c);
	return dead_letters_replay(c);
}

int
cli_dead_letters(int argc, char **argv)
{
	struct dead_letters_command c = { .dir_fd = -1 };
	struct config_errors errors = { 0 };
	struct config *config = NULL;
	const char *path = NULL, *verb;
	int status = parse_options(&c, argc, argv, &path);

	if (status >= 0)
		return status;
	verb = optind < argc ? argv[optind] : "";
	if ((strcmp(verb, "list") != 0 && strcmp(verb, "show") != 0 && strcmp(verb, "replay") != 0) || optind + 1 != argc) {
		spell_line(stderr, DEAD_LETTERS_WHO ": %s; see `sluice dead-letters --help`\n",
		    optind == argc ? "a word is missing: list, show or replay" : "takes one of list, show and replay, and options");
		return EXIT_USAGE;
	}
	if (strcmp(verb, "replay") == 0 && c.folder != NULL) {
		fputs(DEAD_LETTERS_WHO ": replay takes the letters of the agent's own folder: move the files there, and leave "
		    "out --folder\n", stderr);
		return EXIT_USAGE;
	}
	if (config_load(path, &config, &errors) < 0) {
		config_errors_print(&errors, stderr);
		status = EXIT_USAGE;
	} else {
		c.config = config;
		status = run(&c, verb);
	}
	if (c.dir_fd >= 0)
		close(c.dir_fd);
	config_free(config);
	config_errors_done(&errors);
	if (fflush(stdout) != 0 && errno != EPIPE) {
		spell_line(stderr, DEAD_LETTERS_WHO ": cannot write: %s\n", strerror(errno));
		status = EXIT_NO;
	}
	return status;
}
