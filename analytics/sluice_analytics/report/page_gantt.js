// SPDX-License-Identifier: Apache-2.0
// The Gantt: tasks that open to programs, as a tree of rows for eye, pointer and keys, and the bars behind them.
"use strict";

const children_of = new Map(); // task or "none" → programs, by start
const tool_rank = new Map(DATA.tools.map(t => [t.tool, t]).sort((a, b) => (sum([b[1].usage.cpu_user_ns, b[1].usage.cpu_system_ns]) ?? 0) - (
	sum([a[1].usage.cpu_user_ns, a[1].usage.cpu_system_ns]) ?? 0)).map(([name], rank) => [name, rank]));
const tool_color = tool => tool_rank.get(tool) < 6 ? `var(--tool-${tool_rank.get(tool)})` : "var(--tool-other)";
const task_tool = new Map(); // task → the tool that used most CPU in it

function gantt_nodes() {
	for (const p of range(count_of(PROGRAMS))) {
		const at = program_home(p) ?? (PROGRAMS.task[p] == null && PROGRAMS.task_name[p] != null ? "rest" : "none");
		if (!children_of.has(at)) children_of.set(at, []);
		children_of.get(at).push(p);
	}
	for (const [task, programs] of children_of) {
		const by = new Map();
		for (const p of programs) by.set(text_of(PROGRAMS.tool[p]), (by.get(text_of(PROGRAMS.tool[p])) ?? 0) + (PROGRAMS.cpu[p] ?? 0));
		task_tool.set(task, largest_key(by));
	}
	const groups = new Map();
	for (const i of all_tasks()) groups.set(TASKS.name[i], [...groups.get(TASKS.name[i]) ?? [], i]);
	const nodes = [...groups].map(([name, of]) => of.length === 1 ? task_node(of[0], task_label(of[0])) : {
		id: `g${name}`,
		kind: "group",
		of,
		label: text_of(name),
		count: `${fmt.count(of.length)}×`,
		failed: of.some(task_failed),
		children: () => of.map(i => task_node(i, task_text("sample", i) ?? `${text_of(name)} ${of.indexOf(i) + 1}`)),
	});
	for (const [id, label] of [
			["rest", "of tasks left out"],
			["none", nodes.length ? "without a task" : "programs"]
		]) {
		const of = children_of.get(id);
		if (of) nodes.push({ id, kind: "none", label, count: fmt.count(of.length), failed: of.some(program_failed), children: () => of.map(
				program_node) });
	}
	for (const n of nodes)
		if (n.kind === "group" && (all_tasks().length <= 30 || (n.failed && n.of.length <= 50))) view.open.add(n.id);
	if (nodes.length === 1) view.open.add(nodes[0].id);
	return nodes;
}

const largest_key = map => [...map].reduce((a, b) => b[1] > a[1] ? b : a, [null, -1])[0];
const task_node = (i, label) => ({
	id: `t${i}`,
	kind: "task",
	at: i,
	label,
	failed: task_failed(i) || DATA.failures.some(f => f.task_id === TASKS.id[i] && !f.recovered),
	count: TASKS.retried[i] ? `try ${TASKS.attempt[i] ?? "?"}` : "",
	children: children_of.has(i) ? () => children_of.get(i).map(program_node) : null
});
const program_home = p => PROGRAMS.task[p] == null || TASKS.none[PROGRAMS.task[p]] ? null : PROGRAMS.task[p];
const program_node = i => ({ id: `p${i}`, kind: "program", at: i, label: text_of(PROGRAMS.tool[i]) ?? text_of(PROGRAMS.exe[i])?.split("/")
		.pop() ?? "?", failed: program_failed(i), children: null });

// What is seen of the tree, top to bottom.
function visible_rows(nodes, level = 1, id = "root", rows = []) {
	const wanted = view.failed ? nodes.filter(n => n.failed) : nodes,
		limit = view.more.get(id) ?? CHILDREN;
	for (const n of wanted.slice(0, limit)) {
		rows.push({ ...n, level });
		if (n.children && view.open.has(n.id)) visible_rows(n.children(), level + 1, n.id, rows);
	}
	if (wanted.length > limit) rows.push({ id: `more-${id}`, kind: "more", of: id, level,
		label: `${fmt.count(wanted.length - limit)} more: show ${fmt.count(Math.min(CHILDREN, wanted.length - limit))}` });
	return rows;
}

const task_span = i => [TASKS.start[i] / US, (TASKS.end[i] ?? RUN.last_time - RUN.start_us) / US];
const program_span = i => [PROGRAMS.start[i] / US, (PROGRAMS.end[i] ?? RUN.last_time - RUN.start_us) / US];
const task_color = i => view.color === "tool" ? tool_color(task_tool.get(i)) : demand_color(task_text("demand", i));
const program_color = i => view.color === "tool" ? tool_color(text_of(PROGRAMS.tool[i])) : program_home(i) == null ? demand_color(null) :
	task_color(PROGRAMS.task[i]);

function bars_of(rows) {
	const bars = [],
		marks = [],
		critical = new Set(DATA.critical_path);
	const bar = (row, [x, x2], height, fill, failed, dash, y = row + (1 - height) / 2) => {
		if (x2 < view.from || x > view.to) return;
		bars.push({ x, x2, y, y2: y + height, fill, stroke: failed ? "var(--bad)" : fill, dash: !!dash });
		if (failed) marks.push({ x: Math.max(view.from, Math.min(x2, view.to - (view.to - view.from) * 0.025)), y: row + 0.5,
			text: "✖" });
	};
	const task = (row, i, height) => {
		bar(row, task_span(i), height, task_color(i), task_failed(i), TASKS.end[i] == null);
		if (critical.has(i)) bar(row, task_span(i), 0.08, "var(--ink)", false, false, row + 0.86);
	};
	rows.forEach((r, row) => {
		if (r.kind === "task") task(row, r.at, 0.56);
		else if (r.kind === "program") bar(row, program_span(r.at), 0.36, program_color(r.at), r.failed, PROGRAMS.end[r.at] ==
		null);
		else if (r.kind === "group") view.open.has(r.id) ? merged(r.of.map(task_span)).forEach(span => bar(row, span, 0.14,
			"var(--unknown)")) : r.of.forEach(i => task(row, i, 0.56));
		else if (r.kind === "none") merged(children_of.get(r.id).map(program_span)).forEach(span => bar(row, span, 0.2,
			"var(--unknown)"));
	});
	return { bars, marks };
}

// Spans as one where they touch: a row of thousands stays some rectangles.
function merged(spans) {
	const all = spans.sort((a, b) => a[0] - b[0]),
		least = (view.to - view.from) / 2000,
		made = [];
	for (const [a, b] of all) {
		if (made.length && a <= made.at(-1)[1] + least) made.at(-1)[1] = Math.max(made.at(-1)[1], b);
		else made.push([a, b]);
	}
	return made;
}

// ---- the rows as elements

const row_mark = r => r.kind === "task" ? TASKS.demand[r.at] == null ? null : el("span.letter", { "--c": demand_color(task_text("demand", r
		.at)), title: DEMANDS[task_text("demand", r.at)]?.[1] }, DEMANDS[task_text("demand", r.at)]?.[0] ?? "?") : null;

function row_words(r) {
	const i = r.at,
		of = r.kind === "task" ? TASKS : PROGRAMS,
		exit = () => exit_text(of.exit_code[i], of.exit_signal[i], of.end[i] != null);
	if (r.kind === "task") {
		const demand = demand_text(task_text("demand", i), task_text("waiting_for", i)),
			denied = task_denied(i),
			words = [`${fmt.ns(TASKS.wall[i])} from ${fmt.us(TASKS.start[i])}`, exit(), demand && `demand: ${demand}`, denied &&
				`denied: ${denied}`, DATA.critical_path.includes(i) && "on the critical path"
			];
		return `${task_label(i)}: ${words.filter(w => w).join(", ")}`;
	}
	if (r.kind === "program") return `${r.label}: ${fmt.us(program_wall(i))} from ${fmt.us(PROGRAMS.start[i])}, ${exit()}`;
	return r.kind === "group" ? `${r.label}: ${some(r.of.length, "execution")}` : r.label;
}

function draw_rows(rows) {
	const focused = T.tree.contains(document.activeElement) ? document.activeElement.dataset.id : null;
	const stop = rows.find(r => r.id === view.selected)?.id ?? rows[0]?.id;
	T.tree.replaceChildren(...rows.map(r => el("div.trow", {
			role: "treeitem",
			"aria-level": r.level,
			"aria-label": row_words(r),
			"aria-expanded": r.children ? String(view.open.has(r.id)) : null,
			"aria-selected": String(r.id === view.selected),
			tabindex: r.id === stop ? "0" : "-1",
			"data-id": r.id,
			"--level": String(Math.min(r.level, 4)),
			onclick: () => choose(r, true),
			onfocus: () => choose(r, false)
		},
		el("span.name", {}, el("span.twist", { "aria-hidden": "true" }, r.children ? view.open.has(r.id) ? "▼" : "▶" : ""),
			row_mark(r),
			r.failed ? el("span.bad", {}, "✖") : null, el("span.text", {}, r.label), r.count ? el("span.count", {}, r.count) :
			null))));
	if (focused) T.tree.querySelector(`[data-id="${focused}"]`)?.focus();
}

// A row is chosen: its figures are shown below. Clicked, it opens or closes, too.
function choose(r, is_click) {
	if (T.dragged) return;
	if (r.kind === "more") {
		if (is_click) { view.more.set(r.of, (view.more.get(r.of) ?? CHILDREN) + CHILDREN);
			draw_timeline(); }
		return;
	}
	const is_new = view.selected !== r.id;
	view.selected = r.id;
	if (is_new) {
		const title = row_words(r),
			body = r.kind === "task" ? task_detail(r.at) : r.kind === "program" ? program_detail(r.at) : null;
		T.selected.replaceChildren(el("strong", {}, title), ...(body ? [body] : []));
		T.tree.querySelectorAll(".trow").forEach(e => { e.setAttribute("aria-selected", String(e.dataset.id === r.id));
			e.tabIndex = e.dataset.id === r.id ? 0 : -1; });
	}
	if (is_click && r.children) {
		view.open.has(r.id) ? view.open.delete(r.id) : view.open.add(r.id);
		draw_timeline();
		T.tree.querySelector(`[data-id="${r.id}"]`)?.focus();
	}
}

function tree_key(e) {
	const items = [...T.tree.querySelectorAll(".trow")],
		at = items.indexOf(document.activeElement),
		r = T.rows[at];
	if (at < 0) return;
	const go = n => items[Math.max(0, Math.min(items.length - 1, n))].focus();
	const parent = () => { for (let n = at - 1; n >= 0; n--)
			if (T.rows[n].level < r.level) return n; return at; };
	const act = {
		ArrowDown: () => go(at + 1),
		ArrowUp: () => go(at - 1),
		Home: () => go(0),
		End: () => go(items.length - 1),
		Enter: () => choose(r, true),
		" ": () => choose(r, true),
		ArrowRight: () => r.children && (view.open.has(r.id) ? go(at + 1) : choose(r, true)),
		ArrowLeft: () => r.children && view.open.has(r.id) ? choose(r, true) : go(parent())
	} [e.key];
	if (!act) return;
	e.preventDefault();
	act();
}
