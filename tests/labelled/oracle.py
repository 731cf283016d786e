# SPDX-License-Identifier: Apache-2.0
"""What a workload really did, of which sluice is no part: the kernel's records of its threads' ends (taskstats), its control
group's counters, and a look at each of its threads fifty times a second by /proc.

Figures:

    cpu, run_queue, wants_cpu       exact, of the time of all threads; the last is the sum of both
    queued                          exact, of wall time: waits for a CPU; may be more than 1
    others                          of wall time: CPUs that others of the host used, among them sluice and these looks
    throttled                       exact, of the time of all threads: for how long the control group was
    block, remote_fs, network, pipe, lock, child, timer, poll, swap, reclaim, stopped, other
                                    by the looks: asleep there, of the time in which they did not wait for a CPU
    state_d                         by the looks, of the same: uninterruptible
    some_running                    by the looks, of wall time: one thread or more runs or could run
    major_faults                    a second of wall time
    delay_memory                    with delay accounting alone, exact, of the same as block: swap, reclaim and thrash
    delay_block                     so too: block I/O without these; where the scheduler delays a dequeue (from Linux 6.12
                                    on), the kernel may count a wait from a wrong beginning
"""
import collections
import contextlib
import os
import re
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import books

FIGURES = ("cpu", "run_queue", "wants_cpu", "queued", "others", "throttled", "block", "remote_fs", "network", "pipe", "lock",
           "child", "timer", "poll", "swap", "reclaim", "stopped", "other", "state_d", "some_running", "major_faults",
           "delay_memory", "delay_block")
PERIOD_S = 0.02
SHORTEST = 0.02  # part of its time that a thread did not wait for a CPU
STACK_DEPTH = 8  # functions

# Where struct taskstats of linux/taskstats.h has what books.py does not read, from version 8.
MORE_AT = {"run_queue_ns": 24, "life_us": 144}

SUMMED = (*MORE_AT, *books.DELAYS_AT, "cpu_ns", "major_faults")

# The first class that has a function of the stack counts: what a remote file system does over a socket is a wait for it.
PLACES = (("remote_fs", r"fuse_|nfs\d?_|rpc_|request_wait_answer"),
          ("swap", r"do_swap_page|swap_read|swapin|swap_cache"),
          ("reclaim", r"try_to_free|shrink_|reclaim|over_high|balance_dirty"),
          ("block", r"io_schedule|folio_wait|wait_on_page|filemap_(read|fault)|submit_bio_wait|blkdev_|iomap_dio|jbd2_|ext4_"
                    r"|blk_"),
          ("network", r"sk_wait|sk_stream|tcp_|inet_|udp_"),
          ("pipe", r"pipe_(read|write)|unix_stream|sock_alloc_send"),
          ("lock", r"futex_|flock_|locks_lock|posix_lock"),
          ("child", r"do_wait|kernel_clone|vfork"),
          ("timer", r"nanosleep"),
          ("poll", r"do_poll|poll_schedule|do_select|ep_poll|do_sys_poll"))
# As a function's whole name or the rest of it behind a _: kernfs_ is no nfs_.
REMOTE = re.compile(r"fuse|nfs\d?|9p|cifs|ceph|lustre")  # types of file systems
PLACES = tuple((name, re.compile(r"\] \w*?(?<![a-z])(?:" + pattern + ")")) for name, pattern in PLACES)


class _Book(books.Taskstats):
    """Of the threads that ended, also MORE_AT."""

    def _add(self, pid, stats):
        super()._add(pid, stats)
        self.tasks[-1] |= {name: struct.unpack_from("<Q", stats, at)[0] for name, at in MORE_AT.items()}


def _read(path):
    with open(path) as f:
        return f.read()


def place_of(state, stack):
    """The class of one look at a thread."""
    if state in "Tt":
        return "stopped"
    return next((name for name, pattern in PLACES if pattern.search(stack)), "other")


def waits_for_remote(thread):
    """Whether a thread, as a path below /proc, is in a system call on a file of such a file system."""
    number, *arguments = _read(thread + "/syscall").split()
    if int(number) < 0 or not arguments:
        return False
    lines = _read(f"{thread}/fdinfo/{int(arguments[0], 16)}").splitlines()
    mount = next(line.split()[1] for line in lines if line.startswith("mnt_id:"))
    for line in _read("/proc/self/mountinfo").splitlines():
        if line.split()[0] == mount:
            return REMOTE.fullmatch(line.partition(" - ")[2].split()[0]) is not None
    return False


class Looks:
    """Looks at the threads of a process's descendants, but at those that execute the same program as it does."""

    def __init__(self, root, program):
        self.threads, self.states, self.places = set(), collections.Counter(), collections.Counter()
        self.count = self.some_running = 0
        self.stacks = collections.Counter()
        self._root, self._program = root, os.path.realpath(program)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _children(self, pid):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                yield from _read(f"/proc/{pid}/task/{tid}/children").split()

    def _processes(self):
        left = list(self._children(self._root))
        while left:
            pid = left.pop()
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/exe") != self._program:
                    yield pid
                    left += self._children(pid)

    def _look(self):
        # Else it looks when the CPUs are free, which is when the workload does not wait for one.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while not self._is_over.wait(PERIOD_S):
            with contextlib.suppress(OSError):
                self._look_once()

    def _look_once(self):
        states = []
        for pid in self._processes():
            with contextlib.suppress(OSError):
                for tid in os.listdir(f"/proc/{pid}/task"):
                    with contextlib.suppress(OSError):
                        self.threads.add(int(tid))
                        states.append(self._look_at(f"/proc/{pid}/task/{tid}"))
        if states:
            self.count += 1
            self.some_running += "R" in states

    def _look_at(self, path):
        state = _read(path + "/stat").rpartition(")")[2].split()[0]
        if state in "RSDTt":
            self.states[state] += 1
            if state != "R":
                stack = _read(path + "/stack")
                place = place_of(state, stack)
                with contextlib.suppress(OSError, ValueError):  # it runs again, or its argument is no descriptor
                    if place == "block" and waits_for_remote(path):
                        place = "remote_fs"
                self.places[place] += 1
                self.stacks[f"{state} " + " < ".join(re.findall(r"\] (\w+)", stack)[:STACK_DEPTH])] += 1
        return state


def _busy_s():
    """CPU time of all of the host's CPUs."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(int, _read("/proc/stat").splitlines()[0].split()[1:])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _throttled_ns(path):
    values = dict(line.split() for line in _read(path).splitlines())
    return int(values["throttled_time"]) if "throttled_time" in values else int(values["throttled_usec"]) * 1000


class Oracle:
    """with Oracle(place) as oracle: oracle.watch(pid of sluice run) meanwhile; afterwards oracle.figures(…)."""

    def __init__(self, place):
        self._throttled = place.throttled
        self._book = _Book()
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self._throttled_before = _throttled_ns(self._throttled) if self._throttled else 0
        self._stack.enter_context(self._book)
        return self

    def watch(self, pid, program):
        """program: the one of that pid, once it is executed."""
        self._began, self._busy_before = time.monotonic(), _busy_s()
        self.looks = self._stack.enter_context(Looks(pid, program))

    def __exit__(self, *_):
        self._wall_s, self._busy_s = time.monotonic() - self._began, _busy_s() - self._busy_before
        self._stack.close()
        self._throttled_ns = (_throttled_ns(self._throttled) if self._throttled else 0) - self._throttled_before

    def stacks(self, most):
        """{state and functions, the innermost first: share of the looks}, the most frequent."""
        looks = sum(self.looks.states.values()) or 1
        return {stack: round(n / looks, 3) for stack, n in self.looks.stacks.most_common(most)}

    def figures(self, has_delays):
        """{figure: value}"""
        ours = [t for t in self._book.tasks if t["pid"] in self.looks.threads]
        total = collections.Counter()
        for t in ours:
            total.update({name: t[name] or 0 for name in SUMMED})
        life_ns = total["life_us"] * 1000 or 1
        queue_ns = total["run_queue_ns"]  # in which the kernel counts time that was throttled, too
        awake = max(1 - queue_ns / life_ns, SHORTEST)
        looks = (sum(self.looks.states.values()) or 1) * awake
        queue_ns = max(queue_ns - self._throttled_ns, 0)
        found = {"cpu": total["cpu_ns"] / life_ns, "run_queue": queue_ns / life_ns,
                 "wants_cpu": (total["cpu_ns"] + queue_ns) / life_ns, "queued": queue_ns / 1e9 / self._wall_s,
                 "others": max(self._busy_s - total["cpu_ns"] / 1e9, 0) / self._wall_s,
                 "throttled": self._throttled_ns / life_ns, "major_faults": total["major_faults"] / self._wall_s,
                 "state_d": self.looks.states["D"] / looks,
                 "some_running": self.looks.some_running / (self.looks.count or 1)}
        found |= {name: self.looks.places[name] / looks for name in (*dict(PLACES), "stopped", "other")}
        if has_delays:
            swap = total["swapin_delay_ns"] + total["thrashing_delay_ns"]  # which are counted as block I/O, too
            memory, block = swap + total["freepages_delay_ns"], max(total["blkio_delay_ns"] - swap, 0)
            found |= {"delay_memory": memory / life_ns / awake, "delay_block": block / life_ns / awake}
        return {name: round(value, 3) for name, value in found.items()}
