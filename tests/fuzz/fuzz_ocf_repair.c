/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file that a crash left open: the repair must leave a prefix that can be read completely,
 * or nothing, or the unchanged file under another name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lake/repair.h"
#include "codec/ocf.h"
#include "room.h"

#define HOST "fuzz"

static char lake[ROOM_SIZE];
static char folder[128], part[160], bad[160], done[160];

static void
remove_lake(void)
{
	unlink(part);
	unlink(bad);
	unlink(done);
	for (char *slash = strrchr(folder, '/'); strlen(folder) >= strlen(lake);
	    slash = strrchr(folder, '/')) {
		rmdir(folder);
		*slash = '\0';
	}
}

static void
make_lake(void)
{
	const char *const parts[] = { "/sluice.program", "/date=2026-11-21", "/host=fuzz" };

	room_new(lake);
	strcpy(folder, lake);
	for (size_t i = 0; i < 3; i++) {
		strcat(folder, parts[i]);
		if (mkdir(folder, 0755) < 0)
			abort();
	}
	snprintf(part, sizeof(part), "%s/.a-0.avro.part", folder);
	snprintf(bad, sizeof(bad), "%s/.a-0.avro.part.bad", folder);
	snprintf(done, sizeof(done), "%s/a-0.avro", folder);
	atexit(remove_lake);
}

/* Checks the repaired file: a complete prefix of data with as many records as the repair returned. */
static void
check_repaired(const uint8_t *data, size_t size, const struct lake_repair *repair)
{
	static uint8_t kept[1 << 20];
	struct ocf_reader *reader = NULL;
	struct ocf_error err;
	struct ocf_block block;
	uint64_t records = 0;
	int fd = open(done, O_RDONLY), r;
	ssize_t n;

	if (fd < 0)
		abort();
	n = read(fd, kept, sizeof(kept));
	if (n <= 0 || (size_t)n > size || memcmp(kept, data, (size_t)n) != 0 ||
	    size - (size_t)n != repair->torn_bytes || ocf_reader_open(fd, &reader, &err) != 0)
		abort();
	while ((r = ocf_reader_next(reader, &block, &err)) == 1)
		records += block.count;
	if (r != 0 || records != repair->records)
		abort();
	ocf_reader_close(reader);
	close(fd);
	unlink(done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lake_repair repair;
	int fd;

	if (folder[0] == '\0')
		make_lake();
	if (size > 1 << 20)
		return -1;
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
	if (lake_repair(lake, HOST, &repair) != 0 ||
	    repair.files + repair.empty + repair.failed != 1 || repair.live != 0)
		abort();
	if (repair.files == 1)
		check_repaired(data, size, &repair);
	else if ((access(bad, F_OK) == 0) != (repair.failed == 1 && repair.error == -EBADMSG) ||
	    (access(part, F_OK) == 0) != (repair.failed == 1 && repair.error != -EBADMSG))
		abort();
	unlink(part);
	unlink(bad);
	return 0;
}
