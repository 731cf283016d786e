/*
 * SPDX-License-Identifier: Apache-2.0
 * finding_draft: a finding under construction: its message, its evidence and the programs that it names.
 */
#ifndef SLUICE_CORRELATE_FINDING_DRAFT_H
#define SLUICE_CORRELATE_FINDING_DRAFT_H

#include <stddef.h>
#include <stdint.h>

#include "correlate/findings.h"
#include "correlate/state.h"
#include "model/record.h"

struct run;
struct task;

#define DRAFT_MESSAGE_SIZE 1024
#define DRAFT_EVIDENCE_MAX 16

struct finding_draft {
	struct finding_record r;
	struct named_number evidence[DRAFT_EVIDENCE_MAX];
	char message[DRAFT_MESSAGE_SIZE];
	size_t len;			/* of message */
	char program_id[PROGRAM_ID_SIZE];
	char cause_id[FAILURE_CHAIN_MAX][PROGRAM_ID_SIZE];
	const char *causes[FAILURE_CHAIN_MAX];
};

/* Begins one of a program that ended, with its name in the message. */
void draft_begin(struct correlator *c, struct finding_draft *d, const struct process *p, const struct program_end *end);
/* Fills the head of one of run r, and of its task t unless that is NULL, at that time. */
void draft_head(const struct correlator *c, struct finding_draft *d, const struct run *r, const struct task *t,
    uint64_t at_ns);
/* Sets the program to which it happened. tool: its name, which must outlive d; "" unknown. */
void draft_program(const struct correlator *c, struct finding_draft *d, const struct program_key *program,
    const char *tool);
/* Adds a number; name is static. One too many is left out, as below. */
void draft_number(struct finding_draft *d, const char *name, double value);
void draft_bytes(struct finding_draft *d, const char *name, struct opt_u64 bytes);
/* Adds a wait(2) status under the name of a code or of a signal. */
void draft_status(struct finding_draft *d, const char *code, const char *signal, int32_t status);
void draft_cause(const struct correlator *c, struct finding_draft *d, const struct program_key *program);
/* Each adds to the message, which is cut where it becomes too long. */
__attribute__((format(printf, 2, 3))) void draft_append(struct finding_draft *d, const char *format, ...);
void draft_append_name(struct finding_draft *d, const char *name);	/* a long one is cut */
void draft_append_program(struct finding_draft *d, const char *tool, uint32_t pid);
void draft_append_memory(struct finding_draft *d, struct opt_u64 peak, struct opt_u64 limit);
void draft_append_status(struct finding_draft *d, int32_t status);
/* Adds the name of t, and its sample. */
void draft_append_task(struct finding_draft *d, const struct task *t);
void draft_emit(struct correlator *c, struct finding_draft *d);

#endif
