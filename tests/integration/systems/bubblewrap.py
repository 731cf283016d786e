# SPDX-License-Identifier: Apache-2.0
"""bubblewrap: a sandbox of namespaces alone. It has no id, no name and no control group of its own."""
from systems import machine


def run(root, args, uid=None):
    """Runs a program on a root, in namespaces of its own; the exit code is the program's."""
    bwrap, = machine.need("bwrap")
    kw = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    return machine.run([bwrap, "--ro-bind", root, "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent",
                        *args], check=False, **kw)
