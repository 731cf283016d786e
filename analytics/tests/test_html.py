# SPDX-License-Identifier: Apache-2.0
"""The HTML page as text: what is in it, what is not, how large it gets. test_html_page.py opens it in a browser."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from html_reports import HOSTILE, T0, S, failed_run, large_run, run, task

from sluice_analytics.report import html

MAX_PAGE = 3_000_000


class Page(HTMLParser):
    """What a browser's parser makes of it: elements with their attributes, and the text of scripts."""

    CDATA_CONTENT_ELEMENTS = ("script", "style")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.is_open = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element begins."""
        self.elements.append((tag, dict(attrs)))
        self.texts.append((tag, ""))
        self.is_open = True

    def handle_endtag(self, tag: str) -> None:
        """What comes now is no element's that matters here."""
        self.is_open = False

    def handle_data(self, data: str) -> None:
        """Text of the last element."""
        if self.is_open:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    def data(self) -> dict[str, Any]:
        """The records' part."""
        at = next(i for i, (tag, a) in enumerate(self.elements) if tag == "script" and a.get("id") == "data")
        value: dict[str, Any] = json.loads(self.texts[at][1])
        return value


def test_hostile_text_is_data() -> None:
    text = html.render(dataclasses.replace(failed_run(), pipeline=HOSTILE, run_name=HOSTILE))
    page = Page(text)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 4 and "img" not in tags
    assert page.data()["run"]["pipeline"] == HOSTILE
    assert HOSTILE in page.data()["texts"]
    assert "<script>window.hacked" not in text
    assert "\u2028" not in text
    assert "\x00" not in text


def test_nothing_is_loaded_from_anywhere() -> None:
    page = Page(html.render(failed_run()))
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base", "form", "audio", "video")
        assert not {"src", "href", "srcset", "action", "style"} & attributes.keys(), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]


def test_the_policy_names_just_our_own_scripts() -> None:
    page = Page(html.render(failed_run()))
    policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and "connect-src" not in rules
    assert "unsafe" not in policy and "http" not in policy
    both = zip(page.elements, page.texts, strict=True)
    ours = [t for (tag, a), (_, t) in both if tag == "script" and "type" not in a]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in ours]
    assert rules["script-src"].split() == hashes and len(hashes) == 2


def test_times_are_offsets_and_unknown_is_null() -> None:
    report = run([task(0, "align", 5, 18, end_time=None, wall_ns=None, exit_code=None)], [], 60)
    data = Page(html.render(report)).data()
    assert data["run"]["start_us"] == T0
    assert data["tasks"]["start"] == [5 * S] and data["tasks"]["end"] == [None] and data["tasks"]["exit_code"] == [None]
    assert data["tasks"]["usage"][0][data["usage_names"].index("major_faults")] is None
    assert data["tasks"]["usage"][0][data["usage_names"].index("peak_rss_bytes")] == 10 << 20


def test_no_number_is_no_json() -> None:
    report = run([], [], 60, parallelism=float("nan"))
    report.timeline.series["cpu_cores"][3] = float("inf")
    data = Page(html.render(report)).data()
    assert data["run"]["parallelism"] is None and data["timeline"]["series"]["cpu_cores"][3] is None


def test_half_a_character_does_not_break_the_page() -> None:
    text = html.render(run([], [], 60, command="a\ud800b"))
    assert Page(text).data()["run"]["command"] == "a?b"
    text.encode()


def test_what_failed_is_listed_first() -> None:
    report = large_run(6000, 50, 60)
    failed = {p.pid for p in report.programs if p.exit_code}
    data = Page(html.render(report)).data()
    assert len(data["programs"]["pid"]) == html.PROGRAMS and data["left_out"]["programs"] == 1000
    assert failed <= set(data["programs"]["pid"])
    kept = set(data["programs"]["pid"])
    dropped = [p.end_time - p.start_time for p in report.programs if p.pid not in kept and p.end_time]
    longest = sorted((p.end_time - p.start_time for p in report.programs if p.end_time), reverse=True)
    assert max(dropped) <= longest[4900]
    assert data["programs"]["start"] == sorted(data["programs"]["start"])


def test_programs_that_a_failure_names_are_kept() -> None:
    report = large_run(6000, 50, 60)
    shortest = min((p for p in report.programs if not p.exit_code), key=lambda p: (p.end_time or 0) - p.start_time)
    failure = dataclasses.replace(failed_run().failures[0], program_id="program-7", victims=[shortest.program_id])
    data = Page(html.render(dataclasses.replace(report, failures=[failure]))).data()
    assert data["programs"]["pid"][data["named_programs"][shortest.program_id]] == shortest.pid


@pytest.mark.parametrize(("programs", "tasks", "chars"), [(5000, 500, 120), (5000, 5000, 300), (50_000, 10_000, 300)])
def test_the_page_stays_small(programs: int, tasks: int, chars: int) -> None:
    page = html.render(large_run(programs, tasks, chars))
    assert len(page.encode()) < MAX_PAGE
    data = Page(page).data()
    assert len(data["programs"]["pid"]) + data["left_out"]["programs"] == programs
    assert len(data["tasks"]["id"]) + data["left_out"]["tasks"] == tasks


def test_commands_of_five_thousand_programs_are_whole() -> None:
    report = large_run(5000, 500, 160)
    data = Page(html.render(report)).data()
    commands = {data["texts"][n] for n in data["programs"]["command"]}
    assert commands == {p.command for p in report.programs}


def test_worst_commands_are_cut_rather_than_the_page_too_large() -> None:
    report = large_run(5000, 500, 40)
    for p in report.programs:
        p.command = f"{p.pid} " + "<\u2028" * 147
    data = Page(html.render(report)).data()
    assert data["command_chars"] < 300
    assert all(len(data["texts"][n]) <= data["command_chars"] for n in data["programs"]["command"])


def test_a_long_timeline_is_thinned_by_means() -> None:
    report = run([], [], 60)
    report.timeline.series = {"cpu_cores": [float(n % 2) for n in range(4500)]}
    report.timeline.bin_us = 1000
    line = Page(html.render(report)).data()["timeline"]
    assert len(line["series"]["cpu_cores"]) == 1500 and line["bin"] == 3000
    assert line["series"]["cpu_cores"][:2] == pytest.approx([1 / 3, 2 / 3], rel=1e-3)


def test_a_run_of_nothing_has_a_page() -> None:
    report = run(
        [], [], 0, tools=[], programs_total=0, hosts=[], parallelism=None, demand=None, denied=None, pipeline=None
    )
    report.run_name = None
    report.timeline.series = {}
    assert Page(html.render(report)).data()["run"]["run_id"] == report.run_id


def test_the_title_is_the_run() -> None:
    text = html.render(failed_run())
    assert re.search(r"<title>tiny_torvalds · sluice</title>", text)
