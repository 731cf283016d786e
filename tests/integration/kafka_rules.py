# SPDX-License-Identifier: Apache-2.0
"""What must hold for the messages that agents put into Kafka. Pure: messages in, a Result out; nothing of sluice.

Rules is fed every message in the order of each partition, then asked for its Result. See Result for the rules.
"""
import collections
import dataclasses
import hashlib
import io
import json
import re
import struct

import fastavro

SHOWN = 20  # examples kept for each kind of fault
TOPICS = ["sluice." + t for t in ("program", "usage", "task", "run", "host", "finding", "agent")]

# Losses of a part of a record, which is there all the same: an argument cut short, memory that could not be read.
NO_RECORD_LOST = {"cut", "read_failed", "broken_off"}

# A program is looked at once a second, and later where the host is overloaded.
LOOK_S = 5

# partitions: how many its topic has. headers: {name: bytes}, or a list of (name, bytes).
Message = collections.namedtuple("Message", "topic partition partitions offset key value headers")


def murmur2(data):
    """As Kafka's Java client hashes a key, from the algorithm's description: 32 bits, seed 0x9747b28c."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = struct.unpack_from("<I", data, at)[0] * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    rest = data[whole:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def partition_of(key, partitions):
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def without_logical_types(schema):
    """Of a parsed JSON schema: times then stay integers, which are quicker and compare exactly."""
    if isinstance(schema, dict):
        return {k: without_logical_types(v) for k, v in schema.items() if k != "logicalType"}
    if isinstance(schema, list):
        return [without_logical_types(v) for v in schema]
    return schema


def ranges(numbers):
    """[1, 2, 3, 7] → "1-3, 7" """
    out = []
    for n in sorted(numbers):
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    text = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in out[:10])
    return text + (f" and {len(out) - 10} more" if len(out) > 10 else "")


@dataclasses.dataclass
class Options:
    schemas: dict  # topic without prefix → text of its .avsc
    prefix: str = ""  # before each topic's name
    duplicates: int = 0  # at most so many messages more than records
    window: tuple = None  # (from_us, to_us): every record's time lies in it
    ordered_times: bool = True  # false where the clock was stepped back
    cut_topics: tuple = ()  # deleted or expired on purpose: their holes are listed, not judged
    at_least: dict = dataclasses.field(default_factory=dict)  # topic → so many distinct records
    next_seq: dict = dataclasses.field(default_factory=dict)  # (agent_id, topic) → what its next record would get
    first_seq: int = 0  # of an agent's first record; None: wherever it begins
    dead_letters: frozenset = frozenset()  # (topic without prefix, seq) that the agent put aside, with a reason
    # The network may pass on a request after its connection was given up, and a broker that starts may answer it later
    # than the one that came next: an original may follow its marked copy, once.
    held_requests: bool = False
    must_have: tuple = ("schema_version", "agent_version")  # headers of every message
    # records.start_after of the agents in seconds: a program that was there to be seen for longer has a START.
    start_after: float = 1.0
    ends_without_start: int = 0  # at most so many more, as after a time without an agent
    keep: object = None  # a predicate on (topic, record); what it takes is in Result.records


@dataclasses.dataclass
class Result:
    """
    faults, by kind; none is the goal:
      empty                            no message at all, or fewer records of a topic than there must be
      frame schema subject decode      the value is 0, id, Avro; the id's text is our .avsc, under <topic>-value
      key partition                    host_id:run_id; as the Java client would choose
      header version                   present; schema_version is the record's, agent_version one that the agent names
      order                            seq went back within partition, agent and topic without the header "redelivery"; see
                                       Options.held_requests
      hole                             seqs that never came, more than the agent's records and dead letters account for
      duplicates copy                  more than allowed; two messages with one seq that are not the same bytes
      field time                       values that contradict each other; outside the window, or backwards
      start end                        a program that starts or ends twice, but for those that an agent finds running
                                       again after a GAP; an end without a start, if it lived for long enough
    """

    faults: dict = dataclasses.field(default_factory=dict)  # kind → [count, [examples]]
    messages: int = 0
    by_topic: dict = dataclasses.field(default_factory=dict)  # distinct records
    duplicates: int = 0
    redelivered: int = 0  # marked so
    holes: dict = dataclasses.field(default_factory=dict)  # (agent_id, topic) → sorted seqs
    accounted: dict = dataclasses.field(default_factory=dict)  # agent_id → records that it says it lost
    losses: dict = dataclasses.field(default_factory=dict)  # agent_id → its last record's {(place, reason): count}
    agents: dict = dataclasses.field(default_factory=dict)  # agent_id → {topic: highest seq}
    unended: dict = dataclasses.field(default_factory=dict)  # program_id → its START, of those without END
    records: list = dataclasses.field(default_factory=list)  # (topic, record) that Options.keep took; no duplicates

    @property
    def ok(self):
        return not self.faults

    def count(self, kind):
        return self.faults.get(kind, [0])[0]

    def summary(self):
        lines = [f"{self.messages} messages, {sum(self.by_topic.values())} records: "
                 + ", ".join(f"{t} {n}" for t, n in sorted(self.by_topic.items()))]
        lines.append(f"{len(self.agents)} agents; {self.duplicates} duplicates, {self.redelivered} marked redelivery; "
                     f"{len(self.unended)} programs without an end")
        for (agent, topic), seqs in sorted(self.holes.items()):
            lines.append(f"hole: {agent} {topic}: {len(seqs)} records: {ranges(seqs)} "
                         f"(the agent accounts for {self.accounted.get(agent, 0)})")
        for agent, losses in sorted(self.losses.items()):
            lines += [f"lost: {agent} {place} {reason} {count}" for (place, reason), count in sorted(losses.items())]
        for kind, (count, examples) in sorted(self.faults.items()):
            lines.append(f"FAULT {kind}: {count}")
            lines += [f"    {e}" for e in examples[:5]]
        lines.append("ok" if self.ok else "NOT OK")
        return "\n".join(lines)


class Rules:
    """schema_of(id) → (text, [subjects]) as the registry has them; LookupError where it has not."""

    def __init__(self, schema_of, options):
        self.o = options
        self.schema_of = schema_of
        self.result = Result()
        self._readers = {}  # (schema id, topic) → parsed schema or None
        self._seqs = collections.defaultdict(dict)  # (agent, topic) → {seq: digest of key and payload}
        self._last = {}  # (topic, partition, agent) → highest seq so far
        self._starts = {}  # program_id → record
        self._ends = {}
        self._found_again = collections.Counter()  # agent → STARTs of programs that it found running once more
        self._agent_records = collections.defaultdict(dict)  # agent → {seq: (event, version, {loss: count})}
        self._early = collections.defaultdict(set)  # (topic, partition, agent) → seqs whose marked copy came first
        self._versions = collections.defaultdict(set)  # agent → agent_version of its messages

    def fault(self, kind, text):
        entry = self.result.faults.setdefault(kind, [0, []])
        entry[0] += 1
        if len(entry[1]) < SHOWN:
            entry[1].append(text)

    # --- one message ---

    def _reader(self, schema_id, topic, at):
        if (schema_id, topic) not in self._readers:
            self._readers[schema_id, topic] = None
            try:
                text, subjects = self.schema_of(schema_id)
            except LookupError as e:
                self.fault("schema", f"{at}: the registry does not know id {schema_id}: {e}")
                return None
            if text != self.o.schemas.get(topic):
                self.fault("schema", f"{at}: id {schema_id} is not the text of the schema of {topic}")
            if f"{self.o.prefix}{topic}-value" not in subjects:
                self.fault("subject", f"{at}: id {schema_id} is under {subjects}, not {self.o.prefix}{topic}-value")
            try:
                self._readers[schema_id, topic] = fastavro.parse_schema(without_logical_types(json.loads(text)))
            except Exception as e:
                self.fault("schema", f"{at}: id {schema_id} is no schema: {e}")
        return self._readers[schema_id, topic]

    def decode(self, m, topic, at):
        if m.value is None or len(m.value) < 5 or m.value[0] != 0:
            self.fault("frame", f"{at}: {m.value[:8] if m.value else m.value!r} is not 0 and a schema id")
            return None
        schema = self._reader(struct.unpack(">I", m.value[1:5])[0], topic, at)
        if schema is None:
            return None
        body = io.BytesIO(m.value[5:])
        try:
            record = fastavro.schemaless_reader(body, schema)
        except Exception as e:
            self.fault("decode", f"{at}: {type(e).__name__}: {e}")
            return None
        if body.read(1):
            self.fault("decode", f"{at}: bytes after the record")
        return record

    def feed(self, m):
        self.result.messages += 1
        topic = m.topic[len(self.o.prefix):]
        at = f"{m.topic}[{m.partition}]@{m.offset}"
        headers = dict(m.headers or ())
        r = self.decode(m, topic, at)
        if r is None:
            return
        at += f" seq {r['seq']}"
        agent = r["agent_id"]

        self._check_key(m, r, at)
        self._check_headers(headers, r, at)
        is_redelivery = "redelivery" in headers
        self.result.redelivered += is_redelivery
        partition = (topic, m.partition, agent)
        last = self._last.get(partition, -1)
        early = self._early[partition]
        is_held_original = self.o.held_requests and not is_redelivery and r["seq"] in early
        if is_redelivery and r["seq"] not in self._seqs[agent, topic]:
            early.add(r["seq"])
        elif is_held_original:
            early.remove(r["seq"])  # a record has one original
        if r["seq"] <= last and not is_redelivery and not is_held_original:
            self.fault("order", f"{at} of {agent} after {last}, and it is not marked as a redelivery")
        self._last[partition] = max(last, r["seq"])

        digest = hashlib.blake2b((m.key or b"") + b"\0" + m.value[5:], digest_size=8).digest()
        seen = self._seqs[agent, topic]
        if r["seq"] in seen:
            self.result.duplicates += 1
            if seen[r["seq"]] != digest:
                self.fault("copy", f"{at} of {agent} came before with other bytes")
            return
        seen[r["seq"]] = digest
        self.result.by_topic[topic] = self.result.by_topic.get(topic, 0) + 1
        self._check_fields(topic, r, at)
        if self.o.keep is not None and self.o.keep(topic, r):
            self.result.records.append((topic, r))

    def _check_key(self, m, r, at):
        want = f"{r['host_id']}:{r['run_id'] or ''}".encode()
        if m.key != want:
            self.fault("key", f"{at}: {m.key!r}, expected {want!r}")
        elif m.partition != partition_of(m.key, m.partitions):
            self.fault("partition", f"{at}: {m.key!r} belongs into {partition_of(m.key, m.partitions)} "
                                    f"of {m.partitions}")

    def _check_headers(self, headers, r, at):
        for name in self.o.must_have:
            if not headers.get(name):
                self.fault("header", f"{at}: no {name} in {sorted(headers)}")
        got = headers.get("schema_version")
        if got and got != str(r["schema_version"]).encode():
            self.fault("version", f"{at}: header {got!r}, record {r['schema_version']}")
        if headers.get("agent_version"):
            self._versions[r["agent_id"]].add(headers["agent_version"].decode(errors="replace"))

    # --- its fields ---

    def _check_fields(self, topic, r, at):
        if self.o.window and not self.o.window[0] <= r["time"] <= self.o.window[1]:
            self.fault("time", f"{at}: {r['time']} is outside {self.o.window}")
        if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", r["agent_id"]):
            self.fault("field", f"{at}: agent_id {r['agent_id']!r} is no UUID")
        for name in ("host_id", "host_name", "boot_id"):
            if not r[name]:
                self.fault("field", f"{at}: {name} is empty")
        if topic == "sluice.program":
            self._check_program(r, at)
        elif topic == "sluice.usage":
            if r["interval_ns"] <= 0 or not r["usage"]:
                self.fault("field", f"{at}: interval_ns {r['interval_ns']}, usage {r['usage']}")
        elif topic in ("sluice.task", "sluice.run"):
            if (r["phase"] == "END") != (r["end_time"] is not None):
                self.fault("field", f"{at}: {r['phase']} with end_time {r['end_time']}")
        elif topic == "sluice.agent":
            losses = {(lost["place"], lost["reason"]): lost["count"] for lost in r["lost"]}
            self._agent_records[r["agent_id"]][r["seq"]] = (r["event"], r["version"], losses)
        for name, value in (r.get("usage") or {}).items():
            if isinstance(value, (int, float)) and value < 0:
                self.fault("field", f"{at}: usage.{name} is {value}")

    def _check_program(self, r, at):
        program, phase = r["program_id"], r["phase"]
        if phase == "START":
            if program in self._starts and r["observed_time"] is not None:
                self._found_again[r["agent_id"]] += 1
            elif program in self._starts:
                self.fault("start", f"{at}: {program} ({r['comm']}) starts again, first as seq "
                                    f"{self._starts[program]['seq']}")
            self._starts.setdefault(program, r)
            for name in ("usage", "end_time", "end_reason", "exit_code", "exit_signal"):
                if r[name] is not None:
                    self.fault("field", f"{at}: START with {name} {r[name]}")
        elif phase == "END":
            if program in self._ends:
                self.fault("end", f"{at}: {program} ({r['comm']}) ends again, first as seq "
                                  f"{self._ends[program]['seq']}")
            self._ends.setdefault(program, r)
            self._check_end(r, at)
        else:
            self.fault("field", f"{at}: a program with phase {phase}")
        if self.o.ordered_times and not r["start_time"] <= r["program_start_time"] <= r["time"]:
            self.fault("time", f"{at}: start {r['start_time']}, program {r['program_start_time']}, time {r['time']}")

    def _check_end(self, r, at):
        if r["usage"] is None or r["end_time"] is None:
            self.fault("field", f"{at}: END without usage or end_time")
            return
        if r["end_reason"] == "EXIT":
            if (r["exit_code"] is None) == (r["exit_signal"] is None):
                self.fault("field", f"{at}: EXIT with exit_code {r['exit_code']} and exit_signal {r['exit_signal']}")
        elif r["end_reason"] == "EXEC":
            if r["exit_code"] is not None or r["exit_signal"] is not None:
                self.fault("field", f"{at}: EXEC with an exit status")
        else:
            self.fault("field", f"{at}: END with end_reason {r['end_reason']}")
        if self.o.ordered_times and r["end_time"] < r["program_start_time"]:
            self.fault("time", f"{at}: ended at {r['end_time']}, began at {r['program_start_time']}")

    def _must_have_started(self, end):
        """Whether an agent wrote START of a program that has this END: at its exec, or when it looked at it."""
        lived_us = (end["end_time"] or 0) - end["program_start_time"]
        return self.o.start_after == 0 or lived_us > (self.o.start_after + LOOK_S) * 1e6

    # --- all of them ---

    def finish(self):
        res = self.result
        for (agent, topic), seqs in self._seqs.items():
            res.agents.setdefault(agent, {})[topic] = max(seqs)
            first = min(seqs) if self.o.first_seq is None else self.o.first_seq
            if min(seqs) < first:
                self.fault("hole", f"{agent} {topic} begins at {min(seqs)}, not {first}")
            # Without next_seq the end of a topic is what came last: what was lost behind it does not show.
            after = max(self.o.next_seq.get((agent, topic), 0), max(seqs) + 1)
            missing = [n for n in range(first, after) if n not in seqs]
            if missing:
                res.holes[agent, topic] = missing
        for (agent, topic), after in self.o.next_seq.items():
            if (agent, topic) not in self._seqs and after > (self.o.first_seq or 0):
                res.agents.setdefault(agent, {})
                res.holes[agent, topic] = list(range(self.o.first_seq or 0, after))
        if res.messages == 0:
            self.fault("empty", "no message at all")
        for topic, least in self.o.at_least.items():
            if res.by_topic.get(topic, 0) < least:
                self.fault("empty", f"{res.by_topic.get(topic, 0)} records of {topic}, expected {least} or more")
        for agent in res.agents:
            res.accounted[agent] = self._accounted(agent)
        self._judge_holes()
        if res.duplicates > self.o.duplicates:
            self.fault("duplicates", f"{res.duplicates}, allowed {self.o.duplicates}")
        orphans = [p for p, end in self._ends.items() if p not in self._starts and self._must_have_started(end)]
        if len(orphans) > self.o.ends_without_start:
            for p in orphans:
                self.fault("end", f"{p} ({self._ends[p]['comm']}, seq {self._ends[p]['seq']}) ends without a start")
        for agent, count in self._found_again.items():
            if not any(event == "GAP" for event, _, _ in self._agent_records[agent].values()):
                self.fault("start", f"{agent}: {count} programs start again, and it tells of no GAP")
        res.unended = {p: r for p, r in self._starts.items() if p not in self._ends}
        for agent, versions in self._versions.items():
            named = {version for _, version, _ in self._agent_records[agent].values()}
            if named and not versions <= named:
                self.fault("version", f"{agent}: headers say {sorted(versions)}, its records {sorted(named)}")
        return res

    def _accounted(self, agent):
        """
        How many records an agent says it lost, at most. Its counters begin again with each START, so the last of each
        life counts. One event of the kernel is up to two records: exec ends a program and begins another.
        """
        total = 0
        life = {}
        for _, (event, _, losses) in sorted(self._agent_records[agent].items()):
            if event == "START":
                total += sum(life.values())
                life = {}
            self.result.losses[agent] = losses
            for (place, reason), count in losses.items():
                if reason not in NO_RECORD_LOST:
                    count *= 1 if place in TOPICS else 2
                    life[place, reason] = max(life.get((place, reason), 0), count)
        return total + sum(life.values())

    def _judge_holes(self):
        left = dict(self.result.accounted)
        for (agent, topic), missing in sorted(self.result.holes.items()):
            if topic in self.o.cut_topics:
                continue
            unexplained = [n for n in missing if (topic, n) not in self.o.dead_letters]
            if len(unexplained) > left[agent]:
                self.fault("hole", f"{agent} {topic}: {len(unexplained)} never came ({ranges(unexplained)}), "
                                   f"the agent accounts for {left[agent]}")
            left[agent] = max(0, left[agent] - len(unexplained))
