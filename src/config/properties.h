/*
 * SPDX-License-Identifier: Apache-2.0
 * properties: checks of librdkafka properties by the library itself, before anything connects. Private to
 * config/.
 */
#ifndef SLUICE_CONFIG_PROPERTIES_H
#define SLUICE_CONFIG_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether a property may be in kafka.properties. If not, why has the fault and a hint, never a secret value. */
bool property_check(const char *name, const char *value, char *why, size_t why_size);
/* Returns whether a property of this name may be in kafka.secrets. If not, why has the fault and a hint. */
bool property_check_name(const char *name, char *why, size_t why_size);

#endif
