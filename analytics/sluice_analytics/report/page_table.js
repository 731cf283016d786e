// SPDX-License-Identifier: Apache-2.0
// Tables: sorted by any column, searched, shown a page of rows at a time, rows that open.
"use strict";

const PAGE_ROWS = 50;

const task_text = (name, i) => text_of(TASKS[name][i]);
const task_use = (i, name) => TASKS.usage[i][USAGE.indexOf(name)];
const task_peak = i => TASKS.peak_memory[i] ?? task_use(i, "peak_rss_bytes");
const task_denied = i => denied_text(task_text("denied", i), TASKS.denied_share[i]);
const task_cpu = i => sum([task_use(i, "cpu_user_ns"), task_use(i, "cpu_system_ns")]);
const task_net = i => sum([task_use(i, "net_rx_bytes"), task_use(i, "net_tx_bytes")]);
const task_failed = i => is_failed(TASKS.exit_code[i], TASKS.exit_signal[i]);
const task_label = i => TASKS.none[i] ? "without a task" : [task_text("name", i), task_text("sample", i)].filter(x => x).join(" · ");
const program_failed = i => is_failed(PROGRAMS.exit_code[i], PROGRAMS.exit_signal[i]) || (PROGRAMS.flags[i] & 1) === 1;
const program_wall = i => (PROGRAMS.end[i] ?? RUN.last_time - RUN.start_us) - PROGRAMS.start[i];
const program_task = i => PROGRAMS.task[i] != null ? task_label(PROGRAMS.task[i]) : text_of(PROGRAMS.task_name[i]);

// A share as a number and a bar.
const meter = share => share == null ? DASH : [fmt.percent(share), el("span.meter", { "aria-hidden": "true" }, el("i", { "--w": "0" }))];

function draw_meters(root, shares) {
	root.querySelectorAll(".meter > i").forEach((bar, n) => { bar.style.width = `${Math.max(0, Math.min(1, shares[n])) * 100}%`; });
}

// columns: {title, value(row), show(row)?, num?, wide?, help?}; value is what is sorted by, null always last.
// options: caption, sort: [column, descending], search(row) → text, detail(row) → element, filters: [{label, test}].
function make_table(id, rows, columns, options) {
	let [by, down] = options.sort, shown = PAGE_ROWS, words = [];
	const filters = new Set(),
		opened = new Set(),
		texts = new Map();
	const body = el("tbody"),
		status = el("span.muted.small", { role: "status" });
	const more = el("button", { type: "button", onclick: () => { shown += 5 * PAGE_ROWS;
			draw(); } });
	const heads = columns.map((c, n) => el("th" + (c.num ? ".num" : ""), { scope: "col" },
		el("button", { type: "button", title: c.help, onclick: () => { down = by === n ? !down : !!c.num;
				by = n;
				shown = PAGE_ROWS;
				draw(); } }, c.title)));
	const matches = row => {
		for (const f of filters)
			if (!f.test(row)) return false;
		if (!words.length) return true;
		if (!texts.has(row)) texts.set(row, options.search(row).toLowerCase());
		return words.every(w => texts.get(row).includes(w));
	};
	const compare = (a, b) => {
		const x = columns[by].value(a),
			y = columns[by].value(b);
		if (x == null || y == null) return (x == null) - (y == null);
		return (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true })) *
			(down ? -1 : 1);
	};
	const turn = row => {
		opened.has(row) ? opened.delete(row) : opened.add(row);
		draw();
		body.querySelector(`[data-row="${key(row)}"] button`)?.focus();
	};
	const line = row => {
		const twist = options.detail && el("button.expand", { type: "button", "aria-expanded": String(opened.has(
			row)), "aria-label": "details", onclick: () => turn(row) }, opened.has(row) ? "▼" : "▶");
		const shares = [];
		const cells = columns.map((c, n) => {
			const value = c.show ? c.show(row) : fmt.text(c.value(row));
			if (c.share && c.value(row) != null) shares.push(c.value(row));
			return el((n === 0 ? "th" : "td") + (c.num ? ".num" : "") + (c.wide ? ".wide" : ""), { scope: n === 0 ? "row" :
					null }, n === 0 && twist, value);
		});
		const made = el("tr" + (opened.has(row) ? ".open" : ""), { "data-row": key(row) }, cells);
		draw_meters(made, shares);
		return opened.has(row) ? [made, el("tr.detail", {}, el("td", { colspan: columns.length }, options.detail(row)))] : [made];
	};
	const key = row => typeof row === "number" ? row : rows.indexOf(row);

	function draw() {
		const found = rows.filter(matches).sort(compare),
			page = found.slice(0, shown);
		body.replaceChildren(...page.flatMap(line));
		if (!page.length) body.append(el("tr", {}, el("td.muted", { colspan: columns.length }, "Nothing here matches.")));
		heads.forEach((h, n) => h.setAttribute("aria-sort", n !== by ? "none" : down ? "descending" : "ascending"));
		status.textContent = found.length === rows.length ? `${fmt.count(page.length)} of ${fmt.count(rows.length)} shown` :
			`${some(found.length, "match", "matches")} of ${fmt.count(rows.length)}, ${fmt.count(page.length)} shown`;
		more.hidden = found.length <= shown;
		more.textContent = `Show ${fmt.count(Math.min(5 * PAGE_ROWS, found.length - shown))} more`;
		status.hidden = rows.length <= PAGE_ROWS && found.length === rows.length;
	}
	let wait;
	const seek = () => {
		words = input.value.toLowerCase().split(/\s+/).filter(w => w);
		shown = PAGE_ROWS;
		draw();
	};
	const tick = f => e => {
		e.target.checked ? filters.add(f) : filters.delete(f);
		shown = PAGE_ROWS;
		draw();
	};
	const input = options.search && el("input", {
		type: "search",
		placeholder: options.placeholder ?? "Search",
		"aria-label": options.placeholder ?? "Search",
		autocomplete: "off",
		spellcheck: "false",
		oninput: () => { clearTimeout(wait);
			wait = setTimeout(seek, 80); }
	});
	const boxes = (options.filters ?? []).map(f => el("label.check", {}, el("input", { type: "checkbox", onchange: tick(f) }), f.label));
	draw();
	return [input || boxes.length ? el("div.head.noprint", {}, input, boxes) : null,
		el("div.scroll", { tabindex: "0", role: "region", "aria-label": options.caption }, el("table", { id }, el("caption.hidden", {},
			options.caption), el("thead", {}, el("tr", {}, heads)), body)),
		el("div.more-rows", {}, more, status)
	];
}

const median = values => {
	const v = values.filter(x => x != null).sort((a, b) => a - b),
		n = v.length;
	return n ? (v[(n - 1) >> 1] + v[n >> 1]) / 2 : null;
};
const largest = values => values.reduce((a, b) => a == null || (b != null && b > a) ? b : a, null);

// How many of these executions have each value of what(), the most first: [what it is made of, how many].
function kinds_of(of, what, parts) {
	const found = new Map();
	for (const i of of) {
		if (what(i) == null) continue;
		const key = parts(i).join();
		found.set(key, [parts(i), (found.get(key)?.[1] ?? 0) + 1]);
	}
	return [...found.values()].sort((a, b) => b[1] - a[1]);
}

const kinds_cell = (kinds, chip) => kinds.length ? kinds.slice(0, 3).map(([parts, n]) => el("div.keep", {}, chip(...parts), kinds.length > 1 ?
	` ${n}×` : "")) : DASH;

// One row a task name: its executions together.
function steps() {
	const by = new Map();
	for (const i of range(count_of(TASKS))) by.set(TASKS.name[i], [...by.get(TASKS.name[i]) ?? [], i]);
	return [...by].map(([name, of]) => {
		const none = TASKS.none[of[0]] === 1,
			wall = none ? [null] : of.map(i => TASKS.wall[i]),
			cpu = of.map(task_cpu);
		return {
			name: TASKS.none[of[0]] ? "without a task" : text_of(name),
			of,
			n: none ? null : of.length,
			failed: of.filter(task_failed).length,
			demands: kinds_of(of, i => task_text("demand", i), i => [task_text("demand", i), task_text("waiting_for", i)]),
			denials: kinds_of(of, i => denied_text(task_text("denied", i)), i => [task_text("denied", i)]),
			denied_share: largest(of.map(i => TASKS.denied_share[i])),
			wall: sum(wall),
			median: median(wall),
			longest: largest(wall),
			cpu: sum(cpu),
			parallelism: sum(wall) ? sum(cpu) / sum(wall) : null,
			cpu_efficiency: median(of.map(i => TASKS.cpu_efficiency[i])),
			memory_efficiency: largest(of.map(i => TASKS.memory_efficiency[i])),
			peak: largest(of.map(task_peak)),
			read: sum(of.map(i => task_use(i, "read_bytes"))),
			written: sum(of.map(i => task_use(i, "write_bytes"))),
			net: sum(of.map(task_net)),
			delay: sum(of.map(i => task_use(i, "run_delay_ns"))),
			cost: of.some(i => TASKS.cost[i] == null) ? null : sum(of.map(i => TASKS.cost[i])),
			advice: DATA.recommendations.filter(r => r.task === text_of(name)),
		};
	});
}

function short_advice(r) {
	const [word, write] = WHAT[r.what] ?? [r.what, fmt.number];
	return write && r.recommended != null ? `${word} ${write(r.recommended)}` : r.sentence;
}

function steps_section() {
	const rows = steps(),
		single = rows.every(s => s.n == null || s.n === 1),
		is_host = name => TASKS.over_host?.every((over, i) => over || TASKS[name][i] == null),
		of_cpu = is_host("cpu_efficiency"),
		of_memory = is_host("memory_efficiency");
	if (!rows.length) return section("steps", "By task", null, el("p.muted", {},
		"There is no record of tasks in this run: all programs are the driver's own."));
	const columns = [
		{ title: "Task", value: s => s.name },
		!single && { title: "n", value: s => s.n, show: s => fmt.count(s.n), num: true, help: "executions" },
		{ title: single ? "Exit" : "Failed", value: s => s.failed, show: s => TASKS.none[s.of[0]] ? "" : single ? exit_mark(TASKS
				.exit_code[s.of[0]], TASKS.exit_signal[s.of[0]], TASKS.end[s.of[0]] != null) : s.failed ? el("span.bad", {},
				`✖ ${s.failed}`) : "0", num: !single },
		{ title: "Demand", value: s => s.demands[0]?.[0].join(), show: s => kinds_cell(s.demands, demand_chip),
			help: "what it would be bound by on an idle host" },
		rows.some(s => s.denials.length) && { title: "Denied", value: s => s.denials.length ? s.denied_share : null,
			show: s => kinds_cell(s.denials, s.of.length === 1 ? denied => denied_chip(denied, s.denied_share) : denied_chip),
			help: "what neighbours or limits took" },
		DATA.recommendations.length && { title: "Recommended", value: s => s.advice.length || null, show: s => s.advice.length ? s
				.advice.map(short_advice).join("; ") : "", wide: rows.some(s => s.advice.length) },
		{ title: "Wall", value: s => s.wall, show: s => fmt.ns(s.wall), num: true },
		!single && { title: "median", value: s => s.median, show: s => fmt.ns(s.median), num: true },
		!single && { title: "longest", value: s => s.longest, show: s => fmt.ns(s.longest), num: true },
		{ title: "CPU", value: s => s.cpu, show: s => fmt.ns(s.cpu), num: true, help: "user and system time" },
		{ title: "CPUs used", value: s => s.parallelism, show: s => fmt.cores(s.parallelism), num: true,
		help: "CPU time over wall time" },
		rows.some(s => s.cpu_efficiency != null) && { title: of_cpu ? "of the host's" : "of requested", value: s => s.cpu_efficiency,
			show: s => meter(s.cpu_efficiency), num: true, share: true,
			help: `CPU time over wall time and the CPUs ${of_cpu ? "of the host" : "requested"}; the median execution` },
		{ title: "Peak memory", value: s => s.peak, show: s => fmt.size(s.peak), num: true },
		rows.some(s => s.memory_efficiency != null) && { title: of_memory ? "of the host's" : "of requested", value: s => s
				.memory_efficiency, show: s => meter(s.memory_efficiency), num: true, share: true,
			help: `peak over the memory ${of_memory ? "of the host" : "requested"}; the largest execution` },
		{ title: "Read", value: s => s.read, show: s => fmt.size(s.read), num: true, help: "from storage" },
		{ title: "Written", value: s => s.written, show: s => fmt.size(s.written), num: true, help: "to storage" },
		{ title: "Network", value: s => s.net, show: s => fmt.size(s.net), num: true },
		{ title: "No CPU", value: s => s.delay, show: s => fmt.ns(s.delay), num: true,
			help: "time ready to run, but without a CPU, of all threads" },
		rows.some(s => s.cost != null) && { title: "Cost", value: s => s.cost, show: s => fmt.money(s.cost), num: true },
	].filter(c => c);
	const wall = columns.findIndex(c => c.title === "Wall");
	return section("steps", "By task", null, make_table("steps-table", rows, columns, { caption: "Tasks", sort: [wall, true], search: rows
			.length > 12 ? s => s.name : null, placeholder: "Search tasks", detail: s => s.of.length === 1 ? task_detail(s.of[
			0]) : el("div.small", {}, el("p.muted", {}, "the longest:"), [...s.of].sort((a, b) => (TASKS.wall[b] ?? 0) - (
			TASKS.wall[a] ?? 0)).slice(0, 5).map(i => el("p", {}, row_words({ kind: "task", at: i })))) }), left_out(DATA.left_out
		.tasks, "task execution"));
}

// All that is known of one execution.
function task_detail(i) {
	const t = name => TASKS[name][i],
		shares = DATA.share_names.map((name, n) => [name, t("shares")[n]]).filter(([, v]) => v != null);
	const values = {
		start: `${fmt.us(t("start"))} after the run's`,
		host: task_text("host_name", i),
		attempt: t("attempt"),
		engine: task_text("engine", i),
		programs: `${t("programs")}${t("failed_programs") ? `, ${t("failed_programs")} failed` : ""}`,
		"requested CPUs": t("over_host") ? null : t("cpus"),
		"requested memory": t("over_host") ? null : t("memory") && fmt.size(t("memory")),
		"user / system": `${fmt.ns(task_use(i, "cpu_user_ns"))} / ${fmt.ns(task_use(i, "cpu_system_ns"))}`,
		denied: task_denied(i),
		"largest program": fmt.size(task_use(i, "peak_rss_bytes")),
		"mean memory": fmt.size(task_use(i, "mean_rss_bytes")),
		faults: `${fmt.count(task_use(i, "minor_faults"))} minor, ${fmt.count(task_use(i, "major_faults"))} major`,
		"without a CPU": fmt.ns(task_use(i, "run_delay_ns")),
		"waiting for storage": fmt.ns(task_use(i, "block_io_delay_ns")),
		"read / written through the page cache": `${fmt.size(task_use(i, "rchar"))} / ${fmt.size(task_use(i, "wchar"))}`,
		"network in / out": `${fmt.size(task_use(i, "net_rx_bytes"))} / ${fmt.size(task_use(i, "net_tx_bytes"))}`,
		"shares of time": shares.map(([k, v]) => `${k.replaceAll("_", " ")} ${fmt.percent(v)}`).join(", ") || null,
		cost: t("cost") == null ? null :
			`${fmt.money(t("cost"))} used${t("reserved") == null ? "" : `, ${fmt.money(t("reserved"))} reserved`}`,
		folder: task_text("work_dir", i),
		id: t("id"),
	};
	return el("dl.evidence", {}, Object.entries(values).filter(([, v]) => v != null).map(([k, v]) => el("div", {}, el("dt", {}, k), el(
	"dd", {}, String(v)))));
}

function executions_section() {
	const rows = all_tasks();
	if (new Set(rows.map(i => TASKS.name[i])).size === rows.length) return null;
	const hosts = new Set(TASKS.host_name).size > 1;
	const columns = [
		{ title: "Task", value: i => task_text("name", i) },
		{ title: "Sample", value: i => task_text("sample", i) },
		{ title: "Exit", value: i => TASKS.exit_signal[i] != null ? 128 + TASKS.exit_signal[i] : TASKS.exit_code[i], show: i =>
				exit_mark(TASKS.exit_code[i], TASKS.exit_signal[i], TASKS.end[i] != null) },
		{ title: "Attempt", value: i => TASKS.attempt[i], show: i => fmt.count(TASKS.attempt[i]), num: true },
		{ title: "Demand", value: i => demand_text(task_text("demand", i), task_text("waiting_for", i)), show: i => demand_chip(
			task_text("demand", i), task_text("waiting_for", i)) },
		rows.some(task_denied) && { title: "Denied", value: task_denied, show: i => denied_chip(task_text("denied", i), TASKS
			.denied_share[i]) },
		{ title: "Start", value: i => TASKS.start[i], show: i => fmt.us(TASKS.start[i]), num: true, help: "after the run's start" },
		{ title: "Wall", value: i => TASKS.wall[i], show: i => fmt.ns(TASKS.wall[i]), num: true },
		{ title: "CPUs used", value: i => TASKS.parallelism[i], show: i => fmt.cores(TASKS.parallelism[i]), num: true },
		{ title: "Peak memory", value: task_peak, show: i => fmt.size(task_peak(i)), num: true },
		{ title: "Read", value: i => task_use(i, "read_bytes"), show: i => fmt.size(task_use(i, "read_bytes")), num: true },
		{ title: "Written", value: i => task_use(i, "write_bytes"), show: i => fmt.size(task_use(i, "write_bytes")), num: true },
		{ title: "Programs", value: i => TASKS.programs[i], show: i => fmt.count(TASKS.programs[i]), num: true },
		hosts && { title: "Host", value: i => task_text("host_name", i) },
	].filter(c => c);
	return section("executions", "Every execution", null, make_table("executions-table", rows, columns, {
		caption: "Task executions",
		sort: [columns.findIndex(c => c.title === "Wall"), true],
		placeholder: "Search tasks and samples",
		search: i => `${task_label(i)} ${task_text("host_name", i)} ${TASKS.id[i]}`,
		detail: task_detail,
		filters: rows.some(task_failed) ? [{ label: "failed only", test: task_failed }] : [],
	}), left_out(DATA.left_out.tasks, "task execution"));
}

function tools_section() {
	if (!DATA.tools.length) return null;
	const use = name => t => t.usage[name],
		cpu = t => sum([t.usage.cpu_user_ns, t.usage.cpu_system_ns]),
		net = t => sum([t.usage.net_rx_bytes, t.usage.net_tx_bytes]);
	const columns = [
		{ title: "Tool", value: t => t.tool },
		{ title: "n", value: t => t.programs, show: t => fmt.count(t.programs), num: true, help: "programs" },
		{ title: "Failed", value: t => t.failed, show: t => t.failed ? el("span.bad", {}, `✖ ${fmt.count(t.failed)}`) : "0",
			num: true },
		{ title: "Demand", value: t => demand_text(t.demand, t.waiting_for), show: t => demand_chip(t.demand, t.waiting_for) },
		DATA.tools.some(t => denied_text(t.denied)) && { title: "Denied", value: t => denied_text(t.denied, t.denied_share),
			show: t => denied_chip(t.denied, t.denied_share) },
		{ title: "Wall, total", value: t => t.wall_ns, show: t => fmt.ns(t.wall_ns), num: true },
		{ title: "CPU", value: cpu, show: t => fmt.ns(cpu(t)), num: true },
		{ title: "of the run's", value: t => t.share_of_cpu, show: t => meter(t.share_of_cpu), num: true, share: true,
			help: "share of the run's CPU time" },
		{ title: "Peak of a program", value: use("peak_rss_bytes"), show: t => fmt.size(t.usage.peak_rss_bytes), num: true },
		{ title: "Read", value: use("read_bytes"), show: t => fmt.size(t.usage.read_bytes), num: true },
		{ title: "Written", value: use("write_bytes"), show: t => fmt.size(t.usage.write_bytes), num: true },
		{ title: "of the run's", value: t => t.share_of_io, show: t => meter(t.share_of_io), num: true, share: true,
			help: "share of the run's storage bytes" },
		{ title: "Network", value: net, show: t => fmt.size(net(t)), num: true },
		{ title: "Tasks", value: t => t.tasks_total, show: t => t.tasks.slice(0, 4).join(", ") + (t.tasks_total > 4 ?
				` and ${t.tasks_total - 4} more` : ""), wide: DATA.tools.some(t => t.tasks.join().length > 30) },
	].filter(c => c);
	return section("tools", "By tool", null, make_table("tools-table", DATA.tools, columns, { caption: "Tools",
		sort: [columns.findIndex(c => c.title === "CPU"), true], search: DATA.tools.length > 12 ? t => `${t.tool} ${t.tasks.join(" ")}` : null,
		placeholder: "Search tools" }), left_out(DATA.left_out.tools, "tool"));
}

function program_detail(i) {
	const parent = PROGRAMS.parent[i];
	const values = { exe: text_of(PROGRAMS.exe[i]), host: text_of(PROGRAMS.host_name[i]),
		start: `${fmt.us(PROGRAMS.start[i])} after the run's`, "started by": parent == null ? null :
			`${text_of(PROGRAMS.tool[parent]) ?? text_of(PROGRAMS.exe[parent])} (pid ${PROGRAMS.pid[parent]})` };
	return el("div", {}, el("code.command", {}, text_of(PROGRAMS.command[i])), el("dl.evidence", {}, Object.entries(values).filter(([,
		v]) => v != null).map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))));
}

function programs_section() {
	const rows = range(count_of(PROGRAMS));
	if (!rows.length) return null;
	const cpu = i => PROGRAMS.cpu[i] == null ? null : PROGRAMS.cpu[i] * 1000;
	const out = DATA.left_out.programs;
	const note = out ? el("p.muted.small", { id: "programs-left-out" },
			`The ${fmt.count(rows.length)} that failed or took longest; ${some(out, "more program")} left out here. All sums have them.`) :
		null;
	return section("programs", "Programs", null, note, make_table("programs-table", rows, [
		{ title: "Tool", value: i => text_of(PROGRAMS.tool[i]) ?? text_of(PROGRAMS.exe[i])?.split("/").pop() },
		{ title: "Task", value: program_task },
		{ title: "Exit", value: i => (PROGRAMS.flags[i] & 1) ? 1000 : PROGRAMS.exit_signal[i] != null ? 128 + PROGRAMS
				.exit_signal[i] : PROGRAMS.exit_code[i], show: i => [exit_mark(PROGRAMS.exit_code[i], PROGRAMS.exit_signal[i],
				PROGRAMS.end[i] != null), (PROGRAMS.flags[i] & 1) ? el("strong.bad", {}, " out of memory") : null] },
		{ title: "Start", value: i => PROGRAMS.start[i], show: i => fmt.us(PROGRAMS.start[i]), num: true,
			help: "after the run's start" },
		{ title: "Wall", value: program_wall, show: i => fmt.us(program_wall(i)), num: true },
		{ title: "CPU", value: cpu, show: i => fmt.ns(cpu(i)), num: true },
		{ title: "Peak memory", value: i => PROGRAMS.rss[i], show: i => fmt.size(PROGRAMS.rss[i]), num: true },
		{ title: "Read", value: i => PROGRAMS.read[i], show: i => fmt.size(PROGRAMS.read[i]), num: true },
		{ title: "Written", value: i => PROGRAMS.written[i], show: i => fmt.size(PROGRAMS.written[i]), num: true },
		{ title: "pid", value: i => PROGRAMS.pid[i], show: i => String(PROGRAMS.pid[i]), num: true },
		{ title: "Command", value: i => text_of(PROGRAMS.command[i]), show: i => { const c = text_of(PROGRAMS.command[i]) ??
				""; return el("code", {}, c.length > 110 ? c.slice(0, 109) + "…" : c); }, wide: true },
	], {
		caption: "Programs",
		sort: [4, true],
		placeholder: "Search command, tool, task, pid",
		detail: program_detail,
		search: i => [text_of(PROGRAMS.tool[i]), text_of(PROGRAMS.exe[i]), text_of(PROGRAMS.command[i]), program_task(i),
			text_of(PROGRAMS.host_name[i]), PROGRAMS.pid[i]
		].join(" "),
		filters: [rows.some(program_failed) && { label: "failed only", test: program_failed }, rows.some(i => PROGRAMS.flags[
			i] & 2) && { label: "without the engine's own", test: i => !(PROGRAMS.flags[i] & 2) }].filter(f => f),
	}));
}
