# SPDX-License-Identifier: Apache-2.0
"""A user whose programs pass for another user's, or for the host's own: by arguments, by a folder, by a name."""
import json
import os
import shutil
import subprocess

import harness
from systems import machine
from systems.recorded import SystemTest, called, new_mark

ATTACKER, VICTIM = 64001, 64002  # users that own nothing
LAUNCHER = "nextflow.cli.Launcher"


class Forgeries(SystemTest):
    def setUp(self):
        super().setUp()
        if not harness.is_root():
            self.skipTest("other users need root")
        self.shared = os.path.join(self.room, "shared")
        os.mkdir(self.shared)
        os.chmod(self.shared, 0o755)

    def run_as(self, uid, *argv, **kw):
        machine.run(argv, user=uid, group=uid, extra_groups=[], **kw)

    def copy_of(self, program, *names, owner):
        """A copy of a program of the host, in a folder of that owner."""
        path = os.path.join(self.shared, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.realpath(shutil.which(program)), path)
        os.chown(path, owner, owner)
        return path

    def script(self, text, *names):
        path = os.path.join(self.shared, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def works_of(self, records, mark):
        """What the one program of a mark counts to: its END record."""
        r, = [r for r in records.marked(mark) if r["comm"] == "true"]
        return r

    def test_a_script_of_the_same_name_joins_no_job_of_another_user(self):
        marks = {uid: new_mark() for uid in (VICTIM, ATTACKER)}
        self.start()
        for uid, mark in marks.items():
            script = self.script(f"/bin/true {mark}; exit 0\n", str(uid), "job04711", "slurm_script")
            self.run_as(uid, "/bin/sh", script)
        records = self.stop()
        victim, attacker = (self.works_of(records, marks[uid]) for uid in (VICTIM, ATTACKER))
        for r in (victim, attacker):  # in a run of its own user, or in none where its control group is a unit's
            self.assertLessEqual(r["confidence"] or 0, 0.5, called(r))
            runs = [x["uid"] for x in records.works("run", run_id=r["run_id"])] if r["job_id"] == "4711" else []
            self.assertIn(runs, ([], [r["uid"]]), called(r))
        if victim["run_id"] is not None:
            self.assertNotEqual(victim["run_id"], attacker["run_id"])

    def test_a_control_group_is_evidence_where_root_has_named_it(self):
        """A group that is handed over to a user, as to the root of an unprivileged container, and one that is not."""
        mount = machine.cgroup_v2() or machine.cgroup_v1("memory")
        if mount is None:
            self.skipTest("no hierarchy is mounted here")
        top = f"/sluice-forgeries-{os.getpid()}"
        self.addCleanup(machine.remove_cgroups, top)
        marks = {"root": new_mark(), "user": new_mark()}
        folders = {}
        for number, owner in enumerate(marks, 1):
            folders[owner] = f"{mount}{top}/{owner}/slurm/uid_{VICTIM}/job_{os.getpid()}{number}/step_batch"
            try:
                os.makedirs(folders[owner])
            except OSError:
                self.skipTest("the hierarchy takes no group from us")
        os.chown(f"{mount}{top}/user", ATTACKER, ATTACKER)
        self.start()
        for owner, folder in folders.items():
            def enter(folder=folder):
                with open(os.path.join(folder, "cgroup.procs"), "w") as f:
                    f.write("0")
            machine.run(["/usr/bin/env", "/bin/true", marks[owner]], preexec_fn=enter)
        records = self.stop()
        self.assertEqual(f"{os.getpid()}1", self.works_of(records, marks["root"])["job_id"])
        forged = self.works_of(records, marks["user"])
        self.assertNotEqual("slurm", forged["scheduler"])
        self.assertIsNone(forged["run_id"])

    def test_a_folder_stays_with_the_run_of_its_user(self):
        work = os.path.join(self.shared, "alice", "work")
        task = os.path.join(work, "ab", "0123456789abcdef0123456789abcd")
        marks = [new_mark() for _ in range(2)]
        java = self.copy_of("sh", "bin", "java", owner=0)
        self.script("echo; read x; exit 0\n", LAUNCHER)
        launchers = []

        def launch(uid, name):
            """A launcher by its arguments alone: a shell whose script has the name of the class. It runs until its input ends."""
            p = subprocess.Popen([java, LAUNCHER, "run", name + "/main.nf", "-w", work], user=uid, group=uid, extra_groups=[],
                                 cwd=self.shared, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            launchers.append(p)
            self.assertEqual(b"\n", p.stdout.readline())

        def run_task(mark):
            script = self.script(f"/bin/true {mark}; exit 0\n", task, ".command.sh")
            self.run_as(VICTIM, "/bin/bash", "-ue", script, cwd=task)

        self.start()
        launch(VICTIM, "alice")
        run_task(marks[0])
        launch(ATTACKER, "mallory")
        run_task(marks[1])
        for p in launchers:
            p.communicate(timeout=60)
        records = self.stop()
        before, after = (self.works_of(records, mark) for mark in marks)
        self.assertEqual(("alice", VICTIM), (before["pipeline"], before["uid"]))
        self.assertEqual(before["run_id"], after["run_id"])
        self.assertEqual("ab/0123456789abcdef0123456789abcd", after["task_id"])
        mallory, = [r for r in records.ends.values() if r["pid"] == launchers[1].pid]
        self.assertEqual("mallory", mallory["pipeline"])
        self.assertNotEqual(before["run_id"], mallory["run_id"])

    def test_a_users_program_is_recorded_whatever_its_name(self):
        marks, expected = {}, {"arguments": 1}
        self.start()
        for name in ("sshd", "node_exporter", "systemd-udevd", "cron"):
            path = self.copy_of("true", "bin", name, owner=ATTACKER)
            marks[name] = new_mark()
            self.run_as(ATTACKER, path, marks[name])
            # as root in a user namespace, where the file is root's
            done = machine.run(["unshare", "--user", "--map-root-user", path, marks[name], "namespace"], user=ATTACKER,
                               group=ATTACKER, extra_groups=[], check=False)
            expected[name] = 1 + (done.returncode == 0)  # a host may forbid such namespaces
        marks["arguments"] = new_mark()
        self.run_as(ATTACKER, "/bin/dash" if os.path.exists("/bin/dash") else "/bin/bash", "-c",
                    f": /etc/cron.daily; : {marks['arguments']}; exit 0")
        mine = self.copy_of("true", "root", "sshd", owner=0)
        hidden = new_mark()
        self.run_as(ATTACKER, mine, hidden)  # of root's: the host's own
        machine.run([self.copy_of("true", "root", "cron", owner=ATTACKER), hidden])  # run by root
        records = self.stop()
        for name, mark in marks.items():
            found = [r for r in records.ends.values() if any(mark in a for a in r["argv"] or []) and
                     os.path.basename(r["exe"]) != "unshare"]
            self.assertEqual([ATTACKER] * expected[name], [r["uid"] for r in found], name)
        self.assertEqual([], [called(r) for r in records.programs.values() if hidden in (r["argv"] or [])])

    def test_a_file_system_of_a_user_makes_up_no_executable_of_root(self):
        mounted = os.path.join(self.shared, "mounted")
        os.mkdir(mounted)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nosuid,mode=0755", "tmpfs", mounted], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", mounted], check=True)
        seen, hidden = [new_mark(), new_mark()], new_mark()
        places = {"mounted": seen, "root": [hidden, hidden]}
        before = {folder: subprocess.Popen([self.copy_of("bash", folder, "sshd", owner=0), "-c", f"read; : {marks[0]}"],
                                           stdin=subprocess.PIPE, user=ATTACKER, group=ATTACKER, extra_groups=[])
                  for folder, marks in places.items()}
        for process in before.values():
            self.addCleanup(process.communicate)
        self.start()
        for folder, marks in places.items():
            self.run_as(ATTACKER, self.copy_of("true", folder, "cron", owner=0), marks[1])
        recorded = {folder: json.loads(self.recorder.ctl("explain", str(process.pid), "--json").stdout)["recorded"]
                    for folder, process in before.items()}
        for process in before.values():
            process.communicate()
        self.assertEqual({"mounted": True, "root": False}, recorded)
        records = self.stop()

        def of(mark):
            return [called(r) for r in records.ends.values() if any(mark in a for a in r["argv"] or [])]
        self.assertEqual([1, 1, 0], [len(of(mark)) for mark in (*seen, hidden)])


if __name__ == "__main__":
    harness.main()
