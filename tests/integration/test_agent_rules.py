# SPDX-License-Identifier: Apache-2.0
"""Rules in a running agent: what they leave out, how they change under load, and runs and tasks given by hand."""
import collections
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import harness
from agent import Agent
from load import Load, is_whole, own
from seen import Seen
from systems import make
from systems.driver import environment
from systems.gate import Gate
from systems.recorded import SystemTest, called, new_mark

CHANGES = int(os.environ.get("CHANGES", "100"))
MANY = int(os.environ.get("RULES", "10000"))
NO_PID = 4194303  # the last that Linux can be configured to give; no process has it


class RulesTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for p in self.running:
            p.kill()
            p.wait()
        self.running = []

    def tool(self, name, of):
        """A copy of a program of the host, by a name that only this test has."""
        path = os.path.join(self.room, "bin", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.realpath(shutil.which(of)), path)
        return path

    def popen(self, *argv, **kw):
        kw.setdefault("stdin", subprocess.DEVNULL)
        p = subprocess.Popen(list(map(str, argv)), **kw)
        self.running.append(p)
        return p

    def sh(self, text, *args):
        """A shell that forks for each of its programs; the arguments are its $1 and so on."""
        subprocess.run(["/bin/sh", "-c", text + "\n:", "sh", *map(str, args)], check=True)

    def rules(self, text, name="own.yaml"):
        """A file of rules of the agent that self.start() starts; its path."""
        folder = os.path.join(self.room, "agent", "rules.d")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)
        return path

    def generation(self):
        return json.loads(self.recorder.ctl("rules", "list", "--json", check=True).stdout)

    def wait_kernel(self):
        """Until the kernel has the rules that are in force."""
        def same():
            g = self.generation()
            return g if g["kernel_generation"] == g["generation"] else None
        return self.recorder.wait(same, what="rules in the kernel")

    def start(self, **keys):
        a = super().start(**keys)
        self.wait_kernel()
        return a

    def explained(self, pid):
        """Of a process that has a record, else None."""
        done = self.recorder.ctl("explain", str(pid), "--json")
        e = json.loads(done.stdout) if done.returncode == 0 else {"recorded": False}
        return e if e["recorded"] else None

    def wait_explained(self, pid, **fields):
        """Until the agent explains a process with these fields."""
        def said():
            e = self.explained(pid)
            return e if e is not None and all(e.get(k) == v for k, v in fields.items()) else None
        return self.recorder.wait(said, what=f"explanation of {pid} with {fields}")

    def assert_refused(self, done, *words):
        self.assertEqual(1, done.returncode, done)
        self.assertEqual("", done.stdout)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(1, done.stderr.count("\n"), done.stderr)

    def chain(self, records, record):
        """The programs that it descends from, as far as they have records, the nearest first."""
        found = []
        while record["parent_program_id"] in records.programs:
            record = records.programs[record["parent_program_id"]]
            found.append(record)
        return found


class LeftOut(RulesTest):
    def test_an_excluded_program_has_no_record_and_cuts_nothing_off(self):
        """In the kernel and, by a regular expression over the arguments, in the agent."""
        mark = new_mark()
        replacing, forking = self.tool("rules_env", "env"), self.tool("rules_timeout", "timeout")
        self.rules("exclude:\n"
                   "  - exe: [rules_env, rules_timeout]\n"
                   "  - {name: by its arguments, argv_matches: '^rules-hidden-[0-9]+$'}\n")
        folder = os.path.join(self.room, "work")
        os.mkdir(folder)
        with open(os.path.join(folder, "Makefile"), "w") as f:
            f.write(f"all:\n"
                    f"\t@{replacing} /bin/true {mark} kernel-1\n"
                    f"\t@{forking} 60 /bin/sh -c '/bin/true {mark} kernel-2; {replacing} /bin/true {mark} kernel-3; :'\n"
                    f"\t@/bin/sh -c '/bin/true {mark} agent-1; /bin/true {mark} agent-2; :' rules-hidden-7\n"
                    f"\t@/usr/bin/env rules-hidden-8 2>/dev/null || /bin/true {mark} agent-3\n"
                    f"\t@/bin/true {mark} shown rules-hidden-x\n"
                    f"\t@/bin/true {mark} left-out rules-hidden-9\n")
        self.start()
        driver = self.popen("make", cwd=folder, env=environment(folder))
        self.assertEqual(0, driver.wait(60))
        records = self.stop()

        names = ["agent-1", "agent-2", "agent-3", "kernel-1", "kernel-2", "kernel-3", "shown"]
        mine = records.marked(mark)
        self.assertEqual(names, sorted(r["argv"][2] for r in mine), [called(r) for r in mine])
        started = next(r for r in records.programs.values() if r["pid"] == driver.pid and r["comm"] == "make")
        for r in records.both(records.family(started)):
            self.assertIsNotNone(r["comm"], (r["argv"], r["forked"], r["pid"]))
        for r in [*records.starts.values(), *records.ends.values()]:
            self.assertNotIn(r["comm"], ("rules_env", "rules_timeout"), (r["argv"], r["forked"], r["pid"]))
            self.assertEqual([], [x for x in r["argv"] or [] if re.fullmatch("rules-hidden-[0-9]+", x)], called(r))
        run = records.works("run", "END", run_id=started["run_id"])  # others may run make on this host, too
        self.assertEqual([("make", 0)], [(r["engine"], r["exit_code"]) for r in run])
        self.assert_all(mine, run_id=run[0]["run_id"])
        for r in mine:
            self.assertIsNotNone(r["task_id"], called(r))
        for r in mine:
            self.assertIn(started, self.chain(records, r), f"{called(r)} hangs on {r['parent_program_id']}")

    def assert_only(self, rules, root, mark):
        """With these rules a program has a record if it is root or descends from it, whatever is in between."""
        self.rules(rules)
        self.start()
        wrapper = self.tool("rules_env", "env")
        with Load("include") as load:
            self.sh('/bin/true "$1" outside')
            argv = [root, "-c", f"/bin/true {mark} 1; /bin/sh -c '{wrapper} /bin/sh -c \"/bin/true {mark} 2; :\"; :'; :",
                    "rules-root"]
            p = self.popen(*argv)
            self.assertEqual(0, p.wait(60))
            load.wait_more(20)
        self.assertEqual(0, load.failed)
        records = self.stop()
        top = next(r for r in records.ends.values() if r["pid"] == p.pid)
        self.assertEqual(argv, top["argv"])
        self.assertEqual(["1", "2"], sorted(r["argv"][2] for r in records.marked(mark)))
        family = records.family(top)
        self.assertEqual([], [called(r) for r in records.ends.values() if r not in family])
        self.assertEqual(set(records.ends), set(records.programs))
        self.assertGreaterEqual(load.started, 20)

    def test_only_what_descends_from_an_included_program(self):
        self.assert_only("include: [{exe: rules_root}]\nexclude: [{exe: rules_env}]\n",
                         self.tool("rules_root", "sh"), new_mark())

    def test_only_what_descends_from_a_program_included_by_its_arguments(self):
        self.assert_only("include: [{argv_matches: '^rules-root$'}]\nexclude: [{exe: rules_env}]\n",
                         os.path.realpath("/bin/sh"), new_mark())

    def test_who_ran_before_descends_from_who_is_recorded_above_it(self):
        """An agent meets processes in the order of their pids. These come round: one may have a lower pid than its parent."""
        glue, sleeper = self.tool("rules_glue", "dash"), self.tool("rules_nap", "sleep")
        last_pid = "/proc/sys/kernel/ns_last_pid"
        with open(last_pid) as f:
            before = f.read()
        with open(last_pid, "w") as f:
            f.write("20000")
        top = self.popen("/bin/sh", "-c", f"echo 15000 >{last_pid}; {glue} -c 'echo 10000 >{last_pid}; {sleeper} 1000; :'; :",
                         start_new_session=True)
        self.addCleanup(lambda: os.killpg(top.pid, signal.SIGKILL))
        deadline = time.monotonic() + 60
        pids = []
        while not pids:
            self.assertLess(time.monotonic(), deadline)
            pids = subprocess.run(["pgrep", "-s", str(top.pid), "-x", "rules_nap"], stdout=subprocess.PIPE).stdout.split()
        with open(last_pid, "w") as f:
            f.write(before)  # or what other tests started a moment ago, and look for by its pid, would have a namesake soon
        nap = int(pids[0])
        self.assertLess(nap, top.pid)
        self.rules("exclude:\n  - exe: rules_glue\n")
        self.start()
        self.stop()
        told = {r["pid"]: r for r in harness.read_lake(self.recorder.lake)["sluice.program"]}
        self.assertIsNotNone(told[nap]["observed_time"])
        self.assertEqual(told[top.pid]["program_id"], told[nap]["parent_program_id"])


class Change(RulesTest):
    def test_a_bad_file_is_reported_by_line_and_key_and_changes_nothing(self):
        hidden, shown = self.tool("rules_hidden", "true"), new_mark()
        path = self.rules("exclude:\n  - exe: rules_hidden\n")
        a = self.start()
        before = self.generation()
        bad = [
            ("exclude:\n  - exe: rules_hidden\n  - exee: true\n", 3, "'exee'", "'exe'"),
            ("exclude:\n  - exe: rules_hidden\nexcluude: []\n", 3, "'excluude'", "'exclude'"),
            ("exclude:\n  - {argv_matches: '('}\n", 2, "argv_matches", "parenthesis"),
            ("exclude:\n  - {exe: rules_hidden\n", 3, "YAML", "line 2"),
            ("exclude:\n  - {uid: no-such-user-here}\n", 2, "uid", "no-such-user-here"),
        ]
        last = a.status()["config"]["last_reload"]
        for n, (text, line, *words) in enumerate(bad):
            self.rules(text)
            checked = harness.run_sluice(["check", "-c", a.config_path])
            self.assertEqual(2, checked.returncode)
            if n % 2 == 0:
                done = a.ctl("reload")
                self.assert_refused(done, f"generation {before['generation']}")
                said = done.stderr
                last = a.status()["config"]["last_reload"]
            else:
                a.signal(signal.SIGHUP)
                was = last["time"] if last else None
                last = a.wait(lambda: (lambda r: r if r and r["time"] != was else None)(a.status()["config"]["last_reload"]),
                              what="reload by SIGHUP")
                said = last["error"]
                self.assertIn(said, checked.stderr)
            self.assertEqual("failed", last["result"])
            for text in (said, checked.stderr):
                self.assertRegex(text, re.escape(path) + rf":{line}:\d+: ")
                for word in words:
                    self.assertIn(word, text)
            self.assertEqual(before, {**self.generation(), "excluded": before["excluded"]})
        self.sh('"$1" "$2" left-out-1; /bin/true "$2" 1', hidden, shown)

        self.rules("exclude:\n  - exe: rules_other\n")
        a.signal(signal.SIGHUP)
        a.wait(lambda: self.generation()["generation"] == before["generation"] + 1, what="new rules")
        self.wait_kernel()
        self.sh('"$1" "$2" 2', hidden, shown)
        self.rules("exclude:\n  - exe: rules_hidden\n")
        self.assertIn(f"generation {before['generation'] + 2} is in force", a.ctl("reload", check=True).stdout)
        self.sh('"$1" "$2" left-out-2; /bin/true "$2" 3', hidden, shown)  # at once: the agent makes up for the kernel
        records = self.stop()
        mine = [r["argv"][2] for r in records.ends.values() if (r["argv"] or [])[1:2] == [shown]]
        self.assertEqual(["1", "2", "3"], sorted(mine))
        events = collections.Counter(r["event"] for r in records.topics["sluice.agent"])
        self.assertEqual((2, len(bad)), (events["RELOAD"], events["RELOAD_FAILED"]))

    def test_what_ctl_rules_refuses(self):
        a = self.start()
        first = a.ctl("rules", "add", "mine", "exclude: [{exe: rules_hidden}]", check=True)
        self.assertEqual("added mine; generation 2 is in force\n", first.stdout)
        before = self.wait_kernel()
        self.assertEqual([{"name": "mine", "rules": "exclude: [{exe: rules_hidden}]"}], before["added"])
        for text, *words in (("exclude: [{exee: x}]", "'exee'", "'exe'"), ("exclude: [{exe: x}", "not YAML"),
                             ("exclude: {exe: x}", "list"), ("nothing: [{exe: x}]", "'nothing'", "exclude"),
                             ("exclude: [{argv_matches: '['}]", "argv_matches")):
            self.assert_refused(a.ctl("rules", "add", "other", text), "other:", ":1:" if "YAML" not in words[0] else ":2:",
                                "the rules in force are kept", *words)
        self.assert_refused(a.ctl("rules", "add", "mine", "exclude: [{exe: x}]"), "of that name")
        self.assert_refused(a.ctl("rules", "add", "other"), "rules add NAME")
        self.assert_refused(a.ctl("rules", "add", "a/b", "exclude: [{exe: x}]"), "NAME")
        self.assert_refused(a.ctl("rules", "remove", "other"), "other", "rules list")
        self.assert_refused(a.ctl("rules", "forget", "mine"), "'forget'", "remove NAME")
        self.assertEqual(before, self.generation())
        listed = a.ctl("rules", "list", check=True).stdout
        self.assertIn("mine: exclude: [{exe: rules_hidden}]\n", listed)
        a.ctl("reload", check=True)
        self.assertEqual(["mine"], [x["name"] for x in self.generation()["added"]], "it outlives a reload")
        # The files may have gone bad since: what was asked is not done, and what was added stays.
        a.ctl("rules", "add", "later", "exclude: [{exe: rules_later}]", check=True)
        self.rules("exclude: 1\n")
        for args in ("remove", "mine"), ("remove", "later"), ("add", "third", "exclude: []"):
            self.assert_refused(a.ctl("rules", *args), "own.yaml:1:", "the rules in force are kept")
            self.assertEqual(["later", "mine"], [x["name"] for x in self.generation()["added"]])
        self.rules("")
        self.assertEqual("removed mine; generation 5 is in force\n", a.ctl("rules", "remove", "mine", check=True).stdout)
        self.assertEqual(["later"], [x["name"] for x in self.wait_kernel()["added"]])
        self.stop()

    def test_a_hundred_changes_under_load(self):
        """Whom no rule concerns is there once; whom they concern is there once or not at all, and never by halves."""
        toggled = self.tool("rules_toggled", "true")
        real = own("true")
        texts = ["exclude: [{exe: rules_toggled}]",
                 "exclude: [{argv_matches: '^toggled-[0-9]+$'}]",
                 f"exclude: [{{path: {os.path.realpath(os.path.dirname(toggled))}/}}]",
                 f"include: [{{path: {real}}}]",
                 "include: [{exe: [true, nobody]}]\nexclude: [{uid: 4000000-4000009}]"]
        a = self.start()
        generation = self.generation()["generation"]
        with Load("changes", rate=100) as load, Load("toggled", rate=50, program=toggled) as other:
            for n in range(0, CHANGES, 2):
                name = f"change-{n}"
                done = a.ctl("rules", "add", name, texts[n // 2 % len(texts)], check=True)
                self.assertIn(f"generation {generation + n + 1} ", done.stdout)
                if n % 6 == 0:
                    self.wait_kernel()
                done = a.ctl("rules", "remove", name, check=True)
                self.assertIn(f"generation {generation + n + 2} ", done.stdout)
                if n % 4 == 0:
                    self.wait_kernel()
            self.wait_kernel()
        self.assertEqual(0, load.failed + other.failed)
        records = self.stop()
        programs = records.topics["sluice.program"]
        self.assertEqual([], load.check(programs)[:5])
        phases = collections.defaultdict(collections.Counter)
        for r in programs:
            if other.is_mine(r):
                phases[int(r["argv"][3])][r["phase"]] += 1
        self.assertEqual([], [(n, dict(p)) for n, p in phases.items() if not is_whole(p)][:5])
        self.assertTrue(0 < len(phases) < other.started, f"{len(phases)} of {other.started}")
        self.assertEqual([], [x for x in a.log_lines() if x["event"] == "rules.kernel" and x["level"] != "info"])

    def test_what_the_agent_leaves_out_stays_so_while_others_change(self):
        """The kernel does not look at arguments and reports these; each change judges those that run just then anew."""
        tool, shown = self.tool("rules_hidden", "true"), new_mark()
        text = "exclude:\n  - {exe: rules_hidden, argv_matches: left-out}\n"
        self.rules(text)
        a = self.start()
        self.popen("/bin/sh", "-c", 'while :; do "$1" "$2" left-out; done', "sh", tool, shown)
        for n in range(30):
            self.rules(text + f"  - exe: rules_other_{n}\n")
            a.ctl("reload", check=True)
            self.wait_kernel()
        self.sh('"$1" "$2" told', tool, shown)
        self.end_all()
        records = self.stop()
        mine = [r for r in records.topics["sluice.program"] if (r["argv"] or [])[1:2] == [shown]]
        self.assertEqual({"told"}, {r["argv"][2] for r in mine}, mine)
        self.assertTrue(is_whole(collections.Counter(r["phase"] for r in mine)), mine)

    def test_changes_that_come_faster_than_the_kernel_takes_them(self):
        """Rules that newer ones overtake are never in the kernel, which has the newest in the end and reports it."""
        a = self.start()
        before = self.generation()
        request = [{"command": "rules", "args": {"words": ["add", f"fast-{n}", f"exclude: [{{exe: rules-fast-{n}}}]"]}}
                   for n in range(50)]
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(a.control)
            s.sendall("".join(json.dumps(x) + "\n" for x in request).encode())
            answers = s.makefile()
            for _ in request:
                self.assertTrue(json.loads(answers.readline())["ok"])
        g = self.wait_kernel()
        self.assertEqual((before["generation"] + 50, before["kernel_rules"] + 50), (g["generation"], g["kernel_rules"]))
        self.stop()

    def judged_anew(self, text, *argv):
        """A program that began while a rule left it out, from its removal to its end; and one the other way round."""
        a = self.start()
        a.ctl("rules", "add", "sleepers", text, check=True)
        self.wait_kernel()
        left_out = self.popen(*argv, 1000)
        a.settle()
        self.assertIsNone(self.explained(left_out.pid))
        removed_us = time.time_ns() // 1000
        a.ctl("rules", "remove", "sleepers", check=True)
        self.wait_kernel()
        self.wait_explained(left_out.pid)
        told = self.popen(*argv, 2000)
        self.wait_explained(told.pid)
        a.ctl("rules", "add", "sleepers", text, check=True)
        self.wait_kernel()
        never = self.popen(*argv, 3000)
        a.settle()
        self.assertIsNotNone(self.explained(told.pid), "what was told stays so")
        pids = left_out.pid, told.pid, never.pid
        self.end_all()
        records = self.stop()
        of = collections.defaultdict(list)
        for r in records.topics["sluice.program"]:
            if r["argv"] and r["argv"][0] == argv[0] and not r["forked"]:
                of[r["pid"]].append(r)
        self.assertEqual({pids[0]: True, pids[1]: True},
                         {pid: is_whole(collections.Counter(r["phase"] for r in found)) for pid, found in of.items()})
        for r in of[pids[0]]:
            self.assertIsNotNone(r["observed_time"])
            self.assertGreaterEqual(r["observed_time"], removed_us)
            self.assertLess(r["program_start_time"], removed_us)
        for r in of[pids[1]]:
            self.assertIsNone(r["observed_time"])
        for pid in pids[:2]:
            self.assertEqual(signal.SIGKILL, of[pid][-1]["exit_signal"])

    def test_programs_that_run_are_judged_anew(self):
        self.judged_anew("exclude: [{exe: rules_sleep}]", self.tool("rules_sleep", "sleep"))

    def test_programs_that_run_are_judged_anew_by_their_arguments(self):
        self.judged_anew("exclude: [{argv_matches: '^[123]000$', comm: rules_sleep}]", self.tool("rules_sleep", "sleep"))

    def test_ten_thousand_rules(self):
        sections = collections.defaultdict(list)
        for n in range(MANY):
            kind = n % 10
            if kind < 5:
                sections["exclude"].append(f"  - {{name: noise {n}, exe: rules-noise-{n}}}")
            elif kind < 7:
                sections["exclude"].append(f"  - {{path: /opt/rules-noise/{n}/}}")
            elif kind == 7:
                sections["exclude"].append(f"  - {{argv_matches: '^--rules-noise-{n}=[0-9]+$'}}")
            elif kind == 8:
                sections["exclude"].append(f"  - {{cgroup: /system.slice/rules-noise-{n}.service}}")
            else:
                sections["tools"].append(f"  - {{exe: rules-tool-{n}, tool: 'many {n}'}}")
        for name, lines in sections.items():
            for at in range(0, len(lines), 2500):
                self.rules(f"{name}:\n" + "\n".join(lines[at:at + 2500]) + "\n", f"many-{name}-{at}.yaml")
        a = self.agent()
        began = time.monotonic()
        done = harness.run_sluice(["check", "-c", a.config_path])
        print(f"sluice check with {MANY} rules: {time.monotonic() - began:.2f} s", end=" ", flush=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        total = int(re.search(r"(\d+) rules:", done.stdout)[1])
        self.assertGreater(total, MANY)
        self.start()
        in_force = self.wait_kernel()
        self.assertEqual(total, in_force["rules"])
        self.assertGreater(in_force["kernel_rules"], 0.7 * MANY)
        mark = new_mark()
        last = MANY // 10 * 10
        programs = [self.tool(f"rules-noise-{last - 10}", "true"), self.tool(f"rules-tool-{last - 1}", "true"), "/bin/true"]
        with Load("many", rate=100) as load:
            self.sh('"$1" "$4" left-out; "$2" "$4" tool; "$3" "$4" left-out --rules-noise-7=1; "$3" "$4" --rules-noise-7=x',
                    *programs, mark)
            # Over so many arguments all steps are spent, with a thousand patterns. It is recorded, and may be any other
            # program of the host.
            self.sh('"$1" "$2" recorded $(seq 300)', "/bin/true", mark)
            load.wait_more(50)
        records = self.stop(["rules_gave_up"])
        self.assertIn("rules_gave_up", [reason for _, reason, _ in harness.losses(records.topics)])
        self.assertEqual([], load.check(records.topics["sluice.program"])[:5])
        mine = sorted((r for r in records.ends.values() if (r["argv"] or [])[1:2] == [mark]), key=lambda r: r["argv"][2])
        self.assertEqual(["--rules-noise-7=x", "recorded", "tool"], [r["argv"][2] for r in mine])
        self.assertEqual(f"many {last - 1}", mine[2]["tool"])


class ByHand(RulesTest):
    def test_explain_and_tag(self):
        mark = new_mark()
        sleeper = self.tool("rules_sleep", "sleep")
        self.rules("tools: [{exe: rules_sleep, tool: sleeper, name: our sleeper}]\n")
        folder = os.path.join(self.room, "work", "explained")
        os.makedirs(folder)
        with open(os.path.join(folder, "Makefile"), "w") as f:
            f.write(f"sleeps:\n\t@{sleeper} 1000; :\n")
        a = self.start()
        driver = self.popen("make", cwd=folder, env=environment(folder), start_new_session=True, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: os.killpg(driver.pid, signal.SIGKILL) if driver.poll() is None else None)
        self.wait_explained(driver.pid, tool="make")

        def find_child():
            done = subprocess.run(["pgrep", "-g", str(driver.pid), "rules_sleep"], stdout=subprocess.PIPE, text=True)
            return int(done.stdout) if done.stdout else None
        pid = a.wait(find_child, what="sleeper")
        e = self.wait_explained(pid, tool="sleeper")
        driver_says = self.explained(driver.pid)
        self.assertEqual("own/our sleeper", e["tool_rule"])
        self.assertEqual(os.path.realpath(sleeper), e["exe"])
        self.assertTrue(e["run_id"])
        self.assertEqual(driver_says["run_id"], e["run_id"])
        for key in ("run_source", "task", "task_id", "task_source", "confidence", "program_id", "cgroup"):
            self.assertTrue(e[key], key)
        text = a.ctl("explain", str(pid), check=True).stdout
        for key in ("tool", "tool_rule", "run_id", "run_source", "task", "task_source"):
            self.assertRegex(text, rf"(?m)^{key} +{re.escape(e[key])}$")
        self.assert_refused(a.ctl("explain", str(NO_PID)), str(NO_PID), "no such process")
        self.assert_refused(a.ctl("explain", "make"), "PID")
        self.assert_refused(a.ctl("explain"), "PID")

        # By hand: it, and whatever it starts from now on.
        shell = self.popen("/bin/sh", "-c", f"/bin/true {mark} before; echo; read x; /bin/true {mark} after; "
                           f"/bin/sh -c '/bin/true {mark} deeper; :'; :", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.wait_explained(shell.pid)
        self.assertEqual(b"\n", shell.stdout.readline())
        a.settle()  # the agent knows that its first child has ended, and does not count it
        run_id = f"by-hand-{mark}"
        done = a.ctl("tag", "--pid", str(shell.pid), "--pipeline", "a pipeline", "--run", run_id, "--task", "a task",
                     "--sample", "S1", check=True)
        self.assertEqual(f"1 process is in run {run_id} from now on\n", done.stdout)
        e = self.wait_explained(shell.pid, run_id=run_id)
        self.assertEqual(("a pipeline", "a task", "S1", "sluice ctl tag"),
                         (e["pipeline"], e["task"], e["sample"], e["run_source"]))
        shell.communicate(b"\n", timeout=30)
        self.assert_refused(a.ctl("tag", "--pid", str(NO_PID), "--run", run_id), str(NO_PID))
        self.assert_refused(a.ctl("tag", "--pid", str(driver.pid)), "--run RUN")
        self.assert_refused(a.ctl("tag", "--pid", "make", "--run", run_id), "--pid PID")
        self.assert_refused(a.ctl("tag", "--pid", str(driver.pid), "--run", "x" * 200), "too long")
        os.killpg(driver.pid, signal.SIGTERM)
        driver.wait(30)
        records = self.stop()

        tagged = records.marked(mark, "after") + records.marked(mark, "deeper")
        self.assertEqual(2, len(tagged))
        own = [r for r in records.ends.values() if r["pid"] == shell.pid and r["program_index"] == 0]
        self.assert_all(records.both(tagged) + own, run_id=run_id, pipeline="a pipeline", task="a task", sample="S1",
                        run_source="sluice ctl tag")
        self.assert_all(records.marked(mark, "before"), run_id=None, pipeline=None, task=None)
        task_ids = {r["task_id"] for r in tagged + own}
        self.assertEqual(1, len(task_ids))
        run = records.works("run", run_id=run_id)
        task = records.works("task", run_id=run_id)
        self.assertEqual((1, 1), (len(run), len(task)))
        # The shell, its two children and the grandchild.
        for r in run[0], task[0]:
            self.assertEqual((4, "a pipeline"), (r["programs"], r["pipeline"]))
        self.assertEqual(("a task", "S1", task_ids.pop()), (task[0]["task"], task[0]["sample"], task[0]["task_id"]))
        self.assertEqual("sluice ctl tag", run[0]["source"])

    def test_explain_of_what_has_no_record_says_which_rule(self):
        """As sluice check --explain does, of what /proc tells: the agent itself, as `nobody`, may not read all of that."""
        sleeper = self.tool("rules_sleep", "sleep")
        shell = self.tool("rules_shell", "sh")
        path = self.rules("tools: [{exe: rules_sleep, tool: sleeper, name: our sleeper}]\n"
                          "exclude:\n"
                          "  - {name: no sleepers, exe: rules_sleep}\n"
                          "  - {argv: rules-hidden}\n"
                          "  - {name: below a shell, exe: sleep, parent: {exe: rules_shell, argv: --token=***}}\n")
        a = self.start(argv={"redact": ["builtin", "canary-[0-9]+"]})
        env = {**environment(self.room), "SECRET": "env-canary"}
        left_out = self.popen(sleeper, "1000", cwd="/", env=env)
        hidden = self.popen("/bin/sh", "-c", "read x", "rules-hidden", "canary-7", "--password=hunter2", stdin=subprocess.PIPE,
                            env=env)
        parent = self.popen(shell, "-c", "/bin/sleep 1000; :", "sh", "--token=hunter2", env=env, start_new_session=True)
        self.addCleanup(lambda: os.killpg(parent.pid, signal.SIGKILL))

        def find_child():
            done = subprocess.run(["pgrep", "-P", str(parent.pid), "-x", "sleep"], stdout=subprocess.PIPE, text=True)
            return int(done.stdout) if done.stdout else None
        child = a.wait(find_child, what="the shell's sleep")
        done = a.ctl("explain", str(left_out.pid), check=True)
        lines = done.stdout.splitlines()
        checked = harness.run_sluice(["check", "-c", a.config_path, "--explain", "--cwd", "/", "--", sleeper, "1000"])
        self.assertEqual(f"read from    /proc/{left_out.pid}, now: it has no record", lines[0])
        self.assertEqual(checked.stdout.splitlines(), lines[1:])
        self.assertIn(f"tool         sleeper, by {os.path.basename(path)}:1 (our sleeper)", done.stdout.replace(path, "own.yaml"))
        self.assertRegex(done.stdout, r"(?m)^followed     no: exclude, by \S*own(\.yaml)?:3 \(no sleepers\)")
        e = json.loads(a.ctl("explain", str(left_out.pid), "--json", check=True).stdout)
        self.assertEqual((False, False, done.stdout), (e["recorded"], e["told"], e["text"]))

        text = a.ctl("explain", str(hidden.pid), check=True).stdout
        self.assertRegex(text, r"(?m)^followed     no: exclude, by \S*own(\.yaml)?:4;")
        self.assertRegex(text, r"(?m)^argv         /bin/sh -c 'read x' rules-hidden \*\*\* --password=\*\*\*$")
        below = a.ctl("explain", str(child), check=True).stdout
        self.assertRegex(below, r"(?m)^followed     no: exclude, by \S*own(\.yaml)?:5 \(below a shell\)")
        for said in done.stdout, text, below:
            self.assertNotIn("env-canary", said)
            self.assertNotIn("hunter2", said)
        self.assertRegex(a.ctl("explain", str(os.getpid()), check=True).stdout, "(?m)^program_id ")
        self.assert_refused(a.ctl("explain", str(a.pid)), "the agent")
        hidden.communicate(b"", timeout=30)
        records = self.stop()
        self.assertEqual([], [called(r) for r in records.ends.values() if r["pid"] in (left_out.pid, hidden.pid, child)])

    def test_sluice_run_in_a_running_agent_has_one_id(self):
        """From COMMAND's first program on, however short it is."""
        a = self.start()
        runs = []
        for n in range(6):
            mark, run_id = new_mark(), f"shared-{os.getpid()}-{n}"
            names = ("--pipeline", f"shared pipeline {n}", *(("--task", "one task") if n % 2 else ()))
            text = f"/bin/true {mark} 1; /bin/sh -c '/bin/true {mark} 2; :'; " + ("sleep 0.5; " if n < 3 else "") + \
                f"/bin/true {mark} 3; :"
            done = self.sluice_run("sh", "-c", text, options=("--quiet", "--control", a.control, "--run", run_id, *names))
            self.assertEqual((0, ""), (done.returncode, done.stderr))
            runs.append((mark, run_id, names))
        # An agent that is not there, and one that never answers, hold nothing up and change nothing.
        silent = os.path.join(self.room, "silent.sock")
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(silent)
            s.listen()
            for path in silent, os.path.join(self.room, "nobody.sock"):
                done = self.sluice_run("true", options=("--quiet", "--control", path))
                self.assertEqual((0, ""), (done.returncode, done.stderr))
        records = self.stop()
        own = harness.read_lake(self.lake)["sluice.program"]
        for mark, run_id, names in runs:
            mine = [r for r in own if r["run_id"] == run_id and r["phase"] == "END"]
            ids = {(r["pid"], r["program_index"], tuple(r["argv"] or ())) for r in mine if not r["forked"]}
            self.assertGreaterEqual(len(ids), 5)
            theirs = [r for r in records.ends.values() if (r["pid"], r["program_index"], tuple(r["argv"] or ())) in ids]
            self.assertEqual(len(ids), len(theirs))
            self.assert_all(theirs, run_id=run_id, pipeline=names[1], run_source="sluice run")
            self.assertEqual([names[1]], [r["pipeline"] for r in records.works("run", run_id=run_id)])
            if len(names) > 2:
                self.assert_all(theirs, task="one task")
                self.assert_all(mine, task="one task")

    def test_a_run_goes_on_after_kill_9_and_another_agent_gives_it_the_same_id(self):
        name = new_mark()
        a = self.start()
        gate = Gate(os.path.join(self.room, "work"))
        self.addCleanup(gate.close)
        driver = make.start(os.path.join(self.room, "work", "killed"), name, GATE=gate.path)
        self.addCleanup(lambda: driver.end() if driver.process.poll() is None else None)
        gate.wait_for(2, driver)
        a.kill9()
        a.start(wait=False)
        late = self.agent("late").start()  # with no memory of anything
        a.wait_log("agent.started", 60)
        gate.open()
        self.assertEqual(0, driver.wait())
        late.settle(tasks=True)
        self.assertEqual(0, late.stop(), late.log_text())
        records = self.stop()
        seen = Seen(a.lake)
        run = seen.run_of(driver)
        self.assertEqual(("END", "make", 0), (run["phase"], run["engine"], run["exit_code"]))
        self.assertEqual(1, len(records.works("run", run_id=run["run_id"])))
        self.assertEqual(1, len(records.works("run", "START", run_id=run["run_id"])))
        steps = seen.steps(name)
        self.assertEqual(8, len(steps), seen.describe(run))  # recorded by two programs a step
        for s in steps:
            self.assertEqual(run["run_id"], s.program["run_id"], seen.describe(run))
        self.assertEqual(len(seen.programs_of(run)), run["programs"], seen.describe(run))
        other = Seen(late.lake).run_of(driver)
        self.assertEqual(run["run_id"], other["run_id"])


if __name__ == "__main__":
    harness.main()
