# SPDX-License-Identifier: Apache-2.0
"""In PID and time namespaces the same is recorded as outside, or the agent refuses to start there."""
import os
import subprocess
import time

import harness
from agent import AgentTest
from harness import read_lake
from load import own


class Namespaces(AgentTest):
    def run_inside(self, *flags):
        """The records of a `sluice run` in namespaces of its own."""
        lake = os.path.join(self.room, "lake" + "".join(flags))
        script = f"{own('sleep')} 1.25; {own('true')} marked"
        done = subprocess.run(["unshare", *flags, "--fork", harness.SLUICE, "run", "--as-root", "--own-probes", "--lake", lake,
                               "--", "/bin/sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60 * harness.PATIENCE)
        self.assertEqual(0, done.returncode, done.stdout)
        return read_lake(lake)

    def assert_all_seen(self, topics):
        ends = [r for r in topics["sluice.program"] if r["phase"] == "END"]
        self.assertEqual(["marked", "1.25"], sorted((r["argv"][-1] for r in ends if r["argv"][0] != "/bin/sh"), reverse=True))
        self.assertEqual(3, len(ends))
        sh, = [r for r in ends if r["argv"][0] == "/bin/sh"]
        self.assertEqual({sh["pid"]}, {r["ppid"] for r in ends if r is not sh})
        return sh

    def test_a_run_in_a_pid_namespace(self):
        self.assert_all_seen(self.run_inside("--pid", "--mount-proc", "--kill-child"))

    def test_a_run_in_a_time_namespace(self):
        """Its records have the times that the host's have."""
        if not os.path.exists("/proc/self/ns/time"):
            self.skipTest("this kernel has no time namespaces")
        before = time.time()
        sh = self.assert_all_seen(self.run_inside("--time", "--boottime", "1000000", "--monotonic", "500000"))
        self.assertGreater(sh["start_time"] / 1e6, before - 0.01)
        self.assertLess(sh["end_time"] / 1e6, time.time() + 0.01)

    def test_an_agent_in_a_pid_namespace_is_refused(self):
        a = self.agent()
        a.command_prefix = ["unshare", "--pid", "--fork", "--kill-child"]
        a.start(wait=False)
        self.assertEqual(125, a.process.wait(60))
        error = a.log_lines()[-1]
        self.assertEqual("agent.namespace", error["event"])
        self.assertIn("--pid=host", error["message"])

    def test_an_agent_in_a_time_namespace(self):
        if not os.path.exists("/proc/self/ns/time"):
            self.skipTest("this kernel has no time namespaces")
        sleeper = subprocess.Popen([own("sleep"), "3600.625"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        a = self.agent(interval="60s")
        a.command_prefix = ["unshare", "--time", "--boottime", "1000000", "--monotonic", "500000"]
        before = time.time()
        a.start()
        subprocess.run([own("true"), "in time"], check=True)
        a.settle(delivered=True)
        sleeper.kill()
        sleeper.wait()
        a.settle(delivered=True)
        self.assertEqual(0, a.stop(), a.log_text())
        records = [r for r in read_lake(a.lake)["sluice.program"] if r["argv"]]
        end, = [r for r in records if r["argv"][-1] == "in time" and r["phase"] == "END"]
        self.assertGreater(end["start_time"] / 1e6, before - 0.01)
        self.assertLess(end["end_time"] / 1e6, time.time() + 0.01)
        start, end = [r for r in records if r["argv"][-1] == "3600.625"]
        self.assertLess(start["start_time"] / 1e6, before)
        self.assertIsNotNone(start["observed_time"])  # its start in /proc is that of the host's clock, too


if __name__ == "__main__":
    harness.main()
