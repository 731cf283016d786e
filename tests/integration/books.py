# SPDX-License-Identifier: Apache-2.0
"""Two books that the kernel keeps by itself of every process that ends: taskstats and acct(2).

books.py FILE UID COMMAND…   run as the first process of a pid namespace: accounts for that namespace alone into
                             FILE, runs COMMAND as UID, and ends as it does once all processes are gone.

A load runs under a user id that no other process has, which distinguishes its processes in both books.
"""
import collections
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

GENERIC, CONTROLLER, GET_FAMILY = 16, 0x10, 3  # netlink
REQUEST, ACK = 1, 4
FAMILY_ID, FAMILY_NAME = 1, 2
TASKSTATS_GET, REGISTER_CPUMASK = 1, 3
TYPE_PID, TYPE_STATS, TYPE_AGGR_PID = 1, 3, 4
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 64 << 20  # some 30,000 records that wait for their reader

# Where struct taskstats of linux/taskstats.h has them, from version 8.
AT = {"exit_code": ("I", 4), "cpu_ns": ("Q", 72), "uid": ("I", 120), "ppid": ("I", 132), "minor_faults": ("Q", 168),
      "major_faults": ("Q", 176), "hiwater_rss_kb": ("Q", 200), "rchar": ("Q", 216), "wchar": ("Q", 224),
      "syscr": ("Q", 232), "syscw": ("Q", 240), "read_bytes": ("Q", 248), "write_bytes": ("Q", 256),
      "voluntary_switches": ("Q", 272), "involuntary_switches": ("Q", 280)}
# The same of delays, with the version that has them first; None before.
DELAYS_AT = {"run_delay_ns": (24, 8), "blkio_delay_ns": (40, 8), "swapin_delay_ns": (56, 8), "freepages_delay_ns": (320, 8),
             "thrashing_delay_ns": (336, 9), "compact_delay_ns": (360, 11)}
TGID_AT, TGID_SINCE = 368, 12  # a thread's record names its process from that version
FAULTS = ("minor_faults", "major_faults")
BYTES = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes")
SWITCHES = ("voluntary_switches", "involuntary_switches")

# What follows a thread's record, taken as its exit begins, is in sluice's figures only: CPU time since the scheduler's
# last account (a tick, at most 10 ms) and taking down the memory, by its size; the last switch off the CPU, and more
# if others go first meanwhile.
TICK_NS = 10_000_000
TAKE_DOWN_NS_PER_PAGE = 1000
# Between two switches more it must have run. The kernel promises no shortest turn: who goes first may take the CPU back at
# once, and beside a timer of 15 µs turns are as short as that. In each is the way through the scheduler and back. This
# allows a single process much, so most must have no switch more: a figure that is wrong is wrong for all of them.
TURN_NS = 1000
# The kernel counts three kinds of pages for each CPU apart, up to a batch, and taskstats leaves out what no CPU has
# handed in; sluice adds that up for a small process. 768 KiB on two CPUs; else both are within 3 %.
HELD_BACK = 3 * max(32, 2 * os.cpu_count()) * os.cpu_count() * 4096
PEAK_PART = 0.03


class Overrun(Exception):
    """The kernel had more to report than the socket took: the book is not whole."""


def _attribute(kind, data):
    return struct.pack("<HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def _attributes(data):
    at = 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("<HH", data, at)
        if size < 4:
            return
        yield kind & 0x3fff, data[at + 4:at + size]
        at += (size + 3) & ~3


class Taskstats:
    """with Taskstats() as book: what ends meanwhile is in book.tasks, once it is closed: [dict of AT, pid, tgid]."""

    def __init__(self):
        self.tasks, self.version, self.error = [], None, None
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC)
        self._socket.bind((0, 0))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.settimeout(5)
        answer = self._ask(CONTROLLER, GET_FAMILY, _attribute(FAMILY_NAME, b"TASKSTATS\0"))
        family = next(struct.unpack("<H", v)[0] for k, v in _attributes(answer[20:]) if k == FAMILY_ID)
        with open("/sys/devices/system/cpu/possible") as f:
            cpus = f.read().strip().encode()
        self._ask(family, TASKSTATS_GET, _attribute(REGISTER_CPUMASK, cpus + b"\0"))
        self._is_closing = False
        self._thread = threading.Thread(target=self._read)

    def _ask(self, family, command, payload):
        body = struct.pack("<BBH", command, 1, 0) + payload
        self._socket.send(struct.pack("<IHHII", 16 + len(body), family, REQUEST | ACK, 1, 0) + body)
        answer = self._socket.recv(65536)
        error = struct.unpack_from("<i", answer, 16)[0] if struct.unpack_from("<H", answer, 4)[0] == 2 else 0
        if error:
            raise OSError(-error, "taskstats: " + os.strerror(-error))
        return answer

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        # The kernel reports an exit before it wakes the parent: all is in the socket by now.
        self._is_closing = True
        self._thread.join()
        self._socket.close()
        if self.error and _[0] is None:
            raise Overrun(self.error)

    def _read(self):
        self._socket.settimeout(0.1)
        while True:
            try:
                data = self._socket.recv(1 << 20)
            except socket.timeout:
                if self._is_closing:
                    return
                continue
            except OSError as e:
                self.error = str(e)
                continue
            at = 0
            while at + 16 <= len(data):
                size = struct.unpack_from("<I", data, at)[0]
                if size < 16:
                    break
                for kind, value in _attributes(data[at + 20:at + size]):
                    if kind == TYPE_AGGR_PID:
                        parts = dict(_attributes(value))
                        if TYPE_STATS in parts:
                            self._add(struct.unpack("<I", parts[TYPE_PID])[0], parts[TYPE_STATS])
                at += (size + 3) & ~3

    def _add(self, pid, stats):
        self.version = struct.unpack_from("<H", stats)[0]
        task = {name: struct.unpack_from("<" + form, stats, at)[0] for name, (form, at) in AT.items()}
        for name, (at, since) in DELAYS_AT.items():
            task[name] = struct.unpack_from("<Q", stats, at)[0] if self.version >= since else None
        task["pid"] = pid
        task["tgid"] = struct.unpack_from("<I", stats, TGID_AT)[0] if self.version >= TGID_SINCE else None
        self.tasks.append(task)


def status_of(end):
    """As wait(2) has it."""
    return (end["exit_signal"] or 0) | (end["exit_code"] or 0) << 8 | (0x80 if end["core_dumped"] else 0)


def processes_of(records, uid):
    """{pid: [END of each program]} of the processes whose last program ran under uid. No pid may come twice."""
    ends = collections.defaultdict(list)
    for r in records:
        if r["phase"] == "END":
            ends[r["pid"], r["start_time"]].append(r)
    found = {}
    for (pid, _), programs in ends.items():
        programs.sort(key=lambda r: r["program_index"])
        if programs[-1]["uid"] == uid:
            if pid in found:
                raise ValueError(f"pid {pid} was used twice")
            found[pid] = programs
    return found


def _total(programs, field):
    if field == "cpu_ns":
        return sum(p["usage"]["cpu_user_ns"] + p["usage"]["cpu_system_ns"] for p in programs)
    return sum(p["usage"][field] for p in programs)


def against_taskstats(processes, tasks, uid, is_emulated=False, peak_is_known=True):
    """What differs between sluice's processes and the kernel's records of the same user: ([sentence], Counter of the
    largest differences). is_emulated: of this machine's CPU time no upper bound is known. A virtual CPU that waits for a
    real one runs in the eyes of its kernel, so that its way out can take any time; truth_check.py has the bound there."""
    wrong, largest, threads = [], collections.Counter(), collections.defaultdict(list)
    beyond = collections.Counter()  # processes that were switched more often than once for each thread
    ours = [t for t in tasks if t["uid"] == uid]
    for t in ours:
        # Without the process's id, a task that is no process of ours is a thread of one: it cannot be added up.
        threads[t["tgid"] or t["pid"]].append(t)
    for pid in sorted(threads.keys() - processes.keys()):
        if threads[pid][0]["tgid"]:
            wrong.append(f"pid {pid}, which {threads[pid][0]['ppid']} started, is in taskstats and not in the lake")
    for pid, programs in processes.items():
        last, own = programs[-1], threads.get(pid)
        name = f"pid {pid} {last['comm']}"
        if own is None or all(t["pid"] != pid for t in own):
            wrong.append(f"{name} is in the lake and not in taskstats")
            continue
        leader = [t for t in own if t["pid"] == pid][-1]
        if status_of(last) != leader["exit_code"]:
            wrong.append(f"{name}: exit status: expected {leader['exit_code']}, got {status_of(last)}")
        if own[0]["tgid"] is None and any(p["usage"]["threads_peak"] != 1 for p in programs):
            continue
        book = {field: sum(t[field] for t in own) for field in (*FAULTS, *BYTES, *SWITCHES, "cpu_ns")}
        late = {field: _total(programs, field) - book[field] for field in book}
        peak, high = last["usage"]["peak_rss_bytes"], own[-1]["hiwater_rss_kb"] << 10
        spare = {field: 0 for field in FAULTS}
        spare |= {field: len(own) * 1024 - 1 for field in BYTES}  # taskstats cuts each thread's to whole KiB
        spare["wchar"] += 64  # which acct(2) has the last thread write as it ends
        spare["syscw"] += 1
        spare["cpu_ns"] = TICK_NS * len(own) + TAKE_DOWN_NS_PER_PAGE * (high >> 12) if not is_emulated else sys.maxsize
        for field in SWITCHES:
            spare[field] = len(own) + max(late["cpu_ns"], 0) // TURN_NS
        for field, more in late.items():
            largest[field] = max(largest[field], abs(more))
            beyond[field] += field in SWITCHES and more > len(own)
            if not 0 <= more <= spare[field]:
                wrong.append(f"{name}: {field}: expected {book[field]} to {book[field] + spare[field]}, got {book[field] + more}"
                             f" ({len(own)} threads)")
        if peak is None:
            if not last["forked"] and peak_is_known:
                wrong.append(f"{name}: peak_rss_bytes: expected {high}, got null")
            continue
        largest["peak_rss_bytes"] = max(largest["peak_rss_bytes"], abs(peak - high))
        if abs(peak - high) > max(HELD_BACK, PEAK_PART * high):
            wrong.append(f"{name}: peak_rss_bytes: expected {high} ± {max(HELD_BACK, PEAK_PART * high):.0f}, got {peak}")
    for field, n in beyond.items():
        if 2 * n > len(processes) and not is_emulated:
            wrong.append(f"{field}: {n} of {len(processes)} processes have more than their ends account for")
    return wrong, largest


def comp(number):
    """As acct(2) stores it: 13 bits, and an exponent of base 8, rounded."""
    exponent, is_up = 0, 0
    while number > 0x1fff:
        is_up = number & 4
        number >>= 3
        exponent += 1
    if is_up:
        number += 1
        if number > 0x1fff:
            number >>= 3
            exponent += 1
    return exponent << 13 | number


Entry = collections.namedtuple("Entry", "comm forked status uid minor_faults major_faults")


def read_acct(path, uid):
    """Counter of Entry: the records of version 3 of that user. Pids in it are those of the namespace."""
    found = collections.Counter()
    with open(path, "rb") as f:
        data = f.read()
    if len(data) % 64:
        raise ValueError(f"{path}: {len(data)} bytes are no whole records")
    for at in range(0, len(data), 64):
        (flag, version, _, code, its_uid, *_, minor, major, _, comm) = struct.unpack_from("<BBHIIIIIIfHHHHHHHH16s", data, at)
        if version & 0xf != 3:
            raise ValueError(f"{path}: a record of version {version & 0xf}")
        if its_uid == uid:
            found[Entry(comm.split(b"\0")[0].decode(errors="replace"), bool(flag & 1), code, its_uid, minor, major)] += 1
    return found


def against_acct(processes, book):
    """The same for acct(2), which names no process of the host: as many of each kind. Its CPU time is made of tick
    samples, which miss what runs between two of them, so that is not held against it."""
    lake = collections.Counter()
    for programs in processes.values():
        last = programs[-1]
        lake[Entry(last["comm"][:15], last["forked"], status_of(last), last["uid"],
                   comp(_total(programs, "minor_faults")), comp(_total(programs, "major_faults")))] += 1
    return ([f"{n} × {e} in acct(2) and not in the lake" for e, n in (book - lake).items()] +
            [f"{n} × {e} in the lake and not in acct(2)" for e, n in (lake - book).items()])


def main():
    path, uid, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    libc = ctypes.CDLL(None, use_errno=True)
    if os.getpid() != 1:
        sys.exit("books.py: not the first process of a pid namespace: acct(2) would account for others")
    open(path, "wb").close()
    if libc.acct(path.encode()) != 0:
        sys.exit(f"books.py: acct: {os.strerror(ctypes.get_errno())}")
    for signo in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(signo, signal.SIG_DFL)
    first = subprocess.Popen(command, user=uid, group=uid, extra_groups=())
    status = None
    while True:  # whose parent is gone is a child of this process
        try:
            pid, ended = os.wait()
        except ChildProcessError:
            break
        if pid == first.pid:
            status = os.waitstatus_to_exitcode(ended)
    libc.acct(None)
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
