# SPDX-License-Identifier: Apache-2.0
"""What the programs of a run hold together, and how the time of a run is divided."""
import tempfile

import harness
from harness import LakeTest, read_lake

MIB = 1 << 20
LIFE_S = 4 * harness.PATIENCE  # so that passes, of which there is one a second, see it
PYTHON = "/usr/bin/python3"
INTERPRETER = 16 * MIB  # more than Python itself has

# $1: seconds. Each has what it prints.
HOLDS = "import sys, time; x = bytearray(%d); time.sleep(float(sys.argv[1]))"
SIDE_BY_SIDE = f"{PYTHON} -c '{HOLDS % (100 * MIB)}' $1 & {PYTHON} -c '{HOLDS % (150 * MIB)}' $1; wait"
ONE_BY_ONE = f"{PYTHON} -c '{HOLDS % (100 * MIB)}' $1; {PYTHON} -c '{HOLDS % (150 * MIB)}' $1"
# Four children of one that has 200 MiB, each of which writes to 20 of them.
POOL = f"""
import os, sys, time
x = bytearray({200 * MIB})
for i in range(0, len(x), 4096):
    x[i] = 1
for n in range(4):
    if os.fork() == 0:
        time.sleep(1.5)         # a pass sees what it began with
        for i in range(0, {20 * MIB}, 4096):
            x[i] = 2
        time.sleep(float(sys.argv[1]))
        os._exit(0)
for n in range(4):
    os.wait()
"""
# Four processes that map the same 100 MiB, which is no file of a disk.
SHARES = f"""
import mmap, os, sys, time
x = mmap.mmap(-1, {100 * MIB})
for n in range(4):
    if os.fork() == 0:
        for i in range(0, len(x), 4096):
            x[i] = 1
        time.sleep(float(sys.argv[1]))
        os._exit(0)
for n in range(4):
    os.wait()
"""
# Maps a file of 100 MiB and reads all of it.
MAPS = """
import mmap, sys, time
f = open(sys.argv[2], 'rb')
x = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
sum(x[i] for i in range(0, len(x), 4096))
time.sleep(float(sys.argv[1]))
"""
SPINS_AND_SLEEPS = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end: pass
time.sleep(float(sys.argv[1]))
"""


class Together(LakeTest):
    def run_of(self, *command):
        self.assertEqual(0, self.sluice_run(*command, options=["--quiet"]).returncode)
        return next(r for r in read_lake(self.lake)["sluice.run"] if r["phase"] == "END")

    def assert_peak(self, held, run, slack=0):
        """Its peak is held, and in addition an interpreter of each program at most."""
        self.assertGreaterEqual(run["peak_memory_bytes"], held - slack)
        self.assertLess(run["peak_memory_bytes"], held + slack + 5 * INTERPRETER)
        self.assertIsNone(run["memory_bytes"])

    def test_programs_side_by_side_add_up(self):
        run = self.run_of("/bin/sh", "-c", SIDE_BY_SIDE, "sh", str(LIFE_S))
        self.assert_peak(250 * MIB, run)
        self.assertEqual("PASS", run["peak_memory_source"])

    def test_one_by_one_they_do_not(self):
        run = self.run_of("/bin/sh", "-c", ONE_BY_ONE, "sh", str(LIFE_S))
        self.assertGreaterEqual(run["peak_memory_bytes"], 150 * MIB)
        self.assertLess(run["peak_memory_bytes"], 150 * MIB + 2 * INTERPRETER)

    def test_one_that_no_pass_saw_has_its_high_water_mark(self):
        run = self.run_of(PYTHON, "-c", HOLDS % (120 * MIB), "0")
        self.assertGreaterEqual(run["peak_memory_bytes"], 120 * MIB)
        self.assertLess(run["peak_memory_bytes"], 120 * MIB + 2 * INTERPRETER)

    def test_children_have_what_they_wrote_to(self):
        self.assert_peak(280 * MIB, self.run_of(PYTHON, "-c", POOL, str(LIFE_S)), slack=8 * MIB)

    def test_shared_memory_counts_once(self):
        self.assert_peak(100 * MIB, self.run_of(PYTHON, "-c", SHARES, str(LIFE_S)), slack=4 * MIB)

    def test_a_mapped_file_is_not_held(self):
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as f:      # no tmpfs, whose files are shared memory
            f.truncate(100 * MIB)
            run = self.run_of(PYTHON, "-c", MAPS, str(LIFE_S), f.name)
        self.assertGreaterEqual(run["usage"]["peak_rss_bytes"], 100 * MIB)
        self.assertLess(run["peak_memory_bytes"], 2 * INTERPRETER)


class Time(LakeTest):
    def test_own_time_adds_up(self):
        """Half of the time on a CPU, half of it asleep, beside a parent that waits for it all the time."""
        done = self.sluice_run("/bin/sh", "-c", f"{PYTHON} -c '{SPINS_AND_SLEEPS}' $1; true", "sh", str(LIFE_S),
                               options=["--quiet"])
        self.assertEqual(0, done.returncode)
        run = next(r for r in read_lake(self.lake)["sluice.run"] if r["phase"] == "END")
        bill = run["own_bill"]
        self.assertEqual(run["wall_ns"], sum(bill.values()))
        # While its child has no sample yet, from which the next pass may be a second away.
        self.assertLess(bill["child_ns"], 1e9 + 0.05 * run["wall_ns"])
        spun = LIFE_S * 1e9
        for ns in bill["cpu_ns"] + bill["run_queue_ns"], bill["timer_ns"] + bill["unknown_ns"]:
            self.assertAlmostEqual(spun, ns, delta=0.4 * spun)


if __name__ == "__main__":
    harness.main()
