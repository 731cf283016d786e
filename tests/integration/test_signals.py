# SPDX-License-Identifier: Apache-2.0
"""Optional signals on the real kernel: detached, their fields are null and never 0; attached again, they are known of
programs that begin afterwards; a reload and a restart do as probes.detail says."""
import signal
import subprocess
import sys

import agent
import harness

NETWORK = [f"{k}_{way}_bytes" for k in ("net", "tcp", "udp", "unix") for way in ("rx", "tx")]

# Moves so many bytes through a Unix socket for each word on its standard input, and answers it.
MOVER = """
import socket, sys
a, b = socket.socketpair()
for line in sys.stdin:
    a.sendall(b"x" * int(line))
    left = int(line)
    while left:
        left -= len(b.recv(left))
    print("moved", flush=True)
"""


class Mover:
    def __init__(self, test):
        self.process = subprocess.Popen([sys.executable, "-c", MOVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        test.addCleanup(self.process.stdout.close)
        self.pid = self.process.pid

    def move(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "moved\n"

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)


class Signals(agent.AgentTest):
    def setUp(self):
        super().setUp()
        self.expected = {}  # pid of a mover that ended: the bytes that its record has, None: null

    def ended(self, a, mover, expected):
        mover.end()
        a.settle()
        self.expected[mover.pid] = expected

    def moves(self, a, expected):
        """A program of its own, all of whose life is now."""
        mover = Mover(self)
        mover.move(1000)
        self.ended(a, mover, expected)

    def check(self, a):
        """Stops the agent and compares what the lake says of those that ended."""
        a.stop()
        got = {r["pid"]: r["usage"] for r in harness.read_lake(a.lake)["sluice.program"]
               if r["phase"] == "END" and MOVER in (r["argv"] or [])}  # others may have had its number before, or have it since
        for pid, expected in self.expected.items():
            self.assertEqual(expected, got[pid]["unix_tx_bytes"])
            self.assertEqual([expected is None] * len(NETWORK), [got[pid][k] is None for k in NETWORK])
            self.assertIsNotNone(got[pid]["cpu_user_ns"])

    def state(self, a):
        return next(s for s in a.status()["signals"] if s["name"] == "network")

    def test_detached_is_null_and_never_0(self):
        a = self.agent().start()
        self.moves(a, 1000)
        old = Mover(self)
        old.move(500)
        done = a.ctl("detach", "network", check=True)
        self.assertEqual("network is detached: its fields are null from now on\n", done.stdout)
        self.assertEqual("detached", self.state(a)["state"])
        self.moves(a, None)
        during = Mover(self)
        during.move(700)
        a.ctl("detach", "network", check=True)  # again: nothing changes
        done = a.ctl("attach", "network", check=True)
        self.assertEqual("network is attached: its fields are known for programs that begin from now on\n", done.stdout)
        self.assertEqual("ok", self.state(a)["state"])
        for mover in (old, during):
            mover.move(300)
            self.ended(a, mover, None)
        self.moves(a, 1000)
        self.check(a)

    def test_what_is_not_optional_is_refused(self):
        a = self.agent().start()
        for word in ("attach", "detach"):
            done = a.ctl(word, "lifecycle")
            self.assertEqual((1, "sluice ctl: 'lifecycle' is no optional signal; these can be attached and detached: network\n"),
                             (done.returncode, done.stderr))
            done = a.ctl(word)
            self.assertEqual((1, f"sluice ctl: {word} takes the name of one optional signal: network\n"),
                             (done.returncode, done.stderr))

    def test_a_reload_does_as_the_configuration_says(self):
        a = self.agent().start()
        a.ctl("detach", "network", check=True)
        a.ctl("reload", check=True)
        self.assertEqual("detached", self.state(a)["state"])  # the configuration says nothing else than before
        a.configure(probes={"detail": ["-network"]})
        a.ctl("reload", check=True)
        self.moves(a, None)
        a.configure(probes={"detail": []})
        a.ctl("reload", check=True)
        self.assertEqual("ok", self.state(a)["state"])
        self.moves(a, 1000)
        self.check(a)

    def test_the_next_agent_knows_what_nobody_counted(self):
        a = self.agent().start()
        a.ctl("detach", "network", check=True)
        old = Mover(self)
        old.move(500)
        a.kill9()
        a.start()
        self.assertEqual("ok", self.state(a)["state"])
        self.ended(a, old, None)
        kept = Mover(self)
        kept.move(400)
        a.settle()
        a.kill9()
        kept.move(100)  # counted by the programs that are still attached
        a.start()
        kept.move(100)
        self.ended(a, kept, 600)
        a.stop()
        a.configure(probes={"detail": ["-network"]})
        a.start()
        self.assertEqual("detached", self.state(a)["state"])
        self.moves(a, None)
        self.check(a)


if __name__ == "__main__":
    harness.main()
