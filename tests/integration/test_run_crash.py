# SPDX-License-Identifier: Apache-2.0
"""kill -9 of sluice in the middle of a run: COMMAND continues, and the lake is repaired."""
import os
import shutil
import signal
import subprocess
import time

import harness
from harness import LakeTest, lake_files, read_lake, seq_holes

# Makes some records at once and some a second, ends on request, and leaves a sign of it.
SCRIPT = """
for i in $(seq 40); do /bin/true; done
until [ -e "$0/stop" ]; do /bin/true; sleep 0.02; done
touch "$0/finished"
"""


class Killed(LakeTest):
    def programs_by_cat(self):
        done = harness.run_sluice(["cat", "--raw", "--topic", "sluice.program", self.lake])
        return done, [line for line in done.stdout.splitlines() if line]

    def kill_in_mid_run(self):
        """Starts a run, kills sluice once records rest in the lake, lets COMMAND end by itself."""
        p = subprocess.Popen([harness.SLUICE, "run", "--quiet", "--lake", self.lake, "--", "sh", "-c", SCRIPT, self.room],
                             env=harness.plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 30 * harness.PATIENCE
            seen = []  # how many there were, each time that there were more: at least three blocks
            while len(seen) < 3:
                n = len(self.programs_by_cat()[1])
                if n > (seen[-1] if seen else 20):
                    seen.append(n)
                self.assertLess(time.monotonic(), deadline, "no records came to rest while the run was going on")
                self.assertIsNone(p.poll(), "sluice ended by itself")
                time.sleep(0.1)
            p.send_signal(signal.SIGKILL)
            p.wait()
        finally:
            if p.poll() is None:
                p.kill()
                p.wait()
            open(os.path.join(self.room, "stop"), "w").close()
        deadline = time.monotonic() + 30 * harness.PATIENCE
        while not os.path.exists(os.path.join(self.room, "finished")):
            self.assertLess(time.monotonic(), deadline, "COMMAND did not go on after sluice was killed")
            time.sleep(0.1)
        os.unlink(os.path.join(self.room, "stop"))
        os.unlink(os.path.join(self.room, "finished"))

    def open_files(self):
        return [path for path, finished in lake_files(self.lake) if not finished]

    def repair(self):
        """The next start of sluice with this lake repairs it."""
        done = harness.run_sluice(["run", "--quiet", "--lake", self.lake, "--", "true"])
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([], self.open_files())

    def test_leaves_a_lake_that_the_next_run_repairs(self):
        self.kill_in_mid_run()
        _, before = self.programs_by_cat()
        self.repair()
        topics = read_lake(self.lake)  # each file whole for a foreign reader
        self.assertEqual([], seq_holes(topics["sluice.program"]))
        agents = {}
        for r in topics["sluice.program"]:
            agents.setdefault(r["agent_id"], []).append(r["seq"])
        self.assertEqual(2, len(agents))
        self.assertGreaterEqual(max(len(s) for s in agents.values()), len(before))
        _, after = self.programs_by_cat()
        self.assertEqual([], [line for line in before if line not in set(after)])

    def test_with_a_torn_block_keeps_the_whole_ones(self):
        self.kill_in_mid_run()
        torn = [p for p in self.open_files() if "sluice.program" in p]
        self.assertTrue(torn, "no file was open: where do records go?")
        _, before = self.programs_by_cat()
        with open(torn[0], "r+b") as f:
            f.truncate(os.path.getsize(torn[0]) - 5)
        done, readable = self.programs_by_cat()
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn(torn[0], done.stderr)
        self.assertRegex(done.stderr, r"\b\d{2,}\b")  # the offset
        self.assertLess(0, len(readable))
        self.assertLess(len(readable), len(before))
        self.repair()
        whole = [r for r in read_lake(self.lake)["sluice.program"]]
        self.assertEqual([], seq_holes(whole))
        self.assertIn(len(whole) - len(readable), (1, 2))  # the END of true, and a START if it lives for a second

    def test_with_garbage_at_the_end_keeps_what_stands_before_it(self):
        self.kill_in_mid_run()
        torn = [p for p in self.open_files() if "sluice.program" in p]
        self.assertTrue(torn)
        _, before = self.programs_by_cat()
        with open(torn[0], "ab") as f:
            f.write(bytes(4096))
        self.repair()
        self.assertIn(len(read_lake(self.lake)["sluice.program"]) - len(before), (1, 2))  # as above


class Full(LakeTest):
    def test_disk_is_said_and_the_command_still_ends_as_it_ends(self):
        small = os.path.join(self.room, "small")
        os.mkdir(small)
        if not shutil.which("mount") or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small],
                                                       stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no small file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", small])
        done = harness.run_sluice(["run", "--lake", os.path.join(small, "lake"), "--", "sh", "-c",
                                   "for i in $(seq 1000); do /bin/true; done; exit 5"])
        self.assertEqual(5, done.returncode, done.stderr)
        self.assertIn("No space left", done.stderr)
        self.assertGreater(harness.told_lost(done.stderr), 0)


if __name__ == "__main__":
    harness.main()
