# SPDX-License-Identifier: Apache-2.0
"""defects.py [-v] [--seeds N] [NAME…]: the simulation finds each defect that is planted into the sources below.

Each is one change of one source, compiled beside the tree and linked into a simulation of its own. A seed of the first N
must break, with a message that has the words of the table: a defect that no history shows is none that the checks see.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SLUICE_BUILD", os.path.join(ROOT, "build", "dev"))

# Name, source, what is replaced, by what, and what the message of the seed that breaks has.
DEFECTS = (
    ("before-sync", "src/spool/read.c", "if (s->is_sync_first &&", "if (false && s->is_sync_first &&", r"used twice|next seq"),
    ("never-synced", "src/spool/sync.c", "if (fdatasync(fds[i]) < 0 &&", "if (false && fdatasync(fds[i]) < 0 &&", r"gone|used twice|next seq"),
    ("released-early", "tests/sim/agent.c", "r = spool_commit(a->spool, &offset, a->next_seq);", "k->released = a->position;\n\tsim_point();\n\tr = spool_commit(a->spool, &offset, a->next_seq);", r"released"),
    ("old-epoch", "src/kafka/kafka.c", "t->ids[i].fingerprint == r->schema && t->ids[i].epoch == k->epoch)", "t->ids[i].fingerprint == r->schema)", r"has the id"),
    ("cached-unverified", "src/registry/ids.c", "e->has_id && (e->is_verified || e->is_trusted)", "e->has_id", r"has the id"),
    ("no-cut", "src/spool/recover.c", "if (r == 1 && is_half_committed(", "if (false && is_half_committed(", r"END has"),
    ("no-mark-of-topic", "src/spool/marks.c", "le_put64(slot + DONE_AT + t * DONE_SIZE, spool_topic_done_below(s, spool_queue_of(t), t));",
     "le_put64(slot + DONE_AT + t * DONE_SIZE, s->queues[spool_queue_of(t)].next_number);", r"gone"),
    ("no-rewind", "src/deliver/delivery.c", "		spool_rewind(d->spool);\n", "", r"gone|not delivered|in the spool"),
    ("unconfirmed", "src/kafka/report.c", "return m->offset >= 0 || k->is_unacknowledged;", "return true || k != NULL || m != NULL;", r"gone|END has"),
    ("batch-to-dead-letters", "src/kafka/batches.c", "} else if (!is_apart) {", "} else if (false) {", r"would refuse it"),
    ("seq-of-heads", "src/spool/recover.c", "if (t < TOPIC_COUNT && h->next_seq[i] > s->next_seq[t])\n\t\t\ts->next_seq[t] = h->next_seq[i];", "(void)t;", r"used twice|next seq"),
    ("rights-to-dead-letters", "src/kafka/errors.c", '{ KAFKA_TOPIC_WAITS, "topic_authorization_failed" }', '{ KAFKA_RECORD_AT_FAULT, "topic_authorization_failed" }', r"would refuse it"),
    ("letters-unsynced", "src/deliver/dead_letter_writer.c", "if (fdatasync(fd) < 0 &&", "if (false && errno != 0 &&", r"is gone"),
    ("unknown-marks", "src/spool/recover.c", "if ((h->flags & SPOOL_BATCH_RETURNED) && w->number_end", "if (false && w->number_end", r"without a mark"),
    ("no-patience", "src/base/disk.c", "d->left_ns -= spent_ns < d->left_ns ? spent_ns : d->left_ns;", "(void)spent_ns;", r"waits for a disk too often"),
    ("ids-on-the-loop", "src/registry/cache.c", "	c->disk = disk;", "	(void)disk;", r"the loop waits for a disk"),
    ("all-held", "src/spool/aside.c", "return s->is_held[topic] ||", "for (int t = 0; t < TOPIC_COUNT; t++)\n\t\tif (s->is_held[t])\n\t\t\treturn true;\n\treturn",
     r"is not delivered after"),
    ("all-blocked", "src/deliver/delivery.c", "	if (reason == NULL) {\n\t\td->is_blocked", "	if (reason == NULL || topic < TOPIC_COUNT) {\n\t\td->is_blocked", r"is not delivered after"),
    ("unknown-id-blocks-all", "src/kafka/kafka.c", '"schema_refused" : "schema_id_unknown", reason)', '"schema_refused" : NULL, reason)', r"is not delivered after"),
    ("no-share", "src/kafka/share.c", "return t->in_flight > 0 && (", "return false && (", r"is not delivered after"),
    ("late-blocks-all", "src/kafka/share.c", "return k->topics[topic].late > 0 || k->topics[topic].was_late;",
     "return k == NULL || topic == TOPIC_COUNT;", r"is not delivered after"),
    ("handed-mark", "src/spool/read.c", ".flags = cursor->walk.number < q->again_below ? SPOOL_IS_AGAIN : 0,", ".flags = 0,", r"first delivered|without a mark"),
)


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **options)


def misfit(source, old):
    """Why a defect cannot be planted, or None."""
    with open(os.path.join(ROOT, source), encoding="utf-8") as f:
        n = f.read().count(old)
    return None if n == 1 else f"{source} has {n} times what is to be replaced"


class Simulation:
    """How the sources are compiled, and how the simulation is linked."""

    def __init__(self):
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as f:
            self.compile = {os.path.relpath(e["file"], ROOT): shlex.split(e["command"]) for e in json.load(f)}
        link = run("ninja", "-C", BUILD, "-t", "commands", "-s", "tests/sim/simulation").stdout
        self.link = shlex.split(link.split(" && ")[1])

    def with_defect(self, room, source, old, new):
        """The path of a simulation with one change, or None and why there is none."""
        why = misfit(source, old)
        if why is not None:
            return None, why
        with open(os.path.join(ROOT, source), encoding="utf-8") as f:
            text = f.read()
        changed, made, binary = (os.path.join(room, name) for name in ("defect.c", "defect.o", "simulation"))
        with open(changed, "w", encoding="utf-8") as f:
            f.write(text.replace(old, new))
        command = list(self.compile[source])
        before = command[command.index("-o") + 1]
        command[command.index("-o") + 1] = made
        command[-1] = changed
        command += ["-w", "-I", os.path.dirname(os.path.join(ROOT, source))]
        done = run(*command, cwd=BUILD)
        if done.returncode != 0:
            return None, done.stderr[-1000:]
        link = [made if word == before else word for word in self.link]
        link[link.index("-o") + 1] = binary
        if made not in link:
            # Before the archives, so that their own is not needed any more.
            link.insert(next(n for n, word in enumerate(link) if "libsluice_" in word), made)
        done = run(*link, cwd=BUILD)
        return (binary, None) if done.returncode == 0 else (None, done.stderr[-1000:])


def judge(simulation, defect, seeds):
    """What is wrong with the simulation, or None; and what it printed."""
    _, source, old, new, words = defect
    with tempfile.TemporaryDirectory(prefix="sluice-sim-") as room:
        binary, why = simulation.with_defect(room, source, old, new)
        if binary is None:
            return why, ""
        done = run(binary, "1", str(seeds))
        line = next((text for text in done.stderr.splitlines() if text.startswith("seed ")), done.stderr[-300:])
        if done.returncode == 0:
            return f"{seeds} seeds do not show it", ""
        return (None if re.search(words, line) else f"another message than expected: {line}"), line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-v", "--verbose", action="store_true", help="the message of each")
    parser.add_argument("--seeds", type=int, default=2000, help="until it must be found (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="at once (default: %(default)s)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of the table; default: all")
    parser.add_argument("--fits", action="store_true", help="only whether each can still be planted")
    args = parser.parse_args()
    if args.fits:
        wrong = [f"{name}: {why}" for name, source, old, *_ in DEFECTS if (why := misfit(source, old))]
        print("\n".join(wrong) or f"{len(DEFECTS)} defects can be planted")
        return 1 if wrong else 0
    chosen = [d for d in DEFECTS if not args.names or d[0] in args.names]
    simulation, failed = Simulation(), 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for defect, (wrong, line) in zip(chosen, pool.map(lambda d: judge(simulation, d, args.seeds), chosen)):
            failed += wrong is not None
            print(f"{defect[0]:24} {'NOT FOUND: ' + wrong if wrong else 'found' + (': ' + line if args.verbose else '')}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} defects are found")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
