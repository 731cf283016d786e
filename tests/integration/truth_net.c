/*
 * SPDX-License-Identifier: Apache-2.0
 * truth_net: operations that move known numbers of bytes through sockets, by every system call that can.
 * A call moves the bytes that it returns; MSG_PEEK, an error and end of file move none.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "truth.h"

static char out[65536], in[65536];

static void
sent(enum family f, ssize_t n)
{
	if (n < 0)
		fail("send");
	net_tx[f] += (uint64_t)n;
}

static void
received(enum family f, ssize_t n)
{
	if (n < 0)
		fail("receive");
	net_rx[f] += (uint64_t)n;
}

/* Reads a stream until want bytes have arrived. */
static void
drain(enum family f, int fd, size_t want)
{
	while (want > 0) {
		ssize_t n = read(fd, in, want < sizeof(in) ? want : sizeof(in));

		if (n <= 0)
			fail("a stream that ended early");
		received(f, n);
		want -= (size_t)n;
	}
}

/* The loopback of a new network namespace, or of a guest, may be down. */
static void
loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		fail("socket");
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) == 0 && !(ifr.ifr_flags & IFF_UP)) {
		ifr.ifr_flags |= IFF_UP;
		ioctl(fd, SIOCSIFFLAGS, &ifr);
	}
	close(fd);
}

static int
listen_on(int domain, struct sockaddr_storage *ss, socklen_t *len)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(ss, 0, sizeof(*ss));
	ss->ss_family = (sa_family_t)domain;
	*len = domain == AF_INET ? sizeof(*in4) : sizeof(*in6);
	if (domain == AF_INET)
		in4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		in6->sin6_addr = in6addr_loopback;
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)ss, *len) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)ss, len) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* All calls that work in the same way on both ends of a stream. */
static void
stream_calls(enum family f, int a, int b)
{
	struct iovec iov[3] = { { out, 1000 }, { out, 1500 }, { out, 500 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };

	sent(f, send(a, out, 1000, 0));
	drain(f, b, 1000);
	sent(f, write(a, out, 5000));
	drain(f, b, 5000);
	sent(f, writev(a, iov, 3));
	if (recv(b, in, 2000, MSG_PEEK) < 0)
		fail("MSG_PEEK");
	drain(f, b, 3000);
	sent(f, sendmsg(a, &msg, 0));
	for (int i = 0; i < 3; i++)
		iov[i].iov_base = in;
	received(f, recvmsg(b, &msg, MSG_WAITALL));
	/* no data: an error, no bytes */
	if (recv(b, in, 100, MSG_DONTWAIT) >= 0 || errno != EAGAIN)
		fail("an empty socket");
	/* the other direction */
	sent(f, send(b, out, 700, MSG_NOSIGNAL));
	received(f, recv(a, in, sizeof(in), 0));
	/* half closed: end of file has no bytes, and a write is an error */
	shutdown(a, SHUT_WR);
	received(f, read(b, in, 100));
	if (send(a, out, 100, MSG_NOSIGNAL) >= 0)
		fail("a closed socket");
}

static void
tcp(int domain)
{
	struct sockaddr_storage ss;
	socklen_t len;
	off_t at = 0;
	int fd, a, b, server = listen_on(domain, &ss, &len);

	if (server < 0) {
		if (domain == AF_INET)
			fail("a loopback listener");
		return;		/* no IPv6 on this host */
	}
	a = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a < 0 || connect(a, (struct sockaddr *)&ss, len) < 0)
		fail("connect");
	b = accept(server, NULL, NULL);
	if (b < 0)
		fail("accept");
	fd = open(self_path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		sent(FAMILY_TCP, sendfile(a, fd, &at, 20000));
		drain(FAMILY_TCP, b, (size_t)at);
		close(fd);
	}
	stream_calls(FAMILY_TCP, a, b);
	close(a);
	close(b);
	close(server);
}

static void
udp(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct iovec iov = { out, 200 };
	struct mmsghdr many[3];
	socklen_t len = sizeof(addr);
	int a = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int b = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int n;

	if (a < 0 || b < 0 || bind(b, (struct sockaddr *)&addr, len) < 0 ||
	    getsockname(b, (struct sockaddr *)&addr, &len) < 0)
		fail("udp");
	sent(FAMILY_UDP, sendto(a, out, 900, 0, (struct sockaddr *)&addr, len));
	if (recv(b, in, sizeof(in), MSG_PEEK) != 900)
		fail("MSG_PEEK");
	received(FAMILY_UDP, recvfrom(b, in, sizeof(in), 0, NULL, NULL));
	if (connect(a, (struct sockaddr *)&addr, len) < 0)
		fail("connect");
	memset(many, 0, sizeof(many));
	for (int i = 0; i < 3; i++) {
		many[i].msg_hdr.msg_iov = &iov;
		many[i].msg_hdr.msg_iovlen = 1;
	}
	n = sendmmsg(a, many, 3, 0);
	if (n != 3)
		fail("sendmmsg");
	for (int i = 0; i < n; i++)
		sent(FAMILY_UDP, many[i].msg_len);
	iov.iov_base = in;
	n = recvmmsg(b, many, 3, MSG_WAITFORONE, NULL);
	for (int i = 0; i < n; i++)
		received(FAMILY_UDP, many[i].msg_len);
	for (; n < 3; n++)
		received(FAMILY_UDP, recv(b, in, sizeof(in), 0));
	/* a datagram that is read partly: the bytes that were read count */
	sent(FAMILY_UDP, write(a, out, 900));
	received(FAMILY_UDP, read(b, in, 100));
	/* an empty datagram */
	sent(FAMILY_UDP, send(a, out, 0, 0));
	received(FAMILY_UDP, recv(b, in, sizeof(in), 0));
	close(a);
	close(b);
}

static void
unix_sockets(void)
{
	static const int types[] = { SOCK_DGRAM, SOCK_SEQPACKET };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		fail("socketpair");
	stream_calls(FAMILY_UNIX, pair[0], pair[1]);
	close(pair[0]);
	close(pair[1]);
	for (int i = 0; i < 2; i++) {
		char control[CMSG_SPACE(sizeof(int))] = { 0 };
		struct iovec iov = { out, 333 };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			.msg_controllen = sizeof(control) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		int fd = 2;

		if (socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, pair) < 0)
			fail("socketpair");
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		sent(FAMILY_UNIX, sendmsg(pair[0], &msg, 0));	/* a descriptor has no bytes */
		iov.iov_base = in;
		received(FAMILY_UNIX, recvmsg(pair[1], &msg, 0));
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		close(fd);
		sent(FAMILY_UNIX, write(pair[0], out, 444));
		received(FAMILY_UNIX, read(pair[1], in, sizeof(in)));
		close(pair[0]);
		close(pair[1]);
	}
}

/* Two processes, one of which sends to the other. */
static void
two_ends(void)
{
	struct child c = { .name = case_name, .programs = 1, .forked = true, .oom_killed = -1 };
	struct sockaddr_storage ss;
	socklen_t len;
	ssize_t n;
	int fd, server = listen_on(AF_INET, &ss, &len);

	if (server < 0)
		fail("a loopback listener");
	c.pid = fork();
	if (c.pid < 0)
		fail("fork");
	if (c.pid == 0) {
		image_reset();
		image_index = 0;
		report_start(NULL);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *)&ss, len) < 0)
			fail("connect");
		for (int i = 0; i < 48; i++)
			sent(FAMILY_TCP, write(fd, out, sizeof(out)));
		close(fd);
		report_end(0);
		_exit(0);
	}
	fd = accept(server, NULL, NULL);
	if (fd < 0)
		fail("accept");
	while ((n = read(fd, in, sizeof(in))) > 0)
		received(FAMILY_TCP, n);
	close(fd);
	close(server);
	reap(&c);
}

/* Bytes of other files, which must not count as network bytes. */
static void
netlink(void)
{
	struct {
		struct nlmsghdr head;
		struct rtgenmsg body;
	} request = { { sizeof(request), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { AF_UNSPEC } };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0 || send(fd, &request, sizeof(request), 0) < 0 || recv(fd, in, sizeof(in), 0) < 0)
		fail("netlink");
	close(fd);
}

bool
net_op(char *const **at)
{
	const char *word = *(*at)++;

	if (!strcmp(word, "tcp")) {
		loopback_up();
		tcp(AF_INET);
		tcp(AF_INET6);
	} else if (!strcmp(word, "udp")) {
		loopback_up();
		udp();
	} else if (!strcmp(word, "unix")) {
		unix_sockets();
	} else if (!strcmp(word, "two-ends")) {
		loopback_up();
		two_ends();
	} else if (!strcmp(word, "netlink")) {
		netlink();
	} else {
		(*at)--;
		return false;
	}
	return true;
}
