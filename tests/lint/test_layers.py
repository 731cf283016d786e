# SPDX-License-Identifier: Apache-2.0
"""The check of layers, on small trees that are as they should be or not."""
import os
import tempfile
import unittest

import layers

TABLE = """# A tree
| folder | what it does | may include and link |
|---|---|---|
| `bpf/` | kernel side | its own headers |
| `src/base/` | text | `libpcre2` |
| `src/attach/` | loads | `base/`, `bpf/event.h`, `libbpf` |
| `src/correlate/` | thinks | `base/` |
| `src/spool/` | writes | `base/` |
| `src/agent/` | joins | all above |
| `src/cli/` | talks | all above |
| `src/main.c` | which subcommand | all above |

| other | table | of `base/` |
"""


# Uses all that the table allows.
USED = {"src/spool/spool.c": '#include "base/text.h"\n', "src/correlate/fact.c": '#include "base/text.h"\n',
        "src/attach/pins.c": '#include "event.h"\n#include "base/text.h"\n'}


class Layers(unittest.TestCase):
    def check(self, files):
        """What is said of these files, and of some that are as they should be."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {"ARCHITECTURE.md": TABLE, "src/base/text.h": "", "src/spool/spool.h": "",
                               "bpf/event.h": "", "bpf/maps.h": "", **files}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w") as f:
                    f.write(text)
            return [sentence.split(" (")[0] for sentence in layers.check(root)[0]]

    def test_what_the_table_allows_is_allowed(self):
        self.assertEqual([], self.check({
            "src/correlate/task.c": '#include "correlate/task.h"\n#include <stdio.h>\n#include "base/text.h"\n',
            "src/correlate/task.h": "", "src/attach/probes.c": '#include "event.h"\n#include "base/text.h"\n',
            "src/spool/spool.c": '#include "base/text.h"\n', "src/main.c": '#include "cli/cli.h"\n',
            "src/cli/cli.h": "", "src/cli/run.c": '#include "spool/spool.h"\n#include "correlate/task.h"\n',
            "src/agent/agent.c": '#include "attach/probes.h"\n#include "agent/state.h"\n',
            "src/agent/state.h": "", "src/attach/probes.h": "",
            "bpf/exec.bpf.c": '#include "vmlinux.h"\n#include "maps.h"\n#include <bpf/bpf_helpers.h>\n'}))

    def test_all_above_is_nothing_below(self):
        self.assertEqual(["src/agent/agent.c:1: src/agent/ may not include src/cli/cli.h"],
                         self.check({**USED, "src/agent/agent.c": '#include "cli/cli.h"\n', "src/cli/cli.h": "", **USED}))

    def test_what_the_table_allows_and_nobody_needs_is_named(self):
        self.assertEqual(["ARCHITECTURE.md: src/correlate/ may include src/base/, and does not"],
                         self.check({**USED, "src/correlate/fact.c": ""}))

    def test_a_stage_that_knows_another_is_named_with_its_line(self):
        self.assertEqual(["src/correlate/task.c:2: src/correlate/ may not include src/spool/spool.h"],
                         self.check({**USED, "src/correlate/task.c": '#include <stdio.h>\n#include "spool/spool.h"\n'}))

    def test_no_way_of_writing_it_escapes(self):
        for line in ('#include <spool/spool.h>', '#include "../spool/spool.h"', ' # include "spool/spool.h" // x'):
            self.assertEqual(["src/correlate/task.c:1: src/correlate/ may not include src/spool/spool.h"],
                             self.check({**USED, "src/correlate/task.c": line + "\n"}), line)

    def test_one_header_allowed_is_not_its_folder(self):
        self.assertEqual(["src/attach/probes.c:1: src/attach/ may not include bpf/maps.h"],
                         self.check({**USED, "src/attach/probes.c": '#include "maps.h"\n'}))

    def test_nothing_and_own_headers_mean_it(self):
        self.assertEqual(["src/base/text.c:1: src/base/ may not include bpf/event.h"],
                         self.check({**USED, "src/base/text.c": '#include "event.h"\n#include "base/text.h"\n'}))
        self.assertEqual(["bpf/exec.bpf.c:1: bpf/ may not include src/base/text.h"],
                         self.check({**USED, "bpf/exec.bpf.c": '#include "../src/base/text.h"\n'}))

    def test_a_folder_that_the_table_leaves_out_is_named(self):
        self.assertEqual(["src/runtime/names.c:1: ARCHITECTURE.md's table does not say what it may include"],
                         self.check({**USED, "src/runtime/names.c": ""}))

    def test_a_page_without_the_table_is_no_pass(self):
        with self.assertRaises(SystemExit):
            self.check({"ARCHITECTURE.md": "# Nothing\n"})


if __name__ == "__main__":
    unittest.main()
