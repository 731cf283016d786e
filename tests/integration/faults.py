# SPDX-License-Identifier: Apache-2.0
"""What the fault tests share: an agent on real Kafka and a real registry, and the question whether all came.

Each test has topics of its own, by a prefix, on servers that its class starts once.
"""
import datetime
import errno
import http.client
import json
import os
import socket
import subprocess
import urllib.request

import harness
import kafka_check
import stack
from agent import AgentTest
from load import MARK, cuts, own_folder, unforgiven
from stack import Stack

WAIT = 90  # seconds: a bound against a test that hangs, on a machine ten times as slow; waits end when they can


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(self._path)


def get(agent, path):
    """(status, body) of the agent's own HTTP."""
    c = _UnixConnection(agent.metrics)
    try:
        c.request("GET", path)
        answer = c.getresponse()
        return answer.status, answer.read().decode()
    finally:
        c.close()


class FaultTest(AgentTest):
    stack_options = {}  # None: the servers that all tests share, for a class that leaves them as they are

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not harness.is_root():
            return
        if cls.stack_options is None:
            cls.stack = stack.shared()
            return
        cls.stack = Stack(**cls.stack_options)
        cls.addClassCleanup(cls.stack.close)
        cls.stack.up()

    def setUp(self):
        super().setUp()
        self.prefix = stack.prefix(self)

    def tearDown(self):
        if self.stack_options is not None and not self.stack.servers.broker_pid():
            self.stack.start_broker()
        super().tearDown()

    def kafka_agent(self, name="agent", kafka=None, registry=None, **keys):
        """An agent that delivers to the stack what the loads run. kafka, registry: merged into those sections."""
        k = {"brokers": [self.stack.brokers],
             "topics": {"partitions": 3, "replication": 1, "prefix": self.prefix}}
        # Topics and brokers that went away are looked for more often than every so many minutes.
        k["properties"] = {"reconnect.backoff.max.ms": "1000"}
        for section, value in (kafka or {}).items():
            k[section] = {**k.get(section, {}), **value} if isinstance(value, dict) else value
        # START at exec: twice the records, and no END without its START, which is looked for.
        keys = {"drain": f"{WAIT}s", "records": {"start_after": 0}, **keys}
        a = self.agent(name, kafka=k, registry={"urls": [self.stack.registry_url], "timeout": "3s", **(registry or {})}, **keys)
        a.follow_only(own_folder())
        return a

    def ask(self, method, path, body):
        """The registry's answer to a request of a test's own."""
        q = urllib.request.Request(self.stack.registry_url + path, json.dumps(body).encode(), method=method,
                                   headers={"Content-Type": "application/vnd.schemaregistry.v1+json"})
        with urllib.request.urlopen(q, timeout=20) as answer:
            return json.load(answer)

    # --- what the agent says ---

    def wall(self, text):
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()

    def topic_status(self, agent, topic="sluice.program"):
        return next(t for t in agent.status()["records"] if t["topic"] == topic)

    def wait_delivered(self, agent, more=1, topic="sluice.program"):
        """Until so many more records of a topic have been delivered."""
        goal = self.topic_status(agent, topic)["delivered"] + more
        agent.wait(lambda: self.topic_status(agent, topic)["delivered"] >= goal, WAIT, f"{more} more of {topic}")

    def wait_status(self, agent, condition, what):
        """The status for which condition holds."""
        def look():
            s = agent.status()
            return s if condition(s) else None
        return agent.wait(look, WAIT, what)

    def stop_drained(self, agent):
        agent.settle(timeout=WAIT)
        self.assertEqual(0, agent.stop(2 * WAIT), agent.log_text())
        self.assertTrue(agent.wait_log("agent.stopped")["drained"], agent.log_text())

    # --- what came ---

    def read(self, **options):
        """kafka_rules.Result of all that this test's agents delivered; its records are the load's and the agents'."""
        self.cut = 0
        self.others = []

        def keep(topic, r):
            if topic == "sluice.program":
                self.cut += cuts([r])
                if (r["argv"] or ["", ""])[1:2] == [MARK]:
                    return True
                self.others.append([r[x] for x in ("phase", "program_id", "comm", "exe", "argv", "forked")])
            return topic == "sluice.agent"
        return kafka_check.check(self.stack.brokers, self.stack.registry_url, prefix=self.prefix, keep=keep, start_after=0,
                                 **options)

    def assert_whole(self, *loads, again=False, lost=(), **options):
        """
        Nothing is missing and nothing is wrong. again: records may have come twice, one of them marked so: the later
        one, unless a request that the agent had given up was carried out after all, by a broker that was slow to start
        or a network that had held it (any other unmarked one is out of order, which kafka_rules sees). lost: reasons
        that the agents may name.
        """
        result = self.read(duplicates=1 << 60 if again else 0, held_requests=again, **options)
        self.assertTrue(result.ok, result.summary())
        self.assertLessEqual(result.duplicates, result.redelivered, result.summary())
        programs = [r for topic, r in result.records if topic == "sluice.program"]
        for load in loads:
            self.assertEqual(0, load.failed)
            self.assertGreater(load.started, 0)
            self.assertEqual([], load.check(programs, all_start=True)[:5], self.describe(result, load, programs))
        self.assert_only_lost(result, *lost)
        return result

    def describe(self, result, load, programs):
        """What came, beside what a load has started: for whom looks for a program that is not there."""
        missing = ["%.3f to %.3f" % times for times in load.missing(programs)[:5]]
        agents = [(r["event"], r["time"] / 1e6, r["lost"]) for r in self.agent_records(result)]
        return (f"{result.summary()}\n{load.started} programs, {len(programs)} records of loads; missing: {missing}\n"
                f"others: {self.others[:10]}\nagent: {agents}")

    def assert_only_lost(self, result, *reasons):
        ends = harness.events_counted({"sluice.agent": self.agent_records(result)}, "exit")
        self.assertEqual([], unforgiven(self.lost(result), ends, self.cut, reasons))

    def agent_records(self, result):
        return sorted((r for topic, r in result.records if topic == "sluice.agent"), key=lambda r: r["seq"])

    def lost(self, result):
        """[(place, reason, count)] of the last record of an agent."""
        return [(x["place"], x["reason"], x["count"]) for x in self.agent_records(result)[-1]["lost"]]


class DiskFaultTest(FaultTest):
    """With disks to break."""

    def disk(self, size="24m"):
        """A small disk of its own for the spool."""
        at = os.path.join(self.room, "disk")
        os.makedirs(at)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs", at], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", at], check=True)
        return at

    def fill(self, disk):
        done = subprocess.run(["dd", "if=/dev/zero", f"of={disk}/fill", "bs=4096"], stderr=subprocess.PIPE, text=True)
        self.assertIn(os.strerror(errno.ENOSPC), done.stderr)

    def wait_disk_error(self, a, *texts):
        """Which of them comes first is a matter of a second."""
        s = self.wait_status(a, lambda s: s["spool"]["disk_error"], "disk error")
        text = s["spool"]["disk_error"]
        self.assertIn(text, texts)
        self.assertTrue(any(text in p["text"] for p in s["problems"]), s["problems"])
        a.wait_log("spool.disk", WAIT)  # an error that has gone within the second has no line
        return s

    def assert_told_once(self, a, event, times=1):
        if times > 0:
            a.wait_log(event, WAIT, times)  # changes are logged once a second
        self.assertEqual(times, len([x for x in a.log_lines() if x["event"] == event]), a.log_text())
