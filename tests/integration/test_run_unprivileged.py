# SPDX-License-Identifier: Apache-2.0
"""A user without root gets one clear sentence and the command that would work."""
import json
import os
import shutil
import subprocess
import unittest

import harness
from harness import LakeTest


class Unprivileged(LakeTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("setpriv"):
            self.skipTest("setpriv (util-linux) is not installed")
        # where the user `nobody` may reach it, for any rights of the build directory
        self.sluice = os.path.join(self.room, "sluice")
        shutil.copy(harness.SLUICE, self.sluice)
        os.chmod(self.sluice, 0o755)
        self.own = os.path.join(self.room, "own")
        os.mkdir(self.own)
        os.chown(self.own, 65534, 65534)

    def as_nobody(self, *args):
        env = harness.plain_environment(HOME="/nonexistent", LANG="C.UTF-8")
        return subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", self.sluice, *args],
                              cwd=self.own, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, text=True, timeout=60)

    def test_run_says_one_sentence_and_the_command_that_works(self):
        done = self.as_nobody("run", "--control", "/nonexistent/sock", "--pipeline", "my pipe", "--", "touch", "ran")
        self.assertEqual(125, done.returncode, done.stderr)
        lines = done.stderr.splitlines()
        self.assertLessEqual(len(lines), 2, done.stderr)
        self.assertIn("without root it takes an agent of this host, which any user may use: no agent listens at /", done.stderr)
        self.assertRegex(done.stderr, r"sudo .*run --control /nonexistent/sock --pipeline 'my pipe' -- touch ran")
        self.assertFalse(os.path.exists(os.path.join(self.own, "ran")))
        self.assertEqual([], os.listdir(self.own))

    def test_cat_needs_no_root(self):
        lake = os.path.join(self.own, "lake")
        self.assertEqual(0, harness.run_sluice(["run", "--quiet", "--lake", lake, "--", "true"]).returncode)
        for at, dirs, names in os.walk(lake):
            for name in dirs + names:
                os.chown(os.path.join(at, name), 65534, 65534)
        done = self.as_nobody("cat", "--topic", "sluice.program", lake)
        told = [json.loads(line)["phase"] for line in done.stdout.splitlines()]
        self.assertEqual((0, 1, ""), (done.returncode, told.count("END"), done.stderr))  # and a START if it lives for a second

    def test_help_and_version_need_no_root(self):
        for args in (["--help"], ["--version"], ["help"]):
            done = self.as_nobody(*args)
            self.assertEqual((0, ""), (done.returncode, done.stderr), args)
            self.assertIn("sluice", done.stdout)

    def test_doctor_says_what_it_needs(self):
        done = self.as_nobody("doctor")
        self.assertIn("root", done.stdout + done.stderr)


class SudoUser(LakeTest):
    """Through sudo, COMMAND is the caller's: SUDO_UID."""

    def id_as_sudo(self, *options):
        env = harness.plain_environment(SUDO_UID="65534", SUDO_GID="65534", SUDO_USER="nobody", SUDO_COMMAND="sluice run")
        os.chmod(self.room, 0o777)
        return self.sluice_run("sh", "-c", "id -u; id -g", options=["--quiet", *options], env=env, cwd=self.room)

    def test_runs_the_command(self):
        done = self.id_as_sudo()
        self.assertEqual((0, "65534\n65534\n", ""), (done.returncode, done.stdout, done.stderr))
        self.assertEqual({65534}, {r["uid"] for r in self.ends() if r["comm"] == "id"})

    def test_does_not_with_as_root(self):
        done = self.id_as_sudo("--as-root")
        self.assertEqual((0, "0\n0\n", ""), (done.returncode, done.stdout, done.stderr))


if __name__ == "__main__":
    harness.main()
