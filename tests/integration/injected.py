# SPDX-License-Identifier: Apache-2.0
"""System calls that are made in another process, as code that an attacker got into it would (inject_call.c), what a confined
one answers, and calls that are refused it."""
import ctypes
import errno
import os
import struct
import subprocess
import sys

import harness

O_WRONLY, O_CREAT, AT_FDCWD = 1, 0o100, -100
# x86-64, on which these tests inject calls
EXECVE, PTRACE, MOUNT, INIT_MODULE, KEXEC_LOAD, UNSHARE, SETNS, KEYCTL = 59, 101, 165, 175, 246, 272, 308, 250
PROCESS_VM_READV, USERFAULTFD, IO_URING_SETUP, PERF_EVENT_OPEN, BPF, CLONE, CLONE3 = 310, 323, 425, 298, 321, 56, 435
SOCKET, OPENAT, UNLINK, SETUID, KILL, IOCTL, GETPID = 41, 257, 87, 105, 62, 16, 39
MMAP, MPROTECT, PROT_READ, PROT_WRITE, PROT_EXEC, MAP_PRIVATE, MAP_ANONYMOUS = 9, 10, 1, 2, 4, 2, 0x20
CLONE_NEWUSER, AF_INET, AF_PACKET, AF_NETLINK, NETLINK_ROUTE, NETLINK_AUDIT = 0x10000000, 2, 17, 16, 0, 9
TIOCSTI = 0x5412
MAP_LOOKUP, PROG_LOAD, OBJ_PIN, OBJ_GET, PROG_GET_FD_BY_ID, RAW_TRACEPOINT_OPEN, BTF_LOAD, LINK_CREATE = 1, 5, 6, 7, 13, 17, 18, 28
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446  # of each architecture

REFUSED = {
    "execve": (EXECVE, "@/bin/true", 0, 0), "ptrace": (PTRACE, 0), "process_vm_readv": (PROCESS_VM_READV, 1),
    "mount": (MOUNT, "@none", "@/mnt", "@tmpfs"), "init_module": (INIT_MODULE,), "kexec_load": (KEXEC_LOAD,),
    "unshare": (UNSHARE, CLONE_NEWUSER), "setns": (SETNS, 0), "clone in a namespace": (CLONE, CLONE_NEWUSER | 17),
    "memory to write code in": (MMAP, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS),
    "memory that becomes code": (MPROTECT, 0, 4096, PROT_READ | PROT_EXEC), "keyctl": (KEYCTL,), "userfaultfd": (USERFAULTFD,), "io_uring_setup": (IO_URING_SETUP, 1), "setuid": (SETUID, 0),
    "perf_event_open": (PERF_EVENT_OPEN,), "a packet socket": (SOCKET, AF_PACKET, 3, 0),
    "netlink of audit": (SOCKET, AF_NETLINK, 3, NETLINK_AUDIT), "TIOCSTI": (IOCTL, 0, TIOCSTI, "@x"),
    "BPF_PROG_LOAD": (BPF, PROG_LOAD), "BPF_LINK_CREATE": (BPF, LINK_CREATE), "BPF_BTF_LOAD": (BPF, BTF_LOAD),
    "BPF_RAW_TRACEPOINT_OPEN": (BPF, RAW_TRACEPOINT_OPEN), "BPF_OBJ_PIN": (BPF, OBJ_PIN), "BPF_OBJ_GET": (BPF, OBJ_GET),
    "BPF_PROG_GET_FD_BY_ID": (BPF, PROG_GET_FD_BY_ID),
}
MISSING = {"clone3": (CLONE3,), "a call that is not there yet": (9999,)}


def make(test, pid, calls):
    """{name: what it returned, by the errno's name} of {name: (number, argument…)}, made in that process."""
    lines = "".join(" ".join(map(str, call)) + "\n" for call in calls.values())
    done = subprocess.run([harness.built("inject_call"), str(pid)], input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60 * harness.PATIENCE)
    test.assertEqual((0, ""), (done.returncode, done.stderr))
    results = [int(x) for x in done.stdout.split()]
    test.assertEqual(len(calls), len(results))
    return {name: errno.errorcode[-r] if r < 0 else "done" for name, r in zip(calls, results)}


def refuse(call, error):
    """In a child before its exec: that system call fails from now on, as under the profile of a container."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, jump_if_equal, ret, allowed, refused = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
    code = b"".join(struct.pack("HBBI", *i) for i in ((load, 0, 0, 0), (jump_if_equal, 0, 1, call), (ret, 0, 0, refused | error),
                                                      (ret, 0, 0, allowed)))
    buf = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buf))
    if libc.prctl(22, 2, program, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl")


def refusing(call, error):
    """What goes before a command line for which that is so."""
    return [sys.executable, "-c", "import os, sys; sys.path.insert(0, sys.argv[1]); import injected; "
            "injected.refuse(int(sys.argv[2]), int(sys.argv[3])); os.execvp(sys.argv[4], sys.argv[4:])",
            os.path.dirname(os.path.abspath(__file__)), str(call), str(error)]
