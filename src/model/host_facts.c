/*
 * SPDX-License-Identifier: Apache-2.0
 * host_facts: facts of several sources, and those of a record.
 */
#include "model/host_facts.h"

#include <stdio.h>

static void
override(char *text, size_t size, const char *by)
{
	if (by[0] != '\0')
		snprintf(text, size, "%s", by);
}

void
host_facts_override(struct host_facts *f, const struct host_facts *by)
{
	override(f->cpu_model, sizeof(f->cpu_model), by->cpu_model);
	override(f->cloud, sizeof(f->cloud), by->cloud);
	override(f->region, sizeof(f->region), by->region);
	override(f->instance_type, sizeof(f->instance_type), by->instance_type);
	override(f->lifecycle, sizeof(f->lifecycle), by->lifecycle);
	if (by->price_per_hour.known)
		f->price_per_hour = by->price_per_hour;
}

static const char *
known(const char *text)
{
	return text[0] != '\0' ? text : NULL;
}

void
host_facts_record(const struct host_facts *f, struct host_record *r)
{
	r->cpu_model = known(f->cpu_model);
	r->cloud = known(f->cloud);
	r->region = known(f->region);
	r->instance_type = known(f->instance_type);
	r->lifecycle = known(f->lifecycle);
	r->price_per_hour = f->price_per_hour;
}
