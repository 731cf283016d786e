# SPDX-License-Identifier: Apache-2.0
"""GNU make: its driver. Its account is its exit status and what it echoes."""
import os
import shutil

from systems.driver import PIPELINES, STEP, Driver, environment, owner


def start(folder, run, *targets, **variables):
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(PIPELINES, "make", "Makefile"), folder)
    pairs = [f"{k}={v}" for k, v in {"RUN": owner(run), "STEP": STEP, **variables}.items()]
    return Driver(["make", "-j2", *targets, *pairs], folder, env=environment(folder), name=f"make-{run}")
