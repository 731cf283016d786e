/* SPDX-License-Identifier: Apache-2.0 */
/* Any answer of a metadata service is the names of a type and a region, or changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "runtime/instance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == 0 || len == size)
		abort();
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct host_facts facts = { .instance_type = "before", .lifecycle = "spot" };
	char *text = malloc(size);	/* an allocation of its own, so that ASan detects reads past its end */

	if (size > 0)
		memcpy(text, data, size);
	if (!instance_parse(text, size, &facts)) {
		if (strcmp(facts.instance_type, "before") != 0 || strcmp(facts.lifecycle, "spot") != 0 ||
		    facts.region[0] != '\0' || facts.cloud[0] != '\0')
			abort();
	} else {
		check(facts.instance_type, sizeof(facts.instance_type));
		check(facts.region, sizeof(facts.region));
		if (strcmp(facts.cloud, "aws") != 0 || facts.lifecycle[0] != '\0' || facts.price_per_hour.known)
			abort();
	}
	free(text);
	return 0;
}
