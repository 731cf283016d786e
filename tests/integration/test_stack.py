# SPDX-License-Identifier: Apache-2.0
"""The tests' own servers: the proxy fails as configured, and a killed broker keeps what it acknowledged."""
import contextlib
import errno
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import harness
from proxy import Proxy
from stack import Servers, Shared, Stack


class Echo:
    """Sends back what it gets; one thread a connection."""

    def __init__(self, tag=b""):
        self.tag = tag
        self.ends = []  # how each connection ended: "eof" or an errno
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                s, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        with s:
            try:
                while data := s.recv(65536):
                    s.sendall(self.tag + data)
                self.ends.append("eof")
            except OSError as e:
                self.ends.append(e.errno)

    def close(self):
        self.listener.close()


def exactly(s, count):
    got = b""
    while len(got) < count:
        more = s.recv(count - len(got))
        if not more:
            break
        got += more
    return got


class ProxyTest(unittest.TestCase):
    def setUp(self):
        self.echo = Echo()
        self.addCleanup(self.echo.close)
        self.proxy = Proxy(self.echo.port)
        self.addCleanup(self.proxy.close)

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.proxy.port), 5)
        self.addCleanup(s.close)
        return s

    def test_all_bytes_pass_in_order(self):
        s = self.connect()
        sent = b"".join(struct.pack(">I", n) for n in range(500000))
        threading.Thread(target=lambda: (s.sendall(sent), s.shutdown(socket.SHUT_WR))).start()
        self.assertEqual(exactly(s, len(sent)), sent)
        self.assertEqual(s.recv(1), b"")  # the end is passed on, and back
        self.assertEqual(self.proxy.bytes_up, len(sent))
        self.assertEqual(self.proxy.bytes_down, len(sent))

    def test_paused_nothing_flows_and_resumed_it_does(self):
        s = self.connect()
        s.sendall(b"a")
        self.assertEqual(exactly(s, 1), b"a")
        self.proxy.pause()
        s.sendall(b"b")
        s.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            s.recv(1)
        self.proxy.resume()
        s.settimeout(5)
        self.assertEqual(exactly(s, 1), b"b")

    def test_reset_is_an_rst_at_both_ends(self):
        s = self.connect()
        s.sendall(b"a")
        exactly(s, 1)
        self.assertEqual(self.proxy.reset(), 1)
        with self.assertRaises(ConnectionResetError):
            s.recv(1)
        for _ in range(100):
            if self.echo.ends:
                break
            threading.Event().wait(0.02)
        self.assertEqual(self.echo.ends, [errno.ECONNRESET])

    def test_reset_after_lets_just_that_many_through(self):
        s = self.connect()
        self.proxy.reset_after(1000)
        with contextlib.suppress(OSError):
            s.sendall(b"x" * 5000)
        with self.assertRaises(ConnectionResetError):
            while s.recv(65536):
                pass
        self.assertEqual(self.proxy.bytes_up, 1000)
        again = self.connect()
        again.sendall(b"y" * 2000)  # only once
        self.assertEqual(exactly(again, 2000), b"y" * 2000)

    def test_refused_is_refused_and_open_ones_stay(self):
        s = self.connect()
        s.sendall(b"a")
        exactly(s, 1)
        self.proxy.refuse()
        with self.assertRaises(ConnectionRefusedError):
            self.connect()
        s.sendall(b"b")
        self.assertEqual(exactly(s, 1), b"b")
        self.proxy.accept()
        self.connect()

    def test_a_new_target_takes_new_connections(self):
        other = Echo(b"other ")
        self.addCleanup(other.close)
        self.proxy.retarget(other.port)
        s = self.connect()
        s.sendall(b"a")
        self.assertEqual(exactly(s, 7), b"other a")

    def test_a_dead_target_resets(self):
        self.echo.close()
        with socket.create_server(("127.0.0.1", 0)) as gone:
            self.proxy.retarget(gone.getsockname()[1])
        with self.assertRaises(OSError):
            s = self.connect()
            s.sendall(b"a")
            if s.recv(1) == b"":
                raise ConnectionResetError

    def test_a_canned_answer_reaches_no_server(self):
        self.proxy.answer(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        s = self.connect()
        s.sendall(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab")
        s.settimeout(0.2)
        with self.assertRaises(TimeoutError):
            s.recv(1)  # not before the whole request is there
        s.settimeout(5)
        s.sendall(b"c")
        self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 500"))
        self.assertEqual(self.proxy.bytes_up, 0)


class HeldBroker:
    """A broker that is stopped for some seconds, from when the registry's log has the given words once more."""

    def __init__(self, servers, words, seconds=4):
        self.log = servers.path("registry.log")
        self.words = words
        self.seconds = seconds
        self.pid = servers.broker_pid()
        self.ended = threading.Event()
        self.was_held = False
        self.thread = threading.Thread(target=self.hold, args=(self.said(),))

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read().count(self.words)

    def hold(self, said_before):
        while self.said() == said_before:
            if self.ended.wait(0.001):
                return
        os.kill(self.pid, signal.SIGSTOP)
        self.was_held = True
        self.ended.wait(self.seconds)
        os.kill(self.pid, signal.SIGCONT)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.ended.set()
        self.thread.join()


class StackTest(unittest.TestCase):
    def test_killed_and_started_at_another_port_it_has_what_it_acknowledged(self):
        from confluent_kafka import Consumer, Producer, TopicPartition

        with Stack(registry=False, proxied=True) as stack:
            stack.create_topic("t", partitions=1)
            producer = Producer({"bootstrap.servers": stack.proxied_brokers, "acks": "all", "log_level": 2})
            for n in range(1000):
                producer.produce("t", str(n))
            self.assertEqual(producer.flush(30), 0)
            self.assertGreater(stack.broker_proxy.bytes_up, 1000)  # its metadata led back to the proxy
            stack.kill_broker()
            self.assertIsNone(stack.servers.broker_pid())
            stack.start_broker(stack.ports.spare())
            producer.produce("t", "last")
            self.assertEqual(producer.flush(30), 0)
            consumer = Consumer({"bootstrap.servers": stack.brokers, "group.id": "none", "log_level": 2,
                                 "enable.auto.commit": False, "auto.offset.reset": "earliest"})
            consumer.assign([TopicPartition("t", 0, 0)])
            got = [m.value().decode() for m in consumer.consume(1001, 30)]
            consumer.close()
            self.assertEqual(got, [str(n) for n in range(1000)] + ["last"])
            self.assertEqual(stack.topics(), {"t": 1})
            stack.delete_topic("t")
            stack.create_topic("t", partitions=2)
            self.assertEqual(stack.topics(), {"t": 2})

    def test_a_registry_has_started_once_it_has_read_what_it_kept(self):
        """It takes requests before, when it knows of no rule, and then refuses to set one that it finds in Kafka meanwhile."""
        with Stack(registry_storage="kafka") as stack:
            stack.kill_registry()
            with HeldBroker(stack.servers, "Subscribing to") as held:
                stack.start_registry()
            self.assertTrue(held.was_held)
            self.assertEqual({"compatibilityLevel": "BACKWARD"}, stack.servers.ask_registry("/config"))

    def test_a_killed_test_leaves_no_broker(self):
        script = ("import time; from stack import Stack; s = Stack(registry=False); s.up(); "
                  "print(s.at, s.servers.broker_pid(), flush=True); time.sleep(600)")
        child = subprocess.Popen([sys.executable, "-B", "-c", script], cwd=os.path.dirname(os.path.abspath(__file__)),
                                 stdout=subprocess.PIPE, text=True)
        at, pid = child.stdout.readline().split()
        self.addCleanup(shutil.rmtree, at)
        child.kill()
        child.wait()
        child.stdout.close()
        for _ in range(300):
            if Servers(at).broker_pid() is None:
                break
            time.sleep(0.1)
        self.assertIsNone(Servers(at).broker_pid(), pid)


class SharedTest(unittest.TestCase):
    def user(self, at):
        """A process that uses the servers of that folder, and their pids."""
        script = ("import sys; from stack import Shared; import os; s = Shared(sys.argv[1]); users = s.up(os.getpid()); "
                  "print(s.servers.broker_pid(), s.servers.registry_pid(), s.brokers, flush=True); sys.stdin.read()")
        child = subprocess.Popen([sys.executable, "-B", "-c", script, at], cwd=os.path.dirname(os.path.abspath(__file__)),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.communicate)
        self.addCleanup(child.kill)
        return child, child.stdout.readline().split()

    def test_they_end_once_nobody_uses_them_however_their_users_end(self):
        at = tempfile.mkdtemp(prefix="sluice-stack-")
        self.addCleanup(shutil.rmtree, at, ignore_errors=True)
        self.addCleanup(lambda: Shared(at).down())
        first, found = self.user(at)
        second, found_too = self.user(at)
        self.assertEqual(3, len(found))
        self.assertEqual(found, found_too)
        first.kill()
        first.wait()
        # Who comes now shares with the second, which did not start them.
        third, found_too = self.user(at)
        self.assertEqual(found, found_too)
        for user in second, third:
            user.kill()
            user.wait()
        servers = Servers(at)
        end = time.monotonic() + 60
        while servers.broker_pid() or servers.registry_pid():
            self.assertLess(time.monotonic(), end, "the servers outlive their users")
            time.sleep(0.05)


if __name__ == "__main__":
    harness.main()
