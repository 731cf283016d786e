# SPDX-License-Identifier: Apache-2.0
"""A gate in a pipeline: steps wait at it until the test opens it, so that what overlaps does not hang on a clock.

A step sources the gate's path with `.`: the shell reports its arrival, and reads a line of a FIFO, without a
program of its own. Pipelines source /dev/null where no gate is given.
"""
import contextlib
import os
import shlex
import threading

from systems import machine

MOST = 1000  # that one gate lets through
# Who reads a line that was meant for another, who came before, puts it back.
SCRIPT = """\
echo $$ >>{at}.pids
read line <{at}.fifo || return 1
until [ -e {at}.open ] || [ -e {at}.let.$$ ]; do
	[ -p {at}.fifo ] && echo >{at}.fifo && read line <{at}.fifo || return 1
done
"""


class Gate:
    """Open it with open(), from then on for every caller; after close() each that comes, or waits, fails."""

    def __init__(self, folder, name="gate"):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, name)
        self._fifo = self.path + ".fifo"
        self._pids = self.path + ".pids"
        os.mkfifo(self._fifo)
        with open(self._pids, "w"), open(self.path, "w") as f:
            f.write(SCRIPT.format(at=shlex.quote(self.path)))
        for path in (self._fifo, self._pids):
            os.chmod(path, 0o666)
        # Both ends: no step waits for a writer, and lines stay until they are read.
        self._fd = os.open(self._fifo, os.O_RDWR)

    def pids(self):
        """Of the shells that have come, whether or not they still wait."""
        with open(self._pids) as f:
            return [int(line) for line in f if line.endswith("\n")]

    def wait_for(self, count, driver, timeout=120):
        """Until so many steps of a driver have come."""
        driver.wait_for(lambda: len(self.pids()) >= count, timeout, f"{count} steps at the gate, but {self.pids()}")

    def open(self):
        with open(self.path + ".open", "w"):
            os.write(self._fd, b"\n" * MOST)

    @contextlib.contextmanager
    def kept(self, before):
        """Meanwhile each caller continues as soon as before(), called after its arrival, has returned."""
        is_over = threading.Event()

        def keep():
            let = []
            while not is_over.wait(0.02):
                come = self.pids()[len(let):]
                if come:
                    before()
                    for pid in come:
                        with open(f"{self.path}.let.{pid}", "w"):
                            pass
                    os.write(self._fd, b"\n" * len(come))
                    let += come
        keeper = threading.Thread(target=keep)
        keeper.start()
        try:
            yield
        finally:
            is_over.set()
            keeper.join()

    def wait_over(self, timeout=60):
        """Until all shells that came have ended."""
        machine.wait_until(lambda: all(map(machine.has_ended, self.pids())), timeout, f"end of those at the gate, {self.pids()}")

    def close(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._fifo)
        os.close(self._fd)
