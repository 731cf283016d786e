# SPDX-License-Identifier: Apache-2.0
"""ops/kubernetes on a real kubelet with the image of dev/packages: the DaemonSet runs with the rights that it names, records
have the names of pods, no program is lost while a changed ConfigMap rolls it out, and README.md's removal leaves no probe. As
root; dev/kubernetes builds the programs of Kubernetes."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import unittest
import urllib.request

import cluster
import image

PACKAGES = os.path.join(cluster.ROOT, "build", "packages")
OPS = os.path.join(cluster.ROOT, "ops", "kubernetes")
PINS = "/sys/fs/bpf/sluice"
WORK = "sluice.test/work:1"
# Each marker is the argument of one program; a container ends after so many.
WORKLOAD = """i=0; while [ $i -lt 100000 ]; do /bin/true {0} $i; i=$((i + 1)); /bin/sleep 0.05; done"""


def package(pattern):
    found = glob.glob(os.path.join(PACKAGES, pattern))
    if len(found) != 1:
        raise AssertionError(f"{PACKAGES} has {len(found)} {pattern}; run: dev/static x86_64 && dev/packages x86_64")
    return found[0]


SLUICE = package("sluice-*-linux-x86_64")


def metrics():
    with urllib.request.urlopen("http://127.0.0.1:9465/metrics", timeout=10) as f:
        lines = [line.rsplit(" ", 1) for line in f.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def records(lake, topic):
    done = subprocess.run([SLUICE, "cat", "--raw", "--topic", topic, lake], stdout=subprocess.PIPE, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("loading BPF needs root")
        for program in ("containerd", "ctr", "runc", "busybox"):
            if shutil.which(program) is None:
                raise AssertionError(f"{program} is missing; run: sudo ./dev/install test")
        cls.c = cluster.Cluster()
        cls.addClassCleanup(subprocess.run, [SLUICE, "agent", "--uninstall"], timeout=60, stdout=subprocess.DEVNULL)
        cls.addClassCleanup(cls.c.down)
        cls.c.up()
        agent = package("sluice-*-oci-x86_64.tar")
        with tarfile.open(agent) as t, t.extractfile("index.json") as f:
            cls.agent_image = json.load(f)["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
        cls.c.import_image(agent)
        busybox = shutil.which("busybox")
        cls.c.import_image(image.archive(cls.c.path("work.tar"), WORK, entrypoint=["/bin/sh", "-c"],
                                         files={"/bin/" + n: busybox for n in ("sh", "true", "sleep")}))
        os.makedirs(cls.c.path("state"))

    def apply(self, rules):
        """Base and components as an overlay that only names the image, and folders of this test."""
        at = self.c.path("ops")
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(OPS, at)
        with open(os.path.join(at, "base", "site.yaml"), "w") as f:
            f.write(rules)
        patch = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "sluice"}, "spec": {"template": {"spec": {
            "volumes": [{"name": "state", "hostPath": {"path": self.c.path("state")}},
                        {"name": "kubelet-certificate", "hostPath": {"path": self.c.path("kubelet", "pki", "kubelet.crt")}}]}}}}
        os.makedirs(os.path.join(at, "test"))
        with open(os.path.join(at, "test", "kustomization.yaml"), "w") as f:
            json.dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["../base"],
                       "components": ["../components/names", "../components/kubelet-own-certificate"],
                       "images": [dict(zip(("name", "newName", "newTag"), ("registry.invalid/sluice", *self.agent_image.rsplit(":", 1))))],
                       "patches": [{"target": {"kind": "DaemonSet"}, "patch": json.dumps(patch)}]}, f)
        self.c.kubectl("apply", "-k", os.path.join(at, "test"))

    def agent(self):
        """The one pod of the agent that is ready, by its name."""
        pods = [p for p in self.c.objects("pods") if p["metadata"]["namespace"] == "sluice" and
                "deletionTimestamp" not in p["metadata"]]
        ready = [p["metadata"]["name"] for p in pods
                 if any(x["type"] == "Ready" and x["status"] == "True" for x in p["status"].get("conditions", []))]
        return ready[0] if len(pods) == len(ready) == 1 else None

    def events(self, pod):
        """The log of an agent, event by event."""
        found = {}
        for at, _, names in os.walk(self.c.path("pod-logs")):
            for name in sorted(names):
                if f"_{pod}_" in at:
                    with open(os.path.join(at, name)) as f:
                        for line in f:
                            event = json.loads(line.split(" ", 3)[3])
                            found.setdefault(event["event"], []).append(event)
        return found

    def wait_agent(self, but=None):
        try:
            return cluster.wait(lambda: self.agent() not in (None, but) and self.agent(), 120, "agent that is ready")
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.c.kubectl('-n', 'sluice', 'describe', 'pods')[-3000:]}") from None

    def check_removal(self):
        """The command of README.md removes the probes from the node, which has no program of sluice."""
        with open(os.path.join(OPS, "README.md")) as f:
            command = re.search(r"kubectl (-n sluice debug .*?)\n +done", f.read(), re.S)[1].replace("\\\n", "")
        self.assertTrue(os.listdir(PINS))
        words = [w.replace('"$node"', "node/" + self.c.node) for w in command.split()]
        words = [re.sub("^--image=.*", "--image=" + self.agent_image, w) for w in words]
        self.c.kubectl(*words)

        def ended():
            return [x["state"]["terminated"] for p in self.c.objects("pods") if p["metadata"]["namespace"] == "sluice"
                    for x in p["status"].get("containerStatuses", []) if "terminated" in x["state"]]
        self.assertEqual([0], [x["exitCode"] for x in cluster.wait(ended, 60, "end of the debugging pod")])
        self.assertFalse(os.path.exists(PINS))

    def test_a_day_of_a_daemon_set(self):
        self.apply("exclude: []\n")
        first = self.wait_agent()
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "align-0", "namespace": "genomics"}, "spec": {
            "hostNetwork": True, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1,
            "containers": [{"name": n, "image": WORK, "args": [WORKLOAD.format(n)], "securityContext": {"runAsUser": 1000}}
                           for n in ("bwa", "sort")]}}
        self.c.kubectl("create", "namespace", "genomics")
        cluster.wait(lambda: "default" in self.c.kubectl("-n", "genomics", "get", "serviceaccounts", check=False), 30, "account")
        self.c.kubectl("apply", "-f", "-", input=json.dumps(pod))
        cluster.wait(lambda: metrics()['sluice_kubelet_names_total{result="named"}'] >= 2, 60, "name")
        self.assertEqual(0, metrics()["sluice_kubelet_requests_failed_total"])
        dropped = self.events(first)["privileges.dropped"][0]["message"]
        self.assertIn("capabilities bpf, no new privileges", dropped)

        # Other rules are another ConfigMap: the pod is replaced, the probes are not.
        self.apply("exclude:\n  - {name: sleeps, trust: any, exe: sleep}\n")
        second = self.wait_agent(but=first)
        self.assertEqual("the previous agent's probes are taken over", self.events(second)["probes.open"][0]["message"],
                         json.dumps({"first": self.events(first), "second": self.events(second)}, indent=1))
        time.sleep(8)
        self.assertEqual(0, metrics()["sluice_gaps_total"])

        # Without the right, names are missing and nothing else.
        self.c.kubectl("delete", "clusterrolebinding", "sluice-names")
        pod["metadata"]["name"] = "align-1"
        self.c.kubectl("apply", "-f", "-", input=json.dumps(pod))
        refused = cluster.wait(lambda: self.events(second).get("containers.kubelet"), 60, "refusal")[0]
        self.assertIn("nodes/pods", refused["message"])
        time.sleep(3)
        self.c.kubectl("-n", "genomics", "delete", "pods", "--all", "--timeout=60s", timeout=90)
        time.sleep(6)
        self.c.kubectl("-n", "sluice", "delete", "daemonset", "sluice", "--timeout=60s", timeout=90)
        cluster.wait(lambda: not [p for p in self.c.objects("pods") if p["metadata"]["namespace"] == "sluice"], 60, "end")
        self.check_removal()

        programs = [r for r in records(self.c.path("state", "lake"), "sluice.program") if r["phase"] == "END"]
        named = {}
        for r in programs:
            if r["comm"] == "true" and r["argv"] and len(r["argv"]) == 3:
                named.setdefault((r["k8s_pod_uid"], r["argv"][1]), []).append(r)
        self.assertEqual(4, len(named))
        without = 0
        for (_, name), found in named.items():
            numbers = sorted(int(r["argv"][2]) for r in found)
            self.assertEqual(list(range(len(numbers))), numbers, f"{name}: lost, or twice")
            self.assertGreater(len(numbers), 50)
            last = found[-1]
            if last["k8s_pod_name"] is None:
                without += 1
                continue
            self.assertEqual(("align-0", "genomics", name, WORK, 1000), (last["k8s_pod_name"], last["k8s_namespace"],
                             last["k8s_container_name"], last["container_image"], last["uid"]))
        self.assertEqual(2, without, "those of align-1")
        self.assertTrue(any(r["comm"] == "sleep" for r in programs))
        lost = [x for r in records(self.c.path("state", "lake"), "sluice.agent") for x in r["lost"] if x["count"]]
        self.assertEqual([], lost)
        print("programs that were recorded, each once:", {n: len(f) for (_, n), f in named.items()}, file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
