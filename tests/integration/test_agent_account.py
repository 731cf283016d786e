# SPDX-License-Identifier: Apache-2.0
"""An agent that never is root: what the unit starts, with its account and three capabilities."""
import os
import shutil
import subprocess

import harness
from agent import AgentTest
from test_agent_privileges import CAP_BPF, GROUP, NOBODY, STRANGER, proc_status

CAPABILITIES = ("bpf", "perfmon", "sys_ptrace")
NUMBERS = {"bpf": 39, "perfmon": 38, "sys_ptrace": 19}


def account_only(pins, capabilities=CAPABILITIES):
    """A command that makes of the rest what the unit makes of the agent: it sees nothing of the BPF file system but its folder."""
    given = ",".join("+" + name for name in capabilities)
    become = ["setpriv", "--reuid", "nobody", "--regid", str(NOBODY.pw_gid), "--init-groups", "--no-new-privs",
              "--inh-caps=" + given, "--ambient-caps=" + given, "--bounding-set=-all," + given]
    script = ('mkdir -p -m 700 "$0" && chown -R nobody: "$0" && stage=$(mktemp -d) && mount --bind "$0" "$stage" && '
              'mount -t tmpfs -o mode=755 none /sys/fs/bpf && mkdir "$0" && mount --move "$stage" "$0" && rmdir "$stage" && '
              'mount -o remount,ro /sys/fs/bpf && { prlimit --pid $$ --memlock=unlimited:unlimited 2>/dev/null || :; } && exec "$@"')
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, pins, *become]


class Account(AgentTest):
    def setUp(self):
        super().setUp()
        # Where others may reach it, whatever the rights of the build directory are.
        self.sluice = os.path.join(self.room, "sluice")
        shutil.copy(harness.SLUICE, self.sluice)
        os.chmod(self.sluice, 0o755)

    def account(self, name="agent", **keys):
        """Its folders are the account's, as the service manager makes them; the configuration is root's."""
        a = self.agent(name)
        a.sluice = self.sluice
        own = os.path.join(a.room, "own")
        os.makedirs(own, exist_ok=True)
        os.chown(own, NOBODY.pw_uid, NOBODY.pw_gid)
        a.spool, a.lake, a.control, a.metrics = (os.path.join(own, name) for name in ("spool", "lake", "control.sock", "metrics.sock"))
        a.configure(spool={"dir": a.spool}, lake=a.lake, control=a.control, run_socket=os.path.join(own, "run.sock"),
                    metrics="unix:" + a.metrics, dead_letters=os.path.join(own, "dead-letters"))
        a.configure(**keys)
        a.command_prefix = account_only(a.pins)
        return a

    def fails(self, a, status, says):
        a.start(wait=False)
        self.assertEqual(status, a.process.wait(60 * harness.PATIENCE), a.log_text())
        self.assertRegex(a.log_text(), says)

    def ends(self, a, name):
        return sorted(r["argv"][1] for r in harness.read_lake(a.lake)["sluice.program"]
                      if r["phase"] == "END" and len(r["argv"] or []) == 2 and r["argv"][1].startswith(name))

    def may_connect(self, path, gid):
        code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        return subprocess.run(["setpriv", "--reuid", str(STRANGER), "--regid", str(gid), "--clear-groups", "/usr/bin/python3", "-c",
                               code, path], stderr=subprocess.DEVNULL).returncode == 0

    def test_it_has_cap_bpf_alone_and_loses_nothing(self):
        a = self.account()
        early = subprocess.Popen(["sleep", "600"], cwd="/usr")
        self.addCleanup(early.wait)
        self.addCleanup(early.kill)
        a.start()
        bounding = sum(1 << NUMBERS[name] for name in CAPABILITIES)
        for task in os.listdir(f"/proc/{a.pid}/task"):
            status = proc_status(f"/proc/{a.pid}/task/{task}/status")
            self.assertEqual([str(NOBODY.pw_uid)] * 4, status["Uid"].split())
            self.assertEqual((1 << CAP_BPF, 1 << CAP_BPF, 0, bounding, 0),
                             tuple(int(status[s], 16) for s in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb")))
            self.assertEqual("1", status["NoNewPrivs"])
        for reader in a.readers():
            self.assertEqual(0, int(proc_status(f"/proc/{reader}/status")["CapPrm"], 16))
        self.assertNotIn("probes.pin", a.log_text())
        for at, folders, files in os.walk(a.pins):
            for path in [at] + [os.path.join(at, name) for name in files]:
                self.assertEqual(NOBODY.pw_uid, os.stat(path).st_uid, path)
        a.settle()
        self.assertEqual(0, a.stop())
        for i in range(20):
            subprocess.run(["/bin/true", "between-%d" % i], check=True)
        a.start()
        early.terminate()
        early.wait()
        for i in range(20):
            subprocess.run(["/bin/true", "after-%d" % i], check=True)
        a.settle(delivered=True)
        self.assertEqual(0, a.stop())
        for name in ("between", "after"):
            self.assertEqual(sorted(f"{name}-{i}" for i in range(20)), self.ends(a, name + "-"))
        found = [r for r in harness.read_lake(a.lake)["sluice.program"] if r["phase"] == "END" and r["pid"] == early.pid]
        self.assertEqual([("/usr", os.path.realpath(shutil.which("sleep")))], [(r["cwd"], r["exe"]) for r in found])

    def test_it_takes_over_from_one_that_root_started(self):
        a = self.account()
        as_account, a.command_prefix = a.command_prefix, []
        a.start()
        a.settle()
        self.assertEqual(0, os.stat(a.pins).st_uid)
        self.assertEqual(0, a.stop())
        for i in range(20):
            subprocess.run(["/bin/true", "between-%d" % i], check=True)
        a.command_prefix = as_account
        a.start()
        self.assertIn("the previous agent's probes are taken over", a.log_text())
        a.settle(delivered=True)
        self.assertEqual(0, a.stop())
        self.assertEqual(sorted("between-%d" % i for i in range(20)), self.ends(a, "between-"))

    def test_its_sockets_open_to_groups_that_it_is_not_in(self):
        a = self.account(control_group=GROUP.gr_name, control_read_group="no-such-group", metrics_group=GROUP.gr_name).start()
        for path in (a.control, a.metrics):
            self.assertEqual((NOBODY.pw_uid, NOBODY.pw_gid), (os.stat(path).st_uid, os.stat(path).st_gid))
            self.assertTrue(self.may_connect(path, GROUP.gr_gid), path)
            self.assertFalse(self.may_connect(path, STRANGER), path)
            self.assertFalse(self.may_connect(path, NOBODY.pw_gid), path)  # the group that owns it is not named
        self.assertEqual(0, a.ctl("status").returncode)
        self.assertEqual(0, a.stop())

    def test_another_account_is_refused(self):
        self.fails(self.account(user="daemon"), 2, r"user: is 'daemon', but the agent was started as uid \d+: also set User=daemon")

    def test_without_a_capability_that_loads_probes(self):
        a = self.account()
        a.command_prefix = account_only(a.pins, ["bpf"])
        self.fails(a, 125, "needs root; run it with sudo, or as the service")

    def test_what_it_executes_has_no_capability(self):
        command = os.path.join(self.room, "get")
        said = os.path.join(self.room, "agent", "own", "said")
        with open(command, "w") as f:
            f.write(f"#!/bin/sh\ngrep ^Cap /proc/self/status >{said}\necho secret\n")
        os.chmod(command, 0o755)
        a = self.account(registry={"urls": ["http://127.0.0.1:9"], "user": "u", "password": {"command": [command]}},
                         kafka={"brokers": ["127.0.0.1:9"]}, drain="0s").start()
        with open(said) as f:
            sets = dict(line.split() for line in f)
        self.assertEqual([0, 0, 0, 0], [int(sets[s + ":"], 16) for s in ("CapPrm", "CapEff", "CapInh", "CapAmb")])
        self.assertEqual(0, a.stop())

    def test_what_another_user_could_write_is_refused(self):
        a = self.account()
        os.chmod(a.config_path, 0o664)
        self.fails(a, 2, "chmod g-w " + a.config_path)

    def test_a_folder_of_root_is_not_the_accounts(self):
        folder = os.path.join(self.room, "roots")
        os.mkdir(folder, 0o755)
        self.fails(self.account(lake=folder), 125, "roots belongs to uid 0: name another folder, or give it to the agent's account: chown")

    def test_the_id_of_the_hardware_is_handed_over(self):
        """Which only root may read; a clone is known by it."""
        copy = os.path.join(self.room, "product_uuid")

        def hardware(text):
            with open(copy, "w") as f:
                f.write(text)
            a.start(env={**harness.plain_environment(), "SLUICE_PRODUCT_UUID": copy})
            self.assertEqual(0, a.stop())
            with open(os.path.join(a.spool, "agent-id")) as f:
                return [line for line in f.read().splitlines() if line.startswith("hardware ")]
        a = self.account()
        first = hardware("7f3c2d9e-5a10-4c6f-8d21-0b9e4f1a6c35\n")
        self.assertEqual(1, len(first))
        self.assertNotIn("agent.renewed", a.log_text())
        self.assertNotEqual(first, hardware("c0a1b2d3-5a10-4c6f-8d21-0b9e4f1a6c36\n"))
        self.assertIn("agent.renewed", a.log_text())


if __name__ == "__main__":
    harness.main()
