# SPDX-License-Identifier: Apache-2.0
"""The Ansible role without a host: the linters, its arguments, its mirror's signature, and what it writes, which `sluice
check` has to take before it replaces anything. test_ansible_roots.py has repositories and archives;
tests/systems/ansible_hosts.py has the rest, on three guests.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import harness

COLLECTION = os.path.join(harness.ROOT, "ops", "ansible")
ROLE = os.path.join(COLLECTION, "roles", "sluice")
PLAYBOOKS = sorted(os.listdir(os.path.join(COLLECTION, "playbooks")))
EMPTY = tempfile.NamedTemporaryFile(suffix=".cfg")  # pylint: disable=consider-using-with
NOWHERE = "nowhere,"


def ansible(*command, timeout=300, **kw):
    """A command of dev/ansible, without the configuration that a developer may have."""
    env = {**os.environ, "ANSIBLE_CONFIG": EMPTY.name, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_NOCOWS": "1", "LC_ALL": "C.UTF-8"}
    return subprocess.run([os.path.join(harness.ROOT, "dev", "ansible"), *command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout, cwd=COLLECTION, env=env, check=False, **kw)


def setUpModule():
    done = ansible("true")
    if done.returncode != 0:
        raise AssertionError(done.stdout)


def read_yaml(*path):
    with open(os.path.join(*path)) as f:
        return yaml.safe_load(f)


class Sources(unittest.TestCase):
    def test_ansible_lint(self):
        """Profile production, as .ansible-lint says; yamllint is one of its rules."""
        done = ansible("ansible-lint", "--offline", "--nocolor")
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertRegex(done.stdout, r"Passed: 0 failure\(s\), 0 warning\(s\) in [1-9]\d* files")

    def test_playbooks(self):
        self.assertEqual(["hosts.yml", "remove.yml", "roll_out.yml", "site.yml"], PLAYBOOKS)
        for name in PLAYBOOKS:
            done = ansible("ansible-playbook", "--syntax-check", "-i", NOWHERE, f"playbooks/{name}")
            self.assertEqual(0, done.returncode, done.stdout)

    def test_no_host_matches(self):
        """A failure, with what to do, rather than a play that is skipped."""
        for name in PLAYBOOKS:
            for said in ([], ["-e", "sluice_hosts=elsewhere"]):
                done = ansible("ansible-playbook", "-i", NOWHERE, *said, f"playbooks/{name}")
                self.assertEqual(2, done.returncode, done.stdout)
                self.assertIn(f"no host of the inventory matches {'elsewhere' if said else 'sluice'}: put hosts into the",
                              done.stdout)

    def test_it_installs_as_its_readme_says(self):
        """Nothing of it needs what is beside it in the source tree, nor another collection."""
        with tempfile.TemporaryDirectory() as to:
            done = ansible("ansible-galaxy", "collection", "install", "--offline", "--force", "-p", to, COLLECTION)
            self.assertEqual(0, done.returncode, done.stdout)
            at = os.path.join(to, "ansible_collections", "sluice", "agent")
            for name in ("README.md", "plugins/filter/signed.py", "roles/sluice/meta/argument_specs.yml", "playbooks/site.yml"):
                self.assertTrue(os.path.isfile(os.path.join(at, name)), name)

    def test_each_variable_has_a_default_and_is_explained(self):
        defaults = read_yaml(ROLE, "defaults", "main.yml")
        options = read_yaml(ROLE, "meta", "argument_specs.yml")["argument_specs"]["main"]["options"]
        self.assertEqual(sorted(defaults), sorted(options))
        for name, value in defaults.items():
            self.assertEqual(value, options[name].get("default"), name)
            self.assertTrue(options[name]["description"], name)

    def test_the_versions_are_those_of_the_program(self):
        done = harness.run_sluice(["--version"])
        version = done.stdout.split()[1]
        self.assertEqual(version, read_yaml(COLLECTION, "galaxy.yml")["version"])


class Played(unittest.TestCase):
    """A playbook on this machine, whose files are below a folder of its own."""

    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="sluice-ansible-")
        self.addCleanup(shutil.rmtree, self.room)
        self.etc = os.path.join(self.room, "etc")

    def play(self, tasks, *options, **variables):
        """ansible-playbook of these tasks; what it printed."""
        book = os.path.join(self.room, "play.yml")
        with open(book, "w") as f:
            yaml.safe_dump([{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}], f)
        with open(os.path.join(self.room, "vars.json"), "w") as f:
            json.dump({"ansible_python_interpreter": "/usr/bin/python3", "__sluice_program": harness.SLUICE,
                       "__sluice_config_dir": self.etc, **variables}, f)
        return ansible("ansible-playbook", "-i", "localhost,", "-e", f"@{self.room}/vars.json", *options, book)

    def put(self, name, text):
        path = os.path.join(self.room, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        return path

    def tree(self):
        """{path: (text, time of its last change)} of the configuration."""
        out = {}
        for at, _, names in os.walk(self.etc):
            for name in names:
                path = os.path.join(at, name)
                with open(path) as f:
                    out[os.path.relpath(path, self.etc)] = (f.read(), os.stat(path).st_ctime_ns)
        return out


class Arguments(Played):
    def refused(self, **variables):
        done = self.play([{"ansible.builtin.include_role": {"name": "sluice.agent.sluice"}}], **variables)
        self.assertEqual(2, done.returncode, done.stdout)
        self.assertIn("Validation of arguments failed", done.stdout)
        self.assertNotIn("What is installed", done.stdout)
        return done.stdout

    def test_a_source_that_there_is_not(self):
        self.assertIn("sluice_source", self.refused(sluice_source="floppy"))

    def test_rules_that_are_no_mapping(self):
        self.assertIn("sluice_rules", self.refused(sluice_rules=["stress"]))

    def test_a_file_without_a_path(self):
        self.assertIn("path", self.refused(sluice_files=[{"content": "x"}]))


class Chosen(Played):
    """tasks/choose.yml: what is missing is said before anything is changed."""

    def choose(self, expected=2, **variables):
        done = self.play([{"ansible.builtin.include_role": {"name": "sluice.agent.sluice", "tasks_from": "choose"}}],
                         **{"sluice_before": {"kind": "deb", "version": "1.2.3", "program": "1.2.3"}, **variables})
        self.assertEqual(expected, done.returncode, done.stdout)
        self.assertIn("changed=0 ", done.stdout)
        return done.stdout

    def test_no_source(self):
        out = self.choose()
        self.assertIn("nothing says where sluice comes from: set sluice_source to mirror, with sluice_mirror", out)

    def test_what_another_has_installed(self):
        by_script = {"kind": "other", "version": "", "program": "1.2.3"}
        out = self.choose(sluice_source="file", sluice_file="/x.deb", sluice_before=by_script)
        self.assertIn("neither from a package nor from this role's archive: set sluice_source to installed", out)
        self.choose(0, sluice_source="installed", sluice_before=by_script)

    def test_a_user_that_there_is_not(self):
        for name in ("sluice_readers", "sluice_admins"):
            self.assertIn("users that this host does not have: no-such-user.",
                          self.choose(sluice_source="installed", **{name: ["root", "no-such-user"]}))
        self.choose(0, sluice_source="installed", sluice_readers=["root"], sluice_admins=["root", "daemon"])


class Configured(Played):
    """tasks/configure.yml with this build's `sluice check`."""

    CONFIG = {"interval": "30s", "metrics": "off", "kafka": {"brokers": ["a:9092", "b:9092"], "properties": {"linger.ms": 5}},
              "registry": {"urls": ["https://r:8081"]}, "argv": {"redact": ["builtin", "--pin=(?<secret>.*)"]}}
    RULES = {"quiet": {"exclude": [{"exe": "stress"}]}, "text": "exclude:\n  - {exe: yes-man} # by hand\n"}

    def configure(self, *options, config=None, rules=None, expected=0):
        done = self.play(
            [{"ansible.builtin.include_role": {"name": "sluice.agent.sluice", "tasks_from": "configure"}}], *options,
            sluice_config=self.CONFIG if config is None else config, sluice_rules=self.RULES if rules is None else rules,
            sluice_before={"kind": "deb", "version": "", "program": ""}, __sluice_drop_in=os.path.join(self.room, "unit", "d"))
        self.assertEqual(expected, done.returncode, done.stdout)
        return done.stdout

    def test_what_the_service_needs_more_is_in_its_drop_in(self):
        path = os.path.join(self.room, "unit", "d")
        self.configure()
        self.assertFalse(os.path.exists(path))
        self.configure(config={**self.CONFIG, "engines": {"headers": True}})
        with open(path) as f:
            self.assertEqual(["[Service]", "CapabilityBoundingSet=CAP_DAC_READ_SEARCH", "AmbientCapabilities=CAP_DAC_READ_SEARCH"],
                             f.read().splitlines()[1:])
        self.configure()
        self.assertFalse(os.path.exists(path))

    def changed(self, out):
        return int(out.rpartition("changed=")[2].split()[0])

    def test_what_it_writes_is_what_sluice_reads(self):
        self.configure()
        done = harness.run_sluice(["check", "-c", f"{self.etc}/sluice.yaml", "--dump"])
        self.assertEqual(0, done.returncode, done.stderr)
        dump = yaml.safe_load(done.stdout)
        self.assertEqual(("30s", ["off"], ["a:9092", "b:9092"], 5),
                         (dump["interval"], dump["metrics"], dump["kafka"]["brokers"],
                          int(dump["kafka"]["properties"]["linger.ms"])))
        self.assertEqual(["builtin", "--pin=(?<secret>.*)"], dump["argv"]["redact"])
        explained = harness.run_sluice(["check", "-c", f"{self.etc}/sluice.yaml", "--explain", "--exe", "/usr/bin/stress", "--",
                                        "stress"])
        self.assertEqual(0, explained.returncode, explained.stderr)
        for path in self.tree():
            self.assertEqual((0, 0, 0o644), (os.stat(f"{self.etc}/{path}").st_uid, os.stat(f"{self.etc}/{path}").st_gid,
                                             os.stat(f"{self.etc}/{path}").st_mode & 0o7777), path)

    def test_again_changes_nothing(self):
        self.assertGreater(self.changed(self.configure()), 0)
        before = self.tree()
        self.assertEqual(0, self.changed(self.configure()))
        self.assertEqual(before, self.tree())

    def test_a_dry_run_changes_nothing(self):
        self.configure()
        before = self.tree()
        out = self.configure("--check", "--diff", config={**self.CONFIG, "interval": "60s"})
        self.assertEqual(1, self.changed(out))
        self.assertIn("+interval: 60s", out)
        self.assertEqual(before, self.tree())

    def test_a_dry_run_refuses_too(self):
        self.configure()
        self.assertIn("interval", self.configure("--check", config={"interval": "never"}, expected=2))

    def test_a_bad_configuration_replaces_nothing(self):
        self.configure()
        before = self.tree()
        out = self.configure(config={**self.CONFIG, "intervall": "1s"}, rules={}, expected=2)
        self.assertIn("sluice check refuses the configuration, and nothing was replaced", out)
        self.assertIn(f"{self.etc}/sluice.yaml", out)
        self.assertIn("intervall", out)
        self.assertEqual(before, self.tree())

    def test_a_bad_rule_replaces_nothing(self):
        self.configure()
        before = self.tree()
        out = self.configure(config={"interval": "1s"}, rules={"quiet": {"exclude": [{"executable": "x"}]}}, expected=2)
        self.assertIn(f"{self.etc}/rules.d/quiet.yaml", out)
        self.assertEqual(before, self.tree())

    def test_what_others_wrote_stays_and_counts(self):
        self.put("etc/rules.d/mine.yaml", "exclude: [{exe: mine}]\n")
        self.put("etc/conf.d/mine.yaml", "drain: 20s\n")
        self.configure(rules={})
        self.assertEqual({"sluice.yaml", "rules.d/mine.yaml", "conf.d/mine.yaml"}, set(self.tree()))
        self.put("etc/conf.d/mine.yaml", "drain: soon\n")
        self.assertIn("drain", self.configure(rules={}, expected=2))

    def test_rules_that_are_no_longer_named_are_removed(self):
        self.configure()
        self.assertLess({"rules.d/quiet.yaml", "rules.d/text.yaml"}, set(self.tree()))
        self.assertEqual(1, self.changed(self.configure(rules={"text": self.RULES["text"]})))
        self.assertEqual({"sluice.yaml", "rules.d/text.yaml"}, set(self.tree()))

    def test_without_a_configuration_the_file_stays(self):
        self.put("etc/sluice.yaml", "interval: 7s\n")
        self.configure(config={})
        self.assertEqual("interval: 7s\n", self.tree()["sluice.yaml"][0])


class Files(Played):
    """tasks/files.yml"""

    def test_a_folder_of_others_stays_and_no_secret_is_shown(self):
        folder = os.path.join(self.room, "private")
        os.mkdir(folder)
        os.chmod(folder, 0o711)
        done = self.play(
            [{"ansible.builtin.include_role": {"name": "sluice.agent.sluice", "tasks_from": "files"}}], "--diff", "-vvv",
            sluice_files=[{"path": f"{folder}/key.pem", "content": "a secret of 2 words", "owner": "root",
                           "group": "root"}],
            __sluice_restart_wanted=False)
        self.assertEqual(0, done.returncode, done.stdout)
        with open(f"{folder}/key.pem") as f:
            self.assertEqual("a secret of 2 words", f.read())
        self.assertEqual(0o400, os.stat(f"{folder}/key.pem").st_mode & 0o7777)
        self.assertEqual((0, 0o711), (os.stat(folder).st_gid, os.stat(folder).st_mode & 0o7777))
        self.assertNotIn("a secret of 2 words", done.stdout)

    def test_a_secret_that_is_misspelt_is_not_shown(self):
        done = self.play([{"ansible.builtin.include_role": {"name": "sluice.agent.sluice"}}], "-vvv",
                         sluice_files=[{"pfad": "/etc/sluice/key.pem", "content": "a secret of 2 words"}])
        self.assertIn("Validation of arguments failed", done.stdout)
        self.assertNotIn("a secret of 2 words", done.stdout)


class Fetched(Played):
    """tasks/install_file.yml"""

    def test_a_dry_run_where_nothing_is_yet(self):
        """The folder for the package would be made first; what would be fetched into it is not asked for."""
        kept = os.path.join(self.room, "kept")
        done = self.play(
            [{"ansible.builtin.include_role": {"name": "sluice.agent.sluice", "tasks_from": "install_file"}}], "--check",
            __sluice_kept=kept, __sluice_want={"name": "sluice.deb", "from": "http://127.0.0.1:1/sluice.deb",
                                               "place": "mirror", "checksum": "0" * 64, "version": "1.2.3"})
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn("changed=1 ", done.stdout)
        self.assertFalse(os.path.exists(kept))


class Topics(Played):
    """tasks/topics.yml with a tool that keeps its topics in a file, as kafka-topics.sh keeps its own in Kafka."""

    TOOL = """#!/bin/sh
echo "$*" >>"$0.calls"
case "$*" in
*--list*) cat "$0.topics" ;;
*--create*) shift 7; echo "$1" >>"$0.topics" ;;
esac
"""

    def test_what_is_missing_is_created_once(self):
        tool = self.put("kafka-topics.sh", self.TOOL)
        os.chmod(tool, 0o755)
        self.put("kafka-topics.sh.topics", "lab.sluice.task\nother\n")
        for expected in (6, 0):
            done = self.play(
                [{"ansible.builtin.include_role": {"name": "sluice.agent.sluice", "tasks_from": "topics"}}],
                sluice_topics_host="localhost", sluice_topics_command=[tool], sluice_topics_options=["--command-config", "a"],
                sluice_config={"kafka": {"brokers": ["a:1", "b:2"], "topics": {"prefix": "lab.", "replication": 2,
                                                                                "retention": "90d"}}})
            self.assertEqual(0, done.returncode, done.stdout)
            self.assertIn(f"changed={1 if expected else 0} ", done.stdout)
        with open(f"{tool}.topics") as f:
            self.assertEqual(["lab.sluice.task", "other", *(f"lab.{t}" for t in harness.TOPICS if t != "sluice.task")],
                             f.read().split())
        with open(f"{tool}.calls") as f:
            calls = f.read().splitlines()
        self.assertEqual(8, len(calls))
        self.assertEqual("--bootstrap-server a:1,b:2 --command-config a --create --if-not-exists --topic lab.sluice.program "
                         "--partitions 12 --replication-factor 2 --config retention.ms=7776000000", calls[1])


class Signed(Played):
    """The filter `signed`, against what minisign(1) writes."""

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.room, "release")
        os.mkdir(self.folder)
        self.key = self.new_key("release")
        self.name = "sluice-agent_1.2.3_amd64.deb"
        with open(os.path.join(self.folder, self.name), "wb") as f:
            f.write(b"a package")
        self.sum = hashlib.sha256(b"a package").hexdigest()
        self.sums = self.put("release/SHA256SUMS", f"{self.sum}  {self.name}\n")
        self.sign()

    def minisign(self, *arguments):
        done = subprocess.run(["minisign", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(0, done.returncode, done.stdout)

    def new_key(self, name):
        self.minisign("-G", "-W", "-f", "-p", f"{self.room}/{name}.pub", "-s", f"{self.room}/{name}.key")
        return name

    def sign(self, comment="sluice 1.2.3", key="release", *options):
        self.minisign("-S", "-W", *options, "-s", f"{self.room}/{key}.key", "-t", comment, "-x", f"{self.sums}.minisig", "-m",
                      self.sums)

    def signed(self, key="release"):
        """(whether it is taken, what it is or why not), as Python finds the filter."""
        program = ("import json, sys\nfrom ansible.errors import AnsibleFilterError\nsys.path.insert(0, sys.argv[1])\n"
                   "from signed import signed\nread = lambda p: open(p, newline='').read()\n"
                   "try: print(json.dumps(signed(read(sys.argv[2]), read(sys.argv[2] + '.minisig'), read(sys.argv[3]))))\n"
                   "except AnsibleFilterError as e: sys.exit('refused: ' + str(e))\n")
        done = ansible("python", "-c", program, f"{COLLECTION}/plugins/filter", self.sums, f"{self.room}/{key}.pub")
        if done.returncode == 0:
            return json.loads(done.stdout)
        self.assertRegex(done.stdout, r"\Arefused: ")
        return done.stdout

    def test_what_minisign_signed(self):
        self.assertEqual({"version": "1.2.3", "files": {self.name: self.sum}}, self.signed())

    def test_a_list_that_was_changed(self):
        self.put("release/SHA256SUMS", f"{'0' * 64}  {self.name}\n")
        self.assertIn("SHA256SUMS is not signed by this key", self.signed())

    def test_a_comment_that_was_changed(self):
        path = f"{self.sums}.minisig"
        with open(path) as f:
            text = f.read()
        self.put("release/SHA256SUMS.minisig", text.replace("sluice 1.2.3", "sluice 9.2.3"))
        self.assertIn("the trusted comment is not signed by this key", self.signed())

    def test_another_key(self):
        self.new_key("other")
        self.assertIn("is by the key", self.signed("other"))
        # With the id of the key that is trusted, and none of its signatures.
        self.sign(key="other")
        self.assertIn("is by the key", self.signed())

    def test_a_signature_that_is_not_prehashed(self):
        self.sign("sluice 1.2.3", "release", "-l")
        self.assertIn("not prehashed", self.signed())

    def test_signed_for_something_else(self):
        self.sign("another 1.2.3")
        self.assertIn('not "sluice VERSION"', self.signed())

    def test_no_signature_at_all(self):
        self.put("release/SHA256SUMS.minisig", "<html>404</html>\n")
        self.assertIn("not in minisign's format", self.signed())

    def test_lists_that_are_malformed(self):
        for text, why in (("", "lists no file"), (f"{self.sum}  ../{self.name}\n", "SHA256SUMS:1"),
                          (f"{self.sum}  {self.name}\n" * 2, "listed twice"), (f"{self.sum[1:]}  {self.name}\n", "SHA256SUMS:1")):
            self.put("release/SHA256SUMS", text)
            self.sign()
            self.assertIn(why, self.signed(), text)

    def test_a_key_that_is_none(self):
        for text in ("", "RWQ=\n", "untrusted comment: x\nnot base64!\n", "RWQ=\nRWQ=\n"):
            self.put("none.pub", text)
            self.assertIn("the public key", self.signed("none"), text)

    def chosen(self, expected=0, at=None, before="", **variables):
        """tasks/mirror.yml: what it would install."""
        with open(f"{self.room}/release.pub") as f:
            key = f.read()
        done = self.play([
            {"ansible.builtin.set_fact": {"ansible_facts": {"pkg_mgr": "apt", "architecture": "x86_64"}}},
            {"ansible.builtin.include_role": {"name": "sluice.agent.sluice", "tasks_from": "mirror"}},
            {"ansible.builtin.debug": {"var": "__sluice_want"}}], sluice_mirror=at or self.mirror, sluice_mirror_key=key,
            sluice_before={"kind": "deb", "version": before, "program": before}, **variables)
        self.assertEqual(expected, done.returncode, done.stdout)
        return done.stdout

    def as_mirror(self):
        """A mirror with this release and `latest`."""
        self.mirror = os.path.join(self.room, "mirror")
        for name in ("1.2.3", "latest"):
            shutil.copytree(self.folder, os.path.join(self.mirror, name))

    def test_a_mirror_by_path(self):
        self.as_mirror()
        for version in ("", "latest", "1.2.3"):
            out = self.chosen(sluice_version=version)
            self.assertIn(self.sum, out)
            self.assertIn('"place": "controller"', out)

    def test_a_mirror_by_url(self):
        self.as_mirror()
        with subprocess.Popen([sys.executable, "-u", "-m", "http.server", "-b", "127.0.0.1", "-d", self.mirror, "0"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                port = server.stdout.readline().split(" port ")[1].split()[0]
                out = self.chosen(at=f"http://127.0.0.1:{port}/", sluice_version="latest")
            finally:
                server.kill()
        self.assertIn('"place": "mirror"', out)
        self.assertIn(f"http://127.0.0.1:{port}/latest/{self.name}", out)

    def test_a_folder_with_another_release(self):
        self.as_mirror()
        os.rename(os.path.join(self.mirror, "1.2.3"), os.path.join(self.mirror, "1.2.4"))
        self.assertIn("the folder has another release", self.chosen(expected=2, sluice_version="1.2.4"))

    def test_an_older_release(self):
        self.as_mirror()
        self.assertIn("older than the 1.10.0", self.chosen(expected=2, before="1.10.0", sluice_version="1.2.3"))
        self.chosen(before="1.10.0", sluice_version="1.2.3", sluice_allow_downgrade=True)

    def test_no_file_for_this_host(self):
        self.as_mirror()
        self.assertIn("lists no sluice-agent-1.2.3-1.x86_64.rpm", self.chosen(expected=2, sluice_mirror_format="rpm"))


if __name__ == "__main__":
    harness.main()
