# SPDX-License-Identifier: Apache-2.0
"""
Makes the fixture of a release with its own programs; run by dev/keep-release: release_state.py BUILD COMMIT

On a host where little else runs: what ran as the agent started may be named in its write-ahead log.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import harness
import releases
from agent import Agent

ROOM = "/tmp/sluice-release"  # fixed: its name is in the records
PROGRAMS = 30
MAKEFILE = "all: good bad\ngood:\n\t@/bin/true made\nbad:\n\t@exit 3\n"
LOAD = """make -k >/dev/null 2>&1
i=0; while [ $i -lt %d ]; do i=$((i+1)); /bin/true release $i; done
""" % PROGRAMS


def spooled(agent, topic):
    return next(t["produced"] for t in agent.status()["records"] if t["topic"] == topic)


def make_spool(sluice, shell):
    """An agent whose broker is away is killed, with a program under way that it knows."""
    agent = Agent(ROOM, sluice=sluice, run_socket=None, drain="0s", kafka={"brokers": ["127.0.0.1:1"]},
                  registry={"urls": ["http://127.0.0.1:1"]})
    os.makedirs(agent.config["rules"])
    with open(os.path.join(agent.config["rules"], "load.yaml"), "w") as f:
        json.dump({"include": [{"path": ROOM + "/"}]}, f)
    try:
        agent.start()
        sleeper = subprocess.Popen([shell, "-c", "sleep 600; true"], start_new_session=True)
        subprocess.run([shell, "-c", LOAD], check=True)
        agent.wait(lambda: spooled(agent, "sluice.program") >= 2 * PROGRAMS + 10 and
                   spooled(agent, "sluice.usage") > 0 and spooled(agent, "sluice.finding") > 0, what="records")
        agent.kill9()
        os.killpg(sleeper.pid, signal.SIGKILL)
        sleeper.wait()
    finally:
        agent.remove()
    return agent.spool


def deliver(build, spool, lake):
    """What that release's own programs deliver of a copy of the spool."""
    copy = spool + ".copy"
    shutil.copytree(spool, copy)
    subprocess.run([os.path.join(build, "tests", "integration", "deliver"), "--spool", copy, "--lake", lake,
                    "--number", "0", "--quiet"], check=True)
    shutil.rmtree(copy)
    return harness.read_lake(lake)


def main():
    build, commit = sys.argv[1:]
    sluice = os.path.join(build, "sluice")
    os.makedirs(ROOM)
    os.chdir(ROOM)
    try:
        shell = shutil.copy("/bin/dash", os.path.join(ROOM, "sh"))
        with open(os.path.join(ROOM, "Makefile"), "w") as f:
            f.write(MAKEFILE)
        spool = make_spool(sluice, shell)
        with open(os.path.join(spool, "agent-id"), "r+") as f:
            f.truncate(36)  # the id alone, without what tells this machine from those that run the tests
        lake = os.path.join(ROOM, "lake")
        harness.run_sluice(["run", "--as-root", "--quiet", "--interval", "500ms", "--lake", lake, "--", "make", "-k"],
                           sluice=sluice, env={"PATH": os.environ["PATH"]})
        with tempfile.TemporaryDirectory() as delivered:
            topics = deliver(build, spool, delivered)
        agent_id = {r["agent_id"] for records in topics.values() for r in records}
        programs = topics["sluice.program"]
        alive = {r["program_id"] for r in programs} - {r["program_id"] for r in programs if r["phase"] == "END"}
        version = subprocess.run([sluice, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[1]
        to = os.path.join(releases.FOLDER, f"{version}-{commit}")
        os.makedirs(to, exist_ok=True)
        with open(os.path.join(to, "expected.json"), "w") as f:
            expected = {"agent_id": agent_id.pop(), "alive": len(alive), "spool": releases.digests(topics),
                        "lake": releases.digests(harness.read_lake(lake))}
            f.write(json.dumps(expected, indent=1, sort_keys=True) + "\n")
        subprocess.run(["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-cJf",
                        os.path.join(to, "state.tar.xz"), "-C", ROOM, "spool", "lake"], check=True)
    finally:
        os.chdir("/")
        shutil.rmtree(ROOM)
    print(to)


if __name__ == "__main__":
    main()
