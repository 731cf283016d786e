# SPDX-License-Identifier: Apache-2.0
"""runc and crun without any manager above them: a container is a bundle, run in the foreground, in a cgroup of one's choice."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

from systems import machine


class Runc:
    """`with Runc(root) as r: r.run("box", ["/bin/true"], cgroup="/docker/…").returncode`. root is only read."""

    program = "runc"

    def __init__(self, root):
        self.path, runc = machine.need(self.program, "runc")
        self.root = root
        self.at = tempfile.mkdtemp(prefix=f"sluice-{self.program}-")
        os.makedirs(os.path.join(self.at, "pattern"))
        machine.run([runc, "spec", "--bundle", os.path.join(self.at, "pattern")])
        with open(os.path.join(self.at, "pattern", "config.json")) as f:
            self._pattern = json.load(f)
        self._cgroups = set()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def bundle(self, name, args, cgroup=None, memory=None):
        """The folder of a container to be. cgroup: absolute, or below that of the caller; memory: its limit."""
        spec = json.loads(json.dumps(self._pattern))
        p = spec["process"]
        p.update(terminal=False, args=[str(a) for a in args], cwd="/", noNewPrivileges=True)
        p.pop("rlimits", None)  # a hard limit may not be raised everywhere
        spec["root"] = {"path": self.root, "readonly": True}
        spec["hostname"] = name[:63]
        if cgroup is not None:
            spec["linux"]["cgroupsPath"] = cgroup
        if memory is not None:
            spec["linux"].setdefault("resources", {})["memory"] = {"limit": memory}
        at = os.path.join(self.at, "bundles", name)
        os.makedirs(at)
        with open(os.path.join(at, "config.json"), "w") as f:
            json.dump(spec, f)
        if cgroup is not None and cgroup.startswith("/"):
            self._cgroups.add("/" + cgroup.split("/")[1])
        return at

    def command(self, name, bundle):
        """The command that runs it, for a script."""
        return [self.path, "--root", os.path.join(self.at, "state"), "run", "--bundle", bundle, name]

    def start(self, name, args, **kw):
        """The same as a Popen."""
        return subprocess.Popen(self.command(name, self.bundle(name, args, **kw)), env=machine.environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, name, args, timeout=60, **kw):
        """Runs it to its end; the exit code is the container's."""
        bundle = self.bundle(name, args, **kw)
        done = machine.run(self.command(name, bundle), check=False, timeout=timeout)
        shutil.rmtree(bundle)
        return done

    def state(self, name):
        """What the runtime itself knows of a running one: pid, status, bundle."""
        done = machine.run([self.path, "--root", os.path.join(self.at, "state"), "state", name], check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def pid(self, name):
        """Of the first process of a container that runs; 0 where there is none yet."""
        state = self.state(name)
        return state["pid"] if state is not None and state["status"] == "running" else 0

    def close(self):
        """Containers that still run, their control groups and files."""
        state = os.path.join(self.at, "state")
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(state):
                machine.run([self.path, "--root", state, "delete", "--force", name], check=False)
        machine.remove_cgroups(*self._cgroups)
        shutil.rmtree(self.at, ignore_errors=True)


class Crun(Runc):
    """crun refuses v1 with a v2 of controllers beside it: there it gets a mount namespace without the v2."""

    program = "crun"

    def command(self, name, bundle):
        plain = super().command(name, bundle)
        v2 = machine.cgroup_v2()
        if v2 is None or machine.cgroup_v1("memory") is None:
            return plain
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'umount "$0" && exec "$@"', v2, *plain]
