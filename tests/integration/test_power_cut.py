# SPDX-License-Identifier: Apache-2.0
"""A power cut: writes that were not synced are gone, and spool and file lake keep what they promise (sluice.yaml(5))."""
import itertools
import os
import random
import subprocess

import harness
from disk_log import DiskLog, Mounted, own_mounts

CUTS = int(os.environ.get("CUTS", "45"))
LIVES = ("crash", "crash", "crash", "close", "crash", "crash")  # of the agent, between two power cuts
BATCHES = 40
FIRST = 5  # records that a life hands out
USAGE = 1  # the topic with a queue of its own


class Told:
    """What the spool's owners had reported when the power was cut."""

    def __init__(self, marks):
        self.written = {}  # (topic, seq): {(batch, hash)}
        self.handed, self.acknowledged = set(), set()
        for mark in marks:
            if mark == "life":
                continue
            kind, topic, seq, *more = mark.split()
            key = (int(topic), int(seq))
            if kind == "W":
                self.written.setdefault(key, set()).add(tuple(int(x) for x in more))
            elif kind == "H":
                self.handed.add(key)
            elif kind == "A":
                self.acknowledged.add(key)


class Found:
    """What the next owner finds."""

    def __init__(self, lines):
        self.records = []  # (topic, seq, hash, is handed out again)
        self.next_seq, self.notes = {}, []
        self.position = 0
        for line in lines:
            kind, *values = line.split()
            values = [int(x) for x in values]
            if kind == "R":
                self.records.append(tuple(values))
            elif kind == "N":
                self.next_seq[values[0]] = values[1]
            elif kind == "P":
                self.position = values[0]
            else:
                self.notes.append((kind, values[0]))


class PowerCut(harness.LakeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        own_mounts()

    def live(self, disk, rng, *more):
        for end in LIVES:
            os.write(disk.marks, b"life\n")
            subprocess.run([harness.built("power_cut"), "live", os.path.join(disk.path, "spool"), str(rng.getrandbits(32)),
                            str(BATCHES), end, *more], check=True, stdout=disk.marks, timeout=120)

    def recover(self, image):
        """The host is up again: another boot, and the disk as the cut left it."""
        another_boot = harness.under_boot(self.room, harness.ANOTHER_BOOT)
        with Mounted(image, os.path.join(self.room, "recovered")) as disk:
            done = subprocess.run([*another_boot, harness.built("power_cut"), "check", os.path.join(disk.path, "spool")],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stdout)
        return Found(done.stdout.splitlines())

    def check(self, told, found):
        """[sentence]: what does not hold."""
        wrong = []
        there = {(topic, seq): (hash_, again) for topic, seq, hash_, again in found.records}
        if len(there) != len(found.records):
            wrong.append("a record waits twice")
        for key, (hash_, again) in there.items():
            if hash_ not in {h for _, h in told.written.get(key, ())}:
                wrong.append("%s is not what was put" % (key,))
            if key in told.handed and not again:
                wrong.append("%s was handed out before and is not marked" % (key,))
        for key in sorted(told.handed - told.acknowledged - set(there)):
            wrong.append("%s was handed out, never acknowledged, and is gone" % (key,))
        for topic, seq in sorted(told.handed):
            if found.next_seq[topic] <= seq:
                wrong.append("seq %d of topic %d was handed out and comes again: the next is %d" %
                             (seq, topic, found.next_seq[topic]))
        # The state: whole, without a hole, up to the position; and not older than what was handed out beside it.
        batches = [batch for _, batch in found.notes]
        if batches and (batches != list(range(batches[0], batches[-1] + 1)) or (found.notes[0][0] != "C")):
            wrong.append("the state has holes: %s" % found.notes)
        if (batches or [0])[-1] != found.position:
            wrong.append("the state is of batch %s, the position of %d" % (batches[-1:], found.position))
        handed = max((min(batch for batch, _ in told.written[key]) for key in told.handed if key[0] != USAGE),
                     default=0)
        if found.position < handed:
            wrong.append("of batch %d something was handed out, the state ends at %d" % (handed, found.position))
        return wrong

    def cuts(self, disk, rng):
        """Places in the log, without end: anywhere; behind something that was handed out; and behind what a life handed out first."""
        handed, first = [], []
        since = 0
        for i, entry in enumerate(disk.log):
            if entry == ("mark", "life"):
                since = 0
            elif entry[0] == "mark" and entry[1].startswith("H"):
                handed.append(i + 1)
                since += 1
                if since <= FIRST:
                    first.append(i + 1)
        while True:
            yield rng.randrange(len(disk.log))
            yield rng.choice(handed)
            yield rng.choice(first)

    def outcomes(self, seed, *more):
        """What does not hold, for each of CUTS cuts."""
        rng = random.Random(seed)
        with DiskLog(self.room) as disk:
            self.live(disk, rng, *more)
        self.assertGreater(sum(entry[0] == "flush" for entry in disk.log), 40, "the disk was hardly synced")
        image = os.path.join(self.room, "image")
        for cut in itertools.islice(self.cuts(disk, rng), CUTS):
            disk.image_at(cut, image, rng)
            wrong = self.check(Told(disk.marks_before(cut)), self.recover(image))
            yield ["behind %d of %d entries:" % (cut, len(disk.log)), *wrong[:5]] if wrong else []

    def test_what_was_handed_out_was_on_the_disk(self):
        seed = int(os.environ.get("SEED", "0")) or random.randrange(1, 1 << 30)
        for wrong in self.outcomes(seed):
            self.assertEqual([], wrong, "SEED=%d" % seed)

    def test_one_who_does_not_wait_for_the_disk_is_found_out(self):
        self.assertTrue(any(self.outcomes(1, "careless")))


class LakeCut(harness.LakeTest):
    """What the lake has acknowledged is in it, whole and once."""
    LIVES = ("crash", "close", "crash")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        own_mounts()

    def there(self, image):
        with Mounted(image, os.path.join(self.room, "recovered")) as disk:
            done = subprocess.run([harness.built("lake_cut"), "check", os.path.join(disk.path, "lake")],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stdout)
        return [tuple(int(x) for x in line.split()[1:]) for line in done.stdout.splitlines()]

    def outcomes(self, seed, *more):
        """What does not hold, for each of some cuts: half of them behind an acknowledgement."""
        rng = random.Random(seed)
        with DiskLog(self.room) as disk:
            for i, end in enumerate(self.LIVES):
                subprocess.run([harness.built("lake_cut"), "live", os.path.join(disk.path, "lake"), str(rng.getrandbits(32)),
                                str(i * 1000000), end, *more], check=True, stdout=disk.marks, timeout=120)
        acknowledged = [i + 1 for i, entry in enumerate(disk.log) if entry[0] == "mark"]
        self.assertGreater(len(acknowledged), 300)
        image = os.path.join(self.room, "image")
        for n in range(CUTS // 2):
            cut = rng.randrange(len(disk.log)) if n % 2 else rng.choice(acknowledged)
            disk.image_at(cut, image, rng)
            found = self.there(image)
            missing = sorted({tuple(int(x) for x in mark.split()[1:]) for mark in disk.marks_before(cut)} - set(found))
            yield (["behind %d of %d entries: %d are not there, as %s" % (cut, len(disk.log), len(missing), missing[:3])] * bool(missing) +
                   ["a record is there twice"] * (len(found) != len(set(found))))

    def test_what_was_acknowledged_is_on_the_disk(self):
        seed = int(os.environ.get("SEED", "0")) or random.randrange(1, 1 << 30)
        for wrong in self.outcomes(seed):
            self.assertEqual([], wrong, "SEED=%d" % seed)

    def test_one_who_does_not_wait_for_the_disk_is_found_out(self):
        self.assertTrue(any(self.outcomes(1, "careless")))


if __name__ == "__main__":
    harness.main()
