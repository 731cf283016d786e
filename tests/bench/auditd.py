# SPDX-License-Identifier: Apache-2.0
"""auditd with a rule for execve(2), execveat(2) and exit_group(2): the one audit daemon of the host, for a load's time.

The kernel's settings are restored. One trace remains until the next boot: a kernel whose auditing was ever on prepares
each new process for it, which costs every system call of that process a little. A rule that leaves out all new
processes (`task,never`) prevents this, so it stays where auditing was off before: all later arms would be dearer, too.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import time

import arms
import machine
import peers

HERE = os.path.dirname(os.path.abspath(__file__))
UNPACKED = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build/auditd/sbin")    # by dev/install
READY_S = 10
RULE = ("always,exit", "-F", "arch=b64", "-S", "execve,execveat,exit_group")
NEVER = "task,never"
NEVER_LISTED = "-a never,task"
# What Debian's auditd.conf and audit.rules set, but for what is done as a disk fills up.
SETTINGS = {"backlog_limit": ("-b", 8192), "backlog_wait_time": ("--backlog_wait_time", 60000)}
CONFIG = """\
local_events = yes
write_logs = yes
log_file = {room}/log/audit.log
log_format = ENRICHED
flush = INCREMENTAL_ASYNC
freq = 50
max_log_file = 8
num_logs = 99
max_log_file_action = ROTATE
space_left = 1
space_left_action = IGNORE
admin_space_left = 0
admin_space_left_action = IGNORE
disk_full_action = IGNORE
disk_error_action = IGNORE
q_depth = 2000
plugin_dir = {room}/plugins.d
end_of_event_timeout = 2
"""


def control(*args):
    """Runs auditctl; returns what it prints."""
    done = subprocess.run([os.path.join(UNPACKED, "auditctl"), *map(str, args)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise arms.Unavailable(f"auditctl {' '.join(map(str, args))}: {done.stdout.strip()}")
    return done.stdout


def status():
    """Returns the kernel's settings and counters as numbers."""
    words = (line.split() for line in control("-s").splitlines())
    return {x[0]: int(x[1]) for x in words if len(x) == 2 and x[1].isdigit()}


def rules():
    return [line for line in control("-l").splitlines() if line != "No rules"]


def found():
    """Returns status(), where the host uses auditing for nothing else."""
    before, others = status(), [r for r in rules() if r != NEVER_LISTED]
    if before["pid"] != 0:
        raise arms.Unavailable(f"process {before['pid']} is this host's audit daemon")
    if others:
        raise arms.Unavailable(f"this host has audit rules of its own: {others[0]}")
    if before["enabled"] not in (0, 1):
        raise arms.Unavailable("the audit settings are locked until the next boot")
    return before


def kernel_thread():
    """Returns the pid of kauditd, which passes records on to the daemon."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as f:
            if f.read() == "kauditd\n":
                return int(pid)
    raise arms.Failed("the kernel has no thread kauditd")


def start(room):
    """Starts the daemon, until it is the kernel's."""
    os.mkdir(os.path.join(room, "log"), 0o750)
    os.mkdir(os.path.join(room, "plugins.d"))
    config = os.path.join(room, "auditd.conf")
    with open(config, "w") as f:
        f.write(CONFIG.format(room=room))
    os.chmod(config, 0o640)
    with open(os.path.join(room, "errors"), "w+") as errors:
        daemon = subprocess.Popen([os.path.join(UNPACKED, "auditd"), "-n", "-c", room], stdin=subprocess.DEVNULL,
                                  stdout=errors, stderr=errors)
        deadline = time.monotonic() + READY_S
        while daemon.poll() is None and time.monotonic() < deadline:
            if status()["pid"] == daemon.pid:
                return daemon
            time.sleep(0.01)
        daemon.kill()
        daemon.wait()
        errors.seek(0)
        raise arms.Unavailable(f"auditd did not start: {errors.read().strip()}")


def wait_written(daemon, room):
    """Waits until the kernel has no record left, and then the daemon waits for more."""
    deadline = time.monotonic() + peers.IDLE_S
    while status()["backlog"] > 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    peers.wait_reading(daemon, os.path.join(room, "errors"), peers.IDLE_S)


@contextlib.contextmanager
def restored(before):
    """Removes the rule and restores the settings afterwards."""
    try:
        yield
    finally:
        with contextlib.suppress(arms.Unavailable):     # the rule is not there, if something failed before
            control("-d", *RULE)
        if before["enabled"] == 0 and NEVER_LISTED not in rules():
            control("-a", NEVER)
        for name, (option, _) in SETTINGS.items():
            control(option, before[name])
        control("-e", before["enabled"])


def children_cpu():
    """Returns the CPU seconds of all children that were waited for, so far."""
    return sum(os.times()[2:4])


def run_auditd(bench, command, cwd):
    before = found()
    kauditd = kernel_thread()
    room = bench.new_folder()
    out = os.path.join(room, "timed")
    begin, children = time.monotonic(), -children_cpu()
    with restored(before):
        daemon = start(room)
        try:
            if NEVER_LISTED in rules():
                control("-d", NEVER)
            for option, value in SETTINGS.values():
                control(option, value)
            control("-a", *RULE)
            lost = -status()["lost"]
            used, thread = -machine.cpu_ns(daemon.pid), -machine.cpu_ns(kauditd)
            arms.wait([bench.timed, out, *command], **arms.quiet(bench, cwd))
            wait_written(daemon, room)
            used, thread = used + machine.cpu_ns(daemon.pid), thread + machine.cpu_ns(kauditd)
            lost += status()["lost"]
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
    whole = time.monotonic() - begin
    wall, cpu = arms.read_timed(out)
    children += children_cpu() - cpu - used / 1e9       # auditctl's, and the daemon's before and after the load
    log = os.path.join(room, "log", "audit.log")
    with open(log, errors="replace") as f:
        if bench.timed not in f.read() and not os.path.exists(log + ".1"):
            raise arms.Failed("the log of auditd has no record of the load")
    shutil.rmtree(room)
    return arms.Sample(wall, cpu, (used + thread) / 1e9, max(0.0, children), lost, None, whole)
