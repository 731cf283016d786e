/*
 * SPDX-License-Identifier: Apache-2.0
 * ca_bundle: where this system keeps the certificates that it trusts.
 *
 * A TLS library knows the path of the system that it was built on; ours may run on another.
 */
#ifndef SLUICE_BASE_CA_BUNDLE_H
#define SLUICE_BASE_CA_BUNDLE_H

/* The usual files (PEM), best first; ends with NULL. */
extern const char *const ca_bundle_paths[];

/* The first of paths that can be read, or NULL. */
const char *ca_bundle_find(const char *const *paths);

#endif
