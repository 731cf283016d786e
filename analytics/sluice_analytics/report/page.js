// SPDX-License-Identifier: Apache-2.0
// The page's part on the run as a whole; page_table.js has the tables, page_timeline.js the plots over time.
// All text comes from records: it enters the document as text nodes, made by el() and nothing else.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const SPECS = JSON.parse(document.getElementById("specs").textContent);
const RUN = DATA.run,
	TASKS = DATA.tasks,
	PROGRAMS = DATA.programs;
const USAGE = DATA.usage_names;
const DASH = "-";

const all_tasks = () => range(count_of(TASKS)).filter(i => !TASKS.none[i]); // without the row of what belongs to no task
const text_of = number => number == null ? null : DATA.texts[number];
const capacity_of = name => RUN.hosts.length && RUN.hosts.every(h => h[name] != null) ? sum(RUN.hosts.map(h => h[name])) : null;
const count_of = columns => columns.start ? columns.start.length : 0;
const range = n => Array.from({ length: n }, (_, i) => i);
const sum = values => values.every(v => v == null) ? null : values.reduce((a, b) => a + (b ?? 0), 0);

// Characters that draw nothing or turn a line around get a face.
const clean = text => String(text).replace(/[\u0000-\u0008\u000b-\u001f]/g, c => String.fromCharCode(0x2400 + c.charCodeAt(0)))
	.replace(/[\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, c =>
		`‹U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);

// The only way into the document: tag.class.class, attributes, then texts and elements.
function el(what, attributes, ...children) {
	const [tag, ...classes] = what.split(".");
	const e = document.createElement(tag);
	if (classes.length) e.className = classes.join(" ");
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (value == null || value === false) continue;
		if (name.startsWith("--")) e.style.setProperty(name, value);
		else if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
		else e.setAttribute(name, value === true ? "" : value);
	}
	e.append(...children.flat(Infinity).filter(c => c != null && c !== false).map(c => c instanceof Node ? c : document.createTextNode(
		clean(c))));
	return e;
}

// As the terminal writes them (units.py): null is a dash, never 0.
const fmt = {
	size(n) {
		if (n == null) return DASH;
		const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
		let i = 0;
		while (Math.abs(n) >= 1024 && i < units.length - 1) { n /= 1024;
			i++; }
		return `${i === 0 || Math.abs(n) >= 9.95 ? n.toFixed(0) : n.toFixed(1)} ${units[i]}`;
	},
	ns(ns) {
		if (ns == null) return DASH;
		const s = ns / 1e9,
			two = n => String(n).padStart(2, "0");
		if (Math.abs(s) < 0.0009995) return `${(ns / 1e3).toFixed(0)} µs`;
		if (Math.abs(s) < 0.9995) return `${(s * 1e3).toFixed(0)} ms`;
		if (Math.abs(s) < 59.95) return `${s.toFixed(1)} s`;
		const seconds = Math.round(s),
			minutes = Math.round(s / 60),
			hours = Math.round(s / 3600);
		if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
		if (minutes < 48 * 60) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
		return `${Math.floor(hours / 24)}d${two(hours % 24)}h`;
	},
	us: us => fmt.ns(us == null ? null : us * 1000),
	percent: share => share == null ? DASH : `${(share * 100).toFixed(0)}%`,
	money: (amount, currency) => amount == null ? "unknown" :
		`${amount.toFixed(Math.abs(amount) >= 0.095 ? 2 : 4)} ${currency ?? RUN.cost.currency}`,
	count: n => n == null ? DASH : n.toLocaleString("en-US"),
	cores: n => n == null ? DASH : n.toFixed(n < 9.95 ? 1 : 0),
	number: n => n == null ? DASH : Number.isInteger(n) ? fmt.count(n) : String(Number(n.toPrecision(3))),
	time: us => us == null ? DASH : `${new Date(us / 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`,
	text: t => t == null || t === "" ? DASH : t,
};

// n of them, in words that agree.
const some = (n, one, many) => `${fmt.count(n)} ${n === 1 ? one : many ?? one + "s"}`;

const SIGNALS = { 1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 13: "PIPE", 14: "ALRM",
	15: "TERM", 24: "XCPU", 25: "XFSZ", 31: "SYS" };
const is_failed = (code, signal) => signal != null || (code != null && code !== 0);

function exit_text(code, signal, ended) {
	if (signal != null) return `signal ${signal}${SIGNALS[signal] ? ` (${SIGNALS[signal]})` : ""}`;
	return code != null ? `exit ${code}` : ended ? "unknown" : "not ended";
}

function exit_mark(code, signal, ended) {
	if (is_failed(code, signal)) return el("span.bad.chip", {}, "✖ ", exit_text(code, signal, ended));
	if (code === 0) return el("span.chip", {}, "✔ 0");
	return el("span.chip.muted", {}, exit_text(code, signal, ended));
}

const DEMANDS = {
	COMPUTE: ["C", "compute", "it would be bound by CPUs on an idle host"],
	MEMORY: ["M", "memory", "it waits for its own pages, near the limit of its memory"],
	STORAGE: ["D", "storage", "it waits for block devices"],
	NETWORK_FS: ["F", "network fs", "it waits for NFS, Lustre, FUSE and the like"],
	NETWORK: ["N", "network", "it waits for the network"],
	WAITING_FOR: ["W", "waits", "it waits for something else"],
	MIXED: ["X", "mixed", "nothing has most of its time"],
};
const DENIED = {
	RUN_QUEUE: "others had the CPUs",
	THROTTLED: "the quota of its control group was used up",
	RECLAIM: "it had to wait for memory",
	IO: "others used its disk",
};
const word_of = name => name.toLowerCase().replaceAll("_", " ");
const demand_color = demand => `var(--${DEMANDS[demand] ? word_of(demand).replaceAll(" ", "-") : "unknown"})`;
const demand_text = (demand, waiting_for) => demand == null ? null : waiting_for == null ? DEMANDS[demand]?.[1] ?? word_of(demand) :
	`waits: ${word_of(waiting_for)}`;
const denied_text = (denied, share) => denied == null || denied === "NOTHING" ? null :
	`${word_of(denied)}${share == null ? "" : ` ${fmt.percent(share)}`}`;

function demand_chip(demand, waiting_for) {
	if (demand == null) return el("span.muted", {}, DASH);
	return el("span.chip", { title: DEMANDS[demand]?.[2] }, el("span.swatch", { "--c": demand_color(demand) }), demand_text(demand,
		waiting_for));
}

function denied_chip(denied, share) {
	const text = denied_text(denied, share);
	return text == null ? el("span.muted", {}, DASH) : el("span.chip", { title: DENIED[denied] }, text);
}

const section = (id, title, ...rest) => el("section", { id, "aria-labelledby": `${id}-title` }, el("div.head", {}, el(
"h2", { id: `${id}-title` }, title), rest[0]), rest.slice(1));

// {name: value} in a line, numbers by the unit in their names.
function evidence(values) {
	const write = (name, v) => v == null ? DASH : typeof v === "boolean" ? (v ? "yes" : "no") : Array.isArray(v) ? v.map(x => write(name,
			x)).join(", ") :
		typeof v === "object" ? Object.entries(v).map(([k, x]) => `${k} ${write(k, x)}`).join(", ") : typeof v !== "number" || /(^|_)pid$/
		.test(name) ? String(v) :
		/_ns$/.test(name) ? fmt.ns(v) : /bytes$|^rchar$|^wchar$/.test(name) ? fmt.size(v) : /share|efficiency$/.test(name) ? fmt.percent(
		v) :
		/(^|_)(time|us)$/.test(name) && v > 1e14 ? fmt.time(v) : fmt.number(v);
	const list = Object.entries(values ?? {});
	return list.length ? el("dl.evidence", {}, list.map(([name, v]) => el("div", {}, el("dt", {}, name.replace(/_(ns|bytes|us)$/, "")
		.replaceAll("_", " ")), el("dd", {}, write(name, v))))) : null;
}

function program_name(id) {
	const i = DATA.named_programs[id];
	return i == null ? id : `${text_of(PROGRAMS.tool[i]) ?? text_of(PROGRAMS.exe[i]) ?? "?"} (pid ${PROGRAMS.pid[i]})`;
}

// Notes on what is shown only in part.
const left_out = (n, what) => n > 0 ? el("p.muted.small", {}, `${some(n, what)} left out here; totals have them.`) : null;

function header() {
	const [mark, word, tone] = { SUCCEEDED: ["✔", "succeeded", "good"], FAILED: ["✖", "failed", "bad"], RUNNING: ["▶", "running", ""] } [RUN
		.state
	] ?? ["?", "unknown: the lake ends before the run does", ""];
	const names = ["auto", "light", "dark"];
	const theme = el("button.noprint", { type: "button", id: "theme" });
	const set = name => {
		document.documentElement.style.colorScheme = name === "auto" ? "" : name;
		theme.textContent = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" } [name];
		theme.setAttribute("aria-label", `Colours: ${name}. Press to change`);
		theme.dataset.theme = name;
	};
	theme.addEventListener("click", () => set(names[(names.indexOf(theme.dataset.theme) + 1) % 3]));
	set("auto");
	const title = RUN.pipeline ?? RUN.run_name ?? RUN.run_id;
	return el("header.top", {},
		el("div.title", {}, el("h1", {}, title), el("div.under", {},
			el("span.state" + (tone ? "." + tone : ""), { id: "state" }, `${mark} ${word}`, is_failed(RUN.exit_code, RUN
				.exit_signal) ? ` (${exit_text(RUN.exit_code, RUN.exit_signal)})` : null),
			RUN.run_name && RUN.run_name !== title ? el("span", {}, RUN.run_name) : null,
			RUN.engine ? el("span", {}, RUN.engine) : null,
			el("span", {}, fmt.time(RUN.start_us)), RUN.demand ? demand_chip(RUN.demand, RUN.waiting_for) : null,
			denied_text(RUN.denied) ? el("span", {}, "denied: ", denied_chip(RUN.denied, RUN.denied_share)) : null)),
		theme);
}

function facts() {
	const u = RUN.usage,
		e = RUN.efficiency,
		cost = RUN.cost,
		failed = all_tasks().filter(task_failed).length;
	const cpu = sum([u.cpu_user_ns, u.cpu_system_ns]);
	const against = (n, write) => `of ${n == null ? "what" : `the ${write(n)}`}${e.over_host ? " that the host has" : " requested"}`;
	const tile = (title, value, ...more) => el("div", {}, el("dt", {}, title), el("dd", {}, value), more.filter(m => m).map(m => el(
		"dd.more", {}, m)));
	const hosts = RUN.hosts.map(h => [h.host_name ?? h.host_id, h.cpus != null && some(h.cpus, "CPU"), h.memory_bytes != null && fmt.size(h
		.memory_bytes), h.instance_type].filter(x => x).join(", "));
	const about = [
		["command", RUN.command && el("code", {}, RUN.command)],
		["folder", RUN.work_dir && el("code", {}, RUN.work_dir)],
		[RUN.hosts.length === 1 ? "host" : "hosts", hosts.slice(0, 8).join("; ") + (hosts.length > 8 ?
			`; and ${hosts.length - 8} more` : "")],
		["time",
			`${fmt.time(RUN.start_us)} to ${RUN.end_time == null ? `(last record ${fmt.time(RUN.last_time)})` : fmt.time(RUN.end_time)}`
		],
		["run", el("code", {}, RUN.run_id)],
	].filter(([, v]) => v);
	return [
		el("dl.facts", {},
			tile("Wall time", fmt.ns(RUN.wall_ns), DATA.gaps.length ?
				`${fmt.us(sum(DATA.gaps.map(g => g[1] - g[0])))} of it nothing ran` : null),
			tile("CPU time", fmt.ns(cpu), RUN.parallelism == null ? null : `${fmt.cores(RUN.parallelism)} CPUs in use on average`),
			tile("CPU efficiency", fmt.percent(e.cpu), e.cpu == null ? "nothing known was requested" : against(e.requested_cpus ??
				capacity_of("cpus"), n => some(n, "CPU"))),
			tile("Peak memory", fmt.size(RUN.peak_memory_bytes ?? u.peak_rss_bytes), e.memory == null ? null :
				`${e.memory < 0.01 ? "under 1%" : fmt.percent(e.memory)} ${against(e.requested_memory_bytes ?? capacity_of("memory_bytes"), fmt.size)}`
				),
			tile("Read from storage", fmt.size(u.read_bytes), `${fmt.size(u.write_bytes)} written`),
			tile("Network in", fmt.size(u.net_rx_bytes), `${fmt.size(u.net_tx_bytes)} out`),
			tile("Tasks", fmt.count(RUN.tasks_total), failed ? el("span.bad", {}, `✖ ${failed} failed`) : RUN.tasks_total ?
				"none failed" : null),
			tile("Programs", fmt.count(RUN.programs_total), RUN.failed_programs ? el("span.bad", {},
				`✖ ${fmt.count(RUN.failed_programs)} failed`) : "none failed"),
			tile("Cost", fmt.money(cost.used), cost.used == null ? "no price for this host" : cost.reserved == null ?
				"by what was used" : `${fmt.money(cost.reserved)} by what was reserved`)),
		el("dl.about", {}, about.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]))
	];
}

function failures() {
	const cards = DATA.failures.map(f => el("article.card.error", {},
		el("p.lead", {}, f.recovered ? "↻ " : "✖ ", f.sentence),
		el("p.small.muted", {}, [f.task && `task ${f.task}`, f.tool && `tool ${f.tool}`, exit_text(f.exit_code, f.exit_signal,
			true), f.time != null && `after ${fmt.us(f.time - RUN.start_us)}`, f.recovered && "a later attempt succeeded"
		].filter(x => x).join(" · ")),
		f.command ? el("code.command", {}, f.command) : null,
		evidence(f.evidence),
		f.chain.length ? el("p.small", {}, el("span.muted", {}, "failed because of it: "), f.chain.map(program_name).join(" → ")) :
		null,
		f.victims.length ? el("p.small", {}, el("span.muted", {}, "ended because of it: "), f.victims.slice(0, 12).map(program_name)
			.join(", ") + (f.victims.length > 12 ? ` and ${f.victims.length - 12} more` : "")) : null));
	if (!cards.length && RUN.state !== "FAILED") return null;
	return section("failures", "Why it failed", cards.length > 1 ? el("span.muted", {}, some(cards.length + DATA.left_out.failures,
			"failure")) : null,
		cards.length ? el("div.cards", {}, cards) : el("p.muted", {}, "The run failed, but there is no record of a program that did."),
		left_out(DATA.left_out.failures, "failure"));
}

// What a reader must know before believing the figures.
function warnings() {
	const lines = [...RUN.warnings, ...DATA.losses.map(x =>
		`${x.host_name}: ${some(x.count, "event")} lost (${x.place}, ${x.reason}): sums may be too small`)];
	if (!DATA.losses.length && RUN.lost_events) lines.push(`${some(RUN.lost_events, "event")} of this run lost: sums may be too small`);
	return lines.length ? section("warnings", "What is not known", null, el("div.cards", {}, lines.map(line => el("div.card.warning", {},
		el("p", {}, "⚠ ", line))))) : null;
}

const WHAT = { cpus: ["CPUs", fmt.number], memory_bytes: ["memory", fmt.size], time_ns: ["time", fmt.ns], storage: ["storage", null],
	node_shape: ["node", null], investigate: ["look into it", null] };

function advice() {
	const lacks = DATA.lacks.length ? el("div.lacks", {}, el("p", {}, "Too little evidence, so that nothing is recommended:"),
		el("ul", {}, DATA.lacks.map(line => el("li", {}, line)))) : null;
	if (!DATA.recommendations.length) return lacks ? section("advice", "What would be right", null, lacks) : null;
	const cards = DATA.recommendations.map(r => {
		const [word, write] = WHAT[r.what] ?? [r.what, fmt.number];
		const change = write && r.recommended != null ?
			`${r.current == null ? "" : write(r.current) + " → "}${write(r.recommended)} ${r.what === "cpus" ? "CPUs" : ""}` : null;
		return el("article.card", {}, el("p", {}, el("span.kind", {}, word), el("strong", {}, r.task)),
			change ? el("p.change", {}, change) : null, el("p", {}, r.sentence),
			el("p.small.muted", {}, [`${r.confidence} confidence`, some(r.runs, "successful run"), r.saving != null &&
				`saves ${fmt.money(r.saving)} a run`
			].filter(x => x).join(" · ")),
			Object.keys(r.evidence ?? {}).length ? el("details.small", {}, el("summary", {}, "evidence"), evidence(r
			.evidence)) : null);
	});
	return section("advice", "What would be right", null, el("div.advice", {}, cards), left_out(DATA.left_out.recommendations,
		"recommendation"), lacks);
}

function observations() {
	if (!DATA.observations.length) return null;
	const tone = { ERROR: "error", WARNING: "warning" },
		mark = { ERROR: "✖ ", WARNING: "⚠ " };
	const card = o => el("article.card" + (tone[o.severity] ? "." + tone[o.severity] : ""), {},
		el("p", {}, el("span.kind", {}, mark[o.severity] ?? "", o.kind.toLowerCase().replaceAll("_", " ")), o.sentence),
		Object.keys(o.evidence ?? {}).length ? el("details.small", {}, el("summary", {}, "evidence"), evidence(o.evidence)) : null);
	const rest = DATA.observations.slice(6);
	return section("observations", "Worth knowing", null, el("div.cards", {}, el("div.pairs", {}, DATA.observations.slice(0, 6).map(card)),
			rest.length ? el("details", {}, el("summary", {}, `${rest.length} more`), el("div.pairs", {}, rest.map(card))) : null),
		left_out(DATA.left_out.observations, "observation"));
}

function start() {
	document.getElementById("page").append(...[
		header(), failures(), el("section", { id: "facts", "aria-label": "The run in numbers" }, facts()), warnings(),
		timeline_section(), advice(), observations(),
		steps_section(), executions_section(), tools_section(), programs_section(),
		el("footer", {},
			"Written by sluice tune from the run's records. Times are UTC. A dash is what was not measured, never 0. Nothing on this page is loaded from anywhere."
			),
	].flat().filter(x => x));
	timeline_start();
	document.documentElement.dataset.ready = "yes";
}
document.addEventListener("DOMContentLoaded", start);
