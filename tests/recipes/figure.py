# SPDX-License-Identifier: Apache-2.0
"""The recipe for a figure of the status, applied to a copy of the tree, built, and looked at."""
import recipe

import agent
import faults
import harness


class Figure(agent.AgentTest):
    def test_a_figure_of_the_status_takes_two_files(self):
        files = recipe.changes("A figure of the status")
        self.assertEqual({"src/control/figures.def", "src/daemon/status.c"}, set(files))
        tree = recipe.Tree(self.room)
        self.addCleanup(tree.close)
        tree.apply(files)
        tree.build("release", "sluice")
        a = self.agent(sluice=tree.path("build/release/sluice")).start()
        text, status, metrics = a.ctl("status", check=True).stdout, a.status(), faults.get(a, "/metrics")[1]
        self.assertRegex(text, r"\nitself .* open files, [\d,]+ major page faults\n")
        self.assertIsInstance(status["process"]["major_faults"], int)
        self.assertIn("\n# HELP process_major_page_faults_total Page faults of the agent that waited for a disk.\n"
                      "# TYPE process_major_page_faults_total counter\nprocess_major_page_faults_total ", metrics)


if __name__ == "__main__":
    harness.main()
