# SPDX-License-Identifier: Apache-2.0
"""Release folders as dev/release makes them, with a small program in place of sluice, and roots to install them in.

Folder: VERSION/ and latest/ with packages, tree, program, SHA256SUMS and its signature by a key made for the test.
Root: this machine's, or one of busybox alone, as an overlay that a command sees in a mount namespace of its own. What the
command writes lies in a folder of the test, so that it can be compared, and the machine stays as it is.
"""
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile

import harness

INSTALL = os.path.join(harness.ROOT, "ops", "install", "install.sh")
ARCH = os.uname().machine
DEB_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[ARCH]

# Answers as sluice does; /run/fake has what is to go wrong.
PROGRAM = """#!/bin/sh
# sluice @VERSION@, as far as install.sh knows it.
fake=/run/fake
case "$1 ${2:-}" in
"--version ") echo "sluice @VERSION@" ;;
"doctor ") printf 'signal state hook\\nlifecycle ok x\\nblock_io_delay missing -\\n'; exit "$(cat $fake/doctor 2>/dev/null || echo 1)" ;;
"doctor --self-test")
	[ ! -e $fake/self-test-fails ] || { echo "self-test: 11 of 12 programs seen"; exit 1; }
	echo "self-test: 12 of 12 programs seen exactly" ;;
"agent --uninstall") rm -f $fake/pins ;;
*) echo "sluice: $*" >&2; exit 2 ;;
esac
"""
UNIT = "[Service]\nExecStart=/usr/bin/sluice agent -c /etc/sluice/sluice.yaml\n[Install]\nWantedBy=multi-user.target\n"

# Of systemctl, what the script asks; what was asked is in /run/fake/asked.
SYSTEMCTL = """#!/bin/sh
fake=/run/fake
echo "$*" >>$fake/asked
for word; do
	case $word in -*) ;; *) [ -n "${verb:-}" ] || verb=$word ;; esac
done
started() {
	while [ -e $fake/hangs ]; do sleep 0.1; done
	mkdir -p /var/lib/sluice
	chown -R sluice:sluice /var/lib/sluice/	# as StateDirectory does
	[ ! -e $fake/broken ] || [ "$(/usr/bin/sluice --version)" != "sluice $(cat $fake/broken)" ] || { rm -f $fake/active; exit 1; }
	echo x >>$fake/active
}
case $verb in
is-active) [ -e $fake/active ] ;;
is-enabled) if [ -e $fake/enabled ]; then echo enabled; else echo disabled; exit 1; fi ;;
enable) >$fake/enabled; case " $*" in *" --now"*) started ;; esac ;;
disable) rm -f $fake/enabled $fake/active ;;
restart) started ;;
show) if [ -e $fake/active ]; then wc -l <$fake/active; else echo 0; fi ;;
esac
"""


def run(*command, **kw):
    kw.setdefault("timeout", 300)
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)


def need(*command, **kw):
    done = run(*command, **kw)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}: {done.stdout}")
    return done.stdout


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


class Key:
    """An unencrypted key of minisign."""

    def __init__(self, room, name="release"):
        self.public, self.secret = os.path.join(room, name + ".pub"), os.path.join(room, name + ".key")
        need("minisign", "-G", "-W", "-f", "-p", self.public, "-s", self.secret)
        with open(self.public) as f:
            self.text = f.read().split("\n")[1]

    def sign(self, path, comment, legacy=False):
        need("minisign", "-S", *(["-l"] if legacy else []), "-s", self.secret, "-m", path, "-t", comment)


class Mirror:
    """MIRROR/VERSION for each release() and MIRROR/latest for the last."""

    def __init__(self, room):
        self.path = os.path.join(room, "mirror")
        self.key = Key(room)
        os.makedirs(self.path)

    def at(self, version, name=""):
        return os.path.join(self.path, version, name)

    def tree(self, version, program=None, config=None, without=()):
        """What is installed, as files."""
        tree = tempfile.mkdtemp(prefix="tree-", dir=os.path.dirname(self.path))
        os.chmod(tree, 0o755)
        files = {
            "usr/bin/sluice": (program or PROGRAM.replace("@VERSION@", version), 0o755),
            "usr/lib/systemd/system/sluice-agent.service": (UNIT, 0o644),
            "usr/lib/sysusers.d/sluice.conf": ('u sluice - "sluice agent" /var/lib/sluice /usr/sbin/nologin\n'
                                               'g sluice-admin -\n', 0o644),
            "usr/share/sluice/schemas/program.avsc": (f'"{version}"\n', 0o644),
            f"usr/share/sluice/only-{version}": ("", 0o644),
            "usr/share/man/man1/sluice.1.gz": ("not read\n", 0o644),
            "etc/sluice/sluice.yaml": (config or "lake: /var/lib/sluice/lake\n", 0o644),
        }
        for path, (text, mode) in files.items():
            if path not in without:
                write(os.path.join(tree, path), text, mode)
        os.makedirs(os.path.join(tree, "etc/sluice/rules.d"))
        os.symlink("sluice.1.gz", os.path.join(tree, "usr/share/man/man1/sluice-x.1.gz"))
        return tree

    def release(self, version, rpm=False, **kw):
        tree, to = self.tree(version, **kw), self.at(version)
        os.makedirs(to)
        bare = f"{to}/sluice-{version}-linux-{ARCH}"
        shutil.copy(os.path.join(tree, "usr/bin/sluice"), bare)
        need("tar", "-C", tree, "--owner=0", "--group=0", "-czf", bare + ".tar.gz", ".")
        if rpm:
            self.rpm(tree, version, to)
        shutil.rmtree(f"{tree}/usr/share/man")  # this machine's man-db would read all manuals at each installation
        os.mkdir(f"{tree}/DEBIAN")
        write(f"{tree}/DEBIAN/control", f"Package: sluice-agent\nConflicts: sluice\nVersion: {version}\nArchitecture: {DEB_ARCH}\n"
              "Maintainer: Test <test@sluice.example>\nDescription: of a test\n")
        write(f"{tree}/DEBIAN/conffiles", "/etc/sluice/sluice.yaml\n")
        write(f"{tree}/DEBIAN/postinst", '#!/bin/sh\nset -e\nsystemd-sysusers sluice.conf\n'
              'deb-systemd-helper update-state sluice-agent.service\n'
              '[ ! -d /run/systemd/system ] || systemctl try-restart sluice-agent.service\n', 0o755)
        write(f"{tree}/DEBIAN/prerm", '#!/bin/sh\nset -e\n[ "$1" != remove ] || /usr/bin/sluice agent --uninstall\n', 0o755)
        write(f"{tree}/DEBIAN/postrm", '#!/bin/sh\nset -e\n[ "$1" != purge ] || { deb-systemd-helper purge sluice-agent.service; rm -rf /etc/sluice /var/lib/sluice; '
              'userdel sluice; groupdel sluice-admin; }\n', 0o755)
        need("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, f"{to}/sluice-agent_{version}_{DEB_ARCH}.deb")
        shutil.rmtree(tree)
        self.sign(version)
        latest = os.path.join(self.path, "latest")
        if os.path.islink(latest):
            os.unlink(latest)
        os.symlink(version, latest)
        return to

    def rpm(self, tree, version, to):
        self.rpmbuild(f"Name: sluice-agent\nVersion: {version}\n", "cp -a " + tree + "/. %{buildroot}/\n%files\n/usr/bin/sluice\n"
                      "/usr/lib/systemd\n/usr/lib/sysusers.d\n/usr/share/sluice\n/usr/share/man\n"
                      "%config(noreplace) /etc/sluice/sluice.yaml\n%dir /etc/sluice/rules.d\n%post\nsystemd-sysusers sluice.conf\n", to)

    def system_rpm(self):
        """What a system of that family has installed, of which sluice's package needs the shell. Returns its path."""
        self.rpmbuild("Name: system-release\nVersion: 9\nProvides: /bin/sh /usr/bin/sh\n", "%files\n", self.path)
        return os.path.join(self.path, f"system-release-9-1.{ARCH}.rpm")

    def rpmbuild(self, head, install, to):
        with tempfile.TemporaryDirectory(prefix="rpm-", dir=os.path.dirname(self.path)) as room:
            spec = os.path.join(room, "test.spec")
            write(spec, head + "Release: 1\nSummary: of a test\nLicense: Apache-2.0\n%description\nOf a test.\n%install\n" + install)
            need("rpmbuild", "-bb", "--quiet", "--define", f"_topdir {room}/top", "--define", f"_rpmdir {to}", "--define",
                 f"_dbpath {room}/db", "--define", "_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm", "--target", ARCH, spec)

    def sign(self, version, comment=None, key=None, legacy=False):
        to = self.at(version)
        names = sorted(n for n in os.listdir(to) if not n.startswith("SHA256SUMS"))
        write(f"{to}/SHA256SUMS", "".join(f"{sha256(os.path.join(to, n))}  {n}\n" for n in names))
        (key or self.key).sign(f"{to}/SHA256SUMS", comment or f"sluice {version}", legacy)


# Mounts in the namespace: /mnt is the mirror. /proc ends with the namespace's own processes; of /sys/fs/bpf nothing is
# there, so that no command touches the machine's probes.
ENTER = """
set -e
room=$1 lower=$2
shift 2
mount -t overlay -o "lowerdir=$lower,upperdir=$room/upper,workdir=$room/work" root "$room/merged"
cd "$room/merged"
mount -t proc proc proc
mount --bind /sys sys
mount --rbind /dev dev
mount --bind "$room/run" run
mount --bind "$room/mirror" mnt
exec chroot . "$@"
"""
# What package managers and accounts keep for themselves.
OTHERS = ("/var/lib/dpkg/", "/var/lib/apt/", "/var/cache/", "/var/log/", "/var/lib/rpm/", "/var/lib/dnf/", "/var/lib/zypp/",
          "/var/lib/systemd/", "/etc/passwd-",
          "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock", "/usr/bin/systemctl", "/root/.rpmdb/",
          "/etc/subuid", "/etc/subgid", "/usr/bin/rpm", "/usr/lib/sysimage/rpm/")


class Root:
    """A throw-away copy of a root; what is written in it is below `upper`."""

    def __init__(self, room, lower="/", systemd=False):
        self.room, self.lower = room, lower
        for name in ("upper", "work", "merged", "run/fake"):
            os.makedirs(os.path.join(room, name))
        if systemd:
            os.makedirs(os.path.join(room, "run/systemd/system"))
            self.write("/usr/bin/systemctl", SYSTEMCTL, 0o755)

    def command(self, *command):
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", self.room, self.lower,
                *command]

    def run(self, *command, **kw):
        return run(*self.command(*command), **kw)

    def path(self, path):
        """As the machine sees what is written there."""
        return os.path.join(self.room, "upper", path.lstrip("/"))

    def write(self, path, text, mode=0o644):
        """By a command in it: only the kernel knows what lies over what was removed."""
        need(*self.command("sh", "-c", 'mkdir -p "${1%/*}" && rm -rf "$1" && printf %s "$2" >"$1" && chmod "$3" "$1"', "sh",
                           path, text, f"{mode:o}"))

    def fake(self, name, text=None):
        """Whether it is there; with a text, makes it."""
        path = os.path.join(self.room, "run/fake", name)
        if text is not None:
            write(path, text)
        return os.path.exists(path)

    def forget(self, name):
        os.remove(os.path.join(self.room, "run/fake", name))

    def asked(self):
        with open(os.path.join(self.room, "run/fake/asked")) as f:
            return f.read().splitlines()

    def remove(self, *paths):
        for path in paths:
            need(*self.command("rm", "-rf", path))

    def tree(self):
        """{path: what it is} of all that differs from the lower root, without what others keep."""
        out, upper = {}, os.path.join(self.room, "upper")
        for at, folders, names in os.walk(upper):
            for name in folders + names:
                path = os.path.join(at, name)
                inside = "/" + os.path.relpath(path, upper)
                if any(inside == o.rstrip("/") or inside.startswith(o) for o in OTHERS):
                    continue
                kind, below = os.lstat(path), os.path.join(self.lower, inside.lstrip("/"))
                if stat.S_ISCHR(kind.st_mode):
                    out[inside] = "gone"
                elif stat.S_ISLNK(kind.st_mode):
                    out[inside] = os.readlink(path)
                elif stat.S_ISDIR(kind.st_mode):
                    if not os.path.isdir(below):
                        out[inside] = f"folder {stat.S_IMODE(kind.st_mode):o}"
                elif not os.path.isfile(below) or sha256(path) != sha256(below):
                    out[inside] = f"{stat.S_IMODE(kind.st_mode):o} {sha256(path)}"
        return out


def busybox_root(to):
    """A root in which nothing is but busybox and OpenSSL, as on the smallest systems."""
    for name in ("bin", "proc", "sys", "dev", "run", "mnt", "etc", "root", "tmp", "var/lib", "var/tmp", "usr/bin"):
        os.makedirs(os.path.join(to, name))
    shutil.copy(shutil.which("busybox"), os.path.join(to, "bin/busybox"))
    for applet in need("busybox", "--list").split():
        if applet not in ("busybox", "dpkg", "dpkg-deb", "rpm"):
            os.symlink("busybox", os.path.join(to, "bin", applet))
    openssl = shutil.which("openssl")
    for path in [openssl] + [word for word in need("ldd", openssl).split() if word.startswith("/")]:
        os.makedirs(os.path.dirname(to + path), exist_ok=True)
        shutil.copy(os.path.realpath(path), to + path)
    write(f"{to}/etc/os-release", 'ID=alpine\nPRETTY_NAME="Only busybox"\n')
    write(f"{to}/etc/passwd", "root:x:0:0::/root:/bin/sh\n")
    write(f"{to}/etc/group", "root:x:0:\n")
    write(f"{to}/etc/hosts", "127.0.0.1 localhost\n")
    write(f"{to}/etc/nsswitch.conf", "hosts: files\nservices: files\n")
