# SPDX-License-Identifier: Apache-2.0
"""Programs under hostile names run, and every output of every subcommand is read: none acts on a terminal.

The names are those of tests/fixtures/hostile_names.tsv. A subcommand, or a command of the agent, that is new
fails a test here until its outputs are read too.
"""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import unicodedata

import harness
from agent import AgentTest

FIXTURE = os.path.join(harness.ROOT, "tests", "fixtures", "hostile_names.tsv")

# Each subcommand of sluice, and the test of this file, or the file, in which its outputs are read.
READ_IN = {
    "run": "test_a_run",
    "cat": "test_a_run",
    "agent": "test_an_agent",
    "ctl": "test_an_agent",
    "check": "test_check",
    "dead-letters": "test_dead_letters",
    "doctor": "test_doctor",
    "update": "test_update",
    "tune": "analytics/tests/test_hostile_names.py",
    "sweep": "analytics/tests/test_hostile_names.py",
    "lake": "analytics/tests/test_hostile_names.py",
    "help": "its text is sluice's own",
}
# The agent's commands: whether their answers are read, or the errors that they answer to a hostile word.
AGENT_COMMANDS = {
    "attach": "error", "dead-letters": "error", "detach": "error", "explain": "read", "help": "read", "reload": "read", "rules": "read",
    "settle": "error", "status": "read", "subscribe": "error", "tag": "read",
}


def names():
    """(what, bytes, text) of each."""
    with open(FIXTURE, encoding="utf-8", newline="\n") as f:
        for line in f.read().split("\n"):
            if line and not line.startswith("#"):
                what, raw, spelt = line.split("\t")
                raw, _, times = raw.partition("*")
                yield what, bytes.fromhex(raw) * int(times or 1), spelt * int(times or 1)


def file_names():
    """The names that a file can have."""
    return [(what, raw, spelt) for what, raw, spelt in names() if raw not in (b"", b".", b"..") and b"/" not in raw and len(raw) < 250]


def unsafe(output):
    """What acts on a terminal, or hides; not by the table that is tested."""
    text = output.decode("utf-8", "surrogateescape")
    return sorted({repr(c) for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")})


class HostileNames(AgentTest):
    def setUp(self):
        super().setUp()
        self.bin = os.path.join(self.room, "bin").encode()
        os.mkdir(self.bin)

    def programs(self, of):
        """A program under each name, which is a copy of another; [(what, path, spelt)]."""
        first = os.path.join(self.bin, b".first")
        shutil.copy(of, first)
        made = []
        for what, raw, spelt in file_names():
            os.link(first, os.path.join(self.bin, raw))
            made.append((what, os.path.join(self.bin, raw), spelt))
        self.assertGreater(len(made), 50)
        return made

    def sluice(self, *args, status=None, **kw):
        """stdout and stderr, as bytes, of which nothing acts on a terminal."""
        done = subprocess.run([harness.SLUICE, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=harness.plain_environment(LC_ALL="C.UTF-8"), timeout=120 * harness.PATIENCE, **kw)
        if status is not None:
            self.assertEqual(status, done.returncode, done.stderr)
        self.assertEqual([], unsafe(done.stdout), args)
        self.assertEqual([], unsafe(done.stderr), args)
        return done

    def test_each_subcommand_is_here(self):
        usage = harness.run_sluice(["--help"]).stdout
        found = re.findall(r"(?m)^  ([a-z][a-z-]*)  +\S", usage)
        self.assertEqual(sorted(READ_IN), sorted(found))
        self.sluice(b"no\x1b[31m", status=2)

    def test_a_run(self):
        made = self.programs("/bin/true")
        os.link(os.path.join(self.bin, b".first"), os.path.join(self.bin, b"last"))
        left = os.path.join(self.bin, b"left\x1b[31m\xe2\x80\xae")
        shutil.copy("/bin/sleep", left)
        driver = os.path.join(self.room, "driver.py")
        with open(driver, "w") as f:
            f.write("import os, subprocess, sys\n"
                    "folder = os.fsencode(sys.argv[1])\n"
                    "for name in sorted(os.listdir(folder)):\n"
                    "    if not name.startswith(b'left'):\n"
                    "        subprocess.run([name, name], executable=os.path.join(folder, name), check=True)\n"
                    "subprocess.Popen([b'left\\x1b', b'60'], executable=os.path.join(folder, b'left\\x1b[31m\\xe2\\x80\\xae'))\n")
        answer = os.path.join(self.room, "answer.json")
        done = self.sluice("run", "--own-probes", "--lake", self.lake, "--json", answer, "--pipeline", "p", "--", "/usr/bin/python3", driver,
                           os.fsdecode(self.bin), status=0)
        with open(answer, "rb") as f:
            text = f.read()
        self.assertEqual([], unsafe(text))
        for alive in json.loads(text)["still_running"]:
            os.kill(alive["pid"], signal.SIGKILL)
        self.assertIn(b"still running: left\\x1b[31m", done.stderr)
        ran = {r["exe"] for r in harness.read_lake(self.lake)["sluice.program"] if r["exe"]}
        for what, path, _ in made:
            self.assertIn(path, set(map(harness.unescape, ran)), what)
        printed = self.sluice("cat", self.lake, status=0).stdout
        self.assertEqual(ran, {r["exe"] for r in map(json.loads, printed.splitlines()) if r.get("exe")})
        # Names of folders and topics in errors.
        self.sluice("cat", os.path.join(self.bin, b"missing\x1b[31m"), status=2)
        self.sluice("cat", "--topic", b"\x1b[31m", self.lake, status=2)
        damaged = os.path.join(self.bin, b"damaged\x1b[31m.avro")
        with open(damaged, "wb") as f:
            f.write(b"no Avro")
        self.sluice("cat", damaged, status=1)
        # The name of a run, and of what cannot be started.
        self.sluice("run", "--own-probes", "--lake", self.lake, "--", os.path.join(self.bin, b"missing\x1b[31m"), status=127)
        self.sluice("run", "--pipeline", b"\x1b[31m", "--", "/bin/true", status=2)

    def test_an_agent(self):
        made = self.programs("/bin/sleep")
        a = self.agent(log={"level": "debug", "format": "text"}, records={"start_after": 0})
        a.follow_only(os.fsdecode(self.bin) + "/")
        a.start(wait=False)
        a.wait(lambda: os.path.exists(a.control), 60, "control socket")
        commands = set(re.findall(r"(?m)^([a-z-]+) +\S", self.ctl(a, "help", status=0).stdout.decode()))
        self.assertEqual(sorted(AGENT_COMMANDS), sorted(commands))
        sleepers = []
        self.addCleanup(lambda: [(s.kill(), s.wait()) for s in sleepers])
        for _, path, _ in made:
            sleepers.append(subprocess.Popen([os.path.basename(path), b"300"], executable=path))
        a.settle()
        for sleeper, (what, path, spelt) in zip(sleepers, made, strict=True):
            said = self.ctl(a, "explain", str(sleeper.pid), status=0).stdout.decode()
            if rb"\x1b" in path:    # in a record it is no escape
                spelt = spelt.replace(r"\x1b", r"\x5cx1b")
            self.assertIn(spelt, said.split("\nexe ", 1)[1].split("\n")[0], what)
            self.ctl(a, "--json", "explain", str(sleeper.pid), status=0)
        pid = str(sleepers[0].pid)
        for what, raw, _ in names():
            try:
                raw.decode()
            except UnicodeDecodeError:
                continue        # a request is JSON
            self.ctl(a, "tag", "--pid", pid, b"--run=" + raw, b"--task=" + raw, b"--pipeline=" + raw)
            self.ctl(a, "rules", "add", raw, b"exclude: [{exe: " + raw + b"}]")
            for command, how in AGENT_COMMANDS.items():
                if how == "error":
                    self.ctl(a, command, raw)
            self.ctl(a, b"x" + raw)
        self.ctl(a, "explain", pid, status=0)
        self.ctl(a, "rules", "list", status=0)
        self.ctl(a, "status")
        self.ctl(a, "--json", "status")
        self.assertEqual([], unsafe(self.metrics(a)))
        a.write_config('"\\x1b[31m\\u202e": 1\n')
        self.ctl(a, "reload", status=1)
        self.ctl(a, "status")
        self.assertEqual(0, a.stop())
        with open(a.log_path, "rb") as f:
            self.assertEqual([], unsafe(f.read()))
        self.sluice("cat", a.lake, status=0)

    def ctl(self, a, *words, **kw):
        return self.sluice("ctl", "--socket", a.control, *words, **kw)

    def metrics(self, a):
        c = http.client.HTTPConnection("localhost", timeout=30)
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.settimeout(30)
        c.sock.connect(a.metrics)
        c.request("GET", "/metrics")
        text = c.getresponse().read()
        c.close()
        return text

    def test_check(self):
        for what, raw, spelt in names():
            if b"\0" in raw:
                continue
            done = self.sluice("check", "--explain", "--cwd", b"/x" + raw, "--cgroup", b"/x" + raw, "--", b"/x" + raw, raw)
            self.assertIn(spelt, done.stdout.decode(), what)
            self.sluice("check", "-c", b"/nonexistent/" + raw, status=2)
            self.sluice("check", b"x" + raw, status=2)
        for _, raw, _ in file_names():
            path = os.path.join(self.bin, raw)
            with open(path, "wb") as f:
                f.write(raw + b": " + raw + b"\n")
            self.sluice("check", "-c", path, status=2)
            self.sluice("check", "--dump", "-c", path)

    def test_dead_letters(self):
        config = os.path.join(self.room, "sluice.yaml")
        with open(config, "w") as f:
            json.dump({"dead_letters": os.path.join(self.room, "letters")}, f)
        for _, raw, _ in file_names():
            folder = os.path.join(self.bin, raw)
            os.mkdir(folder)
            with open(os.path.join(folder, b"dead_letter-1\x1b[31m.avro"), "wb") as f:
                f.write(b"no Avro")
            for command in ("list", "show"):
                self.sluice("dead-letters", command, "-c", config, "--folder", folder)
            self.sluice("dead-letters", "list", "--json", "-c", config, "--folder", folder)
            self.sluice("dead-letters", "list", "-c", config, "--topic", raw, status=2)

    def test_doctor(self):
        self.sluice("doctor")
        self.sluice("doctor", "--json")
        self.sluice("doctor", b"\x1b[31m", status=2)

    def test_update(self):
        """A mirror writes the signature's comments and the list of files; what is named on the command line is its user's."""
        hostile = b"\x1b[31m\xe2\x80\xae\x07"
        mirror = os.path.join(self.bin, b"mirror" + hostile)
        latest = os.path.join(mirror, b"latest")
        os.makedirs(latest)
        key, secret = os.path.join(self.room, "key.pub"), os.path.join(self.room, "key.sec")
        subprocess.run(["minisign", "-G", "-W", "-p", key, "-s", secret], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       check=True, timeout=60)
        config = os.path.join(self.room, "sluice.yaml")
        with open(config, "w") as f:
            f.write(f"lake: {self.lake}\n")
        sums, signature = os.path.join(latest, b"SHA256SUMS"), os.path.join(latest, b"SHA256SUMS.minisig")

        def update(status, *args):
            return self.sluice("update", "-c", config, "--from", mirror, "--key", key, *args, status=status)

        for names_line in (b"0" * 64 + b"  sluice-9.9.9-linux-x86_64" + hostile + b"\n", hostile + b"\n"):
            for comment in (b"sluice 9.9.9" + hostile, hostile, b"sluice 9.9.9"):
                with open(sums, "wb") as f:
                    f.write(names_line)
                # minisign keeps to printable comments itself: it signs ours, and the bytes of the other are put there.
                subprocess.run(["minisign", "-S", "-s", secret, "-t", "sluice 9.9.9", "-m", sums], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, check=True, timeout=60)
                with open(signature, "rb") as f:
                    lines = f.read().split(b"\n")
                lines[0] = b"untrusted comment: " + hostile
                lines[2] = b"trusted comment: " + comment
                with open(signature, "wb") as f:
                    f.write(b"\n".join(lines))
                for args in ((), ("--json",)):
                    update(125, *args)
                # The one that is signed as it is has a newer version, whatever its files are.
                update(1 if comment == b"sluice 9.9.9" else 125, "--check")
        with open(signature, "wb") as f:
            f.write(hostile)
        update(125)
        self.sluice("update", "-c", config, "--from", b"/missing" + hostile, "--key", key, status=125)
        self.sluice("update", "-c", config, "--from", mirror, "--key", b"/missing" + hostile, status=125)
        self.sluice("update", "--watch", hostile, status=2)
        self.sluice("update", hostile, status=2)


if __name__ == "__main__":
    harness.main()
