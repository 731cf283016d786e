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
    """As the image does it: KAFKA_A_B becomes a.b; a double underscore stands for one."""
    out = {}
    for name, value in environment.items():
        if name.startswith("KAFKA_"):
            out[name[6:].lower().replace("__", "\0").replace("_", ".").replace("\0", "_")] = value
    return out


class Compose(unittest.TestCase):
    def test_compose_itself_accepts_it(self):
        found = None
        for command in (["docker", "compose"], ["docker-compose"]):
            if shutil.which(command[0]):
                said = subprocess.run([*command, "version", "--short"], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)
                # Version 1 ended before the present format.
                version = re.match(r"v?(\d+)\.", said.stdout)
                if said.returncode == 0 and (version is None or int(version[1]) >= 2):
                    found = command
        if found is None:
            self.skipTest("no docker compose of version 2 or later")
        done = subprocess.run([*found, "-f", os.path.join(ROOT, "docker-compose.yml"), "config", "--quiet"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

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
                for source in line.split()[1:-1]:
                    self.assertTrue(os.path.exists(os.path.join(ROOT, source)), f"{dockerfile}: {source}")

    def test_its_brokers_settings_start_a_broker(self):
        file = compose()["services"]
        environment = file["kafka"]["environment"]
        version = file["kafka"]["image"].rpartition(":")[2]
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
