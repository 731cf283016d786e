# SPDX-License-Identifier: Apache-2.0
"""Luigi: its driver, and its summary of what ran. Its return codes are those that it is asked for."""
import os
import re
import shutil

from systems.driver import PIPELINES, STEP, Driver, engine, environment, owner

FAILED = 30  # the status of a run in which a task failed


def start(folder, run, samples="A,B"):
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(PIPELINES, "luigi", "steps.py"), folder)
    return Driver([os.path.join(engine("luigi"), "bin", "luigi"), "--module", "steps", "All", "--run-name", owner(run), "--step",
                   STEP, "--samples", samples, "--local-scheduler", "--workers", "2", "--no-lock",
                   "--worker-keep-alive", "--scheduler-retry-delay", "1", "--worker-wait-interval", "0.2",
                   "--retcode-task-failed", str(FAILED)],
                  folder, env=environment(folder, PYTHONPATH=folder), name=f"luigi-{run}")


def executions(driver):
    """{sample: [pid of the worker]}: every execution of Step in its log."""
    found = {}
    for pid, sample in re.findall(r"\[pid (\d+)\] Worker .* running +Step\(.*sample=(\w+)", driver.output):
        found.setdefault(sample, []).append(int(pid))
    return found
