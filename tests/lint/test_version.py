# SPDX-License-Identifier: Apache-2.0
"""version.py finds a place that has another version, or none."""
import os
import tempfile
import unittest

import version

GOOD = {"CMakeLists.txt": "project(sluice VERSION 1.2.3 LANGUAGES C)\n", "analytics/pyproject.toml": 'version = "1.2.3"\n',
        "ops/ansible/galaxy.yml": "version: 1.2.3\n"}


class Version(unittest.TestCase):
    def wrong(self, wanted=None, without=(), **changed):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**GOOD, **{k.replace("__", "/"): v for k, v in changed.items()}}.items():
                if path not in without:
                    os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
                    with open(os.path.join(folder, path), "w") as f:
                        f.write(text)
            return list(version.check(folder, wanted))

    def test_all_the_same(self):
        self.assertEqual([], self.wrong())
        self.assertEqual([], self.wrong("1.2.3"))
        self.assertEqual([], self.wrong(without=["ops/ansible/galaxy.yml"]))

    def test_another(self):
        for path in list(GOOD)[1:]:
            said = self.wrong(**{path.replace("/", "__"): GOOD[path].replace("1.2.3", "1.2.4")})
            self.assertEqual([f"{path}: version 1.2.4, where CMakeLists.txt is 1.2.3: write 1.2.3"], said)
        self.assertEqual(3, len(self.wrong("1.3.0")))

    def test_none(self):
        self.assertEqual(1, len(self.wrong(**{"analytics/pyproject.toml": "dynamic = 1\n"})))


if __name__ == "__main__":
    unittest.main()
