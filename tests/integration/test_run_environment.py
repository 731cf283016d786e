# SPDX-License-Identifier: Apache-2.0
"""COMMAND sees what it would see without sluice: each probe is run both ways and compared."""
import os
import resource
import signal
import subprocess
import sys
import tempfile

import harness
from harness import LakeTest


class Environment(LakeTest):
    def both(self, *command, before=None, **kw):
        """The same command plainly and under sluice: two results."""
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("env", harness.plain_environment())
        kw.setdefault("cwd", self.room)
        common = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60 * harness.PATIENCE, preexec_fn=before, **kw)
        plain = subprocess.run(command, **common)
        seen = subprocess.run([harness.SLUICE, "run", "--quiet", "--lake", self.lake, "--", *command], **common)
        return plain, seen

    def assert_same(self, *command, **kw):
        plain, seen = self.both(*command, **kw)
        self.assertEqual((plain.returncode, plain.stdout, plain.stderr), (seen.returncode, seen.stdout, seen.stderr))
        return seen.stdout

    def test_variables(self):
        env = harness.plain_environment(ODD="two\nlines", EMPTY="", LD_LIBRARY_PATH="/nonexistent")
        self.assertIn(b"two\nlines", self.assert_same("env", "-0", env=env))
        self.assert_same("/usr/bin/env", "-0", env={})

    def test_ids_and_groups(self):
        self.assert_same("id")

    def test_working_directory(self):
        self.assert_same("pwd")

    def test_working_directory_that_is_gone(self):
        def before():
            gone = tempfile.mkdtemp(dir=self.room)
            os.chdir(gone)
            os.rmdir(gone)

        plain, seen = self.both("readlink", "/proc/self/cwd", before=before)
        for done in (plain, seen):
            self.assertEqual((0, b""), (done.returncode, done.stderr))
            self.assertTrue(done.stdout.endswith(b" (deleted)\n"), done.stdout)

    def test_umask_limits_and_niceness(self):
        def before():
            os.umask(0o137)
            os.nice(3)
            resource.setrlimit(resource.RLIMIT_NOFILE, (321, 400))
            resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 65 << 20))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        self.assert_same("sh", "-c", "umask; nice; ulimit -a; ulimit -Ha", before=before)

    def test_signal_mask_and_dispositions(self):
        def before():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGWINCH])

        out = self.assert_same("grep", "^Sig[BIC]", "/proc/self/status", before=before)
        self.assertEqual(3, len(out.splitlines()))

    def test_open_files(self):
        with open(os.path.join(self.room, "seven"), "w+") as f:
            f.write("hello")
            f.flush()
            os.dup2(f.fileno(), 77)
            try:
                out = self.assert_same("sh", "-c", "ls /proc/self/fd; cat /proc/self/fd/77", pass_fds=[77])
            finally:
                os.close(77)
        self.assertIn(b"hello", out)

    def test_closed_standard_files(self):
        for fd in (0, 1, 2):
            plain, seen = self.both("sh", "-c", "ls -l /proc/self/fd | wc -l", before=lambda fd=fd: os.close(fd), stdin=None)
            self.assertEqual((plain.returncode, plain.stdout), (seen.returncode, seen.stdout), fd)

    def test_standard_input(self):
        self.assertEqual(b"some\0bytes", self.assert_same("cat", input=b"some\0bytes", stdin=None))

    def test_process_group_session_and_scheduling(self):
        # ps is not needed: stat's fields 5 to 7 are group, session and terminal
        script = "read pid comm state ppid group session tty rest </proc/self/stat; echo $session $tty; cat /proc/self/oom_score_adj; grep Cpus_allowed: /proc/self/status"
        self.assert_same("sh", "-c", script)

    def test_argument_bytes(self):
        self.assert_same("printf", "%s|", b"a\nb", b"\xff\xfe", b"", b"--", b"-x", b"$HOME")

    def test_dashes_end_options_only_once(self):
        self.assertEqual(b"-- x\n", self.assert_same("echo", "--", "x"))

    def test_limits_on_files_do_not_harm_the_lake(self):
        def before():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

        plain, seen = self.both("true", before=before)
        self.assertEqual((plain.returncode, plain.stderr), (seen.returncode, seen.stderr))
        self.assertEqual(1, len(self.ends()))


class Background(LakeTest):
    def test_a_program_of_the_command_stays_in_the_run_whatever_it_does(self):
        script = "setsid sh -c 'sleep 0.3; true' & wait"
        done = self.sluice_run("sh", "-c", script, options=["--quiet"])
        self.assertEqual(0, done.returncode, done.stderr)
        ends = self.ends()
        self.assertIn("sleep", [r["comm"] for r in ends])
        self.assertEqual(1, len({r["run_id"] for r in ends}))

    def test_a_child_that_never_execs_begins_as_what_it_has_become(self):
        """Its START comes when it has lived for a second, and says whose it is by then."""
        script = "import os, time\nif os.fork() == 0:\n\tos.setgid(4711)\n\ttime.sleep(2)\n\tos._exit(0)\nos.wait()"
        done = self.sluice_run(sys.executable, "-c", script, options=["--quiet"])
        self.assertEqual(0, done.returncode, done.stderr)
        told = [(r["phase"], r["gid"]) for r in harness.read_lake(self.lake)["sluice.program"] if r["forked"]]
        self.assertEqual([("START", 4711), ("END", 4711)], told)


if __name__ == "__main__":
    harness.main()
