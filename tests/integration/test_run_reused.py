# SPDX-License-Identifier: Apache-2.0
"""
The kernel uses an address again: a process has the address of one whose last moment no program saw. Neither is
taken for the other.

It happens by itself where many more programs want to run than there are CPUs. Here it is arranged: by bpftool, the
entry of one which began a second before, and has ended, is put beside that of a program that runs. Where no program
sees the last moment of one of the last, the command does not wait long for it.
"""
import contextlib
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
KEY = struct.Struct("=QQ")  # struct proc_key: address, start


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
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{run.pid}/fdinfo/{fd}") as f:  # it closes some meanwhile
                held |= {int(line.split()[1]) for line in f if line.startswith("map_id:")}
        (found,) = [m["id"] for m in bpftool("map", "show") if m.get("name") == "procs" and m["id"] in held]
        return str(found)

    def entries(self, map_id, pid):
        """[(key, value)] of processes with that number. One that is deleted between its key and its value has an error as value."""
        found = [(octets(e["key"]), octets(e["value"])) for e in bpftool("map", "dump", "id", map_id)
                 if isinstance(e.get("value"), list)]
        return [(key, value) for key, value in found if ENTRY.unpack_from(value)[1] == pid]

    def start(self, script):
        run = subprocess.Popen([harness.SLUICE, "run", "--lake", self.lake, "--own-probes", "--quiet", "--", "sh", "-c", script],
                               cwd=self.room, env=harness.plain_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: run.poll() is None and (run.kill(), run.wait()))
        return run

    def sleeper(self, run):
        """The number of a process that the script reports, once it sleeps and is no copy of the shell: its entry stays as it is."""
        pid = int(run.stdout.readline())

        def sleeps():
            with open(f"/proc/{pid}/stat") as f:
                return f.read().startswith(f"{pid} (sleep) S ")
        self.wait(sleeps, "the exec of what the script started")
        return pid

    def test_a_last_moment_that_the_kernel_never_reports(self):
        """The entry of a program that has ended stays: the command's end waits for it, but not for long."""
        run = self.start("sleep 61 & echo $!; read x")
        pid = self.sleeper(run)
        map_id = self.map_of(run)
        ((key, value),) = self.entries(map_id, pid)
        start_ns = ENTRY.unpack_from(value)[0]
        bpftool("map", "delete", "id", map_id, "key", *map(str, key))
        for where, at in ((key, KEY.size - 8), (value, 0)):
            struct.pack_into("=Q", where, at, start_ns - 10**6)
        os.kill(pid, signal.SIGKILL)
        ended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        struct.pack_into("=Q", value, END_AT, ended_ns)
        bpftool("map", "update", "id", map_id, "key", *map(str, key), "value", *map(str, value))
        run.communicate(b"\n", timeout=60)
        took = (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ended_ns) / 1e9
        self.assertEqual(1, len([r for r in self.ends() if r["pid"] == pid]))
        self.assertGreater(took, 1)
        self.assertLess(took, 4.5, "an agent that nobody waits for synthesizes an end after 5 s")

    def test_the_end_of_another_is_not_its_end(self):
        run = self.start("sleep 61 & echo $!; sleep 60 & echo $!; wait; read x")
        other, pid = self.sleeper(run), self.sleeper(run)
        map_id = self.map_of(run)
        ((key, value),) = self.entries(map_id, pid)
        start_ns, _, _, end_ns = ENTRY.unpack_from(value)
        with open(f"/proc/{pid}/stat") as f:
            ticks = int(f.read().rsplit(")", 1)[1].split()[19])
        self.assertEqual((ticks, 0), (start_ns * os.sysconf("SC_CLK_TCK") // 10**9, end_ns), "struct proc has changed")
        self.assertEqual(start_ns, KEY.unpack(key)[1], "struct proc_key has changed")
        for where, at in ((key, KEY.size - 8), (value, 0)):
            struct.pack_into("=Q", where, at, start_ns - 10**9)
        struct.pack_into("=Q", value, END_AT, time.clock_gettime_ns(time.CLOCK_BOOTTIME))
        # In the place of another's, so that there are as many entries as the kernel side has counted.
        ((others_key, _),) = self.entries(map_id, other)
        bpftool("map", "delete", "id", map_id, "key", *map(str, others_key))
        bpftool("map", "update", "id", map_id, "key", *map(str, key), "value", *map(str, value))
        os.kill(other, signal.SIGKILL)
        self.wait(lambda: len(self.entries(map_id, pid)) == 1, "the end that is made up for")
        os.kill(pid, signal.SIGTERM)
        self.wait(lambda: not self.entries(map_id, pid), "the end of the one that ran")
        run.communicate(b"\n", timeout=60)
        ends = sorted((r for r in self.ends() if r["pid"] == pid), key=lambda r: r["start_time"])
        self.assertEqual([None, signal.SIGTERM], [r["exit_signal"] for r in ends])
        self.assertAlmostEqual(10**6, ends[1]["start_time"] - ends[0]["start_time"], delta=2)
        self.assertEqual(["sleep", "60"], ends[1]["argv"])


if __name__ == "__main__":
    harness.main()
