# SPDX-License-Identifier: Apache-2.0
"""A containerd for one test, and its client ctr; containers run from a folder, so that no image is needed."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import time

from systems import machine

CONFIG = """\
version = 2
root = "{at}/root"
state = "{at}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing", "io.containerd.internal.v1.opt"]
[grpc]
  address = "{at}/c.sock"
"""


class Containerd:
    """`with Containerd() as c: c("run", …)`: ctr's arguments, in a namespace of containerd's own."""

    def __init__(self, namespace="default"):
        machine.need("containerd", "ctr", "runc")
        self.at = tempfile.mkdtemp(prefix="sluice-ctrd-")  # short: a socket's path has 107 bytes
        self.namespace = namespace
        self._daemon = None

    def __enter__(self):
        config = os.path.join(self.at, "config.toml")
        with open(config, "w") as f:
            f.write(CONFIG.format(at=self.at))
        with open(os.path.join(self.at, "log"), "wb") as log:
            self._daemon = subprocess.Popen(["containerd", "-c", config], env=machine.environment(),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(200):
            if self("version", check=False).returncode == 0:
                return self
            if self._daemon.poll() is not None:
                break
            time.sleep(0.1)
        said = machine.tail(os.path.join(self.at, "log"))
        self.close()
        raise AssertionError(f"containerd did not start: {said}")

    def __exit__(self, *exc):
        self.close()

    def command(self, *args):
        return ["ctr", "-a", os.path.join(self.at, "c.sock"), "-n", self.namespace, *map(str, args)]

    def __call__(self, *args, check=True, timeout=60, **kw):
        return machine.run(self.command(*args), check=check, timeout=timeout, **kw)

    def run(self, name, root, args, options=()):
        """Runs it to its end from the files under root; the exit code is the container's."""
        return self("run", "--rm", *options, "--rootfs", root, name, *args, check=False)

    def pids(self):
        """{container: the pid of its first process} of those that run."""
        lines = self("task", "ls").stdout.splitlines()[1:]
        return {line.split()[0]: int(line.split()[1]) for line in lines if line.split()[2] == "RUNNING"}

    def close(self):
        if self._daemon is not None and self._daemon.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                for name in self("task", "ls", "-q", check=False).stdout.split():
                    self("task", "rm", "--force", name, check=False)
                for name in self("containers", "ls", "-q", check=False).stdout.split():
                    self("containers", "rm", name, check=False)
            machine.end(self._daemon)
        machine.unmount_below(self.at)
        machine.remove_cgroups("/" + self.namespace)
        shutil.rmtree(self.at, ignore_errors=True)
