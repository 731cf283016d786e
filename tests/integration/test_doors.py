# SPDX-License-Identifier: Apache-2.0
"""The agent's doors while another user hammers at them: what that costs is bounded, and no other user is kept out."""
import json
import os
import pwd
import shutil
import socket
import statistics
import subprocess
import time

import faults
import harness
from agent import AgentTest

STRANGER, MEMBER = 54321, 54322  # uids of no account
SECONDS = 5
SHARE = 0.05  # of a CPU, with what the agent does for itself
ANSWERS_S = 1
UNTOLD_S = 5  # that a run waits for the kernel to free its last process, until its end is made up
START_S = 0.05  # by which `sluice run` of any user delays a command

# Eight threads that ask as fast as they can, for so many seconds: {port} or {socket}, and what they send.
HAMMER = """
import socket, sys, threading, time
end, counts = time.monotonic() + float(sys.argv[1]), [0, 0]
at, said = eval(sys.argv[2]), sys.argv[3].encode().decode("unicode_escape").encode()
def ask():
    while time.monotonic() < end:
        try:
            with socket.socket(socket.AF_UNIX if isinstance(at, str) else socket.AF_INET) as s:
                s.settimeout(1)
                s.connect(at)
                s.sendall(said)
                got = s.recv(65536)
                counts[0 if got else 1] += 1
                while got:
                    got = s.recv(65536)
        except OSError:
            counts[1] += 1
threads = [threading.Thread(target=ask) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(*counts)
"""


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Hammered(AgentTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("setpriv"):
            self.skipTest("setpriv (util-linux) is not installed")

    def hammer(self, uid, at, said, gid=None, seconds=SECONDS):
        """The hammer, as a process that ends by itself."""
        process = subprocess.Popen(["setpriv", "--reuid", str(uid), "--regid", str(gid or uid), "--clear-groups", "/usr/bin/python3", "-c",
                                    HAMMER, str(seconds), repr(at), said], cwd="/", stdout=subprocess.PIPE, text=True,
                                   env=harness.plain_environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 60)
        return process

    def under(self, a, process, meanwhile=(), late=lambda: 0):
        """The share of a CPU that the agent takes until the process ends; each of meanwhile is done again and again, in time.

        late: asked where some were slow: how many may be so.
        """
        took = []
        begin, before = time.monotonic(), cpu_s(a.pid)
        while process.poll() is None:
            for action in meanwhile:
                at = time.monotonic()
                action()
                took.append(time.monotonic() - at)
            time.sleep(0.2)  # between two attempts of a user who is no attacker
        share = (cpu_s(a.pid) - before) / (time.monotonic() - begin)
        answered, unanswered = map(int, process.stdout.read().split())
        print(f"{self.id()}: {share:.1%} of a CPU; {answered} answered, {unanswered} not; "
              f"others: {len(took)} answers, the slowest {max(took, default=0):.2f} s")
        self.assertEqual(0, process.returncode)
        slow = [s for s in took if s >= ANSWERS_S * harness.PATIENCE]
        if slow:
            self.assertLessEqual(len(slow), late())
            self.assertLess(max(slow), UNTOLD_S + ANSWERS_S * harness.PATIENCE)
        return share, answered

    def limits(self, a):
        return {(x["door"], x["reason"]): x["count"] for x in a.status()["doors"]["limits"]}

    def free_port(self):
        with socket.create_server(("127.0.0.1", 0)) as s:
            return s.getsockname()[1]


class Metrics(Hammered):
    def test_a_flood_at_the_port_costs_little(self):
        port = self.free_port()
        a = self.agent(metrics=f"127.0.0.1:{port}").start()
        share, answered = self.under(a, self.hammer(STRANGER, ("127.0.0.1", port), r"GET /metrics HTTP/1.0\r\n\r\n"),
                                     [lambda: a.ctl("status", check=True)])
        self.assertLess(share, SHARE)
        self.assertGreater(answered, 10)
        self.assertGreater(self.limits(a)["metrics", "rate"], 0)
        self.assertEqual(0, a.stop())

    def test_bytes_that_drip_cost_little(self):
        """Each of the bytes wakes the agent; a request may come in so many pieces only."""
        port = self.free_port()
        a = self.agent(metrics=f"127.0.0.1:{port}").start()
        drip = """
import socket, sys, time
end, open_, sent = time.monotonic() + float(sys.argv[1]), [], 0
while time.monotonic() < end:
    if len(open_) < 30:
        s = socket.socket()
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.settimeout(0.1)
        try:
            s.connect(eval(sys.argv[2]))
            open_.append(s)
        except OSError:
            s.close()
    for s in list(open_):
        try:
            s.send(b"x", socket.MSG_DONTWAIT)
            sent += 1
        except OSError:
            s.close()
            open_.remove(s)
print(sent, 0)
"""
        process = subprocess.Popen(["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups", "/usr/bin/python3", "-c",
                                    drip, str(SECONDS), repr(("127.0.0.1", port))], cwd="/", stdout=subprocess.PIPE, text=True,
                                   env=harness.plain_environment())
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 60)
        share, _ = self.under(a, process, [lambda: a.ctl("status", check=True)])
        self.assertLess(share, SHARE)
        self.assertGreater(self.limits(a)["metrics", "malformed"], 0)
        self.assertEqual(0, a.stop())

    def test_the_socket_answers_while_the_port_is_flooded(self):
        port = self.free_port()
        a = self.agent(metrics_group="nogroup")
        a.configure(metrics=[f"127.0.0.1:{port}", "unix:" + a.metrics])
        a.start()
        self.assertEqual(0o660, os.stat(a.metrics).st_mode & 0o777)

        def scrape():
            status, text = faults.get(a, "/metrics")
            self.assertEqual(200, status)
            self.assertIn('sluice_door_limits_total{door="metrics",reason="rate"} ', text)
        share, _ = self.under(a, self.hammer(STRANGER, ("127.0.0.1", port), r"GET /metrics HTTP/1.0\r\n\r\n"), [scrape])
        self.assertLess(share, SHARE)
        # Not for the user who floods.
        refused = subprocess.run(["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups", "/usr/bin/python3", "-c",
                                  "import socket; socket.socket(socket.AF_UNIX).connect(%r)" % a.metrics],
                                 stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertIn("PermissionError", refused.stderr)
        self.assertEqual(0, a.stop())

    def test_a_port_that_another_has_is_a_problem_of_the_status(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            a = self.agent()
            a.configure(metrics=[f"127.0.0.1:{port}", "unix:" + a.metrics])
            a.start()
            status = a.status()
            self.assertIn(f"127.0.0.1:{port}: is in use by another program", status["doors"]["metrics_error"])
            self.assertIn(("error", f"no metrics at {status['doors']['metrics_error']}; what is read there is not the agent's"),
                          {(p["severity"], p["text"]) for p in status["problems"]})
            self.assertIn(f"!! no metrics at 127.0.0.1:{port}", a.ctl("status").stdout)
            self.assertIn("\nsluice_metrics_up 0\n", faults.get(a, "/metrics")[1])
        a.wait_log("metrics.open", 60, count=2)
        self.assertIsNone(a.status()["doors"]["metrics_error"])
        self.assertEqual(0, a.stop())


class Control(Hammered):
    def test_a_reader_reads_and_changes_nothing(self):
        own = shutil.copy(harness.SLUICE, os.path.join(self.room, "sluice"))
        os.chmod(own, 0o755)
        a = self.agent(control_group="games", control_read_group="nogroup").start()
        nogroup = 65534

        def ctl(*words, gid=nogroup):
            return subprocess.run(["setpriv", "--reuid", str(MEMBER), "--regid", str(gid), "--clear-groups", own, "ctl", "--socket", a.control,
                                   *words], env=harness.plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=60)
        sleeper = subprocess.Popen(["sleep", "60"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        for words in (["status"], ["help"], ["rules", "list"]):
            done = ctl(*words)
            self.assertEqual((0, ""), (done.returncode, done.stderr), words)
        quiet = ["rules", "add", "quiet", "exclude: [{exe: stress}]"]
        tag = ["tag", "--pid", str(sleeper.pid), "--run", "r"]
        for words in (quiet, ["rules", "remove", "quiet"], ["reload"], ["attach", "network"], ["detach", "network"], ["settle"], tag):
            done = ctl(*words)
            self.assertEqual((1, ""), (done.returncode, done.stdout), words)
            self.assertIn("only root and the members of the group games may", done.stderr)
        self.assertEqual(7, self.limits(a)["control", "rights"])
        own_sleeper = subprocess.Popen(["setpriv", "--reuid", str(MEMBER), "--regid", str(nogroup), "--clear-groups", "sleep", "60"])
        self.addCleanup(own_sleeper.wait)
        self.addCleanup(own_sleeper.kill)
        a.wait(lambda: os.stat(f"/proc/{own_sleeper.pid}").st_uid == MEMBER, 10, "the process of the other user")
        done = ctl("tag", "--pid", str(own_sleeper.pid), "--run", "r")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        for words in (quiet, ["settle"]):  # what an administrator may
            done = ctl(*words, gid=60)
            self.assertEqual((0, ""), (done.returncode, done.stderr), words)
        done = ctl("status", gid=STRANGER)
        self.assertEqual(1, done.returncode)
        self.assertIn("only root and the members", done.stderr)
        self.assertEqual(0, a.stop())

    def test_a_reader_who_floods_keeps_no_other_out(self):
        a = self.agent(control_group="games", control_read_group="nogroup").start()
        ask = json.dumps({"command": "status"}).replace("\\", "\\\\") + r"\n"
        share, answered = self.under(a, self.hammer(MEMBER, a.control, ask, gid=65534), [lambda: a.ctl("status", check=True)])
        self.assertLess(share, SHARE)
        self.assertGreater(answered, 10)
        limits = self.limits(a)
        self.assertGreater(limits["control", "rate"], 0)
        self.assertGreater(limits["control", "crowded"], 0)
        self.assertEqual(0, a.stop())

    def test_the_account_of_the_agent_may_do_everything(self):
        own = shutil.copy(harness.SLUICE, os.path.join(self.room, "sluice"))
        os.chmod(own, 0o755)
        a = self.agent(control_group="games", control_read_group="games").start()
        nobody = pwd.getpwnam("nobody")
        done = subprocess.run(["setpriv", "--reuid", str(nobody.pw_uid), "--regid", str(STRANGER), "--clear-groups", own, "ctl", "--socket",
                               a.control, "reload"], env=harness.plain_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=60)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual(0, a.stop())


# Subscribes to the events of so many children of its own, says how many connections are open then, and what became of one on
# which something is sent: b"" is its end.
SUBSCRIBER = """
import ctypes, json, os, socket, sys, time
at, version, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
open_ = []
for i in range(n):
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
        time.sleep(60)
        os._exit(0)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(at)
    s.sendall(json.dumps({"command": "subscribe", "args": {"version": version, "pid": str(pid), "run": "r%d" % i}}).encode() + b"\\n")
    answer = b""
    while not answer.endswith(b"\\n"):
        part = s.recv(1)
        assert part, answer
        answer += part
    if json.loads(answer)["ok"]:
        open_.append(s)
    else:
        print(i, "too many runs of this user" in answer.decode())
def ended(s):
    try:
        while s.recv(65536):
            pass
        return True
    except (BlockingIOError, TimeoutError):
        return False
    except ConnectionResetError:
        return True
for s in open_:
    s.settimeout(0.1)
print(sum(not ended(s) for s in open_))
open_[0].settimeout(30)
open_[0].sendall(b"x")
print(ended(open_[0]))
"""


class Run(Hammered):
    def as_member(self, *command, **kw):
        return subprocess.run(["setpriv", "--reuid", str(MEMBER), "--regid", "65534", "--clear-groups", *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, **kw)

    def own_home(self):
        """A copy of the program that any user may execute, and a folder of the member's."""
        own = shutil.copy(harness.SLUICE, os.path.join(self.room, "sluice"))
        home = os.path.join(self.room, "home")
        os.mkdir(home)
        os.chown(home, MEMBER, 65534)
        os.chmod(self.room, 0o755)
        return own, home

    def test_a_reader_has_the_events_of_its_own_run(self):
        own, home = self.own_home()
        a = self.agent(control_group="games", control_read_group="nogroup").start()
        done = self.as_member(own, "run", "--lake", os.path.join(home, "lake"), "--control", a.control, "--json", "-", "--", "sh", "-c",
                              "/bin/true; id -u", cwd=home, env=harness.plain_environment(HOME=home))
        self.assertEqual(0, done.returncode, done.stderr)
        number, summary = done.stdout.split("\n", 1)
        summary = json.loads(summary)
        self.assertEqual((str(MEMBER), 3, 0), (number, summary["programs"], summary["lost"]))
        self.assertEqual(0, a.stop())

    def test_a_flood_at_the_socket_of_all_users_keeps_no_other_out(self):
        """Requests to follow a process that is not there, each of which looks at all processes."""
        own, home = self.own_home()
        a = self.agent().start()
        ask = json.dumps({"command": "subscribe", "args": {"version": a.status()["version"], "pid": "4194303", "run": "r"}})

        def made_up():  # of one run at most, since the kernel seldom leaves an end out
            self.assertEqual(0, a.stop())
            return min(1, harness.events_counted(harness.read_lake(a.lake), "end_synthesized"))

        def run():
            done = self.as_member(own, "run", "--quiet", "--lake", os.path.join(home, "lake"), "--control", a.run_socket, "--", "/bin/true",
                                  cwd=home, env=harness.plain_environment(HOME=home))
            self.assertEqual((0, ""), (done.returncode, done.stderr))
        share, _ = self.under(a, self.hammer(STRANGER, a.run_socket, ask.replace("\\", "\\\\") + r"\n"),
                              [lambda: a.ctl("status", check=True), run], made_up)
        self.assertLess(share, SHARE)
        self.assertEqual(0, a.stop())

    def test_a_command_starts_a_moment_later_than_without(self):
        """By the time that it prints; whose end is waited for, too, which is printed but takes what the kernel takes."""
        own, home = self.own_home()
        a = self.agent().start()
        tell = ["/bin/date", "+%s.%N"]
        run = [own, "run", "--quiet", "--lake", os.path.join(home, "lake"), "--control", a.run_socket, "--", *tell]
        starts, ends = ({"alone": [], "run": []} for _ in range(2))
        for _ in range(20):
            for name, command in (("alone", tell), ("run", run)):
                begin = time.time()
                done = self.as_member(*command, cwd=home, env=harness.plain_environment(HOME=home))
                ends[name].append(time.time() - begin)
                self.assertEqual((0, ""), (done.returncode, done.stderr))
                starts[name].append(float(done.stdout) - begin)
        start, end = (statistics.median(of["run"]) - statistics.median(of["alone"]) for of in (starts, ends))
        print(f"{self.id()}: starts {start * 1000:.1f} ms later, ends {end * 1000:.1f} ms later than without sluice")
        self.assertLess(start, START_S * harness.PATIENCE)
        self.assertEqual(0, a.stop())

    def test_one_user_has_a_share_of_the_subscriptions_and_says_nothing_there(self):
        a = self.agent(control_group="games", control_read_group="nogroup").start()
        done = self.as_member("/usr/bin/python3", "-c", SUBSCRIBER, a.control, a.status()["version"], "9", cwd="/")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertEqual("7 True\n8 True\n7\nTrue\n", done.stdout)
        limits = self.limits(a)
        self.assertEqual((2, 1, 0), tuple(limits["run", reason] for reason in ("crowded", "malformed", "slow")))
        self.assertEqual(0, a.stop())


if __name__ == "__main__":
    harness.main()
