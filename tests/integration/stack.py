# SPDX-License-Identifier: Apache-2.0
"""A Kafka broker and a schema registry for tests: dev/stack's servers, at free ports, in a folder of their own.

Tests that leave the servers as they are share one pair of them, each with topics of a prefix of its own:

    servers = stack.shared()
    ... servers.brokers, servers.registry_url, stack.prefix(self) ...

Tests that kill, pause, secure or configure them have their own:

    with Stack(proxied=True) as stack:
        ... stack.brokers, stack.registry_url ...
        stack.broker_proxy.reset()
        stack.kill_broker(); stack.start_broker()

The shared ones are started by the test that asks first, or by `python stack.py up`; all others find them by their folder
beside the build. They end once the process that started them has ended and no test uses them any more; `python stack.py
down` ends them at once. By `up`, that process is the one that ran it, as ctest and a shell do.
"""
import argparse
import contextlib
import fcntl
import os
import random
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "dev", "stack.d"))

import servers  # noqa: E402
from proxy import Proxy  # noqa: E402,F401
from servers import PASSWORD, PORTS, STACK, USER, Servers, StackError  # noqa: E402,F401

BLOCK = 30  # ports: the servers' own, proxies, and spare ones


class Ports:
    """
    A block of ports that is ours until close(): below the kernel's own choice, so that no connection takes one while
    its server is down, and locked against other tests. SLUICE_STACK_PORTS=FROM-TO narrows the choice.
    """

    def __init__(self):
        low, high = (int(n) for n in os.environ.get("SLUICE_STACK_PORTS", "20000-29999").split("-"))
        os.makedirs(os.path.join(STACK, "ports"), exist_ok=True)
        bases = list(range(low, high + 2 - BLOCK, BLOCK))
        random.shuffle(bases)
        for base in bases:
            self._lock = open(os.path.join(STACK, "ports", str(base)), "w")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._lock.close()
                continue
            if all(servers.is_free(port) for port in range(base, base + BLOCK)):
                self.base = base
                self._next = base + servers.PORT_COUNT
                return
            self.close()
        raise StackError(f"no {BLOCK} free ports in a row between {low} and {high}")

    def spare(self):
        """A port that nothing of this block has used yet."""
        if self._next >= self.base + BLOCK:
            raise StackError("the block of ports is used up")
        self._next += 1
        return self._next - 1

    def fileno(self):
        """Of the lock: who has it open holds the ports."""
        return self._lock.fileno()

    def close(self):
        self._lock.close()  # the file stays: who removed it could take it from under another's lock


class Clients:
    """What a test may ask of running servers, also of those that it did not start."""

    @property
    def brokers(self):
        return self.servers.brokers

    @property
    def registry_url(self):
        return self.servers.registry_url

    def _admin(self, call):
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.brokers, "log_level": 2})
        return call(admin)

    def topics(self):
        """{name: partitions}, without Kafka's own."""
        found = self._admin(lambda admin: admin.list_topics(timeout=10).topics)
        return {name: len(t.partitions) for name, t in found.items() if not name.startswith("__")}

    def _topic_id(self, name):
        """The topic's id by the broker's metadata; None: it has no such topic."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        try:
            return self._admin(lambda admin: str(admin.describe_topics(TopicCollection([name]))[name].result(30).topic_id))
        except KafkaException as e:
            if e.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return None

    def _until_told(self, what, is_told):
        """The controller answers once it has decided; the broker's metadata have it once it has read that decision."""
        until = time.monotonic() + 30
        while not is_told():
            if time.monotonic() > until:
                raise StackError(f"the broker does not report that {what}")
            time.sleep(0.02)

    def create_topic(self, name, partitions=3, config=None):
        """Once it returns, the broker's metadata have the topic."""
        from confluent_kafka.admin import NewTopic

        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        self._admin(lambda admin: [f.result(30) for f in admin.create_topics([new]).values()])
        self._until_told(f"{name} is there", lambda: self._topic_id(name) is not None)

    def delete_topic(self, name):
        """Once it returns, the broker's metadata lack that topic; a client that missed it may have made a new one."""
        old = self._topic_id(name)
        self._admin(lambda admin: [f.result(30) for f in admin.delete_topics([name]).values()])
        self._until_told(f"{name} is gone", lambda: self._topic_id(name) != old)


class Stack(Clients):
    """
    registry: with one. proxied: clients of proxied_brokers and proxied_registry_url go through broker_proxy and
    registry_proxy, also after they have read the broker's own address from its metadata. options: servers.OPTIONS.
    Without `with`: up() and, in a finally, close(). at: a folder to keep; else a temporary one is removed.
    """

    def __init__(self, registry=True, proxied=False, at=None, **options):
        self._with_registry = registry
        self._keep = at is not None
        self.ports = Ports()
        self.at = at or tempfile.mkdtemp(prefix="sluice-stack-")
        self.broker_proxy = None
        self.registry_proxy = None
        self.servers = Servers(self.at)
        self._guard = self._start_guard()
        try:
            self.servers.configure({name: self.ports.base + n for name, n in PORTS.items()},
                                   with_proxied=proxied, **options)
            if proxied:
                self.broker_proxy = Proxy(self.servers.port("proxied"), self.servers.port("proxy"))
                self.registry_proxy = Proxy(self.servers.port("registry"), self.ports.spare())
        except BaseException:
            self.close()
            raise

    def _start_guard(self):
        """Ends the servers when we are killed: its standard input, a pipe of ours, then ends."""
        return subprocess.Popen(["/bin/sh", "-c", 'read -r _; "$0" down --dir "$1" >/dev/null 2>&1',
                                 os.path.join(servers.ROOT, "dev", "stack"), self.at], stdin=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def __enter__(self):
        try:
            self.up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()

    def up(self):
        """{"broker": seconds, "registry": seconds} until each answered."""
        return self.servers.up(self._with_registry)

    def down(self):
        return self.servers.down()

    def close(self):
        self.servers.down()
        self._guard.kill()
        self._guard.wait()
        self._guard.stdin.close()
        for p in (self.broker_proxy, self.registry_proxy):
            if p is not None:
                p.close()
        self.ports.close()
        if not self._keep:
            shutil.rmtree(self.at, ignore_errors=True)

    # --- where ---

    @property
    def registry_tls_url(self):
        return self.servers.registry_tls_url

    @property
    def proxied_brokers(self):
        return f"127.0.0.1:{self.broker_proxy.port}"

    @property
    def proxied_registry_url(self):
        return f"http://127.0.0.1:{self.registry_proxy.port}/apis/ccompat/v7"

    def listener(self, name):
        """ "ssl", "mtls", "sasl_ssl", "sasl_plaintext" → host:port; their certificates are for localhost."""
        return f"localhost:{self.servers.port(name)}"

    def cert(self, name):
        """The path of a certificate or key: see servers.make_certificates()."""
        return self.servers.cert(name)

    # --- faults ---

    def kill_broker(self):
        """SIGKILL; its files stay as they are."""
        return self.servers.kill_broker()

    def stop_broker(self):
        return self.servers.stop_broker()

    def start_broker(self, port=None):
        """On the same data, also at another port for plain clients. Seconds until it answered."""
        return self.servers.start_broker(port)

    def kill_registry(self):
        return self.servers.kill_registry()

    def stop_registry(self):
        return self.servers.stop_registry()

    def start_registry(self, port=None):
        took = self.servers.start_registry(port)
        if port is not None and self.registry_proxy is not None:
            self.registry_proxy.retarget(port)
        return took


# --- one pair of servers for all ---

SHARED = os.path.join(os.path.abspath(os.environ.get("SLUICE_BUILD") or os.path.join(servers.ROOT, "build", "release")),
                      "tests", "stack")


class Shared(Clients):
    """
    The servers that many tests use at once. Two files in their folder are locked, always in this order: "users" by
    each process that needs them, and alone by who ends them; "start" by who starts or ends them, meanwhile. The kernel
    unlocks what a killed one held.
    """

    def __init__(self, at=SHARED):
        self.at = os.path.abspath(at)
        os.makedirs(self.at, exist_ok=True)
        self.servers = Servers(self.at)

    def _lock(self, name, how):
        file = open(os.path.join(self.at, name), "a")
        fcntl.flock(file, how)
        return file

    def _answers(self):
        return bool(self.servers.state and self.servers.broker_pid() and self.servers.registry_pid()
                    and self.servers.broker_answers() and self.servers.registry_answers())

    def _start_guard(self, owner, *locks):
        """Another process, which holds these locks and ends the servers when we cannot."""
        guard = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), "guard", "--at", self.at,
                                  "--owner", str(owner), "--users", str(locks[0].fileno())],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 start_new_session=True, pass_fds=[lock.fileno() for lock in locks])
        guard.returncode = 0  # it outlives us

    def up(self, owner):
        """They answer, and do so as long as the process of that pid lives. The lock of a user."""
        users = self._lock("users", fcntl.LOCK_SH)
        with self._lock("start", fcntl.LOCK_EX):
            self.servers = Servers(self.at)
            if self._answers():
                if owner != os.getpid():
                    self._start_guard(owner, users)
                return users
            self.servers.down()
            ports = Ports()
            self._start_guard(owner, users, ports)
            self.servers.configure({name: ports.base + n for name, n in PORTS.items()})
            ports.close()  # the guard has them
            self.servers.up()
        return users

    def down(self):
        with self._lock("start", fcntl.LOCK_EX):
            self.servers.down()

    def guard(self, owner, users):
        """Ends them once the owner has ended and no other process uses them."""
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(owner)], [], [])
        fcntl.flock(users, fcntl.LOCK_EX)
        self.down()


_shared = None


def shared():
    """The servers of all tests of this build; this process may use them until it ends."""
    global _shared
    if _shared is None:
        found = Shared()
        found.users = found.up(os.getpid())
        _shared = found
    return _shared


def prefix(test):
    """For the topics of a test: no other has them, nor the same one that runs again or beside it."""
    name = "-".join(test.id().removeprefix("__main__.").split(".")[-2:])
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:80] + f"-{os.getpid()}."


def main():
    parser = argparse.ArgumentParser(prog="stack.py", description="The Kafka broker and the registry that tests share.")
    parser.add_argument("command", choices=("up", "down", "guard"))
    parser.add_argument("--at", default=SHARED, help=f"their folder ({SHARED})")
    parser.add_argument("--owner", type=int, default=os.getppid(),
                        help="up: the process without which they may end; else the one that runs this")
    parser.add_argument("--users", type=int, help="guard: the file descriptor of their users' lock")
    args = parser.parse_args()
    found = Shared(args.at)
    if args.command == "up":
        found.up(args.owner)
        print(f"Kafka {found.brokers}, registry {found.registry_url}")
    elif args.command == "down":
        found.down()
    else:
        found.guard(args.owner, args.users)


if __name__ == "__main__":
    main()
