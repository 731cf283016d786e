/* SPDX-License-Identifier: Apache-2.0 */
/* Any line at the control socket is a request with a name and an object, or is refused with a message. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "control/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char command[CONTROL_COMMAND_SIZE], again[CONTROL_COMMAND_SIZE], error[256] = "";
	json_t *args = NULL, *same = NULL, *request;
	char *copy, *text;

	if (size > CONTROL_LINE_MAX)
		return 0;
	copy = malloc(size > 0 ? size : 1);	/* so that ASan detects reads past its end */
	memcpy(copy, data, size);
	memset(command, 'X', sizeof(command));
	if (control_parse(copy, size, command, &args, error, sizeof(error)) < 0) {
		/* The message is printed in JSON and on terminals. */
		if (args != NULL || error[0] == '\0' || !text_is_plain(error, strlen(error)))
			abort();
		free(copy);
		return 0;
	}
	if (memchr(command, '\0', sizeof(command)) == NULL || command[0] == '\0' || !json_is_object(args))
		abort();
	if (strspn(command, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(command))
		abort();
	/* A parsed request can be printed and parsed again, with the same result. */
	request = json_pack("{ss sO}", "command", command, "args", args);
	text = json_dumps(request, JSON_COMPACT);
	if (text == NULL || control_parse(text, strlen(text), again, &same, error, sizeof(error)) < 0 ||
	    strcmp(command, again) != 0 || !json_equal(args, same))
		abort();
	free(text);
	free(copy);
	json_decref(request);
	json_decref(args);
	json_decref(same);
	return 0;
}
