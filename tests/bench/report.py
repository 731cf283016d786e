# SPDX-License-Identifier: Apache-2.0
"""Writes the figures as Markdown: the budgets and their verdicts, then the details."""
import collections
import datetime
import re
import statistics

import judge

JUDGED = ("none", "none again", "sluice run")     # these have a budget, or are its measure; the others are peers
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


def spread(values, form="{:.2f}"):
    """Returns median [min–max], and the unit if form ends in one."""
    values = list(values)
    number, _, unit = form.partition(" ")
    text = number.format(statistics.median(values))
    if len(values) > 1:
        text += f" [{number.format(min(values))}–{number.format(max(values))}]"
    return text + (" " + unit if unit else "")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(map(str, r)) + " |" for r in rows]


def ratios(samples, arm, figure, base="none"):
    """Returns the ratio arm ÷ base of each round."""
    return [figure(a) / figure(b) for a, b in zip(samples[arm], samples[base])]


def everything(s):
    return s.cpu + (s.tracer or 0) + (s.start or 0)


def between(s):
    return s.cpu + (s.tracer or 0)


def whole(s):
    return s.whole


# A budget of README.md and the values measured for it. form: the format of a figure, with its unit.
Row = collections.namedtuple("Row", "what budget form values verdict")


def row(what, form, values, ceiling, **more):
    return Row(what, f"≤ {ceiling:g} {form.partition(' ')[2]}".rstrip(), form, list(values), judge.judge(values, ceiling, **more))


def none_row(what, values):
    return Row(what, "0", "{:g}", list(values), judge.judge_none(values))


def bounds(r):
    """Returns the interval that is judged, as text."""
    number = r.form.partition(" ")[0]
    return "–".join(map(number.format, judge.interval(r.values))) if len(r.values) >= judge.ROUNDS_MIN else ""


def budget_table(rows, header="budget"):
    return table(["what", header, "measured", "95 % of the median", "n", ""],
                 [(r.what, r.budget, spread(r.values, r.form), bounds(r), len(r.values),
                   f"**`{r.verdict.word}`**" + (f" {r.verdict.why}" if r.verdict.word == judge.MISSED else
                                                f": {r.verdict.why}" if r.verdict.why else "")) for r in rows]) + [""]


def ratio_row(what, samples, ceiling):
    return row(what, "{:.3f}", ratios(samples, "sluice run", everything), ceiling,
               null=ratios(samples, "none again", everything))


def run_rows(f):
    kernel, storm, saturated, memory, parts = (f[x] for x in ("kernel", "storm", "saturating", "memory", "parts"))
    rows = [
        row("fork+exec+exit of one process, in-kernel, net of the statistics' own clock reads", "{:.2f} µs",
            [v / 1e3 for v in kernel["net"]], 3),
        row("the same, in the agent, ring to file", "{:.1f} µs", [v * 1e6 for v in storm["agent"]], 5),
        row("start and end of `sluice run`, CPU", "{:.0f} ms", [v * 1e3 for v in storm["start"]], 150),
        row("the same, wall", "{:.0f} ms", [v * 1e3 for v in storm["start_wall"]], 250),
    ]
    if f["pipeline"]:
        rows.append(ratio_row("CPU time of the demo pipeline with sluice, its start and end included, ÷ without",
                              f["pipeline"]["samples"], 1.01))
    return rows + [
        ratio_row("the same for a fork/exec storm", storm["samples"], 1.02),
        none_row(f"lost in a saturating storm of {saturated['processes']:,}", saturated["lost"]),
        row("agent RSS, idle", "{:.1f} MiB", [x["VmRSS"] / 1024 for x in memory["idle"]], 18),
        row(f"agent RSS, {memory['processes']:,} processes alive", "{:.1f} MiB", [x["VmRSS"] / 1024 for x in memory["alive"]], 40),
        row(f"live snapshot by iterator, {parts['processes']:,} processes, a task", "{:.2f} µs",
            [v / 1e3 for v in parts["iterator"]], 2),
    ]


def arm_rows(samples, processes=None):
    rows = []
    for arm, taken in samples.items():
        cells = [f"`{arm}`"]
        if arm == "none":
            cells += ["1", "1", "1"]
        else:
            cells += [spread(ratios(samples, arm, figure), "{:.3f}") for figure in (lambda s: s.cpu, everything, whole)]
        tracers = [s.tracer for s in taken if s.tracer is not None]
        starts = [s.start for s in taken if s.start is not None]
        each, form = (1e6 / processes, "{:.1f} µs") if processes else (1e3, "{:.0f} ms")
        cells.append(spread([t * each for t in tracers], form) if tracers else "")
        cells.append(spread([s * 1e3 for s in starts], "{:.0f} ms") if starts else "")
        rows.append(cells + [len(taken)])
    return rows


def worded(verdict):
    return f"**`{verdict.word}`**" + (f": {verdict.why}" if verdict.why else "")


def compared(samples, arm, figure):
    """Returns sluice ÷ arm of each round, with the interval and the verdict."""
    values = ratios(samples, "sluice run", figure, arm)
    interval = f", {'–'.join(map('{:.3f}'.format, judge.interval(values)))}" if len(values) >= judge.ROUNDS_MIN else ""
    return f"{spread(values, '{:.3f}')}{interval} {worded(judge.compare(values, ratios(samples, 'none again', figure)))}"


def lost(taken):
    """Returns the largest number of events of a round that the tracer reports as lost, where it counts them."""
    counts = [s.lost for s in taken if s.lost is not None]
    return f"{max(counts):,}" if counts else ""


def peer_table(samples, missing):
    """Returns the table of sluice against each peer, of which `missing`, {arm: reason}, cannot run here."""
    names = [name for name in samples if name not in JUDGED]
    if not names:
        return []
    rows = [[f"`{name}`", *(compared(samples, name, figure) for figure in (everything, between, whole)),
             lost(samples[name]), lost(samples["sluice run"]), len(samples[name])] for name in names]
    rows += [[f"`{name}`", f"not available: {reason}", "", "", "", "", 0] for name, reason in missing.items()]
    return ["`sluice run` ÷ the peer of the same round: median [min–max], 95 % of the median, verdict.", ""] + table(
        ["peer", "CPU", "CPU without start and end", "wall", "lost by the peer", "lost by sluice", "n"], rows) + [""]


def side_by_side(title, samples, processes=None, missing=None):
    none = samples["none"]
    each = "CPU between" + (", a process" if processes else "")
    lines = [f"### {title}", "", f"`none`: {spread((s.cpu for s in none), '{:.2f} s')} CPU, "
             f"{spread((s.wall for s in none), '{:.2f} s')} wall.", ""]
    return lines + table(["arm", "CPU ratio, workload", "CPU ratio with the tracer, its start and end", "wall ratio, likewise",
                          each, "CPU of start and end", "n"], arm_rows(samples, processes)) + [""] + peer_table(samples, missing or {})


# Single execs with pauses: slower than the rows above for cold caches, but comparable with each other.
RULES = [("0", "exec by itself, without rules"), ("10", "exec with 10 rules in the kernel"),
         ("500", "exec with 500 rules"), ("10000", "exec with 10,000 rules"),
         ("excluded", "exec of a program that 10 rules leave out"),
         ("excluded_of_10000", "exec of a program that 10,000 rules leave out")]


def kernel_table(kernel):
    floor = statistics.median(kernel["floor"])
    rows = []
    for name, values in kernel["programs"].items():
        runs = values[0][0]
        ns = [v for _, v in values]
        rows.append((f"`{name}`", "—" if runs is None else f"{statistics.median(r for r, _ in values):.2f}",
                     spread(ns, "{:.0f}"), f"{statistics.median(ns) - floor:.0f}", len(ns)))
    rows += [(text, "1", spread(kernel["rules"][f"exec_{arm}"], "{:.0f}"),
              f"{statistics.median(kernel['rules'][f'exec_{arm}']) - floor:.0f}", len(kernel["rules"][f"exec_{arm}"]))
             for arm, text in RULES]
    return ["### In the kernel", "", f"`kernel.bpf_stats_enabled`; an empty program reads {spread(kernel['floor'], '{:.0f}')} ns "
            "there, so `net` is what a program costs. Runs above 1 are other processes and threads. "
            f"With the statistics' clock reads a process takes {spread((v / 1e3 for v in kernel['raw']), '{:.2f}')} µs.", ""] + \
        table(["BPF program", "runs a process", "ns a run", "net", "n"], rows) + [""]


def part_table(header, rows):
    """Returns a table of rows: (what, form of a figure with its unit, values)."""
    return table([header, "median [min–max]", "n"], [(what, spread(values, form), len(values)) for what, form, values in rows])


def memory_rows(name, taken):
    return [(f"memory, {name}: {part}", "{:.1f} MiB", [x[field] / 1024 for x in taken])
            for part, field in (("anonymous", "RssAnon"), ("files", "RssFile"), ("peak", "VmHWM"))]


SHARED = (("ring", "an event into the ring"), ("word", "an addition to a word of all CPUs"),
          ("hash", "an entry into the map of processes and out"))


def shared_rows(cpus):
    """Returns the rows of what CPUs share: one CPU by itself, and all at once."""
    numbers = sorted({int(name.rpartition("_")[2]) for name in cpus})
    return [(f"{what}, {'one CPU' if n == 1 else f'each of {n} CPUs at once'}", "{:.0f} ns", cpus[f"{name}_{n}"])
            for name, what in SHARED for n in dict.fromkeys((1, numbers[-1]))]


def part_rows(f):
    p, saturated, memory = f["parts"], f["saturating"], f["memory"]
    return [
        (f"encode a program record ({statistics.median(p['record_bytes']):.0f} bytes)", "{:.0f} ns", p["encode"]),
        ("the same through the stream, into nothing", "{:.0f} ns", p["stream"]),
        ("the same into the file lake: deflate, write, rename", "{:.0f} ns", p["file"]),
        *((f"name a program's tool, with {n:,} rules", "{:.0f} ns", p[f"tool_name_{n}"]) for n in (10, 500, 10000)),
        ("the same with the shipped rules", "{:.0f} ns", p["tool_name_shipped"]),
        ("read 10,000 rules", "{:.0f} ms", p["tools_read_ms_10000"]),
        ("iterator, a followed process", "{:.0f} ns", p["iterator"]),
        ("the same from /proc: stat, schedstat, io", "{:.0f} ns", p["proc"]),
        *shared_rows(p["cpus"]),
        ("agent, idle", "{:.2f} % of a CPU", [v * 100 for v in f["idle"]]),
        ("agent in the saturating storm, a process", "{:.1f} µs", [v * 1e6 for v in saturated["agent"]]),
        ("the saturating storm's pace", "{:.0f} processes/s", saturated["rate"]),
        *memory_rows("idle", memory["idle"]),
        *memory_rows(f"{memory['processes']:,} alive", memory["alive"]),
    ]


def head(f):
    return [f"{f['machine']}. Others used {f['others']:.2f} CPUs meanwhile. Command: `{f['command']}`.", ""]


def figures(f):
    """Reports on `sluice run` and the parts that need no server."""
    lines = head(f)
    rows = run_rows(f)
    lines += ["### Budgets", ""] + budget_table(rows)
    lines += side_by_side(f"Fork storm, {f['storm']['processes']:,} processes, one after the other",
                          f["storm"]["samples"], f["storm"]["processes"], f["unavailable"])
    if f["pipeline"]:
        lines += side_by_side("Demo pipeline", f["pipeline"]["samples"], missing=f["unavailable"])
    lines += kernel_table(f["kernel"])
    lines += ["### Parts", ""] + part_table("what", part_rows(f))
    return "\n".join(lines) + "\n", rows


def delivery(f):
    """Reports on the spool and Kafka beside librdkafka alone."""
    d = f["delivery"]
    direct, sluice = d["arms"]["direct"], d["arms"]["sluice"]

    def ratio(figure):
        return [a[figure] / b[figure] for a, b in zip(sluice, direct)]

    def arm(name, taken):
        return [name, spread((x["rate"] for x in taken), "{:,.0f}"), spread((x["cpu_ns"] for x in taken), "{:.0f}"),
                spread((x["main_ns"] for x in taken), "{:.0f}"), len(taken)]

    rate = ratio("rate")
    rows = [Row("records/s from the spool's put to acknowledged ÷ librdkafka's own loop", "≥ 0.6", "{:.2f}", rate,
                judge.judge(rate, 0.6, at_least=True)),
            row("CPU time a record, the same", "{:.2f}", ratio("cpu_ns"), 2)]
    lines = head(f) + ["### Delivery", "", f"{d['records']:,} Program records of {d['bytes']:.0f} bytes a round "
                       f"to Kafka {f['kafka']} on the same machine; librdkafka {f['librdkafka']}.", ""]
    lines += budget_table(rows, "goal")
    lines += table(["arm", "records/s", "CPU ns a record", "of that, the loop's thread", "n"],
                   [arm("librdkafka's own loop", direct), arm("spool, delivery, Kafka", sluice)])
    return "\n".join(lines) + "\n", rows


def daemon(f):
    """Reports on `sluice agent` with Kafka."""
    late, paced, saturated, rest = f["latency"], f["paced"], f["saturating"], f["rest"]
    rows = [
        row(f"from the kernel's event to the consumer at {f['rate']:,} records/s, p99", "{:.0f} ms", [x["p99"] for x in late], 500),
        row(f"CPU of the agent a process, ring to acknowledged, {f['rate'] // 2:,} processes/s", "{:.1f} µs",
            [x["cpu"] * 1e6 for x in paced], 8),
        row("the same in a saturating storm", "{:.1f} µs", [x["cpu"] * 1e6 for x in saturated], 8),
        none_row(f"lost in a saturating storm of {f['processes']:,}", [x["lost"] for x in saturated]),
        row(f"the idle daemon over {rest[0]['seconds']} s, of one core", "{:.2f} %", [x["share"] * 100 for x in rest], 0.1),
        row("its RSS, idle", "{:.1f} MiB", [x["idle"]["VmRSS"] / 1024 for x in rest], 20),
        row(f"its RSS, {rest[0]['processes']:,} processes alive", "{:.1f} MiB", [x["alive"]["VmRSS"] / 1024 for x in rest], 40)]
    lines = head(f) + ["### The daemon, with Kafka and a registry", ""] + budget_table(rows, "goal")
    names = sorted({name for x in rest for name in x["threads"]},
                   key=lambda name: -statistics.median(x["threads"].get(name, 0) for x in rest))
    lines += part_table("more of it", [
        ("latency, p50", "{:.0f} ms", [x["p50"] for x in late]),
        ("latency, the largest", "{:.0f} ms", [x["max"] for x in late]),
        ("records/s that came meanwhile", "{:.0f}", [x["rate"] for x in late]),
        ("the saturating storm's pace", "{:.0f} processes/s", [x["rate"] for x in saturated]),
        ("other programs that started on the host meanwhile, idle daemon", "{:.1f} a second", [x["programs"] for x in rest]),
        *((f"idle, thread {name}", "{:.3f} %", [100 * x["threads"].get(name, 0) for x in rest]) for name in names[:4]),
        *memory_rows("idle", [x["idle"] for x in rest]),
    ])
    return "\n".join(lines) + "\n", rows



def history(part, rows, commit, kernel):
    """Returns the lines that a run adds to history.tsv."""
    day = datetime.date.today().isoformat()
    lines = []
    for r in rows:
        low, high = judge.interval(r.values)
        lines.append("\t".join((day, commit, kernel, part, r.what, r.budget, str(len(r.values)),
                                *(f"{v:.4g}" for v in (statistics.median(r.values), low, high)), r.verdict.word)))
    return lines


def append(path, lines):
    with open(path, "a", encoding="utf-8") as f:
        f.write("".join(line + "\n" for line in lines))


def rewrite(path, texts):
    """Replaces the text between the two marks of each name."""
    with open(path) as f:
        text = f.read()
    for name, new in texts.items():
        begin, end = BEGIN.format(name), END.format(name)
        text, n = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n{new}{end}", text, flags=re.DOTALL)
        if n != 1:
            raise SystemExit(f"{path}: expected one pair of marks named {name}, found {n}")
    with open(path, "w") as f:
        f.write(text)
