# SPDX-License-Identifier: Apache-2.0
"""A dockerd for one test: its own socket, folders and control groups, no network of its own; gone at the end."""
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

# Debian's, or docker's own package; a client elsewhere in PATH may have no daemon beside it.
DOCKERD = shutil.which("dockerd", path="/usr/sbin:/usr/bin")
DOCKER = "/usr/bin/docker"


class Dockerd:
    """`with Dockerd() as d: d("run", …)`. SkipTest where it cannot run."""

    def __init__(self):
        if os.getuid() != 0:
            raise unittest.SkipTest("dockerd needs root")
        if DOCKERD is None or not os.access(DOCKER, os.X_OK):
            raise unittest.SkipTest("dockerd is not installed; run ./dev/install test")
        self.at = tempfile.mkdtemp(prefix="sluice-docker-")
        self.socket = os.path.join(self.at, "d.sock")
        self.cgroup = "/sluice-test-" + os.path.basename(self.at)
        self.env = {**os.environ, "DOCKER_HOST": f"unix://{self.socket}", "DOCKER_BUILDKIT": "1",
                    "DOCKER_CONFIG": os.path.join(self.at, "client"),
                    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
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
        with open(os.path.join(self.at, "d.log"), errors="replace") as f:
            end = f.read()[-800:]
        self.close()
        raise unittest.SkipTest(f"dockerd does not run here: {end}")

    def __exit__(self, *exc):
        self.close()

    def __call__(self, *args, check=True, quiet=False, timeout=300, **kw):
        """`docker ARGS`; its output as text in .stdout, both streams together."""
        done = subprocess.run([DOCKER, *map(str, args)], env=self.env, timeout=timeout, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if quiet else subprocess.STDOUT, **kw)
        if check and done.returncode != 0:
            raise AssertionError(f"docker {' '.join(map(str, args))}: {done.returncode}\n{done.stdout}")
        return done

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
            self.daemon.send_signal(signal.SIGTERM)
            try:
                self.daemon.wait(20)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
        with open("/proc/mounts") as f:
            mounts = [line.split()[1] for line in f if line.split()[1].startswith(self.at + "/")]
        for mount in reversed(mounts):
            subprocess.run(["umount", "-l", mount], stderr=subprocess.DEVNULL)
        # Ours by name; buildkit makes "docker" by itself, which is only removed when nothing is in it.
        for name in (self.cgroup, "/docker"):
            for controller in os.listdir("/sys/fs/cgroup"):
                for at, _, _ in os.walk(os.path.join("/sys/fs/cgroup", controller) + name, topdown=False):
                    with contextlib.suppress(OSError):
                        os.rmdir(at)
            for at, _, _ in os.walk("/sys/fs/cgroup" + name, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(at)
        shutil.rmtree(self.at, ignore_errors=True)
