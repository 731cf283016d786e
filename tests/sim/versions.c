/*
 * SPDX-License-Identifier: Apache-2.0
 * versions: two versions of the agent, of which the newer one has another topic in place of one. Each is to leave alone
 * what it does not know, and to deliver it once it runs again.
 */
#include "sim.h"

#define OTHER_NAME "sluice.other"

unsigned
sim_topic(enum topic topic)
{
	return world->is_newer && topic == TOPIC_AGENT ? TOPIC_COUNT : (unsigned)topic;
}

SIM_WRAP(const char *, topic_name, enum topic topic)
{
	return sim_topic(topic) == TOPIC_COUNT ? OTHER_NAME : __real_topic_name(topic);
}

const char *
sim_topic_name(unsigned topic)
{
	return topic == TOPIC_COUNT ? OTHER_NAME : __real_topic_name((enum topic)topic);
}
