# SPDX-License-Identifier: Apache-2.0
"""A container's root, made of this machine's own programs and the libraries that they link."""
import os
import re
import shutil
import subprocess

from systems import machine

PROGRAMS = ("sh", "true", "false", "sleep", "cat", "id", "dd")


def make_root(into, programs=PROGRAMS):
    """Merged-/usr; each program is /usr/bin/NAME there, also if it is a link here. The folder."""
    for folder in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp"):
        os.makedirs(os.path.join(into, folder))
    os.chmod(into, 0o755)
    for folder in ("tmp", "var/tmp"):
        os.chmod(os.path.join(into, folder), 0o1777)
    for link in ("bin", "lib", "lib64", "sbin"):
        os.symlink("usr/" + link, os.path.join(into, link))
    for name in programs:
        path = shutil.which(name, path=machine.PATH)
        if path is None:
            raise AssertionError(f"{name} is not here; run ./dev/install test")
        shutil.copy(os.path.realpath(path), os.path.join(into, "usr/bin", name))
        listed = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for library in re.findall(r"/\S+", listed):  # none where it is static
            to = into + library
            if not os.path.exists(to):
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy(library, to)
    for name, text in (("passwd", "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"),
                       ("group", "root:x:0:\nnogroup:x:65534:\n"), ("hosts", "127.0.0.1 localhost\n"),
                       ("resolv.conf", "")):
        with open(os.path.join(into, "etc", name), "w") as f:
            f.write(text)
    return into


def make_tar(root, path):
    """The same as one layer of an image."""
    machine.run(["tar", "-C", root, "-cf", path, "."])
    return path
