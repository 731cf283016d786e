# SPDX-License-Identifier: Apache-2.0
"""Findings while work runs: who ended a program, and what keeps a task from its work."""
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time

import harness
from agent import AgentTest
from hanging import Hanging
from harness import read_cat, read_lake
from load import once
from test_run_waits import LOCK_FILE, RECEIVE, server, throttled_group

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
                      "hung": os.path.join(hanging.at, "file"), "group": stack.enter_context(throttled_group())}
            with open(os.path.join(room, "Makefile"), "w") as f:
                f.write("all: " + " ".join(TASKS) + "\n")
                for name, (_, _, recipe) in TASKS.items():
                    f.write(f"{name}:\n\t@echo $$$$ > {room}/{name}.pid; {recipe.format(**values)}\n")
            agent = self.agent(findings=LIMITS).start()
            make = subprocess.Popen(["make", "-k", f"-j{len(TASKS)}", "-C", room], start_new_session=True,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(make.wait, WAIT)
            stack.callback(kill_session, make.pid)

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
        self.fill(prefix=["unshare", "--mount", "--propagation", "slave", "sh", "-c", 'mount --rbind "$0" "$0" && exec "$@"', self.room])

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
