# SPDX-License-Identifier: Apache-2.0
"""Private data are nowhere: not in records, spool, log or the agent's memory.

Programs run with canaries, each unique, in all that sluice must not read (their environment, what they read
and write) and in what it must redact (passwords and tokens in arguments). Then everything that an agent has
is searched for their bytes. One variable is named in the configuration: its canary alone has to be there.
"""
import contextlib
import glob
import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time

import harness
from agent import AgentTest
from load import cuts, unforgiven

VARIABLE = "SLUICE_TEST_TRACE"
PARENT = "TRACEPARENT"
PATTERN = r"--pin=(?<secret>\S+)"  # a user's own


class Canaries:
    """Words that occur nowhere else; by what they are hidden in."""

    def __init__(self):
        self.words = {}

    def __call__(self, place):
        """A new one, 32 letters of no alphabet that a token's shape would know."""
        word = "zq" + secrets.token_hex(15).translate(str.maketrans("0123456789abcdef", "ghijklmnopqrstuv"))
        self.words[place] = word
        return word

    def found_in(self, data, where):
        """[sentence], for each that is in these bytes."""
        return [f"{where}: the canary of {place}" for place, word in self.words.items() if word.encode() in data]


class PrivacyTest(AgentTest):
    def setUp(self):
        super().setUp()
        self.canary = Canaries()
        self.allowed = secrets.token_hex(16)
        self.trace_id, self.span_id = secrets.token_hex(16), secrets.token_hex(8)
        self.traceparent = f"00-{self.trace_id}-{self.span_id}-01"

    # --- what runs ---

    def environment(self):
        """Many variables with canaries, around those that may be read."""
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        for i in range(60):
            env["CANARY_%d" % i] = self.canary("the environment, variable %d" % i)
        env[VARIABLE] = self.allowed
        env[PARENT] = self.traceparent
        # Names that begin alike, that end alike, and the name as a value.
        for name in (VARIABLE + "_", VARIABLE[:-1], "X" + VARIABLE, VARIABLE.lower(), PARENT + "2"):
            env[name] = self.canary("the variable " + name)
        env["QUOTES"] = f"{VARIABLE}={self.canary('a value that looks like the variable')}"
        env["LINES"] = f"x\n{VARIABLE}={self.canary('a line that looks like the variable')}\n"
        env["LONG"] = "x" * 5000 + self.canary("the end of a long variable") + "x" * 5000
        for i in range(60, 100):
            env["CANARY_%d" % i] = self.canary("the environment, variable %d" % i)
        return env

    def argument_lists(self):
        """Argument lists with a canary in each, one for each thing that is redacted."""
        c = self.canary
        return [
            ["--password", c("--password X")],
            ["--password=" + c("--password=X")],
            ["--db-passwd=" + c("--db-passwd=X")],
            ["--token", c("--token X")],
            ["--api-key=" + c("--api-key=X")],
            ["--secret-key", c("--secret-key X")],
            ["AWS_SECRET_ACCESS_KEY=" + c("AWS_SECRET_ACCESS_KEY=X")],
            ["AWS_SESSION_TOKEN=" + c("AWS_SESSION_TOKEN=X")],
            ["--header", "Authorization: Bearer " + c("Authorization: Bearer X")],
            ["-H", "X-Api-Key: " + c("X-Api-Key: X")],
            ["-H", "Cookie: session=" + c("Cookie: X")],
            [f"https://user:{c('https://user:X@')}@example.org/p"],
            [f"postgres://u:{c('postgres://u:X@')}@db:5432/d?sslmode=require"],
            [f"https://example.org/o?X-Amz-Signature={c('X-Amz-Signature=X')}&b=1"],
            [json.dumps({"user": "me", "password": c('"password": "X"')})],
            ["ghp_" + c("ghp_X")],
            ["glpat-" + c("glpat-X")],
            ["use Bearer " + c("Bearer X")],
            ["-c", f"PGPASSWORD={c('PGPASSWORD=X in a script')} psql -h h"],
            ["-c", f"mysql -p{c('mysql -pX in a script')} db; true"],
            ["-c", f"echo {c('echo X | --password-stdin')} | docker login -u me --password-stdin; true"],
            ["-c", f"srun -n1 mysql -p{c('srun mysql -pX in a script')} db"],
            [f"-----BEGIN PRIVATE KEY-----\n{c('a private key')}\n-----END PRIVATE KEY-----"],
            ["--pin=" + c("a pattern of the user's own")],
            ["prefix--pin=" + c("a pattern of the user's own, in the middle") + " rest"],
            # So far behind that no later program's arguments come to lie over them by themselves.
            ["x" * 20000, "--password", c("--password X, far behind")],
        ]

    def files(self):
        """A file to be read, and one that was written."""
        source = os.path.join(self.room, "source")
        with open(source, "w") as f:
            f.write(self.canary("a file that is read") + "\n")
        return source, os.path.join(self.room, "target")

    def script(self):
        """A shell script that runs them all; itself without a canary."""
        path = os.path.join(self.room, "work.sh")
        with open(path, "w") as f:
            f.write("cat source >target\ncat source | tr a-y b-z >/dev/null\n"
                    "\"$PYTHON\" talk.py <payload >/dev/null\n"
                    "while read -r line; do printf '%s\\n' \"$line\" >>target; done <source\n")
        payload, written = self.canary("a pipe"), self.canary("what is written to a file")
        with open(os.path.join(self.room, "payload"), "w") as f:
            f.write(f"{payload}\n{self.canary('a socket')}\n{written}\n")
        with open(os.path.join(self.room, "talk.py"), "w") as f:
            f.write("import os, socket, sys\n"
                    "pipe, sock, text = sys.stdin.read().split()\n"
                    "r, w = os.pipe(); os.write(w, pipe.encode()); os.read(r, 99)\n"
                    "for family, address in ((socket.AF_INET, ('127.0.0.1', 0)), (socket.AF_UNIX, b'\\0' + os.urandom(8).hex().encode())):\n"
                    "    s = socket.socket(family); s.bind(address); s.listen()\n"
                    "    c = socket.socket(family); c.connect(s.getsockname()); a = s.accept()[0]\n"
                    "    c.sendall(sock.encode()); a.recv(99); a.sendall(sock.encode()); c.recv(99)\n"
                    "open('written', 'w').write(text)\n")
        return path

    def commands(self):
        """[argv]: what is run, once each. /bin/true takes any arguments."""
        self.files()
        return ([["/bin/sh", self.script()]] + [["/bin/true", "privacy", str(i), *a] for i, a in enumerate(self.argument_lists())] +
                [["mysql", "-u", "root", "-p" + self.canary("mysql -pX")],
                 ["curl", "-u", "me:" + self.canary("curl -u me:X"), "h"]])

    def run_all(self, env, commands):
        env = {**env, "PYTHON": sys.executable}
        for argv in commands:
            subprocess.run(argv, executable=argv[0] if argv[0].startswith("/") else "/bin/true", env=env, cwd=self.room,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout=60)

    # --- where it is sought ---

    def search_files(self, *roots):
        """The words that are in any file below: [sentence]."""
        wrong = []
        for root in roots:
            for at, _, names in os.walk(root):
                for name in names:
                    path = os.path.join(at, name)
                    if os.path.isfile(path) and not os.path.islink(path):
                        with contextlib.suppress(FileNotFoundError), open(path, "rb") as f:  # an agent renames some meanwhile
                            wrong += self.canary.found_in(f.read(), path)
        return wrong

    def search_lake(self, lake):
        """The same for decoded records: files in the lake are compressed."""
        wrong = []
        for topic, records in harness.read_lake(lake).items():
            for r in records:
                wrong += self.canary.found_in(json.dumps(r, ensure_ascii=False, default=str).encode("utf-8", "surrogateescape"),
                                              f"{topic} seq {r['seq']}")
        return wrong

    def search_memory(self, pid):
        """
        The same for what a core file of the process would have: every mapping but those that are left out of core
        files ("dd"): ([sentence], bytes searched, names of what was left out).
        """
        wrong, searched, left_out = [], 0, set()
        mappings = []
        with open(f"/proc/{pid}/smaps") as f:
            for line in f:
                head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \d+ *(.*)", line)
                if head:
                    mappings.append([int(head[1], 16), int(head[2], 16), head[3], head[4].strip(), ""])
                elif line.startswith("VmFlags:"):
                    mappings[-1][4] = line.split()[1:]
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
            for begin, end, mode, name, flags in mappings:
                if "dd" in flags:
                    left_out.add(name)
                    continue
                if "r" not in mode or name in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
                    continue
                data = bytearray()
                for at in range(begin, end, 1 << 20):
                    try:
                        data += os.pread(mem.fileno(), min(1 << 20, end - at), at)
                    except OSError:
                        break
                searched += len(data)
                wrong += self.canary.found_in(bytes(data), f"memory of {pid}, {name or 'anonymous'} at {begin:#x}")
        return wrong, searched, left_out

    # --- what has to be there ---

    def mine(self, topics, phase=None):
        return [r for r in topics.get("sluice.program", []) if (r["argv"] or [""])[1:2] == ["privacy"] and phase in (None, r["phase"])]

    def assert_redacted(self, programs, n):
        """Each of the n commands is there, START and END, and shows where something was taken out."""
        seen = {}
        for r in programs:
            seen.setdefault(int(r["argv"][2]), {})[r["phase"]] = r
        self.assertEqual(set(range(n)), set(seen))
        for i, phases in seen.items():
            self.assertEqual({"START", "END"}, set(phases), i)
            for r in phases.values():
                self.assertIn("***", " ".join(r["argv"]), r["argv"])

    def assert_traced(self, programs):
        for r in programs:
            self.assertEqual({VARIABLE: self.allowed, PARENT: self.traceparent}, {v["name"]: v["value"] for v in r["variables"]})
            self.assertEqual((self.trace_id, self.span_id), (r["trace_id"], r["span_id"]))

    def assert_untraced(self, programs):
        for r in programs:
            self.assertEqual(([], None, None), (r["variables"], r["trace_id"], r["span_id"]))


class Agent(PrivacyTest):
    def started(self, **keys):
        a = self.agent(log={"level": "debug", "format": "json"}, argv={"redact": ["builtin", PATTERN]},
                       trace_env=[VARIABLE, PARENT], records={"start_after": 0}, **keys)  # both records are searched
        env = self.environment()
        # One that ran before: what it has is read from /proc.
        before = subprocess.Popen(["/bin/sh", "-c", "read x", "--password=" + self.canary("arguments of one that ran before")],
                                  env=env, cwd=self.room, stdin=subprocess.PIPE)
        self.addCleanup(before.wait)
        self.addCleanup(before.stdin.close)
        return a.start(env={"PATH": os.environ["PATH"]}), env, before

    def search(self, a):
        """All that an agent has, on disk and in memory."""
        wrong = self.search_files(a.spool, a.lake, a.config["dead_letters"]) + self.search_lake(a.lake)
        with open(a.log_path, "rb") as f:
            wrong += self.canary.found_in(f.read(), "the log")
        for command in (["status"], ["status", "--json"]):
            wrong += self.canary.found_in(a.ctl(*command).stdout.encode(errors="surrogateescape"), " ".join(command))
        return wrong

    def test_no_canary_but_the_one_that_is_asked_for(self):
        a, env, before = self.started()
        commands = self.commands()
        n = sum(argv[1:2] == ["privacy"] for argv in commands)
        self.run_all(env, commands)
        a.settle()
        wrong, searched, left_out = self.search_memory(a.pid)
        self.assertGreater(searched, 1 << 20)
        self.assertIn("anon_inode:bpf-map", " ".join(left_out), "the ring is left out of core files")
        wrong += self.search(a)
        self.assertEqual(0, a.stop(), a.log_text())
        wrong += self.search_files(a.spool, a.lake, a.config["dead_letters"]) + self.search_lake(a.lake)
        with open(a.log_path, "rb") as f:
            wrong += self.canary.found_in(f.read(), "the log")
        self.assertEqual([], wrong)
        topics = harness.read_lake(a.lake)
        programs = self.mine(topics)
        self.assert_redacted(programs, n)
        self.assert_traced(programs)
        self.assertEqual([], [hole for records in topics.values() for hole in harness.seq_holes(records)])
        ends = [r for r in topics["sluice.program"] if r["phase"] == "END"]
        self.assertEqual([], unforgiven(harness.losses(topics), len(ends), cuts(topics["sluice.program"])))
        found = [r for r in topics["sluice.program"] if r["pid"] == before.pid]
        self.assertIn("--password=***", found[0]["argv"])
        self.assert_untraced(found)

    def test_the_search_finds_what_is_there(self):
        """The same, asked for what the records do have: else it would prove nothing."""
        a, env, _ = self.started()
        self.canary.words.clear()
        word = self.canary("an argument that is no secret")
        keeper = subprocess.Popen(["/bin/sh", "-c", "read x", word], env=env, stdin=subprocess.PIPE)
        self.addCleanup(keeper.wait)
        self.addCleanup(keeper.stdin.close)
        a.settle()
        self.canary.words["the variable that is asked for"] = self.allowed
        wrong, _, _ = self.search_memory(a.pid)
        for what in self.canary.words:
            self.assertTrue(any(what in w for w in wrong), (what, wrong))
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual(2, len({w.split(": ")[-1] for w in self.search_lake(a.lake)}))
        self.assertTrue(self.search_files(a.spool), "notes in the journal have it, too")

    def test_a_reload_changes_what_is_kept(self):
        a, env, _ = self.started()

        def ran(*arguments):
            """The pid of a program that ran with these arguments, and is in the agent's hands."""
            p = subprocess.Popen(["/bin/true", *arguments], env=env)
            self.assertEqual(0, p.wait())
            return p.pid

        def reload(**keys):
            a.settle()
            a.configure(**keys)
            done = a.ctl("reload", check=True)
            self.assertNotIn("restart", done.stdout)

        c = self.canary
        both = ran("--pin=" + c("the pattern"), "--password=" + c("what is shipped"))
        reload(trace_env=[PARENT], argv={"redact": [r"own-(?<secret>\w+)"]})
        own = ran("own-" + c("the new pattern"), "--password=shown")
        reload(trace_env=[], argv={"redact": ["builtin"], "keep": "hash"})
        word = c("an argument of which only a hash is kept")
        hashes = [ran("x", word), ran("x", word), ran("x", word + "!"), ran("--password", c("of the first")),
                  ran("--password", c("of the second"))]
        alone = ran()
        reload(argv={"keep": "first"})
        first = ran(c("an argument that is not kept"))
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual([], self.search_lake(a.lake) + self.search_files(a.spool, a.lake))
        programs = {}
        for r in harness.read_lake(a.lake)["sluice.program"]:
            if r["exe"] == os.path.realpath("/bin/true"):
                programs.setdefault(r["pid"], []).append(r)
        for pid in (both, own, *hashes, alone, first):
            self.assertEqual(["START", "END"], [r["phase"] for r in programs[pid]])
            self.assertEqual(programs[pid][0]["argv"], programs[pid][1]["argv"])
        argv = {pid: programs[pid][0]["argv"][1:] for pid in programs}
        self.assertEqual(["--pin=***", "--password=***"], argv[both])
        self.assert_traced(programs[both])
        self.assertEqual(["own-***", "--password=shown"], argv[own])
        self.assertEqual([[PARENT]] * 2, [[v["name"] for v in r["variables"]] for r in programs[own]])
        for pid in hashes:
            self.assertEqual(1, len(argv[pid]))
            self.assertRegex(argv[pid][0], "^sha256:[0-9a-f]{32}$")
        same, again, other, one, two = (argv[pid] for pid in hashes)
        self.assertEqual(same, again)
        self.assertNotEqual(same, other)
        self.assertEqual(one, two, "a secret is in no hash")
        known = hashlib.sha256(f"{programs[first][0]['host_id']}\0x\0{word}\0".encode()).hexdigest()[:32]
        self.assertEqual(["sha256:" + known], same, "as sluice.yaml(5) says")
        self.assertEqual([], argv[alone])
        self.assertEqual([], argv[first])
        self.assert_untraced(programs[first])

    def test_edges_of_what_is_read(self):
        """An environment of any shape: too long, too many, twice, empty, not text."""
        a, _, _ = self.started()
        cases = {
            "longest": [VARIABLE + "=" + "v" * 512],
            "too-long": [VARIABLE + "=" + "v" * 513],
            "far-too-long": [VARIABLE + "=" + "v" * 70000, "A=b"],
            "empty": [VARIABLE + "="],
            "twice": [VARIABLE + "=one", VARIABLE + "=two"],
            "bytes": [VARIABLE + "=\udcff\n"],
            "none": [],
            "no-equals": [VARIABLE, "=" + VARIABLE, "", "A=b"],
            "last": ["A%d=b" % i for i in range(400)] + [VARIABLE + "=last"],
            "behind-the-limit": ["A%d=b" % i for i in range(700)] + [VARIABLE + "=never"],
            "behind-a-long-one": ["A=" + "x" * 60000, VARIABLE + "=seen"],
            "edge-1023": ["A=" + "x" * 1020, VARIABLE + "=seen"],
            "edge-1024": ["A=" + "x" * 1021, VARIABLE + "=seen"],
            "edge-1025": ["A=" + "x" * 1022, VARIABLE + "=seen"],
            "behind-empty-ones": ["", "A=b", "", "", VARIABLE + "=seen"],
            "both": [PARENT + "=no trace at all", VARIABLE + "=x"],
        }
        want = {
            "longest": "v" * 512, "too-long": None, "far-too-long": None, "empty": "", "twice": "one", "bytes": "\\xff\n",
            "none": None, "no-equals": None, "last": "last", "behind-the-limit": None, "behind-a-long-one": "seen",
            "edge-1023": "seen", "edge-1024": "seen", "edge-1025": "seen", "both": "x",
            "behind-empty-ones": "seen",
        }
        starter = os.path.join(self.room, "start.py")
        with open(starter, "w") as f:  # environments that a dict cannot be
            f.write("import ctypes, os, sys\n"
                    "argv = [b'/bin/true', b'privacy', sys.argv[1].encode()]\n"
                    "env = [os.fsencode(x) for x in sys.stdin.read().split('\\0')[:-1]]\n"
                    "array = lambda x: (ctypes.c_char_p * (len(x) + 1))(*x, None)\n"
                    "ctypes.CDLL(None).execve(b'/bin/true', array(argv), array(env))\n"
                    "os._exit(99)\n")
        for name, env in cases.items():
            done = subprocess.run([sys.executable, starter, name], input="".join(x + "\0" for x in env).encode("utf-8", "surrogateescape"),
                                  timeout=60)
            self.assertEqual(0, done.returncode, name)
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        topics = harness.read_lake(a.lake)
        starts = {r["argv"][2]: r for r in self.mine(topics, "START")}
        self.assertEqual(set(cases), set(starts))
        for name, value in want.items():
            got = {v["name"]: v["value"] for v in starts[name]["variables"]}
            self.assertEqual(value, got.get(VARIABLE), name)
            self.assertIsNone(starts[name]["trace_id"], name)
        self.assertEqual({PARENT, VARIABLE}, {v["name"] for v in starts["both"]["variables"]})
        # What a limit of ours left out is counted, and so is nothing else.
        self.assertEqual([("on_exec", "cut")], [(place, reason) for place, reason, _ in harness.losses(topics) if place == "on_exec"])

    def test_a_core_file(self):
        """As the kernel or gdb would write it."""
        gcore = subprocess.run(["sh", "-c", "command -v gcore"], stdout=subprocess.PIPE, text=True).stdout.strip()
        if not gcore:
            self.fail("gcore is not installed; run ./dev/install test")
        a, env, _ = self.started()
        with open(harness.SLUICE, "rb") as f:
            if b"__asan_init" in f.read():
                self.skipTest("a sanitizer's address space is too large for a core file")
        self.run_all(env, self.commands())
        a.settle()
        core = os.path.join(self.room, "core")
        subprocess.run([gcore, "-o", core, str(a.pid)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        found = glob.glob(core + ".*")
        self.assertEqual(1, len(found))
        with open(found[0], "rb") as f:
            data = f.read()
        self.assertGreater(len(data), 1 << 20)
        self.assertEqual([], self.canary.found_in(data, "the core file"))
        a.signal(signal.SIGCONT)
        self.assertEqual(0, a.stop(), a.log_text())


class Run(PrivacyTest):
    def test_no_canary_but_the_one_that_is_asked_for(self):
        env = {**self.environment(), "PYTHON": sys.executable}
        commands = [c for c in self.commands() if "--pin=" not in " ".join(c)]
        self.canary.words = {k: v for k, v in self.canary.words.items() if "own" not in k}
        listing = os.path.join(self.room, "commands.json")
        with open(listing, "w") as f:
            json.dump(commands, f)
        driver = os.path.join(self.room, "driver.py")
        with open(driver, "w") as f:
            f.write("import json, subprocess\n"
                    f"for argv in json.load(open({listing!r})):\n"
                    "    subprocess.run(argv, executable=argv[0] if argv[0][0] == '/' else '/bin/true', stdout=-3, stderr=-3)\n")
        report = os.path.join(self.room, "report.json")
        done = harness.run_sluice(["run", "--lake", self.lake, "--json", report, "--trace-env", VARIABLE, "--trace-env", PARENT,
                                   "--", sys.executable, driver, "--password", self.canary("the command itself")], env=env, cwd=self.room)
        self.assertEqual(0, done.returncode, done.stderr)
        wrong = self.search_lake(self.lake) + self.search_files(self.lake)
        with open(report, "rb") as f:
            wrong += self.canary.found_in(f.read(), "--json")
        wrong += self.canary.found_in((done.stdout + done.stderr).encode("utf-8", "surrogateescape"), "the table")
        self.assertEqual([], wrong)
        topics = harness.read_lake(self.lake)
        programs = self.mine(topics)
        self.assertGreater(len(programs), 19)
        self.assert_traced(programs)
        for r in programs:
            self.assertIn("***", " ".join(r["argv"]), r["argv"])
        self.assert_nothing_lost(topics)

    def test_without_being_asked_nothing_is_read(self):
        done = self.sluice_run("/bin/true", "privacy", env={**self.environment(), "PATH": os.environ["PATH"]}, options=["--quiet"])
        self.assertEqual(0, done.returncode, done.stderr)
        self.canary.words["a variable that nobody named"] = self.allowed
        self.canary.words["TRACEPARENT that nobody named"] = self.trace_id
        self.assertEqual([], self.search_lake(self.lake) + self.search_files(self.lake))
        self.assert_untraced(self.mine(harness.read_lake(self.lake)))

    def test_wrong_names_are_refused(self):
        for name in ("", "A-B", "1A", "A*", "A=", "é", "x" * 64):
            done = self.sluice_run("true", options=["--trace-env", name])
            self.assertEqual(2, done.returncode, (name, done.stderr))
            self.assertIn("exact name", done.stderr)
        done = self.sluice_run("true", options=["--trace-env", "A"] * 9)
        self.assertEqual(2, done.returncode, done.stderr)


if __name__ == "__main__":
    harness.main()
