# SPDX-License-Identifier: Apache-2.0
"""Wall-clock times of a task and run, while the clock is read as exactly as a busy host can."""
import os
import struct
import subprocess
import time

import harness
from harness import LakeTest

SECONDS = 5
OFF_NS = 900  # what is read is off by as much


class Clock(LakeTest):
    def test_a_start_time_is_the_same_in_each_record(self):
        """Readers tell executions of a task apart by it."""
        path = os.path.join(self.room, "clock")
        with open(path, "wb", buffering=0) as f:
            f.write(struct.pack("<q", 0))
            env = harness.plain_environment(LD_PRELOAD=harness.built("libstepped_clock.so"), STEPPED_CLOCK=path)
            line = [harness.SLUICE, "run", "--quiet", "--own-probes", "--interval", "1s", "--task", "t", "--lake", self.lake,
                    "--", "sleep", str(SECONDS)]
            with subprocess.Popen(line, env=env) as run:
                off = 0
                while run.poll() is None:
                    off = OFF_NS - off
                    os.pwrite(f.fileno(), struct.pack("<q", off), 0)
                    time.sleep(0.35)
        self.assertEqual(0, run.returncode)
        topics = harness.read_lake(self.lake)
        for topic in ("sluice.task", "sluice.run"):
            self.assertGreaterEqual(len(topics[topic]), SECONDS, topic)
            times = {(r["task_id"] if topic == "sluice.task" else r["run_id"], r["start_time"]) for r in topics[topic]}
            self.assertEqual(1, len(times), times)


if __name__ == "__main__":
    harness.main()
