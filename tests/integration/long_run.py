# SPDX-License-Identifier: Apache-2.0
"""One agent for a long time on a cluster of three brokers and a registry, all of which fail again and again.

    MINUTES=30 SEED=1 python tests/integration/long_run.py      not part of the suite: dev/test nightly has it

Each fault is of the world, and heals: brokers are killed or stop, the registry is replaced by one with other ids, topics
are forbidden or deleted, the clock is moved, the agent is killed or stopped. Meanwhile programs run at a steady rate. In
the end a consumer that shares no code with the agent finds each of them, decodes each message under an id that a registry
of its time had for its topic, and finds no dead letter.
"""
import contextlib
import json
import mmap
import os
import random
import signal
import time

import harness
import kafka_check
from agent import AgentTest
from cluster import Cluster
from faults import WAIT, FaultTest
from kafka_rules import Options, Rules, without_logical_types
from load import MARK, Load, cuts
from servers import PASSWORD, USER

AWAY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
DELETED = "sluice.host"  # what is delivered when its topic is deleted is gone
SEED = int(os.environ.get("SEED") or time.time())


class Registries:
    """Which ids the registries have had, one after another, and between which offsets messages may carry them."""

    def __init__(self, test):
        self.test = test
        self.ended = []  # of registries before: (ids, ends when it went, ends when the agent knew its successor)

    def ids(self):
        """{topic: its schema's id}, of the registry that runs."""
        found = {}
        for topic in harness.TOPICS:
            with contextlib.suppress(LookupError):
                path = f"/subjects/{self.test.prefix}{topic}-value/versions/latest"
                found[topic] = kafka_check.Registry(self.test.stack.registry_url)._get(path)["id"]
        return found

    def forget(self, topic):
        """Of a topic that is made anew all messages are later than what was before."""
        for _, gone, known in self.ended:
            for at in [at for at in gone.keys() | known.keys() if at[0] == topic]:
                gone.pop(at, None)
                known.pop(at, None)

    def had(self, schema_id, topic, m):
        """Whether the registry of a message's time had the id for its topic; near a change, either."""
        at = (m.topic, m.partition)
        for ids, gone, known in self.ended:
            if m.offset < known.get(at, 0) and ids.get(topic) == schema_id:
                return True
            if m.offset < gone.get(at, 0):
                return False
        return self.last.get(topic) == schema_id


class LongRules(Rules):
    """As kafka_rules, with the registry that a message's id is of."""

    def __init__(self, registries, options):
        super().__init__(None, options)
        self._registries = registries
        self._own = {}

    def feed(self, m):
        self._message = m
        super().feed(m)

    def _reader(self, schema_id, topic, at):
        if not self._registries.had(schema_id, topic, self._message):
            self.fault("schema", f"{at}: id {schema_id} is not what the registry had for {topic} then")
            return None
        if topic not in self._own:
            self._own[topic] = kafka_check.fastavro.parse_schema(without_logical_types(json.loads(self.o.schemas[topic])))
        return self._own[topic]


class LongRun(FaultTest):
    stack_options = None

    @classmethod
    def setUpClass(cls):
        AgentTest.setUpClass()
        if harness.is_root():
            cls.stack = cls.enterClassContext(Cluster())

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.registries = Registries(self)
        self.others = 0
        clock = os.path.join(self.room, "clock")
        with open(clock, "wb") as f:
            f.write(bytes(4096))
        with open(clock, "r+b") as f:
            self.clock = mmap.mmap(f.fileno(), 8)
        self.environment = harness.plain_environment(LD_PRELOAD=harness.built("libstepped_clock.so"), STEPPED_CLOCK=clock)
        password = os.path.join(self.room, "password")
        with open(password, "w") as f:
            f.write(PASSWORD)
        os.chmod(password, 0o600)
        self.a = self.kafka_agent(
            kafka={"brokers": self.stack.listeners("sasl_plaintext"), "topics": {"replication": 3},
                   "properties": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", "sasl.username": USER},
                   "secrets": {"sasl.password": {"file": password}}},
            registry={"urls": [self.stack.first.proxied_registry_url], "recheck": "5s"})

    def say(self, text):
        print(f"{time.monotonic() - self.began:7.1f} s: {text}", flush=True)

    def ends(self):
        """{(topic, partition): the offset after the last message}"""
        from confluent_kafka import Consumer

        consumer = Consumer({"bootstrap.servers": self.stack.brokers, "group.id": "ends", "log_level": 2})
        try:
            return {(topic, p): kafka_check.watermarks(consumer, topic, p)[1]
                    for topic, n in self.stack.topics().items() if topic.startswith(self.prefix) for p in range(n)}
        finally:
            consumer.close()

    def hold(self, at_most=10):
        time.sleep(self.random.uniform(1, at_most))

    def wait_goes_on(self):
        self.stack.wait_whole(WAIT)
        self.wait_delivered(self.a, 50)

    # --- faults, each with its end ---

    def a_broker_is_killed(self):
        stack = self.random.choice(self.stack.stacks)
        stack.kill_broker()
        self.hold()
        stack.servers.launch_broker()

    def a_broker_does_not_answer(self):
        pid = self.random.choice(self.stack.stacks).servers.broker_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            self.hold(20)
        finally:
            os.kill(pid, signal.SIGCONT)

    def all_brokers_are_killed(self):
        for stack in self.stack.stacks:
            stack.kill_broker()
        self.hold()
        for stack in self.stack.stacks:
            stack.servers.launch_broker()

    def the_registry_is_replaced(self):
        first = self.stack.first
        ids = self.registries.ids()
        first.registry_proxy.answer(AWAY)
        gone = self.ends()
        first.kill_registry()
        first.start_registry()
        self.others += 10  # other ids each time
        for n in range(self.others):
            self.ask("POST", f"/subjects/other-{n}/versions",
                     {"schema": json.dumps({"type": "fixed", "name": f"F{n}", "size": n + 1})})
        self.hold()
        first.registry_proxy.answer(None)
        self.a.wait(lambda: set(self.registries.ids()) >= set(ids), 2 * WAIT, f"schemas of {sorted(ids)}")
        self.wait_status(self.a, lambda s: s["registry"]["state"] == "ok", "verified ids")
        self.a.settle(delivered=True, timeout=WAIT)  # what was on its way
        self.assertEqual(set(), set(ids.values()) & set(self.registries.ids().values()))
        self.registries.ended.append((ids, gone, self.ends()))

    def the_registry_is_away(self):
        self.stack.first.registry_proxy.answer(AWAY)
        self.hold()
        self.stack.first.registry_proxy.answer(None)

    def topics_are_forbidden(self):
        from confluent_kafka.admin import (AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient,
                                           ResourcePatternType, ResourceType)
        admin = AdminClient({"bootstrap.servers": self.stack.brokers, "log_level": 2})
        every = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                                 AclPermissionType.ANY)
        topics = self.random.sample(harness.TOPICS, self.random.randint(1, len(harness.TOPICS)))
        what = self.random.choice((AclOperation.WRITE, AclOperation.ALL))
        rules = [AclBinding(ResourceType.TOPIC, self.prefix + topic, ResourcePatternType.LITERAL, "User:" + USER, "*", what,
                            AclPermissionType.DENY) for topic in topics]
        for f in admin.create_acls(rules).values():
            f.result(30)
        self.hold(15)
        for f in admin.delete_acls([every]).values():
            f.result(30)

    def a_topic_is_deleted(self):
        self.stack.delete_topic(self.prefix + DELETED)
        self.registries.forget(self.prefix + DELETED)
        self.wait_delivered(self.a, 2, DELETED)

    def the_clock_is_moved(self):
        for seconds in (self.random.choice((-7200, -60, -2, 2, 60, 7200)), 0):
            self.clock[:] = (seconds * 1_000_000_000).to_bytes(8, "little", signed=True)
            self.hold()

    def the_agent_is_killed(self):
        self.a.kill9()
        self.hold(5)
        self.a.start(env=self.environment)

    def the_agent_is_stopped(self):
        self.a.signal(signal.SIGSTOP)
        self.hold()
        self.a.signal(signal.SIGCONT)

    FAULTS = (a_broker_is_killed, a_broker_does_not_answer, all_brokers_are_killed, the_registry_is_replaced,
              the_registry_is_away, topics_are_forbidden, a_topic_is_deleted, the_clock_is_moved, the_agent_is_killed,
              the_agent_is_stopped)

    # --- the run ---

    def test_all_that_ran_is_delivered_once_it_can_be(self):
        self.began = time.monotonic()
        minutes = float(os.environ.get("MINUTES", "5"))
        self.say(f"SEED={SEED} MINUTES={minutes:g}")
        self.a.start(env=self.environment)
        counts = dict.fromkeys((f.__name__ for f in self.FAULTS), 0)
        rss = []
        with Load("long", rate=50) as load:
            self.wait_delivered(self.a, 50)
            self.wait_delivered(self.a, 1, DELETED)
            while time.monotonic() - self.began < minutes * 60:
                for fault in self.random.sample(self.FAULTS, len(self.FAULTS)):
                    if time.monotonic() - self.began > minutes * 60 and min(counts.values()) > 0:
                        break
                    self.say(fault.__name__)
                    try:
                        fault(self)
                        self.wait_goes_on()
                    except AssertionError:
                        print(json.dumps(self.a.status()), flush=True)
                        raise
                    self.assertEqual([], self.a.status()["dead_letters"])
                    counts[fault.__name__] += 1
                    with open(f"/proc/{self.a.pid}/status") as f:
                        rss.append(next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")))
        self.say(f"{load.started} programs; faults: {counts}; RSS {min(rss)} to {max(rss)} KiB")
        self.a.settle(delivered=True, timeout=WAIT)
        self.stop_drained(self.a)
        self.assertEqual([], os.listdir(self.a.config["dead_letters"]))
        self.registries.last = self.registries.ids()
        result = self.result()
        self.say(result.summary())
        self.assertTrue(result.ok)
        self.assertLessEqual(result.duplicates, result.redelivered)
        self.assertEqual(0, load.failed)
        programs = [r for topic, r in result.records if topic == "sluice.program"]
        self.assertEqual([], load.check(programs, all_start=True)[:5])
        self.assert_only_lost(result)

    def result(self):
        self.cut = 0

        def keep(topic, r):
            self.cut += cuts([r]) if topic == "sluice.program" else 0
            return topic == "sluice.agent" or topic == "sluice.program" and (r["argv"] or ["", ""])[1:2] == [MARK]
        rules = LongRules(self.registries, Options(
            schemas=kafka_check.read_schemas(), prefix=self.prefix, duplicates=1 << 60, ordered_times=False,
            cut_topics=(DELETED,), start_after=0, keep=keep))
        for m in kafka_check.read_messages(self.stack.brokers, self.prefix):
            rules.feed(m)
        return rules.finish()


if __name__ == "__main__":
    harness.main()
