# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster on loopback: scheduler, two workers and a client that hands out steps."""
import json
import os

from systems.driver import PIPELINES, STEP, Driver, engine, environment, owner


class Dask:
    """`with Dask(folder) as d: d.run("name")`."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = os.path.join(engine("dask"), "bin")
        self.file = os.path.join(folder, "scheduler.json")
        self.env = environment(folder, DASK_DISTRIBUTED__WORKER__DAEMON="False")
        self.parts = []

    def _start(self, name, *args):
        driver = Driver([os.path.join(self.bin, "dask"), *args], self.folder, env=self.env, name=name)
        self.parts.append(driver)
        return driver

    def __enter__(self):
        self.scheduler = self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                                     "--dashboard-address", "127.0.0.1:0", "--scheduler-file", self.file)
        try:
            self.scheduler.wait_for(lambda: os.path.exists(self.file), 60, "scheduler file")
            self.workers = [self._start("worker", "worker", "--scheduler-file", self.file, "--nthreads", "1",
                                        "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--no-nanny",
                                        "--host", "127.0.0.1", "--local-directory", self.folder) for _ in range(2)]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for part in reversed(self.parts):
            part.end(15)

    def run(self, run):
        """The client's own account: pids of the workers, and [number, status, worker's pid] of each step."""
        client = Driver([os.path.join(self.bin, "python"), os.path.join(PIPELINES, "dask", "client.py"), self.file, owner(run),
                         STEP], self.folder, env=self.env, name="client")
        if client.wait(60) != 0:
            raise AssertionError(client.output)
        self.client = client
        return json.loads(client.output.splitlines()[-1])
