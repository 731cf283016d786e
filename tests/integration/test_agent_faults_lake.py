# SPDX-License-Identifier: Apache-2.0
"""The lake's or the spool's disk is full or frozen, or on a server that is away: the agent continues, reports it, and each
record is in the lake once afterwards."""
import errno
import os
import signal
import subprocess
import time

import harness
from agent import AgentTest
from disk_log import FROZEN_AT_MOST, ext4_disk, frozen, own_mounts
from faults import get
from hanging import Served
from harness import losses, read_cat, read_lake, seq_holes
from load import Load, duplicates, own_folder

WAIT = 90  # seconds: a bound against a test that hangs
ANSWER_MAX = 2  # seconds until the loop answers, on a machine that others keep busy; a loop that waits for the disk does not


class LakeTest(AgentTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if harness.is_root():
            own_mounts()

    def disk(self, mib):
        return ext4_disk(self, mib)

    def lake_agent(self, disk, **keys):
        a = self.agent(lake=os.path.join(disk, "lake"), drain=f"{WAIT}s", **keys)
        a.lake = a.config["lake"]
        a.follow_only(own_folder())
        return a

    def delivered(self, a, topic="sluice.program"):
        return next(t["delivered"] for t in a.status()["records"] if t["topic"] == topic)

    def wait_delivered(self, a, more):
        goal = self.delivered(a) + more
        a.wait(lambda: self.delivered(a) >= goal, WAIT, f"{more} more records")

    def wait_output(self, a, state, text=""):
        def look():
            output = a.status()["output"]
            return output if output["state"] == state and text in (output["last_error"] or "") else None
        return a.wait(look, WAIT, f"output {state} {text}")

    def assert_told_once(self, a, *events):
        for event in events:
            a.wait_log(event, WAIT)
            self.assertEqual(1, sum(x["event"] == event for x in a.log_lines()), a.log_text())

    def assert_once(self, a, *loads):
        """The stopped agent's lake has each program once, and no hole."""
        topics = read_lake(a.lake)
        for topic, records in topics.items():
            self.assertEqual([], seq_holes(records), topic)  # nor is one there twice
        for load in loads:
            self.assertEqual(0, load.failed)
            self.assertEqual([], load.check(topics["sluice.program"])[:5])
        self.assertEqual([], [x for x in losses(topics) if x[1] != "cut"])

    def assert_silence_is_reported(self, a, seconds, call="opening the folder"):
        """For a while, and until the silence is reported, each question has an answer in time."""
        slowest, down, began = 0, None, time.monotonic()
        while time.monotonic() < began + seconds or not down:
            before = time.monotonic()
            a.status()
            status, reason = get(a, "/readyz")
            slowest = max(slowest, time.monotonic() - before)
            down = down or (status != 200 and "has not answered" in reason and reason)
            self.assertLess(time.monotonic(), began + FROZEN_AT_MOST - 30, a.status())
            time.sleep(0.05)
        print(f"the slowest two answers took {slowest:.3f} s")
        self.assertLess(slowest, 2 * ANSWER_MAX * harness.PATIENCE)
        self.assertRegex(down, rf"the disk of the lake {a.lake} has not answered since \d{{4}}-\d\d-\d\dT[0-9:]+Z \({call}\)")


class Lake(LakeTest):
    def test_a_frozen_disk(self):
        """Its status is asked for all the time; more comes than the writer's queue holds, so that the rest waits in the spool."""
        disk = self.disk(64)
        a = self.lake_agent(disk).start()
        slowest = 0
        with Load("frozen", rate=100, padding=20000) as load:
            self.wait_delivered(a, 50)
            with frozen(disk):
                began, asked, down, goal = time.monotonic(), 0, None, load.started + 800
                while time.monotonic() < began + 20 or load.started < goal or not down:
                    before = time.monotonic()
                    status, reason = get(a, "/readyz")
                    slowest = max(slowest, time.monotonic() - before)
                    asked += 1
                    down = down or (status != 200 and reason)
                    self.assertLess(time.monotonic(), began + FROZEN_AT_MOST - 20, "the load is too slow")
                    time.sleep(0.05)
                self.assertRegex(down, rf"the disk of the lake {a.lake} has not answered since \d{{4}}-\d\d-\d\dT[0-9:]+Z \([\w ]+\)")
                self.assertGreater(a.status()["spool"]["records"], 500)
                self.assertTrue(any(down.strip() in p["text"] for p in a.status()["problems"]), a.status()["problems"])
                queued = a.status()["output"]["queued_bytes"]
            print(f"asked {asked} times, the slowest answer took {slowest:.3f} s, {queued} bytes queued")
            self.assertLess(slowest, ANSWER_MAX * harness.PATIENCE)
            self.assertLessEqual(queued, 2 << 20)
            self.wait_output(a, "up")
            self.wait_delivered(a, 100)
        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        self.assertTrue(a.wait_log("agent.stopped")["drained"], a.log_text())
        self.assert_once(a, load)

    def test_a_start_while_the_disk_is_frozen(self):
        """The lake is not there yet. All is seen and spooled, and delivered once the disk answers."""
        disk = self.disk(64)
        a = self.lake_agent(disk)
        with frozen(disk):
            before = time.monotonic()
            a.start()
            print(f"started after {time.monotonic() - before:.1f} s")
            self.assertLess(time.monotonic() - before, 20 * harness.PATIENCE)
            with Load("start", rate=100) as load:
                self.assert_silence_is_reported(a, 5)
                load.wait_more(300)
                a.wait(lambda: a.status()["spool"]["records"] > 300, WAIT, "records in the spool")
                self.assertTrue(a.status()["seeing"], a.status())
        self.wait_output(a, "up")
        a.settle(delivered=True, timeout=WAIT)
        self.assert_told_once(a, "output.down", "output.up")
        self.assertEqual(0o750, os.stat(a.lake).st_mode & 0o7777)
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        self.assert_once(a, load)

    def test_a_stop_of_an_agent_whose_lake_was_never_opened(self):
        """A stop takes bounded time. The next start fails as it does where the disk answers at once: it names the key."""
        disk = self.disk(8)
        a = self.lake_agent(disk)
        with frozen(disk):
            a.configure(drain="1s")
            a.start()
            first, before = a.process, time.monotonic()
            self.wait_output(a, "down", "has not answered")
            a.signal(signal.SIGTERM)
            self.assertFalse(a.wait_log("agent.stopped", 30)["drained"])
            self.assertLess(time.monotonic() - before, 40 * harness.PATIENCE)
        self.assertIsNotNone(first.wait(WAIT))
        with open(f"{disk}/file", "w", encoding="ascii"):
            a.configure(lake=f"{disk}/file")
        a.start(wait=False)
        self.assertEqual(125, a.process.wait(WAIT), a.log_text())
        self.assertRegex(a.log_text(), rf"cannot create the lake {disk}/file: Not a directory; name another folder at .*: lake")

    def test_a_lake_that_cannot_be_opened_once_the_disk_answers(self):
        """Status and log name the error, the key and what to do; nothing is lost."""
        disk = self.disk(8)
        a = self.lake_agent(disk)
        subprocess.run(["dd", "if=/dev/zero", f"of={disk}/fill", "bs=1024"], stderr=subprocess.DEVNULL)
        for i in range(10000):  # a small file system has room for a folder in a block of the root folder
            try:
                os.mkdir(f"{disk}/{i}")
            except OSError as e:
                self.assertEqual(errno.ENOSPC, e.errno)
                break
        with frozen(disk):
            a.start()
            with Load("late", rate=100) as load:
                self.assert_silence_is_reported(a, 0)
        told = self.wait_output(a, "down", os.strerror(errno.ENOSPC))["last_error"]
        self.assertRegex(told, rf"the lake {a.lake} cannot be opened: {os.strerror(errno.ENOSPC)}; name another folder at "
                         rf"{a.config_path}:\d+:\d+: lake, or let user '.*' write in this one, and restart the agent")
        a.configure(drain="1s")
        a.ctl("reload", check=True)
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        a.configure(drain=f"{WAIT}s")
        os.unlink(f"{disk}/fill")
        a.start()
        self.wait_output(a, "up")
        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        self.assert_once(a, load)

    def test_the_spools_disk_is_frozen(self):
        """Its loop continues: the status answers, and what happens is recorded, in memory."""
        disk = self.disk(64)
        a = self.agent(drain=f"{WAIT}s", spool={"dir": os.path.join(disk, "spool"), "memory": "64MiB"})
        a.follow_only(own_folder())
        a.start()
        slowest = 0
        with Load("spool", rate=100) as load:
            self.wait_delivered(a, 50)
            with frozen(disk):
                began, error, goal = time.monotonic(), None, load.started + 800
                while time.monotonic() < began + 15 or load.started < goal or not error:
                    before = time.monotonic()
                    s = a.status()
                    slowest = max(slowest, time.monotonic() - before)
                    error = s["spool"]["disk_error"]
                    self.assertLess(time.monotonic(), began + FROZEN_AT_MOST - 20, "the load is too slow")
                    time.sleep(0.05)
                self.assertEqual("it does not answer in time", error)
                self.assertTrue(any(error in p["text"] for p in s["problems"]), s["problems"])
                self.assertTrue(s["seeing"], s)
            print(f"the slowest answer took {slowest:.3f} s")
            # The loop waits for a call until it is given up, once.
            self.assertLess(slowest, (1 + ANSWER_MAX) * harness.PATIENCE)
            a.wait(lambda: not a.status()["spool"]["disk_error"], WAIT, "the disk's answer")
            self.wait_delivered(a, 200)
        a.settle(delivered=True, timeout=WAIT)
        self.assert_told_once(a, "spool.disk", "spool.disk_back")
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        self.assertTrue(a.wait_log("agent.stopped")["drained"], a.log_text())
        self.assert_once(a, load)

    def test_a_stop_while_the_spools_disk_is_frozen(self):
        """It takes bounded time; what was in memory alone is a GAP of the next agent, and no seq stands for two records."""
        disk = self.disk(64)
        a = self.agent(drain="1s", spool={"dir": os.path.join(disk, "spool")})
        a.follow_only(own_folder())
        a.start()
        with Load("left", rate=100) as load:
            self.wait_delivered(a, 50)
            with frozen(disk):
                a.wait(lambda: a.status()["spool"]["disk_error"] == "it does not answer in time", WAIT, "the disk's silence")
                load.wait_more(100)
                before, first = time.monotonic(), a.process
                a.signal(signal.SIGTERM)
                self.assertFalse(a.wait_log("agent.stopped", 30)["drained"])
                self.assertLess(time.monotonic() - before, 20 * harness.PATIENCE)
            self.assertIsNotNone(first.wait(WAIT))
            a.start()
            self.wait_delivered(a, 100)
        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        topics = read_lake(a.lake)
        gaps = [r["message"] for r in topics["sluice.agent"] if r["event"] == "GAP"]
        # The thaw may come in time for the last batches: then nothing is missing.
        self.assertEqual([] if gaps else load.check(topics["sluice.program"])[:5], [])
        self.assertLessEqual(len(gaps), 1)
        _, others = duplicates(topics["sluice.program"])  # acknowledged in memory, which the state file does not have
        self.assertEqual([], others[:5])

    def test_a_stop_while_the_disk_is_frozen(self):
        """It takes bounded time, and the next agent delivers what was not acknowledged, whether the disk answers yet or not."""
        disk = self.disk(64)
        a = self.lake_agent(disk).start()
        a.configure(drain="1s")
        a.ctl("reload", check=True)
        with Load("stop", rate=100) as load:
            self.wait_delivered(a, 50)
            with frozen(disk):
                load.wait_more(300)
                self.wait_output(a, "down", "has not answered")
                before, first = time.monotonic(), a.process
                a.signal(signal.SIGTERM)
                stopped = a.wait_log("agent.stopped", 30)
                self.assertFalse(stopped["drained"])
                self.assertGreater(stopped["spooled"], 100)
                a.process = None  # its thread is still in the kernel: it ends with the disk's answer
                a.configure(drain=f"{WAIT}s")
                a.start(timeout=30)
                self.assertLess(time.monotonic() - before, 40 * harness.PATIENCE)
                load.wait_more(100)
            self.assertEqual(0, first.wait(WAIT), a.log_text(1))
            self.wait_delivered(a, 200)
        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        # The file of the first agent is repaired later: its process lived until the disk had answered.
        programs = read_cat(a.lake, "program")
        self.assertEqual([], load.check(programs)[:5])
        # What its thread was at when it was left may have reached the disk all the same, and then comes twice.
        numbers = sorted({r["seq"] for r in programs})
        self.assertEqual(list(range(numbers[-1] + 1)), numbers)
        print(f"{len(programs) - len(numbers)} of {len(numbers)} records came twice")

    def test_a_full_disk(self):
        """Without a floor, or where others take the last room between two looks at it."""
        disk = self.disk(8)
        a = self.lake_agent(disk, disk_free_min=0).start()
        with Load("full", rate=150) as load:
            self.wait_delivered(a, 50)
            done = subprocess.run(["dd", "if=/dev/zero", f"of={disk}/fill", "bs=1024"], stderr=subprocess.PIPE, text=True)
            self.assertIn(os.strerror(errno.ENOSPC), done.stderr)
            output = self.wait_output(a, "down", os.strerror(errno.ENOSPC))
            self.assertIn(a.lake, output["last_error"])
            load.wait_more(300)
            os.unlink(f"{disk}/fill")
            self.wait_output(a, "up")
            self.wait_delivered(a, 200)
        a.settle(delivered=True, timeout=WAIT)
        self.assert_told_once(a, "output.down")
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        self.assert_once(a, load)

    def test_what_was_acknowledged_outlives_the_agent(self):
        a = self.lake_agent(self.disk(64)).start()
        with Load("killed", rate=150) as load:
            self.wait_delivered(a, 200)
            known = {t["topic"]: t["delivered"] for t in a.status()["records"]}
            a.kill9()
            for topic, delivered in known.items():
                self.assertGreaterEqual(len(read_cat(a.lake, topic[len("sluice."):])), delivered, topic)
            a.start()
            self.wait_delivered(a, 50)
        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        a.wait_log("lake.repaired")
        self.assertEqual([], load.check(read_lake(a.lake)["sluice.program"])[:5])


class Away(LakeTest):
    """Not even a look at a name or a size returns, as with NFS of a server that is away."""

    def served(self):
        served = self.enterContext(Served(os.path.join(self.room, "export"), os.path.join(self.room, "mount")))
        os.chmod(served.folder, 0o755)
        return served

    def test_a_server_that_goes_away(self):
        served = self.served()
        a = self.lake_agent(served.at).start()
        with Load("away", rate=100) as load:
            self.wait_delivered(a, 50)
            with served.away():
                self.assert_silence_is_reported(a, 5, r"\w.*")
                load.wait_more(200)
                a.wait(lambda: a.status()["spool"]["records"] > 100, WAIT, "records in the spool")
                self.assertTrue(a.status()["seeing"], a.status())
            self.wait_output(a, "up")
            self.wait_delivered(a, 100)
        a.settle(delivered=True, timeout=WAIT)
        self.assert_told_once(a, "output.down")
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        self.assertTrue(a.wait_log("agent.stopped")["drained"], a.log_text())
        self.assert_once(a, load)

    def test_a_start_while_the_server_is_away(self):
        served = self.served()
        a = self.lake_agent(served.at)
        with served.away():
            before = time.monotonic()
            a.start()
            self.assertLess(time.monotonic() - before, 20 * harness.PATIENCE)
            with Load("start", rate=100) as load:
                self.assert_silence_is_reported(a, 3)
                load.wait_more(100)
                self.assertTrue(a.status()["seeing"], a.status())
        self.wait_output(a, "up")
        a.settle(delivered=True, timeout=WAIT)
        self.assert_told_once(a, "output.down", "output.up")
        self.assertEqual(0, a.stop(WAIT), a.log_text())
        self.assert_once(a, load)


if __name__ == "__main__":
    harness.main()
