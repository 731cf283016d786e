# SPDX-License-Identifier: Apache-2.0
"""Toil with CWL: its driver, and what it says of the jobs that it issued."""
import os
import re

from systems import cwltool
from systems.driver import Driver, engine, environment


def start(folder, run):
    order = cwltool.inputs(folder, run)
    at = os.path.join(engine("toil"), "bin")
    env = environment(folder)
    env["PATH"] = f"{at}:{env['PATH']}"  # it starts its own helpers by name
    work = os.path.join(folder, "work")
    os.makedirs(work, exist_ok=True)
    return Driver([os.path.join(at, "toil-cwl-runner"), "--jobStore", f"file:{folder}/store-{run}", "--workDir", work,
                   "--no-container", "--maxCores", "2", "--disableProgress", "--logLevel", "INFO", "--outdir",
                   f"out-{run}", "workflow.cwl", os.path.basename(order)], folder, env=env, name=f"toil-{run}")


def issued(driver):
    """[(job's name, its id)] of the tools that Toil handed to workers; its own jobs are no word of the log."""
    return re.findall(r"Issued job '([^']+)' (?:\S+ )?(kind-\S+)", driver.output)
