/*
 * SPDX-License-Identifier: Apache-2.0
 * config: the configuration of the agent: one YAML file and its drop-ins, all of which are checked before
 * any of it takes effect. A struct config is complete and is not changed once it is made: a key that no
 * file sets has its default.
 *
 * Every key, with type, unit, default and bounds, is a row of one table (keys.c); sluice.yaml(5) and the
 * shipped file are tested against it.
 */
#ifndef SLUICE_CONFIG_CONFIG_H
#define SLUICE_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "model/finding_limits.h"

#define CONFIG_PATH "/etc/sluice/sluice.yaml"
#define CONFIG_DROP_INS "conf.d"	/* folder beside the file; its *.yaml files apply in the order of their names */

enum {
	CONFIG_FILE_BYTES_MAX = 1 << 20,
	CONFIG_SECRET_BYTES_MAX = 64 << 10,
	CONFIG_SECRET_TIMEOUT_MS = 10000,
	CONFIG_KEYS_MAX = 96,
	CONFIG_SOCKETS_MAX = 4,
	CONFIG_METRICS_MAX = 4,
};

enum config_log_level {
	CONFIG_LOG_ERROR,
	CONFIG_LOG_WARNING,
	CONFIG_LOG_INFO,
	CONFIG_LOG_DEBUG,
};

enum config_log_format {
	CONFIG_LOG_AUTO,	/* text on a terminal, else JSON */
	CONFIG_LOG_TEXT,
	CONFIG_LOG_JSON,
};

enum config_argv_keep {
	CONFIG_ARGV_ALL,
	CONFIG_ARGV_FIRST,	/* argv[0] only */
	CONFIG_ARGV_HASH,	/* argv[0] and a hash of the others */
};

/* Where in the files a value is. line 0: in none, it is the default. */
struct config_location {
	unsigned file;		/* index into config.files */
	unsigned line;		/* from 1 */
	unsigned column;
};

struct config_strings {
	char **list;		/* owned, each of them too */
	size_t n;
};

/* The source of a secret; the configuration itself never holds one. */
struct config_secret {
	char *file;			/* NULL: no file */
	struct config_strings command;	/* n 0: no command; a secret has a file or a command, never both */
};

/* A property of librdkafka. */
struct config_pair {
	char *name;
	char *value;			/* NULL: it is a secret */
	struct config_secret secret;
	struct config_location location;
};

struct config_pairs {
	struct config_pair *list;
	size_t n;
};

/* Strings are owned by the config, and NULL where optional and not set. Paths are absolute. */
struct config {
	uint64_t interval_ms;
	char *lake;
	uint64_t lake_max_bytes;
	uint64_t lake_keep_ms;		/* 0: for ever */
	uint64_t disk_free_min_bytes;	/* 0: none */
	char *rules;
	char *cluster;			/* "" none */
	char *control;
	char *control_group;
	char *control_read_group;
	char *run_socket;		/* "off": none */
	struct config_strings metrics;	/* "HOST:PORT", "[V6]:PORT" or "unix:/PATH"; none, or "off" alone: no metrics */
	char *metrics_group;		/* of its unix sockets */
	bool metrics_public;
	char *user;			/* the account to become; "root" stays uid 0 */
	uint64_t drain_ms;
	char *dead_letters;
	uint64_t dead_letters_max_bytes;
	struct {
		unsigned level;		/* enum config_log_level */
		unsigned format;	/* enum config_log_format */
	} log;
	struct {
		uint64_t max_bytes;
		struct config_strings redact;	/* "builtin", and patterns that compile */
		unsigned keep;		/* enum config_argv_keep */
	} argv;
	struct config_strings trace_env;
	struct {
		char *cloud;
		char *region;
		char *instance_type;
		char *lifecycle;
		char *price_per_hour;	/* a decimal number; NULL: unknown */
		char *metadata;		/* URL of the instance's metadata service; "": it is not asked */
	} host;
	struct {
		uint64_t start_after_ms;	/* 0: START at exec */
	} records;
	struct finding_limits findings;
	struct {
		bool headers;		/* read the heads of files that name tasks */
	} engines;
	struct {
		struct config_strings sockets;	/* of runtimes that may be asked for names and images */
		struct {
			char *url;		/* of the kubelet; "": it is not asked */
			char *server_name;
			char *ca_file;
			char *token_file;
		} kubelet;
	} containers;
	struct {
		struct config_strings detail;
		uint64_t max_processes;	/* 0: by the host's CPUs and memory, as the next one */
		uint64_t ring_bytes;	/* a power of two */
		uint64_t watchdog_ms;
	} probes;
	struct {
		char *dir;
		uint64_t max_bytes;
		uint64_t memory_bytes;
		uint64_t sync_ms;	/* 0: after each batch */
	} spool;
	struct {
		bool is_set;		/* false: the file lake; the rest of this struct is then defaults */
		struct config_strings brokers;
		struct config_pairs properties;
		struct config_pairs secrets;
		struct {
			bool create;
			uint64_t partitions;
			uint64_t replication;
			uint64_t retention_ms;	/* 0: the broker's default */
			char *prefix;		/* "" none */
		} topics;
	} kafka;
	struct {
		bool is_set;
		struct config_strings urls;
		bool auto_register;
		char *user;
		struct config_secret password;
		struct config_secret token;
		char *ca_file;
		char *cert_file;
		char *key_file;
		uint64_t timeout_ms;
		uint64_t recheck_ms;
	} registry;
	struct {
		bool is_set;		/* false: `sluice update` is off */
		char *mirror;		/* NULL: none */
		char *key;
		struct config_strings restart;	/* n 0: by the service manager */
	} update;

	struct config_strings files;	/* all that were read: the file, then its drop-ins */
	bool has_main;			/* files[0] is the file itself, not a drop-in */
	struct config_location locations[CONFIG_KEYS_MAX];	/* of each key, in the order of the table */
};

struct config_error {
	char *file;
	unsigned line, column;	/* from 1; 0: of the file as a whole */
	char *message;		/* one line: the fault and a hint */
};

/* Zeroed: an empty list. Errors are sorted by file, line and column; beyond a hundred they are only counted. */
struct config_errors {
	struct config_error *list;
	size_t n;
	size_t not_shown;	/* number of errors that are not in the list */
};

/* Frees the errors and leaves the list empty. */
void config_errors_done(struct config_errors *e);
/* Writes "FILE:LINE:COL: MESSAGE", or "FILE: MESSAGE", cut at size bytes. Returns buf. */
char *config_error_text(const struct config_error *e, char *buf, size_t size);
/* Prints one error a line, and a last line with the number of those that are not shown. */
void config_errors_print(const struct config_errors *e, FILE *f);

/*
 * Reads path and its drop-ins. path NULL: CONFIG_PATH, where a missing file is no error: without it and
 * without drop-ins the result is the defaults. 0; -EINVAL with *ret untouched and all faults added to
 * errors; or -ENOMEM. The caller frees both.
 */
int config_load(const char *path, struct config **ret, struct config_errors *errors);
/* The same for the text of one file in memory, without drop-ins; errors give name as its path. */
int config_parse(const char *name, const char *text, size_t len, struct config **ret,
    struct config_errors *errors);
/* Makes a configuration of defaults, as without any file. 0 or -ENOMEM. */
int config_defaults(struct config **ret);
void config_free(struct config *c);	/* NULL is fine */

/* Writes where a key was set last, "FILE:LINE:COLUMN: NAME", or "NAME (default)", cut at size bytes. Returns buf. */
char *config_where(const struct config *c, const char *name, char *buf, size_t size);

/* Writes the effective values as YAML that loads to the same configuration; of secrets their sources. */
void config_dump(const struct config *c, FILE *f);

struct config_changes {
	struct {
		const char *key;	/* "spool.max"; static */
		bool needs_restart;
	} list[CONFIG_KEYS_MAX];
	size_t n;
	size_t n_restart;
};

/* Lists the keys whose values differ, whatever files set them. */
void config_differs(const struct config *old, const struct config *new, struct config_changes *ret);

/* Returns the full name of the i-th key, for tests and manual pages; NULL behind the last. */
const char *config_key_name(size_t i);
/* Writes "duration, 1s to 1h; default 10s; reload", cut at size bytes. Returns buf. */
char *config_key_facts(size_t i, char *buf, size_t size);

/* Returns whether a secret has a source. */
bool config_secret_is_set(const struct config_secret *s);
/*
 * Fetches a secret. A file must not be readable by others, and only root and owner (0: root alone) may be able to write
 * it; a command is run without a shell and may take ten seconds, and only root may be able to change it; see
 * base/safe_path.h. The call blocks, so it is for the start, before the loop. 0 with *ret a string for
 * config_secret_free(); or a negative errno with a sentence in error, which never holds the secret.
 */
int config_secret_read(const struct config_secret *s, uid_t owner, char **ret, char *error, size_t error_size);
void config_secret_free(char *secret);	/* wiped first; NULL is fine */

#endif
