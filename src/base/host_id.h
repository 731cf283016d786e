/*
 * SPDX-License-Identifier: Apache-2.0
 * host_id: which host, boot and kernel this is.
 */
#ifndef SLUICE_BASE_HOST_ID_H
#define SLUICE_BASE_HOST_ID_H

#include <stddef.h>

/* The source of host_id, best first. */
enum host_id_source {
	HOST_ID_MACHINE_ID = 1,	/* /etc/machine-id, or the copy that dbus keeps */
	HOST_ID_PRODUCT,	/* derived from the firmware's product UUID and the host name */
	HOST_ID_NAME,		/* derived from the host name alone: two hosts with one name get one id */
};

struct host_id {
	char id[33];		/* 32 hex digits, the form of a machine-id */
	enum host_id_source source;
	char name[65];		/* nodename; valid UTF-8 */
	char boot_id[37];	/* id of this boot, as the kernel prints it; "" where it has none */
	char kernel[65];	/* release, as uname -r */
	char architecture[65];	/* as uname -m */
};

/*
 * Reads the ids under root ("": the real one). Returns 0, or -ENODATA where not even a host name is known.
 * Derived ids are version 5 UUIDs, without dashes, in a namespace of sluice's own: stable over reboots as long
 * as the name is.
 */
int host_id_read(const char *root, struct host_id *ret);

/*
 * Derives 32 hex digits from the id that the firmware or the hypervisor gives to this machine alone, below root. Writes
 * "" where there is none, or only root may read it.
 */
void host_id_read_hardware(const char *root, char *ret, size_t size);

/* Returns what an id was derived from, in words: a static string. */
const char *host_id_source_name(enum host_id_source source);

#endif
