# SPDX-License-Identifier: Apache-2.0
"""Programs in containers of real runtimes: which container and runtime their records name, and how they ended."""
import http.server
import json
import os
import re
import secrets
import socketserver
import subprocess
import tempfile
import threading
import unittest
import urllib.parse

import harness
from systems import bubblewrap, machine, rootfs
from systems.containerd import Containerd
from systems.docker import Dockerd
from systems.lxc import Lxc
from systems.podman import Podman
from systems.recorded import SystemTest, ended, new_mark
from systems.runc import Crun, Runc

# What every container runs: it says its namespaces, and ends with 7 after a program that ended with 3.
SCRIPT = '''/bin/readlink /proc/self/ns/mnt /proc/self/ns/pid /proc/self/ns/net
/bin/true "$0"; /bin/sh -c "exit 3" "$0"; /bin/sleep 0.1 & wait; exit 7'''
# One that waits until its standard input is closed: an END has what a runtime answered by then.
WAITS = '/bin/cat; /bin/true "$0"'
ENDED = [("readlink", 0), ("sh", 3), ("sh", 7), ("sleep", 0), ("true", 0)]
IMAGE = "tools:1"


def box(mark):
    return ["/bin/sh", "-c", SCRIPT, mark]


def first_pid(engine, name):
    """Of a container of docker or podman that runs; 0 where none is called so yet."""
    done = engine("inspect", "--format", "{{.State.Pid}}", name, check=False, quiet=True)
    return int(done.stdout) if done.returncode == 0 else 0


class Teller(socketserver.ThreadingUnixStreamServer):
    """Names every container that it is asked for, in Docker's words."""

    def __init__(self, path, asked):
        self.asked = asked
        super().__init__(path, self.Handler)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            wanted = json.loads(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["filters"][0])["id"][0]
            self.server.asked.append(wanted)
            body = json.dumps([{"Id": wanted, "Names": ["/called-a" + wanted[:4]], "Image": "image:" + wanted[-4:]}]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self):
            return "unix"

        def log_message(self, *args):
            pass


def oom_kills():
    """How many processes the kernel has ended on this host for lack of memory, by its own count."""
    with open("/proc/vmstat") as f:
        return int(dict(line.split() for line in f)["oom_kill"])


class ContainerTest(SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        room = tempfile.TemporaryDirectory(prefix="sluice-root-")
        cls.addClassCleanup(room.cleanup)
        os.chmod(room.name, 0o755)
        cls.root = rootfs.make_root(os.path.join(room.name, "root"), (*rootfs.PROGRAMS, "readlink"))

    def check_box(self, records, mark, said=None, **fields):
        """The records of one box: who ran, how they ended, in which namespaces, and what else all of them say."""
        first = records.only(box(mark))
        family = records.family(first)
        self.assertEqual(ENDED, ended(family))
        if said is not None:
            namespaces = dict(re.findall(r"(mnt|pid|net):\[(\d+)\]", said))
            self.assertEqual({"mnt", "pid", "net"}, set(namespaces), said)
            fields.update({f"{kind}_ns": int(number) for kind, number in namespaces.items()})
            self.assertNotEqual(machine.namespace("self", "mnt"), fields["mnt_ns"])
        self.assert_all(records.both(family), **fields)
        return first

    def run_until_named(self, command, env, pid, name):
        """Runs a container whose script is WAITS, until the agent knows its name. pid: asks for its first process."""
        with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
            first = machine.wait_until(pid, 60, "container")
            self.recorder.wait(lambda: name in self.recorder.ctl("explain", first).stdout, 60, "name in what ctl explain says")
            said, _ = p.communicate(timeout=60)
        self.assertEqual((0, ""), (p.returncode, said))

    def check_infrastructure(self, records, *names):
        """What manages containers is in none."""
        found = [r for r in records.ends.values() if r["comm"] in {n[:15] for n in names}]
        self.assert_all(records.both(found), container_id=None)


class Managed(ContainerTest):
    """Runtimes with a manager, which lists afterwards what ran."""

    def test_docker(self):
        self.start()
        one, two, three = (new_mark() for _ in range(3))
        parent = f"/sluice-test-{os.getpid()}"
        self.addCleanup(machine.remove_cgroups, parent)
        with Dockerd(cgroup="/docker") as d:
            d.import_image(self.root, IMAGE)

            def run(name, args, *options):
                done = d("run", "--name", name, "--network", "none", *options, IMAGE, *args, check=False)
                return done, d.inspect(name)

            done, seen_one = run("one", box(one))
            self.assertEqual((7, 7), (done.returncode, seen_one["State"]["ExitCode"]), done.stdout)
            # A parent of the user's choice: the path has the id, and no word of docker.
            other, seen_two = run("two", box(two), "--cgroup-parent", parent, "--user", "65534")
            self.assertEqual(7, other.returncode, other.stdout)
            before = oom_kills()
            _, full = run("full", ["/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"], "--memory", "32m")
            # Its State.OOMKilled is no witness: containerd may lose that event (containerd/containerd#8893).
            self.assertEqual(137, full["State"]["ExitCode"])
            self.assertGreater(oom_kills(), before)
            d("run", "--detach", "--name", "long", "--network", "none", IMAGE, "/bin/sleep", "300")
            long = d.inspect("long")
            inside = {f"{kind}_ns": machine.namespace(long["State"]["Pid"], kind) for kind in ("mnt", "pid", "net")}
            executed = d("exec", "long", *box(three), check=False)
            self.assertEqual(7, executed.returncode, executed.stdout)
            d("kill", "long")
            self.assertEqual(137, int(d("wait", "long").stdout))
        records = self.stop()
        first = self.check_box(records, one, done.stdout, container_id=seen_one["Id"], container_runtime="docker", uid=0,
                               container_name=None, container_image=None)
        self.assert_cgroup(records.family(first), f"^/docker/{seen_one['Id']}$")
        self.check_box(records, two, other.stdout, container_id=seen_two["Id"], container_runtime="docker", uid=65534)
        self.check_box(records, three, executed.stdout, container_id=long["Id"], container_runtime="docker", **inside)
        memory, = [r for r in records.ends.values() if r["container_id"] == full["Id"] and r["comm"] == "dd"]
        self.assertEqual((9, True), (memory["exit_signal"], memory["oom_killed"]))
        killed, = [r for r in records.ends.values() if r["pid"] == long["State"]["Pid"] and r["comm"] == "sleep"]
        self.assert_all(records.both([killed]), container_id=long["Id"], container_runtime="docker", **inside)
        self.assertEqual(9, killed["exit_signal"])
        self.check_infrastructure(records, "dockerd", "containerd", "docker", "containerd-shim-runc-v2")

    def test_docker_tells_names_and_images_to_who_may_ask(self):
        argv = ["/bin/sh", "-c", WAITS, new_mark()]
        with Dockerd(cgroup="/docker") as d:
            d.import_image(self.root, IMAGE)
            # dockerd lets in its group, which the test's account is not in.
            self.start(user="root", containers={"sockets": [d.socket]})
            self.run_until_named(d.command("run", "--interactive", "--name", "well-named", "--network", "none", IMAGE, *argv), d.env,
                                 lambda: first_pid(d, "well-named"), "well-named")
            seen = d.inspect("well-named")
        records = self.stop()
        first = records.only(argv)
        # A START may come before the answer.
        self.assert_all(records.family(first), container_id=seen["Id"], container_name=seen["Name"].lstrip("/"),
                        container_image=seen["Config"]["Image"])

    def test_podman_tells_names_and_images_too(self):
        argv = ["/bin/sh", "-c", WAITS, new_mark()]
        with Podman() as p:
            image = p.import_image(rootfs.make_tar(self.root, os.path.join(self.room, "root.tar")), IMAGE)
            with p.service() as socket_path:
                self.start(user="root", containers={"sockets": [socket_path]})
                self.run_until_named(p.command("run", "--interactive", "--name", "well-named", *p.run_options, image, *argv), p.env,
                                     lambda: first_pid(p, "well-named"), "well-named")
                seen = p.inspect("well-named")
        records = self.stop()
        self.assert_all(records.family(records.only(argv)), container_id=seen["Id"], container_name="well-named",
                        container_image=seen["ImageName"])

    def test_podman(self):
        self.start()
        one, two = new_mark(), new_mark()
        with Podman() as p:
            image = p.import_image(rootfs.make_tar(self.root, os.path.join(self.room, "root.tar")), IMAGE)
            done = p("run", "--name", "one", *p.run_options, image, *box(one), check=False)
            seen = p.inspect("one")
            self.assertEqual((7, 7), (done.returncode, seen["State"]["ExitCode"]), done.stdout)
            p("run", "--detach", "--name", "long", *p.run_options, image, "/bin/sleep", "300")
            long = p.inspect("long")
            inside = {f"{kind}_ns": machine.namespace(long["State"]["Pid"], kind) for kind in ("mnt", "pid", "net")}
            executed = p("exec", "long", *box(two), check=False)
            self.assertEqual(7, executed.returncode, executed.stdout)
            p("kill", "long")
            self.assertEqual("137", p("wait", "long").stdout.strip())
        records = self.stop()
        first = self.check_box(records, one, done.stdout, container_id=seen["Id"], container_runtime="podman")
        self.assert_cgroup(records.family(first), f"/libpod-{seen['Id']}$")
        self.check_box(records, two, executed.stdout, container_id=long["Id"], container_runtime="podman", **inside)
        killed, = [r for r in records.ends.values() if r["pid"] == long["State"]["Pid"] and r["comm"] == "sleep"]
        self.assert_all(records.both([killed]), container_id=long["Id"], container_runtime="podman", **inside)
        self.assertEqual(9, killed["exit_signal"])
        self.check_infrastructure(records, "conmon", "podman")

    def test_containerd(self):
        self.start()
        one, two = new_mark(), new_mark()
        with Containerd() as c:
            done = c.run("first-box", self.root, box(one))
            self.assertEqual(7, done.returncode, done.stdout)
            running = subprocess.Popen(c.command("run", "--rm", "--rootfs", self.root, "second-box", "/bin/sleep", "300"),
                                       env=machine.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            pid = machine.wait_until(lambda: c.pids().get("second-box"), 20, "container")
            executed = c("task", "exec", "--exec-id", "e1", "second-box", *box(two), check=False)
            self.assertEqual(7, executed.returncode, executed.stdout)
            c("task", "kill", "--signal", "SIGKILL", "second-box")
            self.assertEqual(137, running.wait(20))
        records = self.stop()
        first = self.check_box(records, one, done.stdout, container_id="first-box", container_runtime="containerd")
        self.assert_cgroup(records.family(first), "^/default/first-box$")
        self.check_box(records, two, executed.stdout, container_id="second-box", container_runtime="containerd")
        killed, = [r for r in records.ends.values() if r["pid"] == pid and r["comm"] == "sleep"]
        self.assertEqual(("second-box", 9), (killed["container_id"], killed["exit_signal"]))
        self.check_infrastructure(records, "containerd", "ctr", "containerd-shim-runc-v2")

    def test_lxc(self):
        self.start()
        mark, name = new_mark(), f"box{os.getpid()}"
        with Lxc(self.root) as x:
            x.start(name, ["/bin/sh", "-c", "/bin/sleep 300; exit 1"])
            pid = x.pid(name)
            attached = x.attach(name, box(mark))
            self.assertEqual(7, attached.returncode, attached.stdout)
        records = self.stop()
        first = self.check_box(records, mark, attached.stdout, container_id=name, container_runtime="lxc")
        self.assert_cgroup(records.family(first), rf"^/lxc\.payload\.{name}$")
        init, = [r for r in records.ends.values() if r["pid"] == pid and r["comm"] == "sh"]
        self.assert_all(records.both(records.family(init)), container_id=name, container_runtime="lxc", pid_ns=first["pid_ns"])
        self.assertEqual(9, init["exit_signal"])
        self.check_infrastructure(records, "lxc-start", "lxc-stop")

    def test_bubblewrap_is_a_sandbox_without_an_id(self):
        # It makes namespaces and nothing else: no control group, no id, no name. The records have that much, and the
        # namespaces distinguish one sandbox from another.
        self.start()
        boxes = [(mark, uid, bubblewrap.run(self.root, box(mark), uid=uid)) for mark, uid in ((new_mark(), None), (new_mark(), 65534))]
        records = self.stop()
        own = machine.own_cgroups()
        for mark, uid, done in boxes:
            self.assertEqual(7, done.returncode, done.stdout)
            first = self.check_box(records, mark, done.stdout, container_id=None, container_runtime="bubblewrap",
                                   uid=uid or 0)
            self.assertIn(own.get("memory", own.get("")), self.paths(first))
        self.check_infrastructure(records, "bwrap")


class Bare(ContainerTest):
    """runc and crun alone, and what only a control group's path shows."""

    def test_runc(self):
        self.start()
        mark, container = new_mark(), secrets.token_hex(32)
        with Runc(self.root) as r:
            done = r.run(container, box(mark), cgroup=f"/docker/{container}")
        self.assertEqual(7, done.returncode, done.stdout)
        self.check_box(self.stop(), mark, done.stdout, container_id=container, container_runtime="docker")

    def test_crun(self):
        self.start()
        mark, container = new_mark(), secrets.token_hex(32)
        with Crun(self.root) as r:
            done = r.run(container, box(mark), cgroup=f"/docker/{container}")
        self.assertEqual(7, done.returncode, done.stdout)
        first = self.check_box(self.stop(), mark, done.stdout, container_id=container, container_runtime="docker")
        self.assert_cgroup([first], f"^/docker/{container}$")

    def named_by_socket(self, mode):
        """A runtime of our own words at a socket of this mode; its path, and the ids that it was asked for."""
        path = os.path.join(self.room, "runtime.sock")
        os.chmod(self.room, 0o755)
        asked = []
        teller = Teller(path, asked)
        os.chmod(path, mode)
        threading.Thread(target=teller.serve_forever, daemon=True).start()
        self.addCleanup(teller.server_close)
        self.addCleanup(teller.shutdown)
        return path, asked

    def test_a_container_that_ran_before_is_named(self):
        path, asked = self.named_by_socket(0o666)
        mark, container = new_mark(), secrets.token_hex(32)
        argv = ["/bin/sh", "-c", "/bin/sleep 300; exit 1", mark]
        with Runc(self.root) as r:
            box = r.start("before", argv, cgroup=f"/docker/{container}")
            pid = machine.wait_until(lambda: r.pid("before"), 60, "container")
            machine.wait_until(lambda: machine.children(pid), 60, "program of the container's shell")
            self.start(containers={"sockets": [path]})
            machine.wait_until(lambda: asked, 20, "question")
            self.recorder.wait(lambda: "called-a" in self.recorder.ctl("explain", pid).stdout, 60,
                               "name in what ctl explain says")
            self.assertEqual({"requests": 1, "named": 1, "unknown": 0, "failed": 0, "refused": 0},
                             self.recorder.status()["containers"])
        box.wait(20)
        box.stdout.close()
        records = self.stop()
        self.assert_all([records.only(argv)], container_id=container, container_name="called-a" + container[:4],
                        container_image="image:" + container[-4:])
        self.assertEqual(1, asked.count(container))
        self.assertEqual([], [x for x in self.recorder.log_lines() if x["event"].startswith("containers.")])

    def test_a_socket_that_may_not_be_opened_is_reported_once(self):
        path, asked = self.named_by_socket(0o600)
        self.start(containers={"sockets": [path]})  # as `nobody`
        told = self.recorder.wait_log("containers.socket")
        self.assertEqual(("warning", path, "nobody"), (told["level"], told["path"], told["user"]))
        self.assertIn("may not open", told["message"])
        boxes = []
        with Runc(self.root) as r:
            for n in range(2):
                boxes.append((["/bin/sh", "-c", '/bin/sleep 1; /bin/true "$0"', new_mark()], secrets.token_hex(32)))
                self.assertEqual(0, r.run(f"box-{n}", boxes[-1][0], cgroup=f"/docker/{boxes[-1][1]}").returncode)
        records = self.stop()
        for argv, container in boxes:
            self.assert_all(records.both(records.family(records.only(argv))), container_id=container, container_name=None,
                            container_image=None)
        self.assertEqual([], asked)
        self.assertEqual([told], [x for x in self.recorder.log_lines() if x["event"] == "containers.socket"])

    def test_a_socket_that_may_be_opened_later_is_reported_then(self):
        path, asked = self.named_by_socket(0o600)
        self.start(containers={"sockets": [path]})
        self.recorder.wait_log("containers.socket")
        os.chmod(path, 0o666)
        container = secrets.token_hex(32)
        argv = ["/bin/sh", "-c", WAITS, new_mark()]
        with Runc(self.root) as r:
            self.run_until_named(r.command("later", r.bundle("later", argv, cgroup=f"/docker/{container}")), machine.environment(),
                                 lambda: r.pid("later"), "called-a" + container[:4])
        self.assertEqual("info", self.recorder.wait_log("containers.socket", count=2)["level"])
        records = self.stop()
        self.assertIn(container, asked)
        self.assert_all(records.family(records.only(argv)), container_name="called-a" + container[:4])

    def test_started_in_its_control_group_and_never_moved_there(self):
        """clone3 with CLONE_INTO_CGROUP: the kernel reports no attach."""
        v2 = machine.cgroup_v2()
        if v2 is None:
            self.skipTest("no v2 hierarchy is mounted here")
        container, mark = secrets.token_hex(32), new_mark()
        folder = f"{v2}/docker/{container}"
        os.makedirs(folder)
        self.addCleanup(machine.remove_cgroups, "/docker")
        # Twice: in a control group that was there before the agent, and in one that came later.
        later = secrets.token_hex(32)
        self.start()
        os.makedirs(f"{v2}/docker/{later}")
        pids = {}
        for name in (container, later):
            done = machine.run([harness.built("into_cgroup"), f"{v2}/docker/{name}", "/bin/sh", "-c", "/bin/true; exit 4", mark, name[:8]],
                               check=False)
            self.assertEqual(4, done.returncode, done.stdout)
            pids[name] = int(done.stdout)
        records = self.stop()
        for name, pid in pids.items():
            first = records.only(["/bin/sh", "-c", "/bin/true; exit 4", mark, name[:8]])
            self.assertEqual(pid, first["pid"])
            family = records.family(first)
            self.assertEqual([("sh", 4), ("true", 0)], ended(family))
            self.assert_all(records.both(family), cgroup=f"/docker/{name}", container_id=name, container_runtime="docker")

    def test_a_path_of_every_system(self):
        """Systems that cannot run here, by a real process in a control group of the name that they give."""
        self.start()
        paths = list(every_path())
        boxes = []
        with Runc(self.root) as r:
            for n, (path, fields) in enumerate(paths):
                argv = ["/bin/sh", "-c", "/bin/true; exit 5", new_mark()]
                done = r.run(f"box-{os.getpid()}-{n}", argv, cgroup=path)
                self.assertEqual(5, done.returncode, (path, done.stdout))
                boxes.append((argv, path, fields))
        records = self.stop()
        wrong = []
        for argv, path, fields in boxes:
            family = records.family(records.only(argv))
            self.assertEqual([("sh", 5), ("true", 0)], ended(family))
            self.assert_cgroup(family, f"^{re.escape(path)}$")
            told = {k: {r[k] for r in records.both(family)} for k in fields}
            if told != {k: {v} for k, v in fields.items()}:
                wrong.append(f"{path}: {told}, not {fields}")
        self.assertEqual([], wrong)


def every_path():
    """(path, what it shows). Names that no unit or job of this host has: it might really run one of these systems."""
    own = f"sluicetest{os.getpid()}"
    task = secrets.token_hex(16)
    pod = "6a4ce4a0-ba47-11ea-b2a7-0cc47ac5979e"
    systemd_pod = pod.replace("-", "_")

    def placement(path, scheduler=None, job=None, step=None, runtime=None, container=None, pod=None):
        return path, {"scheduler": scheduler, "job_id": job, "job_step": step, "container_runtime": runtime,
                      "container_id": container, "k8s_pod_uid": pod}

    def box(path, **fields):
        container = secrets.token_hex(32)
        return placement(path.replace("ID", container), container=container, **fields)

    yield placement(f"/slurm_{own}/uid_0/job_1/step_batch/task_0", "slurm", "1", "batch")
    yield placement(f"/slurm/uid_{os.getpid()}/job_247463/step_extern", "slurm", "247463", "extern")
    yield placement(f"/system.slice/{own}_slurmstepd.scope/job_4749/step_0/user/task_0", "slurm", "4749", "0")
    yield placement(f"/system.slice/{own}_slurmstepd.scope/s8FXKTA79XAR00/step_3/user/task_special", "slurm", "s8FXKTA79XAR00", "3")
    yield box(f"/slurm_{own}/uid_7/job_9/step_0/task_1/docker/ID", scheduler="slurm", job="9", step="0", runtime="docker")
    yield placement(f"/pbs_jobs.service/jobid/1234.{own}", "pbs", f"1234.{own}")
    # The slot is all that HTCondor shows.
    yield placement(f"/htcondor/condor_var_lib_condor_execute_slot1_2@{own}", "htcondor", None, "slot1_2")
    yield box(f"/ecs/{task}/ID", scheduler="ecs", job=task, runtime="docker")
    yield box(f"/ecstasks.slice/ecstasks-{task}.slice/docker-ID.scope", scheduler="ecs", job=task, runtime="docker")
    fargate = f"{task}-1234567890"
    yield placement(f"/ecs/{task}/{fargate}", "ecs", task, container=fargate)
    # With the driver cgroupfs nothing shows the runtime.
    for qos in ("/burstable", "/besteffort", ""):
        yield box(f"/kubepods{qos}/pod{pod}/ID", scheduler="kubernetes", job=pod, pod=pod)
    for qos in ("-burstable", "-besteffort", ""):
        slice_ = f"kubepods{qos}-pod{systemd_pod}.slice"
        above = f"/kubepods.slice/kubepods{qos}.slice" if qos else "/kubepods.slice"
        for prefix, runtime in (("docker", "docker"), ("crio", "cri-o"), ("cri-containerd", "containerd")):
            yield box(f"{above}/{slice_}/{prefix}-ID.scope", scheduler="kubernetes", job=pod, pod=pod, runtime=runtime)
    static = secrets.token_hex(16)
    yield box(f"/kubepods.slice/kubepods-pod{static}.slice/cri-containerd-ID.scope", scheduler="kubernetes", job=static,
              pod=static, runtime="containerd")
    yield box(f"/system.slice/{own}.service/kubepods-burstable-pod{systemd_pod}.slice:cri-containerd:ID",
              scheduler="kubernetes", job=pod, pod=pod, runtime="containerd")
    yield box(f"/kubepods/burstable/pod{pod}/{secrets.token_hex(32)}/docker/ID", scheduler="kubernetes", job=pod, pod=pod,
              runtime="docker")
    yield box("/machine.slice/libpod-ID.scope", runtime="podman")
    yield box("/machine.slice/libpod-ID.scope/container", runtime="podman")
    yield box("/libpod_parent/libpod-ID", runtime="podman")
    yield box("/docker/ID", runtime="docker")
    yield box("/system.slice/docker-ID.scope", runtime="docker")
    yield box(f"/{own}/ID")  # the user's own parent, no runtime's name
    yield placement(f"/apptainer/{os.getpid()}", runtime="apptainer", container=str(os.getpid()))
    yield placement(f"/system.slice/apptainer-{os.getpid()}.scope", runtime="apptainer", container=str(os.getpid()))
    yield placement(f"/lxc.payload.{own}", runtime="lxc", container=own)
    yield placement(f"/lxc/{own}", runtime="lxc", container=own)
    yield placement(f"/default/{own}", runtime="containerd", container=own)
    yield placement(f"/system.slice/{own}.service", "systemd", f"{own}.service")
    yield placement(f"/user.slice/user-{os.getpid()}.slice/session-3.scope", "systemd", "session-3.scope")


if __name__ == "__main__":
    harness.main()
