# SPDX-License-Identifier: Apache-2.0
"""The check of calls, on object files of one that crosses ARCHITECTURE.md's table and of some that do not."""
import os
import subprocess
import tempfile
import unittest

import calls
import circles
import layers
import tree

ROWS = layers.read_table(tree.ROOT)
SPOOL = "int spool_limit(void); int spool_limit(void) { return 1; }"
DELIVER = "int spool_limit(void); int deliver(void); int deliver(void) { return spool_limit(); }"


class Calls(unittest.TestCase):
    def check(self, texts):
        """What is reported of the object files of these texts."""
        with tempfile.TemporaryDirectory() as room:
            found = {}
            for path, text in texts.items():
                found[path] = os.path.join(room, path.replace("/", "_") + ".o")
                subprocess.run(["cc", "-x", "c", "-c", "-", "-o", found[path]], input=text, text=True, check=True)
            return calls.check(circles.calls(found), ROWS)

    def test_a_call_that_another_librarys_links_allow_is_refused(self):
        # deliver/ may call spool/, and kafka/ links deliver/: this call links, although kafka's row has no spool/.
        self.assertEqual(
            ["src/kafka/topics.c:1: src/kafka/ may not call spool_limit() of src/spool/spool.c (ARCHITECTURE.md)"],
            self.check({"src/spool/spool.c": SPOOL, "src/deliver/delivery.c": DELIVER,
                        "src/kafka/topics.c": "int spool_limit(void); int f(void) { return spool_limit(); }"}))

    def test_a_call_that_the_table_allows_is_not(self):
        self.assertEqual([], self.check({
            "src/spool/spool.c": SPOOL, "src/deliver/delivery.c": DELIVER,
            "src/kafka/topics.c": "int deliver(void); int f(void) { return deliver(); }",
            "src/kafka/kafka.c": "int f(void); int g(void) { return f(); }",
            "src/cli/agent.c": "int spool_limit(void); int h(void) { return spool_limit(); }"}))

    def test_all_above_is_nothing_below(self):
        self.assertEqual(
            ["src/daemon/daemon.c:1: src/daemon/ may not call f() of src/cli/agent.c (ARCHITECTURE.md)"],
            self.check({"src/cli/agent.c": "int f(void) { return 1; }",
                        "src/daemon/daemon.c": "int f(void); int g(void) { return f(); }"}))

    def test_a_folder_without_objects_is_no_pass(self):
        with tempfile.TemporaryDirectory() as room, self.assertRaises(SystemExit):
            circles.objects(room)


if __name__ == "__main__":
    unittest.main()
