# SPDX-License-Identifier: Apache-2.0
"""What a labelled workload runs in: a slow disk, a file system that answers late, a limit of a control group, others that
take its CPU. Each is a context manager that changes a Place, and undoes what it did (undo.py)."""
import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

import hanging
import undo

MIB = 1 << 20
FILE_MIB = 128
IMAGE_MIB = 256
SWAP_MIB = 512
SLOW_BYTES_PER_S = 8 * MIB  # of the slow disk: a read of 1 MiB takes an eighth of a second
LATE_S, SOON_S = 0.01, 0.002  # of a request; a disk's is of at most 128 KiB
FROZEN_MORE_S = 1  # until sluice has started
LIMIT_MIB = 128
READ_AHEAD_KIB = "128"
QUOTA_US, PERIOD_US = 10000, 100000
LINK_RATE = "40mbit"
CGROUPS = "/sys/fs/cgroup"
DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")


class Absent(Exception):
    """This host lacks what the surroundings need."""


@dataclasses.dataclass
class Place:
    """Where a workload runs."""

    folder: str
    program: str  # labelled
    undo: undo.Undo
    seconds: float
    file: str = ""
    where: list[str] = dataclasses.field(default_factory=list)  # before the command lines of the workload and its peer
    before: list[str] = dataclasses.field(default_factory=list)  # before the workload's alone
    throttled: str = ""  # file that counts the time for which its group was throttled


def _write(path, text):
    with open(path, "w") as f:
        f.write(text)


def _run(*argv):
    """Its standard output; an error names the command and what it printed."""
    done = subprocess.run(argv, timeout=120, capture_output=True, stdin=subprocess.DEVNULL, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def make_file(path):
    """A file that is on its disk, and in the page cache."""
    with open(path, "wb") as f:
        for _ in range(FILE_MIB):
            f.write(os.urandom(MIB))
        f.flush()
        os.fsync(f.fileno())
    return path


class Group:
    """A control group of a workload's own, of either version."""

    def __init__(self, controller):
        self.is_v2 = not os.path.isdir(os.path.join(CGROUPS, controller))
        top = CGROUPS if self.is_v2 else os.path.join(CGROUPS, controller)
        if self.is_v2:
            wanted = {"blkio": "io"}.get(controller, controller)
            with open(os.path.join(top, "cgroup.controllers")) as f:
                if wanted not in f.read().split():
                    raise Absent(f"no control group has {controller}")
            _write(os.path.join(top, "cgroup.subtree_control"), "+" + wanted)
        self.path = os.path.join(top, f"labelled-{os.getpid()}-{controller}")

    def set(self, v1, v2):
        """(file, value) of both versions; None: that version has no such limit."""
        limit = v2 if self.is_v2 else v1
        if limit is None:
            raise Absent("no such limit in this version of control groups")
        _write(os.path.join(self.path, limit[0]), limit[1])

    @contextlib.contextmanager
    def made(self, place):
        with place.undo.step("rmdir", self.path):
            os.mkdir(self.path)
            place.before += ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.path]
            yield self


def _image(folder, undoing):
    """The path of an image of a file system with a data file in it."""
    image, at = os.path.join(folder, "image"), os.path.join(folder, "made")
    with open(image, "wb") as f:
        f.truncate(IMAGE_MIB * MIB)
    _run("mkfs.ext4", "-q", "-F", "-m0", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
    with _mounted(image, at, undoing) as file:
        make_file(file)
    return image


@contextlib.contextmanager
def _mounted(image, at, undoing):
    """The image's data file, on a loop device that ends with the mount."""
    os.makedirs(at, exist_ok=True)
    device = _run("losetup", "--find", "--show", "--direct-io=on", image)
    with undoing.step("losetup", "--detach", device), undoing.step("umount", at):
        # Some hosts have disks that read ahead more than what a small limit of memory holds.
        _write(f"/sys/block/{os.path.basename(device)}/queue/read_ahead_kb", READ_AHEAD_KIB)
        _run("mount", "-o", "noatime", device, at)
        yield os.path.join(at, "data")


@contextlib.contextmanager
def slow_disk(place):
    """A disk that the workload's control group may use slowly: blkio.throttle, or io.max."""
    at = os.path.join(place.folder, "slow")
    with _mounted(_image(place.folder, place.undo), at, place.undo) as place.file, Group("blkio").made(place) as group:
        number = os.stat(at).st_dev
        which = f"{os.major(number)}:{os.minor(number)}"
        for way in ("read", "write"):
            group.set((f"blkio.throttle.{way}_bps_device", f"{which} {SLOW_BYTES_PER_S}"),
                      ("io.max", f"{which} {way[0]}bps={SLOW_BYTES_PER_S}"))
        yield


def _late_disk(late_s):
    """A disk that is itself slow, and serves one request after the other."""
    @contextlib.contextmanager
    def surround(place):
        backing, served, at = (os.path.join(place.folder, name) for name in ("backing", "served", "late"))
        os.makedirs(backing)
        image = _image(backing, place.undo)
        with (place.undo.if_killed("umount", "--lazy", served), hanging.Served(backing, served, late_s),
              _mounted(os.path.join(served, os.path.basename(image)), at, place.undo) as place.file):
            yield
    return surround


@contextlib.contextmanager
def frozen_disk(place):
    """A disk that is frozen, as for a snapshot, until the workload's time is over."""
    at = os.path.join(place.folder, "frozen")
    with _mounted(_image(place.folder, place.undo), at, place.undo) as place.file:
        with place.undo.step("sh", "-c", f"fsfreeze --unfreeze {at} 2> {os.devnull} || true"):
            thaw = threading.Timer(place.seconds + FROZEN_MORE_S, _run, ("fsfreeze", "--unfreeze", at))
            _run("fsfreeze", "--freeze", at)
            thaw.start()
            try:
                yield
            finally:
                thaw.cancel()
                thaw.join()


@contextlib.contextmanager
def jdk(_place):
    if not shutil.which("javac"):
        raise Absent("no JDK is installed")
    yield


@contextlib.contextmanager
def readers(place):
    """Eight others that read the same disk."""
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(others(place, "read_direct", place.file))
        yield


def _late_fuse(ahead_bytes):
    @contextlib.contextmanager
    def late_fuse(place):
        """A file system that a late program serves."""
        folder, at = os.path.join(place.folder, "folder"), os.path.join(place.folder, "fuse")
        os.makedirs(folder)
        make_file(os.path.join(folder, "data"))
        with place.undo.if_killed("umount", "--lazy", at), hanging.Served(folder, at, LATE_S, ahead_bytes):
            place.file = os.path.join(at, "data")
            yield
    return late_fuse


@contextlib.contextmanager
def nfs(place):
    """A share of this host, over loopback: the root of what it shares, for which no folder above is shared as well."""
    with open("/proc/filesystems") as f:
        known = {line.split()[-1] for line in f}
    if not {"nfsd", "nfs4"} <= known:
        raise Absent("the kernel has no server of NFS")
    shared, at = os.path.join(place.folder, "shared"), os.path.join(place.folder, "nfs")
    os.makedirs(shared)
    os.makedirs(at)
    make_file(os.path.join(shared, "data"))
    _run("exportfs", "-o", "rw,no_root_squash,insecure,fsid=0", "127.0.0.1:" + shared)
    with place.undo.step("exportfs", "-u", "127.0.0.1:" + shared), place.undo.step("umount", "--force", "--lazy", at):
        _run("mount", "-t", "nfs4", "127.0.0.1:/", at)
        place.file = os.path.join(at, "data")
        yield


@contextlib.contextmanager
def slow_link(place):
    """A network of the workload's and its peer's own, whose loopback is slow."""
    name = f"labelled-{os.getpid()}"
    with place.undo.step("ip", "netns", "delete", name):
        _run("ip", "netns", "add", name)
        _run("ip", "-n", name, "link", "set", "lo", "up")
        _run("tc", "-n", name, "qdisc", "add", "dev", "lo", "root",
             "tbf", "rate", LINK_RATE, "burst", "128k", "latency", "50ms")
        place.where += ["nsenter", f"--net=/run/netns/{name}"]
        yield


@contextlib.contextmanager
def tenth_of_a_cpu(place):
    with Group("cpu").made(place) as group:
        if not group.is_v2:
            group.set(("cpu.cfs_period_us", str(PERIOD_US)), None)
        group.set(("cpu.cfs_quota_us", str(QUOTA_US)), ("cpu.max", f"{QUOTA_US} {PERIOD_US}"))
        place.throttled = os.path.join(group.path, "cpu.stat")
        yield


def _memory_limit(mib):
    @contextlib.contextmanager
    def surround(place):
        with Group("memory").made(place) as group:
            group.set(("memory.limit_in_bytes", str(mib * MIB)), ("memory.max", str(mib * MIB)))
            yield
    return surround


@contextlib.contextmanager
def memory_high(place):
    with Group("memory").made(place) as group:
        group.set(None, ("memory.high", str(LIMIT_MIB * MIB)))
        yield


@contextlib.contextmanager
def zram_swap(place):
    """Swap in compressed memory: no disk is waited for."""
    try:
        with open("/sys/class/zram-control/hot_add") as f:
            number = f.read().strip()
    except OSError:
        raise Absent("the kernel has no zram") from None
    with place.undo.step("sh", "-c", f"echo {number} > /sys/class/zram-control/hot_remove"):
        _write(f"/sys/block/zram{number}/disksize", f"{SWAP_MIB}M")
        with _swap(place, f"/dev/zram{number}"):
            yield


@contextlib.contextmanager
def disk_swap(place):
    path = os.path.join(place.folder, "swap")
    with open(path, "wb") as f:
        os.fchmod(f.fileno(), 0o600)
        for _ in range(SWAP_MIB):
            f.write(bytes(MIB))
        f.flush()
        os.fsync(f.fileno())
    with _swap(place, path):
        yield


@contextlib.contextmanager
def _swap(place, path):
    _run("mkswap", path)
    with place.undo.step("swapoff", path):
        _run("swapon", "--priority", "1000", path)
        yield


@contextlib.contextmanager
def others(place, *work, prefix=()):
    """A program that is no part of the workload: it begins before, and ends after."""
    command = [*DIES_WITH_PARENT, *prefix, *place.where, place.program, work[0], str(place.seconds + 30), *work[1:]]
    other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        yield other
    finally:
        other.kill()
        other.wait()
        other.stdout.close()


def _burners(count):
    """Others on the one CPU that the workload may use."""
    @contextlib.contextmanager
    def surround(place):
        pin = ["taskset", "--cpu-list", str(max(os.sched_getaffinity(0)))]
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(others(place, "cpu", prefix=pin))
            place.before += pin
            yield
    return surround


SURROUNDINGS = {
    "slow disk": slow_disk, "delayed disk": _late_disk(LATE_S), "fair disk": _late_disk(SOON_S), "8 readers": readers,
    "frozen disk": frozen_disk, "JDK": jdk, "late FUSE": _late_fuse(0),
    "late FUSE, read ahead": _late_fuse(1 << 17), "NFS": nfs, "slow link": slow_link,
    "tenth of a CPU": tenth_of_a_cpu, "limit of 128 MiB": _memory_limit(LIMIT_MIB), "limit of 4 MiB": _memory_limit(4),
    "memory.high of 128 MiB": memory_high, "zram swap": zram_swap, "disk swap": disk_swap, "2 burners": _burners(2),
    "8 burners": _burners(8),
}


@contextlib.contextmanager
def around(place, workload):
    """The surroundings of a workload, in their order, and a file where it needs one."""
    with contextlib.ExitStack() as stack:
        for name in workload.around:
            stack.enter_context(SURROUNDINGS[name](place))
        if not place.file and "{file}" in (*workload.command, *workload.peer):
            place.file = make_file(os.path.join(place.folder, "data"))
        yield place
