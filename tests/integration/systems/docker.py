# SPDX-License-Identifier: Apache-2.0
"""A dockerd for one test: its own socket, folders and control groups, no network of its own; gone at the end."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from systems import machine

# Debian's, or docker's own package; a client elsewhere in PATH may have no daemon beside it.
DOCKERD = shutil.which("dockerd", path="/usr/sbin:/usr/bin")
DOCKER = "/usr/bin/docker"


class Dockerd:
    """`with Dockerd() as d: d("run", …)`. SkipTest where it cannot run."""

    def __init__(self, cgroup=None):
        """cgroup: the parent of its containers; docker's own choice is /docker, ours is one of its own."""
        if os.getuid() != 0:
            raise unittest.SkipTest("dockerd needs root")
        if DOCKERD is None or not os.access(DOCKER, os.X_OK):
            raise unittest.SkipTest("dockerd is not installed; run ./dev/install test")
        self.at = tempfile.mkdtemp(prefix="sluice-docker-")
        self.socket = os.path.join(self.at, "d.sock")
        self.cgroup = cgroup or "/sluice-test-" + os.path.basename(self.at)
        self.env = machine.environment(DOCKER_HOST=f"unix://{self.socket}", DOCKER_BUILDKIT="1",
                                       DOCKER_CONFIG=os.path.join(self.at, "client"))
        self.daemon = None

    def __enter__(self):
        config = os.path.join(self.at, "daemon.json")
        with open(config, "w") as f:
            f.write("{}\n")
        with open(os.path.join(self.at, "d.log"), "wb") as log:
            # Low limits: where a hard limit may not be raised, the default of a million ends every start.
            self.daemon = subprocess.Popen(
                [DOCKERD, "--config-file", config, "-H", f"unix://{self.socket}", "-p", os.path.join(self.at, "d.pid"),
                 "--data-root", os.path.join(self.at, "root"), "--exec-root", os.path.join(self.at, "exec"),
                 "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
                 "--ip-masq=false", "--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", self.cgroup,
                 "--default-ulimit", "nofile=1024:1024", "--log-level", "warn"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        for _ in range(300):
            if self("version", check=False, quiet=True).returncode == 0:
                return self
            if self.daemon.poll() is not None:
                break
            time.sleep(0.1)
        end = machine.tail(os.path.join(self.at, "d.log"), 800)
        self.close()
        raise unittest.SkipTest(f"dockerd does not run here: {end}")

    def __exit__(self, *exc):
        self.close()

    def command(self, *args):
        return [DOCKER, *args]

    def __call__(self, *args, check=True, quiet=False, timeout=300, **kw):
        """`docker ARGS`; its output as text in .stdout, both streams together."""
        return machine.run(self.command(*args), check=check, quiet=quiet, timeout=timeout, env=self.env, **kw)

    def inspect(self, name):
        """What docker knows of a container, as it says it itself."""
        return json.loads(self("inspect", name).stdout)[0]

    def import_image(self, folder, name):
        """The files under folder as an image of one layer."""
        tar = subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE)
        self("import", "-", name, stdin=tar.stdout)
        tar.stdout.close()
        if tar.wait() != 0:
            raise AssertionError(f"tar of {folder} failed")

    def close(self):
        """Containers, the daemon, its mounts, control groups and files, in this order."""
        if self.daemon is not None and self.daemon.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired, AssertionError):
                ids = self("ps", "-aq", check=False, quiet=True, timeout=20).stdout.split()
                if ids:
                    self("rm", "-f", *ids, check=False, timeout=60)
            machine.end(self.daemon)
        machine.unmount_below(self.at)
        # Ours by name; buildkit makes "docker" by itself, which is only removed when nothing is in it.
        machine.remove_cgroups(self.cgroup, "/docker")
        shutil.rmtree(self.at, ignore_errors=True)
