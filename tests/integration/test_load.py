# SPDX-License-Identifier: Apache-2.0
"""What the checks of a load find, on made-up records: each planted fault is reported, and nothing that is none."""
import unittest

import harness
from load import MARK, SKIPPED_MAX, Load, cuts, duplicates, holes, once, unforgiven


def record(seq, agent="a", **more):
    return {"agent_id": agent, "seq": seq, "exit_code": 0, **more}


class Losses(unittest.TestCase):
    def test_any_loss_is_reported_as_it_is(self):
        lost = [("ring", "full", 1), ("spool", "disk_full", 7)]
        self.assertEqual(lost, unforgiven(lost, 1000000, cut=1000))

    def test_what_is_expected_is_forgiven_and_nothing_beside_it(self):
        self.assertEqual([("ring", "full", 1)],
                         unforgiven([("ring", "full", 1), ("spool", "disk_full", 7)], 0, reasons=("disk_full",)))

    def test_the_kernel_may_skip_so_many_and_no_more(self):
        ends = 1000
        most = int(SKIPPED_MAX * ends)
        self.assertEqual([], unforgiven([("probes", "skipped", most)], ends))
        self.assertEqual(2, len(unforgiven([("probes", "skipped", most), ("attach", "skipped", 1)], ends)), "together")
        self.assertEqual(1, len(unforgiven([("probes", "skipped", 1)], 0)))

    def test_what_is_cut_is_what_the_records_say(self):
        self.assertEqual([], unforgiven([("collect", "cut", 3)], 100, cut=3))
        self.assertEqual(1, len(unforgiven([("collect", "cut", 4)], 100, cut=3)))


class Records(unittest.TestCase):
    def test_holes(self):
        whole = [record(n, agent) for agent in "ab" for n in range(10)]
        self.assertEqual([], holes(whole))
        self.assertEqual(["agent b lacks 2 of 10 seqs, the first 3"], holes(whole[:13] + whole[15:]))
        self.assertEqual(["agent a lacks 1 of 10 seqs, the first 0"], holes(whole[1:]))

    def test_what_is_delivered_again(self):
        records = [record(n) for n in range(5)]
        self.assertEqual((0, []), duplicates(records))
        self.assertEqual((2, []), duplicates(records + records[1:3]))
        self.assertEqual(records, once(records + records[1:3]))
        self.assertEqual((1, ["agent a seq 1 stands for two records"]), duplicates(records + [record(1, exit_code=3)]))


class Programs(unittest.TestCase):
    """Three programs of a load, and an agent's records of them."""

    def setUp(self):
        self.load = Load("made-up")
        self.load.started = 3
        self.told = [self.program(n, phase) for n in range(3) for phase in ("START", "END")]

    def program(self, number, phase, name=None, forked=False):
        self.seq = getattr(self, "seq", -1) + 1
        return record(self.seq, phase=phase, forked=forked, program_id=f"p{number}", exe="/bin/true", cwd=None,
                      argv=None if forked else ["true", MARK, name or self.load.name, str(number)])

    def test_each_once(self):
        self.assertEqual([], self.load.check(self.told))
        self.assertEqual([], self.load.check(self.told + self.told[:3]), "delivered again")
        self.assertEqual([], self.load.check(self.told + [self.program(1, "START", name="another")]))

    def test_one_that_is_not_recorded(self):
        self.assertEqual(["program 1: not there"], self.load.check(self.told[:2] + self.told[4:]))

    def test_an_end_that_is_not_recorded(self):
        self.assertEqual(["program 2: {'START': 1}"], self.load.check(self.told[:-1]))

    def test_one_that_is_recorded_twice(self):
        self.assertEqual(["program 0: {'START': 1, 'END': 2}"], self.load.check(self.told + [self.program(0, "END")]))

    def test_one_that_nobody_started(self):
        self.assertEqual(["programs that no test started: [3]"], self.load.check(self.told + [self.program(3, "START")]))

    def test_one_that_started_twice(self):
        self.assertEqual(["program 0: {'START': 2, 'END': 1}"], self.load.check(self.told + [self.program(0, "START")]))

    def test_one_of_less_than_a_second_has_an_end_alone(self):
        self.assertEqual([], self.load.check(self.told[1:]))
        self.assertEqual(["program 0: not there"], self.load.check(self.told[2:]))
        self.assertEqual(["program 0: {'END': 1}"], self.load.check(self.told[1:], all_start=True))
        self.assertEqual([], self.load.check(self.told, all_start=True))

    def test_a_late_exec_has_begun_as_its_parents_program(self):
        forked = self.program(0, "START", forked=True)
        self.assertEqual([], self.load.check([forked] + self.told[1:], all_start=True))
        self.assertEqual(1, len(self.load.check([forked] + self.told[2:])))

    def test_paths_that_are_cut(self):
        self.assertEqual(3, cuts(self.told))


if __name__ == "__main__":
    harness.main()
