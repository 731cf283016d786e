# SPDX-License-Identifier: Apache-2.0
"""One topic of which the broker or the registry takes nothing waits alone, and then has each record once, too."""
import http.server
import json
import subprocess
import threading
import urllib.request

import harness
from faults import WAIT, FaultTest, get
from load import Load, own

TOPICS = ("program", "usage", "task", "run", "host", "finding", "agent")


class PartialRegistry:
    """Passes each request on to a registry, but answers 503 to those for the first subject that it is asked for."""

    def __init__(self, url):
        self.url = url
        self.subject = None  # that one
        self.fails = True

    def _answer(self, path, body):
        self.subject = self.subject or path.split("/")[path.split("/").index("subjects") + 1]
        if self.fails and f"/{self.subject}/" in path:
            return 503, b'{"error_code": 50001, "message": "the store of the schemas has failed"}'
        q = urllib.request.Request(self.url + path, body, headers={"Content-Type": "application/vnd.schemaregistry.v1+json"})
        with urllib.request.urlopen(q, timeout=20) as answer:
            return answer.status, answer.read()

    def __enter__(self):
        answer = self._answer

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                status, body = answer(self.path, self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.own_url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class OneTopic(FaultTest):
    stack_options = None

    def waiting(self, agent, topic):
        """What the status has of a topic that waits, or None."""
        return next((w for w in agent.status()["spool"]["waiting"] if w["topic"] == topic), None)

    def wait_waiting(self, agent, topic, reason, more_than):
        """Until more than so many records of the topic wait, for that reason: before the registry answers, for none."""
        agent.wait(lambda: any(w["count"] > more_than and w["reason"] == reason for w in [self.waiting(agent, topic)] if w),
                   WAIT, f"{topic} waits: {reason}")

    def assert_alone(self, agent, topic, reason):
        """The others are delivered, the agent is ready, and each client of its status names the topic and the reason."""
        for other in ("program", "host", "agent"):
            self.wait_delivered(agent, 2, "sluice." + other)
        self.wait_delivered(agent, 200)
        self.assertEqual(0, self.topic_status(agent, topic)["delivered"])
        self.assertEqual([topic], [w["topic"] for w in agent.status()["spool"]["waiting"]])
        agent.wait(lambda: get(agent, "/readyz")[0] == 200, 10, "an answer of /readyz, which is made once a second")
        text = agent.ctl("status", check=True).stdout
        self.assertIn(f"{topic} waits, with ", text)
        self.assertIn(reason, text)
        self.assertIn(f'sluice_spool_waiting_records{{topic="{topic}",reason="{reason}"}} ', get(agent, "/metrics")[1])
        waits = agent.wait_log("delivery.waits")
        self.assertEqual((topic, reason), (waits["topic"], waits["reason"]))

    def assert_all_once(self, agent, topic, load):
        agent.wait(lambda: not self.waiting(agent, topic), WAIT, f"{topic} goes on")
        agent.settle(delivered=True, timeout=WAIT)
        self.assertGreater(self.topic_status(agent, topic)["delivered"], 0)
        self.stop_drained(agent)
        self.assert_whole(load)

    def waker(self):
        """
        A program that runs a little each second, so that each pass has a Usage record of it: of a program that ends
        before a pass there is none, of one that only sleeps there is one in all.
        """
        waker = subprocess.Popen([own("tail"), "---disable-inotify", "-n", "0", "-s", "0.5", "-f", own("sleep")])
        self.addCleanup(waker.wait)
        self.addCleanup(waker.kill)

    def test_a_refused_schema_also_through_a_restart(self):
        subject = self.prefix + "sluice.usage-value"
        other = {"type": "record", "name": "Usage", "namespace": "sluice", "fields": []}
        self.ask("POST", f"/subjects/{subject}/versions", {"schema": json.dumps(other)})
        self.ask("PUT", f"/config/{subject}", {"compatibility": "BACKWARD"})
        a = self.kafka_agent(drain="2s").start()
        self.waker()
        with Load("refused", rate=50) as load:
            self.wait_waiting(a, "sluice.usage", "schema_refused", 2)
            self.assert_alone(a, "sluice.usage", "schema_refused")
            waited = self.waiting(a, "sluice.usage")["count"]
            self.assertEqual(0, a.stop(2 * WAIT), a.log_text())
            a.start()
            self.wait_waiting(a, "sluice.usage", "schema_refused", waited)
            self.wait_delivered(a, 50)
            again = {t["topic"]: t["redelivered"] for t in a.status()["records"]}
            self.assertEqual(0, sum(again.values()), again)
            self.ask("PUT", f"/config/{subject}", {"compatibility": "FORWARD"})  # as the status has it
            self.wait_delivered(a, waited, "sluice.usage")
        self.assert_all_once(a, "sluice.usage", load)

    def test_a_registry_that_fails_for_the_first_schema(self):
        with PartialRegistry(self.stack.registry_url) as registry:
            a = self.kafka_agent(registry={"urls": [registry.own_url]}).start()
            with Load("failing", rate=50) as load:
                a.wait(lambda: registry.subject, WAIT, "a request for a schema")
                topic = registry.subject.removeprefix(self.prefix).removesuffix("-value")
                for other in {"sluice.program", "sluice.host", "sluice.agent"} - {topic}:
                    self.wait_delivered(a, 2, other)
                self.wait_status(a, lambda s: s["ready"] and [(topic, "schema_id_unknown")] ==
                                 [(w["topic"], w["reason"]) for w in s["spool"]["waiting"]], f"{topic} that waits alone")
                self.assertEqual(0, self.topic_status(a, topic)["delivered"])
                registry.fails = False
                self.wait_delivered(a, 1, topic)
            self.assert_all_once(a, topic, load)

    def test_a_missing_topic_that_is_created_later(self):
        for topic in TOPICS:
            if topic != "usage":
                self.stack.create_topic(f"{self.prefix}sluice.{topic}", 3)
        topics = {"partitions": 3, "replication": 1, "prefix": self.prefix, "create": False}
        a = self.kafka_agent(kafka={"topics": topics}).start()
        self.waker()
        with Load("missing", rate=50) as load:
            self.wait_waiting(a, "sluice.usage", "topic_missing", 2)
            self.assert_alone(a, "sluice.usage", "topic_missing")
            self.assertIn(f"--create --topic {self.prefix}sluice.usage", a.ctl("status", check=True).stdout)
            self.stack.create_topic(f"{self.prefix}sluice.usage", 3)
            self.wait_delivered(a, 3, "sluice.usage")
        self.assert_all_once(a, "sluice.usage", load)


if __name__ == "__main__":
    harness.main()
