# SPDX-License-Identifier: Apache-2.0
"""The spool's disk is full, read-only, gone or too small under load: what is lost is counted, and nothing else is."""
import collections
import contextlib
import errno
import os
import shutil
import subprocess
import time

import harness
from faults import WAIT, DiskFaultTest
from load import Load, own

MIB = 1 << 20


def remove_written(path):
    """Removes a folder in which another process may make a file meanwhile."""
    until = time.monotonic() + WAIT
    while os.path.isdir(path):
        assert time.monotonic() < until, path
        with contextlib.suppress(OSError):
            shutil.rmtree(path)


class Disk(DiskFaultTest):
    def test_disk_full_then_freed(self):
        disk = self.disk()
        a = self.kafka_agent(spool={"dir": disk + "/spool", "max": "16MiB"}).start()
        with Load("full", rate=150) as load:
            self.wait_delivered(a, 50)
            self.fill(disk)
            self.wait_disk_error(a, os.strerror(errno.ENOSPC))
            self.wait_delivered(a, 300)  # continues meanwhile
            load.wait_more(200)
            os.unlink(disk + "/fill")
            self.wait_status(a, lambda s: not s["spool"]["disk_error"], "disk back")
            self.wait_delivered(a, 100)
        self.assert_told_once(a, "spool.disk")
        self.assert_told_once(a, "spool.disk_back")
        self.stop_drained(a)
        self.assert_whole(load)

    def test_disk_full_while_the_broker_is_away(self):
        """What is in memory then reaches the disk, and outlives the agent."""
        disk = self.disk()
        a = self.kafka_agent(spool={"dir": disk + "/spool", "max": "16MiB"}, drain="1s").start()
        with Load("full", rate=150) as load:
            self.wait_delivered(a, 50)
            self.stack.kill_broker()
            self.fill(disk)
            self.wait_disk_error(a, os.strerror(errno.ENOSPC))
            # How many records a batch has, and so what they take, depends on how fast they come.
            self.wait_status(a, lambda s: s["spool"]["memory_bytes"] > 256 << 10 and s["spool"]["records"] > 200, "records in memory")
            os.unlink(disk + "/fill")
            self.wait_status(a, lambda s: not s["spool"]["disk_error"] and s["spool"]["memory_bytes"] == 0, "disk back")
            a.kill9()
            a.start()
            self.stack.start_broker()
            self.wait_delivered(a, 300)
        a.configure(drain=f"{WAIT}s")
        a.ctl("reload", check=True)
        self.stop_drained(a)
        self.assert_whole(load, again=True)

    def test_read_only_and_back(self):
        """An agent starts on a disk that has become read-only, and keeps what it sees in memory."""
        disk = self.disk()
        a = self.kafka_agent(spool={"dir": disk + "/spool"}).start()
        with Load("read-only", rate=150) as load:
            self.wait_delivered(a, 50)
            a.kill9()  # its open files would keep the disk from becoming read-only
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            a.start()
            self.wait_disk_error(a, os.strerror(errno.EROFS))
            self.wait_delivered(a, 200)
            subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
            self.wait_status(a, lambda s: not s["spool"]["disk_error"], "disk back")
            self.wait_delivered(a, 100)
        self.assert_told_once(a, "spool.disk")
        self.stop_drained(a)
        self.assert_whole(load, again=True)

    def test_directory_removed(self):
        a = self.kafka_agent().start()
        with Load("removed", rate=150) as load:
            self.wait_delivered(a, 50)
            remove_written(a.spool)
            # What writes finds it gone; what looks for it wants to make it, which the agent may not in root's folder.
            self.wait_disk_error(a, os.strerror(errno.ENOENT), os.strerror(errno.EACCES))
            self.wait_delivered(a, 200)
            os.makedirs(a.spool, mode=0o700)
            os.chown(a.spool, *[os.stat(a.room + "/dead-letters").st_uid] * 2)
            self.wait_status(a, lambda s: not s["spool"]["disk_error"], "disk back")
            self.wait_delivered(a, 100)
            a.kill9()  # and the new one holds all that a restart needs
            a.start()
            self.wait_delivered(a, 100)
        self.assert_told_once(a, "spool.disk", 0)
        self.stop_drained(a)
        self.assert_whole(load, again=True, first_seq=None)

    def test_over_its_bound(self):
        """Usage goes first; what is missing in the end is exactly what was counted, topic by topic."""
        a = self.kafka_agent(spool={"max": "16MiB"}).start()
        sleepers = [subprocess.Popen([own("sh"), "-c", "while :; do :; done"]) for _ in range(2)]
        self.addCleanup(lambda: [(p.kill(), p.wait()) for p in sleepers])
        with Load("small", rate=100) as small:
            self.wait_delivered(a, 50)
            self.stack.kill_broker()
            with Load("large", rate=150, padding=30000) as large:
                s = self.wait_status(a, lambda s: s["spool"]["dropped"], "drops")
                self.assertEqual({"sluice.usage"}, {d["topic"] for d in s["spool"]["dropped"]}, "Usage first")
                s = self.wait_status(a, lambda s: any(d["topic"] == "sluice.program" for d in s["spool"]["dropped"]),
                                     "drops of programs")
                large.wait_more(100)
            s = a.status()
            self.assertLessEqual(s["spool"]["bytes"], 20 * MIB)
            self.assertTrue(any("dropped by the spool" in p["text"] for p in s["problems"]), s["problems"])
            self.stack.start_broker()
            self.wait_delivered(a, 200)
        # A reader sees a hole by what comes after it: one record more of the topic whose last ones were dropped.
        a.settle(delivered=True, timeout=WAIT)
        self.wait_delivered(a, 1, "sluice.usage")
        self.stop_drained(a)
        result = self.read(duplicates=1 << 60, ends_without_start=1 << 30)
        self.assertTrue(result.ok, result.summary())
        counted = {place: n for place, reason, n in self.lost(result) if reason == "spool_full"}
        missing = collections.Counter()
        for (_, topic), seqs in result.holes.items():
            missing[topic] += len(seqs)
        self.assertEqual(counted, dict(missing), result.summary())
        self.assertGreater(counted["sluice.program"], 50)
        # Where the kernel reports ends seconds late, the arguments of those programs make a checkpoint larger than the
        # third of this small spool that it may take: it is given up, and counted.
        self.cut += 2 * missing["sluice.program"]  # dropped records may lack paths, of another test's programs
        self.assert_only_lost(result, "spool_full", "state_too_large")
        self.assertGreater(small.started + large.started, 0)


if __name__ == "__main__":
    harness.main()
