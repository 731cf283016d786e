# SPDX-License-Identifier: Apache-2.0
"""What recommendations save, and steps that sizes do not fix."""

from __future__ import annotations

import dataclasses

import pytest
from executions import GIB, MIB, add_execution, add_run, same_in_runs
from lakes import LakeMaker
from recommend_kit import advices, of, only, price

from sluice_analytics.prices import Prices

# Money


def test_saving(maker: LakeMaker) -> None:
    # 1.00 an hour, 4 CPUs, 16 GiB; asked for all CPUs and half of the memory, for 360 s a run, once or twice.
    asked = {"requested_cpus": 4.0, "requested_memory_bytes": 8 * GIB}
    same_in_runs(maker, wall=360, cpu=300, programs=[(0, 360, 890)], **asked)
    add_execution(maker, "r0", start=400, wall=360, cpu=300, programs=[(0, 360, 890)], **asked)
    advice = only(maker)
    assert of(advice, "cpus").recommended == 1
    assert of(advice, "memory_bytes").recommended == 1024 * MIB  # 890 * 1.15 = 1023.5
    # Four executions over three runs of 0.1 hours each: asked 4/4; CPUs alone leave 8/16; both leave 1/4.
    assert of(advice, "cpus").saving == pytest.approx(4 / 3 * 0.1 * (1 - 0.5))
    assert of(advice, "memory_bytes").saving == pytest.approx(0)
    assert advice.saving == pytest.approx(4 / 3 * 0.1 * (1 - 0.25))


def test_saving_is_unknown_without_a_price_or_a_request(maker: LakeMaker) -> None:
    same_in_runs(maker)
    assert only(maker).saving is None


def test_saving_by_the_users_prices(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, price_per_hour=None, instance_type="m5.xlarge")
        add_execution(maker, f"r{n}", start=3600 * n, wall=360, cpu=300, requested_cpus=4.0)
    assert only(maker).saving is None
    table = Prices([price("m5.xlarge", 2.0, 4, 16)])
    assert only(maker, prices=table).saving == pytest.approx(2.0 * 0.1 * (1 - 0.25))


def test_the_price_is_that_of_the_lifecycle(maker: LakeMaker) -> None:
    """Also where the newest Host record is one of `sluice run`, which has no configuration."""
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, price_per_hour=None, instance_type="m5.xlarge" if n == 0 else None)
        maker.host(start=3600 * n + 20, end=3600 * n + 30, lifecycle="spot" if n == 0 else None)
        add_execution(maker, f"r{n}", start=3600 * n, wall=360, cpu=300, requested_cpus=4.0)
    rows = {life: dataclasses.replace(price("m5.xlarge", per, 4, 16), lifecycle=life) for life, per in
            (("on-demand", 2.0), ("spot", 0.5))}  # fmt: skip
    assert only(maker, prices=Prices([*rows.values()])).saving == pytest.approx(0.5 * 0.1 * (1 - 0.25))
    assert only(maker, prices=Prices([rows["on-demand"]])).saving is None


def test_a_limit_of_the_whole_run_saves_nothing_of_one_task(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, requested_cpus=4.0)
        for task in ("A", "B"):
            add_execution(maker, f"r{n}", task, start=3600 * n, requested_cpus=4.0)
    advice = advices(maker)["A"]
    assert of(advice, "cpus").current == 4
    assert advice.saving is None
    assert any("whole run" in note for note in advice.notes)


def test_a_cheaper_node_shape(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, instance_type="mem", cpus=4, memory_bytes=64 * GIB)
        add_execution(maker, f"r{n}", start=3600 * n, wall=100, cpu=195, programs=[(0, 100, 1780)])
    table = Prices([
        price("mem", 1.0, 4, 64), price("cpu", 0.4, 4, 8), price("small", 0.1, 1, 2), price("gpu", 0.01, 8, 64, gpu=1),
        price("shapeless", 0.001, None, None),
    ])  # fmt: skip
    (shape,) = [r for r in only(maker, prices=table).recommendations if r.what == "node_shape"]
    # 2 CPUs and 2 GiB: half of `mem` by CPUs, half of `cpu`; `small` is too small, `gpu` is left out.
    assert shape.evidence["instance_type"] == "cpu"
    assert (shape.current, shape.recommended) == (pytest.approx(0.5), pytest.approx(0.2))
    assert "no record has GPUs" in shape.evidence["gpu"]


# What sizes do not fix


@pytest.mark.parametrize("found", [{"bound": "IO"}, {"demand": "STORAGE", "denied": "NOTHING", "bound": "STARVED"}])
def test_steps_that_wait_for_storage(maker: LakeMaker, found: dict[str, str]) -> None:
    """By records of older agents, which have bound alone, and by those of others, of which it does not count."""
    same_in_runs(maker, wall=100, cpu=5, read_bytes=5000 * MIB, write_bytes=200 * MIB, rchar=20000 * MIB, **found)
    (said,) = [r for r in only(maker).recommendations if r.what == "storage"]
    assert said.evidence["median_read_bytes_per_s"] == pytest.approx(50 * MIB)
    assert said.evidence["place"] == "storage"
    assert (said.evidence["demand"], said.evidence["demand_executions"]) == ("STORAGE", 3)
    assert "reads 50 MiB/s and writes 2.0 MiB/s" in said.sentence
    assert "reads data again" in said.sentence


def test_steps_that_wait_for_a_network_file_system(maker: LakeMaker) -> None:
    found = {"demand": "NETWORK_FS", "denied": "NOTHING", "bound": "IO"}
    same_in_runs(maker, wall=100, cpu=5, rchar=400 * MIB, wchar=100 * MIB, **found)
    (said,) = [r for r in only(maker).recommendations if r.what == "storage"]
    assert said.evidence["place"] == "network file system"
    assert "in 3 of 3: it reads 4.0 MiB/s and writes 1.0 MiB/s by calls" in said.sentence


@pytest.mark.parametrize("found", [{"bound": "NETWORK"}, {"demand": "NETWORK", "denied": "NOTHING"}])
def test_steps_that_wait_for_the_network(maker: LakeMaker, found: dict[str, str]) -> None:
    same_in_runs(maker, wall=100, cpu=5, net_rx_bytes=900 * MIB, net_tx_bytes=100 * MIB, **found)
    (said,) = [r for r in only(maker).recommendations if r.what == "storage"]
    assert said.evidence["place"] == "network"
    assert said.evidence["median_net_bytes_per_s"] == pytest.approx(10 * MIB)


def test_steps_that_stall(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=100, cpu=1, bound="IDLE", share_idle=0.97)
    (said,) = [r for r in only(maker).recommendations if r.what == "investigate"]
    assert "97%" in said.sentence
    assert said.evidence["median_share_idle"] == 0.97
    assert said.sentence.endswith("see what it waits for")


def test_steps_that_stall_name_what_they_wait_for(maker: LakeMaker) -> None:
    for n, waits in enumerate(("PIPE", "PIPE", "LOCK")):
        add_run(maker, f"r{n}", start=3600 * n)
        found = {"demand": "WAITING_FOR", "waiting_for": waits, "denied": "NOTHING"}
        add_execution(maker, f"r{n}", start=3600 * n, wall=100, cpu=1, share_idle=0.97, **found)
    (said,) = [r for r in only(maker).recommendations if r.what == "investigate"]
    assert said.evidence["waiting_for"] == {"pipe": 2, "lock": 1}
    assert "(pipe in 2, lock in 1)" in said.sentence


def test_an_idle_step_by_bound_that_has_another_demand_does_not_stall(maker: LakeMaker) -> None:
    same_in_runs(maker, wall=100, cpu=1, bound="IDLE", demand="MIXED", denied="NOTHING", share_idle=0.97)
    assert [r.what for r in only(maker).recommendations] == ["cpus", "memory_bytes", "time_ns"]


def test_a_step_that_reads_by_calls_does_not_stall(maker: LakeMaker) -> None:
    # 50 MiB a second of a network file system: no block I/O of its own, which the agent takes for idle.
    same_in_runs(maker, wall=100, cpu=1, bound="IDLE", share_idle=0.97, rchar=5000 * MIB)
    assert [r.what for r in only(maker).recommendations] == ["cpus", "memory_bytes", "time_ns"]


def test_steps_that_vary_between_runs(maker: LakeMaker) -> None:
    for n, wall in enumerate((20, 20, 110)):
        add_run(maker, f"r{n}", start=3600 * n, wall=200)
        add_execution(maker, f"r{n}", start=3600 * n, wall=wall, cpu=wall / 2)
    (said,) = [r for r in only(maker).recommendations if r.what == "investigate"]
    # Mean 50, sum of squares 30² + 30² + 60² = 5400, / 2 = 2700, root 51.96.
    assert said.evidence["variation"] == pytest.approx(51.9615 / 50, rel=1e-4)
    assert "coefficient of variation 1.04 over 3 runs" in said.sentence


def test_samples_of_one_run_are_no_variance_between_runs(maker: LakeMaker) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, wall=400)
        for sample, wall in (("a", 20), ("b", 60), ("c", 300)):
            add_execution(maker, f"r{n}", start=3600 * n, wall=wall, cpu=wall / 2, sample=sample)
    assert [r.what for r in only(maker).recommendations] == ["cpus", "memory_bytes", "time_ns"]
