/*
 * SPDX-License-Identifier: Apache-2.0
 * instance: what the metadata service of EC2 (IMDSv2) knows of this machine: instance type, region and lifecycle.
 *
 * The service is asked until it has answered: INSTANCE_AGAIN_MS after a failure again, INSTANCE_TRIES times in all.
 * Nothing but the identity document and the lifecycle is requested: no credentials, no user data. The token lives for a
 * minute, and is wiped.
 */
#ifndef SLUICE_RUNTIME_INSTANCE_H
#define SLUICE_RUNTIME_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/host_facts.h"

struct event_base;
struct instance;

enum {
	INSTANCE_TIMEOUT_MS = 2000,	/* of each request */
	INSTANCE_AGAIN_MS = 30000,
	INSTANCE_TRIES = 5,
	INSTANCE_ANSWER_MAX = 64 << 10,
};

/* Called once on the loop: facts is NULL if the service was given up; error then has a sentence, and is else "". */
typedef void (*instance_cb)(const struct host_facts *facts, const char *error, void *arg);

/*
 * Asks the service at this base URL, which is copied: http://169.254.169.254, or that of a test. 0, -EINVAL: the URL is
 * too long, or -ENOMEM.
 */
int instance_ask(struct event_base *base, const char *url, instance_cb cb, void *arg, struct instance **ret);
void instance_close(struct instance *i);	/* NULL is fine; cb is not called any more */

/*
 * Parses an instance identity document (JSON), of len bytes: cloud, region and instance_type. Returns false, with *ret
 * untouched, if it is none.
 */
bool instance_parse(const char *document, size_t len, struct host_facts *ret);

#endif
