# SPDX-License-Identifier: Apache-2.0
"""The registry is away, fails, refuses or moves under load: records wait, the state is visible, and then all arrive."""
import json
import os
import subprocess
import time

import harness
from disk_log import FROZEN_AT_MOST, ext4_disk, frozen, own_mounts
from faults import FaultTest, get
from load import Load, own

FAILS = b'HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'


class Registry(FaultTest):
    # Ids that are in the broker are the same in the registry's next life.
    stack_options = {"registry_storage": "kafka", "proxied": True}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if harness.is_root():
            own_mounts()

    def tearDown(self):
        self.stack.registry_proxy.answer(None)
        super().tearDown()

    def assert_waits(self, a, reason, state):
        """Nothing is delivered, records wait, and each client of the status gets the reason."""
        s = self.wait_status(a, lambda s: s["registry"]["state"] == state and s["spool"]["records"] > 200, "a queue")
        self.assertFalse(s["ready"])
        self.assertIn(reason, s["not_ready_reason"])
        self.assertIn(reason, s["registry"]["last_error"])
        self.assertEqual(0, sum(t["delivered"] for t in s["records"]))
        # What it answers is made once a second.
        body = a.wait(lambda: (answer := get(a, "/readyz"))[0] == 503 and answer[1], what="an answer of /readyz")
        self.assertIn(reason, body)
        self.assertEqual(200, get(a, "/healthz")[0])
        self.assertIn(reason, a.ctl("status", check=True).stdout)
        return s

    def assert_ready(self, a):
        self.wait_status(a, lambda s: s["ready"] and s["registry"]["state"] == "ok", "ready")
        a.wait(lambda: get(a, "/readyz")[0] == 200, what="an answer of /readyz")

    def test_away_at_the_start(self):
        self.stack.kill_registry()
        a = self.kafka_agent().start()
        with Load("start", rate=100) as load:
            self.assert_waits(a, self.stack.registry_url, "away")
            self.stack.start_registry()
            self.wait_delivered(a, 300)
            self.assert_ready(a)
        self.stop_drained(a)
        self.assert_whole(load)

    def test_away_later_with_ids_known_and_cached(self):
        a = self.kafka_agent().start()
        sleeper = subprocess.Popen([own("sleep"), "300"])  # of what ends at once there is no Usage
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        with Load("later", rate=100) as load:
            self.wait_delivered(a, 100)
            for topic in ("usage", "host", "agent"):
                self.wait_delivered(a, 1, "sluice." + topic)
            self.stack.kill_registry()
            self.wait_delivered(a, 200)
            self.stop_drained(a)
            a.start()  # knows the ids from its file
            self.wait_delivered(a, 200)
            self.assertTrue(a.status()["ready"], a.status()["not_ready_reason"])
            self.stack.start_registry()
            self.wait_delivered(a, 100)
        self.stop_drained(a)
        self.assert_whole(load)

    def test_answers_while_the_spools_disk_is_frozen(self):
        """The file of the ids is on that disk: the loop continues, the ids are used, and the file is written later."""
        disk = ext4_disk(self)
        self.stack.kill_registry()
        a = self.kafka_agent(spool={"dir": f"{disk}/spool"}).start()
        with Load("frozen", rate=50) as load:
            self.assert_waits(a, self.stack.registry_url, "away")
            with frozen(disk):
                self.stack.start_registry()
                began, slowest, s = time.monotonic(), 0, None
                while not s or s["registry"]["state"] != "ok" or not s["spool"]["disk_error"] or time.monotonic() < began + 8:
                    before = time.monotonic()
                    s = a.status()
                    slowest = max(slowest, time.monotonic() - before)
                    self.assertLess(time.monotonic(), began + FROZEN_AT_MOST - 20, s)
                    time.sleep(0.05)
                print(f"the slowest answer took {slowest:.3f} s")
                self.assertLess(slowest, 4 * harness.PATIENCE)  # the loop waits a second for a call until it is given up
            self.wait_delivered(a, 300)
            self.assert_ready(a)
        self.stop_drained(a)
        self.assertTrue(os.path.exists(f"{disk}/spool/registry-ids.json"))
        self.assert_whole(load)

    def test_answers_500_and_recovers(self):
        self.stack.registry_proxy.answer(FAILS)
        a = self.kafka_agent(registry={"urls": [self.stack.proxied_registry_url]}).start()
        with Load("500", rate=100) as load:
            self.assert_waits(a, "500", "away")
            self.stack.registry_proxy.answer(None)
            self.wait_delivered(a, 300)
            self.assert_ready(a)
        self.stop_drained(a)
        self.assert_whole(load)

    def test_incompatible_schema_is_explained_and_waited_for(self):
        subject = self.prefix + "sluice.program-value"
        other = {"type": "record", "name": "Program", "namespace": "sluice", "fields": []}
        self.ask("POST", f"/subjects/{subject}/versions", {"schema": json.dumps(other)})
        self.ask("PUT", f"/config/{subject}", {"compatibility": "BACKWARD"})
        a = self.kafka_agent().start()
        with Load("refused", rate=100) as load:
            s = self.wait_status(a, lambda s: s["registry"]["state"] == "refused", "refusal")
            for text in ("409", subject, "compatib"):
                self.assertIn(text, s["registry"]["last_error"])
            self.wait_status(a, lambda s: s["spool"]["waiting"], "a topic that waits")
            text = a.ctl("status", check=True).stdout
            self.assertIn("sluice.program waits", text)
            self.assertIn("409", text)
            self.assertIn(subject, text)
            self.assertEqual("registry.refused", a.wait_log("registry.refused")["event"])
            self.ask("PUT", f"/config/{subject}", {"compatibility": "FORWARD"})  # as it says there
            self.wait_delivered(a, 200)
            self.assert_ready(a)
        self.stop_drained(a)
        self.assert_whole(load)

    def test_broker_and_registry_return_at_other_ports(self):
        broker, registry = self.stack.ports.spare(), self.stack.ports.spare()
        brokers = [self.stack.brokers, f"127.0.0.1:{broker}"]
        registries = [self.stack.registry_url, f"http://127.0.0.1:{registry}/apis/ccompat/v7"]
        a = self.kafka_agent(kafka={"brokers": brokers, "properties": {"message.timeout.ms": "5000"}},
                             registry={"urls": registries}).start()
        with Load("moved", rate=100) as load:
            self.wait_delivered(a, 50)
            self.stack.kill_registry()
            self.stack.kill_broker()
            self.stack.start_broker(broker)
            self.stack.start_registry(registry)
            self.wait_delivered(a, 200)
        self.stop_drained(a)
        self.assert_whole(load, again=True)
        # One that knows no id yet has to find the registry, too.
        self.prefix = "other." + self.prefix
        b = self.kafka_agent("other", kafka={"brokers": brokers}, registry={"urls": registries}).start()
        with Load("other", rate=50) as other:
            self.wait_delivered(b, 50)
        self.stop_drained(b)
        self.assert_whole(other)


if __name__ == "__main__":
    harness.main()
