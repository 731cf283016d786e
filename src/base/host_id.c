/*
 * SPDX-License-Identifier: Apache-2.0
 * host_id: which host, boot and kernel this is.
 */
#include "base/host_id.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <uuid/uuid.h>

#include "base/file.h"
#include "base/text.h"

#define PRODUCT_UUID "/sys/class/dmi/id/product_uuid"
#define SMALL_FILE 4096

/* The namespace of derived ids: a random UUID that must never change, since it would change every derived id. */
static const char namespace_uuid[] = "5d0c31f8-2a6e-4b0f-9a53-7c1e84d6f2b9";

/* Copies the first line of root + path to buf; returns false if there is no line or it does not fit. */
static bool
read_line(const char *root, const char *path, char *buf, size_t cap)
{
	struct file_text t = { 0 };
	char full[4096];
	bool fits = false;
	size_t len;

	if (snprintf(full, sizeof(full), "%s%s", root, path) >= (int)sizeof(full))
		return false;
	if (file_read(AT_FDCWD, full, &t, SMALL_FILE) == 0) {
		len = strcspn(t.text, "\n");
		fits = len > 0 && len < cap;
		if (fits) {
			memcpy(buf, t.text, len);
			buf[len] = '\0';
		}
	}
	file_text_done(&t);
	return fits;
}

/*
 * The same of the firmware's product UUID, which only root may read: what starts the agent with an account has made a
 * copy for it, which SLUICE_PRODUCT_UUID names.
 */
static bool
read_product(const char *root, char *buf, size_t cap)
{
	const char *copy = getenv("SLUICE_PRODUCT_UUID");

	return read_line(root, PRODUCT_UUID, buf, cap) ||
	    (copy != NULL && root[0] == '\0' && read_line("", copy, buf, cap));
}

/* Returns true for 32 lower-case hex digits, not all zero. "uninitialized", in an image's first boot, is no id. */
static bool
is_machine_id(const char *id)
{
	return strspn(id, "0123456789abcdef") == 32 && id[32] == '\0' && strspn(id, "0") != 32;
}

/* Derives a version 5 UUID from text, as 32 digits. */
static void
derive(const char *text, char ret[33])
{
	uuid_t space, id;

	uuid_parse(namespace_uuid, space);
	uuid_generate_sha1(id, space, text, strlen(text));
	for (size_t i = 0; i < sizeof(id); i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

/* Returns false for a UUID that the firmware of some boards gives to every copy. */
static bool
is_real_uuid(const char *text)
{
	uuid_t id;
	bool is_same = true;

	if (uuid_parse(text, id) != 0)
		return false;
	for (size_t i = 1; i < sizeof(id); i++)
		is_same &= id[i] == id[0];
	return !is_same && strncasecmp(text, "03000200-0400-0500-0006-", 24) != 0;
}

int
host_id_read(const char *root, struct host_id *ret)
{
	static const char *const files[] = { "/etc/machine-id", "/var/lib/dbus/machine-id" };
	struct host_id h = { 0 };
	struct utsname uts;
	char product[64], text[160], id[64];
	uuid_t boot;

	if (uname(&uts) < 0)
		return -errno;
	if (!read_line(root, "/proc/sys/kernel/hostname", id, sizeof(id)))
		snprintf(id, sizeof(id), "%.63s", root[0] == '\0' ? uts.nodename : "");
	text_escape(id, strlen(id), h.name, sizeof(h.name), NULL);
	text_escape(uts.release, strlen(uts.release), h.kernel, sizeof(h.kernel), NULL);
	text_escape(uts.machine, strlen(uts.machine), h.architecture, sizeof(h.architecture), NULL);
	if (!read_line(root, "/proc/sys/kernel/random/boot_id", h.boot_id, sizeof(h.boot_id)) ||
	    uuid_parse(h.boot_id, boot) != 0)
		h.boot_id[0] = '\0';

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (read_line(root, files[i], id, sizeof(id)) && is_machine_id(id)) {
			memcpy(h.id, id, sizeof(h.id));
			h.source = HOST_ID_MACHINE_ID;
			*ret = h;
			return 0;
		}
	}
	if (h.name[0] == '\0')
		return -ENODATA;
	if (read_product(root, product, sizeof(product)) && is_real_uuid(product)) {
		snprintf(text, sizeof(text), "%s\n%s", product, h.name);
		h.source = HOST_ID_PRODUCT;
	} else {
		snprintf(text, sizeof(text), "%s", h.name);
		h.source = HOST_ID_NAME;
	}
	derive(text, h.id);
	*ret = h;
	return 0;
}

void
host_id_read_hardware(const char *root, char *ret, size_t size)
{
	static const struct {
		const char *path;
		bool is_uuid;
	} files[] = {
		{ PRODUCT_UUID, true },
		{ "/proc/device-tree/vm,uuid", true },
		{ "/sys/hypervisor/uuid", true },
		{ "/proc/device-tree/serial-number", false },
	};
	char text[128], id[33];

	ret[0] = '\0';
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		bool is_read = i == 0 ? read_product(root, text, sizeof(text)) :
		    read_line(root, files[i].path, text, sizeof(text));

		if (!is_read || (files[i].is_uuid && !is_real_uuid(text)) || strspn(text, "0-") == strlen(text))
			continue;
		for (char *c = text; *c != '\0'; c++)
			*c = (char)tolower((unsigned char)*c);	/* kernels differ in how they print it */
		derive(text, id);
		snprintf(ret, size, "%s", id);
		return;
	}
}

const char *
host_id_source_name(enum host_id_source source)
{
	switch (source) {
	case HOST_ID_MACHINE_ID:
		return "machine-id";
	case HOST_ID_PRODUCT:
		return "product UUID and host name";
	case HOST_ID_NAME:
		return "host name";
	}
	return "unknown";
}
