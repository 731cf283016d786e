# SPDX-License-Identifier: Apache-2.0
"""The outcomes of matrix.py as text, and their totals."""
import collections

from workloads import DEMANDS

RIGHT_PART = 0.95
MARKS = {True: "right", False: "WRONG", None: "-"}
SHOWN_PART = 0.02  # of a bill


def heading(is_on):
    return (f"\ndelay accounting {'on' if is_on else 'off'}\n"
            f"  {'workload':41} {'demand':20} {'verdict':17}   {'waits for':14} {'verdict':15}   {'denied':9} verdict")


def row(outcome):
    """A line of the table."""
    label, v = outcome.label, outcome.verdict
    begin = f"  {outcome.workload:41} {label['demand']:20} "
    if outcome.absent:
        return f"{begin}not run here: {outcome.absent}"
    if not v:
        return f"{begin}failed: {'; '.join(outcome.untrue)}"
    demand, waiting_for, denied = (MARKS[outcome.marks[name]] for name in ("demand", "waiting_for", "denied"))
    untrue = "  not borne out: " + "; ".join(outcome.untrue) if outcome.untrue else ""
    return (f"{begin}{v.demand:11} {demand:5}   {label['waiting_for'] or '-':14} {v.waiting_for or '-':9} {waiting_for:5}   "
            f"{label['denied']:9} {v.denied:9} {denied}{untrue}")


def confusion(outcomes):
    """Labels of demand by verdicts, as lines. An answer that is right, too, counts as the label."""
    seen = collections.Counter()
    for o in outcomes:
        label = o.first_demand()
        seen[label, label if o.marks["demand"] else o.verdict.demand] += 1
    verdicts = {v for _, v in seen}
    columns = [d for d in DEMANDS if d in verdicts] + sorted(verdicts - set(DEMANDS))
    yield f"  {'label':12}" + "".join(f"{c:>12}" for c in columns)
    for demand in DEMANDS:
        if any(d == demand for d, _ in seen):
            yield f"  {demand:12}" + "".join(f"{seen[demand, c] or '.':>12}" for c in columns)


def _largest(figures):
    shown = sorted(((value, name) for name, value in figures.items() if value >= SHOWN_PART), reverse=True)
    return ", ".join(f"{name} {value:.2f}" for value, name in shown)


def why(outcome):
    """Lines about an outcome that is wrong: the bill, the oracle's figures, and where the threads slept."""
    v = outcome.verdict
    wrong = [f"{name} {getattr(v, name)}, not {outcome.label[name]}" for name, mark in outcome.marks.items() if mark is False]
    yield f"  {outcome.workload}: {'; '.join(wrong)} (confidence {v.confidence}, denied_share {v.denied_share})"
    yield f"    bill:   {_largest(v.bill)}"
    yield f"    oracle: {_largest(outcome.figures)}"
    for stack, share in outcome.stacks.items():
        yield f"    {share:.2f} {stack}"


def totals(outcomes):
    """Of one setting: (lines, whether all is well)."""
    ran, untrue = [o for o in outcomes if o.verdict], [o.workload for o in outcomes if o.untrue]
    lines, is_well = list(confusion(ran)), not untrue
    for what in ("demand", "waiting_for", "denied"):
        asked = [o.marks[what] for o in ran if o.marks[what] is not None]
        lines.append(f"  {what}: {sum(asked)} of {len(asked)} right" + (f", {sum(asked) / len(asked):.0%}" if asked else ""))
        if what == "demand":
            lines[-1] += f"; {sum(o.verdict.demand == o.first_demand() for o in ran)} of them as first labelled"
        is_well &= sum(asked) >= RIGHT_PART * len(asked)
    never = [o.workload for o in ran if o.must and not o.marks["demand"]]
    lines.append(f"  wrong, and never to be: {'; '.join(never) or 'none'}")
    is_well &= not never
    lines.append(f"  not run here: {'; '.join(f'{o.workload} ({o.absent})' for o in outcomes if o.absent) or 'none'}")
    lines.append(f"  not borne out: {'; '.join(untrue) or 'none'}")
    for o in ran:
        if False in o.marks.values():
            lines += why(o)
    return lines, is_well
