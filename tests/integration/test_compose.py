# SPDX-License-Identifier: Apache-2.0
"""docker-compose.yml without its images: its broker's settings start a real broker, its files are where it says."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

import harness
from stack import Ports, Servers, PORTS

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


def compose():
    with open(os.path.join(ROOT, "docker-compose.yml")) as f:
        return yaml.safe_load(f)


def broker_properties(environment):
    """As the image does it: KAFKA_A_B becomes a.b; a double underscore becomes one."""
    out = {}
    for name, value in environment.items():
        if name.startswith("KAFKA_"):
            out[name[6:].lower().replace("__", "\0").replace("_", ".").replace("\0", "_")] = value
    return out


class Compose(unittest.TestCase):
    def test_compose_itself_accepts_it(self):
        checker = os.path.join(ROOT, "build", "checkers", "docker-compose")
        self.assertTrue(os.access(checker, os.X_OK), f"{checker} is missing; run: ./dev/checkers")
        # It comes from others and needs no rights: it gets none.
        who = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        with open(os.path.join(ROOT, "docker-compose.yml")) as f:
            text = f.read()
        for given, is_valid in ((text, True), (text.replace("cgroup: host", "cgroups: host"), False),
                                (text.replace("hostname: kafka", "hostname: ${SLUICE_NOT_SET:?}"), False)):
            with open(checker, "rb") as program:  # the tree may be closed to others
                done = subprocess.run([f"/proc/self/fd/{program.fileno()}", "--project-directory", "/", "--file", "-",
                                       "config", "--quiet"], input=given, stdout=subprocess.PIPE, text=True,
                                      stderr=subprocess.STDOUT, cwd="/", pass_fds=[program.fileno()], timeout=60,
                                      env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}, **who)
            self.assertEqual(is_valid, done.returncode == 0, done.stdout)

    def test_what_it_names_is_there(self):
        file = compose()
        for name, service in file["services"].items():
            if "build" in service:
                at = os.path.join(ROOT, service["build"]["context"], service["build"]["dockerfile"])
                self.assertTrue(os.path.exists(at), at)
                self.copied_files_exist(at)
            for dependency in service.get("depends_on", []):
                self.assertIn(dependency, file["services"], name)
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue(os.path.isfile(os.path.join(ROOT, source)), source)
                elif not source.startswith("/"):
                    self.assertIn(source, file["volumes"], name)

    def copied_files_exist(self, dockerfile):
        with open(dockerfile) as f:
            text = f.read().replace("\\\n", " ")
        for line in text.splitlines():
            if line.startswith("COPY ") and "--from" not in line:
                for source in [word for word in line.split()[1:-1] if not word.startswith("--")]:
                    self.assertTrue(os.path.exists(os.path.join(ROOT, source)), f"{dockerfile}: {source}")

    def test_its_brokers_settings_start_a_broker(self):
        file = compose()["services"]
        environment = file["kafka"]["environment"]
        version = file["kafka"]["image"].partition("@")[0].rpartition(":")[2]
        ports = Ports()
        self.addCleanup(ports.close)
        s = Servers(os.path.join(tempfile.mkdtemp(prefix="sluice-compose-"), "stack"))
        self.addCleanup(shutil.rmtree, os.path.dirname(s.at))
        s.configure({name: ports.base + n for name, n in PORTS.items()}, kafka=version)
        self.addCleanup(s.stop_broker)
        text = "\n".join(f"{k}={v}" for k, v in broker_properties(environment).items())
        # Only names, ports and the folder differ from the container's.
        host = ports.spare()
        text = text.replace("/var/lib/kafka/data", s.path("data")).replace("//:", "//127.0.0.1:")
        text = text.replace("kafka:9093", f"127.0.0.1:{s.port('plaintext')}").replace("1@kafka:", "1@127.0.0.1:")
        for port, here in ((9092, host), (9093, s.port("plaintext")), (9094, s.port("controller"))):
            text = re.sub(rf":{port}\b", f":{here}", text)
        s.state["cluster_id"] = environment["CLUSTER_ID"]
        s._write_properties = lambda: None
        with open(s.path("server.properties"), "w") as f:
            f.write(text + "\n")
        s.launch_broker()
        s.wait_broker()
        # Who comes to HOST is sent back to HOST, who comes to the inner listener to that.
        for at, told in ((host, f"localhost:{host}"), (s.port("plaintext"), f"127.0.0.1:{s.port('plaintext')}")):
            from confluent_kafka.admin import AdminClient

            brokers = AdminClient({"bootstrap.servers": f"127.0.0.1:{at}"}).list_topics(timeout=20).brokers
            self.assertEqual([f"{b.host}:{b.port}" for b in brokers.values()], [told])

    def test_the_parts_agree_on_names_and_ports(self):
        file = compose()["services"]
        with open(os.path.join(ROOT, "ops", "compose", "sluice.yaml")) as f:
            config = yaml.safe_load(f)
        advertised = file["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
        listeners = dict(x.split("://", 1) for x in advertised.split(","))
        inner = listeners["PLAINTEXT"]
        self.assertEqual(config["kafka"]["brokers"], [inner])
        self.assertEqual(file["registry"]["environment"]["APICURIO_KAFKASQL_BOOTSTRAP_SERVERS"], inner)
        self.assertIn(inner, file["reader"]["command"])
        url = f"http://registry:{file['registry']['environment']['QUARKUS_HTTP_PORT']}/apis/ccompat/v7"
        self.assertEqual(config["registry"]["urls"], [url])
        self.assertIn(url, file["reader"]["command"])
        self.assertIn(url, file["registry-rules"]["command"])

    def test_the_agents_configuration_is_valid(self):
        done = harness.run_sluice(["check", "-c", os.path.join(ROOT, "ops", "compose", "sluice.yaml")])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    harness.main()
