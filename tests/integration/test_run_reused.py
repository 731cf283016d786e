# SPDX-License-Identifier: Apache-2.0
"""
The kernel uses an address again: a process that nobody follows ends under the key of one whose last moment no
program saw. Neither is taken for the other.

It happens by itself where many more programs want to run than there are CPUs. Here it is arranged: by bpftool, the
entry of a program that runs becomes that of one which ended a second before it.
"""
import json
import os
import signal
import struct
import subprocess
import time

import harness
from harness import LakeTest

ENTRY = struct.Struct("=QII56xQ")  # struct proc of bpf/state.h: start, pid, index of self, and end_ns
END_AT = ENTRY.size - 8


def bpftool(*args):
    done = subprocess.run(["bpftool", "-j", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise AssertionError(f"bpftool {' '.join(args)[:100]}: {done.stdout}")
    return json.loads(done.stdout or "null")


def octets(words):
    return bytearray(int(x, 16) for x in words)


class Reused(LakeTest):
    def wait(self, look, what):
        until = time.monotonic() + 60
        while not (seen := look()):
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.02)
        return seen

    def map_of(self, run):
        """The id of the map of processes of that sluice."""
        held = set()
        for fd in os.listdir(f"/proc/{run.pid}/fdinfo"):
            with open(f"/proc/{run.pid}/fdinfo/{fd}") as f:
                held |= {int(line.split()[1]) for line in f if line.startswith("map_id:")}
        (found,) = [m["id"] for m in bpftool("map", "show") if m.get("name") == "procs" and m["id"] in held]
        return str(found)

    def entry(self, map_id, pid):
        """(key, value) of a process; None where it has none."""
        for e in bpftool("map", "dump", "id", map_id):
            if ENTRY.unpack_from(octets(e["value"]))[1] == pid:
                return octets(e["key"]), octets(e["value"])
        return None

    def test_the_end_of_another_is_not_its_end(self):
        run = subprocess.Popen([harness.SLUICE, "run", "--lake", self.lake, "--quiet", "--", "sh", "-c",
                                "sleep 60 & echo $!; wait; read x"], cwd=self.room, env=harness.plain_environment(),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: run.poll() is None and (run.kill(), run.wait()))
        pid = int(run.stdout.readline())
        map_id = self.map_of(run)
        key, value = self.entry(map_id, pid)
        start_ns, _, _, end_ns = ENTRY.unpack_from(value)
        with open(f"/proc/{pid}/stat") as f:
            ticks = int(f.read().rsplit(")", 1)[1].split()[19])
        self.assertEqual((ticks, 0), (start_ns * os.sysconf("SC_CLK_TCK") // 10**9, end_ns), "struct proc has changed")
        struct.pack_into("=Q", value, 0, start_ns - 10**9)
        struct.pack_into("=Q", value, END_AT, time.clock_gettime_ns(time.CLOCK_BOOTTIME))
        bpftool("map", "update", "id", map_id, "key", *map(str, key), "value", *map(str, value))
        os.kill(pid, signal.SIGTERM)
        self.wait(lambda: self.entry(map_id, pid) is None, "its end, told or made up for")
        run.communicate(b"\n", timeout=60)
        ends = [r for r in self.ends() if r["pid"] == pid]
        self.assertEqual([], [r for r in ends if r["exit_signal"] == signal.SIGTERM])


if __name__ == "__main__":
    harness.main()
