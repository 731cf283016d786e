/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * The table of what is counted for a program: the counters that the kernel side adds up, and the fields of the
 * Avro record Resources. bpf/ and src/ include it once for each use, with the macros defined that they need; it
 * undefines all of them. dev/records generates the schemas, the analytics' columns and sluice-records(5) from
 * it. A new counter is one row at the end; CONTRIBUTING.md has the recipe.
 *
 * Where a counter of a process, in struct event_counters and struct counters, is added up from:
 *
 *   COUNTER_SIGNAL(name, thread, gone)  thread: member of each task_struct; gone: of signal_struct, where the kernel
 *                                       adds up the values of released threads
 *   COUNTER_GONE(name, gone)            member of signal_struct alone
 *   COUNTER_TASK(name, thread)          member of each task_struct; sluice adds up the values of released threads
 *   COUNTER_DELAY(name, thread)         the same in task_delay_info, which a thread may lack
 *   COUNTER_LIFE(name)                  how long each thread has lived
 *   COUNTER_PAGES(name, entry)          a number of pages in struct proc; in struct counters bytes, as name_bytes
 *   COUNTER_PAGES_NOW(name)             likewise, of a process that lives: each pass reads them, and nothing keeps them
 *   COUNTER_ENTRY(name, entry)          member of struct proc
 *
 * A macro that is not defined becomes COUNTER(name), and that is empty unless it is defined. The order is that
 * of the structs and of the entries of the write-ahead log.
 *
 *   RESOURCE(NAME, name, unit, kind, when, since, doc)
 *
 * defines a field whose value is the counter of that name, RESOURCE_MADE() one that cputime.c computes from
 * several; it becomes RESOURCE() unless it is defined. The order is that of the Avro record.
 *
 *   unit   unit of the value
 *   kind   SUM: adds up over programs and time; LEVEL: adds up over programs that run at once; PEAK: the largest counts
 *   when   what must hold for the value to be known, see usage_of_program()
 *   since  schema_version of the first records that have it
 *   doc    documentation of the field in schemas/avro, word for word
 *
 * SUM_OF_SIGNAL(), SUM_OF_TASKS() and SUM_OF_SOCKETS() define both, a counter and its field. Rows of version 1
 * whose two orders differ are separate, because neither the log's entries nor the records allow a change of
 * order.
 */
#ifndef COUNTER
#define COUNTER(name)
#endif
#ifndef COUNTER_SIGNAL
#define COUNTER_SIGNAL(name, thread, gone) COUNTER(name)
#endif
#ifndef COUNTER_GONE
#define COUNTER_GONE(name, gone) COUNTER(name)
#endif
#ifndef COUNTER_TASK
#define COUNTER_TASK(name, thread) COUNTER(name)
#endif
#ifndef COUNTER_DELAY
#define COUNTER_DELAY(name, thread) COUNTER(name)
#endif
#ifndef COUNTER_LIFE
#define COUNTER_LIFE(name) COUNTER(name)
#endif
#ifndef COUNTER_PAGES
#define COUNTER_PAGES(name, entry) COUNTER(name)
#endif
#ifndef COUNTER_PAGES_NOW
#define COUNTER_PAGES_NOW(name) COUNTER_PAGES(name, 0)
#endif
#ifndef COUNTER_ENTRY
#define COUNTER_ENTRY(name, entry) COUNTER(name)
#endif
#ifndef RESOURCE
#define RESOURCE(NAME, name, unit, kind, when, since, doc)
#endif
#ifndef RESOURCE_MADE
#define RESOURCE_MADE(NAME, name, unit, kind, when, since, doc) RESOURCE(NAME, name, unit, kind, when, since, doc)
#endif

#define SUM_OF_SIGNAL(NAME, name, unit, thread, gone, since, doc) \
	COUNTER_SIGNAL(name, thread, gone) RESOURCE(NAME, name, unit, SUM, is_complete, since, doc)
#define SUM_OF_TASKS(NAME, name, unit, thread, since, doc) \
	COUNTER_TASK(name, thread) RESOURCE(NAME, name, unit, SUM, is_complete, since, doc)
#define SUM_OF_SOCKETS(NAME, name, unit, entry, since, doc) \
	COUNTER_ENTRY(name, entry) RESOURCE(NAME, name, unit, SUM, has_network, since, doc)
#define SUM_OF_DELAYS(NAME, name, unit, thread, when, since, doc) \
	COUNTER_DELAY(name, thread) RESOURCE(NAME, name, unit, SUM, when, since, doc)
#define SUM_OF_WAITS(NAME, name, unit, entry, since, doc) \
	COUNTER_ENTRY(name, entry) RESOURCE(NAME, name, unit, SUM, is_complete, since, doc)

/* CPU time: runtime is exact; utime and stime are samples at each tick, used to split it. */
COUNTER_SIGNAL(runtime_ns, se.sum_exec_runtime, sum_sched_runtime)
COUNTER_SIGNAL(utime, utime, utime)
COUNTER_SIGNAL(stime, stime, stime)
/* The split that the kernel last reported: it never decreases. */
COUNTER_GONE(prev_utime, prev_cputime.utime)
COUNTER_GONE(prev_stime, prev_cputime.stime)
RESOURCE_MADE(CPU_USER_NS, cpu_user_ns, nanoseconds, SUM, is_complete, 1,
    "CPU time in user mode in nanoseconds, split from system time as the kernel splits it for wait4(2)")
RESOURCE_MADE(CPU_SYSTEM_NS, cpu_system_ns, nanoseconds, SUM, is_complete, 1,
    "CPU time in the kernel in nanoseconds")
RESOURCE(RUN_DELAY_NS, run_delay_ns, nanoseconds, SUM, is_complete, 1,
    "Nanoseconds that its threads were runnable and waited for a CPU, from the scheduler's run_delay")
SUM_OF_SIGNAL(VOLUNTARY_SWITCHES, voluntary_switches, switches, nvcsw, nvcsw, 1,
    "Context switches because it waited")
SUM_OF_SIGNAL(INVOLUNTARY_SWITCHES, involuntary_switches, switches, nivcsw, nivcsw, 1,
    "Context switches because its time slice was over or another task preempted it")
SUM_OF_SIGNAL(MINOR_FAULTS, minor_faults, faults, min_flt, min_flt, 1,
    "Page faults served without reading from storage")
SUM_OF_SIGNAL(MAJOR_FAULTS, major_faults, faults, maj_flt, maj_flt, 1,
    "Page faults that had to read from storage")
RESOURCE(PEAK_RSS_BYTES, peak_rss_bytes, bytes, PEAK, has_peak, 1,
    "Largest resident memory in bytes, the high-water mark of this program's own address space; a level, not a sum")
RESOURCE(RSS_BYTES, rss_bytes, bytes, LEVEL, has_rss, 1,
    "Resident memory in bytes at this moment; a level, not a sum")
RESOURCE(READ_BYTES, read_bytes, bytes, SUM, is_complete, 1,
    "Bytes that it caused to be fetched from storage, as read_bytes of /proc/PID/io")
RESOURCE(WRITE_BYTES, write_bytes, bytes, SUM, is_complete, 1,
    "Bytes that it caused to be sent to storage, as write_bytes of /proc/PID/io")
SUM_OF_TASKS(RCHAR, rchar, bytes, ioac.rchar, 1,
    "Bytes that read calls returned, from cache or pipe as well, as rchar of /proc/PID/io")
SUM_OF_TASKS(WCHAR, wchar, bytes, ioac.wchar, 1,
    "Bytes that write calls took, as wchar of /proc/PID/io")
SUM_OF_TASKS(SYSCR, syscr, calls, ioac.syscr, 1,
    "Read system calls, as syscr of /proc/PID/io")
SUM_OF_TASKS(SYSCW, syscw, calls, ioac.syscw, 1,
    "Write system calls, as syscw of /proc/PID/io")
COUNTER_TASK(read_bytes, ioac.read_bytes)
COUNTER_TASK(write_bytes, ioac.write_bytes)
COUNTER_TASK(run_delay_ns, sched_info.run_delay)
COUNTER_DELAY(block_io_delay_ns, blkio_delay)
COUNTER_PAGES(peak_rss, peak)
COUNTER_PAGES(rss, rss)
RESOURCE_MADE(NET_RX_BYTES, net_rx_bytes, bytes, SUM, has_network, 1,
    "Bytes received on internet sockets of any protocol, loopback too, without headers")
RESOURCE_MADE(NET_TX_BYTES, net_tx_bytes, bytes, SUM, has_network, 1,
    "Bytes sent on internet sockets of any protocol, loopback too, without headers")
RESOURCE(BLOCK_IO_DELAY_NS, block_io_delay_ns, nanoseconds, SUM, has_block_io, 1,
    "Nanoseconds that its threads waited for block I/O; null unless delay accounting is on, or if a thread has more than it lived")
RESOURCE(THREADS_PEAK, threads_peak, threads, PEAK, is_always, 1,
    "Largest number of threads alive at once, counted in the kernel as each starts; a level, not a sum")
SUM_OF_SOCKETS(TCP_RX_BYTES, tcp_rx_bytes, bytes, net_rx[EVENT_NET_TCP], 1,
    "Bytes received on TCP sockets")
SUM_OF_SOCKETS(TCP_TX_BYTES, tcp_tx_bytes, bytes, net_tx[EVENT_NET_TCP], 1,
    "Bytes sent on TCP sockets")
SUM_OF_SOCKETS(UDP_RX_BYTES, udp_rx_bytes, bytes, net_rx[EVENT_NET_UDP], 1,
    "Bytes received on UDP sockets")
SUM_OF_SOCKETS(UDP_TX_BYTES, udp_tx_bytes, bytes, net_tx[EVENT_NET_UDP], 1,
    "Bytes sent on UDP sockets")
COUNTER_ENTRY(other_rx_bytes, net_rx[EVENT_NET_OTHER])
COUNTER_ENTRY(other_tx_bytes, net_tx[EVENT_NET_OTHER])
SUM_OF_SOCKETS(UNIX_RX_BYTES, unix_rx_bytes, bytes, net_rx[EVENT_NET_UNIX], 1,
    "Bytes received on Unix domain sockets")
SUM_OF_SOCKETS(UNIX_TX_BYTES, unix_tx_bytes, bytes, net_tx[EVENT_NET_UNIX], 1,
    "Bytes sent on Unix domain sockets")
SUM_OF_TASKS(CPU_MIGRATIONS, cpu_migrations, migrations, se.nr_migrations, 3,
    "Times that the scheduler moved one of its threads to another CPU, as se.nr_migrations of /proc/PID/sched")
/* Of the threads' time: how much there was, delays that the kernel counts, and what each pass saw them wait for. */
COUNTER_LIFE(thread_ns)
RESOURCE(THREAD_NS, thread_ns, nanoseconds, SUM, is_complete, 7,
    "Nanoseconds that its threads existed, added up: the whole of which CPU time, run_delay_ns and waits are parts")
SUM_OF_DELAYS(SWAPIN_DELAY_NS, swapin_delay_ns, nanoseconds, swapin_delay, has_delays, 7,
    "Nanoseconds that its threads waited for pages from swap; null unless the kernel's delay accounting is on")
SUM_OF_DELAYS(RECLAIM_DELAY_NS, reclaim_delay_ns, nanoseconds, freepages_delay, has_delays, 7,
    "Nanoseconds in which its threads had to make memory free, on a CPU or waiting; null unless delay accounting is on")
SUM_OF_DELAYS(THRASHING_DELAY_NS, thrashing_delay_ns, nanoseconds, thrashing_delay, has_thrashing, 7,
    "Nanoseconds that its threads waited for pages that had been evicted not long before; null unless delay accounting is on")
SUM_OF_DELAYS(COMPACT_DELAY_NS, compact_delay_ns, nanoseconds, compact_delay, has_compact, 7,
    "Nanoseconds in which its threads compacted memory; null unless delay accounting is on, and before Linux 5.18")
SUM_OF_WAITS(WAIT_SAMPLES, wait_samples, samples, wait_samples, 7,
    "Times that a pass over all threads, one a second, found a thread of it asleep: what the following fields rest on")
SUM_OF_WAITS(WAIT_UNINTERRUPTIBLE_NS, wait_uninterruptible_ns, nanoseconds, uninterruptible_ns, 7,
    "Nanoseconds of its threads in uninterruptible sleep, state D, of whatever kind; sampled")
SUM_OF_WAITS(WAIT_STOPPED_NS, wait_stopped_ns, nanoseconds, waited_ns[WAIT_STOPPED], 7,
    "Nanoseconds that its threads were stopped by a signal, a tracer or a freezer; sampled")
SUM_OF_WAITS(WAIT_NETWORK_FS_NS, wait_network_fs_ns, nanoseconds, waited_ns[WAIT_NETWORK_FS], 7,
    "Nanoseconds that its threads waited for a file system of another machine or program: NFS, Lustre, FUSE; sampled")
SUM_OF_WAITS(WAIT_SWAP_NS, wait_swap_ns, nanoseconds, waited_ns[WAIT_SWAP], 7,
    "Nanoseconds that its threads waited for pages from swap; sampled")
SUM_OF_WAITS(WAIT_RECLAIM_NS, wait_reclaim_ns, nanoseconds, waited_ns[WAIT_RECLAIM], 7,
    "Nanoseconds that its threads waited until memory was made free; sampled")
SUM_OF_WAITS(WAIT_BLOCK_NS, wait_block_ns, nanoseconds, waited_ns[WAIT_BLOCK], 7,
    "Nanoseconds that its threads waited for a block device or a file system on one; sampled")
SUM_OF_WAITS(WAIT_NETWORK_NS, wait_network_ns, nanoseconds, waited_ns[WAIT_NETWORK], 7,
    "Nanoseconds that its threads waited for internet sockets; sampled")
SUM_OF_WAITS(WAIT_PIPE_NS, wait_pipe_ns, nanoseconds, waited_ns[WAIT_PIPE], 7,
    "Nanoseconds that its threads waited for another program, by a pipe, a Unix domain socket or a queue; sampled")
SUM_OF_WAITS(WAIT_LOCK_NS, wait_lock_ns, nanoseconds, waited_ns[WAIT_LOCK], 7,
    "Nanoseconds that its threads waited for a lock: a futex, a lock of a file, a semaphore; sampled")
SUM_OF_WAITS(WAIT_CHILD_NS, wait_child_ns, nanoseconds, waited_ns[WAIT_CHILD], 7,
    "Nanoseconds that its threads waited for processes that it had started; sampled")
SUM_OF_WAITS(WAIT_TIMER_NS, wait_timer_ns, nanoseconds, waited_ns[WAIT_TIMER], 7,
    "Nanoseconds that its threads slept for a set time; sampled")
SUM_OF_WAITS(WAIT_POLL_NS, wait_poll_ns, nanoseconds, waited_ns[WAIT_POLL], 7,
    "Nanoseconds that its threads waited for any of several files, a request, a terminal or a signal; sampled")
SUM_OF_WAITS(WAIT_OTHER_NS, wait_other_ns, nanoseconds, waited_ns[WAIT_OTHER], 7,
    "Nanoseconds that its threads waited in a place of the kernel that is in no other class; sampled")
SUM_OF_WAITS(WAIT_THROTTLED_NS, wait_throttled_ns, nanoseconds, waited_ns[WAIT_THROTTLED], 7,
    "Nanoseconds that its threads could have run, but their control group had used up its quota; sampled, a part of run_delay_ns")
/* What rss_bytes consists of, but for mapped pages of files, which are the rest; and what of it is in swap. */
COUNTER_PAGES_NOW(anon)
COUNTER_PAGES_NOW(shmem)
COUNTER_PAGES_NOW(swap)
RESOURCE(ANON_BYTES, anon_bytes, bytes, LEVEL, has_rss, 8,
    "Resident anonymous memory in bytes at this moment, with what it shares with processes that it forked; a level, not a sum")
RESOURCE(SHMEM_BYTES, shmem_bytes, bytes, LEVEL, has_rss, 8,
    "Resident shared memory and files of a tmpfs that it maps, in bytes at this moment; a level, not a sum")
RESOURCE(SWAP_BYTES, swap_bytes, bytes, LEVEL, has_rss, 8,
    "Anonymous memory in swap, in bytes at this moment; a level, not a sum")

#undef COUNTER
#undef COUNTER_SIGNAL
#undef COUNTER_GONE
#undef COUNTER_TASK
#undef COUNTER_DELAY
#undef COUNTER_LIFE
#undef COUNTER_PAGES
#undef COUNTER_PAGES_NOW
#undef COUNTER_ENTRY
#undef RESOURCE
#undef RESOURCE_MADE
#undef SUM_OF_SIGNAL
#undef SUM_OF_TASKS
#undef SUM_OF_SOCKETS
#undef SUM_OF_DELAYS
#undef SUM_OF_WAITS
