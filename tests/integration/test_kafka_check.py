# SPDX-License-Identifier: Apache-2.0
"""The checker itself, on made-up messages: whole ones pass, and each planted fault is found as what it is."""
import io
import json
import random
import struct
import subprocess
import sys
import unittest

import fastavro

import harness
import kafka_check
from kafka_check import check, read_schemas
from kafka_rules import TOPICS, Message, Options, Rules, murmur2, partition_of, ranges, without_logical_types
from stack import Stack

HOST = "0123456789abcdef0123456789abcdef"
AGENT = "11111111-2222-3333-4444-555555555555"
NOW = 1_700_000_000_000_000
PARTITIONS = 3
SCHEMAS = read_schemas()
PARSED = {t: without_logical_types(json.loads(text)) for t, text in SCHEMAS.items()}
IDS = {topic: n + 1 for n, topic in enumerate(TOPICS)}


def plain(schema):
    """A value that fits: null where it may be, else zero, "" or the first symbol."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(schema, list):
        return None if "null" in schema else plain(schema[0])
    if kind == "record":
        return {f["name"]: plain(f["type"]) for f in schema["fields"]}
    if kind == "enum":
        return schema["symbols"][0]
    if isinstance(kind, (dict, list)):
        return plain(kind)
    return {"string": "", "int": 0, "long": 0, "float": 0.0, "double": 0.0, "boolean": False, "array": [], "map": {},
            "bytes": b""}.get(kind)


class World:
    """A sound stream of two runs and an agent, as (topic, record); messages() makes it what Kafka would have."""

    def __init__(self):
        self.records = []
        self.seqs = dict.fromkeys(TOPICS, 0)
        self.agent("START")
        for n in range(40):
            run = ("r1", "r2", None)[n % 3]
            self.program(f"p{n}", run, "START", NOW + n * 10)
            self.program(f"p{n}", run, "END", NOW + n * 10 + 5)
        self.agent("LIVE")

    def add(self, topic, **fields):
        record = plain(PARSED[topic])
        record.update(host_id=HOST, host_name="h", boot_id="b", agent_id=AGENT, seq=self.seqs[topic], time=NOW + 1000,
                      schema_version=1, **{k: v for k, v in fields.items() if k != "time"})
        record["time"] = fields.get("time", NOW + 1000)
        self.seqs[topic] += 1
        self.records.append((topic, record))
        return record

    def agent(self, event, lost=0, place="sluice.program", reason="spool_full"):
        losses = [{"place": place, "reason": reason, "count": lost}] if lost else []
        return self.add("sluice.agent", event=event, version="1.2.3", lost=losses)

    def program(self, name, run, phase, time, **fields):
        if phase == "END":
            usage = next(t for t in PARSED["sluice.program"]["fields"] if t["name"] == "usage")["type"][1]
            fields = {"end_time": time, "end_reason": "EXIT", "exit_code": 0, "usage": plain(usage), **fields}
        return self.add("sluice.program", program_id=name, run_id=run, phase=phase, time=time, comm="true",
                        start_time=NOW, program_start_time=NOW, **fields)

    def messages(self):
        offsets = {}
        out = []
        for topic, record in self.records:
            key = f"{record['host_id']}:{record['run_id'] or ''}".encode()
            partition = partition_of(key, PARTITIONS)
            body = io.BytesIO()
            fastavro.schemaless_writer(body, PARSED[topic], record)
            offset = offsets[topic, partition] = offsets.get((topic, partition), -1) + 1
            out.append(Message(topic, partition, PARTITIONS, offset, key, struct.pack(">bI", 0, IDS[topic])
                               + body.getvalue(), [("schema_version", b"1"), ("agent_version", b"1.2.3")]))
        return out


def registry(schema_id):
    for topic, known in IDS.items():
        if known == schema_id:
            return SCHEMAS[topic], [f"{topic}-value"]
    raise LookupError("404")


def judge(messages, schema_of=registry, **options):
    rules = Rules(schema_of, Options(schemas=SCHEMAS, **{"start_after": 0, **options}))
    for m in messages:
        rules.feed(m)
    return rules.finish()


class KafkaRules(unittest.TestCase):
    def setUp(self):
        self.world = World()

    def only(self, result, *kinds):
        """Just these kinds of fault, at least one of each."""
        self.assertEqual(sorted(kinds), sorted(result.faults), result.summary())

    def index(self, messages, topic, n):
        return [i for i, m in enumerate(messages) if m.topic == topic][n]

    def test_a_whole_stream_passes(self):
        r = judge(self.world.messages(), window=(NOW, NOW + 10000), at_least={"sluice.program": 80},
                  next_seq={(AGENT, "sluice.program"): 80}, keep=lambda topic, record: record["phase"] == "END"
                  if topic == "sluice.program" else False)
        self.only(r)
        self.assertTrue(r.ok)
        self.assertEqual((r.messages, r.duplicates, r.holes, r.unended), (82, 0, {}, {}))
        self.assertEqual(len(r.records), 40)
        self.assertEqual(r.agents, {AGENT: {"sluice.program": 79, "sluice.agent": 1}})

    def test_nothing_at_all_is_a_fault(self):
        self.only(judge([]), "empty")
        self.only(judge(self.world.messages(), at_least={"sluice.run": 1}), "empty")

    def test_a_hole(self):
        messages = self.world.messages()
        del messages[self.index(messages, "sluice.program", 17)]  # an END
        r = judge(messages)
        self.only(r, "hole")
        self.assertEqual(r.holes, {(AGENT, "sluice.program"): [17]})
        self.assertEqual(list(r.unended), ["p8"])
        del messages[self.index(messages, "sluice.program", 16)]  # its START
        self.only(judge(messages), "hole")
        messages = self.world.messages()
        del messages[self.index(messages, "sluice.program", 16)]
        self.only(judge(messages), "hole", "end")

    def test_a_hole_at_the_beginning(self):
        messages = self.world.messages()
        del messages[self.index(messages, "sluice.agent", 0)]
        r = judge(messages)
        self.only(r, "hole")
        self.only(judge(messages, first_seq=None))

    def test_a_hole_at_the_end_shows_against_the_agents_own_count(self):
        messages = self.world.messages()
        del messages[self.index(messages, "sluice.program", 79)]
        self.only(judge(messages))  # as said in Options: it cannot be seen otherwise
        self.only(judge(messages, next_seq={(AGENT, "sluice.program"): 80}), "hole")
        self.only(judge(messages, next_seq={(AGENT, "sluice.program"): 79, (AGENT, "sluice.run"): 2}), "hole")

    def test_a_hole_that_the_agent_accounts_for(self):
        self.world.agent("LIVE", lost=1)
        messages = self.world.messages()
        start = self.index(messages, "sluice.program", 79)  # an END: its START stays open
        del messages[start]
        self.world.program("late", None, "START", NOW + 900)
        messages.append(self.world.messages()[-1])
        self.only(judge(messages))
        r = judge([m for i, m in enumerate(messages) if i != self.index(messages, "sluice.program", 77)])
        self.only(r, "hole")  # two are missing, one is accounted for

    def test_losses_of_each_life_add_up(self):
        self.world.agent("LIVE", lost=2)
        self.world.agent("START")
        self.world.agent("LIVE", lost=1)
        r = judge(self.world.messages())
        self.only(r)
        self.assertEqual(r.accounted, {AGENT: 3})

    def test_a_kernel_event_is_up_to_two_records_and_a_cut_one_none(self):
        for place, reason, records in (("exec", "ring", 2), ("exec", "cut", 0), ("sluice.program", "spool_full", 1)):
            self.setUp()
            self.world.agent("LIVE", 1, place, reason)
            self.assertEqual(judge(self.world.messages()).accounted, {AGENT: records})

    def test_a_dead_letter_accounts_for_its_own_hole_only(self):
        messages = self.world.messages()
        del messages[self.index(messages, "sluice.program", 77)]
        self.only(judge(messages, dead_letters=frozenset({("sluice.program", 77)})))
        self.only(judge(messages, dead_letters=frozenset({("sluice.program", 75)})), "hole")

    def test_a_cut_topic_is_listed_not_judged(self):
        messages = self.world.messages()
        del messages[self.index(messages, "sluice.program", 77)]
        r = judge(messages, cut_topics=("sluice.program",))
        self.only(r)
        self.assertEqual(r.holes, {(AGENT, "sluice.program"): [77]})

    def swap(self, messages):
        """Two records of one partition change places, with their offsets."""
        first = self.index(messages, "sluice.program", 0)
        second = next(i for i, m in enumerate(messages) if i > first + 1 and m.topic == messages[first].topic
                      and m.partition == messages[first].partition)
        messages[first], messages[second] = messages[second], messages[first]
        return second

    def test_a_swap(self):
        messages = self.world.messages()
        self.swap(messages)
        self.only(judge(messages), "order")

    def test_what_is_marked_as_redelivery_may_come_late(self):
        messages = self.world.messages()
        first = self.index(messages, "sluice.program", 0)
        late = messages.pop(first)
        messages.append(late._replace(headers=late.headers + [("redelivery", b"1")]))
        r = judge(messages)
        self.only(r)
        self.assertEqual(r.redelivered, 1)

    def test_an_original_may_follow_its_marked_copy_where_the_network_holds_requests(self):
        messages = self.world.messages()
        first = self.index(messages, "sluice.program", 0)
        original = messages[first]
        marked = original._replace(headers=original.headers + [("redelivery", b"1")])
        messages[first] = marked
        again = [*messages, original]
        self.only(judge(again, duplicates=1), "order")
        self.only(judge(again, duplicates=1, held_requests=True))
        self.only(judge([*again, original], duplicates=2, held_requests=True), "order")  # two originals
        messages[first] = original
        self.only(judge([*messages, marked, original], duplicates=2, held_requests=True), "order")

    def test_order_holds_within_a_partition_only(self):
        messages = self.world.messages()
        messages.sort(key=lambda m: (m.partition, m.offset))
        self.only(judge(messages))

    def test_duplicates_are_counted(self):
        messages = self.world.messages()
        again = [m._replace(offset=900 + n, headers=m.headers + [("redelivery", b"1")])
                 for n, m in enumerate(messages[5:8])]
        r = judge(messages + again, duplicates=3)
        self.only(r)
        self.assertEqual((r.duplicates, r.by_topic["sluice.program"]), (3, 80))
        self.only(judge(messages + again, duplicates=2), "duplicates")
        self.only(judge(messages + messages[5:6], duplicates=1), "order")  # not marked

    def test_one_seq_for_two_records(self):
        self.world.program("p1", "r1", "END", NOW + 2, exit_code=7)["seq"] = 1
        messages = self.world.messages()
        messages[-1] = messages[-1]._replace(headers=messages[-1].headers + [("redelivery", b"1")])
        self.only(judge(messages, duplicates=1), "copy")

    def test_a_wrong_partition(self):
        messages = self.world.messages()
        i = self.index(messages, "sluice.program", 3)
        messages[i] = messages[i]._replace(partition=(messages[i].partition + 1) % PARTITIONS)
        r = judge(messages)
        self.assertIn("partition", r.faults)
        self.assertLessEqual(set(r.faults), {"partition", "order"})

    def test_a_wrong_key(self):
        messages = self.world.messages()
        messages[4] = messages[4]._replace(key=b"somebody:else")
        self.only(judge(messages), "key")
        messages[4] = messages[4]._replace(key=None)
        self.only(judge(messages), "key")

    def test_a_wrong_schema(self):
        def other(schema_id):
            text, subjects = registry(schema_id)
            return (text.replace('"doc"', '"Doc"', 1) if schema_id == IDS["sluice.agent"] else text), subjects

        self.only(judge(self.world.messages(), other), "schema")

    def test_a_schema_of_another_topic(self):
        messages = self.world.messages()
        messages[0] = messages[0]._replace(value=struct.pack(">bI", 0, IDS["sluice.usage"]) + messages[0].value[5:])
        found = judge(messages).faults
        self.assertIn("schema", found)
        self.assertIn("subject", found)

    def test_an_unknown_schema(self):
        messages = self.world.messages()
        messages[0] = messages[0]._replace(value=struct.pack(">bI", 0, 999) + messages[0].value[5:])
        self.only(judge(messages), "schema", "hole")

    def test_broken_bytes(self):
        messages = self.world.messages()
        for value, kind in ((b"\1" + messages[0].value[1:], "frame"), (b"", "frame"), (None, "frame"),
                            (messages[0].value[:20], "decode"), (messages[0].value + b"x", "decode")):
            r = judge([messages[0]._replace(value=value)] + messages[1:])
            self.assertIn(kind, r.faults, value)

    def test_headers(self):
        messages = self.world.messages()
        bare = [messages[0]._replace(headers=None)] + messages[1:]
        self.only(judge(bare), "header")
        self.assertEqual(judge(bare).count("header"), 2)
        for name, value in (("schema_version", b"2"), ("agent_version", b"9.9.9")):
            headers = dict(messages[0].headers) | {name: value}
            self.only(judge([messages[0]._replace(headers=list(headers.items()))] + messages[1:]), "version")

    def test_a_program_that_ends_twice_or_starts_twice(self):
        self.world.program("p1", "r2", "END", NOW + 900)
        self.only(judge(self.world.messages()), "end")
        self.setUp()
        self.world.program("p1", "r2", "START", NOW + 900)
        self.only(judge(self.world.messages()), "start")

    def test_an_end_without_start_and_a_start_without_end(self):
        self.world.program("alone", None, "END", NOW + 900)
        self.world.program("alive", None, "START", NOW + 900)
        r = judge(self.world.messages())
        self.only(r, "end")
        self.assertEqual(list(r.unended), ["alive"])
        self.only(judge(self.world.messages(), ends_without_start=1))

    def test_an_end_without_start_of_a_short_program_and_of_a_long_one(self):
        self.world.program("short", None, "END", NOW + 1_000_000)
        self.only(judge(self.world.messages(), start_after=1))
        self.only(judge(self.world.messages(), start_after=0), "end")
        self.world.program("long", None, "END", NOW + 7_000_000)
        self.only(judge(self.world.messages(), start_after=1), "end")
        self.only(judge(self.world.messages(), start_after=3))

    def test_fields_that_contradict(self):
        for fields in ({"usage": None}, {"end_time": None}, {"exit_code": None}, {"exit_signal": 9},
                       {"end_reason": "EXEC"}, {"end_reason": None}):
            self.setUp()
            self.world.records[2][1].update(fields)  # the END of p0
            self.only(judge(self.world.messages()), "field")
        for fields in ({"exit_code": 0}, {"agent_id": "x"}, {"host_name": ""}):
            self.setUp()
            self.world.records[1][1].update(fields)  # its START
            self.assertIn("field", judge(self.world.messages()).faults)

    def test_times(self):
        self.only(judge(self.world.messages(), window=(NOW + 1, NOW + 10000)), "time")
        self.world.records[2][1]["program_start_time"] = NOW + 100000
        self.only(judge(self.world.messages()), "time")
        self.only(judge(self.world.messages(), ordered_times=False))


class Hashes(unittest.TestCase):
    def test_murmur2_as_the_java_client_tests_it(self):
        for key, want in ((b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536),
                          (b"a-little-bit-longer-string", -1486304829),
                          (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971), (b"abc", 479470107)):
            self.assertEqual(struct.unpack(">i", struct.pack(">I", murmur2(key)))[0], want, key)

    def test_ranges(self):
        self.assertEqual(ranges([3, 1, 2, 7]), "1-3, 7")
        self.assertEqual(ranges(random.sample(range(0, 100, 2), 50)), ", ".join(map(str, range(0, 20, 2)))
                         + " and 40 more")


class Live(unittest.TestCase):
    """The same through a real broker and a real registry, with another library's choice of partition."""

    def test_from_a_producer_to_a_verdict(self):
        from confluent_kafka import Producer

        messages = World().messages()
        with Stack(registry_storage="memory", partitions=PARTITIONS) as stack:
            ids = {}
            for topic in ("sluice.program", "sluice.agent"):
                stack.create_topic(topic, PARTITIONS)
                ids[IDS[topic]] = stack.servers.ask_registry(f"/subjects/{topic}-value/versions",
                                                             {"schema": SCHEMAS[topic]})["id"]
            producer = Producer({"bootstrap.servers": stack.brokers, "partitioner": "murmur2_random", "acks": "all",
                                 "log_level": 2})

            def put(m, **kw):
                value = struct.pack(">bI", 0, ids[m.value[4]]) + m.value[5:]
                producer.produce(m.topic, value, m.key, headers=m.headers, **kw)

            for m in messages:
                put(m)
            self.assertEqual(producer.flush(30), 0)
            result = check(stack.brokers, stack.registry_url, at_least={"sluice.program": 80})
            self.assertTrue(result.ok, result.summary())
            self.assertEqual(result.messages, len(messages))
            command = [sys.executable, kafka_check.__file__, "--brokers", stack.brokers, "--registry",
                       stack.registry_url]
            self.assertEqual(subprocess.run(command, stdout=subprocess.DEVNULL).returncode, 0)

            put(messages[5], partition=(messages[5].partition + 1) % PARTITIONS)
            self.assertEqual(producer.flush(30), 0)
            result = check(stack.brokers, stack.registry_url)
            self.assertEqual({"partition", "duplicates"}, set(result.faults) - {"order"}, result.summary())
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("FAULT partition: 1", done.stdout)
            printed = subprocess.run([*command, "--print"], stdout=subprocess.PIPE, text=True).stdout.splitlines()
            self.assertEqual(len(printed), len(messages) + 1)
            self.assertEqual(json.loads(printed[0])["host_id"], HOST)


if __name__ == "__main__":
    harness.main()
