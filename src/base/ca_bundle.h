/*
 * SPDX-License-Identifier: Apache-2.0
 * ca_bundle: where this system keeps the certificates that it trusts.
 *
 * A TLS library has the path of the system that it was built on compiled in; the agent may run on another.
 */
#ifndef SLUICE_BASE_CA_BUNDLE_H
#define SLUICE_BASE_CA_BUNDLE_H

/* The usual files (PEM), best first; NULL-terminated. */
extern const char *const ca_bundle_paths[];

/* Returns the first of paths that can be read, or NULL. */
const char *ca_bundle_find(const char *const *paths);
/*
 * OpenSSL's own default becomes the first of paths, by SSL_CERT_FILE, unless the environment has that. For libraries
 * that take no path from us. Before any thread.
 */
void ca_bundle_set_default(const char *const *paths);

#endif
