# SPDX-License-Identifier: Apache-2.0
"""A file system that does not answer, as one on a server that is away: each look at a name in it waits until the end."""
import ctypes
import os
import select
import struct

from disk_log import libc

INIT = 26  # the opcode; both structs are those of linux/fuse.h
IN_HEADER = struct.Struct("=IIQQIIII")
OUT_HEADER = struct.Struct("=IiQ")
INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
MNT_DETACH = 2


class Hanging:
    """
    With it mounted at a path, programs that name a file below it hang; a signal that kills them ends that. The end of this
    process is the file system's, too.
    """

    def __init__(self, at):
        self.at = at

    def __enter__(self):
        os.makedirs(self.at, exist_ok=True)
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40755,user_id=0,group_id=0,allow_other"
        if libc.mount(b"hanging", self.at.encode(), b"fuse", 0, options.encode()) < 0:
            code = ctypes.get_errno()
            os.close(self.fd)
            raise OSError(code, "a FUSE mount: " + os.strerror(code))
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
