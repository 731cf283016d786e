# SPDX-License-Identifier: Apache-2.0
"""File systems on a server that is away or late: one never answers, so that each look at a name waits; one comes back."""
import contextlib
import ctypes
import errno
import os
import select
import signal
import stat
import struct
import time

from disk_log import libc

INIT = 26  # the opcode; both structs are those of linux/fuse.h
IN_HEADER = struct.Struct("=IIQQIIII")
OUT_HEADER = struct.Struct("=IiQ")
INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1

ASYNC_READ, BIG_WRITES = 1 << 0, 1 << 5
WRITE_MAX = 1 << 17
ATTR = struct.Struct("=6Q10I")
ENTRY = struct.Struct("=4Q2I")
SET_MODE, SET_UID, SET_GID, SET_SIZE = 1, 2, 4, 8
TWO_NUMBERS = struct.Struct("=II")
IO_IN = struct.Struct("=QQI")


def mount_fuse(at, root_mode, options=""):
    """The descriptor at which its requests are read."""
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={fd},rootmode={root_mode:o},user_id=0,group_id=0,allow_other" + options
    if libc.mount(b"hanging", at.encode(), b"fuse", 0, options.encode()) < 0:
        code = ctypes.get_errno()
        os.close(fd)
        raise OSError(code, "a FUSE mount: " + os.strerror(code))
    return fd


class Hanging:
    """
    With it mounted at a path, programs that name a file below it hang; a signal that kills them ends that. The end of this
    process is the file system's, too.
    """

    def __init__(self, at):
        self.at = at

    def __enter__(self):
        os.makedirs(self.at, exist_ok=True)
        self.fd = mount_fuse(self.at, 0o40755)
        self._answer(os.read(self.fd, 1 << 17))
        return self

    def _answer(self, request):
        _, opcode, unique, *_ = IN_HEADER.unpack_from(request)
        assert opcode == INIT, opcode
        answer = INIT_OUT.pack(7, 31, 0, 0, 12, 9, 4096, 1, 1, 0, 0)
        os.write(self.fd, OUT_HEADER.pack(OUT_HEADER.size + len(answer), 0, unique) + answer)

    def asked(self, timeout):
        """Waits for the next look at a name; the number of the thread, or None."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return None
        return IN_HEADER.unpack_from(os.read(self.fd, 1 << 17))[6]

    def __exit__(self, *_):
        libc.umount2(self.at.encode(), MNT_DETACH)
        os.close(self.fd)  # all that hang get an error


class Server:
    """
    Serves a folder at another path, one request after the other, each late_s seconds late. It lets no name be cached, and
    the kernel read as many bytes ahead.
    """

    def __init__(self, folder, device, late_s=0, ahead_bytes=0):
        self.device = device
        self.late_s = late_s
        self.ahead_bytes = ahead_bytes
        self.paths = {1: folder}  # of nodes; a file that was removed keeps its own
        self.ids = {folder: 1}

    def child(self, node, name):
        return os.path.join(self.paths[node], os.fsdecode(name.split(b"\0")[0]))

    def attr(self, st):
        return ATTR.pack(st.st_ino, st.st_size, st.st_blocks, int(st.st_atime), int(st.st_mtime), int(st.st_ctime), 0, 0, 0,
                         st.st_mode, st.st_nlink, st.st_uid, st.st_gid, 0, 4096, 0)

    def entry(self, path):
        st = os.lstat(path)
        node = self.ids.setdefault(path, max(self.paths) + 1)
        self.paths[node] = path
        return ENTRY.pack(node, 0, 0, 0, 0, 0) + self.attr(st)

    def forget(self, path):
        self.ids.pop(path, None)  # the next file of that name is another node

    def move(self, old, new):
        os.rename(old, new)
        self.forget(new)
        for path in [p for p in self.ids if p == old or p.startswith(old + "/")]:
            node = self.ids.pop(path)
            self.paths[node] = new + path[len(old):]
            self.ids[self.paths[node]] = node
        return b""

    def set_attr(self, node, body):
        valid, _, fh, size = struct.unpack_from("=IIQQ", body)
        mode, _, uid, gid = struct.unpack_from("=IIII", body, 68)
        target = fh if valid & 64 else self.paths[node]
        if valid & SET_MODE:
            os.chmod(target, stat.S_IMODE(mode))
        if valid & (SET_UID | SET_GID):
            os.chown(target, uid if valid & SET_UID else -1, gid if valid & SET_GID else -1)
        if valid & SET_SIZE:
            os.truncate(target, size)
        return bytes(16) + self.attr(os.stat(target))

    def make_dir(self, node, body, owner):
        path = self.child(node, body[8:])
        os.mkdir(path, TWO_NUMBERS.unpack_from(body)[0])
        os.chown(path, *owner)
        return self.entry(path)

    def create(self, node, body, owner):
        flags, mode = TWO_NUMBERS.unpack_from(body)
        path = self.child(node, body[16:])
        fd = os.open(path, flags | os.O_CREAT, mode)
        os.fchown(fd, *owner)
        return self.entry(path) + struct.pack("=QII", fd, 0, 0)

    def list(self, node, body):
        _, offset, size = IO_IN.unpack_from(body)
        answer = b""
        names = sorted(os.listdir(self.paths[node]))
        for at, name in list(enumerate(names))[offset:]:
            raw = os.fsencode(name)
            item = struct.pack("=QQII", at + 1, at + 1, len(raw), 0) + raw + bytes(-len(raw) % 8)
            if len(answer) + len(item) > size:
                break
            answer += item
        return answer

    def answer(self, opcode, node, body, owner):
        path = self.paths.get(node)
        if opcode == INIT:
            flags = BIG_WRITES | (ASYNC_READ if self.ahead_bytes else 0)
            return INIT_OUT.pack(7, 31, self.ahead_bytes, flags, 12, 9, WRITE_MAX, 1, 0, 0, 0)
        if opcode == 1:  # LOOKUP
            return self.entry(self.child(node, body))
        if opcode == 3:  # GETATTR
            flags, _, fh = struct.unpack_from("=IIQ", body)
            return bytes(16) + self.attr(os.fstat(fh) if flags & 1 else os.lstat(path))
        if opcode == 4:  # SETATTR
            return self.set_attr(node, body)
        if opcode == 9:  # MKDIR
            return self.make_dir(node, body, owner)
        if opcode in (10, 11):  # UNLINK, RMDIR
            path = self.child(node, body)
            (os.unlink if opcode == 10 else os.rmdir)(path)
            self.forget(path)
            return b""
        if opcode in (12, 45):  # RENAME, RENAME2
            old, new = body[8 if opcode == 12 else 16:].split(b"\0")[:2]
            return self.move(self.child(node, old), self.child(struct.unpack_from("=Q", body)[0], new))
        if opcode == 14:  # OPEN
            # Buffers here are not aligned as O_DIRECT wants them.
            return struct.pack("=QII", os.open(path, TWO_NUMBERS.unpack_from(body)[0] & ~os.O_DIRECT), 0, 0)
        if opcode == 15:  # READ
            fd, offset, size = IO_IN.unpack_from(body)
            return os.pread(fd, size, offset)
        if opcode == 16:  # WRITE
            fd, offset, size = IO_IN.unpack_from(body)
            return TWO_NUMBERS.pack(os.pwrite(fd, body[40:40 + size], offset), 0)
        if opcode == 17:  # STATFS
            return struct.pack("=5Q4I24x", 1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096, 0)
        if opcode == 18:  # RELEASE
            os.close(struct.unpack_from("=Q", body)[0])
            return b""
        if opcode == 27:  # OPENDIR
            return struct.pack("=QII", 0, 0, 0)
        if opcode == 28:  # READDIR
            return self.list(node, body)
        if opcode == 35:  # CREATE
            return self.create(node, body, owner)
        if opcode in (20, 25, 29, 30):  # FSYNC, FLUSH, RELEASEDIR, FSYNCDIR
            return b""
        raise OSError(errno.ENOSYS, "")

    def serve(self):
        os.umask(0)
        while True:
            try:
                request = os.read(self.device, WRITE_MAX + 65536)
            except OSError as e:
                if e.errno == errno.ENODEV:  # unmounted
                    return
                if e.errno == errno.ENOENT:  # a request that a signal has ended
                    continue
                raise
            _, opcode, unique, node, uid, gid, *_ = IN_HEADER.unpack_from(request)
            if opcode in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET
                continue
            if self.late_s:
                time.sleep(self.late_s)
            try:
                error, answer = 0, self.answer(opcode, node, request[IN_HEADER.size:], (uid, gid))
            except OSError as e:
                error, answer = -e.errno, b""
            with contextlib.suppress(FileNotFoundError):
                os.write(self.device, OUT_HEADER.pack(OUT_HEADER.size + len(answer), error, unique) + answer)


class Served:
    """A folder that a process serves at a path, late_s seconds late, and while away() does not. It ends with this one."""

    def __init__(self, folder, at, late_s=0, ahead_bytes=0):
        self.folder = folder
        self.at = at
        self.late_s = late_s
        self.ahead_bytes = ahead_bytes

    def __enter__(self):
        for path in (self.folder, self.at):
            os.makedirs(path, exist_ok=True)
        device = mount_fuse(self.at, 0o40755, ",default_permissions")
        self.server = os.fork()
        if self.server == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                Server(self.folder, device, self.late_s, self.ahead_bytes).serve()
            finally:
                os._exit(1)
        os.close(device)
        return self

    @contextlib.contextmanager
    def away(self):
        os.kill(self.server, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.server, signal.SIGCONT)

    def __exit__(self, *_):
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)
        libc.umount2(self.at.encode(), MNT_DETACH)
