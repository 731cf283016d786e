# SPDX-License-Identifier: Apache-2.0
"""`./dev/demo`, the first command of README.md: a real pipeline, its table, and the next commands that it names."""
import os
import re
import subprocess
import unittest

import harness

DEMO = os.path.join(harness.ROOT, "build", "demo")
# Each step of examples/demo, and how often its tool runs for three samples.
TOOLS = {"bwa index": 1, "wgsim": 3, "bwa mem": 3, "samtools sort": 3, "samtools index": 3, "bcftools mpileup": 3,
         "bcftools call": 3, "samtools flagstat": 3, "samtools stats": 3, "bcftools stats": 3}
# Rows of the table: the tools of those rules of which no job is short.
ROWS = [("align", "bwa mem"), ("align", "samtools sort"), ("call", "bcftools mpileup"), ("call", "bcftools call")]


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not harness.is_root():
            raise unittest.SkipTest("loading BPF needs root")
        cls.done = subprocess.run([os.path.join(harness.ROOT, "dev", "demo")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, text=True, timeout=600, env=harness.plain_environment())
        if cls.done.returncode != 0:
            raise AssertionError(f"dev/demo ended with {cls.done.returncode}:\n{cls.done.stdout}")

    def test_each_sample_of_a_rule_has_its_rows_and_nothing_is_lost(self):
        table = self.done.stdout[self.done.stdout.index("\ntask "):]
        for rule, tool in ROWS:
            for sample in ("S1", "S2", "S3"):
                self.assertRegex(table, rf"(?m)^{rule} {sample} +{tool} +1  ")
        self.assertEqual(0, harness.told_lost(self.done.stdout), table)
        self.assertRegex(table, r"(?m)^run  demo  .*  exit 0  ")

    def test_the_lake_has_what_the_table_says(self):
        topics = harness.read_lake(os.path.join(DEMO, "lake"))
        ends = [r for r in topics["sluice.program"] if r["phase"] == "END"]
        for tool, n in TOOLS.items():
            self.assertEqual(n, sum(r["tool"] == tool for r in ends), tool)
        self.assertEqual([], harness.losses(topics))
        with open(os.path.join(DEMO, "work", "results", "report.md")) as f:
            self.assertTrue(f.read().strip())
        self.assertGreater(os.path.getsize(os.path.join(DEMO, "run.html")), 100000)

    def test_the_next_commands_work(self):
        told = self.done.stdout[self.done.stdout.index("Next, try:"):].splitlines()[1:]
        commands = [line.split("  #")[0].strip() for line in told if line.strip()]
        self.assertGreaterEqual(len(commands), 4, told)
        for command in commands:
            done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=harness.ROOT, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=120)
            # doctor's 1 is its answer where this kernel lacks a signal.
            self.assertIn(done.returncode, (0, 1) if command.endswith(" doctor") else (0,), f"{command}\n{done.stdout}{done.stderr}")
            self.assertTrue(done.stdout.strip(), command)


if __name__ == "__main__":
    harness.main()
