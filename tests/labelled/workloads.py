# SPDX-License-Identifier: Apache-2.0
"""More than fifty pieces of work, and what each is bound by: the labels that the verdicts of sluice are held against.

A label is what the program was made to do (labelled.c), in surroundings that are made for it (surroundings.py): what it
would be bound by on an idle host, and what limits or neighbours take from it. No figure of sluice's is part of it. What
the kernel and /proc report of the same execution (oracle.py) has to bear it out: `truth`.
"""
import dataclasses
import os
import sys

DEMANDS = ("COMPUTE", "MEMORY", "STORAGE", "NETWORK_FS", "NETWORK", "WAITING_FOR", "MIXED")
DENIED = ("NOTHING", "RUN_QUEUE", "THROTTLED", "RECLAIM", "IO")
OF_A_LIMIT = "OF_A_LIMIT"  # a disk of which a limit takes a part: sluice has no such answer, so it is not asked

WITH_DELAYS = "delay_"  # begins the name of a figure that there is with delay accounting alone

GIL = """
import sys, threading, time
until = time.monotonic() + float(sys.argv[1])
def work():
    while time.monotonic() < until:
        sum(range(10000))
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
"""
HEAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Heap.java")
PIPELINE = "cat /dev/urandom | gzip -1 | wc -c"
ONE_RUNS = {"some_running": 0.85}
WANTS_CPU = {"wants_cpu": 0.85}  # others of the host may have it


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    command: tuple[str, ...]  # with {program}, {seconds}, {file}, {folder} and {port}
    demand: str
    truth: dict[str, float]  # figures of the oracle: at least
    denied: str = "NOTHING"
    waits: tuple[str, ...] = ()  # for what, where the demand is WAITING_FOR; where there are several, each is right
    around: tuple[str, ...] = ()  # names of SURROUNDINGS
    peer: tuple[str, ...] = ()  # another program, outside of the workload; its first line is {port}
    also: tuple[str, ...] = ()  # other answers that are right, too
    is_denied_by_delays: bool = False  # nothing but delay accounting shows that: with it alone `denied` is asked, and `also` wrong
    is_its_own_crowd: bool = False  # its threads wait for one another's CPUs, which is no sign of others
    must: bool = False  # its demand is never wrong, however many others are right
    why: str = ""


def kind(name, *args):
    return ("{program}", name, "{seconds}", *args)


def reading(name):
    return kind(name, "{file}")


def network(name, file="-"):
    return kind(name, file, "{port}")


def on_cpu(name, command, why="", **more):
    """One that computes all the time, in each of its threads."""
    return Workload(name, command, "COMPUTE", more.pop("truth", WANTS_CPU), why=why, **more)


COMPUTING = (
    on_cpu("cpu", kind("cpu")),
    on_cpu("a thread for each CPU", kind("cpu_threads")),
    on_cpu("more threads than CPUs, then one", kind("threads_then_one"), "its own threads took the CPUs from one another",
           truth={"wants_cpu": 0.85, "run_queue": 0.3, "some_running": 0.85}, is_its_own_crowd=True),
    on_cpu("memory bandwidth", kind("bandwidth"), "without counters of the CPU the same as computing"),
    on_cpu("cache misses", kind("cache"), "as bandwidth"),
    on_cpu("system calls", kind("system_calls")),
    on_cpu("ranks that spin", kind("spin"), "as bandwidth"),
    on_cpu("fork and join", kind("fork_join"), "the parent only waits for what computes", truth=ONE_RUNS),
    on_cpu("threads at a barrier", kind("barriers"), "one of them always computes", truth=ONE_RUNS),
    on_cpu("threads of Python", (sys.executable, "-c", GIL, "{seconds}"),
           "one at a time: while some wait for the lock, one has it and computes", truth=ONE_RUNS),
    on_cpu("shell pipeline", ("timeout", "{seconds}", "sh", "-c", PIPELINE), "its slowest part computes", truth=ONE_RUNS),
    on_cpu("mapped file, warm", reading("mmap_warm")),
    on_cpu("page cache", reading("read_warm")),
    on_cpu("heap at nine tenths of its limit", kind("heap", "-", "115"), around=("limit of 128 MiB",)),
    on_cpu("heap of a JVM near its limit", ("java", "-Xmx64m", "-XX:+UseSerialGC", HEAP, "{seconds}"),
           "its collector computes", truth=ONE_RUNS, around=("JDK",)),
)

LIMITED_DISK = {"denied": OF_A_LIMIT, "around": ("slow disk",)}
STORAGE = (
    Workload("mapped file, cold", reading("mmap_cold"), "STORAGE", {"block": 0.8}, **LIMITED_DISK),
    Workload("read, cold", reading("read_cold"), "STORAGE", {"block": 0.8}, **LIMITED_DISK),
    Workload("O_DIRECT read", reading("read_direct"), "STORAGE", {"block": 0.8}, **LIMITED_DISK),
    Workload("O_DIRECT write", reading("write_direct"), "STORAGE", {"block": 0.8}, **LIMITED_DISK),
    Workload("fdatasync", reading("write_sync"), "STORAGE", {"block": 0.8}, **LIMITED_DISK),
    Workload("sixteen threads that read", reading("read_threads"), "STORAGE", {"block": 0.8}, **LIMITED_DISK),
    Workload("a disk that is itself slow", reading("read_direct"), "STORAGE", {"block": 0.8}, around=("delayed disk",)),
    Workload("random reads of it", reading("read_random"), "STORAGE", {"block": 0.8}, around=("delayed disk",)),
    Workload("mapped file on it", reading("mmap_cold"), "STORAGE", {"block": 0.8}, around=("delayed disk",)),
    Workload("reads beside eight readers", reading("read_direct"), "STORAGE", {"block": 0.8}, "IO",
             around=("delayed disk", "8 readers"), why="the disk serves one at a time"),
    Workload("reading and computing", reading("read_and_compute"), "MIXED", {"block": 0.35, "wants_cpu": 0.35},
             around=("delayed disk",)),
)

REMOTE = (
    Workload("FUSE, reads", reading("read_cold"), "NETWORK_FS", {"remote_fs": 0.8}, around=("late FUSE",), must=True),
    Workload("FUSE, read ahead", reading("read_cold"), "NETWORK_FS", {"remote_fs": 0.5},
             around=("late FUSE, read ahead",), must=True,
             why="what is read ahead is waited for in functions of all file systems alone"),
    Workload("mapped file on FUSE", reading("mmap_cold"), "NETWORK_FS", {"remote_fs": 0.8}, around=("late FUSE",), must=True),
    Workload("FUSE, writes", reading("write_sync"), "NETWORK_FS", {"remote_fs": 0.8}, around=("late FUSE",), must=True),
    Workload("FUSE, names", reading("stats"), "NETWORK_FS", {"remote_fs": 0.8}, around=("late FUSE",), must=True),
    Workload("NFS, reads", reading("read_cold"), "NETWORK_FS", {"remote_fs": 0.6}, around=("NFS",)),
    Workload("NFS, writes", reading("write_sync"), "NETWORK_FS", {"remote_fs": 0.6}, around=("NFS",)),
)

NETWORK = (
    Workload("download", network("net_down"), "NETWORK", {"network": 0.8}, peer=("server_down",)),
    Workload("upload", network("net_up"), "NETWORK", {"network": 0.8}, peer=("server_up",)),
    Workload("download to a file", network("net_to_file", "{file}"), "NETWORK", {"network": 0.8}, peer=("server_down",),
             must=True),
    Workload("download over a slow link", network("net_down"), "NETWORK", {"network": 0.8}, around=("slow link",),
             peer=("server_down_fast",)),
    Workload("upload over a slow link", network("net_up"), "NETWORK", {"network": 0.8}, around=("slow link",),
             peer=("server_up_fast",)),
    Workload("downloading and computing", network("net_and_compute"), "MIXED", {"network": 0.35, "wants_cpu": 0.35},
             around=("slow link",), peer=("server_down_fast",)),
)

WAITING = (
    Workload("requests to a late server", network("requests"), "WAITING_FOR", {"network": 0.8}, waits=("POLL", "OTHER"),
             peer=("server_late",), also=("NETWORK",), why="of its network it uses a few bytes; what it waits for is a program"),
    Workload("polls a server", network("poll_idle"), "WAITING_FOR", {"poll": 0.8}, waits=("POLL",), peer=("server_late",)),
    Workload("pipe of a slow writer", kind("pipe_reader", "{folder}/pipe"), "WAITING_FOR", {"pipe": 0.9}, waits=("PIPE",),
             peer=("slow_writer", "{folder}/pipe")),
    Workload("pipe of a slow reader", kind("pipe_writer", "{folder}/pipe"), "WAITING_FOR", {"pipe": 0.9}, waits=("PIPE",),
             peer=("slow_reader", "{folder}/pipe")),
    Workload("unix socket", kind("unix_reader"), "WAITING_FOR", {"pipe": 0.45, "timer": 0.4}, waits=("PIPE", "TIMER"),
             why="a child pauses between what it writes"),
    Workload("lock of a file", reading("file_lock"), "WAITING_FOR", {"lock": 0.8}, waits=("LOCK",),
             peer=("lock_holder", "{file}")),
    Workload("mutex", kind("mutexes"), "WAITING_FOR", {"lock": 0.55}, waits=("LOCK",)),
    Workload("vfork", kind("in_d"), "WAITING_FOR", {"state_d": 0.45, "child": 0.45}, waits=("CHILD", "TIMER"),
             why="in D, for a child that sleeps"),
    Workload("frozen file system", reading("write_sync"), "WAITING_FOR", {"state_d": 0.6}, waits=("LOCK", "OTHER"),
             around=("frozen disk",), why="in D, for a lock that is given back once the disk is thawed"),
    Workload("sleep", kind("sleeps"), "WAITING_FOR", {"timer": 0.9}, waits=("TIMER",)),
    Workload("stopped", kind("stopped"), "WAITING_FOR", {"stopped": 0.45, "child": 0.45}, waits=("STOPPED", "CHILD"),
             why="the parent waits for a child that is stopped"),
)

LIMITED = (
    on_cpu("a tenth of a CPU", kind("cpu"), truth={"throttled": 0.5, "some_running": 0.9}, denied="THROTTLED",
           around=("tenth of a CPU",)),
    Workload("more than its limit, swapped to a disk", kind("anon", "-", "256"), "MEMORY",
             {"major_faults": 1000, "delay_memory": 0.2}, "RECLAIM", around=("limit of 128 MiB", "disk swap"),
             why="beside a quick disk most of it is the CPU time of finding pages to evict"),
    Workload("more than its limit, swapped to zram", kind("anon", "-", "256"), "MEMORY",
             {"major_faults": 1000, "delay_memory": 0.3}, "RECLAIM", around=("limit of 128 MiB", "zram swap"),
             why="compressing is CPU time, and all of it is for want of memory"),
    Workload("mapped file of more than its limit", kind("mmap_again", "{file}", "6"), "MEMORY",
             {"block": 0.6, "major_faults": 100, "delay_memory": 0.02}, "RECLAIM", around=("fair disk", "limit of 4 MiB"),
             also=("STORAGE",), is_denied_by_delays=True,
             why="each wait is a read that memory would have spared; the kernel counts as thrash only some of them"),
    Workload("memory.high", kind("anon", "-", "256"), "MEMORY", {"delay_memory": 0.3}, "RECLAIM",
             around=("memory.high of 128 MiB", "disk swap"), also=("COMPUTE",), is_denied_by_delays=True,
             why="the kernel takes pages back in the program's own CPU time, and few are read anew"),
)


def beside(name, count, **more):
    """A workload of the others, on one CPU with burners. What it needs is the same, and so must its demand be."""
    of = next(w for w in (*COMPUTING, *STORAGE, *NETWORK, *WAITING) if w.name == name)
    around = (*of.around, f"{count} burners")
    return dataclasses.replace(of, name=f"{name}, beside {count}", around=around, must=True, **more)


BURNT = {"denied": "RUN_QUEUE", "truth": {"run_queue": 0.5, "some_running": 0.9}}
BESIDE = (
    beside("cpu", 2, **BURNT),
    beside("cpu", 8, **BURNT),
    beside("page cache", 2, **BURNT),
    beside("page cache", 8, **BURNT),
    beside("fork and join", 8, denied="RUN_QUEUE", truth={"run_queue": 0.3, "some_running": 0.9}),
    beside("a disk that is itself slow", 2),
    beside("a disk that is itself slow", 8),
    beside("download", 8, truth={"network": 0.7}),
    beside("pipe of a slow writer", 8, truth={"pipe": 0.6}),
    beside("sleep", 2),
    beside("sleep", 8),
)

WORKLOADS = (*COMPUTING, *STORAGE, *REMOTE, *NETWORK, *WAITING, *LIMITED, *BESIDE)
