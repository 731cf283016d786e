# SPDX-License-Identifier: Apache-2.0
"""The Ansible role on three guests at once: Debian 11, 12 and 13, each with its own systemd and kernel.

One history in its order: install from a signed mirror, again, a change that a reload makes known, one that needs a
restart, a configuration that is refused, a release that does not work, one that does, removal. After each step the guests
are asked what they have. nightly: `./dev/test nightly ansible`; the releases are made of build/packages.

    ansible_hosts.py [SYSTEM…]     other guests of dev/guests than these three
"""
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
PACKAGES = os.path.join(ROOT, "build", "packages")
SYSTEMS = ["debian-11", "debian-12", "debian-13"]
# What a host has, as JSON: how often the agent began, what runs, what is installed, and the configuration to the byte.
HAS = r"""
status=$(sluice ctl status --json 2>/dev/null) || status=null
[ -n "$status" ] || status=null
package=$(dpkg-query -Wf '${db:Status-Status} ${Version}' sluice 2>/dev/null) || package=none
etc=$(cd /etc/sluice 2>/dev/null && find . -type f -exec sha256sum {} + | sort -k 2 | sha256sum)
pid=$(systemctl show -p MainPID --value sluice-agent)
left=$(ls -d /etc/sluice /var/lib/sluice /usr/bin/sluice /sys/fs/bpf/sluice /var/lib/sluice-ansible /run/sluice 2>/dev/null | tr '\n' ' ')
account=$(getent passwd sluice | cut -d: -f1)
printf '{"status":%s,"package":"%s","etc":"%s","pid":%s,"left":"%s","account":"%s"}\n' \
	"$status" "$package" "$etc" "$pid" "$left" "$account"
"""
# A release that installs and says its version, whose agent ends at once.
BROKEN = """#!/bin/sh
case $1 in
--version) echo "sluice VERSION" ;;
agent) [ "$2" = --uninstall ] || { echo "sluice agent: broken on purpose" >&2; exit 125; } ;;
check | doctor) exit 0 ;;
*) exit 1 ;;
esac
"""


def run(*command, **kw):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **kw)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(what, wanted, got):
    if wanted != got:
        raise AssertionError(f"{what}: {got!r}, not {wanted!r}")


class Mirror:
    """Releases in minisign's signed folders: the package that was built, a newer one, and one that does not work."""

    def __init__(self, room):
        self.room = room
        self.folder = os.path.join(room, "mirror")
        found = sorted(glob.glob(os.path.join(PACKAGES, "sluice_*_amd64.deb")))
        if len(found) != 1:
            sys.exit(f"{PACKAGES} has {len(found)} packages for amd64, not 1: run ./dev/packages x86_64")
        self.package = found[0]
        self.first = os.path.basename(self.package).split("_")[1]
        run("minisign", "-G", "-W", "-p", f"{room}/release.pub", "-s", f"{room}/release.key", stdin=subprocess.DEVNULL)
        with open(f"{room}/release.pub") as f:
            self.key = f.read()
        # As long as the first, so that it can be written over in the program.
        stem = self.first[:-1]
        self.better, self.broken = (stem + d for d in "89")
        if self.first in (self.better, self.broken):
            sys.exit(f"no version of the same length is newer than {self.first}: change Mirror")
        self.publish(self.first, self.package)
        self.publish(self.better, self.changed(self.better, self.renumbered))
        self.publish(self.broken, self.changed(self.broken, lambda path: BROKEN.replace("VERSION", self.broken).encode()))

    def renumbered(self, path):
        with open(path, "rb") as f:
            program = f.read()
        old, new = self.first.encode() + b"\0", self.better.encode() + b"\0"
        if old not in program:
            sys.exit(f"{path} does not have its version {self.first}")
        return program.replace(old, new)

    def changed(self, version, program_of):
        """The package with another version and program."""
        tree = os.path.join(self.room, version)
        run("dpkg-deb", "-R", self.package, tree)
        program = os.path.join(tree, "usr", "bin", "sluice")
        text = program_of(program)
        with open(program, "wb") as f:
            f.write(text)
        control = os.path.join(tree, "DEBIAN", "control")
        with open(control) as f:
            lines = f.read()
        with open(control, "w") as f:
            f.write(re.sub(r"(?m)^Version: .*$", f"Version: {version}", lines))
        sums = os.path.join(tree, "DEBIAN", "md5sums")
        if os.path.exists(sums):
            with open(sums) as f:
                kept = [line for line in f if not line.endswith("  usr/bin/sluice\n")]
            with open(sums, "w") as f:
                f.writelines([*kept, f"{hashlib.md5(text, usedforsecurity=False).hexdigest()}  usr/bin/sluice\n"])
        out = os.path.join(self.room, f"sluice_{version}_amd64.deb")
        run("dpkg-deb", "--root-owner-group", "-b", tree, out)
        shutil.rmtree(tree)
        return out

    def publish(self, version, package):
        folder = os.path.join(self.folder, version)
        os.makedirs(folder)
        name = f"sluice_{version}_amd64.deb"
        shutil.copy(package, os.path.join(folder, name))
        with open(package, "rb") as f, open(os.path.join(folder, "SHA256SUMS"), "w") as to:
            to.write(f"{hashlib.sha256(f.read()).hexdigest()}  {name}\n")
        run("minisign", "-S", "-W", "-s", f"{self.room}/release.key", "-t", f"sluice {version}", "-x",
            f"{folder}/SHA256SUMS.minisig", "-m", f"{folder}/SHA256SUMS", stdin=subprocess.DEVNULL)


class Hosts:
    """The guests, what they have, and playbooks on all of them."""

    def __init__(self, systems, room, mirror):
        self.room, self.mirror = room, mirror
        self.env = {**os.environ, "GUESTS_UP": os.path.join(room, "up"), "OWNER": str(os.getpid()), "LIMIT": "7200",
                    "ANSIBLE_PIPELINING": "1", "ANSIBLE_TIMEOUT": "180", "ANSIBLE_NOCOLOR": "1"}
        self.systems = systems
        out = run(os.path.join(ROOT, "dev", "guests"), "up", *systems, env=self.env)
        self.inventory = out.strip().splitlines()[-1]
        # The first of the batches is the first of the inventory.
        self.names = re.findall(r"(?m)^    ([a-z0-9-]+): \{ansible_host", open(self.inventory, encoding="utf-8").read())
        self.variables = {"sluice_hosts": "all", "sluice_source": "mirror", "sluice_mirror": mirror.folder,
                          "sluice_mirror_key": mirror.key, "sluice_version": mirror.first, "sluice_health_timeout": 180,
                          "sluice_delayacct": True, "sluice_readers": ["admin"],
                          "sluice_config": {"interval": "20s", "metrics": ["127.0.0.1:9465"]},
                          "sluice_rules": {"quiet": {"exclude": [{"exe": "stress"}]}},
                          "sluice_files": [{"path": "/etc/sluice/tls/key.pem", "content": "not a key\n"}]}

    def down(self):
        subprocess.run([os.path.join(ROOT, "dev", "guests"), "down"], env=self.env, check=False)

    def has(self):
        """{host: what HAS prints}"""
        out = {}
        for name in self.names:
            text = run(os.path.join(ROOT, "dev", "guests"), "ssh", name, HAS, env=self.env)
            out[name] = json.loads(text)
        return out

    def play(self, book, *options, works=True, **changes):
        """{host: {ok, changed, failed…}} and the output; the changed variables stay for the plays after it."""
        variables = {**self.variables, **changes}
        if works:
            self.variables = variables
        path = os.path.join(self.room, "variables.json")
        with open(path, "w") as f:
            json.dump(variables, f)
        done = subprocess.run([os.path.join(ROOT, "dev", "ansible"), "ansible-playbook", "-i", self.inventory, "-e", f"@{path}",
                               *options, os.path.join(ROOT, "ops", "ansible", "playbooks", book)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=self.env, check=False)
        if (done.returncode == 0) != works:
            raise AssertionError(f"{book}: exit status {done.returncode}\n{done.stdout}")
        recap = {m[1]: {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", m[2])}
                 for m in re.finditer(r"(?m)^(\S+)\s+: (ok=.*)$", done.stdout)}
        return recap, done.stdout


def healthy(hosts, version, has=None):
    has = has or hosts.has()
    for name, host in has.items():
        expect(f"{name}: the package", f"installed {version}", host["package"])
        expect(f"{name}: ready, sees and runs", (True, True, version),
               tuple(host["status"][k] for k in ("ready", "seeing", "version")) if host["status"] else None)
    return has


def same(what, before, after, names, *keys):
    for name in names:
        expect(f"{name}: {what}", [before[name][k] for k in keys], [after[name][k] for k in keys])


def dry_run(hosts, mirror):
    """On hosts that have nothing: it reports what it would do, and does nothing."""
    recap, _ = hosts.play("site.yml", "--check")
    for name, host in hosts.has().items():
        assert recap[name]["changed"] > 0, name
        expect(f"{name}: what is left of it", ("none", "", ""), (host["package"], host["left"], host["account"]))
    expect("hosts", sorted(hosts.names), sorted(recap))
    expect("the first release", mirror.first, hosts.variables["sluice_version"])


def install(hosts, mirror):
    hosts.play("site.yml")
    healthy(hosts, mirror.first)
    for name in hosts.names:
        modes = run(os.path.join(ROOT, "dev", "guests"), "ssh", name, "stat -c '%a %U %G' /etc/sluice/tls/key.pem "
                    "/etc/sluice/sluice.yaml; id -nG admin; cat /proc/sys/kernel/task_delayacct 2>/dev/null || echo 1; "
                    "systemctl is-enabled sluice-agent", env=hosts.env).splitlines()
        expect(f"{name}: modes", ["640 root sluice", "644 root root"], modes[:2])
        assert "sluice" in modes[2].split(), modes
        expect(f"{name}: delayacct, enabled", ["1", "enabled"], modes[3:])


def again(hosts, _):
    before = hosts.has()
    recap, out = hosts.play("site.yml")
    for name in hosts.names:
        assert recap[name]["changed"] == 0, f"{name}: the second run changes something\n{out}"
    same("as before", before, hosts.has(), hosts.names, "pid", "etc", "package")


def reload(hosts, mirror):
    before = hosts.has()
    hosts.play("site.yml", sluice_config={**hosts.variables["sluice_config"], "interval": "30s"},
               sluice_rules={"quiet": {"exclude": [{"exe": "stress-ng"}]}})
    after = healthy(hosts, mirror.first)
    same("the same agent", before, after, hosts.names, "pid")
    for name in hosts.names:
        expect(f"{name}: reloaded once", before[name]["status"]["config"]["generation"] + 1,
               after[name]["status"]["config"]["generation"])


def restart(hosts, mirror):
    before = hosts.has()
    hosts.play("site.yml", sluice_config={**hosts.variables["sluice_config"], "cluster": "trial"})
    after = healthy(hosts, mirror.first)
    for name in hosts.names:
        assert before[name]["pid"] != after[name]["pid"], f"{name}: not restarted"
        expect(f"{name}: nothing waits for a restart", None, after[name]["status"]["config"]["restart_wanted"])


def bad_configuration(hosts, mirror):
    before = hosts.has()
    _, out = hosts.play("site.yml", works=False, sluice_config={"intervall": "1s"}, sluice_rules={})
    assert "sluice check refuses the configuration, and nothing was replaced" in out, out
    same("untouched", before, healthy(hosts, mirror.first), hosts.names, "pid", "etc", "package")


def bad_release(hosts, mirror):
    before = hosts.has()
    recap, out = hosts.play("roll_out.yml", works=False, sluice_version=mirror.broken, sluice_health_timeout=90,
                            sluice_config={**hosts.variables["sluice_config"], "drain": "5s"})
    first, others = hosts.names[0], hosts.names[1:]
    assert f"Rolled back: sluice {mirror.first} is healthy again" in out, out
    expect("hosts that were touched", [first], sorted(recap))
    after = healthy(hosts, mirror.first)
    same("rolled back", before, after, [first], "etc", "package")
    same("untouched", before, after, others, "pid", "etc", "package")


def good_release(hosts, mirror):
    hosts.play("roll_out.yml", sluice_version=mirror.better)
    for name, host in healthy(hosts, mirror.better).items():
        expect(f"{name}: no gap", 0, host["status"]["gaps"]["count"])


def remove(hosts, _):
    hosts.play("remove.yml", sluice_purge=True)
    for name, host in hosts.has().items():
        expect(f"{name}: what is left", ("none", "", ""), (host["package"].replace("not-installed ", "none"), host["left"],
                                                          host["account"]))
    recap, out = hosts.play("remove.yml", sluice_purge=True)
    assert all(host["changed"] == 0 for host in recap.values()), out


STEPS = [dry_run, install, again, reload, restart, bad_configuration, bad_release, good_release, again, remove]


def main():
    room = tempfile.mkdtemp(prefix="ansible-", dir=os.path.join(ROOT, "build"))
    hosts = None
    try:
        mirror = Mirror(room)
        hosts = Hosts(sys.argv[1:] or SYSTEMS, room, mirror)
        for step in STEPS:
            print(f"{step.__name__} …", flush=True)
            step(hosts, mirror)
    except AssertionError as e:
        sys.exit(str(e))
    finally:
        if hosts:
            hosts.down()
        shutil.rmtree(room)
    print(f"ok: {len(STEPS)} steps on {', '.join(hosts.names)}")


if __name__ == "__main__":
    main()
