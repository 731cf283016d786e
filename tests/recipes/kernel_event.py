# SPDX-License-Identifier: Apache-2.0
"""The recipe for a kernel event, applied to a copy of the tree, built, and provoked on the running kernel."""
import subprocess
import sys

import recipe

import agent
import harness

SOURCES = {"bpf/event.h", "bpf/listen.bpf.c", "src/model/signals.def", "src/model/event.h", "src/collect/decode.c",
           "src/agent/events.c"}
LISTENS = "import os, socket; s = socket.create_server(('127.0.0.1', 0)); print(os.getpid(), int(s.family))"


class KernelEvent(agent.AgentTest):
    def test_a_kernel_event_takes_six_files(self):
        files = recipe.changes("A kernel event")
        self.assertEqual(SOURCES, set(files))
        tree = recipe.Tree(self.room)
        self.addCleanup(tree.close)
        tree.must("dev/records", "--check")
        tree.apply(files)
        self.assertNotEqual(0, tree.run("dev/records", "--check").returncode, "a signal that is not in sluice(1)")
        tree.must("dev/records")
        self.assertIn(".B listen\n", tree.read("docs/sluice.1"))
        tree.build("release", "sluice")
        a = self.agent(sluice=tree.path("build/release/sluice"), log={"level": "debug"}).start()
        self.assertIn("listen", [s["name"] for s in a.status()["signals"] if s["state"] == "ok"])
        done = subprocess.run([sys.executable, "-c", LISTENS], check=True, stdout=subprocess.PIPE, text=True)
        pid, family = map(int, done.stdout.split())

        def line():
            return next((x for x in a.log_lines() if x.get("event") == "event.listen" and x["pid"] == pid), None)
        self.assertEqual(family, a.wait(line, what="log line of the event")["family"])
        a.settle()
        self.assertEqual(0, a.stop())
        self.assert_nothing_lost(harness.read_lake(a.lake))


if __name__ == "__main__":
    harness.main()
