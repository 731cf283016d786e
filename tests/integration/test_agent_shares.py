# SPDX-License-Identifier: Apache-2.0
"""Users of a host have shares of the processes that are followed at once, and of the ring: a user who needs less than a share
loses nothing, whatever two others do, and each share is given back exactly."""
import collections
import contextlib
import ctypes
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import harness
from agent import AgentTest
from harness import losses, read_lake
from load import own, own_folder

GREEDY, OTHER, MODEST = 64001, 64002, 64003  # users that own nothing
MAX = 2048  # processes
USERS = 4096  # bpf/user.h
IDS, FIRST_ID = 500, 100000  # subordinate ids of one user
USER_TEXT, USE_SECONDS = 1 << 19, 2  # correlate/users.h
CLONE_NEWUSER = 0x10000000

# PROGRAM NAME N BYTES: runs so many programs, one after the other, with an argument of BYTES in each.
RUNS = """
import os, sys
program, name, n, size = sys.argv[1:]
for i in range(int(n)):
    pid = os.posix_spawn(program, ["true", name, str(i), "x" * int(size)], {})
    os.waitpid(pid, 0)
"""

# PROGRAM: runs programs with arguments that hardly compress, for two minutes at most.
FLOOD = """
import os, sys, time
end = time.monotonic() + 120
while time.monotonic() < end:
    os.waitpid(os.posix_spawn(sys.argv[1], ["true", "flood", os.urandom(14000).hex()], {}), 0)
    time.sleep(0.002)
"""


def share_of(uid):
    return dict(user=uid, group=uid, extra_groups=())


class Shares(AgentTest):
    def runs(self, uid, name, n, size=0):
        p = subprocess.Popen(["/usr/bin/python3", "-c", RUNS, own("true"), name, str(n), str(size)], cwd="/", **share_of(uid))
        self.addCleanup(p.kill)
        return p

    def sleepers(self, uid, mark, n):
        """All exist at once, until end()."""
        program = own_folder() + "sleepers"
        if not os.path.exists(program):
            shutil.copy(harness.built("sleepers"), program)
        p = subprocess.Popen([program, mark, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
                             **share_of(uid))
        self.addCleanup(p.kill)
        self.assertEqual("ready\n", p.stdout.readline())
        return p

    def end(self, p):
        p.communicate(timeout=60 * harness.PATIENCE)
        self.assertEqual(0, p.returncode)

    def entries(self, a, uid):
        """How many entries count for a user."""
        (users,) = glob.glob(a.pins + "/*/maps/users")
        key = [str(b) for b in (uid % USERS).to_bytes(4, sys.byteorder)]
        done = subprocess.run(["bpftool", "-j", "map", "lookup", "pinned", users, "key", *key], stdout=subprocess.PIPE,
                              text=True, check=True)
        value = bytes(int(b, 16) for b in json.loads(done.stdout)["value"])
        return int.from_bytes(value[4:8], sys.byteorder)

    def lost_of(self, topics):
        """{uid: its element of the last Agent record}"""
        last = max(topics["sluice.agent"], key=lambda r: r["seq"])
        return {x["uid"]: x for x in last["lost_by_user"]}

    def ends(self, topics, uid, name):
        """{arguments after the name: how many ENDs}"""
        return collections.Counter((r["argv"] or [])[2] for r in topics["sluice.program"] if r["phase"] == "END" and
                                   r["uid"] == uid and (r["argv"] or [])[1:2] == [name])

    def test_a_user_below_its_share_of_the_processes_is_not_refused(self):
        a = self.agent(probes={"max_processes": MAX}).start()
        greedy = [self.sleepers(uid, "greedy", MAX) for uid in (GREEDY, OTHER)]
        held = {uid: self.entries(a, uid) for uid in (GREEDY, OTHER)}
        modest = self.sleepers(MODEST, "idle", 50)
        self.assertEqual(0, self.runs(MODEST, "modest", 80).wait())
        self.end(modest)
        for p in greedy:
            self.end(p)
        a.settle()
        a.wait(lambda: not any(self.entries(a, uid) for uid in (GREEDY, OTHER, MODEST)), what="shares that are given back")
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        sleepers = {r["argv"][2] for r in topics["sluice.program"] if r["uid"] == MODEST and r["phase"] == "END" and
                    (r["argv"] or [])[:2] == ["sleeper", "idle"]}
        self.assertEqual({str(i) for i in range(50)}, sleepers)
        self.assertEqual({str(i): 1 for i in range(80)}, self.ends(topics, MODEST, "modest"))
        # The first one had half of what the host left, the second half of the rest.
        self.assertTrue(MAX / 3 < held[GREEDY] <= MAX / 2, held)
        self.assertTrue(MAX / 6 < held[OTHER] <= MAX / 4, held)
        lost = self.lost_of(topics)
        self.assertNotIn(MODEST, lost)
        for uid in (GREEDY, OTHER):
            self.assertGreater(lost[uid]["refused"], 0)
        refused = sum(n for _, reason, n in losses(topics) if reason == "map_full")
        self.assertEqual(refused, sum(x["refused"] for x in lost.values()))

    def test_shares_are_exact_across_agents(self):
        a = self.agent(probes={"max_processes": MAX}).start()
        some, more = self.sleepers(GREEDY, "some", 70), self.sleepers(GREEDY, "more", 30)
        self.assertEqual(102, self.entries(a, GREEDY))  # with both that started them
        a.kill9()
        self.end(some)  # the programs of the one that was killed are attached, and give back what they took
        a.start()
        a.wait(lambda: self.entries(a, GREEDY) == 31, what="the share of those that run")
        self.end(more)
        a.settle()
        a.wait(lambda: self.entries(a, GREEDY) == 0, what="the share of none")

    def in_namespace(self, owner, run):
        """Returns the pid of a process that calls run() as root of a user namespace of owner, with ids as newuidmap maps them."""
        made, mapped = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(owner, owner, owner)
                os.setresuid(owner, owner, owner)
                libc = ctypes.CDLL(None)
                os.write(made[1], b"1" if libc.unshare(CLONE_NEWUSER) == 0 else b"0")
                os.read(mapped[0], 1)
                os.setresuid(0, 0, 0)
                run()
                os._exit(0)
            finally:
                os._exit(1)
        if os.read(made[0], 1) != b"1":
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.skipTest("this kernel makes no user namespaces")
        with open(f"/proc/{pid}/uid_map", "w") as f:
            f.write(f"0 {FIRST_ID} {IDS}\n")
        os.write(mapped[1], b"1")
        for fd in made + mapped:
            os.close(fd)
        return pid

    def test_ids_of_a_user_namespace_are_of_its_owner(self):
        def sleep():
            os.setresuid(7, 7, 7)
            os.execv("/bin/sleep", ["sleep", "60"])

        a = self.agent(probes={"max_processes": MAX}).start()
        pid = self.in_namespace(GREEDY, sleep)
        self.addCleanup(lambda: (os.kill(pid, signal.SIGKILL), os.waitpid(pid, 0)))
        a.wait(lambda: open(f"/proc/{pid}/comm").read() == "sleep\n", what="the exec")
        self.assertEqual((1, 0), (self.entries(a, GREEDY), self.entries(a, FIRST_ID + 7)))

    def test_a_setuid_program_of_one_of_its_ids_is_of_the_user(self):
        """As the user makes it in a namespace: what runs it, in no namespace, becomes that id."""
        uid = FIRST_ID + 7
        program = shutil.copy("/usr/bin/python3", own_folder() + "setuid-python")
        os.chown(program, uid, uid)
        os.chmod(program, 0o4755)
        a = self.agent(probes={"max_processes": MAX}).start()
        script = f"import os; os.setresuid({uid}, {uid}, {uid}); os.fork(); os.execv('/bin/sleep', ['sleep', '60'])"
        p = subprocess.Popen([program, "-I", "-c", script], cwd="/", start_new_session=True, **share_of(GREEDY))
        self.addCleanup(p.wait)
        self.addCleanup(os.killpg, p.pid, signal.SIGKILL)
        a.wait(lambda: self.entries(a, GREEDY) == 2 and open(f"/proc/{p.pid}/comm").read() == "sleep\n", what="both")
        self.assertEqual((2, 0), (self.entries(a, GREEDY), self.entries(a, uid)))

    def test_what_becomes_root_after_a_setuid_program_is_of_root(self):
        """As by sudo: from then on it counts for whatever user it becomes."""
        uid = FIRST_ID + 7
        programs = {owner: shutil.copy("/usr/bin/python3", own_folder() + f"setuid-{owner}-python") for owner in (uid, 0)}
        for owner, program in programs.items():
            os.chown(program, owner, owner)
            os.chmod(program, 0o4755)
        a = self.agent(probes={"max_processes": MAX}).start()
        third = f"import os; os.setresuid(*[{MODEST}] * 3); os.execv('/bin/sleep', ['sleep', '60'])"
        second = f"import os; os.setresuid(0, 0, 0); os.execv({own('python3')!r}, ['python3', '-I', '-c', {third!r}])"
        first = f"import os; os.setresuid(*[{uid}] * 3); os.execv({programs[0]!r}, ['python3', '-I', '-c', {second!r}])"
        p = subprocess.Popen([programs[uid], "-I", "-c", first], cwd="/", start_new_session=True, **share_of(GREEDY))
        self.addCleanup(p.wait)
        self.addCleanup(os.killpg, p.pid, signal.SIGKILL)
        a.wait(lambda: open(f"/proc/{p.pid}/comm").read() == "sleep\n", what="the last of them")
        self.assertEqual((0, 0, 1), tuple(self.entries(a, user) for user in (GREEDY, uid, MODEST)))

    def test_many_ids_of_a_user_have_the_text_of_one(self):
        """Each of them runs one program with long arguments. As users of their own they would have the text of all."""
        program, size = own("true"), 30000

        def one_each():
            for i in range(1, IDS):
                pid = os.fork()
                if pid == 0:
                    os.setresuid(i, i, i)
                    os.execv(program, ["true", "greedy", str(i), "x" * size])
                os.waitpid(pid, 0)

        a = self.agent(probes={"ring": "64MiB"}).start()
        begin = time.monotonic()
        pid = self.in_namespace(GREEDY, one_each)
        self.assertEqual(0, self.runs(MODEST, "modest", 20, 20000).wait())
        self.assertEqual(0, os.waitpid(pid, 0)[1])
        seconds = time.monotonic() - begin
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        ends = [r for r in read_lake(a.lake)["sluice.program"] if r["phase"] == "END" and r["argv"]]
        greedy = [r for r in ends if r["argv"][1:2] == ["greedy"]]
        whole = sum(not r["argv_truncated"] for r in greedy)
        self.assertEqual({FIRST_ID + i for i in range(1, IDS)}, {r["uid"] for r in greedy})
        self.assertEqual(0, sum(r["argv_truncated"] for r in ends if r["uid"] == MODEST))
        self.assertTrue(0 < whole * (size - 1024) <= USER_TEXT * (seconds + 2 * USE_SECONDS), (whole, seconds))

    def test_a_user_below_its_share_of_the_ring_loses_nothing(self):
        """While no agent reads: the ring has room for a part of what two users write, and for all of the third."""
        a = self.agent(probes={"ring": "2MiB"}).start()
        a.signal(signal.SIGSTOP)
        greedy = [self.runs(uid, "greedy", 700, 31000) for uid in (GREEDY, OTHER)]
        self.assertEqual([0, 0], [p.wait() for p in greedy])
        self.assertEqual(0, self.runs(MODEST, "modest", 50, 200).wait())
        a.signal(signal.SIGCONT)
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        self.assertEqual({str(i): 1 for i in range(50)}, self.ends(topics, MODEST, "modest"))
        lost = self.lost_of(topics)
        self.assertNotIn(MODEST, lost)
        for uid in (GREEDY, OTHER):
            self.assertGreater(lost[uid]["cut"], 0)
            self.assertGreater(lost[uid]["lost"], 0)
        all_lost = collections.Counter()
        for place, reason, n in losses(topics):
            all_lost[place, reason] += n
        self.assertEqual(all_lost["on_exec", "ring_full"] + all_lost["on_free", "ring_full"],
                         sum(x["lost"] for x in lost.values()))
        cut = (("on_exec", "cut"), ("correlate", "text_over_share"), ("correlate", "text_over_budget"))
        self.assertEqual(sum(all_lost[x] for x in cut), sum(x["cut"] for x in lost.values()))
        self.assertGreater(all_lost["on_exec", "ring_full"], all_lost["on_free", "ring_full"])  # ends are lost last

    def test_beside_a_flood_a_third_user_loses_nothing_and_the_flood_has_its_ends(self):
        a = self.agent().start()
        greedy = [self.runs(uid, "greedy", 1500, 31000) for uid in (GREEDY, OTHER)]
        self.assertEqual(0, self.runs(MODEST, "modest", 300).wait())
        self.assertEqual([0, 0], [p.wait() for p in greedy])
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        self.assertEqual({str(i): 1 for i in range(300)}, self.ends(topics, MODEST, "modest"))
        self.assertNotIn(MODEST, self.lost_of(topics))
        self.assertEqual(0, sum(n for place, reason, n in losses(topics) if (place, reason) == ("on_free", "ring_full")))
        # A program has its END without a name if its exec did not fit, and without arguments if the agent had no memory for them.
        ends = collections.Counter(r["ppid"] for r in topics["sluice.program"] if r["phase"] == "END")
        self.assertEqual([1500, 1500], [ends[p.pid] for p in greedy], self.lost_of(topics))

    def test_a_user_below_its_share_of_the_spool_loses_nothing(self):
        """The lake's disk is full for so long that one user's programs fill the spool: another's wait there until it is not."""
        disk = os.path.join(self.room, "disk")
        os.makedirs(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0755", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        a = self.agent(lake=disk + "/lake", disk_free_min=0, spool={"max": "16MiB"}).start()
        a.settle(delivered=True)
        with open(disk + "/fill", "wb", buffering=0) as f, contextlib.suppress(OSError):
            while True:
                f.write(bytes(65536))
        self.assertEqual(0, self.runs(MODEST, "before", 50, 100).wait())
        greedy = self.runs(GREEDY, "greedy", 1000000, 20000)
        a.wait(lambda: self.over_share(a) > 500, timeout=120, what="records that are not put")
        self.assertEqual(0, self.runs(MODEST, "beside", 50, 100).wait())
        over = self.over_share(a)
        a.wait(lambda: self.over_share(a) > over, what="more of them")
        greedy.kill()
        greedy.wait()
        os.unlink(disk + "/fill")
        a.settle(delivered=True, timeout=90)
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(disk + "/lake")
        for name in ("before", "beside"):
            self.assertEqual({str(i): 1 for i in range(50)}, self.ends(topics, MODEST, name), name)
        self.assertEqual({GREEDY}, set(self.lost_of(topics)))
        lost = collections.Counter()
        for place, reason, n in losses(topics):
            lost[reason] += n
        self.assertEqual(0, lost["spool_full"], lost)
        self.assertEqual(lost["spool_over_share"] + lost["ring_full"], self.lost_of(topics)[GREEDY]["lost"])

    def test_a_user_below_its_share_of_the_lake_keeps_its_records(self):
        """Two users write more than the lake may have, before and after a restart."""
        a = self.agent(lake_max="16MiB").start()
        self.assertEqual(0, self.runs(MODEST, "before", 100, 100).wait())
        for part in range(2):
            flood = [subprocess.Popen([sys.executable, "-c", FLOOD, own("true")], cwd="/", **share_of(uid))
                     for uid in (GREEDY, OTHER)]
            for p in flood:
                self.addCleanup(p.kill)
            a.wait(lambda: self.removed(a, "lake_over_share") > 4 << 20, timeout=120, what="files that are removed")
            self.assertEqual(0, self.runs(MODEST, f"beside {part}", 20, 100).wait())
            time.sleep(0.5)  # in which each flood has programs that begin after these
            for p in flood:
                p.kill()
                p.wait()
            self.assertEqual(0, self.removed(a, "lake_full"))
            a.settle(delivered=True)
            self.assertEqual(0, a.stop(), a.log_text())
            with open(glob.glob(a.lake + "/.shares-*")[0]) as f:
                has = dict(line.split() for line in f if line[0].isdigit())
            for uid in (GREEDY, OTHER):
                self.assertGreater(int(has[str(uid % USERS)]), 1 << 19, has)
            if part == 0:
                a.start()
        topics = read_lake(a.lake)
        self.assertEqual({str(i): 1 for i in range(100)}, self.ends(topics, MODEST, "before"))
        for part in range(2):
            self.assertEqual({str(i): 1 for i in range(20)}, self.ends(topics, MODEST, f"beside {part}"))
        # Of each flood the last records are there.
        last = max(r["time"] for r in topics["sluice.program"] if r["uid"] == MODEST)
        for uid in (GREEDY, OTHER):
            self.assertTrue(any(r["uid"] == uid and r["time"] > last for r in topics["sluice.program"]), uid)
        self.assertLess(sum(os.path.getsize(p) for p in glob.glob(a.lake + "/**/*.avro", recursive=True)), 18 << 20)

    def removed(self, a, reason):
        return sum(r["bytes"] for r in a.status()["lake"]["removed"] if r["reason"] == reason)

    def over_share(self, a):
        return sum(d["count"] for d in a.status()["spool"]["dropped"] if d["reason"] == "spool_over_share")


if __name__ == "__main__":
    harness.main()
