# SPDX-License-Identifier: Apache-2.0
"""A cluster of one node on this host: etcd, the API server, the controller manager, the scheduler, containerd and a kubelet,
each a process of this one that ends with it. Its folders are in a room; images are imported, none is pulled.

The programs of Kubernetes are those of dev/kubernetes, in build/kubernetes."""
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import image

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = os.path.join(ROOT, "build", "kubernetes", "bin")
PAUSE = "sluice.test/pause:1"
TOKEN = secrets.token_hex(16)
# What a kubelet changes on its host, wherever its root is.
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
           "kernel/keys/root_maxbytes")
FOLDERS = ("/var/lib/kubelet", "/var/log/containers")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.5)
    raise AssertionError(f"no {what} within {seconds} s")


class Cluster:
    def __init__(self):
        self.room = tempfile.mkdtemp(prefix="sluice-k8s-")
        os.chmod(self.room, 0o755)
        self.processes = []
        self.node = socket.gethostname().lower()
        self.api = free_port()
        self.kubelet_port = 10250
        self.kubeconfig = self.path("kubeconfig")
        self.sysctls = {}
        for name in SYSCTLS:
            with open("/proc/sys/" + name) as f:
                self.sysctls[name] = f.read()
        self.folders = [f for f in FOLDERS if not os.path.exists(f)]
        if os.path.exists("/var/lib/kubelet/pki"):
            raise AssertionError("this host is a node of a cluster: its kubelet would meet this one")

    def path(self, *names):
        return os.path.join(self.room, *names)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def begin(self, name, *command):
        """Starts one of the programs. Shims of containers outlive containerd: pods are removed before it ends."""
        with open(self.path(name + ".log"), "w") as log:
            p = subprocess.Popen([str(c) for c in command], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 cwd=self.room)
        self.processes.append((name, p))

    def kubectl(self, *args, check=True, timeout=60, **kw):
        done = subprocess.run([os.path.join(PROGRAMS, "kubectl"), "--kubeconfig", self.kubeconfig, *map(str, args)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, **kw)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, args))}: {done.stdout}")
        return done.stdout

    def objects(self, kind, *args):
        return json.loads(self.kubectl("get", kind, "-A", "-o", "json", *args))["items"]

    def ctr(self, *args, check=True):
        done = subprocess.run(["ctr", "-a", self.path("containerd.sock"), "-n", "k8s.io", *args], text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if check and done.returncode != 0:
            raise AssertionError(f"ctr {args}: {done.stdout}")
        return done.stdout

    def import_image(self, path):
        self.ctr("images", "import", path)

    def up(self):
        self.start_containerd()
        self.start_control_plane()
        self.start_kubelet()

    def start_containerd(self):
        config = self.write("containerd.toml", f"""
version = 2
root = "{self.path('containerd')}"
state = "{self.path('containerd-state')}"
[grpc]
  address = "{self.path('containerd.sock')}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  enable_selinux = false
  restrict_oom_score_adj = true
  disable_apparmor = {str(not os.path.isdir('/sys/kernel/security/apparmor')).lower()}
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "{self.path('cni')}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
[plugins."io.containerd.internal.v1.opt"]
  path = "{self.path('opt')}"
""")
        self.begin("containerd", "containerd", "-c", config)
        wait(lambda: os.path.exists(self.path("containerd.sock")) and "Server:" in self.ctr("version", check=False), 30, "containerd")
        pause = self.path("pause")
        subprocess.run(["cc", "-static", "-O2", "-o", pause, os.path.join(os.path.dirname(__file__), "pause.c")], check=True, timeout=60)
        self.import_image(image.archive(self.path("pause.tar"), PAUSE, files={"/pause": pause}, entrypoint=["/pause"]))

    def start_control_plane(self):
        client, peer = free_port(), free_port()
        self.begin("etcd", os.path.join(PROGRAMS, "etcd"), "--data-dir", self.path("etcd"), "--listen-client-urls", f"http://127.0.0.1:{client}",
                   "--advertise-client-urls", f"http://127.0.0.1:{client}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                   "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--initial-cluster",
                   f"default=http://127.0.0.1:{peer}", "--unsafe-no-fsync")
        key = self.path("sa.key")
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True, timeout=60)
        tokens = self.write("tokens.csv", f'{TOKEN},admin,admin,"system:masters"\n')
        self.begin("apiserver", os.path.join(PROGRAMS, "kube-apiserver"), "--etcd-servers", f"http://127.0.0.1:{client}",
                   "--bind-address", "127.0.0.1", "--secure-port", self.api, "--cert-dir", self.path("pki"),
                   "--token-auth-file", tokens, "--authorization-mode", "RBAC", "--service-account-key-file", key,
                   "--service-account-signing-key-file", key, "--service-account-issuer", "https://kubernetes.default.svc",
                   "--service-cluster-ip-range", "10.96.0.0/16", "--kubelet-preferred-address-types", "InternalIP",
                   "--endpoint-reconciler-type", "none")
        self.write("kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{self.api}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        wait(lambda: self.kubectl("get", "--raw", "/readyz", check=False) == "ok", 120, "API server")
        self.begin("controllers", os.path.join(PROGRAMS, "kube-controller-manager"), "--kubeconfig", self.kubeconfig,
                   "--service-account-private-key-file", key, "--root-ca-file", self.path("pki", "apiserver.crt"),
                   "--use-service-account-credentials=false", "--leader-elect=false", "--secure-port", free_port(), "--bind-address", "127.0.0.1")
        self.begin("scheduler", os.path.join(PROGRAMS, "kube-scheduler"), "--kubeconfig", self.kubeconfig, "--leader-elect=false",
                   "--secure-port", free_port(), "--bind-address", "127.0.0.1")

    def start_kubelet(self):
        config = self.write("kubelet.yaml", json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "127.0.0.1",
            "port": self.kubelet_port, "healthzPort": free_port(), "cgroupDriver": "cgroupfs", "failSwapOn": False,
            "failCgroupV1": False, "containerRuntimeEndpoint": "unix://" + self.path("containerd.sock"),
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True, "cacheTTL": "0s"}},
            "authorization": {"mode": "Webhook", "webhook": {"cacheAuthorizedTTL": "1s", "cacheUnauthorizedTTL": "1s"}},
             "readOnlyPort": 0, "enforceNodeAllocatable": [], "cgroupsPerQOS": True,
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100, "localStorageCapacityIsolation": False, "makeIPTablesUtilChains": False,
            "volumePluginDir": self.path("volume-plugins"), "podLogsDir": self.path("pod-logs"), "resolvConf": "",
            "registerWithTaints": [], "syncFrequency": "5s", "nodeStatusUpdateFrequency": "5s"}))
        self.begin("kubelet", os.path.join(PROGRAMS, "kubelet"), "--kubeconfig", self.kubeconfig, "--config", config,
                   "--root-dir", self.path("kubelet"), "--cert-dir", self.path("kubelet", "pki"), "--node-ip", "127.0.0.1",
                   "--hostname-override", self.node)
        wait(lambda: self.objects("nodes"), 90, "node")

    def down(self):
        """Removes all pods, then ends what was started, the last first."""
        try:
            if os.path.exists(self.kubeconfig):
                self.kubectl("delete", "daemonsets,deployments,jobs", "--all", "-A", "--wait=false", check=False)
                self.kubectl("delete", "pods", "--all", "-A", "--grace-period=1", "--timeout=60s", check=False, timeout=90)
            for task in self.ctr("tasks", "ls", "-q", check=False).split():
                self.ctr("tasks", "kill", "-s", "KILL", task, check=False)
                self.ctr("tasks", "rm", "-f", task, check=False)
        finally:
            for _, p in reversed(self.processes):
                p.send_signal(signal.SIGTERM)
                try:
                    p.wait(15)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait(15)
            self.unmount()
            for folder in (self.room, *self.folders):
                shutil.rmtree(folder, ignore_errors=True)
            for name, value in self.sysctls.items():
                with open("/proc/sys/" + name, "w") as f:
                    f.write(value)
            # No process is in the pods' groups by now.
            subprocess.run(["find", "/sys/fs/cgroup", "-depth", "-type", "d", "-path", "*/kubepods*", "-exec", "rmdir", "{}", ";"],
                           check=False, timeout=60, stderr=subprocess.DEVNULL)

    def unmount(self):
        with open("/proc/self/mounts") as f:
            mounts = [line.split()[1] for line in f if line.split()[1].startswith(self.room + "/")]
        for at in sorted(mounts, reverse=True):
            subprocess.run(["umount", "-l", at], check=False, timeout=30)

    def log(self, name, lines=30):
        with open(self.path(name + ".log")) as f:
            return "".join(f.readlines()[-lines:])
