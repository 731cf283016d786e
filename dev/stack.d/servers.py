# SPDX-License-Identifier: Apache-2.0
"""The servers of dev/stack: one Kafka broker (KRaft) and one schema registry, on loopback.

Everything of one stack is in one directory: certificates, the broker's data, logs, pid files and
stack.json, which has the options of its start. dev/stack is the command, tests/integration/stack.py the
class for tests; both call this. Nothing here keeps state of its own, so one may start what the other stops.
"""
import base64
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STACK = os.path.join(ROOT, "build", "stack")

KAFKAS = ("4.3.0", "3.9.1")
REGISTRY = "3.0.9"
REGISTRY_ARTIFACT = f"io.apicurio:apicurio-registry-app:{REGISTRY}:tar.gz:all"
REGISTRY_SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"
# This version fetches one artifact without its parents' descriptions, which not every repository serves.
MAVEN_GET = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get"

USER, PASSWORD = "agent", "agent-secret"
KEY_PASSWORD = "key-secret"  # of client-encrypted.key

# Offsets from the first port. Clients reach the broker's listener PROXIED through a proxy of the caller: the port that
# it advertises there is the proxy's, so that they come back the same way.
PORTS = {"plaintext": 0, "controller": 1, "sasl_ssl": 2, "mtls": 3, "ssl": 4, "registry": 5, "registry_tls": 6,
         "proxied": 7, "proxy": 8, "sasl_plaintext": 9}
PORT_COUNT = 10

# What a stack may have, and what it has by default.
OPTIONS = {
    "kafka": KAFKAS[0],
    "tls": False,  # also the listeners with TLS and SASL, and certificates
    "registry_storage": "memory",  # gone with the registry; "kafka": in topics of the broker, ids survive a restart
    "partitions": 3,
    "with_proxied": False,  # also a listener whose clients go through a proxy
    "authorizer": False,  # rights by ACLs; plain clients have all, and so has everyone where nothing has an ACL
    "node": 1,  # its number in a cluster
    "replicas": 1,  # of Kafka's own topics: how many brokers the cluster has
    "joins": None,  # {"cluster_id", "controller": port} of the stack whose cluster it is a broker of; None: its own
}

# Small and quick to start; the long-lived optimizer would cost more than it saves here.
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]

LOG4J2 = """Configuration:
  Appenders: {Console: {name: C, target: SYSTEM_OUT, PatternLayout: {pattern: "%d %p %m (%c)%n"}}}
  Loggers: {Root: {level: INFO, AppenderRef: {ref: C}}}
"""
LOG4J1 = """log4j.rootLogger=INFO, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern=%d %p %m (%c)%n
"""


def is_free(port):
    """Whether a server could listen there."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class StackError(Exception):
    """A sentence for people: what failed and where to look."""


def say(text):
    print(f"dev/stack: {text}", flush=True)


# --- fetching ---


def kafka_dir(version):
    return os.path.join(STACK, f"kafka-{version}")


def registry_dir():
    return os.path.join(STACK, f"registry-{REGISTRY}")


def _maven(*args):
    mvn = shutil.which("mvn", path="/usr/bin:" + os.environ.get("PATH", ""))
    if mvn is None:
        raise StackError("mvn is not installed; run ./dev/install test")
    done = subprocess.run([mvn, "-q", "-B", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise StackError(f"mvn {' '.join(args)} failed:\n" + "\n".join(done.stdout.splitlines()[:5]))


def _sha256(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            h.update(block)
    return h.hexdigest()


def _fetch_kafka(version, into):
    done = subprocess.run([os.path.join(ROOT, "dev", "jars"), os.path.join(HERE, f"kafka-{version}.xml"), into],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise StackError(f"Kafka {version} was not fetched:\n" + "\n".join(done.stdout.splitlines()[:9]))
    with open(os.path.join(into, "log4j2.yaml"), "w") as f:
        f.write(LOG4J2)
    with open(os.path.join(into, "log4j.properties"), "w") as f:
        f.write(LOG4J1)


def _fetch_registry(into):
    # A repository of its own: the file's place in the user's is the user's business.
    repository = into + ".m2"
    try:
        _maven(f"-Dmaven.repo.local={repository}", MAVEN_GET, f"-Dartifact={REGISTRY_ARTIFACT}", "-Dtransitive=false")
        archive = os.path.join(repository, "io/apicurio/apicurio-registry-app", REGISTRY,
                               f"apicurio-registry-app-{REGISTRY}-all.tar.gz")
        found = _sha256(archive)
        if found != REGISTRY_SHA256:
            raise StackError(f"{REGISTRY_ARTIFACT} has sha256 {found}, expected {REGISTRY_SHA256}")
        os.makedirs(into)
        subprocess.run(["tar", "-xzf", archive, "-C", into], check=True)
    finally:
        shutil.rmtree(repository, ignore_errors=True)


def fetch(what=None):
    """Downloads what is not there yet: names of KAFKAS and "registry"; None: all. Safe to call at once from many."""
    os.makedirs(STACK, exist_ok=True)
    with open(os.path.join(STACK, ".fetch.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in what or (*KAFKAS, "registry"):
            into = registry_dir() if name == "registry" else kafka_dir(name)
            if os.path.isdir(into):
                continue
            say(f"fetching {os.path.basename(into)}")
            part = into + ".part"
            shutil.rmtree(part, ignore_errors=True)
            if name == "registry":
                _fetch_registry(part)
            else:
                _fetch_kafka(name, part)
            os.rename(part, into)  # last: a half-made one is made again


# --- processes, by pid file ---


def _start_time(pid):
    """Field 22 of /proc/PID/stat, or None when it is gone or a zombie. A pid alone may be another's by now."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            rest = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if rest[0] in "ZX" else rest[19]


def read_pid(pid_file):
    """The pid, while that very process lives; else None."""
    try:
        with open(pid_file) as f:
            pid, started = f.read().split()
    except (OSError, ValueError):
        return None
    return int(pid) if _start_time(int(pid)) == started else None


def _spawn(argv, cwd, log, pid_file):
    if read_pid(pid_file):
        raise StackError(f"{pid_file}: already running; dev/stack down ends it")
    with open(log, "ab") as out:
        child = subprocess.Popen(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True)
    with open(pid_file + ".new", "w") as f:
        f.write(f"{child.pid} {_start_time(child.pid)}\n")
    os.rename(pid_file + ".new", pid_file)
    child.returncode = 0  # not ours to wait for: it outlives us, and Popen would warn
    return child.pid


def _reap(pid):
    """Where it is our own child, so that no zombie stays; a foreign one is its parent's."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _end(pid_file, first=signal.SIGTERM, wait_s=15.0):
    """first, then SIGKILL when it does not end in time. What it took, in seconds, or None when it did not run."""
    pid = read_pid(pid_file)
    took = None
    if pid is not None:
        began = time.monotonic()
        os.kill(pid, first)
        while read_pid(pid_file) and time.monotonic() - began < wait_s:
            _reap(pid)
            time.sleep(0.02)
        if read_pid(pid_file):
            os.kill(pid, signal.SIGKILL)
            while read_pid(pid_file):
                _reap(pid)
                time.sleep(0.02)
        _reap(pid)
        took = time.monotonic() - began
    with contextlib.suppress(FileNotFoundError):
        os.unlink(pid_file)
    return took


def _java():
    java = shutil.which("java", path="/usr/bin:" + os.environ.get("PATH", ""))
    if java is None:
        raise StackError("java is not installed; run ./dev/install test")
    return java


def _tail(path, lines=8):
    try:
        with open(path, errors="replace") as f:
            return "".join(f.readlines()[-lines:])
    except OSError:
        return ""


def _wait(what, is_ready, pid_file, log, wait_s):
    """Until is_ready(), or a StackError with the log's end. Seconds it took."""
    began = time.monotonic()
    while not is_ready():
        if read_pid(pid_file) is None:
            raise StackError(f"{what} ended at once; the end of {log}:\n{_tail(log)}")
        if time.monotonic() - began > wait_s:
            raise StackError(f"{what} does not answer after {wait_s:.0f} s; the end of {log}:\n{_tail(log)}")
        time.sleep(0.1)
    return time.monotonic() - began


# --- certificates ---


def _openssl(at, *args):
    done = subprocess.run(["openssl", *args], cwd=at, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise StackError(f"openssl {args[0]} failed in {at}:\n{done.stdout}")


OPENSSL_CA = """[ca]
default_ca = here
[here]
database = index.txt
serial = serial.txt
new_certs_dir = .
default_md = sha256
policy = any
x509_extensions = client
unique_subject = no
[any]
commonName = supplied
[client]
extendedKeyUsage = clientAuth
"""


def make_certificates(at):
    """
    ca.crt; server.{key,crt,pem} for localhost and 127.0.0.1; client.{key,crt}, the same key under a password as
    client-encrypted.key; expired.{key,crt}, ours but of 2020; other-ca.crt, which signed nothing of the server's,
    and other.{key,crt}, a client of that one. The private keys are readable by the owner only.
    """
    if os.path.exists(os.path.join(at, "made")):
        return
    os.makedirs(at, mode=0o700, exist_ok=True)
    with open(os.path.join(at, "server.ext"), "w") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    with open(os.path.join(at, "client.ext"), "w") as f:
        f.write("extendedKeyUsage=clientAuth\n")
    with open(os.path.join(at, "ca.cnf"), "w") as f:
        f.write(OPENSSL_CA)
    for ca in ("ca", "other-ca"):
        _openssl(at, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/CN=sluice test {ca}",
                 "-keyout", f"{ca}.key", "-out", f"{ca}.crt")
    for name, ca, cn in (("server", "ca", "localhost"), ("client", "ca", "agent"), ("other", "other-ca", "agent"),
                         ("expired", "ca", "agent")):
        _openssl(at, "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={cn}", "-keyout", f"{name}.key",
                 "-out", f"{name}.csr")
        if name == "expired":
            for empty in ("index.txt", "index.txt.attr"):
                open(os.path.join(at, empty), "w").close()
            with open(os.path.join(at, "serial.txt"), "w") as f:
                f.write("1000\n")
            _openssl(at, "ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", "ca.crt", "-keyfile", "ca.key",
                     "-startdate", "20200101000000Z", "-enddate", "20200201000000Z",
                     "-in", "expired.csr", "-out", "expired.crt")
        else:
            _openssl(at, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key",
                     "-CAcreateserial", "-days", "30",
                     "-extfile", "server.ext" if name == "server" else "client.ext", "-out", f"{name}.crt")
    _openssl(at, "pkcs8", "-topk8", "-in", "client.key", "-out", "client-encrypted.key",
             "-passout", f"pass:{KEY_PASSWORD}")
    with open(os.path.join(at, "server.pem"), "wb") as pem:
        for part in ("server.key", "server.crt", "ca.crt"):
            with open(os.path.join(at, part), "rb") as f:
                pem.write(f.read())
    for name in os.listdir(at):
        if name.endswith((".key", ".pem")):
            os.chmod(os.path.join(at, name), 0o600)
        elif name.endswith((".csr", ".ext", ".cnf", ".srl", ".txt", ".attr", ".old")) or name == "1000.pem":
            os.unlink(os.path.join(at, name))
    open(os.path.join(at, "made"), "w").close()


# --- one stack ---


def new_cluster_id():
    """As Kafka makes them: never with a dash in front, which its tools take for an option."""
    while True:
        found = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not found.startswith("-"):
            return found


class Servers:
    """One broker and one registry whose state is in one directory. See stack.json there for the fields."""

    def __init__(self, at):
        self.at = os.path.abspath(at)
        self.state = {}
        with contextlib.suppress(FileNotFoundError):
            with open(self.path("stack.json")) as f:
                self.state = json.load(f)

    def path(self, name):
        return os.path.join(self.at, name)

    def cert(self, name):
        return self.path(os.path.join("certs", name))

    def port(self, name):
        return self.state["ports"][name]

    @property
    def brokers(self):
        return f"127.0.0.1:{self.port('plaintext')}"

    @property
    def registry_url(self):
        return f"http://127.0.0.1:{self.port('registry')}/apis/ccompat/v7"

    @property
    def registry_tls_url(self):
        return f"https://localhost:{self.port('registry_tls')}/apis/ccompat/v7"

    def _save(self):
        with open(self.path("stack.json.new"), "w") as f:
            json.dump(self.state, f, indent=1)
            f.write("\n")
        os.rename(self.path("stack.json.new"), self.path("stack.json"))

    def configure(self, ports, **options):
        """
        A new stack; what was in the directory is removed. ports: by the names of PORTS. options: those of OPTIONS
        that differ.
        """
        unknown = options.keys() - OPTIONS.keys()
        if unknown:
            raise TypeError(f"no option of a stack: {', '.join(sorted(unknown))}")
        options = OPTIONS | options
        if options["kafka"] not in KAFKAS:
            raise StackError(f"no Kafka {options['kafka']} here; there are {' and '.join(KAFKAS)}")
        if self.broker_pid() or self.registry_pid():
            raise StackError(f"{self.at} is running; dev/stack down --dir {self.at} ends it")
        for old in ("data", "certs", "tmp", "broker.log", "registry.log", "server.properties", "stack.json"):
            old = self.path(old)
            if os.path.isdir(old):
                shutil.rmtree(old)
            elif os.path.exists(old):
                os.unlink(old)
        os.makedirs(self.at, exist_ok=True)
        cluster_id = options["joins"]["cluster_id"] if options["joins"] else new_cluster_id()
        self.state = options | {"ports": dict(ports), "cluster_id": cluster_id}
        self._save()
        if options["tls"]:
            make_certificates(self.path("certs"))

    # --- the broker ---

    def _listeners(self):
        """(name, protocol, port name, advertised host, advertised port name)"""
        yield "PLAINTEXT", "PLAINTEXT", "plaintext", "127.0.0.1", "plaintext"
        if self.state["with_proxied"]:
            yield "PROXIED", "PLAINTEXT", "proxied", "127.0.0.1", "proxy"
        if self.state["tls"]:
            yield "SSL", "SSL", "ssl", "localhost", "ssl"
            yield "MTLS", "SSL", "mtls", "localhost", "mtls"
            yield "SASL_SSL", "SASL_SSL", "sasl_ssl", "localhost", "sasl_ssl"
            yield "SASL_PLAINTEXT", "SASL_PLAINTEXT", "sasl_plaintext", "127.0.0.1", "sasl_plaintext"

    def _write_properties(self):
        s = self.state
        own = list(self._listeners())
        joins, replicas = s.get("joins"), s.get("replicas", 1)
        control = joins["controller"] if joins else self.port("controller")
        lines = [
            "process.roles=broker" + ("" if joins else ",controller"),
            f"node.id={s.get('node', 1)}",
            f"controller.quorum.voters=1@127.0.0.1:{control}",
            "listeners=" + ",".join([f"{n}://127.0.0.1:{self.port(p)}" for n, _, p, _, _ in own]
                                    + ([] if joins else [f"CONTROLLER://127.0.0.1:{control}"])),
            "advertised.listeners=" + ",".join(f"{n}://{h}:{self.port(a)}" for n, _, _, h, a in own),
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT," + ",".join(f"{n}:{q}" for n, q, _, _, _ in own),
            "controller.listener.names=CONTROLLER",
            "inter.broker.listener.name=PLAINTEXT",
            f"log.dirs={self.path('data')}",
            f"num.partitions={s['partitions']}",
            f"offsets.topic.replication.factor={replicas}",
            "offsets.topic.num.partitions=1",
            f"transaction.state.log.replication.factor={replicas}",
            "transaction.state.log.min.isr=1",
            "transaction.state.log.num.partitions=1",
            "group.initial.rebalance.delay.ms=0",
            "auto.create.topics.enable=false",
            # A killed broker's next life is let in once its last one counts as gone: not 9 s but 3.
            "broker.session.timeout.ms=3000",
            "broker.heartbeat.interval.ms=500",
            # A test that deletes a topic waits for its files otherwise.
            "file.delete.delay.ms=1000",
        ]
        if s.get("authorizer"):
            lines += ["authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                      "super.users=User:ANONYMOUS",
                      "allow.everyone.if.no.acl.found=true"]
        if s["kafka"] >= "4":
            lines += [f"share.coordinator.state.topic.replication.factor={replicas}", "share.coordinator.state.topic.min.isr=1"]
        if s["tls"]:
            jaas = "org.apache.kafka.common.security"
            lines += [
                "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
                "ssl.keystore.type=PEM",
                f"ssl.keystore.location={self.cert('server.pem')}",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={self.cert('ca.crt')}",
                "ssl.client.auth=none",
                "listener.name.mtls.ssl.client.auth=required",
            ]
            for at in ("sasl_ssl", "sasl_plaintext"):
                lines += [
                    f"listener.name.{at}.plain.sasl.jaas.config={jaas}.plain.PlainLoginModule required "
                    f'user_{USER}="{PASSWORD}";',
                    f"listener.name.{at}.scram-sha-256.sasl.jaas.config={jaas}.scram.ScramLoginModule required;",
                    f"listener.name.{at}.scram-sha-512.sasl.jaas.config={jaas}.scram.ScramLoginModule required;",
                    # Tokens without a signature, for tests: the broker checks their times and their subject.
                    f"listener.name.{at}.oauthbearer.sasl.jaas.config={jaas}.oauthbearer.OAuthBearerLoginModule "
                    f'required unsecuredLoginStringClaim_sub="broker";',
                ]
        with open(self.path("server.properties"), "w") as f:
            f.write("\n".join(lines) + "\n")
        os.chmod(self.path("server.properties"), 0o600)

    def _temporary(self):
        """What a killed server leaves behind then goes with the stack."""
        os.makedirs(self.path("tmp"), exist_ok=True)
        return f"-Djava.io.tmpdir={self.path('tmp')}"

    def _kafka_java(self, *args, heap="256m"):
        lib = kafka_dir(self.state["kafka"])
        return [_java(), f"-Xmx{heap}", *JVM, self._temporary(), f"-Dlog4j2.configurationFile=file:{lib}/log4j2.yaml",
                f"-Dlog4j.configuration=file:{lib}/log4j.properties", "-cp", f"{lib}/*", *args]

    def _format(self):
        """
        The broker's storage, new. Kafka's own tool makes it once for each version, with and without passwords; each
        stack then has a copy with a cluster's name of its own, for the tool takes as long to start as the broker.
        """
        kept = os.path.join(STACK, f"formatted-{self.state['kafka']}" + ("-scram" if self.state["tls"] else ""))
        with open(os.path.join(STACK, ".format.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.isdir(kept):
                self._format_by_tool()
                shutil.rmtree(kept + ".part", ignore_errors=True)
                shutil.copytree(self.path("data"), kept + ".part")
                os.rename(kept + ".part", kept)  # last: a half-made one is made again
                return
        shutil.copytree(kept, self.path("data"))
        properties = os.path.join(self.path("data"), "meta.properties")
        # The controller takes two brokers whose folders have one id for one.
        own = {"cluster.id": self.state["cluster_id"], "node.id": self.state.get("node", 1), "directory.id": new_cluster_id()}
        with open(properties) as f:
            lines = [line for line in f if line.partition("=")[0] not in own]
        with open(properties, "w") as f:
            f.writelines(lines + [f"{name}={value}\n" for name, value in own.items()])

    def _format_by_tool(self):
        scram = []
        if self.state["tls"]:
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                scram += ["--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]"]
        done = subprocess.run(
            self._kafka_java("kafka.tools.StorageTool", "format", "-t", self.state["cluster_id"],
                             "-c", self.path("server.properties"), *scram),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise StackError(f"the broker's storage cannot be formatted:\n{done.stdout}")

    def broker_pid(self):
        return read_pid(self.path("broker.pid"))

    def launch_broker(self):
        """Starts it on the data that is there, or on new; does not wait until it answers."""
        fetch([self.state["kafka"]])
        self._write_properties()
        if not os.path.isdir(self.path("data")):
            self._format()
        return _spawn(self._kafka_java("kafka.Kafka", self.path("server.properties"), heap="512m"), self.at,
                      self.path("broker.log"), self.path("broker.pid"))

    def wait_broker(self, wait_s=90.0):
        return _wait("Kafka", self.broker_answers, self.path("broker.pid"), self.path("broker.log"), wait_s)

    def broker_answers(self):
        """True when metadata names the broker itself: its port is open before that."""
        try:
            with socket.create_connection(("127.0.0.1", self.port("plaintext")), 1.0) as s:
                s.settimeout(5.0)
                # Metadata, version 1, no topics: enough to learn the brokers, so no client library is needed.
                body = b"\0\x03" + b"\0\x01" + b"\0\0\0\x01" + b"\0\x05stack" + b"\0\0\0\0"
                s.sendall(len(body).to_bytes(4, "big") + body)
                answer = b""
                while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
                    more = s.recv(4096)
                    if not more:
                        return False
                    answer += more
        except OSError:
            return False
        return int.from_bytes(answer[8:12], "big") >= 1

    def start_broker(self, port=None, wait_s=90.0):
        """On the same data; port: another one for plain clients. Seconds until it answered."""
        began = time.monotonic()
        if port is not None:
            self.state["ports"]["plaintext"] = port
            self._save()
        self.launch_broker()
        self.wait_broker(wait_s)
        return time.monotonic() - began

    def stop_broker(self):
        return _end(self.path("broker.pid"))

    def kill_broker(self):
        return _end(self.path("broker.pid"), signal.SIGKILL)

    # --- the registry ---

    def registry_pid(self):
        return read_pid(self.path("registry.pid"))

    def launch_registry(self):
        fetch(["registry"])
        s = self.state
        argv = [_java(), "-Xmx512m", *JVM, self._temporary(), "-Dquarkus.http.host=127.0.0.1",
                f"-Dquarkus.http.port={self.port('registry')}"]
        if s["registry_storage"] == "kafka":
            argv += ["-Dapicurio.storage.kind=kafkasql", f"-Dapicurio.kafkasql.bootstrap.servers={self.brokers}"]
        if s["tls"]:
            argv += [f"-Dquarkus.http.ssl.certificate.files={self.cert('server.crt')}",
                     f"-Dquarkus.http.ssl.certificate.key-files={self.cert('server.key')}",
                     f"-Dquarkus.http.ssl-port={self.port('registry_tls')}",
                     "-Dquarkus.http.insecure-requests=enabled"]
        argv += ["-jar", f"apicurio-registry-app-{REGISTRY}-runner.jar"]
        return _spawn(argv, registry_dir(), self.path("registry.log"), self.path("registry.pid"))

    def wait_registry(self, wait_s=120.0):
        took = _wait("the registry", self.registry_answers, self.path("registry.pid"), self.path("registry.log"),
                     wait_s)
        # Confluent's default. This registry's own is NONE, which would let any schema pass.
        self.ask_registry("/config", {"compatibility": "BACKWARD"}, "PUT")
        return took

    def ask_registry(self, path, body=None, method=None, timeout=10.0):
        """The answer's JSON; urllib.error.HTTPError for an error status."""
        request = urllib.request.Request(
            self.registry_url + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.load(answer)

    def registry_answers(self):
        """The registry takes requests, and has read what it keeps in Kafka: before that it knows of no subject and no rule."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port('registry')}/health/ready", timeout=5.0):
                return True
        except OSError:
            return False

    def start_registry(self, port=None, wait_s=120.0):
        began = time.monotonic()
        if port is not None:
            self.state["ports"]["registry"] = port
            self._save()
        self.launch_registry()
        self.wait_registry(wait_s)
        return time.monotonic() - began

    def stop_registry(self):
        return _end(self.path("registry.pid"))

    def kill_registry(self):
        return _end(self.path("registry.pid"), signal.SIGKILL)

    # --- both ---

    def up(self, with_registry=True):
        """Both, at once where the registry does not need the broker. {"broker": seconds, "registry": seconds}"""
        fetch([self.state["kafka"]] + (["registry"] if with_registry else []))
        taken = [str(port) for name, port in self.state["ports"].items() if name != "proxy" and not is_free(port)]
        if taken:
            raise StackError(f"already in use: port {', '.join(taken)}; choose others")
        began = time.monotonic()
        took = {}
        try:
            if with_registry and self.state["registry_storage"] == "memory":
                self.launch_registry()
            self.launch_broker()
            self.wait_broker()
            took["broker"] = time.monotonic() - began
            if with_registry:
                if self.registry_pid() is None and self.state["registry_storage"] == "kafka":
                    self.launch_registry()
                self.wait_registry()
                took["registry"] = time.monotonic() - began
        except BaseException:
            self.down()
            raise
        return took

    def down(self):
        """{"registry": seconds, "broker": seconds}, None for what did not run."""
        return {"registry": self.stop_registry(), "broker": self.stop_broker()}
