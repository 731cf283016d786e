# SPDX-License-Identifier: Apache-2.0
"""sluice dead-letters: what an output refused is listed, printed, and delivered once its cause is removed."""
import collections
import concurrent.futures
import functools
import io
import json
import os
import signal
import socket
import subprocess
import time

import fastavro
import harness
import kafka_check
from agent import AgentTest
from disk_log import FROZEN_AT_MOST, ext4_disk, frozen, own_mounts
from faults import WAIT, FaultTest
from hanging import Hanging
from load import Load

LETTERS = 4000
DATA = 4000  # bytes of each letter's record: more than a spool of 16 MiB takes at once


def dead_letters(*words, config=None, **options):
    words = [*words, *(["-c", config] if config else [])]
    return harness.run_sluice(["dead-letters", *words], **options)


def schema_text(name):
    with open(os.path.join(kafka_check.SCHEMAS, name + ".avsc"), encoding="utf-8") as f:
        return f.read()


@functools.cache
def parsed(text):
    return fastavro.parse_schema(json.loads(text))


@functools.cache
def fingerprint(text):
    """CRC-64-AVRO, as Avro's specification defines it."""
    empty = 0xc15d213aa4d7a795
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (empty & -(i & 1))
        table.append(i)
    sum_ = empty
    for byte in text.encode():
        sum_ = (sum_ >> 8) ^ table[(sum_ ^ byte) & 0xff]
    return f"{sum_:016x}"


def write_letters(a, name, letters):
    """A file as the agent writes it: each letter is a block of its own."""
    folder = a.config["dead_letters"]
    os.makedirs(folder, exist_ok=True)
    out = io.BytesIO()
    fastavro.writer(out, json.loads(schema_text("dead_letter")), letters, codec="deflate", sync_interval=1)
    path = os.path.join(folder, name)
    with open(path, "wb") as f:
        f.write(out.getvalue())
    os.chmod(path, 0o600)
    for owned in (folder, path):
        os.chown(owned, 65534, 65534)
    return path


class Made(AgentTest):
    """Letters that the test makes of records that the agent's lake has."""

    def letter_agent(self):
        a = self.agent(records={"start_after": 0})
        a.follow_only("/no/such/folder/")
        a.start()
        a.settle(delivered=True)
        record = next(r for r in harness.read_cat(a.lake, "agent"))
        return a, record

    def empty_record(self):
        kinds = {"string": "", "long": 0, "int": 0, "double": 0.0, "boolean": False}
        record = {}
        for field in json.loads(schema_text("agent"))["fields"]:
            kind = field["type"]
            kind = kind["type"] if isinstance(kind, dict) and isinstance(kind["type"], str) else kind
            if isinstance(kind, list):
                record[field["name"]] = None
            else:
                record[field["name"]] = kinds.get(kind, [])
        return record

    def letter(self, record, seq, text=None, reason="msg_size_too_large"):
        text = text or schema_text("agent")
        fields = {**record, "seq": seq, "agent_id": "6f1f0cd2-0000-4000-8000-000000000001", "event": "LETTER",
                  "message": f"{seq} " + "x" * DATA}
        data = io.BytesIO()
        fastavro.schemaless_writer(data, parsed(text), fields)
        return {"topic": "sluice.agent", "reason": reason, "detail": "Broker: too large", "time": 1795257300123456,
                "record_time": record["time"], "seq": seq, "key": record["host_id"] + ":", "schema": fingerprint(text),
                "data": data.getvalue()}

    def replayed(self, a):
        """{seq: the copies in the lake}"""
        found = collections.defaultdict(list)
        for r in harness.read_cat(a.lake, "agent"):
            if r["event"] == "LETTER":
                found[r["seq"]].append(r)
        return found

    def waiting_agent(self):
        """An agent without brokers, whose spool has room for a part of the letters only: a replay waits in their midst."""
        a = self.agent(kafka={"brokers": ["127.0.0.1:1"]}, registry={"urls": ["http://127.0.0.1:1"]}, drain="1s",
                       spool={"max": "16MiB"})
        a.follow_only("/no/such/folder/")
        record = {**self.empty_record(), "time": 1795257000000000, "host_id": "h"}
        write_letters(a, "sluice.agent-2026-11-20.avro", [self.letter(record, i) for i in range(LETTERS)])
        a.start()
        return a

    def replay_the_rest(self, a):
        """Into a lake. {seq: the copies in it}"""
        del a.config["kafka"], a.config["registry"]
        a.configure()
        a.start()
        done = dead_letters("replay", "--json", config=a.config_path, timeout=WAIT)
        self.assertEqual(0, done.returncode, done.stderr)
        result = json.loads(done.stdout)
        self.assertTrue(result["complete"])
        self.assertEqual([], os.listdir(a.config["dead_letters"]))
        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual(0, a.stop())
        found = self.replayed(a)
        self.assertEqual(list(range(LETTERS)), sorted(found))
        self.assertEqual({1795257000000000}, {copies[0]["time"] for copies in found.values()})
        return result["replayed"], found

    def test_killed_in_between_none_is_lost(self):
        a = self.waiting_agent()
        with subprocess.Popen([harness.SLUICE, "dead-letters", "replay", "-c", a.config_path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as first:
            a.wait_log("dead_letters.replayed", WAIT, count=3)
            first.kill()
            first.wait(WAIT)
        a.kill9()
        replayed, found = self.replay_the_rest(a)
        self.assertEqual(LETTERS, replayed, "no letter was removed before its record was known to be safe")
        copies = [len(copies) for copies in found.values()]
        self.assertEqual({1, 2}, set(copies))
        self.assertTrue(all(r == copies[0] for copies in found.values() for r in copies))

    def test_the_agent_is_killed_and_the_next_goes_on(self):
        a = self.waiting_agent()
        with subprocess.Popen([harness.SLUICE, "dead-letters", "replay", "-c", a.config_path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as first:
            a.wait_log("dead_letters.replayed", WAIT, count=3)
            a.kill9()
            _, errors = first.communicate(timeout=WAIT)
        self.assertEqual(1, first.returncode, errors)
        self.assertIn("the agent gave no answer", errors)
        replayed, found = self.replay_the_rest(a)
        self.assertLess(replayed, LETTERS, "what was safe is not replayed again")
        self.assertTrue(all(r == copies[0] for copies in found.values() for r in copies))

    def test_an_interrupted_replay_removes_what_it_has_replayed(self):
        a = self.waiting_agent()
        with subprocess.Popen([harness.SLUICE, "dead-letters", "replay", "--json", "-c", a.config_path],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as first:
            a.wait_log("dead_letters.replayed", WAIT, count=3)
            first.send_signal(signal.SIGINT)
            out, _ = first.communicate(timeout=WAIT)
        self.assertEqual(1, first.returncode)
        result = json.loads(out)
        self.assertFalse(result["complete"])
        left = json.loads(dead_letters("list", "--json", config=a.config_path).stdout)["letters"]
        self.assertEqual(LETTERS, result["replayed"] + left)
        self.assertEqual([], a.status()["spool"]["dropped"])
        self.assertEqual(0, a.stop())
        replayed, found = self.replay_the_rest(a)
        self.assertEqual(left, replayed)
        self.assertEqual({1}, {len(copies) for copies in found.values()})

    def test_damage_stays_and_old_schemas_are_kept(self):
        a, record = self.letter_agent()
        old = json.dumps({**json.loads(schema_text("agent")), "doc": "of an older version"})
        with open(os.path.join(a.spool, "schemas", fingerprint(old) + ".avsc"), "w", encoding="utf-8") as f:
            f.write(old)
        unknown = {**self.letter(record, 3), "schema": "00000000deadbeef"}
        path = write_letters(a, "sluice.agent-2026-11-20.avro", [
            self.letter(record, 0), self.letter(record, 1, old), self.letter(record, 2), unknown,
            self.letter(record, 4, old), self.letter(record, 5, reason="other"), self.letter(record, 6)])
        with open(path, "r+b") as f:  # the third letter's block, where the bytes are its own
            whole = f.read()
            sync = whole[-16:]
            at = [i for i in range(len(whole)) if whole.startswith(sync, i)][2] + 16 + 30
            f.seek(at)
            f.write(b"\xff" * 8)

        listed = dead_letters("list", "--json", config=a.config_path)
        self.assertEqual(1, listed.returncode)
        self.assertRegex(listed.stderr, rf"{path}: byte \d+: .*it is left alone")
        groups = json.loads(listed.stdout)
        self.assertEqual((6, 1), (groups["letters"], groups["damaged"]))
        self.assertEqual({("msg_size_too_large", 5), ("other", 1)}, {(g["reason"], g["letters"]) for g in groups["groups"]})
        self.assertRegex(dead_letters("list", config=a.config_path).stdout, r"sluice\.agent +msg_size_too_large +5 ")

        shown = dead_letters("show", "--raw", config=a.config_path)
        lines = [json.loads(line) for line in shown.stdout.splitlines()]
        self.assertEqual([0, 1, 3, 4, 5, 6], [x["seq"] for x in lines])
        self.assertEqual([None if x["seq"] == 3 else x["seq"] for x in lines],
                         [x["record"] and x["record"]["seq"] for x in lines])
        self.assertIn("schema", next(x["problem"] for x in lines if x["seq"] == 3))

        dry = dead_letters("replay", "--dry-run", "--reason", "other", config=a.config_path)
        self.assertIn("nothing is replayed", dry.stdout)
        with open(path, "rb") as f:
            self.assertEqual(len(whole), len(f.read()))
        done = dead_letters("replay", "--reason", "other", "--topic", "agent", "--json", config=a.config_path)
        self.assertEqual(1, json.loads(done.stdout)["replayed"])
        done = dead_letters("replay", "--json", config=a.config_path)
        self.assertEqual(1, done.returncode)
        self.assertIn("its schema is not in the folder schemas of the spool", done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((4, 1, 1, False), tuple(result[k] for k in ("replayed", "refused", "damaged", "complete")))
        left = json.loads(dead_letters("list", "--json", config=a.config_path).stdout)
        self.assertEqual((1, 1), (left["letters"], left["damaged"]))
        self.assertEqual((65534, 0o600), (os.stat(path).st_uid, os.stat(path).st_mode & 0o777))

        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual(0, a.stop())
        found = self.replayed(a)
        self.assertEqual([0, 1, 4, 5, 6], sorted(found))
        self.assertEqual({1}, {len(copies) for copies in found.values()})

    def request(self, a, **args):
        """The agent's answer to a client of ours, which has not looked at the folder."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(WAIT)
            s.connect(a.control)
            s.sendall(json.dumps({"command": "dead-letters", "args": args}).encode() + b"\n")
            with s.makefile("r") as lines:
                return json.loads(lines.readline())

    def test_their_folder_hangs(self):
        """The loop continues while a thread reads; the client has an answer, and so has the next one, at once."""
        own_mounts()
        a = self.agent()
        a.follow_only("/no/such/folder/")
        name = "sluice.agent-2026-11-20.avro"
        args = {"folder": a.config["dead_letters"], "file": name, "offset": 0}
        path = write_letters(a, name, [self.letter(self.empty_record(), 0)])
        a.start()
        with Hanging(os.path.dirname(path)) as hanging, concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.request, a, **args)
            self.assertIsNotNone(hanging.asked(WAIT))
            slowest = 0
            while not first.done():
                before = time.monotonic()
                a.status()
                slowest = max(slowest, time.monotonic() - before)
                time.sleep(0.05)
            self.assertLess(slowest, 2 * harness.PATIENCE)
            for answer in (first.result(), self.request(a, **args)):
                self.assertFalse(answer["ok"])
                self.assertIn("its disk does not answer in time", answer["error"])
        a.wait(lambda: dead_letters("replay", config=a.config_path).returncode == 0, WAIT, "the folder's answer")
        self.assertEqual([], os.listdir(a.config["dead_letters"]))
        self.assertEqual(0, a.stop())
        self.assertEqual([0], list(self.replayed(a)))

    def test_what_cannot_be_done_is_said(self):
        a = self.agent()
        done = dead_letters("list", config=a.config_path)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("no dead letters in", done.stdout)
        for words, said in ((["list", "--topic", "nothing"], "the topics are"), (["bury"], "list, show and replay"),
                            ([], "list, show or replay"), (["replay", "--folder", "/tmp"], "leave out --folder")):
            done = dead_letters(*words, config=a.config_path)
            self.assertEqual(2, done.returncode)
            self.assertIn(said, done.stderr)
        a_letter = self.letter(self.empty_record(), 0)
        write_letters(a, "sluice.agent-2026-11-20.avro", [a_letter])
        done = dead_letters("replay", config=a.config_path)
        self.assertEqual(1, done.returncode)
        self.assertIn("no agent listens at " + a.control, done.stderr)
        self.assertEqual(1, json.loads(dead_letters("list", "--json", config=a.config_path).stdout)["letters"])
        self.assertIn("replay", dead_letters("--help").stdout)


class Refused(FaultTest):
    stack_options = None

    def read_all(self):
        """{(topic, agent_id, seq): copies} of all that the brokers have."""
        registry = kafka_check.Registry(self.stack.registry_url)
        found = collections.Counter()
        for m in kafka_check.read_messages(self.stack.brokers, self.prefix):
            text, _ = registry.schema_of(int.from_bytes(m.value[1:5], "big"))
            r = fastavro.schemaless_reader(io.BytesIO(m.value[5:]), parsed(text))
            found[m.topic[len(self.prefix):], r["agent_id"], r["seq"]] += 1
        return found

    def allow(self, topic, size):
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

        entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self.stack._admin(lambda admin: [f.result(30) for f in admin.incremental_alter_configs([resource]).values()])

    def test_what_a_topic_refused_is_delivered_once_when_it_is_allowed(self):
        topic = self.prefix + "sluice.program"
        self.stack.create_topic(topic, config={"max.message.bytes": "20000"})
        a = self.kafka_agent(kafka={"properties": {"compression.type": "none"}}).start()
        with Load("large", rate=20, padding=30000) as load:
            load.wait_more(10)
        a.settle(delivered=True, timeout=WAIT)
        letters = json.loads(dead_letters("list", "--json", config=a.config_path).stdout)
        self.assertGreaterEqual(letters["letters"], 2 * load.started)
        lines = dead_letters("show", config=a.config_path).stdout.splitlines()
        records = [json.loads(line)["record"] for line in lines]
        self.assertEqual(letters["letters"], len(records))
        refused = {("sluice.program", r["agent_id"], r["seq"]) for r in records}
        self.assertEqual(len(records), len(refused))
        self.assertEqual(set(), refused & set(self.read_all()))

        self.allow(topic, 1000000)
        done = dead_letters("replay", "--json", config=a.config_path)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(letters["letters"], json.loads(done.stdout)["replayed"])
        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual(0, json.loads(dead_letters("list", "--json", config=a.config_path).stdout)["letters"])
        self.assertEqual(0, a.stop(2 * WAIT))
        found = self.read_all()
        self.assertEqual({1}, {found[key] for key in refused})
        self.assertEqual({1}, set(found.values()))

    def test_their_disk_is_frozen(self):
        """The loop continues, other records are delivered, and each letter is written after the thaw."""
        own_mounts()
        disk = ext4_disk(self)
        self.stack.create_topic(self.prefix + "sluice.program", config={"max.message.bytes": "20000"})
        a = self.kafka_agent(kafka={"properties": {"compression.type": "none"}}, dead_letters=f"{disk}/dead").start()
        with Load("before", rate=20, padding=30000) as load:
            load.wait_more(5)
        a.settle(delivered=True, timeout=WAIT)  # the folder is there
        before = json.loads(dead_letters("list", "--json", config=a.config_path).stdout)["letters"]
        with frozen(disk), Load("frozen", rate=20, padding=30000) as load:
            load.wait_more(20)
            began, slowest, delivered = time.monotonic(), 0, {}
            while time.monotonic() < began + 10 or sum(x["count"] for x in a.status()["dead_letters"]) < before + 20:
                at = time.monotonic()
                s = a.status()
                slowest = max(slowest, time.monotonic() - at)
                delivered = {x["topic"]: x["delivered"] for x in s["records"]}
                self.assertLess(time.monotonic(), began + FROZEN_AT_MOST - 20, s)
                time.sleep(0.05)
            self.assertLess(slowest, 2 * harness.PATIENCE)
            a.wait(lambda: {x["topic"]: x["delivered"] for x in a.status()["records"]}["sluice.host"] > delivered["sluice.host"],
                   30, "a record of another topic")
        a.settle(delivered=True, timeout=WAIT)
        self.assertEqual([], [x for x in a.status()["lost"] if "dead_letters" in x["reason"]])
        letters = json.loads(dead_letters("list", "--json", config=a.config_path).stdout)["letters"]
        self.assertGreaterEqual(letters, before + 2 * load.started)
        self.assertEqual(0, a.stop(2 * WAIT))


if __name__ == "__main__":
    harness.main()
