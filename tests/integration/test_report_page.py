# SPDX-License-Identifier: Apache-2.0
"""`sluice run --report`, and how `sluice tune`, `sweep` and `lake` find what they run.

The page is made by the real sluice-tune and opened in headless Chromium. analytics/tests/test_html_page.py
says what the page can do; here it is that a run's own page comes to be.
"""
import os
import pathlib
import shutil
import subprocess
import unittest

import harness
from harness import LakeTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / "build" / "analytics"


def analytics_bin():
    """The folder of sluice-tune and the others, which is made if it is not there."""
    for name in ("dev", "base"):
        if os.access(ENVIRONMENTS / name / "bin" / "sluice-tune", os.X_OK):
            return ENVIRONMENTS / name / "bin"
    subprocess.run([ROOT / "dev" / "analytics", "base"], check=True)
    return ENVIRONMENTS / "base" / "bin"


def draw(page):
    """The document as Chromium leaves it, and all that it said on its console."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"]
    done = subprocess.run(["chromium", *options, "--virtual-time-budget=10000", "--dump-dom", pathlib.Path(page).as_uri()],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


class Report(LakeTest):
    def setUp(self):
        super().setUp()
        self.page = os.path.join(self.room, "run.html")
        self.ran = os.path.join(self.room, "ran")

    def report(self, *command, options=(), path=None, sluice=None, **env):
        path = path or f"{analytics_bin()}:{os.environ['PATH']}"
        return self.sluice_run(*command, options=["--report", self.page, *options], sluice=sluice, cwd=self.room,
                               env=harness.plain_environment(PATH=path, **env))

    def alone(self):
        """A sluice with nothing beside it."""
        folder = os.path.join(self.room, "alone", "bin")
        os.makedirs(folder)
        return shutil.copy(harness.SLUICE, folder)

    def stub(self, script):
        """A sluice-tune of our own, for what the real one cannot be asked to do."""
        folder = os.path.join(self.room, "stub")
        os.mkdir(folder)
        path = os.path.join(folder, "sluice-tune")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return f"{folder}:/usr/bin:/bin"

    def test_the_page_of_a_run_that_failed(self):
        done = self.report("sh", "-c", "seq 100000 | sort -r | md5sum; ls '/no</script>where'; exit 3",
                           options=["--pipeline", "odd <b>name</b>", "--run", "-run 7"])
        self.assertEqual(3, done.returncode, done.stderr)
        self.assertTrue(done.stderr.endswith(f"report {self.page}\n"), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        if not shutil.which("chromium"):
            self.skipTest("chromium is not installed; ./dev/install test")
        document, console = draw(self.page)
        self.assertEqual([], console)
        self.assertIn('data-drawn="yes"', document)
        shown = document[document.index('<div id="page">'):document.index('<script type="application/json"')]
        for words in ("odd &lt;b&gt;name&lt;/b&gt;", "-run 7", "failed (exit 3)", "md5sum", "/no&lt;/script&gt;where", "<svg"):
            self.assertIn(words, shown)
        self.assertNotIn("<b>name", shown)
        programs = len(self.ends())
        self.assertRegex(shown, rf"<dt>Programs</dt><dd>{programs}</dd>")

    def test_quiet_is_quiet(self):
        done = self.report("true", options=["--quiet"])
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertGreater(os.path.getsize(self.page), 500000)

    def test_an_old_page_is_replaced(self):
        pathlib.Path(self.page).write_text("old")
        self.assertEqual(0, self.report("true").returncode)
        self.assertNotIn("old", pathlib.Path(self.page).read_text()[:3])
        self.assertEqual([], [n for n in os.listdir(self.room) if n.endswith(".part")])

    def test_what_is_missing_is_reported_before_command_starts(self):
        done = self.report("touch", self.ran, sluice=self.alone(), path="/usr/bin:/bin")
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertFalse(os.path.exists(self.ran) or os.path.exists(self.lake))
        self.assertIn("sluice-tune is not installed", done.stderr)
        self.assertIn(f"python3 -m venv {self.room}/alone/libexec/sluice", done.stderr)
        self.assertRegex(done.stderr, r"pip install sluice_analytics-[0-9.]+-py3-none-any\.whl\n")
        self.assertNotIn("://", done.stderr)

    def test_it_is_found_in_libexec(self):
        sluice = self.alone()
        folder = os.path.join(self.room, "alone", "libexec", "sluice", "bin")
        os.makedirs(folder)
        os.symlink(analytics_bin() / "sluice-tune", os.path.join(folder, "sluice-tune"))
        done = self.report("true", sluice=sluice, path="/usr/bin:/bin")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertGreater(os.path.getsize(self.page), 500000)

    def test_a_place_that_cannot_be_written_is_reported_before_command_starts(self):
        for page in ("/nowhere/at/all.html", self.room):
            self.page = page
            done = self.report("touch", self.ran)
            self.assertEqual(125, done.returncode, done.stderr)
            self.assertIn(f"cannot write {page}: ", done.stderr)
            self.assertFalse(os.path.exists(self.ran))

    def test_a_report_that_fails_changes_no_exit_status(self):
        path = self.stub("echo 'sluice tune: no' >&2; exit 1\n")
        for script, status in (("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)):
            done = self.report("sh", "-c", script, path=path)
            self.assertEqual(status, done.returncode)
            self.assertIn("sluice tune: no", done.stderr)
            self.assertIn(f"no report {self.page}", done.stderr)
            self.assertFalse(os.path.exists(self.page))

    def test_no_run_no_report(self):
        done = self.report(os.path.join(self.room, "no such command"))
        self.assertEqual(127, done.returncode)
        self.assertFalse(os.path.exists(self.page))

    def test_the_report_is_the_callers(self):
        os.chmod(self.room, 0o777)
        path = self.stub('id -u >"$6"; ls "$2" >>"$6"\n')
        done = self.report("true", path=path, SUDO_UID="65534", SUDO_GID="65534", SUDO_USER="nobody")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual((65534, 65534), (os.stat(self.page).st_uid, os.stat(self.page).st_gid))
        said = pathlib.Path(self.page).read_text().split()
        self.assertEqual("65534", said[0])
        self.assertIn("sluice.run", said)  # it can read the lake

        os.unlink(self.page)
        self.lake += "-root"
        self.assertEqual(0, self.report("true", options=["--as-root"], path=path, SUDO_UID="65534", SUDO_GID="65534").returncode)
        self.assertEqual(0, os.stat(self.page).st_uid)

    def test_a_caller_who_may_not_write_there_is_refused_at_once(self):
        closed = os.path.join(self.room, "closed")
        os.mkdir(closed, 0o755)
        os.chmod(self.room, 0o777)
        self.page = os.path.join(closed, "run.html")
        done = self.report("touch", self.ran, path=self.stub("exit 0\n"), SUDO_UID="65534", SUDO_GID="65534")
        self.assertEqual(125, done.returncode, done.stderr)
        self.assertIn("Permission denied", done.stderr)
        self.assertFalse(os.path.exists(self.ran))


class Commands(LakeTest):
    needs_root = False

    def sluice(self, *args, path=None, **kw):
        return harness.run_sluice(args, env=harness.plain_environment(PATH=path or f"{analytics_bin()}:/usr/bin:/bin"), **kw)

    def test_help(self):
        for name in ("tune", "sweep", "lake"):
            for args in ((name, "--help"), ("help", name)):
                done = self.sluice(*args)
                self.assertEqual((0, ""), (done.returncode, done.stderr), args)
                self.assertRegex(done.stdout, f"(?i)usage: sluice[- ]{name}")
        self.assertRegex(self.sluice("help").stdout, r"tune +\w.*\n +sweep +\w.*\n +lake +\w")

    def test_arguments_and_exit_status_are_theirs(self):
        folder = os.path.join(self.room, "bin")
        os.mkdir(folder)
        for name in ("tune", "sweep", "lake"):
            path = os.path.join(folder, f"sluice-{name}")
            with open(path, "w") as f:
                f.write('#!/bin/sh\nprintf "<%s>" "$@"; exit 5\n')
            os.chmod(path, 0o755)
            done = self.sluice(name, "--lake", "a b", "", "*", path=f"{folder}:/usr/bin:/bin")
            self.assertEqual((5, "<--lake><a b><><*>", ""), (done.returncode, done.stdout, done.stderr))

    def test_a_missing_one_says_how_to_get_it(self):
        folder = os.path.join(self.room, "x", "bin")
        os.makedirs(folder)
        alone = shutil.copy(harness.SLUICE, folder)
        for name in ("tune", "sweep", "lake"):
            done = self.sluice(name, path="/usr/bin:/bin", sluice=alone)
            self.assertEqual((2, ""), (done.returncode, done.stdout))
            self.assertIn(f"sluice {name}: sluice-{name} is not installed", done.stderr)
            self.assertRegex(done.stderr, r"pip install sluice_analytics-[0-9.]+-py3-none-any\.whl\n")

    def test_a_lake_that_is_not_there(self):
        done = self.sluice("tune", "--lake", os.path.join(self.room, "none"))
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    harness.main()
