# SPDX-License-Identifier: Apache-2.0
"""Include and exclude rules in the kernel: what is reported, its attribution, and swaps under load."""
import os
import shutil
import subprocess
import time
import unittest
import uuid

import harness

DRIVER = os.environ.get("FILTER_DRIVER") or harness.built("filter_driver")
SWAPS = int(os.environ.get("SWAPS", "200"))
WORDS = 4               # of the storm: that many base names in that many folders


class Driver:
    """filter_driver, and its output: lines as lists of words."""

    def __init__(self, *args):
        self.p = subprocess.Popen([DRIVER, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  errors="surrogateescape", bufsize=1)
        self.events = []
        self.origin = int(self.until("open")[1])
        self.until("ready")

    def until(self, word):
        for line in self.p.stdout:
            words = line.split()
            if words[0] == word:
                return words
            self.events.append(words)
        raise AssertionError(f"filter_driver ended, exit {self.p.wait()}")

    def say(self, *lines):
        self.p.stdin.write("".join(x + "\n" for x in lines))
        self.p.stdin.flush()

    def ask(self, line, word):
        self.say(line)
        return self.until(word)

    def set(self, *rules):
        """[rules in the kernel, rules outside, ns that it took]"""
        self.say(*rules)
        error, _, inside, outside, ns = map(int, self.ask("set", "set")[1:])
        if error:
            raise AssertionError(f"set: {os.strerror(-error)}")
        return inside, outside, ns

    def judge(self):
        self.ask("judge", "judged")
        return self.take()

    def stats(self):
        """(excluded, lost, position in the ring)"""
        return tuple(map(int, self.ask("stats", "stats")[1:]))

    def take(self):
        """What was reported since the last time; the ring is read to its end."""
        self.stats()
        events, self.events = self.events, []
        return events

    def close(self):
        if self.p.poll() is None:
            self.p.stdin.close()
            for line in self.p.stdout:
                self.events.append(line.split())
            self.p.wait(30)
        self.p.stdout.close()
        return self.p.returncode


class Filter(unittest.TestCase):
    def setUp(self):
        if not harness.is_root():
            self.skipTest("loading BPF needs root")
        self.room = f"/tmp/sluice-filter-{uuid.uuid4().hex[:8]}"        # a real path, without links
        os.mkdir(self.room, 0o755)
        self.addCleanup(shutil.rmtree, self.room, ignore_errors=True)
        self.running = []
        self.swept = 0

    def tearDown(self):
        for p in self.running:
            p.kill()
            p.wait()

    def driver(self, *args):
        d = Driver(*args)
        self.addCleanup(d.close)
        return d

    def tool(self, name, of="true"):
        """A copy of a program of the host, by another name."""
        path = os.path.join(self.room, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.realpath(shutil.which(of)), path)
        return path

    def start(self, *argv, **kw):
        """One that sleeps by now: its exec is reported a moment after Popen() knows of it, and before it can sleep."""
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **kw)
        self.running.append(p)
        self.asleep(p.pid)
        return p

    def asleep(self, pid):
        deadline = time.monotonic() + 30 * harness.PATIENCE
        state = None
        while state != "S":
            self.assertLess(time.monotonic(), deadline, f"process {pid} never slept")
            with open(f"/proc/{pid}/stat") as f:
                state = f.read().rpartition(")")[2].split()[0]

    def nap_of(self, p):
        """The process `nap` that p started in its session, once it sleeps."""
        deadline = time.monotonic() + 30 * harness.PATIENCE
        while True:
            found = subprocess.run(["pgrep", "-s", str(p.pid), "-x", "nap"], stdout=subprocess.PIPE, check=False).stdout.split()
            if found:
                break
            self.assertLess(time.monotonic(), deadline, "nothing takes a nap")
        pid, = map(int, found)
        self.asleep(pid)
        return pid

    def told(self, d, *argv, **kw):
        """Whether this program is reported; then its end is too, and nothing twice."""
        p = subprocess.Popen(argv, **kw)
        p.wait()
        mine = self.of(d, p.pid, is_due=False)
        kinds = [e[0] for e in mine]
        self.assertIn(kinds, ([], ["exec", "exit"]), mine)
        return bool(kinds)

    def of(self, d, pid, is_due=True):
        """
        What was reported of a process that has ended; the kernel lets go of it a little later. It runs no program at the
        last moment of a few: such an end is swept up, as the agent does. is_due: its end is to come; without, it is
        where something else has come of it.
        """
        mine = []
        for n in range(100 * harness.PATIENCE):
            time.sleep(0.1)
            if n == 30:
                d.ask("sweep", "swept")
            mine += [e for e in d.take() if len(e) > 1 and e[1] == str(pid)]
            if mine and mine[-1][0] == "stale":
                mine[-1][0] = "exit"
                self.swept += 1
            if mine and mine[-1][0] == "exit" or not mine and not is_due:
                break
        self.assertLessEqual(self.swept, 1, "more than one end of this test that the kernel told nobody of")
        return mine

    def by_argument(self, events, argument):
        found = [e for e in events if e[0] == "exec" and e[7] == argument]
        self.assertLessEqual(len(found), 1)
        return found[0] if found else None

    def test_each_condition(self):
        alpha, beta, other = self.tool("a/alpha"), self.tool("a/beta"), self.tool("b/alpha")
        d = self.driver()
        self.assertTrue(self.told(d, alpha))
        cases = [
            (["exclude exe=alpha"], False, True, False),
            ([f"exclude path={self.room}/a/"], False, False, True),
            ([f"exclude path={alpha}"], False, True, True),
            ([f"exclude exe=alpha path={self.room}/a/"], False, True, True),
            ([f"exclude exe=alpha !path={self.room}/a/"], True, True, False),
            (["exclude exe=alpha uid=0-100"], False, True, False),
            (["exclude exe=alpha uid=1-100"], True, True, True),
            (["exclude exe=alpha argv=x"], True, True, True),       # not the kernel's to judge
            ([f"include path={self.room}/"], True, True, True),
            (["include exe=beta"], False, True, False),
            (["include exe=beta", "exclude path=/"], False, False, False),
            (["include exe=beta", "include argv=x"], True, True, True),
            ([], True, True, True),
        ]
        for rules, *expected in cases:
            inside, outside, _ = d.set(*rules)
            self.assertEqual(len(rules), inside + outside)
            d.judge()
            with self.subTest(rules=rules):
                self.assertEqual(expected, [self.told(d, x) for x in (alpha, beta, other)])
        self.assertEqual(0, d.stats()[1])

    def test_path_through_a_link_is_the_real_one(self):
        alpha = self.tool("real/alpha")
        os.symlink("real", os.path.join(self.room, "link"))
        d = self.driver()
        d.set(f"exclude path={self.room}/link/")
        self.assertTrue(self.told(d, f"{self.room}/link/alpha"))
        d.set(f"exclude path={self.room}/real/")
        self.assertFalse(self.told(d, f"{self.room}/link/alpha"))
        self.assertFalse(self.told(d, "./alpha", cwd=os.path.dirname(alpha)))

    def test_user(self):
        alpha = self.tool("alpha")
        d = self.driver()
        for rule, expected in (("uid=4321", (False, True)), ("uid=4000-5000", (False, True)), ("uid=5000-9000", (True, True)),
                               ("uid=0", (True, False)), ("!uid=0", (False, True))):
            d.set(f"exclude {rule}")
            d.judge()
            with self.subTest(rule=rule):
                self.assertEqual(expected, (self.told(d, alpha, user=4321), self.told(d, alpha)))

    def cgroup(self, name):
        """A new cgroup: (its path, its folder)."""
        for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"):
            if os.path.exists(os.path.join(top, "cgroup.procs")):
                at = os.path.join(top, name)
                os.mkdir(at)
                self.addCleanup(os.rmdir, at)
                return "/" + name, at
        self.skipTest("no cgroup file system")

    def in_cgroup(self, at):
        def enter():
            with open(os.path.join(at, "cgroup.procs"), "w") as f:
                f.write("0")
        return enter

    def test_cgroup(self):
        alpha = self.tool("alpha")
        name = f"sluice-filter-{uuid.uuid4().hex[:8]}"
        path, at = self.cgroup(name)
        d = self.driver()
        for rule, expected in ((f"cgroup={path}", (False, True)), (f"cgroup={path[:-3]}*", (False, True)),
                               (f"cgroup={path}/below", (True, True)), (f"!cgroup={path} path={self.room}/", (True, False))):
            d.set(f"exclude {rule}")
            d.judge()
            with self.subTest(rule=rule):
                self.assertEqual(expected, (self.told(d, alpha, preexec_fn=self.in_cgroup(at)), self.told(d, alpha)))
        # one that did not exist when the rules were made: reported till its name is known
        d.set(f"exclude cgroup=/{name}-*")
        _, late = self.cgroup(name + "-late")
        first = self.told(d, alpha, preexec_fn=self.in_cgroup(late))
        self.assertTrue(first)
        self.assertFalse(self.told(d, alpha, preexec_fn=self.in_cgroup(late)))

    def test_descent_through_what_is_left_out(self):
        beta = self.tool("beta")
        d = self.driver()
        d.set("exclude exe=env", "exclude exe=dash", "exclude exe=sh", "exclude exe=sudo", "exclude exe=setsid")
        d.judge()
        scripts = [f"env {beta} MARK; true", f"(env {beta} MARK; true) | cat; true", f"setsid -w env {beta} MARK; true"]
        if shutil.which("sudo"):
            scripts.append(f"sudo -n env {beta} MARK; true")
        for i, script in enumerate(scripts):
            p = subprocess.run(["sh", "-c", script.replace("MARK", f"mark-{i}")], check=False, stdout=subprocess.DEVNULL)
            time.sleep(0.1)
            e = self.by_argument(d.take(), f"mark-{i}")
            with self.subTest(script=script):
                self.assertIsNotNone(e, p)
                self.assertEqual([str(os.getpid())] * 2, e[3:5])        # parent and anchor: who started sh

    def test_one_process_in_and_out(self):
        beta = self.tool("beta")
        d = self.driver()
        d.set("exclude exe=env")
        sh = os.path.realpath(shutil.which("sh"))
        p = subprocess.Popen([sh, "-c", f"exec env env {beta} mark"])
        p.wait()
        mine = self.of(d, p.pid)
        self.assertEqual([["exec", "0"], ["left", "1"], ["exec", "3"], ["exit", "3"]], [[e[0], e[2]] for e in mine])
        self.assertEqual("1", mine[1][3])       # with what sh used
        self.assertEqual("1", mine[2][5])       # from where env was
        d.set()
        d.judge()
        p = subprocess.Popen([sh, "-c", f"exec env {beta} mark"])
        p.wait()
        self.assertEqual(["exec", "exec", "exec", "exit"], [e[0] for e in self.of(d, p.pid)])

    def test_no_ring_space(self):
        """All of the host's programs are left out: the ring gets nothing."""
        alpha = self.tool("alpha")
        d = self.driver()
        d.set("exclude path=/")
        grown = []
        for _ in range(10):
            before = d.stats()
            for _ in range(50):
                subprocess.run([alpha], check=True)
            after = d.stats()
            grown.append(after[2] - before[2])
            self.assertGreaterEqual(after[0] - before[0], 50)
            if grown[-1] == 0:
                return
            d.judge()   # a program that was reported before has ended meanwhile
        self.fail(f"bytes of the ring for fifty programs that are left out: {grown}")

    def test_running_programs(self):
        nap = self.tool("nap", "sleep")
        d = self.driver()
        told = self.start(nap, "100")
        d.take()
        d.set("exclude exe=nap")
        left_out = self.start(nap, "101")
        self.assertEqual([], [e for e in d.take() if len(e) > 1 and e[1] == str(left_out.pid)])
        seen = {e[1]: e[0] for e in d.judge() if len(e) > 1}
        self.assertEqual(("muted", None), (seen.get(str(told.pid)), seen.get(str(left_out.pid))))
        d.ask("pass", "passed")
        seen = {e[1]: e[0] for e in d.take() if len(e) > 1}
        self.assertEqual(("muted", None), (seen.get(str(told.pid)), seen.get(str(left_out.pid))))
        told.kill()             # its START was reported: so is its end
        told.wait()
        self.assertEqual(["exit"], [e[0] for e in self.of(d, told.pid)])
        d.set()
        self.assertEqual(["found"], [e[0] for e in d.judge() if len(e) > 1 and e[1] == str(left_out.pid)])
        d.ask("pass", "passed")
        self.assertEqual(["live"], [e[0] for e in d.take() if len(e) > 1 and e[1] == str(left_out.pid)])
        left_out.kill()
        left_out.wait()
        self.assertEqual(["exit"], [e[0] for e in self.of(d, left_out.pid)])

    def test_descent_of_what_runs_already(self):
        """An include rule comes: each descendant of what it names is reported, at any depth."""
        tool, root, sh = self.tool("nap", "sleep"), self.tool("root", "bash"), self.tool("glue", "dash")
        script = f"{sh} -c '{sh} -c \"{tool} 200; true\"; true'; true"
        inside, outside = (self.start(x, "-c", script, start_new_session=True) for x in (root, sh))
        nap_inside, nap_outside = self.nap_of(inside), self.nap_of(outside)
        d = self.driver()
        d.take()
        d.set("include exe=root")
        seen = {e[1]: e[0] for e in d.judge() if len(e) > 1}
        self.assertEqual(("live", "muted"), (seen.get(str(nap_inside)), seen.get(str(nap_outside))))
        d.set("include exe=root", "exclude exe=glue")
        seen = {e[1]: e[0] for e in d.judge() if len(e) > 1}
        self.assertEqual(("live", "muted"), (seen.get(str(nap_inside)), seen.get(str(nap_outside))))
        d.set("include exe=no-such")
        seen = {e[1]: e[0] for e in d.judge() if len(e) > 1}
        self.assertEqual(("muted", "muted"), (seen.get(str(nap_inside)), seen.get(str(nap_outside))))
        alpha = self.tool("alpha")
        self.assertFalse(self.told(d, alpha))
        d.set(f"include path={self.room}/root")
        d.judge()
        subprocess.run([root, "-c", f"{sh} -c '{alpha} deep; true'; true"], check=True)
        self.assertFalse(self.told(d, alpha, "elsewhere"))
        for pid in (nap_inside, nap_outside):
            os.kill(pid, 9)

    def test_descent_of_a_child_that_is_met_before_its_parent(self):
        """Processes are seen in the order of their pids. These wrap around: a child's may be lower than its parent's."""
        tool, root = self.tool("nap", "sleep"), self.tool("root", "bash")
        last_pid = "/proc/sys/kernel/ns_last_pid"
        with open(last_pid) as f:
            before = f.read()
        with open(last_pid, "w") as f:
            f.write("20000")
        parent = self.start(root, "-c", f"echo 10000 >{last_pid}; {tool} 200; true", start_new_session=True)
        nap = self.nap_of(parent)
        with open(last_pid, "w") as f:
            f.write(before)  # or what other tests started a moment ago, and look for by its pid, would have a namesake soon
        self.assertLess(nap, parent.pid)
        d = self.driver()
        d.take()
        for rule, verdict in (("include exe=root", "live"), ("include exe=no-such", "muted")):
            d.set(rule)
            seen = {e[1]: e[0] for e in d.judge() if len(e) > 1}
            with self.subTest(rule=rule):
                self.assertEqual((verdict, verdict), (seen.get(str(parent.pid)), seen.get(str(nap))))
        os.kill(nap, 9)

    def test_descends_through_glue(self):
        root, sh, alpha = self.tool("root", "bash"), self.tool("glue", "dash"), self.tool("alpha")
        d = self.driver()
        d.set("include exe=root", "exclude exe=glue")
        d.judge()
        p = subprocess.Popen([root, "-c", f"{sh} -c '{alpha} deep; true'; true"])
        p.wait()
        time.sleep(0.1)
        e = self.by_argument(d.take(), "deep")
        self.assertIsNotNone(e)
        self.assertEqual([str(p.pid)] * 2, e[3:5])
        self.assertFalse(self.told(d, alpha))
        # itself left out, but what descends from it is inside
        d.set(f"include path={sh}", "exclude exe=glue")
        d.judge()
        subprocess.run([root, "-c", f"{sh} -c '{alpha} below; true'; true"], check=True)
        time.sleep(0.1)
        told = [e[7] for e in d.take() if e[0] == "exec"]
        self.assertIn("below", told)

    def test_swaps_under_a_storm(self):
        """
        Generation g leaves out the name g of the folder g, and no other: a name and a folder of two
        generations would leave out a program that no generation does.
        """
        for i in range(WORDS):
            for k in range(WORDS):
                self.tool(f"d{i}/n{k}")
        script = (f"cd {self.room}; n=0; while [ ! -e stop ]; do n=$((n + 1)); "
                  "for d in 0 1 2 3; do for k in 0 1 2 3; do ./d$d/n$k $1-$n-$d-$k; done; done; done; echo $n >count.$1")
        d = self.driver()
        d.take()
        storms = [subprocess.Popen(["bash", "-c", script, "storm", str(w)]) for w in range(2)]
        took = []
        for g in range(SWAPS):
            _, _, ns = d.set(f"exclude exe=n{g % WORDS} path={self.room}/d{g % WORDS}/",
                             f"exclude exe=no-such-{g}", f"exclude path=/no-such/{g}/")
            took.append(ns)
            time.sleep(0.02)
            if g % 20 == 19:
                d.ask("judge", "judged")
        with open(os.path.join(self.room, "stop"), "w"):
            pass
        for p in storms:
            self.assertEqual(0, p.wait(60))
        d.ask("sweep", "swept")  # the kernel runs no program at the last moment of a few, and lets go of some a while later
        events = d.take()
        excluded, lost, _ = d.stats()
        self.assertEqual(0, lost)
        stale = {(e[1], e[2], e[-1]) for e in events if e[0] == "stale"}
        execs, exits = {}, {}
        for e in events:
            if e[0] == "exec" and e[6].startswith(self.room + "/d"):
                execs.setdefault(e[7], []).append((e[1], e[2], e[-1]))
            elif e[0] == "exit":  # pids come round meanwhile
                exits[e[1], e[2], e[-1]] = exits.get((e[1], e[2], e[-1]), 0) + 1
        self.assertEqual([], [x for x in execs.values() if len(x) != 1], "told twice")
        rounds = 0
        left_out = 0
        for w in range(2):
            with open(os.path.join(self.room, f"count.{w}")) as f:
                n = int(f.read())
            rounds += n
            for i in range(1, n + 1):
                for a in range(WORDS):
                    for b in range(WORDS):
                        one = execs.get(f"{w}-{i}-{a}-{b}")
                        if a != b:
                            self.assertIsNotNone(one, f"{w}-{i}-{a}-{b} is not told")
                        left_out += one is None
                        if one is not None:
                            self.assertIn(exits.get(one[0], 0), (0, 1) if one[0] in stale else (1,), f"{w}-{i}-{a}-{b}: {one}")
        self.assertGreater(left_out, 0)
        self.assertGreaterEqual(excluded, left_out)
        self.assertLess(len(stale), 100 + rounds * WORDS * WORDS // 20)
        print(f"\n{SWAPS} swaps, {rounds * WORDS * WORDS} programs, {left_out} left out, {len(stale)} ends swept up; a swap took "
              f"{sorted(took)[len(took) // 2] / 1e6:.1f} ms, {max(took) / 1e6:.1f} at most")

    def test_ten_thousand(self):
        alpha, beta = self.tool("alpha"), self.tool("beta")
        d = self.driver()
        rules = [f"exclude exe=tool-{i}" if i % 2 else f"exclude path=/no-such/{i % 100}/{i}/" for i in range(9999)]
        inside, outside, _ = d.set(*rules, "exclude exe=alpha")  # how long it takes: tests/bench/bench_rules.c
        self.assertEqual((10000, 0), (inside, outside))
        self.assertEqual((False, True), (self.told(d, alpha), self.told(d, beta)))

    def test_a_sweep_that_finds_more_than_one_call_holds(self):
        """STALE_MAX of bpf/stale.h ended processes fit into one call of the kernel's program."""
        alpha = self.tool("alpha")
        d = self.driver()
        ended = [subprocess.Popen([alpha]) for _ in range(200)]
        for p in ended:
            os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        pids = sorted(p.pid for p in ended)
        d.take()
        for _ in range(2):
            d.ask("sweep", "swept")
            events = [e for e in d.take() if len(e) > 1 and int(e[1]) in pids]  # others may run anything meanwhile
            self.assertEqual(pids, sorted(int(e[1]) for e in events), "each once a sweep")
            self.assertEqual({"stale"}, {e[0] for e in events})
        for p in ended:
            p.wait()

    def test_rules_outlive_their_reader(self):
        if not os.path.ismount("/sys/fs/bpf"):
            self.skipTest("no BPF file system")
        pins = f"/sys/fs/bpf/sluice-filter-{uuid.uuid4().hex[:8]}"
        self.addCleanup(subprocess.run, ["rm", "-rf", pins])
        alpha, beta = self.tool("alpha"), self.tool("beta")
        d = self.driver(pins)
        d.set("exclude exe=alpha")
        d.judge()
        self.assertEqual(0, d.close())
        for x in (alpha, beta):
            subprocess.run([x, "meanwhile"], check=True)
        d = self.driver(pins)
        self.assertEqual(1, d.origin)
        told = [e[6] for e in d.take() if e[0] == "exec" and e[7] == "meanwhile"]
        self.assertEqual([beta], told)
        self.assertEqual((False, True), (self.told(d, alpha), self.told(d, beta)))
        d.set("exclude exe=beta")
        self.assertEqual((True, False), (self.told(d, alpha), self.told(d, beta)))


if __name__ == "__main__":
    harness.main()
