/*
 * SPDX-License-Identifier: Apache-2.0
 * labelled_net: kinds of work over loopback, and the servers that they talk to. A server prints its port, serves one
 * connection, and is no part of the work.
 */
#include "labelled.h"

#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define PERIOD_MS 50		/* a server moves a MiB, and pauses: at most 20 MiB/s */
#define FILE_BYTES (UINT64_C(512) << 20)

static int
connected(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons((uint16_t)number);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		err(1, "port %lu", number);
	return fd;
}

static int
accepted(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &len) < 0)
		err(1, "a server");
	printf("%u\n", ntohs(a.sin_port));
	fflush(stdout);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		err(1, "accept4");
	close(listener);
	return fd;
}

/* is_fast: the link limits it, else the server itself does. */
static uint64_t
serve(bool is_sender, bool is_fast)
{
	char *buf = memory(BLOCK);
	int fd = accepted();
	uint64_t n = 0;

	for (; is_time(); n++) {
		if ((is_sender ? write(fd, buf, BLOCK) : recv(fd, buf, BLOCK, MSG_WAITALL)) <= 0)
			break;
		if (!is_fast)
			pause_ms(PERIOD_MS);
	}
	return n;
}

static uint64_t
server_down(void)
{
	return serve(true, false);
}

static uint64_t
server_up(void)
{
	return serve(false, false);
}

static uint64_t
server_down_fast(void)
{
	return serve(true, true);
}

static uint64_t
server_up_fast(void)
{
	return serve(false, true);
}

/* Answers each request half a second later. */
static uint64_t
server_late(void)
{
	int fd = accepted();
	char request;
	uint64_t n = 0;

	for (; is_time() && read(fd, &request, 1) == 1; n++) {
		pause_ms(500);
		if (write(fd, &request, 1) != 1)
			break;
	}
	return n;
}

static uint64_t
download(int file, bool computes)
{
	char *buf = memory(BLOCK);
	int fd = connected();
	uint64_t bytes = 0;

	while (is_time()) {
		double begin = now();
		ssize_t len = recv(fd, buf, BLOCK, computes ? MSG_WAITALL : 0);

		if (len <= 0)
			break;
		if (file >= 0 && pwrite(file, buf, (size_t)len, (off_t)(bytes % FILE_BYTES)) < 0)
			err(1, "%s", path);
		bytes += (uint64_t)len;
		if (computes)
			compute_for(now() - begin);
	}
	return bytes;
}

static uint64_t
net_down(void)
{
	return download(-1, false);
}

static uint64_t
net_to_file(void)
{
	return download(open_file(O_WRONLY | O_CREAT), false);
}

/* It computes for as long as it has waited for what came. */
static uint64_t
net_and_compute(void)
{
	return download(-1, true);
}

static uint64_t
net_up(void)
{
	char *buf = memory(BLOCK);
	int fd = connected();
	uint64_t n = 0;

	while (is_time() && write(fd, buf, BLOCK) > 0)
		n++;
	return n;
}

static uint64_t
requests(void)
{
	int fd = connected();
	char answer = 'x';
	uint64_t n = 0;

	while (is_time() && write(fd, &answer, 1) == 1 && read(fd, &answer, 1) == 1)
		n++;
	return n;
}

/* Waits for a server that sends nothing. */
static uint64_t
poll_idle(void)
{
	int fd = connected();
	uint64_t n = 0;

	for (; is_time(); n++)
		poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 500);
	return n;
}

const struct kind net_kinds[] = {
	{ "net_down", net_down }, { "net_up", net_up }, { "net_to_file", net_to_file },
	{ "net_and_compute", net_and_compute }, { "requests", requests }, { "poll_idle", poll_idle },
	{ "server_down", server_down }, { "server_up", server_up }, { "server_down_fast", server_down_fast },
	{ "server_up_fast", server_up_fast }, { "server_late", server_late }, { NULL, NULL },
};
