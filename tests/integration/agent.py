# SPDX-License-Identifier: Apache-2.0
"""A `sluice agent` of a test's own: its configuration, its start and ends, and what it says.

Each agent has a room (spool, lake, sockets, log) and a place for its pins of its own, so that several
tests, and an agent that serves this host, do not meet. It becomes `nobody` after the start.
"""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import harness

BPFFS = "/sys/fs/bpf"


class Agent:
    def __init__(self, room, sluice=None, **keys):
        self.room = room
        self.sluice = sluice or harness.SLUICE
        self.command_prefix = []  # a command that execs the rest of its command line; harness.under_boot()
        self.process = None
        self.runs = 0
        os.chmod(room, 0o755)
        self.pins = os.path.join(BPFFS, "sluice_test_%d_%s" % (os.getpid(), os.path.basename(room).replace("-", "_").replace(".", "_")))
        self.config_path = os.path.join(room, "sluice.yaml")
        self.spool = os.path.join(room, "spool")
        self.lake = os.path.join(room, "lake")
        self.control = os.path.join(room, "control.sock")
        self.run_socket = os.path.join(room, "run.sock")
        self.metrics = os.path.join(room, "metrics.sock")
        self.config = {
            "interval": "1s", "user": "nobody", "control_group": "root", "drain": "10s",
            "lake": self.lake, "rules": os.path.join(room, "rules.d"), "control": self.control,
            "run_socket": self.run_socket, "metrics": "unix:" + self.metrics, "dead_letters": os.path.join(room, "dead-letters"),
            "log": {"level": "info", "format": "json"}, "spool": {"dir": self.spool},
        }
        self.configure(**keys)

    def configure(self, **keys):
        """Merges keys into the configuration and writes it; JSON is YAML. None: without that key, which an older version may not know."""
        for key, value in keys.items():
            if isinstance(value, dict) and isinstance(self.config.get(key), dict):
                self.config[key] = {**self.config[key], **value}
            else:
                self.config[key] = value
        self.config = {key: value for key, value in self.config.items() if value is not None}
        self.write_config(json.dumps(self.config, indent=1))

    def write_config(self, text):
        new = self.config_path + ".new"
        with open(new, "w") as f:
            f.write(text)
        os.rename(new, self.config_path)

    def follow_only(self, path):
        """A rule for what starts from now on: programs of that path, or folder with its slash, alone. Others may put any load on this host."""
        os.makedirs(self.config["rules"], exist_ok=True)
        with open(os.path.join(self.config["rules"], "follow-only.yaml"), "w") as f:
            json.dump({"include": [{"path": path}]}, f)

    def start(self, wait=True, timeout=60, env=None):
        self.runs += 1
        self.log_path = os.path.join(self.room, "agent-%d.log" % self.runs)
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen([*self.command_prefix, self.sluice, "agent", "-c", self.config_path,
                                             "--pins", self.pins],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=env or harness.plain_environment())
        if wait:
            self.wait_log("agent.started", timeout)
        return self

    @property
    def pid(self):
        return self.process.pid

    def readers(self):
        """The pids of the processes that read for it, as far as they have not ended."""
        found = []
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
            children = f.read().split()
        for child in children:
            try:
                with open(f"/proc/{child}/stat") as f:
                    comm, _, fields = f.read().partition("(")[2].rpartition(")")
            except OSError:
                continue
            if comm == "sluice-reader" and fields.split()[0] not in "ZX":
                found.append(int(child))
        return found

    def log_lines(self, run=None):
        path = os.path.join(self.room, "agent-%d.log" % (run or self.runs))
        lines = []
        with open(path, errors="replace") as f:
            for line in f:
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    lines.append({"event": "not.json", "message": line.rstrip("\n")})
        return lines

    def log_text(self, run=None):
        return "\n".join(json.dumps(x) for x in self.log_lines(run))

    def wait_log(self, event, timeout=30, count=1):
        """The line of an event in this run's log, once it has come (count times)."""
        def found():
            lines = [x for x in self.log_lines() if x.get("event") == event]
            return lines[count - 1] if len(lines) >= count else None
        return self.wait(found, timeout, "log event " + event)

    def wait(self, condition, timeout=30, what="condition"):
        timeout *= harness.PATIENCE
        end = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if self.process is not None and self.process.poll() is not None:
                value = condition()
                if value:
                    return value
                raise AssertionError("agent ended with %s while waiting for %s:\n%s" % (self.process.returncode, what, self.log_text()))
            if time.monotonic() > end:
                raise AssertionError("no %s within %s s:\n%s" % (what, timeout, self.log_text()))
            time.sleep(0.05)

    def ctl(self, *args, check=False, timeout=30):
        done = harness.run_sluice(["ctl", "--socket", self.control, *args], sluice=self.sluice, timeout=timeout)
        if check and done.returncode != 0:
            ended = self.process.poll() if self.process is not None else None
            how = "runs" if ended is None else "ended with %d" % ended
            raise AssertionError("ctl %s: exit %d: %s%sthe agent %s:\n%s" % (args, done.returncode, done.stdout, done.stderr, how,
                                                                             self.log_text()))
        return done

    def status(self):
        return json.loads(self.ctl("status", "--json", check=True).stdout)

    def settle(self, delivered=False, tasks=False, timeout=60):
        """Until all that happened before is recorded, and with delivered, delivered: `sluice ctl settle`."""
        flags = ["--delivered"] * delivered + ["--tasks"] * tasks
        self.ctl("settle", *flags, "--timeout", f"{timeout * harness.PATIENCE}s", check=True, timeout=timeout + 60)

    def wait_empty(self, timeout=60):
        """Until nothing waits in the spool but what the agent itself keeps writing."""
        def empty():
            try:
                s = self.status()
            except (AssertionError, ValueError):
                return None
            return s if s["spool"]["records"] <= 30 else None
        return self.wait(empty, timeout, "empty spool")

    def signal(self, signo):
        self.process.send_signal(signo)

    def kill9(self):
        self.process.kill()
        self.process.wait(10)

    def stop(self, timeout=60):
        """SIGTERM; the exit status."""
        if self.process is None or self.process.poll() is not None:
            return None if self.process is None else self.process.returncode
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout * harness.PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
            raise AssertionError("agent did not stop within %s s:\n%s" % (timeout, self.log_text()))

    def uninstall(self):
        return harness.run_sluice(["agent", "--uninstall", "--pins", self.pins], sluice=self.sluice)

    def remove(self):
        """The end of a test, in any state."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self.uninstall()


class AgentTest(harness.LakeTest):
    """A test with a room for agents; each is ended and its pins are removed afterwards."""

    def agent(self, name="agent", **keys):
        room = os.path.join(self.room, name)
        os.makedirs(room, exist_ok=True)
        a = Agent(room, **keys)
        self.addCleanup(a.remove)
        return a
