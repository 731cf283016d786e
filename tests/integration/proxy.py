# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy on loopback that fails on command: between the agent and a broker or a registry."""
import collections
import concurrent.futures
import contextlib
import errno
import os
import select
import socket
import struct
import threading

LIMIT = 1 << 18  # bytes waiting in one direction; beyond that the sender is not read


class _Way:
    """One direction of one connection."""

    def __init__(self, source, target):
        self.source = source
        self.target = target
        self.waiting = bytearray()
        self.is_ended = False  # the source has closed its end
        self.is_shut = False  # and that was passed on to the target


class _Pair:
    def __init__(self, client, server):
        self.client = client
        self.server = server
        self.up = _Way(client, server)
        self.down = _Way(server, client)


class _Talk:
    """A client that gets a canned answer instead of the server."""

    def __init__(self, client):
        self.client = client
        self.heard = bytearray()


class Proxy:
    """
    Listens at .port and passes bytes to target_port. All its sockets belong to one thread; every method may be
    called from any other and has taken effect when it returns.
    """

    def __init__(self, target_port, port=0, target_host="127.0.0.1"):
        self.target = (target_host, target_port)
        self.connections = 0  # accepted so far
        self.bytes_up = 0  # from clients to the server
        self.bytes_down = 0
        self.resets = 0
        self._paused = False
        self._answer = None
        self._reset_at = None
        self._pairs = set()
        self._talks = set()
        self._calls = collections.deque()
        self._wake_r, self._wake_w = os.pipe()
        self._stopping = False
        self._listener = None
        self.port = port
        self._listen()
        self._thread = threading.Thread(target=self._loop, name=f"proxy {self.port}", daemon=True)
        self._thread.start()

    # --- what a test says ---

    def pause(self):
        """Nothing flows any more; connections stay, and new ones are made but stay silent."""
        self._do(lambda: setattr(self, "_paused", True))

    def resume(self):
        self._do(lambda: setattr(self, "_paused", False))

    def reset(self):
        """RST to both ends of every open connection. How many there were."""
        return self._do(self._reset_all)

    def reset_after(self, count):
        """RST to both ends of the connection that sends the count-th byte up from now on, after exactly that byte."""
        self._do(lambda: setattr(self, "_reset_at", self.bytes_up + count))

    def refuse(self):
        """New connections get "connection refused"; open ones stay: see reset()."""
        self._do(self._unlisten)

    def accept(self):
        """The end of refuse()."""
        self._do(self._listen)

    def retarget(self, port):
        """Connections from now on go there; open ones stay."""
        self._do(lambda: setattr(self, "target", (self.target[0], port)))

    def answer(self, reply):
        """HTTP: every new connection's request gets these bytes, then an end; None: the server again."""
        self._do(lambda: setattr(self, "_answer", reply))

    def open_connections(self):
        return self._do(lambda: len(self._pairs) + len(self._talks))

    def close(self):
        if self._thread.is_alive():
            self._do(lambda: setattr(self, "_stopping", True))
            self._thread.join()
            os.close(self._wake_r)
            os.close(self._wake_w)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # --- the thread ---

    def _do(self, call):
        done = concurrent.futures.Future()
        self._calls.append((call, done))
        os.write(self._wake_w, b"x")
        return done.result(timeout=10)

    def _listen(self):
        if self._listener is None:
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", self.port))
            s.listen(64)
            s.setblocking(False)
            self.port = s.getsockname()[1]
            self._listener = s

    def _unlisten(self):
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    @staticmethod
    def _rst(sock):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def _reset_pair(self, pair):
        self._pairs.discard(pair)
        self._rst(pair.client)
        self._rst(pair.server)
        self.resets += 1

    def _reset_all(self):
        count = len(self._pairs) + len(self._talks)
        for pair in list(self._pairs):
            self._reset_pair(pair)
        for talk in self._talks:
            self._rst(talk.client)
        self._talks.clear()
        return count

    def _on_client(self):
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        self.connections += 1
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._answer is not None:
            self._talks.add(_Talk(client))
            return
        try:
            # Loopback: a connect() is done or refused at once.
            server = socket.create_connection(self.target, 2.0)
        except OSError:
            self._rst(client)
            return
        server.setblocking(False)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pairs.add(_Pair(client, server))

    def _on_readable(self, pair, way):
        data = way.source.recv(65536)
        if data:
            way.waiting += data
        else:
            way.is_ended = True

    def _on_writable(self, pair, way):
        limit = len(way.waiting)
        if way is pair.up and self._reset_at is not None:
            limit = min(limit, self._reset_at - self.bytes_up)
        sent = way.target.send(bytes(way.waiting[:limit]))
        del way.waiting[:sent]
        if way is not pair.up:
            self.bytes_down += sent
            return
        self.bytes_up += sent
        if self._reset_at is not None and self.bytes_up >= self._reset_at:
            self._reset_at = None
            self._reset_pair(pair)

    def _on_talk(self, talk):
        try:
            data = talk.client.recv(65536)
        except OSError:
            data = b""
        talk.heard += data
        head, _, body = bytes(talk.heard).partition(b"\r\n\r\n")
        want = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                want = int(value)
        if data and (b"\r\n\r\n" not in talk.heard or len(body) < want):
            return
        self._talks.discard(talk)
        if data and self._answer is not None:
            with contextlib.suppress(OSError):
                talk.client.setblocking(True)
                talk.client.sendall(self._answer)
        talk.client.close()

    def _finish(self, pair):
        """Passes on the ends that were said; closes what has both."""
        for way in (pair.up, pair.down):
            if way.is_ended and not way.waiting and not way.is_shut:
                way.is_shut = True
                with contextlib.suppress(OSError):
                    way.target.shutdown(socket.SHUT_WR)
        if pair.up.is_shut and pair.down.is_shut:
            self._pairs.discard(pair)
            pair.client.close()
            pair.server.close()

    def _interests(self):
        """({fd: events}, {(fd, event): what to call})"""
        events = collections.defaultdict(int)
        calls = {}
        if self._listener is not None:
            events[self._listener.fileno()] = select.POLLIN
            calls[self._listener.fileno(), select.POLLIN] = (None, self._on_client, ())
        for talk in self._talks:
            events[talk.client.fileno()] = select.POLLIN
            calls[talk.client.fileno(), select.POLLIN] = (None, self._on_talk, (talk,))
        for pair in () if self._paused else self._pairs:
            for way in (pair.up, pair.down):
                if not way.is_ended and len(way.waiting) < LIMIT:
                    events[way.source.fileno()] |= select.POLLIN
                    calls[way.source.fileno(), select.POLLIN] = (pair, self._on_readable, (pair, way))
                if way.waiting:
                    events[way.target.fileno()] |= select.POLLOUT
                    calls[way.target.fileno(), select.POLLOUT] = (pair, self._on_writable, (pair, way))
        return events, calls

    def _turn(self):
        events, calls = self._interests()
        poll = select.poll()
        poll.register(self._wake_r, select.POLLIN)
        for fd, wanted in events.items():
            poll.register(fd, wanted)
        for fd, got in poll.poll():
            if fd == self._wake_r:
                os.read(self._wake_r, 4096)
                continue
            if got & (select.POLLERR | select.POLLHUP):
                got |= select.POLLIN | select.POLLOUT  # the call itself says what it is
            for event in (select.POLLIN, select.POLLOUT):
                if not got & event or (fd, event) not in calls:
                    continue
                pair, call, args = calls[fd, event]
                if pair is not None and pair not in self._pairs:
                    continue  # ended earlier in this turn
                try:
                    call(*args)
                except OSError as e:
                    if e.errno not in (errno.EAGAIN, errno.EINTR):
                        self._reset_pair(pair)
        for pair in list(self._pairs):
            self._finish(pair)
        while self._calls:
            call, done = self._calls.popleft()
            try:
                done.set_result(call())
            except Exception as e:  # the caller's to see
                done.set_exception(e)

    def _loop(self):
        while not self._stopping:
            self._turn()
        self._unlisten()
        self._reset_all()
