# SPDX-License-Identifier: Apache-2.0
"""What is changed of the host is changed back, whatever becomes of the process that changed it.

A second process has the list of what is to be done, and does it when the first one ends without having done it.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

TIMEOUT_S, ATTEMPTS = 60, 40


def _run(argv):
    """Whether it succeeded."""
    try:
        return subprocess.run(argv, check=False, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL).returncode == 0
    except subprocess.TimeoutExpired:
        return False


class Undo:
    """with Undo() as undo: within each step(), the command to undo it is known to both processes."""

    def __enter__(self):
        self._second = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__)], stdin=subprocess.PIPE, text=True,
                                        start_new_session=True)
        return self

    def __exit__(self, *_):
        self._second.stdin.close()
        self._second.wait()

    def _tell(self, line):
        self._second.stdin.write(json.dumps(line) + "\n")
        self._second.stdin.flush()

    @contextlib.contextmanager
    def step(self, *argv):
        """Runs the command when the block ends. Steps end in the reverse of the order in which they began."""
        self._tell(argv)
        try:
            yield
        finally:
            if not _run(argv):
                print(f"undo.py: not undone: {' '.join(argv)}", file=sys.stderr)
            self._tell(None)

    @contextlib.contextmanager
    def if_killed(self, *argv):
        """The command is for the second process alone: what the block holds undoes itself."""
        self._tell(argv)
        try:
            yield
        finally:
            self._tell(None)


def main():
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, signal.SIG_IGN)
    left = []
    for line in sys.stdin:
        argv = json.loads(line)
        if argv:
            left.append(argv)
        else:
            left.pop()
    for argv in reversed(left):
        for _ in range(ATTEMPTS):  # what uses it ends with the first process, but not at once
            if _run(argv):
                break
            time.sleep(1)


if __name__ == "__main__":
    main()
