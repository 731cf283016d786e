# SPDX-License-Identifier: Apache-2.0
"""The unit under a booted systemd, of a system that has nothing of sluice before: see unit_in_guest.py, which runs there.

test_unit.py [SYSTEM…]: debian-12 unless named. What is installed is the package in build/packages, which ./dev/packages
makes; where there is none, the tree of `cmake --install` with the libraries that its program needs, which only a system
of this machine's own release has. KERNEL=7.2 boots another kernel.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("SLUICE_BUILD") or os.path.join(ROOT, "build", "release"))
# What `systemd-analyze security` makes of the unit; 10 is everything that root may do.
EXPOSURE = "2.0"
# What the system's own packages have; the rest of what the program needs is handed in with it.
SCRIPT = """#!/bin/bash
set -e
cd /mnt/share
if [ -e tree ]; then
	cp -R --no-preserve=ownership tree/. /
	for library in libraries/*; do
		[ -e "/usr/lib/x86_64-linux-gnu/${library##*/}" ] || cp "$library" /usr/lib/x86_64-linux-gnu/
	done
	ldconfig
	systemd-sysusers
	systemctl daemon-reload
	systemctl enable sluice-agent.service
else
	dpkg -i ./*.deb
fi
EXPOSURE=%s exec python3 -B unit_in_guest.py %s
"""


def run(*command, **kw):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **kw)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def program_and_unit(share, system):
    """Puts into the folder what is to be installed."""
    packages = glob.glob(os.path.join(ROOT, "build", "packages", "sluice-agent_*_amd64.deb"))
    if len(packages) > 1:
        raise SystemExit(f"build/packages has more than one package: {' '.join(packages)}")
    if packages:
        shutil.copy(packages[0], share)
        return os.path.basename(packages[0])
    if system != "debian-12":
        raise SystemExit(f"{system} has other libraries than the program of {BUILD}; run: ./dev/packages x86_64")
    tree = os.path.join(share, "tree")
    run("cmake", "--install", BUILD, "--prefix", "/usr", env={**os.environ, "DESTDIR": tree})
    shutil.copy(os.path.join(ROOT, "ops", "systemd", "sluice-agent.service"), os.path.join(tree, "usr", "lib", "systemd", "system"))
    os.mkdir(os.path.join(share, "libraries"))
    for path in re.findall(r"=> (/\S+)", run("ldd", os.path.join(BUILD, "sluice"))):
        shutil.copy(path, os.path.join(share, "libraries"))
    return f"the tree of {BUILD}"


def check(system, cases):
    with tempfile.TemporaryDirectory(prefix="sluice-unit-") as room:
        share = os.path.join(room, "share")
        os.mkdir(share)
        print(f"{system}: {program_and_unit(share, system)}", flush=True)
        shutil.copy(os.path.join(HERE, "unit_in_guest.py"), share)
        script = os.path.join(room, "script")
        with open(script, "w") as f:
            f.write(SCRIPT % (EXPOSURE, " ".join(cases)))
        return subprocess.run([os.path.join(ROOT, "dev", "guests"), "run", system, script],
                              env={**os.environ, "SHARE": share, "LIMIT": "1500"}).returncode


if __name__ == "__main__":
    cases = [word for word in sys.argv[1:] if word.startswith("Unit.")]
    failed = [system for system in [word for word in sys.argv[1:] if word not in cases] or ["debian-12"]
              if check(system, cases) != 0]
    if failed:
        raise SystemExit(f"failed: {' '.join(failed)}")
