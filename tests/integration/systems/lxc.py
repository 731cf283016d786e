# SPDX-License-Identifier: Apache-2.0
"""LXC containers from a folder, without a network."""
import os
import shutil
import subprocess
import tempfile

from systems import machine

CONFIG = """\
lxc.uts.name = {name}
lxc.net.0.type = empty
lxc.rootfs.path = dir:{root}
lxc.mount.auto = proc:rw sys:ro
"""


class Lxc:
    """`with Lxc(root) as x: x.start("one", ["/bin/sleep", "60"]); x.attach("one", ["/bin/true"])`"""

    def __init__(self, root):
        machine.need("lxc-start", "lxc-attach", "lxc-info", "lxc-stop", "lxc-wait")
        self.root = root
        self.at = tempfile.mkdtemp(prefix="sluice-lxc-")
        self.names = []

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def start(self, name, args):
        """In the background; returns once it runs. Its exit code is not returned then."""
        config = os.path.join(self.at, name + ".conf")
        with open(config, "w") as f:
            f.write(CONFIG.format(name=name, root=self.root))
        self.names.append(name)
        # Into a file: what it starts keeps the streams open.
        with open(os.path.join(self.at, name + ".out"), "wb") as out:
            done = subprocess.run(
                ["lxc-start", "-d", "-P", self.at, "-n", name, "-f", config, "-o", os.path.join(self.at, name + ".log"), "--", *args],
                env=machine.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=30)
        if done.returncode == 0:
            done = machine.run(["lxc-wait", "-P", self.at, "-n", name, "-s", "RUNNING", "-t", "15"], check=False)
        if done.returncode != 0:
            raise AssertionError(f"lxc-start {name}: {done.returncode}\n"
                                 + "".join(machine.tail(os.path.join(self.at, name + e)) for e in (".out", ".log")))

    def pid(self, name):
        """Of its first process, in this host's numbers."""
        return int(machine.run(["lxc-info", "-P", self.at, "-n", name, "-p", "-H"]).stdout)

    def attach(self, name, args):
        """Runs a program in it; the exit code is the program's."""
        return machine.run(["lxc-attach", "-P", self.at, "-n", name, "--", *args], check=False)

    def close(self):
        for name in self.names:
            machine.run(["lxc-stop", "-k", "-P", self.at, "-n", name], check=False)
            machine.remove_cgroups(f"/lxc.payload.{name}", f"/lxc.monitor.{name}")
        machine.remove_cgroups("/lxc.pivot")  # LXC leaves it in every hierarchy
        machine.unmount_below(self.at)
        shutil.rmtree(self.at, ignore_errors=True)
