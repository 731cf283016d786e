/*
 * SPDX-License-Identifier: Apache-2.0
 * findings_kit: a correlator of a whole host, programs that fail, and its Finding records.
 */
#ifndef SLUICE_TESTS_UNIT_FINDINGS_KIT_H
#define SLUICE_TESTS_UNIT_FINDINGS_KIT_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/findings.h"
#include "correlate/state.h"
#include "one_world.h"

#define JOB "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'"

static inline struct being
child(const struct being *parent, const char *command)
{
	struct being b = forks(&w, parent);

	execs(&w, &b, command);
	return b;
}

/* ms later. */
static inline void
exits_after(struct being *b, uint64_t ms, int code)
{
	works(&w, b, ms);
	exits(&w, b, code);
}

static inline void
is_killed(const struct being *b, int signal, bool is_oom)
{
	struct state_event s = state_of(&w, b, STATE_EXIT, signal);

	s.oom_killed = is_oom;
	correlator_state(w.c, &s);
}

static inline void
settles(void)
{
	w.now += 1100 * MS;
	correlator_tick(w.c, w.now, false);
}

static inline size_t
findings(void)
{
	return record_count(&w, TOPIC_FINDING, -1);
}

static inline const struct kept_record *
finding(size_t i)
{
	const struct kept_record *n = record_at(&w, TOPIC_FINDING, -1, i);

	assert_non_null(n);
	return n;
}

static inline double
evidence(const struct kept_record *n, const char *name)
{
	for (size_t i = 0; i < n->finding.n_evidence; i++) {
		if (strcmp(n->finding.evidence[i].name, name) == 0)
			return n->finding.evidence[i].value;
	}
	return -1;
}

static inline const char *
id_of(const struct being *b)
{
	return record_of(&w, b, b->key.index, PHASE_END)->program_id;
}

/* Its program, then those above it, nearest first; the list ends with a NULL. */
static inline void
assert_chain(const struct kept_record *n, const struct being *cause, ...)
{
	const struct being *b;
	size_t i = 0;
	va_list above;

	assert_string_equal(n->program_id, id_of(cause));
	va_start(above, cause);
	while ((b = va_arg(above, const struct being *)) != NULL) {
		assert_true(i < n->finding.n_causes);
		assert_string_equal(n->finding.causes[i++], id_of(b));
	}
	va_end(above);
	assert_int_equal(n->finding.n_causes, i);
}

#endif
