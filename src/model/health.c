/*
 * SPDX-License-Identifier: Apache-2.0
 * health: the words for states of the agent's parts.
 */
#include "model/health.h"

const char *
output_state_name(enum output_state state)
{
	static const char *const names[] = { [OUTPUT_STARTING] = "starting", [OUTPUT_UP] = "up",
		[OUTPUT_DOWN] = "down" };

	return names[state];
}

const char *
registry_state_name(enum registry_state state)
{
	static const char *const names[] = { [REGISTRY_UNUSED] = "none", [REGISTRY_IDLE] = "idle",
		[REGISTRY_OK] = "ok", [REGISTRY_ASKING] = "asking", [REGISTRY_AWAY] = "away",
		[REGISTRY_REFUSED] = "refused" };

	return names[state];
}

const char *
signal_state_name(enum signal_state state)
{
	static const char *const names[] = { [SIGNAL_OK] = "ok", [SIGNAL_FALLBACK] = "fallback",
		[SIGNAL_MISSING] = "missing", [SIGNAL_DETACHED] = "detached" };

	return names[state];
}
