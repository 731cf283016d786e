# SPDX-License-Identifier: Apache-2.0
"""Programs that end on one CPU while the agent looks at them on another."""

import harness
from harness import LakeTest

# $1: seconds. A hundred at once that live for a quarter of a second at most and exit with 3; prints how many there were.
MANY_THAT_END = """
import os, random, sys, time
until, live, n = time.monotonic() + float(sys.argv[1]), 0, 0
while time.monotonic() < until or live:
    while live < 100 and time.monotonic() < until:
        if os.fork() == 0:
            time.sleep(random.random() / 4)
            os._exit(3)
        live, n = live + 1, n + 1
    os.waitpid(-1, 0)
    live -= 1
print(n)
"""


class LookedAt(LakeTest):
    def test_one_that_ends_while_it_is_looked_at_has_the_end_that_it_had(self):
        done = self.sluice_run("/usr/bin/python3", "-c", MANY_THAT_END, "5", sluice=harness.built("sluice_slow_look"),
                               options=["--quiet"])
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        ends = [r for r in self.ends() if r["forked"]]
        self.assertEqual(int(done.stdout), len(ends))
        self.assertEqual([], [r for r in ends if r["exit_code"] != 3 or r["usage"]["peak_rss_bytes"] is None])


if __name__ == "__main__":
    harness.main()
