/*
 * SPDX-License-Identifier: Apache-2.0
 * owner: whether a package manager installed a program, which then updates it.
 */
#ifndef SLUICE_UPDATE_OWNER_H
#define SLUICE_UPDATE_OWNER_H

#include <stdbool.h>
#include <stddef.h>

#define OWNER_DPKG_INFO "/var/lib/dpkg/info"
#define OWNER_RPM "/usr/bin/rpm"

/*
 * Returns 0 if no package has this path; 1 with a command in command that updates the package; or a negative errno with
 * a sentence in command: it is not known. dpkg_info: the folder of dpkg's lists; rpm: the program; where either is
 * missing, that package manager is not here.
 */
int owner_find(const char *path, const char *dpkg_info, const char *rpm, char *command, size_t size);

#endif
