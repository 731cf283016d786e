// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Counts bytes that a program moved through sockets, by family: only lengths, and only of calls that succeeded.
 * From 6.3 two tracepoints see every call; before, the functions that contain them do. Neither sees splice(2)
 * from a socket.
 */
#include "state.h"

/*
 * Does the same as has_lease() for hooks that `sluice ctl detach network` switches off: while off, nothing is
 * counted.
 */
static __always_inline bool
has_network_lease(void)
{
	return network_lease == my_epoch;
}

static __always_inline u32
net_class(u32 family, u32 protocol)
{
	if (family == AF_UNIX)
		return EVENT_NET_UNIX;
	if (family != AF_INET && family != AF_INET6)
		return EVENT_NET_COUNT;
	if (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP)
		return EVENT_NET_TCP;
	return protocol == IPPROTO_UDP ? EVENT_NET_UDP : EVENT_NET_OTHER;
}

static __always_inline void
net_add(struct proc *p, u32 class, int bytes, bool is_send)
{
	u64 *sum;

	if (!p || class >= EVENT_NET_COUNT)
		return;
	sum = is_send ? &p->net_tx[class] : &p->net_rx[class];
	__sync_fetch_and_add(sum, bytes);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send_length, struct sock *sk, int ret, int flags)
{
	struct task_struct *t;

	if (ret <= 0 || !has_network_lease())
		return 0;
	t = (void *)bpf_get_current_task_btf();
	net_add(proc_of(t), net_class(sk->__sk_common.skc_family, sk->sk_protocol), ret, true);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_recv_length, struct sock *sk, int ret, int flags)
{
	struct task_struct *t;

	if (ret <= 0 || flags & MSG_PEEK || !has_network_lease())
		return 0;
	t = (void *)bpf_get_current_task_btf();
	net_add(proc_of(t), net_class(sk->__sk_common.skc_family, sk->sk_protocol), ret, false);
	return 0;
}

static __always_inline int
net_before_6_3(struct socket *sock, int ret, bool is_send)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct sock *sk = sock->sk;

	if (ret > 0 && sk && has_network_lease())
		net_add(proc_of_address(t),
		    net_class(sk->__sk_common.skc_family, sk->sk_protocol), ret, is_send);
	return 0;
}

#define SENDMSG(function)									\
	SEC("fexit/" #function)									\
	int BPF_PROG(on_##function, struct socket *sock, struct msghdr *msg, unsigned long size, int ret)	\
	{											\
		return net_before_6_3(sock, ret, true);						\
	}

#define RECVMSG(function)									\
	SEC("fexit/" #function)									\
	int BPF_PROG(on_##function, struct socket *sock, struct msghdr *msg, unsigned long size,	\
	    int flags, int ret)									\
	{											\
		return flags & MSG_PEEK ? 0 : net_before_6_3(sock, ret, false);			\
	}

SENDMSG(inet_sendmsg)
SENDMSG(inet6_sendmsg)
SENDMSG(unix_stream_sendmsg)
SENDMSG(unix_seqpacket_sendmsg)
RECVMSG(inet_recvmsg)
RECVMSG(inet6_recvmsg)
RECVMSG(unix_stream_recvmsg)
RECVMSG(unix_seqpacket_recvmsg)

/* The functions of a seqpacket socket may call these: only the outer call counts. */
SEC("fexit/unix_dgram_sendmsg")
int BPF_PROG(on_unix_dgram_sendmsg, struct socket *sock, struct msghdr *msg, unsigned long size,
    int ret)
{
	return sock->type == SOCK_SEQPACKET ? 0 : net_before_6_3(sock, ret, true);
}

SEC("fexit/unix_dgram_recvmsg")
int BPF_PROG(on_unix_dgram_recvmsg, struct socket *sock, struct msghdr *msg, unsigned long size,
    int flags, int ret)
{
	return sock->type == SOCK_SEQPACKET || flags & MSG_PEEK ? 0 : net_before_6_3(sock, ret, false);
}

/* sendfile(2) and splice(2) to a socket */
SEC("fexit/inet_sendpage")
int BPF_PROG(on_inet_sendpage, struct socket *sock, struct page *page, int offset, unsigned long size,
    int flags, int ret)
{
	return net_before_6_3(sock, ret, true);
}

SEC("fexit/unix_stream_sendpage")
int BPF_PROG(on_unix_stream_sendpage, struct socket *sock, struct page *page, int offset,
    unsigned long size, int flags, int ret)
{
	return net_before_6_3(sock, ret, true);
}
