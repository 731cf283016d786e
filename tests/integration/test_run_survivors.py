# SPDX-License-Identifier: Apache-2.0
"""Programs that still run when COMMAND has ended: named, left alone, or with --wait waited for."""
import os
import signal
import subprocess
import time

import harness
from harness import LakeTest, read_lake


# It is what it is called by now, and not a copy of its shell any more.
SLEEPS = "sleep 3600 & echo $! >pid; until read name </proc/$!/comm && [ $name = sleep ]; do :; done"


class Survivors(LakeTest):
    def run_command(self, script, *options):
        """stderr goes to a file: a survivor that keeps a pipe open would keep us waiting."""
        path = os.path.join(self.room, "stderr")
        began = time.monotonic()
        with open(path, "w+") as f:
            done = subprocess.run([harness.SLUICE, "run", "--lake", self.lake, *options, "--", "sh", "-c", script],
                                  env=harness.plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f,
                                  timeout=60 * harness.PATIENCE, cwd=self.room)
            f.seek(0)
            return done.returncode, f.read(), time.monotonic() - began

    def pid_from(self, name):
        with open(os.path.join(self.room, name)) as f:
            return int(f.read())

    def test_are_named_and_not_waited_for(self):
        code, err, _ = self.run_command(f"{SLEEPS}; exit 3")
        pid = self.pid_from("pid")
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.assertEqual(3, code)
        self.assertRegex(err, r"sleep")
        self.assertRegex(err, r"still run")
        os.kill(pid, 0)  # and it does
        records = [r for r in read_lake(self.lake)["sluice.program"] if r["pid"] == pid]
        self.assertEqual(["START"], [r["phase"] for r in records])
        self.assert_nothing_lost()
        run = [r for r in read_lake(self.lake)["sluice.run"] if r["phase"] == "END"][-1]
        self.assertEqual(1, run["live_programs"])

    def test_of_a_daemon_are_named_too(self):
        code, err, _ = self.run_command(f"setsid sh -c '{SLEEPS}' >/dev/null 2>&1; exit 0")
        pid = self.pid_from("pid")
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.assertEqual(0, code)
        self.assertRegex(err, r"sleep")

    def test_are_waited_for_with_wait(self):
        code, err, took = self.run_command("(sleep 2; exit 9) & exit 4", "--wait")
        self.assertEqual(4, code)
        self.assertGreater(took, 1.9)
        self.assertNotRegex(err, r"still run")
        ends = self.ends()
        self.assertEqual(3, len(ends))
        self.assertEqual([4, 9], sorted(r["exit_code"] for r in ends if r["comm"] != "sleep"))
        self.assertEqual([0], [r["exit_code"] for r in ends if r["comm"] == "sleep"])

    def test_usage_goes_on_while_they_are_waited_for(self):
        """COMMAND has ended: records of each interval are as before, and they sum up to the END."""
        spin = "exec python3 -c 'import time; end = time.monotonic() + 5\nwhile time.monotonic() < end: pass'"
        self.run_command(f"({spin}) & sleep 1.2", "--wait", "--interval", "1s")
        topics = read_lake(self.lake)
        end = max((r for r in topics["sluice.program"] if r["phase"] == "END"), key=lambda r: r["usage"]["cpu_user_ns"])
        usage = [r["usage"] for r in topics["sluice.usage"] if r["program_id"] == end["program_id"]]
        self.assertGreater(len(usage), 2)
        self.assertGreater(sum(u["cpu_user_ns"] + u["cpu_system_ns"] for u in usage),
                           0.5 * (end["usage"]["cpu_user_ns"] + end["usage"]["cpu_system_ns"]))
        self.assertGreater(len([r for r in topics["sluice.run"] if r["phase"] == "LIVE"]), 2)

    def test_wait_does_not_wait_for_what_never_was(self):
        code, err, _ = self.run_command("true", "--wait", "--quiet")
        self.assertEqual((0, ""), (code, err))

    def test_none_are_named_where_there_are_none(self):
        _, err, _ = self.run_command("sleep 0.1")
        self.assertNotRegex(err, r"still run")

    def test_zombies_are_no_survivors(self):
        # its parent lives on and never asks for it; when that dies, init does
        script = "python3 -c 'import os, time\nif os.fork() == 0: os._exit(5)\ntime.sleep(0.5)'"
        code, err, _ = self.run_command(script)
        self.assertEqual(0, code, err)
        self.assertNotRegex(err, r"still run")
        self.assertIn(5, [r["exit_code"] for r in self.ends()])


if __name__ == "__main__":
    harness.main()
