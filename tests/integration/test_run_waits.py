# SPDX-License-Identifier: Apache-2.0
"""What programs wait for: programs that wait each in one way, side by side, over a restart, and delays beside taskstats."""
import contextlib
import fcntl
import json
import os
import socket
import subprocess
import threading
import time

import books
import harness
from agent import AgentTest
from hanging import Hanging, Served
from harness import LakeTest, read_lake
from load import own, own_folder

LIFE_S = 6 * harness.PATIENCE  # of each program
SECOND_NS = 1_000_000_000
ODD_AT_MOST = 10  # runs until one has delays that can be
LATE_S = 0.3  # each answer of a file system
SLACK_NS = SECOND_NS  # since the last pass, of which there is one a second
THREADS = 50
CHUNK, CHUNKS_A_SECOND = 100 << 10, 20  # what the server of the slow download sends
CLASSES = ("stopped", "network_fs", "swap", "reclaim", "block", "network", "pipe", "lock", "child", "timer", "poll", "other",
           "throttled")
DELAYS = {"block_io_delay_ns": "blkio_delay_ns", "swapin_delay_ns": "swapin_delay_ns", "reclaim_delay_ns": "freepages_delay_ns",
          "thrashing_delay_ns": "thrashing_delay_ns", "compact_delay_ns": "compact_delay_ns"}
ACCOUNTING = "/proc/sys/kernel/task_delayacct"  # from 5.14; before, it is on unless the kernel's command line says otherwise

# Starts each program with a silent pipe as its stdin, prints their pids, and kills them and what they started.
CONDUCTOR = """
import json, os, signal, subprocess, sys, time
life, programs, group = float(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
silent, _ = os.pipe()
started = {name: subprocess.Popen(argv, stdin=silent, stdout=subprocess.DEVNULL, start_new_session=True)
           for name, argv in programs.items()}
if group:
    with open(os.path.join(group, "cgroup.procs"), "w") as f:
        f.write(str(started["throttled"].pid))
print(json.dumps({name: p.pid for name, p in started.items()}), flush=True)
time.sleep(life)
for p in started.values():
    os.killpg(p.pid, signal.SIGKILL)
for p in started.values():
    p.wait()
"""
PYTHON = "/usr/bin/python3"
LOCK_FILE = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)"
LOCK_THREAD = "import threading; l = threading.Lock(); l.acquire(); l.acquire()"
RECEIVE = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)"
DOWNLOAD = """
import select, socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
while select.select([s], [], [])[0] and s.recv(1 << 16): pass
"""
ACCEPT = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.accept()"
PAIR = "import socket; a, b = socket.socketpair(); a.recv(1)"
SELECT = "import select; select.select([0], [], [])"
SLEEPERS = f"import threading, time; [threading.Thread(target=time.sleep, args=(3600,)).start() for _ in range({THREADS})]"
STOP = "kill -STOP $$"
BURN = "while :; do :; done"


@contextlib.contextmanager
def server(is_silent):
    """Accepts one client, and sends it nothing, or CHUNKS_A_SECOND; its port."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(60 * harness.PATIENCE)

    def serve():
        with contextlib.suppress(OSError), listener.accept()[0] as client:
            while not ended.wait(1 / CHUNKS_A_SECOND):
                if not is_silent:
                    client.sendall(bytes(CHUNK))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


@contextlib.contextmanager
def throttled_group():
    """A control group with a tenth of a CPU, in a hierarchy of either version. Others of the host take none of that from it."""
    v1 = "/sys/fs/cgroup/cpu"
    is_v1 = os.path.isdir(v1)
    path = os.path.join(v1 if is_v1 else "/sys/fs/cgroup", f"sluice-waits-{os.getpid()}")
    if not is_v1:
        write_text("/sys/fs/cgroup/cgroup.subtree_control", "+cpu")
    os.mkdir(path)
    try:
        for name, text in {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000", "cpu.shares": "262144"}.items() \
                if is_v1 else {"cpu.max": "10000 100000", "cpu.weight": "10000"}.items():
            write_text(os.path.join(path, name), text)
        yield path
    finally:
        os.rmdir(path)


@contextlib.contextmanager
def delay_accounting(is_on):
    if not os.path.exists(ACCOUNTING):
        yield
        return
    with open(ACCOUNTING) as f:
        before = f.read()
    write_text(ACCOUNTING, str(int(is_on)))
    try:
        yield
    finally:
        write_text(ACCOUNTING, before)


def write_text(path, text):
    with open(path, "w") as f:
        f.write(text)


def release():
    return tuple(map(int, os.uname().release.split(".")[:2]))


def waits_of(usage):
    return {name: usage[f"wait_{name}_ns"] for name in CLASSES}


def last_ends(records):
    """{pid: usage, with life_ns and bill} of the last program of each process."""
    ends = {}
    for r in sorted((r for r in records if r["phase"] == "END"), key=lambda r: r["program_index"]):
        ends[r["pid"]] = r["usage"] | {"life_ns": (r["end_time"] - r["start_time"]) * 1000, "bill": r["bill"]}
    return ends


class Waits(LakeTest):
    def programs(self, room, stack):
        """{name: (class, argv)}; what they wait for lasts as long as the stack."""
        held = os.path.join(room, "held")
        lock = stack.enter_context(open(held, "w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        hanging = stack.enter_context(Hanging(os.path.join(room, "away")))
        ahead = stack.enter_context(Served(os.path.join(room, "folder"), os.path.join(room, "late"), LATE_S, 1 << 17))
        with open(os.path.join(ahead.folder, "file"), "wb") as f:
            f.truncate(1 << 30)
        return {
            "sleep": ("timer", ["sleep", "3600"]),
            "pipe": ("pipe", ["cat"]),
            "pair": ("pipe", [PYTHON, "-c", PAIR]),
            "child": ("child", ["/bin/sh", "-c", "sleep 3600; exit"]),
            "flock": ("lock", [PYTHON, "-c", LOCK_FILE, held]),
            "futex": ("lock", [PYTHON, "-c", LOCK_THREAD]),
            "receive": ("network", [PYTHON, "-c", RECEIVE, str(stack.enter_context(server(True)))]),
            "download": ("network", [PYTHON, "-c", DOWNLOAD, str(stack.enter_context(server(False)))]),
            "accept": ("poll", [PYTHON, "-c", ACCEPT]),
            "select": ("poll", [PYTHON, "-c", SELECT]),
            "stop": ("stopped", ["/bin/sh", "-c", STOP]),
            "fuse": ("network_fs", ["cat", os.path.join(hanging.at, "file")]),
            # Before Linux 5.15 nothing shows whose pages it waits for.
            "fuse ahead": ("network_fs" if release() >= (5, 15) else None, ["cat", os.path.join(ahead.at, "file")]),
            "threads": ("timer", [PYTHON, "-c", SLEEPERS]),
            "burn": (None, ["/bin/sh", "-c", BURN]),
        }

    def run_side_by_side(self, programs, group=""):
        """{name: usage of its last program}"""
        argv = {name: argv for name, (_, argv) in programs.items()}
        done = self.sluice_run(PYTHON, "-c", CONDUCTOR, str(LIFE_S), json.dumps(argv), group, options=["--quiet"],
                               timeout=120 + 2 * LIFE_S)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assert_nothing_lost()
        topics = read_lake(self.lake)
        ends = last_ends(topics["sluice.program"])
        (run,) = [r["usage"] for r in topics["sluice.run"] if r["phase"] == "END"]
        self.assertEqual(run["thread_ns"], sum(r["usage"]["thread_ns"] for r in self.ends(topics)))
        for r in topics["sluice.program"]:
            self.assertEqual((r["usage"] or {}).get("thread_ns"), r["bill"] and sum(r["bill"].values()), r)
        for name in CLASSES:
            self.assertEqual(run[f"wait_{name}_ns"], sum(r["usage"][f"wait_{name}_ns"] for r in self.ends(topics)), name)
        return {name: ends[pid] for name, pid in json.loads(done.stdout).items()}

    def assert_parts(self, name, usage):
        """Parts are no more than the whole; the class of each sample is known."""
        waits = waits_of(usage)
        self.assertLessEqual(sum(waits.values()), usage["thread_ns"], (name, usage))
        self.assertLessEqual(usage["wait_uninterruptible_ns"], sum(waits.values()), (name, usage))

    def assert_mostly(self, name, kind, usage):
        slept = usage["thread_ns"] - usage["cpu_user_ns"] - usage["cpu_system_ns"] - usage["run_delay_ns"]
        for waited in usage[f"wait_{kind}_ns"], usage["bill"][f"{kind}_ns"]:
            self.assertGreaterEqual(waited, 0.7 * slept - SLACK_NS * max(1, usage["threads_peak"]), (name, usage))
        self.assertGreater(usage[f"wait_{kind}_ns"], 0, (name, usage))

    def test_each_wait_is_of_its_class(self):
        with contextlib.ExitStack() as stack:
            programs = self.programs(self.room, stack)
            seen = self.run_side_by_side(programs)
        for name, (kind, _) in programs.items():
            usage = seen[name]
            self.assert_parts(name, usage)
            if name != "threads":
                self.assertAlmostEqual(usage["life_ns"], usage["thread_ns"], delta=SECOND_NS / 10 * harness.PATIENCE, msg=name)
            if kind is not None:
                self.assert_mostly(name, kind, usage)
        burn = seen["burn"]
        self.assertLessEqual(sum(waits_of(burn).values()), SLACK_NS, burn)
        self.assertGreater(seen["fuse"]["wait_network_fs_ns"], 2 * SLACK_NS)

        threads = seen["threads"]
        self.assertEqual(THREADS + 1, threads["threads_peak"])
        # Each began a little later than the program.
        self.assertTrue(0.5 < threads["thread_ns"] / ((THREADS + 1) * threads["life_ns"]) <= 1, threads)
        self.assertGreaterEqual(threads["wait_samples"], (THREADS + 1) * (LIFE_S // 2 - 1), threads)
        self.assertGreater(threads["wait_timer_ns"], 20 * threads["wait_lock_ns"], threads)  # its leader waits for them

    def test_a_quota_throttles(self):
        with throttled_group() as group:
            usage = self.run_side_by_side({"throttled": (None, ["/bin/sh", "-c", BURN])}, group)["throttled"]
        self.assert_parts("throttled", usage)
        ran = usage["cpu_user_ns"] + usage["cpu_system_ns"]
        self.assertLess(ran, usage["thread_ns"] / 2)
        self.assertGreaterEqual(usage["wait_throttled_ns"], 0.7 * (usage["thread_ns"] - ran) - SLACK_NS, usage)


class Restart(AgentTest):
    def test_what_was_seen_before_a_restart_counts(self):
        a = self.agent()
        a.follow_only(own_folder())
        a.start()
        program = subprocess.Popen([own("sleep"), "3600"])
        self.addCleanup(program.kill)
        time.sleep(LIFE_S)
        a.kill9()
        a.start()
        program.kill()
        program.wait()
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        usage = last_ends(read_lake(a.lake)["sluice.program"])[program.pid]
        # The agent that began last has made no two passes while it ran.
        self.assertGreaterEqual(usage["wait_timer_ns"], 0.7 * LIFE_S * SECOND_NS - SLACK_NS, usage)
        self.assertLessEqual(usage["wait_timer_ns"], usage["thread_ns"], usage)


class Delays(LakeTest):
    def block_device(self):
        """Some MiB on a loop device, of which nothing is cached."""
        path = os.path.join(self.room, "disk")
        with open(path, "wb") as f:
            f.write(os.urandom(16 << 20))
        done = subprocess.run(["losetup", "--find", "--show", path], capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        device = done.stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "--detach", device], check=True)
        is_open = open(device, "rb")  # the last to close it waits for it, after the kernel's record of its delays
        self.addCleanup(is_open.close)
        return device

    def test_each_delay_is_that_of_taskstats(self):
        device = self.block_device()
        seen = set()
        with delay_accounting(True), books.Taskstats() as book:
            for _ in range(ODD_AT_MOST):
                # In memory and without libraries: from 7.0 on to close a file of 9p, as its exit does, is such a delay.
                done = self.sluice_run(own("busybox"), "dd", f"if={device}", "of=/dev/null", "bs=4k", "iflag=direct",
                                       options=["--quiet"])
                self.assertEqual(0, done.returncode, done.stderr)
                (end,) = [r for r in self.ends() if r["comm"] == "busybox" and r["pid"] not in seen]
                seen.add(end["pid"])
                (task,) = [t for t in book.tasks if t["pid"] == end["pid"]]
                usage, counted = end["usage"], {field: task[name] for field, name in DELAYS.items()}
                # On a busy host kernels from 6.12 on may begin a wait at the host's start.
                is_odd = counted["block_io_delay_ns"] > usage["thread_ns"]
                if is_odd:
                    counted["block_io_delay_ns"] = None
                self.assertEqual(counted, {field: usage[field] for field in DELAYS})
                if not is_odd:
                    break
        self.assertGreater(usage["block_io_delay_ns"], 1_000_000)
        self.assertGreater(end["bill"]["block_io_ns"], 1_000_000)

    def test_without_accounting_each_delay_is_null(self):
        with delay_accounting(False):
            self.assertEqual(0, self.sluice_run("true", options=["--quiet"]).returncode)
        (usage,) = [r["usage"] for r in self.ends() if r["comm"] == "true"]
        unknown = {field for field in DELAYS if usage[field] is None}
        self.assertEqual(set(DELAYS) if os.path.exists(ACCOUNTING) else {"compact_delay_ns"}, unknown)
        self.assertGreater(usage["thread_ns"], 0)


if __name__ == "__main__":
    harness.main()
