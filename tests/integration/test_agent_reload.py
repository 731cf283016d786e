# SPDX-License-Identifier: Apache-2.0
"""The configuration is read again, two hundred times under load, from good and from bad files: no program is lost."""
import collections
import json
import re
import signal

import harness
from faults import FaultTest
from load import Load

RELOADS = 200


class Reload(FaultTest):
    stack_options = None

    def good(self, a, n):
        a.configure(interval=f"{1 + n % 2}s", drain=f"{90 + n % 10}s",
                    log={"level": ("info", "debug")[n % 2], "format": "json"})

    def bad(self, a, n):
        """A file that must be refused; the line of the fault in it, and a word of what is to be said."""
        text = json.dumps(a.config, indent=1)
        lines = text.split("\n")
        line = next(i for i, x in enumerate(lines) if '"interval"' in x)
        kind = n % 4
        if kind == 0:
            lines[line] = lines[line].replace('"interval"', '"intervall"')
        elif kind == 1:
            lines[line] = ' "interval": [1],'
        elif kind == 2:
            lines[line] = ' "interval": "1ms",'
        else:
            lines[line] = ' "interval": "1s"]'
        a.write_config("\n".join(lines))
        return line + 1, ("interval", "interval", "interval", "")[kind]

    def wait_signalled(self, a, before):
        a.signal(signal.SIGHUP)
        return self.wait_status(a, lambda s: s["config"]["last_reload"]["time"] != before, "reload")["config"]

    def test_two_hundred_good_and_bad_under_load(self):
        a = self.kafka_agent().start()
        generation, failed = 1, 0
        last = None
        with Load("reload", rate=100) as load:
            for n in range(RELOADS):
                is_good, by_signal = n % 3 != 2, n % 2 == 1
                line, word = (self.good(a, n), None) if is_good else self.bad(a, n // 3)
                generation += is_good
                failed += not is_good
                if by_signal:
                    c = self.wait_signalled(a, last)
                    last = c["last_reload"]["time"]
                    said = c["last_reload"]["error"]
                    self.assertEqual("ok" if is_good else "failed", c["last_reload"]["result"])
                    self.assertEqual(generation, c["generation"])
                else:
                    done = a.ctl("reload")
                    self.assertEqual(0 if is_good else 1, done.returncode, done.stderr)
                    if is_good:
                        self.assertIn(f"generation {generation} ", done.stdout)
                    last = a.status()["config"]["last_reload"]["time"]
                    said = done.stderr
                if not is_good:
                    self.assertRegex(said, re.escape(a.config_path) + rf":{line}(:\d+)?: .*{word}")
        s = a.status()
        self.assertEqual(generation, s["config"]["generation"])
        self.good(a, 0)
        a.ctl("reload", check=True)
        self.stop_drained(a)
        result = self.assert_whole(load)
        events = collections.Counter(r["event"] for r in self.agent_records(result))
        self.assertEqual((generation, failed), (events["RELOAD"], events["RELOAD_FAILED"]))
        self.assertEqual((1, 1), (events["START"], events["STOP"]))
        for r in self.agent_records(result):
            if r["event"] == "RELOAD_FAILED":
                self.assertIn(a.config_path, r["message"])

    def test_what_waits_for_a_restart_is_named(self):
        a = self.kafka_agent().start()
        a.configure(interval="2s", spool={"max": "32MiB"}, kafka={"properties": {"linger.ms": "5"}})
        done = a.ctl("reload", check=True)
        self.assertIn("generation 2 ", done.stdout)
        for key in ("spool.max", "kafka.properties"):
            self.assertIn(key, done.stdout)
        self.assertNotIn("interval", done.stdout)
        s = a.status()
        self.assertIn("spool.max", s["config"]["restart_wanted"])
        self.assertTrue(any("need a restart" in p["text"] for p in s["problems"]), s["problems"])
        self.assertEqual(0, a.stop())
        a.start()
        s = a.status()
        self.assertIsNone(s["config"]["restart_wanted"])
        self.assertEqual(32 << 20, s["spool"]["max_bytes"])


if __name__ == "__main__":
    harness.main()
