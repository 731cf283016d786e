# SPDX-License-Identifier: Apache-2.0
"""The machine of the benchmark: its description, its load, and the one setting that is changed."""
import contextlib
import os
import platform
import signal
import time

STATS = "/proc/sys/kernel/bpf_stats_enabled"


def describe():
    """Returns kernel, CPUs and their model, and memory, which a reader needs to compare figures."""
    with open("/proc/cpuinfo") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    with open("/proc/meminfo") as f:
        total = int(f.readline().split()[1])
    with open("/proc/cpuinfo") as f:
        virtual = "hypervisor" in f.read()
    return (f"Linux {platform.release()}, {os.cpu_count()} CPUs ({models[0] if models else platform.machine()}"
            f"{', virtual machine' if virtual else ''}), {round(total / 2**20)} GiB")


class Load:
    """The CPU use of other processes: the machine's, less that of the benchmark and its servers (pids)."""

    def __init__(self, servers=()):
        self.servers = servers
        self.start = self._ticks()

    def _ticks(self):
        with open("/proc/stat") as f:
            values = [int(v) for v in f.readline().split()[1:]]
        hz = os.sysconf("SC_CLK_TCK")
        idle = values[3] + values[4]
        own = sum(os.times()[:4]) + sum(map(process_cpu, self.servers))
        return (sum(values[:8]) - idle) / hz, sum(values[:8]) / hz, own

    def others(self):
        """Returns the average number of CPUs that other processes kept busy."""
        busy, total, own = (b - a for a, b in zip(self.start, self._ticks()))
        wall = total / os.cpu_count()
        return max(0.0, (busy - own) / wall) if wall > 0 else 0.0


@contextlib.contextmanager
def bpf_stats():
    """Turns kernel.bpf_stats_enabled on, and restores it afterwards, also on an interrupt."""
    with open(STATS) as f:
        before = f.read()

    def write(value):
        with open(STATS, "w") as f:
            f.write(value)

    def on_term(*_):
        raise SystemExit(143)

    old = signal.signal(signal.SIGTERM, on_term)
    write("1")
    try:
        yield
    finally:
        write(before)
        signal.signal(signal.SIGTERM, old)


def process_cpu(pid):
    """Returns the CPU seconds of a process so far, ended threads included: clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def cpu_ns(pid):
    """Returns the CPU time of a process's living threads so far; exact, while /proc/PID/stat counts ticks."""
    total = 0
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/task/{tid}/schedstat") as f:
                total += int(f.read().split()[0])
    return total


def memory_kib(pid):
    """Returns {VmRSS, VmHWM, RssAnon, RssFile, RssShmem} of a process."""
    with open(f"/proc/{pid}/status") as f:
        fields = (line.split() for line in f)
        return {x[0].rstrip(":"): int(x[1]) for x in fields if x and x[0].rstrip(":") in
                ("VmRSS", "VmHWM", "RssAnon", "RssFile", "RssShmem")}
