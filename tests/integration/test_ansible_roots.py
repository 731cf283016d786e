# SPDX-License-Identifier: Apache-2.0
"""The Ansible role in throw-away roots of this machine: repositories that apt and dnf read, archives, what it does not remove,
and README.md's command.
"""
import json
import os
import re
import shlex
import shutil
import tempfile
import unittest

import yaml

import harness
import release_folder as made
import test_ansible as role

setUpModule = role.setUpModule


class InARoot(unittest.TestCase):
    """A copy of this machine's root, with releases of a small program at /mnt, in which the role is played."""
    KEY = "releases@sluice.example"

    def setUp(self):
        # In memory: an overlay on this machine's root takes an upper folder elsewhere.
        self.room = tempfile.mkdtemp(prefix="sluice-ansible-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, self.room)
        os.chmod(self.room, 0o755)
        self.mirror = made.Mirror(self.room)
        for version in ("1.9.0", "1.10.0"):
            self.mirror.release(version, rpm=True)
        self.root = made.Root(self.room, systemd=True)
        self.root.remove("/etc/sluice", "/var/lib/sluice", "/usr/bin/sluice", "/etc/apt/sources.list", "/etc/apt/sources.list.d",
                         "/var/lib/sluice-ansible", "/var/lib/sluice-install")
        for path in ("/etc/apt/sources.list.d", "/etc/yum.repos.d", "/etc/pki/rpm-gpg"):
            self.root.write(f"{path}/none", "")
        self.variables = {"ansible_python_interpreter": "/usr/bin/python3", "ansible_become": False}

    def put(self, name, text):
        made.write(os.path.join(self.mirror.path, name), text)

    def in_root(self, *command, **kw):
        """A command of dev/ansible in it; a shell is its first process, as a service manager's name decides otherwise."""
        line = shlex.join([os.path.join(harness.ROOT, "dev", "ansible"), *command])
        return self.root.run("env", f"ANSIBLE_CONFIG={role.EMPTY.name}", "ANSIBLE_NOCOLOR=1", "LC_ALL=C.UTF-8", "sh", "-c",
                             f"cd {shlex.quote(role.COLLECTION)} && {line}; exit $?", **kw)

    def play_in_root(self, tasks_from, *options, manager="apt", expected=0, **variables):
        self.put("play.yml", yaml.safe_dump([{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [
            {"ansible.builtin.set_fact": {"ansible_facts": {"pkg_mgr": manager, "service_mgr": "systemd"}}},
            {"ansible.builtin.include_role": {"name": "sluice.agent.sluice", "tasks_from": tasks_from}}]}]))
        self.put("vars.json", json.dumps({**self.variables, **variables}))
        done = self.in_root("ansible-playbook", "-i", "localhost,", "-e", "@/mnt/vars.json", *options, "/mnt/play.yml")
        self.assertEqual(expected, done.returncode, done.stdout)
        return done.stdout

    def version(self):
        done = self.root.run("/usr/bin/sluice", "--version")
        return done.stdout.split()[-1] if done.returncode == 0 else None


class Repositories(InARoot):
    """What ops/ansible/README.md makes of a mirror is a repository that apt and dnf themselves take."""

    def setUp(self):
        super().setUp()
        self.env = {**os.environ, "GNUPGHOME": os.path.join(self.room, "gnupg")}
        os.mkdir(self.env["GNUPGHOME"], 0o700)
        self.addCleanup(made.need, "gpgconf", "--kill", "all", env=self.env)
        for key in (self.KEY, "another@sluice.example"):
            made.need("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", key, "rsa3072", "sign", "2d", env=self.env)
        self.repository()
        self.variables |= {"sluice_source": "repository", "sluice_repository_url": "file:///mnt/repository",
                           "sluice_repository_key": self.public(self.KEY)}

    def public(self, key):
        return made.need("gpg", "--armor", "--export", key, env=self.env)

    def repository(self):
        os.makedirs(os.path.join(self.room, "mirror", "repository"))
        with open(os.path.join(role.COLLECTION, "README.md")) as f:
            recipe = re.search(r"(?ms)^```sh\n(cp .*?)^```", f.read())[1]
        for word, is_here in (("MIRROR", self.mirror.path), ("REPOSITORY", f"{self.mirror.path}/repository"), ("KEY", self.KEY)):
            recipe = re.sub(rf"\b{word}\b", is_here, recipe)
        made.need("bash", "-ec", recipe, env=self.env)
        with open(f"{self.mirror.path}/repository/{self.KEY}.asc") as f:
            self.assertEqual(self.public(self.KEY), f.read())

    def life(self, manager):
        """What is not signed by the key; then a version, again, and the newest."""
        def install(**kw):
            return self.play_in_root("install_repository", manager=manager, **kw)
        install(sluice_repository_key=self.public("another@sluice.example"), expected=2)
        for name in ("Packages", "repodata/repomd.xml"):
            path = f"{self.mirror.path}/repository/{name}"
            shutil.copy(path, f"{path}.signed")
            with open(path, "a") as f:
                f.write("\n")
        install(expected=2)
        self.assertIsNone(self.version())
        for name in ("Packages", "repodata/repomd.xml"):
            path = f"{self.mirror.path}/repository/{name}"
            os.rename(f"{path}.signed", path)
        install(sluice_version="1.9.0")
        self.assertEqual("1.9.0", self.version())
        self.assertIn("changed=0 ", install(sluice_version="1.9.0"))
        self.assertIn("changed=1 ", install(sluice_version="latest"))
        self.assertEqual("1.10.0", self.version())

    def test_apt(self):
        self.life("apt")

    def test_dnf(self):
        """Debian's dnf, over a database of packages in which there is a system that has a shell."""
        self.root.write("/root/.rpmmacros", "%_dbpath /var/lib/rpm\n")
        self.root.run("rpm", "--initdb")
        done = self.root.run("rpm", "--force-debian", "-i", "--justdb", "/mnt/" + os.path.basename(self.mirror.system_rpm()))
        self.assertEqual(0, done.returncode, done.stdout)
        self.life("dnf")


class Archives(InARoot):
    """tasks/install_file.yml and tasks/absent.yml where no package manager has it."""

    def install(self, version, before, **kw):
        return self.play_in_root("install_file", sluice_before={"kind": "archive" if before else "none", "version": "",
                                                                "program": before},
                                 __sluice_want={"name": f"sluice-{version}-linux-{made.ARCH}.tar.gz", "place": "controller",
                                                "from": f"/mnt/{version}/sluice-{version}-linux-{made.ARCH}.tar.gz",
                                                "checksum": "", "version": ""}, **kw)

    def test_an_older_one_is_refused(self):
        self.install("1.9.0", "")
        self.assertEqual("1.9.0", self.version())
        self.root.write("/etc/sluice/sluice.yaml", "interval: 7s\n")
        self.assertIn("changed=0 ", self.install("1.9.0", "1.9.0"))
        self.install("1.10.0", "1.9.0")
        self.assertEqual("1.10.0", self.version())
        self.assertIn("older than the 1.10.0 that is installed: set sluice_allow_downgrade",
                      self.install("1.9.0", "1.10.0", expected=2))
        self.assertEqual("1.10.0", self.version())
        self.install("1.9.0", "1.10.0", sluice_allow_downgrade=True)
        self.assertEqual("1.9.0", self.version())
        tree = self.root.tree()
        self.assertIn("/usr/share/sluice/only-1.9.0", tree)
        self.assertNotIn("/usr/share/sluice/only-1.10.0", tree)
        with open(self.root.path("/etc/sluice/sluice.yaml")) as f:
            self.assertEqual("interval: 7s\n", f.read())
        self.assertEqual([], [path for path in tree if "/usr/bin/.sluice" in path or path in ("/usr", "/usr/bin", "/etc")])

    def test_what_install_sh_wrote_is_not_removed(self):
        """Whatever the folder; nor is what is there of neither. Nothing is stopped."""
        self.root.write("/root/install.sh", open(made.INSTALL).read(), 0o755)
        for prefix in ("/usr", "/opt/sluice"):
            script = ["env", "SLUICE_INSTALL_WATCH=1", "sh", "/root/install.sh"]
            done = self.root.run(*script, "--method", "file", "--prefix", prefix, "--from", "/mnt", "--key",
                                 self.mirror.key.text)
            self.assertEqual(0, done.returncode, done.stdout)
            out = self.play_in_root("main", sluice_state="absent", sluice_purge=True, expected=2)
            self.assertIn("nothing was stopped nor removed. It came by install.sh; run there", out)
            self.assertIn("sh install.sh --uninstall --purge", out)
            self.assertTrue(self.root.fake("active") and self.root.fake("enabled"))
            done = self.root.run(*script, "--uninstall", "--purge")
            self.assertEqual(0, done.returncode, done.stdout)
            self.play_in_root("main", sluice_state="absent", sluice_purge=True)
        # A package is the manager's, by whomever: what the script keeps of it goes with it.
        done = self.root.run(*script, "--method", "package", "--from", "/mnt", "--key", self.mirror.key.text)
        self.assertEqual(0, done.returncode, done.stdout)
        self.root.remove("/usr/lib/systemd/system/sluice-agent.service")  # no service manager runs here, that could stop it
        self.play_in_root("main", sluice_state="absent", sluice_purge=True)
        self.assertEqual([], [path for path in self.root.tree() if "sluice" in path and not path.startswith(harness.ROOT)])
        self.root.write("/usr/bin/sluice", "#!/bin/sh\n", 0o755)
        self.assertIn("cmake --build BUILD --target uninstall", self.play_in_root("main", sluice_state="absent", expected=2))


class Readme(InARoot):
    def test_its_command_as_written(self):
        """README.md's, on a host that has nothing, as far as that can be without a kernel: as a dry run."""
        with open(os.path.join(harness.ROOT, "README.md")) as f:
            command = re.search(r"(?m)^    (ansible-playbook (?:.*\\\n)*.*)$", f.read())[1]
        shutil.copy(self.mirror.key.public, f"{self.mirror.path}/release.pub")
        self.put("hosts", "localhost ansible_connection=local ansible_become=false "
                                 "ansible_python_interpreter=/usr/bin/python3\n")
        done = self.in_root("sh", "-c", "cd /mnt && " + command.replace("=MIRROR", "=/mnt") + " --check")
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn("It is the release that was asked for", done.stdout)
        self.assertRegex(done.stdout, r"changed=[1-9]\d* +unreachable=0 +failed=0")


if __name__ == "__main__":
    harness.main()
