/*
 * SPDX-License-Identifier: Apache-2.0
 * host_facts: what a host is, from /proc/cpuinfo and the firmware's tables.
 */
#include "collect/host_facts.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define TEXT_MAX 4096		/* the first CPU's part of cpuinfo */

/* A cloud whose firmware names it. */
struct cloud {
	const char *name;
	const char *file;		/* in class/dmi/id */
	const char *text;		/* that is in that file */
	bool has_type;			/* product_name is the instance type */
};

/* The first that fits counts. */
static const struct cloud clouds[] = {
	{ "aws", "sys_vendor", "Amazon EC2", true },
	{ "aws", "bios_version", ".amazon", false },	/* older types, on Xen */
	{ "azure", "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77", false },
	{ "gcp", "product_name", "Google Compute Engine", false },
	{ "alibaba_cloud", "product_name", "Alibaba Cloud ECS", false },
	{ "oracle_cloud", "chassis_asset_tag", "OracleCloud.com", false },
	{ "tencent_cloud", "sys_vendor", "Tencent Cloud", false },
	{ "digitalocean", "sys_vendor", "DigitalOcean", false },
	{ "hetzner", "sys_vendor", "Hetzner", false },
	{ "scaleway", "sys_vendor", "Scaleway", false },
};

/* Reads the beginning of a file, NUL-terminated; "" if it cannot be read. */
static void
read_head(const char *root, const char *name, char text[TEXT_MAX])
{
	char path[PATH_MAX];
	ssize_t n = -1;
	int fd;

	text[0] = '\0';
	if (snprintf(path, sizeof(path), "%s/%s", root, name) >= (int)sizeof(path))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, TEXT_MAX - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
}

/* Copies len bytes without spaces at either end, as UTF-8, to size bytes. */
static void
copy_trimmed(const char *text, size_t len, char *out, size_t size)
{
	while (len > 0 && (*text == ' ' || *text == '\t')) {
		text++;
		len--;
	}
	while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	text_escape(text, len, out, size, NULL);
}

static void
read_dmi(const char *sys, const char *name, char text[TEXT_MAX])
{
	char file[64];

	snprintf(file, sizeof(file), "class/dmi/id/%s", name);
	read_head(sys, file, text);
	text[strcspn(text, "\n")] = '\0';
}

/* A CPU of x86 has the line "model name"; one of arm64 has none. */
static void
find_model(const char *text, char *out, size_t size)
{
	static const char name[] = "model name";
	const char *value = strstr(text, name);

	if (value == NULL)
		return;
	value += sizeof(name) - 1;
	value += strspn(value, " \t");
	if (*value == ':')
		copy_trimmed(value + 1, strcspn(value + 1, "\n"), out, size);
}

void
host_facts_read(const char *proc, const char *sys, struct host_facts *ret)
{
	char text[TEXT_MAX];

	*ret = (struct host_facts){ 0 };
	read_head(proc, "cpuinfo", text);
	find_model(text, ret->cpu_model, sizeof(ret->cpu_model));
	for (size_t i = 0; i < sizeof(clouds) / sizeof(clouds[0]); i++) {
		const struct cloud *c = &clouds[i];

		read_dmi(sys, c->file, text);
		if (strstr(text, c->text) == NULL)
			continue;
		snprintf(ret->cloud, sizeof(ret->cloud), "%s", c->name);
		if (c->has_type) {
			read_dmi(sys, "product_name", text);
			copy_trimmed(text, strlen(text), ret->instance_type, sizeof(ret->instance_type));
		}
		return;
	}
}
