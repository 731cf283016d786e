# SPDX-License-Identifier: Apache-2.0
"""The plots of the HTML page as Vega specifications: what they draw, not the data.

Altair writes Vega-Lite, vl-convert compiles it here, and the page runs Vega with its expression interpreter,
so that the page's Content-Security-Policy needs no eval. Each plot fills its element edge to edge, has no
title, legend or tooltip of its own, and draws in the page's CSS colours: page_timeline.js gives it size, time
range, ticks and rows, and does what a reader does with pointer and keys, for all plots at once.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

_FONT = "system-ui, sans-serif"
_LABEL = 11


def _params(*names: str) -> list[Any]:
    """What the page sets: from and to (seconds since the run's start), ticks with their labels, and more."""
    empty: dict[str, Any] = {"ticks": [], "labels": [], "yticks": [], "ylabels": []}
    return [alt.param(name=name, value=empty.get(name, 1)) for name in names]


def _x(**axis: Any) -> alt.X:
    scale = alt.Scale(domain=[alt.expr("from"), alt.expr("to")], nice=False, zero=False)
    return alt.X("x:Q", scale=scale, axis=alt.Axis(values=alt.ExprRef("ticks"), **axis) if axis else None)


def _grid() -> alt.X:
    return _x(grid=True, labels=False, ticks=False, domain=False, title=None)


def _compile(chart: Any) -> dict[str, Any]:
    spec = chart.configure(
        font=_FONT,
        background="transparent",
        padding=0,
        aria=False,
        autosize=alt.AutoSizeParams(type="none", contains="content"),
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(gridColor="var(--grid)", labelColor="var(--muted)", labelFontSize=_LABEL),
    )
    compiled: dict[str, Any] = vl_convert.vegalite_to_vega(spec.to_dict(), vl_version="6.4")
    del compiled["$schema"]  # an address, of which the page has none
    return compiled


def time_axis() -> dict[str, Any]:
    """The axis above all plots. Data: none of its own."""
    label = "labels[indexof(ticks, datum.value)]"
    x = _x(orient="top", labelExpr=label, grid=False, domain=False, tickColor="var(--line)", labelFlush=24, title=None)
    chart = alt.Chart(alt.NamedData("rows")).mark_rect(opacity=0).encode(x=x)
    return _compile(chart.add_params(*_params("from", "to", "ticks", "labels")).properties(width=100, height=1))


def gantt() -> dict[str, Any]:
    """Bars over time.

    Data `bars`: x, x2 seconds; y, y2 rows from the top; fill, stroke: CSS colours; dash: a bar that still ran.
    Data `marks`: x seconds, y rows, text: the label behind a bar that failed.
    Data `gaps`: x, x2 in which nothing of the run did anything. Param rows: how many rows there are.
    """
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, alt.expr("rows")], reverse=True, nice=False), axis=None)
    gaps = (
        alt.Chart(alt.NamedData("gaps"))
        .mark_rect(clip=True, color="var(--gap)")
        .encode(x=_grid(), x2="x2:Q", y=alt.value(0), y2=alt.value(alt.expr("height")))
    )
    bars = (
        alt.Chart(alt.NamedData("bars"))
        .mark_rect(clip=True, strokeWidth=1)
        .encode(
            x=_grid(),
            x2="x2:Q",
            y=y,
            y2="y2:Q",
            fill=alt.Fill("fill:N", scale=None),
            stroke=alt.Stroke("stroke:N", scale=None),
            fillOpacity=alt.condition("datum.dash", alt.value(0.45), alt.value(1)),
        )
    )
    marks = (
        alt.Chart(alt.NamedData("marks"))
        .mark_text(clip=True, align="left", baseline="middle", dx=4, fontSize=12, fontWeight="bold", color="var(--bad)")
        .encode(x=_grid(), y=y, text="text:N")
    )
    params = _params("from", "to", "ticks", "rows")
    return _compile(alt.layer(gaps, bars, marks).add_params(*params).properties(width=100, height=100))


def curve() -> dict[str, Any]:
    """One or two means over time as steps, the first solid and filled, the second dashed; and a capacity.

    Data `points`: x seconds, v the value, s 0 or 1. Data `capacity`: v. Data `gaps` as in gantt(). Params: top
    (the largest value that the axis shows), yticks with ylabels, color0, color1.
    """
    y_axis = alt.Axis(
        values=alt.ExprRef("yticks"), labelExpr="ylabels[indexof(yticks, datum.value)]", title=None, domain=False,
        ticks=False, labelAlign="left", labelBaseline="bottom", labelPadding=-4, labelOffset=-2, zindex=1,
    )  # fmt: skip
    y = alt.Y("v:Q", scale=alt.Scale(domain=[0, alt.expr("top")], nice=False), axis=y_axis, stack=None)
    gaps = (
        alt.Chart(alt.NamedData("gaps"))
        .mark_rect(clip=True, color="var(--gap)")
        .encode(x=_grid(), x2="x2:Q", y=alt.value(0), y2=alt.value(alt.expr("height")))
    )
    points = alt.Chart(alt.NamedData("points"))
    first, second = points.transform_filter("datum.s == 0"), points.transform_filter("datum.s == 1")
    steps: dict[str, Any] = {"clip": True, "interpolate": "step-after"}
    area = first.mark_area(**steps, opacity=0.22, color=alt.expr("color0")).encode(x=_grid(), y=y)
    line = first.mark_line(**steps, strokeWidth=1.5, color=alt.expr("color0")).encode(x=_grid(), y=y)
    dashed = second.mark_line(**steps, strokeWidth=1.5, strokeDash=[5, 3], color=alt.expr("color1"))
    other = dashed.encode(x=_grid(), y=y)
    capacity = (
        alt.Chart(alt.NamedData("capacity"))
        .mark_rule(clip=True, strokeWidth=1.5, strokeDash=[1, 3], color="var(--ink)")
        .encode(y=y)
    )
    params = _params("from", "to", "ticks", "top", "yticks", "ylabels", "color0", "color1")
    layers = alt.layer(gaps, area, line, other, capacity)
    return _compile(layers.add_params(*params).properties(width=100, height=64))


def specs() -> dict[str, Any]:
    """All of them, by the names that page_timeline.js uses."""
    return {"axis": time_axis(), "gantt": gantt(), "curve": curve()}


def library() -> str:
    """Vega with vega-embed and its expression interpreter as one script, about 0.9 MB; it fetches nothing.

    Vega alone is 0.3 MB less, but would need eval, which a page full of foreign text had better forbid.
    """
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version="6.4")
    return f"(() => {{\n{bundle}\n}})();"  # its names are its own
