"""Networks of the jobs: shared memory, TCP on the loopback interface, or TCP between two network namespaces
connected by a veth pair."""

import os
import secrets
import socket
import subprocess


class NotPermitted(Exception):
    """Network namespaces cannot be created on this machine."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


class SharedMemory:
    """Every library with its default network on one host."""

    name = "shm"
    memories = ["ordinary", "registered", "persistent"]
    programs = {"limit": "bench_limits", "unisono": "bench_peer_unisono"}

    def mpi_arguments(self, implementation):
        return []

    def environment(self, implementation, rank, ranks):
        return {}

    def inside(self, rank, command):
        """Returns the command that runs in the rank's network namespace."""
        return command

    def launcher(self, implementation, command):
        """Returns the launcher's command, run in a namespace that reaches all ranks."""
        return command

    def close(self):
        pass


class Loopback(SharedMemory):
    """Only TCP, on the loopback interface."""

    name = "tcp"
    memories = ["ordinary"]
    programs = {"limit": "bench_limits", "unisono": "bench_peer_unisono", "raw": "bench_peer_raw"}
    device = "lo"
    subnet = "127.0.0.0/8"

    def __init__(self):
        self.ports = {}  # number of ranks -> port of their job
        self.token = secrets.token_hex(16)

    def mpi_arguments(self, implementation):
        if implementation != "openmpi":
            return []
        return ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                "--mca", "btl_tcp_if_include", self.subnet]

    def environment(self, implementation, rank, ranks):
        if implementation == "mpich":
            return {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": self.device}
        if implementation == "unisono":
            if ranks not in self.ports:
                self.ports[ranks] = free_port()
            return {"UNISONO_TRANSPORT": "tcp", "UNISONO_ADDRESS": f"{self.host(0)}:{self.ports[ranks]}",
                    "UNISONO_INTERFACE": self.device, "UNISONO_TOKEN": self.token}
        return {"UNISONO_BENCH_HOST": self.host(rank)}

    def host(self, rank):
        return "127.0.0.1"


class Ucx(Loopback):
    """UCX on one host, over its TCP on the loopback interface or over its shared memory."""

    programs = {"limit": "bench_limits", "unisono": "bench_peer_unisono",
                "tcp": "bench_peer_unisono"}

    def __init__(self, over):
        super().__init__()
        self.name = f"ucx-{over}"
        self.over = over

    def mpi_arguments(self, implementation):
        return ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]

    def environment(self, implementation, rank, ranks):
        ucx = {"UCX_TLS": f"{self.over},self"}
        if self.over == "tcp":
            ucx["UCX_NET_DEVICES"] = self.device
        if implementation == "openmpi":
            return ucx
        found = super().environment("unisono", rank, ranks)
        if implementation == "tcp":
            # This job runs at the same time as the job over UCX, so it needs another port.
            host, port = found["UNISONO_ADDRESS"].rsplit(":", 1)
            return found | {"UNISONO_ADDRESS": f"{host}:{int(port) + 1}"}
        return found | ucx | {"UNISONO_NETWORK": "ucx"}


class Veth(Loopback):
    """TCP between two namespaces: even ranks run in one, odd ranks in the other."""

    name = "veth"
    device = "veth0"
    subnet = "10.213.7.0/24"

    def __init__(self):
        super().__init__()
        self.spaces = [f"unisono-bench-{os.getpid()}-{i}" for i in (0, 1)]
        outside = [f"ub{os.getpid()}{end}"[:15] for end in "ab"]
        try:
            for space in self.spaces:
                self._ip("netns", "add", space)
            self._ip("link", "add", outside[0], "type", "veth", "peer", "name", outside[1])
            for i, space in enumerate(self.spaces):
                self._ip("link", "set", outside[i], "netns", space)
                within = ["-n", space]
                self._ip(*within, "link", "set", outside[i], "name", self.device)
                self._ip(*within, "address", "add", f"{self.host(i)}/24", "dev", self.device)
                self._ip(*within, "link", "set", self.device, "up")
                self._ip(*within, "link", "set", "lo", "up")
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            raise NotPermitted(getattr(error, "stderr", None) or str(error)) from error

    @staticmethod
    def _ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def environment(self, implementation, rank, ranks):
        found = super().environment(implementation, rank, ranks)
        if implementation == "openmpi":
            # Its ranks connect to their launcher over TCP, but namespaces do not share a loopback
            # interface.
            found |= {"PMIX_MCA_ptl_tcp_remote_connections": "1", "PMIX_MCA_gds": "hash",
                      "PMIX_MCA_ptl_tcp_if_include": self.subnet}
        return found

    def launcher(self, implementation, command):
        return self.inside(0, command) if implementation == "openmpi" else command

    def host(self, rank):
        return f"10.213.7.{rank % 2 + 1}"

    def inside(self, rank, command):
        return ["ip", "netns", "exec", self.spaces[rank % 2], *command]

    def close(self):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


NETWORKS = {"shm": SharedMemory, "tcp": Loopback, "veth": Veth}
