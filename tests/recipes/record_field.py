# SPDX-License-Identifier: Apache-2.0
"""The recipe for a field of a record, applied to a copy of the tree, built, and read from a record."""
import re

import recipe

import harness

FILES = {"src/model/record.h", "src/codec/fields.c", "schemas/avro/agent.avsc", "src/agent/report.c",
         "analytics/sluice_analytics/lake/columns.py"}


class RecordField(harness.LakeTest):
    def test_a_field_of_a_record_takes_five_files(self):
        files = recipe.changes("A field of a record")
        self.assertEqual(FILES, set(files))
        tree = recipe.Tree(self.room)
        self.addCleanup(tree.close)
        tree.apply(files)
        tree.edit("src/model/record.h", r"^#define RECORD_SCHEMA_VERSION \d+$",
                  lambda m: re.sub(r"\d+", lambda n: str(int(n[0]) + 1), m[0]))
        tree.must("dev/records")
        self.assertIn("\n.BR major_faults", tree.read("docs/sluice-records.5").partition(".SH SLUICE.AGENT\n")[2])
        tree.must("env", "PYTHONPATH=analytics", "build/analytics/dev/bin/python", "-B", "-m", "pytest", "-q", "-p",
                  "no:cacheprovider", "analytics/tests/test_columns.py")
        tree.build("release", "sluice")
        tree.must("build/release/sluice", "run", "--quiet", "--lake", self.lake, "--", "true")
        records = harness.read_lake(self.lake)["sluice.agent"]
        self.assertTrue(records)
        for record in records:
            self.assertIsInstance(record["major_faults"], int)


if __name__ == "__main__":
    harness.main()
