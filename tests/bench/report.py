# SPDX-License-Identifier: Apache-2.0
"""Figures → Markdown: the budgets and whether they are met, then what is behind each."""
import re
import statistics

BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


def spread(values, form="{:.2f}"):
    """median [min–max]"""
    values = list(values)
    middle = form.format(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} [{form.format(min(values))}–{form.format(max(values))}]"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(map(str, r)) + " |" for r in rows]


def ratios(samples, arm, figure):
    """Of the same round, arm ÷ none."""
    return [figure(a) / figure(b) for a, b in zip(samples[arm], samples["none"])]


def workload(s):
    return s.cpu


def everything(s):
    return s.cpu + (s.tracer or 0)


def verdict(value, budget, unit=""):
    if value <= budget:
        return "met"
    return f"missed by {value - budget:.3g}{unit} ({100 * (value / budget - 1):.0f} %)" if budget else f"missed by {value:g}"


def budget_rows(f):
    """What DESIGN.md allows, beside what was measured; the median is judged."""
    kernel, storm, saturated = f["kernel"], f["storm"], f["saturating"]
    agent_us = [v * 1e6 for v in storm["agent"]]
    storm_cpu = ratios(storm["samples"], "sluice run", workload)
    idle, alive = f["memory"]["idle"]["VmRSS"] / 1024, f["memory"]["alive"]["VmRSS"] / 1024
    iterator = f["parts"]["iterator"]
    middle = statistics.median
    net = [v / 1e3 for v in kernel["net"]]
    rows = [
        ("fork+exec+exit of one process, in-kernel", "≤ 4 µs",
         f"{spread(net)} µs net of the statistics' own clock reads ({spread(v / 1e3 for v in kernel['raw'])} raw)",
         verdict(middle(net), 4, " µs")),
        ("the same, in the agent, ring to file", "≤ 8 µs", f"{spread(agent_us, '{:.1f}')} µs",
         verdict(middle(agent_us), 8, " µs")),
    ]
    if f["pipeline"]:
        samples = f["pipeline"]["samples"]
        cpu = ratios(samples, "sluice run", workload)
        rows.append(("CPU time of the demo pipeline, with ÷ without", "≤ 1.01", spread(cpu, "{:.3f}"),
                     verdict(middle(cpu), 1.01)))
    return rows + [
        ("the same for a fork/exec storm", "≤ 1.02", spread(storm_cpu, "{:.3f}"), verdict(middle(storm_cpu), 1.02)),
        (f"lost in a saturating storm of {saturated['processes']:,}", "0", spread(saturated["lost"], "{:g}"),
         verdict(max(saturated["lost"]), 0)),
        ("agent RSS, idle", "≤ 20 MiB", f"{idle:.1f} MiB", verdict(idle, 20, " MiB")),
        (f"agent RSS, {f['memory']['processes']:,} processes alive", "≤ 40 MiB", f"{alive:.1f} MiB",
         verdict(alive, 40, " MiB")),
        (f"live snapshot by iterator, {f['parts']['processes']:,} processes", "≤ 2 µs a task",
         f"{spread(v / 1e3 for v in iterator)} µs", verdict(middle(iterator) / 1e3, 2, " µs")),
    ]


def arm_rows(samples, processes=None):
    rows = []
    for arm, taken in samples.items():
        row = [f"`{arm}`"]
        if arm == "none":
            row += ["1", "1", "1"]
        else:
            row += [spread(ratios(samples, arm, workload), "{:.3f}"), spread(ratios(samples, arm, everything), "{:.3f}"),
                    spread(ratios(samples, arm, lambda s: s.wall), "{:.3f}")]
        tracers = [s.tracer for s in taken if s.tracer is not None]
        if not tracers:
            row.append("")
        elif processes:
            row.append(spread((t / processes * 1e6 for t in tracers), "{:.1f}") + " µs")
        else:
            row.append(spread((t * 1e3 for t in tracers), "{:.0f}") + " ms")
        rows.append(row)
    return rows


def side_by_side(title, samples, processes=None):
    none = samples["none"]
    each = "tracer's CPU" + (" a process" if processes else "")
    lines = [f"### {title}", "", f"{len(none)} rounds; `none`: {spread((s.cpu for s in none))} s CPU, "
             f"{spread(s.wall for s in none)} s wall.", ""]
    return lines + table(["arm", "CPU ratio, workload", "CPU ratio, workload + tracer", "wall ratio", each],
                         arm_rows(samples, processes)) + [""]


# Each by itself, with a pause between: colder, and dearer, than the rows above, but alike among themselves.
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
                     spread(ns, "{:.0f}"), f"{statistics.median(ns) - floor:.0f}"))
    rows += [(text, "1", spread(kernel["rules"][f"exec_{arm}"], "{:.0f}"),
              f"{statistics.median(kernel['rules'][f'exec_{arm}']) - floor:.0f}") for arm, text in RULES]
    return ["### In the kernel", "", f"`kernel.bpf_stats_enabled`; an empty program reads {spread(kernel['floor'], '{:.0f}')} ns "
            "there, so `net` is what a program costs. Runs above 1 are other processes and threads.", ""] + \
        table(["BPF program", "runs a process", "ns a run", "net"], rows) + [""]


def part_rows(f):
    p = f["parts"]
    storm, saturated, memory = f["storm"], f["saturating"], f["memory"]

    def kib(fields):
        return (f"{fields['VmRSS'] / 1024:.1f} MiB (anonymous {fields['RssAnon'] / 1024:.1f}, files "
                f"{fields['RssFile'] / 1024:.1f}, shared {fields['RssShmem'] / 1024:.1f}), peak {fields['VmHWM'] / 1024:.1f}")

    return [
        (f"encode a program record ({statistics.median(p['record_bytes']):.0f} bytes)", spread(p["encode"], "{:.0f}") + " ns"),
        ("the same through the stream, into nothing", spread(p["stream"], "{:.0f}") + " ns"),
        ("the same into the file lake: deflate, write, rename", spread(p["file"], "{:.0f}") + " ns"),
        *((f"name a program's tool, with {n:,} rules", spread(p[f"tool_name_{n}"], "{:.0f}") + " ns") for n in (10, 500, 10000)),
        ("the same with the shipped rules", spread(p["tool_name_shipped"], "{:.0f}") + " ns"),
        ("read 10,000 rules", spread(p["tools_read_ms_10000"], "{:.0f}") + " ms"),
        ("iterator, a followed process", spread(p["iterator"], "{:.0f}") + " ns"),
        ("the same from /proc: stat, schedstat, io", spread(p["proc"], "{:.0f}") + " ns"),
        ("agent, idle", spread((v * 100 for v in f["idle"]), "{:.2f}") + " % of a CPU"),
        ("agent in the saturating storm, a process", spread((v * 1e6 for v in saturated["agent"]), "{:.1f}") + " µs"),
        ("the saturating storm's pace", spread(saturated["rate"], "{:.0f}") + " processes/s"),
        ("start and end of `sluice run`, CPU", spread((v * 1e3 for v in storm["start"]), "{:.0f}") + " ms"),
        ("memory, idle", kib(memory["idle"])),
        (f"memory, {memory['processes']:,} alive", kib(memory["alive"])),
    ]


def head(f):
    return [f"{f['machine']}. Others used {f['others']:.2f} CPUs meanwhile. Command: `{f['command']}`.", ""]


def figures(f):
    """`sluice run`, and the parts that no server has to do with."""
    lines = head(f)
    lines += ["### Budgets", ""] + table(["what", "budget", "measured", ""], budget_rows(f)) + [""]
    lines += side_by_side(f"Fork storm, {f['storm']['processes']:,} processes, one after the other",
                          f["storm"]["samples"], f["storm"]["processes"])
    if f["pipeline"]:
        lines += side_by_side("Demo pipeline", f["pipeline"]["samples"])
    lines += kernel_table(f["kernel"])
    lines += ["### Parts", ""] + table(["what", "median [min–max]"], part_rows(f))
    return "\n".join(lines) + "\n"


def delivery(f):
    """The spool and Kafka beside librdkafka's own loop."""
    d = f["delivery"]
    direct, sluice = d["arms"]["direct"], d["arms"]["sluice"]

    def ratio(figure):
        return [a[figure] / b[figure] for a, b in zip(sluice, direct)]

    def row(name, taken):
        return [name, spread((x["rate"] for x in taken), "{:,.0f}"), spread((x["cpu_ns"] for x in taken), "{:.0f}"),
                spread((x["main_ns"] for x in taken), "{:.0f}")]

    rate, cpu = ratio("rate"), ratio("cpu_ns")
    middle = statistics.median
    lines = head(f) + ["### Delivery", "", f"{len(sluice)} rounds of {d['records']:,} Program records of {d['bytes']:.0f} bytes "
                       f"to Kafka {f['kafka']} on the same machine; librdkafka {f['librdkafka']}.", ""]
    lines += table(["what", "goal", "measured", ""], [
        ("records/s from the spool's put to acknowledged ÷ librdkafka's own loop", "≥ 0.6", spread(rate),
         "met" if middle(rate) >= 0.6 else f"missed by {0.6 - middle(rate):.2g}"),
        ("CPU time a record, the same", "≤ 2", spread(cpu), verdict(middle(cpu), 2))]) + [""]
    lines += table(["arm", "records/s", "CPU ns a record", "of that, the loop's thread"],
                   [row("librdkafka's own loop", direct), row("spool, delivery, Kafka", sluice)])
    return "\n".join(lines) + "\n"


def daemon(f):
    """`sluice agent` with Kafka."""
    late, paced, saturated, rest = f["latency"], f["paced"], f["saturating"], f["rest"]
    idle, alive = rest["idle"]["VmRSS"] / 1024, rest["alive"]["VmRSS"] / 1024
    p99, share = [x["p99"] for x in late], rest["share"] * 100
    paced_us, saturated_us = ([x["cpu"] * 1e6 for x in taken] for taken in (paced, saturated))
    lost = [x["lost"] for x in saturated]
    middle = statistics.median
    lines = head(f) + ["### The daemon, with Kafka and a registry", ""] + table(["what", "goal", "measured", ""], [
        (f"from the kernel's event to the consumer at {f['rate']:,} records/s, p99", "≤ 500 ms", spread(p99, "{:.0f}") + " ms",
         verdict(middle(p99), 500, " ms")),
        (f"CPU of the agent a process, ring to acknowledged, {f['rate'] // 2:,} processes/s", "≤ 8 µs",
         spread(paced_us, "{:.1f}") + " µs", verdict(middle(paced_us), 8, " µs")),
        ("the same in a saturating storm", "≤ 8 µs", spread(saturated_us, "{:.1f}") + " µs",
         verdict(middle(saturated_us), 8, " µs")),
        (f"lost in a saturating storm of {f['processes']:,}", "0", spread(lost, "{:g}"), verdict(max(lost), 0)),
        (f"the idle daemon over {rest['seconds']} s", "≤ 0.2 % of one core", f"{share:.2f} %", verdict(share, 0.2, " %")),
        ("its RSS, idle", "≤ 25 MiB", f"{idle:.1f} MiB", verdict(idle, 25, " MiB")),
        (f"its RSS, {rest['processes']:,} processes alive", "≤ 40 MiB", f"{alive:.1f} MiB", verdict(alive, 40, " MiB"))]) + [""]
    busiest = sorted(rest["threads"].items(), key=lambda x: -x[1])
    lines += table(["more of it", "median [min–max]"], [
        ("latency, p50", spread((x["p50"] for x in late), "{:.0f}") + " ms"),
        ("latency, the largest", spread((x["max"] for x in late), "{:.0f}") + " ms"),
        ("records/s that came meanwhile", spread((x["rate"] for x in late), "{:.0f}")),
        ("the saturating storm's pace", spread((x["rate"] for x in saturated), "{:.0f}") + " processes/s"),
        ("other programs that started on the host meanwhile, idle daemon", f"{rest['programs']:.1f} a second"),
        ("idle, by thread", ", ".join(f"{name} {100 * used:.3f} %" for name, used in busiest[:4])),
        ("memory, idle: anonymous, files, peak", ", ".join(f"{rest['idle'][x] / 1024:.1f}" for x in ("RssAnon", "RssFile", "VmHWM"))
         + " MiB"),
    ])
    return "\n".join(lines) + "\n"


def rewrite(path, texts):
    """Puts each text between the two marks of its name."""
    with open(path) as f:
        text = f.read()
    for name, new in texts.items():
        begin, end = BEGIN.format(name), END.format(name)
        text, n = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n{new}{end}", text, flags=re.DOTALL)
        if n != 1:
            raise SystemExit(f"{path}: expected one pair of marks named {name}, found {n}")
    with open(path, "w") as f:
        f.write(text)
