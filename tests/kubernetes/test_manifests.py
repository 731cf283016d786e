# SPDX-License-Identifier: Apache-2.0
"""The manifests of ops/kubernetes: kustomize builds the base with each component, the API of Kubernetes has each field, and the
DaemonSet has the rights that docker-compose.yml and the unit name, and no other. dev/kubernetes makes the tools."""
import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPS = os.path.join(ROOT, "ops", "kubernetes")
MADE = os.path.join(ROOT, "build", "kubernetes")
COMPONENTS = sorted(os.listdir(os.path.join(OPS, "components")))


def run(program, *args, stdin=None):
    path = os.path.join(MADE, "bin", program)
    if not os.path.exists(path):
        raise AssertionError(f"{path} is missing; run: ./dev/kubernetes")
    return subprocess.run([path, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)


class ManifestTest(unittest.TestCase):
    def setUp(self):
        self.room = tempfile.mkdtemp(prefix="sluice-kustomize-", dir=os.path.join(ROOT, "build"))
        self.addCleanup(shutil.rmtree, self.room)

    def build(self, *components, images=()):
        """The text of an overlay with these components."""
        up = os.path.relpath(OPS, self.room)
        with open(os.path.join(self.room, "kustomization.yaml"), "w") as f:
            json.dump({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [up + "/base"],
                       "components": [f"{up}/components/{c}" for c in components], "images": list(images)}, f)
        done = run("kustomize", "build", self.room)
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def check(self, text):
        schemas = os.path.join(MADE, "schemas", "{{ .ResourceKind }}{{ .KindSuffix }}.json")
        # A resource of its own definition, of which Kubernetes has no schema.
        return run("kubeconform", "-strict", "-skip", "PodMonitor", "-output", "json", "-schema-location", schemas, stdin=text)

    def daemon_set(self, *components, **overlay):
        one, = [d for d in yaml.safe_load_all(self.build(*components, **overlay)) if d["kind"] == "DaemonSet"]
        return one["spec"]["template"]["spec"]

    def test_every_field_is_one_of_the_api(self):
        needs = {"kubelet-own-certificate": "names"}
        for n in range(len(COMPONENTS) + 1):
            for chosen in itertools.combinations(COMPONENTS, n):
                if any(needs.get(c, c) not in chosen for c in chosen):
                    continue
                chosen = sorted(chosen, key=lambda c: c in needs)
                done = self.check(self.build(*chosen))
                self.assertEqual(0, done.returncode, f"{chosen}: {done.stdout}")

    def test_a_wrong_field_is_found(self):
        text = self.build()
        for right, wrong in (("hostPID: true", "hostPDI: true"), ("hostPID: true", "hostPID: 'yes'"),
                             ("readOnlyRootFilesystem", "readonlyRootFilesystem"), ("type: DirectoryOrCreate", "kind: Directory"),
                             ("kind: DaemonSet", "kind: DemonSet")):
            self.assertIn(right, text)
            self.assertNotEqual(0, self.check(text.replace(right, wrong)).returncode, wrong)

    def test_what_the_container_may_do(self):
        with open(os.path.join(ROOT, "ops", "systemd", "sluice-agent.service")) as f:
            unit = {c for line in re.findall(r"(?m)^CapabilityBoundingSet=(.*)$", f.read()) for c in line.split()}
        # systemd starts the service as its account, gives it its folders, and sets the priority and the limit of locked
        # memory. A container has no ambient capabilities: it starts as root, and needs these to become the account.
        container_too = unit | {"CAP_" + c for c in ("DAC_READ_SEARCH", "SETUID", "SETGID", "SETPCAP", "CHOWN", "FOWNER", "SYS_NICE")}
        before_5_11_too = container_too | {"CAP_SYS_RESOURCE"}
        spec = self.daemon_set()
        container, = spec["containers"]
        rights = container["securityContext"]
        self.assertEqual(["ALL"], rights["capabilities"]["drop"])
        self.assertEqual(container_too, {"CAP_" + c for c in rights["capabilities"]["add"]})
        self.assertEqual((False, False, True), tuple(rights[k] for k in ("privileged", "allowPrivilegeEscalation",
                                                                         "readOnlyRootFilesystem")))
        self.assertEqual("RuntimeDefault", rights["seccompProfile"]["type"])
        self.assertFalse(spec["automountServiceAccountToken"])
        writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
        self.assertEqual({"/var/lib/sluice", "/run/sluice", "/sys/fs/bpf"}, writable)
        old, = self.daemon_set("linux-5.10")["containers"]
        self.assertEqual(before_5_11_too, {"CAP_" + c for c in old["securityContext"]["capabilities"]["add"]})
        # Nothing else changes with SELinux's type, which is nowhere without its component.
        selinux, = self.daemon_set("selinux")["containers"]
        self.assertEqual({**rights, "seLinuxOptions": {"type": "spc_t"}}, selinux["securityContext"])

    def test_the_image_is_the_overlays(self):
        """As README.md names it; without an overlay, of a registry that RFC 2606 keeps from existing."""
        self.assertEqual(["registry.invalid/sluice"], [c["image"] for c in self.daemon_set()["containers"]])
        with open(os.path.join(OPS, "README.md")) as f:
            overlay = yaml.safe_load(re.search(r"```yaml\n(.*?)```", f.read(), re.S)[1])
        one, = self.daemon_set(images=overlay["images"])["containers"]
        self.assertEqual("registry.example.com/sluice:0.1.0", one["image"])

    def test_no_account_may_do_more_than_list_pods(self):
        for components, allowed in (((), []), (COMPONENTS, [{"apiGroups": [""], "resources": ["nodes/pods"], "verbs": ["get"]}])):
            components = sorted(components, key=lambda c: c == "kubelet-own-certificate")
            rules = [r for d in yaml.safe_load_all(self.build(*components)) if d["kind"].endswith("Role") for r in d["rules"]]
            self.assertEqual(allowed, rules)

    def test_the_agent_accepts_what_it_is_given(self):
        """The configuration of each ConfigMap, as the pod has it."""
        program = os.path.join(os.environ.get("SLUICE_BUILD") or os.path.join(ROOT, "build", "release"), "sluice")
        for components in ((), ("names",), ("names", "kubelet-own-certificate"), ("podmonitor",)):
            for name in ("etc", "etc/conf.d", "etc/rules.d"):
                os.makedirs(os.path.join(self.room, name), exist_ok=True)
            for d in yaml.safe_load_all(self.build(*components)):
                folder = next((to for of, to in (("sluice-config-", "etc"), ("sluice-conf-d-", "etc/conf.d"), ("sluice-rules-", "etc/rules.d"))
                               if d["kind"] == "ConfigMap" and d["metadata"]["name"].startswith(of)), None)
                for name, text in (d["data"] if folder else {}).items():
                    with open(os.path.join(self.room, folder, name), "w") as f:
                        f.write(text)
            with open(os.path.join(self.room, "etc", "conf.d", "99-test.yaml"), "w") as f:
                f.write(f"rules: {self.room}/etc/rules.d\n")
            done = subprocess.run([program, "check", "-c", os.path.join(self.room, "etc", "sluice.yaml")], text=True, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(0, done.returncode, (components, done.stdout))


if __name__ == "__main__":
    unittest.main()
