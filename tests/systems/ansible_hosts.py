# SPDX-License-Identifier: Apache-2.0
"""The Ansible role on three guests at once: Debian 11, 12 and 13, each with its own systemd and kernel.

The first gets its packages from a repository, the second from a file, the third from a signed mirror; all three deliver to
a real broker. One history in its order: a dry run, installation, again, changes of which one needs a reload and two a
restart, variables that are refused, a release that does not work on the first host and on one of a batch, one that does,
removal. After each step the guests are asked what they have. nightly: `./dev/test nightly ansible`; the releases are made
of build/packages.

    ansible_hosts.py [SYSTEM SYSTEM SYSTEM]     other guests of dev/guests than these
"""
import concurrent.futures
import functools
import glob
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import stack  # noqa: E402

GUESTS = os.path.join(ROOT, "dev", "guests")
PACKAGES = os.path.join(ROOT, "build", "packages")
SYSTEMS = ["debian-11", "debian-12", "debian-13"]
# What the hosts are named by is what each installs from, in this order.
WAYS = ["repository", "file", "mirror"]
PREFIX = "trial."
SECRET = "not a key, and in no output"
# No play takes so long: three emulated guests on two CPUs, which others may use too.
PATIENCE = 1200
# What a host has, as JSON: how often the agent began, what runs, what is installed, and the configuration to the byte.
HAS = r"""
status=$(sluice ctl status --json 2>/dev/null) || status=null
[ -n "$status" ] || status=null
package=$(dpkg-query -Wf '${db:Status-Status} ${Version}' sluice-agent 2>/dev/null) || package=none
etc=$(cd /etc/sluice 2>/dev/null && find . -type f -exec sha256sum {} + | sort -k 2 | sha256sum)
pid=$(systemctl show -p MainPID --value sluice-agent)
printf '{"status":%s,"package":"%s","etc":"%s","pid":%s}\n' "$status" "$package" "$etc" "$pid"
"""
# All files that have its name, and its accounts. apt's cache of what it has fetched is apt's own.
LEFT = r"""
find / /run /sys/fs/bpf -xdev -path /var/cache/apt/archives -prune -o -iname '*sluice*' -prune -print
for database in passwd group; do getent $database | sed -n 's/^\(sluice[^:]*\):.*/'$database' \1/p'; done
"""
# A host whose 127.0.0.1 has the ports of this machine's servers, and whose apt knows no repository. A manager of the user's
# session that stays is one that no login has to start.
PREPARE = r"""
set -e
loginctl enable-linger root admin
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
for port in PORTS; do
	printf '[Socket]\nListenStream=127.0.0.1:%s\n' $port >/etc/systemd/system/to-$port.socket
	printf '[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd 10.0.2.2:%s\n' $port >/etc/systemd/system/to-$port.service
	systemctl start to-$port.socket
done
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
    kw = {"stderr": subprocess.STDOUT, **kw}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **kw)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(what, wanted, got):
    if wanted != got:
        raise AssertionError(f"{what}: {got!r}, not {wanted!r}")


class Releases:
    """The package that was built, a newer one, and one that does not work: as files, in a repository of apt that a key of
    OpenPGP signs, and in a mirror's folders that one of minisign signs. An HTTP server of this machine's loopback has both.
    """

    def __init__(self, room):
        self.room = room
        found = sorted(glob.glob(os.path.join(PACKAGES, "sluice-agent_*_amd64.deb")))
        if len(found) != 1:
            sys.exit(f"{PACKAGES} has {len(found)} packages for amd64, not 1: run ./dev/packages x86_64")
        self.first = os.path.basename(found[0]).split("_")[1]
        # As long as the first, so that it can be written over in the program.
        stem = self.first[:-1]
        self.better, self.broken = (stem + d for d in "89")
        if self.first in (self.better, self.broken):
            sys.exit(f"no version of the same length is newer than {self.first}: change Releases")
        broken = BROKEN.replace("VERSION", self.broken).encode()
        self.files = {self.first: found[0], self.better: self.changed(found[0], self.better, self.renumbered),
                      self.broken: self.changed(found[0], self.broken, lambda path: broken)}
        self.sums = {version: self.sum(path) for version, path in self.files.items()}
        self.repository(os.path.join(room, "www", "apt"))
        self.mirror(os.path.join(room, "www", "mirror"))
        handler = functools.partial(Quiet, directory=os.path.join(room, "www"))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def sum(path):
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def renumbered(self, path):
        with open(path, "rb") as f:
            program = f.read()
        old, new = self.first.encode() + b"\0", self.better.encode() + b"\0"
        if old not in program:
            sys.exit(f"{path} does not have its version {self.first}")
        return program.replace(old, new)

    def changed(self, package, version, program_of):
        """The package with another version and program."""
        tree = os.path.join(self.room, version)
        run("dpkg-deb", "-R", package, tree)
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
        out = os.path.join(self.room, f"sluice-agent_{version}_amd64.deb")
        # xz: dpkg of Debian 11 does not read zstd; the least of it, since the guests are slow to unpack.
        run("dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "-b", tree, out)
        shutil.rmtree(tree)
        return out

    def repository(self, folder):
        """A flat one, as sluice_repository_suite is by default."""
        os.makedirs(folder)
        for path in self.files.values():
            shutil.copy(path, folder)
        index = run("dpkg-scanpackages", "-m", ".", "/dev/null", cwd=folder, stderr=subprocess.DEVNULL)
        with open(os.path.join(folder, "Packages"), "w") as f:
            f.write(index)
        with open(os.path.join(folder, "Release"), "w") as f:
            f.write(time.strftime("Date: %a, %d %b %Y %H:%M:%S UTC\n", time.gmtime()) + "SHA256:\n"
                    f" {self.sum(f'{folder}/Packages')} {len(index.encode())} Packages\n")
        env = {**os.environ, "GNUPGHOME": os.path.join(self.room, "gnupg")}
        os.mkdir(env["GNUPGHOME"], 0o700)
        try:
            gpg = ("gpg", "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback")
            run(*gpg, "--quick-gen-key", "releases", "rsa3072", "sign", "2d", env=env)
            run(*gpg, "--clearsign", "-o", f"{folder}/InRelease", f"{folder}/Release", env=env)
            self.openpgp = run(*gpg, "--armor", "--export", env=env)
        finally:
            run("gpgconf", "--kill", "all", env=env)

    def mirror(self, folder):
        run("minisign", "-G", "-W", "-p", f"{self.room}/release.pub", "-s", f"{self.room}/release.key",
            stdin=subprocess.DEVNULL)
        with open(f"{self.room}/release.pub") as f:
            self.minisign = f.read()
        for version, path in self.files.items():
            at = os.path.join(folder, version)
            os.makedirs(at)
            shutil.copy(path, at)
            with open(f"{at}/SHA256SUMS", "w") as f:
                f.write(f"{self.sums[version]}  {os.path.basename(path)}\n")
            run("minisign", "-S", "-W", "-s", f"{self.room}/release.key", "-t", f"sluice {version}", "-x",
                f"{at}/SHA256SUMS.minisig", "-m", f"{at}/SHA256SUMS", stdin=subprocess.DEVNULL)

    def variables(self, way, version):
        """Of a host that gets this release in this way."""
        at = f"http://127.0.0.1:{self.port}"
        return {
            "repository": {"sluice_repository_url": f"{at}/apt", "sluice_repository_key": self.openpgp,
                           "sluice_version": version},
            "file": {"sluice_file": self.files[version], "sluice_file_checksum": self.sums[version]},
            "mirror": {"sluice_mirror": f"{at}/mirror", "sluice_mirror_key": self.minisign, "sluice_version": version},
        }[way] | {"sluice_source": way}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Without a line for each file."""

    def log_message(self, *_):
        pass


class Hosts:
    """The guests, what they have, and playbooks on all of them."""

    def __init__(self, systems, room, releases, servers):
        self.releases, self.servers, self.last = releases, servers, None
        self.up = os.path.join(room, "up")
        # A connection costs an emulated guest seconds, and one each is kept until the guest goes; a second CPU costs three
        # guests on two CPUs more than it gives them.
        self.env = {**os.environ, "GUESTS_UP": self.up, "OWNER": str(os.getpid()), "LIMIT": "7200", "CPUS": "1",
                    "ANSIBLE_PIPELINING": "1", "ANSIBLE_TIMEOUT": "180", "ANSIBLE_NOCOLOR": "1",
                    "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=1h"}
        self.inventory = run(GUESTS, "up", *systems, env=self.env).strip().splitlines()[-1]
        # The first of the batches is the first of the inventory.
        with open(self.inventory, encoding="utf-8") as f:
            self.names = re.findall(r"(?m)^    ([a-z0-9-]+): \{ansible_host", f.read())
        topic = os.path.join(stack.servers.kafka_dir(servers.servers.state["kafka"]), "*")
        self.all = {
            "sluice_health_timeout": 180, "sluice_delayacct": True, "sluice_readers": ["admin"],
            "sluice_config": {"interval": "20s", "metrics": ["127.0.0.1:9465"],
                              "kafka": {"brokers": [servers.brokers],
                                        "topics": {"create": False, "prefix": PREFIX, "partitions": 3, "replication": 1}},
                              "registry": {"urls": [servers.registry_url], "auto_register": True}},
            "sluice_rules": {"quiet": {"exclude": [{"exe": "stress"}]}},
            "sluice_files": [{"path": "/etc/sluice/tls/key.pem", "content": SECRET}],
            "sluice_topics_host": "localhost",
            "sluice_topics_command": ["java", "-Xmx128m", "-cp", topic, "org.apache.kafka.tools.TopicCommand"],
        }
        # The first has a user who becomes root, the others let root in: sudo is one more process of each task.
        self.own = {name: {"way": WAYS[n], **({"ansible_user": "root", "ansible_become": False} if n else {})}
                    for n, name in enumerate(self.names)}
        self.want(releases.first)
        self.on_each(PREPARE.replace("PORTS", " ".join(str(port) for port in self.ports())))

    def ports(self):
        return [self.releases.port, *(int(re.search(r":(\d+)", at.split("//")[-1])[1])
                                      for at in (self.servers.brokers, self.servers.registry_url))]

    def down(self):
        subprocess.run([GUESTS, "down"], env=self.env, check=False)

    def on_each(self, script):
        """{host: what the script prints as root}"""
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return dict(zip(self.names, pool.map(lambda name: run(GUESTS, "ssh", name, script, env=self.env), self.names)))

    def has(self):
        """{host: what HAS prints}; it stays in `last`, for the step after this one to compare with."""
        self.last = {name: json.loads(text) for name, text in self.on_each(HAS).items()}
        return self.last

    def left(self):
        """{host: {files that have its name, and accounts}}"""
        return {name: set(text.splitlines()) for name, text in self.on_each(LEFT).items()}

    def want(self, version, *names):
        """From now on these, or all, are to have this release, each in its own way."""
        for name in names or self.names:
            self.own[name].update(self.releases.variables(self.own[name]["way"], version))

    def change(self, **variables):
        """The configuration of all of them, from now on."""
        self.all["sluice_config"].update(variables)

    def play(self, book, *options, works=True, only=None, serial=None, **variables):
        """{host: {ok, changed, failed…}} and the output. The variables are all hosts', `only` has some of one host. What
        playbooks/hosts.yml asks of localhost is not counted.
        """
        for folder, of in (("group_vars", {"all": {**self.all, **variables}}),
                           ("host_vars", {name: {**own, **(only or {}).get(name, {})} for name, own in self.own.items()})):
            os.makedirs(os.path.join(self.up, folder), exist_ok=True)
            for name, values in of.items():
                with open(os.path.join(self.up, folder, f"{name}.json"), "w") as f:
                    json.dump(values, f)
        said = {"sluice_hosts": "all"} | ({"sluice_serial": serial} if serial else {})
        command = [os.path.join(ROOT, "dev", "ansible"), "ansible-playbook", "-i", self.inventory, "-e", json.dumps(said),
                   *options, os.path.join(ROOT, "ops", "ansible", "playbooks", book)]
        began = time.monotonic()
        with open(os.path.join(self.up, "play.log"), "w+") as f:
            try:
                status = subprocess.run(command, stdout=f, stderr=subprocess.STDOUT, env=self.env, check=False,
                                        timeout=PATIENCE).returncode
            except subprocess.TimeoutExpired:
                status = f"none within {PATIENCE} s"
            f.seek(0)
            out = f.read()
        print(f"        {book} in {time.monotonic() - began:.0f} s", flush=True)
        if not isinstance(status, int) or (status == 0) != works:
            raise AssertionError(f"{book}: exit status {status}\n{out}")
        assert SECRET not in out, out
        recap = {m[1]: {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", m[2])}
                 for m in re.finditer(r"(?m)^(\S+)\s+: (ok=.*)$", out) if m[1] != "localhost"}
        return recap, out


def healthy(hosts, version, has=None):
    """version: of all, or {host: its own}"""
    has = has or hosts.has()
    for name, host in has.items():
        wanted = version[name] if isinstance(version, dict) else version
        expect(f"{name}: the package", f"installed {wanted}", host["package"])
        expect(f"{name}: ready, sees and runs", (True, True, wanted),
               tuple(host["status"][k] for k in ("ready", "seeing", "version")) if host["status"] else None)
    return has


def same(what, before, after, names, *keys):
    for name in names:
        expect(f"{name}: {what}", [before[name][k] for k in keys], [after[name][k] for k in keys])


def recorded(hosts):
    """The names of all hosts are in what the broker has of them."""
    out = subprocess.run(["kcat", "-q", "-C", "-e", "-b", hosts.servers.brokers, "-t", f"{PREFIX}sluice.host"],
                         stdout=subprocess.PIPE, timeout=60, check=True).stdout
    for name in hosts.names:
        assert name.encode() in out, f"{name}: nothing of it in {PREFIX}sluice.host, which has {len(out)} bytes"


def dry_run(hosts, _):
    """On hosts that have nothing: it reports what it would do, and does nothing."""
    recap, _ = hosts.play("site.yml", "--check", "--diff")
    for name, left in hosts.left().items():
        assert recap[name]["changed"] > 0, name
        expect(f"{name}: what is left of it", set(), left)
    expect("hosts", sorted(hosts.names), sorted(recap))
    expect("topics", {}, hosts.servers.topics())


def install(hosts, releases):
    hosts.play("site.yml", "--diff")
    healthy(hosts, releases.first)
    for name, text in hosts.on_each(
            "stat -c '%a %U %G' /etc/sluice/tls /etc/sluice/tls/key.pem /etc/sluice/sluice.yaml; id -nG admin; "
            "cat /proc/sys/kernel/task_delayacct 2>/dev/null || echo 1; systemctl is-enabled sluice-agent").items():
        lines = text.splitlines()
        expect(f"{name}: modes", ["750 root sluice", "400 sluice sluice", "644 root root"], lines[:3])
        assert "sluice" in lines[3].split(), lines
        expect(f"{name}: delayacct, enabled", ["1", "enabled"], lines[4:])
    expect("topics of the role", {3}, set(hosts.servers.topics().values()))
    recorded(hosts)


def again(hosts, _):
    before = hosts.last
    recap, out = hosts.play("site.yml")
    for name in hosts.names:
        assert recap[name]["changed"] == 0, f"{name}: the second run changes something\n{out}"
    same("as before", before, hosts.has(), hosts.names, "pid", "etc", "package")


def changes(hosts, releases):
    """The first host's need a reload. The others' need a restart: a key that the agent itself reports to wait for one, and
    a file that it reads when it starts.
    """
    before = hosts.last
    reloads, key, file = hosts.names
    hosts.own[reloads]["sluice_config"] = {**hosts.all["sluice_config"], "interval": "30s"}
    hosts.own[reloads]["sluice_rules"] = {"quiet": {"exclude": [{"exe": "stress-ng"}]}}
    hosts.own[key]["sluice_config"] = {**hosts.all["sluice_config"], "cluster": "trial"}
    hosts.own[file]["sluice_files"] = [{**hosts.all["sluice_files"][0], "content": f"{SECRET}, again"}]
    hosts.play("site.yml")
    after = healthy(hosts, releases.first)
    same("the same agent", before, after, [reloads], "pid")
    expect(f"{reloads}: reloaded once", before[reloads]["status"]["config"]["generation"] + 1,
           after[reloads]["status"]["config"]["generation"])
    for name in (key, file):
        assert before[name]["pid"] != after[name]["pid"], f"{name}: not restarted"
        expect(f"{name}: nothing waits for a restart", None, after[name]["status"]["config"]["restart_wanted"])


def bad_variables(hosts, releases):
    """A configuration, a rule and a release that there is not: each leaves its host as it was."""
    before = hosts.last
    config, rule, release = hosts.names
    recap, out = hosts.play("site.yml", works=False, only={
        config: {"sluice_config": {"intervall": "1s"}, "sluice_rules": {}},
        rule: {"sluice_config": {"interval": "5s"}, "sluice_rules": {"quiet": {"exclude": [{"executable": "x"}]}}},
        release: {"sluice_version": "9.9.9", "sluice_config": {"interval": "5s"}}})
    for name in (config, rule):
        assert re.search(rf"fatal: \[{name}\].*sluice check refuses the configuration, and nothing was replaced", out), out
    assert "9.9.9/SHA256SUMS" in out, out
    for name in hosts.names:
        expect(f"{name}: failed", 1, recap[name]["failed"])
    same("untouched", before, healthy(hosts, releases.first), hosts.names, "pid", "etc", "package")


def bad_release(hosts, releases):
    """The first host's agent does not start: it gets its release back from where it came, and the others keep theirs."""
    before = hosts.last
    first, others = hosts.names[0], hosts.names[1:]
    only = {name: {**releases.variables(hosts.own[name]["way"], releases.broken), "sluice_health_timeout": 60}
            for name in hosts.names}
    only[first]["sluice_config"] = {**hosts.own[first]["sluice_config"], "drain": "5s"}
    recap, out = hosts.play("roll_out.yml", works=False, only=only)
    assert f"Rolled back: sluice {releases.first} is healthy again" in out, out
    expect("hosts that were touched", [first], sorted(recap))
    after = healthy(hosts, releases.first)
    same("rolled back", before, after, [first], "etc", "package")
    same("untouched", before, after, others, "pid", "etc", "package")


def one_of_a_batch(hosts, releases):
    """All at once, and one gets what does not work: it has the first again, and the others are done."""
    before = hosts.last
    one = hosts.names[1]
    hosts.want(releases.better)
    recap, out = hosts.play("roll_out.yml", works=False, serial=len(hosts.names), only={
        one: {**releases.variables(hosts.own[one]["way"], releases.broken), "sluice_health_timeout": 60}})
    assert f"Rolled back: sluice {releases.first} is healthy again" in out, out
    expect("failed", [one], [name for name in hosts.names if recap[name]["failed"]])
    after = healthy(hosts, {name: releases.first if name == one else releases.better for name in hosts.names})
    same("rolled back", before, after, [one], "etc", "package")


def good_release(hosts, releases):
    """The one that is left; the others have it."""
    before = hosts.last
    recap, out = hosts.play("roll_out.yml")
    after = healthy(hosts, releases.better)
    for name in hosts.names:
        expect(f"{name}: no gap", 0, after[name]["status"]["gaps"]["count"])
        expect(f"{name}: changes something\n{out}", name == hosts.names[1], recap[name]["changed"] > 0)
    same("as before", before, after, [hosts.names[0], hosts.names[2]], "pid", "etc", "package")
    recorded(hosts)


def remove(hosts, _):
    hosts.play("remove.yml")
    for name, left in hosts.left().items():
        of_dpkg = ("/var/lib/dpkg/info/sluice-agent.", "/var/lib/systemd/deb-systemd-helper")
        left = {path for path in left if not path.startswith(of_dpkg)}
        expect(f"{name}: what purge is for",
               {"/etc/sluice", "/var/lib/sluice", "passwd sluice", "group sluice", "group sluice-admin"}, left)
    for name, host in hosts.has().items():
        assert host["package"].startswith("config-files "), host["package"]
        expect(f"{name}: the agent", 0, host["pid"])


def purge(hosts, _):
    hosts.play("remove.yml", sluice_purge=True)
    for name, left in hosts.left().items():
        expect(f"{name}: what is left", set(), left)
    for name, host in hosts.has().items():
        assert host["package"].startswith("not-installed ") or host["package"] == "none", f"{name}: {host['package']}"
    recap, out = hosts.play("remove.yml", sluice_purge=True)
    assert all(recap[name]["changed"] == 0 for name in hosts.names), out


STEPS = [dry_run, install, again, changes, bad_variables, bad_release, one_of_a_batch, good_release, remove, purge]


def main():
    systems = sys.argv[1:] or SYSTEMS
    if len(systems) != len(WAYS):
        sys.exit(f"{len(WAYS)} systems, one for each way of installation: {', '.join(WAYS)}")
    room = tempfile.mkdtemp(prefix="ansible-", dir=os.path.join(ROOT, "build"))
    hosts, began = None, time.monotonic()
    try:
        releases = Releases(room)
        with stack.Stack() as servers:
            hosts = Hosts(systems, room, releases, servers)
            for step in STEPS:
                print(f"{time.monotonic() - began:5.0f} s: {step.__name__}", flush=True)
                step(hosts, releases)
    except AssertionError as e:
        sys.exit(str(e))
    finally:
        if hosts:
            hosts.down()
        shutil.rmtree(room)
    print(f"ok: {len(STEPS)} steps on {', '.join(hosts.names)} in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
