# SPDX-License-Identifier: Apache-2.0
"""The price table: which row is a host's, and what is wrong with a file."""

from __future__ import annotations

import pathlib

import pytest

from sluice_analytics import prices
from sluice_analytics.errors import UserError

HEADING = "provider,region,instance_type,lifecycle,usd_per_hour,vcpu,mem_gib,gpu,host\n"
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "config" / "prices.example.csv"


def table(tmp_path: pathlib.Path, text: str) -> prices.Prices:
    path = tmp_path / "prices.csv"
    path.write_text(text)
    return prices.read(str(path))


def per_hour(t: prices.Prices, *args: str | None, **more: str | None) -> float | None:
    price = t.of_host(*args, **more)
    return price.per_hour if price else None


def test_the_most_specific_row_wins(tmp_path: pathlib.Path) -> None:
    t = table(
        tmp_path,
        HEADING
        + "aws,,m5.large,,0.10,2,8,,\n"
        + "aws,eu-west-1,m5.large,,0.12,2,8,,\n"
        + ",,,,0.05,64,256,,rack7-*\n"
        + ",,m5.large,,0.07,,,,rack7-3\n",
    )
    assert per_hour(t, "a", "m5.large", "us-east-1", "aws") == 0.10
    assert per_hour(t, "a", "m5.large", "eu-west-1", "aws") == 0.12
    assert per_hour(t, "a", "m5.large", "eu-west-1", "azure") is None
    assert per_hour(t, "rack7-9", None) == 0.05
    assert per_hour(t, "rack7-3", "m5.large", "eu-west-1", "aws") == 0.07
    assert per_hour(t, "rack8-1", None) is None
    assert per_hour(t, None, None) is None


def test_what_records_do_not_tell_rules_nothing_out_but_a_tie_is_unknown(tmp_path: pathlib.Path) -> None:
    one = table(tmp_path, HEADING + "aws,,m5.large,spot,0.04,,,,\n")
    assert per_hour(one, "a", "m5.large") == 0.04
    assert per_hour(one, "a", "m5.large", lifecycle="on-demand") is None
    both = table(tmp_path, HEADING + ",,m5.large,,0.08,,,,rack7-3\n")
    assert per_hour(both, "rack7-3", None) == 0.08
    assert per_hour(both, "rack7-3", "m5.xlarge") is None
    assert per_hour(both, "rack7-4", "m5.large") is None
    two = table(tmp_path, HEADING + "aws,,m5.large,spot,0.04,,,,\naws,,m5.large,on-demand,0.10,,,,\n")
    assert per_hour(two, "a", "m5.large") is None
    assert len(two.candidates("a", "m5.large")) == 2
    assert per_hour(two, "a", "m5.large", lifecycle="on-demand") == 0.10
    assert per_hour(two, "a", "m5.large", lifecycle="spot") == 0.04


def test_where_rows_disagree_is_named_with_file_and_lines_and_what_decides(tmp_path: pathlib.Path) -> None:
    t = table(
        tmp_path,
        "# ours\n"
        + HEADING
        + "aws,,m5.large,spot,0.04,2,8,,\n"
        + "\n"
        + "aws,,m5.large,on-demand,0.10,2,8,,\n"
        + "aws,,c5.large,spot,0.03,2,4,,\n"
        + ",,,,0.5,,,,node*\n"
        + ",,,,0.6,,,,*1\n",
    )
    path = tmp_path / "prices.csv"
    assert t.disagreement("a", "m5.large", None, "aws", None) == (
        f"{path}: lines 3, 5: these rows apply to a alike and disagree: "
        "host.lifecycle in its agent's configuration or a row with its name in the column host decides"
    )
    assert t.disagreement("a", "m5.large", None, "aws", "spot") is None
    assert t.disagreement("a", "c5.large", None, "aws", None) is None
    assert t.disagreement("a", "p5", None, "aws", None) is None
    assert t.disagreement("node1", "m5.large", None, "aws", "spot") == (
        f"{path}: lines 7, 8: these rows apply to node1 alike and disagree: "
        "a row with its name in the column host decides"
    )
    same = table(tmp_path, HEADING + ",,m5.large,,0.1,,,,\n,,m5.*,,0.1,,,,\n")
    assert same.disagreement("a", "m5.large", None, None, None) is None
    assert per_hour(same, "a", "m5.large") == 0.1


def test_a_row_without_a_lifecycle_is_for_all_that_have_no_own(tmp_path: pathlib.Path) -> None:
    t = table(tmp_path, HEADING + "aws,,m5.large,,0.10,,,,\naws,,m5.large,spot,0.04,,,,\n")
    assert per_hour(t, "a", "m5.large", None, "aws", "spot") == 0.04
    assert per_hour(t, "a", "m5.large", None, "aws", "on-demand") == 0.10
    assert t.disagreement("a", "m5.large", None, "aws", "on-demand") is None
    assert per_hour(t, "a", "m5.large", None, "aws", None) is None
    assert t.disagreement("a", "m5.large", None, "aws", None) is not None


def test_columns_may_be_left_out_and_a_price_of_nothing_is_a_price(tmp_path: pathlib.Path) -> None:
    t = table(tmp_path, "# ours\ninstance_type, usd_per_hour ,gpu\n\np4d,0,8\n")
    price = t.of_host("a", "p4d")
    assert price is not None
    assert (price.per_hour, price.gpu, price.vcpu) == (0.0, 8.0, None)
    assert t.of_host("a", "p5") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no column instance_type"),
        ("instance_type,price\nm5,1\n", "line 1: no column usd_per_hour"),
        ("instance_type,usd_per_hour,colour\n", "line 1: unknown column colour"),
        ("# a\ninstance_type,usd_per_hour\n# b\nm5,cheap\n", 'line 4: usd_per_hour: "cheap" is not a number'),
        ("instance_type,usd_per_hour\nm5,-1\n", "line 2: usd_per_hour: -1 is not an amount"),
        ("instance_type,usd_per_hour\nm5,nan\n", "line 2: usd_per_hour: nan is not an amount"),
        ("instance_type,usd_per_hour\nm5,\n", "line 2: no usd_per_hour"),
        ("instance_type,usd_per_hour\nm5,1,2\n", "line 2: has 3 columns, the header has 2"),
        ("instance_type,usd_per_hour\n,1\n", "line 2: has neither instance_type nor host"),
        ('instance_type,usd_per_hour\n"m5,1\n', "is not a CSV file"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(tmp_path: pathlib.Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as e:
        table(tmp_path, text)
    assert message in str(e.value)


def test_files_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        prices.read(str(tmp_path / "none.csv"))
    with pytest.raises(UserError, match="Is a directory"):
        prices.read(str(tmp_path))
    (tmp_path / "x").write_bytes(b"instance_type,usd_per_hour\n\xff\xfe,1\n")
    with pytest.raises(UserError, match="is not a CSV file"):
        prices.read(str(tmp_path / "x"))


def test_the_example_is_a_table() -> None:
    t = prices.read(str(EXAMPLE))
    assert t.of_host("login1", None) is not None
    assert any(row.gpu for row in t.rows)


def test_the_cost_of_a_share() -> None:
    """The larger share of CPUs and memory, at most the whole machine; None where a part of it is unknown."""
    assert prices.larger_share((2, 8), (8, 16)) == 0.5
    assert prices.larger_share((2, 8), (None, 16)) == 0.25
    assert prices.larger_share((None, 8), (1, None), (1, 0)) is None
    assert prices.cost_of_share(2.0, 1_800_000_000_000, 0.5) == 0.5
    assert prices.cost_of_share(2.0, 1_800_000_000_000) == prices.cost_of_share(2.0, 1_800_000_000_000, 3.0) == 1.0
    assert (
        prices.cost_of_share(None, 1) is prices.cost_of_share(1.0, None) is prices.cost_of_share(1.0, 1, None) is None
    )
