/*
 * SPDX-License-Identifier: Apache-2.0
 * ca_bundle: where this system keeps the certificates that it trusts.
 */
#include "base/ca_bundle.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const ca_bundle_paths[] = {
	"/etc/ssl/certs/ca-certificates.crt",			/* Debian, Ubuntu, Arch, Gentoo */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",	/* RHEL, Fedora */
	"/etc/pki/tls/certs/ca-bundle.crt",			/* older releases of these */
	"/etc/ssl/ca-bundle.pem",				/* SUSE */
	"/etc/ssl/certs/ca-bundle.crt",
	"/etc/pki/tls/cacert.pem",
	"/etc/ssl/cert.pem",					/* Alpine */
	NULL,
};

const char *
ca_bundle_find(const char *const *paths)
{
	struct stat st;

	for (; *paths != NULL; paths++) {
		if (stat(*paths, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && access(*paths, R_OK) == 0)
			return *paths;
	}
	return NULL;
}

void
ca_bundle_set_default(const char *const *paths)
{
	const char *found = ca_bundle_find(paths);

	if (found != NULL)
		setenv("SSL_CERT_FILE", found, 0);
}
