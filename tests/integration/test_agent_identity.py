# SPDX-License-Identifier: Apache-2.0
"""An agent_id belongs to one machine and one folder: copies of both get one of their own, and nothing else does."""
import os
import subprocess

import harness
from agent import AgentTest
from faults import WAIT

ANOTHER_MACHINE = "0123456789abcdef0123456789abcdef"


def on_another_machine(room):
    """What goes before a command line for which the host has another machine-id. As root."""
    path = os.path.join(room, "machine-id")
    with open(path, "w", encoding="utf-8") as f:
        f.write(ANOTHER_MACHINE + "\n")
    return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/machine-id && exec "$@"', path]


class Identity(AgentTest):
    def quiet_agent(self, name, **keys):
        a = self.agent(name, **keys)
        a.follow_only("/no/such/folder/")
        return a

    def once(self, a):
        """From start to end. The id of the agent, and whether it was renewed, by its log."""
        a.start()
        a.settle(timeout=WAIT)
        agent_id = a.status()["agent_id"]
        self.assertEqual(0, a.stop(), a.log_text())
        renewed = [x for x in a.log_lines() if x["event"] == "agent.renewed"]
        return agent_id, renewed

    def records(self, a):
        """{(topic, agent_id, seq): record}"""
        found = {}
        for topic, records in harness.read_lake(a.lake).items():
            for r in records:
                key = (topic, r["agent_id"], r["seq"])
                self.assertNotIn(key, found)
                found[key] = r
        return found

    def test_copies_of_a_spool_have_no_number_in_common(self):
        image = self.quiet_agent("image", kafka={"brokers": ["127.0.0.1:1"]}, drain="100ms",
                                 registry={"urls": ["http://127.0.0.1:1"]})
        old, renewed = self.once(image)
        self.assertEqual([], renewed)
        found, ids = [], {old}
        for name in ("b", "c"):
            a = self.quiet_agent(name)
            subprocess.run(["cp", "-a", image.spool, a.spool], check=True)
            agent_id, (line,) = self.once(a)
            self.assertNotIn(agent_id, ids)
            ids.add(agent_id)
            self.assertEqual((agent_id, old), (line["agent_id"], line["before"]))
            self.assertIn("the folder, which is a copy", line["differs"])
            records = self.records(a)
            self.assertEqual({old, agent_id}, {key[1] for key in records})
            (gap,) = [r for r in records.values() if r.get("event") == "GAP"]
            self.assertEqual(agent_id, gap["agent_id"])
            self.assertIn("agent_id was " + old, gap["message"])
            for topic in ("sluice.agent", "sluice.host"):
                seqs = sorted(key[2] for key in records if key[0] == topic)
                self.assertEqual(list(range(len(seqs))), seqs, "the numbers continue under the new id")
            found.append(records)
            self.assertEqual((agent_id, []), self.once(a), "and the copy keeps its own")
        both = found[0].keys() & found[1].keys()
        self.assertEqual({old}, {key[1] for key in both})
        self.assertEqual([], [key for key in both if found[0][key] != found[1][key]])

    def test_another_machine_with_the_same_disk(self):
        a = self.quiet_agent("a")
        first, renewed = self.once(a)
        self.assertEqual([], renewed)
        a.command_prefix = on_another_machine(a.room)
        second, (line,) = self.once(a)
        self.assertNotEqual(first, second)
        self.assertIn("the machine-id (" + ANOTHER_MACHINE, line["differs"])
        self.assertEqual((second, []), self.once(a))
        a.command_prefix = []
        third, (line,) = self.once(a)
        self.assertNotIn(third, (first, second))
        self.assertEqual(4, len([r for r in self.records(a).values() if r.get("event") == "START"]))

    def test_the_same_machine_keeps_its_id(self):
        a = self.quiet_agent("a")
        first, renewed = self.once(a)
        self.assertEqual([], renewed)
        self.assertEqual((first, []), self.once(a))
        a.command_prefix = harness.under_boot(a.room, harness.ANOTHER_BOOT)
        self.assertEqual((first, []), self.once(a), "after a reboot")
        a.command_prefix = []
        with open(os.path.join(a.spool, "agent-id"), "r+") as f:
            f.truncate(36)
        self.assertEqual((first, []), self.once(a), "after an upgrade from a version that kept the id alone")
        moved = os.path.join(a.room, "elsewhere")
        os.rename(a.spool, moved)
        a.spool = moved
        a.configure(spool={"dir": moved})
        self.assertEqual((first, []), self.once(a), "in a folder that was moved")
        with open(os.path.join(moved, "agent-id")) as f:
            self.assertEqual(first, f.read(36), "as an older version reads it")


if __name__ == "__main__":
    harness.main()
