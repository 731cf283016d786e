# SPDX-License-Identifier: Apache-2.0
"""Names of pods from a kubelet: programs of real containers in control groups as Kubernetes names them, and a server that
gives the answers of a kubelet, of the shape that Kubernetes 1.34 has, over TLS and for a token."""
import contextlib
import http.server
import json
import os
import secrets
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import uuid

import harness
from systems import machine, rootfs
from systems.recorded import SystemTest, new_mark
from systems.runc import Runc

WAITS = '/bin/sleep 300 & wait; exit 1'


def pod(name, namespace, uid, **containers):
    """A pod whose containers are NAME=ID."""
    return {"metadata": {"name": name, "namespace": namespace, "uid": uid, "labels": {"app": name},
                         "annotations": {"kubernetes.io/config.source": "api", "note": "]}\"[{"},
                         "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}}}]},
            "spec": {"nodeName": "node", "containers": [
                {"name": n, "image": f"registry.example/{n}:1", "env": [{"name": "PASSWORD", "value": "of-no-concern"}],
                 "resources": {}, "terminationMessagePath": "/dev/termination-log"} for n in containers]},
            "status": {"phase": "Running", "qosClass": "Burstable", "containerStatuses": [
                {"name": n, "state": {"running": {"startedAt": "2026-11-28T10:00:00Z"}}, "lastState": {}, "ready": True,
                 "restartCount": 0, "image": "sha256:" + i, "imageID": "sha256:" + i, "containerID": "containerd://" + i,
                 "started": True} for n, i in containers.items()]}}


class Kubelet(http.server.ThreadingHTTPServer):
    """GET /pods, for those who have the token."""

    daemon_threads = True

    def __init__(self, certificate=None, token=None):
        self.token, self.pods, self.asked = token, [], []
        self.answer = None  # in place of the list
        self.hangs = threading.Event()
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.port = self.server_address[1]
        if certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(*certificate)
            self.socket = tls.wrap_socket(self.socket, server_side=True)

    def handle_error(self, *args):
        pass  # a client that does not believe the certificate

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            s = self.server
            s.asked.append((time.monotonic(), self.path, self.headers.get("Authorization")))
            if s.hangs.is_set():
                time.sleep(60)
            status, body = 200, json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": s.pods}).encode()
            if s.token is not None and self.headers.get("Authorization") != "Bearer " + s.token:
                status, body = 401, b"Unauthorized"
            elif s.answer is not None:
                body = s.answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *args):
            pass


def make_certificate(room, name):
    """(certificate, key) that a kubelet signs by itself, for a name."""
    paths = os.path.join(room, name + ".crt"), os.path.join(room, name + ".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}@1", "-addext", f"subjectAltName=DNS:{name}", "-out", paths[0], "-keyout", paths[1]],
                   check=True, capture_output=True, timeout=60)
    os.chmod(paths[0], 0o644)
    return paths


class KubeletTest(SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        room = tempfile.TemporaryDirectory(prefix="sluice-root-")
        cls.addClassCleanup(room.cleanup)
        os.chmod(room.name, 0o755)
        cls.root = rootfs.make_root(os.path.join(room.name, "root"), rootfs.PROGRAMS)

    def serve(self, **options):
        k = Kubelet(**options)
        threading.Thread(target=k.serve_forever, daemon=True).start()
        self.addCleanup(k.server_close)
        self.addCleanup(k.shutdown)
        return k

    def token(self, text):
        path = os.path.join(self.room, "token")
        with open(path + ".new", "w") as f:
            f.write(text + "\n")
        os.chmod(path + ".new", 0o644)
        os.replace(path + ".new", path)
        return path

    def stop_box(self, r, box, pid):
        for child in machine.children(pid):
            os.kill(int(child), 15)
        box.wait(20)
        box.stdout.close()

    def begin(self, r, name, uid, container):
        """A container that runs in a pod; (Popen, argv, pid of its first process)."""
        argv = ["/bin/sh", "-c", WAITS, new_mark()]
        box = r.start(name, argv, cgroup=f"/kubepods/burstable/pod{uid}/{container}")
        pid = machine.wait_until(lambda: r.pid(name), 60, "container")
        machine.wait_until(lambda: machine.children(pid), 60, "program of the container's shell")
        return box, argv, pid

    def wait_named(self, pid, name):
        self.recorder.wait(lambda: name in self.recorder.ctl("explain", pid).stdout, 60, "name in what ctl explain says")

    def test_over_tls_with_a_token_that_is_renewed(self):
        name = socket.gethostname().lower()
        certificate = make_certificate(self.room, name)
        k = self.serve(certificate=certificate, token="first")
        uid, one, two, sandbox = str(uuid.uuid4()), *(secrets.token_hex(32) for _ in range(3))
        k.pods = [pod("other-0", "default", str(uuid.uuid4()), web=secrets.token_hex(32)), pod("align-0", "genomics", uid, bwa=one)]
        with Runc(self.root) as r:
            before = self.begin(r, "before", uid, one)  # ran before the agent
            pause = self.begin(r, "pause", uid, sandbox)  # no list has it
            self.start(containers={"kubelet": {"url": f"https://127.0.0.1:{k.port}", "ca_file": certificate[0],
                                               "token_file": self.token("first")}})
            self.wait_named(before[2], "align-0")
            k.token = "second"
            self.token("second")
            k.pods[1] = pod("align-0", "genomics", uid, bwa=one, sort=two)
            later = self.begin(r, "later", uid, two)
            self.wait_named(later[2], "k8s_container_name")
            status = self.recorder.status()["kubelet"]
            for box, _, pid in (before, pause, later):
                self.stop_box(r, box, pid)
        records = self.stop()
        common = {"k8s_pod_uid": uid, "k8s_pod_name": "align-0", "k8s_namespace": "genomics"}
        self.assert_all([records.only(before[1])], container_id=one, k8s_container_name="bwa",
                        container_image="registry.example/bwa:1", container_name=None, **common)
        self.assert_all([records.only(later[1])], container_id=two, k8s_container_name="sort",
                        container_image="registry.example/sort:1", **common)
        self.assert_all([records.only(pause[1])], container_id=sandbox, k8s_container_name=None, container_image=None, **common)
        self.assertEqual((2, 0, 0, None), tuple(status[x] for x in ("pods", "failed", "left_out", "last_error")), status)
        self.assertEqual({"/pods"}, {path for _, path, _ in k.asked})
        self.assertEqual({"Bearer first", "Bearer second"}, {token for _, _, token in k.asked})
        times = [at for at, _, _ in k.asked]
        self.assertTrue(all(b - a > 4.9 for a, b in zip(times, times[1:])), times)
        self.assertEqual([], [x for x in self.recorder.log_lines() if x["event"].startswith("containers.")])

    def test_one_that_is_not_believed_names_nothing(self):
        """A kubelet of another name, one with another authority, and one that refuses the token: each is reported once."""
        name = socket.gethostname().lower()
        good, other = make_certificate(self.room, name), make_certificate(self.room, "another-node")
        uid, one = str(uuid.uuid4()), secrets.token_hex(32)
        cases = ((other, other[0], "t", ("certificate", "SSL", "name")), (good, other[0], "t", ("certificate", "SSL")),
                 (good, good[0], "wrong", ("nodes/pods",)))
        with Runc(self.root) as r:
            box, argv, pid = self.begin(r, "box", uid, one)
            for n, (certificate, ca, token, words) in enumerate(cases):
                k = self.serve(certificate=certificate, token="t")
                k.pods = [pod("align-0", "genomics", uid, bwa=one)]
                self.start(containers={"kubelet": {"url": f"https://127.0.0.1:{k.port}", "ca_file": ca,
                                                   "token_file": self.token(token)}})
                told = self.recorder.wait_log("containers.kubelet")
                self.assertTrue(any(w in told["message"] for w in words), told)
                self.assertEqual("warning", told["level"])
                self.assertNotIn("align-0", self.recorder.ctl("explain", pid).stdout)
                self.assertEqual(1, self.recorder.status()["kubelet"]["failed"])
                if n < 2:
                    self.assertEqual([], k.asked, "the token went to one whose certificate is not valid")
                if n == len(cases) - 1:
                    self.stop_box(r, box, pid)
                records = self.stop()
                self.assertEqual(1, len([x for x in self.recorder.log_lines() if x["event"] == "containers.kubelet"]))
            self.assert_all([records.only(argv)], k8s_pod_uid=uid, k8s_pod_name=None, k8s_namespace=None, k8s_container_name=None)

    def test_one_that_hangs_or_lies_costs_nothing(self):
        """No record waits for it, and neither the loop nor the next answer suffers."""
        k = self.serve()
        k.hangs.set()
        uid, one = str(uuid.uuid4()), secrets.token_hex(32)
        with Runc(self.root) as r:
            self.start(containers={"kubelet": {"url": f"http://127.0.0.1:{k.port}"}})
            box, argv, pid = self.begin(r, "box", uid, one)
            machine.wait_until(lambda: k.asked, 20, "question")
            for _ in range(5):
                began = time.monotonic()
                self.recorder.status()
                self.assertLess(time.monotonic() - began, 2 * harness.PATIENCE)
            self.recorder.wait(lambda: self.recorder.status()["kubelet"]["failed"] == 1, 30, "end of the request")
            self.assertIn("pods have no names for now", self.recorder.wait_log("containers.kubelet")["message"])
            self.stop_box(r, box, pid)
        records = self.stop()
        self.assert_all([records.only(argv)], k8s_pod_uid=uid, k8s_pod_name=None)
        # A list without end, and names that are none.
        k.hangs.clear()
        evil = pod("a\x1b[2Jb", "genomics", uid, bwa=one)
        for answer, failed, namespace in ((b'{"items":[' + b'{"metadata":{}},' * 1500000, 1, None),
                                          (json.dumps({"items": [evil]}).encode(), 0, "genomics")):
            k.answer = answer
            with Runc(self.root) as r:
                self.start(containers={"kubelet": {"url": f"http://127.0.0.1:{k.port}"}})
                box, argv, pid = self.begin(r, "box", uid, one)
                self.recorder.wait(lambda: self.recorder.status()["kubelet"]["requests"] > 0 and
                                   (self.recorder.status()["kubelet"]["failed"] or self.recorder.status()["kubelet"]["pods"]),
                                   30, "answer")
                self.assertEqual(failed, self.recorder.status()["kubelet"]["failed"])
                if namespace is not None:
                    self.wait_named(pid, "k8s_namespace")
                self.stop_box(r, box, pid)
            records = self.stop()
            self.assert_all([records.only(argv)], k8s_pod_uid=uid, k8s_pod_name=None, k8s_namespace=namespace)


if __name__ == "__main__":
    harness.main()
