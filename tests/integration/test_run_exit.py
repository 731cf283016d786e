# SPDX-License-Identifier: Apache-2.0
"""How `sluice run` ends: with COMMAND's status, or with one of its own that env(1) users know."""
import json
import os
import stat
import subprocess
import sys
import time
import unittest

import harness
from harness import LakeTest, read_lake


class ExitStatus(LakeTest):
    def test_is_the_commands_own(self):
        for code in (0, 1, 2, 17, 77, 125, 126, 127, 255):
            done = self.sluice_run("sh", "-c", f"exit {code}", options=["--quiet"])
            self.assertEqual((code, "", ""), (done.returncode, done.stdout, done.stderr))

    def test_is_128_and_the_signal_that_killed_the_command(self):
        for signal in (9, 15, 6, 13, 2, 40):
            done = self.sluice_run("sh", "-c", f"ulimit -c 0; kill -{signal} $$", options=["--quiet"])
            self.assertEqual(128 + signal, done.returncode, done.stderr)

    def test_is_in_the_run_record(self):
        self.sluice_run("sh", "-c", "exit 3", options=["--quiet"])
        self.sluice_run("sh", "-c", "kill -9 $$", options=["--quiet"])
        runs = [(r["exit_code"], r["exit_signal"]) for r in read_lake(self.lake)["sluice.run"] if r["phase"] == "END"]
        self.assertEqual(sorted([(3, None), (None, 9)], key=str), sorted(runs, key=str))

    def test_what_the_command_used_is_not_the_agents(self):
        """COMMAND is a child of sluice, which reports what itself and its helpers use."""
        burn = "import time\nwhile time.process_time() < 3: pass"
        self.assertEqual(0, self.sluice_run(sys.executable, "-c", burn, options=["--quiet"]).returncode)
        topics = read_lake(self.lake)
        start, stop = sorted(topics["sluice.agent"], key=lambda r: r["seq"])
        self.assertEqual(("START", "STOP"), (start["event"], stop["event"]))
        (run,) = [r for r in topics["sluice.run"] if r["phase"] == "END"]
        self.assertGreaterEqual(sum(run["usage"][k] for k in ("cpu_user_ns", "cpu_system_ns")), 3e9)
        self.assertLess(stop["cpu_ns"] - start["cpu_ns"], 1.5e9)

    def test_is_127_where_there_is_no_such_command(self):
        for name in ("no-such-program-here", "/nonexistent/program"):
            done = self.sluice_run(name)
            self.assertEqual(127, done.returncode, done.stderr)
            self.assertEqual(1, done.stderr.count("\n"), done.stderr)
            self.assertIn(name, done.stderr)
            self.assertIn("No such file", done.stderr)

    def test_is_126_where_the_command_cannot_be_executed(self):
        plain = os.path.join(self.room, "plain")
        with open(plain, "w") as f:
            f.write("no program\n")
        for path in (plain, self.room):
            done = self.sluice_run(path)
            self.assertEqual(126, done.returncode, done.stderr)
            self.assertIn(path, done.stderr)

    def test_is_the_commands_own_where_the_probes_see_nothing(self):
        """What is missing is an error on standard error, and counts as lost."""
        summary = os.path.join(self.room, "summary")
        os.mkfifo(summary)
        run = subprocess.Popen([harness.SLUICE, "run", "--quiet", "--own-probes", "--lake", self.lake, "--json", summary, "--", "sh", "-c", "true; exit 3"],
                               env=harness.plain_environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        # It waits for a reader of the summary, with its probes attached and the lake begun, before it starts COMMAND.
        deadline = time.monotonic() + 60 * harness.PATIENCE
        while not os.path.isdir(self.lake) and time.monotonic() < deadline:
            time.sleep(0.02)
        subprocess.run([harness.built("probes_switch"), str(run.pid), "lost"], check=True)
        with open(summary) as f:
            lost = json.load(f)["lost"]
        self.assertEqual(3, run.wait(60 * harness.PATIENCE))
        self.assertRegex(run.stderr.read(), r"\Asluice run: COMMAND was not seen, .*the probes report no events here; `sluice doctor`[^\n]*\n\Z")
        self.assertEqual([], read_lake(self.lake).get("sluice.program", []))
        self.assertEqual(1, lost)

    def test_is_2_where_the_rules_cannot_be_read(self):
        done = self.sluice_run("true", options=["--rules", "/nonexistent/rules.d"])
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn("--rules /nonexistent/rules.d: No such file or directory: name a folder of rules", done.stderr)

    def test_is_125_where_sluice_itself_fails_and_nothing_was_run(self):
        blocker = os.path.join(self.room, "file")
        open(blocker, "w").close()
        marker = os.path.join(self.room, "ran")
        lake = os.path.join(blocker, "lake")
        done = harness.run_sluice(["run", "--lake", lake, "--", "touch", marker])
        self.assertEqual(125, done.returncode, done.stderr)
        self.assertIn(blocker, done.stderr)
        self.assertFalse(os.path.exists(marker))

    def test_is_2_for_wrong_usage(self):
        for args in (["run"], ["run", "--"], ["run", "--no-such-option", "--", "true"], ["no-such-command"], ["run", "--lake"]):
            done = harness.run_sluice(args, cwd=self.room)
            self.assertEqual(2, done.returncode, f"{args}: {done.stderr}")
            self.assertNotEqual("", done.stderr)


class Told(unittest.TestCase):
    def test_ten_losses_are_not_none(self):
        line = "run  -  42ms  exit 0   0.04 of 2 cpus   peak 1.1 MiB   read 0   write 0   1 program   %s lost\nlake /l  run 8\n"
        self.assertEqual([0, 10, 1200], [harness.told_lost(line % n) for n in ("0", "10", "1,200")])


class Output(LakeTest):
    def test_of_the_command_passes_byte_for_byte(self):
        given = os.urandom(300000)
        done = self.sluice_run("sh", "-c", "cat; echo oops >&2", options=["--quiet"], input=given, stdin=None, text=False,
                               errors=None)
        self.assertEqual((0, b"oops\n"), (done.returncode, done.stderr))
        self.assertEqual(given, done.stdout)

    def test_ends_with_a_table_on_stderr_and_the_lakes_path(self):
        done = self.sluice_run("sh", "-c", "echo out; true")
        self.assertEqual("out\n", done.stdout)
        for word in ("tool", "wall", "cpu", "peak", "exit 0"):
            self.assertIn(word, done.stderr)
        self.assertEqual(0, harness.told_lost(done.stderr))

    def test_to_a_closed_pipe_kills_the_command_as_without_sluice(self):
        script = 'set -o pipefail; "$0" run --quiet --lake "$1" -- yes | head -n 1; exit ${PIPESTATUS[0]}'
        done = subprocess.run(["bash", "-c", script, harness.SLUICE, self.lake], env=harness.plain_environment(),
                              timeout=60 * harness.PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True)
        self.assertEqual((128 + 13, "y\n", ""), (done.returncode, done.stdout, done.stderr))


class Lake(LakeTest):
    def test_is_sluice_lake_here_by_default(self):
        done = harness.run_sluice(["run", "--quiet", "--", "true"], cwd=self.room)
        self.assertEqual(0, done.returncode, done.stderr)
        topics = read_lake(os.path.join(self.room, "sluice-lake"))
        self.assertEqual(["true"], [r["comm"] for r in topics["sluice.program"] if r["phase"] == "END"])

    def test_keeps_the_names_that_the_run_was_given(self):
        done = self.sluice_run("true", options=["--quiet", "--pipeline", "p é", "--run", "r-1", "--task", "t/2", "--sample", "s 3"])
        self.assertEqual(0, done.returncode, done.stderr)
        for r in read_lake(self.lake)["sluice.program"]:
            self.assertEqual(("p é", "r-1", "t/2", "s 3"), (r["pipeline"], r["run_id"], r["task"], r["sample"]))

    def test_of_two_runs_holds_both(self):
        for _ in range(2):
            self.assertEqual(0, self.sluice_run("true", options=["--quiet"]).returncode)
        ends = self.ends()
        self.assertEqual(2, len(ends))
        self.assertEqual(2, len({r["agent_id"] for r in ends}))
        self.assertEqual(2, len({r["run_id"] for r in ends}))
        self.assert_nothing_lost()

    def test_is_not_in_its_own_data(self):
        self.sluice_run("sh", "-c", "true; ls >/dev/null; true", options=["--quiet"])
        comms = sorted(r["comm"] for r in self.ends())
        self.assertEqual(["ls", "sh"], comms)

    def test_is_not_executable_or_writable_by_all(self):
        self.sluice_run("true", options=["--quiet"])
        for path, _ in harness.lake_files(self.lake):
            self.assertEqual(0, os.stat(path).st_mode & (stat.S_IWOTH | stat.S_IXUSR), path)


if __name__ == "__main__":
    harness.main()
