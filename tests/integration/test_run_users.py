# SPDX-License-Identifier: Apache-2.0
"""`sluice run` of users without any right, beside an agent: each has its own programs, and nothing of anyone else."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import harness
from agent import AgentTest
from test_reader import children, proc_status

ALICE, BOB = 54323, 54324  # uids of no account
LOAD = "for i in 1 2 3; do /bin/true; done; (sleep 0.2 & wait); ls / | sort >/dev/null; false"


def as_user(uid, *command):
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *command]


class UsersTest(AgentTest):
    def setUp(self):
        super().setUp()
        os.chmod(self.room, 0o755)
        self.sluice = shutil.copy(harness.SLUICE, self.room)  # where any user may execute it
        os.chmod(self.sluice, 0o755)

    def home(self, uid):
        home = os.path.join(self.room, f"home-{uid}")
        if not os.path.isdir(home):
            os.mkdir(home, 0o700)
            os.chown(home, uid, uid)
        return home

    def command(self, uid, a, *command, options=()):
        return as_user(uid, self.sluice, "run", "--control", a.run_socket, *options, "--", *command)

    def run_as(self, uid, a, *command, options=(), prefix=(), **kw):
        home = self.home(uid)
        return subprocess.run([*prefix, *self.command(uid, a, *command, options=options)], cwd=home, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120 * harness.PATIENCE,
                              env=harness.plain_environment(HOME=home), **kw)

    def lake_of(self, uid):
        return os.path.join(self.home(uid), "sluice-lake")

    def suid(self, program):
        """A copy of a program that runs as root for any user who starts it."""
        path = shutil.copy(program, os.path.join(self.room, "suid-" + os.path.basename(program)))
        os.chmod(path, 0o4755)
        return path

    def ends(self, lake):
        return [r for r in harness.read_lake(lake)["sluice.program"] if r["phase"] == "END"]


class Run(UsersTest):
    def test_records_are_those_of_the_agent(self):
        a = self.agent().start()
        done = self.run_as(ALICE, a, "sh", "-c", LOAD, options=["--run", "mine", "--pipeline", "p", "--json", "-"])
        self.assertEqual(1, done.returncode, done.stderr)
        summary = json.loads(done.stdout)
        self.assertEqual((f"mine.u{ALICE}", 8, 0, 0, []), tuple(summary[k] for k in ("run_id", "programs", "lost", "withheld", "losses")))
        a.settle(tasks=True)
        a.stop()
        mine = {r["program_id"]: r for r in self.ends(self.lake_of(ALICE))}
        others = {r["program_id"]: r for r in self.ends(a.lake) if r["run_id"] == summary["run_id"]}
        self.assertEqual(8, len(mine))
        self.assertEqual(set(others), set(mine))
        for key, r in mine.items():
            for name in ("argv", "exe", "cwd", "uid", "cgroup", "usage", "exit_code", "tool", "task", "pipeline"):
                self.assertEqual(others[key][name], r[name], (name, r["argv"]))
        self.assertEqual({ALICE}, {r["uid"] for r in mine.values()})
        # The lake is the user's own.
        self.assertEqual((ALICE, ALICE), (os.stat(self.lake_of(ALICE)).st_uid, os.stat(self.lake_of(ALICE)).st_gid))

    def test_is_that_of_the_command_in_all_else(self):
        a = self.agent().start()
        done = self.run_as(ALICE, a, "sh", "-c", "kill -TERM $$")
        self.assertEqual(128 + signal.SIGTERM, done.returncode, done.stderr)
        done = self.run_as(ALICE, a, "/does/not/exist")
        self.assertEqual(127, done.returncode, done.stderr)
        process = subprocess.Popen(self.command(ALICE, a, "sh", "-c", "trap 'exit 9' USR1; echo; while :; do sleep 0.1; done"),
                                   cwd=self.home(ALICE), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        process.stdout.readline()
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(9, process.wait(60 * harness.PATIENCE))

    def test_it_is_confined_and_its_command_is_not(self):
        a = self.agent().start()
        bin_dir = os.path.join(self.room, "bin")
        os.mkdir(bin_dir)
        os.symlink("/bin/true", os.path.join(bin_dir, "sluice-tune"))
        run = subprocess.Popen(self.command(ALICE, a, "sh", "-c", "echo $$; read x", options=["--quiet", "--report", "page"]), cwd=self.home(ALICE), text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.plain_environment(PATH=bin_dir + ":/usr/bin:/bin"))
        self.addCleanup(lambda: [f.close() for f in (run.stdin, run.stdout, run.stderr)])
        self.addCleanup(lambda: run.poll() is None and (run.kill(), run.wait()))
        command = run.stdout.readline().strip()
        status = {name: [proc_status(pid)[name] for pid in (run.pid, command)] for name in ("CapEff", "NoNewPrivs", "Seccomp")}
        self.assertEqual({"CapEff": ["0" * 16] * 2, "NoNewPrivs": ["1", "0"], "Seccomp": ["2", "0"]}, status)
        # So are its other processes, who are the user's, too: of the group's signals, of the report, and those that read.
        want = {"run-witness": "2", "run-report": "0", "sluice-nursery": "2", "sluice-reader": "2"}
        until, others = time.monotonic() + 30 * harness.PATIENCE, {}
        while {comm: s["Seccomp"] for comm, s in others.items()} != want and time.monotonic() < until:
            time.sleep(0.05)
            others = {comm: proc_status(pid) for pid, comm in children(run.pid).items() if comm != "sh"}
        self.assertEqual(want, {comm: s["Seccomp"] for comm, s in others.items()})
        for comm, s in others.items():
            self.assertEqual((["0" * 16] * 4, "1", [str(ALICE)] * 4), ([s[x] for x in ("CapInh", "CapPrm", "CapEff", "CapAmb")], s["NoNewPrivs"], s["Uid"].split()), comm)
        err = run.communicate("\n", timeout=60 * harness.PATIENCE)[1]
        self.assertEqual((0, ""), (run.returncode, err))
        self.assertEqual(1, len(self.ends(self.lake_of(ALICE))))

    def test_each_user_has_own_programs_alone(self):
        """Two runs at once; that of the one has nothing of the other, neither programs nor control groups."""
        a = self.agent().start()
        processes = [subprocess.Popen(self.command(uid, a, "sh", "-c", f"for i in 1 2 3; do env who-{uid}=x true; sleep 0.5; done"),
                                      cwd=self.home(uid), stderr=subprocess.PIPE, text=True) for uid in (ALICE, BOB)]
        for process in processes:
            err = process.communicate(timeout=60)[1]
            self.assertEqual(0, process.returncode, err)
        for uid, other in ((ALICE, BOB), (BOB, ALICE)):
            topics = harness.read_lake(self.lake_of(uid))
            self.assertEqual({uid}, {r["uid"] for r in topics["sluice.program"]})
            self.assertEqual({f"u{uid}"}, {r["run_id"].rpartition(".")[2] for r in topics["sluice.program"]})
            self.assertIn(f"who-{uid}", json.dumps(topics["sluice.program"]))
            self.assertNotIn(f"who-{other}", json.dumps({k: str(v) for k, v in topics.items()}))

    def test_a_setuid_program_is_withheld_and_counted(self):
        a = self.agent().start()
        env = self.suid("/usr/bin/env")
        script = (f"/bin/true; {env} secret-argument=1 true; sh -c 'exec {env} true'; "
                  f"{env} setpriv --reuid {ALICE} --regid {ALICE} --clear-groups ls /; exit 4")
        done = self.run_as(ALICE, a, "sh", "-c", script, options=["--json", "summary", "--pipeline", "p"])
        self.assertEqual(4, done.returncode, done.stderr)
        with open(os.path.join(self.home(ALICE), "summary")) as f:
            summary = json.load(f)
        # env and true, twice; env and setpriv
        self.assertEqual((6, 0), (summary["withheld"], summary["lost"]), done.stderr)
        self.assertIn("6 programs ran with other rights than this user's, as with sudo: only the agent of this host records them", done.stderr)
        topics = harness.read_lake(self.lake_of(ALICE))
        self.assertEqual(sorted(["sh", "sh", "true", "ls"]), sorted(r["comm"] for r in self.ends(self.lake_of(ALICE))))
        self.assertEqual([], harness.losses(topics))
        self.assertNotIn("secret-argument=1", [x for r in topics["sluice.program"] for x in r["argv"]])
        a.settle()
        a.stop()
        told = [r for r in self.ends(a.lake) if r["run_id"] == summary["run_id"]]
        self.assertEqual(10, len(told))
        self.assertEqual(3, sum(r["comm"] == "true" for r in told))
        self.assertIn("secret-argument=1", [x for r in told for x in r["argv"]])

    def test_what_may_do_more_than_its_user_is_withheld(self):
        """By another group, or by capabilities of its file, as ping has them; not what has them of the user."""
        a = self.agent().start()
        setgid = shutil.copy("/usr/bin/env", os.path.join(self.room, "setgid-env"))
        os.chown(setgid, 0, BOB)
        os.chmod(setgid, 0o2755)
        capable = shutil.copy("/usr/bin/env", os.path.join(self.room, "capable-env"))
        subprocess.run(["setcap", "cap_net_raw+p", capable], check=True)
        # Each runs true in its place: one that another group may still use, by its saved id, and one without capabilities.
        script = (f"/bin/true; {setgid} secret-of-group=1 true; {capable} secret-of-file=1 true; "
                  f"unshare --user --map-root-user {capable} plain=1 true")
        done = self.run_as(ALICE, a, "sh", "-c", script, options=["--json", "-"])
        self.assertEqual(0, done.returncode, done.stderr)
        summary = json.loads(done.stdout)
        # Both of the setgid one, and the one with capabilities.
        self.assertEqual((3, 0), (summary["withheld"], summary["lost"]), done.stderr)
        ends = self.ends(self.lake_of(ALICE))
        self.assertEqual(sorted(["sh", "true", "true", "unshare", "capable-env", "true"]), sorted(r["comm"] for r in ends))
        told = [x for r in ends for x in r["argv"]]
        self.assertIn("plain=1", told)
        self.assertFalse({"secret-of-group=1", "secret-of-file=1"} & set(told))

    def test_a_child_that_becomes_another_for_a_moment_is_withheld(self):
        """It never calls exec, and ends before a pass sees it: its end alone has what it was."""
        a = self.agent().start()
        python = self.suid("/usr/bin/python3")
        child = f"import os; os.fork() or os.setresuid({ALICE}, {ALICE}, 0) or os._exit(0); os.wait()"
        script = f"import os; os.setresuid(0, 0, 0); os.execl('/usr/bin/python3', 'python3', '-I', '-c', {child!r})"
        done = self.run_as(ALICE, a, python, "-I", "-c", script, options=["--json", "-"])
        self.assertEqual(0, done.returncode, done.stderr)
        summary = json.loads(done.stdout)
        self.assertEqual((0, 3, 0), tuple(summary[k] for k in ("programs", "withheld", "lost")), done.stderr)

    def test_a_command_that_is_a_setuid_program(self):
        a = self.agent().start()
        done = self.run_as(ALICE, a, self.suid("/usr/bin/env"), "sh", "-c", "exit 3", options=["--json", "-"])
        self.assertEqual(3, done.returncode, done.stderr)
        summary = json.loads(done.stdout)
        self.assertEqual((0, 2, 0), tuple(summary[k] for k in ("programs", "withheld", "lost")))
        self.assertNotIn("was not seen", done.stderr)

    def test_root_of_a_user_namespace_is_the_user_who_made_it(self):
        a = self.agent().start()
        done = subprocess.run(as_user(ALICE, "unshare", "--user", "--map-root-user", self.sluice, "run", "--control", a.run_socket, "--json", "-",
                                      "--", "sh", "-c", "id -u; id -u >/dev/null"), cwd=self.home(ALICE), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(0, done.returncode, done.stderr)
        number, summary = done.stdout.split("\n", 1)
        summary = json.loads(summary)
        self.assertEqual(("0", 3, 0), (number, summary["programs"], summary["withheld"]))
        self.assertTrue(summary["run_id"].endswith(f".u{ALICE}"), summary["run_id"])

    def test_without_an_agent_one_sentence_says_both_ways(self):
        a = self.agent(run_socket="off")
        for path, why in ((a.run_socket, "no agent listens at " + a.run_socket), (a.control, "no agent listens at " + a.control)):
            a.run_socket = path
            done = self.run_as(ALICE, a, "touch", "ran")
            self.assertEqual((125, ""), (done.returncode, done.stdout))
            self.assertIn(f"sluice run: without root it takes an agent of this host, which any user may use: {why}; with root it needs none", done.stderr)
            self.assertIn("    sudo sluice run ", done.stderr)
            self.assertEqual([], os.listdir(self.home(ALICE)))
        a.start()  # its control socket is not for this user
        done = self.run_as(ALICE, a, "touch", "ran")
        self.assertEqual(125, done.returncode)
        self.assertIn("this user may not use the agent at " + a.control, done.stderr)
        done = self.run_as(ALICE, a, "touch", "ran", options=["--own-probes"])
        self.assertIn("--own-probes asks for probes of its own", done.stderr)
        self.assertEqual([], os.listdir(self.home(ALICE)))

    def test_the_doctor_says_whether_runs_need_root(self):
        done = subprocess.run(as_user(ALICE, harness.SLUICE, "doctor"), capture_output=True, text=True, timeout=60 * harness.PATIENCE)
        self.assertEqual((125, ""), (done.returncode, done.stdout))
        self.assertIn("only root may load probes", done.stderr)
        if os.path.exists("/run/sluice/run.sock"):  # an agent that is not this test's
            self.assertIn("`sluice run`", done.stderr)
        else:
            self.assertIn("`sluice run` needs root here, too: no agent listens at /run/sluice/run.sock\n", done.stderr)


# Subscribes as in `sluice run` to each process named, with the run named, and prints the agent's answer or its end.
ASK = """
import json, os, socket, sys, time
at, version = sys.argv[1:3]
def ask(command, **args):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(at)
    s.sendall(json.dumps({"command": command, "args": {"version": version, **args}}).encode() + b"\\n")
    answer = b""
    while not answer.endswith(b"\\n"):
        part = s.recv(1)
        if not part:
            return {"ok": None}, s
        answer += part
    return json.loads(answer), s
def child(run=lambda: None):
    gone, ready = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(gone[1])
        run()
        os.write(ready[1], b"x")
        os.read(gone[0], 1)  # until this process is over
        os._exit(0)
    os.close(gone[0])
    os.read(ready[0], 1)
    os.set_inheritable(gone[1], True)
    return pid
"""


class Refused(UsersTest):
    def ask(self, uid, a, script, *args):
        done = subprocess.run(as_user(uid, "/usr/bin/python3", "-c", ASK + script, a.run_socket, a.status()["version"], *map(str, args)),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60 * harness.PATIENCE, cwd="/")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout.splitlines()

    def sleeper(self, uid):
        process = subprocess.Popen(as_user(uid, "sleep", "600"))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.pid

    def test_what_is_not_the_clients_own_child(self):
        a = self.agent().start()
        script = """
for pid in sys.argv[3:]:
    print(ask("subscribe", pid=pid, run="r")[0].get("error"))
print(ask("subscribe", pid=str(child()), run="r")[0]["ok"])
pid = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "5")
time.sleep(1)
print(ask("subscribe", pid=str(pid), run="r")[0].get("error"))
os.kill(pid, 9)
print(ask("subscribe", pid=str(child(child)), run="r")[0].get("error"))
"""
        mine, others = self.sleeper(ALICE), self.sleeper(BOB)
        self.assertEqual([f"the process {mine} is no child of the one that asks for its events",
                          f"the process {others} runs, or may run, as another user than the one who asks", "True"],
                         (said := self.ask(ALICE, a, script, mine, others))[:3])
        self.assertRegex(said[3], r"\Athe process \d+ has called exec already\Z")
        self.assertRegex(said[4], r"\Athe process \d+ has children already\Z")

    def test_a_child_that_is_or_may_become_another_user(self):
        """As root of the agent's pid namespace, but without the rights of root: a child of it changes its user."""
        a = self.agent().start()
        script = """
def become(*uids):
    def f():
        os.setresuid(*uids)
    return f
bob, alice = int(sys.argv[3]), int(sys.argv[4])
children = [child(become(*uids)) for uids in ((bob, bob, bob), (alice, bob, alice), (alice, alice, bob), (alice, alice, alice))]
os.setresuid(alice, alice, alice)
for pid in children:
    print(ask("subscribe", pid=str(pid), run="r")[0]["ok"])
"""
        self.assertEqual(["False", "False", "False", "True"], self.ask(0, a, script, BOB, ALICE))

    def test_a_run_id_is_of_its_user_alone(self):
        """Whatever id a user names, it ends with the uid: it is that of no other user, engine or scheduler."""
        a = self.agent().start()
        theirs = self.run_as(BOB, a, "sh", "-c", "sleep 1", options=["--run", "x", "--json", "-"])
        script = """
for run in sys.argv[3:]:
    print(ask("subscribe", pid=str(child()), run=run)[0]["message"])
"""
        said = self.ask(ALICE, a, script, "x", f"x.u{BOB}", f"x.u{ALICE}")
        self.assertEqual(f"x.u{BOB}", json.loads(theirs.stdout)["run_id"])
        self.assertEqual([f"1 process is in run {run} from now on" for run in (f"x.u{ALICE}", f"x.u{BOB}.u{ALICE}", f"x.u{ALICE}")], said)

    def test_a_run_inside_another(self):
        """Of the same user it is the inner one's; out of a run of root no user takes a process."""
        a = self.agent().start()
        done = self.run_as(ALICE, a, *self.command(ALICE, a, "/bin/true", options=["--run", "inner"])[6:], options=["--run", "outer"])
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(f"inner.u{ALICE}", next(r["run_id"] for r in self.ends(self.lake_of(ALICE)) if r["comm"] == "true"))
        shutil.rmtree(self.lake_of(ALICE))
        done = harness.run_sluice(["run", "--quiet", "--lake", self.lake, "--control", a.control, "--", *self.command(ALICE, a, "/bin/true")],
                                  cwd=self.home(ALICE))
        self.assertEqual(125, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r"the process \d+ is in a run that root or another user began")
        self.assertFalse(os.path.exists(self.lake_of(ALICE)))

    def test_only_what_concerns_own_processes(self):
        a = self.agent().start()
        script = """
for command in ("status", "tag", "explain", "rules", "reload", "settle"):
    answer = ask(command, pid=sys.argv[3], run="r")[0]
    print(command, answer["ok"], answer["error"].split(";")[0])
"""
        self.assertEqual([f"{command} False the agent has no command '{command}'"
                          for command in ("status", "tag", "explain", "rules", "reload", "settle")], self.ask(ALICE, a, script, self.sleeper(ALICE)))
        self.assertEqual(0o666, os.stat(a.run_socket).st_mode & 0o777)
        self.assertEqual(0o600, os.stat(a.control).st_mode & 0o717)

    def test_who_says_nothing_is_disconnected(self):
        a = self.agent().start()
        script = """
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(at)
print(s.recv(100))
"""
        begin = time.monotonic()
        self.assertEqual(["b''"], self.ask(ALICE, a, script))
        self.assertGreater(time.monotonic() - begin, 4)

    def test_a_flood_of_runs_leaves_some_to_the_next_user(self):
        a = self.agent().start()
        script = """
kept = []
for i in range(60):
    try:
        answer, s = ask("subscribe", pid=str(child()), run="r%d" % i)
    except OSError:  # too many connections at once
        continue
    if answer["ok"] is False:  # too many; ten seconds later those that never call exec are no more
        break
    if answer["ok"]:
        kept.append(s)
print(len(kept))
sys.stdout.flush()
sys.stdin.read()
"""
        flood = subprocess.Popen(as_user(ALICE, "/usr/bin/python3", "-c", ASK + script, a.run_socket, a.status()["version"]),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        self.addCleanup(flood.stdout.close)
        self.addCleanup(flood.wait)
        self.addCleanup(flood.stdin.close)
        self.assertEqual("7\n", flood.stdout.readline())
        done = self.run_as(BOB, a, "/bin/true", options=["--json", "-"])
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual((1, 0), tuple(json.loads(done.stdout)[k] for k in ("programs", "lost")))


if __name__ == "__main__":
    harness.main()
