# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: the build that they test, running sluice, and reading its lake.

The build is build/release, the binary that users get; $SLUICE_BUILD names another. The lake is read with
fastavro, which knows nothing of sluice. Values are as in the file: times are integers.
"""
import ctypes
import datetime
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import fastavro

import verdict

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(os.environ.get("SLUICE_BUILD") or os.path.join(ROOT, "build", "release"))
SLUICE = os.path.abspath(os.environ.get("SLUICE") or os.path.join(BUILD, "sluice"))


def built(name):
    """The path of a program that tests/integration/CMakeLists.txt builds for the tests."""
    path = os.path.join(BUILD, "tests", "integration", name)
    if not os.path.exists(path):
        raise AssertionError(f"{path} is not built; run: cmake --preset release && cmake --build --preset release")
    return path


# How many times longer than usual to wait for what has to come: tests/kernels sets it, whose machines are emulated.
PATIENCE = int(os.environ.get("PATIENCE", "1"))
IS_EMULATED = os.environ.get("EMULATED") == "1"  # set there too: what takes microseconds elsewhere takes milliseconds

TOPICS = ["sluice." + t for t in ("program", "usage", "task", "run", "host", "finding", "agent")]


def plain_environment(**extra):
    """Ours without what sudo put there: COMMAND then runs as root, as the tests expect."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
    env.update(extra)
    return env


ANOTHER_BOOT = "0d1f1f6e-95a5-4d0b-8a4e-3b7c1f2a9e11"


def under_boot(room, boot_id):
    """What goes before a command line for which the host's boot has that id. As root."""
    path = os.path.join(room, "boot_id")
    with open(path, "w") as f:
        f.write(boot_id + "\n")
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"', path]


def run_sluice(args, sluice=None, timeout=120, env=None, **kw):
    """`sluice ARGS`; stdout and stderr as text by default."""
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    kw.setdefault("stdin", subprocess.DEVNULL)
    kw.setdefault("text", True)
    kw.setdefault("errors", "surrogateescape")
    return subprocess.run([sluice or SLUICE, *map(str, args)], timeout=timeout * PATIENCE, env=env or plain_environment(), **kw)


def lake_files(lake):
    """Every file under it but indexes of runs, as (path, is a finished container file)."""
    for at, _, names in os.walk(lake):
        for name in sorted(names):
            path = os.path.join(at, name)
            if not name.endswith(".runs"):
                yield path, name.endswith(".avro")


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def _plain(value):
    """fastavro turns timestamp-micros into datetime; the tests count microseconds."""
    if isinstance(value, datetime.datetime):
        d = value - _EPOCH
        return (d.days * 86400 + d.seconds) * 1000000 + d.microseconds
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def read_lake(lake):
    """{topic: [record]}, each in the order of agent and seq."""
    topics = {}
    for path, finished in lake_files(lake):
        if not finished:
            continue
        topic = os.path.relpath(path, lake).split(os.sep)[0]
        with open(path, "rb") as f:
            topics.setdefault(topic, []).extend(_plain(r) for r in fastavro.reader(f))
    for records in topics.values():
        records.sort(key=lambda r: (r["agent_id"], r["seq"]))
    return topics


def read_cat(lake, topic, sluice=None, raw=True):
    """The same topic by `sluice cat`, in the same order."""
    args = ["cat", "--topic", topic] + (["--raw"] if raw else []) + [lake]
    done = run_sluice(args, sluice=sluice)
    if done.returncode != 0:
        raise AssertionError(f"sluice {' '.join(map(str, args))}: exit {done.returncode}: {done.stderr}")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    records.sort(key=lambda r: (r["agent_id"], r["seq"]))
    return records


def seq_holes(records):
    """What is wrong with the numbering of one topic: [sentence]."""
    wrong = []
    last = {}
    for r in records:
        agent = r["agent_id"]
        if agent in last and r["seq"] != last[agent] + 1:
            wrong.append(f"seq {last[agent]} is followed by {r['seq']}")
        last[agent] = r["seq"]
    return wrong


def losses(topics):
    """Every loss that the agents themselves report: [(place, reason, count)]."""
    last = {}
    for r in topics.get("sluice.agent", []):
        last[r["agent_id"]] = r
    return [(x["place"], x["reason"], x["count"]) for r in last.values() for x in r["lost"] if x["count"]]


def events_counted(topics, name):
    """How many of them the agents count; one that is started anew begins at 0 again."""
    total, last = 0, {}
    for r in sorted(topics.get("sluice.agent", []), key=lambda r: r["seq"]):
        now, before = sum(x["value"] for x in r["events"] if x["name"] == name), last.get(r["agent_id"], 0)
        total += now - before if now >= before else now
        last[r["agent_id"]] = now
    return int(total)


def unescape(text):
    """The bytes behind a string of the lake: \\xNN is one byte, all else is itself."""
    return re.sub(rb"\\x([0-9a-fA-F]{2})", lambda m: bytes.fromhex(m[1].decode()), text.encode("utf-8"))


def told_lost(table):
    """The number of losses in the closing line of `sluice run`."""
    number, = re.findall(r"(?m)^run .* ([0-9,]+) lost$", table)
    return int(number.replace(",", ""))


def has_landlock():
    """Whether the kernel has a version of it to report."""
    landlock_create_ruleset, version = 444, 1
    return ctypes.CDLL(None).syscall(landlock_create_ruleset, None, 0, version) > 0


def is_root():
    return os.geteuid() == 0


class LakeTest(unittest.TestCase):
    """A test with a room of its own and a lake in it; needs root, as sluice does."""

    needs_root = True

    def setUp(self):
        if not os.access(SLUICE, os.X_OK):
            self.fail(f"{SLUICE} is not built; run: cmake --preset release && cmake --build --preset release")
        if self.needs_root and not is_root():
            self.skipTest("loading BPF needs root")
        self.room = tempfile.mkdtemp(prefix="sluice-test-")
        os.chmod(self.room, 0o755)
        self.lake = os.path.join(self.room, "lake")
        self.addCleanup(shutil.rmtree, self.room, ignore_errors=True)

    def sluice_run(self, *command, options=(), **kw):
        """`sluice run --lake … OPTIONS -- COMMAND`."""
        return run_sluice(["run", "--lake", self.lake, *options, "--", *command], **kw)

    def ends(self, topics=None):
        topics = topics or read_lake(self.lake)
        return [r for r in topics.get("sluice.program", []) if r["phase"] == "END"]

    def assert_nothing_lost(self, topics=None, but=()):
        """but: losses (place, reason, count) that are known and say nothing here."""
        topics = topics or read_lake(self.lake)
        for topic, records in topics.items():
            self.assertEqual([], seq_holes(records), topic)
        self.assertEqual([], [x for x in losses(topics) if x not in but])


main = verdict.main
