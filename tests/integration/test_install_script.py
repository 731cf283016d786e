# SPDX-License-Identifier: Apache-2.0
"""ops/install/install.sh in throw-away roots: what it installs, refuses, leaves as it was, and removes."""
import functools
import http.server
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import harness
import release_folder as made

VERSIONS = ("1.9.0", "1.10.0")  # as text the second would be the older


class Case(unittest.TestCase):
    """A mirror with two versions, and a root in which nothing is installed yet."""
    shell, systemd, lower, rpm = ("dash",), False, "/", False

    def setUp(self):
        # In memory: an overlay on this machine's root takes an upper folder elsewhere.
        self.room = tempfile.mkdtemp(prefix="sluice-install-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, self.room)
        os.chmod(self.room, 0o755)
        self.mirror = made.Mirror(self.room)
        for version in VERSIONS:
            self.mirror.release(version, rpm=self.rpm)
        self.root = made.Root(self.room, self.lower, self.systemd)
        self.root.write("/root/release.pub", open(self.mirror.key.public).read())
        self.root.write("/root/install.sh", open(made.INSTALL).read(), 0o755)
        self.root.remove("/etc/sluice", "/var/lib/sluice", "/usr/bin/sluice", "/usr/local/bin/sluice")  # should this machine have it
        self.before = self.root.tree()

    def install(self, *arguments, key="/root/release.pub", source="/mnt", script="/root/install.sh", env=(), **kw):
        arguments = [*(["--from", source] if source else []), *(["--key", key] if key else []), *arguments]
        return self.root.run("env", "SLUICE_INSTALL_WATCH=1", *env, *self.shell, script, *arguments, **kw)

    def uninstall(self, *arguments):
        return self.installed("--uninstall", *arguments, source=None, key=None)

    def installed(self, *arguments, **kw):
        done = self.install(*arguments, **kw)
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def refused(self, expected, *arguments, status=1, **kw):
        """It fails with that sentence, and everything is as before."""
        before = self.root.tree()
        done = self.install(*arguments, **kw)
        self.assertEqual(status, done.returncode, done.stdout)
        self.assertIn(expected, done.stdout)
        self.assertEqual(before, self.root.tree(), done.stdout)
        self.assertEqual([], self.left_over())
        return done.stdout

    def version(self, program="/usr/bin/sluice"):
        done = self.root.run(program, "--version")
        return done.stdout.split()[-1] if done.returncode == 0 else None

    def left_over(self):
        """Files of the script's own work that should be gone."""
        out = [path for path in self.root.tree() if path.endswith((".sluice-new", ".new")) or "sluice-install." in path]
        return out + [n for n in os.listdir(os.path.join(self.room, "run")) if n.startswith("sluice-install")]

    def nothing_is_left(self):
        self.assertEqual(self.before, self.root.tree())
        self.assertEqual([], self.left_over())


class Files(Case):
    """--method file, which is the way of systems without a package manager."""

    def installed(self, *arguments, **kw):
        # Only the first says how; the later ones stay with it.
        first = not os.path.exists(self.root.path("/var/lib/sluice-install/manifest")) and "--uninstall" not in arguments
        return super().installed(*(["--method", "file"] if first else []), *arguments, **kw)

    def test_life(self):
        said = self.installed("--version", "1.9.0")
        self.assertEqual("1.9.0", self.version())
        for text in ("signed by the key", "null on this kernel: block_io_delay", "self-test: 12 of 12", "done: sluice 1.9.0"):
            self.assertIn(text, said)
        there = self.root.tree()
        for path in ("/etc/sluice/rules.d", "/usr/share/man/man1/sluice-x.1.gz", "/etc/sluice/release.pub"):
            self.assertIn(path, there)
        self.assertEqual(0, self.root.run("id", "sluice").returncode)

        # Again: nothing changes. The key is known by now, and where the release came from.
        said = self.installed("--version", "1.9.0", key=None, source=None)
        self.assertIn("nothing to do", said)
        self.assertEqual(there, self.root.tree())

        # Newer, with a configuration that is the user's by now.
        self.root.write("/etc/sluice/sluice.yaml", "lake: /mine\n")
        self.assertIn("in place of 1.9.0", self.installed(key=None))
        self.assertEqual("1.10.0", self.version())
        there = self.root.tree()
        self.assertIn("/usr/share/sluice/only-1.10.0", there)
        self.assertNotIn("/usr/share/sluice/only-1.9.0", there)
        self.assertNotIn("/etc/sluice/sluice.yaml.new", there)  # what is shipped has not changed
        self.assertEqual("lake: /mine\n", open(self.root.path("/etc/sluice/sluice.yaml")).read())

        # Older only if asked.
        self.refused("refused without --allow-downgrade", "--version", "1.9.0")
        self.installed("--version", "1.9.0", "--allow-downgrade")
        self.assertEqual("1.9.0", self.version())

        # A file that is broken is put in place again.
        self.root.write("/usr/share/sluice/schemas/program.avsc", "broken\n")
        self.installed("--version", "1.9.0")
        self.assertEqual('"1.9.0"\n', open(self.root.path("/usr/share/sluice/schemas/program.avsc")).read())

        # Away: what the user changed stays, and purge takes that, too.
        self.root.write("/var/lib/sluice/lake/file", "record")
        self.assertIn("/etc/sluice stays", self.uninstall())
        self.assertEqual({"/etc/sluice/sluice.yaml", "/var/lib/sluice/lake/file", "/etc/passwd", "/etc/group", "/etc/shadow",
                          "/etc/gshadow"},
                         {p for p, what in self.root.tree().items() if p not in self.before and "folder" not in what})
        self.uninstall("--purge")
        self.nothing_is_left()
        self.assertIn("no sluice", self.uninstall())

    def test_a_configuration_that_both_changed(self):
        self.installed("--version", "1.9.0")
        self.root.write("/etc/sluice/sluice.yaml", "lake: /mine\n")
        self.mirror.release("1.11.0", config="lake: /theirs\n")
        self.assertIn("/etc/sluice/sluice.yaml is yours and stays", self.installed())
        self.assertEqual("lake: /mine\n", open(self.root.path("/etc/sluice/sluice.yaml")).read())
        self.assertEqual("lake: /theirs\n", open(self.root.path("/etc/sluice/sluice.yaml.new")).read())
        self.assertIn("nothing to do", self.installed())
        self.root.remove("/etc/sluice/sluice.yaml.new")  # merged
        self.assertIn("nothing to do", self.installed())
        self.uninstall("--purge")
        self.nothing_is_left()

    def test_what_sluice_update_has_put_in_place(self):
        """Of the files it replaces the program alone, and keeps the former one beside it."""
        self.installed("--version", "1.9.0")
        for name in ("sluice.previous", ".sluice.update.lock"):
            self.root.write("/usr/bin/" + name, open(self.root.path("/usr/bin/sluice")).read(), 0o755)
        self.root.write("/usr/bin/sluice", made.PROGRAM.replace("@VERSION@", "1.10.0"), 0o755)
        self.refused("sluice 1.10.0 is installed, and 1.9.0 is older", "--version", "1.9.0")
        # The rest of that version comes with its release.
        self.assertIn("in place of 1.10.0", self.installed())
        self.assertIn("/usr/share/sluice/only-1.10.0", self.root.tree())
        self.assertIn("nothing to do", self.installed())
        # A program that does not run any more has the version that was written down.
        self.root.write("/usr/bin/sluice", "broken", 0o755)
        self.assertIn("in place of 1.10.0", self.installed())
        self.uninstall("--purge")
        self.nothing_is_left()

    def test_another_prefix(self):
        self.refused("without . and ..", "--method", "file", "--prefix", "/opt/../x", status=2)
        self.refused("an absolute path", "--method", "file", "--prefix", "opt", status=2)
        self.installed("--prefix", "/opt/sluice/1")
        self.assertEqual("1.10.0", self.version("/opt/sluice/1/bin/sluice"))
        self.assertEqual({"/opt", "/etc", "/var"}, {"/" + path.split("/")[1] for path in self.root.tree()} - {"/root"})
        with open(self.root.path("/etc/systemd/system/sluice-agent.service")) as f:
            self.assertIn("ExecStart=/opt/sluice/1/bin/sluice agent", f.read())
        self.refused("installed below /opt/sluice/1", "--prefix", "/usr/local")
        self.uninstall("--purge")
        self.nothing_is_left()
        self.installed("--prefix", "/usr/local")
        self.assertEqual("1.10.0", self.version("/usr/local/bin/sluice"))
        self.uninstall("--purge")
        self.nothing_is_left()

    def test_failures_leave_what_was(self):
        # The last folder that is made cannot be; nothing is installed.
        self.root.write("/usr/share/sluice", "a file\n")
        self.refused("cannot make the folder", "--method", "file")
        self.root.remove("/usr/share/sluice")
        # In the place of a file is a folder.
        self.root.write("/usr/share/sluice/only-1.10.0/x", "")
        self.refused("is a folder", "--method", "file")
        self.root.remove("/usr/share/sluice")
        # The same over an installation.
        self.installed("--version", "1.9.0")
        self.root.write("/usr/share/sluice/only-1.10.0/x", "")
        self.refused("is a folder")
        self.assertEqual("1.9.0", self.version())

    def test_the_kernel_is_asked_first(self):
        for name, text, expected in (("doctor", "125\n", "does not work on this kernel"),
                                     ("self-test-fails", "", "the self-test failed")):
            self.root.fake(name, text)
            self.refused(expected, "--method", "file")
            self.assertIn("not checked", self.installed("--no-check"))
            self.root.forget(name)
            self.uninstall("--purge")
        self.nothing_is_left()

    def test_of_another_kind(self):
        self.root.write("/usr/local/bin/sluice", "built here\n", 0o755)
        self.refused("/usr/local/bin/sluice is neither a package's nor this script's", "--method", "file")
        self.root.remove("/usr/local/bin/sluice")
        self.installed()
        self.refused("installed by the method file", "--method", "package")

    def test_dry_run(self):
        said = self.installed("--dry-run")
        self.assertIn("/usr/bin/sluice", said)
        self.nothing_is_left()
        self.installed()
        there = self.root.tree()
        self.assertIn("would stop the agent", self.uninstall("--dry-run", "--purge"))
        self.assertEqual(there, self.root.tree())

    def test_two_at_once(self):
        lock = os.path.join(self.room, "run/sluice-install.lock")
        made.write(lock + "/pid", "1\n")  # of the namespace's own first process, which lives
        before = self.root.tree()
        done = self.install("--method", "file")
        self.assertEqual((1, before), (done.returncode, self.root.tree()), done.stdout)
        self.assertIn("another install.sh runs (pid 1)", done.stdout)
        made.write(lock + "/pid", "99999999\n")
        self.installed()

    def test_wrong_usage(self):
        for expected, arguments in (("no option --frob", ["--frob"]), ("--from needs a value", ["--from"]),
                                    ("auto, package or file", ["--method", "tar"]), ("three numbers", ["--version", "../1.9.0"]),
                                    ("goes with --uninstall", ["--purge"]),
                                    ("begins with https:// or http://", ["--from", "ftp://x"])):
            self.refused(expected, *arguments, source=None, key=None, status=2)
        self.assertIn("--allow-downgrade", self.installed("--help"))


class Signatures(Case):
    """What is not signed, or is not what was signed, is not installed: by each of the two that can verify."""
    verifier, other = "minisign", "/usr/bin/openssl"

    def setUp(self):
        super().setUp()
        self.root.remove(self.other)
        self.before = self.root.tree()
        self.to = self.mirror.at("1.10.0")

    def refused(self, expected, *arguments, **kw):
        return super().refused(expected, "--method", "file", *arguments, **kw)

    def change(self, name, at, to=None):
        """One byte of it, and back to what it was at the end of the case."""
        path = os.path.join(self.to, name)
        with open(path, "rb") as f:
            data = bytearray(f.read())
        old = data[at]
        data[at] = old ^ 1 if to is None else to
        with open(path, "wb") as f:
            f.write(data)
        return lambda: self.put_back(path, at, old)

    @staticmethod
    def put_back(path, at, old):
        with open(path, "r+b") as f:
            f.seek(at % os.path.getsize(path))
            f.write(bytes([old]))

    def test_signed(self):
        self.assertIn(f"verified by {self.verifier}", self.installed("--method", "file"))
        self.assertEqual("1.10.0", self.version())

    def test_the_key_as_text(self):
        self.installed("--method", "file", key=self.mirror.key.text)
        self.assertIn(self.mirror.key.text, open(self.root.path("/etc/sluice/release.pub")).read())

    def test_a_changed_byte_in_each_file(self):
        archive = f"sluice-1.10.0-linux-{made.ARCH}.tar.gz"
        for name, at, expected in ((archive, 200, "is not what was signed"), (archive, -1, "is not what was signed"),
                                   ("SHA256SUMS", 3, "is not signed by"), ("SHA256SUMS", -2, "is not signed by")):
            with self.subTest(name=name, at=at):
                back = self.change(name, at)
                self.refused(expected)
                back()
        for name in (f"sluice-agent_1.10.0_{made.DEB_ARCH}.deb", f"sluice-1.10.0-linux-{made.ARCH}"):
            with self.subTest(name=name):
                back = self.change(name, 100)
                Case.refused(self, "is not what was signed", "--method", "package")
                back()
        self.installed("--method", "file")

    def test_a_changed_byte_in_each_line_of_the_signature(self):
        with open(os.path.join(self.to, "SHA256SUMS.minisig"), "rb") as f:
            lines = f.read().split(b"\n")
        # The algorithm, the key's id, the signature, the comment, the signature over both.
        for what, line, column, to in (("algorithm", 1, 1, b"W"), ("id", 1, 6, None), ("signature", 1, 40, None),
                                       ("comment", 2, len(lines[2]) - 1, b"1"), ("global", 3, 20, None)):
            with self.subTest(what):
                at = sum(len(x) + 1 for x in lines[:line]) + column
                other = b"A" if lines[line][column:column + 1] != b"A" else b"B"
                back = self.change("SHA256SUMS.minisig", at, (to or other)[0])
                self.refused("is no signature of minisign over a hash" if what == "algorithm" else "is not signed by")
                back()
        self.installed("--method", "file")

    def test_not_signed_as_it_should_be(self):
        stranger = made.Key(self.room, "stranger")
        for what, kw, expected in (("another key", {"key": stranger}, "is not signed by"),
                                   ("not hashed first", {"legacy": True}, "is no signature of minisign over a hash"),
                                   ("another program", {"comment": "other 1.10.0"}, "names no version of sluice"),
                                   ("a path", {"comment": "sluice ../../1"}, "names no version of sluice")):
            with self.subTest(what):
                self.mirror.sign("1.10.0", **kw)
                self.refused(expected)
        self.mirror.sign("1.10.0", comment="sluice 1.9.0")
        self.refused("not 1.10.0", "--version", "1.10.0")
        for text in ("", "untrusted comment: x\n", "\0" * 100, "x" * 2000000):
            with self.subTest(text[:10]):
                made.write(os.path.join(self.to, "SHA256SUMS.minisig"), text)
                self.refused("" if text else "is no signature")

    def test_something_is_missing(self):
        for name, expected in (("SHA256SUMS.minisig", "Without a signature nothing is installed"),
                               ("SHA256SUMS", "is there a release?"),
                               (f"sluice-1.10.0-linux-{made.ARCH}.tar.gz", "cannot get")):
            with self.subTest(name):
                path = os.path.join(self.to, name)
                os.rename(path, path + ".away")
                self.refused(expected)
                os.rename(path + ".away", path)

    def test_keys_that_are_none(self):
        self.refused("which key signs the releases?", key=None)
        self.refused("no such file", key="/root/nothing")
        self.refused("is no public key", key="RWshort")
        self.root.write("/root/other.pub", "not a key\n")
        self.refused("is no public key", key="/root/other.pub")


class SignaturesByOpenssl(Signatures):
    verifier, other = "openssl", "/usr/bin/minisign"


class Sources(Case):
    """From where it reads."""

    def test_no_verifier(self):
        self.root.remove("/usr/bin/openssl", "/usr/bin/minisign")
        self.refused("nothing here can verify the signature; run: apt-get install minisign", "--method", "file")
        # An OpenSSL that cannot.
        self.root.write("/usr/bin/openssl", "#!/bin/sh\necho OpenSSL 1.1.1w  11 Sep 2023\n", 0o755)
        self.refused("apt-get install minisign", "--method", "file")

    def test_a_folder_without_options(self):
        # As on a stick: the script lies beside the files, or the shell is there.
        shutil.copy(made.INSTALL, self.mirror.at("1.9.0", "install.sh"))
        self.mirror.sign("1.9.0")
        self.installed("--method", "file", source=None, script="/mnt/1.9.0/install.sh")
        self.assertEqual("1.9.0", self.version())
        done = self.root.run("sh", "-c", "cd /mnt/1.10.0 && sh /root/install.sh")
        self.assertEqual((0, "1.10.0"), (done.returncode, self.version()), done.stdout)
        self.refused("no such folder", source="/nowhere")

    def test_where_nothing_is_said(self):
        self.refused("where is the release?", source=None, status=2)

    def serve(self, half=""):
        """The mirror by HTTP; of a file whose name ends in `half` only a part comes."""
        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def copyfile(self, source, outputfile):
                data = source.read()
                outputfile.write(data[:len(data) // 2] if half and self.path.endswith(half) else data)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=self.mirror.path))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def test_by_http(self):
        for missing in ([], ["/usr/bin/curl"]):
            self.root.remove(*missing)
            self.installed("--method", "file", source=self.serve() + "/")
            self.assertEqual("1.10.0", self.version())
            self.uninstall("--purge")
        self.refused("cannot get", "--version", "3.0.0", "--method", "file", source=self.serve())
        self.root.remove("/usr/bin/wget")
        self.refused("neither curl nor wget", "--method", "file", source=self.serve())

    def test_half_a_download(self):
        source = self.serve(half=".tar.gz")
        for missing in ([], ["/usr/bin/curl"]):
            self.root.remove(*missing)
            self.refused("", "--method", "file", source=source)

    def test_half_a_script(self):
        with open(made.INSTALL) as f:
            text = f.read()
        for part in (0.3, 0.7, 0.99):
            self.root.write("/root/half.sh", text[:int(len(text) * part)].rpartition("\n")[0] + "\n")
            before = self.root.tree()
            self.install(script="/root/half.sh")
            self.assertEqual(before, self.root.tree())


def undone_installations(case):
    """First installations whose agent does not start, over what an earlier time or an administrator has left."""
    case.root.fake("broken", "1.10.0\n")
    for what, command in (("nothing", "true"),
                          ("records", "mkdir -p /var/lib/sluice/lake; echo record >/var/lib/sluice/lake/file"),
                          ("link", "rm -r /var/lib/sluice; mkdir /srv/sluice; echo record >/srv/sluice/file; "
                                   "ln -s /srv/sluice /var/lib/sluice"),
                          ("site", "rm -r /var/lib/sluice; mkdir -p /etc/sluice/conf.d; echo '{}' >/etc/sluice/conf.d/50-site.yaml"),
                          ("group", "rm -r /etc/sluice; groupadd --system sluice-admin"),
                          ("account", "groupadd --system sluice; useradd --system -g sluice -c 'sluice agent' "
                                      "-d /var/lib/sluice sluice"),
                          ("all", "mkdir -p /etc/sluice /var/lib/sluice; echo >/etc/sluice/mine; echo >/var/lib/sluice/mine")):
        with case.subTest(what):
            done = case.root.run("sh", "-ec", command)
            case.assertEqual(0, done.returncode, done.stdout)
            case.assertIn("everything is as it was before", case.refused("did not start"))
            done = case.root.run("find", "/var/lib/sluice/", "/etc/sluice", "-nouser")
            case.assertEqual("", "".join(line for line in done.stdout.splitlines() if "No such file" not in line))
            enabled = case.root.path("/var/lib/systemd/deb-systemd-helper-enabled")
            case.assertEqual([], [n for n in os.listdir(enabled) if "sluice" in n] if os.path.isdir(enabled) else [])


class Packages(Case):
    systemd = True

    def test_life(self):
        said = self.installed("--version", "1.9.0")
        self.assertIn("by the method package", said)
        self.assertIn("enable --now sluice-agent.service", self.root.asked())
        self.assertEqual("installed 1.9.0", self.root.run("dpkg-query", "-W", "-f=${db:Status-Status} ${Version}", "sluice-agent").stdout)
        there = self.root.tree()
        self.assertIn("nothing to do", self.installed("--version", "1.9.0", key=None, source=None))
        self.assertEqual(there, self.root.tree())
        self.root.write("/etc/sluice/sluice.yaml", "lake: /mine\n")
        self.installed()
        self.assertEqual("1.10.0", self.version())
        self.assertEqual("lake: /mine\n", open(self.root.path("/etc/sluice/sluice.yaml")).read())
        self.refused("refused without --allow-downgrade", "--version", "1.9.0")
        self.installed("--version", "1.9.0", "--allow-downgrade")
        self.assertEqual("1.9.0", self.version())
        self.refused("installed by the method package", "--method", "file")
        self.root.fake("pins", "")
        self.uninstall()
        self.assertFalse(self.root.fake("pins") or self.root.fake("active"))
        self.assertIn("/etc/sluice/sluice.yaml", self.root.tree())
        self.uninstall("--purge")
        self.nothing_is_left()

    def test_dpkg_alone(self):
        self.root.remove("/usr/bin/apt-get")
        self.before = self.root.tree()
        self.installed("--version", "1.9.0")
        self.installed()
        self.installed("--version", "1.9.0", "--allow-downgrade")
        self.assertEqual("1.9.0", self.version())
        self.uninstall("--purge")
        self.nothing_is_left()

    def test_an_agent_that_does_not_start(self):
        self.root.fake("broken", "1.10.0\n")
        self.refused("did not start")
        self.assertIn("no packages found", self.root.run("dpkg-query", "-W", "sluice-agent").stdout)
        self.installed("--version", "1.9.0")
        there = self.root.tree()
        done = self.install()
        self.assertEqual((1, "1.9.0"), (done.returncode, self.version()), done.stdout)
        self.assertIn("everything is as it was before", done.stdout)
        self.assertTrue(self.root.fake("active"))
        self.assertEqual(there, self.root.tree())

    def test_an_undone_installation_keeps_what_was_there(self):
        undone_installations(self)
        self.assertIn("no packages found", self.root.run("dpkg-query", "-W", "sluice-agent").stdout)
        # A configuration that the manager now takes for the package's.
        self.root.write("/etc/sluice/sluice.yaml", "lake: /mine\n")
        done = self.install()
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertEqual("lake: /mine\n", open(self.root.path("/etc/sluice/sluice.yaml")).read())

    def test_an_undone_installation_by_dpkg_alone(self):
        self.root.remove("/usr/bin/apt-get")
        undone_installations(self)

    def test_a_package_that_cannot_be_installed(self):
        self.root.remove("/var/lib/apt/lists")  # an archive may have another package of the name
        self.broken_package()
        self.installed("--version", "1.9.0")
        self.broken_package()

    def broken_package(self):
        shutil.rmtree(self.mirror.at("1.11.0"), ignore_errors=True)
        self.mirror.release("1.11.0")
        path = self.mirror.at("1.11.0", f"sluice-agent_1.11.0_{made.DEB_ARCH}.deb")
        with open(path, "wb") as f:
            f.write(b"!<arch>\nno package")
        self.mirror.sign("1.11.0")
        self.assertIn("everything is as it was before", self.refused("could not install"))

    def test_not_started(self):
        self.installed("--no-start")
        self.assertFalse(self.root.fake("active") or self.root.fake("enabled"))
        self.assertNotIn("/usr/sbin/policy-rc.d", self.root.tree())


class Rpms(Case):
    systemd, rpm, without = True, True, ("dnf", "zypper")
    by = "rpm"

    def setUp(self):
        super().setUp()
        self.root.write("/etc/os-release", 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nPRETTY_NAME="Rocky 9"\n')
        # Debian's rpm wants to be asked twice.
        self.root.write("/usr/local/bin/rpm", '#!/bin/sh\ncase $1 in -[Ue]) set -- --nodeps "$@" ;; esac\nexec /usr/bin/rpm --force-debian "$@"\n', 0o755)
        self.root.remove(*(f"/usr/bin/{name}" for name in self.without))
        # Where the managers look for it; Debian's rpm has a database of its own for each user.
        self.root.write("/root/.rpmmacros", "%_dbpath /var/lib/rpm\n")
        self.root.run("rpm", "--initdb")
        self.before = self.root.tree()

    def test_life(self):
        self.assertIn(f"packages by {self.by}", self.installed("--version", "1.9.0"))
        self.assertEqual("sluice-agent-1.9.0-1." + made.ARCH, self.root.run("rpm", "-q", "sluice-agent").stdout.strip())
        self.assertIn("nothing to do", self.installed("--version", "1.9.0"))
        self.installed()
        self.refused("refused without --allow-downgrade", "--version", "1.9.0")
        self.installed("--version", "1.9.0", "--allow-downgrade")
        self.assertEqual("1.9.0", self.version())
        self.root.fake("broken", "1.10.0\n")
        done = self.install()
        self.assertEqual((1, "1.9.0"), (done.returncode, self.version()), done.stdout)
        self.uninstall("--purge")
        self.nothing_is_left()
        self.assertNotEqual(0, self.root.run("rpm", "-q", "sluice-agent").returncode)

    def test_an_undone_installation_keeps_what_was_there(self):
        undone_installations(self)


class RpmsByDnf(Rpms):
    """By Debian's dnf: the real one, over a database of packages in which there is a system that has a shell."""
    without, by = ("zypper",), "dnf"

    def setUp(self):
        super().setUp()
        done = self.root.run("rpm", "-i", "--justdb", "/mnt/" + os.path.basename(self.mirror.system_rpm()))
        self.assertEqual(0, done.returncode, done.stdout)
        # As on hardened hosts: a package in a file has to have a signature of its own.
        self.root.write("/etc/dnf/dnf.conf", "[main]\nlocalpkg_gpgcheck=1\n")
        self.before = self.root.tree()

    def test_what_the_manager_refuses(self):
        """Nothing of it is there then, that could be removed again."""
        self.root.run("rpm", "-e", "--nodeps", "--justdb", "system-release")
        self.assertIn("everything is as it was before", self.refused(f"{self.by} could not install sluice-agent-1.10.0-1"))


class RpmsByZypper(RpmsByDnf):
    without, by = ("dnf",), "zypper"


class Services(Case):
    systemd = True

    def install(self, *arguments, **kw):
        return super().install(*([] if "--uninstall" in arguments else ["--method", "file"]), *arguments, **kw)

    def test_started_once_and_restarted_at_an_upgrade(self):
        self.installed("--version", "1.9.0")
        self.assertEqual(1, self.root.asked().count("enable --now sluice-agent.service"))
        self.installed("--version", "1.9.0")
        self.assertNotIn("restart sluice-agent.service", self.root.asked())
        self.installed()
        self.assertEqual(1, self.root.asked().count("restart sluice-agent.service"))
        self.uninstall("--purge")
        self.assertFalse(self.root.fake("active") or self.root.fake("enabled"))
        self.nothing_is_left()

    def test_what_an_administrator_stopped_stays_so(self):
        self.installed("--version", "1.9.0")
        self.root.forget("active")
        self.assertIn("not running, as before", self.installed())
        self.assertFalse(self.root.fake("active"))

    def test_an_agent_that_does_not_start(self):
        self.root.fake("broken", "1.10.0\n")
        self.refused("did not start")
        self.nothing_is_left()
        self.installed("--version", "1.9.0")
        self.refused("everything is as it was before")
        self.assertEqual("1.9.0", self.version())
        self.assertTrue(self.root.fake("active"))

    def test_an_undone_installation_keeps_what_was_there(self):
        undone_installations(self)

    def test_what_cannot_be_put_back(self):
        self.installed("--version", "1.9.0")
        there = self.root.tree()
        self.root.fake("broken", "1.10.0\n")
        lost = "/usr/share/sluice/schemas/program.avsc"
        # A full disk, from when the former file comes back.
        self.root.write("/usr/local/bin/cp", '#!/bin/sh\ncase $2 in */former' + lost + ') echo "cp: No space left" >&2; exit 1 ;; esac\n'
                        'exec /usr/bin/cp "$@"\n', 0o755)
        done = self.install()
        self.root.remove("/usr/local/bin/cp")
        self.assertEqual(3, done.returncode, done.stdout)
        self.assertIn(f"could not put back {lost}", done.stdout)
        self.assertNotIn("everything is as it was before", done.stdout)
        kept = re.search(r"is kept in (/\S+/sluice-install\.\w+)\n", done.stdout)[1]
        self.assertEqual('"1.9.0"\n', open(self.root.path(kept + "/former" + lost)).read())
        # All else is back, and the agent of before runs.
        self.assertEqual("1.9.0", self.version())
        self.assertTrue(self.root.fake("active"))
        self.root.run("mv", kept + "/former" + lost, lost)
        self.root.remove(kept)
        self.assertEqual(there, self.root.tree())
        self.assertEqual([], self.left_over())

    def test_interrupted(self):
        self.installed("--version", "1.9.0")
        there = self.root.tree()
        self.root.fake("hangs", "")
        script = subprocess.Popen(self.root.command("sh", "-c", "echo $$ >/run/fake/pid; exec dash /root/install.sh --from /mnt"),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + 60 * harness.PATIENCE
        # Nothing is run in the root meanwhile: a second mount over the same folders empties the first one's work folder.
        while "restart sluice-agent.service" not in self.root.asked():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        with open(self.root.path("/usr/bin/sluice")) as f:
            self.assertIn("sluice 1.10.0", f.read())
        self.root.forget("hangs")
        # Its pid in this namespace: the one below unshare's that runs the script. As bytes: tests beside this one
        # start programs whose names and paths are no UTF-8.
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f, open(f"/proc/{pid}/mountinfo", "rb") as m:
                    if f.read().startswith(b"dash\0/root/install.sh") and os.fsencode(self.room) in m.read():
                        os.kill(int(pid), signal.SIGTERM)
            except OSError:
                pass
        # The shell takes the signal once its systemctl has ended.
        said, _ = script.communicate(timeout=120)
        self.assertEqual(143, script.returncode, said)
        self.assertIn("everything is as it was before", said)
        self.assertEqual(there, self.root.tree())


class Busybox(Case):
    """A root of busybox and OpenSSL alone: its sh, tar, awk, sed, wget."""
    shell = ("sh",)

    def setUp(self):
        self.bare = tempfile.mkdtemp(prefix="sluice-busybox-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, self.bare)
        made.busybox_root(self.bare)
        self.lower = self.bare
        super().setUp()

    def test_by_http(self):
        source = Sources.serve(self)
        self.assertIn("Only busybox", self.installed("--version", "1.9.0", source=source))
        there = self.root.tree()
        self.assertIn("nothing to do", self.installed("--version", "1.9.0", source=source))
        self.assertEqual(there, self.root.tree())
        self.root.write("/etc/sluice/sluice.yaml", "lake: /mine\n")
        self.installed(source=source)
        self.assertEqual("1.10.0", self.version())
        self.refused("refused without --allow-downgrade", "--version", "1.9.0")
        self.refused("is not signed by", key=made.Key(self.room, "stranger").text)
        self.uninstall("--purge")
        self.nothing_is_left()

    def test_failures_leave_what_was(self):
        self.installed("--version", "1.9.0")
        self.root.write("/usr/share/sluice/only-1.10.0/x", "")
        self.refused("is a folder")
        self.root.remove("/bin/openssl", "/usr/bin/openssl")
        self.refused("run: apk add minisign")


if __name__ == "__main__":
    harness.main()
