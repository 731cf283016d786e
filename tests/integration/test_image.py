# SPDX-License-Identifier: Apache-2.0
"""The agent's image on a real dockerd, with the rights that docker-compose.yml gives it, on this machine's kernel.

ops/image/Dockerfile is built as it is, but for the stage that needs a package mirror: an image of the files that
`dev/packages` makes of this build takes its place.
"""
import json
import os
import shutil
import subprocess
import tarfile
import time
import unittest

import yaml

import harness
from systems.docker import Dockerd
from systems.recorded import new_mark

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
# Release where there is one: a sanitizer's report of itself would want a symbolizer in the image.
RELEASE = os.path.join(ROOT, "build", "release")
CAPABILITIES = {"SYS_RESOURCE": 24}  # that may be missing even here; docker refuses what it cannot give


def make_root(into):
    """/out of the Dockerfile's first stage, with the libraries of a build that is not static."""
    out = os.path.join(into, "out")
    build = os.path.dirname(os.path.realpath(harness.SLUICE))
    if os.path.basename(build) == "dev" and os.path.exists(os.path.join(RELEASE, "sluice")):
        build = RELEASE
    subprocess.run([os.path.join(ROOT, "dev", "packages"), "--build", build, "--only", "root", "--to", out], check=True,
                   stdout=subprocess.DEVNULL)
    listed = subprocess.run(["ldd", os.path.join(out, "usr", "bin", "sluice")], stdout=subprocess.PIPE, text=True)
    for word in listed.stdout.split():
        if word.startswith("/"):
            os.makedirs(os.path.dirname(out + word), exist_ok=True)
            shutil.copy(word, out + word)


def service():
    with open(os.path.join(ROOT, "docker-compose.yml")) as f:
        return yaml.safe_load(f)["services"]["agent"]


def run_options(agent, data, config, bpffs):
    """`docker run` options that say what the service says; its own data and configuration are replaced."""
    with open("/proc/self/status") as f:
        own = next(int(line.split()[1], 16) for line in f if line.startswith("CapEff"))
    out = ["--network", "none", "--pid", agent["pid"], "--uts", agent["uts"], "--cgroupns", agent["cgroup"]]
    if agent["read_only"]:
        out.append("--read-only")
    for cap in agent["cap_drop"]:
        out += ["--cap-drop", cap]
    for cap in agent["cap_add"]:
        if cap not in CAPABILITIES or own >> CAPABILITIES[cap] & 1:
            out += ["--cap-add", cap]
    for option in agent["security_opt"]:
        out += ["--security-opt", option]
    for path in agent["tmpfs"]:
        out += ["--tmpfs", path]
    for volume in agent["volumes"]:
        source, target, *mode = volume.split(":")
        source = {"/var/lib/sluice": data, "/sys/fs/bpf": bpffs}.get(target, source)
        if os.path.exists(source):
            out += ["-v", ":".join([source, target, *mode])]
    return [*out, "-v", f"{config}:/etc/sluice/sluice.yaml:ro"]


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.docker = Dockerd()
        cls.addClassCleanup(cls.docker.close)
        cls.docker.__enter__()
        room = os.path.join(cls.docker.at, "room")
        make_root(os.path.join(room, "program"))
        cls.docker.import_image(os.path.join(room, "program"), "sluice-program:test")
        for target, name in (((), "sluice:test"), (("--target", service()["build"]["target"]), "sluice:compose")):
            cls.docker("build", "--network", "none", "--file", os.path.join(ROOT, "ops", "image", "Dockerfile"),
                       "--build-arg", "PROGRAM=sluice-program:test", *target, "--tag", name, ROOT)
        cls.data = os.path.join(room, "data")
        os.makedirs(cls.data)
        cls.config = os.path.join(room, "sluice.yaml")
        with open(cls.config, "w") as f:
            f.write("interval: 1s\nlake: /var/lib/sluice/lake\n")
        cls.bpffs = os.path.join(room, "bpf")
        os.makedirs(cls.bpffs)
        subprocess.run(["mount", "-t", "bpf", "bpf", cls.bpffs], check=True)  # the daemon's close() unmounts it
        cls.options = run_options(service(), cls.data, cls.config, cls.bpffs)

    def test_the_entry_is_the_program(self):
        said = self.docker("run", "--rm", "--network", "none", "sluice:test", "--version").stdout
        self.assertRegex(said, r"^sluice \d+\.\d+\.\d+")
        image = json.loads(self.docker("image", "inspect", "sluice:test").stdout)[0]["Config"]
        self.assertEqual(image["Cmd"], ["agent", "-c", "/etc/sluice/sluice.yaml"])
        self.assertIn("/var/lib/sluice", image["Volumes"])

    def test_there_is_nothing_else(self):
        """No shell, no package manager; accounts, authorities and licences are there."""
        said = self.docker("run", "--rm", "--network", "none", "--entrypoint", "/bin/sh", "sluice:test", check=False)
        self.assertIn("no such file", said.stdout)
        box = self.docker("create", "sluice:test").stdout.split()[-1]
        listed = os.path.join(self.docker.at, "listed.tar")
        self.docker("export", "--output", listed, box)
        self.docker("rm", box)
        with tarfile.open(listed) as tar:
            inside = {m.name: m for m in tar.getmembers()}
        for name in ("etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/share/doc/sluice/licenses/certifi/LICENSE",
                     "usr/share/doc/sluice/licenses/sluice/LICENSE"):
            self.assertTrue(inside[name].isfile(), name)
        self.assertEqual(["usr/bin/sluice"], [n for n in inside if n.startswith("usr/bin/")])
        self.assertEqual({(0, 0)}, {(m.uid, m.gid) for m in inside.values()})

    def test_composes_configuration_is_roots_and_valid(self):
        done = self.docker("run", "--rm", "--network", "none", "sluice:compose", "check", check=False)
        self.assertEqual(0, done.returncode, done.stdout)
        dump = self.docker("run", "--rm", "--network", "none", "sluice:compose", "check", "--dump").stdout
        with open(os.path.join(ROOT, "ops", "compose", "sluice.yaml")) as f:
            self.assertIn(yaml.safe_load(f)["kafka"]["brokers"][0], dump)

    def test_doctor_finds_every_signal_that_it_finds_outside(self):
        inside = self.docker("run", "--rm", *self.options, "sluice:test", "doctor", check=False)
        outside = harness.run_sluice(["doctor"], stderr=subprocess.STDOUT)
        self.assertEqual(inside.returncode, outside.returncode, inside.stdout + outside.stdout)

        def missing(text):
            return sorted(line for line in text.splitlines() if "missing" in line.split()[1:2])

        self.assertEqual(missing(inside.stdout), missing(outside.stdout), inside.stdout)

    def test_a_run_inside_is_recorded(self):
        self.docker("run", "--rm", *self.options, "sluice:test", "run", "--quiet", "--lake", "/var/lib/sluice/run",
                    "--", "/usr/bin/sluice", "--version")
        ends = [r for r in harness.read_lake(os.path.join(self.data, "run"))["sluice.program"] if r["phase"] == "END"]
        self.assertEqual([(r["exe"], r["exit_code"]) for r in ends], [("/usr/bin/sluice", 0)])

    def test_the_agent_inside_sees_the_host(self):
        box = self.docker("run", "--detach", *self.options, "sluice:test").stdout.split()[-1]
        try:
            self.wait_for_start(box)
            children = []
            mark = new_mark()
            for n in range(20):
                child = subprocess.Popen(["/bin/sh", "-c", f"exit {n}", mark])
                children.append((child.pid, n))
                child.wait()
            # The kernel may report an end seconds later, and an agent that stops does not wait for it.
            self.docker("exec", box, "/usr/bin/sluice", "ctl", "settle")
            began = time.monotonic()
            self.docker("stop", "--time", "30", box)
            self.assertLess(time.monotonic() - began, 25, "SIGTERM did not end it")
            state = json.loads(self.docker("inspect", box).stdout)[0]["State"]
            said = self.docker("logs", box).stdout
            self.assertEqual((state["ExitCode"], state["OOMKilled"]), (0, False), said)
            programs = harness.read_lake(os.path.join(self.data, "lake"))["sluice.program"]
            ends = {r["pid"]: r["exit_code"] for r in programs if r["phase"] == "END" and mark in (r["argv"] or [])}
            self.assertEqual([(p, ends.get(p)) for p, _ in children], children, said)
        finally:
            self.docker("rm", "-f", box, check=False)

    def wait_for_start(self, box):
        """Until the agent reports its start: what runs from then on is followed."""
        for _ in range(300):
            if '"agent.started"' in self.docker("logs", box).stdout:
                return
            if not json.loads(self.docker("inspect", box).stdout)[0]["State"]["Running"]:
                break
            time.sleep(0.1)
        self.fail("the agent did not start:\n" + self.docker("logs", box).stdout)


if __name__ == "__main__":
    harness.main()
