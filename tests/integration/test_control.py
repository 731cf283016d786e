# SPDX-License-Identifier: Apache-2.0
"""`sluice ctl`, the metrics and the health checks against the control stage, alone on its loop."""
import collections
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import harness
from prometheus_client.parser import text_string_to_metric_families
from test_alerts import promtool

SLUICE = harness.SLUICE
SERVER = harness.built("control_server")


class Control(unittest.TestCase):
    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="sluice-control-")
        self.addCleanup(shutil.rmtree, self.room)
        self.socket = os.path.join(self.room, "run", "control.sock")
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(os.path.join(self.room, "notify"))
        self.manager.settimeout(10)
        self.server = subprocess.Popen([SERVER, self.socket, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                                       env=os.environ | {"NOTIFY_SOCKET": os.path.join(self.room, "notify")})
        self.addCleanup(self.stop)
        self.port = int(self.server.stdout.readline())

    def stop(self):
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        self.assertEqual(0, self.server.wait(10))
        self.server.stdout.close()

    def ctl(self, *words, **more):
        return subprocess.run([SLUICE, "ctl", "--socket", self.socket, *words], capture_output=True, text=True,
                              timeout=30, **more)

    def get(self, path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def get_after(self, path, is_new):
        """The page once it is of the present status: one is served for a second."""
        end = time.monotonic() + 10
        while True:
            answer, body = self.get(path)
            if is_new(answer, body) or time.monotonic() > end:
                return answer, body
            time.sleep(0.05)

    def test_status_is_for_people_and_for_programs(self):
        done = self.ctl("status")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertTrue(done.stdout.startswith("delivering  sluice"), done.stdout)
        self.assertNotIn("\033", done.stdout)
        self.assertNotIn("!", done.stdout)
        done = self.ctl("status", "--json")
        status = json.loads(done.stdout)
        self.assertTrue(status["ok"] and status["ready"])
        self.assertEqual(3, status["spool"]["records"])
        self.assertEqual([], status["problems"])
        self.ctl("break")
        done = self.ctl("status")
        self.assertEqual(0, done.returncode)
        self.assertIn("\n!! not delivering: the schema registry", done.stdout)

    def test_answers_of_the_agent_decide_the_exit_status(self):
        done = self.ctl("reload")
        self.assertEqual((0, "generation 5\n", ""), (done.returncode, done.stdout, done.stderr))
        self.ctl("break")
        done = self.ctl("reload")
        self.assertEqual((1, "", "sluice ctl: sluice.yaml:3:1: no such key\n"),
                         (done.returncode, done.stdout, done.stderr))
        done = self.ctl("--json", "reload")
        self.assertEqual(1, done.returncode)
        self.assertEqual({"ok": False, "error": "sluice.yaml:3:1: no such key"}, json.loads(done.stdout))
        done = self.ctl("relaod")
        self.assertEqual(1, done.returncode)
        self.assertIn("no command 'relaod'; it has help, status, break, reload, words", done.stderr)
        done = self.ctl("help")
        self.assertEqual(0, done.returncode)
        self.assertIn("reload       answers after a while\n", done.stdout)

    def test_words_and_names_travel(self):
        done = self.ctl("words", "sched", "a=b=c", "x=", "grün", "--json")
        self.assertEqual({"words": ["sched", "grün"], "a": "b=c", "x": ""}, json.loads(done.stdout)["args"])

    def test_wrong_usage_is_2_and_no_agent_is_1(self):
        for words in ([], ["--no-such-option"], ["--timeout", "x", "status"], ["--timeout", "0", "status"]):
            self.assertEqual(2, self.ctl(*words).returncode, words)
        bad = os.path.join(self.room, "bad.yaml")
        with open(bad, "w") as f:
            f.write("controll: /x\n")
        done = subprocess.run([SLUICE, "ctl", "-c", bad, "status"], capture_output=True, text=True)
        self.assertEqual(2, done.returncode)
        self.assertIn("bad.yaml:1", done.stderr)
        self.stop()
        done = self.ctl("status")
        self.assertEqual(1, done.returncode)
        self.assertIn("start one with `systemctl start sluice-agent`", done.stderr)

    def test_the_configuration_names_the_socket(self):
        good = os.path.join(self.room, "good.yaml")
        with open(good, "w") as f:
            f.write(f"control: {self.socket}\n")
        done = subprocess.run([SLUICE, "ctl", "-c", good, "status"], capture_output=True, text=True)
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_an_agent_that_hangs_is_not_waited_for(self):
        self.server.send_signal(signal.SIGSTOP)
        try:
            done = self.ctl("--timeout", "1", "status")
        finally:
            self.server.send_signal(signal.SIGCONT)
        self.assertEqual(1, done.returncode)
        self.assertIn("within 1 s", done.stderr)

    def test_the_manager_is_notified(self):
        self.assertEqual(b"READY=1", self.manager.recv(100))
        self.stop()
        self.assertEqual(b"STOPPING=1", self.manager.recv(100))

    def test_a_second_agent_says_what_is_wrong(self):
        done = subprocess.run([SERVER, self.socket, "127.0.0.1:0"], capture_output=True, text=True, timeout=10)
        self.assertEqual(1, done.returncode)
        self.assertIn("another agent listens there", json.loads(done.stderr)["message"])
        done = subprocess.run([SERVER, self.socket + "2", f"127.0.0.1:{self.port}"], capture_output=True, text=True,
                              timeout=10)
        self.assertEqual(1, done.returncode)
        self.assertIn("is in use by another program", json.loads(done.stderr)["message"])

    def test_health_is_not_readiness(self):
        self.assertEqual(200, self.get("/readyz")[0].status)
        self.ctl("break")
        answer, body = self.get_after("/readyz", lambda answer, _: answer.status == 503)
        self.assertEqual(503, answer.status)
        self.assertIn("registry", body)
        self.assertEqual((200, "ok\n"), (self.get("/healthz")[0].status, self.get("/healthz")[1]))
        self.assertEqual(405, self.get("/metrics", "POST")[0].status)
        self.assertEqual(404, self.get("/")[0].status)
        self.assertEqual("", self.get("/metrics", "HEAD")[1])

    def check_metrics(self, text):
        """What the parser lets pass, and a Prometheus server or its linter does not."""
        families = {f.name: f for f in text_string_to_metric_families(text)}
        seen, series, declared, current = set(), set(), collections.OrderedDict(), None
        self.assertTrue(text.endswith("\n"))
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, current, kind = line.split(" ")
                self.assertNotIn(current, declared, "declared twice")
                declared[current] = kind
                self.assertIn(current, seen, "HELP comes first")
            elif line.startswith("# HELP "):
                seen.add(line.split(" ")[2])
                self.assertRegex(line, r" [A-Z0-9].*\.$")
            else:
                name = re.match(r"[a-z_]+", line).group()
                self.assertEqual(current, name, "a sample stands below its own TYPE")
                self.assertNotIn(line.rsplit(" ", 1)[0], series, "the same series twice")
                series.add(line.rsplit(" ", 1)[0])
                self.assertRegex(line, r"^[a-z_]+(\{.*\})? [0-9]+(\.[0-9]+)?$")
        for name, kind in declared.items():
            self.assertEqual(kind == "counter", name.endswith("_total"), name)
            self.assertNotRegex(name, r"_(ms|ns|us|millis|kb|mb|percent|count)(_|$)")
        self.assertEqual({n.removesuffix("_total") for n in declared}, set(families))
        done = promtool("check", "metrics", given=text)
        self.assertEqual((0, ""), (done.returncode, done.stdout))
        return {(s.name, tuple(sorted(s.labels.items()))): s.value for f in families.values() for s in f.samples}

    def test_metrics_parse_and_keep_the_conventions(self):
        answer, text = self.get("/metrics")
        self.assertEqual("text/plain; version=0.0.4; charset=utf-8", answer.getheader("Content-Type"))
        got = self.check_metrics(text)
        self.assertEqual(1000, got["sluice_records_produced_total", (("topic", "sluice.program"),)])
        self.assertEqual(0.48, got["sluice_spool_oldest_age_seconds", ()])
        self.assertEqual(12.1, got["process_cpu_seconds_total", ()])
        self.assertEqual(1, got["sluice_output_up", (("kind", "kafka"),)])
        self.ctl("break")
        got = self.check_metrics(self.get_after("/metrics", lambda _, body: 'sluice_output_up{kind="kafka"} 0' in body)[1])
        # Quotes, backslashes, newlines and what is not UTF-8 come back as they were, the last escaped.
        self.assertEqual(1, got["sluice_lost_total", (("place", 'a"b\\c\nd\\xfe'), ("reason", "x y"))])
        self.assertEqual(0, got["sluice_output_up", (("kind", "kafka"),)])


if __name__ == "__main__":
    harness.main()
