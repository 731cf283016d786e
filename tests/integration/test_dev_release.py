# SPDX-License-Identifier: Apache-2.0
"""dev/release in a small repository of its own, whose dev/static and dev/packages make small files: what it refuses, what
it compares, and that ops/install/install.sh takes what it makes. The real builds are the nightly part `release-twice`."""
import os
import shutil
import tarfile
import tempfile
import time
import unittest

import harness
import release_folder as made

COPIED = ("dev/release", "tests/lint/version.py", "tests/lint/tree.py", "ops/install/install.sh")
STATIC = """#!/bin/sh
set -e
for arch; do
	mkdir -p build/static/$arch build/sources/files
	echo "sbom $arch" >build/static/$arch/sluice.spdx.json
	echo source >build/sources/files/libelf.tar
	[ ! -e unpinned ] || cp unpinned build/static/$arch/unpinned
done
"""
# `bad` names what differs: it has the path of the build in it.
PACKAGES = """#!/bin/sh
set -e
mkdir -p build/packages
v=$(sed -n 's/^project(sluice VERSION \\([0-9.]*\\) .*/\\1/p' CMakeLists.txt)
cd build/packages
for arch; do
	case $arch in x86_64) deb=amd64 ;; *) deb=arm64 ;; esac
	for f in sluice-agent_${v}_$deb.deb sluice-agent-$v-1.$arch.rpm sluice-$v-oci-$arch.tar; do echo "$f $SOURCE_DATE_EPOCH" >$f; done
	mkdir -p t/usr/bin t/etc/sluice t/usr/lib/sysusers.d
	echo 'u sluice - "sluice agent" /var/lib/sluice' >t/usr/lib/sysusers.d/sluice.conf
	cp ../../program t/usr/bin/sluice
	cp t/usr/bin/sluice sluice-$v-linux-$arch
	tar -C t --sort=name --mtime=@0 --owner=0 --group=0 -cf - . | gzip -n >sluice-$v-linux-$arch.tar.gz
	rm -r t
done
echo w >sluice_analytics-$v-py3-none-any.whl
echo s >sluice_analytics-$v.tar.gz
if [ -e ../../bad ]; then
	for f in $(cat ../../bad); do
		case $f in -*) if [ "${PWD##*/one/*}" = "" ]; then rm ${f#-}; fi ;; *) pwd >>$f ;; esac
	done
fi
"""
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- Something that users notice.\n\n## [1.2.2] - 2026-01-01\n\n- Before.\n"


class Release(unittest.TestCase):
    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="sluice-release-", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, self.room)
        os.chmod(self.room, 0o755)
        self.repo, self.out = os.path.join(self.room, "repo"), os.path.join(self.room, "mirror")
        self.key = made.Key(self.room)
        for path in COPIED:
            os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
            shutil.copy(os.path.join(harness.ROOT, path), self.at(path))
        self.put("CMakeLists.txt", "project(sluice VERSION 1.2.3 LANGUAGES C)\n")
        self.put("analytics/pyproject.toml", 'version = "1.2.3"\n')
        self.put("CHANGELOG.md", CHANGELOG)
        self.put("dev/static", STATIC, 0o755)
        self.put("dev/packages", PACKAGES, 0o755)
        self.put("program", made.PROGRAM.replace("@VERSION@", "1.2.3"), 0o755)
        self.put(".gitignore", "build/\n__pycache__/\n")
        made.need("git", "init", "-q", self.repo)
        self.commit()

    def at(self, path):
        return os.path.join(self.repo, path)

    def put(self, path, text, mode=0o644):
        made.write(self.at(path), text, mode)

    def commit(self):
        for command in (["add", "-A"], ["commit", "-q", "-m", "x"]):
            made.need("git", "-C", self.repo, "-c", "user.name=t", "-c", "user.email=t@t.example", *command)

    def release(self, *arguments, version="1.2.3", key=True):
        names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME=t", "EMAIL=t@t.example")]
        return made.run("env", *names, self.at("dev/release"), version, *(["--key", self.key.secret] if key else []), "--out",
                        self.out, *arguments)

    def git(self, *arguments):
        return made.need("git", "-C", self.repo, *arguments).strip()

    def refused(self, expected, *arguments, status=1, **kw):
        done = self.release(*arguments, **kw)
        self.assertEqual(status, done.returncode, done.stdout)
        self.assertIn(expected, done.stdout)
        self.assertEqual([], [n for n in os.listdir(self.out)] if os.path.isdir(self.out) else [], done.stdout)
        self.assertEqual("x", self.git("log", "-1", "--format=%s"))
        return done.stdout

    def folder(self):
        return {n: os.path.join(self.out, "1.2.3", n) for n in os.listdir(os.path.join(self.out, "1.2.3"))}

    def test_all_of_it(self):
        done = self.release()
        self.assertEqual(0, done.returncode, done.stdout)
        there = self.folder()
        self.assertEqual(
            {"SHA256SUMS", "SHA256SUMS.minisig", "install.sh", "sluice-1.2.3-notes.md", "sluice-1.2.3-source.tar.gz",
             "sluice-1.2.3-third-party.tar", "sluice_analytics-1.2.3-py3-none-any.whl", "sluice_analytics-1.2.3.tar.gz",
             "sluice-agent_1.2.3_amd64.deb", "sluice-agent_1.2.3_arm64.deb"}
            | {name.replace("ARCH", arch) for arch in ("x86_64", "aarch64") for name in (
                "sluice-agent-1.2.3-1.ARCH.rpm", "sluice-1.2.3-linux-ARCH", "sluice-1.2.3-linux-ARCH.tar.gz",
                "sluice-1.2.3-linux-ARCH.spdx.json", "sluice-1.2.3-oci-ARCH.tar")}, set(there))
        self.assertEqual("1.2.3", os.readlink(os.path.join(self.out, "latest")))
        with open(there["SHA256SUMS"]) as f:
            sums = dict(reversed(line.split()) for line in f)
        self.assertEqual({n: made.sha256(p) for n, p in there.items() if not n.startswith("SHA256SUMS")}, sums)
        said = made.need("minisign", "-VQm", there["SHA256SUMS"], "-p", self.key.public)
        self.assertEqual("sluice 1.2.3", said.strip())
        with open(there["sluice-1.2.3-notes.md"]) as f:
            notes = f.read()
        self.assertIn("Something that users notice.", notes)
        self.assertNotIn("Before.", notes)
        with tarfile.open(there["sluice-1.2.3-third-party.tar"]) as tar:
            self.assertIn("sluice-1.2.3-third-party/libelf.tar", tar.getnames())
        with tarfile.open(there["sluice-1.2.3-source.tar.gz"]) as tar:
            self.assertIn("sluice-1.2.3/CMakeLists.txt", tar.getnames())
            released = tar.extractfile("sluice-1.2.3/CHANGELOG.md").read().decode()
        # The section of the version is in what is released, and in the commit that it is of.
        today = time.strftime("%Y-%m-%d", time.gmtime(int(self.git("log", "-1", "--format=%ct"))))
        self.assertEqual(CHANGELOG.replace("[Unreleased]\n", f"[Unreleased]\n\n## [1.2.3] - {today}\n"), released)
        self.assertEqual(released, open(self.at("CHANGELOG.md")).read())
        self.assertEqual(["release: sluice 1.2.3", "x"], self.git("log", "--format=%s").splitlines())
        self.assertEqual("", self.git("status", "--porcelain"))
        for text in (self.key.text, "git tag -s v1.2.3", "upload"):
            self.assertIn(text, done.stdout)
        self.assertEqual("", self.git("tag"))
        self.assertEqual([], os.listdir(self.at("build")))
        # A second time: what is released is not changed.
        again = self.release()
        self.assertEqual(1, again.returncode)
        self.assertIn("is there already", again.stdout)
        # It can be installed.
        root = made.Root(self.room)
        root.remove("/etc/sluice", "/var/lib/sluice", "/usr/bin/sluice", "/usr/local/bin/sluice")
        done = root.run("dash", "/mnt/1.2.3/install.sh", "--method", "file", "--key", self.key.text)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertEqual("sluice 1.2.3", root.run("/usr/bin/sluice", "--version").stdout.strip())

    def test_asked_for_a_tag(self):
        done = self.release("--tag", "--arch", "x86_64")
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertEqual("v1.2.3", self.git("tag"))
        self.assertEqual(self.git("rev-parse", "HEAD"), self.git("rev-parse", "v1.2.3^{commit}"))
        self.assertFalse([n for n in self.folder() if "aarch64" in n])

    def test_a_rehearsal(self):
        self.put("unpinned", "libelf 1.0\n")
        self.commit()
        self.refused("built of sources that are not pinned: libelf 1.0")
        done = self.release("--unsigned", key=False)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertNotIn("SHA256SUMS.minisig", self.folder())
        self.assertIn("A rehearsal", done.stdout)
        self.assertEqual(CHANGELOG, open(self.at("CHANGELOG.md")).read())
        self.assertEqual("", self.git("status", "--porcelain"))

    def test_a_changelog_that_has_it_already(self):
        """As after a release whose folder was lost: no second section."""
        text = CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n## [1.2.3] - 2026-02-01\n")
        self.put("CHANGELOG.md", text)
        self.commit()
        done = self.release("--arch", "x86_64")
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertEqual(text, open(self.at("CHANGELOG.md")).read())
        self.assertEqual("x", self.git("log", "-1", "--format=%s"))
        with open(self.folder()["sluice-1.2.3-notes.md"]) as f:
            self.assertIn("Something that users notice.", f.read())

    def test_two_builds_that_differ(self):
        self.put("bad", "sluice-agent_1.2.3_amd64.deb sluice-1.2.3-linux-aarch64 -sluice_analytics-1.2.3.tar.gz\n")
        self.commit()
        said = self.refused("not the same in both builds:")
        named = said.split("both builds:")[1].split("dev/release:")[0].split()
        self.assertEqual(["packages/sluice-1.2.3-linux-aarch64", "packages/sluice-agent_1.2.3_amd64.deb",
                          "packages/sluice_analytics-1.2.3.tar.gz"], named)

    def test_something_is_not_made(self):
        self.put("dev/packages", PACKAGES + "rm *.rpm\n", 0o755)
        self.commit()
        self.refused("dev/packages did not make sluice-agent-1.2.3-1.x86_64.rpm")
        self.put("dev/packages", "#!/bin/sh\necho no compiler\nexit 1\n", 0o755)
        self.commit()
        self.assertIn("no compiler", self.refused("the build failed"))

    def test_not_a_commit_to_release(self):
        self.put("new file", "x")
        self.refused("the tree is not clean")
        os.remove(self.at("new file"))
        self.refused("CMakeLists.txt: version 1.2.3, where the release is 1.2.4", version="1.2.4")
        self.put("CHANGELOG.md", CHANGELOG.replace("[1.2.2]", "[1.10.0]"))
        self.commit()
        self.refused("CHANGELOG.md has 1.10.0: 1.2.3 is not newer")
        self.put("CHANGELOG.md", CHANGELOG.replace("[1.2.2]", "[1.2.3]"))
        self.commit()
        self.refused("CHANGELOG.md has 1.2.3 already, and entries below [Unreleased]")
        self.put("CHANGELOG.md", CHANGELOG.replace("- Something that users notice.", "Nothing."))
        self.commit()
        self.refused("no entry below [Unreleased]")

    def test_wrong_usage(self):
        self.refused("three numbers", version="1.2", status=2)
        self.refused("three numbers", version="v1.2.3", status=2)
        self.refused("--key SECRET_KEY, or --unsigned", key=False, status=2)
        self.refused("one or the other", "--unsigned", status=2)
        self.refused("there are x86_64 and aarch64", "--arch", "riscv64", status=2)
        self.refused("cannot be read", "--key", "/nowhere")


if __name__ == "__main__":
    harness.main()
