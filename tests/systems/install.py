#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""install.py [SYSTEM…]: from a guest that has nothing: install, run the agent, upgrade over a storm with no program lost,
the same back, and remove. By install.sh, under the guest's own systemd.

It takes what dev/static and dev/packages have made. The second release is the same program with the next number in it.
"""
import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
ARCH = platform.machine()
HERE = os.path.dirname(os.path.realpath(__file__))


def need(*command, **kw):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, **kw)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: ended with {done.returncode}")


def next_version(version):
    """Of as many characters."""
    major, minor, patch = version.split(".")
    other = str(int(patch) + 1 if patch[-1] != "9" else int(patch) - 1)
    if len(other) != len(patch):
        sys.exit(f"no other version has as many characters as {version}")
    return f"{major}.{minor}.{other}"


def far_version(version):
    """Newer than those two, of as many characters."""
    major, minor, patch = version.split(".")
    other = str(int(minor) + 1)
    if len(other) != len(minor):
        sys.exit(f"no newer version has as many characters as {version}")
    return f"{major}.{other}.{patch}"


def renamed(program, to, version, other):
    """The program with another version in it: where its text is the version alone."""
    with open(program, "rb") as f:
        data = f.read()
    changed = re.sub(rb"(?<![0-9.])" + re.escape(version.encode()) + rb"(?=\0)", other.encode(), data)
    if changed == data:
        sys.exit(f"{program} does not have its version {version} as text")
    with open(to, "wb") as f:
        f.write(changed)
    os.chmod(to, 0o755)


def release(mirror, version, build, program, key):
    to = os.path.join(mirror, version)
    with tempfile.TemporaryDirectory(dir=os.path.join(ROOT, "build")) as room:
        # The build's files with that program: packed by what makes the packages that users get.
        copy = os.path.join(room, "build")
        shutil.copytree(build, copy, symlinks=True, ignore=shutil.ignore_patterns("*.o", "*.a"))
        shutil.copy(program, os.path.join(copy, "sluice"))
        need(os.path.join(ROOT, "dev", "packages"), "--build", copy, "--version", version, "--to", to, "--only", "deb", "--only",
             "tree", "--only", "program", ARCH, stdout=subprocess.DEVNULL)
    shutil.copy(os.path.join(ROOT, "ops/install/install.sh"), to)
    sign(to, version, key)


def sign(to, version, key):
    with open(os.path.join(to, "SHA256SUMS"), "w") as sums:
        for name in sorted(os.listdir(to)):
            if name != "SHA256SUMS":
                with open(os.path.join(to, name), "rb") as f:
                    sums.write(f"{hashlib.sha256(f.read()).hexdigest()}  {name}\n")
    need("minisign", "-S", "-s", key, "-m", os.path.join(to, "SHA256SUMS"), "-t", f"sluice {version}", stdout=subprocess.DEVNULL)


def bad_release(share, version, build, program, key):
    """Its program passes for sluice, but its agent is killed after some seconds: tests/integration/update_unwell.c."""
    need("cmake", "--build", build, "--target", "update_unwell", stdout=subprocess.DEVNULL,
         env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": os.path.join(ROOT, "build", "static", "cache")})
    with open(os.path.join(build, "tests", "integration", "update_unwell"), "rb") as f:
        unwell = f.read()
    shutil.copy(program, os.path.join(share, "real"))
    for folder in (version, "latest"):
        to = os.path.join(share, "bad", folder)
        os.makedirs(to)
        with open(os.path.join(to, f"sluice-{version}-linux-{ARCH}"), "wb") as f:
            f.write(unwell + b"\0" * 1024 + b"\nREAL /mnt/share/real dies\n")
        sign(to, version, key)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", default=f"{ROOT}/build/static/{ARCH}/build", help="a build of cmake; that of dev/static")
    options.add_argument("--guests", default=f"{ROOT}/dev/guests", help=argparse.SUPPRESS)
    options.add_argument("--programs", type=int, default=500, help="of each storm, at least")
    options.add_argument("systems", nargs="*", default=["debian-12"])
    options = options.parse_args()
    program = os.path.join(options.build, "sluice")
    version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
    other = next_version(version)
    old, new = sorted((version, other), key=lambda v: [int(n) for n in v.split(".")])
    failed = []
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="install-", dir=os.path.join(ROOT, "build")) as share:
        key, public = os.path.join(share, "secret"), os.path.join(share, "release.pub")
        need("minisign", "-G", "-W", "-p", public, "-s", key, stdout=subprocess.DEVNULL)
        mirror = os.path.join(share, "mirror")
        another = os.path.join(share, "sluice")
        renamed(program, another, version, other)
        release(mirror, version, options.build, program, key)
        release(mirror, other, options.build, another, key)
        bad = far_version(version)
        renamed(program, another, version, bad)
        bad_release(share, bad, options.build, another, key)
        os.remove(key)
        os.remove(another)
        shutil.copytree(os.path.join(mirror, new), os.path.join(mirror, "latest"))
        shutil.copy(os.path.join(HERE, "install_guest.sh"), share)
        shutil.copy(os.path.join(ROOT, "ops/cloud-init/user-data.yaml"), share)
        script = os.path.join(share, "run.sh")
        for system in options.systems:
            for method in ("package", "file"):
                with open(script, "w") as f:
                    f.write(f"#!/bin/sh\nexec sh /mnt/share/install_guest.sh {old} {new} {method} {options.programs}\n")
                print(f"== {system}, method {method}", flush=True)
                if subprocess.run([options.guests, "run", system, script], env={"LIMIT": "1800", **os.environ, "SHARE": share},
                                  stdin=subprocess.DEVNULL).returncode != 0:
                    failed.append(f"{system} by {method}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
