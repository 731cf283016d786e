# SPDX-License-Identifier: Apache-2.0
"""podman with a store of a test's own, and runc below it; there is no daemon to start."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

from systems import machine


class Podman:
    """`with Podman() as p: p("run", …)`. SkipTest where it cannot run."""

    # Low limits: where a hard limit may not be raised, podman's own defaults end every start.
    run_options = ("--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")

    def __init__(self):
        machine.need("podman", "conmon", "runc")
        self.at = tempfile.mkdtemp(prefix="sluice-podman-")
        self.env = machine.environment(HOME=self.at, TMPDIR=self.at)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __call__(self, *args, check=True, timeout=120, **kw):
        """`podman ARGS`; its output as text in .stdout, both streams together."""
        return machine.run(self.command(*args), check=check, timeout=timeout, env=self.env, **kw)

    def command(self, *args):
        at = self.at
        return ["/usr/bin/podman", "--root", f"{at}/root", "--runroot", f"{at}/run", "--tmpdir", f"{at}/tmp", "--storage-driver",
                "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file", "--log-level", "error", "--runtime", "runc",
                *args]

    def import_image(self, tar, name):
        """A tar of a root as an image; returns the image's name for `run`."""
        self("import", tar, name)
        return "localhost/" + name

    @contextlib.contextmanager
    def service(self):
        """Its API; `with p.service() as socket_path:`."""
        path = os.path.join(self.at, "podman.sock")
        with open(os.path.join(self.at, "service.log"), "wb") as log:
            service = subprocess.Popen(self.command("system", "service", "--time", "0", "unix://" + path), env=self.env,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            machine.wait_until(lambda: os.path.exists(path), 20, "socket of podman")
            yield path
        finally:
            machine.end(service)

    def inspect(self, name):
        return json.loads(self("inspect", name).stdout)[0]

    def close(self):
        self("rm", "--all", "--force", "--time", "1", check=False)
        machine.unmount_below(self.at)
        machine.remove_cgroups("/libpod_parent")  # one that other processes are in stays
        shutil.rmtree(self.at, ignore_errors=True)
