# SPDX-License-Identifier: Apache-2.0
"""
The registry client against what a real registry cannot be made to do: failing, silent, huge, hostile, behind TLS.
The server here gives ids as a registry does, until a test tells it to do something else.
"""
import base64
import contextlib
import http.server
import json
import os
import shutil
import socket
import ssl
import struct
import tempfile
import threading
import time
import unittest

import harness
from registry_asker import REGISTRY_IDS, SUBJECTS, Asker, subject
from stack import Ports, servers

USER, PASSWORD, TOKEN = "agent", "hunter2:\"\\ü", "tok.en-hunter3"
STALL_MS = 1000  # a loop that waits for the network is blocked for longer than that; a busy machine does not
HOST = {"only": "host"}  # one schema does where it is not about many


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.connections += 1
        self.server.sockets.add(self.connection)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((time.monotonic(), self.path, dict(self.headers), body))
        self.server.answer(self, body)

    def give(self, status, value, headers=()):
        """value: JSON, or bytes as they are."""
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for k, v in headers:
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    """answer(handler, body) may be replaced at any time; good() is what a registry does."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port, tls=None):
        self.requests = []  # (when, path, headers, body)
        self.connections = 0
        self.sockets = set()
        self.first_id = 100
        self.ids = {}
        self.answer = self.good
        super().__init__(("127.0.0.1", port), Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'s' if tls else ''}://localhost:{port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def good(self, handler, body):
        text = json.loads(body)["schema"]
        name = handler.path.removeprefix("http://registry.invalid").split("/")[2]
        if SUBJECTS.get(name) != text:
            handler.give(422, {"error_code": 42201, "message": "not the original text"})
        else:
            handler.give(200, {"id": self.ids.setdefault(name, self.first_id + len(self.ids))})

    def handle_error(self, request, address):
        pass  # clients hang up here, on purpose

    def stop(self):
        self.shutdown()
        self.server_close()
        for s in list(self.sockets):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


def says(status, value, headers=()):
    return lambda handler, body: handler.give(status, value, headers)


def hangs(handler, body):
    time.sleep(60)


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.access(REGISTRY_IDS, os.X_OK):
            raise AssertionError("REGISTRY_IDS names no executable; run this through ctest")
        cls.at = tempfile.mkdtemp(prefix="sluice-registry-")
        cls.addClassCleanup(shutil.rmtree, cls.at, ignore_errors=True)
        cls.certs = os.path.join(cls.at, "certs")
        servers.make_certificates(cls.certs)

    def setUp(self):
        self.ports = Ports()
        self.addCleanup(self.ports.close)

    def serve(self, answer=None, tls=None):
        s = Server(self.ports.spare(), tls)
        if answer is not None:
            s.answer = answer
        self.addCleanup(s.stop)
        return s

    def tls(self, wants_client=False):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        c.load_cert_chain(self.cert("server.crt"), self.cert("server.key"))
        if wants_client:
            c.verify_mode = ssl.CERT_REQUIRED
            c.load_verify_locations(self.cert("ca.crt"))
        return c

    def cert(self, name):
        return os.path.join(self.certs, name)

    def assert_recovers(self, s, a, text):
        """It is away and says why; once the server is good again it has every id."""
        line = a.wait_state("away", text)
        self.assertIn(s.url, line["error"])
        self.assertNotIn("refused", [line["state"] for line in a.lines])
        s.answer = s.good
        status, last = a.end()
        self.assertEqual((0, ""), (status, a.stderr))
        self.assertEqual("ok", last["state"])
        self.assertEqual(s.ids, last["ids"])
        self.assertLess(last["stall_ms"], STALL_MS)
        return last

    def recovers_from(self, answer, text, **options):
        s = self.serve(answer)
        with Asker(s.url, until_verified=True, **options) as a:
            return self.assert_recovers(s, a, text)

    # --- no answer, or none that counts ---

    def test_status_500_is_no_answer(self):
        self.recovers_from(says(500, {"error_code": 50001, "message": "the store\nis gone"}), '500 ("the store is gone")')

    def test_status_429_is_no_answer(self):
        self.recovers_from(says(429, b""), "429")

    def test_silence_is_no_answer(self):
        self.recovers_from(hangs, "within 1500 ms", timeout_ms=1500)

    def test_login_page_is_no_answer(self):
        self.recovers_from(says(200, b"<html>please log in</html>"), "a body that is not JSON")

    def test_answer_without_an_id_is_none(self):
        self.recovers_from(says(200, {"schema": "x"}), "JSON without an id")

    def test_id_that_is_no_id_is_none(self):
        for id in (-1, 2**31, 1.5, "7", None):
            with self.subTest(id=id):
                self.recovers_from(says(200, {"id": id}), "an invalid id", **HOST)

    def test_answer_that_is_too_large_is_none(self):
        self.recovers_from(says(200, b'{"id": 7, "pad": "' + b"x" * (2 << 20) + b'"}'), "too large", **HOST)

    def test_endless_answer_is_none(self):
        def endless(handler, body):
            handler.send_response(200)
            handler.end_headers()
            while True:
                handler.wfile.write(b"x" * 65536)

        self.recovers_from(endless, "too large", **HOST)

    def test_endless_headers_are_no_answer(self):
        def endless(handler, body):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                handler.wfile.write(b"X-Pad: " + b"x" * 1000 + b"\r\n")

        self.recovers_from(endless, "too large", **HOST)

    def test_reset_connection_is_no_answer(self):
        def reset(handler, body):
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True
            handler.wfile.close()
            handler.rfile.close()
            handler.connection.close()

        self.recovers_from(reset, "check that the registry runs there", **HOST)

    def test_half_an_answer_is_none(self):
        def half(handler, body):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"id\": 7")
            handler.close_connection = True

        self.recovers_from(half, "no answer from", **HOST)

    def test_question_that_chokes_the_server_does_not_hold_up_others(self):
        s = self.serve()
        s.answer = lambda h, body: h.give(500, b"") if subject("agent") in h.path else s.good(h, body)
        with Asker(s.url, retry_max_ms=100) as a:
            line = a.wait(lambda line: line["wanted"] == 1, "all ids but one")
            self.assertEqual("EAGAIN", line["ids"][subject("agent")])

    def test_silent_name_server_holds_up_nothing(self):
        if not harness.is_root():
            self.skipTest("a network of our own needs root")
        conf = os.path.join(self.at, "resolv.conf")
        with open(conf, "w") as f:
            f.write("nameserver 127.0.0.1\noptions timeout:20 attempts:1\n")
        # A name server that hears and never answers: a socket that registry_ids inherits, so that it is there before a question.
        bound = ("import os, socket, sys; s = socket.socket(2, 2); s.bind((\"127.0.0.1\", 53)); s.set_inheritable(True); "
                 "os.execv(sys.argv[1], sys.argv[1:])")
        script = f"ip link set lo up && mount --bind {conf} /etc/resolv.conf && exec python3 -c '{bound}' \"$0\" \"$@\""
        began = time.monotonic()
        with Asker("http://registry.example:8081", prefix=("unshare", "-mn", "sh", "-c", script), seconds=2,
                   timeout_ms=300, **HOST) as a:
            a.wait_state("away", "within 300 ms")
            status, last = a.end()
        self.assertEqual((0, ""), (status, a.stderr))
        self.assertGreater(last["requests"], 1)
        self.assertLess(last["stall_ms"], STALL_MS)
        self.assertLess(time.monotonic() - began, 20)

    def test_end_with_a_request_in_flight_leaks_nothing(self):
        # Built with sanitizers, registry_ids ends with another status when memory is left.
        for s in (self.serve(hangs), self.serve(hangs, self.tls())):
            with Asker(s.url, seconds=1, ca=self.cert("ca.crt")) as a:
                status, last = a.end()
            self.assertEqual((0, ""), (status, a.stderr))
            self.assertEqual(("asking", 1, 0), (last["state"], last["requests"], last["failures"]))

    # --- when, and where ---

    def test_waits_grow_and_are_never_longer_than_the_maximum(self):
        s = self.serve(says(500, b""))
        with Asker(s.url, seconds=3, retry_min_ms=20, retry_max_ms=200, **HOST) as a:
            a.end()
        at = [r[0] for r in s.requests]
        gaps = [b - a for a, b in zip(at, at[1:])]
        self.assertLess(max(gaps), 0.2 + 0.8)
        # 20, 40, 80, 160, 200, 200 … halved by chance: about 30 in three seconds, and not hundreds.
        self.assertGreater(len(at), 5)
        self.assertLess(len(at), 80)

    def test_retry_after_is_honoured(self):
        s = self.serve(says(503, b"", [("Retry-After", "2")]))
        with Asker(s.url, retry_min_ms=10, retry_max_ms=10000, **HOST) as a:
            a.wait_state("away", "503")
            s.answer = s.good
            a.wait_state("ok")
        self.assertGreater(s.requests[1][0] - s.requests[0][0], 1.95)

    def test_retry_after_is_honoured_up_to_the_maximum(self):
        s = self.serve()

        def answer(handler, body):
            if len(s.requests) > 4:
                s.good(handler, body)
            else:  # those without it are asked again sooner
                handler.give(503, b"", [("Retry-After", "3600")] if len(s.requests) == 1 else [])

        s.answer = answer
        with Asker(s.url, retry_min_ms=10, retry_max_ms=1000, **HOST) as a:
            a.wait_state("ok")
        gaps = [b[0] - a[0] for a, b in zip(s.requests, s.requests[1:])]
        self.assertGreater(gaps[0], 0.95)
        self.assertLess(gaps[0], 3)
        self.assertLess(min(gaps[1:]), 0.5)

    def test_retry_after_of_one_url_does_not_hold_up_another(self):
        busy, s = self.serve(says(503, b"", [("Retry-After", "3600")])), self.serve()
        with Asker(busy.url, s.url, retry_max_ms=60000, until_verified=True) as a:
            status, last = a.end()
        self.assertEqual((0, "ok", s.ids), (status, last["state"], last["ids"]))
        self.assertEqual(1, len(busy.requests))

    def test_dead_urls_give_way_to_a_live_one(self):
        s = self.serve()
        dead = f"http://127.0.0.1:{self.ports.spare()}"
        silent = self.serve(hangs)
        with Asker(dead, silent.url, s.url + "/", until_verified=True, timeout_ms=2000) as a:
            status, last = a.end()
        self.assertEqual((0, "ok", s.ids, s.url), (status, last["state"], last["ids"], last["url"]))
        self.assertEqual(2, last["failures"], "the live one is kept")

    def test_url_that_denies_gives_way_to_one_that_does_not(self):
        denies, s = self.serve(says(404, b"no such page")), self.serve()
        with Asker(denies.url, s.url, until_verified=True, retry_max_ms=60000) as a:
            status, last = a.end()
        self.assertEqual((0, "ok", s.ids), (status, last["state"], last["ids"]))

    def test_one_connection_does_for_all(self):
        s = self.serve()
        with Asker(s.url, seconds=7) as a:
            ok = a.wait_state("ok")
            status, last = a.end()
        self.assertEqual((1, len(SUBJECTS)), (s.connections, len(s.requests)))
        self.assertLess(last["fds"], ok["fds"], "without questions the connection goes")

    def test_proxy_of_the_environment_is_used(self):
        s = self.serve()
        with Asker("http://registry.invalid", until_verified=True, env={"http_proxy": s.url}, **HOST) as a:
            status, last = a.end()
        self.assertEqual((0, "ok"), (status, last["state"]))
        self.assertTrue(s.requests[0][1].startswith("http://registry.invalid/"))

    def test_redirect_is_followed_without_credentials(self):
        s = self.serve()
        first = self.serve(lambda h, body: h.give(301, b"", [("Location", s.url + h.path)]))
        with Asker(first.url, until_verified=True, user=USER, password=PASSWORD, **HOST) as a:
            status, last = a.end()
        self.assertEqual((0, "ok"), (status, last["state"]))
        self.assertIn("Authorization", first.requests[0][2])
        self.assertNotIn("Authorization", s.requests[0][2], "another port is another server")

    def test_redirect_to_another_scheme_is_refused(self):
        s = self.serve()
        first = self.serve(lambda h, body: h.give(307, b"", [("Location", s.url + h.path)]), self.tls())
        with Asker(first.url, ca=self.cert("ca.crt"), **HOST) as a:
            a.wait_state("away", "put its final address into registry.urls")
        self.assertEqual([], s.requests)

    def test_id_that_changes_is_replaced(self):
        s = self.serve()
        with Asker(s.url, recheck_ms=300) as a:
            a.wait_state("ok")
            s.first_id = 500
            s.ids = {}
            # No id is used from the first that has changed until each has been asked for again.
            line = a.wait(lambda line: all(isinstance(i, int) and i >= 500 for i in line["ids"].values()), "the new ids")
            self.assertEqual(("ok", s.ids), (line["state"], line["ids"]))

    def test_known_id_outlives_a_server_that_denies_or_fails(self):
        s = self.serve()
        with Asker(s.url, recheck_ms=200, **HOST) as a:
            ids = a.wait_state("ok")["ids"]
            for status in (401, 403, 404, 500):
                s.answer = says(status, b"")
                line = a.wait(lambda line: str(status) in line["error"], str(status))
                self.assertEqual(("ok", ids), (line["state"], line["ids"]))

    # --- who we are ---

    def guard(self, s, want):
        def answer(handler, body):
            got = handler.headers.get("Authorization", "")
            if got == want:
                s.good(handler, body)
            else:
                handler.give(401, {"error_code": 40101, "message": f"not {got} nor {PASSWORD} or {TOKEN}"})
        s.answer = answer
        return s

    def assert_secrets_kept(self, a):
        for secret in (PASSWORD, TOKEN, "hunter"):
            self.assertNotIn(secret, a.said())

    def test_basic_auth(self):
        basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        s = self.guard(self.serve(), basic)
        with Asker(s.url, until_verified=True, user=USER, password=PASSWORD) as a:
            status, last = a.end()
        self.assertEqual((0, "ok", len(SUBJECTS)), (status, last["state"], len(s.requests)), "sent without being asked")
        self.assert_secrets_kept(a)
        with Asker(s.url.replace("//", "//agent:hunter2%3A%22%5C%C3%BC@"), until_verified=True, **HOST) as a:
            status, last = a.end()
        self.assertEqual((0, "ok", s.url), (status, last["state"], last["url"]))
        self.assert_secrets_kept(a)

    def test_bearer_auth(self):
        s = self.guard(self.serve(), "Bearer " + TOKEN)
        with Asker(s.url, until_verified=True, token=TOKEN) as a:
            status, last = a.end()
        self.assertEqual((0, "ok", len(SUBJECTS)), (status, last["state"], len(s.requests)))
        self.assert_secrets_kept(a)

    def test_wrong_credentials_are_reported_and_kept_secret(self):
        s = self.guard(self.serve(), "nobody")
        for how in ({"user": USER, "password": PASSWORD}, {"token": TOKEN}):
            with self.subTest(how=how):
                with Asker(s.url, **HOST, **how) as a:
                    line = a.wait_state("refused", "401")
                    self.assertIn("does not accept our credentials", line["error"])
                    self.assertEqual("EACCES", line["ids"][subject("host")])
                self.assertNotIn(list(how.values())[-1], a.said())

    def test_forbidden_is_reported(self):
        s = self.serve(says(403, {"error_code": 40301, "message": "read only"}))
        with Asker(s.url, **HOST) as a:
            self.assertIn("may not register schemas under " + "subject " + subject("host"),
                          a.wait_state("refused", "403")["error"])

    # --- TLS ---

    def test_tls_with_our_ca(self):
        s = self.serve(tls=self.tls())
        with Asker(s.url, until_verified=True, ca=self.cert("ca.crt")) as a:
            status, last = a.end()
        self.assertEqual((0, "", "ok", s.ids), (status, a.stderr, last["state"], last["ids"]))
        self.assertEqual(1, s.connections)

    def test_tls_with_a_wrong_ca_is_reported(self):
        s = self.serve(tls=self.tls())
        for ca, text in ((self.cert("other-ca.crt"), "other-ca.crt"), (None, "its certificate is not trusted")):
            with Asker(s.url, ca=ca, **HOST) as a:
                self.assertIn("its certificate is not trusted", a.wait_state("away", text)["error"])
        self.assertEqual([], s.requests)

    def test_tls_for_another_name_is_reported(self):
        s = self.serve(tls=self.tls())
        with Asker(s.url.replace("localhost", "127.0.0.2"), ca=self.cert("ca.crt"), **HOST) as a:
            a.wait_state("away", "no answer from")
        self.assertEqual([], s.requests)

    def test_mutual_tls(self):
        s = self.serve(tls=self.tls(wants_client=True))
        with Asker(s.url, until_verified=True, ca=self.cert("ca.crt"), cert=self.cert("client.crt"),
                   key=self.cert("client.key")) as a:
            status, last = a.end()
        self.assertEqual((0, "", "ok"), (status, a.stderr, last["state"]))
        for how in ({}, {"cert": self.cert("other.crt"), "key": self.cert("other.key")},
                    {"cert": self.cert("expired.crt"), "key": self.cert("expired.key")}):
            with self.subTest(how=how), Asker(s.url, ca=self.cert("ca.crt"), **HOST, **how) as a:
                a.wait_state("away", "whether it requires a client certificate")

    def test_tls_to_a_port_without_it_is_reported(self):
        s = self.serve()
        with Asker(s.url.replace("http:", "https:"), ca=self.cert("ca.crt"), **HOST) as a:
            a.wait_state("away", "check that this port speaks TLS")

    # --- at start ---

    def test_options_that_cannot_work_are_reported_at_start(self):
        url, key = "http://localhost:1", self.cert("client.key")
        for args, options, text in (
                ((), {}, "registry.urls is empty"),
                (("localhost:8081",), {}, 'registry URL "localhost:8081": it must begin with http://'),
                (("ftp://me:hunter2@localhost",), {}, 'registry URL "localhost": it must begin with http://'),
                ((url + "?a=b",), {}, "neither ? nor #"),
                ((url,), {"user": "me", "token": "x"}, "registry.user and registry.token are both set"),
                ((url,), {"token": "x\n"}, "control character"),
                ((url,), {"cert": key}, "set both"),
                ((url,), {"ca": "/nowhere/ca.pem"}, "/nowhere/ca.pem cannot be read: No such file"),
        ):
            with self.subTest(text=text), Asker(*args, **options) as a:
                status, last = a.end()
                self.assertEqual((1, None), (status, last))
                self.assertIn(text, a.stderr)
                self.assertNotIn("hunter", a.stderr)


if __name__ == "__main__":
    harness.main()
