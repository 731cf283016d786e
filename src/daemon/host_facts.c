/*
 * SPDX-License-Identifier: Apache-2.0
 * host_facts: what the configuration and the instance's metadata service tell of this host.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/state.h"
#include "runtime/instance.h"

static void
set(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text != NULL ? text : "");
}

void
daemon_configured_facts(const struct config *c, struct host_facts *ret)
{
	*ret = (struct host_facts){ 0 };
	set(ret->cloud, sizeof(ret->cloud), c->host.cloud);
	set(ret->region, sizeof(ret->region), c->host.region);
	set(ret->instance_type, sizeof(ret->instance_type), c->host.instance_type);
	set(ret->lifecycle, sizeof(ret->lifecycle), c->host.lifecycle);
	if (c->host.price_per_hour != NULL)
		ret->price_per_hour = (struct opt_double){ strtod(c->host.price_per_hour, NULL), true };
}

static void
on_instance(const struct host_facts *facts, const char *error, void *arg)
{
	struct daemon *d = arg;

	if (facts == NULL) {
		log_fields(LOG_LEVEL_WARNING, "host.metadata", LOG_FIELDS(LOG_TEXT("url", d->config->host.metadata)),
		    "the metadata service is not asked again: %s; the host's type and region are those of the configuration "
		    "and the firmware", error);
		return;
	}
	agent_learn_facts(d->agent, facts);
	log_fields(LOG_LEVEL_INFO, "host.metadata", LOG_FIELDS(LOG_TEXT("instance_type", facts->instance_type),
	    LOG_TEXT("region", facts->region), LOG_TEXT("lifecycle", facts->lifecycle)), "the metadata service answered");
}

int
daemon_ask_instance(struct daemon *d)
{
	int r;

	if (d->config->host.metadata[0] == '\0')
		return 0;
	r = instance_ask(d->base, d->config->host.metadata, on_instance, d, &d->instance);
	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "host.metadata", "cannot ask the metadata service: %s", strerror(-r));
	return r;
}
