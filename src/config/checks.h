/*
 * SPDX-License-Identifier: Apache-2.0
 * checks: whether a text is valid for its key, and whether the keys are consistent. Private to config/.
 */
#ifndef SLUICE_CONFIG_CHECKS_H
#define SLUICE_CONFIG_CHECKS_H

#include "config/config.h"

/*
 * Each returns true if text is a valid value; otherwise false, with the fault and a hint in why. Texts are not empty,
 * except for check_prefix(), check_kubelet_url() and check_metadata_url(). None opens a file or looks a name up.
 */

/* An absolute path, short enough for a name to follow it. */
bool check_path(const char *text, char *why, size_t why_size);
/* An absolute path that fits into the address of a unix socket. */
bool check_socket_path(const char *text, char *why, size_t why_size);
/* The same, or off. */
bool check_socket_or_off(const char *text, char *why, size_t why_size);
/* The name of an account or group: its length and characters. */
bool check_account(const char *text, char *why, size_t why_size);
/* HOST:PORT with a numeric address or localhost, unix:/PATH, or off. */
bool check_listener(const char *text, char *why, size_t why_size);
/* "builtin", or a regular expression that compiles. */
bool check_redaction(const char *text, char *why, size_t why_size);
/* The exact name of an environment variable. */
bool check_variable(const char *text, char *why, size_t why_size);
/* The name of an optional signal, perhaps with a '-' before it. */
bool check_detail(const char *text, char *why, size_t why_size);
/* One broker, HOST or HOST:PORT, perhaps with a protocol before it, and without credentials. */
bool check_broker(const char *text, char *why, size_t why_size);
/* The beginning of topic names, which may be empty. */
bool check_prefix(const char *text, char *why, size_t why_size);
/* An http:// or https:// base URL without credentials, query or fragment. */
bool check_url(const char *text, char *why, size_t why_size);
/* https://HOST:PORT without a path, or http:// where HOST is local. May be empty. */
bool check_kubelet_url(const char *text, char *why, size_t why_size);
/* The name of a host, as in a certificate. */
bool check_server_name(const char *text, char *why, size_t why_size);
/* The same, or an absolute path. */
bool check_mirror(const char *text, char *why, size_t why_size);
/* The name of a cloud, a region, an instance type or a lifecycle. */
bool check_fact(const char *text, char *why, size_t why_size);
/* An amount of money: digits, perhaps with a point and more digits. */
bool check_price(const char *text, char *why, size_t why_size);
/* The http:// URL of a host, perhaps with a port. May be empty. */
bool check_metadata_url(const char *text, char *why, size_t why_size);
/* A user name for basic authentication: it has no colon. */
bool check_login(const char *text, char *why, size_t why_size);

/* Returns whether only this host can reach a listener that check_listener() accepted. */
bool listener_is_local(const char *text);

/* Checks what concerns several keys, and adds an error for each fault. */
void config_check_whole(const struct config *c, struct config_errors *errors);

#endif
