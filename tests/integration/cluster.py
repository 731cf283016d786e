# SPDX-License-Identifier: Apache-2.0
"""A Kafka cluster of three brokers and a schema registry for tests: stack.Stack for the first, and brokers that join it."""
import contextlib
import time

from stack import Clients, Stack, StackError

BROKERS = 3


class Cluster(Clients):
    """
    The first broker is the controller, too. Clients that are not plain have to log in (servers.USER), and their rights
    are ACLs'. The registry is behind a proxy, first.registry_proxy.
    """

    def __init__(self):
        self.stacks = []
        try:
            shared = {"tls": True, "authorizer": True, "replicas": BROKERS}
            self.stacks.append(Stack(proxied=True, **shared))
            joins = {"cluster_id": self.first.servers.state["cluster_id"], "controller": self.first.servers.port("controller")}
            for node in range(2, BROKERS + 1):
                self.stacks.append(Stack(registry=False, node=node, joins=joins, **shared))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        try:
            self.first.up()
            for stack in self.stacks[1:]:
                stack.servers.launch_broker()
            for stack in self.stacks[1:]:
                stack.servers.wait_broker()
            self.wait_whole()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        for stack in reversed(self.stacks):  # the controller last: without it the others do not end by themselves
            stack.close()

    @property
    def first(self):
        return self.stacks[0]

    @property
    def brokers(self):
        """Of plain clients, who may do all."""
        return ",".join(stack.brokers for stack in self.stacks)

    @property
    def registry_url(self):
        return self.first.registry_url

    def listeners(self, name):
        return [stack.listener(name) for stack in self.stacks]

    def wait_whole(self, wait_s=120):
        """Until every partition has its leader, and every replica what the leader has."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        until = time.monotonic() + wait_s
        lacking = "no broker answers"
        while time.monotonic() < until:
            with contextlib.suppress(KafkaException):
                found = AdminClient({"bootstrap.servers": self.brokers, "log_level": 2}).list_topics(timeout=10)
                lacking = [f"{t.topic}[{p.id}]" for t in found.topics.values() for p in t.partitions.values()
                           if p.leader < 0 or len(p.isrs) < len(p.replicas)]
                if not lacking and len(found.brokers) == BROKERS:
                    return
            time.sleep(0.5)
        raise StackError(f"the cluster is not whole after {wait_s} s: {lacking}")
