// SPDX-License-Identifier: Apache-2.0
// The run over time: the Gantt (page_gantt.js) and the curves below it, on one time axis. Vega draws (plots.py has the
// specifications); ticks, pointer, keys and zoom are here, for all plots at once.
"use strict";

const US = 1e6,
	ROW = 22,
	CHILDREN = 100;
const LENGTH = Math.max(((RUN.end_time ?? RUN.last_time) - RUN.start_us) / US, RUN.wall_ns / 1e9, 1e-6);
const per_second = n => n == null ? DASH : `${fmt.size(n)}/s`;
const CURVES = [
	{ id: "cpu", title: "CPU", write: fmt.cores, whole: fmt.number, capacity: capacity_of("cpus"), series: [
			["cpu_cores", "in use"]
		] },
	{ id: "memory", title: "Memory", write: fmt.size, binary: true, capacity: capacity_of("memory_bytes"), series: [
			["rss_bytes", "resident"]
		] },
	{ id: "io", title: "Storage", write: per_second, binary: true, series: [
			["read_bytes_per_s", "read"],
			["write_bytes_per_s", "written"]
		] },
	{ id: "network", title: "Network", write: per_second, binary: true, series: [
			["net_rx_bytes_per_s", "in"],
			["net_tx_bytes_per_s", "out"]
		] },
	{ id: "running", title: "Running", write: n => n == null ? DASH : fmt.number(Math.round(n * 10) / 10), series: [
			["running_tasks", "tasks"],
			["running_programs", "programs"]
		] },
];
const CURVE_COLORS = { cpu: ["compute", "compute"], memory: ["memory", "memory"], io: ["storage", "network-fs"], network: ["network", "mixed"],
	running: ["compute", "muted"] };
const has_curve = c => c.series.some(([name]) => (DATA.timeline.series[name] ?? []).some(v => v > 0));

const view = { from: 0, to: LENGTH, color: "demand", whole: false, failed: false, selected: null, open: new Set(), more: new Map() };
const plots = {};
let T; // the timeline's elements

// ---- ticks

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

function nice_step(least, binary) {
	const base = binary ? 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(least, 1)) / 10)) : 10 ** Math.floor(Math.log10(least));
	return (binary ? range(11).map(n => 2 ** n) : [1, 2, 5, 10]).map(m => m * base).find(s => s >= least) ?? base;
}

function time_ticks(from, to, most) {
	const least = (to - from) / most,
		step = least < 1 ? nice_step(least) : TIME_STEPS.find(s => s >= least) ?? Math.ceil(least / 604800) * 604800;
	const ticks = range(Math.floor(to / step + 1e-9) - Math.ceil(from / step - 1e-9) + 1).map(n => Number(((Math.ceil(from / step - 1e-9) +
		n) * step).toPrecision(12)));
	const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
	const two = n => String(n).padStart(2, "0");
	const label = t => step < 1 || (t < 60 && step < 60) ? `${t.toFixed(step < 1 ? digits : 0)} s` : t < 3600 && step < 60 ?
		`${Math.floor(t / 60)}m${two(t % 60)}s` : t < 3600 ? `${Math.round(t / 60)} min` :
		step < 60 ? `${Math.floor(t / 3600)}h${two(Math.floor(t / 60) % 60)}m${two(t % 60)}s` : t < 172800 || step < 86400 ?
		`${Math.floor(t / 3600)}h${two(Math.floor(t / 60) % 60)}m` : `${Math.floor(t / 86400)} days`;
	return { ticks, labels: ticks.map(t => t === 0 ? "0" : label(t)) };
}

// ---- elements

function timeline_section() {
	const curves = CURVES.filter(has_curve),
		flat = CURVES.filter(c => !has_curve(c) && c.id !== "running");
	const zoom = (label, title, act) => el("button", { type: "button", title, "aria-label": title, onclick: act }, label);
	const middle = () => (view.from + view.to) / 2,
		width = () => view.to - view.from;
	const colors = ["demand", "tool"].map(by => el("button", {
		type: "button",
		"aria-pressed": String(view.color === by),
		onclick: e => {
			view.color = by;
			e.target.parentNode.querySelectorAll("button").forEach(b => b.setAttribute("aria-pressed", String(b === e
				.target)));
			draw_timeline();
		}
	}, by));
	T = {
		readouts: new Map(),
		axis: el("div.plot", {
			role: "slider",
			tabindex: "0",
			"aria-label": "Moment of the run",
			"aria-valuemin": "0",
			"aria-valuemax": LENGTH.toFixed(3),
			"aria-valuenow": "0",
			onkeydown: axis_key
		}),
		tree: el("div.tree", { role: "tree", "aria-label": "Tasks and programs over time", onkeydown: tree_key }),
		bars: el("div.plot", { "aria-hidden": "true" }),
		legend: el("div.legend"),
		cursor: el("div.cursor", { hidden: true }),
		brush: el("div.brush", { hidden: true }),
		tip: el("div.tip", { hidden: true, role: "tooltip" }),
		curves: new Map(),
		selected: el("div.selected.small", { "aria-live": "polite" }, el("span.muted", {},
			"Choose a row for its figures. Drag over a plot to look closer."))
	};
	const tracks = curves.map(c => {
		const plot = el("div.plot", { "aria-hidden": "true" }),
			readout = el("div"),
			when = el("span.muted.small");
		T.curves.set(c.id, plot);
		T.readouts.set(c.id, { readout, when });
		return el("div.track.curve", { "data-curve": c.id }, el("div.side", {}, el("h3", {}, c.title, " ", when), readout), plot);
	});
	T.box = el("div.timeline", { onpointermove: pointer_moved, onpointerdown: pointer_down, onpointerleave: pointer_left },
		el("div.track.axis", {}, el("div.side", {}, "since the start"), T.axis), el("div.gantt", {}, T.tree, T.bars), tracks, T.cursor, T
		.brush);
	const failed = all_tasks().length > 1 && all_tasks().some(task_failed);
	const buttons = el("span.noprint", { role: "group", "aria-label": "Part of the run that is shown" },
		zoom("−", "Show more", () => set_range(middle() - width(), middle() + width())), " ",
		zoom("+", "Look closer", () => set_range(middle() - width() / 4, middle() + width() / 4)), " ",
		zoom("◀", "Earlier", () => set_range(view.from - width() / 2, view.to - width() / 2)), " ",
		zoom("▶", "Later", () => set_range(view.from + width() / 2, view.to + width() / 2)), " ",
		zoom("whole run", "Show the whole run", () => set_range(0, LENGTH)));
	const tools = [el("span.noprint", { role: "group", "aria-label": "Colour of the bars" }, el("span.muted.small", {}, "colour by "),
			colors[0], " ", colors[1]), buttons,
		failed ? el("label.check.noprint", {}, el("input", { type: "checkbox", id: "gantt-failed", onchange: e => { view.failed = e
					.target.checked;
				draw_timeline(); } }), "failed only") : null,
		CURVES.some(c => c.capacity != null) ? el("label.check.noprint", {}, el("input", { type: "checkbox", id: "whole-capacity",
			onchange: e => { view.whole = e.target.checked;
				draw_timeline(); } }), "scale to the host's capacity") : null
	];
	const notes = [flat.length ? `No ${flat.map(c => c.title.toLowerCase()).join(", no ")} to speak of.` : null,
		`Curves are means over ${fmt.us(DATA.timeline.bin)}; what a program used is spread evenly over each interval that the agent measured.`,
		DATA.gaps.length ? "Grey columns: nothing of the run was doing anything." : null
	];
	T.nodes = gantt_nodes();
	return section("timeline", "Over time", null, el("div.head", {}, tools), T.box, el("div", { class: "legend-line" }, T.legend),
		T.selected, el("p.muted.small", {}, notes.filter(n => n).join(" ")), left_out(DATA.left_out.tasks, "task execution"), T.tip);
}

// ---- pointer, keys, zoom

function set_range(from, to) {
	const width = Math.max(Math.min(to - from, LENGTH), Math.min(LENGTH, 0.002));
	view.from = Math.max(0, Math.min(from, LENGTH - width));
	view.to = view.from + width;
	draw_timeline();
}

const plot_area = () => T.axis.getBoundingClientRect();
const time_at = x => { const a = plot_area(); return view.from + (x - a.left) / a.width * (view.to - view.from); };
const x_of = t => { const a = plot_area(); return a.left - T.box.getBoundingClientRect().left - T.box.clientLeft + (t - view.from) / (view
		.to - view.from) * a.width; };

function show_moment(t) {
	T.cursor.hidden = t == null || t < view.from || t > view.to;
	if (!T.cursor.hidden) T.cursor.style.left = `${x_of(t)}px`;
	for (const c of CURVES.filter(has_curve)) draw_readout(c, t);
}

const value_at = (name, t) => DATA.timeline.series[name]?.[Math.floor((t * US - DATA.timeline.start) / DATA.timeline.bin)] ?? null;

function svg(tag, attributes, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
	e.append(...children);
	return e;
}

// What a curve's lines are, and their values at a time, or their largest.
function draw_readout(c, t) {
	const sample = n => svg("svg", { width: 18, height: 8, "aria-hidden": "true" }, svg("line", {
		x1: 0,
		x2: 18,
		y1: 4,
		y2: 4,
		"stroke-width": 2,
		stroke: n === 2 ? "var(--ink)" : `var(--${CURVE_COLORS[c.id][n]})`,
		"stroke-dasharray": ["none", "5 3", "1 3"][n]
	}));
	const rows = c.series.map(([name, word], n) => {
		const values = (DATA.timeline.series[name] ?? []).filter(v => v != null);
		return [n, `${c.write(t == null ? largest(values) : value_at(name, t))} ${word}`];
	});
	if (c.capacity != null) rows.push([2, `host${RUN.hosts.length > 1 ? "s have" : " has"} ${(c.whole ?? c.write)(c.capacity)}`]);
	T.readouts.get(c.id).when.textContent = t == null ? "peak" : `at ${fmt.ns(t * 1e9)}`;
	T.readouts.get(c.id).readout.replaceChildren(...rows.map(([n, words]) => el("div.row", { title: words }, n === 2 && !shows_capacity(c) ?
		null : sample(n), el("span", {}, words))));
}

function pointer_moved(e) {
	const a = plot_area(),
		inside = e.clientX >= a.left && e.clientX <= a.right,
		t = time_at(e.clientX);
	if (T.drag != null) {
		const [x, y] = [T.drag, Math.max(0, Math.min(LENGTH, t))].sort((p, q) => p - q);
		T.dragged ||= Math.abs(e.clientX - T.drag_x) > 4;
		T.brush.hidden = !T.dragged;
		T.brush.style.left = `${x_of(Math.max(x, view.from))}px`;
		T.brush.style.width = `${x_of(Math.min(y, view.to)) - x_of(Math.max(x, view.from))}px`;
	}
	show_moment(inside ? t : null);
	const row = e.target.closest?.(".trow"),
		r = row && T.rows.find(n => n.id === row.dataset.id);
	const words = r && (inside && r.kind === "group" ?
		r.of.filter(i => task_span(i)[0] <= t && t <= task_span(i)[1]).slice(0, 5).map(i => row_words({ kind: "task", at: i })) :
		[row_words(r), r.kind === "program" ? text_of(PROGRAMS.command[r.at]) : null]).filter(w => w);
	T.tip.hidden = !words?.length || T.dragged;
	if (!T.tip.hidden) {
		T.tip.replaceChildren(...words.map(w => el("div", {}, w)), inside ? el("div.muted", {},
			`at ${fmt.ns(t * 1e9)}, ${fmt.time(RUN.start_us + t * US)}`) : "");
		T.tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, document.documentElement.clientWidth - T.tip.offsetWidth - 8))}px`;
		T.tip.style.top = `${e.clientY + 18 + T.tip.offsetHeight > innerHeight ? e.clientY - T.tip.offsetHeight - 10 : e.clientY + 18}px`;
	}
}

function pointer_left() {
	show_moment(null);
	T.tip.hidden = true;
}

function pointer_down(e) {
	const a = plot_area();
	T.dragged = false;
	if (e.button !== 0 || e.pointerType === "touch" || e.clientX < a.left || e.clientX > a.right) return;
	T.drag = time_at(e.clientX);
	T.drag_x = e.clientX;
	addEventListener("pointerup", up => {
		const [x, y] = [T.drag, Math.max(0, Math.min(LENGTH, time_at(up.clientX)))].sort((p, q) => p - q);
		T.drag = null;
		T.brush.hidden = true;
		if (T.dragged) { set_range(x, y);
			setTimeout(() => { T.dragged = false; }); }
	}, { once: true });
	if (!e.target.closest(".trow")) e.preventDefault();
}

function axis_key(e) {
	const width = view.to - view.from,
		now = Number(T.axis.getAttribute("aria-valuenow"));
	const to = { ArrowRight: now + width / 100, ArrowLeft: now - width / 100, PageUp: now + width / 10, PageDown: now - width / 10,
		Home: view.from, End: view.to } [e.key];
	if (to == null) return;
	e.preventDefault();
	const t = Math.max(view.from, Math.min(view.to, to));
	T.axis.setAttribute("aria-valuenow", t.toFixed(6));
	T.axis.setAttribute("aria-valuetext", [fmt.ns(t * 1e9), ...CURVES.filter(has_curve).flatMap(c => c.series.map(([name, word]) =>
		`${c.title} ${word} ${c.write(value_at(name, t))}`))].join(", "));
	show_moment(t);
}

// ---- drawing

const curve_top = c => largest(c.series.flatMap(([name]) => DATA.timeline.series[name] ?? [])) ?? 0;
const shows_capacity = c => c.capacity != null && (view.whole || c.capacity <= 3 * curve_top(c));

function set_plot(name, width, height, signals, data) {
	const v = plots[name];
	if (!v) return;
	v.width(width).height(height);
	for (const [signal, value] of Object.entries(signals)) v.signal(signal, value);
	for (const [set, rows] of Object.entries(data)) v.data(set, rows);
	v.run();
}

function draw_legend(rows) {
	const used = new Set();
	const key = i => view.color === "tool" ? task_tool.get(i) ?? null : task_text("demand", i);
	for (const r of rows) {
		if (r.kind === "task") used.add(key(r.at));
		else if (r.kind === "group") r.of.forEach(i => used.add(key(i)));
		else if (r.kind === "program" && view.color === "tool") used.add(text_of(PROGRAMS.tool[r.at]));
	}
	const chip = (color, ...words) => el("span.chip", {}, el("span.swatch", { "--c": color }), words);
	const chips = view.color === "demand" ? Object.keys(DEMANDS).filter(d => used.has(d)).map(d => chip(demand_color(d),
			`${DEMANDS[d][0]} ${DEMANDS[d][1]}`)) :
		[...tool_rank].filter(([t, rank]) => used.has(t) && rank < 6).map(([t]) => chip(tool_color(t), t)).concat([...used].some(t => !(
			tool_rank.get(t) < 6)) ? [chip("var(--tool-other)", "others")] : []);
	if (view.color === "demand" && (used.has(null) || rows.some(r => r.kind === "none"))) chips.push(chip(demand_color(null), "no verdict"));
	if (DATA.critical_path.length) chips.push(el("span.chip", {}, el("span.swatch.thin", { "--c": "var(--ink)" }), "critical path"));
	if (rows.some(r => r.failed)) chips.push(el("span.chip", {}, el("span.bad", {}, "✖"), "failed"));
	T.legend.replaceChildren(...chips);
}

function draw_timeline() {
	const width = Math.max(40, Math.floor(T.axis.clientWidth)),
		{ ticks, labels } = time_ticks(view.from, view.to, Math.max(2, Math.floor(width / 95)));
	const common = { from: view.from, to: view.to, ticks };
	const gaps = DATA.gaps.map(([a, b]) => ({ x: a / US, x2: b / US }));
	T.rows = visible_rows(T.nodes);
	draw_rows(T.rows);
	draw_legend(T.rows);
	set_plot("axis", width, 1, { ...common, labels }, { rows: [] });
	set_plot("gantt", width, T.rows.length * ROW, { ...common, rows: T.rows.length }, { ...bars_of(T.rows), gaps });
	for (const c of CURVES.filter(has_curve)) {
		const highest = Math.max(curve_top(c), shows_capacity(c) ? c.capacity : 0),
			step = nice_step(highest / 3, c.binary);
		const yticks = range(Math.floor(highest / step + 1e-9)).map(n => (n + 1) * step);
		const at = n => (DATA.timeline.start + n * DATA.timeline.bin) / US;
		const points = c.series.flatMap(([name], s) => { const v = DATA.timeline.series[name] ?? []; return v.length ? [...v.map((value,
				n) => ({ x: at(n), v: value, s })), { x: Math.min(at(v.length), Math.max(LENGTH, at(v.length - 1))), v: v
					.at(-1), s }] : []; });
		set_plot(c.id, width, T.curves.get(c.id).clientHeight, { ...common, top: highest * 1.22, yticks, ylabels: yticks.map(c.write),
			color0: `var(--${CURVE_COLORS[c.id][0]})`, color1: `var(--${CURVE_COLORS[c.id][1]})` }, { points, gaps,
			capacity: shows_capacity(c) ? [{ v: c.capacity }] : [] });
		draw_readout(c, null);
	}
}

async function timeline_start() {
	const make = async (name, spec, element, top) => {
		const inner = el("div", { "aria-hidden": "true" }); // Vega gives it a role of its own
		element.append(inner);
		const made = await vegaEmbed(inner, structuredClone(SPECS[spec]), { mode: "vega", ast: true, actions: false,
			renderer: "svg", defaultStyle: false, tooltip: false, hover: false, padding: { top, left: 0, right: 0,
				bottom: 0 } });
		plots[name] = made.view;
	};
	await Promise.all([make("axis", "axis", T.axis, 25), make("gantt", "gantt", T.bars, 0), ...CURVES.filter(has_curve).map(c => make(c
		.id, "curve", T.curves.get(c.id), 0))]);
	draw_timeline();
	let width = T.axis.clientWidth;
	new ResizeObserver(() => { if (T.axis.clientWidth !== width) { width = T.axis.clientWidth;
			draw_timeline(); } }).observe(T.axis);
	// Paper has another width, and printing does not wait: drawn at once, for one that fits all papers.
	const paper = on => () => { document.documentElement.classList.toggle("paper", on);
		draw_timeline(); };
	addEventListener("beforeprint", paper(true));
	addEventListener("afterprint", paper(false));
	document.documentElement.dataset.drawn = "yes";
}
