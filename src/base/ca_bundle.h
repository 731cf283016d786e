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

#endif
