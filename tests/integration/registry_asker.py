# SPDX-License-Identifier: Apache-2.0
"""What the registry's tests share: registry_ids (the client under test) as a process that prints what it sees."""
import json
import os
import signal
import subprocess
import threading
import time

import harness

REGISTRY_IDS = harness.built("registry_ids")
HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = os.path.join(HERE, "..", "..", "schemas", "avro")
WAIT_S = 20.0
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


def schema_text(name):
    with open(os.path.join(SCHEMAS, name + ".avsc"), encoding="utf-8", newline="") as f:
        return f.read()


def subject(name):
    return f"sluice.{name}-value"


# {subject: the file's text}
SUBJECTS = {subject(f[:-5]): schema_text(f[:-5]) for f in sorted(os.listdir(SCHEMAS)) if f.endswith(".avsc")}


class Asker:
    """
    registry_ids URLS --KEY VALUE…, as a process; lines: its output so far. With `with`: on the way out it
    is ended where it has not ended by itself. Lines that were waited for are gone from what is waited for next.
    """

    def __init__(self, *urls, prefix=(), env=None, **options):
        options = {"seconds": 30, "retry_min_ms": 50, "retry_max_ms": 400, **options}
        argv = [*prefix, REGISTRY_IDS]
        for key, value in options.items():
            if value is True:
                argv.append("--" + key.replace("_", "-"))
            elif value is not None:
                argv += ["--" + key.replace("_", "-"), str(value)]
        plain = {k: v for k, v in os.environ.items() if k.lower() not in PROXIES}
        self.lines = []
        self.stderr = ""
        self._next = 0
        self._told = threading.Condition()
        self._process = subprocess.Popen([*argv, *urls], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, env={**plain, **(env or {})})
        self._threads = [threading.Thread(target=self._read_lines, daemon=True),
                         threading.Thread(target=self._read_errors, daemon=True)]
        for t in self._threads:
            t.start()

    def _read_lines(self):
        for line in self._process.stdout:
            with self._told:
                self.lines.append(json.loads(line))
                self._told.notify_all()

    def _read_errors(self):
        self.stderr = self._process.stderr.read()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self._process.poll() is None:
            self._process.kill()
        self.end()

    def wait(self, is_it, what="that"):
        """The first line, of those not looked at yet, for which is_it(line) holds."""
        until = time.monotonic() + WAIT_S
        with self._told:
            while True:
                while self._next < len(self.lines):
                    self._next += 1
                    if is_it(self.lines[self._next - 1]):
                        return self.lines[self._next - 1]
                if time.monotonic() > until or (self._process.poll() is not None and not self._threads[0].is_alive()):
                    raise AssertionError(f"registry_ids never told {what}; it told {self.lines[-3:]} {self.stderr}")
                self._told.wait(0.1)

    def wait_state(self, state, text=""):
        return self.wait(lambda line: line["state"] == state and text in line["error"], f"{state} with \"{text}\"")

    def pause(self):
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self._process.pid, signal.SIGCONT)

    def end(self, wait_s=WAIT_S):
        """Waits until it ends; (exit status, its last line)."""
        status = self._process.wait(wait_s)
        for t in self._threads:
            t.join(wait_s)
        self._process.stdout.close()
        self._process.stderr.close()
        return status, self.lines[-1] if self.lines else None

    def said(self):
        """All of its output, to look for what must not be there."""
        return json.dumps(self.lines) + self.stderr
