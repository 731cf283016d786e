# SPDX-License-Identifier: Apache-2.0
"""`sluice agent` and brokers that want to know who it is: what works, what is reported if it fails, what stays secret.

harness.SLUICE is the program; sluice_system_rdkafka, where CMake built it, the same over the system's librdkafka. Each can
what its librdkafka can: SCRAM with Kafka 4 needs 2.6.1.
"""
import base64
import http.client
import http.server
import json
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import unittest

import harness
from agent import AgentTest
from kafka_check import check
from load import Load
from stack import PASSWORD, USER, Stack, servers

OLD = os.path.join(harness.BUILD, "tests", "integration", "sluice_system_rdkafka")
OLD = OLD if os.path.exists(OLD) else ""
NOBODY = pwd.getpwnam("nobody")
REGISTRY_USER, REGISTRY_PASSWORD = "registrar", "registry-secret"
WRONG = "wrong-secret"
DEBIANS_BUNDLE, SUSES_BUNDLE = "certs/ca-certificates.crt", "ca-bundle.pem"  # below /etc/ssl

stack = None
front = None


def setUpModule():
    global stack, front
    if not harness.is_root():
        return
    stack = Stack(tls=True, authorizer=True, partitions=1)
    unittest.addModuleCleanup(stack.close)
    stack.up()
    front = RegistryFront(stack)
    unittest.addModuleCleanup(front.close)


class Https:
    """A server at a port of its own, with the certificate of the stack's; .port."""

    def __init__(self, at, handler):
        self.port = at.ports.spare()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._server.handle_error = lambda request, address: None  # one that does not trust us ends the handshake
        self._server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(at.cert("server.pem"))
        # The handshake in the connection's own thread: a client that is silent delays no other.
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class TokenEndpoint(Https):
    """Gives who has the client's id and secret a token that the brokers take, for half a minute; .url, .given."""

    def __init__(self, at):
        want = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        self.given = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(inner):
                form = inner.rfile.read(int(inner.headers["Content-Length"])).decode()
                right = inner.headers["Authorization"] == want and "grant_type=client_credentials" in form
                now = int(time.time())
                token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (
                    {"alg": "none"}, {"sub": USER, "iat": now, "exp": now + 30})) + "."
                answer = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 30} if right else
                                    {"error": "invalid_client"}).encode()
                self.given += right
                inner.send_response(200 if right else 401)
                inner.send_header("Content-Type", "application/json")
                inner.send_header("Content-Length", str(len(answer)))
                inner.end_headers()
                inner.wfile.write(answer)

            def log_message(self, *_):
                pass

        super().__init__(at, Handler)
        self.url = f"https://localhost:{self.port}/token"


class RegistryFront(Https):
    """https with basic authentication in front of the registry; .url."""

    def __init__(self, at):
        want = "Basic " + base64.b64encode(f"{REGISTRY_USER}:{REGISTRY_PASSWORD}".encode()).decode()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Authorization"] != want:
                    status, answer = 401, json.dumps({"message": "not " + str(self.headers["Authorization"])}).encode()
                else:
                    inner = http.client.HTTPConnection("127.0.0.1", at.servers.port("registry"), timeout=30)
                    inner.request("POST", self.path, body, {"Content-Type": self.headers["Content-Type"]})
                    got = inner.getresponse()
                    status, answer = got.status, got.read()
                    inner.close()
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        super().__init__(at, Handler)
        self.url = f"https://localhost:{self.port}/apis/ccompat/v7"


def is_static():
    """Whether the program needs no library of the system."""
    return subprocess.run(["ldd", harness.SLUICE], stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode != 0


def ask_metrics(a, path):
    """(status, text) of its unix socket."""
    c = http.client.HTTPConnection("localhost", timeout=30)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.settimeout(30)
    c.sock.connect(a.metrics)
    c.request("GET", path)
    got = c.getresponse()
    text = got.read().decode()
    c.close()
    return got.status, text


class SecurityTest(AgentTest):
    kafka = None  # the class's own stack, instead of the module's

    def setUp(self):
        super().setUp()
        self.stack = self.kafka or stack
        self.certs = os.path.join(self.room, "certs")
        os.mkdir(self.certs, 0o755)
        for name in ("ca.crt", "other-ca.crt"):
            shutil.copy(self.stack.cert(name), self.certs)
        shutil.copy(stack.cert("ca.crt"), self.cert("registry-ca.crt"))
        # TLS files are read by the account that the agent has become.
        for name in ("client", "expired", "other"):
            for end in (".crt", ".key"):
                at = shutil.copy(self.stack.cert(name + end), self.certs)
                os.chmod(at, 0o400)
                os.chown(at, NOBODY.pw_uid, NOBODY.pw_gid)

    def secret(self, name, text):
        """A file that only root may read."""
        path = os.path.join(self.room, name)
        with open(path, "w") as f:
            f.write(text + "\n")
        os.chmod(path, 0o600)
        return {"file": path}

    def command(self, name, text):
        """A command that writes it."""
        path = os.path.join(self.room, name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\necho '%s'\n" % text)
        os.chmod(path, 0o700)
        return {"command": [path]}

    def cert(self, name):
        return os.path.join(self.certs, name)

    def kafka_keys(self, prefix, listener, secrets=None, **properties):
        names = {"ssl.ca.location": self.cert("ca.crt"), "message.timeout.ms": "10000"}
        names.update({k.replace("_", "."): v for k, v in properties.items()})
        return {"kafka": {"brokers": [self.stack.listener(listener)], "properties": names, "secrets": secrets or {},
                          "topics": {"create": True, "partitions": 1, "replication": 1, "prefix": prefix}},
                "registry": {"urls": [front.url], "auto_register": True, "user": REGISTRY_USER,
                             "password": self.secret("registry.password", REGISTRY_PASSWORD),
                             "ca_file": self.cert("registry-ca.crt")}}

    def sasl(self, prefix, mechanism, password=None, listener="sasl_ssl", **more):
        return self.kafka_keys(prefix, listener, {"sasl.password": password or self.secret("kafka.password", PASSWORD)},
                               security_protocol="SASL_SSL" if listener == "sasl_ssl" else "SASL_PLAINTEXT",
                               sasl_mechanisms=mechanism, sasl_username=USER, **more)

    def read(self, prefix, **options):
        """As a consumer sees it that asks at the plain listener."""
        return check(self.stack.brokers, stack.registry_url, prefix=prefix,
                     keep=lambda topic, record: topic == "sluice.program", **options)

    def wait_delivered(self, a, prefix, load):
        """What is still in the ring when the agent stops is the next agent's."""
        a.wait(lambda: not load.check([r for _, r in self.read(prefix).records]), 90, "the load's last program in Kafka")

    def assert_delivered(self, prefix, load, **options):
        result = self.read(prefix, **options)
        self.assertTrue(result.ok, result.summary())
        self.assertEqual([], load.check([r for _, r in result.records])[:5])
        self.assertGreater(load.started, 0)
        return result

    def works(self, prefix, keys, sluice=None, under=()):
        a = self.agent(prefix.strip("."), **keys)
        a.sluice = sluice or a.sluice
        a.command_prefix = list(under)
        a.start()
        with Load(prefix, rate=50) as load:
            a.wait(lambda: a.status()["output"]["state"] == "up", 90, "delivery")
            a.wait(lambda: load.started >= 20, 60, "load")
        a.wait(lambda: ask_metrics(a, "/readyz")[0] == 200, 60, "readiness")
        self.wait_delivered(a, prefix, load)
        self.assertEqual(0, a.stop(), a.log_text())
        self.assert_delivered(prefix, load)
        return a

    def system_that_trusts(self, ca, at):
        """What goes before a command whose system has that one certificate, in the file at of /etc/ssl, and no other."""
        etc_ssl = os.path.join(self.room, "etc-ssl-" + ca)
        os.makedirs(os.path.dirname(os.path.join(etc_ssl, at)))
        shutil.copy(self.cert(ca), os.path.join(etc_ssl, at))
        return ["env", "--unset=SSL_CERT_FILE", "--unset=SSL_CERT_DIR",
                "unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/ssl && exec "$@"', etc_ssl]

    def fails(self, prefix, bad, good, says, sluice=None, mended=None, *, under=(), mended_under=()):
        """With bad the agent prints what matches says; with good, after a restart, all is there."""
        a = self.agent(prefix.strip("."), drain="1s", **bad)
        a.sluice = sluice or a.sluice
        a.command_prefix = list(under)
        a.start()

        def told():
            delivery = a.status()["output"]
            return delivery if re.search(says, delivery["last_error"] or "", re.I) else None

        with Load(prefix, rate=50) as load:
            delivery = a.wait(told, 60, "an error like " + says)
            self.assertEqual("down", delivery["state"], delivery)
            line = a.wait_log("output.down", 30)
            a.wait(lambda: load.started >= 20, 60, "load")
        self.assertRegex(line["message"] + a.log_text(), "(?i)" + says)
        self.assertRegex(a.ctl("status", check=True).stdout, "(?i)" + says)
        a.wait(lambda: ask_metrics(a, "/readyz")[0] == 503, 10, "an answer of /readyz, which is made once a second")
        self.assertEqual(200, ask_metrics(a, "/healthz")[0])
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertGreaterEqual(len(os.listdir(a.spool)), 1)
        a.config.pop("kafka")
        a.configure(drain="20s", **good)
        a.sluice = mended or a.sluice
        a.command_prefix = list(mended_under)
        a.start()
        a.wait(lambda: a.status()["output"]["state"] == "up", 90, "delivery")
        self.wait_delivered(a, prefix, load)
        self.assertEqual(0, a.stop(), a.log_text())
        self.assert_delivered(prefix, load)
        return delivery["last_error"]


class Works(SecurityTest):
    def test_tls(self):
        self.works("ssl.", self.kafka_keys("ssl.", "ssl", security_protocol="ssl"))

    def test_mutual_tls(self):
        self.works("mtls.", self.kafka_keys("mtls.", "mtls", security_protocol="ssl",
                                            ssl_certificate_location=self.cert("client.crt"),
                                            ssl_key_location=self.cert("client.key")))

    def test_mutual_tls_with_a_key_that_only_root_may_read(self):
        """The key itself as a secret, under a password that a command gives."""
        with open(self.stack.cert("client-encrypted.key")) as f:
            key = self.secret("key.pem", f.read().rstrip("\n"))
        keys = self.kafka_keys("mtls-pem.", "mtls", {"ssl.key.pem": key,
                               "ssl.key.password": self.command("key-password", servers.KEY_PASSWORD)},
                               security_protocol="ssl")
        with open(self.stack.cert("client.crt")) as f:
            keys["kafka"]["properties"]["ssl.certificate.pem"] = f.read()
        a = self.works("mtls-pem.", keys)
        self.assertNotIn("PRIVATE KEY", a.log_text())

    def test_plain(self):
        self.works("plain.", self.sasl("plain.", "PLAIN"))

    def test_plain_by_a_command(self):
        self.works("command.", self.sasl("command.", "PLAIN", self.command("password", PASSWORD)))

    def test_oauthbearer(self):
        keys = self.kafka_keys("oauth.", "sasl_ssl", security_protocol="SASL_SSL", sasl_mechanisms="OAUTHBEARER",
                               enable_sasl_oauthbearer_unsecure_jwt="true",
                               sasl_oauthbearer_config="principal=agent lifeSeconds=600")
        self.works("oauth.", keys)

    def oidc(self, prefix, endpoint):
        keys = self.kafka_keys(prefix, "sasl_ssl",
                               {"sasl.oauthbearer.client.secret": self.secret("client.secret", PASSWORD)},
                               security_protocol="SASL_SSL", sasl_mechanisms="OAUTHBEARER", sasl_oauthbearer_method="oidc",
                               sasl_oauthbearer_client_id=USER, sasl_oauthbearer_token_endpoint_url=endpoint.url)
        del keys["kafka"]["properties"]["ssl.ca.location"]
        return keys

    def test_oidc_by_the_certificates_of_the_system(self):
        """No property names the certificates of the broker and of the token endpoint."""
        endpoint = TokenEndpoint(stack)
        self.addCleanup(endpoint.close)
        self.works("oidc.", self.oidc("oidc.", endpoint), under=self.system_that_trusts("ca.crt", DEBIANS_BUNDLE))
        self.assertGreater(endpoint.given, 0)

    def test_a_system_that_is_not_the_one_of_the_build(self):
        """The static program alone, whose libraries have no system's path."""
        if not is_static():
            self.skipTest("this program is not static: its libraries are the system's, and know its paths")
        endpoint = TokenEndpoint(stack)
        self.addCleanup(endpoint.close)
        self.works("suse.", self.oidc("suse.", endpoint), under=self.system_that_trusts("ca.crt", SUSES_BUNDLE))
        self.assertGreater(endpoint.given, 0)

    def test_the_systems_library_does_all_but_scram(self):
        if not OLD:
            self.skipTest("SLUICE has the system's librdkafka itself")
        client = {"ssl_certificate_location": self.cert("client.crt"), "ssl_key_location": self.cert("client.key")}
        self.works("old-ssl.", self.kafka_keys("old-ssl.", "ssl", security_protocol="ssl"), OLD)
        self.works("old-mtls.", self.kafka_keys("old-mtls.", "mtls", security_protocol="ssl", **client), OLD)
        self.works("old-plain.", self.sasl("old-plain.", "PLAIN"), OLD)

    def test_scram(self):
        self.skip_old_library(self)
        self.works("scram256.", self.sasl("scram256.", "SCRAM-SHA-256"))
        self.works("scram512.", self.sasl("scram512.", "SCRAM-SHA-512"))

    @staticmethod
    def skip_old_library(test):
        done = harness.run_sluice(["doctor", "--json"])
        if not json.loads(done.stdout)["librdkafka"]["scram_kafka_4"]:
            test.skipTest("this librdkafka is older than 2.6.1: dev/librdkafka builds a newer one")


class Fails(SecurityTest):
    def test_wrong_password(self):
        bad = self.sasl("password.", "PLAIN", self.secret("wrong", WRONG))
        self.fails("password.", bad, self.sasl("password.", "PLAIN"), "authentication failed")

    def test_wrong_scram_password(self):
        Works.skip_old_library(self)
        bad = self.sasl("scram.", "SCRAM-SHA-512", self.secret("wrong", WRONG))
        self.fails("scram.", bad, self.sasl("scram.", "SCRAM-SHA-512"), "authentication failed")

    def test_wrong_ca(self):
        bad = self.kafka_keys("ca.", "ssl", security_protocol="ssl", ssl_ca_location=self.cert("other-ca.crt"))
        good = self.kafka_keys("ca.", "ssl", security_protocol="ssl")
        self.fails("ca.", bad, good, "certificate verify failed|broker certificate could not be verified")

    def test_a_system_that_trusts_another_ca(self):
        keys = self.kafka_keys("system.", "ssl", security_protocol="ssl")
        del keys["kafka"]["properties"]["ssl.ca.location"]
        self.fails("system.", keys, keys, "certificate verify failed|broker certificate could not be verified",
                   under=self.system_that_trusts("other-ca.crt", DEBIANS_BUNDLE),
                   mended_under=self.system_that_trusts("ca.crt", DEBIANS_BUNDLE))

    def mutual(self, prefix, name):
        names = {} if name is None else {"ssl_certificate_location": self.cert(name + ".crt"),
                                         "ssl_key_location": self.cert(name + ".key")}
        return self.kafka_keys(prefix, "mtls", security_protocol="ssl", **names)

    def test_expired_certificate(self):
        self.fails("expired.", self.mutual("expired.", "expired"), self.mutual("expired.", "client"),
                   "does not accept our certificate .*expired")

    def test_certificate_of_another_ca(self):
        self.fails("other.", self.mutual("other.", "other"), self.mutual("other.", "client"),
                   "does not accept our certificate .*CA")

    def test_no_certificate(self):
        self.fails("none.", self.mutual("none.", None), self.mutual("none.", "client"),
                   "does not accept our certificate .*: none")

    def test_a_key_that_the_account_may_not_read(self):
        os.chown(self.cert("client.key"), 0, 0)
        a = self.agent("unreadable", **self.mutual("unreadable.", "client"))
        a.start(wait=False)
        self.assertEqual(125, a.process.wait(60), a.log_text())
        self.assertRegex(a.log_text(), r"ssl.key.location: .*client.key cannot be read by uid 65534")

    def test_old_library_and_scram(self):
        sluice = OLD
        if not sluice:
            if json.loads(harness.run_sluice(["doctor", "--json"]).stdout)["librdkafka"]["scram_kafka_4"]:
                self.skipTest("the system's librdkafka is new itself")
            sluice = harness.SLUICE
        good = self.sasl("old-scram.", "PLAIN")
        error = self.fails("old-scram.", self.sasl("old-scram.", "SCRAM-SHA-512"), good, "authentication", sluice)
        self.assertRegex(error, r"older than 2\.6\.1.*SCRAM.*Kafka 4")


class Rights(SecurityTest):
    def test_a_topic_that_is_forbidden_waits_until_it_is_allowed(self):
        from confluent_kafka.admin import (AclBinding, AclBindingFilter, AclOperation, AclPermissionType, AdminClient,
                                           ResourcePatternType, ResourceType)
        prefix = "acl."
        for name in harness.TOPICS:
            self.stack.create_topic(prefix + name, 1)
        admin = AdminClient({"bootstrap.servers": self.stack.brokers, "log_level": 2})

        def acl(topic, operation, permission):
            return AclBinding(ResourceType.TOPIC, prefix + topic, ResourcePatternType.LITERAL, "User:" + USER, "*",
                              operation, permission)
        # Seen but not written, and not even seen.
        rules = [acl("sluice.host", AclOperation.DESCRIBE, AclPermissionType.ALLOW),
                 acl("sluice.host", AclOperation.WRITE, AclPermissionType.DENY),
                 acl("sluice.usage", AclOperation.ALL, AclPermissionType.DENY)]
        forbidden = ("sluice.host", "sluice.usage")
        every = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY,
                                 AclPermissionType.ANY)
        a = self.agent("acl", **self.sasl(prefix, "PLAIN")).start()
        sleeper = subprocess.Popen(["/bin/sleep", "300"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)

        def counts():
            return {t["topic"]: (t["delivered"], t["produced"]) for t in a.status()["records"]}

        def wait_delivered(more):
            goal = {t: counts()[t][0] + more for t in forbidden}
            a.wait(lambda: all(counts()[t][0] >= n for t, n in goal.items()), 90, "records of all topics")

        with Load(prefix, rate=20) as load:
            wait_delivered(1)
            for f in admin.create_acls(rules).values():
                f.result(30)
            a.wait(lambda: re.search("uthorization failed", a.status()["output"]["last_error"] or ""), 90, "the reason")
            a.wait(lambda: all(made > done + 3 for t, (done, made) in counts().items() if t in forbidden), 90, "waiting")
            self.assertEqual([], a.status()["dead_letters"])
            for f in admin.delete_acls([every]).values():
                f.result(30)
            wait_delivered(5)
            self.assertEqual([], a.status()["dead_letters"])
        a.wait(lambda: ask_metrics(a, "/readyz")[0] == 200, 60, "readiness")
        sleeper.kill()
        sleeper.wait()
        self.wait_delivered(a, prefix, load)
        self.assertEqual(0, a.stop(), a.log_text())
        self.assertEqual([], os.listdir(a.config["dead_letters"]))
        self.assert_delivered(prefix, load, duplicates=10000)


class Kafka3(SecurityTest):
    """The older broker takes the older library's SCRAM."""

    @classmethod
    def setUpClass(cls):
        if harness.is_root():
            cls.kafka = Stack(kafka="3.9.1", tls=True, registry=False, partitions=1)
            cls.addClassCleanup(cls.kafka.close)
            cls.kafka.up()

    def test_scram(self):
        for n, sluice in enumerate(filter(None, (harness.SLUICE, OLD))):
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                prefix = "kafka3-%d-%s." % (n, mechanism[-3:])
                self.works(prefix, self.sasl(prefix, mechanism), sluice)


class Registry(SecurityTest):
    def test_wrong_password(self):
        keys = self.kafka_keys("registry.", "ssl", security_protocol="ssl")
        keys["registry"]["password"] = self.secret("registry.wrong", WRONG)
        self.refused("registry.", keys, "401.*credentials")

    def test_wrong_ca(self):
        keys = self.kafka_keys("registry-ca.", "ssl", security_protocol="ssl")
        keys["registry"]["ca_file"] = self.cert("other-ca.crt")
        self.refused("registry-ca.", keys, "certificate is not trusted")

    def refused(self, prefix, keys, says):
        a = self.agent(prefix.strip("."), drain="1s", **keys).start()
        with Load(prefix, rate=50) as load:
            a.wait(lambda: re.search(says, a.status()["registry"]["last_error"] or ""), 60, "an error like " + says)
            a.wait(lambda: load.started >= 20, 60, "load")
        a.wait(lambda: ask_metrics(a, "/readyz")[0] == 503, 10, "an answer of /readyz, which is made once a second")
        a.wait(lambda: re.search(says, a.log_text()), 30, "a line in the log")
        for said in (a.log_text(), a.ctl("status", "--json").stdout):
            self.assertNotIn(WRONG, said)
            self.assertNotIn(base64.b64encode(f"{REGISTRY_USER}:{WRONG}".encode()).decode(), said)
        self.assertEqual(0, a.stop(), a.log_text())
        a.configure(drain="20s", **self.kafka_keys(prefix, "ssl", security_protocol="ssl"))
        a.start()
        a.wait(lambda: a.status()["output"]["state"] == "up", 90, "delivery")
        self.wait_delivered(a, prefix, load)
        self.assertEqual(0, a.stop(), a.log_text())
        self.assert_delivered(prefix, load)


class Secrets(SecurityTest):
    SECRETS = (PASSWORD, REGISTRY_PASSWORD,
               base64.b64encode(f"{REGISTRY_USER}:{REGISTRY_PASSWORD}".encode()).decode(),
               base64.b64encode(f"\0{USER}\0{PASSWORD}".encode()).decode())

    def test_appear_nowhere(self):
        prefix = "secret."
        keys = self.sasl(prefix, "PLAIN", self.command("password", PASSWORD), debug="all")
        a = self.agent("secret", log={"level": "debug", "format": "json"}, **keys).start()
        a.wait(lambda: a.status()["output"]["state"] == "up", 90, "delivery")
        a.ctl("reload", check=True)
        said = {"status": a.ctl("status").stdout, "status --json": a.ctl("status", "--json").stdout,
                "metrics": ask_metrics(a, "/metrics")[1], "readyz": ask_metrics(a, "/readyz")[1]}
        dump = harness.run_sluice(["check", "--dump", "-c", a.config_path])
        self.assertEqual(0, dump.returncode, dump.stderr)
        said["check --dump"] = dump.stdout + dump.stderr
        for name in ("cmdline", "environ"):
            with open(f"/proc/{a.pid}/{name}", errors="replace") as f:
                said[name] = f.read()
        self.assertEqual(0, a.stop(), a.log_text())
        said["log"] = a.log_text()
        self.assertIn("kafka.log", said["log"])
        self.assertGreater(len(said["log"]), 10000, "at debug level it says much")
        for at, _, names in os.walk(a.room):
            for name in names:
                path = os.path.join(at, name)
                if name not in ("password", "registry.password") and os.path.isfile(path):
                    with open(path, errors="replace") as f:
                        said[path] = f.read()
        for what, text in said.items():
            for secret in self.SECRETS:
                self.assertNotIn(secret, text, what)
        # The program that gave the password was seen by the probes: what it was given is not in the records either.
        result = check(self.stack.brokers, stack.registry_url, prefix=prefix, keep=lambda topic, record: True)
        for secret in self.SECRETS:
            self.assertNotIn(secret, repr(result.records))


if __name__ == "__main__":
    harness.main()
