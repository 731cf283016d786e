# SPDX-License-Identifier: Apache-2.0
"""Which files a process opens: fanotify(7) on every file system that has files of its own."""
import ctypes
import os
import struct
import tempfile
import threading

FAN_OPEN = 0x20
FAN_UNLIMITED_QUEUE = 0x10
FAN_MARK_ADD = 1
FAN_MARK_FILESYSTEM = 0x100
AT_FDCWD = -100
EVENT = struct.Struct("=IBBHQii")  # length, version, reserved, length of this, mask, descriptor, pid

# Files here are the kernel's answers; they hold no user's data, and fanotify refuses most.
NO_FILES = {"proc", "sysfs", "cgroup", "cgroup2", "bpf", "devpts", "devtmpfs", "tracefs", "debugfs", "securityfs",
            "mqueue", "pstore", "configfs", "fusectl", "binfmt_misc", "hugetlbfs", "autofs", "rpc_pipefs", "nsfs"}

libc = ctypes.CDLL(None, use_errno=True)


def _checked(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def mounts():
    """[(mount point, type)] of this mount namespace."""
    with open("/proc/self/mounts") as f:
        return [(line.split()[1].encode().decode("unicode_escape"), line.split()[2]) for line in f]


class Opens:
    """
    with Opens(pids) as opens: ...; then opens.paths is the set of what these processes (any of their threads) opened.

    An open(2) does not wait, and no event is dropped: the queue has no bound.
    """

    def __init__(self, pids):
        self.pids = set(pids)
        self.paths = set()
        self._last = None

    def __enter__(self):
        self._fd = _checked(libc.fanotify_init(FAN_UNLIMITED_QUEUE, os.O_RDONLY | os.O_LARGEFILE | os.O_CLOEXEC))
        for path, kind in mounts():
            if kind not in NO_FILES:
                _checked(libc.fanotify_mark(self._fd, ctypes.c_uint(FAN_MARK_ADD | FAN_MARK_FILESYSTEM),
                                            ctypes.c_uint64(FAN_OPEN), AT_FDCWD, os.fsencode(path)))
        self._thread = threading.Thread(target=self._read_all, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        """What was opened before this is in paths: its event comes before that of a file that we open now."""
        with tempfile.NamedTemporaryFile() as last:
            self._last = last.name
            os.close(os.open(last.name, os.O_RDONLY))
            self._thread.join(60)
        os.close(self._fd)
        if self._thread.is_alive():
            raise AssertionError("the events of fanotify do not end")

    def _read_all(self):
        while self._take(os.read(self._fd, 1 << 16)):
            pass

    def _take(self, events):
        """False: the last event was among them."""
        goes_on, at = True, 0
        while at < len(events):
            length, _, _, _, _, fd, pid = EVENT.unpack_from(events, at)
            at += length
            if pid in self.pids | {os.getpid()}:
                path = os.readlink("/proc/self/fd/%d" % fd)
                if pid in self.pids:
                    self.paths.add(path)
                goes_on = goes_on and path != self._last
            os.close(fd)
        return goes_on
