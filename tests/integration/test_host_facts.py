# SPDX-License-Identifier: Apache-2.0
"""What Host records have as facts of the host: of the configuration, of a metadata service on loopback that behaves as
EC2's does, and of the machine itself."""
import contextlib
import http.server
import json
import re
import secrets
import threading
import time

import harness
from agent import AgentTest
from harness import read_cat

FACTS = ("cloud", "region", "instance_type", "lifecycle", "price_per_hour")
DOCUMENT = {"accountId": "123456789012", "architecture": "x86_64", "availabilityZone": "eu-central-1b",
            "billingProducts": None, "imageId": "ami-5fb8c835", "instanceId": "i-1234567890abcdef0",
            "instanceType": "m5.4xlarge", "region": "eu-central-1", "version": "2017-09-30"}


class Metadata(http.server.ThreadingHTTPServer):
    """IMDSv2: a token by PUT, with the time that it lives in a header; without one, 401 to all else."""

    daemon_threads = True

    def __init__(self):
        self.asked, self.tokens, self.fails = [], {}, False
        self.hangs = threading.Event()
        self.released = threading.Event()
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.url = "http://127.0.0.1:%d" % self.server_address[1]

    class Handler(http.server.BaseHTTPRequestHandler):
        def begin(self):
            self.server.asked.append((self.command, self.path))
            if self.server.hangs.is_set():
                self.server.released.wait(60)

        def answer(self, status, text):
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(text.encode())

        def do_PUT(self):
            self.begin()
            seconds = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
            if self.path != "/latest/api/token" or not seconds.isdigit() or not 1 <= int(seconds) <= 21600:
                self.answer(400, "")
                return
            token = secrets.token_urlsafe(40) + "=="
            self.server.tokens[token] = time.monotonic() + int(seconds)
            self.answer(200, token)

        def do_GET(self):
            self.begin()
            if self.server.tokens.get(self.headers.get("X-aws-ec2-metadata-token"), 0) < time.monotonic():
                self.answer(401, "Unauthorized")
            elif self.path == "/latest/dynamic/instance-identity/document":
                self.answer(200, json.dumps(DOCUMENT, indent=2))
            elif self.path == "/latest/meta-data/instance-life-cycle":
                self.answer(200, "spot")
            else:
                self.answer(404, "")

        def log_message(self, *args):
            pass


class HostFacts(AgentTest):
    def serve(self):
        s = Metadata()
        threading.Thread(target=s.serve_forever, daemon=True).start()
        self.addCleanup(s.server_close)
        self.addCleanup(s.shutdown)
        self.addCleanup(s.released.set)
        return s

    def hosts(self, a):
        with contextlib.suppress(AssertionError):  # its folder may not be there yet
            return read_cat(a.lake, "host")
        return []

    def facts_when(self, a, is_so):
        """The facts of the first record that is so."""
        found = a.wait(lambda: next((r for r in self.hosts(a) if is_so(r)), None), what="Host record")
        return tuple(found[name] for name in FACTS)

    def test_those_of_the_configuration_are_in_each_record(self):
        a = self.agent(host={"cloud": "azure", "region": "westeurope", "instance_type": "Standard_D4s_v5", "lifecycle": "spot",
                             "price_per_hour": "0.0768"}).start()
        a.wait(lambda: len(self.hosts(a)) >= 3, what="Host records")
        self.assertEqual(0, a.stop())
        self.assertEqual({("azure", "westeurope", "Standard_D4s_v5", "spot", 0.0768)},
                         {tuple(r[name] for name in FACTS) for r in self.hosts(a)})
        with open("/proc/cpuinfo") as f:
            model = re.search(r"^model name\s*: (.*?)\s*$", f.read(), re.MULTILINE)
        self.assertEqual({model.group(1) if model else None}, {r["cpu_model"] for r in self.hosts(a)})

    def test_the_service_is_asked_once_and_the_configuration_wins(self):
        service = self.serve()
        a = self.agent(host={"metadata": service.url, "region": "own-region", "price_per_hour": "2"}).start()
        a.wait_log("host.metadata")
        facts = self.facts_when(a, lambda r: r["lifecycle"] is not None)
        self.assertEqual(("aws", "own-region", "m5.4xlarge", "spot", 2.0), facts)
        count = len(self.hosts(a))
        a.wait(lambda: len(self.hosts(a)) > count + 2, what="more Host records")
        self.assertEqual([("PUT", "/latest/api/token"), ("GET", "/latest/dynamic/instance-identity/document"),
                          ("GET", "/latest/meta-data/instance-life-cycle")], service.asked)
        written = harness.run_sluice(["check", "-c", a.config_path, "--dump"])
        self.assertEqual(0, written.returncode, written.stderr)
        self.assertNotIn(next(iter(service.tokens)), a.log_text() + json.dumps(self.hosts(a)) + written.stdout)
        self.assertEqual(0, a.stop())

    def test_a_service_that_hangs_holds_nothing_up(self):
        service = self.serve()
        service.hangs.set()
        began = time.monotonic()
        a = self.agent(host={"metadata": service.url, "cloud": "aws", "instance_type": "m5.large"}).start()
        facts = self.facts_when(a, lambda r: True)
        self.assertEqual(("aws", None, "m5.large", None, None), facts)
        a.wait(lambda: service.asked, what="request")
        self.assertEqual(0, a.stop())
        self.assertLess(time.monotonic() - began, 30 * harness.PATIENCE)
        self.assertEqual([("PUT", "/latest/api/token")], service.asked)

    def test_without_a_url_nothing_is_asked(self):
        service = self.serve()
        a = self.agent().start()
        facts = self.facts_when(a, lambda r: True)
        self.assertEqual(0, a.stop())
        self.assertEqual((None, None, None), (facts[1], facts[3], facts[4]))
        self.assertEqual([], service.asked)

    def test_the_run_of_a_user_has_what_the_machine_shows(self):
        done = harness.run_sluice(["run", "--quiet", "--lake", self.lake, "--", "true"])
        self.assertEqual(0, done.returncode, done.stderr)
        record = read_cat(self.lake, "host")[0]
        self.assertIsNone(record["price_per_hour"])
        self.assertIsNone(record["lifecycle"])
        self.assertIn("cpu_model", record)


if __name__ == "__main__":
    harness.main()
