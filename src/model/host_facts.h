/*
 * SPDX-License-Identifier: Apache-2.0
 * host_facts: what a host is, rather than what it does: the model of its CPUs, and which machine of which cloud it is.
 */
#ifndef SLUICE_MODEL_HOST_FACTS_H
#define SLUICE_MODEL_HOST_FACTS_H

#include "model/record.h"

/* "": unknown. The names of clouds are those of OpenTelemetry's cloud.provider, where it has one. */
struct host_facts {
	char cpu_model[128];
	char cloud[32];
	char region[64];
	char instance_type[64];
	char lifecycle[32];		/* on-demand, spot ... */
	struct opt_double price_per_hour;
};

/* Replaces in f what is known in by. */
void host_facts_override(struct host_facts *f, const struct host_facts *by);

/* Sets the members of a record that are facts. Its strings are f's. */
void host_facts_record(const struct host_facts *f, struct host_record *r);

#endif
