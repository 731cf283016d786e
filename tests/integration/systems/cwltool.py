# SPDX-License-Identifier: Apache-2.0
"""cwltool: its driver, and what it says of each job on its standard error."""
import json
import os
import re
import shutil

from systems.driver import PIPELINES, STEP, Driver, engine, environment, owner


def inputs(folder, run, samples=("A", "B")):
    """A job order for workflow.cwl in a file of that folder, which gets the workflows too."""
    os.makedirs(folder, exist_ok=True)
    shutil.copytree(os.path.join(PIPELINES, "cwl"), folder, dirs_exist_ok=True)
    path = os.path.join(folder, f"{run}.json")
    with open(path, "w") as f:
        json.dump({"step": STEP, "run": owner(run), "samples": list(samples)}, f)
    return path


def start(folder, run, workflow="workflow.cwl"):
    order = inputs(folder, run)
    if workflow != "workflow.cwl":
        with open(order, "w") as f:
            json.dump({"step": STEP, "run": owner(run)}, f)
    at = engine("cwltool")
    return Driver([os.path.join(at, "bin", "cwltool"), "--parallel", "--no-container", "--outdir", f"out-{run}", workflow,
                   os.path.basename(order)], folder, env=environment(folder), name=f"cwltool-{run}")


def jobs(driver):
    """({job: its words for the end}, [statuses that it names]): scattered jobs are called align, align_2 ..."""
    ended = dict(re.findall(r"\[job ([^\]]+)\] completed (\w+)", driver.output))
    return ended, [int(x) for x in re.findall(r"exited with status: (\d+)", driver.output)]
