# SPDX-License-Identifier: Apache-2.0
"""Benchmarks with a real Kafka: delivery alone beside librdkafka alone, and the whole daemon.

One broker and one registry serve all arms of a run; each arm has topics of its own.
"""
import collections
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

import fastavro  # noqa: E402
from confluent_kafka import Consumer, TopicPartition  # noqa: E402

import arms  # noqa: E402
import machine  # noqa: E402
from agent import Agent  # noqa: E402
from stack import Stack, shared  # noqa: E402

PARTITIONS = 3
DELIVERY_ARMS = ("direct", "sluice")

# The state of a daemon at a moment; times in seconds. exits: programs of the host that have ended.
Mark = collections.namedtuple("Mark", "at cpu exits")


def servers(is_shared):
    """Starts a broker and a registry without other load; is_shared: uses those of the tests."""
    return contextlib.nullcontext(shared()) if is_shared else Stack(partitions=PARTITIONS)


# --- delivery alone ---

def delivery_arm(bench, stack, arm, number, records):
    """Returns {figure: value} of one run of bench_delivery, on a topic and a spool of its own."""
    prefix = f"bench-{os.getpid()}-{number}-{arm}."
    stack.create_topic(prefix + "sluice.program", PARTITIONS)
    try:
        figures = bench.parts(bench.delivery, arm, stack.brokers, prefix, records, os.path.join(bench.new_folder(), "spool"))
    finally:
        stack.delete_topic(prefix + "sluice.program")
    return {name: values[0] for name, values in figures.items()}


def delivery(bench, stack, rounds, records, say):
    """Returns {arm: [figures]}. Each round runs both, in alternating order, after a round that warms the broker up."""
    taken = {arm: [] for arm in DELIVERY_ARMS}
    for i in range(rounds + 1):
        for arm in DELIVERY_ARMS if i % 2 else reversed(DELIVERY_ARMS):
            figures = delivery_arm(bench, stack, arm, i, records if i else min(records, 50000))
            if i:
                taken[arm].append(figures)
        if i:
            say(f"  round {i} of {rounds}")
    return {"arms": taken, "records": records, "bytes": taken["sluice"][0]["bytes"]}


def library(bench):
    """Returns the version of the librdkafka that sluice uses."""
    done = subprocess.run([bench.sluice, "doctor", "--json"], stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["librdkafka"]["version"]


# --- the daemon ---

class Daemon:
    """A `sluice agent` with default settings but for addresses and paths; settle: seconds to wait at the start."""

    def __init__(self, bench, stack, name, settle):
        self.stack = stack
        self.settle = settle
        self.prefix = f"bench-{os.getpid()}-{name}."
        self.topic = self.prefix + "sluice.program"
        room = tempfile.mkdtemp(prefix="daemon-", dir=bench.room)
        os.chmod(bench.room, 0o755)
        self.agent = Agent(room, sluice=bench.sluice, interval="10s", registry={"urls": [stack.registry_url]},
                           kafka={"brokers": [stack.brokers], "topics": {
                               "create": True, "partitions": PARTITIONS, "replication": 1, "prefix": self.prefix}})

    def __enter__(self):
        try:
            self.agent.start()
            self.agent.wait(lambda: delivered(self.status()) > 0, 60, "first delivery")
            time.sleep(self.settle)      # until the work after a start is done
        except BaseException:
            self.agent.remove()
            raise
        return self

    def __exit__(self, *_):
        self.agent.remove()

    def status(self):
        return self.agent.status()

    def mark(self):
        return Mark(time.monotonic(), self.cpu(), self.status()["events"]["exit"])

    def wait_empty(self):
        """Waits until the load's records are acknowledged; polls seldom, since a status costs CPU time."""
        for _ in range(120):
            time.sleep(1)
            status = self.status()
            if status["spool"]["records"] < 100:
                return
        raise arms.Failed(f"{status['spool']['records']} records still wait in the spool")

    def cpu(self):
        return machine.process_cpu(self.agent.pid)

    def ends(self, tiny):
        """Returns the number of END records of the program `tiny` in Kafka, and of holes in seq of all records."""
        with open(os.path.join(ROOT, "schemas", "avro", "program.avsc"), encoding="utf-8") as f:
            schema = fastavro.parse_schema(json.load(f))
        ends, seqs = set(), set()
        for m in read_topic(self.stack, self.topic):
            r = fastavro.schemaless_reader(io.BytesIO(m.value()[5:]), schema)
            seqs.add(r["seq"])
            if r["phase"] == "END" and r["exe"] == tiny:
                ends.add(r["program_id"])
        return len(ends), max(seqs) + 1 - len(seqs)


def consumer(stack, **more):
    return Consumer({"bootstrap.servers": stack.brokers, "group.id": "bench", "enable.auto.commit": False,
                     "log_level": 2, **more})


def server_pids(stack):
    return [p for p in (stack.servers.broker_pid(), stack.servers.registry_pid()) if p is not None]


def read_topic(stack, topic):
    c = consumer(stack)
    try:
        for p in range(PARTITIONS):
            at, high = c.get_watermark_offsets(TopicPartition(topic, p), timeout=20)
            c.assign([TopicPartition(topic, p, at)])
            deadline = time.monotonic() + 120
            while at < high:
                if time.monotonic() > deadline:
                    raise arms.Failed(f"{topic} [{p}]: stuck at {at} of {high}")
                for m in c.consume(5000, timeout=2):
                    if m.error():
                        raise arms.Failed(str(m.error()))
                    at = m.offset() + 1
                    yield m
    finally:
        c.close()


def delivered(status):
    return sum(x["delivered"] for x in status["records"])


def lost_of(status):
    """Returns all losses that the agent itself counts; "cut" is a field that was too long, and no loss of a record."""
    return sum(x["count"] for x in status["lost"] if x["reason"] != "cut")


def latency(bench, stack, i, rate, seconds, least=0.5):
    """
    Returns the latency in ms, from a record's time, which is the kernel's time of the event, to its receipt by a
    waiting consumer. A message's timestamp is that time truncated to milliseconds, so half of one is subtracted.
    A load that comes to less than this part of the rate has no result.
    """
    with Daemon(bench, stack, f"latency-{i}", 1) as d:
        c = consumer(stack, **{"fetch.wait.max.ms": 100, "auto.offset.reset": "latest"})
        try:
            # offsets, not "latest", which would be resolved only after the load has begun
            c.assign([TopicPartition(d.topic, p, c.get_watermark_offsets(TopicPartition(d.topic, p), timeout=20)[1])
                      for p in range(PARTITIONS)])
            c.poll(1)
            load = subprocess.Popen([bench.storm, "pace", str(rate * (seconds + 2)), str(rate), bench.tiny])
            begin = time.time()
            taken = []
            while time.time() < begin + seconds + 60:
                m = c.poll(0.1)
                now = time.time()
                if m is None:
                    continue
                if m.error():
                    raise arms.Failed(str(m.error()))
                happened = m.timestamp()[1] / 1e3
                if happened >= begin + 1.5 + seconds:   # one key, one partition: no older record follows
                    break
                if begin + 1 <= happened < begin + 1 + seconds:     # the first second is a warm-up
                    taken.append((now - happened) * 1e3 - 0.5)
            if load.wait() != 0:
                raise arms.Failed("the load failed")
        finally:
            c.close()
    if len(taken) < rate * seconds * least:
        raise arms.Failed(f"{len(taken)} records arrived in {seconds} s, at {rate} a second")
    taken.sort()
    return {"p50": taken[len(taken) // 2], "p99": taken[len(taken) * 99 // 100], "max": taken[-1],
            "rate": len(taken) / seconds}


def storm(bench, stack, name, command, processes, settle):
    """
    Returns CPU seconds per program from ring to acknowledgement, programs/s, and losses. Other programs of the host
    cost the agent CPU too: its CPU time and the ends of the time before are subtracted.
    """
    with Daemon(bench, stack, name, settle) as d:
        first = d.mark()
        time.sleep(settle)
        second = d.mark()
        began = time.monotonic()
        subprocess.run([*command, bench.tiny], check=True, stdout=subprocess.DEVNULL)
        wall = time.monotonic() - began
        d.wait_empty()
        third = d.mark()
        d.agent.settle(delivered=True)      # some ends are recorded only 2 s later
        lost = lost_of(d.status())
        share = (third.at - second.at) / (second.at - first.at)
        programs = third.exits - second.exits - share * (second.exits - first.exits)
        used = third.cpu - second.cpu - share * (second.cpu - first.cpu)
        if d.agent.stop() != 0:
            raise arms.Failed("the agent did not end well:\n" + d.agent.log_text())
        ends, holes = d.ends(bench.tiny)
    return {"cpu": used / max(1, programs), "rate": processes / wall, "lost": max(processes - ends, holes, lost)}


def paced(bench, stack, i, rate, seconds, settle):
    n = rate * seconds
    return storm(bench, stack, f"paced-{i}", [bench.storm, "pace", str(n), str(rate)], n, settle)


def saturating(bench, stack, i, processes, settle):
    return storm(bench, stack, f"storm-{i}", [bench.storm, "spawn", str(processes), str(2 * os.cpu_count())], processes,
                 settle)


def threads(pid):
    """Returns {name: CPU seconds} of the living threads."""
    used = collections.Counter()
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm") as f, open(f"/proc/{pid}/task/{tid}/schedstat") as g:
            used[f.read().strip()] += int(g.read().split()[0]) / 1e9
    return used


def rest(bench, stack, i, seconds, alive, alive_seconds, settle):
    """Returns the agent's CPU share and memory when idle, and its memory with many processes alive."""
    with Daemon(bench, stack, f"rest-{i}", settle) as d:
        before, cpu, by_thread, begin = d.status(), d.cpu(), threads(d.agent.pid), time.monotonic()
        time.sleep(seconds)
        wall = time.monotonic() - begin
        share = (d.cpu() - cpu) / wall
        by_thread = {k: v / wall for k, v in (threads(d.agent.pid) - by_thread).items()}
        programs = (d.status()["events"]["exec"] - before["events"]["exec"]) / wall
        idle = machine.memory_kib(d.agent.pid)
        p = subprocess.Popen([bench.storm, "hold", str(alive), bench.tiny], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True)
        try:
            if p.stdout.readline() != "ready\n":
                raise arms.Failed("the processes that should stay alive did not start")
            time.sleep(alive_seconds)
            full = machine.memory_kib(d.agent.pid)
        finally:
            p.communicate()
    return {"share": share, "threads": by_thread, "programs": programs, "seconds": seconds, "idle": idle, "alive": full,
            "processes": alive}
