# SPDX-License-Identifier: Apache-2.0
"""What the cluster or the registry refuses for a while waits or is sent otherwise: nothing of it becomes a dead letter."""
import json
import urllib.error
import urllib.request

import harness
import kafka_check
from faults import WAIT, FaultTest
from kafka_rules import Options, Rules
from load import Load

FAILS = b'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'


class RefusedTest(FaultTest):
    def ask(self, path, body=None):
        q = urllib.request.Request(self.stack.registry_url + path, body and json.dumps(body).encode(),
                                   headers={"Content-Type": "application/vnd.schemaregistry.v1+json"})
        with urllib.request.urlopen(q, timeout=20) as answer:
            return json.load(answer)

    def id_of(self, topic):
        """The registry's id of a topic's schema; None: it has none."""
        try:
            return self.ask(f"/subjects/{self.prefix}{topic}-value/versions/latest")["id"]
        except urllib.error.HTTPError as e:
            self.assertEqual(404, e.code)
            return None

    def ends(self):
        """{topic: the offset after the last message}, of this test's topics, which have one partition."""
        found = {}
        for topic in self.stack.topics():
            if topic.startswith(self.prefix):
                found[topic] = self._end(topic)
        return found

    def _end(self, topic):
        from confluent_kafka import Consumer

        consumer = Consumer({"bootstrap.servers": self.stack.brokers, "group.id": "ends", "log_level": 2})
        try:
            return kafka_check.watermarks(consumer, topic, 0)[1]
        finally:
            consumer.close()

    def assert_none_dead(self, a):
        s = a.status()
        self.assertEqual([], s["dead_letters"], s["output"])


class Registry(RefusedTest):
    stack_options = {"proxied": True, "partitions": 1}
    others = 0

    def tearDown(self):
        self.stack.registry_proxy.answer(None)
        super().tearDown()

    def renew_registry(self):
        """Another registry at the same address: it knows none of our schemas, and its ids of them are others."""
        before = [self.id_of(t) for t in ("sluice.program", "sluice.host", "sluice.agent")]
        self.stack.registry_proxy.answer(FAILS)
        self.stack.kill_registry()
        self.stack.start_registry()
        self.others += 10  # other ids each time
        for n in range(self.others):
            self.ask(f"/subjects/other-{n}/versions", {"schema": json.dumps({"type": "fixed", "name": f"F{n}", "size": n + 1})})
        return before

    def wait_ids(self, a, before):
        """Until the registry has the schemas under other ids, and the agent knows it."""
        self.stack.registry_proxy.answer(None)
        after = a.wait(lambda: [i for t in ("sluice.program", "sluice.host", "sluice.agent") if (i := self.id_of(t))][2:]
                       and [self.id_of(t) for t in ("sluice.program", "sluice.host", "sluice.agent")], WAIT, "new ids")
        self.assertEqual(set(), set(before) & set(after))
        self.wait_status(a, lambda s: s["registry"]["state"] == "ok", "verified ids")
        self.wait_delivered(a, 20)

    def assert_decodes(self, begin):
        """Every message since begin has an id under which this registry has the schema of its topic."""
        options = Options(schemas=kafka_check.read_schemas(), prefix=self.prefix, first_seq=None, start_after=0)
        rules = Rules(kafka_check.Registry(self.stack.registry_url).schema_of, options)
        topics = {}
        for m in kafka_check.read_messages(self.stack.brokers, self.prefix):
            if m.offset >= begin.get(m.topic, 0):
                rules.feed(m)
                topics[m.topic] = topics.get(m.topic, 0) + 1
        faults = rules.finish().faults
        self.assertEqual({}, {k: v for k, v in faults.items() if k in ("frame", "schema", "subject", "decode")})
        for topic in ("sluice.program", "sluice.host", "sluice.agent"):
            self.assertGreater(topics[self.prefix + topic], 0)

    def test_set_up_anew_beneath_an_agent_and_between_two(self):
        a = self.kafka_agent(registry={"urls": [self.stack.proxied_registry_url], "recheck": "1s"}).start()
        with Load("anew", rate=100) as load:
            for topic in ("program", "host", "agent"):
                self.wait_delivered(a, 1, "sluice." + topic)
            before = self.renew_registry()
            self.wait_delivered(a, 100)  # the ids were verified by this agent: a registry that is away stops nothing
            self.wait_ids(a, before)
            begin = self.ends()
            self.wait_delivered(a, 100)
            for topic in ("host", "agent"):
                self.wait_delivered(a, 1, "sluice." + topic)
        self.assert_none_dead(a)
        self.stop_drained(a)
        self.assert_decodes(begin)

        # The next agent has the ids of this one in a file. The registry does not answer it, but gives other ids soon.
        before = self.renew_registry()
        begin = self.ends()
        a.start()
        with Load("next", rate=100) as more:
            self.wait_status(a, lambda s: s["registry"]["state"] == "away", "no answer")
            self.assertEqual(begin, self.ends())
            self.wait_ids(a, before)
            self.wait_delivered(a, 100)
            for topic in ("host", "agent"):
                self.wait_delivered(a, 1, "sluice." + topic)
        self.assert_none_dead(a)
        self.stop_drained(a)
        self.assert_decodes(begin)
        self.assertGreater(load.started, 0)
        self.assertGreater(more.started, 0)


if __name__ == "__main__":
    harness.main()
