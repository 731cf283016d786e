# SPDX-License-Identifier: Apache-2.0
"""What the kits of workflow engines share: where engines and pipelines are, and an engine's driver as a process."""
import os
import signal
import subprocess
import time

from systems import machine

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
PIPELINES = os.path.join(ROOT, "tests", "fixtures", "pipelines")
STEP = os.path.join(PIPELINES, "step.sh")

OURS = f".{os.getpid()}"  # behind the name of a run in its programs' arguments: tests that run at once have the same names


def owner(run):
    """The name of a run as its programs have it in their environment."""
    return run + OURS


def engine(name):
    """The folder of an engine that dev/engines fetches; there from its first use on."""
    fetch = os.path.join(ROOT, "dev", "engines")
    done = subprocess.run([fetch, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise AssertionError(f"dev/engines {name} failed:\n{done.stdout}")
    return os.path.join(ROOT, "build", "engines", name)


def environment(home, **extra):
    """Debian's own programs and nothing of ours: what a pipeline does must not hang on who runs the tests."""
    return {"PATH": machine.PATH, "HOME": home, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **extra}


class Driver:
    """An engine at work, its output in a file of its folder. user: a uid that it runs as."""

    def __init__(self, argv, folder, env=None, user=None, name="driver", stdin=subprocess.DEVNULL):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.argv = [str(a) for a in argv]
        for n in range(1, 1000):
            self.output_path = os.path.join(folder, f"{name}-{n}.log")
            if not os.path.exists(self.output_path):
                break
        who = {}
        if user is not None:
            os.chown(folder, user, user)
            who = {"user": user, "group": user, "extra_groups": []}
        self.started_us = time.time_ns() // 1000
        with open(self.output_path, "wb") as out:
            self.process = subprocess.Popen(self.argv, cwd=folder, env=env or environment(folder), stdin=stdin,
                                            stdout=out, stderr=out, start_new_session=True, **who)

    @property
    def pid(self):
        return self.process.pid

    @property
    def returncode(self):
        return self.process.returncode

    @property
    def output(self):
        with open(self.output_path, errors="replace") as f:
            return f.read()

    def wait(self, timeout=120):
        """Its exit status; one that takes too long is ended with all that it started."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError(f"{self.argv[:8]} in {self.folder} took over {timeout} s:\n{self.output[-3000:]}")

    def wait_output(self, text, timeout=60):
        """Until it has printed the text."""
        self.wait_for(lambda: text in self.output, timeout, f"{text!r} in its output")

    def wait_for(self, condition, timeout=60, what="condition"):
        end = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"{self.argv[:8]}: no {what} within {timeout} s:\n{self.output[-3000:]}")
            time.sleep(0.05)

    def end(self, signo=signal.SIGKILL):
        """It and its session; what has a session of its own lives on."""
        try:
            os.killpg(self.pid, signo)
        except ProcessLookupError:
            pass
        self.process.wait(30)


def ended_well(driver, status=0, timeout=120):
    """The driver, once it has ended with that status; what it said, where it has not."""
    if driver.wait(timeout) != status:
        raise AssertionError(f"{driver.argv[:8]} in {driver.folder}: exit {driver.returncode}, expected {status}:\n"
                             + driver.output[-4000:])
    return driver
