# SPDX-License-Identifier: Apache-2.0
"""What tests of recommendations share: advice about a made-up lake, and a basis of made-up executions."""

from __future__ import annotations

from typing import Any

from lakes import T0, LakeMaker

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.model.verdict import Verdict
from sluice_analytics.prices import Price
from sluice_analytics.tune import recommend, sizes
from sluice_analytics.tune.advice import Advice
from sluice_analytics.tune.evidence import Execution, executions
from sluice_analytics.tune.find import all_runs
from sluice_analytics.tune.run_report import Recommendation

DAY_US = 86_400_000_000
NOW = T0 + DAY_US


def advices(lake: LakeMaker, **options: Any) -> dict[str, Advice]:
    lake.write()
    with DuckSession(str(lake.path)) as session:
        return {a.task: a for a in recommend.advices_of(session, **({"now_us": NOW} | options))}


def only(lake: LakeMaker, **options: Any) -> Advice:
    found = advices(lake, **options)
    assert len(found) == 1
    return next(iter(found.values()))


def of(advice: Advice, what: str) -> Recommendation:
    found = advice.of(what)
    assert found is not None, advice
    return found


def found_in(lake: LakeMaker) -> list[Execution]:
    lake.write()
    with DuckSession(str(lake.path)) as session:
        return executions(session, all_runs(session))


def price(name: str, per_hour: float, vcpu: float | None, gib: float | None, gpu: float | None = None) -> Price:
    return Price(instance_type=name, per_hour=per_hour, vcpu=vcpu, mem_gib=gib, gpu=gpu)


def made_basis(walls: list[float], runs: int, age_days: float) -> tuple[sizes.Basis, list[Execution]]:
    now = T0
    used = [
        Execution(
            pipeline="p", run_id=f"r{n % runs}", task="t", task_id=f"t{n}", sample=None, attempt=None, engine=None,
            source=None, host_ids=["h"], start_time=now - round(age_days * DAY_US), end_time=now,
            wall_ns=round(w * 1e9), cpu_ns=1, run_delay_ns=0, peak_program_bytes=1, read_bytes=0, write_bytes=0,
            rchar=0, wchar=0, net_bytes=0, threads_peak=1, requested_cpus=None, requested_memory_bytes=None,
            is_shared_limit=False, exit_code=0, exit_signal=None, verdict=Verdict(), share_idle=None,
            succeeded=True,
        )
        for n, w in enumerate(walls)
    ]  # fmt: skip
    return sizes.Basis("p", "t", used, used, {}, now), used
