# SPDX-License-Identifier: Apache-2.0
"""The measurements, one function per row or group of rows. Each returns plain figures for report.py."""
import json
import os
import re
import shutil
import subprocess
import time

import arms
import machine
import side_by_side

# Programs that do not run once per process: those of sockets, and those that the agent itself calls.
OTHERS = re.compile(r"_length$|msg$|sendpage$|^calibrate_|^on_task|^on_stale")


def kernel_programs(bench, rounds, processes, messages):
    """Returns ns per run of each BPF program, and their sum for one process. Other processes of the host count as
    runs, but hardly as time, since they are not followed."""
    programs, sums = {}, []
    with machine.bpf_stats():
        floor = bench.parts(bench.floor, rounds, 50000)["floor"]
        base = sorted(floor)[len(floor) // 2]
        for _ in range(rounds):
            storm, talk = {}, {}
            arms.run_sluice(bench, bench.spawn_command(processes, 1), None, storm)
            arms.run_sluice(bench, [bench.storm, "talk", str(messages)], None, talk)
            raw = net = 0.0
            for p in storm["probes"]:
                if p["runs"] and not OTHERS.search(p["name"]):
                    raw += p["run_time_ns"] / processes
                    net += (p["run_time_ns"] - base * p["runs"]) / processes
                    programs.setdefault(p["name"], []).append((p["runs"] / processes, p["run_time_ns"] / p["runs"]))
            for p in talk["probes"]:
                if p["runs"] and re.search("_length$|msg$", p["name"]):
                    programs.setdefault(p["name"], []).append((None, p["run_time_ns"] / p["runs"]))
            sums.append((raw, net))
        rules = bench.parts(bench.rules, rounds, max(20, processes // 10), bench.tiny)
    return {"floor": floor, "programs": programs, "raw": [r for r, _ in sums], "net": [n for _, n in sums],
            "rules": rules}


def storm(bench, rounds, processes, names, say):
    """Runs the arms of these names, and an idle arm of sluice for as long as its storm took."""
    command = bench.spawn_command(processes, 1)
    samples = side_by_side.measure(bench, rounds, command, names, say=say)
    idle = []
    for s in samples["sluice run"]:
        idle.append(arms.run_sluice(bench, ["sleep", f"{s.wall:.2f}"], None))
    agent = [(s.tracer - i.tracer) / processes for s, i in zip(samples["sluice run"], idle)]
    return {"samples": samples, "agent": agent, "processes": processes, "start": [i.start for i in idle],
            "start_wall": [i.whole - i.wall for i in idle]}


def idle(bench, rounds, seconds):
    """Returns the agent's share of a CPU while COMMAND sleeps."""
    taken = [arms.run_sluice(bench, ["sleep", str(seconds)], None) for _ in range(rounds)]
    return [s.tracer / s.wall for s in taken]


def saturating(bench, rounds, processes):
    """Starts processes with twice as many workers as CPUs, as fast as possible, and counts missing ENDs."""
    workers = 2 * os.cpu_count()
    expected = processes + workers + 2      # timed, storm
    lost, agent, rate = [], [], []
    for _ in range(rounds):
        details = {}
        s = arms.run_sluice(bench, bench.spawn_command(processes, workers), None, details)
        missing = max(0, expected - details["ends"])
        lost.append(max(missing, details["holes"], s.lost))
        agent.append(s.tracer / processes)
        rate.append(processes / s.wall)
    return {"lost": lost, "agent": agent, "rate": rate, "processes": processes}


def memory(bench, rounds, alive, seconds):
    """Returns the memory of `sluice run` in KiB: idle, and with many processes alive for the same time."""
    result = {"idle": [], "alive": [], "processes": alive}
    commands = [("idle", ["sleep", "1000"]), ("alive", [bench.storm, "hold", str(alive), bench.tiny])]
    for name, command in commands * rounds:
        room = bench.new_folder()
        p = subprocess.Popen([bench.sluice, "run", "--quiet", "--interval", "1s", "--lake", os.path.join(room, "lake"),
                              "--", *command], env=bench.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if name == "alive" and p.stdout.readline() != "ready\n":
            raise arms.Failed("the processes that should stay alive did not start")
        time.sleep(seconds)
        result[name].append(machine.memory_kib(p.pid))
        p.stdin.close()
        p.terminate() if name == "idle" else None
        p.wait()
        p.stdout.close()
        shutil.rmtree(room)
    return result


def pipeline(bench, rounds, source, snakemake, scale, names, say):
    """Runs the demo pipeline, reduced by scale, from scratch each time, in the arms of these names."""
    def prepare():
        at = bench.new_folder()
        shutil.copytree(source, at, dirs_exist_ok=True)
        config = {"seed": 7, "read_length": 100, "reference_length": int(1500000 * scale),
                  "samples": {name: int(n * scale) for name, n in (("S1", 60000), ("S2", 90000), ("S3", 130000))}}
        with open(os.path.join(at, "config.yaml"), "w") as f:
            json.dump(config, f)            # JSON is YAML
        return at

    venv = os.path.dirname(snakemake)
    bench.env = {**bench.env, "PATH": venv + ":" + bench.env["PATH"], "XDG_CACHE_HOME": bench.new_folder()}
    command = [snakemake, f"-c{os.cpu_count()}", "--quiet", "all"]
    return {"samples": side_by_side.measure(bench, rounds, command, names, prepare=prepare, say=say)}


def parts(bench, rounds, records, processes):
    """Returns CPU ns per record to encode and write, per program to name its tool, per process of an iterator pass; and
    ns per use of what CPUs share, by the number of those that use it at once."""
    figures = bench.parts(bench.stream, rounds, records)
    figures.update(bench.parts(bench.tools, rounds, records))
    figures.update(bench.parts(bench.snapshot, rounds, processes, bench.tiny))
    figures["cpus"] = bench.parts(bench.cpus, rounds, min(records, 25000))
    figures["processes"] = processes
    return figures
