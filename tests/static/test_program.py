# SPDX-License-Identifier: Apache-2.0
"""What dev/static has built: it needs nothing of the system, says what it is made of, and sees what it ran exactly.

SLUICE names the program; its bill of materials and the licences are beside it.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

import verdict  # noqa: E402

SLUICE = os.environ["SLUICE"]
FOLDER = os.path.dirname(SLUICE)
STACK_BYTES = 8 << 20  # of a thread, as with glibc; musl's own default is 128 KiB


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def rows(table):
    with open(os.path.join(ROOT, "dev", "static.d", table)) as f:
        return [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]


def sources():
    """{name: its row} of what is linked."""
    return {row[0]: row for row in rows("sources.tsv")}


class Program(unittest.TestCase):
    def test_it_needs_no_library(self):
        headers = run("readelf", "--wide", "--program-headers", "--dynamic", SLUICE).stdout
        self.assertIn("There is no dynamic section", headers)
        self.assertNotIn("INTERP", headers)
        stack = re.search(r"GNU_STACK +(?:0x\w+ +){4}0x(\w+) +(\S+)", headers)
        self.assertEqual((STACK_BYTES, "RW"), (int(stack[1], 16), stack[2]))

    def test_it_runs_where_there_is_nothing_else(self):
        with tempfile.TemporaryDirectory() as room:
            shutil.copy(SLUICE, os.path.join(room, "sluice"))
            shutil.copytree(os.path.join(ROOT, "config", "rules.d"), os.path.join(room, "rules.d"))
            with open(os.path.join(room, "sluice.yaml"), "w") as f:
                f.write("lake: /lake\nrules: /rules.d\n")
            for args, says in ((["--version"], "musl"), (["--help"], "Usage: sluice"), (["check", "-c", "/sluice.yaml"], "")):
                done = run("chroot", room, "/sluice", *args)
                self.assertEqual(0, done.returncode, done.stdout)
                self.assertIn(says, done.stdout)

    def test_no_path_of_its_build_is_in_it(self):
        with open(SLUICE, "rb") as f:
            found = re.findall(rb"[^\0]*" + re.escape(ROOT.encode()) + rb"[^\0]*", f.read())
        self.assertEqual([], found[:5])

    def test_it_sees_what_it_ran_exactly(self):
        done = run(SLUICE, "doctor", "--self-test")
        self.assertEqual(0, done.returncode, done.stdout)


class Made(unittest.TestCase):
    def bill(self):
        """{name: package}, and {name: the names of what it contains}."""
        with open(os.path.join(FOLDER, "sluice.spdx.json")) as f:
            document = json.load(f)
        named = {p["SPDXID"]: p["name"] for p in document["packages"]}
        within = {}
        for r in document["relationships"]:
            if r["relationshipType"] == "CONTAINS":
                within.setdefault(named[r["spdxElementId"]], []).append(named[r["relatedSpdxElement"]])
        self.assertEqual(["LicenseRef-fnv1a"], [x["licenseId"] for x in document["hasExtractedLicensingInfos"]])
        return {p["name"]: p for p in document["packages"]}, within

    def test_what_librdkafka_brings_along_is_named(self):
        packages, within = self.bill()
        self.assertEqual(["librdkafka"], list(within))
        files = set(os.listdir(os.path.join(FOLDER, "licenses", "librdkafka")))
        self.assertEqual({"LICENSE", *("LICENSE." + name for name in within["librdkafka"])}, files)
        # Each file of code that is not librdkafka's own: what it is of.
        others = {"cJSON": "cjson", "crc32c": "crc32c", "rdcrc32": "pycrc", "rdfnv1a": "fnv1a", "rdhdrhistogram": "hdrhistogram",
                  "lz4": "lz4", "lz4frame": "lz4", "lz4hc": "lz4", "rdxxhash": "lz4", "rdmurmur2": "murmur2", "snappy": "snappy",
                  "pb_common": "nanopb", "pb_decode": "nanopb", "pb_encode": "nanopb", "tinycthread": "tinycthread", "regexp": "regexp",
                  "tinycthread_extra": None, "common.pb": "opentelemetry", "metrics.pb": "opentelemetry", "resource.pb": "opentelemetry"}
        compiled = run("ar", "t", os.path.join(FOLDER, "prefix", "lib", "librdkafka.a")).stdout.replace(".o\n", "\n").split()
        strange = [name for name in compiled if name not in others and not re.match("rd(kafka|[a-z0-9]+$)", name)]
        self.assertEqual([], strange)
        self.assertEqual({others[name] for name in compiled if others.get(name)} | {"queue"}, set(within["librdkafka"]))
        for row in rows("bundled.tsv"):
            self.assertEqual(sources()[row[0]][1], row[1], f"bundled.tsv: look at the licences of the new {row[0]} again")
        licence = packages["librdkafka"]["licenseConcluded"].split(" AND ")
        self.assertEqual({"BSD-2-Clause", "BSD-3-Clause", "MIT", "Zlib", "Apache-2.0"}, set(licence))
        self.assertLess(set(licence), set(packages["sluice"]["licenseConcluded"].split(" AND ")))

    def test_notices_come_with_the_licences(self):
        with open(os.path.join(FOLDER, "licenses", "avro-c", "NOTICE")) as f:
            self.assertIn("Apache Software Foundation", f.read())
        for folder in ("libsmartcols", "libuuid"):
            self.assertIn(folder + "-COPYING", os.listdir(os.path.join(FOLDER, "licenses", "util-linux")))

    def test_versions_licences_and_bill_of_materials_name_all_that_is_linked(self):
        version = run(SLUICE, "--version").stdout
        packages, within = self.bill()
        self.assertEqual({"sluice", "musl", "zig-compiler-rt", *sources(), *sum(within.values(), [])}, set(packages))
        for name in sources():
            number = packages[name]["versionInfo"].split("-")[0]  # 2.1.13 of 2.1.13-stable
            self.assertIn(f" {number}\n", version, name)
        for name in packages.keys() - {"sluice", *sum(within.values(), [])}:
            self.assertTrue(os.listdir(os.path.join(FOLDER, "licenses", name)), name)
        digest = run("sha256sum", SLUICE).stdout.split()[0]
        self.assertEqual([{"algorithm": "SHA256", "checksumValue": digest}], packages["sluice"]["checksums"])


if __name__ == "__main__":
    sys.exit(verdict.main())
