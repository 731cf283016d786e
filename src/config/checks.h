/*
 * SPDX-License-Identifier: Apache-2.0
 * checks: whether a text is right for its key, and whether keys go together. Private to config/.
 */
#ifndef SLUICE_CONFIG_CHECKS_H
#define SLUICE_CONFIG_CHECKS_H

#include "config/config.h"

/* Each: false with what is wrong and the mend in why. Texts are never empty but for check_prefix. */
bool check_path(const char *text, char *why, size_t why_size);
bool check_socket_path(const char *text, char *why, size_t why_size);
bool check_account(const char *text, char *why, size_t why_size);
bool check_listener(const char *text, char *why, size_t why_size);
bool check_redaction(const char *text, char *why, size_t why_size);
bool check_variable(const char *text, char *why, size_t why_size);
bool check_detail(const char *text, char *why, size_t why_size);
bool check_broker(const char *text, char *why, size_t why_size);
bool check_prefix(const char *text, char *why, size_t why_size);
bool check_url(const char *text, char *why, size_t why_size);
bool check_login(const char *text, char *why, size_t why_size);

/* Of a listener that check_listener() took: does only this host reach it? */
bool listener_is_local(const char *text);

/* What no key can tell alone. */
void config_check_whole(const struct config *c, struct config_errors *errors);

#endif
