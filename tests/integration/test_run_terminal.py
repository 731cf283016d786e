#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`sluice run` changes nothing that COMMAND sees: each case is run once under env(1) and once under
sluice, and both must end alike. Needs root, as sluice does.

    tests/integration/test_run_terminal.py [CASE...]
"""
import contextlib
import fcntl
import glob
import hashlib
import json
import os
import pty
import re
import resource
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import harness

SLUICE = harness.SLUICE
PATIENCE = 20           # seconds until a step counts as hung
# For the programs under test: one that any user can start, which a virtual environment's may not be.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable

# Writes a line for each signal it gets; ends a while after as many as its argument, and without them at last.
COUNTER = r"""
import signal, sys, time
count = 0
def on(signo, frame):
    global count
    count += 1
    print("got", signal.Signals(signo).name, flush=True)
for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
              signal.SIGALRM, signal.SIGCONT, signal.SIGWINCH, signal.SIGQUIT, signal.SIGRTMIN):
    signal.signal(signo, on)
print("ready", flush=True)
end = time.monotonic() + 15
while count < int(sys.argv[1]) and time.monotonic() < end:
    time.sleep(0.01)
end = time.monotonic() + 0.4
while time.monotonic() < end:
    time.sleep(0.01)
sys.exit(5)
"""

# What a program can learn about itself, as JSON.
PROBE = r"""
import json, os, resource, signal, sys
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
print(json.dumps({
    "argv": sys.argv,
    "env": {k: v for k, v in os.environ.items() if k != "_"},
    "cwd": os.getcwd(),
    "ids": [os.getresuid(), os.getresgid(), sorted(os.getgroups())],
    "umask": os.umask(0),
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
    "nice": os.nice(0),
    "affinity": sorted(os.sched_getaffinity(0)),
    "oom": open("/proc/self/oom_score_adj").read(),
    "capabilities": {k: status[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")},
    "leads_session": os.getsid(0) != os.getpid(),
    "group_is_session": os.getpgrp() == os.getsid(0),
    "tty": [os.isatty(fd) for fd in range(3)],
}))
"""


def code(returncode):
    """As a shell shows it."""
    return 128 - returncode if returncode < 0 else returncode


class Terminal:
    """A session of its own on a pseudo terminal, with what it wrote."""

    def __init__(self, argv, env=None):
        self.text = ""
        self.at = 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            try:
                os.execvpe(argv[0], argv, env or os.environ)
            finally:
                os._exit(127)

    def read_some(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:         # EIO: the last one closed the terminal
            data = b""
        self.text += data.decode("utf-8", "replace")
        return bool(data)

    def expect(self, pattern):
        """Waits for pattern after what was matched before; returns the match."""
        end = time.monotonic() + PATIENCE
        while True:
            match = re.compile(pattern).search(self.text, self.at)
            if match:
                self.at = match.end()
                return match
            if time.monotonic() > end or not self.read_some(0.2) and self.is_over():
                match = re.compile(pattern).search(self.text, self.at)
                if match:
                    continue
                raise AssertionError(f"no {pattern!r} after {self.text[:self.at]!r} in {self.text[self.at:]!r}")

    def is_over(self):
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def send(self, text):
        os.write(self.fd, text.encode())

    def hang_up(self):
        os.close(self.fd)
        self.fd = -1

    def end(self):
        """The exit code and all text; kills what does not end."""
        deadline = time.monotonic() + PATIENCE
        while not self.is_over():
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"hung: {self.text!r}")
            if self.fd < 0:
                time.sleep(0.02)
            else:
                self.read_some(0.05)
        status = os.waitpid(self.pid, 0)[1]
        while self.fd >= 0 and self.read_some(0):
            pass
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        return code(os.waitstatus_to_exitcode(status)), self.text


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sluice-terminal-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.chmod(self.dir, 0o755)

    def same(self, scenario):
        """Runs it both ways and returns the result on which both agree."""
        bare = scenario(["env"])
        under = scenario([SLUICE, "run", "--quiet", "--lake", os.path.join(self.dir, "lake"), "--"])
        self.assertEqual(bare, under, "bare is first, under sluice second")
        return bare

    def run_it(self, argv, **how):
        how.setdefault("stdin", subprocess.DEVNULL)
        p = subprocess.run(argv, capture_output=True, timeout=PATIENCE * 2, **how)
        return code(p.returncode), p.stdout.decode(), p.stderr.decode()

    def bash(self, script, **how):
        return self.run_it(["bash", "-c", script], **how)

    def start_counter(self, prefix, signals=1):
        """A program that says which signals it gets, in a session of its own, and ready."""
        p = subprocess.Popen(prefix + [PYTHON, "-c", COUNTER, str(signals)], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def finish(self, p):
        out = p.communicate(timeout=PATIENCE)[0]
        return code(p.returncode), out.split("\n")

    def prompt(self):
        """An interactive bash with job control."""
        t = Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"],
            {"PATH": os.environ["PATH"], "PS1": "PROMPT> ", "TERM": "dumb", "HOME": self.dir, "HISTFILE": ""})
        t.expect("PROMPT> ")
        return t


class Inherited(Case):
    def test_environment_ids_limits_and_place(self):
        def before():
            os.umask(0o027)
            os.setgroups([1, 5, 1000])
            os.nice(3)
            resource.setrlimit(resource.RLIMIT_NOFILE, (512, 2048))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 4096))
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 29, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (100, 200))
            resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 1 << 30))

        def scenario(prefix):
            got = self.run_it(prefix + [PYTHON, "-c", PROBE, "", "a b", "new\nline", "\udcff"],
                cwd=self.dir, env={"PATH": os.environ["PATH"], "EMPTY": "", "ODD": "x=y\n"}, preexec_fn=before)
            self.assertEqual(got[2], "")
            result = json.loads(got[1])
            self.assertEqual(result["umask"], 0o027)
            self.assertEqual(result["limits"]["RLIMIT_NOFILE"], [512, 2048])
            self.assertEqual(result["limits"]["RLIMIT_FSIZE"], [1 << 29, 1 << 30])
            self.assertEqual(result["ids"][2], [1, 5, 1000])
            return got[0], result

        self.same(scenario)

    def test_signal_dispositions_and_mask(self):
        def before():
            for signo in (signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD, signal.SIGTSTP, signal.SIGRTMIN + 3):
                signal.signal(signo, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGRTMIN + 5, signal.SIGTERM})

        def scenario(prefix):
            out = self.run_it(prefix + ["cat", "/proc/self/status"], preexec_fn=before)[1]
            return [line for line in out.splitlines() if line.startswith(("Sig", "Shd")) and "SigQ" not in line]

        got = self.same(scenario)
        ignored = int([line for line in got if line.startswith("SigIgn")][0].split()[1], 16)
        self.assertTrue(ignored & 1 << signal.SIGCHLD - 1)
        self.assertFalse(ignored & 1 << signal.SIGPIPE - 1)

    def test_sigpipe_that_is_ignored_stays_ignored(self):
        def scenario(prefix):
            return self.run_it(prefix + ["grep", "SigIgn", "/proc/self/status"], restore_signals=False,
                preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))

        self.assertTrue(int(self.same(scenario)[1].split()[1], 16) & 1 << signal.SIGPIPE - 1)

    def test_file_descriptors(self):
        for closing in ("", "<&-", ">&- 2>/dev/null", "<&- >&- 2>&-"):
            def scenario(prefix):
                out = os.path.join(self.dir, "fds")
                list_them = f"exec ls -l /proc/self/fd > {out} 2>&1"
                self.bash(f"exec 7</etc/passwd 9>/dev/null 63<>/dev/zero; {shlex.join(prefix)} "
                    f"sh -c {shlex.quote(list_them)} {closing}", pass_fds=())
                with open(out) as f:
                    lines = [re.search(r"(\d+) -> (.*)", line) for line in f]
                return sorted((int(m[1]), re.sub(r"\d+", "N", m[2])) for m in lines if m)

            got = self.same(scenario)
            self.assertTrue({7, 9, 63} <= {fd for fd, _ in got}, got)

    def test_group_and_session_are_those_of_the_caller(self):
        ask = "import os; print(os.getpgrp(), os.getsid(0))"

        def scenario(prefix):
            p = subprocess.Popen(prefix + [PYTHON, "-c", ask], stdout=subprocess.PIPE,
                text=True, start_new_session=True)
            group, session = map(int, p.communicate(timeout=PATIENCE)[0].split())
            return group == p.pid, session == p.pid

        self.assertEqual(self.same(scenario), (True, True))

    def test_stdin_reaches_it_whole(self):
        data = os.urandom(1 << 20)

        def scenario(prefix):
            return self.run_it(prefix + ["sha256sum"], stdin=None, input=data)

        self.assertIn(hashlib.sha256(data).hexdigest(), self.same(scenario)[1])

    def test_terminal_on_all_three(self):
        self.same(lambda prefix: Terminal(prefix + ["sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty"]).end()[0])

    def test_an_alarm_set_before_exec_rings_in_it(self):
        def scenario(prefix):
            return self.run_it(prefix + ["sleep", "15"], preexec_fn=lambda: signal.alarm(3))[0]

        self.assertEqual(self.same(scenario), 128 + signal.SIGALRM)

    def test_the_user_behind_sudo(self):
        """What sudo's variables ask for is what setpriv gives; --as-root asks for nothing."""
        sudo = dict(os.environ, SUDO_UID="65534", SUDO_GID="65534", SUDO_USER="nobody",
            SUDO_COMMAND="/x", HOME="/root", USER="root", LOGNAME="root")
        wanted = self.run_it(["setpriv", "--reuid=65534", "--regid=65534", "--init-groups", "--reset-env",
            PYTHON, "-c", PROBE], cwd="/")
        os.chown(self.dir, 65534, 65534)        # the lake is that user's as well
        lake = os.path.join(self.dir, "lake")
        got = self.run_it([SLUICE, "run", "--quiet", "--lake", lake, "--", PYTHON, "-c", PROBE],
            env=sudo, cwd="/")
        self.assertEqual(got[0], 0, got)
        wanted, user = json.loads(wanted[1]), json.loads(got[1])
        for key in ("ids", "capabilities", "cwd", "umask", "limits"):
            self.assertEqual(wanted[key], user[key], key)
        for key in ("HOME", "USER", "LOGNAME", "SHELL"):
            self.assertEqual(wanted["env"][key], user["env"][key], key)
        self.assertEqual([k for k in user["env"] if k.startswith("SUDO_")], [])
        root = json.loads(self.run_it([SLUICE, "run", "--quiet", "--as-root", "--lake", lake, "--",
            PYTHON, "-c", PROBE], env=sudo, cwd="/")[1])
        self.assertEqual(root["ids"][0], [0, 0, 0])
        self.assertEqual(root["env"]["SUDO_UID"], "65534")


class End(Case):
    def test_exit_statuses(self):
        for script, status in (("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143),
                ("kill -KILL $$", 137), ("kill -INT $$", 130), ("kill -QUIT $$", 131), ("kill -USR1 $$", 138)):
            with self.subTest(script):
                got = self.same(lambda prefix: self.run_it(prefix + ["sh", "-c", "ulimit -c 0; " + script])[0])
                self.assertEqual(got, status)

    def test_what_cannot_be_executed(self):
        plain = os.path.join(self.dir, "plain")
        script = os.path.join(self.dir, "script")
        with open(plain, "w") as f:
            f.write("echo never\n")
        with open(script, "w") as f:
            f.write("echo a script without a first line; exit 6\n")
        os.chmod(script, 0o755)
        for argv, status in ((["no-such-program"], 127), (["/no/such/program"], 127), ([plain], 126), (["/"], 126),
                ([plain + "/x"], 126), ([""], 127), ([script], 6)):
            with self.subTest(argv):
                self.assertEqual(self.same(lambda prefix: self.run_it(prefix + argv)[0::3]), (status,))
        for name, why in (("no-such-program", "No such file or directory"), (plain, "Permission denied")):
            got = self.run_it([SLUICE, "run", "--lake", os.path.join(self.dir, "lake"), "--", name])
            self.assertEqual(got[1:], ("", f"sluice: {name}: {why}\n"))

    def test_path_is_searched_as_env_does(self):
        for n, text in ((1, "#!/no/such/interpreter\n"), (2, "#!/bin/sh\necho second\n")):
            os.mkdir(os.path.join(self.dir, str(n)))
            with open(os.path.join(self.dir, str(n), "prog"), "w") as f:
                f.write(text)
        os.chmod(os.path.join(self.dir, "2", "prog"), 0o755)    # the first is not executable
        path = f"{self.dir}/1:{self.dir}/2:{os.environ['PATH']}"
        got = self.same(lambda prefix: self.run_it(prefix + ["prog"], env={"PATH": path}))
        self.assertEqual(got, (0, "second\n", ""))

    def test_a_closed_pipe(self):
        got = self.same(lambda prefix: self.bash(f"{shlex.join(prefix)} yes | head -1; echo ${{PIPESTATUS[*]}}"))
        self.assertEqual(got, (0, "y\n141 0\n", ""))

    def closing(self, script):
        """It both ways; SAID in it is a file that is there once the other side has seen the end, WAIT waits for that."""
        said = os.path.join(self.dir, "said")
        wait = f"until [ -e {said} ]; do sleep 0.05; done"

        def scenario(prefix):
            if os.path.exists(said):
                os.unlink(said)
            return self.bash(script.replace("PREFIX", shlex.join(prefix)).replace("WAIT", wait).replace("SAID", said))

        return self.same(scenario)

    def test_the_reader_sees_the_end_when_it_closes_stdout(self):
        got = self.closing("PREFIX sh -c 'echo a; exec >&-; WAIT; echo end >&2' | { cat; echo eof >&2; : >SAID; }")
        self.assertEqual(got, (0, "a\n", "eof\nend\n"))

    def test_the_writer_is_stopped_when_it_closes_stdin(self):
        got = self.closing("{ yes; echo pipe closed >&2; : >SAID; } | PREFIX sh -c 'exec <&-; WAIT; echo end >&2'")
        self.assertEqual(got, (0, "", "pipe closed\nend\n"))

    def test_an_inherited_pipe_closes_when_it_closes_it(self):
        got = self.closing("PREFIX sh -c 'echo b >&5; exec 5>&-; WAIT; echo end >&2' 5>&1 >/dev/null "
            "| { cat; echo eof >&2; : >SAID; }")
        self.assertEqual(got, (0, "b\n", "eof\nend\n"))


class Signals(Case):
    def witness_of(self, p):
        """The pid of the process that reports to p what its group gets; None: p is no sluice."""
        pids = []
        for tasks in glob.glob(f"/proc/{p.pid}/task/*/children"):
            with open(tasks, encoding="ascii") as f:
                pids += f.read().split()
        for pid in pids:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):     # one that has ended since
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read() == "run-witness\n":
                        return int(pid)
        return None

    def test_sent_to_the_launched_process_alone(self):
        for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGALRM,
                signal.SIGQUIT, signal.SIGWINCH, signal.SIGCONT, signal.SIGRTMIN):
            with self.subTest(signal.Signals(signo).name):
                def scenario(prefix):
                    p = self.start_counter(prefix)
                    os.kill(p.pid, signo)
                    return self.finish(p)

                self.assertEqual(self.same(scenario), (5, ["got " + signal.Signals(signo).name, ""]))

    def test_sent_to_the_group_comes_once(self):
        for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(signal.Signals(signo).name):
                def scenario(prefix):
                    p = self.start_counter(prefix)
                    os.killpg(p.pid, signo)
                    return self.finish(p)

                self.assertEqual(self.same(scenario), (5, ["got " + signal.Signals(signo).name, ""]))

    def test_sent_to_the_group_comes_once_however_busy_the_host_is(self):
        """The witness has no CPU for so long that whatever sluice waits for would be over: here it is stopped."""
        def scenario(prefix):
            p = self.start_counter(prefix)
            pid = self.witness_of(p)
            self.assertEqual(pid is None, prefix == ["env"])
            if pid is not None:
                os.kill(pid, signal.SIGSTOP)
            os.killpg(p.pid, signal.SIGINT)
            time.sleep(0.3)
            if pid is not None:
                os.kill(pid, signal.SIGCONT)
            return self.finish(p)

        self.assertEqual(self.same(scenario), (5, ["got SIGINT", ""]))

    def test_a_witness_that_is_stopped_holds_nothing_back(self):
        p = self.start_counter([SLUICE, "run", "--quiet", "--lake", os.path.join(self.dir, "lake"), "--"])
        os.kill(self.witness_of(p), signal.SIGSTOP)
        os.kill(p.pid, signal.SIGUSR2)
        self.assertEqual(self.finish(p), (5, ["got SIGUSR2", ""]))

    def test_group_and_then_alone_come_twice(self):
        def scenario(prefix):
            p = self.start_counter(prefix, 2)
            os.killpg(p.pid, signal.SIGUSR1)
            first = p.stdout.readline()
            time.sleep(0.4)
            os.kill(p.pid, signal.SIGUSR1)
            return first, self.finish(p)

        self.assertEqual(self.same(scenario), ("got SIGUSR1\n", (5, ["got SIGUSR1", ""])))

    def test_its_own_signal_to_the_group_comes_once(self):
        script = 'n=0; trap "n=\\$((n+1))" USR1; kill -USR1 0; sleep 0.3; echo $n'

        def scenario(prefix):
            p = subprocess.run(prefix + ["sh", "-c", script], capture_output=True, start_new_session=True, timeout=PATIENCE)
            return code(p.returncode), p.stdout

        self.assertEqual(self.same(scenario), (0, b"1\n"))

    def test_a_signal_that_kills(self):
        def scenario(prefix):
            p = subprocess.Popen(prefix + ["sh", "-c", "echo ready; exec sleep 30"], stdout=subprocess.PIPE)
            p.stdout.readline()
            os.kill(p.pid, signal.SIGTERM)
            p.communicate(timeout=PATIENCE)
            return code(p.returncode)

        self.assertEqual(self.same(scenario), 143)

    def test_stopped_and_continued_alone(self):
        """No process watches as a shell would: one that continues COMMAND need not know of sluice."""
        def scenario(prefix):
            p = subprocess.Popen(prefix + ["sh", "-c", "echo $$; exec sleep 0.6"], stdout=subprocess.PIPE)
            pid = int(p.stdout.readline())
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.2)
            os.kill(pid, signal.SIGCONT)
            p.communicate(timeout=PATIENCE)
            return code(p.returncode)

        self.assertEqual(self.same(scenario), 0)


class Keys(Case):
    READER = "trap 'echo got INT' INT; echo ready; while ! read x; do :; done; echo line $x; exit 7"

    def test_interrupt_kills(self):
        def scenario(prefix):
            t = Terminal(prefix + ["sh", "-c", "echo ready; exec sleep 30"])
            t.expect("ready\r\n")
            t.send("\x03")
            return t.end()

        self.assertEqual(self.same(scenario), (130, "ready\r\n^C"))

    def test_quit_kills(self):
        def scenario(prefix):
            t = Terminal(prefix + ["sh", "-c", "ulimit -c 0; echo ready; exec sleep 30"])
            t.expect("ready\r\n")
            t.send("\x1c")
            return t.end()[0]

        self.assertEqual(self.same(scenario), 131)

    def test_interrupt_is_caught_once(self):
        def scenario(prefix):
            t = Terminal(prefix + [PYTHON, "-c", COUNTER, "1"])
            t.expect("ready\r\n")
            t.send("\x03")
            return t.end()

        self.assertEqual(self.same(scenario), (5, "ready\r\n^Cgot SIGINT\r\n"))

    def test_interrupt_that_it_answers_with_130(self):
        def scenario(prefix):
            t = Terminal(prefix + ["sh", "-c", "trap 'echo bye; exit 130' INT; echo ready; while :; do sleep 0.05; done"])
            t.expect("ready\r\n")
            t.send("\x03")
            return t.end()

        self.assertEqual(self.same(scenario), (130, "ready\r\n^Cbye\r\n"))

    def test_interrupt_is_ignored(self):
        def scenario(prefix):
            t = Terminal(prefix + ["sh", "-c", "trap '' INT; echo ready; read x; echo line $x; exit 7"])
            t.expect("ready\r\n")
            t.send("\x03")
            t.expect(r"\^C")
            t.send("hello\n")
            return t.end()

        self.assertEqual(self.same(scenario), (7, "ready\r\n^Chello\r\nline hello\r\n"))

    def test_interrupt_ends_the_script_around_it(self):
        def scenario(prefix):
            t = Terminal(["bash", "-c", f"{shlex.join(prefix)} sh -c 'echo ready; exec sleep 30'; echo next step"])
            t.expect("ready\r\n")
            t.send("\x03")
            return t.end()

        got = self.same(scenario)
        self.assertEqual(got[0], 130)
        self.assertNotIn("next step", got[1])

    def test_hang_up(self):
        def scenario(prefix):
            note = os.path.join(self.dir, "note")
            t = Terminal(prefix + ["sh", "-c", f"trap 'echo got HUP >> {note}; exit 4' HUP; : > {note}; echo ready; "
                "while :; do sleep 0.05; done"])
            t.expect("ready\r\n")
            t.hang_up()
            status = t.end()[0]
            with open(note) as f:
                return status, f.read()

        self.assertEqual(self.same(scenario), (4, "got HUP\n"))

    def test_window_resize(self):
        program = ("import os, signal, sys, time\n"
            "sizes = []\n"
            "signal.signal(signal.SIGWINCH, lambda *a: sizes.append(os.get_terminal_size()))\n"
            "print('ready', flush=True)\n"
            "end = time.monotonic() + 15\n"
            "while not sizes and time.monotonic() < end: time.sleep(0.01)\n"
            "time.sleep(0.4); print(sizes)")

        def scenario(prefix):
            t = Terminal(prefix + [PYTHON, "-c", program])
            t.expect("ready\r\n")
            fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 111, 0, 0))
            return t.end()

        got = self.same(scenario)
        self.assertEqual(got[1].count("columns=111, lines=33"), 1, got)


class Jobs(Case):
    """At the prompt of an interactive bash."""

    def test_stop_and_foreground(self):
        def scenario(prefix):
            t = self.prompt()
            t.send(shlex.join(prefix) + " sh -c 'echo rea''dy; read x; echo got $x; exit 9'\n")
            t.expect("ready\r\n")
            t.send("\x1a")
            how = t.expect(r"\[1\]\+  (Stopped\S*)")[1]
            t.expect("PROMPT> ")
            t.send("jobs -l\n")
            kind = t.expect(r"\[1\]\+ +\d+ (Stopped(?: \([^)]*\))?)")[1]
            t.send("fg\n")
            t.expect("exit 9")      # bash says what it continues, and gives it the terminal
            time.sleep(0.3)
            t.send("hello\n")
            t.expect("got hello\r\n")
            t.expect("PROMPT> ")
            t.send("echo status=$?\n")
            status = t.expect(r"status=(\d+)")[1]
            t.send("exit\n")
            return how, kind, status, t.end()[0]

        self.assertEqual(self.same(scenario)[2], "9")

    def test_stop_twice_then_background(self):
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo)
        end = os.open(fifo, os.O_RDWR)  # both ends: COMMAND waits in its read for a line
        self.addCleanup(os.close, end)

        def scenario(prefix):
            t = self.prompt()
            t.send(shlex.join(prefix) + f" sh -c 'echo rea''dy; read x <{fifo}; echo do''ne'\n")
            t.expect("ready\r\n")
            for resume in ("fg", "bg"):
                time.sleep(0.3)         # bash has given it the terminal by then
                t.send("\x1a")
                t.expect(r"Stopped")
                t.expect("PROMPT> ")
                t.send(resume + "\n")
                t.expect("echo do''ne")
            os.write(end, b"\n")
            t.expect("done\r\n")
            t.send("wait; echo status=$?\n")
            status = t.expect(r"status=(\d+)")[1]
            t.send("exit\n")
            return status, t.end()[0]

        self.assertEqual(self.same(scenario), ("0", 0))

    def test_stop_is_ignored(self):
        def scenario(prefix):
            t = self.prompt()
            t.send(shlex.join(prefix) + " sh -c \"trap '' TSTP; echo rea''dy; read x; echo got \\$x\"\n")
            t.expect("ready\r\n")
            t.send("\x1a")
            time.sleep(0.3)
            t.send("hello\n")
            t.expect("got hello\r\n")
            t.expect("PROMPT> ")
            t.send("exit\n")
            return t.end()[0], "Stopped" in t.text

        self.assertEqual(self.same(scenario), (0, False))

    def test_it_stops_itself(self):
        for signo, said in (("STOP", "Stopped"), ("TSTP", "Stopped")):
            with self.subTest(signo):
                def scenario(prefix):
                    t = self.prompt()
                    t.send(shlex.join(prefix) + f" sh -c 'kill -{signo} $$; echo on''ward'\n")
                    how = t.expect(r"\[1\]\+  (Stopped\S*)")[1]
                    t.expect("PROMPT> ")
                    t.send("fg\n")
                    t.expect("onward\r\n")
                    t.expect("PROMPT> ")
                    t.send("exit\n")
                    return how, t.end()[0]

                self.assertEqual(self.same(scenario)[1], 0)

    def test_background_that_reads_or_writes(self):
        for program, setup in (("cat", "stty sane"), ("echo hi", "stty tostop")):
            with self.subTest(program):
                def scenario(prefix):
                    t = self.prompt()
                    t.send(setup + "\n")
                    t.expect("PROMPT> ")
                    t.send(f"{shlex.join(prefix)} {program} &\n")
                    t.expect("PROMPT> ")
                    end = time.monotonic() + PATIENCE
                    kind = None
                    while kind is None and time.monotonic() < end:      # until it stops
                        time.sleep(0.2)
                        t.send("jobs -l\n")
                        kind = t.expect(r"\[1\][+-]? +\d+ (\w+(?: \([^)]*\))?)")[1]
                        kind = None if kind.startswith("Running") else kind
                        t.expect("PROMPT> ")
                    t.send("fg\n")
                    t.expect(program)
                    if program == "cat":
                        time.sleep(0.3)
                        t.send("\x04")
                    t.expect("PROMPT> ")
                    t.send("stty sane; echo status=$?\n")
                    t.expect(r"status=(\d+)")
                    t.send("exit\n")
                    return kind, t.end()[0]

                self.assertIn("Stopped (tty", self.same(scenario)[0])


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("needs root, as sluice run does")
    for name in [name for name in os.environ if name.startswith("SUDO_")]:
        del os.environ[name]    # else sluice would go back to that user, and env(1) would not
    # The shell that starts us may ignore signals (nohup, a background job without job control).
    for signo in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(signo, signal.default_int_handler if signo == signal.SIGINT else signal.SIG_DFL)
    harness.main()
