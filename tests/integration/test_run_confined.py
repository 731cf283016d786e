# SPDX-License-Identifier: Apache-2.0
"""What `sluice run` has left while its command runs, and that the command has all that it would have without."""
import errno
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import time

import harness
import injected
from harness import LakeTest
from injected import (AF_INET, AT_FDCWD, BPF, GETPID, KILL, LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF, MAP_LOOKUP, MISSING, O_CREAT,
                      O_WRONLY, OPENAT, REFUSED, SOCKET, UNLINK)
from test_reader import children, proc_status

USER = 54325  # of no account
CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL, CAP_BPF = 1 << 1, 1 << 3, 1 << 5, 1 << 39
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
AF_UNIX, WRITE = 1, 1
TITLED = ["/usr/bin/python3", "-c", "print(flush=True); input()", "multiprocessing.spawn"]  # its title is read each second


def sudo(uid=USER):
    return harness.plain_environment(SUDO_UID=str(uid), SUDO_GID=str(uid), SUDO_USER="someone")


class RunTest(LakeTest):
    def start(self, *command, options=(), **kw):
        """A run whose command has written a line, which shows that it runs, and its process."""
        run = subprocess.Popen([harness.SLUICE, "run", "--own-probes", "--quiet", "--lake", self.lake, *options, "--", *command], cwd=self.room,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               **{"env": harness.plain_environment(), **kw})
        self.addCleanup(lambda: [f.close() for f in (run.stdin, run.stdout, run.stderr)])
        self.addCleanup(lambda: run.poll() is None and (run.kill(), run.wait()))
        self.line = run.stdout.readline()
        self.assertNotEqual("", self.line, run.stderr.read() if run.poll() is not None else "")
        return run

    def end(self, run):
        """It ends as nothing had happened to it."""
        err = run.communicate("\n", timeout=60 * harness.PATIENCE)[1]
        self.assertEqual((0, ""), (run.returncode, err))
        self.assert_nothing_lost()

    def assert_confined(self, pid, capabilities):
        for task in os.listdir(f"/proc/{pid}/task"):
            status = proc_status(f"{pid}/task/{task}")
            self.assertEqual((0, capabilities, capabilities, 0, 0), tuple(int(status[x], 16) for x in SETS))
            self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]))

    def others(self, run):
        """{name: (uid, all capabilities, no_new_privs, seccomp)} of the processes of a run but itself and its command; of each thread."""
        found = {}
        for pid, comm in children(run.pid).items():
            if comm.startswith(("run-", "sluice-")):
                for task in os.listdir(f"/proc/{pid}/task"):
                    s = proc_status(f"{pid}/task/{task}")
                    row = (int(s["Uid"].split()[0]), *(int(s[x], 16) for x in SETS), s["NoNewPrivs"], s["Seccomp"])
                    self.assertEqual(row, found.setdefault(comm, row), comm)
        return found

    def assert_others(self, run, want):
        """The witness and the reporter are what they should be as soon as the command runs."""
        got = self.others(run)
        for name in want:
            if name.startswith("run-"):
                self.assertEqual(want[name], got.get(name), name)
        until = time.monotonic() + 30 * harness.PATIENCE
        while got != want and time.monotonic() < until:
            time.sleep(0.05)
            got = self.others(run)
        self.assertEqual(want, got)

    def tune(self, script):
        """A sluice-tune of our own: its folder. $6 is the file of the page."""
        bin_dir = os.path.join(self.room, "bin")
        os.mkdir(bin_dir)
        path = os.path.join(bin_dir, "sluice-tune")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return bin_dir

    def writing_thread(self, run):
        """Waits until the lake has its thread, which writes the records of the first second."""
        until = time.monotonic() + 30 * harness.PATIENCE
        while len(os.listdir(f"/proc/{run.pid}/task")) == 1:
            self.assertLess(time.monotonic(), until, "the thread of the lake")
            time.sleep(0.02)


class Processes(RunTest):
    def test_command_has_what_it_had(self):
        """The command's privileges are those of who called sluice; those of sluice are gone, in each thread."""
        run = self.start("sh", "-c", "echo $$; read x")
        self.writing_thread(run)
        self.assert_confined(run.pid, CAP_KILL | CAP_BPF)
        mine, its = proc_status("self"), proc_status(self.line.strip())
        for name in (*SETS, "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups"):
            self.assertEqual(mine[name], its[name], name)
        self.end(run)

    def test_lake_of_another_user(self):
        """Root still writes there, also where its owner lets no one in."""
        home = os.path.join(self.room, "home")
        os.mkdir(home, 0o700)
        self.lake = os.path.join(home, "lake")
        os.mkdir(self.lake, 0o755)
        for folder in (home, self.lake):
            os.chown(folder, USER, USER)
        run = self.start("sh", "-c", "echo; read x")
        self.assert_confined(run.pid, CAP_DAC_OVERRIDE | CAP_KILL | CAP_BPF)
        self.end(run)
        self.assertEqual(1, len([r for r in self.ends() if r["argv"][0] == "sh"]))

    def test_lake_in_which_others_may_write(self):
        os.mkdir(self.lake)
        os.chmod(self.lake, 0o777)
        for topic in harness.TOPICS:
            os.mkdir(os.path.join(self.lake, topic))
            os.chown(os.path.join(self.lake, topic), USER, USER)
        run = self.start("sh", "-c", "echo; read x")
        self.assert_confined(run.pid, CAP_DAC_OVERRIDE | CAP_KILL | CAP_BPF)
        self.end(run)
        self.assertEqual(1, len([r for r in self.ends() if r["argv"][0] == "sh"]))

    def test_under_sudo(self):
        """Its command is another user's, to whom it passes signals on; the files are that user's, and it needs no right for them."""
        os.chown(self.room, USER, USER)
        run = self.start("sh", "-c", "trap 'exit 0' TERM; echo $$; while :; do sleep 0.1; done", env=sudo())
        self.assert_confined(run.pid, CAP_KILL | CAP_BPF)
        its = proc_status(self.line.strip())
        self.assertEqual((f"{USER}\t{USER}\t{USER}\t{USER}", 0, "0", "0"), (its["Uid"], int(its["CapEff"], 16), its["NoNewPrivs"], its["Seccomp"]))
        run.send_signal(signal.SIGTERM)
        self.end(run)
        self.assertEqual(USER, os.stat(self.lake).st_uid)

    def test_setuid_programs_of_the_command(self):
        os.chown(self.room, USER, USER)
        program = shutil.copy("/usr/bin/id", self.room)
        os.chown(program, 0, 0)
        os.chmod(program, 0o4755)
        run = self.start("sh", "-c", f"{program} -u; read x", env=sudo())
        self.assertEqual("0\n", self.line)
        self.end(run)

    def test_report_and_summary(self):
        """What is written at the end: to a file that was opened before, and by a program that it cannot execute itself."""
        page, summary = (os.path.join(self.room, x) for x in ("page.html", "summary.json"))
        bin_dir = self.tune("(id -u; ps -o ni= $$; ls /proc/$$/fd | wc -l; echo $8) >$6\n")
        os.chown(self.room, USER, USER)
        env = sudo()
        env["PATH"] = bin_dir + ":" + env["PATH"]
        run = self.start("sh", "-c", "echo; read x", options=["--report", page, "--json", summary, "--run", "its-name"], env=env)
        # A signal to the whole group, before the end, is not for the one that will write the report.
        for pid in (pid for pid, comm in children(run.pid).items() if comm == "run-report"):
            for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                os.kill(pid, signo)
        self.end(run)
        with open(page) as f:
            self.assertEqual([str(USER), "0", "4", "its-name"], f.read().split())  # files 0 to 2, and the script
        with open(summary) as f:
            self.assertEqual("its-name", json.load(f)["run_id"])

    def test_its_other_processes(self):
        """Who reads for it, who knows which signals the group gets, and who will write the report: of root, and under sudo."""
        page, files = os.path.join(self.room, "theirs", "page.html"), CAP_DAC_OVERRIDE | CAP_FOWNER
        env = harness.plain_environment()
        env["PATH"] = self.tune("(id -u; sed -n 's/^\\(Cap\\|NoNew\\).*\\t//p' /proc/$$/status) >$6; ulimit -n >>$6\n") + ":" + env["PATH"]
        nothing = (0, 0, 0, 0, 0)
        os.mkdir(os.path.dirname(page), 0o700)
        os.chown(os.path.dirname(page), USER, USER)
        os.chown(self.room, USER, USER)
        for uid, env, of_report in ((0, env, (0, files, files, files, 0)), (USER, {**env, **sudo(), "PATH": env["PATH"]}, nothing)):
            with self.subTest(uid=uid):
                self.lake = os.path.join(self.room, f"lake-{uid}")
                run = self.start(*TITLED, options=["--report", page], env=env, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (777, 777)))
                self.assert_others(run, {"run-witness": (0, *nothing, "1", "2"), "run-report": (uid, *of_report, "1", "0"),
                                         "sluice-nursery": (uid, *nothing, "1", "2"), "sluice-reader": (uid, *nothing, "1", "2")})
                self.end(run)
                with open(page) as f:
                    said = f.read().split()
                # What writes the page has what the one had that waited, and the limits of the command.
                self.assertEqual([str(uid), *(f"{x:016x}" for x in of_report), "1", "777"], said)
                os.remove(page)

    def test_one_more_reads_files_of_engines_unless_it_has_no_headers(self):
        nothing = (0, 0, 0, 0, 0, 0, "1", "2")
        want = {"run-witness": nothing, "sluice-nursery": nothing}
        for options, others in (([], {**want, "sluice-reader": nothing}), (["--no-headers"], want)):
            with self.subTest(options=options):
                self.lake = os.path.join(self.room, f"lake-{len(options)}")
                run = self.start("sh", "-c", "echo; read x", options=options)
                self.assert_others(run, others)
                self.end(run)


class Refused(RunTest):
    """Where the kernel, or what is around sluice, refuses it the sandbox."""

    def test_without_landlock_it_still_drops_all_else(self):
        for error in (errno.EPERM, errno.ENOSYS):
            run = self.start("sh", "-c", "echo; read x", preexec_fn=lambda error=error: injected.refuse(LANDLOCK_CREATE_RULESET, error))
            self.assert_confined(run.pid, CAP_KILL | CAP_BPF)
            self.end(run)

    def test_command_is_not_started(self):
        if not harness.has_landlock():
            self.skipTest("this kernel has no Landlock")
        marker = os.path.join(self.room, "ran")
        done = self.sluice_run("touch", marker, options=["--own-probes"], preexec_fn=lambda: injected.refuse(LANDLOCK_RESTRICT_SELF, errno.EINVAL))
        self.assertEqual((125, "sluice run: it cannot be confined to its own system calls and files: Landlock: Invalid argument; touch was not started\n"),
                         (done.returncode, done.stderr))
        self.assertFalse(os.path.exists(marker))


class Injected(RunTest):
    """What code in sluice run can do."""

    def setUp(self):
        super().setUp()
        if platform.machine() != "x86_64":
            self.skipTest("calls are injected on x86-64 alone")

    def test_calls(self):
        run = self.start("sh", "-c", "echo; read x")
        sockets = {"a socket of TCP": (SOCKET, AF_INET, 1, 0), "a unix socket": (SOCKET, AF_UNIX, 1, 0)}
        made = {"control": (GETPID,), "a look into a map": (BPF, MAP_LOOKUP, 0, 32), "signal 0": (KILL, run.pid, 0)}
        got = injected.make(self, run.pid, {**REFUSED, **MISSING, **sockets, **made})
        self.assertEqual({**dict.fromkeys((*REFUSED, *sockets), "EPERM"), **dict.fromkeys(MISSING, "ENOSYS"), "control": "done",
                          "a look into a map": "EFAULT", "signal 0": "done"}, got)
        self.end(run)

    def test_calls_of_the_witness(self):
        """It can do nothing at all but report."""
        run = self.start("sh", "-c", "trap 'exit 0' TERM; echo; while :; do sleep 0.1; done")
        witness, = (pid for pid, comm in children(run.pid).items() if comm == "run-witness")
        more = {"open": (OPENAT, AT_FDCWD, "@/etc/passwd", 0, 0), "signal 0": (KILL, run.pid, 0), "a unix socket": (SOCKET, AF_UNIX, 1, 0),
                "who it is": (GETPID,), "a look into a map": (BPF, MAP_LOOKUP, 0, 32)}
        got = injected.make(self, witness, {**REFUSED, **MISSING, **more, "control": (WRITE, 0, "@", 0)})
        self.assertEqual({**dict.fromkeys((*REFUSED, *more), "EPERM"), **dict.fromkeys(MISSING, "ENOSYS"), "control": "done"}, got)
        run.send_signal(signal.SIGTERM)  # which it is asked about
        self.end(run)

    def test_files(self):
        if not harness.has_landlock():
            self.skipTest("this kernel has no Landlock")
        theirs = os.path.join(self.room, "theirs")
        with open(theirs, "w"):
            pass

        def opening(path, flags=0):
            return OPENAT, AT_FDCWD, "@" + path, flags, 0o600
        calls = {"write others'": opening(theirs, O_WRONLY), "make one beside the lake": opening(self.room + "/new", O_WRONLY | O_CREAT),
                 "remove others'": (UNLINK, "@" + theirs), "read others'": opening(theirs), "write /etc": opening("/etc/passwd", O_WRONLY),
                 "write /proc": opening("/proc/sys/kernel/core_pattern", O_WRONLY), "read /proc": opening("/proc/stat"),
                 "write own": opening(self.lake + "/new", O_WRONLY | O_CREAT), "discard": opening("/dev/null", O_WRONLY)}
        run = self.start("sh", "-c", "echo; read x")
        got = injected.make(self, run.pid, calls)
        self.assertEqual({**dict.fromkeys(calls, "EACCES"), "read /proc": "done", "write own": "done", "discard": "done"}, got)
        self.end(run)


if __name__ == "__main__":
    harness.main()
