# SPDX-License-Identifier: Apache-2.0
"""The registry client against a real registry (Apicurio, by its Confluent interface): ids, cache, refusals."""
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

import harness
from registry_asker import REGISTRY_IDS, SCHEMAS, SUBJECTS, Asker, schema_text, subject
from stack import Ports, servers
from systems import machine


class Registry(unittest.TestCase):
    """Each test begins with an empty registry."""

    @classmethod
    def setUpClass(cls):
        if not os.access(REGISTRY_IDS, os.X_OK):
            raise AssertionError("registry_ids is not built; run: ./dev/test test_registry")
        cls.at = tempfile.mkdtemp(prefix="sluice-registry-")
        cls.ports = Ports()
        cls.addClassCleanup(shutil.rmtree, cls.at, ignore_errors=True)
        cls.addClassCleanup(cls.ports.close)
        cls.servers = servers.Servers(os.path.join(cls.at, "servers"))
        cls.servers.configure({name: cls.ports.base + n for name, n in servers.PORTS.items()})
        cls.addClassCleanup(cls.servers.kill_registry)
        cls.servers.start_registry()

    def setUp(self):
        self.room = tempfile.mkdtemp(dir=self.at)
        self.cache = os.path.join(self.room, "ids.json")
        if self.servers.registry_pid() is None or self.servers.ask_registry("/subjects"):
            self.restart()
        self.addCleanup(self.clean)

    def clean(self):
        """Forgets its subjects, which is quicker than a new start; it still knows that there were some."""
        if self.servers.registry_pid() is None:
            return
        for name in self.servers.ask_registry("/subjects"):
            self.servers.ask_registry(f"/subjects/{name}", method="DELETE")

    def restart(self):
        """It keeps its schemas in memory: a new start is an empty registry."""
        self.servers.kill_registry()
        self.servers.start_registry()

    def asker(self, **options):
        return Asker(self.servers.registry_url, **options)

    def cached(self):
        """The ids that the cache has."""
        with open(self.cache) as f:
            return json.load(f)["ids"]

    def register(self, name, text):
        return self.servers.ask_registry(f"/subjects/{subject(name)}/versions", {"schema": text})["id"]

    def assert_good_end(self, asker):
        status, last = asker.end()
        self.assertEqual((0, ""), (status, asker.stderr))
        return last

    def assert_ids_are_the_registrys(self, ids):
        self.assertEqual(set(SUBJECTS), set(ids))
        for name, text in SUBJECTS.items():
            with self.subTest(subject=name):
                self.assertIsInstance(ids[name], int, ids)
                found = self.servers.ask_registry(f"/schemas/ids/{ids[name]}")
                self.assertEqual(text, found["schema"])
                self.assertEqual(ids[name], self.servers.ask_registry(f"/subjects/{name}/versions/latest")["id"])

    def test_knows_the_original_texts_by_the_ids_we_got(self):
        with self.asker(until_verified=True, cache=self.cache) as a:
            last = self.assert_good_end(a)
        self.assertEqual("ok", last["state"])
        self.assertEqual((len(SUBJECTS), len(SUBJECTS), 0, 0),
                         (last["known"], last["requests"], last["wanted"], last["failures"]))
        self.assert_ids_are_the_registrys(last["ids"])
        with self.asker(until_verified=True, lookup_only=True) as a:
            self.assertEqual(last["ids"], self.assert_good_end(a)["ids"])

    def test_gives_each_fact_once_and_the_states_in_order(self):
        with self.asker(until_verified=True) as a:
            self.assert_good_end(a)
        changes = [line for line in a.lines if line["event"] == "change"]
        self.assertEqual(list(range(1, len(SUBJECTS) + 1)), [line["known"] for line in changes])
        self.assertEqual(["asking"] * (len(SUBJECTS) - 1) + ["ok"], [line["state"] for line in changes])

    def test_that_is_down_is_not_missed_with_a_cache(self):
        with self.asker(until_verified=True, cache=self.cache) as a:
            ids = self.assert_good_end(a)["ids"]
        self.assertEqual(0o600, stat.S_IMODE(os.stat(self.cache).st_mode))
        self.servers.stop_registry()
        with self.asker(seconds=2, cache=self.cache, trust_ms=500) as a:
            last = self.assert_good_end(a)
        self.assertEqual(ids, last["ids"])
        self.assertEqual(("ok", len(SUBJECTS), 0, len(SUBJECTS)),
                         (last["state"], last["known"], last["wanted"], last["unverified"]))
        self.assertEqual({"EAGAIN"}, set(a.lines[0]["ids"].values()), "before they are trusted")
        self.assertIn("check that the registry runs there", last["error"])
        self.assertGreater(last["failures"], 1)

    def test_that_is_away_at_start_is_asked_again(self):
        self.servers.stop_registry()
        with self.asker(until_verified=True) as a:
            away = a.wait_state("away", "check that the registry runs there")
            self.assertEqual({"EAGAIN"}, set(away["ids"].values()))
            self.servers.start_registry()
            last = self.assert_good_end(a)
        self.assertEqual("ok", last["state"])
        self.assert_ids_are_the_registrys(last["ids"])

    def test_that_was_set_up_anew_gives_its_new_ids(self):
        with self.asker(until_verified=True, cache=self.cache) as a:
            old = self.assert_good_end(a)["ids"]
        self.restart()
        for i in range(3):
            self.servers.ask_registry(f"/subjects/others-{i}/versions",
                                      {"schema": json.dumps({"type": "fixed", "name": f"f{i}", "size": i + 1})})
        with self.asker(until_verified=True, cache=self.cache) as a:
            last = self.assert_good_end(a)
        self.assert_ids_are_the_registrys(last["ids"])
        self.assertTrue(all(last["ids"][s] != old[s] for s in old), (old, last["ids"]))
        with self.asker(until_verified=True, cache=self.cache) as a:
            self.assertEqual(last["ids"], self.assert_good_end(a)["ids"])
        self.assertEqual(last["ids"], {row["subject"]: row["id"] for row in self.cached()})

    def test_that_lost_its_schemas_under_a_running_agent_has_them_again(self):
        with self.asker(recheck_ms=500, only="host", seconds=300) as a:
            a.wait_state("ok")
            a.pause()
            self.restart()
            self.register("agent", SUBJECTS[subject("agent")])
            a.go_on()
            line = a.wait(lambda line: line["ids"] == {subject("host"): 2}, "the new id")
            self.assertEqual("ok", line["state"])
        self.assertEqual(SUBJECTS[subject("host")], self.servers.ask_registry("/schemas/ids/2")["schema"])

    def test_without_a_cached_schema_takes_the_id_back(self):
        with self.asker(until_verified=True, cache=self.cache) as a:
            self.assert_good_end(a)
        self.restart()
        with self.asker(cache=self.cache, lookup_only=True) as a:
            line = a.wait(lambda line: list(line["ids"].values()) == ["EACCES"] * len(SUBJECTS), "all refused")
            self.assertEqual(("refused", len(SUBJECTS)), (line["state"], line["wanted"]))
            machine.wait_until(lambda: self.cached() == [], 20, "cache without an id")

    def test_refuses_an_incompatible_schema_and_the_others_go_on(self):
        # An older one that lacks a field for which ours has no default: not BACKWARD, but FORWARD compatible.
        older = json.loads(SUBJECTS[subject("host")])
        older["fields"] = [f for f in older["fields"] if f["name"] != "cpus"]
        self.register("host", json.dumps(older))
        with self.asker() as a:
            line = a.wait(lambda line: line["wanted"] == 1, "all ids but one")
            self.assertEqual("refused", line["state"])
            self.assertEqual(["EACCES"], [i for i in line["ids"].values() if not isinstance(i, int)])
            self.assertEqual("EACCES", line["ids"][subject("host")])
            for part in (subject("host"), self.servers.registry_url, "409", "not compatible", "compatibility",
                         "sluice 0.", "cpus"):
                self.assertIn(part, line["error"])
            # The fix that the message names.
            command = re.search(r"\((curl -X PUT .*?); or NONE", line["error"])[1]
            subprocess.run(["sh", "-c", command], check=True, timeout=20, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            line = a.wait_state("ok")
            self.assertIsInstance(line["ids"][subject("host")], int)

    def test_lookup_only_names_the_command_that_registers(self):
        self.restart()  # a subject that was deleted is not the same as none
        with self.asker(lookup_only=True) as a:
            line = a.wait(lambda line: list(line["ids"].values()) == ["EACCES"] * len(SUBJECTS), "all refused")
            self.assertEqual("refused", line["state"])
            seen = set()
            while len(seen) < len(SUBJECTS):
                name = re.search(r"no subject (\S+):", line["error"])[1]
                if name not in seen:
                    for part in (self.servers.registry_url, "404", "auto_register is false"):
                        self.assertIn(part, line["error"])
                    command = re.search(r"register it with: (.*)$", line["error"])[1]
                    done = subprocess.run(["sh", "-c", command], cwd=SCHEMAS, timeout=20, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    self.assertIn('"id"', done.stdout, done.stderr)
                    seen.add(name)
                    if len(seen) == len(SUBJECTS):
                        break
                line = a.wait(lambda line: re.search(r"no subject (\S+):", line["error"])[1] not in seen
                              or line["state"] == "ok", "the next one")
            ids = a.wait_state("ok")["ids"]
        self.assert_ids_are_the_registrys(ids)

    def test_lookup_only_of_another_version_is_refused(self):
        older = json.loads(SUBJECTS[subject("host")])
        older["fields"] = [f for f in older["fields"] if f["name"] != "region"]
        self.register("host", json.dumps(older))
        with self.asker(lookup_only=True, only="host") as a:
            line = a.wait_state("refused", "not this agent's schema under " + subject("host"))
            self.assertIn("register it with", line["error"])
            self.register("host", schema_text("host"))
            a.wait_state("ok")

    def test_path_that_is_wrong_is_reported(self):
        with Asker(self.servers.registry_url.replace("/apis/ccompat/v7", "/nothing"), only="host") as a:
            line = a.wait_state("refused", "404")
            self.assertIn("check its path in registry.urls", line["error"])

    def test_damaged_cache_costs_only_a_question(self):
        for text in ("", "{", "[]", '{"version": 2, "ids": []}', '{"version": 1, "ids": [3, {"url": "u"}]}'):
            with self.subTest(text=text):
                with open(self.cache, "w") as f:
                    f.write(text)
                with self.asker(until_verified=True, cache=self.cache) as a:
                    status, last = a.end()
                self.assertEqual((0, "ok"), (status, last["state"]))
                self.assertIn(f"{self.cache}: damaged", a.stderr)
                with self.asker(until_verified=True, cache=self.cache) as a:
                    self.assertEqual(last["ids"], self.assert_good_end(a)["ids"])

    def test_cache_that_cannot_be_written_is_reported_once(self):
        # The cache is written while no question waits: rechecks leave time for that, also on a slow machine.
        with self.asker(until_requests=2 * len(SUBJECTS) + 1, cache=os.path.join(self.room, "nowhere", "ids.json"),
                        recheck_ms=500) as a:
            last = self.assert_good_end(a)
        self.assertEqual("ok", last["state"])
        self.assertIn("schema ids cannot be saved (No such file or directory)", last["error"])
        self.assertGreater(last["requests"], 2 * len(SUBJECTS))


if __name__ == "__main__":
    harness.main()
