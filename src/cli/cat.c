/*
 * SPDX-License-Identifier: Apache-2.0
 * cat: the subcommand that prints a lake's records as lines of JSON.
 *
 * Bytes that cannot be read are reported on stderr with their offset, and the rest is printed all the same.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/spell.h"
#include "codec/avro_json.h"
#include "codec/ocf.h"
#include "lake/folders.h"
#include "lake/files.h"

#define DEFAULT_LAKE "./sluice-lake"

enum {
	POLL_MS = 200,
	SCAN_SHARE = 20,		/* the search for new files takes at most 1/20 of the time */
	OUT_BYTES = 64 * 1024,
	EMPTY_RECORDS_MAX = 65536,	/* records of no bytes that one block may claim */
};

/* A file since it was discovered; --follow keeps those open that are still being written. */
struct source {
	char			*name;		/* owned; the key: kept when the file is closed */
	char			*path;		/* owned; as last seen */
	int			 fd;		/* -1 once it was read to its end */
	struct ocf_reader	*reader;	/* owned; NULL until the header was read */
	struct avro_json	*json;		/* owned; with reader */
	bool			 is_named;
	enum topic		 topic;
	UT_hash_handle		 hh;
};

struct cat {
	bool		 topics[TOPIC_COUNT];	/* topics to print; all if has_topics is false */
	bool		 has_topics;
	bool		 is_raw;
	bool		 is_following;
	int		 status;
	bool		 is_closed;	/* the reader of stdout has closed it, or a write failed */
	struct bytes	 out;
	struct source	*sources;	/* owned */
};

static volatile sig_atomic_t stop;

static void
on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

static void
usage(FILE *to)
{
	fprintf(to,
	    "Usage: sluice cat [--topic TOPIC]... [--follow] [--raw] [LAKE|FILE...]\n"
	    "\n"
	    "Prints records as JSON lines, with the field names of the schemas.\n"
	    "LAKE is a folder (default: " DEFAULT_LAKE ").\n"
	    "\n"
	    "  -t, --topic TOPIC  only this topic: program, usage, task, run, host, finding, agent\n"
	    "  -f, --follow       continue with new records as they arrive, until interrupted\n"
	    "      --raw          print times as integers: microseconds since 1970\n"
	    "  -h, --help         print this help\n"
	    "\n"
	    "Exit status: 0; 1 something could not be read; 2 wrong usage or no such path.\n");
}

/* Writes the buffered output. */
static void
flush_out(struct cat *c)
{
	size_t done = 0;

	while (done < c->out.len && !c->is_closed) {
		ssize_t n = write(STDOUT_FILENO, c->out.data + done, c->out.len - done);

		if (n < 0 && errno == EINTR && !stop)
			continue;
		if (n < 0) {
			c->is_closed = true;
			if (errno != EPIPE && errno != EINTR) {
				spell_line(stderr, "sluice cat: cannot write: %s\n", strerror(errno));
				c->status = 1;
			}
			break;
		}
		done += (size_t)n;
	}
	c->out.len = 0;
}

static void
report(struct cat *c, const char *path, uint64_t offset, const char *text)
{
	flush_out(c);	/* first, so that the message follows what was readable */
	spell_line(stderr, "sluice cat: %s: byte %" PRIu64 ": %s\n", path, offset, text);
	c->status = 1;
}

static void
on_path_error(const char *path, int error, void *arg)
{
	struct cat *c = arg;

	/* All existed at the start; a lake that is removed in the meantime may be created again. */
	if (c->is_following && error == ENOENT)
		return;
	flush_out(c);
	spell_line(stderr, "sluice cat: %s: %s\n", path, strerror(error));
	c->status = 1;
}

static void
print_block(struct cat *c, struct source *s, const struct ocf_block *block)
{
	struct avro_json_input in = { .data = block->data, .len = block->len, .is_raw = c->is_raw };
	char text[256];

	for (uint64_t i = 0; i < block->count && !c->is_closed; i++) {
		size_t before = in.at;
		int r = avro_json_line(s->json, &in, &c->out);

		if (r == 0 && in.at == before && i >= EMPTY_RECORDS_MAX) {
			r = -EBADMSG;
			snprintf(in.error, sizeof(in.error), "too many records without any bytes");
		}
		if (r < 0) {
			snprintf(text, sizeof(text), "record %" PRIu64 " of %" PRIu64
			    " in the block that starts here: %s", i + 1, block->count, in.error);
			report(c, s->path, block->offset, text);
			return;
		}
		if (c->out.len >= OUT_BYTES)
			flush_out(c);
	}
	if (in.at != block->len && !c->is_closed) {
		snprintf(text, sizeof(text), "the block that starts here has %zu bytes after its "
		    "last record", block->len - in.at);
		report(c, s->path, block->offset, text);
	}
}

static void
close_source(struct source *s)
{
	ocf_reader_close(s->reader);
	avro_json_close(s->json);
	if (s->fd >= 0)
		close(s->fd);
	s->reader = NULL;
	s->json = NULL;
	s->fd = -1;
}

/* Returns true if the topics to print include that of the file, by its folder or else by its schema. */
static bool
is_wanted(const struct cat *c, const struct source *s)
{
	char name[64] = "sluice.";
	enum topic topic = s->topic;

	if (!c->has_topics)
		return true;
	if (topic == TOPIC_COUNT && s->json != NULL) {
		const char *full = avro_json_name(s->json);

		if (strncmp(full, name, 7) != 0 || strlen(full) >= sizeof(name))
			return false;
		for (size_t i = 7; full[i] != '\0'; i++)
			name[i] = (char)(full[i] | 0x20);	/* "sluice.Program": the record's name */
		topic = lake_topic_find(name);
	}
	return topic != TOPIC_COUNT && c->topics[topic];
}

/* Reads the header. Returns true if the file can be read on. */
static bool
start_source(struct cat *c, struct source *s, bool is_live)
{
	struct ocf_error err;
	char text[200], reason[160];
	const char *schema;
	size_t len;
	int r;

	r = ocf_reader_open(s->fd, &s->reader, &err);
	if (r == -ENODATA && is_live)
		return false;	/* its header is still being written */
	if (r < 0) {
		report(c, s->path, err.offset, err.text);
		close_source(s);
		return false;
	}
	schema = ocf_reader_schema(s->reader, &len);
	r = avro_json_open(schema, len, &s->json, reason, sizeof(reason));
	if (r < 0) {
		snprintf(text, sizeof(text), "bad schema in the header: %s", reason);
		report(c, s->path, 0, text);
	}
	if (r < 0 || !is_wanted(c, s)) {
		close_source(s);
		return false;
	}
	return true;
}

/* Prints records that were not printed yet, and closes the file when it cannot grow any more. */
static void
read_source(struct cat *c, struct source *s)
{
	/* Checked before reading, so that the data of a writer that has ended by now is read completely. */
	bool is_live = lake_is_open(s->fd) || (c->is_following && s->is_named && !stop);
	bool is_over = !is_live || !c->is_following;
	struct ocf_error err;
	struct ocf_block block;
	int r;

	if (s->reader == NULL && !start_source(c, s, is_live))
		return;
	while (!c->is_closed && !stop) {
		r = ocf_reader_next(s->reader, &block, &err);
		if (r == 1) {
			print_block(c, s, &block);
			continue;
		}
		if (r == 0 || (r == -ENODATA && is_live))
			break;
		report(c, s->path, err.offset, err.text);
		if (r != -EBADMSG || ocf_reader_resync(s->reader) != 1) {
			is_over = true;
			break;
		}
	}
	if (is_over)
		close_source(s);
}

static struct source *
add_source(struct cat *c, const struct lake_file *f)
{
	struct source *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->fd = -1;
	s->topic = f->topic;
	s->is_named = f->is_named;
	s->name = strdup(f->name);
	s->path = strdup(f->path);
	if (s->name == NULL || s->path == NULL) {
		free(s->name);
		free(s->path);
		free(s);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, c->sources, s->name, strlen(s->name), s);
	return s;
}

/* Opens the file, under its later name if it was closed after it was seen. */
static void
open_source(struct cat *c, struct source *s)
{
	s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (s->fd < 0 && errno == ENOENT && strcmp(s->path, s->name) != 0) {
		char *path = strdup(s->name);

		if (path != NULL) {
			free(s->path);
			s->path = path;
		}
		s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (s->fd < 0 && errno == ENOENT)
			return;		/* empty, so its writer removed it */
	}
	if (s->fd < 0)
		on_path_error(s->path, errno, c);
}

/* Looks for files and reads new records in them, in order. Returns 0 or -ENOMEM. */
static int
read_all(struct cat *c, char **paths, size_t n, size_t *ret_files)
{
	struct lake_files files = { 0 };
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = lake_files_add(&files, paths[i], on_path_error, c);
	lake_files_sort(&files);
	*ret_files = files.n;
	for (size_t i = 0; i < files.n && r == 0 && !c->is_closed && !stop; i++) {
		struct lake_file *f = &files.files[i];
		struct source *s;

		HASH_FIND_STR(c->sources, f->name, s);
		if (s == NULL) {
			s = add_source(c, f);
			if (s == NULL) {
				r = -ENOMEM;
				break;
			}
			if (s->topic != TOPIC_COUNT && !is_wanted(c, s))
				continue;
			open_source(c, s);
		}
		if (s->fd >= 0)
			read_source(c, s);
	}
	lake_files_done(&files);
	flush_out(c);
	return r;
}

/* Reads new records of files that are known. */
static void
read_known(struct cat *c)
{
	struct source *s, *next;

	HASH_ITER(hh, c->sources, s, next) {
		if (s->fd >= 0 && !c->is_closed)
			read_source(c, s);
	}
	flush_out(c);
}

static int
follow(struct cat *c, char **paths, size_t n)
{
	int64_t scan_at = 0;
	size_t files;
	int r = 0;

	while (r == 0 && !stop && !c->is_closed) {
		struct pollfd closed = { .fd = STDOUT_FILENO };
		int64_t start = clock_ms(CLOCK_MONOTONIC);

		if (start >= scan_at) {
			r = read_all(c, paths, n, &files);
			scan_at = start + POLL_MS + SCAN_SHARE * (clock_ms(CLOCK_MONOTONIC) - start);
		} else {
			read_known(c);
		}
		/* This also detects, without a write, that the reader has closed stdout. */
		if (poll(&closed, 1, POLL_MS) > 0 && closed.revents & (POLLERR | POLLHUP | POLLNVAL))
			break;
	}
	return r;
}

/* Returns false unless every path exists; checked before anything is printed. */
static bool
check_paths(char **paths, size_t n, bool is_default)
{
	for (size_t i = 0; i < n; i++) {
		struct stat st;

		if (stat(paths[i], &st) == 0)
			continue;
		if (is_default && errno == ENOENT)
			fprintf(stderr, "sluice cat: there is no lake " DEFAULT_LAKE " here: name one, "
			    "or make one with: sluice run -- COMMAND\n");
		else
			spell_line(stderr, "sluice cat: %s: %s: name a lake's folder, or Avro files of one\n", paths[i],
			    strerror(errno));
		return false;
	}
	return true;
}

static void
catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	stop = 0;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static void
done(struct cat *c)
{
	struct source *s, *next;

	HASH_ITER(hh, c->sources, s, next) {
		HASH_DEL(c->sources, s);
		close_source(s);
		free(s->name);
		free(s->path);
		free(s);
	}
	bytes_done(&c->out);
}

/* Reads the options. Returns -1 to continue, else the exit status. */
static int
parse_options(struct cat *c, int argc, char **argv)
{
	enum { OPTION_RAW = 256 };
	static const struct option options[] = {
		{ "topic", required_argument, NULL, 't' },
		{ "follow", no_argument, NULL, 'f' },
		{ "raw", no_argument, NULL, OPTION_RAW },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	enum topic topic;
	int o;

	optind = 0;	/* resets getopt, which may have been used before */
	while ((o = getopt_long(argc, argv, "t:fh", options, NULL)) >= 0) {
		switch (o) {
		case 't':
			topic = lake_topic_find(optarg);
			if (topic == TOPIC_COUNT) {
				spell_line(stderr, "sluice cat: no topic \"%s\"; the topics are program, usage, "
				    "task, run, host, finding and agent\n", optarg);
				return 2;
			}
			c->topics[topic] = c->has_topics = true;
			break;
		case 'f':
			c->is_following = true;
			break;
		case OPTION_RAW:
			c->is_raw = true;
			break;
		case 'h':
			usage(stdout);
			fflush(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	return -1;
}

int
cli_cat(int argc, char **argv)
{
	static char default_lake[] = DEFAULT_LAKE;
	char *default_paths[] = { default_lake };
	struct cat c = { 0 };
	size_t n, files = 0;
	char **paths;
	int r;

	r = parse_options(&c, argc, argv);
	if (r >= 0)
		return r;
	paths = optind < argc ? argv + optind : default_paths;
	n = optind < argc ? (size_t)(argc - optind) : 1;
	if (!check_paths(paths, n, optind >= argc))
		return 2;
	signal(SIGPIPE, SIG_IGN);	/* a closed pipe is a normal end */
	if (c.is_following) {
		catch_signals();
		r = follow(&c, paths, n);
	} else {
		stop = 0;
		r = read_all(&c, paths, n, &files);
		if (r == 0 && files == 0 && c.status == 0)
			spell_line(stderr, "sluice cat: %s: no Avro files yet\n", paths[0]);
	}
	if (r < 0) {
		spell_line(stderr, "sluice cat: %s\n", strerror(-r));
		c.status = 1;
	}
	done(&c);
	return c.status;
}
