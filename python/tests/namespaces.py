"""Two hosts of one machine: network namespaces, with a cable between them."""

import itertools
import os
import signal
import subprocess

import pytest

RUN_WITH = "it needs root, or CAP_SYS_ADMIN and CAP_NET_ADMIN, and the command `ip` of iproute2"
_numbers = itertools.count()


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True, timeout=120).stdout


class TwoNodes:
    """Each node can reach the other at its address, and nothing else."""

    def __init__(self):
        # Unique names, so that leftovers of other tests or killed runs are neither used nor
        # removed.
        first = f"unisono-{os.getpid()}-{next(_numbers)}"
        self.names = [first + end for end in "ab"]
        self.addresses = ["10.213.0.1", "10.213.0.2"]  # inside the namespaces only
        self._made = []

    def make(self):
        for name in self.names:
            ip("netns", "add", name)
            self._made.append(name)
        ends = ["type", "veth", "peer", "name", "cable", "netns", self.names[1]]
        ip("link", "add", "cable", "netns", self.names[0], *ends)
        for name, address in zip(self.names, self.addresses):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
            ip("-n", name, "link", "set", "lo", "up")
            ip("netns", "exec", name, "true")  # mounts a /sys, which not all containers allow

    def command(self, node, *words):
        return ["ip", "netns", "exec", self.names[node], *words]

    def remove(self):
        for name in self._made:
            for process in ip("netns", "pids", name, check=False).split():
                try:
                    os.kill(int(process), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            ip("netns", "del", name, check=False)


@pytest.fixture
def two_nodes():
    nodes = TwoNodes()
    try:
        try:
            nodes.make()
        except (OSError, subprocess.CalledProcessError) as error:
            said = getattr(error, "stderr", None) or error
            pytest.skip(f"no network namespaces here: {str(said).strip()}; {RUN_WITH}")
        yield nodes
    finally:
        nodes.remove()
