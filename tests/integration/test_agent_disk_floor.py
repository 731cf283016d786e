# SPDX-License-Identifier: Apache-2.0
"""The disk of lake and spool is small, and a user floods it: its floor stays free, the agent continues, and what is missing
afterwards is what was counted."""
import os
import subprocess
import sys
import threading
import time
import unittest

import harness
from agent import AgentTest
from disk_log import own_mounts
from harness import losses, read_lake
from load import own, own_folder

WAIT = 90  # seconds: a bound against a test that hangs
MIB = 1 << 20
DISK = 24 * MIB
FLOOR = DISK // 20  # of a disk that is smaller than 20 GiB
FLOODER = 64001  # a user that owns nothing

# Programs with arguments that hardly compress, for a minute and a half at most.
FLOOD = """
import os, sys, time
end = time.monotonic() + 90
while time.monotonic() < end:
    pid = os.posix_spawn(sys.argv[1], [sys.argv[1], "flood", os.urandom(12000).hex()], {})
    os.waitpid(pid, 0)
    time.sleep(0.002)
"""


class LeastFree(threading.Thread):
    """Looks at the room of a disk again and again."""

    def __init__(self, at):
        super().__init__(daemon=True)
        self.at, self.bytes, self._stop_it = at, DISK, threading.Event()

    @staticmethod
    def now(at):
        st = os.statvfs(at)
        return st.f_bavail * st.f_frsize

    def run(self):
        while not self._stop_it.wait(0.001):
            self.bytes = min(self.bytes, self.now(self.at))

    def __exit__(self, *what):
        self._stop_it.set()
        self.join()

    def __enter__(self):
        self.start()
        return self


@unittest.skipUnless(harness.is_root(), "needs root")
class DiskFloorTest(AgentTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        own_mounts()

    def disk(self):
        at = os.path.join(self.room, "disk")
        os.makedirs(at)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0755", "tmpfs", at], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", at], check=True)
        return at

    def flood(self):
        process = subprocess.Popen([sys.executable, "-c", FLOOD, own("true")], user=FLOODER, group=FLOODER, extra_groups=[])
        self.addCleanup(lambda: (process.kill(), process.wait()))
        return process

    def take(self, disk, name, size):
        """Another program takes so much of the disk."""
        with open(os.path.join(disk, name), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, size)

    def test_a_flood_on_a_small_disk(self):
        disk = self.disk()
        a = self.agent(lake=os.path.join(disk, "lake"), drain=f"{WAIT}s",
                       spool={"dir": os.path.join(disk, "spool"), "max": "16MiB", "memory": "1MiB"})
        a.lake = a.config["lake"]
        a.follow_only(own_folder())
        self.take(disk, "others", 6 * MIB)
        a.start()
        self.assertEqual(FLOOR, a.wait(lambda: a.status()["lake"]["disk_floor_bytes"], WAIT, "the floor"))
        with LeastFree(disk) as least:
            flood = self.flood()
            # The lake takes the room that there is, then the oldest files of what the flooder has beyond its share give way,
            # and it is written all the same. A flood that is faster than that disk costs records, which are counted.
            a.wait(lambda: any(r["reason"] == "lake_over_share" and r["files"] > 3 for r in a.status()["lake"]["removed"]),
                   WAIT, "files that gave way")
            a.wait(lambda: a.status()["output"]["state"] == "up", WAIT, "the output is up")
        self.assertGreaterEqual(least.bytes, FLOOR)

        # Others take all but half of the floor, and what the lake gives up for it: it keeps a tenth, and is not written.
        def down():
            room = LeastFree.now(disk) - FLOOR // 2
            if room > 0:
                self.take(disk, f"more-{time.monotonic_ns()}", room)
            s = a.status()
            return s if s["output"]["state"] == "down" else None
        down = a.wait(down, WAIT, "the output is down")
        self.assertRegex(down["output"]["last_error"], rf"disk_floor: the disk of the lake {a.lake} has .* free.*disk_free_min")
        self.assertTrue(down["lake"]["disk_floor"])
        before = down["spool"]["bytes"] - down["spool"]["memory_bytes"]
        full = a.wait(lambda: (s := a.status())["spool"]["dropped"] and s, WAIT, "records that gave way")
        self.assertTrue(any("disk_floor: the disk of the spool" in p["text"] for p in full["problems"]), full["problems"])
        self.assertLessEqual(full["spool"]["bytes"] - full["spool"]["memory_bytes"], before + MIB)
        self.assertEqual(0, a.ctl("status").returncode)

        # There is room again: all is delivered, and what is missing was counted, once.
        flood.kill()
        flood.wait()
        for name in os.listdir(disk):
            if name.startswith("more") or name == "others":
                os.unlink(os.path.join(disk, name))
        a.wait(lambda: a.status()["output"]["state"] == "up", WAIT, "the output is up")
        a.settle(delivered=True, timeout=WAIT)
        # It looks once a second.
        a.wait(lambda: not any(a.status()[of]["disk_floor"] for of in ("lake", "spool")), WAIT, "room")
        status = a.status()
        self.assertIsNone(status["spool"]["disk_error"])
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        topics = read_lake(a.lake)
        there = sum(len(records) for records in topics.values())
        # The last ones of a topic may be gone, or may have been made after the status.
        made = sum(max([t["produced"]] + [r["seq"] + 1 for r in topics.get(t["topic"], [])]) for t in status["records"])
        removed = sum(r["records"] for r in status["lake"]["removed"])
        dropped = sum(d["count"] for d in status["spool"]["dropped"])
        print(f"{made} records: {there} in the lake, {removed} removed, {dropped} dropped; {least.bytes} bytes free at least")
        self.assertEqual(made, there + removed + dropped)
        counted = {(place, reason): n for place, reason, n in losses(topics) if reason.startswith("spool_")}
        self.assertEqual({(d["topic"], d["reason"]): d["count"] for d in status["spool"]["dropped"]}, counted)


if __name__ == "__main__":
    harness.main()
