# SPDX-License-Identifier: Apache-2.0
"""Findings while work runs: who ended a program, and what keeps a task from its work."""
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import harness
from agent import AgentTest
from disk_log import ext4_disk, frozen, own_mounts
from hanging import Hanging
from harness import read_cat, read_lake
from load import once
from test_run_waits import LOCK_FILE, PAIR, RECEIVE, delay_accounting, server, throttled_group, write_text

sys.path.append(os.path.join(harness.ROOT, "tests", "labelled"))
from undo import Undo

WAIT = 60
P = harness.PATIENCE
LIMITS = {"stuck": f"{8 * P}s", "stuck_in_io": f"{4 * P}s", "idle": f"{8 * P}s", "throttled": f"{6 * P}s", "memory_pressure": "6s"}
LIFE = 60 * P  # of what does not end by itself

# Of each task what it is to be found as, and what it does. A recipe is one shell, and what that starts.
TASKS = {
    "locked": ("STUCK", "waits for a lock", "{python} -c '%s' {room}/held; true" % LOCK_FILE.replace("'", '"')),
    "piped": ("STUCK", "waits for another program", "read x < {room}/fifo; true"),
    "received": ("STUCK", "waits for the network", "{python} -c '%s' {port}; true" % RECEIVE.replace("'", '"')),
    "hung": ("STUCK", "waits for a network file system", "cat {hung}; true"),
    "frozen": ("STUCK", ", in uninterruptible sleep", "echo x > {frozen}/file; true"),
    "stopped": ("STUCK", "is stopped by a signal", "sh -c 'kill -STOP $$$$'; true"),
    "paired": ("STUCK", "waits for another program", "{python} -c '%s'; true" % PAIR.replace("'", '"')),
    "slept": ("IDLE", "sleeps for a set time", f"sleep {LIFE}; true"),
    "throttled": ("THROTTLED", "had used up its quota", "echo $$$$ > {group}/cgroup.procs; timeout %d sh -c 'while :; do :; done'; true" % LIFE),
    "polled": (None, None, f"for i in `seq {LIFE}`; do sleep 1; head -c 100000 /dev/zero > /dev/null; done"),
    "computed": (None, None, f"timeout {LIFE} sh -c 'while :; do :; done'; true"),
    "copied": (None, None, f"timeout {LIFE} sh -c 'while :; do head -c 10000 /dev/zero > {{room}}/copy; sleep 0.1; done'; true"),
    "waits": (None, None, f"timeout {LIFE} {{python}} -c 'import time; [time.sleep(0.5) or print(flush=True) or sum(range(3000000)) for _ in range(1000)]' > /dev/null; true"),
}


def evidence(finding):
    return {e["name"]: e["value"] for e in finding["evidence"]}


def find_pid(line, within=30):
    """The process with exactly these arguments."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        done = subprocess.run(["pgrep", "-fx", line], stdout=subprocess.PIPE, text=True)
        if done.stdout:
            return int(done.stdout.split()[0])
        time.sleep(0.05)
    raise AssertionError(f"no process: {line}")


def pid_of(program_id):
    return int(program_id.split("-")[1], 16)


def kill_session(sid):
    """Its process groups are several, as timeout(1) has one of its own. Waits for all but the first process."""
    def others():
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                if os.getsid(pid) == sid:
                    os.kill(pid, signal.SIGKILL)
                    if pid != sid:
                        yield pid
    until = time.monotonic() + WAIT
    while list(others()) and time.monotonic() < until:
        time.sleep(0.1)


class LiveTest(AgentTest):
    def start(self, line, function):
        """Calls function with the pid of the process with these arguments, once it is there."""
        def call():
            function(find_pid(line))
        thread = threading.Thread(target=call)
        thread.start()
        self.addCleanup(thread.join)

    def findings(self, kind, topics=None):
        topics = topics or read_lake(self.lake)
        return [f for f in topics.get("sluice.finding", []) if f["kind"] == kind]


class KilledTest(LiveTest):
    def test_another_program_ends_it(self):
        """With the name of the program that sent the signal, which the run has nothing to do with."""
        killers = []

        def kill(pid):
            time.sleep(1)
            killer = subprocess.Popen([sys.executable, "-c", f"import os; os.kill({pid}, 15); print(os.getpid())"],
                                      stdout=subprocess.PIPE, text=True)
            killers.append(int(killer.communicate(timeout=WAIT)[0]))

        self.start("sleep 47110", kill)
        done = self.sluice_run("bash", "-c", "sleep 47110; exit 3")
        self.assertEqual(3, done.returncode, done.stderr)
        (killed,) = self.findings("KILLED")
        self.assertEqual("sleep", killed["tool"])
        self.assertEqual("ERROR", killed["severity"])
        self.assertEqual((signal.SIGTERM, killers[0], os.getuid(), 0), tuple(
            evidence(killed)[name] for name in ("exit_signal", "sender_pid", "sender_uid", "sender_is_kernel")))
        self.assertIn("was ended by SIGTERM, which python", killed["message"])
        self.assertLess(evidence(killed)["after_signal_ns"], 5e9)
        (end,) = [r for r in self.ends() if r["program_id"] == killed["program_id"]]
        self.assertEqual((signal.SIGTERM, end["end_time"]), (end["exit_signal"], killed["time"]))

    def test_a_group_has_one_finding(self):
        def kill(pid):
            time.sleep(1)
            os.killpg(os.getpgid(pid), signal.SIGKILL)

        self.start("sleep 47111", kill)
        done = self.sluice_run("setsid", "-w", "sh", "-c", "sh -c 'sleep 47111; exit 1'; exit 1")
        self.assertNotEqual(0, done.returncode, done.stderr)
        (killed,) = self.findings("KILLED")
        self.assertIn(killed["tool"], ("sh", os.path.basename(os.path.realpath("/bin/sh"))))
        self.assertEqual(os.getpid(), evidence(killed)["sender_pid"])

    def test_what_is_none(self):
        """Its own programs, itself, one that handles the signal, and one that ends well."""
        handles = "import signal, time; signal.signal(15, lambda *_: None); print(flush=True); time.sleep(30)"
        script = (f"timeout 0.2 sleep 9; sleep 9 & sleep 0.3; kill $!; wait; sh -c 'kill -USR1 $$'; "
                  f"{sys.executable} -c '{handles}' | (read; kill -TERM $(pgrep -f time.sleep.30); kill -KILL 0); exit 0")
        done = self.sluice_run("setsid", "-w", "bash", "-c", script)
        self.assertIsNotNone(done.returncode)
        self.assertEqual([], [f["message"] for f in self.findings("KILLED")])

    def test_the_kernel_ends_it(self):
        """At its limit of CPU time."""
        done = self.sluice_run("bash", "-c", f"ulimit -t 1; {sys.executable} -c 'while True: pass'; exit 0")
        self.assertEqual(0, done.returncode, done.stderr)
        (killed,) = self.findings("KILLED")
        self.assertEqual((signal.SIGKILL, 1),
                         (evidence(killed)["exit_signal"], evidence(killed)["sender_is_kernel"]))
        self.assertIn("which the kernel sent", killed["message"])

    def test_an_agent_that_is_killed_in_between(self):
        """It is killed after the signal and before the end, for which the parent waits: recorded once."""
        agent = self.agent().start()
        with open(os.path.join(self.room, "Makefile"), "w") as f:
            f.write("all:\n\t@sleep 47112; exit 1\n")
        make = subprocess.Popen(["make", "-C", self.room], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: make.poll() is None and make.kill())
        pid = find_pid("sleep 47112")
        agent.settle()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(2, make.wait(WAIT))
        agent.settle(tasks=True)
        agent.kill9()
        agent.start()
        agent.settle(tasks=True)
        self.assertEqual(0, agent.stop())
        topics = {topic: once(records) for topic, records in read_lake(agent.lake).items()}
        killed = [f for f in self.findings("KILLED", topics) if evidence(f)["sender_pid"] == os.getpid()]
        self.assertEqual(1, len(killed), killed)
        self.assertEqual("sleep", killed[0]["tool"])


class EpisodesTest(LiveTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        own_mounts()

    def test_what_keeps_tasks_from_their_work(self):
        """Each is found once, over a restart of the agent; those that work are not."""
        with contextlib.ExitStack() as stack:
            room = self.room
            held = stack.enter_context(open(os.path.join(room, "held"), "w"))
            fcntl.flock(held, fcntl.LOCK_EX)
            os.mkfifo(os.path.join(room, "fifo"))
            pipe = os.open(os.path.join(room, "fifo"), os.O_RDWR)
            stack.callback(os.close, pipe)
            hanging = stack.enter_context(Hanging(os.path.join(room, "fuse")))
            values = {"room": room, "python": sys.executable, "port": stack.enter_context(server(is_silent=True)),
                      "hung": os.path.join(hanging.at, "file"), "group": stack.enter_context(throttled_group()),
                      "frozen": ext4_disk(self)}
            with open(os.path.join(room, "Makefile"), "w") as f:
                f.write("all: " + " ".join(TASKS) + "\n")
                for name, (_, _, recipe) in TASKS.items():
                    f.write(f"{name}:\n\t@echo $$$$ > {room}/{name}.pid; {recipe.format(**values)}\n")
            thaw = stack.enter_context(contextlib.ExitStack())
            thaw.enter_context(frozen(values["frozen"]))
            agent = self.agent(findings=LIMITS).start()
            make = subprocess.Popen(["make", "-k", f"-j{len(TASKS)}", "-C", room], start_new_session=True,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(make.wait, WAIT)
            stack.callback(kill_session, make.pid)
            stack.callback(thaw.close)      # before: a process that waits for the file system ends of no signal

            def found():
                if not os.path.isdir(os.path.join(agent.lake, "sluice.finding")):
                    return []
                names = {}
                for name in TASKS:
                    with open(os.path.join(room, name + ".pid")) as f:
                        names[int(f.read())] = name
                return [f | {"task": names[pid_of(f["task_id"])]} for f in once(read_cat(agent.lake, "finding"))
                        if f["task_id"] and pid_of(f["task_id"]) in names]

            wanted = sorted((name, kind) for name, (kind, _, _) in TASKS.items() if kind)
            try:
                agent.wait(lambda: sorted({(f["task"], f["kind"]) for f in found()}) == wanted, LIFE / 2, what="findings")
            except AssertionError as e:
                self.fail(f"{e}\n{[(f['task'], f['kind'], f['message']) for f in found()]}")
            agent.kill9()
            agent.start()
            time.sleep(12 * P)  # longer than each of LIMITS
            self.assertEqual(wanted, sorted((f["task"], f["kind"]) for f in found()), [f["message"] for f in found()])
            for finding in found():
                self.assertIn(TASKS[finding["task"]][1], finding["message"])
            by_task = {f["task"]: f for f in found()}
            self.assertGreaterEqual(evidence(by_task["locked"])["no_progress_ns"], 8e9 * P)
            self.assertLess(evidence(by_task["throttled"])["cpu_ns"], evidence(by_task["throttled"])["throttled_ns"])
            self.assertEqual("INFO", by_task["slept"]["severity"])
            self.assertEqual("WARNING", by_task["piped"]["severity"])
            self.assertEqual(0, agent.stop())


# Writes memory, and then reads it in no order, for ever.
READS_BACK = """
import mmap, random
m = mmap.mmap(-1, %d << 20, flags=mmap.MAP_PRIVATE)
for at in range(0, len(m), 4096):
    m[at] = 1
while True:
    m[random.randrange(len(m))]
"""
WORKING_SET_MIB, SWAP_MIB = 192, 256
LIMIT = 48 << 20


@contextlib.contextmanager
def small_group():
    """A control group with little memory, in a hierarchy of either version."""
    v1 = "/sys/fs/cgroup/memory"
    is_v1 = os.path.isdir(v1)
    path = os.path.join(v1 if is_v1 else "/sys/fs/cgroup", f"sluice-memory-{os.getpid()}")
    if not is_v1:
        write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory")
    os.mkdir(path)
    try:
        write_text(os.path.join(path, "memory.limit_in_bytes" if is_v1 else "memory.max"), str(LIMIT))
        yield path
    finally:
        os.rmdir(path)


@contextlib.contextmanager
def swap_file():
    """Swap on the disk of /var/tmp; no longer used once this process has ended, whatever ended it."""
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file, Undo() as undo:
        for _ in range(SWAP_MIB):
            file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        subprocess.run(["mkswap", "--quiet", file.name], check=True)
        with undo.step("swapoff", file.name):
            subprocess.run(["swapon", file.name], check=True)
            yield


class PressureTest(LiveTest):
    def test_a_task_without_the_memory_for_its_work(self):
        """Beside one with the same work and the memory for it."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(delay_accounting(True))
            stack.enter_context(swap_file())
            script = os.path.join(self.room, "reads_back.py")
            write_text(script, READS_BACK % WORKING_SET_MIB)
            # Where the disk of its swap is busy, the kernel may kill it for memory: it begins anew.
            reads = f"timeout {LIFE} sh -c 'until {sys.executable} {script}; do :; done'; true"
            write_text(os.path.join(self.room, "Makefile"),
                       f"all: small large\nsmall:\n\t@echo $$$$ > {stack.enter_context(small_group())}/cgroup.procs; {reads}\n"
                       f"large:\n\t@{reads}\n")
            agent = self.agent(findings=LIMITS).start()
            make = subprocess.Popen(["make", "-j2", "-C", self.room], start_new_session=True, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            stack.callback(make.wait, WAIT)
            stack.callback(kill_session, make.pid)

            def found():
                return os.path.isdir(os.path.join(agent.lake, "sluice.finding")) and \
                    [f for f in once(read_cat(agent.lake, "finding")) if f["kind"] == "MEMORY_PRESSURE"]
            try:
                agent.wait(found, LIFE / 2, what="finding")
            except AssertionError as e:
                self.fail(f"{e}\n{[(r['task'], r['phase'], r['usage'], r['bill']) for r in read_cat(agent.lake, 'task')]}")
            time.sleep(8 * P)
            (pressed,) = found()
            self.assertGreaterEqual(evidence(pressed)["pressure_ns"], 0.2 * evidence(pressed)["period_ns"])
            self.assertIn("had to make memory free, or to read pages back", pressed["message"])
            self.assertEqual(0, agent.stop())


OWN_MOUNTS = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", 'mount --rbind "$0" "$0" && exec "$@"']


class DiskTest(LiveTest):
    def mounted(self, name):
        """A small tmpfs of the agent's mount namespace."""
        at = os.path.join(self.room, name)
        os.mkdir(at)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "sluice-test", at], check=True)
        self.addCleanup(subprocess.run, ["umount", at], check=True)
        return at

    def test_a_task_that_fills_its_disk(self):
        """A task beside it, on a disk with room, has no finding."""
        self.fill(prefix=[])

    def test_a_task_that_fills_its_disk_for_an_agent_with_mounts_of_its_own(self):
        """As the packaged unit has; of the same disk it has another mount."""
        self.fill(prefix=OWN_MOUNTS + [self.room])

    def test_a_task_that_dies_at_once_of_its_full_disk(self):
        """Before the agent has looked at it. One that fails on a disk with room has no finding."""
        self.die(prefix=[])

    def test_a_task_that_dies_at_once_for_an_agent_with_mounts_of_its_own(self):
        self.die(prefix=OWN_MOUNTS + [self.room])

    def die(self, prefix):
        full, other = self.mounted("full"), self.mounted("other")
        agent = self.agent()
        agent.command_prefix = prefix
        agent.start()
        for at, size in ((full, 20000000), (other, 1000000)):
            with open(os.path.join(at, "Makefile"), "w") as f:
                f.write(f"all:\n\t@head -c {size} /dev/zero > big && exit 3\n")
            self.assertEqual(2, subprocess.run(["make", "-C", at], capture_output=True, timeout=WAIT).returncode)
        agent.settle(tasks=True)
        self.assertEqual(0, agent.stop())
        topics = {topic: once(records) for topic, records in read_lake(agent.lake).items()}
        (found,) = [f for f in self.findings("DISK_FULL", topics) if self.room in f["message"]]
        self.assertIn(f"the disk of {full}, where task ", found["message"])
        self.assertEqual((0, 8 << 20, 1), tuple(evidence(found)[x] for x in ("free_bytes", "total_bytes", "exit_code")))
        self.assertEqual("head", found["tool"])
        (failed,) = [f for f in self.findings("FAILED", topics) if f["task_id"] == found["task_id"]]
        self.assertEqual(failed["program_id"], found["program_id"])

    def test_a_run_that_dies_at_once_of_its_full_disk(self):
        """What it deletes before it ends is not known to have filled the disk."""
        full = self.mounted("full")
        fills = "head -c 20000000 /dev/zero > big"
        frees = f"{sys.executable} -c 'import os; os.write(os.open(\"big\", 65), bytes(20000000)); os.unlink(\"big\"); exit(1)'"
        for line, n in ((frees, 0), (f"sleep 0.5; {fills}", 1)):
            done = self.sluice_run("sh", "-c", line, options=("--interval", "1s"), cwd=full)
            self.assertEqual(1, done.returncode, done.stderr)
            found = self.findings("DISK_FULL")
            self.assertEqual(n, len(found), found)
        self.assertIn(f"the disk of {full}, where ", found[0]["message"])
        self.assertIn(" works, is full: 0 is left of 8.0 MiB; head (pid ", found[0]["message"])

    def fill(self, prefix):
        full, other = self.mounted("full"), self.mounted("other")
        agent = self.agent(findings={"disk_full": "2s"})
        agent.command_prefix = prefix
        agent.start()
        for at, fill in ((full, "head -c 20000000 /dev/zero > big; "), (other, "head -c 1000000 /dev/zero > small; ")):
            with open(os.path.join(at, "Makefile"), "w") as f:
                f.write(f"all:\n\t@{fill} sleep {8 * P}; true\n")
        makes = [subprocess.Popen(["make", "-C", at], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for at in (full, other)]
        for make in makes:
            self.assertEqual(0, make.wait(WAIT))
        agent.settle(tasks=True)
        self.assertEqual(0, agent.stop())
        topics = {topic: once(records) for topic, records in read_lake(agent.lake).items()}
        (found,) = [f for f in self.findings("DISK_FULL", topics) if self.room in f["message"]]
        self.assertEqual("ERROR", found["severity"])
        self.assertIn(f"the disk of {full}, where task ", found["message"])
        self.assertEqual((0, 8 << 20), (evidence(found)["free_bytes"], evidence(found)["total_bytes"]))


if __name__ == "__main__":
    harness.main()
