# SPDX-License-Identifier: Apache-2.0
"""Energy of runs and tasks, by a meter of 50 W: a folder as that of powercap, which is mounted over the kernel's."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

import harness
from agent import AgentTest
from harness import LakeTest, read_cat, read_lake
from test_agent_account import account_only
from test_agent_privileges import NOBODY

WATTS = 50
RANGE_UJ = 65_532_610_987  # a counter of 32 bits in steps of 15.3 µJ
SECONDS = 4 * harness.PATIENCE
BURN = "import sys, time\nend = time.process_time() + float(sys.argv[1])\nwhile time.process_time() < end: pass"
# $0: what is mounted over /sys/class, with the real network devices in it
INSIDE = ('mkdir -p "$0/net" && mount --bind /sys/class/net "$0/net" && mount --rbind "$0" /sys/class && exec "$@"')


class Meter:
    """A package whose counter runs until close(); it wraps soon. mode: of the counter's file, which is root's."""

    def __init__(self, room, mode=0o400, zones=("package-0",)):
        self.folder = os.path.join(room, "class")
        self.counters = []
        for number, name in enumerate(zones):
            zone = os.path.join(self.folder, "powercap", f"intel-rapl:{number}")
            os.makedirs(zone)
            for file, text in (("name", name), ("max_energy_range_uj", str(RANGE_UJ))):
                with open(os.path.join(zone, file), "w") as f:
                    f.write(text + "\n")
            counter = os.open(os.path.join(zone, "energy_uj"), os.O_RDWR | os.O_CREAT, mode)
            os.fchmod(counter, mode)
            self.counters.append(counter)
        for at, _, _ in os.walk(room):
            os.chmod(at, 0o755)
        self.prefix = ["unshare", "--mount", "sh", "-c", INSIDE, self.folder]
        self.began = time.monotonic()
        self.ended = threading.Event()
        self.count()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def count(self):
        """All zones share the power. In place, and always as long, so that a reader sees one number or the other."""
        used = int((time.monotonic() - self.began) * WATTS * 1e6 / len(self.counters))
        for counter in self.counters:
            os.pwrite(counter, b"%020d\n" % ((RANGE_UJ - 60_000_000 + used) % RANGE_UJ), 0)

    def run(self):
        while not self.ended.wait(0.01):
            self.count()

    def close(self):
        self.ended.set()
        self.thread.join()
        for counter in self.counters:
            os.close(counter)


def parts_of(host):
    return host["energy_attributed_uj"] + host["energy_unattributed_uj"] + host["energy_idle_uj"]


def cpu_seconds(record):
    return (record["usage"]["cpu_user_ns"] + record["usage"]["cpu_system_ns"]) / 1e9


class OfRuns(LakeTest):
    def run_metered(self, *command, options=(), **meter):
        """Records of a run by topic; the meter runs a little longer than it."""
        room = tempfile.mkdtemp(prefix="sluice-meter-")
        self.addCleanup(shutil.rmtree, room, ignore_errors=True)
        m = Meter(room, **meter)
        self.addCleanup(m.close)
        done = subprocess.run([*m.prefix, harness.SLUICE, "run", "--as-root", "--own-probes", "--quiet", "--lake", self.lake,
                               *options, "--", *command], env=harness.plain_environment(), timeout=120 * harness.PATIENCE)
        self.assertEqual(0, done.returncode)
        return read_lake(self.lake)

    def assert_by_cpu_time(self, record, cpus):
        """What CPU time costs by the meter, whenever it was used: 50 W by all CPUs."""
        self.assertEqual("POWERCAP", record["energy_source"])
        expected = WATTS * 1e6 * cpu_seconds(record) / cpus
        self.assertAlmostEqual(expected, record["energy_uj"], delta=0.1 * expected + 50_000)

    def test_the_shares_and_the_residue_are_what_the_meter_counted(self):
        topics = self.run_metered("/usr/bin/python3", "-c", BURN, str(SECONDS))
        run = next(r for r in topics["sluice.run"] if r["phase"] == "END")
        hosts = [r for r in topics["sluice.host"] if r["energy_uj"] is not None]
        self.assertTrue(hosts)
        for host in hosts:
            self.assertEqual(host["energy_uj"], parts_of(host), host)
            self.assertEqual("POWERCAP", host["energy_source"])
        self.assertEqual(sum(h["energy_attributed_uj"] for h in hosts), run["energy_uj"])
        self.assert_by_cpu_time(run, hosts[0]["cpus"])
        total = sum(h["energy_uj"] for h in hosts)
        self.assertAlmostEqual(WATTS * run["wall_ns"] / 1e9, total / 1e6, delta=WATTS)  # within a second
        self.assertGreater(sum(h["energy_idle_uj"] + h["energy_unattributed_uj"] for h in hosts), 0)

    def test_programs_of_an_instant_and_two_packages(self):
        script = "for i in 1 2 3 4 5 6 7 8 9 10; do /usr/bin/python3 -c '%s' 0.2; done" % BURN
        topics = self.run_metered("/bin/sh", "-c", script, zones=("package-0", "package-1"), options=["--task", "align"])
        cpus = topics["sluice.host"][0]["cpus"]
        run, task = (next(r for r in topics[t] if r["phase"] == "END") for t in ("sluice.run", "sluice.task"))
        self.assert_by_cpu_time(run, cpus)
        self.assert_by_cpu_time(task, cpus)
        self.assertAlmostEqual(run["energy_uj"], task["energy_uj"], delta=100)  # both are rounded at each reading

    def test_without_a_package_there_is_no_energy(self):
        topics = self.run_metered("/usr/bin/python3", "-c", BURN, "1", zones=("psys", "dram"))
        for topic in ("sluice.run", "sluice.host"):
            for record in topics[topic]:
                self.assertIsNone(record["energy_uj"])
                self.assertIsNone(record["energy_source"])


class OfTheHost(AgentTest):
    @classmethod
    def setUpClass(cls):
        """What an agent mounts in a mount namespace of its own, the next one would not find."""
        subprocess.run(["sh", "-c", "mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf"], check=True)

    def metered(self, a, **meter):
        m = Meter(tempfile.mkdtemp(prefix="meter-", dir=a.room), **meter)
        self.addCleanup(m.close)
        a.command_prefix = [*m.prefix, *a.command_prefix]
        return m

    def records(self, a, topic):
        with contextlib.suppress(AssertionError):  # its folder may not be there yet
            return read_cat(a.lake, topic)
        return []

    def burner(self):
        p = subprocess.Popen(["/usr/bin/python3", "-c", BURN, "600"])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def latest(self, a):
        """Energy of the run "burn" by its last record; 0: none."""
        of_run = [r["energy_uj"] or 0 for r in self.records(a, "run") if r["run_id"] == "burn"]
        return of_run[-1] if of_run else 0

    def test_an_agent_that_gave_up_root_reads_it_and_the_next_one_goes_on(self):
        a = self.agent()
        self.metered(a)
        burner = self.burner()
        a.start()
        a.wait_log("agent.energy")
        a.ctl("tag", "--pid", str(burner.pid), "--run", "burn", check=True)
        a.wait(lambda: self.latest(a) > WATTS * 1e6 / os.cpu_count(), what="energy of some seconds")
        a.kill9()
        before = self.latest(a)
        a.start()
        a.wait(lambda: self.latest(a) > before + WATTS * 1e6 / os.cpu_count(), what="more energy")
        self.assertEqual(0, a.stop())
        runs = [r["energy_uj"] for r in self.records(a, "run") if r["run_id"] == "burn" and r["energy_uj"] is not None]
        self.assertEqual(sorted(runs), runs)
        hosts = [r for r in self.records(a, "host") if r["energy_uj"] is not None]
        for host in hosts:
            self.assertEqual(host["energy_uj"], parts_of(host))
        self.assertTrue(any(h["energy_attributed_uj"] > 0 for h in hosts))

    def test_an_account_that_may_not_read_it_says_which_file(self):
        for may_read in (False, True):
            with self.subTest(may_read):
                a = self.agent("owner" if may_read else "other")
                a.sluice = os.path.join(a.room, "sluice")
                shutil.copy(harness.SLUICE, a.sluice)
                os.chmod(a.sluice, 0o755)
                own = os.path.join(a.room, "own")
                os.makedirs(own)
                os.chown(own, NOBODY.pw_uid, NOBODY.pw_gid)
                a.lake, a.control = os.path.join(own, "lake"), os.path.join(own, "control.sock")
                a.configure(spool={"dir": os.path.join(own, "spool")}, lake=a.lake, control=a.control, metrics=None,
                            run_socket=os.path.join(own, "run.sock"), dead_letters=os.path.join(own, "dead-letters"))
                a.command_prefix = account_only(a.pins)
                m = self.metered(a)
                if may_read:  # as the unit has it
                    os.fchown(m.counters[0], NOBODY.pw_uid, -1)
                a.start()
                line = a.wait_log("agent.energy")
                a.wait(lambda: len(self.records(a, "host")) > 3, what="Host records")
                self.assertEqual(0, a.stop())
                self.assertEqual("info" if may_read else "warning", line["level"])
                self.assertEqual(may_read, "/sys/class/powercap/intel-rapl:0/energy_uj" not in json.dumps(line))
                self.assertEqual(may_read, any(r["energy_uj"] is not None for r in self.records(a, "host")))

    def test_doctor_names_the_meter(self):
        room = tempfile.mkdtemp(prefix="sluice-meter-")
        self.addCleanup(shutil.rmtree, room, ignore_errors=True)
        m = Meter(room)
        self.addCleanup(m.close)
        for prefix, source, says in ((m.prefix, "POWERCAP", "energy: 1 counter of POWERCAP"),
                                     ([*m.prefix[:-1], tempfile.mkdtemp(dir=room)], None, "energy: not recorded: no powercap zone")):
            done = subprocess.run([*prefix, harness.SLUICE, "doctor", "--json"], stdout=subprocess.PIPE, text=True)
            self.assertEqual(source, json.loads(done.stdout)["energy"]["source"])
            done = subprocess.run([*prefix, harness.SLUICE, "doctor"], stdout=subprocess.PIPE, text=True)
            self.assertIn(says, done.stdout)


if __name__ == "__main__":
    harness.main()
