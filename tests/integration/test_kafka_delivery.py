# SPDX-License-Identifier: Apache-2.0
"""Delivery alone, against a real broker: what the driver puts into its spool arrives whole, in order, whatever happens."""
import collections
import contextlib
import glob
import io
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import fastavro
from confluent_kafka import Consumer, KafkaException, TopicPartition

import harness
from kafka_check import watermarks
from kafka_rules import partition_of
from stack import PASSWORD, USER, Stack

DELIVER = harness.built("deliver")
SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schemas", "avro")
HOST = "0123456789abcdef0123456789abcdef"
PARTITIONS = 3
RUNS = 8  # the driver's: record n is of run n % 8

Read = collections.namedtuple("Read", "seqs redelivered doubled backwards wrong")


def schema(name):
    with open(os.path.join(SCHEMAS, name + ".avsc"), encoding="utf-8") as f:
        return fastavro.parse_schema(json.load(f))


def messages(brokers, topic):
    """All of a topic, each partition in its order: (partition, message)."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "check", "enable.auto.commit": False,
                         "log_level": 2})
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        for p in partitions:
            low, high = watermarks(consumer, topic, p)
            consumer.assign([TopicPartition(topic, p, low)])
            deadline = time.monotonic() + 60
            while low < high:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{topic} [{p}]: stuck at {low} of {high}")
                for m in consumer.consume(min(high - low, 5000), timeout=2):
                    if m.error():
                        raise AssertionError(str(m.error()))
                    low = m.offset() + 1
                    yield p, m
    finally:
        consumer.close()


def arrived(brokers, topic):
    """How many messages a topic has been given, if it is there."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "count", "log_level": 0})
    try:
        found = consumer.list_topics(topic, timeout=20).topics[topic]
        return sum(watermarks(consumer, topic, p)[1] for p in found.partitions)
    except KafkaException:
        return 0  # it is being made
    finally:
        consumer.close()


def read(brokers, topic, name="program"):
    """What came of a topic, and every way in which it may not have come."""
    parsed = schema(name)
    seqs, last = collections.Counter(), {}
    redelivered, backwards, wrong = 0, [], []
    for p, m in messages(brokers, topic):
        value, key, headers = m.value(), m.key().decode(), dict(m.headers())
        record = fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed)
        if (value[:5] != b"\0\0\0\0\x01" or p != partition_of(m.key(), PARTITIONS)
                or key != f"{HOST}:{record['run_id']}" or headers.get("schema_version") != b"%d" % record["schema_version"]
                or "agent_version" not in headers
                or m.timestamp()[1] != int(record["time"].timestamp() * 1000)):
            wrong.append((p, m.offset(), key, headers))
        seq = record["seq"]
        seqs[seq] += 1
        if "redelivery" in headers:
            redelivered += 1
        elif seq <= last.get(key, -1):
            backwards.append((key, last[key], seq))
        last[key] = max(seq, last.get(key, -1))
    return Read(seqs, redelivered, sum(n - 1 for n in seqs.values()), backwards[:5], wrong[:5])


class SlowHandshakes:
    """A server on loopback whose handshakes take a client tenths of a second: Diffie-Hellman with 8192 bits."""

    def __init__(self, directory, cert, key):
        group = os.path.join(directory, "group.pem")
        subprocess.run(["openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe8192",
                        "-out", group], check=True, stderr=subprocess.DEVNULL)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(cert, key)
        self.context.maximum_version = ssl.TLSVersion.TLSv1_2
        self.context.load_dh_params(group)
        self.context.set_ciphers("DHE-RSA-AES128-GCM-SHA256")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.brokers = "localhost:%d" % self.listener.getsockname()[1]
        self.done = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):  # closed
            while True:
                threading.Thread(target=self.shake, args=(self.listener.accept()[0],), daemon=True).start()

    def shake(self, connection):
        with connection, contextlib.suppress(OSError):
            self.context.wrap_socket(connection, server_side=True).close()
            self.done += 1

    def close(self):
        self.listener.close()


def options(properties):
    return [x for name, value in properties.items() for x in ("--property", f"{name}={value}")]


def sasl(password, mechanism="PLAIN"):
    return options({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.username": USER,
                    "sasl.password": password})


class Delivery(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack(registry=False, tls=True, partitions=PARTITIONS)
        cls.addClassCleanup(cls.stack.close)
        cls.stack.up()

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sluice-deliver-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.prefix = self._testMethodName.replace("test_", "") + "."
        self.topic = self.prefix + "sluice.program"

    def start(self, number, *options, brokers=None, create=True, env=None):
        command = [DELIVER, "--spool", os.path.join(self.dir, "spool"), "--number", str(number), "--prefix", self.prefix,
                   "--dead", os.path.join(self.dir, "dead"), "--brokers", brokers or self.stack.brokers]
        command += ["--create", str(PARTITIONS)] if create else []
        with open(os.path.join(self.dir, "said"), "w") as said:
            p = subprocess.Popen(command + list(options), stdout=subprocess.PIPE, stderr=said, text=True,
                                 env={**os.environ, **(env or {})})
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)
        return p

    def said(self):
        """What the last one that was started has printed until now."""
        with open(os.path.join(self.dir, "said"), errors="replace") as f:
            return f.read()

    def wait(self, p, condition, what):
        end = time.monotonic() + 120
        while not condition():
            self.assertIsNone(p.poll(), f"ended before {what}: {self.said()}")
            self.assertLess(time.monotonic(), end, f"no {what}: {self.said()}")
            time.sleep(0.05)

    def wait_arrived(self, p, more):
        """Until the topic has so many messages more."""
        goal = arrived(self.stack.brokers, self.topic) + more
        self.wait(p, lambda: arrived(self.stack.brokers, self.topic) >= goal, f"{more} more messages")

    def wait_said(self, p, text):
        self.wait(p, lambda: text in self.said(), text)

    def term(self, p, number, text=""):
        """Its report: it gets SIGTERM once all is put and it has said the text."""
        self.wait_said(p, f"{number} were put")
        self.wait_said(p, text)
        p.send_signal(signal.SIGTERM)
        return self.finish(p)

    def finish(self, p, timeout=180):
        """Its report, with what it said."""
        out, err = p.communicate(timeout=timeout)[0], self.said()
        self.assertIn(p.returncode, (0, 1), err)
        self.assertNotIn("ERROR: AddressSanitizer", err)
        self.assertNotIn("ERROR: LeakSanitizer", err)
        self.assertNotIn("runtime error", err)
        report = json.loads(out)
        report["said"] = err
        return report

    def check(self, number, name="program"):
        """Everything from seq 0 to number is there, in order."""
        found = read(self.stack.brokers, f"{self.prefix}sluice.{name}", name)
        self.assertEqual(found.wrong, [])
        self.assertEqual(found.backwards, [])
        missing = set(range(number)) - set(found.seqs)
        self.assertEqual(len(missing), 0, f"missing {sorted(missing)[:10]}")
        self.assertLess(max(found.seqs), number)
        return found

    def test_steady(self):
        report = self.finish(self.start(20000, "--usage-every", "4"))
        self.assertTrue(report["is_empty"], report)
        self.assertEqual(report["delivered"], {"sluice.program": 15000, "sluice.usage": 5000})
        found = self.check(15000)
        self.assertEqual((found.doubled, found.redelivered), (0, 0))
        self.check(5000, "usage")

    def test_broker_killed(self):
        p = self.start(100000, "--rate", "10000", "--wait", "60000")
        self.wait_arrived(p, 5000)
        self.stack.kill_broker()
        self.wait_said(p, "deliver: ")  # what the output's status says
        self.stack.start_broker()
        report = self.finish(p)
        self.assertTrue(report["is_empty"], report)
        found = self.check(100000)
        self.assertEqual(found.doubled, 0)  # idempotence: nothing had to be handed over again

    def test_away_longer_than_the_message_timeout(self):
        p = self.start(40000, "--rate", "2500", "--wait", "60000", "--property", "message.timeout.ms=3000",
                       "--pause-max", "500")
        self.wait_arrived(p, 2500)
        self.stack.kill_broker()
        self.wait_said(p, "no broker can be reached")
        time.sleep(5)  # the timeout, and the second in which librdkafka looks for it
        self.stack.start_broker()
        report = self.finish(p)
        self.assertTrue(report["is_empty"], report)
        self.assertGreater(report["rewinds"], 0)
        self.assertIn("no broker can be reached", report["said"])
        found = self.check(40000)
        self.assertGreater(found.redelivered, 0)

    def test_killed_at_random_moments(self):
        for wait in (0.1, 0.4, 0.05, 0.2):
            p = self.start(1000000, "--rate", "5000", "--wait", "1")
            self.wait_arrived(p, 1300)
            time.sleep(wait)
            p.kill()
            p.wait()
        report = self.finish(self.start(1, "--wait", "60000"))
        self.assertTrue(report["is_empty"], report)
        found = read(self.stack.brokers, self.topic)
        number = max(found.seqs) + 1
        self.assertGreater(number, 5000)
        self.assertEqual(sorted(found.seqs), list(range(number)))
        self.assertEqual(found.wrong, [])

    def test_too_large_is_a_dead_letter(self):
        report = self.finish(self.start(5, "--argument", "1200000"))
        self.assertTrue(report["is_empty"], report)
        self.assertEqual(report["dead"], {"msg_size_too_large": {"sluice.program": 5}})
        letters = []
        for path in glob.glob(os.path.join(self.dir, "dead", "*.avro")):
            with open(path, "rb") as f:
                letters += list(fastavro.reader(f))
        self.assertEqual([x["seq"] for x in letters], list(range(5)))
        for x in letters:
            record = fastavro.schemaless_reader(io.BytesIO(x["data"]), schema("program"))
            self.assertEqual((x["topic"], x["reason"]), ("sluice.program", "msg_size_too_large"))
            self.assertEqual((record["seq"], record["time"]), (x["seq"], x["record_time"]))
            self.assertEqual(len(record["argv"][1]), 1200000)
            self.assertTrue(glob.glob(os.path.join(self.dir, "spool", "schemas", x["schema"] + "*")), x["schema"])

    def test_a_missing_topic_is_waited_for(self):
        p = self.start(100, "--wait", "60000", create=False)
        self.wait_said(p, "kafka-topics.sh")
        for t in ("program", "usage"):
            self.stack.create_topic(f"{self.prefix}sluice.{t}", PARTITIONS)
        report = self.finish(p)
        self.assertTrue(report["is_empty"], report)
        self.assertIn(f"kafka-topics.sh --bootstrap-server {self.stack.brokers} --create --topic {self.topic}",
                      report["said"])
        self.assertEqual(self.check(100).doubled, 0)

    def test_a_topic_deleted_and_made_again(self):
        p = self.start(30000, "--rate", "1500", "--wait", "60000", "--pause-max", "500")
        self.wait_arrived(p, 1500)
        self.stack.delete_topic(self.topic)
        report = self.finish(p)
        self.assertTrue(report["is_empty"], report)
        self.assertEqual(report["dead"], {})
        self.assertEqual(report["delivered"], {"sluice.program": 30000})
        # What was acknowledged went with the old topic, each partition at its moment; from then on all is there.
        found = read(self.stack.brokers, self.topic)
        self.assertEqual((found.backwards, found.wrong), ([], []))
        for run in range(RUNS):
            seqs = sorted(s for s in found.seqs if s % RUNS == run)
            self.assertEqual(seqs, list(range(seqs[0], 30000, RUNS)))
            self.assertLess(seqs[0], 25000)

    def test_scram_or_a_word_about_the_library(self):
        where = self.stack.listener("sasl_plaintext")
        report = self.finish(self.start(500, "--wait", "20000", *sasl(PASSWORD, "SCRAM-SHA-512"), brokers=where))
        if tuple(int(n) for n in report["librdkafka"].split(".")) >= (2, 6, 1):
            self.assertTrue(report["is_empty"], report)
        else:
            self.assertFalse(report["is_empty"])
            self.assertIn("older than 2.6.1", report["error"])
            report = self.finish(self.start(1, *sasl(PASSWORD), brokers=where))
            self.assertTrue(report["is_empty"], report)
        self.check(500 + (report["recovered"] > 0))

    def test_oauthbearer(self):
        properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
                      "enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={USER}"}
        report = self.finish(self.start(500, "--wait", "60000", *options(properties),
                                        brokers=self.stack.listener("sasl_plaintext")))
        self.assertTrue(report["is_empty"], report)
        self.check(500)

    def test_mutual_tls(self):
        properties = {"security.protocol": "SSL", "ssl.ca.location": self.stack.cert("ca.crt"),
                      "ssl.certificate.location": self.stack.cert("client.crt"),
                      "ssl.key.location": self.stack.cert("client.key")}
        report = self.finish(self.start(500, "--wait", "60000", *options(properties),
                                        brokers=self.stack.listener("mtls")))
        self.assertTrue(report["is_empty"], report)
        self.check(500)

    def test_an_untrusted_broker_is_refused(self):
        properties = {"security.protocol": "SSL", "ssl.ca.location": self.stack.cert("other-ca.crt")}
        p = self.start(50, "--wait", "60000", *options(properties), brokers=self.stack.listener("ssl"))
        report = self.term(p, 50, "certificate verify failed")
        self.assertFalse(report["is_empty"])
        self.assertEqual(report["delivered"], {})
        self.assertRegex(report["error"], "certificate verify failed")

    def test_the_process_ends_in_the_middle_of_a_handshake(self):
        slow = SlowHandshakes(self.dir, self.stack.cert("server.crt"), self.stack.cert("server.key"))
        self.addCleanup(slow.close)
        properties = {"security.protocol": "SSL", "ssl.ca.location": self.stack.cert("ca.crt"),
                      "reconnect.backoff.ms": "0"}
        # What a thread has that is cut off is no leak.
        no_leaks = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        for wait in ("500", "700", "900"):
            report = self.finish(self.start(50, "--wait", wait, "--linger", "1000", *options(properties),
                                            brokers=slow.brokers, env=no_leaks))
            self.assertFalse(report["is_empty"])
        self.finish(self.start(50, "--wait", "500", *options(properties), brokers=slow.brokers))
        p = self.start(50, "--wait", "60000", *options(properties), brokers=slow.brokers)
        self.wait(p, lambda: slow.done > 0, "handshake")  # there is an end to one
        self.term(p, 50)

    def test_wrong_credentials_lose_nothing(self):
        where = self.stack.listener("sasl_plaintext")
        p = self.start(500, "--wait", "60000", *sasl("wrong"), brokers=where)
        report = self.term(p, 500, "uthenticat")
        self.assertFalse(report["is_empty"])
        self.assertRegex(report["error"], "(?i)authenticat")
        self.assertNotIn("wrong", report["said"] + report["error"])
        report = self.finish(self.start(1, *sasl(PASSWORD), brokers=where))
        self.assertTrue(report["is_empty"], report)
        self.check(501)

    def test_files_have_it_too(self):
        lake = os.path.join(self.dir, "lake")
        p = subprocess.run([DELIVER, "--spool", os.path.join(self.dir, "spool"), "--number", "20000", "--lake", lake],
                           stdout=subprocess.PIPE, check=True, timeout=120)
        self.assertEqual(json.loads(p.stdout)["delivered"], {"sluice.program": 20000})
        seqs = []
        for path in glob.glob(os.path.join(lake, "**", "*.avro"), recursive=True):
            with open(path, "rb") as f:
                seqs += [r["seq"] for r in fastavro.reader(f)]
        self.assertEqual(sorted(seqs), list(range(20000)))

    def test_term_ends_the_wait(self):
        p = self.start(1000, "--wait", "60000", brokers="127.0.0.1:1")
        self.wait_said(p, "1000 were put")
        p.send_signal(signal.SIGTERM)
        report = self.finish(p, timeout=30)
        self.assertFalse(report["is_empty"])
        self.assertEqual(report["delivered"], {})
        report = self.finish(self.start(1))
        self.assertEqual(report["recovered"], 1000)
        self.check(1001)


if __name__ == "__main__":
    harness.main()
