# SPDX-License-Identifier: Apache-2.0
"""`sluice run` beside a `sluice agent`: the agent passes the events of the run on, and no probes are loaded."""
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import harness
from agent import AgentTest

LOAD = "for i in 1 2 3; do /bin/true; done; (sleep 0.2 & wait); ls / | sort >/dev/null; false"
CLOCKS_US = 1000  # between two readings of the wall clock against the kernel's, where ntpd may slew it by 500 us a second


def loaded_programs():
    """Numbers of the BPF programs that the kernel has now."""
    return {int(line.split("\t")[1]) for path in glob.glob("/proc/[0-9]*/fdinfo/*") for line in lines_of(path)
            if line.startswith("prog_id:")}


def lines_of(path):
    try:
        with open(path) as f:
            return f.readlines()
    except OSError:
        return []


class Subscribed(AgentTest):
    def beside(self, a, *command, options=(), **kw):
        """`sluice run` with the agent's socket; the lake is the test's."""
        kw.setdefault("timeout", 120)
        return harness.run_sluice(["run", "--lake", self.lake, "--control", a.control, *options, "--", *command],
                                  env=harness.plain_environment(), **kw)

    def programs_of(self, lake, run):
        return {r["program_id"]: r for r in harness.read_lake(lake)["sluice.program"]
                if r["phase"] == "END" and r["run_id"] == run}

    def test_records_are_those_of_the_agent(self):
        a = self.agent().start()
        done = self.beside(a, "sh", "-c", LOAD, options=["--pipeline", "p", "--task", "t", "--sample", "s", "--json", "-"])
        self.assertEqual(1, done.returncode, done.stderr)
        summary = json.loads(done.stdout)
        self.assertEqual((0, [], 8), (summary["lost"], summary["still_running"], summary["programs"]), done.stdout)
        a.settle(tasks=True)
        a.stop()
        mine, others = (self.programs_of(lake, summary["run_id"]) for lake in (self.lake, a.lake))
        self.assertEqual(8, len(mine))
        self.assertEqual(set(others), set(mine))
        for key, r in mine.items():
            different = {f: (r[f], others[key][f]) for f in r if r[f] != others[key][f]}
            # what is numbered by the agent, and where COMMAND descends from
            for name in ("agent_id", "seq", "agent_time", "parent_program_id"):
                different.pop(name, None)
            # Each of the two reads for itself how far the wall clock is from the kernel's.
            for name in ("time", "start_time", "program_start_time", "end_time"):
                if name in different:
                    self.assertAlmostEqual(*different.pop(name), delta=CLOCKS_US, msg=name)
            self.assertEqual({}, different, r["argv"])
        topics = harness.read_lake(self.lake)
        self.assertEqual(["START", "END"], [r["phase"] for r in topics["sluice.run"] if r["phase"] != "LIVE"])
        self.assertEqual({"t"}, {r["task"] for r in topics["sluice.task"]})
        self.assertEqual({"s"}, {r["sample"] for r in topics["sluice.task"]})
        self.assert_nothing_lost(topics)

    def test_loads_no_program(self):
        a = self.agent().start()
        before = loaded_programs()
        process = subprocess.Popen([harness.SLUICE, "run", "--quiet", "--lake", self.lake, "--control", a.control, "--",
                                    "sleep", "1"], env=harness.plain_environment())
        try:
            a.wait_log("run.tagged")
            own = {int(line.split("\t")[1]) for path in glob.glob(f"/proc/{process.pid}/fdinfo/*") for line in lines_of(path)
                   if line.startswith(("prog_id:", "map_id:"))}
            self.assertEqual(set(), own)
        finally:
            self.assertEqual(0, process.wait(60))
        self.assertTrue(before)  # the agent's: the check can fail

    def test_options_of_its_own_load_probes(self):
        a = self.agent().start()
        for options in (["--own-probes"], ["--trace-env", "TRACEPARENT"], ["--rules", self.room]):
            done = self.beside(a, "true", options=["--quiet", *options])
            self.assertEqual((0, ""), (done.returncode, done.stderr), options)
        self.assertEqual(3, sum("run.tagged" in json.dumps(x) for x in a.log_lines()))  # announced nevertheless
        agents = [r for r in harness.read_lake(self.lake)["sluice.agent"] if r["event"] == "STOP"]
        self.assertEqual([True] * 3, [bool(r["probes"]) for r in agents])

    def test_rules_of_the_agent_leave_nothing_out(self):
        """`sluice run` records all that descends from COMMAND, and an agent what its rules say."""
        a = self.agent()
        os.makedirs(a.config["rules"])
        with open(os.path.join(a.config["rules"], "x.yaml"), "w") as f:
            json.dump({"exclude": [{"exe": ["dash", "bash", "true", "sleep"]}]}, f)
        a.start()
        self.assertEqual(0, harness.run_sluice(["--version"]).returncode)
        done = self.beside(a, "sh", "-c", LOAD, options=["--quiet"], cwd=self.room)
        self.assertEqual((1, ""), (done.returncode, done.stderr))
        self.assertEqual(8, len(self.ends()))
        self.assert_nothing_lost()
        subprocess.run(["sh", "-c", "true; /bin/true"], cwd=self.room)  # the rules hold for what follows
        a.settle()
        a.stop()
        # A container's sh that another test runs is a copy of dash by that name, which no rule leaves out.
        mine = {r["comm"] for r in harness.read_lake(a.lake)["sluice.program"] if r["cwd"] == os.path.realpath(self.room)}
        self.assertEqual({"ls", "sort"}, mine & {"ls", "sort", "sh", "true", "sleep"})

    def test_an_agent_that_hangs_leaves_a_run_unrecorded(self):
        """COMMAND runs, with its own exit status; one line says why it is not recorded, and one event at least is lost."""
        a = self.agent().start()
        summary = os.path.join(self.room, "summary")
        os.mkfifo(summary)
        process = subprocess.Popen([harness.SLUICE, "run", "--quiet", "--lake", self.lake, "--control", a.control, "--json", summary, "--",
                                    "sh", "-c", "true; exit 3"], env=harness.plain_environment(), stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        # It has the agent's offer, and waits for a reader of the summary before it starts COMMAND.
        a.wait(lambda: os.path.isdir(self.lake), what="the lake")
        a.signal(signal.SIGSTOP)
        self.addCleanup(a.signal, signal.SIGCONT)
        with open(summary) as f:
            lost = json.load(f)["lost"]
        self.assertEqual(3, process.wait(60 * harness.PATIENCE))
        self.assertRegex(process.stderr.read(), r"\Asluice run: COMMAND runs, and is not recorded: the agent of this host does not answer: [^\n]*\n\Z")
        self.assertEqual(1, lost)

    def test_usage_and_live_records_have_the_interval_asked_for(self):
        a = self.agent(interval="10s").start()
        process = subprocess.Popen([harness.SLUICE, "run", "--quiet", "--lake", self.lake, "--control", a.control, "--interval", "1s",
                                    "--", "sh", "-c", "until [ -e stop ]; do :; done"], env=harness.plain_environment(), cwd=self.room)
        try:
            a.wait_log("run.tagged")
            a.wait(lambda: os.path.isdir(self.lake) and len(harness.read_cat(self.lake, "sluice.usage")) >= 2, 60, "two Usage records")
        finally:
            open(os.path.join(self.room, "stop"), "w").close()
            self.assertEqual(0, process.wait(60))
        usage = harness.read_lake(self.lake)["sluice.usage"]
        self.assertEqual([], [r["interval_ns"] for r in usage if r["interval_ns"] > 5e9])

    def test_survivors_and_wait(self):
        a = self.agent().start()
        done = self.beside(a, "sh", "-c", "sleep 3600 >/dev/null 2>&1 & echo $!; sleep 1.2")
        os.kill(int(done.stdout), signal.SIGKILL)
        self.assertIn("still running: sleep", done.stderr)
        shutil.rmtree(self.lake)
        began = time.monotonic()
        done = self.beside(a, "sh", "-c", "sleep 2 >/dev/null 2>&1 &", options=["--wait"])
        self.assertGreater(time.monotonic() - began, 1.9)
        self.assertEqual((0, 2), (done.returncode, len(self.ends())), done.stderr)

    def test_command_outlives_the_agent(self):
        a = self.agent().start()
        os.mkfifo(os.path.join(self.room, "gate"))
        gate = os.open(os.path.join(self.room, "gate"), os.O_RDWR)  # both ends: COMMAND waits for a line of it
        self.addCleanup(os.close, gate)
        process = subprocess.Popen([harness.SLUICE, "run", "--lake", self.lake, "--control", a.control, "--", "sh", "-c",
                                    "/bin/true; : >ran; read x <gate; exit 7"], env=harness.plain_environment(), cwd=self.room,
                                   stderr=subprocess.PIPE, text=True)
        try:
            a.wait(lambda: os.path.exists(os.path.join(self.room, "ran")), what="the first program's end")
            a.settle()
            a.stop()
        finally:
            os.write(gate, b"\n")
            err = process.communicate(timeout=60)[1]
        self.assertEqual(7, process.returncode, err)
        self.assertIn("the agent of this host stopped first", err)
        self.assertNotIn("   0 lost", err)
        topics = harness.read_lake(self.lake)
        self.assertIn("true", [r["comm"] for r in self.ends(topics)])
        self.assertEqual([("subscription", "lost", 1)], harness.losses(topics))

    def test_an_agent_that_does_not_offer_events_is_done_without(self):
        """An older agent, a process that is no agent, and one that hangs."""
        for answer in (b'{"ok":false,"error":"the agent has no command \'subscribe\'"}\n', b"x\n", b""):
            path = os.path.join(self.room, "other.sock")
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(path)
                s.listen(8)
                process = subprocess.Popen([harness.SLUICE, "run", "--quiet", "--lake", self.lake, "--control", path, "--", "true"],
                                           env=harness.plain_environment(), stderr=subprocess.PIPE, text=True)
                with s.accept()[0] as c:
                    c.recv(1000)
                    c.sendall(answer)
                    if answer == b"":
                        time.sleep(2.5)
                s.settimeout(60)
                s.accept()[0].close()  # it announces the run then
                err = process.communicate(timeout=60)[1]
            os.unlink(path)
            self.assertEqual((0, ""), (process.returncode, err))
        self.assertEqual(3, len(self.ends()))

    def test_only_children_of_the_client_are_passed_on(self):
        a = self.agent().start()
        other = subprocess.Popen(["sleep", "60"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        version = harness.run_sluice(["--version"]).stdout.split()[1]
        for pid, sentence in ((2 ** 22, "is followed"), (os.getppid(), "is no child of")):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(a.control)
                s.settimeout(30)
                s.sendall(json.dumps({"command": "subscribe", "args": {"version": version, "pid": str(pid), "run": "r"}}).encode() + b"\n")
                self.assertIn(sentence, s.recv(4096).decode())
        with socket.socket(socket.AF_UNIX) as s:  # the check can fail: this one is a child of ours
            s.connect(a.control)
            s.settimeout(30)
            s.sendall(json.dumps({"command": "subscribe", "args": {"version": version, "pid": str(other.pid), "run": "r"}}).encode() + b"\n")
            self.assertIn(b'"ok":true', s.recv(4096))

    def as_nobody(self, *command):
        """`sluice run` of a user that is not root but in the agent's control group; its lake is one of its own."""
        home = os.path.join(self.room, "nobody")
        shutil.rmtree(home, ignore_errors=True)
        os.mkdir(home)
        os.chown(home, 65534, 65534)
        os.chmod(self.room, 0o755)
        own = shutil.copy(harness.SLUICE, self.room)  # where that user may execute it
        return subprocess.run([*command, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", own, "run", "--lake",
                               os.path.join(home, "lake"), "--control", self.control, "--json", "-", "--", "sh", "-c", "/bin/true; id -u"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home, timeout=60,
                              env=harness.plain_environment(HOME=home))

    def test_a_member_of_the_control_group_needs_no_privilege(self):
        self.control = self.agent(control_group="nogroup").start().control
        done = self.as_nobody()
        self.assertEqual(0, done.returncode, done.stderr)
        number, summary = done.stdout.split("\n", 1)
        summary = json.loads(summary)
        self.assertEqual(("65534", 3, 0), (number, summary["programs"], summary["lost"]))
        topics = harness.read_lake(os.path.join(self.room, "nobody", "lake"))
        self.assertEqual({65534}, {r["uid"] for r in topics["sluice.program"]})
        self.assert_nothing_lost(topics)

    def test_another_pid_namespace_is_refused(self):
        """The pid that such a client names is not that of the host, and without the agent this user has no right to anything."""
        self.control = self.agent(control_group="nogroup").start().control
        done = self.as_nobody("unshare", "--pid", "--fork", "--mount-proc")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("is in another pid namespace than the agent", done.stderr)

    def test_a_subscriber_that_does_not_read_costs_bounded_memory(self):
        """More than the agent takes for the same load without it."""
        a = self.agent().start()
        load = "i=0; while [ $i -lt 15000 ]; do /bin/true; i=$((i+1)); done"
        subprocess.run(["sh", "-c", load], check=True, timeout=240)
        process = subprocess.Popen([harness.SLUICE, "run", "--quiet", "--lake", self.lake, "--control", a.control, "--", "sh", "-c",
                                    f"sleep 1; {load}; : >{self.room}/done"],
                                   env=harness.plain_environment(), stderr=subprocess.PIPE, text=True)
        try:
            a.wait_log("run.tagged")
            os.kill(process.pid, signal.SIGSTOP)
            before = self.rss(a)
            a.wait(lambda: os.path.exists(os.path.join(self.room, "done")), 240, "end of the load")
            self.assertLess(self.rss(a) - before, 24 << 20)
        finally:
            os.kill(process.pid, signal.SIGCONT)
            err = process.communicate(timeout=60)[1]
        self.assertEqual(0, process.returncode, err)
        topics = harness.read_lake(self.lake)
        losses = {(place, reason): count for place, reason, count in harness.losses(topics)}
        count = losses.pop(("subscription", "lost"), 0)
        self.assertLessEqual(set(losses), {("correlate", "end_unseen")})  # programs whose end is among those
        self.assertGreater(count, 0)
        self.assertGreaterEqual(count + len(self.ends(topics)), 15000)  # each event is passed on or counted

    def rss(self, a):
        return next(int(line.split()[1]) << 10 for line in lines_of(f"/proc/{a.pid}/status") if line.startswith("VmRSS"))


if __name__ == "__main__":
    harness.main()
