/*
 * SPDX-License-Identifier: Apache-2.0
 * engine_rules: the rules `engines` as plain data: how to recognize a program that drives a workflow, is a
 * task of one, or only serves the engine, and where the names are found. All of it is the ruleset's.
 *
 * A rule gathers named pieces of text (options, words, what its patterns find) and makes the fields
 * of the verdict out of them by templates.
 */
#ifndef SLUICE_MODEL_ENGINE_RULES_H
#define SLUICE_MODEL_ENGINE_RULES_H

#include "model/ruleset.h"
#include "model/template.h"

/* Named pieces that one rule may have, beside those of the program itself (cwd, exe ...). */
#define ENGINE_PIECES_MAX 32

/* The name of a piece, and the words by which it is found among the arguments. */
struct engine_words {
	const char *name;
	const char *const *words;	/* NULL-terminated */
	const struct engine_words *next;
};

enum engine_text {
	ENGINE_TEXT_CWD,
	ENGINE_TEXT_ARGV,		/* each argument by itself; the first in which the pattern is found counts */
	ENGINE_TEXT_COMMAND,		/* all of argv, joined by spaces */
	ENGINE_TEXT_EXE,
	ENGINE_TEXT_PARENT_COMMAND,
	ENGINE_TEXT_PARENT_CWD,
	ENGINE_TEXT_PIECE,		/* a piece that was gathered before */
};

/* A pattern and the text that it searches; the first of the list that is found counts. */
struct engine_look {
	enum engine_text text;
	const char *piece;		/* ENGINE_TEXT_PIECE */
	const struct pattern *pattern;
	const struct engine_look *next;
};

/* Patterns whose named groups become pieces. */
struct engine_find {
	const struct engine_look *look;
	bool is_optional;		/* else the rule does not hold without it */
	const struct engine_find *next;
};

/* Templates of a field; the first that can be filled counts. */
struct engine_templates {
	const struct template *template;
	const struct engine_templates *next;
};

/* The fields of a verdict; paths are last. */
enum engine_field {
	ENGINE_FIELD_PIPELINE,
	ENGINE_FIELD_RUN_NAME,
	ENGINE_FIELD_RUN_KEY,
	ENGINE_FIELD_TASK_ID,
	ENGINE_FIELD_TASK,
	ENGINE_FIELD_SAMPLE,
	ENGINE_FIELD_ATTEMPT,
	ENGINE_FIELD_ROOT,
	ENGINE_FIELD_WORK_DIR,
	ENGINE_FIELD_HEADER,
	ENGINE_FIELDS,
};

struct engine_rule {
	struct rule_location location;
	const struct condition *when;		/* NULL: holds */
	uint64_t names_bits;			/* rule_name_bit() of each name of which it may hold; 0: of any */
	/* Pieces that are the value of one of these options: -w X, --directory=X. */
	const struct engine_words *options;
	const char *const *values;		/* further options that take the next word; NULL: none */
	/*
	 * Pieces that are the first word which is neither an option nor an option's value, behind one of
	 * these: a whole argument, or its base name.
	 */
	const struct engine_words *after;
	const struct engine_find *finds;
	/* NULL: the piece of the field's name, if there is one */
	const struct engine_templates *fields[ENGINE_FIELDS];
	bool has_tasks;				/* driver: what it forks are tasks */
	bool joins, names;			/* of a task; never both */
	bool counts_attempts;
	const char *source;
	double confidence;
	const struct engine_rule *next;
};

struct engine_header {
	const struct pattern *pattern;		/* has a group task */
	const struct engine_header *next;
};

/* An engine of one file; several may have the same name. */
struct engine {
	const char *name;
	bool is_weak;
	const struct engine_rule *drivers, *tasks, *overhead;
	const struct engine_header *headers;
	const struct condition *titles;		/* programs that write over their arguments; NULL: none */
	bool keeps_jobs;			/* in files that identify/jobs.h reads */
	const struct engine *next;
};

struct engine_rules {
	const struct engine *first;		/* linked list, in the order in which they count */
};

/* Returns the name of a field in files: "run_key". */
static inline const char *
engine_field_name(enum engine_field field)
{
	static const char *const names[ENGINE_FIELDS] = {
		"pipeline", "run_name", "run_key", "task_id", "task", "sample", "attempt", "root", "work_dir",
		"header",
	};

	return names[field];
}

#endif
