# SPDX-License-Identifier: Apache-2.0
"""The broker dies, hides, resets and forgets a topic under load: every record arrives, in order, once or marked."""
import random

import harness
from faults import WAIT, FaultTest
from load import Load


class Broker(FaultTest):
    stack_options = {"proxied": True}

    def tearDown(self):
        proxy = self.stack.broker_proxy
        proxy.accept()
        proxy.resume()
        super().tearDown()

    def wait_given_up(self, agent):
        """Until the producer has given up records and has them again: their age says nothing, on a host that delivers late."""
        agent.wait(lambda: self.topic_status(agent)["redelivered"] > 0, WAIT, "records that are handed over again")

    def test_killed_and_restarted(self):
        a = self.kafka_agent().start()
        with Load("killed", rate=150) as load:
            self.wait_delivered(a, 50)
            self.stack.kill_broker()
            self.wait_status(a, lambda s: s["spool"]["records"] > 100, "waiting records")
            self.stack.start_broker()
            self.wait_delivered(a, 200)
        self.stop_drained(a)
        self.assert_whole(load, again=True)

    def test_away_for_longer_than_message_timeout(self):
        a = self.kafka_agent(kafka={"properties": {"message.timeout.ms": "3000"}}).start()
        with Load("away", rate=150) as load:
            self.wait_delivered(a, 50)
            self.stack.kill_broker()
            s = self.wait_status(a, lambda s: s["output"]["state"] == "down", "output down")
            self.assertIn("127.0.0.1", s["output"]["last_error"])
            s = self.wait_status(a, lambda s: s["spool"]["records"] > 1000 and s["spool"]["oldest_age_ns"] > 8e9,
                                 "records that have waited for longer than the message timeout")
            self.assertFalse(s["ready"])
            self.wait_given_up(a)
            self.stack.start_broker()
            self.wait_delivered(a, 1000)
        self.stop_drained(a)
        result = self.assert_whole(load, again=True)
        self.assertGreater(result.redelivered, 0)

    def test_connection_reset_in_mid_batch(self):
        a = self.kafka_agent(kafka={"brokers": [self.stack.proxied_brokers]}).start()
        rng = random.Random(4)
        resets = self.stack.broker_proxy.resets
        with Load("reset", rate=200) as load:
            for _ in range(8):
                self.wait_delivered(a, 30)
                before = self.stack.broker_proxy.resets
                self.stack.broker_proxy.reset_after(rng.randrange(200, 8000))
                a.wait(lambda: self.stack.broker_proxy.resets > before, WAIT, "a reset")
            self.wait_delivered(a, 30)
        self.assertGreaterEqual(self.stack.broker_proxy.resets - resets, 8)
        self.stop_drained(a)
        # The idempotent producer repeats what the broker knows already, and the broker drops it.
        result = self.assert_whole(load)
        self.assertEqual((0, 0), (result.duplicates, result.redelivered))

    def test_answers_nothing_any_more(self):
        """Connections stay and say nothing: requests time out, records return to the spool."""
        a = self.kafka_agent(kafka={"brokers": [self.stack.proxied_brokers],
                                    "properties": {"message.timeout.ms": "3000", "socket.timeout.ms": "2000",
                                                   "request.timeout.ms": "1500"}}).start()
        with Load("mute", rate=150) as load:
            self.wait_delivered(a, 50)
            self.stack.broker_proxy.pause()
            self.wait_status(a, lambda s: s["output"]["state"] == "down", "output down")
            self.wait_given_up(a)
            self.stack.broker_proxy.resume()
            self.wait_delivered(a, 300)
        self.stop_drained(a)
        # The proxy passes on what it held of each connection, in any order: the agent has given some of them up.
        result = self.assert_whole(load, again=True)
        self.assertGreater(result.redelivered, 0)

    def test_topic_deleted_and_created_again(self):
        a = self.kafka_agent(kafka={"properties": {"topic.metadata.refresh.interval.ms": "1000"}}).start()
        topic = self.prefix + "sluice.program"
        with Load("before", rate=150) as before:
            self.wait_delivered(a, 100)
        with Load("gone", rate=150) as gone:
            self.stack.delete_topic(topic)
            gone.wait_more(200)
            self.wait_delivered(a, 200)
        with Load("after", rate=150) as after:
            self.wait_delivered(a, 100)
        self.assertIn(topic, self.stack.topics())
        self.stop_drained(a)
        # What was in the topic is gone with it, and only the user who deleted it loses by that.
        result = self.read(duplicates=1 << 60, cut_topics=("sluice.program",), ends_without_start=1 << 30)
        self.assertTrue(result.ok, result.summary())
        programs = [r for t, r in result.records if t == "sluice.program"]
        self.assertEqual([], after.check(programs, all_start=True)[:5], result.summary())
        holes = [seqs for (_, t), seqs in result.holes.items() if t == "sluice.program"]
        self.assertEqual([list(range(len(seqs))) for seqs in holes], holes, "one cut, at the beginning")
        self.assertEqual(1, len(holes))
        self.assertGreater(before.started + gone.started, 0)
        self.assert_only_lost(result)


if __name__ == "__main__":
    harness.main()
