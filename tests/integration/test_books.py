# SPDX-License-Identifier: Apache-2.0
"""The lake, held to two books that the kernel keeps by itself: taskstats and acct(2), over real programs.

BOOKS_ROUNDS: how many times each load does its work (default 40); EMULATED=1: the machine is emulated.
"""
import copy
import json
import os
import sys

import books
import harness
from agent import AgentTest
from harness import read_lake

ROUNDS = int(os.environ.get("BOOKS_ROUNDS", "40"))
TRIES = 3  # of a load whose records did not all reach the reader

LOADS = {
    "storm": "for i in $(seq ROUNDS); do /bin/true; (exit 3); ls /nowhere; sh -c 'kill -9 $$'; /bin/echo $i >/dev/null & done; wait",
    "pipeline": "seq $((ROUNDS * 1000)) | sort -R --parallel=2 | md5sum; head -c $((ROUNDS * 20000)) /dev/urandom >x; "
                "xz -T2 -1 -c x | wc -c; gzip -1 <x | gzip -dc | cmp - x; dd if=x of=y bs=64k conv=fsync; timeout 0.1 sleep 5; rm x y",
    "python": "/usr/bin/python3 -c 'import subprocess, threading\n"
              "kept = bytearray(ROUNDS << 19)\n"
              "ts = [threading.Thread(target=lambda: sum(range(ROUNDS * 2000))) for _ in range(3)]\n"
              "[t.start() for t in ts]; [t.join() for t in ts]\n"
              "[subprocess.run([\"sh\", \"-c\", \"exit 4\"]) for _ in range(3)]'",
    "make": "printf 'all: %s\\n%%.o:\\n\\t@head -c 3000 /dev/zero | md5sum >$@\\nall:\\n\\t@cat *.o | wc -c; $(MAKE) sub\\n"
            "sub:\\n\\t@-false; rm -f *.o\\n' \"$(seq -s ' ' -f %.0f.o $((ROUNDS / 4)))\" >Makefile; make -j3",
}


class Books(AgentTest):
    def setUp(self):
        super().setUp()
        self.uid = 1_600_000_000 + os.getpid()
        self.work = os.path.join(self.room, "work")
        os.mkdir(self.work)
        os.chown(self.work, self.uid, self.uid)
        os.chmod(self.work, 0o755)
        # On no disk: who writes a record there as it ends, and first touches a page, would have caused that page's write.
        self.acct = "/dev/shm/sluice-books-%d" % os.getpid()
        self.addCleanup(lambda: os.path.exists(self.acct) and os.unlink(self.acct))

    def command(self):
        """All loads, one after another, as the only ones of a user and of a pid namespace."""
        script = "cd \"$1\"\n" + "\n".join(load.replace("ROUNDS", str(ROUNDS)) for load in LOADS.values()) + "\nexit 0"
        return ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-B", os.path.abspath(books.__file__), self.acct,
                str(self.uid), "/bin/bash", "-c", script, "loads", self.work]

    def compare(self, topics, book):
        processes = books.processes_of(topics["sluice.program"], self.uid)
        signals = {s["name"]: s["state"] for s in json.loads(harness.run_sluice(["doctor", "--json"], timeout=600).stdout)["signals"]}
        by_kernel, largest = books.against_taskstats(processes, book.tasks, self.uid, harness.IS_EMULATED, signals["peak_rss"] != "missing")
        account = books.read_acct(self.acct, self.uid)
        print(f"{len(processes)} processes, taskstats version {book.version}, {sum(account.values())} in acct(2); "
              f"largest differences: {dict(largest)}")
        self.assertGreater(len(processes), ROUNDS * 4)
        self.assertEqual("", "\n".join(by_kernel[:20] + books.against_acct(processes, account)[:20]))
        return processes, account

    def whole_book(self, load):
        """Runs load while taskstats is read: (its result, the book)."""
        for left in reversed(range(TRIES)):
            try:
                with books.Taskstats() as book:
                    result = load()
                return result, book
            except books.Overrun as e:
                print(f"taskstats: {e}: the load runs anew")
                if not left:
                    raise

    def test_each_process_of_a_run(self):
        def load():
            self.lake = os.path.join(self.room, "lake-%d" % len(os.listdir(self.room)))
            return self.sluice_run(*self.command(), options=["--quiet"], timeout=300)

        done, book = self.whole_book(load)
        self.assertEqual((0, True), (done.returncode, os.path.exists(self.acct)), done.stderr)
        topics = read_lake(self.lake)
        # A page that the kernel moves at that moment cannot be read, which a slow machine may meet; no argument is compared.
        self.assert_nothing_lost(topics, but=[("on_exec", "read_failed", 1)] if harness.IS_EMULATED else [])
        processes, account = self.compare(topics, book)
        self.assert_faults_are_found(processes, book, account)

    def assert_faults_are_found(self, processes, book, account):
        """The comparison itself: each of these makes it fail."""
        def found(change):
            spoilt = copy.deepcopy(processes)
            change(spoilt)
            return (books.against_taskstats(spoilt, book.tasks, self.uid, harness.IS_EMULATED, False)[0],
                    books.against_acct(spoilt, account))

        def more(field, n):
            def change(spoilt):
                next(p for p in spoilt.values() if p[-1]["comm"] == "md5sum")[-1]["usage"][field] += n
            return change

        pid = next(pid for pid, p in processes.items() if p[-1]["comm"] == "true")
        self.assertRegex(found(lambda s: s.pop(pid))[1][0], "in acct.* and not in the lake")
        self.assertTrue(all(found(lambda s: s[pid][-1].update(exit_code=1))))
        self.assertTrue(all(found(more("minor_faults", 1))))
        for field, n in (("rchar", 1024), ("write_bytes", 4096), ("voluntary_switches", -1000), ("cpu_user_ns", -10**9)):
            self.assertRegex(" ".join(found(more(field, n))[0]), "md5sum: " + field.replace("_user", ""))

    def test_each_process_of_a_host(self):
        a = self.agent().start()

        def load():
            return harness.run_sluice(self.command()[1:], sluice=self.command()[0], timeout=300)

        done, book = self.whole_book(load)
        self.assertEqual(0, done.returncode, done.stderr)
        a.settle()
        self.assertEqual(0, a.stop(), a.log_text())
        self.compare(read_lake(a.lake), book)


if __name__ == "__main__":
    harness.main()
