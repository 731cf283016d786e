# SPDX-License-Identifier: Apache-2.0
"""The agent itself is killed, stopped without a broker, started twice, given another time, asked to send too much."""
import collections
import glob
import io
import mmap
import os
import random
import struct
import time

import fastavro
import harness
import kafka_check
import kafka_rules
from faults import WAIT, FaultTest
from load import Load

KILLS = int(os.environ.get("KILLS", "8"))
OWN_FAILURE = 125


class Faults(FaultTest):
    def test_kill_9_at_random_moments(self):
        a = self.kafka_agent().start()
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        with Load("kill", rate=150) as load:
            for _ in range(KILLS):
                time.sleep(rng.uniform(0.05, 1.5))
                a.kill9()
                self.assertTrue(os.path.exists(a.control), "what a dead agent leaves is replaced by the next")
                time.sleep(rng.choice([0, 0.05, 0.3]))
                a.start()
                a.status()
        self.stop_drained(a)
        result = self.assert_whole(load, again=True)
        events = [r["event"] for r in self.agent_records(result)]
        self.assertNotIn("GAP", events, f"seed {seed}")
        self.assertEqual(KILLS + 1, events.count("START"))

    def test_stopped_while_the_broker_is_away(self):
        a = self.kafka_agent(drain="2s").start()
        with Load("stop", rate=150) as load:
            self.wait_delivered(a, 50)
            self.stack.kill_broker()
            self.wait_status(a, lambda s: s["spool"]["records"] > 200, "waiting records")
            self.assertEqual(0, a.stop(), a.log_text())
            line = a.wait_log("agent.stopped")
            self.assertFalse(line["drained"])
            self.assertGreater(line["spooled"], 200)
            # From its own word to its own word: what loading and ending a process takes is the host's.
            waited = self.wall(line["time"]) - self.wall(a.wait_log("agent.stopping")["time"])
            self.assertGreaterEqual(waited, 1.9)
            self.assertLess(waited, WAIT / 2)
            load.wait_more(50)  # that are not read
            a.configure(drain=f"{WAIT}s")
            a.start()
            self.assertGreater(a.status()["spool"]["records"], 200)
            self.stack.start_broker()
            self.wait_delivered(a, 300)
        self.stop_drained(a)
        self.assert_whole(load, again=True)

    def test_second_agent_is_refused(self):
        a = self.kafka_agent().start()
        with Load("second", rate=100) as load:
            self.wait_delivered(a, 30)
            other = self.kafka_agent("other", spool={"dir": a.spool})
            other.start(wait=False)
            self.assertEqual(OWN_FAILURE, other.process.wait(WAIT))
            self.assertIn(a.spool, other.log_text())
            self.assertIn("another agent", other.log_text())
            other = self.kafka_agent("third", control=a.control)
            other.start(wait=False)
            self.assertEqual(OWN_FAILURE, other.process.wait(WAIT))
            self.assertIn(a.control, other.log_text())
            self.assertIn("another agent", other.log_text())
            self.wait_delivered(a, 30)  # and the first is none the worse for it
        self.stop_drained(a)
        self.assert_whole(load)

    def dead_letters(self, a):
        found = []
        for path in glob.glob(os.path.join(a.room, "dead-letters", "*.avro")):
            with open(path, "rb") as f:
                found += list(fastavro.reader(f))
        return found

    def check_dead_letters(self, a, small, large):
        """Exactly the large ones are put aside, whole, with the reason, counted; all else arrives."""
        a.settle(delivered=True, timeout=WAIT)
        s = a.status()
        self.stop_drained(a)
        letters = self.dead_letters(a)
        self.assertEqual({("sluice.program", "msg_size_too_large")}, {(x["topic"], x["reason"]) for x in letters})
        self.assertTrue(all(x["detail"] and x["key"] for x in letters))
        counted = {"topic": "sluice.program", "reason": "msg_size_too_large", "count": len(letters)}
        self.assertEqual([counted], s["dead_letters"])
        self.assertEqual(len({x["seq"] for x in letters}), len(letters))
        schema = fastavro.schema.load_schema(os.path.join(kafka_check.SCHEMAS, "program.avsc"))
        records = [fastavro.schemaless_reader(io.BytesIO(x["data"]), schema) for x in letters]
        self.assertEqual([], large.check(records, all_start=True)[:5])
        # Others on this host may have long arguments too, the script that runs these tests among them.
        self.assertEqual(2 * large.started, len([r for r in records if large.is_mine(r)]))
        self.assertTrue(all(len(x["data"]) > 15000 for x in letters))
        # Their programs have neither a START nor an END in the topic: nothing is left without the other.
        result = self.assert_whole(small, again=True, lost=("msg_size_too_large",),
                                   dead_letters=kafka_check.read_dead_letters(os.path.join(a.room, "dead-letters")))
        self.assertIn(("sluice.program", "msg_size_too_large", len(letters)), self.lost(result))

    def test_too_large_for_the_producer(self):
        a = self.kafka_agent(kafka={"properties": {"message.max.bytes": "20000"}}).start()
        with Load("small", rate=100) as small:
            self.wait_delivered(a, 30)
            with Load("large", rate=20, padding=30000) as large:
                large.wait_more(10)
            self.wait_delivered(a, 30)
        self.check_dead_letters(a, small, large)

    def test_too_large_for_the_topic(self):
        """A broker refuses whole batches: only what is too large by itself is put aside."""
        self.stack.create_topic(self.prefix + "sluice.program", config={"max.message.bytes": "20000"})
        self.stack.kill_broker()
        a = self.kafka_agent(kafka={"properties": {"compression.type": "none"}}).start()
        with Load("small", rate=150) as small:
            self.wait_status(a, lambda s: s["spool"]["records"] > 300, "waiting records")
            self.stack.start_broker()
            self.wait_delivered(a, 300)
            with Load("large", rate=20, padding=30000) as large:
                large.wait_more(10)
            self.wait_delivered(a, 300)
        self.check_dead_letters(a, small, large)


class Clock(FaultTest):
    stack_options = None

    def step(self, clock, seconds):
        clock[:8] = struct.pack("<q", int(seconds * 1e9))

    def start(self, seconds):
        """An agent with a clock of its own, so far ahead of the machine's, which is everybody's: (agent, clock)."""
        path = os.path.join(self.room, "clock")
        with open(path, "wb") as f:
            f.write(bytes(4096))
        with open(path, "r+b") as f:
            clock = mmap.mmap(f.fileno(), 8)
        self.step(clock, seconds)
        a = self.kafka_agent()
        a.start(env=harness.plain_environment(LD_PRELOAD=harness.built("libstepped_clock.so"), STEPPED_CLOCK=path))
        return a, clock

    def timestamps(self):
        """{topic: [timestamp of each message in seconds, None: it has none]}"""
        from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, Consumer, TopicPartition

        found = collections.defaultdict(list)
        consumer = Consumer({"bootstrap.servers": self.stack.brokers, "group.id": "timestamps", "log_level": 2})
        ends = {}
        try:
            for topic, partitions in self.stack.topics().items():
                for p in range(partitions if topic.startswith(self.prefix) else 0):
                    low, high = kafka_check.watermarks(consumer, topic, p)
                    if low < high:
                        ends[topic, p] = high
            consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for topic, p in ends])
            until = time.monotonic() + WAIT * harness.PATIENCE
            while ends:
                self.assertLess(time.monotonic(), until, ends)
                for m in consumer.consume(1000, 0.2):
                    self.assertIsNone(m.error())
                    kind, ms = m.timestamp()
                    found[m.topic()].append(None if kind == TIMESTAMP_NOT_AVAILABLE or ms < 0 else ms / 1000)
                    if m.offset() + 1 >= ends.get((m.topic(), m.partition()), 0):
                        ends.pop((m.topic(), m.partition()), None)
        finally:
            consumer.close()
        return found

    def test_two_hours_ahead(self):
        """Kafka refuses a timestamp that is more than an hour ahead of its own clock, as it is shipped."""
        a, clock = self.start(7200)
        with Load("ahead", rate=100) as load:
            for topic in ("sluice.program", "sluice.host", "sluice.agent"):
                self.wait_delivered(a, 100 if topic == "sluice.program" else 2, topic)
            s = a.status()
            self.assertEqual([], s["dead_letters"])
            self.assertTrue(any("have no timestamp" in p["text"] for p in s["problems"]), s["problems"])
            self.step(clock, 0)  # what waits in the spool has the other time
            self.wait_delivered(a, 100)
        self.assertEqual([], a.status()["dead_letters"])
        self.stop_drained(a)
        self.assert_whole(load, again=True, ordered_times=False)
        for topic, times in self.timestamps().items():
            self.assertLess(max((t for t in times if t is not None), default=0), time.time() + 3600, topic)
            if topic.endswith("program"):
                self.assertIn(None, times)

    def test_two_hours_ahead_of_topics_with_the_time_of_the_broker(self):
        for topic in kafka_rules.TOPICS:
            self.stack.create_topic(self.prefix + topic, 3, {"message.timestamp.type": "LogAppendTime"})
        began = time.time()
        a, _ = self.start(7200)
        with Load("append", rate=100) as load:
            self.wait_delivered(a, 100)
            self.wait_delivered(a, 2, "sluice.host")
            s = a.status()
            self.assertEqual([], s["dead_letters"])
            self.assertFalse(any("have no timestamp" in p["text"] for p in s["problems"]), s["problems"])
        self.stop_drained(a)
        result = self.assert_whole(load)
        for topic, r in result.records:
            self.assertGreater(r["time"] / 1e6, began + 7000, topic)
        for topic, times in self.timestamps().items():
            self.assertNotIn(None, times, topic)
            self.assertGreater(min(times), began - 60, topic)
            self.assertLess(max(times), time.time() + 60, topic)

    def test_stepped_back_and_forth(self):
        a, clock = self.start(0)
        with Load("clock", rate=150) as load:
            self.wait_delivered(a, 100)
            # A broker refuses what is more than an hour ahead of it, as Kafka is shipped.
            for seconds in (-2, -3600, -3602, 1800, 0):
                self.step(clock, seconds)
                began = time.monotonic()
                self.wait_delivered(a, 150)
                self.assertLess(time.monotonic() - began, 20, f"stalled when the clock went to {seconds} s")
                s = a.status()
                self.assertAlmostEqual(seconds, self.wall(s["time"]) - time.time(), delta=5)
                self.assertGreaterEqual(s["spool"]["oldest_age_ns"], 0)
                self.assertGreater(s["uptime_ns"], 0)
                self.assertLess(s["uptime_ns"], 600e9)
            self.wait_delivered(a, 1, "sluice.agent")
        self.stop_drained(a)
        result = self.assert_whole(load, ordered_times=False)
        for r in self.agent_records(result):
            self.assertGreaterEqual(r["interval_ns"], 0)
            self.assertLess(r["interval_ns"], 600e9)
            self.assertLess(r["spool_age_ns"] or 0, 7200e9)


if __name__ == "__main__":
    harness.main()
