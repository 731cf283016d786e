/*
 * SPDX-License-Identifier: Apache-2.0
 * properties: what librdkafka itself says of its properties, before anything connects. Private to
 * config/.
 */
#ifndef SLUICE_CONFIG_PROPERTIES_H
#define SLUICE_CONFIG_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>

/* Would a value of this name be a secret? */
bool property_is_secret(const char *name);
/* May it stand in kafka.properties? False with the mend in why; value is never shown for a secret. */
bool property_check(const char *name, const char *value, char *why, size_t why_size);
/* May it stand in kafka.secrets? */
bool property_check_name(const char *name, char *why, size_t why_size);

#endif
