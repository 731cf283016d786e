# SPDX-License-Identifier: Apache-2.0
"""sweep: the parts of host time, on made lakes whose answer was worked out by hand or second by second."""

from __future__ import annotations

import pathlib
import random

import pytest
from lakes import GIB, LakeMaker, S

from sluice_analytics.errors import NotFound
from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.prices import Price, Prices
from sluice_analytics.sweep import report
from sluice_analytics.sweep.attribution import CLASSES, MEMORY_CLASSES
from sluice_analytics.sweep.period import Period

HOUR = 3600


def price(per_hour: float, host: str = "node1", gpu: float | None = None) -> Prices:
    return Prices([Price(host=host, per_hour=per_hour, gpu=gpu)])


def sweep(
    lake: LakeMaker,
    since: float = 0,
    until: float = HOUR,
    prices: Prices | None = None,
    by: str = "host",
) -> report.SweepReport:
    """Host time alone, without findings."""
    lake.write()
    with DuckSession(str(lake.path)) as session:
        return report.host_time(session, Period(lake.us(since), lake.us(until)), prices or Prices(), by)


def seconds(cpu: dict[str, float]) -> dict[str, float]:
    return {name: round(value / S, 3) for name, value in cpu.items()}


def test_the_price_is_that_of_the_lifecycle_or_of_the_records(maker: LakeMaker) -> None:
    rows = [
        Price(line=2, instance_type="m5.large", lifecycle="on-demand", per_hour=2.0),
        Price(line=3, instance_type="m5.large", lifecycle="spot", per_hour=0.5),
    ]
    for n, (facts, per_hour, source) in enumerate((
        ({"lifecycle": "spot", "price_per_hour": 7.0}, 0.5, "price table"),
        ({"lifecycle": "on-demand"}, 2.0, "price table"),
        ({"lifecycle": "capacity-block", "price_per_hour": 7.0}, 7.0, "records"),
        ({"price_per_hour": 7.0}, 7.0, "records"),
        ({}, None, "unknown"),
    )):  # fmt: skip
        maker.host(start=0, end=HOUR, host_id=f"h{n}", host_name=f"node{n}", instance_type="m5.large", **facts)
        found = sweep(maker, prices=Prices(rows, path="prices.csv"))
        (host,) = [h for h in found.hosts if h.host_name == f"node{n}"]
        assert (host.price_per_hour, host.price_source) == (per_hour, source)
    at = "prices.csv: lines 2, 3: these rows apply to"
    keys = "host.lifecycle in its agent's configuration or a row with its name in the column host decides"
    why = f"alike and disagree: {keys}"
    assert [w for w in found.warnings if w.startswith("prices.csv")] == [
        f"{at} node3 {why}; the price in its records is used", f"{at} node4 {why}; its price is unknown",
    ]  # fmt: skip


def test_every_part_of_an_hour(maker: LakeMaker) -> None:
    for n in range(6):
        busy = 90 + (600 if n in (1, 2) else 0)
        maker.host(start=n * 600, end=n * 600 + 600, cpu_busy_ns=busy * S, cpu_steal_ns=6 * S, cpu_iowait_ns=S)
    maker.run(run_id="r1", start=600, end=1800, requested_cpus=3.0)
    maker.program(run_id="r1", start=600, end=1800, cpu_user_ns=1000 * S, cpu_system_ns=200 * S)
    maker.program(start=0, end=3600, cpu_user_ns=360 * S)
    found = sweep(maker, prices=price(14.4))
    (hour,) = found.hours
    assert hour.capacity == 4 * HOUR * S
    assert seconds(hour.cpu) == {
        "runs": 1200.0,
        "outside": 360.0,
        "other": 180.0,  # 6 x 90 busy + 1200, less 1200 + 360
        "stolen": 36.0,
        "reserved": 2400.0,  # 3 CPUs x 1200 s, less 1200
        "idle_run": 1008.0,  # 2 x (2400 - 690 - 6), less 2400
        "idle_none": 9216.0,  # 4 x (2400 - 90 - 6)
        "unknown": 0.0,
    }
    assert round(hour.residue / S, 3) == 0
    assert hour.iowait_ns == 6 * S
    # 14.40 an hour is 0.001 a CPU second
    assert found.total.money == pytest.approx(14.4)
    assert found.total.money_by_class is not None
    assert found.total.money_by_class["reserved"] == pytest.approx(2.4)
    assert found.total.money_wasted == pytest.approx((2400 + 1008 + 9216) / 1000)
    assert found.warnings == []


def test_memory_of_an_hour(maker: LakeMaker) -> None:
    maker.host(
        end=3600,
        memory_bytes=16 * GIB,
        memory_available_bytes=10 * GIB,
        rss_attributed_bytes=2 * GIB,
        interval_ns=HOUR * S,
    )
    maker.run(run_id="r1", start=0, end=3600, requested_memory_bytes=6 * GIB)
    maker.program(run_id="r1", start=0, end=3600, peak_rss_bytes=2 * GIB)
    (hour,) = sweep(maker).hours
    gib_hours = {name: round(value / GIB / S / HOUR, 6) for name, value in hour.memory.items()}
    assert gib_hours == {"runs": 2, "other": 4, "reserved": 4, "free": 6, "unknown": 0}
    assert hour.memory_residue == 0


def test_what_is_reserved_is_never_more_than_what_is_left(maker: LakeMaker) -> None:
    maker.host(end=3600, interval_ns=HOUR * S, cpu_busy_ns=3 * HOUR * S)
    maker.run(run_id="r1", start=0, end=1800, requested_cpus=8.0)
    maker.program(run_id="r1", start=0, end=3600, cpu_user_ns=2 * HOUR * S)
    cpu = seconds(sweep(maker).hours[0].cpu)
    # Idle is 3600 CPU seconds, half of the hour had the run; 8 x 1800 - 7200 would be 7200.
    assert (cpu["reserved"], cpu["idle_run"], cpu["idle_none"], cpu["other"]) == (1800, 0, 1800, 3600)


def test_a_request_counts_once_for_a_run_its_tasks_and_the_runs_inside_it(maker: LakeMaker) -> None:
    maker.host(end=3600, interval_ns=HOUR * S, cpu_busy_ns=HOUR * S)
    maker.run(run_id="job", start=0, end=3600, requested_cpus=3.0)
    maker.run(run_id="engine", parent_run_id="job", start=0, end=3600, requested_cpus=3.0)
    maker.task(run_id="engine", task_id="a", start=0, end=3600, requested_cpus=3.0)
    maker.task(run_id="engine", task_id="b", start=0, end=3600, requested_cpus=2.0)
    maker.program(run_id="engine", task_id="a", start=0, end=3600, cpu_user_ns=HOUR * S)
    cpu = seconds(sweep(maker).hours[0].cpu)
    assert (cpu["runs"], cpu["reserved"], cpu["idle_run"]) == (3600, 2 * 3600, 3600)


def test_tasks_of_a_run_without_a_request_reserve_each_by_itself(maker: LakeMaker) -> None:
    maker.host(end=3600, interval_ns=HOUR * S, cpu_busy_ns=1.5 * HOUR * S)
    maker.run(run_id="r1", start=0, end=3600)
    maker.task(run_id="r1", task_id="a", start=0, end=1800, requested_cpus=2.0)
    maker.task(run_id="r1", task_id="b", start=0, end=3600, requested_cpus=1.0)
    maker.program(run_id="r1", task_id="a", start=0, end=1800, cpu_user_ns=900 * S)
    maker.program(run_id="r1", task_id="b", start=0, end=3600, cpu_user_ns=4500 * S)  # took more than it asked for
    assert seconds(sweep(maker).hours[0].cpu)["reserved"] == 2 * 1800 - 900


def test_hours_are_cut_at_the_hour_and_at_the_period(maker: LakeMaker) -> None:
    for n in range(20):  # 2 h in intervals of 6 minutes
        maker.host(start=n * 360, end=n * 360 + 360, cpu_busy_ns=360 * S)
    maker.run(run_id="r1", start=0, end=7200)
    maker.program(run_id="r1", start=0, end=7200, cpu_user_ns=7200 * S)
    found = sweep(maker, since=1800, until=5400)
    assert [h.length_us for h in found.hours] == [1800_000_000, 1800_000_000]
    # The period begins after the program did: the totals of its END reach further back and are left out.
    assert [seconds(h.cpu)["other"] for h in found.hours] == [1800, 1800]
    for n in range(20):
        maker.usage(run_id="r1", program_id="p", start=n * 360, end=n * 360 + 360, cpu_user_ns=360 * S)
    found = sweep(maker, since=1800, until=5400)
    assert [seconds(h.cpu)["runs"] for h in found.hours] == [1800, 1800]
    assert [seconds(h.cpu)["idle_run"] for h in found.hours] == [3 * 1800, 3 * 1800]


def test_time_that_nobody_watched_is_unknown(maker: LakeMaker) -> None:
    for start in (*range(0, 1200, 300), *range(2400, 3600, 300)):
        maker.host(start=start, end=start + 300, cpu_busy_ns=300 * S)
    maker.agent("GAP", at=2400, interval_ns=1200 * S)
    maker.run(run_id="r1", start=0, end=3600)
    maker.program(run_id="r1", start=0, end=3600, cpu_user_ns=2400 * S)
    found = sweep(maker)
    (hour,) = found.hours
    assert (hour.length_us, hour.covered_us) == (3600_000_000, 2400_000_000)
    assert hour.capacity == 4 * HOUR * S
    assert seconds(hour.cpu) == dict.fromkeys(CLASSES, 0) | {"runs": 2400, "idle_run": 3 * 2400, "unknown": 4800}
    (loss,) = found.losses
    assert (loss.kind, loss.start_us, loss.end_us) == ("AWAY", maker.us(1200), maker.us(2400))


def test_use_in_unwatched_time_is_known_and_only_the_rest_unknown(maker: LakeMaker) -> None:
    for start in (*range(0, 1200, 300), *range(2400, 3600, 300)):
        maker.host(start=start, end=start + 300, cpu_busy_ns=300 * S)
    maker.run(run_id="r1", start=0, end=3600)
    maker.program(run_id="r1", start=0, end=3600, cpu_user_ns=3600 * S)
    cpu = seconds(sweep(maker).hours[0].cpu)
    assert (cpu["runs"], cpu["unknown"]) == (3600, 4800 - 1200)


def test_busy_time_is_unknown_where_records_of_programs_were_lost(maker: LakeMaker) -> None:
    maker.host(start=0, end=3600, interval_ns=HOUR * S, cpu_busy_ns=HOUR * S)
    maker.host(start=3600, end=7200, interval_ns=HOUR * S, cpu_busy_ns=HOUR * S)
    p = maker.program(start=0)
    maker.usage(p, start=0, end=1000, cpu_user_ns=1000 * S)
    maker.skip("usage", 3)
    maker.usage(p, start=2000, end=3000, cpu_user_ns=1000 * S)
    maker.usage(p, start=3000, end=4000, cpu_user_ns=0)
    found = sweep(maker, until=7200)
    first, second = (seconds(h.cpu) for h in found.hours)
    assert (first["outside"], first["other"], first["unknown"]) == (2000, 0, 1600)
    assert (second["other"], second["unknown"]) == (3600, 0)
    assert [h.lost for h in found.hours] == [3, 0]
    assert [(x.kind, x.count, x.what) for x in found.losses] == [("SEQ_HOLE", 3, "usage")]


def test_holes_between_the_same_hours_are_one(maker: LakeMaker) -> None:
    """A full lake that gives up what a user has beyond its share has holes between any two other records."""
    for n in range(2):
        maker.host(start=n * HOUR, end=(n + 1) * HOUR, interval_ns=HOUR * S, cpu_busy_ns=HOUR * S)
    p = maker.program(start=0)
    for start in range(0, 7000, 1000):
        maker.usage(p, start=start, end=start + 1000, cpu_user_ns=S)
        maker.skip("usage", 2)
    maker.usage(p, start=7000, end=7100, cpu_user_ns=S)
    found = sweep(maker, until=7200)
    assert [(x.count, x.what) for x in found.losses] == [(4, "usage"), (2, "usage"), (8, "usage")]
    assert [h.lost for h in found.hours] == [4, 10]


def test_lost_events_count_from_record_to_record(maker: LakeMaker) -> None:
    def lost(n: int) -> list[dict[str, object]]:
        return [{"place": "on_exec", "reason": "ring_full", "count": n}]

    for n in range(2):
        maker.host(start=n * HOUR, end=(n + 1) * HOUR, interval_ns=HOUR * S, cpu_busy_ns=HOUR * S)
    maker.agent("LIVE", at=10, lost=lost(5))  # lost before the period began, for all that is known
    maker.agent("LIVE", at=1000, interval_ns=990 * S, lost=lost(5))
    maker.agent("LIVE", at=5000, interval_ns=10 * S, lost=lost(7))
    maker.agent("STOP", at=5010, lost=lost(7))
    maker.agent("START", at=5020, lost=[])
    maker.agent("LIVE", at=5030, lost=lost(4))  # a new life: from 0
    found = sweep(maker, until=7200)
    assert [(x.kind, x.count) for x in found.losses] == [("LOST_EVENTS", 2), ("LOST_EVENTS", 4)]
    assert [seconds(h.cpu)["unknown"] for h in found.hours] == [0, 3600]


def test_what_clocks_disagree_about_is_reported_as_residue(maker: LakeMaker) -> None:
    maker.host(end=3600, interval_ns=HOUR * S, cpu_busy_ns=1000 * S)
    maker.program(start=0, end=3600, cpu_user_ns=1300 * S)
    found = sweep(maker)
    (hour,) = found.hours
    assert hour.residue == pytest.approx(-300 * S)
    assert sum(hour.cpu.values()) + hour.residue == pytest.approx(hour.capacity)
    assert "-2.1 %" in found.warnings[0] and "1 of 1 host-hours" in found.warnings[0]


def test_a_host_that_two_agents_recorded_counts_once(maker: LakeMaker) -> None:
    for n in range(6):
        maker.host(start=n * 600, end=n * 600 + 600, cpu_busy_ns=600 * S)
    p = maker.program(start=600, end=1200, run_id="r1", cpu_user_ns=500 * S)
    maker.run(run_id="r1", start=600, end=1200)
    second = "00000000-0000-0000-0000-000000000002"
    maker.usage(p, start=600, end=1100, cpu_user_ns=400 * S)
    maker.host(start=600, end=1195, cpu_busy_ns=600 * S, agent_id=second, run_id="r1")
    maker.usage(p, start=600, end=1150, cpu_user_ns=450 * S, agent_id=second)
    found = sweep(maker)
    (hour,) = found.hours
    assert (hour.length_us, hour.covered_us) == (3600_000_000, 3600_000_000)
    assert seconds(hour.cpu)["runs"] == 500
    assert round(hour.residue) == 0
    assert any("left out" in w for w in found.warnings)


def test_between_two_recordings_of_sluice_run_there_is_no_host_time(maker: LakeMaker) -> None:
    for agent, start in (("a1", 0), ("a2", 3000)):
        run = f"run-{agent}"
        maker.host(start=start, end=start + 600, cpu_busy_ns=60 * S, agent_id=agent, run_id=run)
        maker.run(run_id=run, start=start, end=start + 600, agent_id=agent)
    found = sweep(maker)
    assert found.total.host_ns == 1200 * S
    assert [x.kind for x in found.losses] == ["NOT_RECORDED"]
    assert found.total.cpu_ns["unknown"] == 0


def test_an_unknown_price_is_never_nothing(maker: LakeMaker) -> None:
    maker.host(end=3600, interval_ns=HOUR * S)
    maker.host(end=3600, interval_ns=HOUR * S, host_id="f" * 32, host_name="node2")
    found = sweep(maker, prices=price(2.0))
    assert (found.total.money, found.total.unpriced_ns) == (pytest.approx(2.0), HOUR * S)
    assert {t.group: t.money for t in found.host_times} == {"node1": pytest.approx(2.0), "node2": None}
    assert sweep(maker).total.money is None


def test_a_price_in_the_records_stands_where_the_table_has_none(maker: LakeMaker) -> None:
    maker.host(end=3600, interval_ns=HOUR * S, price_per_hour=0.5)
    assert sweep(maker).total.money == pytest.approx(0.5)
    assert sweep(maker, prices=price(2.0)).total.money == pytest.approx(2.0)


def test_days(maker: LakeMaker) -> None:
    for n in range(36):  # from 12:00 over midnight to 24 h later
        maker.host(start=n * HOUR, end=(n + 1) * HOUR, interval_ns=HOUR * S)
    found = sweep(maker, until=36 * HOUR, by="day")
    assert [(t.group, t.host_ns) for t in found.host_times] == [
        ("2026-11-01", 12 * HOUR * S),
        ("2026-11-02", 24 * HOUR * S),
    ]


def test_a_lake_without_hosts(tmp_path: pathlib.Path) -> None:
    lake = LakeMaker(tmp_path / "lake")
    lake.run(run_id="r1", start=0, end=10)
    with pytest.raises(NotFound, match="has no records of hosts"):
        sweep(lake)
    lake.host(end=10)
    with pytest.raises(NotFound, match="the latest record of a host is of 2026-11-01 12:00:10Z"):
        sweep(lake, since=HOUR, until=2 * HOUR)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_parts_are_what_each_second_says(maker: LakeMaker, seed: int) -> None:
    """A host that is played second by second: the same classes, and parts that add up within 1 %."""
    dice = random.Random(seed)
    cpus, length, interval = 8, 3 * HOUR, 10
    runs_cpu, outside_cpu, other_cpu = [0.0] * length, [0.0] * length, [0.0] * length
    present, asked = [False] * length, [0.0] * length
    for r in range(dice.randint(3, 8)):
        start = dice.randrange(0, length - 600)
        end = min(length, start + dice.randrange(60, 5000))
        cores = dice.choice([0.0, 0.2, 0.9])
        request = dice.choice([None, 1.0])
        maker.run(run_id=f"r{r}", start=start, end=end, requested_cpus=request)
        p = maker.program(run_id=f"r{r}", start=start, end=end, cpu_user_ns=round(cores * (end - start) * S))
        told = start
        for tick in range(start // interval * interval + interval, end, interval):
            maker.usage(p, start=told, end=tick, cpu_user_ns=round(cores * (tick - told) * S))
            told = tick
        for t in range(start, end):
            runs_cpu[t] += cores
            present[t] = True
            asked[t] += max(0.0, (request or 0.0) - cores) if request else 0.0
    for _ in range(4):
        start = dice.randrange(0, length - 100)
        end = min(length, start + dice.randrange(1, 3000))
        maker.program(start=start, end=end, cpu_user_ns=round(0.3 * (end - start) * S))
        for t in range(start, end):
            outside_cpu[t] += 0.3
    for t in range(length):
        other_cpu[t] = dice.random() * 0.1
    for tick in range(0, length, interval):
        span = range(tick, tick + interval)
        maker.host(
            start=tick,
            end=tick + interval,
            cpus=cpus,
            cpu_busy_ns=round(sum(runs_cpu[t] + outside_cpu[t] + other_cpu[t] for t in span) * S),
        )
    found = sweep(maker, until=length)
    assert len(found.hours) == 3
    for hour in found.hours:
        begin = (hour.window - maker.t0) // 1_000_000
        span = range(begin, begin + HOUR)
        busy = [runs_cpu[t] + outside_cpu[t] + other_cpu[t] for t in span]
        idle_present = sum(cpus - b for b, t in zip(busy, span, strict=True) if present[t])
        expected = {
            "runs": sum(runs_cpu[t] for t in span),
            "outside": sum(outside_cpu[t] for t in span),
            "other": sum(other_cpu[t] for t in span),
            "reserved": sum(asked[t] for t in span),
            "idle_run": idle_present - sum(asked[t] for t in span),
            "idle_none": sum(cpus - b for b, t in zip(busy, span, strict=True) if not present[t]),
            "stolen": 0.0,
            "unknown": 0.0,
        }
        for name, value in expected.items():  # an interval that a run shares is spread evenly: 2 x 10 s a run
            assert hour.cpu[name] / S == pytest.approx(value, abs=0.005 * cpus * HOUR), name
        assert abs(hour.residue) <= 0.01 * hour.capacity
        assert sum(hour.cpu.values()) + hour.residue == pytest.approx(hour.capacity)
        assert sum(hour.memory.values()) + hour.memory_residue == pytest.approx(hour.memory_capacity)
        assert set(hour.memory) == set(MEMORY_CLASSES)
