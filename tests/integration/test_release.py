# SPDX-License-Identifier: Apache-2.0
"""
What an older release left on the disk: its spool is delivered, each record once, its lake is read, and its schemas read
today's records. What a later one left: all is delivered but the records of topics that only that one knows, which are kept
for it.
"""
import collections
import copy
import glob
import os
import struct

import fastavro
import harness
import releases
from agent import AgentTest
from fastavro.schema import expand_schema
from harness import LakeTest, lake_files, losses, read_cat, read_lake, seq_holes


class Release(AgentTest):
    def own(self, spool, uid):
        """Its files are those of the user that the agent becomes."""
        for at, _, files in os.walk(spool):
            for path in (at, *(os.path.join(at, name) for name in files)):
                os.chown(path, uid, uid)

    def check_spool(self, name, is_same_boot):
        a = self.agent(name)
        expected = releases.unpack(name, a.room)
        kept = a.lake + ".kept"
        os.rename(a.lake, kept)
        self.own(a.spool, 65534)
        boot = read_cat(kept, "agent")[0]["boot_id"]
        a.command_prefix = harness.under_boot(a.room, boot if is_same_boot else harness.ANOTHER_BOOT)
        a.start()
        a.settle(delivered=True)
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual([], [x for x in a.log_lines() if x["level"] == "error"])
        topics = read_lake(a.lake)
        for topic, known in expected["spool"].items():
            self.assertEqual([], seq_holes(topics[topic]), topic)  # nor is one there twice
            self.assertEqual(known, releases.digests({topic: topics[topic][:len(known)]})[topic])
        self.assertEqual({expected["agent_id"]}, {r["agent_id"] for records in topics.values() for r in records})
        agent = topics["sluice.agent"]
        events = collections.Counter(r["event"] for r in agent)
        self.assertEqual((1, 2), (events["GAP"], events["START"]), events)
        self.assertEqual((boot, is_same_boot), (agent[0]["boot_id"], agent[-1]["boot_id"] == boot))
        # The write-ahead log names the processes that ran; they ended while no agent ran. A log of another boot has no
        # process of this one.
        unseen = [("correlate", "end_unseen", expected["alive"])] if is_same_boot else []
        self.assertEqual(unseen, [x for x in losses(topics) if x[1] != "cut"])

    def check_lake(self, name):
        room = os.path.join(self.room, name)
        os.mkdir(room)
        expected = releases.unpack(name, room)
        for topic, known in expected["lake"].items():
            records = read_cat(os.path.join(room, "lake"), topic.removeprefix("sluice."))
            self.assertEqual(known, releases.digests({topic: records})[topic])

    def test_its_spool_is_delivered_and_the_gap_is_reported(self):
        self.assertTrue(releases.names())
        for name in releases.names():
            with self.subTest(name):
                self.check_spool(name, is_same_boot=True)

    def test_its_spool_is_delivered_after_a_reboot(self):
        for name in releases.names():
            with self.subTest(name):
                self.check_spool(name, is_same_boot=False)

    def test_its_lake_is_read(self):
        for name in releases.names():
            with self.subTest(name):
                self.check_lake(name)


class Reader(LakeTest):
    """A program that reads by the schemas of an older release."""

    def record_today(self):
        """A small run that leaves records of all topics: {topic: [path]}."""
        command = ["bash", "-c", "until [ $SECONDS -ge 2 ]; do :; done; sh -c 'exit 3'; exit $?"]
        options = ["--own-probes", "--quiet", "--interval", "500ms", "--pipeline", "P", "--task", "T", "--sample", "S"]
        done = self.sluice_run(*command, options=options)
        self.assertEqual((3, ""), (done.returncode, done.stderr))
        topics = collections.defaultdict(list)
        for path, is_finished in lake_files(self.lake):
            self.assertTrue(is_finished, path)
            topics[os.path.relpath(path, self.lake).split(os.sep)[0]].append(path)
        self.assertEqual(set(harness.TOPICS), set(topics))
        return topics

    def assert_readable(self, older, today, where):
        """Of schemas: each field of the older one is there as it was. Others may have come."""
        if isinstance(older, list):
            self.assertEqual(len(older), len(today), where)  # it knows no other branch
            for one, other in zip(older, today):
                self.assert_readable(one, other, where)
        elif isinstance(older, dict):
            about = ("doc", "default", "fields")
            self.assertIsInstance(today, dict, where)
            self.assertEqual(set(older) - set(about), set(today) - set(about), where)
            for key in set(older) - set(about):
                self.assert_readable(older[key], today[key], where)
            fields = {field["name"]: field for field in today.get("fields", [])}
            for field in older.get("fields", []):
                self.assertIn(field["name"], list(fields), where)
                self.assert_readable(field["type"], fields[field["name"]]["type"], f"{where}.{field['name']}")
        else:
            self.assertEqual(older, today, where)

    def assert_same(self, older, today, where):
        """Of what is read by either schema: all that the older one has."""
        if isinstance(older, dict):
            self.assertLessEqual(set(older), set(today), where)
            for key, value in older.items():
                self.assert_same(value, today[key], f"{where}.{key}")
        elif isinstance(older, list):
            self.assertEqual(len(older), len(today), where)
            for one, other in zip(older, today):
                self.assert_same(one, other, where)
        else:
            self.assertEqual(older, today, where)

    def test_todays_records(self):
        today = self.record_today()
        for name in releases.names():
            schemas = releases.schemas(name)
            self.assertEqual(set(harness.TOPICS), set(schemas))
            for topic, path in ((topic, path) for topic, paths in today.items() for path in paths):
                with self.subTest(name, topic=topic), open(path, "rb") as f, open(path, "rb") as again:
                    reader = fastavro.reader(f)
                    self.assert_readable(expand_schema(schemas[topic]), expand_schema(reader.writer_schema), topic)
                    records, by_older = list(reader), list(fastavro.reader(again, schemas[topic]))
                    self.assertGreater(len(records), 0)
                    self.assertEqual(len(records), len(by_older))
                    for one, other in zip(by_older, records):
                        self.assert_same(one, other, topic)

    def test_what_would_stop_it_is_noticed(self):
        """In a field of the record, and in one of a record in it, by a change of any kind."""
        whole = expand_schema(releases.schemas(releases.names()[0])["sluice.task"])
        usage = next(i for i, field in enumerate(whole["fields"]) if field["name"] == "usage")
        self.assert_readable(whole, copy.deepcopy(whole), "")
        for fields_of in (lambda s: s["fields"], lambda s: s["fields"][usage]["type"]["fields"]):
            for at, field in enumerate(fields_of(whole)):
                changed = {"gone": [], "renamed": [field | {"name": "other"}], "other type": [field | {"type": "bytes"}],
                           "other branch": [field | {"type": [field["type"], "bytes"]}]}
                for what, now in changed.items():
                    later = copy.deepcopy(whole)
                    fields_of(later)[at:at + 1] = now
                    with self.assertRaises(AssertionError, msg=f"{field['name']}: {what}"):
                        self.assert_readable(whole, later, "")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def rename_topic(files, old, new):
    """In the heads of a spool's segments (src/spool/format.h): what a version has that calls it so."""
    for path in files:
        with open(path, "r+b") as f:
            whole = bytearray(f.read())
            head = whole[:struct.unpack_from("<I", whole, 32)[0]]
            for at in range(40, len(head) - 4, 48):
                if head[at:at + 32].rstrip(b"\0") == old.encode():
                    head[at:at + 32] = new.encode().ljust(32, b"\0")
            head[-4:] = struct.pack("<I", crc32c(head[:-4]))
            f.seek(0)
            f.write(head)


class UnknownTopic(AgentTest):
    LATER = "sluice.later"  # what the later version calls the topic that has the Host records here

    def segments(self, a, which):
        return glob.glob(os.path.join(a.spool, which + "*.seg"))

    def hosts(self, a):
        return sorted(r["seq"] for r in read_lake(a.lake).get("sluice.host", []))

    def test_its_records_wait_for_the_version_that_knows_it_and_all_others_are_delivered(self):
        a = self.agent(drain="0s", kafka={"brokers": ["127.0.0.1:1"]}, registry={"urls": ["http://127.0.0.1:1"]}).start()
        a.wait(lambda: next(t["produced"] for t in a.status()["records"] if t["topic"] == "sluice.host") >= 3, what="records")
        self.assertEqual(0, a.stop(), a.log_text())
        rename_topic(self.segments(a, "main-") + self.segments(a, "usage-"), "sluice.host", self.LATER)
        del a.config["kafka"], a.config["registry"]
        a.configure(drain="10s")
        a.start()
        kept = a.wait_log("spool.unknown_topics")["records"]
        self.assertGreaterEqual(kept, 3)
        status = a.status()
        self.assertEqual([{"topic": self.LATER, "reason": "unknown_topic", "count": kept}], status["spool"]["unknown_topics"])
        self.assertIn("1 of topics" if kept == 1 else f"{kept} records of topics", "".join(p["text"] for p in status["problems"]))
        a.settle(delivered=True)
        self.assertEqual(0, a.stop(), a.log_text())
        topics = read_lake(a.lake)
        for topic in set(topics) - {"sluice.host"}:
            self.assertEqual([], seq_holes(topics[topic]), topic)
            self.assertEqual(0, topics[topic][0]["seq"], topic)
        self.assertEqual([], [x for x in losses(topics) if x[1] == "unknown_topic"])
        self.assertNotIn("GAP", [r["event"] for r in topics["sluice.agent"]])
        self.assertNotIn(0, self.hosts(a))
        self.assertEqual([], glob.glob(os.path.join(a.spool, "*.bad")))
        rename_topic(self.segments(a, ""), self.LATER, "sluice.host")  # the later version is installed again
        a.start()
        self.assertEqual([], a.status()["spool"]["unknown_topics"])
        a.settle(delivered=True)
        self.assertEqual(0, a.stop(), a.log_text())
        hosts = self.hosts(a)
        self.assertEqual(list(range(len(hosts))), hosts)
        self.assertEqual([], self.segments(a, "unknown-"))


if __name__ == "__main__":
    harness.main()
