# SPDX-License-Identifier: Apache-2.0
"""Paths at the edge of what is recorded: deep ones walk on in another way, too deep ones are null."""
import os
import shutil

import harness
from harness import LakeTest, read_lake

TRUE = "/bin/true"


class Paths(LakeTest):
    def down(self, names):
        """A folder below the room, made step by step: its path may be longer than any call takes."""
        fd = os.open(self.room, os.O_RDONLY)
        for name in names:
            os.mkdir(name, dir_fd=fd)
            below = os.open(name, os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = below
        self.addCleanup(os.close, fd)
        return fd

    def cwd_seen_from(self, names):
        fd = self.down(names)
        done = self.sluice_run(TRUE, preexec_fn=lambda: os.fchdir(fd))
        self.assertEqual(0, done.returncode, done.stderr)
        topics = read_lake(self.lake)
        ends = self.ends(topics)
        self.assertEqual(1, len(ends))
        self.assertEqual(os.path.realpath(TRUE), ends[0]["exe"])
        self.assertEqual([TRUE], ends[0]["argv"])
        return ends[0]["cwd"], topics

    def test_of_each_depth_are_whole(self):
        for depth in (1, 3, 5, 6, 7, 8, 9, 20, 40):
            with self.subTest(depth=depth):
                names = [f"d{i}" for i in range(depth)]
                cwd, topics = self.cwd_seen_from(names)
                self.assertEqual(os.path.join(os.path.realpath(self.room), *names), cwd)
                self.assert_nothing_lost(topics)
                shutil.rmtree(self.lake)
                shutil.rmtree(os.path.join(self.room, "d0"))

    def test_that_are_too_long_are_null_and_counted(self):
        for depth in (15, 17, 20):
            with self.subTest(depth=depth):
                names = [chr(ord("a") + i) * 250 for i in range(depth)]
                cwd, topics = self.cwd_seen_from(names)
                if cwd is not None:
                    self.assertEqual(os.path.join(os.path.realpath(self.room), *names), cwd)
                    self.assertLess(len(cwd), 4097)
                else:
                    self.assertIn(("on_exec", "cut"), [loss[:2] for loss in harness.losses(topics)])
                if depth > 16:
                    self.assertIsNone(cwd)
                shutil.rmtree(self.lake)
                shutil.rmtree(os.path.join(self.room, names[0]))


if __name__ == "__main__":
    harness.main()
