# SPDX-License-Identifier: Apache-2.0
"""What dev/packages makes: the same bytes twice, nothing for lintian and rpmlint to say; installed, upgraded, removed and
purged by dpkg and rpm in roots of their own, before and after which everything is compared.

Packs the program of dev/static where it is built, else the build that is tested. A root has files of this machine's
own packages, and a systemctl that writes down what it is asked.
"""
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import unittest
import zipfile

import harness

ARCH = platform.machine()
STATIC = os.path.join(harness.ROOT, "build", "static", ARCH, "sluice")
IS_STATIC = os.access(STATIC, os.X_OK)
SBOM = os.path.join(harness.ROOT, "dev", "static.d", "sbom")
DEB_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[ARCH]
# What the scripts of packages may call on a minimal system.
PROGRAMS = ["/bin/sh", "/bin/mkdir", "/bin/rm", "/bin/cat", "/bin/sed", "/bin/ln", "/usr/bin/stat", "/usr/bin/getent",
            "/usr/sbin/groupadd", "/usr/sbin/useradd", "/usr/sbin/userdel", "/usr/sbin/groupdel", "/usr/bin/perl", "/usr/bin/deb-systemd-helper",
            "/usr/bin/deb-systemd-invoke"]
SYSTEMD = ["/bin/systemd-sysusers"]
# Says what it was asked, and which file the program was then.
SYSTEMCTL = """#!/bin/sh
echo "$* | $(/usr/bin/stat -c %i /usr/bin/sluice)" >>/systemctl.log
link=/etc/systemd/system/multi-user.target.wants/sluice-agent.service
case "$*" in
*is-enabled*) echo enabled ;;
*preset*) ln -sf /usr/lib/systemd/system/sluice-agent.service $link ;;
*disable*) rm -f $link ;;
esac
"""


def run(*command, check=True, **kw):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **kw)
    if check and done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done


def pack(to, *options, **environment):
    """`dev/packages`, and the files that it made."""
    build = [] if IS_STATIC else ["--build", harness.BUILD]
    done = run(os.path.join(harness.ROOT, "dev", "packages"), *build, "--to", to, *options, cwd="/",
               env={**os.environ, **environment})
    return {os.path.basename(path): path for path in done.stdout.split()}


def copy(root, path):
    """A file of this machine, with what it is linked with, or Perl with its modules."""
    real = os.path.realpath(path)
    listed = subprocess.run(["ldd", real], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    for source, to in [(real, path), *((os.path.realpath(w), w) for w in listed.split() if w.startswith("/"))]:
        at = os.path.join(root, to.lstrip("/"))
        os.makedirs(os.path.dirname(at), exist_ok=True)
        if not os.path.exists(at):
            shutil.copy2(source, at)
    if path.endswith("/perl"):
        for folder in run("dpkg", "-L", "perl-base").stdout.split():
            if folder.startswith("/usr/lib/") and os.path.isfile(folder):
                copy(root, folder)


def tree(root):
    """What is in it, each with what it is: accounts too, since they are lines of files. Not what package managers keep."""
    out = {}
    for at, folders, files in os.walk(root):
        below = os.path.relpath(at, root)
        folders[:] = [f for f in folders if os.path.normpath(os.path.join(below, f)) not in
                      ("proc", "sys", "var/lib/dpkg", "var/lib/rpm", "var/log")]
        for name in folders + files:
            path = os.path.join(at, name)
            key = os.path.normpath(os.path.join(below, name))
            if os.path.islink(path):
                out[key] = os.readlink(path)
            elif os.path.isdir(path):
                out[key] = "folder"
            elif not os.path.isfile(path):
                out[key] = "socket or device"
            else:
                with open(path, "rb") as f:
                    out[key] = f.read()
    # Copies that shadow's programs keep of what they changed, their lock, and ranges of ids for users.
    for gone in ("etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/.pwd.lock", "systemctl.log"):
        out.pop(gone, None)
    return out


class Made(unittest.TestCase):
    """The files, without installing them."""

    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.mkdtemp(prefix="sluice-packages-")
        cls.addClassCleanup(shutil.rmtree, cls.room)
        cls.files = pack(os.path.join(cls.room, "one"))
        with open(os.path.join(harness.ROOT, "CMakeLists.txt")) as f:
            cls.version = re.search(r"project\(sluice VERSION ([\d.]+)", f.read()).group(1)

    def named(self, name):
        return self.files[name.format(v=self.version, arch=ARCH, deb=DEB_ARCH)]

    def test_all_are_there(self):
        wanted = {"sluice-agent_{v}_{deb}.deb", "sluice-agent-{v}-1.{arch}.rpm", "sluice-{v}-linux-{arch}.tar.gz",
                  "sluice-{v}-linux-{arch}", "sluice-{v}-oci-{arch}.tar", "sluice_analytics-{v}-py3-none-any.whl",
                  "sluice_analytics-{v}.tar.gz"}
        self.assertEqual({n.format(v=self.version, arch=ARCH, deb=DEB_ARCH) for n in wanted}, set(self.files))

    def test_the_same_bytes_again(self):
        # Another folder, zone, language, mask of modes and hour.
        again = pack(os.path.join(self.room, "two"), TZ="Asia/Tokyo", LANG="de_DE.UTF-8", LC_ALL="C.UTF-8")
        for name, path in self.files.items():
            with open(path, "rb") as f, open(again[name], "rb") as g:
                self.assertTrue(f.read() == g.read(), name)

    def test_lintian(self):
        said = run("lintian", "--allow-root", "--no-cfg", "--display-info", self.named("sluice-agent_{v}_{deb}.deb"),
                   check=False).stdout
        lines = [line for line in said.splitlines() if not line.startswith("N: ")]
        if not IS_STATIC:
            # Of a build for this machine alone, which is given to no one.
            lines = [line for line in lines if not re.search("missing-dependency-on-libc|unused-override|shared-lib", line)]
        self.assertEqual([], lines)

    def test_rpmlint(self):
        done = run("rpmlint", "-c", os.path.join(harness.ROOT, "ops", "package", "rpm", "rpmlint.toml"),
                   self.named("sluice-agent-{v}-1.{arch}.rpm"), check=False)
        self.assertRegex(done.stdout, r"1 packages and 0 specfiles checked; 0 errors, 0 warnings")

    def test_debian_has_another_sluice(self):
        """Whose version is higher: it would be the upgrade of a package of its name. It has /usr/bin/sluice, too."""
        self.assertEqual("Package: sluice-agent\nConflicts: sluice\n",
                         run("dpkg-deb", "-f", self.named("sluice-agent_{v}_{deb}.deb"), "Package", "Conflicts").stdout)

    def test_every_package_has_the_same_files(self):
        with tarfile.open(self.named("sluice-{v}-linux-{arch}.tar.gz")) as tar:
            plain = {m.name.lstrip(".") for m in tar.getmembers() if m.isfile()}
        deb = {line.split()[-1].lstrip(".") for line in
               run("dpkg-deb", "-c", self.named("sluice-agent_{v}_{deb}.deb")).stdout.splitlines() if line[0] == "-"}
        rpm = {p for p in run("rpm", "-qpl", self.named("sluice-agent-{v}-1.{arch}.rpm")).stdout.split() if p in plain}
        self.assertEqual(plain, rpm)
        theirs = {p for p in plain | deb if "/share/doc/" in p or "/zsh/" in p or "/lintian/" in p}
        self.assertEqual(plain - theirs, deb - theirs)
        for page in ("man1/sluice.1.gz", "man5/sluice.yaml.5.gz", "man7/sluice-tune-recommend.7.gz"):
            self.assertIn(f"/usr/share/man/{page}", plain)

    def test_the_bare_program_runs(self):
        said = run(self.named("sluice-{v}-linux-{arch}"), "--version").stdout
        self.assertIn(f"sluice {self.version}", said)

    def test_the_image(self):
        with tarfile.open(self.named("sluice-{v}-oci-{arch}.tar")) as tar:
            self.assertIn("oci-layout", tar.getnames())
        store = os.path.join(self.room, "store")
        podman = ["podman", "--root", store, "--runroot", store + "-run", "--tmpdir", store + "-tmp",
                  "--storage-driver", "vfs"]
        run(*podman, "pull", "--quiet", "oci-archive:" + self.named("sluice-{v}-oci-{arch}.tar"))
        said = run(*podman, "image", "inspect", "--format", "{{.Architecture}} {{.Os}} {{.Config.Entrypoint}} "
                   "{{.Config.Volumes}}", f"localhost/sluice:{self.version}").stdout
        self.assertIn(f"{DEB_ARCH} linux [/usr/bin/sluice] map[/var/lib/sluice:{{}}]", said)
        at = run(*podman, "image", "mount", f"localhost/sluice:{self.version}").stdout.strip()
        self.addCleanup(run, *podman, "image", "umount", "--all")
        with self.subTest("its account"), open(os.path.join(at, "etc", "passwd")) as f, \
                open(os.path.join(harness.ROOT, "ops", "kubernetes", "components", "names", "token.yaml")) as token:
            numbers = re.search(r"(?m)^sluice:x:(\d+):(\d+):", f.read()).groups()
            self.assertEqual(numbers, 2 * tuple(re.findall(r"fsGroup: (\d+)", token.read())))
            # With hostPID and hostPath a process of the node with the same number would have its files.
            for low, high in ((0, 999), (1000, 60000), (60001, 60705), (61184, 65519), (65534, 65535), (100000, 1 << 32)):
                self.assertFalse(low <= int(numbers[0]) <= high, numbers)
        with self.subTest("its licences"):
            label = run(*podman, "image", "inspect", "--format", '{{index .Labels "org.opencontainers.image.licenses"}}',
                        f"localhost/sluice:{self.version}").stdout.strip()
            self.assertEqual(run(SBOM, "--licence").stdout.strip() + " AND MPL-2.0", label)
            doc = os.path.join(at, "usr", "share", "doc", "sluice")
            with open(os.path.join(doc, "licenses", "certifi", "LICENSE")) as f:
                self.assertIn("MPL", f.read())
            if IS_STATIC:
                with open(os.path.join(doc, "sluice.spdx.json")) as f:
                    document = json.load(f)
                packages = {p["SPDXID"]: p for p in document["packages"]}
                image, = (packages[i] for i in document["documentDescribes"])
                self.assertEqual(label, image["licenseConcluded"])
                self.assertEqual({"sluice", "certifi"}, {packages[r["relatedSpdxElement"]]["name"] for r in document["relationships"]
                                 if (r["spdxElementId"], r["relationshipType"]) == (image["SPDXID"], "CONTAINS")})
                self.assertLessEqual({r[k] for r in document["relationships"] for k in ("spdxElementId", "relatedSpdxElement")},
                                     {"SPDXRef-DOCUMENT", *packages})

    def test_the_rpm_names_the_licence_of_all_that_is_linked(self):
        tag = run("rpm", "-qp", "--queryformat", "%{LICENSE}", self.named("sluice-agent-{v}-1.{arch}.rpm")).stdout
        self.assertEqual(run(SBOM, "--licence").stdout.strip(), tag)
        for part in ("Apache-2.0", "(BSD-2-Clause OR GPL-2.0-only)", "curl", "LGPL-2.1-or-later"):
            self.assertIn(part, tag.split(" AND "))

    def test_the_wheel_in_a_fresh_environment(self):
        venv = os.path.join(self.room, "venv")
        wheel = self.named("sluice_analytics-{v}-py3-none-any.whl")
        # Beside the versions and checksums of base.txt, which have to be those that it demands.
        listed = os.path.join(self.room, "requirements.txt")
        with open(os.path.join(harness.ROOT, "analytics", "requirements", "base.txt")) as f, open(wheel, "rb") as w:
            text = f"{f.read()}\nsluice-analytics @ file://{wheel} --hash=sha256:{hashlib.sha256(w.read()).hexdigest()}\n"
        with open(listed, "w") as f:
            f.write(text)
        run(os.path.join(harness.ROOT, "dev", "venv"), venv, listed)
        at = os.path.join(self.room, "lake")
        with self.subTest("tune"):
            done = run(harness.SLUICE, "tune", "--list", "--lake", at, check=False,
                       env={"PATH": f"{venv}/bin:/usr/bin:/bin"})
            self.assertEqual(2, done.returncode, done.stdout)    # it ran, and found no lake
            self.assertIn(at, done.stdout)
        # What it demands is what was installed, each to the last digit.
        with zipfile.ZipFile(wheel) as z:
            metadata = z.read(next(n for n in z.namelist() if n.endswith("/METADATA"))).decode()
        with open(os.path.join(harness.ROOT, "analytics", "requirements", "base.in")) as f:
            pinned = {re.sub(r"\[.*\]", "", line.split("==")[0]): line.split("==")[1].strip() for line in f if "==" in line}
        pinned["pyspark"] = "4.0.0"
        demanded = dict(re.findall(r"(?m)^Requires-Dist: ([\w.-]+)(?:\[[^]]*\])?==([^;\s]+)", metadata))
        self.assertEqual(pinned, demanded)
        self.assertEqual(len(demanded), metadata.count("Requires-Dist: "))


class InRoot:
    """A package manager in a root of its own."""
    has_systemd = True

    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="sluice-root-")
        self.addCleanup(shutil.rmtree, self.room)
        self.root = os.path.join(self.room, "root")
        os.mkdir(self.root)
        for folder in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64"):
            os.makedirs(self.at(folder))
            os.symlink(folder, self.at(os.path.basename(folder)))
        for folder in ("etc", "dev", "proc", "sys", "tmp", "run", "var/lib", "var/log", "usr/share/doc", "usr/share/man",
                       "usr/share/lintian/overrides", "usr/lib/systemd/system", "usr/lib/sysusers.d",
                       "usr/lib/tmpfiles.d", "usr/share/bash-completion/completions", "usr/share/fish/vendor_completions.d",
                       "usr/share/zsh/site-functions", "usr/share/zsh/vendor-completions", "etc/systemd/system/multi-user.target.wants",
                       "var/lib/systemd/deb-systemd-helper-enabled/multi-user.target.wants",
                       "var/lib/systemd/deb-systemd-helper-masked"):
            os.makedirs(self.at(folder), exist_ok=True)
        for number in (1, 5, 7):
            os.mkdir(self.at(f"usr/share/man/man{number}"))
        # On a real system these folders have units of others, too: empty ones are removed with the last of sluice's.
        for folder in ("etc/systemd/system", "var/lib/systemd/deb-systemd-helper-enabled"):
            open(self.at(f"{folder}/multi-user.target.wants/another.service"), "w").close()
        for path in PROGRAMS + (SYSTEMD if self.has_systemd else []):
            copy(self.root, path)
        if not IS_STATIC:
            copy(self.root, harness.SLUICE)    # for its libraries
            os.remove(self.at(harness.SLUICE))
            os.removedirs(os.path.dirname(self.at(harness.SLUICE)))
        for name, text in (("passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("group", "root:x:0:\n"),
                           ("shadow", "root:*:19000:0:99999:7:::\n"), ("gshadow", "root:*::\n"),
                           ("login.defs", "SYS_UID_MIN 100\nSYS_UID_MAX 999\nSYS_GID_MIN 100\nSYS_GID_MAX 999\nUSERGROUPS_ENAB yes\n"),
                           ("nsswitch.conf", "passwd: files\ngroup: files\n")):
            with open(self.at(f"etc/{name}"), "w") as f:
                f.write(text)
        run("mknod", self.at("dev/null"), "c", "1", "3")
        os.chmod(self.at("dev/null"), 0o666)
        if self.has_systemd:
            os.makedirs(self.at("run/systemd/system"))
            with open(self.at("usr/bin/systemctl"), "w") as f:
                f.write(SYSTEMCTL)
            os.chmod(self.at("usr/bin/systemctl"), 0o755)
        for kind, at in (("proc", "proc"), ("sysfs", "sys"), ("bpf", "sys/fs/bpf"), ("tracefs", "sys/kernel/tracing")):
            run("mount", "-t", kind, kind, self.at(at))
            self.addCleanup(run, "umount", "--lazy", self.at(at))
        self.prepare()
        self.before = tree(self.root)

    def at(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.mkdtemp(prefix="sluice-packages-")
        cls.addClassCleanup(shutil.rmtree, cls.made)
        cls.old, cls.new = (next(iter(pack(os.path.join(cls.made, v), "--only", cls.kind, "--version", v).values()))
                            for v in ("0.0.9", "0.2.0"))

    def asked(self):
        """What systemctl was asked about the agent since the last call, and whether the program was that of `installed`."""
        path = self.at("systemctl.log")
        if not os.path.exists(path):
            return []
        with open(path) as f:
            lines = [line.strip() for line in f if "sluice-agent" in line]
        os.remove(path)
        said = [re.sub(r"--(quiet|no-reload|system|root=/|preset-mode=enable-only) |sluice-agent\.service ", "", line) for line in lines
                if not re.search("is-active|is-enabled|cat |show ", line)]
        return [line.replace(f"| {self.installed}", "| installed") for line in said]

    def note(self):
        self.installed = os.stat(self.at("usr/bin/sluice")).st_ino

    def accounts(self):
        names = set()
        for file in ("passwd", "group"):
            with open(self.at(f"etc/{file}")) as f:
                names |= {f"{file}:{line.split(':')[0]}" for line in f}
        return names - {"passwd:root", "group:root"}

    def agent(self):
        """`sluice agent` of the root, until it has pinned its probes."""
        with open(self.at("etc/sluice/conf.d/test.yaml"), "w") as f:
            f.write("metrics: off\ninterval: 1s\n")
        log = open(os.path.join(self.room, "agent.log"), "a+")
        self.addCleanup(log.close)
        began = log.seek(0, os.SEEK_END)
        agent = subprocess.Popen(["chroot", self.root, "/usr/bin/sluice", "agent"], stdout=log, stderr=log)
        for _ in range(600):
            log.seek(began)
            text = log.read()
            if '"agent.started"' in text:
                return agent
            if agent.poll() is not None:
                break
            time.sleep(0.1)
        agent.kill()
        agent.wait()
        self.fail("the agent did not start:\n" + text)

    def end(self, agent):
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(0, agent.wait(timeout=60))

    def pins(self):
        at = self.at("sys/fs/bpf/sluice")
        return {name: os.stat(os.path.join(at, name)).st_ino for name in os.listdir(at)} if os.path.exists(at) else {}

    def test_a_life(self):
        """Installed, used, upgraded, removed and purged."""
        self.install(self.old)
        self.assertEqual({"passwd:sluice", "group:sluice", "group:sluice-admin"}, self.accounts())
        with open(self.at("etc/passwd")) as f:
            self.assertRegex(f.read(), r"(?m)^sluice:[^:]*:\d+:\d+:sluice agent:/var/lib/sluice:/usr/sbin/nologin$")
        self.assertTrue(os.path.isdir(self.at("var/lib/sluice")))
        self.assertEqual(0, run("chroot", self.root, "/usr/bin/sluice", "check").returncode)
        self.check_first_start()

        # Used: a key is changed, a rule is added, records and probes are there.
        with open(self.at("etc/sluice/sluice.yaml"), "a") as f:
            f.write("# mine\n")
        with open(self.at("etc/sluice/rules.d/mine.yaml"), "w") as f:
            f.write("exclude: [{exe: nothing}]\n")
        agent = self.agent()
        pins = self.pins()
        self.assertTrue(pins)

        self.upgrade(self.new)
        self.assertIsNone(agent.poll(), "the old agent was ended")
        self.assertEqual(pins, self.pins())
        self.check_upgrade()
        with open(self.at("etc/sluice/sluice.yaml")) as f:
            self.assertTrue(f.read().endswith("# mine\n"))
        self.assertTrue(os.path.exists(self.at("etc/sluice/rules.d/mine.yaml")))

        # While it runs by hand, nothing takes its probes.
        self.assertIn("stop it first", self.remove(check=False).stdout)
        self.assertEqual(pins, self.pins())
        self.assertTrue(os.path.exists(self.at("usr/bin/sluice")))
        self.end(agent)
        self.assertEqual(pins, self.pins())
        # The new agent takes over what the old one left.
        self.end(self.agent())
        self.asked()

        self.remove()
        self.assertEqual({}, self.pins())
        self.check_stopped()
        left = tree(self.root)
        self.assertEqual([], [p for p in left if p.startswith("usr/") and p not in self.before])
        for kept in ("etc/sluice/rules.d/mine.yaml", "etc/sluice/conf.d/test.yaml", "var/lib/sluice/lake"):
            self.assertIn(kept, left)
        self.assertIn("passwd:sluice", self.accounts())

        self.purge()
        after = tree(self.root)
        for path in sorted(set(after) | set(self.before)):
            # Package managers remove folders that they empty, and rpm makes one for itself.
            if (self.before.get(path) == "folder" and path not in after) or path == "var/tmp":
                continue
            self.assertEqual(self.before.get(path), after.get(path), path)

    def test_a_configuration_that_nobody_changed_is_renewed(self):
        self.install(self.old)
        with open(self.at("etc/sluice/sluice.yaml")) as f:
            shipped = f.read()
        self.upgrade(self.new)
        with open(self.at("etc/sluice/sluice.yaml")) as f:
            self.assertEqual(shipped, f.read())
        self.assertEqual([], [n for n in os.listdir(self.at("etc/sluice")) if "dpkg" in n or "rpm" in n])


class Deb(InRoot, unittest.TestCase):
    kind = "deb"

    def prepare(self):
        os.makedirs(self.at("var/lib/dpkg/info"))
        os.makedirs(self.at("var/lib/dpkg/updates"))
        with open(self.at("var/lib/dpkg/status"), "w") as f:
            f.write(run("dpkg-query", "--status", "passwd").stdout + "\n")
        with open(self.at("var/lib/dpkg/info/passwd.list"), "w"):
            pass

    def dpkg(self, *words, check=True):
        return run("dpkg", f"--root={self.root}", "--force-confold", *words, check=check,
                   env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"})

    def install(self, package):
        self.dpkg("--install", package)
        self.note()

    upgrade = install

    def remove(self, check=True):
        return self.dpkg("--remove", "sluice-agent", check=check)

    def purge(self):
        self.dpkg("--purge", "sluice-agent")

    def check_first_start(self):
        self.assertTrue(os.path.islink(self.at("etc/systemd/system/multi-user.target.wants/sluice-agent.service")))
        self.assertEqual(["preset | installed", "start | installed"], self.asked())

    def check_upgrade(self):
        """Never stopped, and restarted when the new files were there."""
        self.assertEqual(["restart | installed"], self.asked())

    def check_stopped(self):
        self.assertEqual(["stop | installed"], self.asked())


class DebWithoutSystemd(Deb):
    has_systemd = False

    def check_first_start(self):
        self.assertEqual([], self.asked())

    check_upgrade = check_stopped = check_first_start


class Rpm(InRoot, unittest.TestCase):
    kind = "rpm"

    def prepare(self):
        pass

    def rpm(self, *words, check=True):
        return run("rpm", f"--root={self.root}", "--dbpath=/var/lib/rpm", "--nodeps", *words, check=check)

    def install(self, package):
        self.rpm("--install", package)
        self.note()

    def upgrade(self, package):
        self.rpm("--upgrade", package)
        self.note()

    def remove(self, check=True):
        return self.rpm("--erase", "sluice-agent", check=check)

    def purge(self):
        """As README.md says."""
        run("chroot", self.root, "/bin/sh", "-c", "rm -rf /etc/sluice /var/lib/sluice; userdel sluice; groupdel sluice-admin")

    def check_first_start(self):
        """Presets decide, and nothing is started."""
        self.assertEqual(["preset | installed", "try-restart | installed"], self.asked())

    def check_upgrade(self):
        self.assertEqual(["try-restart | installed"], self.asked())

    def check_stopped(self):
        self.assertEqual(["disable | installed", "stop | installed"], self.asked())


if __name__ == "__main__":
    harness.main()
