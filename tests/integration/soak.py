# SPDX-License-Identifier: Apache-2.0
"""The agent for half an hour under a steady load, on Kafka and a registry of its own, watched from outside.

Each 10 seconds its memory, file descriptors, threads and CPU time go into samples.csv; at the end a consumer that
shares no code with it says whether all that ran is in Kafka, once, whole and in order. Not part of the test suite.
Exit status: 0 flat and whole, 1 not, 2 usage.
"""
import argparse
import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from kafka_check import check, read_schemas
from stack import Stack

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
TICK = os.sysconf("SC_CLK_TCK")
FIELDS = ("seconds", "rss_kib", "fds", "threads", "cpu_seconds", "spool_kib", "programs")

# $1: a file for the count, $2: seconds between two. One program a turn beside the sleep, named so that it can be found.
EXEC_LOAD = """
trap 'exit 0' TERM
n=0
while :; do
	/bin/true soak-$n
	n=$((n + 1))
	echo $n >"$1"
	sleep "$2"
done
"""
# $1: a folder. Sequential reads and writes through a pipeline of programs, as samtools and friends do it.
IO_LOAD = """
trap 'exit 0' TERM
while :; do
	dd if=/dev/urandom of="$1/raw" bs=1M count=8 status=none
	gzip -1 -c "$1/raw" >"$1/packed"
	gzip -dc "$1/packed" | sort -S 4M -T "$1" | md5sum >/dev/null
	rm -f "$1/raw" "$1/packed"
	sleep 5
done
"""


def configuration(stack, room):
    return f"""interval: 10s
control: {room}/control.sock
control_group: root
user: root
metrics: unix:{room}/metrics.sock
dead_letters: {room}/dead-letters
spool: {{dir: {room}/spool, max: 256MiB}}
kafka:
  brokers: ["{stack.brokers}"]
  topics: {{create: true, partitions: 3, replication: 1}}
registry: {{urls: ["{stack.registry_url}"]}}
"""


def sample(pid, began, room):
    """One row of FIELDS."""
    with open(f"/proc/{pid}/status") as f:
        status = f.read()
    with open(f"/proc/{pid}/stat") as f:
        stat = f.read().rpartition(")")[2].split()
    spool = 0
    for at, _, names in os.walk(os.path.join(room, "spool")):
        for name in names:
            try:
                spool += os.stat(os.path.join(at, name)).st_blocks * 512
            except FileNotFoundError:
                pass  # acknowledged meanwhile
    return {
        "seconds": round(time.monotonic() - began, 1),
        "rss_kib": int(re.search(r"VmRSS:\s+(\d+)", status)[1]),
        "fds": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": int(re.search(r"Threads:\s+(\d+)", status)[1]),
        "cpu_seconds": (int(stat[11]) + int(stat[12])) / TICK,
        "spool_kib": spool // 1024,
        "programs": load_count(room),
    }


def load_count(room):
    for _ in range(10):
        try:
            with open(os.path.join(room, "count")) as f:
                return int(f.read())
        except FileNotFoundError:
            return 0
        except ValueError:
            time.sleep(0.01)  # read between the shell's emptying it and its writing
    return 0


def slope_per_hour(rows, name):
    """Least squares."""
    n = len(rows)
    x = [r["seconds"] / 3600 for r in rows]
    y = [r[name] for r in rows]
    mx, my = sum(x) / n, sum(y) / n
    spread = sum((a - mx) ** 2 for a in x)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / spread if spread else 0.0


def report(rows, interval_s):
    """Prints the figures; True when memory and descriptors stayed flat over the second half."""
    print(f"{'':12}{'first':>10}{'last':>10}{'min':>10}{'max':>10}{'per hour, second half':>24}")
    late = rows[len(rows) // 2:]
    for name in ("rss_kib", "fds", "threads", "spool_kib"):
        values = [r[name] for r in rows]
        print(f"{name:12}{values[0]:>10}{values[-1]:>10}{min(values):>10}{max(values):>10}"
              f"{slope_per_hour(late, name):>24.1f}")
    percent = [100 * (b["cpu_seconds"] - a["cpu_seconds"]) / (b["seconds"] - a["seconds"])
               for a, b in zip(rows, rows[1:])]
    whole = 100 * (rows[-1]["cpu_seconds"] - rows[0]["cpu_seconds"]) / (rows[-1]["seconds"] - rows[0]["seconds"])
    print(f"CPU: {whole:.3f} % of one core over all; of {interval_s} s: {min(percent):.3f} to {max(percent):.3f} %")
    grown = max(r["rss_kib"] for r in late) - max(r["rss_kib"] for r in rows[:len(rows) // 2])
    more_fds = max(r["fds"] for r in late) - max(r["fds"] for r in rows[:len(rows) // 2])
    print(f"second half against first, by their peaks: {grown:+d} KiB, {more_fds:+d} descriptors")
    return grown <= 1024 and more_fds <= 0


def end(process, wait_s, first=signal.SIGTERM):
    """Its exit status; None when it had to be killed."""
    process.send_signal(first)
    try:
        return process.wait(wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def settle(args, room):
    """Until all that has ended is recorded: the exit status."""
    return subprocess.run([args.sluice, "ctl", "--socket", os.path.join(room, "control.sock"), "settle"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def start_agent(args, config, log):
    # With a place for pins of its own: an agent of this host, or what one left behind, is none of ours.
    agent = subprocess.Popen(["unshare", "--mount", "sh", "-c", 'mount -t bpf bpf /sys/fs/bpf && exec "$@"', "sh",
                              args.sluice, "agent", "-c", config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    end = time.monotonic() + 60
    while settle(args, os.path.dirname(config)) != 0:  # it listens, and has seen all that runs
        if agent.poll() is not None or time.monotonic() > end:
            agent.kill()
            with open(log.name, errors="replace") as f:
                sys.exit(f"dev/soak: the agent did not start: {agent.wait()}\n{f.read()[-2000:]}")
        time.sleep(0.1)
    return agent


def soak(args, stack, room):
    config = os.path.join(room, "sluice.yaml")
    with open(config, "w") as f:
        f.write(configuration(stack, room))
    rows = []
    load = []
    agent = None
    with open(os.path.join(room, "agent.log"), "wb") as log, \
            open(os.path.join(room, "samples.csv"), "w", newline="") as out:
        table = csv.DictWriter(out, FIELDS)
        table.writeheader()
        try:
            agent = start_agent(args, config, log)
            if args.rate > 0:
                os.makedirs(os.path.join(room, "io"))
                load = [subprocess.Popen(["/bin/bash", "-c", EXEC_LOAD, "load", os.path.join(room, "count"),
                                          str(1 / args.rate)]),
                        subprocess.Popen(["/bin/bash", "-c", IO_LOAD, "load", os.path.join(room, "io")])]
            began = time.monotonic()
            while time.monotonic() - began < args.minutes * 60:
                time.sleep(args.interval)
                if agent.poll() is not None:
                    print(f"the agent ended by itself with {agent.returncode}; see {log.name}")
                    return False
                rows.append(sample(agent.pid, began, room))
                table.writerow(rows[-1])
                out.flush()
            for process in load:
                end(process, 20)
            load = []
            if settle(args, room) != 0:
                print("the agent did not settle")
            status = end(agent, 60)
        finally:
            for process in [*load, *([agent] if agent else [])]:
                if process.poll() is None:
                    process.kill()
                    process.wait()
    is_flat = report(rows, args.interval)
    print(f"SIGTERM: exit status {status}" if status is not None else "SIGTERM: did not end within 60 s")
    return is_flat and status == 0


def verdict(stack, room, schemas):
    """What is in Kafka against what ran."""
    def ours(topic, r):
        return topic == "sluice.program" and r["phase"] == "END" and (r["argv"] or [""])[-1].startswith("soak-")

    result = check(stack.brokers, stack.registry_url, schemas=schemas, keep=ours,
                   at_least={"sluice.agent": 2, "sluice.host": 1})
    print(result.summary())
    ran = load_count(room)
    seen = {int(r["argv"][-1][5:]) for _, r in result.records}
    missing = [n for n in range(ran) if n not in seen]
    print(f"the load started {ran} programs, {len(result.records)} of their ends came, {len(missing)} are missing")
    return result.ok and not missing and len(seen) == len(result.records)


def main():
    parser = argparse.ArgumentParser(prog="dev/soak", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30, metavar="N", help="how long (30)")
    parser.add_argument("--rate", type=float, default=40, metavar="N",
                        help="about so many programs a second, and some I/O (40); 0: no load at all, an idle host")
    parser.add_argument("--interval", type=int, default=10, metavar="S", help="seconds between samples (10)")
    parser.add_argument("--kafka", default="4.3.0", help="the broker's version (4.3.0)")
    parser.add_argument("--sluice", default=os.path.join(ROOT, "build", "release", "sluice"), help="the binary")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "soak"),
                        help="samples.csv, agent.log and the spool; emptied first (build/soak)")
    args = parser.parse_args()
    if args.minutes * 60 < 4 * args.interval:
        parser.error("--minutes: four samples at least")
    shutil.rmtree(args.out, ignore_errors=True)
    os.makedirs(args.out)
    schemas = read_schemas()  # now: half an hour later the tree may have the next version
    with Stack(kafka=args.kafka) as stack:
        print(f"dev/soak: {args.minutes:g} minutes against Kafka {args.kafka}; figures go to {args.out}/samples.csv",
              flush=True)
        is_flat = soak(args, stack, args.out)
        is_whole = verdict(stack, args.out, schemas)
    print("SOAK OK" if is_flat and is_whole else "SOAK FAILED")
    return 0 if is_flat and is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
