# SPDX-License-Identifier: Apache-2.0
"""Kafka into Iceberg by Spark on a real broker and registry: each record once, also twice sent, late or broken ones."""
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import harness
from agent import Agent
from lake_topics import STREAMING, Topics, environment, query, with_field
from lakes import S, LakeMaker
from load import Load, own_folder
from stack import Stack

DAY = 86400
LAND_S = 600    # against a job that hangs: it takes 30 s, and 200 s where seven processes want each CPU
SMALL = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx900m"}
SUMS = {"program": ("cpu_user_ns", "read_bytes", "peak_rss_bytes", "pid", "start_time", "time", "tcp_rx_bytes"),
        "usage": ("cpu_user_ns", "interval_ns", "time"), "host": ("cpu_busy_ns", "time", "memory_bytes"),
        "run": ("wall_ns", "time"), "task": ("wall_ns", "time"), "agent": ("delivered", "time")}

# As tune and sweep read them.
PROGRAMS = """
import json, sys
from sluice_analytics.lake.iceberg import open_table
from sluice_analytics.model import records
with open_table(sys.argv[1], "duckdb", None) as session:
    found = records.programs(session)
    print(json.dumps(session.rows(found.aggregate(programs=found.count(), cpu=found.cpu_user_ns.sum().cast("int64")))))
"""

# maintain.py again and again in one process, whose JVM starts once: of each line of arguments
# its status, its output and its errors.
MAINTAIN = """
import contextlib, io, json, runpy, sys
for line in sys.stdin:
    sys.argv, status, out, err = json.loads(line), 0, io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as e:
        status = e.code
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""


def once(records):
    return list({(r["host_id"], r["agent_id"], r["seq"]): r for r in records}.values())


def flat(record, name):
    value = record[name] if name in record else (record.get("usage") or {}).get(name)
    return value or 0


class Spark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.python = environment("spark")
        cls.stack = Stack()
        cls.addClassCleanup(cls.stack.close)
        cls.stack.up()

    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="sluice-spark-")
        os.chmod(self.room, 0o755)
        self.addCleanup(shutil.rmtree, self.room, ignore_errors=True)
        self.warehouse = os.path.join(self.room, "warehouse")
        self.topics = Topics(self.stack)
        # What a killed job leaves of temporary files goes with the room.
        self.environment = harness.plain_environment(TMPDIR=self.room, **SMALL)

    # --- the jobs ---

    def command(self, script, *args):
        return [self.python, os.path.join(STREAMING, script), *args, "--warehouse", self.warehouse,
                "--spark-conf", "spark.sql.shuffle.partitions=2", "--spark-master", "local[2]"]

    def job(self, *options):
        return self.command("spark_iceberg.py", "--brokers", self.stack.brokers, "--registry", self.stack.registry_url,
                            "--checkpoint", os.path.join(self.room, "checkpoint"), "--trigger", "available-now", *options)

    def popen(self, command):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, start_new_session=True, env=self.environment)

    def land(self, *options):
        """Lands all there is; {topic: new rows} of its batches."""
        done = subprocess.run(self.job(*options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=LAND_S, env=self.environment)
        self.assertEqual(0, done.returncode, done.stdout)
        return self.new_of(done.stdout)

    def new_of(self, said):
        new = collections.Counter()
        for topic, n in re.findall(r"(?:sluice\.)?(\w+) (?:\d+ read, )?(\d+) new", said):
            new[topic] += int(n)
        return new

    def killed(self, batches, after, *options):
        """Begins to land and is killed, with its JVM, so many seconds after so many batches."""
        p = self.popen(self.job(*options))
        said = []
        for line in p.stdout:
            said.append(line)
            if len([x for x in said if x.startswith("batch ")]) >= batches:
                break
        time.sleep(after)
        self.assertIsNone(p.poll(), "".join(said))
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        p.stdout.close()

    def maintainer(self):
        """maintain(*args): maintain.py of those arguments, {table: what it says of it}."""
        p = subprocess.Popen([self.python, "-c", MAINTAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=self.environment | {"PYTHONPATH": STREAMING})
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)

        def maintain(*args):
            p.stdin.write(json.dumps(self.command("maintain.py", *args)[1:]) + "\n")
            p.stdin.flush()
            answer = p.stdout.readline()
            self.assertTrue(answer, "maintain.py took its process along")
            status, out, err = json.loads(answer)
            self.assertEqual(0, status, out + err)
            return {row["table"]: row for row in map(json.loads, out.splitlines())}

        return maintain

    # --- the tables ---

    def read(self, script, *args):
        done = subprocess.run([self.python, "-c", script, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def query(self, table, select):
        return query(self.python, os.path.join(self.warehouse, "sluice", table), select)

    def data_files(self, table):
        at = os.path.join(self.warehouse, "sluice", table, "data")
        return [os.path.join(d, n) for d, _, names in os.walk(at) for n in names if n.endswith(".parquet")]

    def assert_tables_are_topics(self, **least):
        """Every (host_id, agent_id, seq) of each topic is in its table, once, with the same sums. least: records at least."""
        for topic, names in SUMS.items():
            records = once(self.topics.records(topic))
            self.assertGreaterEqual(len(records), least.get(topic, 0), topic)
            if not records:
                continue
            sums = ", ".join(f"coalesce(sum({n}), 0)::VARCHAR" for n in names)
            (row,) = self.query(topic, f"count(*), count(DISTINCT (host_id, agent_id, seq)), {sums}")
            expected = [len(records), len(records), *(str(sum(flat(r, n) for r in records)) for n in names)]
            self.assertEqual(expected, row, topic)

    # --- records ---

    def made(self):
        """A lake of programs over the last days, on two hosts, clones of one."""
        t0 = (int(time.time()) // DAY - 3) * DAY * 1000000
        maker = LakeMaker(os.path.join(self.room, "lake"), t0=t0)
        maker.agent_id = maker.agent_of(maker.host_id)
        rng = random.Random(5)
        for i in range(2500):
            start = rng.randrange(3 * DAY)
            host = maker.host_id if i % 2 else "clone"
            p = maker.program(host_id=host, run_id=f"r{i % 9}", task_id=f"t{i % 40}", task="step", start=start, end=start + 30,
                              cpu_user_ns=rng.randrange(9 * S), read_bytes=rng.randrange(1 << 40), tcp_rx_bytes=i)
            maker.usage(p, start=start, end=start + 10, cpu_user_ns=rng.randrange(S))
        for i in range(200):
            maker.host(start=i * 900, end=i * 900 + 10, cpu_busy_ns=rng.randrange(40 * S))
        maker.run(start=0, end=500)
        maker.task(run_id="r1", start=0, end=400)
        maker.agent(lost=[{"place": "ring", "reason": "full", "count": 4}])
        maker.write()
        return maker

    def real(self):
        """Records of a real agent, which has a load to look at and nothing else; None where none may run."""
        if not harness.is_root():
            return None
        room = os.path.join(self.room, "agent")
        os.makedirs(room)
        agent = Agent(room, kafka={"brokers": [self.stack.brokers], "topics": {"partitions": 3, "replication": 1}},
                      registry={"urls": [self.stack.registry_url], "timeout": "3s"}, drain="60s", records={"start_after": 0})
        self.addCleanup(agent.remove)
        agent.follow_only(own_folder())  # what else this host runs would have to be landed, too
        agent.start()
        with Load("streaming", rate=100) as load:
            agent.wait(lambda: load.started >= 400, LAND_S, "load")
        agent.settle()
        self.assertEqual(0, agent.stop(120), agent.log_text())
        return load

    def test_each_record_once(self):
        load = self.real()
        maker, rng = self.made(), random.Random(7)
        newer = with_field("program", "energy_nj", ["null", "long"], None)
        programs = maker.written["program"]
        self.topics.write("program", rng.sample(programs[:3500], 3500) + rng.sample(programs[:3500], 400))
        # The later version's records among the older ones', with repeats of both.
        later = [r | {"energy_nj": 1000 + i, "schema_version": 99} for i, r in enumerate(programs[3500:])]
        again = rng.sample(programs[:3500], 300)
        for part in range(0, len(later), 250):
            self.topics.write("program", later[part:part + 250] + rng.sample(later, 20), newer)
            self.topics.write("program", again[part // 5:part // 5 + 50])
        for topic in ("usage", "host", "run", "task", "agent"):
            self.topics.write(topic, rng.sample(maker.written[topic], len(maker.written[topic])))
            self.topics.write(topic, maker.written[topic][:len(maker.written[topic]) // 4 + 1])
        garbage = [b"no framing", b"", b"\0\0\0\x27\x0fof a schema that nobody knows",
                   b"\0" + self.topics.schema_id("program").to_bytes(4, "big") + rng.randbytes(300),
                   b"\0" + self.topics.schema_id("host").to_bytes(4, "big") + b"\x02"]
        for value in garbage:
            self.topics.write_bytes("program", value)
        self.topics.flush()

        # Killed in the middle of batches, several times.
        small = ("--max-per-batch", "4000")
        self.killed(1, 0.4, *small)
        self.killed(1, 2.3, *small)
        self.land(*small)
        self.assert_tables_are_topics(program=5000 + (2 * load.started if load else 0), usage=2500, host=200, run=1)
        if load:
            mine = self.query("program", f"phase, argv[4], argv[3] = '{load.name}'")
            ends = collections.Counter((phase, number) for phase, number, is_mine in mine if is_mine)
            self.assertEqual({(p, str(n)): 1 for n in range(load.started) for p in ("START", "END")}, dict(ends))
        ends = {r["program_id"]: r["usage"] for r in self.topics.records("program") if r["phase"] == "END"}
        seen = {r["program_id"] for r in self.topics.records("program")}
        self.assertEqual([{"programs": len(seen), "cpu": sum(u["cpu_user_ns"] or 0 for u in ends.values())}],
                         self.read(PROGRAMS, os.path.join(self.warehouse, "sluice")))
        # The later version's field is a column, null in what older ones wrote.
        self.assertEqual([[len(later), str(sum(r["energy_nj"] for r in later)), 99]],
                         self.query("program", "count(energy_nj), sum(energy_nj)::VARCHAR, max(schema_version)"))
        # What has no (agent_id, seq) is kept as it came, with the reason.
        kept = self.query("quarantine", "topic, reason, hex(message_value)")
        self.assertEqual(sorted(g.hex().upper() for g in garbage), sorted(row[2] for row in kept))
        self.assertEqual({"sluice.program"}, {row[0] for row in kept})
        reasons = {bytes.fromhex(row[2]): row[1] for row in kept}
        self.assertIn("framing", reasons[garbage[0]])
        self.assertIn("schema 9999: the registry does not know it", reasons[garbage[2]])
        self.assertIn("does not decode by schema", reasons[garbage[3]])

        # Days later the same come again, and some new ones, among the oldest.
        late = [r | {"seq": r["seq"] + 1000000} for r in programs[:50]]
        self.topics.write("program", rng.sample(programs, 500) + late)
        self.assertEqual({"program": 50}, dict(+self.land()))
        self.assert_tables_are_topics(program=5050)
        self.maintained(maker)

    def maintained(self, maker):
        """Compaction keeps the rows and makes fewer files; expired, forgotten and orphaned files are removed."""
        maintain = self.maintainer()
        before, rows = self.data_files("program"), self.query("program", "count(*), sum(hash(program_id, seq, argv))::VARCHAR")
        done = maintain("compact", "--since", "all")["program"]
        self.assertGreater(done["files_before"], done["files_after"])
        self.assertEqual(rows, self.query("program", "count(*), sum(hash(program_id, seq, argv))::VARCHAR"))
        stray = os.path.join(os.path.dirname(before[0]), "stray.parquet")
        shutil.copy(before[0], stray)
        os.utime(stray, (time.time() - 5 * DAY,) * 2)
        maintain("expire", "--older-than", "0s", "--retain-last", "1", "--tables", "program")
        self.assertLess(len(self.data_files("program")), len(before))
        self.assertEqual(rows, self.query("program", "count(*), sum(hash(program_id, seq, argv))::VARCHAR"))
        removed = maintain("orphans", "--tables", "program")["program"]["files"]
        self.assertIn("stray.parquet", [os.path.basename(f) for f in removed])
        self.assertFalse(os.path.exists(stray))
        self.assertEqual(0, maintain("check", "--tables", "program")["program"]["repeated"])
        first = (int(time.time()) // DAY - 1) * DAY * 1000000
        records = once(self.topics.records("program"))
        maintain("retain", "--days", "2", "--tables", "program")
        self.assertEqual([[sum(r["time"] >= first for r in records)]], self.query("program", "count(*)"))


if __name__ == "__main__":
    harness.main()
