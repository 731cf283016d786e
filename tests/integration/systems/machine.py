# SPDX-License-Identifier: Apache-2.0
"""What every system needs of this machine: its programs, its control groups, its mounts, and a clean end."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

# Debian's own programs: what else is in PATH may be a client whose daemon is not here.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def need(*programs):
    """Their paths, in order. SkipTest where one is missing or we are not root."""
    if os.geteuid() != 0:
        raise unittest.SkipTest(f"{programs[0]} needs root")
    found = [shutil.which(p, path=PATH) for p in programs]
    missing = [p for p, at in zip(programs, found) if at is None]
    if missing:
        raise unittest.SkipTest(f"{', '.join(missing)}: not installed; run ./dev/install test")
    return found


def environment(**extra):
    """Ours with Debian's PATH, and without a word of a scheduler or runtime that we may run under."""
    prefixes = ("SUDO_", "SLURM_", "DOCKER_", "CONTAINERD_", "SBATCH_", "SRUN_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
    env.update(PATH=PATH, LC_ALL="C")
    env.update(extra)
    return env


def run(args, check=True, timeout=120, env=None, quiet=False, **kw):
    """Both streams together as text in .stdout; AssertionError with them unless it ends with 0."""
    kw.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([str(a) for a in args], env=env or environment(), timeout=timeout, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if quiet else subprocess.STDOUT, **kw)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, args))}: exit {done.returncode}\n{done.stdout}")
    return done


def wait_until(condition, timeout, what):
    """The first true value of condition()."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"no {what} within {timeout} s")
        time.sleep(0.05)


def has_ended(pid):
    """Whether a process is gone, or a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def comm(pid):
    """What the kernel calls a process; None where it is gone."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return None


def children(pid):
    """Pids of a process's children; none where it is gone."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return f.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def free_ports(count):
    """TCP ports of 127.0.0.1 that are free now."""
    with contextlib.ExitStack() as open_until_all_are_known:
        ports = []
        for _ in range(count):
            s = open_until_all_are_known.enter_context(socket.socket())
            s.bind(("127.0.0.1", 0))
            ports.append(s.getsockname()[1])
    return ports


def end(process, timeout=20):
    """SIGTERM to a child of ours, and where that does not help SIGKILL; its status."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode


def tail(path, size=2000):
    try:
        with open(path, errors="replace") as f:
            return f.read()[-size:]
    except OSError as e:
        return str(e)


def unmount_below(folder):
    with open("/proc/mounts") as f:
        mounts = [line.split()[1] for line in f if line.split()[1].startswith(folder + "/")]
    for mount in reversed(mounts):
        subprocess.run(["umount", "-l", mount], stderr=subprocess.DEVNULL)


# --- control groups ---

def cgroup_mounts():
    """[(where a hierarchy is mounted, its v1 controllers or None for v2)]"""
    mounts = []
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, right = line.split(" - ", 1)
            kind, _, options = right.split()[:3]
            if kind == "cgroup2":
                mounts.append((left.split()[4], None))
            elif kind == "cgroup":
                mounts.append((left.split()[4], options.split(",")))
    return mounts


def cgroup_v2():
    """Where v2 is mounted, or None."""
    return next((at for at, controllers in cgroup_mounts() if controllers is None), None)


def cgroup_v1(controller):
    return next((at for at, controllers in cgroup_mounts() if controllers and controller in controllers), None)


def cgroup_processes(path):
    """The pids in a control group and below it, in every hierarchy."""
    pids = set()
    for mount, _ in cgroup_mounts():
        for at, _, _ in os.walk(mount + path):
            with contextlib.suppress(OSError), open(os.path.join(at, "cgroup.procs")) as f:
                pids.update(map(int, f.read().split()))
    return pids


def remove_cgroups(*paths):
    """These and what is below them, in every hierarchy, where no process is in them any more."""
    for path in paths:
        for mount, _ in cgroup_mounts():
            for at, _, _ in os.walk(mount + path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(at)


def own_cgroups():
    """{hierarchy's controllers, "" for v2: our own path in it}"""
    with open("/proc/self/cgroup") as f:
        return {line.split(":", 2)[1]: line.rstrip("\n").split(":", 2)[2] for line in f}


def namespace(pid, kind):
    """The inode number by which the kernel knows it."""
    return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
