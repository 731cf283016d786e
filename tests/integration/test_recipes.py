# SPDX-License-Identifier: Apache-2.0
"""The recipe for a figure of the status, applied to a copy of the tree as it stands there, built, and looked at."""
import os
import re
import subprocess

import agent
import faults
import harness

HEADING = "## A figure of the status"


def recipe():
    """{path: [hunk]} of the recipe's blocks; a hunk is a list of lines, each with its mark."""
    with open(os.path.join(harness.ROOT, "CONTRIBUTING.md")) as f:
        _, found, text = f.read().partition(HEADING + "\n")
    if not found:
        raise AssertionError(f"CONTRIBUTING.md has no section {HEADING}")
    text = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)[0]
    files = {}
    for block in re.findall(r"^```diff\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        head, *hunks = re.split(r"^@@.*\n", block, flags=re.MULTILINE)
        files[re.search(r"^\+\+\+ b/(.*)$", head, flags=re.MULTILINE)[1]] = [hunk.splitlines() for hunk in hunks]
    return files


def apply(text, hunk):
    """The text with that hunk, of which what stands there now must occur once."""
    old, new = ("".join(line[1:] + "\n" for line in hunk if not line.startswith(mark)) for mark in "+-")
    if text.count(old) != 1:
        raise AssertionError(f"occurs {text.count(old)} times:\n{old}")
    return text.replace(old, new)


class Recipes(agent.AgentTest):
    def build(self, files):
        """sluice of a copy of the tree with these files changed. The copy is an overlay that only the build sees: it lies
        where the tree lies, so that ninja compiles no more than what the change asks for."""
        upper = os.path.join(self.room, "upper")
        for path, hunks in files.items():
            with open(os.path.join(harness.ROOT, path)) as f:
                text = f.read()
            for hunk in hunks:
                text = apply(text, hunk)
            os.makedirs(os.path.join(upper, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(upper, path), "w") as f:
                f.write(text)
        os.makedirs(os.path.join(self.room, "work"))
        built = os.path.join(self.room, "sluice")
        script = ('set -e; mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" recipe "$1"; cd "$1"; '
                  'cmake --build build/release --target sluice; cp build/release/sluice "$2/sluice"')
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", harness.ROOT, self.room],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        self.assertEqual(0, done.returncode, done.stdout[-4000:])
        return built

    def test_a_figure_of_the_status_takes_two_files(self):
        files = recipe()
        self.assertEqual({"src/control/figures.def", "src/daemon/status.c"}, set(files))
        a = self.agent(sluice=self.build(files)).start()
        text, status, metrics = a.ctl("status", check=True).stdout, a.status(), faults.get(a, "/metrics")[1]
        self.assertRegex(text, r"\nitself .* open files, [\d,]+ major page faults\n")
        self.assertIsInstance(status["process"]["major_faults"], int)
        self.assertIn("\n# HELP process_major_page_faults_total Page faults of the agent that waited for a disk.\n"
                      "# TYPE process_major_page_faults_total counter\nprocess_major_page_faults_total ", metrics)


if __name__ == "__main__":
    harness.main()
