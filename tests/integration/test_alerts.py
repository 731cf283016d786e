# SPDX-License-Identifier: Apache-2.0
"""ops/prometheus/alerts.yaml by promtool: the rules are valid, and each alert fires when it should and only then.

For each alert: series that make it fire from a minute on, and series that are as bad as is still allowed, with which
it is silent. Values are in promtool's notation: `A+BxN` is A, A+B, … with N steps of a minute.
"""
import json
import os
import re
import subprocess
import tempfile
import unittest

import yaml

import harness
from agent import AgentTest
from faults import get

ALERTS = os.path.join(harness.ROOT, "ops", "prometheus", "alerts.yaml")
PROMTOOL = os.path.join(harness.ROOT, "build", "checkers", "promtool")
AT = 'job="sluice",instance="a"'

# alert: ((series that make it fire), (minute when it is not yet due, minute when it is), (series with which it never is))
CASES = {
    "SluiceAgentAway": (
        {f"up{{{AT}}}": "1x4 0x20"}, (9, 10),
        {f"up{{{AT}}}": "1x4 0x3 1x20", 'up{job="node",instance="a"}': "0x30"}),
    "SluiceMetricsTaken": (
        {f"sluice_metrics_up{{{AT}}}": "1x4 0x20"}, (5, 6),
        {f"sluice_metrics_up{{{AT}}}": "1x9 0 1x20"}),
    "SluiceNotDelivering": (
        {f"sluice_ready{{{AT}}}": "1x4 0x20"}, (14, 15),
        {f"sluice_ready{{{AT}}}": "0x9 1x20"}),
    "SluiceNotSeeing": (
        {f"sluice_seeing{{{AT}}}": "1x4 0x20"}, (5, 6),
        {f"sluice_seeing{{{AT}}}": "1x9 0 1x20"}),
    "SluiceSpoolOld": (
        {f"sluice_spool_oldest_age_seconds{{{AT}}}": "900x4 901x20"}, (9, 10),
        {f"sluice_spool_oldest_age_seconds{{{AT}}}": "900x30"}),
    "SluiceSpoolFillsUp": (
        {f"sluice_spool_bytes{{{AT}}}": "600+3x100", f"sluice_spool_limit_bytes{{{AT}}}": "1000x100"}, (15, 16),
        # Half full and growing slowly; or growing fast, but as good as empty.
        {f"sluice_spool_bytes{{{AT}}}": "600+0.1x100", f"sluice_spool_limit_bytes{{{AT}}}": "1000x100",
         'sluice_spool_bytes{instance="b"}': "0+4x100", 'sluice_spool_limit_bytes{instance="b"}': "1000x100"}),
    "SluiceSpoolDisk": (
        {f"sluice_spool_writable{{{AT}}}": "1x4 0x20"}, (6, 7),
        {f"sluice_spool_writable{{{AT}}}": "0 1 0 1x30"}),
    "SluiceDiskFloor": (
        {f"sluice_lake_disk_floor{{{AT}}}": "0x4 1x20", f"sluice_spool_disk_floor{{{AT}}}": "0x30"}, (6, 7),
        {f"sluice_spool_disk_floor{{{AT}}}": "1 0 1 0x30", f"sluice_lake_disk_floor{{{AT}}}": "0x30"}),
    "SluiceLoss": (
        {f'sluice_lost_total{{{AT},place="on_fork",reason="map_full"}}': "0x69 1x20"}, (69, 71),
        # What was lost long ago is reported once, not for ever.
        {f'sluice_lost_total{{{AT},place="on_fork",reason="map_full"}}': "7x200"}),
    "SluiceRecordsGivenUp": (
        {f'sluice_spool_dropped_total{{{AT},topic="sluice.usage",reason="spool_full"}}': "0x69 5x20"}, (69, 71),
        {f'sluice_spool_dropped_total{{{AT},topic="sluice.usage",reason="spool_full"}}': "7x200",
         f'sluice_records_dead_lettered_total{{{AT},topic="sluice.usage",reason="too_large"}}': "2x200"}),
    "SluiceReloadFailed": (
        {f"sluice_config_last_reload_successful{{{AT}}}": "1x4 0x20"}, (9, 10),
        {f"sluice_config_last_reload_successful{{{AT}}}": "0x4 1x20"}),
}
FOR_AN_HOUR = {"SluiceLoss", "SluiceRecordsGivenUp"}
# The same alert by its other half: a first loss of a series that was not there before, and a dead letter.
MORE = (
    ("SluiceLoss", {f'sluice_lost_total{{{AT},place="ring",reason="ring_full"}}': "_x69 3x20"}, (68, 69)),
    ("SluiceRecordsGivenUp",
     {f'sluice_records_dead_lettered_total{{{AT},topic="sluice.task",reason="too_large"}}': "_x69 1x20"}, (68, 69)),
)


def alerts():
    with open(ALERTS) as f:
        return {rule["alert"]: rule for group in yaml.safe_load(f)["groups"] for rule in group["rules"]}


def series(values):
    return [{"series": name, "values": text} for name, text in values.items()]


def promtool(*args, given=None):
    if not os.access(PROMTOOL, os.X_OK):
        raise AssertionError(f"{PROMTOOL} is missing; run: ./dev/checkers")
    return subprocess.run([PROMTOOL, *args], input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60)


class Alerts(unittest.TestCase):
    def firing(self, values, *minutes):
        """All that fires at one of them: promtool is given that nothing does, and prints what does."""
        rules = {"rule_files": [ALERTS], "evaluation_interval": "1m", "tests": [
            {"interval": "1m", "input_series": series(values),
             "alert_rule_test": [{"alertname": name, "eval_time": f"{minute}m", "exp_alerts": []}
                                 for name in alerts() for minute in minutes]}]}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            json.dump(rules, f)
            f.flush()
            done = promtool("test", "rules", f.name)
        found = {name for name in alerts() if f'alertname="{name}"' in done.stdout or f"alertname: {name}" in done.stdout}
        self.assertEqual(done.returncode == 0, not found, done.stdout)
        return found

    def test_the_rules_are_valid(self):
        done = promtool("check", "rules", ALERTS)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn(f"{len(alerts())} rules found", done.stdout)

    def test_each_alert_has_its_case(self):
        self.assertEqual(set(alerts()), set(CASES))

    def test_each_fires_when_it_is_due_and_not_before(self):
        for name, values, (before, due) in [*((n, c[0], c[1]) for n, c in CASES.items()), *MORE]:
            with self.subTest(name, values=values):
                self.assertEqual(set(), self.firing(values, before))
                self.assertEqual({name}, self.firing(values, due))

    def test_none_fires_over_what_is_allowed(self):
        for name, (_, _, values) in CASES.items():
            with self.subTest(name):
                # Any first figure of a counter is a new loss for an hour.
                self.assertEqual(set(), self.firing(values, *((75, 150) if name in FOR_AN_HOUR else (9, 15, 25, 90))))

    def test_each_says_what_to_do(self):
        for name, rule in alerts().items():
            self.assertEqual({"summary", "description", "fix"}, set(rule["annotations"]), name)
            self.assertIn(rule["labels"]["severity"], ("warning", "critical"), name)


class Page(AgentTest):
    """What a running agent shows is what promtool takes and what the alerts ask for."""

    def test_a_running_agents_page(self):
        a = self.agent().start()
        a.settle()
        status, text = get(a, "/metrics")
        self.assertEqual(200, status, text)
        done = promtool("check", "metrics", given=text)
        self.assertEqual((0, ""), (done.returncode, done.stdout))
        shown = set(re.findall(r"(?m)^# TYPE (\w+) ", text))
        asked = {name for rule in alerts().values() for name in re.findall(r"\bsluice_\w+", rule["expr"])}
        self.assertGreaterEqual(len(asked), len(alerts()) - 1)  # up is Prometheus's own
        self.assertEqual(set(), asked - shown)


if __name__ == "__main__":
    harness.main()
