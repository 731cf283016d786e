# SPDX-License-Identifier: Apache-2.0
"""`sluice update` and `sluice doctor --self-test`: what is signed is installed, without losing a program; all else is refused.

The newer version is a copy of the program in which the text of its version is replaced by another of the same length:
the code is the same, and what it says of itself is not. Keys and signatures are made by minisign.
"""
import glob
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import harness
from agent import AgentTest
from load import Load, cuts, duplicates, holes, own_folder, unforgiven

ARCHITECTURE = os.uname().machine
WATCH_S = 3

# Ends the agent whose pid is in a file, and starts one: "RESTART PIDFILE LOG SLUICE CONFIG PINS". A dead child of a test
# that has not waited for it yet has ended, too.
RESTART = """#!/bin/sh
running() {
    kill -0 "$1" 2>/dev/null && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status"
}
pid=$(cat "$1")
kill -TERM "$pid" 2>/dev/null
while running "$pid"; do sleep 0.05; done
setsid "$3" agent -c "$4" --pins "$5" >>"$2" 2>&1 </dev/null &
echo $! >"$1"
"""


def version_of(sluice):
    return harness.run_sluice(["--version"], sluice=sluice).stdout.splitlines()[0].split()[1]


def next_version(version, by=1):
    """One of the same length."""
    major, minor, patch = version.split(".")
    other = f"{major}.{minor}.{(int(patch) + by) % 10}"
    assert len(other) == len(version), other
    return other


def renamed(program, version, other):
    """The program's bytes, of another version: of its texts, not of the symbols' versions."""
    found = re.subn(rb"(?<=[\0 /])" + re.escape(version.encode()) + rb"(?=[\0\n ])", other.encode(), program)
    assert found[1] >= 2, f"{found[1]} texts with the version {version}"
    return found[0]


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data, mode=0o644):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


class Mirror:
    """A folder with releases, and the key that they are signed with."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)
        self.key = folder + ".pub"
        self.secret = folder + ".sec"
        self.minisign("-G", "-W", "-p", self.key, "-s", self.secret)

    @staticmethod
    def minisign(*args):
        done = subprocess.run(["minisign", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"minisign {args}: {done.stdout}{done.stderr}")

    def latest(self, name):
        return os.path.join(self.folder, "latest", name)

    def sign(self, comment, *more, secret=None):
        self.minisign("-S", "-s", secret or self.secret, "-t", comment, "-m", self.latest("SHA256SUMS"), *more)

    def release(self, version, program, sign=True, name=None):
        """Makes it the newest one."""
        where = os.path.join(self.folder, version)
        os.makedirs(where, exist_ok=True)
        link = os.path.join(self.folder, "latest")
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(version, link)
        name = name or f"sluice-{version}-linux-{ARCHITECTURE}"
        write(self.latest(name), program)
        write(self.latest("SHA256SUMS"), f"{hashlib.sha256(program).hexdigest()}  {name}\n".encode())
        if sign:
            self.sign(f"sluice {version}")
        return self.latest(name)


class UpdateTest(AgentTest):
    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.room, "bin")
        os.mkdir(self.bin)
        self.program = os.path.join(self.bin, "sluice")
        shutil.copy(harness.SLUICE, self.program)
        os.chmod(self.program, 0o755)
        self.old = read(self.program)
        self.version = version_of(self.program)
        self.newer = next_version(self.version)
        self.new = renamed(self.old, self.version, self.newer)
        self.mirror = Mirror(os.path.join(self.room, "mirror"))
        self.config = os.path.join(self.room, "off.yaml")
        # No agent listens there, and the account exists on every host.
        write(self.config, json.dumps({"control": os.path.join(self.room, "none.sock"), "user": "nobody"}).encode())

    def update(self, *args, where=None, config=None, prefix=(), timeout=180):
        command = [*prefix, self.program, "update", "-c", config or self.config, "--watch", f"{WATCH_S}s",
                   "--from", where or self.mirror.folder, "--key", self.mirror.key, *args]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=harness.plain_environment(), timeout=timeout * harness.PATIENCE)
        return done

    def assert_exit(self, status, done, text=""):
        self.assertEqual(status, done.returncode, done.stdout + done.stderr)
        self.assertIn(text, done.stdout + done.stderr)

    def assert_installed(self, program, previous=None):
        """Exactly these, and nothing else in the folder."""
        self.assertEqual(sorted(["sluice"] + ["sluice.previous"] * (previous is not None)), sorted(os.listdir(self.bin)))
        self.assertTrue(read(self.program) == program, "another program is installed")
        self.assertEqual(0o755, os.stat(self.program).st_mode & 0o7777)
        if previous is not None:
            self.assertTrue(read(self.program + ".previous") == previous, "another program is the previous one")

    def assert_refused(self, done, text):
        self.assert_exit(125, done, text)
        self.assert_installed(self.old)


class SelfTest(AgentTest):
    def test_passes_and_leaves_nothing(self):
        before = sorted(glob.glob("/run/sluice-self-test-*") + glob.glob("/tmp/sluice-self-test-*"))
        done = harness.run_sluice(["doctor", "--self-test"])
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\Aself-test passed: 15 of 15 programs recorded exactly, 0 lost, [0-9.]+ s\n\Z")
        self.assertEqual("", done.stderr)
        self.assertEqual(before, sorted(glob.glob("/run/sluice-self-test-*") + glob.glob("/tmp/sluice-self-test-*")))

    def test_json(self):
        done = harness.run_sluice(["doctor", "--self-test", "--json"])
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        verdict = json.loads(done.stdout)
        self.assertEqual(("passed", True, 15, 15, 0, ""),
                         tuple(verdict[k] for k in ("self_test", "passed", "programs", "recorded", "lost", "fault")))

    def test_rules_and_an_agent_of_the_host_have_no_part_in_it(self):
        a = self.agent()
        a.follow_only(own_folder())
        a.start()
        with Load("self") as load:
            load.wait_more(50)
            done = harness.run_sluice(["doctor", "--self-test"])
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(0, a.stop(), a.log_text())

    def test_without_probes_it_fails_in_one_line(self):
        done = subprocess.run(["capsh", "--drop=cap_bpf,cap_sys_admin", "--", "-c", f"exec {harness.SLUICE} doctor --self-test"],
                              capture_output=True, text=True, env=harness.plain_environment(), timeout=120)
        self.assertEqual(1, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"\Aself-test failed: `sluice run` of the tree ended with 125, and said why[^\n]*\n\Z")

    def test_a_signal_ends_it_without_a_trace(self):
        before = sorted(glob.glob("/run/sluice-self-test-*"))
        test = subprocess.Popen([harness.SLUICE, "doctor", "--self-test"], stdout=subprocess.PIPE, text=True,
                                env=harness.plain_environment())
        time.sleep(0.1)
        test.send_signal(signal.SIGTERM)
        out, _ = test.communicate(timeout=60)
        self.assertIn(test.returncode, (0, -signal.SIGTERM), out)
        self.assertEqual(before, sorted(glob.glob("/run/sluice-self-test-*")))

    def test_only_root(self):
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", harness.SLUICE, "doctor", "--self-test"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(125, done.returncode)
        self.assertIn("only root", done.stderr)


class Refused(UpdateTest):
    """Nothing is installed, and one sentence says why."""

    def test_off_by_default(self):
        done = harness.run_sluice(["update", "-c", self.config], sluice=self.program)
        self.assert_exit(2, done, "updates are off: to switch them on, add `update: {mirror: URL, key: FILE}` to ")
        self.assertEqual(1, len(done.stderr.splitlines()))
        verdict = json.loads(harness.run_sluice(["update", "-c", self.config, "--json"], sluice=self.program).stdout)
        self.assertEqual("off", verdict["result"])
        self.assert_installed(self.old)

    def test_wrong_usage(self):
        for args in (["--watch", "0s"], ["--watch", "11m"], ["--watch", "x"], ["word"], ["--no-such"], ["--key"]):
            with self.subTest(args):
                self.assertEqual(2, harness.run_sluice(["update", "-c", self.config, *args], sluice=self.program).returncode)
        self.assert_exit(2, self.update(where="ftp://localhost/"), "neither an http:// or https:// URL")
        self.assert_exit(2, self.update(where="mirror"), "nor an absolute path")

    def test_the_configuration_names_the_mirror(self):
        self.mirror.release(self.newer, self.new)
        for update, status, text in (({"mirror": self.mirror.folder, "key": self.mirror.key}, 1, f"version {self.newer} is available"),
                                     ({"mirror": "mirror"}, 2, "is no mirror"),
                                     ({"key": self.mirror.key}, 2, "update needs a mirror"),
                                     ({"mirror": self.mirror.folder, "restart": ["systemctl", "x"]}, 2, "begin it with /")):
            with self.subTest(update):
                write(self.config, json.dumps({"control": "/nonexistent/c.sock", "update": update}).encode())
                done = harness.run_sluice(["update", "-c", self.config, "--check"], sluice=self.program)
                self.assert_exit(status, done, text)
        self.assert_installed(self.old)

    def test_what_is_not_signed_right(self):
        self.mirror.release(self.newer, self.new, sign=False)
        signature = self.mirror.latest("SHA256SUMS.minisig")
        self.assert_refused(self.update(), "the release is not signed")
        other = Mirror(os.path.join(self.room, "other"))
        self.mirror.sign(f"sluice {self.newer}", secret=other.secret)
        self.assert_refused(self.update(), "by another key")
        self.mirror.sign(f"sluice {self.newer}", "-l")
        self.assert_refused(self.update(), "former kind")
        self.mirror.sign(f"sluice {self.newer} ")
        self.assert_refused(self.update(), "is no release of sluice")
        self.mirror.sign(f"sluice {self.newer}")
        right = read(signature)
        write(signature, right.replace(f"sluice {self.newer}".encode(), b"sluice 9.9.9"))
        self.assert_refused(self.update(), "its trusted comment was changed")
        write(signature, right[:-10])
        self.assert_refused(self.update(), "is no signature")
        write(signature, b"")
        self.assert_refused(self.update(), "it is no signature of minisign")
        write(signature, right + b"x" * 5000)
        self.assert_refused(self.update(), "longer than 4096 bytes")
        write(signature, right)
        sums = self.mirror.latest("SHA256SUMS")
        write(sums, read(sums) + b"0" * 64 + b"  more\n")
        self.assert_refused(self.update(), "it is not of this file")
        write(sums, b"x" * (300 << 10))
        self.assert_refused(self.update(), "longer than 262144 bytes")

    def test_versions(self):
        older = next_version(self.version, by=9) if not self.version.endswith(".0") else None
        if older is None:  # 0.1.0: 0.0.9
            major, minor, _ = self.version.split(".")
            older = f"{major}.{int(minor) - 1}.9"
        self.mirror.release(older, renamed(self.old, self.version, older))
        self.assert_refused(self.update(), "which is older than this one")
        self.assert_exit(125, self.update("--check"), "which is older than this one")
        self.mirror.release(self.version, self.old)
        self.assert_exit(0, self.update(), f"version {self.version} is up to date")
        self.assert_exit(0, self.update("--check"), f"version {self.version} is up to date")
        self.assert_installed(self.old)
        # The name and the comment say one version, the program another.
        self.mirror.release(self.newer, self.old)
        self.assert_refused(self.update(), f"the new program is not version {self.newer}")

    def test_programs(self):
        program = self.mirror.release(self.newer, self.new, name=f"sluice-{self.newer}-linux-other")
        self.assert_refused(self.update(), f"it has no sluice-{self.newer}-linux-{ARCHITECTURE}")
        program = self.mirror.release(self.newer, self.new)
        write(program, self.new[:-1])
        self.assert_refused(self.update(), "has not the checksum that is signed")
        write(program, self.new[:len(self.new) // 2])
        self.assert_refused(self.update(), "has not the checksum that is signed")
        os.unlink(program)
        self.assert_refused(self.update(), "No such file")
        with open(program, "wb") as f:
            f.truncate((64 << 20) + 1)
        self.assert_refused(self.update(), "longer than 67108864 bytes")
        machine = bytearray(self.new)
        machine[18] ^= 1
        self.mirror.release(self.newer, bytes(machine))
        self.assert_refused(self.update(), "no program for this architecture")
        self.mirror.release(self.newer, b"#!/bin/sh\necho sluice\n")
        self.assert_refused(self.update(), "no program for this architecture")
        # It is signed and ours, and does not start.
        self.mirror.release(self.newer, self.new[:4096] + b"\0" * 4096)
        self.assert_refused(self.update(), "the new program is not version")

    def test_what_others_could_have_changed(self):
        program = self.mirror.release(self.newer, self.new)
        for path, mode in ((self.mirror.folder, 0o777), (program, 0o666), (self.mirror.key, 0o666), (self.bin, 0o777)):
            with self.subTest(path):
                before = os.stat(path).st_mode
                os.chmod(path, mode)
                done = self.update()
                os.chmod(path, before)
                self.assert_refused(done, "world-writable")
        os.lchown(self.mirror.latest("").rstrip("/"), 65534, 65534)
        self.assert_refused(self.update(), "belongs to uid 65534")

    def test_the_program_of_a_package(self):
        self.mirror.release(self.newer, self.new)
        info = os.path.join(self.room, "info")
        os.mkdir(info)
        write(os.path.join(info, "sluice-agent.list"), f"/.\n{self.program}\n".encode())
        os.makedirs("/var/lib/dpkg/info", exist_ok=True)
        done = self.update(prefix=["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /var/lib/dpkg/info && exec "$@"', info])
        self.assert_refused(done, "update it by `apt-get install --only-upgrade sluice-agent`")

    def test_only_root_and_any_user_may_check(self):
        self.mirror.release(self.newer, self.new)
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        self.assert_refused(self.update(prefix=nobody), "only root may replace")
        self.assert_exit(1, self.update("--check", prefix=nobody), f"version {self.newer} is available")

    def test_a_program_that_refuses_the_configuration(self):
        self.mirror.release(self.newer, self.new)
        rules = os.path.join(self.room, "rules.d")
        os.mkdir(rules)
        write(os.path.join(rules, "wrong.yaml"), b"nonsense: [\n")
        write(self.config, json.dumps({"control": "/nonexistent/c.sock", "rules": rules}).encode())
        self.assert_refused(self.update(), "the new program refuses the configuration or the rules")

    def test_the_previous_program(self):
        self.mirror.release(self.newer, self.new)
        self.program += ".previous"
        shutil.move(self.program[:-len(".previous")], self.program)
        self.assert_exit(125, self.update(), "is the program before an update")


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder, and can do so badly."""

    def __init__(self, folder):
        self.how = ""
        self.asked = []
        server = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=folder)

            def log_message(self, *_):
                pass

            def do_GET(self):
                server.asked.append(self.path)
                if server.how == "moved" and not self.path.startswith("/there"):
                    self.send_response(302)
                    self.send_header("Location", "/there" + self.path)
                    self.end_headers()
                    return
                if server.how == "error":
                    self.send_error(503)
                    return
                if server.how == "endless":
                    self.send_response(200)
                    self.end_headers()
                    try:
                        for _ in range(1024):
                            self.wfile.write(b"x" * 65536)
                    except OSError:
                        pass
                    return
                if server.how == "half" and "-linux-" in self.path:
                    data = read(folder + self.path)
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data[:len(data) // 2])
                    return
                self.path = self.path.removeprefix("/there")
                super().do_GET()

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class ByHttp(UpdateTest):
    def test_a_server(self):
        self.mirror.release(self.newer, self.new)
        server = Server(self.mirror.folder)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.assert_exit(1, self.update("--check", where=server.url), "is available")
        self.assertEqual(["/latest/SHA256SUMS", "/latest/SHA256SUMS.minisig"], server.asked)
        for how, text in (("error", "the server answered 503"), ("half", "-linux-"), ("endless", "longer than it may be")):
            with self.subTest(how):
                server.how = how
                self.assert_refused(self.update(where=server.url + "/"), text)
        server.how = "moved"
        self.assert_exit(0, self.update(where=server.url), f"version {self.newer} is installed")
        self.assert_installed(self.new, self.old)
        self.assertEqual(self.newer, version_of(self.program))

    def test_no_server(self):
        server = Server(self.mirror.folder)
        server.shutdown()
        server.server_close()
        self.assert_refused(self.update(where=server.url), "/latest/SHA256SUMS: ")


class Installed(UpdateTest):
    """Without an agent."""

    def test_from_a_folder(self):
        self.mirror.release(self.newer, self.new)
        done = self.update("--json")
        self.assert_exit(0, done)
        verdict = json.loads(done.stdout)
        self.assertEqual(("updated", self.version, self.newer, self.program),
                         tuple(verdict[k] for k in ("result", "installed", "available", "program")))
        self.assert_installed(self.new, self.old)
        self.assert_exit(0, self.update(), f"version {self.newer} is up to date")
        # The next one replaces the previous one, too.
        newest = next_version(self.newer)
        newest_program = renamed(self.new, self.newer, newest)
        self.mirror.release(newest, newest_program)
        self.assert_exit(0, self.update(), f"version {newest} is installed")
        self.assert_installed(newest_program, self.new)

    def test_a_second_one_is_refused_meanwhile(self):
        self.mirror.release(self.newer, self.new)
        first = subprocess.Popen([self.program, "update", "-c", self.config, "--from", self.mirror.folder, "--key", self.mirror.key],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=harness.plain_environment())
        self.addCleanup(first.kill)
        end = time.monotonic() + 60
        while not os.path.exists(os.path.join(self.bin, ".sluice.update")):
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(first.poll())
            time.sleep(0.005)
        self.assert_exit(125, self.update(), "another update of")
        out, _ = first.communicate(timeout=120)
        self.assertEqual(0, first.returncode, out)
        self.assert_installed(self.new, self.old)

    def test_killed_at_any_moment(self):
        self.mirror.release(self.newer, self.new)
        outcomes = set()
        for delay in (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 1.6, 2.0, 2.5):
            with self.subTest(delay):
                write(self.program + ".again", self.old, 0o755)
                os.rename(self.program + ".again", self.program)
                process = subprocess.Popen([self.program, "update", "-c", self.config, "--from", self.mirror.folder,
                                            "--key", self.mirror.key], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           env=harness.plain_environment())
                time.sleep(delay)
                process.kill()
                process.wait(10)
                there = read(self.program)
                self.assertIn(there, (self.old, self.new), "neither the old nor the new program")
                outcomes.add(there == self.new)
                self.assert_exit(0, self.update())
                self.assert_installed(self.new, self.old)
        self.assertIn(False, outcomes)

    def test_a_signal_before_the_swap_changes_nothing(self):
        self.mirror.release(self.newer, self.new)
        process = subprocess.Popen([self.program, "update", "-c", self.config, "--from", self.mirror.folder, "--key", self.mirror.key],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=harness.plain_environment())
        end = time.monotonic() + 60
        while not os.path.exists(os.path.join(self.bin, ".sluice.update")) and time.monotonic() < end:
            time.sleep(0.005)
        time.sleep(0.1)
        process.terminate()
        out, _ = process.communicate(timeout=60)
        self.assertEqual(125, process.returncode, out)
        self.assertIn("interrupted", out)
        self.assert_installed(self.old)


class Running(UpdateTest):
    """With an agent, which a command of the configuration restarts."""

    def setUp(self):
        super().setUp()
        self.a = self.agent("agent", probes={"ring": "32MiB"})
        self.a.sluice = self.program
        self.a.follow_only(own_folder())
        self.pid_file = os.path.join(self.room, "pid")
        self.log = os.path.join(self.room, "restarted.log")
        script = os.path.join(self.room, "restart")
        write(script, RESTART.encode(), 0o755)
        self.a.configure(update={"mirror": self.mirror.folder, "key": self.mirror.key, "restart": [
            script, self.pid_file, self.log, self.program, self.a.config_path, self.a.pins]})
        self.a.start()
        self.first = self.a.pid
        write(self.pid_file, f"{self.first}\n".encode())
        self.addCleanup(self.end_restarted)
        self.a.wait(lambda: self.a.status()["ready"], what="ready agent")

    def end_restarted(self, signo=signal.SIGKILL):
        """Ends the agent that the command started, which another process reaps."""
        pid = int(read(self.pid_file))
        if pid == self.first:
            return
        try:
            os.kill(pid, signo)
        except ProcessLookupError:
            return
        end = time.monotonic() + 60 * harness.PATIENCE
        while os.path.exists(f"/proc/{pid}/exe"):
            self.assertLess(time.monotonic(), end, "the agent does not end")
            time.sleep(0.02)

    def stop_restarted(self):
        self.end_restarted(signal.SIGTERM)

    def status(self):
        return json.loads(self.a.ctl("status", "--json", check=True).stdout)

    def run_update(self, *args, prefix=()):
        first, *others = [*prefix, self.program, "update", "-c", self.a.config_path, "--watch", f"{WATCH_S}s", *args]
        return harness.run_sluice(others, sluice=first, timeout=240)

    def assert_whole(self, load):
        """Every program of the load is recorded once, with nothing lost."""
        self.a.process.wait(30)  # it was replaced
        done = harness.run_sluice(["ctl", "--socket", self.a.control, "settle", "--delivered", "--timeout", "60s"], timeout=120)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.stop_restarted()
        topics = harness.read_lake(self.a.lake)
        for topic, records in topics.items():
            self.assertEqual([], duplicates(records)[1][:5], topic)
            self.assertEqual([], holes(records), topic)
        self.assertEqual(0, load.failed)
        self.assertGreater(load.started, 300)
        self.assertEqual([], load.check(topics["sluice.program"])[:5])
        programs = topics["sluice.program"]
        lost = [(x["place"], x["reason"], x["count"]) for x in topics["sluice.agent"][-1]["lost"]]
        self.assertEqual([], unforgiven(lost, sum(r["phase"] == "END" for r in programs), cuts(programs)))
        self.assertNotIn("GAP", {r["event"] for r in topics["sluice.agent"]})

    def release_unwell(self, mode):
        """The program of a newer version, whose agent fails."""
        real = os.path.join(self.room, "real")
        write(real, self.new, 0o755)
        tail = b"\0" * 1024 + f"\nREAL {real} {mode}\n".encode()
        self.unwell = read(harness.built("update_unwell")) + tail
        self.mirror.release(self.newer, self.unwell)

    def test_over_a_storm_no_program_is_lost(self):
        self.mirror.release(self.newer, self.new)
        self.assertEqual(self.version, self.status()["version"])
        with Load("update", rate=400) as load:
            load.wait_more(100)
            done = self.run_update()
            self.assert_exit(0, done, "and its agent is as well as the one before")
            load.wait_more(100)
        self.assert_installed(self.new, self.old)
        status = self.status()
        self.assertEqual((self.newer, True), (status["version"], status["ready"]))
        self.assertNotEqual(self.first, status["pid"])
        self.assert_whole(load)

    def test_by_systemd(self):
        """The same, by what stands for systemd here: systemctl is a script, and the folder by which programs notice it is there."""
        self.mirror.release(self.newer, self.new)
        script, log = os.path.join(self.room, "systemctl"), os.path.join(self.room, "systemctl.log")
        write(script, f"""#!/bin/sh
echo "$*" >>{log}
[ "$1" != --quiet ] || exit 0
exec {" ".join(self.a.config["update"]["restart"])}
""".encode(), 0o755)
        # Records come once an hour: delivered is what the start of an agent itself records.
        self.a.configure(interval="1h", update={"restart": []})
        self.a.ctl("reload", check=True)
        done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && mkdir -p /run/systemd/system && '
                               'mount --bind "$0" /usr/bin/systemctl && exec "$@"', script, self.program, "update",
                               "-c", self.a.config_path, "--watch", f"{WATCH_S}s"],
                              capture_output=True, text=True, env=harness.plain_environment(), timeout=240 * harness.PATIENCE)
        self.assert_exit(0, done, "and its agent is as well as the one before")
        self.assertEqual(b"--quiet is-active sluice-agent.service\nrestart sluice-agent.service\n", read(log))
        self.assert_installed(self.new, self.old)
        self.assertEqual((self.newer, True), (self.status()["version"], self.status()["ready"]))

    def test_an_agent_that_refuses_to_start_is_rolled_back(self):
        self.release_unwell("refuses")
        with Load("refuses", rate=200) as load:
            load.wait_more(50)
            done = self.run_update()
            self.assert_exit(1, done, "the program before it is back, and its agent is as well as before")
            load.wait_more(50)
        self.assert_installed(self.old)
        self.assertEqual((self.version, True), (self.status()["version"], self.status()["ready"]))
        self.assert_whole(load)

    def test_an_agent_that_never_answers_is_rolled_back(self):
        self.release_unwell("mute")
        done = self.run_update("--json")
        self.assert_exit(1, done, "does not answer")
        self.assertEqual("rolled_back", json.loads(done.stdout)["result"])
        self.assert_installed(self.old)
        self.assertEqual((self.version, True), (self.status()["version"], self.status()["ready"]))

    def test_an_agent_that_dies_while_it_is_watched_is_rolled_back(self):
        self.release_unwell("dies")
        done = self.run_update("--watch", "15s")
        self.assert_exit(1, done, "the program before it is back")
        self.assert_installed(self.old)
        self.assertEqual((self.version, True), (self.status()["version"], self.status()["ready"]))

    def test_a_command_that_fails_to_restart_is_rolled_back(self):
        self.mirror.release(self.newer, self.new)
        script = os.path.join(self.room, "restart")
        write(script, b"#!/bin/sh\nexit 7\n", 0o755)
        done = self.run_update()
        self.assert_exit(1, done, "could not restart the agent: exit status 7")
        self.assert_installed(self.old)
        self.assertIsNone(self.a.process.poll())

    def test_a_command_that_others_may_change_is_refused(self):
        self.mirror.release(self.newer, self.new)
        os.chmod(os.path.join(self.room, "restart"), 0o777)
        self.assert_refused(self.run_update(), "world-writable")
        self.assertIsNone(self.a.process.poll())

    def kill_after_the_swap(self):
        """An updater is killed once the new program is in place; what restarts the agent continues, and ends."""
        process = subprocess.Popen([self.program, "update", "-c", self.a.config_path], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=harness.plain_environment())
        self.addCleanup(process.kill)
        end = time.monotonic() + 60 * harness.PATIENCE
        while read(self.program) == self.old:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        time.sleep(0.3)
        process.kill()
        process.wait(10)
        self.assertTrue(read(self.program) == self.new)
        self.a.process.wait(30)
        self.a.process = None
        self.a.wait(self.is_newer, what="the new agent")

    def is_newer(self):
        done = self.a.ctl("status", "--json")
        return done.returncode == 0 and json.loads(done.stdout)["version"] == self.newer

    def test_killed_before_its_verdict_the_next_call_keeps_what_is_well(self):
        self.mirror.release(self.newer, self.new)
        self.kill_after_the_swap()
        done = self.run_update()
        self.assert_exit(0, done, "was interrupted before its verdict: finishing it")
        self.assert_exit(0, done, f"version {self.newer} is up to date")
        self.assert_installed(self.new, self.old)
        self.assertEqual((self.newer, True), (self.status()["version"], self.status()["ready"]))

    def test_killed_before_its_verdict_the_next_call_takes_back_what_is_not(self):
        self.mirror.release(self.newer, self.new)
        self.kill_after_the_swap()
        script = os.path.join(self.room, "restart")
        works = read(script)
        # The new agent cannot be restarted, the old one can.
        write(script, b"#!/bin/sh\n[ \"$(\"$3\" --version | head -n 1)\" = 'sluice %s' ] && exit 7\n" % self.newer.encode() + works, 0o755)
        done = self.run_update()
        self.assert_exit(1, done, "was interrupted before its verdict: finishing it")
        self.assert_exit(1, done, "the program before it is back, and its agent is as well as before")
        self.assert_installed(self.old)
        self.assertEqual((self.version, True), (self.status()["version"], self.status()["ready"]))

    def test_one_that_was_started_by_hand_is_left_to_its_user(self):
        """The next update still knows it, and with a command restarts and judges it as any other."""
        self.mirror.release(self.newer, self.new)
        restart = self.a.config["update"]["restart"]
        self.a.configure(update={"restart": []})
        self.assert_exit(0, self.run_update(), "the agent was started by hand and runs an older one: restart it")
        self.assert_installed(self.new, self.old)
        self.assertEqual(self.version, self.status()["version"])
        self.assertIsNone(self.a.process.poll())
        newest = next_version(self.newer)
        newest_program = renamed(self.new, self.newer, newest)
        self.mirror.release(newest, newest_program)
        self.a.configure(update={"restart": restart})
        self.assert_exit(0, self.run_update(), "and its agent is as well as the one before")
        self.assert_installed(newest_program, self.new)
        self.assertEqual((newest, True), (self.status()["version"], self.status()["ready"]))

    def assert_refused_as_mute(self, socket_path, why):
        done = self.run_update()
        self.assert_refused(done, f"an agent of this program runs, process {self.first}, but does not answer at {socket_path}: {why}: "
                            "restart it, by `systemctl restart sluice-agent.service` if that runs it, or stop it")
        self.assertIsNone(self.a.process.poll())

    def test_one_that_does_not_answer_is_not_taken_for_none(self):
        self.mirror.release(self.newer, self.new)
        self.a.signal(signal.SIGSTOP)
        self.assert_refused_as_mute(self.a.control, "Connection timed out")
        # Nor if others wait for its answer, too, and its queue is full.
        waiting = []
        with self.assertRaises(BlockingIOError):
            while len(waiting) < 4096:
                waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
                self.addCleanup(waiting[-1].close)
                waiting[-1].connect(self.a.control)
        self.assert_refused_as_mute(self.a.control, "Connection timed out")
        for connection in waiting:
            connection.close()
        self.a.signal(signal.SIGCONT)
        # Its restart, with which it would listen elsewhere, is still to come.
        other = self.a.control + ".new"
        self.a.configure(control=other)
        self.assert_refused_as_mute(other, "No such file or directory")
        # It runs a program that was replaced by other means.
        write(self.program + ".again", self.old, 0o755)
        os.rename(self.program + ".again", self.program)
        self.assert_refused_as_mute(other, "No such file or directory")
        # Arguments are asked of no other process: their reading hangs for as long as a process's user likes.
        log = os.path.join(self.room, "opened")
        self.run_update(prefix=["strace", "--follow-forks", "--trace=open,openat", f"--output={log}"])
        self.assertEqual({str(self.first)}, set(re.findall(r"/proc/(\d+)/cmdline", read(log).decode())))
        # Without the right to read which program it runs, it is not taken for none, either.
        done = self.run_update(prefix=["setpriv", "--reuid=0", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"])
        self.assert_refused(done, f"process {self.first} is an agent that does not answer at {other}, and which program it runs cannot be "
                            "read: Permission denied: run this with CAP_SYS_PTRACE, or name its configuration with -c")
        # Another program's agent listens there.
        stranger = self.agent("stranger", control=other)
        stranger.follow_only(own_folder())
        stranger.start()
        self.assert_refused_as_mute(other, "an agent of another program does")
        self.assertEqual(0, stranger.stop(), stranger.log_text())
        # Once it has ended, none is waited for.
        self.assertEqual(0, self.a.stop(), self.a.log_text())
        self.assert_exit(0, self.run_update(), f"version {self.newer} is installed; the program before it is ")
        self.assert_installed(self.new, self.old)


if __name__ == "__main__":
    harness.main()
