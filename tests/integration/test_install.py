# SPDX-License-Identifier: Apache-2.0
"""`cmake --install` of the build that is tested, what it puts where, and that nothing of it is left after `uninstall`."""
import glob
import os
import platform
import re
import shutil
import subprocess
import tempfile
import unittest

import harness

UNIT = os.path.join(harness.ROOT, "ops", "systemd", "sluice-agent.service")
# What `systemd-analyze security` makes of the unit; 10 is everything that root may do.
EXPOSURE = 2.0


def tree_of(root):
    """Every file below it, from there."""
    return {os.path.join("/", os.path.relpath(os.path.join(at, name), root)) for at, _, names in os.walk(root)
            for name in names}


def run(*command, **kw):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **kw)


class Install(unittest.TestCase):
    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="sluice-install-")
        self.addCleanup(shutil.rmtree, self.room)
        self.root = os.path.join(self.room, "root")
        # A copy of the build's install scripts: the manifest of the developer's own install stays what it is.
        self.build = os.path.join(self.room, "build")
        os.mkdir(self.build)
        for script in glob.glob(os.path.join(harness.BUILD, "**", "cmake_install.cmake"), recursive=True):
            to = os.path.join(self.build, os.path.relpath(script, harness.BUILD))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(script) as f, open(to, "w") as out:
                out.write(re.sub(re.escape(harness.BUILD) + r"(?=/[^\"]*cmake_install\.cmake|/\$\{CMAKE_INSTALL_MAN)",
                                 self.build, f.read()))
        done = run("cmake", "-DCMAKE_INSTALL_PREFIX=/usr", "-P", os.path.join(self.build, "cmake_install.cmake"),
                   env={**os.environ, "DESTDIR": self.root})
        self.assertEqual(0, done.returncode, done.stdout)

    def at(self, path):
        return self.root + path

    def expected(self):
        """From the tree, without asking CMake."""
        out = {"/usr/bin/sluice", "/usr/lib/systemd/system/sluice-agent.service", "/usr/lib/sysusers.d/sluice.conf",
               "/usr/lib/tmpfiles.d/sluice.conf", "/usr/share/bash-completion/completions/sluice",
               "/usr/share/zsh/site-functions/_sluice", "/usr/share/fish/vendor_completions.d/sluice.fish",
               "/usr/share/sluice/prometheus/alerts.yaml"}
        for pattern, to in (("docs/*.[157]", None), ("config/rules.d/*", "/usr/share/sluice/rules.d"),
                            ("schemas/**", "/usr/share/sluice"), ("config/*.yaml", "/etc/sluice"),
                            ("config/*.csv", "/usr/share/sluice")):
            for path in glob.glob(os.path.join(harness.ROOT, pattern), recursive=True):
                name = os.path.basename(path)
                if os.path.isfile(path):
                    to_here = to or f"/usr/share/man/man{name[-1]}"
                    if pattern == "schemas/**":
                        name = os.path.relpath(path, harness.ROOT)
                    out.add(f"{to_here}/{name}")
        return out

    def test_exactly_what_is_expected_is_there(self):
        self.assertEqual(sorted(self.expected()), sorted(tree_of(self.root)))
        for folder in ("rules.d", "conf.d"):
            self.assertTrue(os.path.isdir(self.at(f"/etc/sluice/{folder}")))

    def test_the_program_runs_and_takes_the_shipped_configuration(self):
        done = run(self.at("/usr/bin/sluice"), "--version")
        self.assertEqual(0, done.returncode, done.stdout)
        lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.assertEqual("sluice", next(iter(lines)))
        self.assertRegex(lines.pop("sluice"), r"^\d+\.\d+\.\d+$")
        self.assertRegex(lines.pop("machine"), rf"^{platform.machine()}, (dynamic, glibc [\d.]+|static, musl)$")
        self.assertRegex(lines.pop("layout"), r"^\d+_[0-9a-f]{16}$")
        self.assertLessEqual({"avro-c", "jansson", "libbpf", "libcap", "libcurl", "libdeflate", "libelf", "libevent", "librdkafka",
                              "libsmartcols", "libuuid", "libyaml", "openssl", "pcre2", "uthash"}, set(lines))
        for library, version in lines.items():
            self.assertRegex(version, r"^\d[\w.+-]*$", library)
        done = run(self.at("/usr/bin/sluice"), "check", "-c", self.at("/etc/sluice/sluice.yaml"))
        self.assertEqual(0, done.returncode, done.stdout)

    def test_what_the_unit_names_is_installed(self):
        with open(self.at("/usr/lib/systemd/system/sluice-agent.service")) as f:
            named = set(re.findall(r"(?<=[= ])/(?:usr|etc)/[^ \n]+", re.sub(r"(?m)^#.*", "", f.read())))
        self.assertEqual({"/usr/bin/sluice", "/etc/sluice/sluice.yaml"}, named)
        self.assertLessEqual(named, tree_of(self.root))

    def test_systemd_finds_no_fault_with_the_unit(self):
        # The same unit over the installed program: this machine has the targets that it names, and no sluice.
        unit = os.path.join(self.room, "sluice-agent.service")
        with open(UNIT) as f, open(unit, "w") as to:
            to.write(f.read().replace("/usr/bin/sluice", self.at("/usr/bin/sluice")))
        done = run("systemd-analyze", "verify", "--man=no", unit)
        self.assertEqual((0, ""), (done.returncode, done.stdout))
        done = run("systemd-analyze", "security", "--offline=true", f"--threshold={round(EXPOSURE * 10)}", UNIT)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertRegex(done.stdout, r"Overall exposure level for sluice-agent\.service: \d")

    def test_the_account_is_made(self):
        done = run("systemd-sysusers", f"--root={self.root}")
        self.assertEqual(0, done.returncode, done.stdout)
        with open(self.at("/etc/passwd")) as f:
            self.assertRegex(f.read(), r"(?m)^sluice:[^:]*:\d+:\d+:sluice agent:/var/lib/sluice:/usr/sbin/nologin$")

    def test_uninstall_leaves_what_the_user_added_and_no_more(self):
        own = self.at("/etc/sluice/rules.d/mine.yaml")
        with open(own, "w"):
            pass
        for left in ({"/etc/sluice/rules.d/mine.yaml"}, set()):
            done = run("cmake", f"-DMANIFEST={self.build}/install_manifest.txt", "-P",
                       os.path.join(harness.ROOT, "cmake", "Uninstall.cmake"), env={**os.environ, "DESTDIR": self.root})
            self.assertEqual(0, done.returncode, done.stdout)
            self.assertEqual(left, tree_of(self.root))
            if left:
                os.remove(own)
        self.assertEqual([], [at for at, _, _ in os.walk(self.root) if at.endswith("/sluice")])


if __name__ == "__main__":
    harness.main()
