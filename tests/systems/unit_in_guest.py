#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The unit under the systemd of a guest, as test_unit.py starts it: what is installed is the agent of this system.

Runs in the guest as root, with what the system has: Python's own library alone. Each program that a case starts has
a name of its own among its arguments, and the lake has each of them once: what an agent does not see while it is
stopped, killed or exchanged is a failure here.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

UNIT = "sluice-agent.service"
INSTALLED = "/usr/lib/systemd/system/" + UNIT
LAKE = "/var/lib/sluice/lake"
PINS = "/sys/fs/bpf/sluice"
DROP_IN = "/etc/sluice/conf.d/test.yaml"
EXPOSURE = float(os.environ["EXPOSURE"])
PATIENCE = 300  # seconds: the guest is emulated, beside other load
# The unit gives its agent a minute to begin. After a kill, and beside what a storm starts, that took more where the host
# itself had a load of six: such an agent was ended, and started again.
EMULATED = "/run/systemd/system/%s.d/emulated.conf" % UNIT


def run(*command, timeout=PATIENCE):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          universal_newlines=True, timeout=timeout)


def shown(name):
    """A property of the unit, as systemd has it."""
    return run("systemctl", "show", "--property=" + name, UNIT).stdout.strip().partition("=")[2]


def journal(since=None):
    return run("journalctl", "--no-pager", "--output=cat", "--unit=" + UNIT, *(["--since=" + since] if since else [])).stdout


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


class Storm:
    """Programs NAME-0, NAME-1 … one after another, until it is left and at least so many."""

    def __init__(self, name, least):
        self.name, self.least, self.n, self.is_over = name, least, 0, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.is_over or self.n < self.least:
            pid = os.posix_spawn("/bin/true", ["true", "%s-%d" % (self.name, self.n)], {})
            os.waitpid(pid, 0)
            self.n += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()


class Unit(unittest.TestCase):
    maxDiff = None

    def wait(self, condition, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.2)
        raise AssertionError("no %s within %d s:\n%s%s" % (what, PATIENCE, run("systemctl", "status", UNIT).stdout, journal()))

    def ok(self, *command):
        done = run(*command)
        self.assertEqual(0, done.returncode, "%s: %s\n%s" % (" ".join(command), done.stdout, journal()))
        return done.stdout

    def ends(self, name):
        """How often the lake has the end of each program of a storm: a redelivery has the number of the first."""
        numbers = {}
        for line in self.ok("sluice", "cat", "--topic", "program", LAKE).splitlines():
            record = json.loads(line)
            argv = record.get("argv") or []
            if record["phase"] == "END" and len(argv) == 2 and argv[1].rpartition("-")[0] == name:
                numbers.setdefault(argv[1], set()).add((record["agent_id"], record["seq"]))
        return {name: len(seen) for name, seen in numbers.items()}

    def all_recorded(self, storm):
        """Each of its programs once, with the agent that runs now."""
        self.ok("sluice", "ctl", "settle", "--delivered", "--timeout", "%ds" % (PATIENCE - 20))
        expected = {"%s-%d" % (storm.name, i): 1 for i in range(storm.n)}
        found = self.ends(storm.name)
        lost = sorted(set(expected) - set(found))
        self.assertEqual([], lost[:10], "%d of %d are missing\n%s" % (len(lost), storm.n, journal(self.began)))
        self.assertEqual({}, {name: n for name, n in found.items() if n != 1})
        self.assertEqual(set(expected), set(found))
        print("%s: %d of %d programs" % (storm.name, len(found), storm.n))

    def one_restart(self, before):
        """Once the service manager has restarted it by itself."""
        self.wait(lambda: int(shown("NRestarts")) == before + 1 and shown("ActiveState") == "active", "restart")

    @classmethod
    def setUpClass(cls):
        write(EMULATED, "[Service]\nTimeoutStartSec=%ds\n" % PATIENCE)
        run("systemctl", "daemon-reload")

    def setUp(self):
        run("systemctl", "reset-failed", UNIT)
        self.ok("systemctl", "start", UNIT)
        self.began = time.strftime("%Y-%m-%d %H:%M:%S")

    def tearDown(self):
        for path in (DROP_IN, "/etc/sluice/conf.d/bad.yaml"):
            if os.path.exists(path):
                os.remove(path)

    def test_10_starts_and_tells_systemd(self):
        self.assertEqual(("active", "running", "notify"), (shown("ActiveState"), shown("SubState"), shown("Type")))
        self.wait(lambda: re.search(r"\w+ \w+", shown("StatusText")), "text of the status")
        text = self.ok("systemctl", "status", UNIT)
        self.assertRegex(text, r'Status: "\w+')
        status = json.loads(self.ok("sluice", "ctl", "status", "--json"))
        print("status: %s" % shown("StatusText"))
        self.assertIn("spool", status)
        with open("/proc/%s/status" % shown("MainPID")) as f:
            fields = dict(line.split(":\t", 1) for line in f.read().splitlines())
        account = self.ok("id", "-u", "sluice").strip()
        self.assertEqual({account}, set(fields["Uid"].split()))
        self.assertEqual("1", fields["NoNewPrivs"].strip())
        bpf = 1 << 39
        self.assertEqual((bpf, 0, 0), tuple(int(fields[k], 16) for k in ("CapEff", "CapInh", "CapAmb")))
        # Never was root: CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE are all that it could have.
        self.assertEqual(bpf | 1 << 38 | 1 << 19, int(fields["CapBnd"], 16))

    def test_11_what_ran_is_recorded(self):
        with Storm("first", 50) as storm:
            pass
        self.all_recorded(storm)

    def test_12_nothing_was_refused(self):
        """No setting of the unit takes from the agent what it needs: each capability and probe is there."""
        text = journal()
        for refused in ("not permitted", "EPERM", "denied", "SIGSYS", "Read-only", "cannot", "Unknown key", "probes.pin"):
            self.assertNotIn(refused, text)
        # Which signals a kernel lacks is its own affair.
        self.assertEqual([], [p["text"] for p in json.loads(self.ok("sluice", "ctl", "status", "--json")).get("problems", [])
                              if " is missing: " not in p["text"]])

    def test_13_a_program_that_ran_before_has_its_path(self):
        """Which is what CAP_SYS_PTRACE is for, also of another user, below a folder that the unit hides."""
        folder = "/home/admin/bin"
        os.makedirs(folder, exist_ok=True)
        shutil.copy("/bin/sleep", folder + "/early")
        os.chmod("/home/admin", 0o700)
        self.ok("systemctl", "stop", UNIT)
        self.ok("sluice", "agent", "--uninstall")
        early = subprocess.Popen(["sudo", "-u", "admin", "sh", "-c", "cd ~/bin && exec ~/bin/early 600"])
        try:
            self.wait(lambda: run("pgrep", "-u", "admin", "early").returncode == 0, "early program")
            self.ok("systemctl", "start", UNIT)
        finally:
            run("pkill", "-u", "admin", "early")
            early.wait()
        self.ok("sluice", "ctl", "settle", "--delivered")
        found = [r for r in map(json.loads, self.ok("sluice", "cat", "--topic", "program", LAKE).splitlines())
                 if r["exe"] == folder + "/early" and r["phase"] == "END"]
        self.assertEqual([folder], [r["cwd"] for r in found])

    def test_14_its_pins_are_its_own(self):
        account = int(self.ok("id", "-u", "sluice"))
        found = [os.path.join(at, name) for at, _, files in os.walk(PINS) for name in files]
        self.assertGreater(len(found), 10)
        self.assertEqual({account}, {os.stat(path).st_uid for path in found + [PINS]})
        # The pins of others are as they were, and out of its reach.
        self.assertEqual(0, os.stat("/sys/fs/bpf").st_uid)
        inside = ["nsenter", "--mount", "--target", shown("MainPID"), "setpriv", "--reuid=sluice", "--regid=sluice", "--clear-groups"]
        self.assertEqual(0, run(*inside, "ls", "/run/sluice/pins").returncode)
        self.assertNotEqual(0, run(*inside, "ls", "/sys/fs/bpf").returncode)

    def test_15_it_knows_the_hardware(self):
        """The product's UUID, which only root may read."""
        with open("/var/lib/sluice/spool/agent-id") as f:
            self.assertRegex(f.read(), "(?m)^hardware [0-9a-f]{32}$")

    def test_20_exposure(self):
        done = run("systemd-analyze", "security", "--no-pager", UNIT)
        found = re.search(r"Overall exposure level for .*: ([0-9.]+)", done.stdout)
        self.assertTrue(found, done.stdout)
        print("exposure: %s" % found[1])
        self.assertLessEqual(float(found[1]), EXPOSURE, done.stdout)

    def test_21_no_fault_is_found_with_the_unit(self):
        done = run("systemd-analyze", "verify", "--man=no", INSTALLED)
        about = [line for line in done.stdout.splitlines() if "sluice" in line]
        self.assertEqual((0, []), (done.returncode, about), done.stdout)

    def test_30_reload(self):
        pid = shown("MainPID")
        write(DROP_IN, '{"interval": "2s"}\n')
        self.ok("systemctl", "reload", UNIT)
        write("/etc/sluice/conf.d/bad.yaml", '{"intervall": "2s"}\n')
        done = run("systemctl", "reload", UNIT)
        self.assertNotEqual(0, done.returncode)
        said = self.wait(lambda: re.search(r".*intervall.*", journal(self.began)), "reason")[0]
        self.assertIn("bad.yaml", said)
        self.assertEqual(("active", pid), (shown("ActiveState"), shown("MainPID")))
        with Storm("reloaded", 20) as storm:
            pass
        self.all_recorded(storm)

    def test_31_a_wrong_configuration_is_not_started_again_and_again(self):
        before = int(shown("NRestarts"))
        self.ok("systemctl", "stop", UNIT)
        write("/etc/sluice/conf.d/bad.yaml", '{"intervall": "2s"}\n')
        self.assertNotEqual(0, run("systemctl", "start", UNIT).returncode)
        self.assertEqual(("failed", "2", before), (shown("ActiveState"), shown("ExecMainStatus"), int(shown("NRestarts"))))
        self.assertIn("intervall", run("systemctl", "status", UNIT).stdout)

    def test_40_stop_delivers_and_the_probes_stay(self):
        with Storm("stopped", 30) as storm:
            time.sleep(1)
            self.ok("systemctl", "stop", UNIT)
            self.assertEqual(("inactive", "success", "0"), (shown("ActiveState"), shown("Result"), shown("ExecMainStatus")))
            before = storm.n
            self.assertTrue(os.path.isdir(PINS))
            self.wait(lambda: storm.n > before + 10, "programs without an agent")
        self.ok("systemctl", "start", UNIT)
        self.all_recorded(storm)

    def test_41_killed_and_started_again(self):
        before = int(shown("NRestarts"))
        with Storm("killed", 30) as storm:
            self.ok("systemctl", "kill", "--kill-who=main", "--signal=KILL", UNIT)
            self.one_restart(before)
        self.all_recorded(storm)

    def test_43_takes_over_from_one_that_root_started(self):
        """As the unit did before it had an account: folder and pins are root's."""
        with Storm("former", 30) as storm:
            time.sleep(1)
            self.ok("systemctl", "stop", UNIT)
            self.ok("chown", "-R", "root:root", PINS)
            self.ok("chown", "root:root", "/var/lib/sluice")
            self.ok("systemctl", "start", UNIT)
        self.all_recorded(storm)
        text = journal(self.began)
        self.assertIn("are taken over", text)
        self.assertNotIn("agent.renewed", text)
        account = int(self.ok("id", "-u", "sluice"))
        self.assertEqual([account, account], [os.stat(path).st_uid for path in (PINS, "/var/lib/sluice")])

    def test_42_hanging_and_started_again(self):
        drop_in = "/run/systemd/system/%s.d/watchdog.conf" % UNIT
        write(drop_in, "[Service]\nWatchdogSec=15s\n")  # the unit's own takes a minute
        try:
            self.ok("systemctl", "daemon-reload")
            self.ok("systemctl", "restart", UNIT)
            before, began = int(shown("NRestarts")), time.strftime("%Y-%m-%d %H:%M:%S")
            with Storm("hung", 30) as storm:
                self.ok("systemctl", "kill", "--kill-who=main", "--signal=STOP", UNIT)
                self.one_restart(before)
            self.assertRegex(journal(began), r"(?i)watchdog timeout")
            self.all_recorded(storm)
        finally:
            os.remove(drop_in)
            self.ok("systemctl", "daemon-reload")
            self.ok("systemctl", "restart", UNIT)

    def test_50_upgrade(self):
        before = os.stat("/usr/bin/sluice").st_ino
        pid = shown("MainPID")
        package = [name for name in os.listdir("/mnt/share") if name.endswith(".deb")]
        with Storm("upgraded", 50) as storm:
            if package:
                print(self.ok("dpkg", "-i", "/mnt/share/" + package[0]))
            else:
                shutil.copy2("/usr/bin/sluice", "/usr/bin/sluice.new")
                os.rename("/usr/bin/sluice.new", "/usr/bin/sluice")
                self.ok("systemctl", "restart", UNIT)
            self.wait(lambda: shown("ActiveState") == "active" and shown("MainPID") not in ("0", pid), "new agent")
        self.assertNotEqual(before, os.stat("/usr/bin/sluice").st_ino)
        self.all_recorded(storm)

    def test_60_disk_full(self):
        """Of a disk of its own; what is started meanwhile is recorded once there is room again."""
        self.ok("systemctl", "stop", UNIT)
        with open("/root/disk", "wb") as f:
            f.truncate(96 << 20)
        self.ok("mke2fs", "-q", "-F", "-t", "ext4", "/root/disk")
        self.ok("mount", "-o", "loop", "/root/disk", "/var/lib/sluice")
        try:
            self.ok("systemctl", "start", UNIT)
            filling = "/var/lib/sluice/filling"
            run("dd", "if=/dev/zero", "of=" + filling, "bs=1M")
            self.wait(lambda: json.loads(self.ok("sluice", "ctl", "status", "--json")).get("problems"), "problem of the disk")
            with Storm("full", 30) as storm:
                pass
            self.assertEqual("active", shown("ActiveState"))
            print("full: %s" % shown("StatusText"))
            os.remove(filling)
            self.all_recorded(storm)
        finally:
            self.ok("systemctl", "stop", UNIT)
            self.ok("umount", "/var/lib/sluice")


class AtOnce(unittest.TextTestResult):
    """Prints why a case failed as it does, since the guest may be ended before the others are over."""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.stream.writeln(self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.stream.writeln(self.errors[-1][1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv, testRunner=unittest.TextTestRunner(verbosity=2, resultclass=AtOnce))
