# SPDX-License-Identifier: Apache-2.0
"""Many containers one after another: every program of each in the right one, and an agent that does not grow."""
import concurrent.futures
import os
import secrets
import tempfile
import unittest

import harness
from systems import machine, rootfs
from systems.recorded import SystemTest, new_mark
from systems.runc import Runc

CONTAINERS = int(os.environ.get("CONTAINERS", "1000"))
AT_ONCE = 8
GROUPS = 17000  # more than an agent knows at once
STEP, STEPS = 1500, 3
STEPS_MAX = 30  # a trace of each group grows for ever; buffers had their end after 5 to 14 steps
BYTES_A_GROUP = 50  # of growth are half of what the smallest trace of one would take
GROWTH = 4 << 20
os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=0:thread_local_quarantine_size_kb=0")  # it would keep what was freed


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS:"))


class Many(SystemTest):
    def setUp(self):
        super().setUp()
        room = tempfile.TemporaryDirectory(prefix="sluice-root-")
        self.addCleanup(room.cleanup)
        os.chmod(room.name, 0o755)
        self.root = rootfs.make_root(os.path.join(room.name, "root"))

    def run_all(self, runc, mark, numbers):
        """{number: its container's id}; each ended with its number's last byte."""
        ids = {n: secrets.token_hex(32) for n in numbers}

        def one(n):
            argv = ["/bin/sh", "-c", '/bin/true "$0" "$1"; exit "$2"', mark, str(n), str(n % 256)]
            done = runc.run(ids[n], argv, cgroup=f"/docker/{ids[n]}")
            return [] if done.returncode == n % 256 else [(n, done.returncode, done.stdout)]

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            self.assertEqual([], [wrong for found in pool.map(one, numbers) for wrong in found])
        return ids

    def start(self):
        """Follows only what these tests start: by what others start on this host it would grow, too."""
        folder = os.path.join(self.room, "agent", "rules.d")
        os.makedirs(folder)
        with open(os.path.join(folder, "own.yaml"), "w") as f:
            f.write("include:\n  - exe: [runc, into_cgroup]\n")
        return super().start()

    def settled(self):
        """What the agent takes once it has dealt with all that happened."""
        self.recorder.settle()
        return resident(self.recorder.pid)

    def test_none_is_unattributed_and_memory_stays_flat(self):
        mark = new_mark()
        self.start()
        with Runc(self.root) as runc:
            # The first third fills what is bounded: tables, and pages of the allocator.
            ids = self.run_all(runc, mark, range(CONTAINERS // 3))
            before = self.settled()
            ids.update(self.run_all(runc, mark, range(CONTAINERS // 3, CONTAINERS)))
            after = self.settled()
        self.assertLessEqual(after - before, GROWTH, (before, after))
        records = self.stop()
        self.assertEqual(CONTAINERS, len(ids))
        wrong, seen = [], {n: [] for n in ids}
        for r in records.marked(mark):
            # The shell has all of it behind its script, and ends with the number; true has the number as its last argument.
            is_shell = r["comm"] == "sh"
            n = int(r["argv"][4 if is_shell else 2])
            seen[n].append(r["comm"])
            start = records.starts.get(r["program_id"])
            told = {(x["container_id"], x["container_runtime"]) for x in (r, start) if x is not None}
            if told != {(ids[n], "docker")} or r["exit_code"] != (n % 256 if is_shell else 0):
                wrong.append((n, r["comm"], told, r["exit_code"], self.paths(r)))
        self.assertEqual([], wrong[:5], f"{len(wrong)} wrong")
        self.assertEqual([], [(n, who) for n, who in seen.items() if sorted(who) != ["sh", "true"]][:5])

    def test_more_control_groups_than_are_remembered(self):
        """What is known of control groups is bounded: the last ones are known, and memory does not grow with their number."""
        v2 = machine.cgroup_v2()
        if v2 is None:
            self.skipTest("no v2 hierarchy is mounted here")
        parent = f"/docker/{secrets.token_hex(32)}"
        os.makedirs(v2 + parent)
        self.addCleanup(machine.remove_cgroups, "/docker")
        mark = new_mark()
        self.start()

        def start(first, last):
            machine.run([harness.built("into_cgroup"), "-n", first, last, v2 + parent, "/bin/true", mark], timeout=300)
            return self.settled()
        # What is kept of each group grows with every step. What else it takes (the buffers of the longest wait for the
        # disk so far) has an end, which a busy machine comes to later.
        taken, last = [start(1, GROUPS)], GROUPS
        while len(taken) <= STEPS or taken[-1] - taken[-1 - STEPS] > STEPS * STEP * BYTES_A_GROUP:
            self.assertLessEqual(len(taken), STEPS_MAX, f"it grows and grows: {taken}")
            taken.append(start(last + 1, last + STEP))
            last += STEP
        records = self.stop()
        wrong, seen = [], set()
        for r in records.marked(mark):
            if r["comm"] == "true":
                seen.add(int(r["argv"][2]))
                if r["container_id"] != f"{int(r['argv'][2]):064x}":
                    wrong.append((r["argv"][2], r["container_id"], self.paths(r)))
        self.assertEqual([], wrong[:5], f"{len(wrong)} wrong")
        self.assertEqual(set(range(1, last + 1)), seen)


if __name__ == "__main__":
    harness.main()
