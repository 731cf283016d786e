# SPDX-License-Identifier: Apache-2.0
"""A disk that remembers each write and each flush in their order, and what a power cut would have left of it.

    with DiskLog(folder) as disk:
        subprocess.run([...], stdout=disk.marks)  # uses the file system at disk.path; a line is a mark in the log
    for cut in ...: disk.image_at(cut, path, rng)

The disk is a file, served by a process of ours through FUSE, under a loop device with ext4. The kernel flushes a disk
only where a file system asks for it, as fsync(2) does. At a cut all is there that was written before the last flush;
of what came later each sector may have been written or not.
"""
import contextlib
import ctypes
import errno
import os
import pickle
import select
import signal
import stat
import struct
import subprocess

SECTOR = 512
SIZE = 16 << 20
WRITE_MAX = 1 << 17
# Seconds. On a busy host a registry that has just started may let two requests pass unanswered, each for 10 s, and the
# agent asks again half a minute after each.
FROZEN_AT_MOST = 180

IN_HEADER = struct.Struct("=IIQQIIIHH")
OUT_HEADER = struct.Struct("=IiQ")
INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
ATTR_OUT = struct.Struct("=QII6QIIIIIIIIII")
OPEN_OUT = struct.Struct("=QIi")
IO_IN = struct.Struct("=QQII")
WRITE_IN_SIZE = 40
WRITE_OUT = struct.Struct("=II")
STATFS_OUT = struct.Struct("=5Q4I24x")

FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS = 2, 3, 4, 14, 15, 16, 17
RELEASE, FSYNC, FLUSH, INIT, INTERRUPT, DESTROY, BATCH_FORGET = 18, 20, 25, 26, 36, 38, 42
BIG_WRITES = 1 << 5

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


class Server:
    """The process that is the disk: one regular file, which is the root of its own file system."""

    def __init__(self, data, device, marks, log_path):
        self.data = bytearray(data)
        self.device = device
        self.marks = marks
        self.log_path = log_path
        self.log = []  # ("write", offset, bytes), ("flush",) and ("mark", line)
        self.rest = b""

    def attr(self):
        return ATTR_OUT.pack(3600, 0, 0, 1, len(self.data), len(self.data) // 512, 0, 0, 0, 0, 0, 0,
                             stat.S_IFREG | 0o600, 1, 0, 0, 0, 4096, 0)

    def take_marks(self):
        while select.select([self.marks], [], [], 0)[0]:
            data = os.read(self.marks, 1 << 16)
            if not data:
                return
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.log.extend(("mark", line.decode()) for line in lines)

    def answer(self, opcode, body):
        """The bytes of the answer, or an errno."""
        if opcode == INIT:
            return INIT_OUT.pack(7, 31, 0, BIG_WRITES, 16, 12, WRITE_MAX, 1, 0, 0, 0)
        if opcode in (GETATTR, SETATTR):
            return self.attr()
        if opcode == OPEN:
            return OPEN_OUT.pack(1, 0, 0)
        if opcode == READ:
            _, offset, size, _ = IO_IN.unpack_from(body)
            return bytes(self.data[offset:offset + size])
        if opcode == WRITE:
            _, offset, size, _ = IO_IN.unpack_from(body)
            data = body[WRITE_IN_SIZE:WRITE_IN_SIZE + size]
            self.data[offset:offset + size] = data
            self.log.append(("write", offset, data))
            return WRITE_OUT.pack(size, 0)
        if opcode == FSYNC:
            self.log.append(("flush",))
            return b""
        if opcode == STATFS:
            return STATFS_OUT.pack(len(self.data) // 4096, 0, 0, 1, 0, 4096, 255, 4096, 0)
        if opcode in (RELEASE, FLUSH, DESTROY):
            return b""
        return errno.ENOSYS

    def serve(self):
        poll = select.poll()
        poll.register(self.device, select.POLLIN)
        poll.register(self.marks, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if ready.get(self.marks, 0) & select.POLLIN:
                self.take_marks()
            elif self.marks in ready:
                poll.unregister(self.marks)
            if self.device not in ready:
                continue
            try:
                request = os.read(self.device, WRITE_MAX + 65536)
            except OSError as e:
                if e.errno == errno.ENODEV:  # unmounted
                    break
                raise
            _, opcode, unique, *_ = IN_HEADER.unpack_from(request)
            self.take_marks()  # marks from before this request
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            answer = self.answer(opcode, request[IN_HEADER.size:])
            error, answer = (-answer, b"") if isinstance(answer, int) else (0, answer)
            os.write(self.device, OUT_HEADER.pack(OUT_HEADER.size + len(answer), error, unique) + answer)
        with open(self.log_path, "wb") as f:
            pickle.dump(self.log, f)


def make_file_system(path):
    with open(path, "wb") as f:
        f.truncate(SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-b", "1024", "-J", "size=1", "-m", "0",
                    "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", path], check=True)


def own_mounts():
    """
    From here on only this process and its children see what it mounts. A mount namespace that another program
    of the host makes meanwhile, as each container has one, would keep a copy of each mount, and the disk below it busy.
    """
    for r in (libc.unshare(CLONE_NEWNS), libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)):
        if r < 0:
            code = ctypes.get_errno()
            raise OSError(code, "a mount namespace: " + os.strerror(code))


class Mounted:
    """The ext4 of a file, by a loop device."""

    def __init__(self, file, path):
        self.file = file
        self.path = path

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        self.loop = subprocess.run(["losetup", "--find", "--show", self.file], check=True, stdout=subprocess.PIPE,
                                   text=True).stdout.strip()
        try:
            subprocess.run(["mount", "-t", "ext4", self.loop, self.path], check=True)
        except BaseException:
            subprocess.run(["losetup", "-d", self.loop])
            raise
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=True)
        subprocess.run(["losetup", "-d", self.loop], check=True)


class DiskLog:
    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(folder, "disk")
        self._file = os.path.join(folder, "device")
        self._log_path = os.path.join(folder, "log")
        self.log = None

    def __enter__(self):
        make_file_system(self._file)
        with open(self._file, "rb") as f:
            self._before = f.read()
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        # Before there is a server: what it reads of a device that is not mounted is an error.
        options = "fd=%d,rootmode=%o,user_id=0,group_id=0" % (device, stat.S_IFREG | 0o600)
        if libc.mount(b"sluice-test", os.fsencode(self._file), b"fuse", 0, options.encode()) < 0:
            code = ctypes.get_errno()
            os.close(device)
            raise OSError(code, "mount of FUSE: " + os.strerror(code))
        marks, self.marks = os.pipe()
        self._server = os.fork()
        if self._server == 0:
            status = 1
            try:
                os.close(self.marks)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                Server(self._before, device, marks, self._log_path).serve()
                status = 0
            finally:
                os._exit(status)
        os.close(marks)
        os.close(device)
        self._mounted = Mounted(self._file, self.path)
        self._mounted.__enter__()
        return self

    def __exit__(self, *_):
        """Afterwards the log is there, up to here."""
        os.write(self.marks, b"end\n")
        os.close(self.marks)
        try:
            self._mounted.__exit__()
            subprocess.run(["umount", self._file], check=True)
        except BaseException:
            os.kill(self._server, signal.SIGKILL)  # no other process ends it
            os.waitpid(self._server, 0)
            raise
        _, status = os.waitpid(self._server, 0)
        if status != 0:
            raise AssertionError("the disk ended with %d" % status)
        with open(self._log_path, "rb") as f:
            log = pickle.load(f)
        self.log = log[:log.index(("mark", "end"))]

    def marks_before(self, cut):
        return [entry[1] for entry in self.log[:cut] if entry[0] == "mark"]

    def image_at(self, cut, path, rng):
        """Writes what is on the disk after a cut behind so many entries of the log."""
        flushed = max((i for i in range(cut) if self.log[i][0] == "flush"), default=0)
        kept = rng.choice((0, 0, 0.1, 0.5, 0.9, 1))  # of the sectors that no flush followed
        data = bytearray(self._before)
        for i, entry in enumerate(self.log[:cut]):
            if entry[0] != "write":
                continue
            _, offset, written = entry
            for at in range(0, len(written), len(written) if i < flushed else SECTOR):
                part = written[at:at + (len(written) if i < flushed else SECTOR)]
                if i < flushed or rng.random() < kept:
                    data[offset + at:offset + at + len(part)] = part
        with open(path, "wb") as f:
            f.write(data)


@contextlib.contextmanager
def frozen(path):
    """Every write to the file system waits meanwhile. It is thawed whatever happens to this process."""
    watchdog = subprocess.Popen(["sh", "-c", 'sleep "$1"; exec fsfreeze --unfreeze "$2"', "watchdog", str(FROZEN_AT_MOST), path],
                                start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        subprocess.run(["fsfreeze", "--freeze", path], check=True)
        yield
    finally:
        done = subprocess.run(["fsfreeze", "--unfreeze", path], stderr=subprocess.PIPE, text=True)
        os.killpg(watchdog.pid, signal.SIGKILL)
        watchdog.wait(10)
    assert done.returncode == 0, done.stderr


def ext4_disk(test, mib=64):
    """An ext4 of its own in the room of a test, which has own_mounts(), with a folder for the agent's account."""
    image, at = os.path.join(test.room, "image"), os.path.join(test.room, "disk")
    with open(image, "wb") as f:
        f.truncate(mib << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-J", "size=1", "-b", "1024", image], check=True)
    test.enterContext(Mounted(image, at))
    return at
