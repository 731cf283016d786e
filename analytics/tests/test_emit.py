# SPDX-License-Identifier: Apache-2.0
"""What --emit prints, read by the engines themselves: Nextflow, Snakemake 7 and later, Slurm, and a YAML parser."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
from executions import GIB, MIB, NEXTFLOW, SNAKEMAKE, add_execution, add_run
from lakes import LakeMaker

from sluice_analytics.lake.duck import DuckSession
from sluice_analytics.report import emit
from sluice_analytics.tune import recommend

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def engine(name: str) -> pathlib.Path:
    """The folder of a real engine; dev/engines fetches it where it is not there yet."""
    done = subprocess.run([ROOT / "dev" / "engines", name], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "build" / "engines" / name


def output(argv: list[str | os.PathLike[str]], folder: pathlib.Path, **env: str) -> str:
    """Both streams of a program that must end well."""
    done = subprocess.run(
        argv, cwd=folder, env={"PATH": PATH, "HOME": str(folder), "LANG": "C.UTF-8", **env}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def configuration(
    maker: LakeMaker, form: str, host_bytes: int = 16 * GIB, killed_at: float | None = None, **task: Any
) -> str:
    """Three runs: ALIGN of a workflow PREP needs 2 CPUs, 575 MiB and 60 s; SORT grows with input; RARE ran once.

    killed_at: MiB at which an execution of SORT was killed for memory; None: none was.
    """
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n, memory_bytes=host_bytes)
        align = "PREP:ALIGN" if form == "nextflow" else "align"
        add_execution(maker, f"r{n}", align, start=3600 * n, wall=50, cpu=90, programs=[(0, 50, 500)], **task)
        for k in range(2):
            size = 100 * (2 * n + k + 1)
            sort = "SORT" if form == "nextflow" else "sort_it"
            add_execution(
                maker, f"r{n}", sort, start=3600 * n + 200 * k, wall=100, cpu=290, rchar=size * MIB,
                programs=[(0, 100, 500 + 2 * size)], **task,
            )  # fmt: skip
    if killed_at is not None:
        sort = "SORT" if form == "nextflow" else "sort_it"
        add_execution(
            maker, "r0", sort, start=600, programs=[(0, 50, killed_at)], exit_code=137, oom_killed=True, **task
        )
    add_execution(maker, "r0", "RARE", start=20, **task)
    add_execution(maker, "r0", "bad'; name\n}{ #", start=30, **task)
    maker.write()
    with DuckSession(str(maker.path)) as session:
        return emit.render(form, recommend.advices_of(session, "p"), session.source)


WORKFLOW = """
process ALIGN {
  output: stdout
  script: "echo align: cpus ${task.cpus} memory ${task.memory.toBytes()} seconds ${task.time.toSeconds()}"
}
process SORT {
  input: path X
  output: stdout
  script: "echo sort: cpus ${task.cpus} memory ${task.memory.toBytes()} seconds ${task.time.toSeconds()}"
}
process RARE {
  output: stdout
  script: "echo rare: cpus ${task.cpus} memory ${task.memory} time ${task.time}"
}
workflow PREP { main: ALIGN()
  emit: ALIGN.out }
workflow {
  PREP().view()
  SORT(file('input')).view()
  RARE().view()
}
"""


def nextflow(folder: pathlib.Path, config: str) -> str:
    lib = engine("nextflow") / "lib"
    (folder / "main.nf").write_text(WORKFLOW)
    (folder / "input").write_bytes(b"x" * MIB)
    (folder / "own.config").write_text(config)
    (folder / "nextflow.config").write_text("executor { cpus = 8; memory = '64 GB' }\n")
    opened = ("java.lang", "java.util", "java.io", "java.nio", "java.nio.file", "java.nio.file.spi", "java.net",
              "sun.nio.ch", "sun.nio.fs", "java.util.regex", "jdk.internal.misc", "jdk.internal.vm")  # fmt: skip
    return output(
        ["java", "-Xms64m", "-Xmx512m", "-XX:TieredStopAtLevel=1",
         *(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in opened), "-cp", f"{lib}/*", "nextflow.cli.Launcher",
         "run", "main.nf", "-c", "own.config"],
        folder, NXF_HOME=str(folder / ".nxf"), NXF_OFFLINE="true", NXF_ANSI_LOG="false",
        NXF_DISABLE_CHECK_LATEST="true",
    )  # fmt: skip


def test_nextflow_takes_it(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    config = configuration(maker, "nextflow", **NEXTFLOW)
    assert "// RARE: left out: 1 successful execution, 3 needed" in config
    said = nextflow(tmp_path, config)
    assert f"align: cpus 2 memory {575 * MIB} seconds 60" in said
    assert f"sort: cpus 3 memory {1955 * MIB} seconds 120" in said  # 1700 MiB * 1.15
    assert "rare: cpus 1 memory null time null" in said
    assert "WARN" not in said


def test_nextflow_takes_memory_by_input(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    config = configuration(maker, "nextflow", **NEXTFLOW)
    dynamic = re.sub(r"// (memory = \{)", r"\1", re.sub(r"memory = '1955 MB'", "", config))
    assert dynamic != config
    said = nextflow(tmp_path, dynamic)
    (memory,) = re.findall(r"sort: cpus 3 memory (\d+)", said)
    assert int(memory) == pytest.approx((500 * MIB + 2 * MIB) * 1.15, rel=1e-3)  # of an input of 1 MiB


_BOUNDS = [
    ({"killed_at": 1000}, 1200 * MIB),  # what was needed at least by the execution that was killed for memory
    ({"killed_at": 1000, "host_bytes": 1024 * MIB}, 1024 * MIB),  # no host has more
]
"""Of SORT with an input of 1 MiB or 10 MB, which needs 580 to 600 MiB without these"""


@pytest.mark.parametrize(("lake", "least"), _BOUNDS)
def test_nextflow_by_input_has_bounds(
    maker: LakeMaker, tmp_path: pathlib.Path, lake: dict[str, Any], least: int
) -> None:
    config = configuration(maker, "nextflow", **lake, **NEXTFLOW)
    dynamic = re.sub(r"// (memory = \{)", r"\1", re.sub(r"memory = '\d+ MB'(\n.*X \(not)", r"\1", config))
    assert dynamic != config
    (memory,) = re.findall(r"sort: cpus 3 memory (\d+)", nextflow(tmp_path, dynamic))
    assert int(memory) == least


SNAKEFILE = """
rule all:
    input: "align.txt", "sort.txt", "rare.txt"
rule align:
    output: "align.txt"
    resources: mem_mb=1, runtime=1
    threads: 7
    shell: "echo align {threads} {resources.mem_mb} {resources.runtime} >{output}"
rule sort_it:
    input: "input"
    output: "sort.txt"
    resources: mem_mb=1, runtime=1
    threads: 7
    shell: "echo sort {threads} {resources.mem_mb} {resources.runtime} >{output}"
rule RARE:
    output: "rare.txt"
    resources: mem_mb=1, runtime=1
    threads: 7
    shell: "echo rare {threads} {resources.mem_mb} {resources.runtime} >{output}"
"""


def snakemake(folder: pathlib.Path, program: str | os.PathLike[str], config: str) -> list[str]:
    (folder / "profile").mkdir()
    (folder / "profile" / "config.yaml").write_text(config)
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "input").write_bytes(b"x" * 10_000_000)
    output([program, "--profile", folder / "profile", "--cores", "8", "--nolock"], folder)
    return [(folder / f"{name}.txt").read_text().strip() for name in ("align", "sort", "rare")]


WANTED = ["align 2 603 1", "sort 3 2050 2", "rare 7 1 1"]
"""575 MiB are 602.9 of 10^6 bytes, 1955 MiB 2049.97; 120 s are 2 minutes."""


def test_snakemake_takes_it(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    config = configuration(maker, "snakemake", **SNAKEMAKE)
    assert "# RARE: left out: 1 successful execution, 3 needed" in config
    assert snakemake(tmp_path, engine("snakemake") / "bin" / "snakemake", config) == WANTED


def test_snakemake_7_takes_it(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    debian = "/usr/bin/snakemake"
    if not os.access(debian, os.X_OK):
        pytest.skip(f"{debian} is not there: ./dev/install test")
    config = configuration(maker, "snakemake", **SNAKEMAKE)
    assert snakemake(tmp_path, debian, config) == WANTED


def test_snakemake_takes_memory_by_input(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    config = configuration(maker, "snakemake", **SNAKEMAKE)
    dynamic = re.sub(r'# (- "sort_it:mem_mb)', r"\1", re.sub(r"- sort_it:mem_mb=\d+\n", "", config))
    assert dynamic != config
    _, sort, _ = snakemake(tmp_path, engine("snakemake") / "bin" / "snakemake", dynamic)
    # (500 MiB + 2 * the 9.54 MiB that Snakemake calls size_mb) * 1.15, in 10^6 bytes
    assert int(sort.split()[2]) == pytest.approx(500 * 1.048576 * 1.15 + 2 * 10 * 1.15, rel=0.01)


@pytest.mark.parametrize(("lake", "least"), _BOUNDS)
def test_snakemake_by_input_has_bounds(
    maker: LakeMaker, tmp_path: pathlib.Path, lake: dict[str, Any], least: int
) -> None:
    config = configuration(maker, "snakemake", **lake, **SNAKEMAKE)
    dynamic = re.sub(r'# (- "sort_it:mem_mb)', r"\1", re.sub(r"- sort_it:mem_mb=\d+\n", "", config))
    _, sort, _ = snakemake(tmp_path, engine("snakemake") / "bin" / "snakemake", dynamic)
    assert int(sort.split()[2]) == pytest.approx(least / 1e6, abs=1)


def test_rules_that_snakemake_did_not_name_are_left_out(maker: LakeMaker) -> None:
    config = configuration(maker, "snakemake", engine="snakemake", source="child of the driver")
    assert "the rule's name is not known" in config
    assert all(line.startswith("#") for line in config.splitlines())


def test_tasks_of_another_engine_are_left_out(maker: LakeMaker) -> None:
    config = configuration(maker, "nextflow", **SNAKEMAKE)
    assert config.count("left out: is not a process of Nextflow, but of snakemake") == 4
    assert "withName" not in config


def test_slurm_takes_it(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    config = configuration(maker, "slurm")
    blocks = config.split("\n\n")
    align = next(b for b in blocks if b.startswith("# align"))
    assert align.splitlines()[-4:] == [
        "#SBATCH --job-name=align", "#SBATCH --cpus-per-task=2", "#SBATCH --mem=575M", "#SBATCH --time=0-00:01:00",
    ]  # fmt: skip
    assert any(b.startswith("# RARE: left out: 1 successful") for b in blocks)
    sys.path.insert(0, str(ROOT / "tests" / "integration"))
    try:
        from systems.slurm import Slurm
    finally:
        sys.path.pop(0)
    with Slurm() as slurm:  # SkipTest where it cannot run
        script = f"#!/bin/sh\n{align}\ntrue\n"
        job = slurm("sbatch", "--parsable", "--hold", "-D", slurm.work, stdin=None, input=script).stdout.strip()
        (shown,) = slurm.show(job)
        assert (shown["JobName"], shown["CPUs/Task"], shown["MinMemoryNode"], shown["TimeLimit"]) == (
            "align", "2", "575M", "00:01:00",
        )  # fmt: skip
        slurm("scancel", job)


def test_slurm_of_several_nodes(maker: LakeMaker) -> None:
    for n in range(3):
        for h in range(4):
            host = {"host_id": f"{h:032x}", "host_name": f"n{h}"}
            add_run(maker, f"r{n}", start=3600 * n, cpus=32, **host)
            add_execution(
                maker, f"r{n}", "solve", start=3600 * n, task_id=f"{n}.0", wall=600, cpu=0.9 * 32 * 600, threads=32,
                requested_cpus=32.0, engine="slurm", **host,
            )  # fmt: skip
    maker.write()
    with DuckSession(str(maker.path)) as session:
        found = recommend.advices_of(session, "p")
    lines = emit.render("slurm", found, "lake").splitlines()
    # How many ranks a node had is not recorded: CPUs of a node, and none of a task. One node at a time may have had all
    # of its 32 CPUs busy: (600 + 4 * 0.9 * 32 * 600 * (1 / 29 - 1 / 32)) * 1.2 = 988.2.
    assert [x for x in lines if x.startswith("#SBATCH")] == [
        "#SBATCH --job-name=solve", "#SBATCH --nodes=4", "#SBATCH --mincpus=29", "#SBATCH --mem=250M",
        "#SBATCH --time=0-00:16:29",
    ]  # fmt: skip
    assert "#   it ran on 4 hosts at once: CPUs are those of all, memory is that of each." in lines
    # A pod lives on one host.
    assert '            cpu: "29"' in emit.render("kubernetes", found, "lake").splitlines()


def test_kubernetes_is_yaml_of_jobs(maker: LakeMaker, tmp_path: pathlib.Path) -> None:
    text = configuration(maker, "kubernetes")
    read = "import json, sys, yaml; print(json.dumps([d for d in yaml.safe_load_all(sys.stdin) if d]))"
    python = engine("snakemake") / "bin" / "python"  # PyYAML comes with Snakemake
    done = subprocess.run([python, "-c", read], input=text, capture_output=True, text=True, check=True)
    align, sort = json.loads(done.stdout)
    assert align == {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "align"},
        "spec": {
            # The pod's: that of the Job counts the wait for a node and all retries.
            "template": {"spec": {"activeDeadlineSeconds": 60, "containers": [{
                "name": "align",
                "resources": {"requests": {"cpu": "2", "memory": "575Mi"}, "limits": {"memory": "575Mi"}},
            }]}},
        },
    }  # fmt: skip
    assert sort["metadata"]["name"] == "sort-it"
    assert "# RARE: left out: 1 successful" in text


@pytest.mark.parametrize("form", sorted(emit.FORMATS))
def test_no_name_gets_out_of_its_comment(maker: LakeMaker, form: str) -> None:
    for n in range(3):
        add_run(maker, f"r{n}", start=3600 * n)
        add_execution(
            maker, f"r{n}", "x'\n}\nrm: -rf", start=3600 * n, **(SNAKEMAKE if form == "snakemake" else NEXTFLOW)
        )
    maker.write()
    with DuckSession(str(maker.path)) as session:
        text = emit.render(form, recommend.advices_of(session), session.source)
    assert "\\n" in text
    assert not any(line.lstrip().startswith(("rm:", "}\n", "x'")) for line in text.splitlines())
