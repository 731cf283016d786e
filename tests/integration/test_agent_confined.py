# SPDX-License-Identifier: Apache-2.0
"""What each process of a running agent has left: who it is, and what code that an attacker got into it could do there."""
import errno
import os
import platform
import pwd
import shutil
import subprocess

import harness
import injected
from agent import AgentTest
from injected import (AF_INET, AF_NETLINK, AT_FDCWD, BPF, GETPID, KILL, MAP_LOOKUP, MISSING, NETLINK_ROUTE, O_CREAT, O_WRONLY, OPENAT, REFUSED,
                      SOCKET, UNLINK)
from test_reader import children, proc_status

NOBODY = pwd.getpwnam("nobody")
NONE = 0
CAP_DAC_READ_SEARCH, CAP_BPF = 1 << 2, 1 << 39


class ConfinedTest(AgentTest):
    def setUp(self):
        super().setUp()
        # Its title is read once a second, for which there is a reader.
        titled = subprocess.Popen(["/usr/bin/python3", "-c", "import time; time.sleep(600)", "multiprocessing.spawn"])
        self.addCleanup(titled.wait)
        self.addCleanup(titled.kill)

    def inject(self, pid, calls):
        return injected.make(self, pid, calls)

    def processes(self, a, files=False):
        """{name: pid} of all that an agent is."""
        def all_there():
            found = {"agent": a.pid}
            nurseries = [pid for pid, comm in children(a.pid).items() if comm == "sluice-nursery"]
            if len(nurseries) != 1:     # a reader has that name until it gives itself its own
                return None
            found["nursery"] = nurseries[0]
            for pid in a.readers():
                capable = int(proc_status(pid)["CapEff"], 16) == CAP_DAC_READ_SEARCH
                found["reader of files" if capable else "reader"] = pid
            return found if len(found) == 3 + files else None
        return a.wait(all_there, 30, "a nursery and readers")


class Processes(ConfinedTest):
    def test_who_they_are(self):
        a = self.agent(engines={"headers": True}).start()
        found = {}
        for name, pid in self.processes(a, files=True).items():
            status = proc_status(pid)
            self.assertEqual([str(NOBODY.pw_uid)] * 4, status["Uid"].split(), name)
            self.assertEqual((NONE, NONE, NONE), tuple(int(status[x], 16) for x in ("CapInh", "CapBnd", "CapAmb")), name)
            self.assertEqual(status["CapPrm"], status["CapEff"], name)
            self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]), name)
            found[name] = int(status["CapEff"], 16)
        self.assertEqual({"agent": CAP_BPF, "nursery": CAP_DAC_READ_SEARCH, "reader": NONE,
                          "reader of files": CAP_DAC_READ_SEARCH}, found)
        self.assertEqual(0, a.stop())

    def test_every_thread_has_the_filter(self):
        a = self.agent(kafka={"brokers": ["127.0.0.1:9"]}, registry={"urls": ["http://127.0.0.1:9"]}, drain="1s").start()

        def threads():
            found = os.listdir(f"/proc/{a.pid}/task")
            return found if len(found) >= 4 else None
        for task in a.wait(threads, 60, "threads of librdkafka and the spool"):
            self.assertEqual("2", proc_status(f"{a.pid}/task/{task}")["Seccomp"])
        self.assertEqual(0, a.stop())


class Injected(ConfinedTest):
    """What code in each process can do."""

    def setUp(self):
        super().setUp()
        if platform.machine() != "x86_64":
            self.skipTest("calls are injected on x86-64 alone")

    def test_calls_that_none_makes(self):
        a = self.agent(engines={"headers": True}).start()
        for name, pid in self.processes(a, files=True).items():
            with self.subTest(process=name):
                got = self.inject(pid, {**REFUSED, **MISSING, "control": (GETPID,)})
                self.assertEqual({**dict.fromkeys(REFUSED, "EPERM"), **dict.fromkeys(MISSING, "ENOSYS"), "control": "done"}, got)
        # The same agent continues.
        a.settle()
        self.assertEqual(0, a.stop())

    def test_calls_that_the_agent_makes(self):
        a = self.agent().start()
        got = self.inject(a.pid, {
            "a socket": (SOCKET, AF_INET, 1, 0), "netlink of routes": (SOCKET, AF_NETLINK, 3, NETLINK_ROUTE),
            "a look into a map": (BPF, MAP_LOOKUP, 0, 32), "signal 0": (KILL, a.pid, 0)})
        self.assertEqual({"a socket": "done", "netlink of routes": "done", "a look into a map": "EFAULT", "signal 0": "done"},
                         got)
        self.assertEqual(0, a.stop())

    def test_files(self):
        if not harness.has_landlock():
            self.skipTest("this kernel has no Landlock")
        others = os.path.join(self.room, "others")
        os.mkdir(others)
        os.chmod(others, 0o777)
        theirs = os.path.join(others, "theirs")
        with open(theirs, "w"):
            pass
        os.chmod(theirs, 0o666)
        a = self.agent(engines={"headers": True}).start()

        def opening(path, flags=0):
            return OPENAT, AT_FDCWD, "@" + path, flags, 0o600
        calls = {"write others'": opening(theirs, O_WRONLY), "make one of others": opening(others + "/new", O_WRONLY | O_CREAT),
                 "remove others'": (UNLINK, "@" + theirs), "read others'": opening(theirs), "read /etc": opening("/etc/passwd"),
                 "write own": opening(a.spool + "/new", O_WRONLY | O_CREAT), "read /proc": opening("/proc/stat")}
        nothing = dict.fromkeys(calls, "EACCES")
        want = {"agent": {**nothing, "read /etc": "done", "read /proc": "done", "write own": "done"},
                "nursery": {**nothing, "remove others'": "EPERM", "read others'": "done", "read /etc": "done", "read /proc": "done"},
                "reader": {**nothing, "remove others'": "EPERM", "read /proc": "done"}}
        want["reader of files"] = want["nursery"]
        got = {name: self.inject(pid, calls) for name, pid in self.processes(a, files=True).items()}
        self.assertEqual(want, got)
        self.assertEqual(0, a.stop())


class Refused(ConfinedTest):
    """Where it cannot be confined, it is said what the reason is."""

    def test_landlock_that_is_refused_is_not_a_kernel_without(self):
        a = self.agent()
        a.command_prefix = injected.refusing(injected.LANDLOCK_CREATE_RULESET, errno.EPERM)
        a.start()
        self.assertRegex(a.status()["process"]["privileges"], r", own system calls but not files \(Landlock is refused here, as the seccomp profile of a container may do\)\Z")
        self.assertEqual(0, a.stop())

    def test_a_folder_that_the_account_cannot_reach_is_named(self):
        if not harness.has_landlock():
            self.skipTest("this kernel has no Landlock")
        hidden = os.path.join(self.room, "hidden")
        os.makedirs(os.path.join(hidden, "below"))
        os.chmod(hidden, 0o700)
        a = self.agent(dead_letters=os.path.join(hidden, "below", "dead")).start(wait=False)
        self.assertEqual(125, a.process.wait(60 * harness.PATIENCE), a.log_text())
        self.assertIn(f"cannot confine the agent to its own system calls and files: {hidden}/below: Permission denied", a.log_text())


class Reload(ConfinedTest):
    def test_rules_elsewhere_need_a_restart(self):
        if not harness.has_landlock():
            self.skipTest("this kernel has no Landlock")
        a = self.agent().start()
        elsewhere = os.path.join(self.room, "elsewhere", "rules.d")
        os.makedirs(elsewhere)
        with open(os.path.join(elsewhere, "own.yaml"), "w") as f:
            f.write("exclude: [{exe: nothing-has-this-name}]\n")
        a.configure(rules=elsewhere)
        done = a.ctl("reload")
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stderr, "elsewhere/rules.d: is outside the folders .* restart it")
        self.assertEqual(1, a.status()["config"]["generation"])
        self.assertEqual(0, a.stop())
        a.start()
        a.ctl("reload", check=True)
        self.assertEqual(2, a.status()["config"]["generation"])
        self.assertEqual(0, a.stop())

    def test_files_that_come_later_are_read(self):
        """With the rules' folder, and through links that were there."""
        shared = os.path.join(self.room, "shared")
        os.mkdir(shared)
        rule = os.path.join(shared, "linked.yaml")
        with open(rule, "w") as f:
            f.write("exclude: [{exe: nothing-has-this-name}]\n")
        a = self.agent()
        os.makedirs(a.config["rules"])
        os.symlink(rule, os.path.join(a.config["rules"], "linked.yaml"))
        a.start()
        os.remove(rule)
        with open(rule, "w") as f:
            f.write("exclude: [{exe: neither-this}]\n")
        a.ctl("reload", check=True)
        # The folder itself is another one.
        shutil.rmtree(a.config["rules"])
        a.follow_only("/nothing/is/here/")
        os.makedirs(os.path.join(a.room, "conf.d"))
        with open(os.path.join(a.room, "conf.d", "more.yaml"), "w") as f:
            f.write("interval: 2s\n")
        a.ctl("reload", check=True)
        self.assertEqual(3, a.status()["config"]["generation"])
        self.assertEqual(0, a.stop())


if __name__ == "__main__":
    harness.main()
