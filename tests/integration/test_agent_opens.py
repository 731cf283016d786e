# SPDX-License-Identifier: Apache-2.0
"""Of the files of others the agent and its readers open none, and with engines.headers those that name tasks (sluice.yaml(5))."""
import base64
import json
import os
import shutil
import subprocess
import time

import harness
from agent import AgentTest
from disk_log import own_mounts
from hanging import Hanging
from harness import read_lake
from opens import Opens

HASH = "3f/0123456789abcdef0123456789abcd"
COMMAND_RUN = """#!/bin/bash
### ---
### name: 'ALIGN (sample7)'
### ---
bash .command.sh
"""
COMMAND_SH = "#!/bin/bash -ue\n/bin/true aligned > aligned.txt\n"
LOCAL = "set -euo pipefail;  cat data.txt > sorted.txt"
SNAKEMAKE = f"import subprocess\nsubprocess.run(['/bin/bash', '-c', {LOCAL!r}], check=True)\n"
LOG = """rule sort:
    output: sorted.txt
    jobid: 3
    wildcards: sample=sample8
Finished jobid: 3 (Rule: sort)
"""
RECORD = json.dumps({"rule": "sort", "shellcmd": "cat data.txt > sorted.txt"})
KEY = base64.urlsafe_b64encode(b"sorted.txt").decode()
MAKEFILE = "all:\n\t@/bin/true made > made.txt\n"


class AgentOpens(AgentTest):
    def write(self, path, text, mode=0o644):
        path = os.path.join(self.room, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def play(self):
        """What engines leave on the disk, and the programs by which they are known: the file that names the task."""
        run = self.write(f"work/{HASH}/.command.run", COMMAND_RUN)
        self.write(f"work/{HASH}/.command.sh", COMMAND_SH)
        self.write("made/Makefile", MAKEFILE)
        script = self.write("script.sh", "#!/bin/bash\n/bin/true scripted\n", 0o755)
        folder = os.path.dirname(run)
        subprocess.run(["bash", "-ue", run], cwd=folder, check=True)
        subprocess.run(["sbatch", run], executable="/bin/true", cwd=folder, check=True)
        subprocess.run(["make"], cwd=os.path.join(self.room, "made"), check=True, stdout=subprocess.DEVNULL)
        subprocess.run([script], check=True)
        subprocess.run(["python3", "-m", "snakemake", "--snakefile", script, "--target-jobs", "align:sample=A"],
                       executable="/bin/true", cwd=folder, check=True)
        return run

    def play_snakemake(self):
        """A local job, and what there is beside the files that name it: the log of its run and its output's record."""
        for name in ("data.txt", "Snakefile", f".snakemake/incomplete/{KEY}", ".snakemake/log/notes.txt",
                     ".snakemake/metadata/b3RoZXI=", ".snakemake/scripts/tmp1.py"):
            self.write(f"flow/{name}", RECORD)
        named_by = {self.write("flow/.snakemake/log/2026-01-02T030405.678901.snakemake.log", LOG),
                    self.write(f"flow/.snakemake/metadata/{KEY}", RECORD)}
        driver = self.write("flow/snakemake", SNAKEMAKE)
        subprocess.run(["/usr/bin/python3", driver], cwd=os.path.dirname(driver), check=True)
        return named_by

    def opened(self, headers):
        """(what the agent opened that is not its own, the files that name tasks, the Task records)."""
        a = self.agent(engines={"headers": headers})
        rules = self.write("agent/rules.d/own.yaml", "tools: []\n")
        a.start()
        readers = a.wait(a.readers, 30, "a reader of files") if headers else []
        with Opens([a.pid, *readers]) as opens:
            named_by = {self.play(), *self.play_snakemake()}
            if headers:
                a.wait(lambda: named_by <= opens.paths, 30, "the files that name tasks to be opened")
            # It reads its rules. The files of the lake may all be open: those of tasks too, if another test runs some.
            a.ctl("rules", "add", "more", "tools: []", check=True)
            a.settle()  # the kernel reports an end some 20 ms later, and a stop waits for none
            self.assertEqual(0, a.stop(), a.log_text())
        own = {path for path in opens.paths if path.startswith(a.room + "/")}
        self.assertTrue(rules in own, "the watch sees nothing: %s" % opens.paths)
        topics = read_lake(a.lake)
        aligned = [r for r in topics["sluice.program"] if r["phase"] == "END" and (r["argv"] or [""])[-1] == "aligned"]
        self.assertEqual([HASH], [r["task_id"] for r in aligned], "the layout is not one of Nextflow's")
        return opens.paths - own, named_by, [t for t in topics["sluice.task"] if t["task_id"] == HASH]

    def test_without_headers_none(self):
        others, _, tasks = self.opened(False)
        self.assertEqual(set(), others)
        self.assertEqual({None}, {t["sample"] for t in tasks})

    def test_with_headers_those_that_name_tasks(self):
        others, named_by, tasks = self.opened(True)
        # The agent serves the whole host: it reads those of tasks of another test, too.
        others = {path for path in others if path.startswith(self.room + "/") or
                  not (os.path.basename(path) == ".command.run" or "/.snakemake/" in path)}
        self.assertEqual(named_by, others)
        self.assertEqual({("ALIGN", "sample7")}, {(t["task"], t["sample"]) for t in tasks})

    def test_a_file_that_hangs_does_not_stop_the_agent(self):
        own_mounts()
        a = self.agent(engines={"headers": True}).start()
        a.wait(a.readers, 30, "a reader of files")
        with Hanging(os.path.join(self.room, "away")) as away:
            path = f"{away.at}/work/{HASH}/.command.run"
            subprocess.run(["bash", "-ue", path], executable=shutil.copy("/bin/true", os.path.join(self.room, "bash")), check=True)
            self.assertIn(away.asked(30), a.readers())
            for _ in range(20):
                before = time.monotonic()
                self.assertTrue(a.status()["seeing"])
                self.assertLess(time.monotonic() - before, 2 * harness.PATIENCE)
                time.sleep(0.1)
            subprocess.run(["/bin/true", "meanwhile"], check=True)
            a.settle()
            self.assertIn(("reader", "read_hung"), {(x["place"], x["reason"]) for x in a.status()["lost"]})
        self.play()
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        self.assertIn(["/bin/true", "meanwhile"], [r["argv"] for r in topics["sluice.program"]])
        tasks = [t for t in topics["sluice.task"] if t["task_id"] == HASH]
        self.assertIn(("ALIGN", "sample7"), {(t["task"], t["sample"]) for t in tasks})  # of a file that can be read again


if __name__ == "__main__":
    harness.main()
