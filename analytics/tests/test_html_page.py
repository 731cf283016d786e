# SPDX-License-Identifier: Apache-2.0
"""The HTML page in headless Chromium: what a reader sees and does. Needs Debian's chromium (./dev/install test)."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from html_reports import HOSTILE, failed_run, large_run, run
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sluice_analytics import units
from sluice_analytics.report import html
from sluice_analytics.tune.run_report import Lack

CHECKS = pathlib.Path(__file__).with_name("html_checks.js").read_text(encoding="utf-8")

WIDE, NARROW = {"width": 1400, "height": 1000}, {"width": 420, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium; root's has no sandbox."""
    path = shutil.which("chromium")
    assert path, "no chromium: ./dev/install test installs it"
    arguments = ["--disable-gpu", "--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=arguments)
        yield started
        started.close()


class Opener:
    """Opens pages and keeps what went wrong in them."""

    def __init__(self, browser: Browser, folder: pathlib.Path) -> None:
        self._browser = browser
        self._folder = folder
        self.trouble: list[str] = []

    def __call__(self, report: Any, viewport: dict[str, int] = WIDE, scheme: str = "light") -> Page:
        """The page of a report, drawn."""
        file = self._folder / "page.html"
        file.write_text(html.render(report), encoding="utf-8")
        page = self._browser.new_page(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
        page.on("console", lambda m: self.trouble.append(f"console: {m.type}: {m.text}"))
        page.on("pageerror", lambda e: self.trouble.append(f"error: {e}"))
        page.on("request", lambda r: self.trouble.append(f"request: {r.url}") if r.url != file.as_uri() else None)
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-drawn=yes]", timeout=60_000)
        return page


@pytest.fixture
def opener(browser: Browser, tmp_path: pathlib.Path) -> Iterator[Opener]:
    """Opens pages; afterwards no console line, no error and no request but for the file itself."""
    made = Opener(browser, tmp_path)
    yield made
    for context in browser.contexts:
        context.close()
    assert made.trouble == []


def check(page: Page, name: str, argument: str = "") -> Any:
    """The answer of one of html_checks.js."""
    return page.evaluate(f"argument => ({CHECKS}).{name}(argument)", argument)


def texts(page: Page, selector: str) -> list[str]:
    """What is written in all of these elements."""
    return [t.strip() for t in page.locator(selector).all_text_contents()]


def column(page: Page, table: str, n: int) -> list[str]:
    """One column of a table, top to bottom."""
    return [t.lstrip("▶▼") for t in texts(page, f"#{table} tbody tr:not(.detail) > :nth-child({n})")]


def tree(page: Page) -> list[tuple[str, str | None]]:
    """The Gantt's rows: name, and whether it is open."""
    rows = page.locator("[role=treeitem]")
    return [(r.locator(".text").inner_text(), r.get_attribute("aria-expanded")) for r in rows.all()]


def box(page: Page, selector: str, has_text: str | None = None) -> dict[str, float]:
    """The position of an element in the window, after scrolling to it."""
    found = page.locator(selector, has_text=has_text).first
    found.scroll_into_view_if_needed()
    at = found.bounding_box()
    assert at
    return dict(at)  # type: ignore[arg-type]


def test_failures_come_first(opener: Opener) -> None:
    page = opener(failed_run())
    assert page.title() == "tiny_torvalds · sluice"
    assert texts(page, "h1") == ["rnaseq"] and texts(page, "#state") == ["✖ failed (exit 1)"]
    sections = page.locator("section").evaluate_all("all => all.map(s => s.id)")
    assert sections[:4] == ["failures", "facts", "warnings", "timeline"]
    assert {"steps", "executions", "tools", "programs", "advice", "observations"} <= set(sections)
    card = page.locator("#failures article").inner_text()
    assert "bcftools call was killed: the host was out of memory" in card and "signal 9 (KILL)" in card
    assert "after 1m55s" in card and "snakemake (pid 1000, exit code 1)" in card and "sort (pid 1006)" in card
    assert "7 events lost (ring, full)" in page.locator("#warnings").inner_text()


def test_it_says_why_nothing_is_recommended(opener: Opener) -> None:
    """Beside what is recommended, or instead; tasks of one reason together."""
    report = failed_run()
    report.lacks = [Lack("call", "too few"), Lack("sort", "too few"), Lack("wait", "none has ended")]
    wanted = ["call, sort: too few", "wait: none has ended"]
    assert report.recommendations and report.pipeline
    page = opener(report)
    assert texts(page, "#advice .lacks li") == wanted
    assert page.locator("#advice .card").count() == len(report.recommendations)
    report.recommendations, report.pipeline = [], None
    page = opener(report)
    *first, last = texts(page, "#advice .lacks li")
    assert first == wanted and "sluice run --pipeline P" in last


def test_the_run_in_numbers(opener: Opener) -> None:
    page = opener(failed_run())
    shown = dict(zip(texts(page, ".facts dt"), texts(page, ".facts > div"), strict=True))
    assert "2m00s" in shown["Wall time"] and "4.0 s of it nothing ran" in shown["Wall time"]
    assert "4m00s" in shown["CPU time"] and "2.0 CPUs in use" in shown["CPU time"]
    assert "50%" in shown["CPU efficiency"] and "of the 4 CPUs that the host has" in shown["CPU efficiency"]
    assert "1.0 GiB" in shown["Peak memory"] and "2% of the 64 GiB" in shown["Peak memory"]
    assert "300 MiB" in shown["Read from storage"] and "100 MiB written" in shown["Read from storage"]
    assert "5" in shown["Tasks"] and "✖ 1 failed" in shown["Tasks"]
    assert "unknown" in shown["Cost"]


def test_foreign_text_stays_text(opener: Opener) -> None:
    page = opener(failed_run())
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.scripts.length") == 4 and page.locator("img").count() == 0
    page.get_by_label("Search command, tool, task, pid").fill("hacked=2")
    expect(page.locator("#programs-table tbody tr")).to_have_count(1)
    page.locator("#programs-table tbody button").click()
    detail = page.locator("#programs-table tr.detail code").inner_text()
    visible = HOSTILE.replace("\x1b", "␛").replace("\x00", "␀").replace("\u202e", "\u2039U+202E\u203a")
    assert detail == visible
    assert "\u202e" not in page.evaluate("document.body.innerText")


def test_sorting(opener: Opener) -> None:
    page = opener(failed_run())
    assert column(page, "programs-table", 10)[:2] == ["1000", "1005"]  # by wall time: the driver, then 30 s
    head = page.locator("#programs-table thead th").nth(9)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, "programs-table", 10) == [str(n) for n in range(1006, 999, -1)]
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, "programs-table", 10) == [str(n) for n in range(1000, 1007)]
    assert page.locator("#programs-table th[aria-sort]:not([aria-sort=none])").count() == 1
    page.locator("#tools-table thead button").first.click()
    assert column(page, "tools-table", 1) == ["bwa mem", "sort"]


def test_what_is_unknown_is_sorted_last(opener: Opener) -> None:
    report = failed_run()
    report.programs[2].cpu_ns = None
    page = opener(report)
    button = page.locator("#programs-table thead button", has_text="CPU")
    for _ in range(2):
        button.click()
        assert column(page, "programs-table", 6)[-1] == "-"


def test_searching_and_filtering_programs(opener: Opener) -> None:
    page = opener(failed_run())
    search = page.get_by_label("Search command, tool, task, pid")
    search.fill("BWA s1")
    expect(page.locator("#programs-table tbody tr")).to_have_count(1)
    assert "bwa mem ref.fa S1.fq" in page.locator("#programs-table tbody").inner_text()
    assert "1 match of 7" in page.locator("#programs [role=status]").inner_text()
    search.fill("nothing of the kind")
    expect(page.locator("#programs-table tbody")).to_contain_text("Nothing here matches")
    search.fill("")
    expect(page.locator("#programs-table tbody tr")).to_have_count(7)
    page.locator("#programs label", has_text="failed only").click()
    assert sorted(column(page, "programs-table", 10)) == ["1000", "1005", "1006"]
    assert "out of memory" in page.locator("#programs-table").inner_text()


def test_tasks_by_name(opener: Opener) -> None:
    page = opener(failed_run())
    page.locator("#steps-table thead button").first.click()
    names = column(page, "steps-table", 1)
    assert names[:2] == ["align", "call"] and names[-1] == "without a task"
    align = page.locator("#steps-table tbody tr").first.inner_text()
    assert "storage 1\u00d7" in align and "compute 2\u00d7" in align  # demands of its three executions
    call = page.locator("#steps-table tbody tr").nth(1).inner_text()
    assert "waits: pipe" in call and "run queue 45%" in call and "5.0 GiB" in call
    assert "waits: pipe" in column(page, "executions-table", 5)
    assert "54.0 s" in align and "18.0 s" in align  # 3 · 18 s, median
    assert "27.0 s" in align and "0.5" in align  # CPU time, CPUs used
    assert "CPUs 1" in align  # what is recommended
    assert column(page, "executions-table", 1).count("align") == 3
    page.locator("#executions-table tbody button").first.click()
    assert "requested CPUs" in page.locator("#executions-table tr.detail").inner_text()


def test_the_gantt_opens_to_programs(opener: Opener) -> None:
    page = opener(failed_run())
    rows = tree(page)
    assert rows[0] == ("align", "true") and [name for name, _ in rows[1:4]] == ["S0", "S1", "S2"]
    assert rows[-1] == ("without a task", "false") and "call" in [name for name, _ in rows]
    bars = page.locator(".gantt svg .role-mark.layer_1_marks path")
    before = bars.count()
    page.locator("[role=treeitem]", has_text="call").click()
    assert [name for name, _ in tree(page)][-3:-1] == ["bcftools call", "sort"]
    assert bars.count() == before + 2
    assert "signal 9 (KILL)" in page.locator(".selected").inner_text()
    page.locator("[role=treeitem]", has_text="call").first.click()
    assert len(tree(page)) == len(rows) and bars.count() == before


def test_bars_stand_where_the_times_are(opener: Opener) -> None:
    page = opener(failed_run())
    plot = page.locator(".gantt .plot").bounding_box()
    row = page.locator("[role=treeitem]", has_text="S1").bounding_box()
    assert plot and row
    boxes = check(page, "boxes", ".gantt svg .layer_1_marks path")
    left, right = (
        plot["x"] + plot["width"] * 25 / 120,
        plot["x"] + plot["width"] * 43 / 120,
    )  # S1: 25 s to 43 s of 120 s
    fits = [b for b in boxes if abs(b["left"] - left) < 2 and abs(b["right"] - right) < 2 and b["height"] > 8]
    assert any(row["y"] <= b["top"] and b["bottom"] <= row["y"] + row["height"] for b in fits)


def test_what_failed_is_marked_in_the_gantt(opener: Opener) -> None:
    page = opener(failed_run())
    assert texts(page, ".gantt svg .role-mark text") == ["✖"]
    page.locator("#gantt-failed").check()
    assert [name for name, _ in tree(page)] == ["call", "without a task"]


def test_the_gantt_by_keyboard(opener: Opener) -> None:
    page = opener(failed_run())
    assert page.locator("[role=treeitem][tabindex='0']").count() == 1
    page.locator("[role=treeitem]").first.focus()
    focused = "document.activeElement.querySelector('.text').textContent"
    page.keyboard.press("ArrowLeft")
    assert tree(page)[0] == ("align", "false")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "S0"
    page.keyboard.press("End")
    assert page.evaluate(focused) == "without a task"
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "snakemake"
    assert "snakemake -c4" in page.locator(".selected").inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == "without a task"
    page.keyboard.press("Home")
    assert page.evaluate(focused) == "align"


def test_looking_closer(opener: Opener) -> None:
    page = opener(failed_run())
    labels = ".axis svg .role-axis-label text"
    whole = set(texts(page, labels))
    assert {"0", "2m00s"} <= whole
    area = cpu = box(page, "[data-curve=cpu] .plot")
    page.mouse.move(area["x"] + area["width"] / 2, cpu["y"] + 30)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] * 3 / 4, cpu["y"] + 30, steps=4)
    assert page.locator(".brush").is_visible()
    page.mouse.up()
    assert page.evaluate("[Math.round(view.from), Math.round(view.to)]") == [60, 90]
    assert "1m00s" in texts(page, labels) and "0" not in texts(page, labels)
    page.get_by_label("Later").click()
    assert page.evaluate("[Math.round(view.from), Math.round(view.to)]") == [75, 105]
    page.get_by_label("Show the whole run").click()
    assert set(texts(page, labels)) == whole


def test_dragging_over_a_row_does_not_open_it(opener: Opener) -> None:
    page = opener(failed_run())
    row = box(page, "[role=treeitem]", has_text="call")
    page.mouse.move(row["x"] + 700, row["y"] + 8)
    page.mouse.down()
    page.mouse.move(row["x"] + 900, row["y"] + 8, steps=4)
    page.mouse.up()
    assert ("call", "false") in tree(page)
    assert page.evaluate("view.to - view.from") < 60


def test_values_under_the_pointer_and_by_keyboard(opener: Opener) -> None:
    report = failed_run()
    report.timeline.series["cpu_cores"] = [1.0] * 25 + [3.0] * 25
    page = opener(report)
    side = page.locator("[data-curve=cpu] .side")
    assert "3.0 in use" in side.inner_text() and "host has 4" in side.inner_text()
    area = box(page, "[data-curve=cpu] .plot")
    page.mouse.move(area["x"] + area["width"] / 4, area["y"] + 20)
    assert "at 30.0 s" in side.inner_text() and "1.0 in use" in side.inner_text()
    page.mouse.move(5, 5)
    assert "peak" in side.inner_text()
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("End")
    assert "2m00s" in (slider.get_attribute("aria-valuetext") or "")
    page.keyboard.press("PageDown")
    assert "CPU in use 3.0" in (slider.get_attribute("aria-valuetext") or "")


def test_the_hosts_capacity_is_a_line(opener: Opener) -> None:
    page = opener(failed_run())  # 2 of 4 CPUs, 1 of 64 GiB
    line = ".role-mark.layer_4_marks line"
    assert page.locator(f"[data-curve=cpu] {line}").count() == 1
    assert page.locator(f"[data-curve=memory] {line}").count() == 0
    assert "host has 64 GiB" in page.locator("[data-curve=memory] .side").inner_text()
    page.locator("#whole-capacity").check()
    assert page.locator(f"[data-curve=memory] {line}").count() == 1
    assert page.locator("[data-curve=network]").count() == 0  # nothing went over the network: said in a line
    assert "No network" in page.locator("#timeline").inner_text()


def test_colours_by_tool(opener: Opener) -> None:
    page = opener(failed_run())
    fills = "all => [...new Set(all.map(b => b.getAttribute('fill')))].filter(f => f && f.startsWith('var'))"
    bars = page.locator(".gantt svg .layer_1_marks path")
    assert {"var(--compute)", "var(--storage)", "var(--waiting-for)", "var(--memory)"} <= set(bars.evaluate_all(fills))
    assert "C compute" in page.locator(".legend").inner_text()
    page.get_by_role("button", name="tool", exact=True).click()
    assert "var(--tool-0)" in bars.evaluate_all(fills) and "bwa mem" in page.locator(".legend").inner_text()


def test_light_and_dark(opener: Opener) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = opener(failed_run(), scheme="dark")
    assert dark.evaluate(paper) == "rgb(18, 22, 28)"
    toggle = dark.locator("#theme")
    toggle.click()
    assert dark.evaluate(paper) == "rgb(255, 255, 255)" and "light" in (toggle.get_attribute("aria-label") or "")
    toggle.click()
    toggle.click()
    assert dark.evaluate(paper) == "rgb(18, 22, 28)"
    light = opener(failed_run())
    assert light.evaluate(paper) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(opener: Opener, scheme: str) -> None:
    page = opener(failed_run(), scheme=scheme)
    page.locator("[role=treeitem]", has_text="call").click()
    assert check(page, "contrast") == []


def simulated(rgb: list[int], kind: str) -> tuple[float, float, float]:
    """A colour as CIE L*a*b*, as a colour-blind reader sees it: Machado, Oliveira and Fernandes 2009, severity 1."""
    matrix = {
        "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    }[kind]
    linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    r, g, b = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear, strict=True)))) for row in matrix)
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["normal", "protan", "deutan"])
def test_demands_can_be_distinguished_by_the_colour_blind(opener: Opener, scheme: str, kind: str) -> None:
    page = opener(failed_run(), scheme=scheme)
    names = ["compute", "memory", "storage", "network-fs", "network", "waiting-for", "mixed"]
    colors = {
        name: simulated(
            page.evaluate(
                "name => { const e = document.body.appendChild(document.createElement('i')); "
                "e.style.color = `var(--${name})`; "
                "return getComputedStyle(e).color.match(/\\d+/g).map(Number); }",
                name,
            ),
            kind,
        )
        for name in names
    }
    for a in names:
        for b in names[names.index(a) + 1 :]:
            distance = sum((p - q) ** 2 for p, q in zip(colors[a], colors[b], strict=True)) ** 0.5
            assert distance > 20, (a, b, round(distance, 1))  # a just noticeable difference is 2.3


def test_everything_has_a_name(opener: Opener) -> None:
    page = opener(failed_run())
    assert check(page, "nameless") == []
    assert page.evaluate("document.documentElement.lang") == "en"
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("viewport", [WIDE, NARROW])
def test_nothing_hangs_over_the_edge(opener: Opener, viewport: dict[str, int]) -> None:
    page = opener(failed_run(), viewport=viewport)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert check(page, "outside") == []


def test_axis_labels_do_not_overlap(opener: Opener) -> None:
    for viewport in (WIDE, NARROW):
        page = opener(failed_run(), viewport=viewport)
        boxes = check(page, "boxes", ".axis svg .role-axis-label text")
        assert len(boxes) >= 2
        assert all(a["right"] + 4 < b["left"] for a, b in itertools.pairwise(boxes))


def test_print(opener: Opener, tmp_path: pathlib.Path) -> None:
    page = opener(failed_run(), scheme="dark")
    page.evaluate(
        "addEventListener('beforeprint', () => { window.paper = document.querySelector('.timeline').offsetWidth; })"
    )
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not [b for b in page.locator("button:not(thead button), input").all() if b.is_visible()]
    page.emulate_media(media="screen")
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF-") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2
    assert page.evaluate("window.paper") == 700  # fits A4 and Letter
    assert page.locator(".timeline").bounding_box()["width"] > 1000  # type: ignore[index]


def test_fifty_thousand_programs(opener: Opener) -> None:
    page = opener(large_run(50_000, 10_000, 200))
    note = page.locator("#programs-left-out").inner_text()
    assert "45,000 more programs left out" in note
    assert "8,000 task executions left out" in page.locator("#steps").inner_text()
    assert page.locator("#programs-table tbody tr").count() == 50
    page.get_by_role("button", name=re.compile("^Show 250 more")).last.click()
    assert page.locator("#programs-table tbody tr").count() == 300
    page.locator("#programs label", has_text="failed only").click()
    assert "50 matches of 5,000" in page.locator("#programs [role=status]").inner_text()
    page.locator("[role=treeitem]", has_text="align").first.click()
    assert [name for name, _ in tree(page)][-1] == "of tasks left out"
    assert len(tree(page)) == 3 + 100 + 1 + 1
    page.locator("[role=treeitem]", has_text="more: show").click()
    assert len(tree(page)) == 3 + 200 + 1 + 1


def test_a_run_of_nothing(opener: Opener) -> None:
    report = run([], [], 0, tools=[], programs_total=0, hosts=[], parallelism=None, demand=None, denied=None)
    report.timeline.series = {}
    page = opener(report)
    assert "There is no record of tasks" in page.locator("#steps").inner_text()
    assert texts(page, "#state") == ["✔ succeeded"] and page.locator("#failures").count() == 0


def test_a_run_that_goes_on(opener: Opener) -> None:
    report = failed_run()
    report.state, report.end_time, report.exit_code, report.failures = "RUNNING", None, None, []
    report.tasks[2].end_time = report.tasks[2].exit_code = None
    page = opener(report)
    assert texts(page, "#state") == ["▶ running"]
    page.locator("[role=treeitem]", has_text="S2").focus()
    assert "not ended" in page.locator(".selected").inner_text()


def test_numbers_are_written_as_on_a_terminal(opener: Opener) -> None:
    page = opener(run([], [], 1))
    numbers = [
        0,
        1,
        999,
        1000,
        1023,
        1024,
        1536,
        10_189,
        10_190,
        1 << 20,
        37 << 30,
        123_456_789_012,
        999_499,
        999_500,
        59_949_999_999,
    ]
    numbers += [59_950_000_000, 3_599_400_000_000, 3_600_000_000_000, 172_700_000_000_000, 400_000_000_000_000]
    assert page.evaluate("all => all.map(fmt.size)", numbers) == [units.size(n) for n in numbers]
    assert page.evaluate("all => all.map(fmt.ns)", numbers) == [units.duration(n) for n in numbers]
    shares = [0, 0.004, 0.126, 0.5, 1, 2.349]
    assert page.evaluate("all => all.map(fmt.percent)", shares) == [units.percent(s) for s in shares]
    amounts = [0.0, 0.0123, 0.094, 0.095, 12.344, 1234.5]
    assert page.evaluate("all => all.map(a => fmt.money(a))", amounts) == [units.money(a) for a in amounts]
    assert page.evaluate("[fmt.size(null), fmt.ns(null), fmt.percent(null), fmt.money(null)]") == [
        "-",
        "-",
        "-",
        "unknown",
    ]


def test_the_policy_holds(browser: Browser, opener: Opener) -> None:
    page = opener(run([], [], 1))
    with contextlib.closing(page):
        assert check(page, "allowed") == []
    opener.trouble.clear()  # what was tried here
