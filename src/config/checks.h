/*
 * SPDX-License-Identifier: Apache-2.0
 * checks: whether a text is valid for its key, and whether the keys are consistent. Private to config/.
 */
#ifndef SLUICE_CONFIG_CHECKS_H
#define SLUICE_CONFIG_CHECKS_H

#include "config/config.h"

/* Each returns false with the fault and a hint in why. Texts are not empty, except for check_prefix(). */
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

/* Returns whether only this host can reach a listener that check_listener() accepted. */
bool listener_is_local(const char *text);

/* Checks what concerns several keys, and adds an error for each fault. */
void config_check_whole(const struct config *c, struct config_errors *errors);

#endif
