# SPDX-License-Identifier: Apache-2.0
"""The kernel's delay accounting is on while a run has --delay-accounting, and afterwards as it was or as an administrator set it."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness
from test_reader import children, is_there, proc_status
from test_run_confined import RunTest
from test_run_waits import ACCOUNTING, DELAYS, delay_accounting, write_text

OPTION = "--delay-accounting"
STATE = "/run/sluice-delay-accounting"
CAP_SYS_ADMIN = 1 << 21
WAITS = ["sh", "-c", "echo; read line"]
HAS_SETTING = os.path.exists(ACCOUNTING)


def is_on():
    with open(ACCOUNTING) as f:
        return f.read() == "1\n"


def sysctl(value):
    subprocess.run(["sysctl", "-q", f"kernel.task_delayacct={value}"], check=True)


@unittest.skipUnless(HAS_SETTING, "a kernel before 5.14, which counts delays unless it was booted with nodelayacct")
class Switched(RunTest):
    def setUp(self):
        super().setUp()
        self.runs = 0
        self.enterContext(delay_accounting(False))

    def begin(self, *options, **kw):
        """A run whose command runs; each has a lake of its own."""
        self.runs += 1
        run = self.start(*WAITS, options=[OPTION, "--lake", f"{self.lake}{self.runs}", *options], **kw)
        self.assertTrue(is_on())
        return run

    def finish(self, run):
        err = run.communicate("\n", timeout=60 * harness.PATIENCE)[1]
        self.assertEqual((0, ""), (run.returncode, err))

    def aside(self, run):
        (pid,) = [pid for pid, comm in children(run.pid).items() if comm == "run-delays"]
        return pid

    def assert_soon(self, state):
        """The process aside needs a moment where nothing waits for it."""
        until = time.monotonic() + 10 * harness.PATIENCE
        while is_on() != state and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual(state, is_on())

    def test_its_records_have_delays_and_it_is_off_afterwards(self):
        done = self.sluice_run("true", options=["--quiet", OPTION])
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertFalse(is_on())
        (end,) = self.ends()
        self.assertEqual({}, {name: end["usage"][name] for name in DELAYS if end["usage"][name] is None and name != "compact_delay_ns"})
        self.assertGreaterEqual(end["usage"]["block_io_delay_ns"], 0)
        self.assertEqual(0, os.path.getsize(STATE))

    def doctors(self):
        """What it answers of the signal, and its line of text about it."""
        done = harness.run_sluice(["doctor", "--json"])
        signals = json.loads(done.stdout)["signals"]
        self.assertEqual((int("missing" in [s["state"] for s in signals]), ""), (done.returncode, done.stderr))
        (found,) = [s for s in signals if s["name"] == "block_io_delay"]
        lines = re.findall("(?m)^block_io_delay: (.*)$", harness.run_sluice(["doctor"]).stdout)
        self.assertEqual([found["detail"]] if found["detail"] else [], lines)
        return found

    def test_doctor_names_what_switches_it_on(self):
        found = self.doctors()
        self.assertEqual("missing", found["state"])
        self.assertLessEqual(set(DELAYS), set(found["fields"].split(", ")))
        self.assertIn(f"`sluice run {OPTION}`", found["detail"])
        (fix,) = re.findall("`(sysctl [^`]*)`", found["detail"])
        subprocess.run(fix.split(), check=True, stdout=subprocess.DEVNULL)
        self.assertTrue(is_on())
        self.assertEqual(found | {"state": "ok", "hook": "task_struct.delays", "detail": ""}, self.doctors())

    def test_it_is_off_after_a_command_that_cannot_be_executed(self):
        self.assertEqual(127, self.sluice_run("no-such-command", options=["--quiet", OPTION]).returncode)
        self.assertFalse(is_on())

    def test_it_is_off_after_a_run_that_cannot_begin(self):
        write_text(self.lake, "no folder")
        self.assertEqual(125, self.sluice_run("true", options=["--quiet", OPTION]).returncode)
        self.assertFalse(is_on())

    def test_what_was_on_stays_on(self):
        sysctl(1)
        self.finish(self.begin())
        self.assertTrue(is_on())

    def test_the_last_of_several_switches_it_off(self):
        first, second = self.begin(), self.begin()
        self.finish(first)
        self.assertTrue(is_on())
        third = self.begin()
        self.finish(third)
        self.assertTrue(is_on())
        self.finish(second)
        self.assertFalse(is_on())

    def test_the_others_keep_it_where_the_first_is_killed(self):
        first, second = self.begin(), self.begin()
        aside = self.aside(first)
        first.kill()
        first.wait()
        until = time.monotonic() + 10 * harness.PATIENCE
        while is_there(aside) and time.monotonic() < until:
            time.sleep(0.01)
        self.assertFalse(is_there(aside))
        self.assertTrue(is_on())
        self.finish(second)
        self.assertFalse(is_on())

    def test_it_stays_on_after_the_process_aside_was_stopped(self):
        run = self.begin()
        aside = self.aside(run)
        os.kill(aside, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(aside, signal.SIGCONT)
        time.sleep(0.5)
        self.assertTrue(is_there(aside))
        self.assertTrue(is_on())
        self.finish(run)
        self.assertFalse(is_on())

    def test_it_is_off_after_the_only_one_was_killed(self):
        run = self.begin()
        run.kill()
        run.wait()
        self.assert_soon(False)

    def test_it_is_off_after_all_of_its_group_was_killed(self):
        run = self.begin(start_new_session=True)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        self.assert_soon(False)

    def test_it_is_off_after_a_signal(self):
        for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signo):
                run = self.begin(start_new_session=True)
                os.killpg(run.pid, signo)
                run.communicate(timeout=60 * harness.PATIENCE)
                self.assertIn(run.returncode, (-signo, 128 + signo))
                self.assertFalse(is_on())

    def test_what_an_administrator_sets_meanwhile_stays(self):
        for values in ((1,), (0,), (0, 1), (1, 0)):
            with self.subTest(values):
                write_text(ACCOUNTING, "0")
                first, second = self.begin(), self.begin()
                for value in values:
                    sysctl(value)
                self.finish(first)
                self.finish(second)
                self.assertEqual(values[-1] == 1, is_on())

    def test_one_that_begins_after_an_administrator_switched_it_off_switches_it_on(self):
        first = self.begin()
        sysctl(0)
        second = self.begin()
        self.finish(first)
        self.assertTrue(is_on())
        self.finish(second)
        self.assertFalse(is_on())

    def test_what_all_left_that_were_killed_is_put_back_by_the_next(self):
        run = self.begin()
        os.kill(self.aside(run), signal.SIGKILL)
        err = run.communicate("\n", timeout=60 * harness.PATIENCE)[1]
        self.assertEqual(0, run.returncode)
        self.assertIn("`sysctl kernel.task_delayacct=0` switches it off", err)
        self.assertTrue(is_on())
        self.finish(self.begin())
        self.assertFalse(is_on())

    def test_the_process_aside_can_do_no_more_than_that(self):
        run = self.begin()
        pid = self.aside(run)
        status = proc_status(str(pid))
        self.assertEqual((CAP_SYS_ADMIN, CAP_SYS_ADMIN), (int(status["CapPrm"], 16), int(status["CapEff"], 16)))
        self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]))
        self.assertEqual(pid, os.getsid(pid))
        files = sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd"))
        self.assertEqual([ACCOUNTING, STATE, "anon_inode", "socket"], files)
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            self.assertEqual(b"", f.read().strip(b"\0"))
        self.finish(run)


class Refused(RunTest):
    def assert_refused(self, before, *texts):
        """before: what the run is executed by."""
        done = harness.run_sluice([*before[1:], "run", "--lake", self.lake, OPTION, "true"], sluice=before[0])
        self.assertEqual(125, done.returncode, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertFalse(os.path.exists(self.lake))

    def in_namespace(self, mount):
        return ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$0" "$@"', harness.SLUICE]

    def test_without_root(self):
        sluice = os.path.join(self.room, "sluice")
        shutil.copy(harness.SLUICE, sluice)
        self.assert_refused(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sluice],
                            "--delay-accounting takes root", f"sudo sluice run --lake {self.lake} {OPTION} true")

    @unittest.skipUnless(HAS_SETTING, "there is nothing to be refused")
    def test_where_the_setting_is_read_only(self):
        self.assert_refused(self.in_namespace("mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"),
                            f"cannot write {ACCOUNTING}: Read-only file system", "`sysctl kernel.task_delayacct=1` on the host")

    def test_where_the_kernel_has_no_setting(self):
        self.assert_refused(self.in_namespace("mount -t tmpfs none /proc/sys/kernel"), f"this kernel has no {ACCOUNTING}",
                            "leave --delay-accounting out")


if __name__ == "__main__":
    harness.main()
