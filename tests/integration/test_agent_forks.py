# SPDX-License-Identifier: Apache-2.0
"""Children that a starting agent finds among all processes before the kernel has reported their fork."""

import harness
from agent import AgentTest
from harness import read_lake
from load import MARK, Load, once


class Forks(AgentTest):
    def test_a_child_that_is_found_before_its_fork_is_seen_has_run_nothing(self):
        """Milliseconds before, with this agent."""
        a = self.agent(sluice=harness.built("sluice_slow_fork"))
        with Load("forks") as load:
            for _ in range(8):  # each of which failed every other time
                a.start()
                load.wait_more(10)
                a.kill9()
            a.start()
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        programs = list(once(read_lake(a.lake)["sluice.program"]))
        ends = [r for r in programs if r["phase"] == "END" and MARK in (r["argv"] or [])]
        self.assertGreater(len(ends), 80)
        wrong = {r["pid"] for r in ends if r["program_index"] != 0}
        self.assertEqual(set(), wrong, [r for r in programs if r["pid"] in wrong])


if __name__ == "__main__":
    harness.main()
