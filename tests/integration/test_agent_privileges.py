# SPDX-License-Identifier: Apache-2.0
"""What `sluice agent` is once it runs: an account that can do little, and doors that open to those named alone."""
import grp
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import urllib.request

import harness
from agent import AgentTest

NOBODY = pwd.getpwnam("nobody")
GROUP = grp.getgrnam("games")  # any that Debian has and no user is in
STRANGER = 54321
CAP_BPF = 39


def proc_status(path):
    with open(path) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


class PrivilegesTest(AgentTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("setpriv"):
            self.skipTest("setpriv (util-linux) is not installed")
        # Where others may reach it, whatever the rights of the build directory are.
        self.sluice = os.path.join(self.room, "sluice")
        shutil.copy(harness.SLUICE, self.sluice)
        os.chmod(self.sluice, 0o755)

    def as_user(self, uid, *args, groups=()):
        who = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
        return subprocess.run(["setpriv", "--reuid", str(uid), "--regid", str(uid), *who, self.sluice, *args],
                              env=harness.plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60)

    def owner(self, path):
        s = os.stat(path)
        return s.st_uid, s.st_gid, stat.S_IMODE(s.st_mode)

    def start_fails(self, status, says, **keys):
        a = self.agent("fails", **keys)
        a.start(wait=False)
        self.assertEqual(status, a.process.wait(60), a.log_text())
        self.assertRegex(a.log_text(), says)
        return a


class Running(PrivilegesTest):
    def assert_is_account(self, status):
        self.assertEqual([str(NOBODY.pw_uid)] * 4, status["Uid"].split())
        self.assertEqual([str(NOBODY.pw_gid)] * 4, status["Gid"].split())
        self.assertEqual(sorted(os.getgrouplist("nobody", NOBODY.pw_gid)), sorted(map(int, status["Groups"].split())))

    def test_every_thread_has_cap_bpf_and_nothing_else(self):
        """With threads of librdkafka, which no broker answers."""
        # Dropped after the sockets are there and before any thread: so each thread tells.
        a = self.agent(kafka={"brokers": ["127.0.0.1:9"]}, registry={"urls": ["http://127.0.0.1:9"]}, drain="1s").start()

        def threads():
            found = os.listdir(f"/proc/{a.pid}/task")
            return found if len(found) >= 4 else None
        for task in a.wait(threads, 60, "threads of librdkafka and the spool"):
            status = proc_status(f"/proc/{a.pid}/task/{task}/status")
            self.assert_is_account(status)
            bpf = "%016x" % (1 << CAP_BPF)
            sets = {name: status[name] for name in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb")}
            none = "0" * 16
            self.assertEqual({"CapPrm": bpf, "CapEff": bpf, "CapInh": none, "CapBnd": none, "CapAmb": none}, sets)
            self.assertEqual("1", status["NoNewPrivs"])
        files = "and files" if harness.has_landlock() else "but not files (this kernel has no Landlock)"
        self.assertEqual("uid %d (nobody), capabilities bpf, no new privileges, own system calls %s" % (NOBODY.pw_uid, files),
                         a.status()["process"]["privileges"])
        self.assertEqual(0, a.stop())

    def test_log_events_of_the_output_have_their_former_names(self):
        a = self.agent().start()
        self.assertEqual("outlet.up", a.wait_log("output.up", 60)["former_event"])
        self.assertEqual(0, a.stop())
        nowhere = {"kafka": {"brokers": ["127.0.0.1:9"]}, "registry": {"urls": ["http://127.0.0.1:9"]}}
        a = self.agent("nowhere", drain="1s", **nowhere).start()
        self.assertEqual("outlet.down", a.wait_log("output.down", 60)["former_event"])
        self.assertEqual(0, a.stop())
        unreadable = {"security.protocol": "ssl", "ssl.ca.location": "/nonexistent"}
        a = self.start_fails(125, "/nonexistent cannot be read", registry=nowhere["registry"],
                             kafka={**nowhere["kafka"], "properties": unreadable})
        self.assertEqual("outlet.open", a.wait_log("output.open")["former_event"])

    def test_it_is_not_dumpable(self):
        a = self.agent().start()
        # The kernel gives /proc/PID of a process that is not dumpable to root.
        self.assertEqual(0, os.stat(f"/proc/{a.pid}/mem").st_uid)
        with open(f"/proc/{a.pid}/limits") as f:
            core = [line for line in f if line.startswith("Max core file size")][0]
        self.assertEqual(["0", "0"], core.split()[4:6])
        # So that the account's other processes do not reach its memory.
        peek = "open('/proc/%d/%s', 'rb')"
        for name in ("mem", "environ", "maps"):
            done = subprocess.run(["setpriv", "--reuid", "nobody", "--regid", str(NOBODY.pw_gid), "--clear-groups",
                                   "/usr/bin/python3", "-c", peek % (a.pid, name)], stderr=subprocess.PIPE, text=True)
            self.assertIn("PermissionError", done.stderr, name)
        self.assertEqual(0, a.stop())

    def test_uid_0_is_kept_without_what_root_may(self):
        a = self.agent(user="root").start()
        for task in os.listdir(f"/proc/{a.pid}/task"):
            status = proc_status(f"/proc/{a.pid}/task/{task}/status")
            self.assertEqual(["0"] * 4, status["Uid"].split())
            self.assertEqual(1 << CAP_BPF, int(status["CapEff"], 16))
            self.assertEqual(0, int(status["CapBnd"], 16))
            self.assertEqual("1", status["NoNewPrivs"])
        self.assertEqual(0, a.stop())

    def test_it_keeps_no_file_of_roots_open(self):
        a = self.agent().start()
        a.wait_log("output.up", 60)
        allowed = (a.room, "/proc", "/sys", "/dev/null", "anon_inode:", "socket:", "pipe:")
        for fd in os.listdir(f"/proc/{a.pid}/fd"):
            try:
                at = os.readlink(f"/proc/{a.pid}/fd/{fd}")
                with open(f"/proc/{a.pid}/fdinfo/{fd}") as f:
                    flags = int(re.search(r"flags:\s*(\d+)", f.read())[1], 8)
            except FileNotFoundError:
                continue
            self.assertTrue(at.startswith(allowed), at)
            if int(fd) > 2:
                self.assertTrue(flags & os.O_CLOEXEC, at)
        self.assertEqual(0, a.stop())


class Doors(PrivilegesTest):
    def test_the_control_socket_is_for_root_and_its_group(self):
        a = self.agent(control_group=GROUP.gr_name).start()
        self.assertEqual((0, GROUP.gr_gid, 0o660), self.owner(a.control))
        self.assertEqual(0, a.ctl("status").returncode)
        refused = self.as_user(STRANGER, "ctl", "--socket", a.control, "status")
        self.assertEqual(1, refused.returncode, refused.stdout)
        self.assertEqual("", refused.stdout)
        self.assertIn("only root and the members", refused.stderr)
        self.assertEqual(1, self.as_user(STRANGER, "ctl", "--socket", a.control, "reload").returncode)
        member = self.as_user(STRANGER, "ctl", "--socket", a.control, "status", groups=[GROUP.gr_gid])
        self.assertEqual(0, member.returncode, member.stderr)
        self.assertIn("nobody", member.stdout)
        # The mode is not all: the agent asks the kernel who it is.
        os.chmod(a.control, 0o666)
        refused = self.as_user(STRANGER, "ctl", "--socket", a.control, "status")
        self.assertEqual((1, ""), (refused.returncode, refused.stdout))
        self.assertIn("only root and the members", refused.stderr)
        self.assertEqual(0, a.stop())

    def test_the_lake_is_for_its_group_under_the_mask_of_the_unit(self):
        with open(os.path.join(harness.ROOT, "ops", "systemd", "sluice-agent.service")) as f:
            mask, = re.findall(r"(?m)^UMask=(\d+)$", f.read())
        a = self.agent()
        a.command_prefix = ["sh", "-c", f'umask {mask} && exec "$@"', "sh"]
        a.start()
        a.settle(delivered=True)
        self.assertEqual(0, a.stop())
        self.assertTrue(harness.read_lake(a.lake)["sluice.agent"])
        for at, _, files in os.walk(a.lake):
            self.assertEqual((NOBODY.pw_uid, NOBODY.pw_gid, 0o750), self.owner(at), at)
            for name in files:
                self.assertEqual((NOBODY.pw_uid, NOBODY.pw_gid, 0o640), self.owner(os.path.join(at, name)), name)

    def test_without_its_group_it_is_roots_alone(self):
        a = self.agent(control_group="no-such-group", control_read_group="no-such-group").start()
        acl = os.getxattr(a.control, "system.posix_acl_access")
        self.assertEqual([(1, 6), (2, 6), (4, 0), (16, 6), (32, 0)], [struct.unpack_from("<HH", acl, at) for at in range(4, len(acl), 8)],
                         "root, the agent's account, no group, others not at all")
        self.assertIn("groupadd --system no-such-group", a.log_text())
        self.assertEqual(0, a.ctl("status").returncode)
        self.assertEqual(0, a.stop())

    def test_metrics_are_for_a_group_of_their_own(self):
        a = self.agent(metrics_group=GROUP.gr_name).start()
        self.assertEqual((0, GROUP.gr_gid, 0o660), self.owner(a.metrics))
        self.assertEqual(0, a.stop())

    def test_who_takes_the_metrics_port_does_not_keep_the_agent_from_running(self):
        taken = socket.create_server(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        a = self.agent(metrics="127.0.0.1:%d" % port).start()
        line = a.wait_log("metrics.open")
        self.assertRegex(line["message"], "in use by another program.*no metrics until")
        self.assertEqual(0, a.ctl("status").returncode)
        taken.close()
        a.wait_log("metrics.open", 60, count=2)
        with urllib.request.urlopen("http://127.0.0.1:%d/healthz" % port, timeout=30) as answer:
            self.assertEqual(b"ok\n", answer.read())
        self.assertEqual(0, a.stop())

    def test_metrics_of_other_hosts_are_refused(self):
        self.start_fails(2, "metrics_public|other hosts", metrics="0.0.0.0:19465")

    def test_folders_are_the_accounts(self):
        a = self.agent().start()
        for path in (a.spool, a.config["dead_letters"]):
            self.assertEqual((NOBODY.pw_uid, NOBODY.pw_gid, 0o700), self.owner(path), path)
        a.wait_log("output.up", 60)
        for at, _, names in os.walk(a.spool):
            for name in names:
                s = os.stat(os.path.join(at, name))
                self.assertEqual(NOBODY.pw_uid, s.st_uid, name)
                self.assertEqual(0, s.st_mode & 0o022, name)
        self.assertEqual(0, a.stop())


class Folders(PrivilegesTest):
    """Root gives folders away: only such as no user can make it take for others."""

    def test_a_folder_that_was_open_is_closed(self):
        a = self.agent()
        os.mkdir(a.spool, 0o777)
        os.chmod(a.spool, 0o777)
        a.start()
        self.assertEqual((NOBODY.pw_uid, NOBODY.pw_gid, 0o700), self.owner(a.spool))
        self.assertEqual(0, a.stop())

    def test_a_folder_with_others_files_is_not_taken(self):
        victim = os.path.join(self.room, "victim")
        os.mkdir(victim, 0o755)
        with open(os.path.join(victim, "theirs"), "w"):
            pass
        a = self.start_fails(125, r"victim.*belongs to uid 0.*chown", lake=victim)
        self.assertEqual((0, 0, 0o755), self.owner(victim))
        self.assertFalse(os.path.exists(a.pins))

    def test_a_link_of_somebody_else_is_not_followed(self):
        victim = os.path.join(self.room, "victim")
        os.mkdir(victim, 0o755)
        at = os.path.join(self.room, "link")
        os.symlink(victim, at)
        os.lchown(at, NOBODY.pw_uid, NOBODY.pw_gid)
        self.start_fails(125, "link.*symbolic link", spool={"dir": at})
        self.assertEqual((0, 0, 0o755), self.owner(victim))

    def test_roots_own_link_is_followed(self):
        elsewhere = os.path.join(self.room, "elsewhere")
        os.mkdir(elsewhere, 0o755)
        at = os.path.join(self.room, "link")
        os.symlink(elsewhere, at)
        a = self.agent(spool={"dir": at}).start()
        self.assertEqual((NOBODY.pw_uid, NOBODY.pw_gid, 0o700), self.owner(elsewhere))
        self.assertEqual(0, a.stop())


class Refused(PrivilegesTest):
    def test_without_root(self):
        a = self.agent()
        done = self.as_user(STRANGER, "agent", "-c", a.config_path)
        self.assertEqual(125, done.returncode, done.stderr)
        self.assertIn("root", done.stderr)
        self.assertIn("sudo", done.stderr)
        done = self.as_user(STRANGER, "agent", "--uninstall")
        self.assertEqual(125, done.returncode, done.stderr)
        self.assertIn("sudo", done.stderr)

    def test_an_account_that_is_not_there(self):
        a = self.start_fails(125, "useradd --system.*no-such-account", user="no-such-account")
        self.assertFalse(os.path.exists(a.pins))
        says = r":\d+:\d+: user: %sthere is no account 'no-such-account' to run as: create it with `useradd --system"
        self.assertRegex(a.log_text(), re.escape(a.config_path) + says % "")
        done = harness.run_sluice(["check", "-c", a.config_path])
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "^" + re.escape(a.config_path) + says % "warning: on this host ")

    def check(self, a):
        """The warnings; and the status of the same for the account itself, without which the service does not start."""
        done = harness.run_sluice(["check", "-c", a.config_path])
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertIn(f"{a.config_path}: ok, ", done.stdout)
        return done.stderr.splitlines(), self.as_user(NOBODY.pw_uid, "check", "-c", a.config_path).returncode

    def test_a_configuration_that_the_account_cannot_read(self):
        a = self.agent()
        group = grp.getgrgid(NOBODY.pw_gid).gr_name
        drop_ins, rules, there = (os.path.join(a.room, name) for name in ("conf.d", "rules.d", "there"))
        drop_in, rule, link = os.path.join(drop_ins, "more.yaml"), os.path.join(rules, "mine.yaml"), os.path.join(drop_ins, "z.yaml")
        linked = os.path.join(there, "z.yaml")
        for folder in (drop_ins, rules, there):
            os.mkdir(folder, 0o755)
        for path, text in ((drop_in, "interval: 2s\n"), (rule, "exclude: [{exe: nothing}]\n"), (linked, "")):
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, 0o644)
        os.symlink(linked, link)
        self.assertEqual(([], 0), self.check(a))

        every = [a.config_path, drop_ins, drop_in, link, rules, rule]
        for closed, right, files in ((a.config_path, "r", [a.config_path]), (drop_in, "r", [drop_in]), (rule, "r", [rule]),
                                     (linked, "r", [link]), (there, "x", [link]), (a.room, "x", every)):
            with self.subTest(closed):
                was = os.stat(closed)
                os.chmod(closed, 0o700 if os.path.isdir(closed) else 0o600)
                fix = f"chgrp {group} {closed} && chmod g+{right} {closed}"
                self.assertEqual(([f"{path}: warning: account 'nobody', which the agent runs as, cannot read it: run `{fix}`"
                                   for path in files], 2), self.check(a))
                # The command that it names is the fix.
                subprocess.run(["sh", "-c", fix], check=True)
                warnings = self.check(a)[0]
                os.chown(closed, was.st_uid, was.st_gid)
                os.chmod(closed, stat.S_IMODE(was.st_mode))
                self.assertEqual([], warnings)
        # A folder that can be searched, but not listed.
        os.chmod(rules, 0o711)
        self.assertEqual(([f"{rules}: warning: account 'nobody', which the agent runs as, cannot read it: run `chgrp {group} {rules} && "
                           f"chmod g+rx {rules}`"], 2), self.check(a))
        # Root reads everything; and no other user can find out.
        a.configure(user="root")
        self.assertEqual([], self.check(a)[0])
        os.chmod(rules, 0o755)
        a.configure(user="nobody")
        os.chown(rule, STRANGER, 0)
        os.chmod(rule, 0o600)
        done = self.as_user(STRANGER, "check", "-c", a.config_path)
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_a_configuration_that_anybody_may_write(self):
        a = self.agent()
        os.chmod(a.config_path, 0o666)
        for args in (["agent", "-c", a.config_path, "--pins", a.pins], ["check", "-c", a.config_path]):
            done = harness.run_sluice(args, timeout=60)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertIn("chmod go-w " + a.config_path, done.stderr)

    def test_a_drop_in_that_anybody_may_write_or_add(self):
        a = self.agent()
        drop_ins = os.path.join(a.room, "conf.d")
        os.mkdir(drop_ins, 0o755)
        path = os.path.join(drop_ins, "more.yaml")
        with open(path, "w") as f:
            f.write("interval: 2s\n")
        for target, mode, mend in ((path, 0o646, "o-w"), (path, 0o664, "g-w"), (drop_ins, 0o757, "o-w"),
                                   (drop_ins, 0o775, "g-w"), (drop_ins, 0o1777, "go-w"), (a.room, 0o775, "g-w")):
            was = stat.S_IMODE(os.stat(target).st_mode)
            os.chmod(target, mode)
            done = harness.run_sluice(["check", "-c", a.config_path])
            self.assertEqual(2, done.returncode, done.stdout + done.stderr)
            self.assertIn(f"chmod {mend} {target}", done.stderr)
            os.chmod(target, was)
        self.assertEqual(0, harness.run_sluice(["check", "-c", a.config_path]).returncode)

    def test_a_secret_that_everybody_may_read(self):
        path = os.path.join(self.room, "password")
        with open(path, "w") as f:
            f.write("secret\n")
        os.chmod(path, 0o644)
        self.start_fails(2, "chmod o= " + path, registry={"urls": ["http://127.0.0.1:9"], "user": "u",
                                                         "password": {"file": path}},
                         kafka={"brokers": ["127.0.0.1:9"]})


    def test_a_secret_command_that_everybody_may_write(self):
        path = os.path.join(self.room, "get")
        with open(path, "w") as f:
            f.write("#!/bin/sh\ntouch %s/ran; echo secret\n" % self.room)
        os.chmod(path, 0o777)
        keys = {"registry": {"urls": ["http://127.0.0.1:9"], "user": "u", "password": {"command": [path]}},
                "kafka": {"brokers": ["127.0.0.1:9"]}}
        self.start_fails(2, "chmod go-w " + path, **keys)
        os.chmod(path, 0o755)
        # Not the agent's own account either: what it runs here is root.
        os.chown(path, NOBODY.pw_uid, 0)
        self.start_fails(2, f"belongs to uid {NOBODY.pw_uid}, who could become root: run `chown root {path}`", **keys)
        self.assertFalse(os.path.exists(os.path.join(self.room, "ran")))

    def test_what_another_user_owns(self):
        a = self.agent()
        folder = os.path.join(a.room, "rules.d")
        os.mkdir(folder, 0o755)
        rules = os.path.join(folder, "own.yaml")
        with open(rules, "w") as f:
            f.write("exclude: [{exe: nothing-has-this-name}]\n")
        for target in (a.config_path, rules, folder, a.room):
            os.chown(target, STRANGER, 0)
            done = harness.run_sluice(["check", "-c", a.config_path])
            self.assertEqual(2, done.returncode, done.stdout + done.stderr)
            self.assertIn(f"belongs to uid {STRANGER}", done.stderr)
            self.assertIn("run `chown root " + target, done.stderr)
            os.chown(target, 0, 0)
        # The account that the configuration names may own rules, which are data, but not the configuration.
        os.chown(rules, NOBODY.pw_uid, 0)
        self.assertEqual(0, harness.run_sluice(["check", "-c", a.config_path]).returncode)
        os.chown(a.config_path, NOBODY.pw_uid, 0)
        self.assertEqual(2, harness.run_sluice(["check", "-c", a.config_path]).returncode)
        # Any other user reads with that user's own rights.
        done = self.as_user(STRANGER, "check", "-c", a.config_path)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_a_reload_keeps_to_root_too(self):
        a = self.agent().start()
        for uid, mode, mend in ((NOBODY.pw_uid, 0o644, "chown root"), (0, 0o664, "chmod g-w")):
            failures = len([x for x in a.log_lines() if x["event"] == "config.reload_failed"])
            a.configure(interval="2s")
            os.chown(a.config_path, uid, 0)
            os.chmod(a.config_path, mode)
            a.signal(signal.SIGHUP)
            line = a.wait_log("config.reload_failed", 30, failures + 1)
            self.assertIn(f"{mend} {a.config_path}", line["message"])
        self.assertEqual(1, a.status()["config"]["generation"])
        os.chmod(a.config_path, 0o644)
        a.ctl("reload", check=True)
        self.assertEqual(2, a.status()["config"]["generation"])
        self.assertEqual(0, a.stop())


class Pins(PrivilegesTest):
    """--pins names a folder that root empties: only what an agent has put there goes."""

    def bpffs(self):
        at = os.path.join(self.room, "bpf")
        os.mkdir(at)
        subprocess.run(["mount", "-t", "bpf", "bpf", at], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", at])
        os.chmod(at, 0o1777)  # as the kernel makes one that is mounted without an option
        return at

    def test_uninstall_keeps_what_is_no_pin(self):
        at = os.path.join(self.room, "precious")
        os.makedirs(os.path.join(at, "below"))
        with open(os.path.join(at, "below", "file"), "w"):
            pass
        done = harness.run_sluice(["agent", "--uninstall", "--pins", at])
        self.assertEqual(125, done.returncode)
        self.assertIn("not in a BPF file system", done.stderr)
        self.assertTrue(os.path.exists(os.path.join(at, "below", "file")))

    def test_others_pins_stay(self):
        root = os.path.join(self.bpffs(), "shared")
        os.makedirs(os.path.join(root, "others", "globals"))
        a = self.agent()
        a.pins = root
        a.start()
        self.assertEqual(0, a.stop())
        self.assertEqual(2, len(os.listdir(root)))
        done = a.uninstall()
        self.assertEqual(125, done.returncode)
        self.assertIn("not empty", done.stderr)
        self.assertEqual(["others"], os.listdir(root))
        os.rmdir(os.path.join(root, "others", "globals"))
        os.rmdir(os.path.join(root, "others"))

    def test_a_folder_that_somebody_else_has_made_is_not_used(self):
        """Whose maps would be fed to us, or whose name would be taken away."""
        at = os.path.join(self.bpffs(), "sluice")
        os.mkdir(at, 0o755)
        os.chown(at, STRANGER, STRANGER)
        a = self.agent()
        a.pins = at
        a.start()
        line = a.wait_log("probes.pin")
        self.assertRegex(line["message"], "sluice belongs to another user than uid 0")
        self.assertEqual([], os.listdir(at))
        self.assertEqual(0, a.stop())

    def test_nothing_is_mounted_over(self):
        at = os.path.join(self.room, "plain")
        os.mkdir(at)
        a = self.agent()
        a.pins = os.path.join(at, "sluice")
        a.start()
        self.assertIn("mount -t bpf bpf " + at, a.wait_log("probes.pin")["message"])
        self.assertFalse(os.path.ismount(at))
        self.assertEqual(0, a.stop())


class Doctor(PrivilegesTest):
    def test_names_librdkafka_and_the_privileges(self):
        done = harness.run_sluice(["doctor", "--json"])
        said = json.loads(done.stdout)
        library = said["librdkafka"]
        self.assertRegex(library["version"], r"^\d+\.\d+\.\d+")
        version = tuple(map(int, library["version"].split("-")[0].split(".")[:3]))
        self.assertEqual(version >= (2, 6, 1), library["scram_kafka_4"])
        works = {x["name"]: x["works"] for x in library["features"]}
        self.assertEqual(library["features"], library["abilities"], "the former name, for one version")
        for name in ("SSL", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "lz4"):
            self.assertTrue(works[name], name)
        start = {x["capability"]: x for x in said["privileges"]["start"]}
        self.assertTrue(start["bpf"]["held"] and start["bpf"]["required"])
        self.assertEqual(["bpf"], said["privileges"]["kept"])
        release = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))
        for key in ("maps_require_bpf", "maps_ask_for_bpf"):  # the former name too, for one version
            self.assertIs(release < (5, 19), said["privileges"][key])
        text = harness.run_sluice(["doctor"]).stdout
        self.assertIn("librdkafka " + library["version"], text)
        self.assertRegex(text, r"privileges: the agent starts as root with .*bpf.*; it keeps bpf alone")

    def test_names_a_pid_namespace_of_its_own(self):
        self.assertEqual({"pid": True, "time": True}, json.loads(harness.run_sluice(["doctor", "--json"]).stdout)["hosts_namespaces"])
        inside = ["unshare", "--pid", "--fork", "--kill-child", self.sluice, "doctor"]
        text = subprocess.run(inside, stdout=subprocess.PIPE, text=True, timeout=60 * harness.PATIENCE).stdout
        self.assertRegex(text, "(?m)^namespaces: this is a PID namespace of its own: .*--pid=host")
        text = subprocess.run([*inside, "--json"], stdout=subprocess.PIPE, text=True, timeout=60 * harness.PATIENCE).stdout
        self.assertFalse(json.loads(text)["hosts_namespaces"]["pid"])

    def test_tells_which_capability_is_not_here(self):
        if not shutil.which("setpriv"):
            self.skipTest("setpriv (util-linux) is not installed")
        done = subprocess.run(["setpriv", "--bounding-set=-sys_ptrace", self.sluice, "doctor"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertIn("sys_ptrace is not held here: it is used to read exe and cwd", done.stdout + done.stderr)


if __name__ == "__main__":
    harness.main()
