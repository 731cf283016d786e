# SPDX-License-Identifier: Apache-2.0
"""Flink SQL over topics of a real broker and registry: hourly sweep, alerts and Iceberg tables, also after kill -9."""
import collections
import json
import math
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
import stack
from lake_topics import STREAMING, Topics, environment, query, with_field
from lakes import S, LakeMaker

HOUR = 3600
HOSTS = ("aaaa1111aaaa1111aaaa1111aaaa1111", "bbbb2222bbbb2222bbbb2222bbbb2222")
LATE = 120  # seconds: --late's default
JOB_S = 600  # against a job that hangs: the first row takes 20 s, and more than 150 s where ten processes want each CPU
SUMS = ("cpu_ns", "run_delay_ns", "read_bytes", "write_bytes", "net_rx_bytes", "net_tx_bytes")
SMALL = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx700m"}


def once(records):
    return list({(r["host_id"], r["agent_id"], r["seq"]): r for r in records}.values())


def used(usage):
    """The amounts that sweep_hourly adds up."""
    cpu = usage["cpu_user_ns"] + usage["cpu_system_ns"]
    return {"cpu_ns": cpu, **{name: usage[name] for name in SUMS[1:]}}


def in_disorder(records, seconds, rng):
    """By time, but for up to so many seconds, and a tenth of them twice."""
    more = records + rng.sample(records, len(records) // 10)
    return [r for _, r in sorted(((r["time"] + rng.randrange(seconds * 1000000), r) for r in more), key=lambda x: x[0])]


def swept(maker):
    """{(part, host, run, hour): amounts} of a lake, in plain Python."""
    result = collections.defaultdict(lambda: collections.Counter(records=0))
    for r in once(maker.written["host"]):
        row = result["host", r["host_id"], None, r["time"] // (HOUR * 1000000)]
        idle = max(r["cpu_capacity_ns"] - r["cpu_busy_ns"], 0)
        row.update({"records": 1, "covered_ns": r["interval_ns"], "cpu_idle_ns": idle,
                    **{n: r[n] for n in ("cpu_capacity_ns", "cpu_busy_ns", "cpu_attributed_ns", "cpu_unattributed_ns")},
                    "cpu_residue_ns": r["cpu_capacity_ns"] - r["cpu_attributed_ns"] - r["cpu_unattributed_ns"] - idle})
    told = collections.defaultdict(collections.Counter)
    for r in once(maker.written["usage"]):
        told[r["program_id"]].update(used(r["usage"]))
        result["run", r["host_id"], r["run_id"], r["time"] // (HOUR * 1000000)].update(records=1, **used(r["usage"]))
    for r in once(maker.written["program"]):
        if r["phase"] == "END":
            row = result["run", r["host_id"], r["run_id"], r["time"] // (HOUR * 1000000)]
            row.update(records=1, **used(r["usage"]))
            row.subtract(told[r["program_id"]])
    return {key: {k: v for k, v in row.items() if v} for key, row in result.items()}


def rows_of(messages):
    """The same of the topic's rows; a late row is added to its hour's."""
    seen = {tuple(sorted(json.loads(value).items(), key=lambda x: x[0])) for _, value in messages}
    result = collections.defaultdict(collections.Counter)
    for row in map(dict, seen):
        part = "host" if row["part"] == "late" else row["part"]
        hour = row["hour_us"] // (HOUR * 1000000)
        assert row["hour"] == time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(hour * HOUR)), row
        amounts = {k: v for k, v in row.items() if isinstance(v, int) and k != "hour_us"}
        result[part, row["host_id"], row["run_id"], hour].update(amounts)
    return {key: {k: v for k, v in row.items() if v} for key, row in result.items()}


class Job:
    """run_sql.py with all that it started, so that both can be killed at once."""

    def __init__(self, python, stack, prefix, room, files, *options):
        self.log = os.path.join(room, f"job-{time.monotonic_ns()}.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [python, os.path.join(STREAMING, "run_sql.py"),
                 *(os.path.join(STREAMING, "flink", f) for f in files), "--brokers", stack.brokers,
                 "--registry", stack.registry_url, "--prefix", prefix,
                 *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env=harness.plain_environment(TMPDIR=room, **SMALL))

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()[-4000:]

    def kill(self):
        for p in (self.process.pid,):
            try:
                os.killpg(p, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def finish(self, timeout=JOB_S):
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the job did not end within {timeout} s:\n{self.said()}") from None
        if status:
            raise AssertionError(f"the job ended with {status}:\n{self.said()}")

    def wait(self, condition, what, timeout=JOB_S):
        deadline = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {what}; the job {self.process.poll()} said:\n{self.said()}")
            time.sleep(0.5)


class Flink(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = environment("flink")
        cls.reader = environment("base")
        cls.stack = stack.shared()

    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="sluice-flink-")
        self.addCleanup(shutil.rmtree, self.room, ignore_errors=True)
        self.prefix = stack.prefix(self)
        self.topics = Topics(self.stack, prefix=self.prefix + "sluice.")

    def start(self, files, *options):
        job = Job(self.python, self.stack, self.prefix, self.room, files, *options)
        self.addCleanup(job.kill)
        return job

    def lake(self, hours, rng):
        """Two hosts, clones of one, with runs of two to three programs at once: short ones, and long ones with intervals."""
        maker = LakeMaker(os.path.join(self.room, "lake"))
        maker.agent_id = maker.agent_of(HOSTS[0])
        for host in HOSTS:
            at = 0.0
            while at < hours * HOUR:
                if not 4000 < at < 4500:  # a gap: no agent watched
                    busy = rng.randrange(40 * S)
                    maker.host(host_id=host, start=at, end=at + 10, cpus=4, cpu_busy_ns=busy,
                               cpu_attributed_ns=rng.randrange(busy + 1))
                at += 10
            at = 0.0
            while at < hours * HOUR:
                length = rng.choice([0.2, 3.0, 47.5, 310.0])
                run = rng.choice(["r1", "r2", "r3", None])
                amounts = {"cpu_user_ns": 0, "cpu_system_ns": 0, "read_bytes": 0, "net_rx_bytes": 0}
                same = {"host_id": host, "run_id": run, "pipeline": run and "demo", "task_id": run and "t1",
                        "task": run and "step"}
                p = maker.program(phase="START", start=at, **same)
                told, moment = dict(amounts), at
                while moment + 10 < at + length:
                    moment += 10
                    part = {k: rng.randrange(1000000) for k in amounts}
                    maker.usage(p, start=moment - 10, end=moment, **part)
                    told = {k: told[k] + part[k] for k in told}
                total = {k: v + rng.randrange(1000000) for k, v in told.items()}
                maker.program(phase="END", start=at, end=at + length, pid=p["pid"], program_id=p["program_id"],
                              program_start_time=p["program_start_time"], **same, **total)
                at += length * rng.choice([0.3, 1.0])
        maker.write()
        return maker

    def failures(self, maker):
        """Adds to a lake what must be reported, and what must not; (kind, severity, message, tool, code, signal)."""
        a = {"host_id": HOSTS[0], "host_name": "node1", "run_id": "r1", "pipeline": "demo", "task_id": "t9", "task": "align"}
        sort = "samtools sort (pid 7) ended with exit code 1; task align (A) failed of it"
        oom = "bwa mem (pid 8) was killed by the kernel because memory ran out, peak 2.00 GiB"
        segv = "python (pid 9) was ended by SIGSEGV; task align failed of it"
        unknown = "a program of which there is no record ended with exit code 2; task align failed of it"
        error = {"severity": "ERROR", **a}
        maker.finding("FAILED", at=101, **error, message=sort, tool="samtools sort", program_id="p7", sample="A",
                      evidence={"exit_code": 1, "wall_ns": 1e9, "task_exit_code": 141}, causes=["p6", "p5"])
        maker.finding("OOM_KILLED", at=102, **error, message=oom, tool="bwa mem", program_id="p8",
                      evidence={"peak_rss_bytes": 2 << 30, "exit_signal": 9, "wall_ns": 1e9})
        maker.finding("FAILED", at=103, **error, message=segv, tool="python", program_id="p9",
                      evidence={"exit_signal": 11, "task_exit_code": 139})
        maker.finding("FAILED", at=104, **error, message=unknown, evidence={"task_exit_code": 2})
        # Another's, in no run, with numbers that JSON has not.
        maker.finding("DISK_FULL", at=105, host_id=HOSTS[0], host_name="node1", message="/ is full",
                      evidence={"free": math.nan, "rate": math.inf, "exit_code": math.nan})
        maker.finding("IDLE", at=106, host_id=HOSTS[0], host_name="node1", severity="INFO", message="t does nothing")
        # Programs and tasks that end badly are reported by findings alone.
        maker.program(start=100, end=101, **a, exit_code=1)
        maker.program(start=100, end=101, **a, exit_signal=9, oom_killed=True)
        maker.task(start=90, end=200, **a, exit_code=2)
        maker.run(start=80, end=300, host_id=HOSTS[0], host_name="node1", run_id="r1", exit_signal=15)
        maker.run(start=80, end=300, host_id=HOSTS[0], host_name="node1", run_id="r3", sample="B", exit_code=3)
        maker.run(start=80, end=300, host_id=HOSTS[1], run_id="r2")
        maker.run(start=80, host_id=HOSTS[1], run_id="r4")
        maker.agent("GAP", at=400, host_id=HOSTS[1], host_name="node2", interval_ns=90 * S)
        for n, count in enumerate((0, 4, 4, 9, 2)):  # the last is a new start's
            maker.agent(at=500 + 10 * n, host_id=HOSTS[1], host_name="node2",
                        lost=[{"place": "ring", "reason": "full", "count": count}])
        maker.write()
        loss = "The agent on node2 lost %d events at ring: full."
        return [
            ("FAILED", "ERROR", sort, "samtools sort", 1, None),
            ("OOM_KILLED", "ERROR", oom, "bwa mem", None, 9),
            ("FAILED", "ERROR", segv, "python", None, 11),
            ("FAILED", "ERROR", unknown, None, None, None),
            ("DISK_FULL", "WARNING", "/ is full", None, None, None),
            ("RUN_KILLED", "ERROR", "Run demo on node1 was ended by SIGTERM.", None, None, 15),
            ("RUN_FAILED", "ERROR", "Run demo, sample B, on node1 failed with exit code 3.", None, 3, None),
            ("AGENT_GAP", "WARNING", "No agent watched node2 for 90 s before that.", None, None, None),
            *(("AGENT_LOSS", "WARNING", loss % n, None, None, None) for n in (4, 5, 2))]

    def assert_swept(self, maker):
        expected = swept(maker)
        found = rows_of(self.topics.messages("sweep_hourly"))
        self.assertGreater(len(expected), 12)
        self.assertEqual(sorted(map(str, expected)), sorted(map(str, found)))
        for key, row in expected.items():
            self.assertEqual(row, found[key], key)

    def test_hours_and_alerts(self):
        """What is read to its end is what plain Python adds up, and alerts are those written here by hand."""
        rng = random.Random(6)
        maker = self.lake(3, rng)
        expected = self.failures(maker)
        for topic in ("host", "usage", "program", "task", "run"):
            self.topics.write(topic, in_disorder(maker.written[topic], LATE - 1, rng))
        for topic in ("agent", "finding"):
            self.topics.write(topic, maker.written[topic] + maker.written[topic][:3])
        # A later version's record: the job's own schema is made of it, those of the others are projected.
        newer = with_field("program", "energy_nj", ["null", "long"], None)
        self.topics.write("program", [maker.written["program"][0] | {"energy_nj": 1}], newer)
        for result in ("sweep_hourly", "alerts"):
            self.topics.name(result)
        self.start(["sweep_hourly.sql", "alerts.sql"], "--bounded").finish()
        self.assert_swept(maker)
        alerts = [json.loads(value) for _, value in self.topics.messages("alerts")]
        shown = ("kind", "severity", "message", "tool", "exit_code", "exit_signal")
        found = [tuple(a[name] for name in shown) for a in alerts]
        self.assertEqual(sorted(expected, key=str), sorted(found, key=str))
        told = next(a for a in alerts if a["program_id"] == "p7")
        record = next(r for r in maker.written["finding"] if r["program_id"] == "p7")
        for name in ("host_id", "host_name", "run_id", "pipeline", "task_id", "task", "sample", "agent_id", "seq"):
            self.assertEqual(record[name], told[name], name)
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record["time"] // 1000000))
        self.assertEqual((at + ".000Z", self.prefix + "sluice.finding"), (told["time"], told["topic"]))

    def test_killed(self):
        """A job of hours and tables is killed and continues: nothing twice, nothing missing, late records in own rows."""
        # No partition without messages, for which the hours would wait.
        self.topics = Topics(self.stack, prefix=self.prefix + "sluice.", partitions=1)
        rng = random.Random(8)
        maker = self.lake(2, rng)
        cut = maker.us(HOUR + 600)
        first = {t: [r for r in maker.written[t] if r["time"] < cut] for t in ("host", "usage", "program")}
        kept_back = first["host"].pop(17)
        for topic, records in first.items():
            self.topics.write(topic, in_disorder(records, LATE - 1, rng))
        self.topics.name("sweep_hourly")
        warehouse = os.path.join(self.room, "warehouse")
        options = ("--checkpoint", os.path.join(self.room, "checkpoint"), "--every", "2s", "--warehouse", warehouse)
        files = ["sweep_hourly.sql", "iceberg.sql"]
        job = self.start(files, *options)
        job.wait(lambda: len(self.topics.messages("sweep_hourly")) >= 4, "row of the first hour")
        time.sleep(3)
        job.kill()
        for topic in first:
            rest = [r for r in maker.written[topic] if r["time"] >= cut]
            self.topics.write(topic, in_disorder(rest, LATE - 1, rng) + first[topic][:50])
        job = self.start(files, *options)
        wanted = {t: len(once(maker.written[t])) - (t == "host") for t in first}
        job.wait(lambda: self.rows(warehouse, first) == {t: [n, n] for t, n in wanted.items()}, "whole table")
        self.assertIn("continues from", job.said())
        # Records of later let the last hours end; the last programs ended in the third.
        for topic in first:
            last = maker.written[topic][-1] | {"seq": 9000000, "time": maker.us(3 * HOUR + 300)}
            self.topics.write(topic, [last])
        job.wait(lambda: {r[3] for r in rows_of(self.topics.messages("sweep_hourly"))} >= {h for *_, h in swept(maker)},
                 "row of the last hour")
        # The first hour is long closed: this one is late, and is reported as that.
        self.topics.write("host", [kept_back])
        late = job.wait(lambda: [r for r in self.swept_rows() if r["part"] == "late"], "late row")
        self.assertEqual({(kept_back["host_id"], 1)}, {(r["host_id"], r["records"]) for r in late})
        whole = {t: [len(once(maker.written[t])) + 1] * 2 for t in first}  # and the last one, above
        job.wait(lambda: self.rows(warehouse, first) == whole, "late record in its table")
        job.kill()
        self.assert_swept(maker)

    def swept_rows(self):
        return [json.loads(value) for _, value in self.topics.messages("sweep_hourly")]

    def rows(self, warehouse, topics):
        """{topic: [rows, keys]} of the tables."""
        return {t: (query(self.reader, os.path.join(warehouse, "sluice", t), "count(*), count(DISTINCT (host_id, agent_id, seq))")
                    or [None])[0] for t in topics}


if __name__ == "__main__":
    harness.main()
